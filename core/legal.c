/* SPDX-License-Identifier: Apache-2.0
 *
 * legal.c - which combinations of fields a message, an operation, a note and an event of each kind may have. What a machine
 * makes is always legal, so a machine asserts it; of what comes from outside a world asks before a machine hears of it.
 *
 * A field that a kind does not use is 0. Rounds, epochs and microbatches of another round may be anything: what is too old is
 * for the machine to know.
 */
#include <assert.h>

#include "core/machine.h"
#include "core/scale/policy.h"

/* ---- messages --------------------------------------------------------------------------------------------------- */

enum message_use {
	ROUND = 1 << 0,
	NUMBER = 1 << 1,  /* microbatch, candidate, serving or open_round */
	ORDINAL = 1 << 2, /* attempt, admission or merge */
	SPAN = 1 << 3,
	TENSOR = 1 << 4,
	STAGE = 1 << 5,   /* `stage` is one of the plan's */
	VSTAGE = 1 << 6,  /* `stage` is a virtual stage */
	ORDERS = 1 << 7,  /* from the directory to a worker */
	REPORTS = 1 << 8, /* from a worker to the directory; else between two workers */
};

static const uint16_t MESSAGE[SKEP_MESSAGE_KINDS] = {
	[SKEP_MESSAGE_FORWARD] = ROUND | NUMBER | ORDINAL | SPAN | TENSOR | VSTAGE,
	[SKEP_MESSAGE_BACKWARD] = ROUND | NUMBER | ORDINAL | SPAN | TENSOR | VSTAGE,
	[SKEP_MESSAGE_ABANDON] = ROUND | NUMBER | ORDINAL | VSTAGE,
	[SKEP_MESSAGE_CHUNK] = ROUND | ORDINAL | TENSOR | STAGE,
	[SKEP_MESSAGE_FETCH] = ROUND | STAGE,
	[SKEP_MESSAGE_STATE] = ROUND | TENSOR | STAGE,
	[SKEP_MESSAGE_GRANT] = ROUND | NUMBER | ORDINAL | SPAN | ORDERS,
	[SKEP_MESSAGE_REDUCE] = ROUND | ORDINAL | STAGE | ORDERS,
	[SKEP_MESSAGE_COMMIT] = ROUND | ORDINAL | VSTAGE | ORDERS,
	[SKEP_MESSAGE_PEER] = ORDERS,
	[SKEP_MESSAGE_ASSIGN] = NUMBER | STAGE | ORDERS,
	[SKEP_MESSAGE_STOP] = ROUND | ORDERS,
	[SKEP_MESSAGE_FINISHED] = ROUND | NUMBER | ORDINAL | REPORTS,
	[SKEP_MESSAGE_TALLY] = ROUND | NUMBER | ORDINAL | REPORTS,
	[SKEP_MESSAGE_JOIN] = REPORTS,
	[SKEP_MESSAGE_READY] = ROUND | REPORTS,
	[SKEP_MESSAGE_SUSPECT] = REPORTS,
	[SKEP_MESSAGE_HEARTBEAT] = REPORTS,
	[SKEP_MESSAGE_LOAD] = REPORTS,
	[SKEP_MESSAGE_LEAVE] = REPORTS,
	[SKEP_MESSAGE_LIST_PEERS] = REPORTS,
	[SKEP_MESSAGE_OUTPUT] = ROUND | NUMBER | ORDINAL | SPAN | TENSOR | STAGE,
	[SKEP_MESSAGE_INPUT] = ROUND | NUMBER | ORDINAL | SPAN | TENSOR | STAGE,
	[SKEP_MESSAGE_CANCEL] = ROUND | NUMBER | ORDINAL,
	[SKEP_MESSAGE_CANCELLED] = ROUND | NUMBER | ORDINAL,
	[SKEP_MESSAGE_ADMIT] = ROUND | NUMBER | ORDINAL | STAGE | ORDERS,
	[SKEP_MESSAGE_ENTERED] = REPORTS,
	[SKEP_MESSAGE_CHECKPOINTED] = ROUND | REPORTS,
	[SKEP_MESSAGE_DRAIN] = ROUND | ORDERS,
	[SKEP_MESSAGE_ROSTER] = ROUND | ORDINAL | STAGE | ORDERS,
	[SKEP_MESSAGE_CHUNK_ACK] = ROUND | ORDINAL | STAGE,
	[SKEP_MESSAGE_FORWARDS_DONE] = ROUND | REPORTS,
	[SKEP_MESSAGE_BARRIER_LIFTED] = ROUND | ORDERS,
	[SKEP_MESSAGE_VALIDATED] = ROUND | NUMBER | ORDINAL | VSTAGE,
	[SKEP_MESSAGE_NORM] = ROUND | ORDINAL | VSTAGE | REPORTS,
	[SKEP_MESSAGE_FAULT] = ROUND | NUMBER | VSTAGE | REPORTS,
	[SKEP_MESSAGE_CHECKPOINT_FAILED] = ROUND | REPORTS,
	[SKEP_MESSAGE_CHECKPOINT] = ROUND | ORDINAL | STAGE | ORDERS,
	[SKEP_MESSAGE_OUTER_UPDATE] = ROUND | NUMBER | ORDINAL | REPORTS,
	[SKEP_MESSAGE_CLOSE_ROUND] = ROUND | STAGE | ORDERS,
};
static_assert(SKEP_MESSAGE_CLOSE_ROUND + 1 == SKEP_MESSAGE_KINDS, "each kind says what it uses");

