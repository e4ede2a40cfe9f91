/* SPDX-License-Identifier: Apache-2.0
 *
 * world.h - the state of a simulated run, shared by engine.c (time) and world.c (what actions mean).
 */
#pragma once

#include "base/diag.h"
#include "scenarios/plan/prices.h"
#include "sim/cores.h"
#include "sim/device_threads.h"
#include "sim/queue.h"
#include "sim/sim.h"
#include "sim/traffic.h"
#include "topologies/network/network.h"

enum skep_sim_event {            /* kinds of queue entries, and what their index means */
	SKEP_SIM_EVENT_START,    /* a process */
	SKEP_SIM_EVENT_TIMER,    /* a process */
	SKEP_SIM_EVENT_OP_END,   /* process * SKEP_LANES + lane */
	SKEP_SIM_EVENT_MESSAGE,  /* an in-flight message */
	SKEP_SIM_EVENT_CHURN,    /* an event of the scenario's trace */
	SKEP_SIM_EVENT_NOTICE,   /* one of the world's notices */
	SKEP_SIM_EVENT_DETECTED, /* a process that has died, of which the directory hears now */
	SKEP_SIM_EVENT_BOOTED,   /* a machine that was asked for: its process begins */
	SKEP_SIM_EVENT_EGRESS,   /* the directory hears what traffic has cost */
	SKEP_SIM_EVENT_OUTAGE,   /* one of the scenario's losses of the directory */
	SKEP_SIM_EVENT_RESUMED,  /* the directory is there again, and all begin anew */
};

struct skep_inflight_message { /* a message under way; free: next is the next free one */
	struct skep_message message;
	uint64_t sequence;
	uint32_t life; /* the sender's skep_process.life when it sent this */
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
	uint64_t end_sequence; /* of the queue entry that ends the first job; entries with another one are void */
	skep_time busy_ns;     /* time that jobs have run in this lane */
};

struct skep_process { /* a machine and its process: a worker or, last, the directory */
	struct skep_node *node;
	void *moved;                    /* memory that the machine was relocated to; NULL: it is still in node_memory */
	struct skep_device *device;     /* NULL: no arithmetic */
	struct skep_expert_use experts; /* of all its lives */
	skep_time armed;                /* the earliest TIMER entry in the queue that still counts */
	skep_time started_ns;           /* when this incarnation started */
	skep_time stopped_ns;           /* when it stopped, SKEP_TIME_NEVER while it runs */
	skep_time alive_ns;             /* time alive in earlier incarnations */
	uint32_t life;                  /* number of earlier incarnations */
	uint32_t lost_epoch;            /* epoch of the incarnation that died last */
	uint64_t lost_sequence; /* of the queue entry that tells the directory so; entries with another one are void */
	bool dead;              /* it has ended, and has not started again */
	bool knocks;   /* the directory is lost, and its machine is there, and waits for that; dead, but for: */
	bool orphaned; /* it is to keep what it holds first */
	/* What it then has: a version, and one that it kept before; 0: none; of which part of the state. */
	uint32_t held, held_before, held_of;
	uint64_t digest; /* digest of earlier incarnations */
	uint64_t events; /* steps of the state machine in all incarnations */
	struct skep_lane_queue lane[SKEP_LANES];
};

/* Of each part of the state the newest checkpoints, as in a folder, and what is kept when the directory is lost. */
#define SKEP_WORLD_KEPT (SKEP_CHECKPOINTS_KEPT + 2)

struct skep_kept { /* a checkpoint in memory, with real arithmetic */
	uint32_t version;
	void *state;
};

struct skep_fused_rank { /* a member of a collective, and its link to the next */
	uint32_t worker, next;
	bool here;          /* the member has asked for the reduction and waits for its end */
	uint32_t flowing;   /* flows to the next rank that have not arrived */
	skep_time asked_ns; /* when the member asked */
	skep_time busy_ns;  /* how long the link was busy, once its flows have arrived */
};

struct skep_fused { /* a collective as flows */
	uint32_t stage, round, attempt, number;
	uint32_t size;                /* members; 0: free */
	uint64_t first, elements;     /* the range of the vector that is summed */
	uint64_t chunks_bytes;        /* of one message with each segment of each chunk, headers included */
	uint32_t segments;            /* of each chunk */
	uint32_t asked, arrived;      /* members that have asked; links whose flows have arrived */
	bool left;                    /* a member has left, so the reduction will not end */
	struct skep_fused_rank *rank; /* [size] */
};

