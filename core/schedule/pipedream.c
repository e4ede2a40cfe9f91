/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream.c - PipeDream (Narayanan et al. 2019): one forwards, one backwards over rounds that are never flushed, the
 * oldest ready round first. A worker of stage s begins a FORWARD of round r when it holds fewer than skep_plan_held(), K - s of
 * K stages with equally many workers, and at most `ahead` steps of r are to be made (none in a round that is synchronous), and
 * a BACKWARD of r when the round is stepped that had its accumulator before, r - 2 (of waves an older one: methods/wsp.c).
 * The step is on this lane, before anything else.
 *
 * Where versions are kept, a step from r to r + 1 finds the place of version r + 1 free, which is that of version r - staleness:
 * nothing of round r and before is held any more (its share is counted, or given up), and what is held of a later round r' reads
 * version r' - staleness > r - staleness or newer. That is asserted (no_flush_worker.c).
 *
 * With vertical sync passes may be staler than a stage is ahead: what fills the places of a stage has to be what it is to do
 * next.
 *
 * No stage waits for ever: of the oldest round that is not behind a stage, all that has come may go both ways as soon as one
 * of the later ones has gone backwards to make room, and that waits for no step of this round. Where stages are uneven a worker
 * may hold nothing but later ones, of faster senders, which do: so what is of the oldest round needs no room.
 */
#include "core/schedule/order.h"

#include "core/worker/worker.h"
#include <assert.h>

static bool is_older(const struct worker *w, const struct skep_work *a, const struct skep_work *b)
{
	return a->round < b->round || (w->wave > 0 && a->round == b->round && a->microbatch < b->microbatch);
}

/* The last one of a wave waits for one wave more than the others, if it goes forwards. */
static bool begins_before(const struct worker *w, uint32_t round, uint32_t microbatch, uint32_t end)
{
	return round + (w->wave > 0 && microbatch % w->wave == w->wave - 1) < end;
}

/* The oldest round's that is ready, of those before round `end`. */
static struct skep_work *take_oldest(struct worker *w, enum skep_work_state state, uint32_t end)
{
	assert(w->state == WORKER_SERVING);
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *oldest = NULL;
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		if (work->state == state && work->round < end && (!oldest || is_older(w, work, oldest)))
			oldest = work;
	}
	if (oldest && state == SKEP_WORK_READY_FORWARD && !begins_before(w, oldest->round, oldest->microbatch, end))
		return NULL;
	if (oldest)
		skep_work_unqueue(table, oldest);
	return oldest;
}

/* Rounds before this one may go forwards. */
static uint32_t end_of(const struct worker *w, const struct skep_plan *plan)
{
	return w->version + 1 < plan->no_flush.synchronous ? w->version + 1 : w->version + w->ahead + 1;
}

static void forward(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	assert(w->grants <= w->grant_capacity);
	uint32_t end = end_of(w, step->plan);
	if (!skep_order_has_room(w))
		end = w->place.uneven ? w->version + 1 : 0;
	struct skep_work *work = take_oldest(w, SKEP_WORK_READY_FORWARD, end);
	if (work)
		skep_pipeline_run(w, step, work, SKEP_OP_FORWARD);
	else if (w->grants > 0 && begins_before(w, worker_grants(w)->round, worker_grants(w)->first, end))
		skep_pipeline_issue(w, step);
}

static void backward(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	struct skep_work *work = take_oldest(w, SKEP_WORK_READY_BACKWARD, w->version + w->accumulators);
	if (work)
		skep_pipeline_run(w, step, work, SKEP_OP_BACKWARD);
}

static void pick(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	bool forward_first = w->backwards;
	if (forward_first)
		forward(w, step);
	if (w->compute_op == 0)
		backward(w, step);
	if (w->compute_op == 0 && !forward_first)
		forward(w, step);
}

const struct skep_order skep_order_pipedream = {
	.pick = pick, .forwarded = skep_order_no_barrier, .drains = SKEP_DRAINS_NONE, .drains_late = true};
