/* SPDX-License-Identifier: Apache-2.0
 *
 * boundary.c - what the directory changes at a round boundary, when no worker holds work: workers that gave notice
 * leave, and every rebalancing period one worker may migrate, if the one before has arrived. To migrate is to end one
 * epoch and to be assigned a stage in the next one: the worker downloads its new stage's state as any newcomer does. A
 * stage never loses its last worker here. And, at any time, whether a newcomer is wanted, and where it goes.
 *
 * Where rounds overlap, skep_boundary_due() says whether such a boundary is needed: then the next round waits until
 * this one is committed in every stage.
 */
#include "core/directory/directory.h"

#include <assert.h>

#include "core/directory/rebalance.h"
#include "core/random.h"

#define LEAVERS_PER_EDGE 16u /* bounds the actions of a step, each has many neighbours; the rest go one round later */

static struct skep_load *loads(struct directory *d)
{
	return skep_at(d, d->load_at);
}

static struct skep_stage_load *stage_loads(struct directory *d)
{
	return skep_at(d, d->stage_load_at);
}

/* Those on their way count as well: what they will take over is no reason to send others. Those that gave notice, or were told to
 * leave and have not heard it, do not. */
static void weigh(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t count = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (directory_has_stage(row) && !row->leaving && !row->returned)
			loads(d)[count++] = (struct skep_load){
				i, row->stage, row->standing == STANDING_SERVING, row->queue_milli, row->needed_ns};
	}
	skep_stage_loads(plan, loads(d), count, stage_loads(d));
}

void skep_boundary_forget_load(struct directory *d, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	row->queue_milli = row->needed_ns = row->pass_ns = row->reports = row->in_flight = 0;
}

/* A round may be longer than a period, and its last report is of its end, when the queues have run dry: so all count. */
void skep_boundary_on_load(struct directory *d, uint32_t worker, uint64_t queue_milli, skep_time needed_ns)
{
	assert(d->phase != PHASE_STOPPED);
	struct row *row = directory_row(d, worker);
	row->queue_sum = row->reports++ == 0 ? queue_milli : row->queue_sum + queue_milli;
	row->queue_milli = row->queue_sum / row->reports;
	row->needed_ns = needed_ns > 0 ? needed_ns : row->needed_ns;
}

/* Workers that hold or have been given this stage, and do not serve it yet. */
static uint32_t on_their_way(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	uint32_t count = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		count += directory_has_stage(row) && row->stage == stage && row->standing != STANDING_SERVING;
	}
	return count;
}

/* Newcomers included, who gave notice left out; a tie goes to the lower number. But those that will go are still there, and
 * no stage may be larger than skep_stage_size_max() says; there is one that is smaller, since the newcomer has none. */
static uint32_t fewest_workers(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t best = SKEP_NO_STAGE, limit = skep_stage_size_max(plan);
	struct skep_stage_load *stage = stage_loads(d);
	for (uint32_t i = 0; i < plan->stages; i++)
		stage[i].workers = stage[i].serving = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (!directory_has_stage(row))
			continue;
		stage[row->stage].workers++;
		stage[row->stage].serving += !row->leaving;
	}
	for (uint32_t i = 0; i < plan->stages; i++) {
		bool fewer = best == SKEP_NO_STAGE || stage[i].serving < stage[best].serving;
		if (stage[i].workers < limit && fewer)
			best = i;
	}
	assert(best != SKEP_NO_STAGE);
	return best;
}

uint32_t skep_boundary_place(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	uint32_t fewest = fewest_workers(d, plan);
	return stage_loads(d)[stage].workers < skep_stage_size_max(plan) ? stage : fewest;
}

static bool stands_by(const struct skep_plan *plan, uint32_t worker)
{
	return plan->stands_by && plan->stands_by[worker];
}

