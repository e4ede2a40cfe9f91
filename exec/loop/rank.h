/* SPDX-License-Identifier: Apache-2.0
 *
 * rank.h - the state of a process of a run, shared by the files that make it up:
 *
 *   loop.c          the turns of the loop, its sleeps, the phases of a run from the start to LAST
 *   receive.c       incoming frames, which are checked here before the state machine sees them
 *   perform.c       the actions that the state machine asks for
 *   report.c        what the recorder on rank 0 is told
 *   lockstep.c      the same machine in several planes
 *   incarnations.c  starts and ends of workers: the trace, soft kills, slots for spare processes
 *
 * Rank 0 runs the directory (machine `workers`) and is the only one with a recorder and a shaper; the others run a worker,
 * or none yet (slots.h), and have a device with lanes while it lives.
 */
#pragma once

#include <time.h>

#include "exec/loop/delay_queue.h"
#include "exec/loop/lanes.h"
#include "exec/loop/log.h"
#include "exec/loop/loop.h"
#include "exec/loop/post_mortem.h"
#include "exec/loop/rows.h"
#include "exec/loop/shaper.h"
#include "exec/loop/slots.h"
#include "exec/loop/unheard.h"
#include "scenarios/plan/prices.h"

enum phase {
	PHASE_RUNNING,
	PHASE_COLLECTING, /* rank 0: the directory has ended or was told to; waits for the workers' LAST */
	PHASE_LEAVING     /* has sent LAST */
};

struct inbox {                        /* messages to oneself */
	struct skep_message *message; /* [count], those before head are done */
	size_t head, count, room;
};

struct held_events {              /* that have come, and that plane 0 has not told yet (lockstep.c) */
	struct skep_event *event; /* [count] in the order in which they came */
	size_t count, room;
};

struct books {                               /* rank 0: the figures of one machine */
	struct skep_worker_use sum;          /* of all incarnations that have ended */
	bool open;                           /* an incarnation is alive ... */
	skep_time since_ns;                  /* ... and started at this time */
	uint32_t lives;                      /* incarnations that have ended */
	uint64_t digest;                     /* of the incarnations that have ended */
	skep_time compute_ns, arithmetic_ns; /* of the present one, of the operations that were reported */
};

struct rank {
	struct skep_loop_setup *setup; /* each incarnation puts its own device here */
	const struct skep_plan *plan;
	struct skep_transport *transport;
	uint32_t self; /* machine index; SKEP_NO_INDEX: a spare without a slot */
	struct skep_slots slots;
	bool alive;          /* an incarnation is alive in this process */
	bool lived;          /* this process has started an incarnation before, or now */
	bool noticed;        /* the worker has been given notice of its preemption */
	bool stale;          /* the device belongs to an incarnation that has ended */
	bool over;           /* rank 0 has sent END */
	bool armed;          /* `timer` runs, which kills this process */
	skep_time leaves_ns; /* this process ends then, without a word; 0: it stays */
	timer_t timer;
	size_t trace_at;            /* the next event of the trace */
	struct skep_notice *notice; /* [notices] of all workers; none before notice_at is of this one's next leave */
	uint32_t notices, notice_at;
	skep_time started_ns;
	void *memory;
	struct skep_node *node;
	struct skep_actions actions;
	struct skep_lanes *lanes;   /* NULL on rank 0 */
	struct skep_shaper *shaper; /* NULL unless rank 0 shapes */
	struct skep_delay_queue held;
	struct inbox inbox;
	struct held_events ahead;
	struct skep_unheard unheard;  /* tensors sent whose receivers have not answered */
	struct skep_heard *to_answer; /* [ranks] tensors that have come from each */
	struct skep_rows rows;
	struct skep_log log;
	uint64_t sent;                        /* messages sent; also the number of the last one */
	struct skep_link_use *use;            /* [links] by destination and class: what this process has sent */
	uint64_t *told;                       /* [links] how many of these messages rank 0 has been told of */
	struct skep_worker_use total;         /* use of the worker's devices in this life */
	uint64_t batches;                     /* batches of log entries sent to rank 0 */
	struct skep_post_mortem *post_mortem; /* this process's log in shared memory; NULL: none can be shared */

	/* rank 0 */
	struct books *books;   /* [workers + 1] */
	uint64_t *batches_had; /* [ranks] */
	struct skep_link_use *
		*heard; /* [ranks][links] what each process has sent, as far as it is known; NULL: nothing */
	struct skep_egress_bill bill; /* of what they have sent, in a run that ends by money */
	skep_time *heard_ns;          /* [ranks] when the newest frame of each has come */
	bool *wanted;         /* [workers] the slot gets a new process, as soon as its old one is known to be dead */
	bool *vacant;         /* [workers] wanted, and it was said that nothing fits: the place waits */
	uint32_t *left_epoch; /* [workers] of a worker that the trace has taken away: its epoch at that time */
	size_t heard_at;      /* index of the next trace event that the directory is to hear of */
	bool *began;          /* [workers] the trace has started this worker before */
	bool short_of_spares; /* the lack of spare processes has been reported */
	uint64_t events;      /* steps of state machines in incarnations that have ended */
	uint32_t rounds_done;

