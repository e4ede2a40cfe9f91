/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_flushes.c - decides in how many flushes the fixed pipelines of a seed do a round: in a third of those that flush,
 * two to four, with as many microbatches as make them equal. Not with a barrier. With periodic sync an inner step is one
 * to three of them. And in which the stages have unequal numbers of workers.
 */
#include <string.h>

#include "core/schedule/pipelines.h"
#include "tests/cluster/fault_mix.h"

#define WEIGHTS_SALT UINT64_C(0x77656967687473)
#define FLUSHES_SALT UINT64_C(0x666c757368)
#define UNEVEN_SALT UINT64_C(0x756e6576656e)
#define PIPELINES_MOST 24u

/* So many, each of as many microbatches; more of them than were drawn, if need be. */
static void set_flushes(struct weather *w, uint32_t flushes)
{
	struct skep_plan *plan = &w->plan;
	plan->accumulate = flushes;
	uint32_t groups = plan->pipeline == SKEP_PIPELINE_INTERLEAVED ? plan->stages : 1;
	uint32_t unit = skep_plan_pipelines(plan) * groups * plan->accumulate, before = plan->microbatches;
	plan->microbatches += (unit - before % unit) % unit;
	w->bound_ns += (w->bound_ns - w->abuse_ns) * plan->accumulate * (plan->microbatches / before + 1);
}

/* 1F1B and PipeDream, in a third of those of two stages and more: workers are dealt to the stages anew, one at least to each.
 * Too many pipelines would make rounds of too many microbatches. */
static void draw_uneven(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ UNEVEN_SALT);
	if (random % 3 > 0 || plan->stages < 2 || !skep_pipeline_may_be_uneven(plan->pipeline))
		return;
	uint32_t before[CLUSTER_WORKERS];
	memcpy(before, w->first_stage_of, plan->workers * sizeof *before);
	for (uint32_t i = 0; i < plan->workers; i++)
		w->first_stage_of[i] = i < plan->stages ? i : (uint32_t)(mix64(++random) % plan->stages);
	uint32_t pipelines = skep_plan_pipelines(plan), had = plan->microbatches;
	if (pipelines > PIPELINES_MOST) {
		memcpy(w->first_stage_of, before, plan->workers * sizeof *before);
		return;
	}
	plan->barrier = false;
	plan->microbatches += (pipelines - had % pipelines) % pipelines;
	if (skep_plan_no_flush(plan))
		plan->microbatches = pipelines;
	w->bound_ns += (w->bound_ns - w->abuse_ns) * (plan->microbatches / had + 1);
}

void weather_inner_flushes(struct weather *w, uint64_t random)
{
	struct skep_plan *plan = &w->plan;
	uint32_t least = CLUSTER_ELEMENTS;
	plan->barrier = false;
	plan->inner.steps = 1 + (uint32_t)(random >> 8) % 4;
	for (uint32_t s = 0; s < plan->stages; s++)
		least = w->stage[s].parameters < least ? (uint32_t)w->stage[s].parameters : least;
	if (random >> 16 & 1)
		plan->inner.fragments = 1 + (uint32_t)(random >> 24 & 0xff) % least;
	set_flushes(w, plan->inner.steps * (1 + (uint32_t)(random >> 32 & 3) % 3));
	plan->in_flight = skep_plan_fixed_in_flight(plan);
}

/* What passes read without a flush, and how many rounds are synchronous. */
static void draw_weights(struct weather *w)
{
	uint64_t random = mix64(w->seed ^ WEIGHTS_SALT);
	w->plan.no_flush.weights = (enum skep_weights)(random % SKEP_WEIGHTS_CHOICES);
	w->plan.no_flush.synchronous = random >> 8 & 1 ? (uint32_t)(random >> 16) % w->plan.rounds : 0;
}

void weather_flushes(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	draw_uneven(w);
	uint64_t random = mix64(w->seed ^ FLUSHES_SALT);
	if (random % 3 == 0 && !plan->barrier && !skep_plan_no_flush(plan))
		set_flushes(w, 2 + (uint32_t)(random >> 32) % 3);
	if (skep_plan_no_flush(plan))
		draw_weights(w);
	plan->in_flight = skep_plan_fixed_in_flight(plan);
}
