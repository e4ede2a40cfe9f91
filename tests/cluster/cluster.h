/* SPDX-License-Identifier: Apache-2.0
 *
 * cluster.h - a world for tests: machines, messages, operations and faults in integer virtual time.
 *
 * The cluster performs what machines ask for and keeps the duties listed in core/skep.h; how long things take and which
 * faults happen is decided by its user (chaos.c draws them from a seed, story.c reads them from a text). The ledger
 * watches. Machines are reached through a table of functions, so that a deliberately wrong one can stand in.
 *
 * Kept true: the same setup and the same answers of the user give the same run, event for event. Simultaneous events are
 * ordered by (time, tie, number), where `tie` is 0 unless the user asks for shuffled ties.
 */
#pragma once

#include "tests/cluster/referee.h"

struct machine { /* the functions of core/skep.h */
	const char *name;
	size_t (*size)(const struct skep_plan *plan, uint32_t index);
	uint32_t (*actions_limit)(const struct skep_plan *plan);
	uint32_t (*round_capacity)(const struct skep_plan *plan);
	struct skep_node *(*init)(void *mem, const struct skep_plan *plan, uint32_t index, uint32_t epoch);
	void (*step)(struct skep_node *node, const struct skep_plan *plan, const struct skep_event *event,
		struct skep_actions *actions);
	size_t (*wanted)(const struct skep_node *node); /* NULL: it never needs more than at first */
	struct skep_node *(*move)(void *mem, const struct skep_node *node);
	skep_time (*deadline)(const struct skep_node *node);
	uint32_t (*epoch)(const struct skep_node *node);
	uint64_t (*digest)(const struct skep_node *node);
	enum skep_outcome (*outcome)(const struct skep_node *node);
	uint32_t (*kept)(
		const struct skep_node *node, const struct skep_plan *plan); /* of all stages, by the directory */
	bool (*keeps)(const struct skep_node *node);
};
extern const struct machine machine_skep, machine_naive;

struct fate { /* of one message */
	skep_time delay_ns;
	bool failed;                                           /* comes back to its sender after delay_ns */
	bool dies_with_sender;                                 /* not delivered if the sender is dead by then */
	enum { DEAD_LOSES, DEAD_RETURNS, DEAD_HANDS_ON } dead; /* receiver dead, or replaced by a new process */
	uint32_t copies;                                       /* duplicates, at most 2 */
	skep_time copy_delay_ns[2];
};