static bool ends_legal(const struct skep_plan *plan, const struct skep_message *message, uint32_t use)
{
	uint32_t from = message->from.index, to = message->to.index, directory = plan->workers;
	assert((use & ORDERS) == 0 || (use & REPORTS) == 0);
	return (use & ORDERS ? from == directory : from < directory) &&
	       (use & REPORTS ? to == directory : to < directory);
}

static bool span_legal(const struct skep_plan *plan, struct skep_span span)
{
	return span.first <= span.last && span.last < skep_plan_vstages(plan);
}

/* What the kind does not use. */
static bool unused_legal(const struct skep_message *message, uint32_t use)
{
	return (use & ROUND || message->round == 0) && (use & NUMBER || message->number == 0) &&
	       (use & ORDINAL || message->ordinal == 0) && (use & TENSOR || message->payload_bytes == 0);
}

static bool fields_legal(const struct skep_plan *plan, const struct skep_message *message, uint32_t use)
{
	const uint32_t all = ROUND | NUMBER | ORDINAL | TENSOR;
	assert((use & STAGE) == 0 || (use & VSTAGE) == 0);
	if ((use & all) != all && !unused_legal(message, use))
		return false;
	if ((use & STAGE && message->stage >= plan->stages) ||
		(use & VSTAGE && message->stage >= skep_plan_vstages(plan)))
		return false;
	return use & SPAN ? span_legal(plan, message->span) : message->span.first == 0 && message->span.last == 0;
}

static bool tally_legal(const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY || message->kind == SKEP_MESSAGE_OUTER_UPDATE);
	const uint16_t *offset = message->u.tally.offset;
	uint32_t used = message->u.tally.used;
	if (used > SKEP_TALLY_PART || used > message->u.tally.count)
		return false;
	for (uint32_t i = 1; i < used; i++)
		if (offset[i] <= offset[i - 1])
			return false;
	return true;
}

static bool reduction_legal(const struct skep_plan *plan, const struct skep_message *message)
{
	switch (message->kind) {
	case SKEP_MESSAGE_REDUCE:
		return message->u.reduce.size <= plan->workers &&
		       (message->u.reduce.size == 0
				       ? !message->u.reduce.discard || plan->on_loss == SKEP_ON_LOSS_VOID
				       : message->u.reduce.rank < message->u.reduce.size && !message->u.reduce.discard);
	case SKEP_MESSAGE_ROSTER:
		return message->u.roster.size <= plan->workers && message->u.roster.first < message->u.roster.size;
	case SKEP_MESSAGE_COMMIT:
		return plan->tied > 0 || message->u.commit.tied == 0;
	case SKEP_MESSAGE_NORM:
		return plan->clip && message->u.norm.term < (plan->tied > 0 ? SKEP_NORM_TERMS : SKEP_NORM_SQUARES + 1);
	case SKEP_MESSAGE_CHUNK:
		return message->u.chunk.hop != SKEP_HOP_TIED || skep_plan_is_tied(plan, message->stage);
	default:
		return true;
	}
}

static bool admission_legal(const struct skep_plan *plan, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ADMIT);
	uint32_t source = message->u.admit.source.index;
	return message->admission > 0 && (message->serving > 0) == plan->async.on &&
	       (source < plan->workers || source == SKEP_NO_INDEX);
}

/* There are at most as many pipelines as microbatches. */
static bool pipeline_legal(const struct skep_plan *plan, uint32_t pipeline)
{
	return pipeline == 0 || (skep_plan_fixed(plan) && pipeline < plan->microbatches);
}

