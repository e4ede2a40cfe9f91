/* SPDX-License-Identifier: Apache-2.0
 *
 * edge.c - what the directory changes at a round's edge, when nobody holds work: workers that gave notice go, and every
 * rebalancing period one worker may move. To move is to end one epoch and to be assigned in the next one: the mover
 * fetches its new stage's state as any newcomer does. A stage never loses its last worker here.
 */
#include "core/directory.h"
#include "core/rebalance.h"

#define LEAVERS_PER_EDGE 16u /* bounds the actions of a step, each has many neighbours; the rest go one round later */

static struct skep_load *loads(struct directory *d)
{
	return skep_at(d, d->load_at);
}

static struct skep_stage_load *stage_loads(struct directory *d)
{
	return skep_at(d, d->stage_load_at);
}

static uint32_t collect(struct directory *d, const struct skep_plan *plan)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_SERVING)
			loads(d)[count++] = (struct skep_load){i, row->stage, row->queue_milli};
	}
	return count;
}

/* A round may be longer than a period, and its last report is of its end, when the queues have run dry: so all count. */
void edge_on_load(struct directory *d, uint32_t worker, uint64_t queue_milli)
{
	struct row *row = directory_row(d, worker);
	row->queue_sum = row->reports++ == 0 ? queue_milli : row->queue_sum + queue_milli;
	row->queue_milli = row->queue_sum / row->reports;
}

/* Has somebody been given this stage who does not serve it yet? */
static bool expects_someone(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		bool coming = row->standing == STANDING_JOINING || row->standing == STANDING_READY;
		if (coming && row->stage == stage)
			return true;
	}
	return false;
}

/* Where a newcomer goes: with rebalancing the most loaded stage, if the loads tell; else the one with the fewest workers,
 * newcomers included. Loads say who needs help, not how much: they are of the time before the first helper, so one goes by
 * them and the others of a bulk by the numbers. */
uint32_t edge_needy_stage(struct directory *d, const struct skep_plan *plan)
{
	uint32_t best = 0, fewest = UINT32_MAX;
	struct skep_stage_load *stage = stage_loads(d);
	skep_rebalance(plan, loads(d), collect(d, plan), stage);
	if (plan->rebalance_ns > 0) {
		for (uint32_t i = 1; i < plan->stages; i++)
			best = stage[i].queue_milli > stage[best].queue_milli ? i : best;
		if (stage[best].queue_milli > 0 && !expects_someone(d, plan, best))
			return best;
		best = 0;
	}
	for (uint32_t i = 0; i < plan->stages; i++)
		stage[i].workers = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		stage[row->stage < plan->stages ? row->stage : 0].workers += directory_has_stage(row);
	}
	for (uint32_t i = 0; i < plan->stages; i++) {
		if (stage[i].workers < fewest) {
			fewest = stage[i].workers;
			best = i;
		}
	}
	return best;
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
	row->leaving = true;
	if (row->standing == STANDING_READY) /* announced when it serves */
		return;
	directory_stage(d, row->stage)->leaving++;
	for (uint32_t to = 0; row->announced && to < step->plan->workers; to++) {
		const struct row *other = directory_row(d, to);
		if (directory_has_stage(other) && other->stage + 1 == row->stage)
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
			.round = d->round,
			.peer = directory_worker(d, chosen.worker)});
	directory_retire(d, step, chosen.worker);
	row->epoch++;
	row->assigned = 0;
	row->stage = chosen.to;
	row->standing = STANDING_WAITING; /* assigned when the round opens */
	row->moving = true;
	row->member = false;
	row->queue_milli = row->reports = 0;
}

void edge_pass(struct directory *d, struct step *step)
{
	release_leavers(d, step);
	if (step->plan->rebalance_ns == 0 || d->node.now < d->rebalance_due_ns)
		return;
	d->rebalance_due_ns = d->node.now + step->plan->rebalance_ns;
	struct skep_move chosen = skep_rebalance(step->plan, loads(d), collect(d, step->plan), stage_loads(d));
	for (uint32_t i = 0; i < step->plan->workers; i++)
		directory_row(d, i)->reports = 0;
	if (chosen.worker != SKEP_NO_INDEX && !directory_row(d, chosen.worker)->leaving)
		move(d, step, chosen);
}
