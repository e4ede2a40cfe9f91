/* SPDX-License-Identifier: Apache-2.0
 *
 * delayed.c - updates delayed by one step (plan->delayed): the next round opens when the reduction of the one before begins,
 * and works on the parameters that are there, one step older. So the sum travels while devices compute.
 *
 * One reduction at a time: an open round that is complete waits for the end of the one before. Two exceptions. Where a
 * worker is to leave, move or join (boundary.c), or a validation is due, the next round opens only when this one is committed
 * everywhere; its parameters are a step older all the same. And a newcomer holds the version of the step after it joined and
 * no older one, so it cannot work on the round in which it is ready: if such newcomers are all that is left of a stage, the
 * open round is cut short, and goes into the reduction as it is.
 */
#include "core/methods/method.h"

#include <assert.h>

#include "core/directory/directory.h"
#include "core/methods/flush.h"
#include "core/worker/worker.h"

static uint32_t actions(const struct skep_plan *plan, uint32_t fences)
{
	(void)plan, (void)fences;
	return 4;
}

static void reduce(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN);
	const struct skep_plan *plan = step->plan;
	skep_rounds_close(d, plan);
	skep_rounds_sum(d, step);
	bool overlaps = d->reduced.on && d->round + 1 < plan->rounds;
	if (!overlaps || skep_plan_validation_due(plan, d->round + 1) || skep_boundary_due(d, step))
		return;
	d->round++;
	step->how.directory->begin(d, step);
}

/* There may be new owners, and the open round may be complete. */
void skep_delayed_committed(struct directory *d, struct step *step)
{
	if (d->phase == PHASE_OPEN)
		step->how.directory->refill(d, step, SKEP_NO_INDEX);
}

/* A restorer holds the older version; other newcomers do not. */
bool skep_delayed_serves_late(struct directory *d, uint32_t worker)
{
	const struct stage_state *stage = directory_stage(d, directory_row(d, worker)->stage);
	return skep_peer_same(stage->restorer, directory_worker(d, worker));
}

void skep_delayed_carry_on(struct directory *d, struct step *step, uint32_t worker)
{
	(void)worker;
	skep_rounds_cut(d, step->plan);
}

/* Newcomers among the members serve when the stage commits. With `clip` one that has lost all of them waits for the others. */
static bool serves_soon(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	for (uint32_t i = 0; i < plan->workers && d->reduced.on; i++) {
		const struct row *row = directory_row(d, i);
		if (row->member && row->stage == stage && row->standing == STANDING_READY)
			return true;
	}
	return false;
}

/* Has a stage nothing but newcomers, which cannot work on the round that opens? */
bool skep_delayed_none_can(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t i = 0; i < plan->stages; i++) {
		const struct stage_state *stage = directory_stage(d, i);
		if (stage->serving == 0 && !stage->waiting && !serves_soon(d, plan, i))
			return true;
	}
	return false;
}

static uint32_t next_reduction(struct directory *d, const struct row *row)
{
	assert(row->standing != STANDING_ABSENT);
	bool committed = directory_stage(d, row->stage)->committed;
	uint32_t round = d->round;
	if (d->reduced.on)
		round = committed ? d->round + (d->phase == PHASE_REDUCING) : d->reduced.round;
	return row->since > round ? row->since : round;
}

const struct skep_directory_method skep_delayed_directory = {
	SKEP_FLUSH_COMMIT,
	SKEP_FLUSH_NEWCOMERS,
	SKEP_FLUSH_ROUND,
	.next_reduction = next_reduction,
	.serves_late = skep_delayed_serves_late,
	.carry_on = skep_delayed_carry_on,
	.none_can = skep_delayed_none_can,
	.actions = actions,
	.reduce = reduce,
	.committed = skep_delayed_committed,
};

/* ---- a worker ------------------------------------------------------------------------------------------------------- */

size_t skep_delayed_worker_lay_out(struct worker *w, const struct skep_plan *plan, size_t at)
{
	at = skep_flush_worker_lay_out(w, plan, at);
	w->tallies = 2;
	return at;
}

/* When a round is sealed the worker goes on with the next one. */
static void derive(struct worker *w)
{
	assert(w->early <= w->early_capacity);
	bool sealed = worker_sealed(w);
	uint32_t round = w->version + sealed;
	w->work = (struct worker_work){.round = round, .first = round, .count = 1, .early = 1, .stepping = sealed};
}

/* With periodic sync passes read the inner parameters, and the version is that of the newest STEP. */
static uint32_t version_of(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	if (worker_validates(w, work->microbatch))
		return work->round;
	return skep_plan_periodic(plan) ? w->version : skep_plan_version(plan, work->round);
}

static void reads(const struct worker *w, const struct skep_plan *plan, struct skep_work *work, struct skep_op *op)
{
	op->version = version_of(w, plan, work);
}

static uint64_t staleness(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work)
{
	return work->round - version_of(w, plan, work);
}

const struct skep_worker_method skep_delayed_worker = {
	SKEP_FLUSH_PASSES,
	SKEP_FLUSH_SEAL,
	.lay_out = skep_delayed_worker_lay_out,
	.fragments = 1,
	.derive = derive,
	.reads = reads,
	.staleness = staleness,
};