/* What is of this kind alone. */
static bool particulars_legal(const struct skep_plan *plan, const struct skep_message *message)
{
	switch (message->kind) {
	case SKEP_MESSAGE_GRANT:
		return message->u.grant.in_flight > 0 && message->u.grant.in_flight <= skep_plan_in_flight_most(plan) &&
		       message->u.grant.count > 0 && message->u.grant.count <= skep_plan_numbers(plan) &&
		       message->microbatch <= skep_plan_numbers(plan) - message->u.grant.count &&
		       pipeline_legal(plan, message->u.grant.pipeline);
	case SKEP_MESSAGE_FORWARD:
		return pipeline_legal(plan, message->u.forward.pipeline);
	case SKEP_MESSAGE_REDUCE:
	case SKEP_MESSAGE_ROSTER:
	case SKEP_MESSAGE_COMMIT:
	case SKEP_MESSAGE_NORM:
	case SKEP_MESSAGE_CHUNK:
		return reduction_legal(plan, message);
	case SKEP_MESSAGE_FETCH:
	case SKEP_MESSAGE_STATE:
		return message->u.state.chunk < skep_state_chunks(plan, message->stage);
	case SKEP_MESSAGE_PEER:
	case SKEP_MESSAGE_SUSPECT:
		return message->u.peer.who.index < plan->workers;
	case SKEP_MESSAGE_ASSIGN:
		return message->candidate == 0 || message->candidate < plan->candidates.count;
	case SKEP_MESSAGE_ADMIT:
		return admission_legal(plan, message);
	case SKEP_MESSAGE_TALLY:
	case SKEP_MESSAGE_OUTER_UPDATE:
		return tally_legal(message);
	case SKEP_MESSAGE_FAULT:
		return message->u.fault.kind > SKEP_FAULT_NONE && message->u.fault.kind < SKEP_FAULTS;
	case SKEP_MESSAGE_CHECKPOINT:
		return plan->async.on || message->update == 0;
	case SKEP_MESSAGE_CLOSE_ROUND:
		return plan->async.on;
	default:
		return true;
	}
}

