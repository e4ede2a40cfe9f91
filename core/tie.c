/* SPDX-License-Identifier: Apache-2.0
 *
 * tie.c - a worker's part in a tied table (plan->tied), as that of a language model whose head is its embedding. The first stage
 * and the last one each hold a copy, and each has its part of the gradient. The step of both is on the mean of the one and that
 * of the other, added, which is what one device would step on that holds both:
 *
 *     gradient of the table = (sum in the first stage / counted there) + (sum in the last one / counted there)
 *
 * Each stage sums its vector among its members as ever, its copy included. Who has that sum tells what it says of the table
 * (TIE_GIVE) to the member of the same rank in the other stage, if there is one. What comes from there goes along, to the member
 * so many ranks further in the own stage as the other one has members; so all get it, each from one, unaltered, and put it
 * beside the own sum (TIE_TAKE). Who has both goes on to its tally.
 *
 *     first stage, 3 members     0        1        2     0 and 1 across, 2 along: from 0
 *     last stage, 2 members      0        1              0 and 1 across
 *
 * With n and m members n + m tensors of the table travel, as encoded. A stage's sum is encoded once more for that, and held as
 * encoded by all its members: so both stages step on the same bits, whatever the encoding.
 *
 * Kept true: both sums are of one attempt. The attempts of the two stages begin together and have the same number; a member that
 * is fenced before they are committed voids both, and they are committed at once (ties.c). So a step is made in both stages or
 * in none, on the same two sums and the same two divisors, and copies that were equal are equal after it.
 */
#include "core/worker.h"

static struct skep_op op_of(struct worker *w, const struct skep_plan *plan, enum skep_op_kind kind)
{
	struct skep_op op = reduce_op(w, kind);
	op.first = skep_plan_tied_first(plan, w->node.stage);
	op.count = plan->tied;
	return op;
}

void tie_begin(struct worker *w, struct step *step)
{
	struct skep_op op = op_of(w, step->plan, SKEP_OP_TIE_GIVE);
	reduce_run(w, step, &op);
}

static struct skep_message message_for(
	struct worker *w, const struct skep_plan *plan, struct skep_peer to, struct skep_buf payload)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_CHUNK, to);
	message.round = w->version;
	message.attempt = w->reduction.attempt;
	message.u.chunk.hop = SKEP_HOP_TIED;
	message.payload = payload;
	message.payload_bytes = skep_codec_bytes(plan->reduction_codec, plan->tied);
	return message;
}

static void go_on(struct worker *w, struct step *step)
{
	if (w->reduction.tied.given && w->reduction.tied.taken)
		reduce_summed(w, step);
}

void tie_given(struct worker *w, struct step *step, struct skep_buf out)
{
	struct tied *tied = &w->reduction.tied;
	struct skep_message message = message_for(w, step->plan, tied->across, out);
	if (tied->across.index == SKEP_NO_INDEX)
		skep_emit_release(step, out);
	else
		worker_send(w, step, &message);
	tied->given = true;
	go_on(w, step);
}

void tie_arrived(struct worker *w, struct step *step, struct skep_buf payload)
{
	struct tied *tied = &w->reduction.tied;
	if (!tied->on || tied->arrived) {
		skep_emit_release(step, payload);
		return;
	}
	tied->arrived = true;
	struct skep_message message = message_for(w, step->plan, tied->along, payload);
	message.stage = (uint16_t)skep_plan_twin(step->plan, w->node.stage);
	if (tied->along.index != SKEP_NO_INDEX)
		skep_emit_send_copy(step, &w->node, &message);
	struct skep_op op = op_of(w, step->plan, SKEP_OP_TIE_TAKE);
	op.in = payload;
	reduce_run(w, step, &op);
}

void tie_taken(struct worker *w, struct step *step)
{
	w->reduction.tied.taken = true;
	go_on(w, step);
}

/* The square of a sum of two is that of each, which slices tell, and twice their product, which may be below 0: what is above
 * 0 of it and what is below are told apart (square.h). */
void tie_measure(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	if (!r->tied.on || w->node.stage > 0)
		return;
	for (uint32_t part = 1; part <= 2; part++) {
		struct skep_op op = op_of(w, step->plan, SKEP_OP_NORM);
		op.chunk = part;
		r->norms++;
		reduce_run(w, step, &op);
	}
}
