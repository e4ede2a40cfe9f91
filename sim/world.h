/* SPDX-License-Identifier: Apache-2.0
 *
 * world.h - the state of a simulated run, shared by engine.c (time) and world.c (what actions mean).
 */
#ifndef SKEP_SIM_WORLD_H
#define SKEP_SIM_WORLD_H

#include "sim/crew.h"
#include "sim/queue.h"
#include "sim/sim.h"
#include "sim/traffic.h"
#include "topologies/network.h"

enum skep_happening {           /* kinds of queue entries, and what their index means */
	SKEP_HAPPENING_START,   /* an actor */
	SKEP_HAPPENING_TIMER,   /* an actor */
	SKEP_HAPPENING_OP_END,  /* actor * SKEP_LANES + lane */
	SKEP_HAPPENING_MESSAGE, /* a message in the pool */
	SKEP_HAPPENING_CHURN,   /* an event of the scenario's trace */
	SKEP_HAPPENING_NOTICE,  /* one of the world's notices */
};

struct skep_flight { /* a message under way; free: next is the next free one */
	struct skep_message message;
	uint64_t sequence;
	uint32_t life; /* of its sender */
	uint32_t next;
};

struct skep_job { /* an operation that waits or runs; free: next is the next free one */
	struct skep_op op;
	skep_time begin_ns;
	uint32_t next;
	bool cancelled;
};

struct skep_lane_queue { /* FIFO of jobs, the first one runs */
	uint32_t first, last;
	uint64_t end_sequence; /* of the entry that ends the first one; others are of an earlier life */
	skep_time busy_ns;
};

struct skep_actor { /* a machine and its process: a worker or, last, the directory */
	struct skep_node *node;
	void *moved;                /* memory of its own, which the machine has moved to; NULL: it is where it began */
	struct skep_device *device; /* NULL: no maths */
	skep_time armed;            /* the earliest TIMER entry in the queue that still counts */
	skep_time born_ns;          /* of this life */
	skep_time stopped_ns;       /* SKEP_TIME_NEVER while it runs */
	skep_time alive_ns;         /* in earlier lives */
	uint32_t life;              /* processes that were here before */
	bool dead;
	uint64_t digest; /* of earlier lives */
	uint64_t events;
	struct skep_lane_queue lane[SKEP_LANES];
};

#define SKEP_WORLD_KEPT 3u /* of each stage the newest checkpoints */

struct skep_kept { /* with maths: a checkpoint, in memory */
	uint32_t version;
	void *state;
};

struct skep_whole_rank { /* a member of a collective, and its link to the next */
	uint32_t worker, next;
	bool here;        /* it has asked and waits for the end */
	uint32_t flowing; /* strands to the next rank that have not arrived */
	skep_time asked_ns;
	skep_time busy_ns; /* how long the link was, once the flow has arrived */
};

struct skep_whole { /* a collective as flows */
	uint32_t stage, round, attempt, number;
	uint32_t size;                /* members; 0: free */
	uint64_t first, elements;     /* that are summed */
	uint64_t chunks_bytes;        /* of one message with each chunk, headers included */
	uint32_t asked, arrived;      /* members that wait, flows that are over */
	bool left;                    /* by one of them: it will not end */
	struct skep_whole_rank *rank; /* [size] */
};

struct skep_notice { /* to a worker that it will be taken away */
	skep_time at_ns, leave_at_ns;
	uint32_t worker;
};

struct skep_world {
	const struct skep_scenario *scenario;
	const struct skep_plan *plan; /* own_plan */
	struct skep_plan own_plan;    /* the scenario's, with collectives as this world does them */
	const struct skep_recorder *recorder;
	struct skep_network *network;
	struct skep_queue queue;
	struct skep_traffic_table traffic;
	skep_time now;
	uint64_t sequence;      /* the next cause's */
	uint64_t handles;       /* made so far, when no maths is done */
	uint32_t running;       /* actors that have not stopped */
	bool looks_ahead;       /* there are more machines than caches hold */
	struct skep_crew *crew; /* does the arithmetic; NULL: there is none */
	bool light_passes,
		light_steps; /* too little arithmetic in a pass, or in a step or reduction, to be handed over */
	uint32_t rounds_closed;
	bool no_memory;         /* ends the run */
	char why[512];          /* an operation could not be done, and that ends it; "": it is memory that lacks */
	struct skep_kept *kept; /* [stages][SKEP_WORLD_KEPT], the oldest is overwritten */
	struct skep_checkpoint_folder folder; /* what it goes on with; with a number of its own also what it keeps */

