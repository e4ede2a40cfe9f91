/* SPDX-License-Identifier: Apache-2.0
 *
 * internal.h - what the files of the test world share: its state, and who does what.
 *
 *     event_queue.c   which event is next             network.c    messages on their way
 *     process.c  memory of machines, devices     cluster.c steps, faults, the run
 *     fused.c    collectives in one piece
 *
 * The public face is cluster.h.
 */
#pragma once

#include "core/schedule/pipelines.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/undefined.h"

#define ANY SKEP_NO_INDEX
#define GUARD 64u /* bytes before and behind a machine's memory */
#define MACHINES (CLUSTER_WORKERS + 1u)

enum event_kind {
	EVENT_START,
	EVENT_TIMER,
	EVENT_MESSAGE,
	EVENT_FAILED,
	EVENT_OP,
	EVENT_SUSPECT,
	EVENT_NOTICE,
	EVENT_PAUSE,
	EVENT_KILL,
	EVENT_RESTART,
	EVENT_FLIP,
	EVENT_OUTAGE,
	EVENT_RESUME
};

struct event {
	uint8_t kind, lane;
	bool gentle, dies_with_sender;
	uint8_t dead;
	uint32_t machine, life; /* whom it is for, and in which life */
	uint32_t about, sender_life;
	skep_time until;
	struct skep_message message;
	uint32_t next_free;
};

struct entry { /* of the heap */
	skep_time at;
	uint64_t number;
	uint32_t tie, event;
};

struct queued {
	struct skep_op op;
	struct skep_peer who;
	skep_time elapsed;
	enum { WHOLE_NEW, WHOLE_WAITS, WHOLE_SUMMED, WHOLE_CANCELLED } whole; /* ALLREDUCE */
};

struct lane {
	struct queued *item; /* ring */
	uint32_t head, count, capacity;
};

struct process {
	unsigned char *block[2]; /* guard, memory, guard; the machine lives in block[half] */
	size_t size, block_size;
	unsigned half;
	struct skep_node *node;
	bool alive, started;
	uint32_t life, epoch, epoch_at_death;
	uint64_t op_id;
	skep_time paused_until, timer_at, spin_at;
	uint32_t spins;
	bool flipped; /* a bit of its parameters, until it enters a stage again: its steps make others than those of the rest */
	bool noticed, left;  /* was told that it will be taken away; has stopped for that */
	bool seated;         /* as JOINED, FENCED, LEFT and MIGRATED say */
	bool moving;         /* the newest of these is MIGRATED: it has been given its next stage */
	skep_time out_since; /* not seated since then */
	uint32_t out_rounds; /* that opened meanwhile */
	struct lane lane[SKEP_LANES];
	struct device device;
	/* The directory is lost: it is to keep what it holds, and has not yet; it has been there since. */
	bool keeping, stayed;
	uint32_t held, held_before, held_of; /* the versions that it has kept since, 0: none; of this stage */
	uint64_t sum[CLUSTER_ELEMENTS];      /* that the ALLREDUCE which is about to end brings */
};

struct cluster {
	struct setup setup;
	struct verdict *verdict;
	struct referee *referee;
	struct skep_plan plan; /* since the directory was lost: the plan, with another first round */
	uint32_t kept_round;   /* the newest version that was kept of all stages, when it was */
	bool is_lost;          /* the directory, now */
	bool with_held;        /* and workers keep what they hold */
	bool kept_now;         /* a candidate, or one is out, and no round has opened since */
	struct tensors tensors;
	struct process process[MACHINES];
	struct event *event;
	uint32_t events, event_capacity, event_free;
	struct entry *heap;
	uint32_t heap_count, heap_capacity;
	uint64_t number, random, move_random, digest;
	uint32_t work; /* messages, returns and operations on their way */
	uint32_t opportunities;
	skep_time now;
	struct skep_action *action;
	uint32_t action_limit, action_capacity;
	struct result result;
};

/* Room for at least `needed` items; never shrinks. */
void *grown(void *block, uint32_t *capacity, uint32_t needed, size_t item);
uint64_t draw(uint64_t *state);
/* Is this the opportunity that the saboteur waits for? */
bool sabotaged(struct cluster *c, enum sabotage kind);
void trace(struct cluster *c, struct trace trace);

/* event_queue.c: events in the order (time, tie, number) */
struct event *agenda_add(
	struct cluster *c, skep_time at, uint8_t kind, uint32_t machine);     /* valid until the next add */
void agenda_keep(struct cluster *c, bool (*kept)(const struct event *event)); /* and no others */
void agenda_postpone(struct cluster *c, const struct event *event, skep_time at);
skep_time agenda_next(const struct cluster *c); /* SKEP_TIME_NEVER: nothing is left */
struct event agenda_take(struct cluster *c);    /* and moves `now` */

/* process.c */
void process_init(struct cluster *c, uint32_t index, uint32_t epoch);
void process_move(struct process *p);
void process_give_room(struct cluster *c, struct process *p); /* what the machine wants for its next step */
bool process_guards_whole(const struct process *p);
void process_check_empty_hands(struct cluster *c, uint32_t index);
void process_run(struct cluster *c, uint32_t index, const struct skep_op *op); /* RUN */
void process_op_ends(struct cluster *c, const struct event *event);
void process_flips(struct cluster *c, const struct event *event);
void process_unequal(struct cluster *c, const struct skep_note *note);

/* fused.c: ALLREDUCE */
void whole_asked(struct cluster *c, uint32_t index);               /* it is first in its lane */
void whole_cancel(struct cluster *c, uint32_t index, uint64_t id); /* CANCEL */
void whole_ends(struct cluster *c, const struct queued *job);

/* network.c */
void post_send(struct cluster *c, uint32_t index, const struct skep_message *m);      /* SEND */
void post_send_copy(struct cluster *c, uint32_t index, const struct skep_message *m); /* SEND with keep */
void post_arrives(struct cluster *c, const struct event *event);
void post_returns(struct cluster *c, const struct event *event);

/* cluster.c: one step of one machine, with all that it asks for */
void deliver(struct cluster *c, uint32_t index, struct skep_event *event);

/* outage.c: is the event the loss of the directory, its end, or one that finds it lost? Then that is done. And what a device
 * that holds a stage begins with behind it. */
bool outage_takes(struct cluster *c, const struct event *event);
void outage_device(struct cluster *c, struct device *device);

/* held.c: the worker keeps what it holds, and does so when one of its operations has ended (`well`: with a result); it does not.
 * The newest version that is held of all stages, 0: none; and, bit by bit, who has been there all the time, and is at rest. */
void held_begin(struct cluster *c, uint32_t worker);
void held_op_ended(struct cluster *c, uint32_t worker, const struct skep_op *op, bool well);
void held_forget(struct process *p);
uint32_t held_newest(struct cluster *c);
uint64_t held_stayed(const struct cluster *c);

/* scaled.c: machines that a run has asked for come, late or never; has the machine stopped because it was told to leave? */
void scaled_asked(struct cluster *c, const struct skep_action *action);
bool scaled_returned(const struct cluster *c, uint32_t index);