struct skep_scaling_machine {   /* with cluster.scale: one that may be asked for */
	bool there;             /* there is one to be had */
	bool had;               /* it boots, or its process is there */
	bool known;             /* it has been had before: files are there */
	uint64_t boot_sequence; /* of the queue entry that ends its boot; entries with another one are void */
};

struct skep_scaling_world {
	struct skep_scaling_machine *machine; /* [workers] */
	uint32_t wanted[SKEP_SCALE_KINDS_MAX], had[SKEP_SCALE_KINDS_MAX];
};

struct skep_world {
	const struct skep_scenario *scenario;
	const struct skep_plan *plan; /* own_plan */
	struct skep_plan own_plan;    /* skep_plan_simulated() */
	const struct skep_recorder *recorder;
	const struct skep_sim_watch *watch; /* NULL: none is told how things hang together */
	struct skep_network *network;
	struct skep_cores *cores; /* NULL: no host says how many it has */
	struct skep_queue queue;
	struct skep_traffic_table traffic;
	struct skep_egress_bill bill; /* of a run that ends by money */
	struct skep_event egress;     /* what the directory is to be told of it, if it is */
	bool tells_egress;
	skep_time now;
	uint64_t sequence;                          /* the number that the next cause draws */
	uint64_t resumed_sequence;                  /* what was sent before this is of a directory that was lost */
	bool directory_lost;                        /* and not there again yet */
	skep_time lost_ns;                          /* when it was last */
	uint64_t handles;                           /* buffer handles made so far, when no arithmetic is done */
	uint32_t running;                           /* processes that have not stopped */
	bool looks_ahead;                           /* prefetch: the machines do not fit into the caches */
	struct skep_device_threads *device_threads; /* does the arithmetic; NULL: there is none */
	bool light_passes,
		light_steps; /* too little arithmetic in a pass, or in a step or reduction, to be handed over */
	uint32_t rounds_closed;
	bool no_memory;         /* ends the run */
	struct skep_diag error; /* with no_memory: the operation that could not be done; clear: memory ran out */
	struct skep_kept *kept; /* [skep_plan_parts()][SKEP_WORLD_KEPT], the oldest is overwritten */
	struct skep_checkpoint_folder folder; /* what it goes on with; with a number of its own also what it keeps */

	struct skep_process *process; /* [workers + 1] */
	void *node_memory;
	struct skep_actions actions;
	struct skep_inflight_message *flight;
	struct skep_job *job;
	uint32_t flight_capacity, free_flight, job_capacity, free_job;
	struct skep_notice *notice; /* by time */
	uint32_t notices;
	struct skep_scaling_world *scaling; /* NULL: no machines are asked for */
	struct skep_fused *fused;
	uint32_t fused_made;
	uint32_t fused_slots; /* slots, some of them free */
};

/* False: no memory (or, with real arithmetic, no device). Either way skep_world_finish() frees what there is. */
bool skep_world_init(struct skep_world *world, const struct skep_scenario *scenario, uint32_t threads,
	const struct skep_recorder *recorder);
void skep_world_finish(struct skep_world *world);

/* Handles one entry of the queue at its time, which is now: steps a machine and performs its actions. */
void skep_world_handle(struct skep_world *world, const struct skep_queue_entry *entry);

/* Messages that a worker, or the directory, has sent, of so many bytes together, which it may have to pay for. */
void skep_world_count(struct skep_world *world, uint32_t source, uint32_t destination, uint8_t traffic,
	uint64_t messages, uint64_t bytes);

/* The directory hears what traffic has cost (egress.c). */
void skep_egress_tell(struct skep_world *world);

/* Of what will happen soon, SKEP_WORLD_ROWS rows of a heap ahead or fewer: asks the caches for what it will touch, each row
 * for what the row before it has named. */
#define SKEP_WORLD_ROWS 4u
#define SKEP_WORLD_CACHE_BYTES                                                                                         \
	((size_t)24 << 20) /* of machines; where they are fewer, caches have them without being asked */
void skep_world_prefetch(const struct skep_world *world, const struct skep_queue_entry *entry, uint32_t row);
void skep_world_prefetch_message(const struct skep_world *world, uint32_t flight, uint32_t row);

