/* SPDX-License-Identifier: Apache-2.0
 *
 * merge.c - asynchronous periodic sync (Liu et al. 2024), a worker's part: when its pseudo-gradient is merged, what it tells of
 * it, and what a merge of somebody else means to it. merges.c is the directory's part.
 *
 * A worker makes INNER steps by share (inner.c). When it has made as many as the plan says, or with `inner_by_share` when a
 * round's microbatches have gone by since its last merge, PSEUDO writes how far it has come into a place of its own, and MERGE
 * tells the directory which microbatches are in it. From there on the worker counts anew and goes on with its passes; it waits
 * for nobody. When the directory has put its merge in the row, a reduction of the stage brings it to all members (REDUCE, with
 * this worker as rank 0, or where parts are gathered as one of those that bring some), and COMMIT makes all of them do the same
 * outer step. The one whose merge it is goes on from the new parameters by what it has done since PSEUDO; others go on
 * undisturbed, but for those that have done nothing since their last merge, which take the new parameters for theirs.
 *
 * With `merge_waits` it makes no pass from PSEUDO until the STEP of that merge, as published: so it begins each time where the
 * stage is. Everything else goes on, above all what a merge may wait for: its moves, other merges, states for newcomers. So
 * it waits for a time only that does not hang on its passes.
 *
 * `version` counts the merges of the stage; the round whose work it does is `merge.open`. SETTLE says that a round is complete,
 * so what is left of it here is of no use: the worker drops it and works on the next one. It owes the directory word when all
 * that it has counted of that round is told: MERGE names the round before which nothing is left. Should that take too long
 * SETTLE comes again, with `now`, and the next merge begins at once, with fewer steps. Where parts are gathered it comes to all,
 * and whoever has counted anything, of whichever round, tells it at once, so that what is left of the round has company.
 *
 * Kept true: what is counted is in exactly one tally that is told, or in none if the worker is lost before that. There is one
 * PSEUDO at a time. After it has said that a round is settled, a worker counts nothing of that round.
 */
#include <assert.h>

#include "core/worker.h"

static uint32_t counted(const struct worker *w)
{
	return w->counted[0] + w->counted[1];
}

/* The first ones are spread over a round, or all would come at once, again and again. */
static uint64_t first_due(const struct worker *w, const struct skep_plan *plan)
{
	uint32_t members = w->inner.members > 0 ? w->inner.members : 1;
	uint64_t turn = 1 + w->node.self.index % members;
	return w->merge.position + turn * plan->microbatches / members;
}

void merge_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch)
{
	uint32_t within = microbatch < plan->microbatches ? microbatch : plan->microbatches - 1;
	uint64_t position = (uint64_t)round * plan->microbatches + within;
	w->merge.position = position > w->merge.position ? position : w->merge.position;
	if (w->merge.due == 0)
		w->merge.due = first_due(w, plan);
}

/* Something of a round that is over, which the directory waits for. */
static bool pressed(const struct worker *w)
{
	const struct merge *m = &w->merge;
	return m->pressed >= m->open && m->open > 0 && w->counted[(m->open - 1) & 1] > 0;
}

static bool due(const struct worker *w, const struct skep_plan *plan)
{
	const struct merge *m = &w->merge;
	if (m->told || counted(w) == 0)
		return false;
	return m->called || pressed(w) ||
	       (plan->inner_by_share ? m->position >= m->due : m->steps >= plan->inner_steps);
}

bool merge_run(struct worker *w, struct step *step)
{
	bool now = due(w, step->plan);
	if (w->inner.counted > 0 && (now || w->inner.counted >= inner_share(w, step->plan)))
		inner_do(w, step, SKEP_OP_INNER, w->merge.open, w->inner.counted);
	else if (now)
		inner_do(w, step, SKEP_OP_PSEUDO, w->merge.open, counted(w));
	return w->compute_op != 0;
}

static struct skep_message message_of(struct worker *w, const struct skep_plan *plan, uint32_t round)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_MERGE, skep_directory_peer(plan));
	message.round = round;
	message.attempt = w->merge.number;
	message.microbatch = w->merge.open;
	return message;
}

/* What it has counted of one round, in parts of a few numbers each. */
static void tell(struct worker *w, struct step *step, uint32_t round)
{
	struct skep_message message = message_of(w, step->plan, round);
	struct skep_tally *tally = worker_tally(w, round);
	message.u.tally.count = w->merge.counted;
	message.u.tally.loss_nano = w->loss_nano[round & 1];
	assert(tally->count == w->counted[round & 1]);
	skep_tally_sort(tally);
	for (uint32_t nth = 0, used = 0; nth < tally->count; nth++) {
		uint32_t i = tally->number[nth];
		if (used == 0)
			message.u.tally.base = i;
		message.u.tally.offset[used++] = (uint16_t)(i - message.u.tally.base);
		bool last = nth + 1 == tally->count;
		if (!last && used < SKEP_TALLY_PART && tally->number[nth + 1] - message.u.tally.base <= UINT16_MAX)
			continue;
		message.u.tally.used = (uint16_t)used;
		worker_send(w, step, &message);
		used = 0;
	}
	tally->count = w->counted[round & 1] = 0;
	w->loss_nano[round & 1] = 0;
}

void merge_written(struct worker *w, struct step *step)
{
	struct merge *m = &w->merge;
	m->counted = counted(w);
	m->told = true;
	m->called = false;
	m->number++;
	m->steps = 0;
	m->due = m->position + step->plan->microbatches;
	m->settled = m->open; /* the device was busy with PSEUDO: no BACKWARD of an earlier round runs */
	if (m->open > 0)
		tell(w, step, m->open - 1);
	tell(w, step, m->open);
}

void merge_settle(struct worker *w, struct step *step)
{
	struct merge *m = &w->merge;
	if (m->settled >= m->open || w->counted[(m->open - 1) & 1] > 0 || (m->called && counted(w) > 0))
		return;
	m->settled = m->open;
	m->called = false;
	struct skep_message message = message_of(w, step->plan, m->open - 1);
	worker_send(w, step, &message);
}

/* Again, if it has been answered: the directory asks those who serve anew, and may have asked before it heard. */
void merge_on_settle(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct merge *m = &w->merge;
	uint32_t round = message->round;
	if (w->state != WORKER_SERVING)
		return;
	if (m->fresh)
		merge_first_work(w, round);
	if (round >= m->open) {
		assert(round == m->open); /* the next one is complete only when all have told of this one */
		pipeline_seal_round(w, step, round);
		w->inner.nth = 0;
		m->open = round + 1;
	}
	if (message->u.settle.now && m->pressed <= round)
		m->pressed = round + 1;
	if (message->u.settle.now && round + 1 == m->open)
		m->called = step->plan->gather;
	m->settled = m->settled < round ? m->settled : round;
}

void merge_first_work(struct worker *w, uint32_t round)
{
	w->merge.fresh = false;
	w->merge.open = w->merge.settled = round;
}

enum skep_merge merge_of_step(const struct worker *w)
{
	if (w->reduction.own)
		return SKEP_MERGE_OWN;
	return w->merge.told || counted(w) > 0 ? SKEP_MERGE_OTHER : SKEP_MERGE_FRESH;
}

bool merge_waits(const struct worker *w, const struct skep_plan *plan)
{
	return plan->merge_waits && w->merge.told;
}

/* The version is still that before the step. */
void merge_stepped(struct worker *w)
{
	bool own = w->reduction.own;
	if (own)
		w->merge.told = false;
	if (own || !(w->merge.told || counted(w) > 0))
		w->merge.base = w->version + 1;
}
