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
	[SKEP_OP_TAKE] = "take",
	[SKEP_OP_ADD] = "add",
	[SKEP_OP_ADD_STORE] = "add_store",
	[SKEP_OP_STORE] = "store",
	[SKEP_OP_ENTER] = "enter",
	[SKEP_OP_CHECKPOINT] = "checkpoint",
	[SKEP_OP_RESTORE] = "restore",
	[SKEP_OP_ALLREDUCE] = "allreduce",
	[SKEP_OP_KEEP] = "keep",
	[SKEP_OP_FOLD] = "fold",
	[SKEP_OP_GIVE] = "give",
	[SKEP_OP_RECOMPUTE] = "recompute",
	[SKEP_OP_INNER] = "inner",
	[SKEP_OP_PSEUDO] = "pseudo",
	[SKEP_OP_OFFER] = "offer",
	[SKEP_OP_COLLECT] = "collect",
	[SKEP_OP_AGGREGATE] = "aggregate",
	[SKEP_OP_NORM] = "norm",
	[SKEP_OP_TIE_GIVE] = "tie_give",
	[SKEP_OP_TIE_TAKE] = "tie_take",
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
	[SKEP_MESSAGE_WHO] = "WHO",
	[SKEP_MESSAGE_OUTPUT] = "OUTPUT",
	[SKEP_MESSAGE_INPUT] = "INPUT",
	[SKEP_MESSAGE_CANCEL] = "CANCEL",
	[SKEP_MESSAGE_CANCELLED] = "CANCELLED",
	[SKEP_MESSAGE_ADMIT] = "ADMIT",
	[SKEP_MESSAGE_ENTERED] = "ENTERED",
	[SKEP_MESSAGE_CHECKPOINTED] = "CHECKPOINTED",
	[SKEP_MESSAGE_TURN] = "TURN",
	[SKEP_MESSAGE_ROSTER] = "ROSTER",
	[SKEP_MESSAGE_TAKEN] = "TAKEN",
	[SKEP_MESSAGE_PASSED] = "PASSED",
	[SKEP_MESSAGE_BACK] = "BACK",
	[SKEP_MESSAGE_VALIDATED] = "VALIDATED",
	[SKEP_MESSAGE_NORM] = "NORM",
	[SKEP_MESSAGE_FAULT] = "FAULT",
	[SKEP_MESSAGE_UNKEPT] = "UNKEPT",
	[SKEP_MESSAGE_KEEP] = "KEEP",
	[SKEP_MESSAGE_MERGE] = "MERGE",
	[SKEP_MESSAGE_SETTLE] = "SETTLE",
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
	[SKEP_NOTE_MOVED] = "moved",
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
	[SKEP_NOTE_UNKEPT] = "unkept",
	[SKEP_NOTE_MERGED] = "merged",
	[SKEP_NOTE_CANDIDATE_LOSS] = "candidate_loss",
	[SKEP_NOTE_CANDIDATE_OUT] = "candidate_out",
	[SKEP_NOTE_CANDIDATE_KEPT] = "candidate_kept",
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

static const char *const COLLECTIVE[] = {
	[SKEP_COLLECTIVE_RING] = "ring",
	[SKEP_COLLECTIVE_WHOLE] = "whole",
	[SKEP_COLLECTIVE_PARAMETER_SERVER] = "parameter-server",
	[SKEP_COLLECTIVE_REDUCE_BROADCAST] = "reduce-broadcast",
	[SKEP_COLLECTIVE_ALL_TO_ALL] = "all-to-all",
	[SKEP_COLLECTIVE_HALVING_DOUBLING] = "halving-doubling",
	[SKEP_COLLECTIVE_TREE] = "tree",
	[SKEP_COLLECTIVE_HIERARCHICAL] = "hierarchical",
	[SKEP_COLLECTIVE_BUTTERFLY] = "butterfly",
	[SKEP_COLLECTIVE_CHAIN] = "chain",
};
static_assert(COUNT(COLLECTIVE) == SKEP_COLLECTIVE_CHAIN + 1, "each kind has a name");

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
