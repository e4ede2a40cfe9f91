/* SPDX-License-Identifier: Apache-2.0
 *
 * edge.c - what the directory changes at a round's edge, when nobody holds work: workers that gave notice go, and every
 * rebalancing period one worker may move, if the one before has arrived. To move is to end one epoch and to be assigned in
 * the next one: the mover fetches its new stage's state as any newcomer does. A stage never loses its last worker here.
 * And, at any time, whether a newcomer is wanted, and where it goes.
 *
 * With delayed updates most rounds overlap and have no such edge. edge_due() says where one is needed: there the next round
 * waits until this one is committed everywhere.
 */
#include "core/directory.h"

#include <assert.h>

#include "core/random.h"
#include "core/rebalance.h"
#include "core/route.h"

#define LEAVERS_PER_EDGE 16u /* bounds the actions of a step, each has many neighbours; the rest go one round later */

static struct skep_load *loads(struct directory *d)
{
	return skep_at(d, d->load_at);
}

static struct skep_stage_load *stage_loads(struct directory *d)
{
	return skep_at(d, d->stage_load_at);
}

/* Those on their way count as well: what they will take over is no reason to send others. Those that gave notice do not. */
static void weigh(struct directory *d, const struct skep_plan *plan)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (directory_has_stage(row) && !row->leaving)
			loads(d)[count++] = (struct skep_load){
				i, row->stage, row->standing == STANDING_SERVING, row->queue_milli, row->needed_ns};
	}
	skep_stage_loads(plan, loads(d), count, stage_loads(d));
}

void edge_forget_load(struct directory *d, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	row->queue_milli = row->needed_ns = row->reports = 0;
}

/* A round may be longer than a period, and its last report is of its end, when the queues have run dry: so all count. */
void edge_on_load(struct directory *d, uint32_t worker, uint64_t queue_milli, skep_time needed_ns)
{
	struct row *row = directory_row(d, worker);
	row->queue_sum = row->reports++ == 0 ? queue_milli : row->queue_sum + queue_milli;
	row->queue_milli = row->queue_sum / row->reports;
	row->needed_ns = needed_ns > 0 ? needed_ns : row->needed_ns;
}

/* Workers that hold or have been given this stage, and do not serve it yet. */
static uint32_t on_their_way(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
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

uint32_t edge_place(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	uint32_t fewest = fewest_workers(d, plan);
	return stage_loads(d)[stage].workers < skep_stage_size_max(plan) ? stage : fewest;
}

static bool stands_by(const struct skep_plan *plan, uint32_t worker)
{
	return plan->stands_by && plan->stands_by[worker];
}

/* Workers of each stage at the start, and those of now who stay, on their way or there. */
static void compare_with_start(struct directory *d, const struct skep_plan *plan, struct skep_stage_load *stage)
{
	for (uint32_t i = 0; i < plan->stages; i++)
		stage[i].workers = stage[i].serving = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		bool here = !d->tried.on || skep_plan_candidate_of(plan, i) == d->tried.candidate;
		if (here && plan->first_stage_of[i] != SKEP_NO_STAGE)
			stage[plan->first_stage_of[i]].workers++;
		if (directory_has_stage(row) && !row->leaving)
			stage[row->stage].serving++;
	}
}

/* Who stands by is wanted in place of somebody who is lost, or will go: the swarm, or the candidate, is to be as strong as it
 * began. Whoever else comes back later is one more, and nobody is sent away again. */
bool edge_wants(struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	const struct skep_stage_load *stage = stage_loads(d);
	uint32_t began = 0, now = 0;
	if (!stands_by(plan, worker))
		return true;
	compare_with_start(d, plan, stage_loads(d));
	for (uint32_t i = 0; i < plan->stages; i++) {
		began += stage[i].workers;
		now += stage[i].serving;
	}
	return now < began;
}

/* The stage that lacks most of what it had at the start, which may have been unequal on purpose. */
static uint32_t most_missed(struct directory *d, const struct skep_plan *plan)
{
	const struct skep_stage_load *stage = stage_loads(d);
	uint32_t best = 0, most = 0;
	compare_with_start(d, plan, stage_loads(d));
	for (uint32_t i = 0; i < plan->stages; i++) {
		uint32_t missing = stage[i].workers > stage[i].serving ? stage[i].workers - stage[i].serving : 0;
		if (missing <= most)
			continue;
		most = missing;
		best = i;
	}
	return edge_place(d, plan, best);
}

/* Where a newcomer goes: with rebalancing the most loaded stage, else the one with the fewest workers, or any; who stood by to
 * where somebody is missing. */
