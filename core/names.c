/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c - the one table of each kind's names. A kind at the end of its enum that has no name here does not compile; a hole
 * is found by tests/unit/test_names.c.
 */
#include "core/names.h"

#include <assert.h>
#include <stddef.h>

#include "core/record.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const char *const OP[] = {
	[SKEP_OP_FORWARD] = "forward",
	[SKEP_OP_BACKWARD] = "backward",
	[SKEP_OP_STEP] = "step",
	[SKEP_OP_SAVE] = "save",
	[SKEP_OP_LOAD] = "load",
	[SKEP_OP_COPY_GRAD] = "copy_grad",
	[SKEP_OP_ADD] = "add",
	[SKEP_OP_ADD_STORE] = "add_store",
	[SKEP_OP_STORE] = "store",
	[SKEP_OP_ENTER] = "enter",
	[SKEP_OP_CHECKPOINT] = "checkpoint",
	[SKEP_OP_RESTORE] = "restore",
	[SKEP_OP_ALLREDUCE] = "allreduce",
	[SKEP_OP_INIT_RESULT] = "init_result",
	[SKEP_OP_ADD_TO_RESULT] = "add_to_result",
	[SKEP_OP_COPY_RESULT] = "copy_result",
	[SKEP_OP_RECOMPUTE] = "recompute",
	[SKEP_OP_INNER_STEP] = "inner_step",
	[SKEP_OP_PSEUDO_GRAD] = "pseudo_grad",
	[SKEP_OP_PACK_PART] = "pack_part",
	[SKEP_OP_UNPACK_PART] = "unpack_part",
	[SKEP_OP_AGGREGATE] = "aggregate",
	[SKEP_OP_NORM] = "norm",
	[SKEP_OP_COPY_TIED] = "copy_tied",
	[SKEP_OP_STORE_TIED] = "store_tied",
	[SKEP_OP_COPY_SHARD] = "copy_shard",
	[SKEP_OP_STORE_SHARD] = "store_shard",
	[SKEP_OP_DISCARD] = "discard",
};
static_assert(COUNT(OP) == SKEP_OP_KINDS, "each kind has a name");

static const char *const MESSAGE[] = {
	[SKEP_MESSAGE_FORWARD] = "FORWARD",
	[SKEP_MESSAGE_BACKWARD] = "BACKWARD",
	[SKEP_MESSAGE_ABANDON] = "ABANDON",
	[SKEP_MESSAGE_CHUNK] = "CHUNK",
	[SKEP_MESSAGE_FETCH] = "FETCH",
	[SKEP_MESSAGE_STATE] = "STATE",
	[SKEP_MESSAGE_GRANT] = "GRANT",
	[SKEP_MESSAGE_REDUCE] = "REDUCE",
	[SKEP_MESSAGE_COMMIT] = "COMMIT",
	[SKEP_MESSAGE_PEER] = "PEER",
	[SKEP_MESSAGE_ASSIGN] = "ASSIGN",
	[SKEP_MESSAGE_STOP] = "STOP",
	[SKEP_MESSAGE_FINISHED] = "FINISHED",
	[SKEP_MESSAGE_TALLY] = "TALLY",
	[SKEP_MESSAGE_JOIN] = "JOIN",
	[SKEP_MESSAGE_READY] = "READY",
	[SKEP_MESSAGE_SUSPECT] = "SUSPECT",
	[SKEP_MESSAGE_HEARTBEAT] = "HEARTBEAT",
	[SKEP_MESSAGE_LOAD] = "LOAD",
	[SKEP_MESSAGE_LEAVE] = "LEAVE",
	[SKEP_MESSAGE_LIST_PEERS] = "LIST_PEERS",
	[SKEP_MESSAGE_OUTPUT] = "OUTPUT",
	[SKEP_MESSAGE_INPUT] = "INPUT",
	[SKEP_MESSAGE_CANCEL] = "CANCEL",
	[SKEP_MESSAGE_CANCELLED] = "CANCELLED",
	[SKEP_MESSAGE_ADMIT] = "ADMIT",
	[SKEP_MESSAGE_ENTERED] = "ENTERED",
	[SKEP_MESSAGE_CHECKPOINTED] = "CHECKPOINTED",
	[SKEP_MESSAGE_DRAIN] = "DRAIN",
	[SKEP_MESSAGE_ROSTER] = "ROSTER",
	[SKEP_MESSAGE_CHUNK_ACK] = "CHUNK_ACK",
	[SKEP_MESSAGE_FORWARDS_DONE] = "FORWARDS_DONE",
	[SKEP_MESSAGE_BARRIER_LIFTED] = "BARRIER_LIFTED",
	[SKEP_MESSAGE_VALIDATED] = "VALIDATED",
	[SKEP_MESSAGE_NORM] = "NORM",
	[SKEP_MESSAGE_FAULT] = "FAULT",
	[SKEP_MESSAGE_CHECKPOINT_FAILED] = "CHECKPOINT_FAILED",
	[SKEP_MESSAGE_CHECKPOINT] = "CHECKPOINT",
	[SKEP_MESSAGE_OUTER_UPDATE] = "OUTER_UPDATE",
	[SKEP_MESSAGE_CLOSE_ROUND] = "CLOSE_ROUND",
};
static_assert(COUNT(MESSAGE) == SKEP_MESSAGE_KINDS, "each kind has a name");