/* A message has crossed the network: it joins the queue, now; or its receiver takes it at once. */
void skep_world_arrive(struct skep_world *world, uint32_t flight);
void skep_world_deliver(struct skep_world *world, uint32_t flight);

/* Tells which operation of the worker's host ends next, after operations have begun or ended on its shared cores. */
void skep_world_share_cores(struct skep_world *world, uint32_t worker);

/* Worker's ALLREDUCE, first in its lane, ends then. */
void skep_world_end_fused(struct skep_world *world, uint32_t worker, skep_time time);

void skep_world_schedule(
	struct skep_world *world, skep_time time, uint64_t sequence, enum skep_sim_event kind, uint32_t index);
/* The machine is told, now, and what it asks for is done. */
void skep_world_step(struct skep_world *world, uint32_t index, struct skep_event *event);
/* The ALLREDUCE that is first in the worker's lane and has no end yet, or NULL. */
const struct skep_op *skep_world_fused(const struct skep_world *world, uint32_t worker);

/* preemption.c */
bool skep_preemption_begin(struct skep_world *world); /* false: no memory */
void skep_preemption_churn(struct skep_world *world, uint32_t number);
void skep_preemption_notice(struct skep_world *world, uint32_t number);
/* By the directory: that this worker has died. */
void skep_preemption_detected(struct skep_world *world, const struct skep_queue_entry *entry);
void skep_preemption_expect_detection(struct skep_world *world, uint32_t index, skep_time at_ns);
/* The process does nothing more, and what it held, ran and had under way is gone. Its machine's life goes on. */
void skep_preemption_halt(struct skep_world *world, uint32_t index);
/* The process ends, or another one begins, now; heard_at_ns: when the directory is told, SKEP_TIME_NEVER: it is not. */
void skep_preemption_end(struct skep_world *world, uint32_t index, skep_time heard_at_ns);
void skep_preemption_start(struct skep_world *world, uint32_t index);

/* outage.c */
void skep_outage_expect(struct skep_world *world); /* the next loss of the directory, if there is one */
void skep_outage_event(struct skep_world *world, const struct skep_queue_entry *entry); /* it is lost, or there again */
/* While the directory is lost an operation of a worker has ended. */
void skep_outage_op_ended(struct skep_world *world, uint32_t worker, const struct skep_op *op, bool well);
/* While the directory is lost, the trace takes a machine away, or brings it. */
void skep_outage_churn(struct skep_world *world, const struct skep_churn_event *event);

/* scaling.c; without world->scaling there is nothing to do, and nothing but the first and the last two are called */
bool skep_scaling_begin(struct skep_world *world);                                       /* false: no memory */
void skep_scaling_want(struct skep_world *world, uint32_t kind, uint32_t machines);      /* the directory says so */
void skep_scaling_churn(struct skep_world *world, const struct skep_churn_event *event); /* the trace does */
void skep_scaling_booted(struct skep_world *world, const struct skep_queue_entry *entry);
void skep_scaling_stopped(struct skep_world *world, uint32_t index); /* a process has, by itself */
void skep_scaling_finish(struct skep_world *world);

/* arithmetic.c; with arithmetic: none none of it does anything */
bool skep_arithmetic_init(struct skep_world *world, uint32_t threads); /* false: no memory, or no threads */
bool skep_arithmetic_device(struct skep_world *world, uint32_t worker, uint32_t stage); /* a new process's */
void skep_arithmetic_begin(struct skep_world *world, uint32_t worker, const struct skep_op *op);
void skep_arithmetic_end(
	struct skep_world *world, uint32_t worker, const struct skep_op *op, struct skep_device_result *ret);
void skep_arithmetic_forget(struct skep_world *world, uint32_t worker); /* the process is gone, and its device */

/* collective.c */
#define SKEP_FUSED_TAG (UINT64_C(1) << 63) /* marks its flows among those of the network */
void skep_fused_join(struct skep_world *world, uint32_t worker, const struct skep_op *op);
void skep_fused_leave(struct skep_world *world, uint32_t worker, const struct skep_op *op); /* it died or cancelled */
void skep_fused_arrive(struct skep_world *world, uint64_t tag);
void skep_fused_finish(struct skep_world *world);

/* report.c: what a machine says, to the recorder; and uses of machines and links, at the end. */
void skep_world_note(struct skep_world *world, uint32_t index, const struct skep_note *note);
void skep_world_report(struct skep_world *world);
