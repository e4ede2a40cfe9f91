/* SPDX-License-Identifier: Apache-2.0
 *
 * traffic.c - see traffic.h.
 */
#include "planning/problem/traffic.h"

#include <math.h>
#include <stdlib.h>

#include "core/record.h"
#include "planning/problem/sums.h"

const char *const skep_link_class_name[SKEP_LINK_CLASSES] = {
	"from 10 Gbit/s", "1 to 10 Gbit/s", "100 Mbit/s to 1 Gbit/s", "10 to 100 Mbit/s", "below 10 Mbit/s"};

static uint32_t class_of(const void *context, uint32_t source, uint32_t destination)
{
	const struct skep_links *links = context;
	double bits = 8 * links->rate_Bps[(size_t)source * links->workers + destination], least = 1e10;
	for (uint32_t i = 0; i + 1 < SKEP_LINK_CLASSES; i++, least /= 10)
		if (bits >= least)
			return i;
	return SKEP_LINK_CLASSES - 1;
}

/* What shares and counts are kept in while a step's traffic is walked through. */
struct walk {
	const struct skep_planning *planning;
	const uint32_t *stage_of;
	double *share, *sum;
	double *offered; /* [workers] of senders that choose by the way: the sum of their weights for the next stage */
	uint32_t *scratch;
	struct skep_step_traffic traffic;
};

/* Each worker's part of what its stage does. */
static void share_out(struct walk *w)
{
	const struct skep_planning *p = w->planning;
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < p->workers; i++) {
			uint32_t stage = w->stage_of[i];
			if (stage >= p->stages)
				continue;
			double weight = skep_planning_weight(p, w->stage_of, i);
			if (pass == 0)
				w->sum[stage] += weight;
			else
				w->share[i] = weight / w->sum[stage];
		}
}

/* Of worker j of the next stage, for sender i. */
static double weight_for(const struct walk *w, uint32_t i, uint32_t j)
{
	return skep_planning_weight_for(w->planning, w->stage_of, i, j, 0);
}

/* How large a part of all microbatches sender i gives worker j of the next stage, where it chooses by the way too. */
static double chosen_part(const void *walk, uint32_t i, uint32_t j)
{
	const struct walk *w = walk;
	return w->share[i] * weight_for(w, i, j) / w->offered[i];
}

/* Senders that choose by the way differ, so that a worker's part is what all of the stage before give it. */
static void hand_on(struct walk *w, uint32_t stage)
{
	for (uint32_t j = 0; j < w->planning->workers; j++)
		w->share[j] = w->stage_of[j] == stage + 1 ? 0 : w->share[j];
	for (uint32_t i = 0; i < w->planning->workers; i++) {
		for (uint32_t j = 0; w->stage_of[i] == stage && j < w->planning->workers; j++)
			w->offered[i] += w->stage_of[j] == stage + 1 ? weight_for(w, i, j) : 0;
		for (uint32_t j = 0; w->stage_of[i] == stage && j < w->planning->workers; j++)
			w->share[j] += w->stage_of[j] == stage + 1 ? chosen_part(w, i, j) : 0;
	}
}

static bool is_by_owner(const struct skep_planning *p)
{
	return p->scenario->plan.routing == SKEP_ROUTING_TRAINER;
}

static void fill_closed(const struct skep_planning *p, const uint32_t *stage_of, struct skep_planning_traffic *ret)
{
	uint32_t serve = 0;
	for (uint32_t i = 0; i < p->workers; i++)
		serve += stage_of[i] < p->stages;
	const struct skep_scenario *s = p->scenario;
	double reduced = 0, widest = 0;
	for (uint32_t vstage = 0; vstage + 1 < skep_plan_vstages(&s->plan); vstage++)
		widest = fmax(widest, (double)(s->vstage_bytes[vstage] + SKEP_HEADER_BYTES));
	for (uint32_t i = 0; i < p->stages; i++)
		reduced += p->reduced_bytes[i];
	ret->sent = skep_complexity_sent(p->stages, skep_plan_model_chunks(&s->plan), is_by_owner(p));
	ret->microbatches = p->throughput[0].microbatches;
	ret->samples = s->samples;
	ret->tokens = s->model.sequence > 0 ? s->model.sequence : 1;
	ret->number_bytes = widest / ret->samples / ret->tokens;
	const struct skep_complexity closed = {.microbatches = ret->microbatches,
		.stages = p->stages,
		.sent = ret->sent,
		.samples = ret->samples,
		.tokens = ret->tokens,
		.width = ret->number_bytes,
		.number_bytes = 1,
		.parameters = reduced,
		.workers = serve,
		.period = p->throughput[0].period};
	struct skep_complexity_bytes bytes = skep_complexity_of(&closed);
	ret->closed = (struct skep_planning_bytes){bytes.pipeline, bytes.reduction};
}

