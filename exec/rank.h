/* SPDX-License-Identifier: Apache-2.0
 *
 * rank.h - the state of a process of a run, shared by the files that make it up:
 *
 *   loop.c     the turns of the loop, naps, the phases of a run from start to good-bye
 *   intake.c   what comes in: frames are checked here before the machine hears of them
 *   perform.c  what the machine asks for
 *   report.c   what the recorder on rank 0 gets to hear
 *   lives.c    births and deaths: the trace, soft kills, seats for spare processes
 *
 * Rank 0 runs the directory (machine `workers`) and is the only one with a recorder and a shaper; the others run a worker,
 * or none yet (seats.h), and have a device with lanes while it lives.
 */
#ifndef SKEP_EXEC_RANK_H
#define SKEP_EXEC_RANK_H

#include <time.h>

#include "exec/held.h"
#include "exec/lanes.h"
#include "exec/log.h"
#include "exec/loop.h"
#include "exec/remains.h"
#include "exec/rows.h"
#include "exec/seats.h"
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

struct books {                               /* rank 0: of one machine */
	struct skep_worker_use sum;          /* over its lives */
	bool open;                           /* a life goes on ... */
	skep_time since_ns;                  /* ... since then */
	uint32_t lives;                      /* that have ended */
	uint64_t digest;                     /* of these */
	skep_time compute_ns, arithmetic_ns; /* of the present one, as far as its operations were heard of */
};

struct rank {
	struct skep_loop_setup *setup; /* its device changes with the lives */
	const struct skep_plan *plan;
	struct skep_transport *transport;
	uint32_t self; /* machine index; SKEP_NO_INDEX: a spare without a seat */
	struct skep_seats seats;
	bool alive;   /* a life goes on */
	bool lived;   /* one has begun in this process */
	bool noticed; /* it has been told that it will be taken away */
	bool stale;   /* the device is of a life that was killed */
	bool over;    /* rank 0 has said END */
	bool armed;   /* the timer that kills this process */
	timer_t timer;
	size_t trace_at; /* the next event of the trace */
	skep_time born_ns;
	void *memory;
	struct skep_node *node;
	struct skep_actions actions;
	struct skep_lanes *lanes;   /* NULL on rank 0 */
	struct skep_shaper *shaper; /* NULL unless rank 0 shapes */
	struct skep_held held;
	struct inbox inbox;
	struct skep_rows rows;
	struct skep_log log;
	uint64_t sent;                  /* messages; the last one's number */
	struct skep_link_use *use;      /* [machines * SKEP_TRAFFICS], by destination and class */
	uint64_t untold[SKEP_TRAFFICS]; /* bytes sent that rank 0 has not heard of */
	struct skep_worker_use total;   /* of this life */
	uint64_t batches;               /* of the log that were sent */
	struct skep_remains *remains;   /* own ones; NULL: nobody else could see them */

	/* rank 0 */
	struct books *books;   /* [workers + 1] */
	uint64_t *batches_had; /* [ranks] */
	bool *wanted;          /* [workers] somebody is to sit there, as soon as its process is known to be dead */
	bool *began;           /* [workers] the trace has let it come before */
	bool short_of_spares;  /* that has been said */
	uint64_t events;       /* of the lives that have ended */
	uint32_t rounds_done;

	enum phase phase;
	skep_time left_ns;    /* LEAVING: since then */
	skep_time ended_ns;   /* when the machine's outcome was final, or the run was told to end */
	uint64_t patience_ns; /* rank 0: from its end to HALT, if a worker does not end */
	skep_time give_up_ns; /* halted: when to stop waiting for the others */
	bool failed;          /* `reason` says why */
	bool halted;          /* the run ends early */
	int signal;           /* on this signal; 0: on none */
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
	return rank->seats.rank_of[index];
}

static inline uint32_t rank_to_machine(const struct rank *rank, uint32_t number)
{
	return rank->seats.machine_of[number];
}

/* loop.c */
void rank_send(struct rank *rank, uint32_t to, const struct skep_frame *frame, const void *body);
void rank_send_all(struct rank *rank, const struct skep_frame *frame); /* to all others that are there */
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
void report_life(struct rank *rank); /* a life has ended: its figures, and its end in the log */
void report_links(struct rank *rank);
void report_flush(struct rank *rank);
/* rank 0 */
void report_log(struct rank *rank, uint32_t peer, uint64_t number, const uint8_t *bytes, uint32_t count);
bool report_rows(struct rank *rank, const uint8_t *bytes, uint32_t count);
void report_born(struct rank *rank, uint32_t machine);
void report_died(struct rank *rank, uint32_t peer, uint32_t machine);
void report_machines(struct rank *rank); /* at the end */

/* lives.c */
bool lives_at_start(const struct rank *rank); /* is there a worker at this rank when the run begins? */
bool lives_begin(struct rank *rank);          /* false: no memory or no thread */
void lives_end(struct rank *rank);
bool lives_turn(struct rank *rank);
skep_time lives_next(struct rank *rank); /* when the trace wants something here */
void lives_on_seat(struct rank *rank, const struct skep_frame *frame);
void lives_gone(struct rank *rank, uint32_t peer);
void lives_new(struct rank *rank, uint32_t peer);

#endif