	enum phase phase;
	skep_time left_ns;    /* when PHASE_LEAVING began */
	skep_time ended_ns;   /* when the machine's outcome was final, or the run was told to end */
	uint64_t grace_ns;    /* rank 0: from its end to HALT, if a worker does not end */
	skep_time give_up_ns; /* halted: when to stop waiting for the others */
	bool failed;          /* `reason` says why */
	bool hears_end;       /* rank 0 has said that the run is over */
	bool halted;          /* the run ends early */
	int signal;           /* on this signal; 0: on none */
	bool broken;          /* the transport has failed and is not used any more */
	char reason[256];
	uint32_t idle;  /* turns in a row with nothing to do */
	uint32_t turns; /* of the loop, all of them */
};

static inline skep_time rank_now(const struct rank *rank)
{
	return skep_clock_now(rank->setup->clock);
}

static inline bool skep_rank_is_root(const struct rank *rank)
{
	return rank->transport->rank == 0;
}

static inline uint32_t rank_of_machine(const struct rank *rank, uint32_t index)
{
	return rank->slots.rank_of[index];
}

static inline uint32_t rank_to_machine(const struct rank *rank, uint32_t number)
{
	return rank->slots.machine_of[number];
}

/* Of a process: one for each machine that it may send to and class of what it sends. */
static inline size_t rank_links(const struct skep_plan *plan)
{
	return (size_t)(plan->workers + 1) * SKEP_TRAFFICS;
}

/* loop.c */
void skep_rank_send(struct rank *rank, uint32_t to, const struct skep_frame *frame, const void *body);
void skep_rank_send_all(struct rank *rank, const struct skep_frame *frame); /* to all others that are there */
void skep_rank_fail(struct rank *rank, const char *reason); /* this process cannot go on: the run ends early */
void skep_rank_halt(struct rank *rank, const char *reason); /* the run ends early; rank 0 tells the others */

/* receive.c */
bool skep_receive_frames(struct rank *rank);
void skep_receive_forget(struct rank *rank, uint32_t peer); /* who is dead, SKEP_NO_INDEX: all, answers for no tensor */
void skep_receive_release(struct rank *rank, uint32_t source, uint64_t number); /* a shaped message may be delivered */

/* perform.c */
void skep_perform_step(
	struct rank *rank, struct skep_event *event); /* stamps it, steps the machine, does what it asks for */
void skep_perform_delivery(struct rank *rank, const struct skep_message *message);
void skep_perform_told(struct rank *rank, struct skep_event *event);            /* by plane 0, and stamped */
void skep_perform_again(struct rank *rank, const struct skep_message *message); /* its tensor was damaged on its way */
void skep_perform_shape(struct rank *rank, const struct skep_shaper_flow *flow, uint64_t bytes, skep_time sent);

/* report.c */
void skep_report_event(struct rank *rank, const struct skep_event *event); /* after its step, before its actions */
void skep_report_note(struct rank *rank, const struct skep_note *note);
void skep_report_op(struct rank *rank, const struct skep_lanes_done *done);
void skep_report_incarnation(struct rank *rank); /* a life has ended: its figures, and its end in the log */
void skep_report_flush(struct rank *rank);       /* what was logged, noted, done and sent until now */
/* rank 0 */
void skep_report_log(struct rank *rank, uint32_t peer, uint64_t number, const uint8_t *bytes, uint32_t count);
bool skep_report_rows(struct rank *rank, uint32_t peer, const uint8_t *bytes, uint32_t count);
void skep_report_started(struct rank *rank, uint32_t machine);
void skep_report_missing(struct rank *rank, uint32_t machine); /* it has no process at the start */
void skep_report_ended(struct rank *rank, uint32_t peer, uint32_t machine);
void skep_report_machines(struct rank *rank); /* at the end, and what all have sent */

/* lockstep.c */
bool skep_lockstep_follows(const struct rank *rank); /* another plane leads this one */
void skep_lockstep_tell(struct rank *rank, const struct skep_event *event);
void skep_lockstep_hold(struct rank *rank, const struct skep_event *event);
bool skep_lockstep_turn(struct rank *rank);
void skep_lockstep_halt(struct rank *rank); /* the run ends early */
void skep_lockstep_finish(struct rank *rank);

/* incarnations.c */
bool skep_incarnations_at_start(const struct rank *rank); /* is there a worker at this rank when the run begins? */
bool skep_incarnation_begin(struct rank *rank);           /* false: no memory or no thread */
void skep_incarnation_end(struct rank *rank);
bool skep_incarnations_poll(struct rank *rank);
skep_time skep_incarnations_next(struct rank *rank); /* when the trace wants something here */
void skep_incarnations_on_slot(struct rank *rank, const struct skep_frame *frame);
void skep_incarnations_missing(struct rank *rank); /* after START: who is not there is lost, and its place waits */
void skep_incarnations_gone(struct rank *rank, uint32_t peer);
void skep_incarnations_new(struct rank *rank, uint32_t peer);
void skep_incarnations_leave(struct rank *rank);      /* it was told to leave; twice: at once */
bool skep_incarnations_left(const struct rank *rank); /* and its time has come */
