/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_frozen.c - decides how many elements of a seed's stages are not trained. Drawn last, from a draw of its own: all else
 * stays as it is.
 */
#include "tests/cluster/fault_mix.h"

#define FROZEN_SALT UINT64_C(0x66726f7a656e)
#define FROZEN 1u /* of 8, what none of the pinned seeds draws */

static uint64_t elements(const struct skep_plan *plan, uint32_t vstage)
{
	uint64_t first, count;
	skep_chunk_range(plan->stage[vstage % plan->stages].parameters, vstage / plan->stages,
		skep_plan_model_chunks(plan), &first, &count);
	return count;
}

static uint64_t state_bytes(const struct skep_stage_plan *s)
{
	uint64_t trained = s->parameters - s->frozen - s->frozen_end;
	return s->state_chunks * SKEP_STATE_HEADER_BYTES + 4 * s->parameters + 8 * trained;
}

/* Buckets that begin before what is trained are one that begins with it; where nothing is, there is one of nothing. */
static void cut_buckets(struct weather *w, uint32_t stage)
{
	struct skep_stage_plan *s = &w->stage[stage];
	uint64_t *first = w->bucket_first[stage], end = s->parameters - s->frozen_end;
	uint32_t buckets = 0;
	for (uint32_t b = 0; b < s->buckets; b++)
		if (first[b] > s->frozen && first[b] < end)
			first[buckets++] = first[b];
	if (s->buckets > 0)
		first[buckets++] = s->frozen;
	s->buckets = buckets;
}

/* In an eighth of those that can: some of the first virtual stages, and of the next one some elements, so that as many are left
 * as there are fragments. A table of the last stage that is tied to one of these is as little trained. */
void weather_freeze(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ FROZEN_SALT);
	if (random % 8 != FROZEN || plan->routing == SKEP_ROUTING_TRAINER)
		return;
	uint32_t vstages = skep_plan_vstages(plan), frozen = (uint32_t)(random >> 8 & 0xffff) % vstages;
	uint64_t least = skep_plan_fragments(plan), next = elements(plan, frozen);
	uint64_t part = next > least ? (random >> 24 & 0xff) % (next - least + 1) : 0;
	for (uint32_t v = 0; v < frozen; v++)
		w->stage[v % plan->stages].frozen += elements(plan, v);
	w->stage[frozen % plan->stages].frozen += part;
	plan->frozen_vstages = frozen;
	uint64_t last = elements(plan, vstages - 1) - (frozen + 1 == vstages ? part : 0);
	if (plan->tied > 0 && last > plan->tied)
		w->stage[plan->stages - 1].frozen_end = plan->tied;
	plan->tied = 0;
	for (uint32_t s = 0; s < plan->stages; s++) {
		struct skep_stage_plan *stage = &w->stage[s];
		stage->state_bytes = state_bytes(stage);
		cut_buckets(w, s);
	}
}

void weather_thaw(struct weather *w)
{
	w->plan.frozen_vstages = 0;
	for (uint32_t s = 0; s < w->plan.stages; s++) {
		w->stage[s].frozen = w->stage[s].frozen_end = 0;
		w->stage[s].state_bytes = state_bytes(&w->stage[s]);
	}
}
