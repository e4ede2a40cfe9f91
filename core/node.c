/* SPDX-License-Identifier: Apache-2.0
 *
 * node.c - the face of a machine: set-up, the step that hands an event to the worker or the directory, and the digest.
 */
#include <assert.h>
#include <string.h>

#include "core/machine.h"
#include "core/random.h"

size_t skep_node_size(const struct skep_plan *plan, uint32_t index)
{
	if (index < plan->workers)
		return skep_worker_size(plan);
	return skep_plan_tries(plan) ? skep_trial_size(plan) : skep_directory_size(plan);
}

uint32_t skep_actions_limit(const struct skep_plan *plan)
{
	uint32_t worker = skep_worker_actions_limit(plan);
	uint32_t directory =
		skep_plan_tries(plan) ? skep_trial_actions_limit(plan) : skep_directory_actions_limit(plan);
	return worker > directory ? worker : directory;
}

struct skep_node *skep_node_init(void *mem, const struct skep_plan *plan, uint32_t index, uint32_t epoch)
{
	assert(index <= plan->workers);
	struct skep_node *node = mem;
	memset(mem, 0, skep_node_size(plan, index));
	node->is_directory = index == plan->workers;
	node->stage = SKEP_NO_STAGE;
	node->self = (struct skep_peer){index, node->is_directory ? 1 : epoch};
	node->deadline = SKEP_TIME_NEVER;
	node->random = skep_mix(skep_mix(plan->seed) ^ skep_mix((uint64_t)index << 32 | epoch));
	node->next_op = 1;
	if (node->is_directory && skep_plan_tries(plan))
		skep_trial_init(mem, plan);
	else if (node->is_directory)
		skep_directory_init(mem, plan);
	else
		skep_worker_init(mem, plan);
	return node;
}

static void fold(uint64_t *digest, uint64_t value)
{
	*digest = (*digest ^ value) * 0x9fb21c651e98df25u;
	*digest ^= *digest >> 32;
}

void skep_node_step(struct skep_node *node, const struct skep_plan *plan, const struct skep_event *event,
	struct skep_actions *actions)
{
	assert(event->now >= node->now);
	actions->count = 0;
	node->now = event->now;
	fold(&node->digest, event->now << 4 ^ event->kind);
	struct step step = {plan, actions};
	if (node->is_directory && skep_plan_tries(plan))
		skep_trial_step(node, &step, event);
	else if (node->is_directory)
		skep_directory_step(node, &step, event);
	else
		skep_worker_step(node, &step, event);
}

size_t skep_node_wanted(const struct skep_node *node)
{
	return node->wanted;
}

struct skep_node *skep_node_move(void *mem, const struct skep_node *node)
{
	assert(node->wanted > 0 && !node->is_directory);
	skep_worker_move(mem, node);
	return mem;
}

void skep_node_fetch(const struct skep_node *node, bool deep)
{
	if (!deep || !node->is_directory)
		skep_worker_fetch(node, deep);
}

skep_time skep_node_deadline(const struct skep_node *node)
{
	return node->deadline;
}

uint32_t skep_node_epoch(const struct skep_node *node)
{
	return node->self.epoch;
}

uint32_t skep_node_stage(const struct skep_node *node)
{
	return node->stage;
}

uint64_t skep_node_digest(const struct skep_node *node)
{
	return node->digest;
}

enum skep_outcome skep_node_outcome(const struct skep_node *node)
{
	return (enum skep_outcome)node->outcome;
}

/* ---- emitting ------------------------------------------------------------------------------------------------- */

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
	struct skep_action *action = next(step, SKEP_ACTION_SEND);
	action->keep = keep;
	action->u.send = *message;
	fold(&node->digest, (uint64_t)message->kind << 56 | (uint64_t)message->to.epoch << 32 | message->to.index);
	fold(&node->digest, (uint64_t)message->round << 32 | message->microbatch);
	fold(&node->digest, (uint64_t)message->attempt << 32 ^ message->payload_bytes);
	if (step->plan->laps > 1)
		fold(&node->digest, message->stage);
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
	next(step, SKEP_ACTION_RUN)->u.run = *op;
	fold(&node->digest, (uint64_t)op->kind << 56 | (uint64_t)op->uncounted << 55 | (uint64_t)op->recomputed << 54 |
				    (uint64_t)op->chunk << 32 | op->size);
	fold(&node->digest, (uint64_t)op->round << 32 | op->microbatch);
	if (step->plan->laps > 1)
		fold(&node->digest, op->stage);
	if (op->kind >= SKEP_OP_INNER)
		fold(&node->digest, op->microbatches);
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
	fold(&node->digest, op);
}

void skep_emit_note(struct step *step, struct skep_node *node, struct skep_note note)
{
	next(step, SKEP_ACTION_NOTE)->u.note = note;
	fold(&node->digest, (uint64_t)note.kind << 56 | (uint64_t)note.peer.epoch << 32 | note.peer.index);
	fold(&node->digest, (uint64_t)note.round << 32 | note.microbatch);
	if (note.kind != SKEP_NOTE_LOSS && note.kind != SKEP_NOTE_VALIDATED && note.kind != SKEP_NOTE_CANDIDATE_LOSS &&
		note.kind != SKEP_NOTE_CANDIDATE_KEPT)
		fold(&node->digest, (uint64_t)note.value);
}
