/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.c - how a machine makes the actions of one step: each is appended to the step's list and folded into the machine's digest,
 * so the digest of a run says whether two runs decided the same.
 */
#include <assert.h>
#include <string.h>

#include "core/machine.h"

struct skep_message skep_message_to(const struct skep_node *node, enum skep_message_kind kind, struct skep_peer to)
{
	struct skep_message message;
	memset(&message, 0, sizeof message);
	message.kind = (uint8_t)kind;
	message.stage = (uint16_t)node->stage;
	message.from = node->self;
	message.to = to;
	return message;
}

static struct skep_action *next(struct step *step, enum skep_action_kind kind)
{
	assert(step->actions->count < step->actions->capacity);
	struct skep_action *action = &step->actions->item[step->actions->count++];
	action->kind = (uint8_t)kind;
	return action;
}

static void emit_send(struct step *step, struct skep_node *node, const struct skep_message *message, bool keep)
{
	assert(message->to.index <= step->plan->workers && message->to.index != node->self.index);
	assert(skep_message_legal(step->plan, message));
	struct skep_action *action = next(step, SKEP_ACTION_SEND);
	action->keep = keep;
	action->u.send = *message;
	skep_digest_fold(
		&node->digest, (uint64_t)message->kind << 56 | (uint64_t)message->to.epoch << 32 | message->to.index);
	uint32_t number = message->kind == SKEP_MESSAGE_TALLY ? 0 : message->number; /* arithmetic does not enter */
	skep_digest_fold(&node->digest, (uint64_t)message->round << 32 | number);
	skep_digest_fold(&node->digest, (uint64_t)message->ordinal << 32 ^ message->payload_bytes);
	if (step->plan->model_chunks > 1)
		skep_digest_fold(&node->digest, message->stage);
}

void skep_emit_send(struct step *step, struct skep_node *node, const struct skep_message *message)
{
	emit_send(step, node, message, false);
}

void skep_emit_send_copy(struct step *step, struct skep_node *node, const struct skep_message *message)
{
	emit_send(step, node, message, true);
}

uint64_t skep_emit_run(struct step *step, struct skep_node *node, struct skep_op *op)
{
	op->id = node->next_op++;
	bool beside = op->kind == SKEP_OP_STEP && skep_plan_steps_beside(step->plan);
	op->lane = skep_op_reduces(op->kind) || beside ? SKEP_LANE_REDUCE : SKEP_LANE_COMPUTE;
	assert(skep_op_legal(step->plan, op));
	next(step, SKEP_ACTION_RUN)->u.run = *op;
	skep_digest_fold(&node->digest, (uint64_t)op->kind << 56 | (uint64_t)op->uncounted << 55 |
						(uint64_t)op->recomputed << 54 | (uint64_t)op->presumed << 53 |
						(uint64_t)op->index << 32 | op->size);
	skep_digest_fold(&node->digest, (uint64_t)op->round << 32 | op->number);
	if (step->plan->model_chunks > 1)
		skep_digest_fold(&node->digest, op->stage);
	if (op->kind >= SKEP_OP_INNER_STEP)
		skep_digest_fold(&node->digest, op->microbatches);
	return op->id;
}

void skep_emit_release(struct step *step, struct skep_buf buf)
{
	if (!skep_buf_none(buf))
		next(step, SKEP_ACTION_RELEASE)->u.release = buf;
}

void skep_emit_cancel(struct step *step, struct skep_node *node, uint64_t op)
{
	next(step, SKEP_ACTION_CANCEL)->u.cancel = op;
	skep_digest_fold(&node->digest, op);
}

/* A note says the same, and is in the digest. */
void skep_emit_scale(struct step *step, uint32_t kind, uint32_t machines)
{
	struct skep_action *action = next(step, SKEP_ACTION_SCALE);
	action->u.scale.kind = kind;
	action->u.scale.machines = machines;
}

void skep_emit_note(struct step *step, struct skep_node *node, struct skep_note note)
{
	assert(skep_note_legal(step->plan, &note));
	next(step, SKEP_ACTION_NOTE)->u.note = note;
	skep_digest_fold(&node->digest, (uint64_t)note.kind << 56 | (uint64_t)note.peer.epoch << 32 | note.peer.index);
	skep_digest_fold(&node->digest, (uint64_t)note.round << 32 | skep_note_number(&note));
	if (note.kind != SKEP_NOTE_LOSS && note.kind != SKEP_NOTE_VALIDATED && note.kind != SKEP_NOTE_CANDIDATE_LOSS &&
		note.kind != SKEP_NOTE_CANDIDATE_CHOSEN)
		skep_digest_fold(&node->digest, (uint64_t)skep_note_value(&note));
}