/* Duties that a saboteur can break, to show that the ledger notices. */
enum sabotage {
	SABOTAGE_NONE,
	SABOTAGE_ADD_FLIPPED,       /* one element of an accumulator changes by one bit */
	SABOTAGE_ADD_TWICE,         /* one BACKWARD is reported twice */
	SABOTAGE_STEP_TWICE,        /* one STEP is done twice */
	SABOTAGE_STATE_CORRUPT,     /* one LOAD brings wrong parameters */
	SABOTAGE_LOST_HIDDEN,       /* one LOST note is hidden */
	SABOTAGE_MEMBER_HIDDEN,     /* one MEMBER note is hidden */
	SABOTAGE_COUNTED_HIDDEN,    /* one COUNTED note is hidden */
	SABOTAGE_TENSOR_SWAPPED,    /* one FORWARD carries the tensor of another microbatch */
	SABOTAGE_STAGE_WRONG,       /* one device holds another stage than its machine believes */
	SABOTAGE_RELEASE_EATEN,     /* one RELEASE is not performed */
	SABOTAGE_RELEASE_TWICE,     /* one RELEASE is performed twice */
	SABOTAGE_STRAY_SEND,        /* one message goes to a machine that does not exist */
	SABOTAGE_MEMORY_OVERRUN,    /* one byte behind a machine's memory changes */
	SABOTAGE_MESSAGE_EATEN,     /* one message is neither delivered nor returned */
	SABOTAGE_NEWEST_READ,       /* one BACKWARD reads the newest parameters, not those of its round */
	SABOTAGE_STALENESS_WRONG,   /* one COUNTED note tells another staleness */
	SABOTAGE_MOVED_HIDDEN,      /* one MIGRATED note is hidden */
	SABOTAGE_MOVED_ELSEWHERE,   /* one MIGRATED note names another stage */
	SABOTAGE_MOVED_OFTEN,       /* the directory believes in a shorter period */
	SABOTAGE_LEFT_HIDDEN,       /* one LEFT note is hidden */
	SABOTAGE_LEFT_UNASKED,      /* one MIGRATED note becomes a LEFT note */
	SABOTAGE_LEAVE_DEAF,        /* one LEAVE reaches the directory as a heartbeat */
	SABOTAGE_LEAVER_PRAISED,    /* one worker is told that a leaver stays */
	SABOTAGE_SPAN_WIDENED,      /* one microbatch that is run again is to be counted by every stage */
	SABOTAGE_NEWS_FALSE,        /* one owner is told that a worker is gone which is not */
	SABOTAGE_KEEP_FORGOTTEN,    /* one payload that its sender wants to keep is handed over all the same */
	SABOTAGE_INPUT_SWAPPED,     /* one INPUT carries the tensor of another microbatch */
	SABOTAGE_DROP_INVENTED,     /* one worker keeps a microbatch, and is heard to have dropped it */
	SABOTAGE_DROP_UNHEARD,      /* the other way round */
	SABOTAGE_ADMITTED_HIDDEN,   /* one ADMITTED note is hidden */
	SABOTAGE_STATE_OLD,         /* one chunk of a newcomer's state is of another version than its message says */
	SABOTAGE_STATE_EARLY,       /* one newcomer is told that a chunk is of its next version */
	SABOTAGE_RESTORE_CORRUPT,   /* one RESTORE brings other parameters than were kept */
	SABOTAGE_RESTARTED_HIDDEN,  /* one STAGE_RESTARTED note is hidden */
	SABOTAGE_EMPTY_HIDDEN,      /* one STAGE_EMPTY note is hidden */
	SABOTAGE_KEPT_HIDDEN,       /* one CHECKPOINTED note is hidden */
	SABOTAGE_IMPATIENT,         /* the directory believes in a shorter wait for a join */
	SABOTAGE_WHOLE_SHORT,       /* one ALLREDUCE lacks the share of a member */
	SABOTAGE_CANCEL_DEAF,       /* one CANCEL is not heard */
	SABOTAGE_PARTNER_WRONG,     /* one FORWARD goes to a worker of another pipeline */
	SABOTAGE_ORDER_SWAPPED,     /* workers of GPipe believe in a swarm, all others in GPipe */
	SABOTAGE_TURN_DEAF,         /* one DRAIN reaches its worker as a heartbeat */
	SABOTAGE_TURN_INVENTED,     /* one GRANT becomes a DRAIN for the last worker of its pipeline */
	SABOTAGE_VSTAGE_WRONG,      /* one FORWARD names another virtual stage of its stage */
	SABOTAGE_RECOMPUTE_SPARED,  /* one BACKWARD believes in a RECOMPUTE that was not done for it */
	SABOTAGE_VERSION_LOST,      /* one STEP also overwrites the oldest of the other versions that are kept */
	SABOTAGE_FOLD_EATEN,        /* one ADD_TO_RESULT adds nothing */
	SABOTAGE_FOLD_TWICE,        /* one ADD_TO_RESULT adds what came in twice */
	SABOTAGE_ROSTER_SWAPPED,    /* one ROSTER names two members the other way round */
	SABOTAGE_EAGER_FORCED,      /* one promised REDUCE reaches its worker as an ordinary one */
	SABOTAGE_EAGER_INVENTED,    /* one ordinary REDUCE is sent as a promised one */
	SABOTAGE_PART_EATEN,        /* one part of a BACKWARD adds nothing */
	SABOTAGE_BACK_DEAF,         /* one BARRIER_LIFTED reaches its worker as a heartbeat */
	SABOTAGE_BACK_INVENTED,     /* one FORWARDS_DONE comes back to its sender as a BARRIER_LIFTED */
	SABOTAGE_INNER_EATEN,       /* one INNER_STEP is made on another gradient than the accumulator holds */
	SABOTAGE_PSEUDO_EATEN,      /* one PSEUDO_GRAD leaves the accumulator empty */
	SABOTAGE_WEIGHT_WRONG,      /* one PSEUDO_GRAD weighs one microbatch too many */
	SABOTAGE_VALIDATED_FALSE,   /* one VALIDATED tells another loss */
	SABOTAGE_VALIDATED_HIDDEN,  /* one VALIDATED note is hidden */
	SABOTAGE_VALIDATED_OLD,     /* one microbatch of a validation is judged on the parameters of one step earlier */
	SABOTAGE_VALIDATED_COUNTED, /* one microbatch of a validation also goes backwards */
	SABOTAGE_RERUN_DIFFERS,     /* the second run of the seed is not quite the first */
	SABOTAGE_PART_MISCOUNTED,   /* a part says that one more microbatch is in it */
	SABOTAGE_COLLECT_EATEN,     /* a part is not beside the others */
	SABOTAGE_NORM_WRONG,        /* one NORM tells twice the squares */
	SABOTAGE_FAULT_HIDDEN,      /* one FORWARD whose result is not finite is said to be good */
	SABOTAGE_KEEP_DEAF,         /* one CHECKPOINT reaches its worker as a heartbeat */
	SABOTAGE_MERGED_HIDDEN,     /* one OUTER_UPDATED note is not written */
	SABOTAGE_SETTLE_DEAF,       /* one CLOSE_ROUND reaches its worker as a heartbeat */
	SABOTAGE_KEEP_HURRIED,      /* async: one CHECKPOINT names no merges that are to be made first */
	SABOTAGE_VALIDATED_INNER,   /* async: one microbatch of a validation is judged on inner parameters */
	SABOTAGE_CANDIDATE_WRONG,   /* another candidate is said to be kept */
	SABOTAGE_CANDIDATES_MIXED,  /* one FORWARD goes to a worker of another candidate */
	SABOTAGE_CANDIDATE_STAYS,   /* one MIGRATED note is hidden when a candidate is kept */
	SABOTAGE_SPARE_HASTY,       /* the directory takes those who stand by for spares that come in at once */
	SABOTAGE_TIE_EATEN,         /* one device forgets what the other stage has summed of a tied table */
	SABOTAGE_TIE_PARTED, /* one device steps its copy of a tied table otherwise, alone in its stage or as the first */
	SABOTAGE_DISCARD_EATEN,     /* one DISCARD leaves the accumulator as it is */
	SABOTAGE_VOID_HIDDEN,       /* one ROUND_VOIDED note is hidden */
	SABOTAGE_FROZEN_STEPPED,    /* one STEP changes an element that is not trained */
	SABOTAGE_PARAMETER_FLIPPED, /* one STEP is said to have made other parameters than it has */
	SABOTAGE_SCALED_FALSE,      /* one SCALED note says one machine more */
	SABOTAGE_RETURNED_FALSE,    /* one RETURNED note names another worker */
	SABOTAGE_RETURN_DEAF,       /* one worker that is told to leave hears a heartbeat */
	SABOTAGE_SHARD_SWAPPED,     /* one STEP steps the shard of another member */
	SABOTAGE_SHARD_STALE,       /* one STORE_SHARD leaves the parameters as they were */
	SABOTAGE_SHARD_EATEN,       /* one STORE_SHARD stores nothing, and nothing is known of it */
	SABOTAGE_SHARD_HIDDEN,      /* one SHARD_LOST note is hidden */
	SABOTAGE_RESUMED_HIDDEN,    /* one RESUMED note is hidden */
	SABOTAGE_RESUMED_EARLY,     /* all begin again with a version older than the newest that is kept */
	SABOTAGE_RESUMED_STALE,     /* one worker begins again with other parameters than were kept */
	SABOTAGE_HELD_FORGOTTEN, /* all begin again with what was kept, though workers hold a newer version of all stages */
	SABOTAGES
};