	struct skep_actor *actor; /* [workers + 1] */
	void *node_memory;
	struct skep_actions actions;
	struct skep_flight *flight;
	struct skep_job *job;
	uint32_t flight_capacity, free_flight, job_capacity, free_job;
	struct skep_notice *notice; /* by time */
	uint32_t notices;
	struct skep_whole *whole;
	uint32_t wholes_made;
	uint32_t wholes; /* slots, some of them free */
};

/* False: no memory (or, with real maths, no device). Either way skep_world_finish() frees what there is. */
bool skep_world_init(struct skep_world *world, const struct skep_scenario *scenario, uint32_t threads,
	const struct skep_recorder *recorder);
void skep_world_finish(struct skep_world *world);

/* Handles one entry of the queue at its time, which is now: steps a machine and performs its actions. */
void skep_world_handle(struct skep_world *world, const struct skep_queue_entry *entry);

/* Of what will happen soon, SKEP_WORLD_ROWS rows of a heap ahead or fewer: asks the caches for what it will touch, each row
 * for what the row before it has named. */
#define SKEP_WORLD_ROWS 4u
#define SKEP_WORLD_CACHE_BYTES                                                                                         \
	((size_t)24 << 20) /* of machines; where they are fewer, caches have them without being asked */
void skep_world_expect(const struct skep_world *world, const struct skep_queue_entry *entry, uint32_t row);
void skep_world_expect_flight(const struct skep_world *world, uint32_t flight, uint32_t row);

/* A message has crossed the network: it joins the queue, now; or its receiver takes it at once. */
void skep_world_arrive(struct skep_world *world, uint32_t flight);
void skep_world_deliver(struct skep_world *world, uint32_t flight);

/* Worker's ALLREDUCE, first in its lane, ends then. */
void skep_world_end_whole(struct skep_world *world, uint32_t worker, skep_time time);

void skep_world_happen(
	struct skep_world *world, skep_time time, uint64_t sequence, enum skep_happening kind, uint32_t index);
/* The machine is told, now, and what it asks for is done. */
void skep_world_step(struct skep_world *world, uint32_t index, struct skep_event *event);
/* The ALLREDUCE that is first in the worker's lane and has no end yet, or NULL. */
const struct skep_op *skep_world_whole(const struct skep_world *world, uint32_t worker);

/* life.c */
bool skep_life_begin(struct skep_world *world); /* false: no memory */
void skep_life_churn(struct skep_world *world, uint32_t number);
void skep_life_notice(struct skep_world *world, uint32_t number);

/* arithmetic.c; with maths: none none of it does anything */
bool skep_arithmetic_init(struct skep_world *world, uint32_t threads); /* false: no memory, or no threads */
bool skep_arithmetic_device(struct skep_world *world, uint32_t worker, uint32_t stage); /* a new process's */
void skep_arithmetic_begin(struct skep_world *world, uint32_t worker, const struct skep_op *op);
void skep_arithmetic_end(
	struct skep_world *world, uint32_t worker, const struct skep_op *op, struct skep_device_result *ret);
void skep_arithmetic_forget(struct skep_world *world, uint32_t worker); /* the process is gone, and its device */

/* collective.c */
#define SKEP_WHOLE_TAG (UINT64_C(1) << 63) /* marks its flows among those of the network */
void skep_whole_ask(struct skep_world *world, uint32_t worker, const struct skep_op *op);
void skep_whole_leave(struct skep_world *world, uint32_t worker, const struct skep_op *op); /* it died or cancelled */
void skep_whole_arrive(struct skep_world *world, uint64_t tag);
void skep_whole_finish(struct skep_world *world);

/* Uses of machines and links, at the end. */
void skep_world_report(struct skep_world *world);

#endif