static const char *const NOTE[] = {
	[SKEP_NOTE_ROUND_OPENED] = "round_opened",
	[SKEP_NOTE_ISSUED] = "issued",
	[SKEP_NOTE_RERUN] = "rerun",
	[SKEP_NOTE_MEMBER] = "member",
	[SKEP_NOTE_LOST] = "lost",
	[SKEP_NOTE_STAGE_COMMITTED] = "stage_committed",
	[SKEP_NOTE_LOSS] = "loss",
	[SKEP_NOTE_ROUND_CLOSED] = "round_closed",
	[SKEP_NOTE_FENCED] = "fenced",
	[SKEP_NOTE_JOINED] = "joined",
	[SKEP_NOTE_LEFT] = "left",
	[SKEP_NOTE_MIGRATED] = "migrated",
	[SKEP_NOTE_STAGE_EMPTY] = "stage_empty",
	[SKEP_NOTE_STOPPED] = "stopped",
	[SKEP_NOTE_COUNTED] = "counted",
	[SKEP_NOTE_OVERFLOW] = "overflow",
	[SKEP_NOTE_ADMITTED] = "admitted",
	[SKEP_NOTE_STAGE_RESTARTED] = "stage_restarted",
	[SKEP_NOTE_CHECKPOINTED] = "checkpointed",
	[SKEP_NOTE_VALIDATING] = "validating",
	[SKEP_NOTE_VALIDATED] = "validated",
	[SKEP_NOTE_DIVERGED] = "diverged",
	[SKEP_NOTE_CHECKPOINT_FAILED] = "checkpoint_failed",
	[SKEP_NOTE_OUTER_UPDATED] = "outer_updated",
	[SKEP_NOTE_CANDIDATE_LOSS] = "candidate_loss",
	[SKEP_NOTE_CANDIDATE_DROPPED] = "candidate_dropped",
	[SKEP_NOTE_CANDIDATE_CHOSEN] = "candidate_chosen",
	[SKEP_NOTE_ROUND_VOIDED] = "round_voided",
	[SKEP_NOTE_UNEQUAL] = "unequal",
	[SKEP_NOTE_SCALED] = "scaled",
	[SKEP_NOTE_RETURNED] = "returned",
	[SKEP_NOTE_SHARD_LOST] = "shard_lost",
	[SKEP_NOTE_RESUMED] = "resumed",
};
static_assert(COUNT(NOTE) == SKEP_NOTE_KINDS, "each kind has a name");

static const char *const PIPELINE[] = {
	[SKEP_PIPELINE_SWARM] = "swarm",
	[SKEP_PIPELINE_GPIPE] = "gpipe",
	[SKEP_PIPELINE_1F1B] = "1f1b",
	[SKEP_PIPELINE_INTERLEAVED] = "interleaved",
	[SKEP_PIPELINE_PIPEDREAM] = "pipedream",
};
static_assert(COUNT(PIPELINE) == SKEP_PIPELINES, "each kind has a name");