bool skep_message_legal(const struct skep_plan *plan, const struct skep_message *message)
{
	if (message->kind == 0 || message->kind >= SKEP_MESSAGE_KINDS)
		return false;
	uint32_t use = MESSAGE[message->kind];
	return ends_legal(plan, message, use) && fields_legal(plan, message, use) && particulars_legal(plan, message);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static bool elements_legal(const struct skep_plan *plan, const struct skep_op *op)
{
	uint64_t all = plan->stage[op->stage % plan->stages].parameters;
	return op->first <= all && op->count <= all - op->first;
}

/* So many are named by an operation of the kind. */
static uint32_t stages_of(const struct skep_plan *plan, uint8_t kind)
{
	return skep_op_sliced(kind) ? skep_plan_vstages(plan) : plan->stages;
}

static bool backward_legal(const struct skep_plan *plan, const struct skep_op *op)
{
	return (op->parts > 0 ? op->part < op->parts && elements_legal(plan, op) : op->part == 0) &&
	       (op->parts == 0 || !op->uncounted) && (op->inner == 0 || (op->parts > 0 && skep_plan_periodic(plan))) &&
	       (op->inner > 0) == (op->microbatches > 0) &&
	       (plan->async.on || !skep_plan_validates(plan, op->microbatch));
}

static bool pass_legal(const struct skep_plan *plan, const struct skep_op *op)
{
	if (op->lane != SKEP_LANE_COMPUTE || op->presumed || op->stage >= stages_of(plan, op->kind) ||
		op->number >= skep_plan_numbers(plan) || (op->stage > 0 && skep_buf_none(op->in)) ||
		(op->parts == 0 && op->moved > 0 && !skep_plan_moves_weights(plan)))
		return false;
	if (op->kind == SKEP_OP_BACKWARD)
		return backward_legal(plan, op);
	return op->size == 0 && op->index == 0 && !op->uncounted && !op->recomputed;
}

static bool takes_in(uint8_t kind)
{
	return kind == SKEP_OP_ADD || kind == SKEP_OP_ADD_STORE || kind == SKEP_OP_STORE ||
	       kind == SKEP_OP_ADD_TO_RESULT || kind == SKEP_OP_STORE_TIED || kind == SKEP_OP_STORE_SHARD;
}

static bool reduction_op_legal(const struct skep_plan *plan, const struct skep_op *op)
{
	switch (op->kind) {
	case SKEP_OP_ALLREDUCE:
		return op->rank < op->members && op->receiver < plan->workers;
	case SKEP_OP_PACK_PART:
		return plan->reduction.gather && op->member < op->members;
	case SKEP_OP_UNPACK_PART:
		return plan->reduction.gather && op->member < op->members &&
		       (op->microbatches == 0 || skep_buf_none(op->in));
	case SKEP_OP_AGGREGATE:
		return plan->reduction.gather && op->number == 0;
	case SKEP_OP_NORM:
		return plan->clip && op->number == 0 && op->term < SKEP_NORM_TERMS;
	case SKEP_OP_COPY_TIED:
	case SKEP_OP_STORE_TIED:
		return skep_plan_is_tied(plan, op->stage) && op->number == 0 && op->count == plan->tied;
	case SKEP_OP_COPY_SHARD:
	case SKEP_OP_STORE_SHARD:
		return plan->sharded && op->number == 0 && op->members > 1;
	default:
		return op->number == 0 && op->members > 1;
	}
}

/* What changes the state of a stage, or the whole of it. */
static bool state_op_legal(const struct skep_plan *plan, const struct skep_op *op)
{
	switch (op->kind) {
	case SKEP_OP_SAVE:
		return op->chunk < op->chunks && op->receiver < plan->workers;
	case SKEP_OP_LOAD:
		return op->chunk < op->chunks && op->number == 0 && !skep_buf_none(op->in);
	case SKEP_OP_RESTORE:
		return op->size == 0 && (op->candidate == 0 || op->candidate < plan->candidates.count);
	case SKEP_OP_INNER_STEP:
	case SKEP_OP_PSEUDO_GRAD:
		return skep_plan_periodic(plan) && op->number == 0 && op->size == 0;
	case SKEP_OP_STEP:
		return op->number == 0 && (plan->sharded ? op->rank < op->members : op->index == 0) &&
		       (plan->async.on || op->update == SKEP_OUTER_UPDATE_OTHER) &&
		       op->update <= SKEP_OUTER_UPDATE_FRESH;
	case SKEP_OP_DISCARD:
		return plan->on_loss == SKEP_ON_LOSS_VOID && op->number == 0 && op->index == 0 && op->size == 0;
	case SKEP_OP_CHECKPOINT:
		return op->number == 0 && op->index == 0 && op->size == 0 &&
		       (!op->presumed || (plan->together && !plan->sharded));
	default: /* ENTER */
		return op->number == 0 && op->index == 0 && op->size == 0;
	}
}

/* All but a pass. */
static bool other_op_legal(const struct skep_plan *plan, const struct skep_op *op)
{
	if (op->kind == 0 || op->kind >= SKEP_OP_KINDS || op->lane >= SKEP_LANES ||
		op->stage >= stages_of(plan, op->kind) || op->uncounted || op->recomputed ||
		(op->update > SKEP_OUTER_UPDATE_OTHER && op->kind != SKEP_OP_STEP) ||
		(op->presumed && op->kind != SKEP_OP_CHECKPOINT))
		return false;
	if (!skep_op_reduces(op->kind))
		return state_op_legal(plan, op);
	if (op->kind != SKEP_OP_UNPACK_PART && takes_in(op->kind) == skep_buf_none(op->in))
		return false;
	return op->lane == SKEP_LANE_REDUCE && elements_legal(plan, op) && reduction_op_legal(plan, op);
}

bool skep_op_legal(const struct skep_plan *plan, const struct skep_op *op)
{
	return skep_op_passes(op->kind) ? pass_legal(plan, op) : other_op_legal(plan, op);
}

/* ---- notes ------------------------------------------------------------------------------------------------------ */

enum note_use {
	OF_STAGE = 1 << 0,  /* `stage` is one of the plan's, or a virtual stage */
	OF_NUMBER = 1 << 1, /* microbatch, issued, counted, asked or judged */
	OF_PEER = 1 << 2,
	OF_VALUE = 1 << 3, /* anything but 0 in the last field */
};

static const uint8_t NOTE[SKEP_NOTE_KINDS] = {
	[SKEP_NOTE_ISSUED] = OF_NUMBER | OF_PEER | OF_VALUE,
	[SKEP_NOTE_RERUN] = OF_NUMBER | OF_PEER | OF_VALUE,
	[SKEP_NOTE_MEMBER] = OF_STAGE | OF_PEER | OF_VALUE,
	[SKEP_NOTE_LOST] = OF_STAGE | OF_NUMBER | OF_VALUE,
	[SKEP_NOTE_STAGE_COMMITTED] = OF_STAGE | OF_NUMBER | OF_VALUE,
	[SKEP_NOTE_LOSS] = OF_VALUE,
	[SKEP_NOTE_ROUND_CLOSED] = OF_NUMBER,
	[SKEP_NOTE_FENCED] = OF_PEER,
	[SKEP_NOTE_JOINED] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_LEFT] = OF_PEER,
	[SKEP_NOTE_MIGRATED] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_STAGE_EMPTY] = OF_STAGE,
	[SKEP_NOTE_STOPPED] = OF_VALUE,
	[SKEP_NOTE_COUNTED] = OF_STAGE | OF_NUMBER | OF_VALUE,
	[SKEP_NOTE_OVERFLOW] = OF_NUMBER,
	[SKEP_NOTE_ADMITTED] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_STAGE_RESTARTED] = OF_STAGE | OF_PEER | OF_VALUE,
	[SKEP_NOTE_CHECKPOINTED] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_VALIDATING] = OF_NUMBER,
	[SKEP_NOTE_VALIDATED] = OF_NUMBER | OF_VALUE,
	[SKEP_NOTE_DIVERGED] = OF_STAGE | OF_NUMBER | OF_PEER | OF_VALUE,
	[SKEP_NOTE_CHECKPOINT_FAILED] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_OUTER_UPDATED] = OF_STAGE | OF_NUMBER | OF_PEER | OF_VALUE,
	[SKEP_NOTE_CANDIDATE_LOSS] = OF_VALUE,
	[SKEP_NOTE_CANDIDATE_DROPPED] = OF_VALUE,
	[SKEP_NOTE_CANDIDATE_CHOSEN] = OF_VALUE,
	[SKEP_NOTE_ROUND_VOIDED] = OF_NUMBER,
	[SKEP_NOTE_UNEQUAL] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_SCALED] = OF_NUMBER | OF_VALUE,
	[SKEP_NOTE_RETURNED] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_SHARD_LOST] = OF_STAGE | OF_PEER,
	[SKEP_NOTE_RESUMED] = 0,
};
static_assert(SKEP_NOTE_RESUMED + 1 == SKEP_NOTE_KINDS, "each kind says what it uses");