static void end_walk(struct walk *w)
{
	free(w->share);
	free(w->sum);
	free(w->offered);
	free(w->scratch);
}

/* Interleaved, from the last stage to the first one and back. */
static void fill_wraps(const struct skep_scenario *s, struct skep_step_traffic *t)
{
	for (uint32_t c = 0; c + 1 < skep_plan_model_chunks(&s->plan); c++) {
		uint32_t vstage = (c + 1) * t->stages - 1;
		t->wrap_forward_bytes += (double)(s->vstage_bytes[vstage] + SKEP_HEADER_BYTES);
		t->wrap_backward_bytes += (double)(skep_plan_gradient_bytes(&s->plan, vstage) + SKEP_HEADER_BYTES);
	}
}

static void round_of(
	const void *walk, const uint32_t *stage_of, uint32_t *scratch, skep_carry_sum *carry, void *context)
{
	const struct walk *w = walk;
	skep_round_bytes(w->planning, stage_of, w->share, scratch, carry, context);
}

static bool begin_walk(const struct skep_planning *p, const uint32_t *stage_of, struct walk *w)
{
	*w = (struct walk){.planning = p,
		.stage_of = stage_of,
		.offered = calloc(p->workers, sizeof *w->offered),
		.share = calloc(p->workers, sizeof *w->share),
		.sum = calloc(p->stages, sizeof *w->sum),
		.scratch = calloc(p->stages + p->workers, sizeof *w->scratch)};
	if (!w->share || !w->sum || !w->offered || !w->scratch) {
		end_walk(w);
		return false;
	}
	share_out(w);
	for (uint32_t stage = 0; skep_planning_by_latency(p) && stage + 1 < p->stages; stage++)
		hand_on(w, stage);
	w->traffic = (struct skep_step_traffic){.workers = p->workers,
		.stages = p->stages,
		.share = w->share,
		.part = skep_planning_by_latency(p) ? chosen_part : NULL,
		.of_part = w,
		.fixed = skep_plan_fixed(&p->scenario->plan),
		.by_owner = is_by_owner(p),
		.forward_bytes = p->forward_bytes,
		.backward_bytes = p->backward_bytes,
		.round = round_of,
		.of_round = w,
		.microbatches = p->throughput[0].microbatches,
		.period = p->throughput[0].period,
		.classes = SKEP_LINK_CLASSES,
		.class_of = class_of,
		.context = &p->links[SKEP_UNCONTENDED]};
	fill_wraps(p->scenario, &w->traffic);
	return true;
}

bool skep_planning_traffic(const struct skep_planning *p, const uint32_t *stage_of, struct skep_planning_traffic *ret)
{
	struct skep_complexity_bytes bytes[SKEP_LINK_CLASSES];
	struct walk walk;
	*ret = (struct skep_planning_traffic){0};
	if (!begin_walk(p, stage_of, &walk))
		return false;
	skep_traffic_by_class(&walk.traffic, stage_of, walk.scratch, bytes);
	fill_closed(p, stage_of, ret);
	for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++)
		ret->on[i] = (struct skep_planning_bytes){bytes[i].pipeline, bytes[i].reduction};
	end_walk(&walk);
	return true;
}

struct payer {
	const struct skep_planning *planning;
	double usd;
};

static void pay(void *context, uint32_t source, uint32_t destination, struct skep_complexity_bytes bytes)
{
	struct payer *payer = context;
	const struct skep_planning *p = payer->planning;
	payer->usd += skep_topology_egress_usd(
		&p->scenario->topology, p->machine[source], p->machine[destination], bytes.pipeline + bytes.reduction);
}

double skep_planning_egress_usd(const struct skep_planning *p, const uint32_t *stage_of)
{
	struct walk walk;
	struct payer payer = {.planning = p};
	if (!p->scenario->topology.egress_usd_per_B)
		return 0;
	if (!begin_walk(p, stage_of, &walk))
		return NAN;
	skep_traffic_each(&walk.traffic, stage_of, walk.scratch, pay, &payer);
	end_walk(&walk);
	return payer.usd;
}
