/* SPDX-License-Identifier: Apache-2.0
 *
 * rank.h - the state of a process of a run, shared by the files that make it up:
 *
 *   loop.c     the turns of the loop, naps, the phases of a run from start to good-bye
 *   intake.c   what comes in: frames are checked here before the machine hears of them
 *   perform.c  what the machine asks for
 *   report.c   what the recorder on rank 0 gets to hear
 *
 * Rank 0 runs the directory (machine `workers`) and is the only one with a recorder and a shaper; rank r runs worker r - 1
 * and has a device with lanes.
 */
#ifndef SKEP_EXEC_RANK_H
#define SKEP_EXEC_RANK_H

#include "exec/held.h"
#include "exec/lanes.h"
#include "exec/log.h"
#include "exec/loop.h"
#include "exec/rows.h"
#include "exec/shaper.h"

enum phase {
	PHASE_RUNNING,
	PHASE_COLLECTING, /* rank 0: the directory has ended or was told to; waits for the workers' LAST */
	PHASE_LEAVING     /* has said LAST */
};

struct inbox {                        /* messages to oneself */
	struct skep_message *message; /* [count], those before head are done */
	size_t head, count, room;
};

struct rank {
	const struct skep_loop_setup *setup;
	const struct skep_plan *plan;
	struct skep_transport *transport;
	uint32_t self; /* machine index */
	void *memory;
	struct skep_node *node;
	struct skep_actions actions;
	struct skep_lanes *lanes;   /* NULL on rank 0 */
	struct skep_shaper *shaper; /* NULL unless rank 0 shapes */
	struct skep_held held;
	struct inbox inbox;
	struct skep_rows rows;
	struct skep_log log;
	uint64_t sent;             /* messages; the last one's number */
	struct skep_link_use *use; /* [machines * SKEP_TRAFFICS], by destination and class */
	struct skep_worker_use total;
	uint64_t events; /* rank 0: of the machines that have reported */
	uint32_t rounds_done;

	enum phase phase;
	uint32_t lasts;       /* ranks that have said LAST */
	skep_time ended_ns;   /* when the machine's outcome was final, or the run was told to end */
	uint64_t patience_ns; /* rank 0: from its end to HALT, if a worker does not end */
	skep_time give_up_ns; /* halted: when to stop waiting for the others */
	bool failed;          /* `reason` says why */
	bool halted;          /* the run ends early */
	bool broken;          /* the transport is of no more use */
	char reason[256];
	uint32_t idle;  /* turns in a row with nothing to do */
	uint32_t turns; /* of the loop, all of them */
};

static inline skep_time rank_now(const struct rank *rank)
{
	return skep_clock_now(rank->setup->clock);
}

static inline bool rank_is_chief(const struct rank *rank)
{
	return rank->transport->rank == 0;
}

static inline uint32_t rank_of_machine(const struct rank *rank, uint32_t index)
{
	return index == rank->plan->workers ? 0 : index + 1;
}

static inline uint32_t rank_to_machine(const struct rank *rank, uint32_t number)
{
	return number == 0 ? rank->plan->workers : number - 1;
}

/* loop.c */
void rank_send(struct rank *rank, uint32_t to, const struct skep_frame *frame, const void *body);
void rank_fail(struct rank *rank, const char *reason); /* this process cannot go on: the run ends early */
void rank_halt(struct rank *rank, const char *reason); /* the run ends early; rank 0 tells the others */

/* intake.c */
bool intake_frames(struct rank *rank);
void intake_release(struct rank *rank, uint32_t source, uint64_t number); /* a shaped message may be delivered */

/* perform.c */
void perform_step(
	struct rank *rank, struct skep_event *event); /* stamps it, steps the machine, does what it asks for */
void perform_delivery(struct rank *rank, const struct skep_message *message);
void perform_shape(struct rank *rank, const struct skep_shaper_flow *flow, uint64_t bytes, skep_time sent);

/* report.c */
void report_event(struct rank *rank, const struct skep_event *event); /* after its step, before its actions */
void report_note(struct rank *rank, const struct skep_note *note);
void report_op(struct rank *rank, const struct skep_lanes_done *done);
void report_log(struct rank *rank, uint32_t machine, const uint8_t *bytes, uint32_t count); /* rank 0 */
void report_use(struct rank *rank); /* at the end: links and totals */
void report_flush(struct rank *rank);

#endif