uint32_t edge_needy_stage(struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	if (skep_plan_fixed(plan)) /* back to its own */
		return plan->first_stage_of[worker];
	for (uint32_t i = 0; i < plan->stages; i++) { /* the run stands still until somebody founds it anew */
		if (directory_stage(d, i)->waiting && on_their_way(d, plan, i) == 0)
			return i;
	}
	if (plan->joins == SKEP_JOINS_RANDOM)
		return skep_random_below(&d->node.random, plan->stages);
	if (plan->rebalance_ns == 0)
		return stands_by(plan, worker) ? most_missed(d, plan) : fewest_workers(d, plan);
	weigh(d, plan);
	return skep_most_loaded(plan, stage_loads(d));
}

/* No more work for it, if others can do it: it is granted nothing, and the stage before chooses it last. What it has may
 * still come back. */
void edge_on_leave(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	if (row->leaving)
		return;
	if (row->standing != STANDING_SERVING && row->standing != STANDING_READY) {
		directory_fence(d, step, worker); /* it holds nothing */
		return;
	}
	if (row->standing == STANDING_READY) { /* announced when it serves */
		row->leaving = true;
		return;
	}
	directory_count_out(d, row);
	row->leaving = true;
	directory_count_in(d, row);
	for (uint32_t to = 0; row->announced && to < step->plan->workers; to++) {
		const struct row *other = directory_row(d, to);
		if (directory_has_stage(other) && directory_leads(step->plan, other, row))
			directory_tell(d, step, to, directory_worker(d, worker), row->stage, true);
	}
}

static void release_leavers(struct directory *d, struct step *step)
{
	uint32_t left = LEAVERS_PER_EDGE;
	for (uint32_t i = 0; i < step->plan->workers && left > 0; i++) {
		const struct row *row = directory_row(d, i);
		struct skep_peer peer = directory_worker(d, i);
		if (row->standing != STANDING_SERVING || !row->leaving || directory_stage(d, row->stage)->serving < 2)
			continue;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_LEFT, .stage = (uint16_t)row->stage, .peer = peer});
		directory_retire(d, step, i);
		directory_tell_fenced(d, step, peer);
		left--;
	}
}

static void move(struct directory *d, struct step *step, struct skep_move chosen)
{
	struct row *row = directory_row(d, chosen.worker);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_MOVED,
			.stage = (uint16_t)chosen.to,
			.round = d->closed,
			.peer = directory_worker(d, chosen.worker)});
	directory_retire(d, step, chosen.worker);
	row->epoch++;
	row->assigned = 0;
	row->member = false;
	edge_forget_load(d, chosen.worker);
	d->mover = directory_worker(d, chosen.worker);
	directory_assign(d, step, chosen.worker, chosen.to);
}

/* Until the last mover serves, or is gone, the loads do not show what it will change. */
static bool still_moving(struct directory *d)
{
	if (d->mover.index == SKEP_NO_INDEX)
		return false;
	const struct row *row = directory_row(d, d->mover.index);
	return row->epoch == d->mover.epoch && row->standing != STANDING_ABSENT && row->standing != STANDING_SERVING;
}

static bool period_over(struct directory *d, const struct skep_plan *plan)
{
	return plan->rebalance_ns > 0 && d->node.now >= d->rebalance_due_ns && !still_moving(d);
}

/* Who is to move now, if anybody. */
static struct skep_move choose_move(struct directory *d, const struct skep_plan *plan)
{
	struct skep_move chosen = {SKEP_NO_INDEX, 0};
	if (period_over(d, plan)) {
		weigh(d, plan);
		chosen = skep_rebalance(plan, stage_loads(d));
	}
	return chosen;
}

static void begin_period(struct directory *d, const struct skep_plan *plan)
{
	if (!period_over(d, plan))
		return;
	d->rebalance_due_ns = d->node.now + plan->rebalance_ns;
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->reports = 0;
}

/* Does anybody else hold the parameters of its stage? */
static bool can_go(struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (i != worker && row->standing >= STANDING_READY && row->stage == directory_row(d, worker)->stage)
			return true;
	}
	return false;
}

bool edge_due(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing >= STANDING_READY && row->leaving && can_go(d, plan, i))
			return true;
	}
	bool judged = !plan->async && skep_plan_validation_due(plan, d->round + 1);
	if (judged || choose_move(d, plan).worker != SKEP_NO_INDEX)
		return true;
	begin_period(d, plan); /* nobody moves in this one */
	return false;
}

static void rebalance(struct directory *d, struct step *step)
{
	struct skep_move chosen = choose_move(d, step->plan);
	begin_period(d, step->plan);
	if (chosen.worker != SKEP_NO_INDEX)
		move(d, step, chosen);
}

/* Whoever was late for the commit works all the same, if it can: with delayed updates only a founder holds the older version. */
void edge_serve_late(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_READY &&
			(!plan->delayed ||
				skep_peer_same(directory_stage(d, row->stage)->founder, directory_worker(d, i))))
			directory_serve(d, i);
	}
}

void edge_pass(struct directory *d, struct step *step)
{
	release_leavers(d, step);
	rebalance(d, step);
	directory_new_sources(d, step);
}