/* Workers of each stage at the start, and those of now who stay, on their way or there. */
static void compare_with_start(struct directory *d, const struct step *step, struct skep_stage_load *stage)
{
	assert(d->phase != PHASE_STOPPED);
	const struct skep_plan *plan = step->plan;
	for (uint32_t i = 0; i < plan->stages; i++)
		stage[i].workers = stage[i].serving = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		bool here = step->how.scope->began_here(d, plan, i);
		if (here && plan->first_stage_of[i] != SKEP_NO_STAGE)
			stage[plan->first_stage_of[i]].workers++;
		if (directory_has_stage(row) && !row->leaving)
			stage[row->stage].serving++;
	}
}

/* A standby worker is wanted in place of a worker that is lost or will leave, so that the swarm, or the candidate, is
 * as strong as it began. If the lost worker comes back later the swarm has one more: no worker is sent away again. */
bool skep_boundary_wants(struct directory *d, const struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	assert(d->phase != PHASE_STOPPED);
	const struct skep_plan *plan = step->plan;
	const struct skep_stage_load *stage = stage_loads(d);
	uint32_t began = 0, now = 0;
	if (step->how.losses->in_shards)
		return false;
	if (!stands_by(plan, worker))
		return true;
	compare_with_start(d, step, stage_loads(d));
	for (uint32_t i = 0; i < plan->stages; i++) {
		began += stage[i].workers;
		now += stage[i].serving;
	}
	return now < began;
}

/* The stage that lacks most of what it had at the start, which may have been unequal on purpose; SKEP_NO_STAGE: none lacks. */
static uint32_t most_missed(struct directory *d, const struct step *step)
{
	const struct skep_plan *plan = step->plan;
	const struct skep_stage_load *stage = stage_loads(d);
	uint32_t best = SKEP_NO_STAGE, most = 0;
	compare_with_start(d, step, stage_loads(d));
	for (uint32_t i = 0; i < plan->stages; i++) {
		uint32_t missing = stage[i].workers > stage[i].serving ? stage[i].workers - stage[i].serving : 0;
		if (missing <= most)
			continue;
		most = missing;
		best = i;
	}
	return best;
}

/* The stage of a newcomer: with rebalancing the most loaded one, else the one with the fewest workers, or any; a
 * standby worker gets a stage that lacks a worker. */
uint32_t skep_boundary_needy_stage(struct directory *d, const struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	assert(d->phase != PHASE_STOPPED);
	const struct skep_plan *plan = step->plan;
	if (skep_plan_fixed(plan)) /* back to its own */
		return plan->first_stage_of[worker];
	for (uint32_t i = 0; i < plan->stages; i++) { /* the run stands still until a worker restores it */
		if (directory_stage(d, i)->waiting && on_their_way(d, plan, i) == 0)
			return i;
	}
	uint32_t missed = step->how.losses->holds(d, plan) ? most_missed(d, step) : SKEP_NO_STAGE;
	if (missed != SKEP_NO_STAGE) /* so it does until that one is whole */
		return skep_boundary_place(d, plan, missed);
	if (plan->joins == SKEP_JOINS_RANDOM)
		return skep_random_below(&d->node.random, plan->stages);
	if (plan->rebalance.period_ns == 0) {
		missed = stands_by(plan, worker) ? most_missed(d, step) : SKEP_NO_STAGE;
		return missed != SKEP_NO_STAGE ? skep_boundary_place(d, plan, missed) : fewest_workers(d, plan);
	}
	weigh(d, plan);
	return skep_most_loaded(plan, stage_loads(d));
}

/* No more work for it, if others can do it: it is granted nothing, and the stage before chooses it last. What it has may
 * still come back. */
void skep_boundary_on_leave(struct directory *d, struct step *step, uint32_t worker)
{
	assert(directory_row(d, worker)->standing != STANDING_ABSENT);
	assert(worker < step->plan->workers);
	struct row *row = directory_row(d, worker);
	if (row->leaving)
		return;
	if (row->standing != STANDING_SERVING && row->standing != STANDING_READY) {
		skep_directory_fence(d, step, worker); /* it holds nothing */
		return;
	}
	if (row->standing == STANDING_READY) { /* announced when it serves */
		row->leaving = true;
		return;
	}
	skep_directory_count_out(d, row);
	row->leaving = true;
	skep_directory_count_in(d, row);
	for (uint32_t to = 0; row->announced && to < step->plan->workers; to++) {
		const struct row *other = directory_row(d, to);
		if (directory_has_stage(other) && directory_leads(step->plan, other, row))
			skep_directory_send_peer(d, step, to, directory_worker(d, worker), row->stage, true);
	}
}

