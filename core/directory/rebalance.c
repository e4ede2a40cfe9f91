/* SPDX-License-Identifier: Apache-2.0
 *
 * rebalance.c - see rebalance.h. Pure functions of what was reported.
 */
#include "core/directory/rebalance.h"

#include <assert.h>
#include <string.h>

#define STAGES_COUNTED 256          /* on the stack; with more stages the bound is a loose one */
#define RATE_UNIT 1000000000000000u /* ns: sums over any number of workers fit, and a day per microbatch is not 0 */

static uint64_t rate_of(skep_time needed_ns)
{
	return needed_ns < RATE_UNIT ? RATE_UNIT / needed_ns : 1;
}

/* The rate that is assumed of a worker whose time is not known yet. */
static uint64_t usual_rate(const struct skep_load *load, uint32_t loads)
{
	uint64_t rate = 0, known = 0;
	for (uint32_t i = 0; i < loads; i++) {
		rate += load[i].needed_ns > 0 ? rate_of(load[i].needed_ns) : 0;
		known += load[i].needed_ns > 0;
	}
	return known > 0 ? rate / known : 1;
}

static void add_known(struct skep_stage_load *stage, const struct skep_load *load)
{
	stage->workers++;
	stage->known += load->needed_ns > 0;
	stage->rate += load->needed_ns > 0 ? rate_of(load->needed_ns) : 0;
	bool fits = load->queue_milli <= UINT64_MAX - stage->queue_milli;
	stage->queue_milli = fits ? stage->queue_milli + load->queue_milli : UINT64_MAX;
}

static void add_idle(struct skep_stage_load *stage, const struct skep_load *load)
{
	if (!load->serves)
		return;
	if (stage->serving++ > 0 && load->queue_milli >= stage->idle_queue_milli)
		return;
	stage->idle = load->worker;
	stage->idle_queue_milli = load->queue_milli;
	stage->idle_rate = load->needed_ns > 0 ? rate_of(load->needed_ns) : stage->each;
}

void skep_stage_loads(
	const struct skep_plan *plan, const struct skep_load *load, uint32_t loads, struct skep_stage_load *stage)
{
	uint64_t usual = usual_rate(load, loads);
	memset(stage, 0, plan->stages * sizeof *stage);
	for (uint32_t i = 0; i < loads; i++) {
		assert(load[i].stage < plan->stages);
		add_known(&stage[load[i].stage], &load[i]);
	}
	for (uint32_t i = 0; i < plan->stages; i++) {
		assert(stage[i].known <= stage[i].workers);
		stage[i].each = stage[i].known > 0 ? stage[i].rate / stage[i].known : usual;
		stage[i].rate += (stage[i].workers - stage[i].known) * stage[i].each;
	}
	for (uint32_t i = 0; i < loads; i++)
		add_idle(&stage[load[i].stage], &load[i]);
}

/* ---- by rate ---------------------------------------------------------------------------------------------------- */

static uint32_t least_rate(const struct skep_plan *plan, const struct skep_stage_load *stage)
{
	uint32_t most = 0;
	for (uint32_t i = 1; i < plan->stages; i++)
		most = stage[i].rate < stage[most].rate ? i : most;
	return most;
}

static uint32_t most_rate_left(const struct skep_plan *plan, const struct skep_stage_load *stage, uint32_t taker)
{
	uint32_t giver = SKEP_NO_STAGE;
	uint64_t left = stage[taker].rate; /* the giver must keep more */
	for (uint32_t i = 0; i < plan->stages; i++) {
		if (stage[i].serving < 2 || stage[i].rate - stage[i].idle_rate <= left)
			continue;
		left = stage[i].rate - stage[i].idle_rate;
		giver = i;
	}
	return giver;
}

/* ---- by queue --------------------------------------------------------------------------------------------------- */

/* A stage that has no worker has no queue either, and nothing could be longer than what waits for it. */
static bool longer(const struct skep_stage_load *a, const struct skep_stage_load *b)
{
	if ((a->workers == 0) != (b->workers == 0))
		return a->workers == 0;
	return a->queue_milli > b->queue_milli || (a->queue_milli == b->queue_milli && a->workers < b->workers);
}

static uint32_t longest_queue(const struct skep_plan *plan, const struct skep_stage_load *stage)
{
	uint32_t most = 0;
	for (uint32_t i = 1; i < plan->stages; i++)
		most = longer(&stage[i], &stage[most]) ? i : most;
	return most;
}

static uint32_t shortest_queue(const struct skep_plan *plan, const struct skep_stage_load *stage, uint32_t taker)
{
	uint32_t giver = SKEP_NO_STAGE;
	for (uint32_t i = 0; i < plan->stages; i++) {
		if (stage[i].serving > 1 && (giver == SKEP_NO_STAGE || longer(&stage[giver], &stage[i])))
			giver = i;
	}
	if (giver == SKEP_NO_STAGE || stage[taker].workers == 0)
		return giver;
	return stage[giver].queue_milli < stage[taker].queue_milli ? giver : SKEP_NO_STAGE;
}

/* ---- either ----------------------------------------------------------------------------------------------------- */

struct policy {
	uint32_t (*most_loaded)(const struct skep_plan *plan, const struct skep_stage_load *stage);
	/* The stage whose idle worker goes to the taker; SKEP_NO_STAGE: none does. */
	uint32_t (*giver)(const struct skep_plan *plan, const struct skep_stage_load *stage, uint32_t taker);
};

static const struct policy policies[] = {
	[SKEP_REBALANCE_BY_RATE] = {least_rate, most_rate_left},
	[SKEP_REBALANCE_BY_QUEUE] = {longest_queue, shortest_queue},
};

uint32_t skep_most_loaded(const struct skep_plan *plan, const struct skep_stage_load *stage)
{
	assert(plan->rebalance.by <= SKEP_REBALANCE_BY_QUEUE);
	return policies[plan->rebalance.by].most_loaded(plan, stage);
}

static bool pays(const struct skep_plan *plan, uint32_t to, uint32_t workers)
{
	return plan->rebalance.horizon_ns == 0 ||
	       plan->rebalance.horizon_ns / (workers + 1) > plan->stage[to].migrate_ns;
}

struct skep_migration skep_rebalance(const struct skep_plan *plan, const struct skep_stage_load *stage)
{
	struct skep_migration move = {SKEP_NO_INDEX, skep_most_loaded(plan, stage)};
	if (!pays(plan, move.to, stage[move.to].workers))
		return move;
	uint32_t giver = policies[plan->rebalance.by].giver(plan, stage, move.to);
	assert(giver == SKEP_NO_STAGE || (giver != move.to && stage[giver].serving > 1));
	if (giver != SKEP_NO_STAGE)
		move.worker = stage[giver].idle;
	return move;
}

uint32_t skep_stage_size_max(const struct skep_plan *plan)
{
	uint32_t size[STAGES_COUNTED] = {0}, most = plan->workers / plan->stages + 1;
	bool anywhere = plan->rebalance.period_ns > 0 || plan->joins == SKEP_JOINS_RANDOM;
	if (plan->stages > STAGES_COUNTED || anywhere)
		return plan->workers;
	for (uint32_t i = 0; i < plan->workers; i++) {
		uint32_t stage = plan->first_stage_of[i];
		assert(stage == SKEP_NO_STAGE || stage < plan->stages);
		if (stage != SKEP_NO_STAGE && ++size[stage] > most)
			most = size[stage];
	}
	return most;
}
