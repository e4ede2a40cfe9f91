/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c - what both worlds know about messages and operations, which is one rule for both: what is reported before what, how
 * much a message may carry, and what an operation puts out.
 */
#include "core/record.h"

#include "core/codec.h"

bool skep_message_reports(const struct skep_plan *plan, const struct skep_message *message)
{
	bool judged = message->kind == SKEP_MESSAGE_VALIDATED ||
	              (message->kind == SKEP_MESSAGE_FINISHED && skep_plan_validates(plan, message->microbatch));
	return judged || message->kind == SKEP_MESSAGE_TALLY || message->kind == SKEP_MESSAGE_OUTER_UPDATE;
}

uint64_t skep_message_payload_max(const struct skep_plan *plan, const struct skep_message *message)
{
	uint32_t stage = message->stage; /* or virtual stage, that the tensor comes from */
	bool pass = message->kind == SKEP_MESSAGE_FORWARD || message->kind == SKEP_MESSAGE_BACKWARD;
	if (stage >= (pass ? skep_plan_vstages(plan) : plan->stages))
		return 0;
	switch (message->kind) {
	case SKEP_MESSAGE_FORWARD:
	case SKEP_MESSAGE_OUTPUT:
	case SKEP_MESSAGE_INPUT:
		return skep_plan_vstage_bytes(plan, stage);
	case SKEP_MESSAGE_BACKWARD:
		return stage > 0 ? skep_plan_gradient_bytes(plan, stage - 1) : 0;
	case SKEP_MESSAGE_CHUNK:
		return skep_plan_encoded_bytes(plan, stage, plan->stage[stage].parameters) + SKEP_PART_HEADER_BYTES;
	case SKEP_MESSAGE_STATE:
		return message->u.state.chunk < skep_state_chunks(plan, stage)
		               ? skep_state_chunk_bytes(plan, stage, message->u.state.chunk)
		               : 0;
	default:
		return 0;
	}
}

bool skep_op_puts_out(const struct skep_plan *plan, const struct skep_op *op)
{
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		return op->stage + 1u < skep_plan_vstages(plan);
	case SKEP_OP_BACKWARD:
		return (op->stage > 0 && !skep_plan_is_frozen(plan, op->stage - 1u)) || op->part + 1 < op->parts;
	case SKEP_OP_SAVE:
	case SKEP_OP_COPY_GRAD:
	case SKEP_OP_ADD:
	case SKEP_OP_ADD_STORE:
	case SKEP_OP_STORE:
	case SKEP_OP_COPY_RESULT:
	case SKEP_OP_PACK_PART:
	case SKEP_OP_COPY_TIED:
	case SKEP_OP_COPY_SHARD:
	case SKEP_OP_STORE_SHARD:
		return true;
	default:
		return false;
	}
}
