/* SPDX-License-Identifier: Apache-2.0
 *
 * tied_embeddings.c - a table that the first stage and the last one share (plan->tied), as that of a language model whose
 * head is its embedding. The first stage and the last one each hold a copy, and each has its part of the gradient. The step
 * of both is on the mean of the one and that of the other, added, which is what one device would step on that holds both:
 *
 *     gradient of the table = (sum in the first stage / counted there) + (sum in the last one / counted there)
 *
 * Each stage sums its vector among its members as ever, its copy included. Who has that sum tells what it says of the table
 * (COPY_TIED) to the member of the same rank in the other stage, if there is one. What comes from there goes along, to the
 * member so many ranks further in the own stage as the other one has members; so all get it, each from one, unaltered, and
 * put it beside the own sum (STORE_TIED). Who has both goes on to its tally.
 *
 *     first stage, 3 members     0        1        2     0 and 1 across, 2 along: from 0
 *     last stage, 2 members      0        1              0 and 1 across
 *
 * With n and m members n + m tensors of the table travel, as encoded. A stage's sum is encoded once more for that, and held
 * as encoded by all its members: so both stages step on the same bits, whatever the encoding.
 *
 * Kept true: both sums are of one attempt. The attempts of the two stages begin together and have the same number; a member
 * that is fenced before they are committed voids both, and they are committed at once (see below). So a step is made in both
 * stages or in none, on the same two sums and the same two divisors, and copies that were equal are equal after it.
 *
 * In the directory. The first stage and the last one step on each other's sums, so what is true of one reduction elsewhere
 * is true of both of these together.
 *
 *   begun     in one step of the directory, with the same attempt, whose number is the same in both since no attempt of the one
 *             is begun without one of the other;
 *   void      when a member of either is fenced before the commit: both sum anew, since some member of the other may have the
 *             sum that the fenced one was in, and some may not;
 *   final     at once, when all members of both have told. A tally says here that its sender has both sums.
 *
 * So there is no state in which one of the two has stepped and the other may still have to sum: nothing needs to be undone.
 *
 * A stage that holds a copy and has lost its last worker is not restored: a checkpoint is older than the other copy, and
 * the two would be different tables from there on. The run fails then, as one whose stages do not wait.
 */
#include "core/directory/directory.h"

#include "core/worker/worker.h"
#include <assert.h>

/* Who is fenced voids the sums of two stages. */
static uint32_t actions(const struct skep_plan *plan, uint32_t fences)
{
	return fences + (fences + 1) * (skep_stage_size_max(plan) / SKEP_ROSTER_PART + 1);
}

static size_t lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	(void)d, (void)plan;
	return at;
}

/* The members of the stage that holds the other copy stand behind our own, by their ranks. */
static void list_tied_peers(struct directory *d, const struct skep_plan *plan, struct attempt *attempt)
{
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t nth = 0; nth < plan->workers && skep_plan_is_tied(plan, attempt->stage); nth++) {
		uint32_t stage = skep_plan_tied_peer(plan, attempt->stage), i = skep_plan_in_ring(plan, stage, nth);
		const struct row *row = directory_row(d, i);
		if (row->stage == stage && skep_attempt_takes(d, row))
			attempt->order[attempt->size + attempt->others++] = i;
	}
}

/* To whom a member gives what. */
static void name(struct directory *d, const struct attempt *attempt, struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	const struct skep_peer no_worker = {SKEP_NO_INDEX, 0};
	uint32_t size = attempt->size, others = attempt->others;
	uint32_t rank = reduce->u.reduce.rank, further = rank + others;
	if (attempt->stage > 0 && attempt->stage + 1 < d->stages)
		return;
	reduce->u.reduce.across = rank < others ? directory_worker(d, attempt->order[size + rank]) : no_worker;
	reduce->u.reduce.along = further < size ? directory_worker(d, attempt->order[further]) : no_worker;
}

static void anew(struct directory *d, struct step *step, uint32_t stage)
{
	if (skep_plan_is_tied(step->plan, stage))
		skep_attempt_begin(d, step, skep_plan_tied_peer(step->plan, stage), true);
}

static void resolve(struct directory *d, const struct skep_plan *plan)
{
	d->tied[0] = skep_rounds_counted_in(d, plan, 0);
	d->tied[1] = skep_rounds_counted_in(d, plan, skep_plan_vstages(plan) - 1);
}