static void release_leavers(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t left = step->how.losses->in_shards ? 0 : LEAVERS_PER_EDGE;
	for (uint32_t i = 0; i < step->plan->workers && left > 0; i++) {
		const struct row *row = directory_row(d, i);
		struct skep_peer peer = directory_worker(d, i);
		if (row->standing != STANDING_SERVING || !row->leaving || directory_stage(d, row->stage)->serving < 2)
			continue;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_LEFT, .stage = (uint16_t)row->stage, .peer = peer});
		skep_directory_retire(d, step, i);
		skep_directory_send_fenced(d, step, peer);
		left--;
	}
}

static void move(struct directory *d, struct step *step, struct skep_migration chosen)
{
	struct row *row = directory_row(d, chosen.worker);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_MIGRATED,
			.stage = (uint16_t)chosen.to,
			.round = d->closed,
			.peer = directory_worker(d, chosen.worker)});
	skep_directory_retire(d, step, chosen.worker);
	row->epoch++;
	row->assigned = 0;
	row->member = row->returned = false;
	skep_boundary_forget_load(d, chosen.worker);
	d->mover = directory_worker(d, chosen.worker);
	skep_directory_assign(d, step, chosen.worker, chosen.to);
}

/* Until the last mover serves, or is gone, the loads do not show what it will change. */
static bool still_moving(struct directory *d)
{
	assert(d->phase == PHASE_REDUCING);
	if (d->mover.index == SKEP_NO_INDEX)
		return false;
	const struct row *row = directory_row(d, d->mover.index);
	return row->epoch == d->mover.epoch && row->standing != STANDING_ABSENT && row->standing != STANDING_SERVING;
}

static bool period_over(struct directory *d, const struct skep_plan *plan)
{
	return plan->rebalance.period_ns > 0 && d->node.now >= d->rebalance_due_ns && !still_moving(d);
}

/* The worker that is to migrate now, if any. */
static struct skep_migration choose_move(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	struct skep_migration chosen = {SKEP_NO_INDEX, 0};
	if (period_over(d, plan)) {
		weigh(d, plan);
		chosen = skep_rebalance(plan, stage_loads(d));
	}
	return chosen;
}

static void begin_period(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	if (!period_over(d, plan))
		return;
	d->rebalance_due_ns = d->node.now + plan->rebalance.period_ns;
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->reports = 0;
}

/* True if another worker holds all of the state of its stage. */
static bool can_go(struct directory *d, const struct step *step, uint32_t worker)
{
	const struct skep_plan *plan = step->plan;
	assert(worker < plan->workers);
	assert(directory_row(d, worker)->stage < plan->stages);
	for (uint32_t i = 0; !step->how.losses->in_shards && i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (i != worker && row->standing >= STANDING_READY && row->stage == directory_row(d, worker)->stage)
			return true;
	}
	return false;
}

bool skep_boundary_due(struct directory *d, const struct step *step)
{
	const struct skep_plan *plan = step->plan;
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing >= STANDING_READY && row->leaving && can_go(d, step, i))
			return true;
	}
	if (choose_move(d, plan).worker != SKEP_NO_INDEX)
		return true;
	begin_period(d, plan); /* no worker migrates in this one */
	return false;
}

static void rebalance(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	struct skep_migration chosen = choose_move(d, step->plan);
	begin_period(d, step->plan);
	if (chosen.worker != SKEP_NO_INDEX)
		move(d, step, chosen);
}

/* A worker that was late for the commit works all the same, if it can: with delayed updates only a restorer holds the
 * older version. */
void skep_boundary_serve_late(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_REDUCING);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_READY && step->how.directory->serves_late(d, i))
			skep_directory_serve(d, i);
	}
}

void skep_boundary_pass(struct directory *d, struct step *step)
{
	release_leavers(d, step);
	rebalance(d, step);
	skep_directory_new_sources(d, step);
}