struct sabotage_kind {
	const char *name, *invariant; /* that is to notice it */
};
extern const struct sabotage_kind sabotage_kind[SABOTAGES];

struct trace { /* one thing that happened */
	skep_time now;
	enum { TRACE_SEND, TRACE_ARRIVE, TRACE_FAIL, TRACE_LOST, TRACE_RUN, TRACE_DONE, TRACE_NOTE, TRACE_FAULT } what;
	struct skep_peer who;
	const struct skep_message *message; /* SEND, ARRIVE, FAIL, LOST */
	const struct skep_op *op;           /* RUN, DONE */
	const struct skep_note *note;       /* NOTE */
	const char *fault;                  /* FAULT */
};

struct setup {
	const struct machine *machine;
	const struct skep_plan *plan;
	void *context; /* of the functions below */
	struct fate (*fate)(void *context, skep_time now, const struct skep_message *message);
	skep_time (*op_time)(void *context, skep_time now, uint32_t worker, const struct skep_op *op);
	skep_time (*lateness)(void *context, skep_time now, uint32_t machine); /* of a timer; NULL: never late */
	/* enum skep_fault that the end of an operation brings; NULL: never one */
	uint8_t (*ails)(void *context, skep_time now, const struct skep_op *op);
	struct skep_message (*carry)(const struct skep_message *message); /* what arrives of it; NULL: all of it */
	void (*trace)(void *trace_context, const struct trace *trace);    /* NULL: silent */
	void *trace_context;
	uint64_t seed;          /* of the cluster's own draws: ties, moves, padding */
	bool shuffle_ties;      /* simultaneous events in random order */
	bool move_nodes;        /* copy machines to other addresses at random */
	uint8_t padding;        /* what memory holds before a machine is made: must not matter */
	int64_t loss_bias_nano; /* added to every loss: must not matter to the digest */
	uint32_t other;        /* bits: of the first 32 workers, those of another arithmetic, whose parameters differ */
	uint32_t view;         /* a worker may know only so many of the next stage; 0: all */
	skep_time calm_ns;     /* from here on every worker that is out has to get in again */
	skep_time end_ns;      /* progress is demanded: the run must be over by then */
	uint64_t events_limit; /* and within so many events */
	enum sabotage sabotage; /* and after how many opportunities, from 1 */
	uint32_t sabotage_at;
};