static void commit(struct directory *d, const struct skep_plan *plan, struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_COMMIT);
	if (skep_plan_is_tied_vstage(plan, message->stage))
		message->u.commit.tied = d->tied[message->stage == 0];
}

static void on_norm(struct directory *d, struct step *step, const struct skep_message *message)
{
	(void)d, (void)step, (void)message;
}

/* ---- a worker ------------------------------------------------------------------------------------------------------- */

static struct skep_op op_of(struct worker *w, const struct skep_plan *plan, enum skep_op_kind kind)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct skep_op op = skep_reduce_op(w, kind);
	op.first = skep_plan_tied_first(plan, w->node.stage);
	op.count = plan->tied;
	return op;
}

static bool exchange(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.begun);
	if (!w->reduction.tied.on)
		return false;
	struct skep_op op = op_of(w, step->plan, SKEP_OP_COPY_TIED);
	skep_reduce_run(w, step, &op);
	return true;
}

static struct skep_message message_for(
	struct worker *w, const struct skep_plan *plan, struct skep_peer to, struct skep_buf payload)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_CHUNK, to);
	message.round = w->version;
	message.attempt = w->reduction.attempt;
	message.u.chunk.hop = SKEP_HOP_TIED;
	message.payload = payload;
	message.payload_bytes = skep_plan_encoded_bytes(plan, w->node.stage, plan->tied);
	return message;
}

static void go_on(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	if (w->reduction.tied.given && w->reduction.tied.taken)
		skep_reduce_go_on(w, step);
}

static void given(struct worker *w, struct step *step, struct skep_buf out)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct tied *tied = &w->reduction.tied;
	struct skep_message message = message_for(w, step->plan, tied->across, out);
	if (tied->across.index == SKEP_NO_INDEX)
		skep_emit_release(step, out);
	else
		skep_worker_send(w, step, &message);
	tied->given = true;
	go_on(w, step);
}

static bool arrived(struct worker *w, struct step *step, struct skep_buf payload)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct tied *tied = &w->reduction.tied;
	if (!tied->on || tied->arrived)
		return false;
	tied->arrived = true;
	struct skep_message message = message_for(w, step->plan, tied->along, payload);
	message.stage = (uint16_t)skep_plan_tied_peer(step->plan, w->node.stage);
	if (tied->along.index != SKEP_NO_INDEX)
		skep_emit_send_copy(step, &w->node, &message);
	struct skep_op op = op_of(w, step->plan, SKEP_OP_STORE_TIED);
	op.in = payload;
	skep_reduce_run(w, step, &op);
	return true;
}

static void taken(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	w->reduction.tied.taken = true;
	go_on(w, step);
}

static void begin(struct worker *w, const struct skep_plan *plan, const struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	w->reduction.tied = (struct tied){.on = skep_plan_is_tied(plan, w->node.stage) && reduce->u.reduce.size > 0,
		.across = reduce->u.reduce.across,
		.along = reduce->u.reduce.along};
}

static bool done(struct worker *w, struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	assert(w->reduction.attempt > 0);
	uint8_t kind = event->u.done.op.kind;
	if (kind == SKEP_OP_COPY_TIED)
		given(w, step, event->u.done.out);
	else if (kind == SKEP_OP_STORE_TIED)
		taken(w, step);
	return kind == SKEP_OP_COPY_TIED || kind == SKEP_OP_STORE_TIED;
}

static void committed(struct worker *w, const struct skep_plan *plan, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_COMMIT);
	if (skep_plan_is_tied_vstage(plan, message->stage))
		w->reduction.tied.counted = message->u.commit.tied;
}

static void step_told(const struct worker *w, const struct skep_plan *plan, struct skep_op *op)
{
	assert(op->kind == SKEP_OP_STEP);
	if (skep_plan_is_tied_vstage(plan, op->stage))
		op->tied = w->reduction.tied.counted;
}

const struct skep_feature skep_feature_tied = {
	.actions = actions,
	.lay_out = lay_out,
	.attempt = list_tied_peers,
	.name = name,
	.anew = anew,
	.resolve = resolve,
	.commit = commit,
	.on_norm = on_norm,
	.early = 1,
	.reduce = begin,
	.begin = exchange,
	.arrived = arrived,
	.done = done,
	.committed = committed,
	.step = step_told,
};