static const char *const WEIGHTS[] = {
	[SKEP_WEIGHTS_STASHED] = "stashed",
	[SKEP_WEIGHTS_NEWEST] = "newest",
	[SKEP_WEIGHTS_VERTICAL_SYNC] = "vertical-sync",
	[SKEP_WEIGHTS_PREDICTED] = "predicted",
	[SKEP_WEIGHTS_CORRECTED] = "corrected",
	[SKEP_WEIGHTS_WAVES] = "waves",
};
static_assert(COUNT(WEIGHTS) == SKEP_WEIGHTS, "each kind has a name");

static const char *const ON_LOSS[] = {
	[SKEP_ON_LOSS_REPORT] = "report",
	[SKEP_ON_LOSS_RERUN] = "rerun",
	[SKEP_ON_LOSS_VOID] = "void",
	[SKEP_ON_LOSS_WAIT] = "wait",
};
static_assert(COUNT(ON_LOSS) == SKEP_ON_LOSSES, "each answer has a name");

static const char *const COLLECTIVE[] = {
	[SKEP_COLLECTIVE_RING] = "ring",
	[SKEP_COLLECTIVE_FUSED] = "fused",
	[SKEP_COLLECTIVE_PARAMETER_SERVER] = "parameter-server",
	[SKEP_COLLECTIVE_REDUCE_BROADCAST] = "reduce-broadcast",
	[SKEP_COLLECTIVE_ALL_TO_ALL] = "all-to-all",
	[SKEP_COLLECTIVE_HALVING_DOUBLING] = "halving-doubling",
	[SKEP_COLLECTIVE_TREE] = "tree",
	[SKEP_COLLECTIVE_HIERARCHICAL] = "hierarchical",
	[SKEP_COLLECTIVE_BUTTERFLY] = "butterfly",
	[SKEP_COLLECTIVE_CHAIN] = "chain",
	[SKEP_COLLECTIVE_BROADCAST] = "broadcast",
	[SKEP_COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
	[SKEP_COLLECTIVE_ALL_GATHER] = "all-gather",
};
static_assert(COUNT(COLLECTIVE) == SKEP_COLLECTIVE_KINDS, "each kind has a name");

static const char *const LANE[] = {[SKEP_LANE_COMPUTE] = "compute", [SKEP_LANE_REDUCE] = "reduce"};
static_assert(COUNT(LANE) == SKEP_LANES, "each lane has a name");

static const char *const TRAFFIC[] = {
	[SKEP_TRAFFIC_PIPELINE] = "pipeline",
	[SKEP_TRAFFIC_SYNC] = "sync",
	[SKEP_TRAFFIC_STATE] = "state",
	[SKEP_TRAFFIC_CONTROL] = "control",
};
static_assert(COUNT(TRAFFIC) == SKEP_TRAFFICS, "each kind has a name");

static const char *look_up(const char *const *table, size_t count, uint8_t kind)
{
	return kind < count && table[kind] != NULL ? table[kind] : "?";
}

const char *skep_op_name(uint8_t kind)
{
	return look_up(OP, COUNT(OP), kind);
}

const char *skep_message_name(uint8_t kind)
{
	return look_up(MESSAGE, COUNT(MESSAGE), kind);
}

const char *skep_note_name(uint8_t kind)
{
	return look_up(NOTE, COUNT(NOTE), kind);
}

const char *skep_pipeline_name(uint8_t kind)
{
	return look_up(PIPELINE, COUNT(PIPELINE), kind);
}

const char *skep_weights_name(uint8_t kind)
{
	return look_up(WEIGHTS, COUNT(WEIGHTS), kind);
}

const char *skep_on_loss_name(uint8_t kind)
{
	return look_up(ON_LOSS, COUNT(ON_LOSS), kind);
}

const char *skep_collective_name(uint8_t kind)
{
	return look_up(COLLECTIVE, COUNT(COLLECTIVE), kind);
}

const char *skep_lane_name(uint8_t lane)
{
	return look_up(LANE, COUNT(LANE), lane);
}

const char *skep_traffic_name(uint8_t kind)
{
	return look_up(TRAFFIC, COUNT(TRAFFIC), kind);
}