struct result {
	enum skep_outcome outcome;
	uint64_t digest, events;
	struct ledger_totals totals;
	uint32_t capacity;
	skep_time ended_ns;
	uint64_t outages, held, kills, restarts, fences, joins, moves, leaves, kept, restored, voids, failed, copies,
		tensors;
};

struct cluster;
struct cluster *cluster_create(void);
void cluster_destroy(struct cluster *cluster);

/* A run: begin, schedule faults, run. `setup` and its plan stay the caller's and must outlive the run. */
void cluster_begin(struct cluster *cluster, const struct setup *setup, struct verdict *verdict);
void cluster_start_at(struct cluster *cluster, uint32_t machine, skep_time at); /* default 0 */
/* `gentle`: not if no other process holds the worker's stage at that moment */
void cluster_kill(struct cluster *cluster, uint32_t worker, skep_time at, bool gentle);
void cluster_flip(struct cluster *cluster, uint32_t worker, skep_time at);    /* a bit of its parameters */
void cluster_restart(struct cluster *cluster, uint32_t worker, skep_time at); /* nothing if it is alive then */
void cluster_suspect(struct cluster *cluster, uint32_t to, uint32_t about, skep_time at, bool gentle);
void cluster_pause(struct cluster *cluster, uint32_t machine, skep_time at, skep_time until);
/* Not in a run with candidates, in shards, or that asks for machines. */
void cluster_lose_directory(struct cluster *cluster, skep_time at, skep_time back_at, bool with_held);
/* Told at `at`, killed at `leave_at`; `gentle` is about the end. */
void cluster_notice(struct cluster *cluster, uint32_t worker, skep_time at, skep_time leave_at, bool gentle);
struct result cluster_run(struct cluster *cluster);