static bool value_legal(const struct skep_plan *plan, const struct skep_note *note)
{
	switch (note->kind) {
	case SKEP_NOTE_ISSUED:
		return note->granted > 0;
	case SKEP_NOTE_RERUN:
		return note->rerun.attempt > 0 && span_legal(plan, note->rerun.span);
	case SKEP_NOTE_LOST:
	case SKEP_NOTE_OUTER_UPDATED:
		return note->bits != 0;
	case SKEP_NOTE_MEMBER:
		return note->microbatches >= 0;
	case SKEP_NOTE_STAGE_COMMITTED:
		return note->lost >= 0;
	case SKEP_NOTE_STOPPED:
		return note->ok == 0 || note->ok == 1;
	case SKEP_NOTE_COUNTED:
		return note->staleness >= 0;
	case SKEP_NOTE_STAGE_RESTARTED:
		return note->version >= 0;
	case SKEP_NOTE_SCALED:
		return plan->scale != NULL && note->stage < plan->scale->kinds && note->there >= 0;
	case SKEP_NOTE_DIVERGED:
		return note->fault.kind > SKEP_FAULT_NONE && note->fault.kind < SKEP_FAULTS;
	case SKEP_NOTE_CANDIDATE_DROPPED:
		return note->fault.kind < SKEP_FAULTS;
	default:
		return true;
	}
}

bool skep_note_legal(const struct skep_plan *plan, const struct skep_note *note)
{
	if (note->kind == 0 || note->kind >= SKEP_NOTE_KINDS ||
		(note->candidate > 0 && note->candidate >= plan->candidates.count))
		return false;
	uint32_t use = NOTE[note->kind];
	if ((use & OF_STAGE && note->stage >= skep_plan_vstages(plan)) || (!(use & OF_NUMBER) && note->number > 0) ||
		(use & OF_PEER && note->peer.index >= plan->workers) || (!(use & OF_VALUE) && note->value != 0))
		return false;
	return value_legal(plan, note);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

bool skep_event_legal(const struct skep_plan *plan, const struct skep_event *event)
{
	switch (event->kind) {
	case SKEP_EVENT_MESSAGE:
	case SKEP_EVENT_SEND_FAILED:
		return event->u.message.kind > 0 && event->u.message.kind < SKEP_MESSAGE_KINDS;
	case SKEP_EVENT_OP_DONE:
		return event->fault < SKEP_FAULTS && event->u.done.op.kind > 0 && event->u.done.op.kind < SKEP_OP_KINDS;
	case SKEP_EVENT_SUSPECT:
		return event->u.peer.index <= plan->workers;
	case SKEP_EVENT_EGRESS:
		return plan->until.budget_microusd > 0;
	default:
		return event->kind >= SKEP_EVENT_START && event->kind < SKEP_EVENT_KINDS;
	}
}
