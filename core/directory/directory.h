/* SPDX-License-Identifier: Apache-2.0
 *
 * directory.h - the state of the directory's machine, shared by the files that make it up:
 *
 *   directory.c  dispatch, the roster: who is ready, is fenced, who is told
 *   admission.c  who is let in to a stage, and from whom it gets the state
 *   dealing.c    which owner the next microbatch of a round goes to
 *   rounds.c     grants, what has come back, what the members of a reduction have told, commit, what was lost
 *   attempt.c    one attempt of a stage to sum: who is a member, in which group, what each is told; or of all, to say what they
 *                have counted
 *   checkpoints.c       who keeps a stage's state, and what is kept in the end
 *   restore.c    a stage that has lost its last worker: waits, is restored, from a checkpoint if there is one
 *   replicas.c   the workers of a stage that should be equal, and are not
 *   boundary.c       what changes between two rounds: who gave notice goes, one worker may move to another stage
 *
 * When a round opens, how rounds overlap, when one is reduced and what that means to newcomers is the method's to say
 * (methods/method.h): these files offer what methods are put together from. What fixed pipelines add stands in schedule/fixed.c,
 * several candidates beside each other in methods/candidates.c.
 *
 * A round is open (microbatches are granted and finish) or is being reduced (every stage sums its gradients), or with some
 * methods both. Grants, owners and what is outstanding are of the open round; attempts, members, tallies and counters of the
 * round that is being reduced.
 */
#pragma once

#include <assert.h>

#include "core/machine.h"
#include "core/methods/candidates.h"
#include "core/route/route.h"
#include "core/schedule/pipelines.h"

enum standing {
	STANDING_ABSENT,   /* this epoch is fenced, or there never was one */
	STANDING_ASSIGNED, /* has a stage, and has not said yet that its device has made room for it */
	STANDING_ENTERED,  /* it has; no worker holds the stage's state, and another one is to restore it */
	STANDING_JOINING, /* downloads its stage's state; takes part in reductions from round `since` on, without work */
	STANDING_READY,   /* the same, and it has all of the state */
	STANDING_SERVING,
};

struct pipeline {                  /* fixed pipelines alone */
	uint32_t first, last;      /* workers: who issues its microbatches, and who turns them round */
	uint32_t serving, leaving; /* of its workers */
	/* In the open round: DRAIN has been sent to those that may wait. Where stages are uneven pipeline 0 says it of all. */
	bool drained;
	bool awaited; /* in the open round: before its barrier */
	/* Without a flush: newest round + 1 that DRAIN has named, 0: none; said like `drained`. */
	uint32_t given_up;
};

struct row { /* one worker */
	uint32_t epoch, stage;
	uint32_t pipeline; /* fixed pipelines: the first of which it is a part, for ever; and ... */
	uint32_t replicas; /* ... workers of its stage, so every replicas-th one from there on */
	uint32_t dealt; /* the same, of an owner: the pipeline that its next microbatch takes, if that one can work */
	uint8_t standing;
	bool announced;  /* SERVING: those who may choose it have been told */
	bool has_joined; /* started_ns and join_epoch are of its newest JOIN */
	bool leaving;    /* it gave notice: no new work, and it goes at the round boundary */
	bool returned;   /* it was told to, since its machine is given back */
	uint32_t join_epoch, assigned;
	uint32_t since;       /* JOINING and more: member of the reductions from this round on */
	uint64_t queue_milli; /* mean of the reports since the last decision that had any */
	uint64_t queue_sum;
	skep_time needed_ns; /* for a microbatch in this stage, by its newest report; 0: not known */
	uint32_t reports;    /* since the last decision */
	struct skep_peer source;
	skep_time started_ns, heard_ns;
	uint64_t paid_ms;     /* with a budget: until when its machine is in `spent` */
	uint32_t outstanding; /* granted microbatches that have not come back */
	uint32_t to_grant;    /* while a round opens: of its share, not yet granted */
	skep_time
		pass_ns; /* dealing.c: that a microbatch takes its device, the mean of what it has told; 0: not known */
	uint64_t rate;   /* 1 / pass_ns, or as is expected of it */
	skep_time turn_ns;                  /* when it was done with one last, or was dealt the first */
	uint32_t in_flight;                 /* that it may keep in the pipeline; 0: as many as the plan says */
	uint32_t parameters, parameters_of; /* what its tally of that round said of its parameters */
	uint32_t unequal;                   /* how often it was fenced for them */
	uint32_t answered;    /* newest version of which it has said that its state is kept, or could not be */
	bool member, tallied; /* of its stage's current attempt */
	bool summing;         /* in that: its group's sum is under way */
	uint32_t attempt;     /* of its group, which sums; no two groups of a stage have the same */
	/* The groups in which the stage sums a round are rings of workers, some of which may be members no more. SKEP_NO_INDEX:
	 * not drawn yet. */
	uint32_t next_of_group;
	uint32_t tally_count, tally_heard;
	int64_t loss_nano_sum;
};

struct stage_state {
	uint32_t serving;          /* workers */
	uint32_t leaving;          /* of these, those that gave notice: they work on only if no other worker does */
	uint32_t attempt, pending; /* of its newest group; messages of all of them, before all is told */
	bool committed;
	bool waiting; /* for a worker that restores it: none holds its state */
	skep_time waiting_since_ns;
	struct skep_peer restorer;            /* waiting: the worker that restores it; epoch 0: none */
	uint32_t checkpoint;                  /* newest version that is kept, 0: none */
	uint32_t kept[SKEP_CHECKPOINTS_KEPT]; /* the newest ones, the last one first: older ones are removed; 0: none */
	uint32_t checkpoint_failed;           /* newest version that could not be, 0: none */
	struct skep_peer keeper;              /* who was told last to keep a state, and ... */
	uint32_t keeps;                       /* ... of which version; 0: none was */
	uint32_t behind;                      /* without a flush: rounds that it has committed; async: outer updates */
	uint32_t began;                       /* workers at the start */
	uint32_t staying;                     /* of those that serve; while machines are given back (scale/scaling.c) */
	skep_time
		short_since_ns; /* that fewer of them hold its state; SKEP_TIME_NEVER: so many do (SKEP_ON_LOSS_WAIT) */
};

enum phase {
	PHASE_OPEN,       /* round `round` is open; the one before may still be reduced */
	PHASE_COUNTING,   /* members of round `round` tell what they have counted, or that they have thrown it away */
	PHASE_REDUCING,   /* round `round` is being reduced, none is open */
	PHASE_VALIDATING, /* none is open or reduced: what round `round` will begin with is judged */
	PHASE_STOPPED
};

struct reduced { /* the round whose gradients are summed */
	bool on;
	uint32_t round, issued;
	uint32_t expected; /* microbatches that each virtual stage will have counted; 0: that is not certain */
};

struct judged {         /* a microbatch of a validation (validation.c) */
	uint32_t owner; /* the worker that has it, SKEP_NO_INDEX: none */
	uint8_t tries;  /* grants, so far */
	bool resolved;  /* its loss is known, or it is given up */
};

struct async_member {          /* async: one worker, since it serves (async.c) */
	bool ready;            /* all of its merge `outer_updated` + 1 is told */
	bool member, awaited;  /* of the merge of its stage; it has not said yet that it has the part */
	bool in;               /* what it has told is in that merge */
	bool asked;            /* CLOSE_ROUND was sent for the round that is being closed */
	uint32_t merged;       /* outer updates of it that are final */
	uint32_t heard, count; /* microbatches of the next one */
	uint32_t resolved;     /* of rounds before this one nothing is left there when ... */
	uint32_t resolved_by;  /* ... so many of its outer updates are final */
	uint64_t came;         /* ready: in which order */
	int64_t loss_nano[2];  /* of the next one, by round parity */
};

struct merging { /* async: one stage; outer updates that are final are its `behind` */
	bool on; /* there is one, of those that are `in` it; in a chain of one worker: */
	uint32_t by;
	uint32_t attempt, pending;
	int64_t loss_nano[2]; /* of what is merged, by round parity */
};

struct validation {
	bool last;            /* no round follows */
	bool beside;          /* async: it is under way beside round `round`, which stays open until it is over, ... */
	uint32_t outstanding; /* ... and so many of what is outstanding are its */
	uint32_t resolved, heard; /* microbatches; heard: losses that are in the sum */
	uint32_t from;            /* all before it are granted or done */
	int64_t loss_nano_sum;
	size_t judged_at;
};

struct open_rounds { /* without a flush: what is known of each open round, by round modulo window (no_flush.c) */
	uint32_t window;
	size_t round_at, sum_at, part_at, counter_at, share_at;
};

struct candidacy { /* as one of several candidates (candidates.c) */
	bool on;   /* the trial is not over */
	bool held; /* its round has closed, and it waits for the others */
	bool fell; /* it is out: phase STOPPED, and no worker was told */
	uint32_t candidate;
	uint32_t beside;            /* microbatches of the open round by others, which are out since */
	struct skep_fault_at fault; /* fell: as CANDIDATE_DROPPED says */
	uint32_t stage;             /* fell: which was empty */
	uint32_t heard;             /* the round that has the newest loss, from 1 */
	struct skep_candidate_points points;
};

/* Without a flush `round` is the next one to open, and rounds `closed` to `round` - 1 are open. */
struct directory {
	struct skep_node node;
	uint8_t phase;
	bool cut;      /* no worker can do the rest of the open round */
	bool intact;   /* no worker is gone since it opened */
	uint32_t pass; /* of the open round: 0, or the attempt that found something missing */
	/* Where to go on looking for what is missing; void: the next one to be granted again, and the one after the last. */
	uint32_t rerun_microbatch, rerun_end;
	bool discards; /* members are told to throw away what they have counted of the open round */
	bool ending; /* all rounds are closed, and a stage waits, or its last state is not kept yet: a run is not done while
	                what it has learnt is lost */
	bool diverged; /* the run stops for what is not finite */
	uint32_t round, issued, finished, outstanding;
	bool full;       /* no owner was to be dealt another one, and nothing has happened since that may change that */
	uint64_t rate;   /* dealing.c: of all owners together, and ... */
	uint32_t owners; /* ... how many these are */
	uint32_t turn;   /* with plan->inner.fixed: the next microbatch is of the first owner from this one on */
	uint32_t closed; /* rounds */
	uint64_t spent;  /* with a budget, of all machines: ends.h */
	uint64_t egress_microusd; /* with a budget: of all traffic, as the world has told last */
	struct reduced reduced;
	bool eager;              /* members were told of the open round's reduction, `reduced`, which is not on yet */
	uint32_t void_attempt;   /* of the open round: an eager one that is void; 0: none */
	int64_t loss_nano;       /* of the newest round that has one, else INT64_MAX */
	uint32_t capacity;       /* skep_round_capacity() */
	uint32_t counted_rounds; /* of which it is known at a time who counted what: 1 or 2 */
	uint32_t inflight_capacity; /* of a worker */
	uint32_t unannounced;
	skep_time rebalance_due_ns;
	struct skep_peer mover; /* the last one, in its new incarnation */
	skep_time scan_ns;      /* when to look for silent workers */
	/* Fixed pipelines: the number of all; of those whose every place is taken; of these, of those that no worker
	 * will leave. */
	uint32_t pipelines, whole, staying; /* pipelines: 0 in a swarm */
	bool uneven;                        /* skep_plan_uneven() */
	uint32_t owner_share;               /* fixed pipelines: microbatches of an owner in a round */
	uint32_t workers, stages;           /* of the plan */
	uint32_t awaited;          /* that have not gone forwards with all of their share, while there is a barrier */
	skep_time broken_since_ns; /* no pipeline can be whole without a join; SKEP_TIME_NEVER: one can */
	size_t pipeline_at;
	struct open_rounds open_rounds;
	struct validation validation;
	size_t square_at; /* clip: [virtual stages], clip.c */
	uint64_t square;  /* clip: of the norm, in the commits under way */
	uint32_t tied[2]; /* tied embeddings: what the first and the last virtual stage have counted */
	size_t async_member_at, merging_at;
	uint64_t merges; /* async: outer updates that were announced */
	bool forced;     /* async: the round that is being closed is wanted now */
	struct candidacy candidacy;
	size_t scaling_at;
	size_t row_at, stage_at, owner_at, counter_at, order_at, load_at, stage_load_at;
};

/* A worker comes to serve step by step, and may be gone from any of them. */
static inline void skep_directory_stand(struct row *row, enum standing to)
{
	assert(to == STANDING_ABSENT || to == row->standing + 1u);
	row->standing = (uint8_t)to;
}

void skep_directory_enter(struct directory *d, enum phase to); /* a phase that may follow the one it is in */

static inline struct row *directory_row(struct directory *d, uint32_t worker)
{
	assert(worker < d->workers);
	return (struct row *)skep_at(d, d->row_at) + worker;
}

static inline struct stage_state *directory_stage(struct directory *d, uint32_t stage)
{
	assert(stage < d->stages);
	return (struct stage_state *)skep_at(d, d->stage_at) + stage;
}

static inline struct pipeline *directory_pipeline(struct directory *d, uint32_t pipeline)
{
	assert(pipeline < d->pipelines);
	return (struct pipeline *)skep_at(d, d->pipeline_at) + pipeline;
}

static inline struct skep_peer directory_worker(struct directory *d, uint32_t worker)
{
	return (struct skep_peer){worker, directory_row(d, worker)->epoch};
}

static inline bool directory_has_stage(const struct row *row)
{
	return row->standing >= STANDING_ASSIGNED;
}

/* directory.c */
void skep_directory_send_peer(
	struct directory *d, struct step *step, uint32_t to, struct skep_peer who, uint32_t stage, bool alive);
void skep_directory_send_fenced(struct directory *d, struct step *step, struct skep_peer fenced);
void skep_directory_fence(struct directory *d, struct step *step, uint32_t worker);
void skep_directory_assign(struct directory *d, struct step *step, uint32_t worker, uint32_t stage);
/* It is a member from now on; source.index SKEP_NO_INDEX: the restorer. */
void skep_directory_admit(struct directory *d, struct step *step, uint32_t worker, struct skep_peer source);
void skep_directory_admit_from_any(
	struct directory *d, struct step *step, uint32_t worker);        /* of those that hold the state */
void skep_directory_new_sources(struct directory *d, struct step *step); /* for newcomers whose source is gone */
void skep_directory_serve(struct directory *d, uint32_t worker);         /* a READY worker serves from now on */
void skep_directory_stop(struct directory *d, struct step *step, bool ok);

/* A serving worker comes, goes or gives notice: the counts of its stage and pipeline. */
void skep_directory_count_in(struct directory *d, const struct row *row);
void skep_directory_count_out(struct directory *d, const struct row *row);

/* Ends the epoch of a worker that holds nothing, and tells its neighbours. */
void skep_directory_retire(struct directory *d, struct step *step, uint32_t worker);

/* replicas.c: the worker that is to be fenced before this TALLY is taken in, since its parameters are not those of its stage;
 * SKEP_NO_INDEX: none */
uint32_t skep_replicas_odd_one(struct directory *d, struct step *step, const struct skep_message *message);

/* restore.c: a stage that has lost its last worker */
void skep_restore_stage(struct directory *d, struct step *step, uint32_t stage); /* its last serving worker is gone */
void skep_restore_entered(
	struct directory *d, struct step *step, uint32_t stage); /* chooses a restorer, if one is wanted */
void skep_restore_ready(struct directory *d, struct step *step, uint32_t worker); /* it holds all of the state */
void skep_restore_gone(struct directory *d, struct step *step, struct skep_peer gone, uint32_t stage);
void skep_restore_timer(struct directory *d, struct step *step);
/* The stage that has waited longest, SKEP_NO_STAGE: none waits. */
uint32_t skep_restore_waiting(struct directory *d, const struct skep_plan *plan);
/* The stage that has lacked a worker longest, if one has for as long as the plan says (wait.c); SKEP_NO_STAGE: none has. */
uint32_t skep_restore_short(struct directory *d, const struct skep_plan *plan);

/* checkpoints.c */
void skep_checkpoints_begin(
	struct directory *d, const struct skep_plan *plan); /* with what is kept of the first round */
uint32_t skep_checkpoints_keeper(struct directory *d, struct step *step, uint32_t stage); /* SKEP_NO_INDEX: none */
bool skep_checkpoints_no_flush(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t worker);
void skep_checkpoints_heard(struct directory *d, struct step *step, const struct skep_message *message);
bool skep_checkpoints_last(struct directory *d, struct step *step); /* true if it is kept; else a worker is asked to */
void skep_checkpoints_async(
	struct directory *d, struct step *step, uint32_t stage); /* async: it commits a round; is that kept? */

/* fixed.c: all of it for fixed pipelines alone */
void skep_fixed_init(struct directory *d, const struct skep_plan *plan);
void skep_fixed_opens(struct directory *d);                    /* a round does: before anything of it is granted */
bool skep_fixed_works(struct directory *d, uint32_t pipeline); /* it is granted work */
/* True if an owner has pipelines that cannot work beside others: then each microbatch is granted by itself. */
bool skep_fixed_one_by_one(const struct directory *d);
/* The pipeline that the first of so many microbatches takes which an owner is granted; the others take the next ones. */
uint32_t skep_fixed_deal(struct directory *d, struct row *owner, uint32_t count);
void skep_fixed_count_in(struct directory *d, const struct row *row);
void skep_fixed_count_out(struct directory *d, const struct row *row);
bool skep_fixed_is_owner(struct directory *d, const struct row *row);
void skep_fixed_opened(
	struct directory *d, struct step *step); /* shares are granted: tell those whose share is not whole */
void skep_fixed_on_forwards_done(struct directory *d, struct step *step, const struct skep_message *message);
void skep_fixed_lift_barrier(struct directory *d, struct step *step);             /* not all will come to it */
void skep_fixed_drain(struct directory *d, struct step *step, uint32_t pipeline); /* not all of its share will come */
void skep_fixed_ready(struct directory *d, struct step *step, uint32_t worker);   /* it holds all: it takes its place */
void skep_fixed_serve_ready(struct directory *d, const struct skep_plan *plan);   /* all that hold all do */
void skep_fixed_worker_gone(struct directory *d, struct step *step, uint32_t worker); /* while a round is open */
void skep_fixed_timer(struct directory *d, struct step *step);
uint32_t skep_fixed_missing_stage(struct directory *d, const struct skep_plan *plan); /* one that lacks a worker */

/* Where stages are uneven pipelines share workers, and all are told together: pipeline 0 says of what, to every worker. */
static inline struct pipeline *directory_told_with(struct directory *d, uint32_t pipeline)
{
	return directory_pipeline(d, d->uneven ? 0 : pipeline);
}
static inline bool directory_is_told(const struct directory *d, const struct row *row, uint32_t pipeline)
{
	return row->standing == STANDING_SERVING && (d->uneven || row->pipeline == pipeline);
}

/* Do workers of the two rows send each other microbatches, the first to the second? */
static inline bool directory_leads(const struct skep_plan *plan, const struct row *from, const struct row *to)
{
	return route_leads(plan, from->stage, to->stage) &&
	       (!skep_plan_fixed(plan) ||
		       skep_pipeline_joins(from->pipeline, from->replicas, to->pipeline, to->replicas));
}

/* boundary.c */
bool skep_boundary_due(struct directory *d, const struct step *step); /* is there something to change at the next one */
void skep_boundary_pass(struct directory *d, struct step *step); /* after a round has closed, before the next opens */
void skep_boundary_serve_late(struct directory *d, struct step *step); /* the same: who was late for the commit */
void skep_boundary_on_load(struct directory *d, uint32_t worker, uint64_t queue_milli, skep_time needed_ns);
void skep_boundary_forget_load(struct directory *d, uint32_t worker);
void skep_boundary_on_leave(struct directory *d, struct step *step, uint32_t worker);
uint32_t skep_boundary_needy_stage(struct directory *d, const struct step *step, uint32_t worker);
bool skep_boundary_wants(
	struct directory *d, const struct step *step, uint32_t worker); /* is it to have a stage at all? */
/* Where a worker goes that was in this stage: there, unless too many are. */
uint32_t skep_boundary_place(struct directory *d, const struct skep_plan *plan, uint32_t stage);

/* rounds.c: what methods put together */
void skep_rounds_begin(struct directory *d, struct step *step); /* the next round is open: every owner gets its share */
void skep_rounds_grant(struct directory *d, struct step *step, uint32_t preferred);
bool skep_rounds_all_back(struct directory *d, struct step *step); /* nothing is left to wait for, or to grant */
uint32_t skep_rounds_wanted(struct directory *d, const struct skep_plan *plan); /* microbatches of the open round */
void skep_rounds_on_finished(struct directory *d, struct step *step, const struct skep_message *message);
void skep_rounds_resume(
	struct directory *d, struct step *step);   /* something is missing, or a worker serves that did not */
void skep_rounds_all_counted(struct directory *d); /* what was issued, in all stages */
void skep_rounds_close(struct directory *d, const struct skep_plan *plan); /* the open round takes no more work */
void skep_rounds_sum(struct directory *d, struct step *step);              /* and is summed in all stages */
void skep_rounds_sum_anew(struct directory *d, struct step *step, uint32_t stage);
/* Has all of the sender's stage told now? */
bool skep_rounds_take_tally(struct directory *d, const struct skep_plan *plan, const struct skep_message *message);
void skep_rounds_commit(struct directory *d, struct step *step, uint32_t stage);
void skep_rounds_all_told(struct directory *d, struct step *step); /* have all stages? then all are committed */
/* Notes what the members counted of a virtual stage, and what is lost; returns how many were counted. */
uint32_t skep_rounds_note_vstage(struct directory *d, struct step *step, uint32_t vstage);
/* Notes for those of `issued` microbatches that no member counted, where counter[i] is SKEP_NO_INDEX; returns how many. */
uint32_t skep_rounds_note_lost(struct directory *d, struct step *step, uint32_t round, uint32_t vstage,
	const uint32_t *counter, uint32_t issued);
void skep_rounds_closed(struct directory *d, struct step *step);      /* every stage has committed it */
void skep_rounds_after_close(struct directory *d, struct step *step); /* with what follows a round that is closed */
void skep_rounds_continue(struct directory *d, struct step *step, bool over); /* the same, without a validation */
void skep_rounds_next(struct directory *d, struct step *step); /* what changes between two rounds; the next one */
void skep_rounds_end(struct directory *d, struct step *step);  /* all are closed, or the loss is low enough */
void skep_rounds_cut(struct directory *d, const struct skep_plan *plan); /* skep_rounds_worker_gone() ends it */
void skep_rounds_worker_gone(struct directory *d, struct step *step, uint32_t worker, bool served);
/* All have told: nothing of the round is granted now, and nothing is under way. */
void skep_rounds_reopen(struct directory *d, struct step *step);

/* By microbatch: the worker that counted it in this virtual stage; of the round that is reduced, or where two are kept,
 * of one of them. */
uint32_t *skep_rounds_counters(struct directory *d, uint32_t vstage);
uint32_t *skep_rounds_counters_of(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t stage);
/* What this member has counted of the virtual stage. */
uint32_t skep_rounds_counted_by(struct directory *d, const struct skep_plan *plan, uint32_t vstage, uint32_t worker);
uint32_t skep_rounds_counted_in(
	struct directory *d, const struct skep_plan *plan, uint32_t vstage);   /* by all members */
uint64_t skep_rounds_limit(struct directory *d, const struct skep_plan *plan); /* of what may be outstanding */
void skep_rounds_send_grant(
	struct directory *d, struct step *step, uint32_t worker, uint32_t first, uint32_t count, struct skep_span span);

/* dealing.c: which owner a microbatch goes to */
/* What its shares of the next round are, as `outstanding` of every row and in all; not more than `limit` together. */
void skep_dealing_begin(struct directory *d, const struct skep_plan *plan, uint64_t limit);
/* For one of `left` microbatches that are to be dealt; SKEP_NO_INDEX: to none, for now. `preferred` has just finished one. */
uint32_t skep_dealing_choose(struct directory *d, const struct skep_plan *plan, uint32_t preferred, uint32_t left);
/* The same for a microbatch that a round trains on: with plan->inner.fixed to the one whose turn it is, if it has room. */
uint32_t skep_dealing_next(struct directory *d, const struct skep_plan *plan, uint32_t preferred, uint32_t left);
uint32_t skep_dealing_in_flight(const struct directory *d, const struct skep_plan *plan, const struct row *row);
void skep_dealing_heard(
	struct directory *d, struct row *row, skep_time needed_ns); /* what one took its device; 0: not known */

/* attempt.c: sum: of the gradients; else the members only tell what they have counted */
struct attempt { /* of one group, while it begins */
	uint32_t stage, *order,
		size; /* its members, by rank; behind them in `order` is room for those of another stage: */
	uint32_t others;
	uint32_t expected; /* messages, before all is told */
	bool sum;
};
void skep_attempt_begin(struct directory *d, struct step *step, uint32_t stage, bool sum);
/* One without a sum, of all stages: PHASE_COUNTING. */
void skep_attempt_ask_all(struct directory *d, struct step *step);
bool skep_attempt_takes(
	const struct directory *d, const struct row *row); /* is it a member of the round's reduction? */
/* For those that have to know each other. */
void skep_attempt_roster(struct directory *d, struct step *step, const struct skep_message *reduce,
	const uint32_t *order, uint32_t size);

/* validation.c; all but the first three do something while there is a validation alone */
size_t skep_validate_lay_out(struct directory *d, const struct skep_plan *plan, size_t at); /* returns where it ends */
void skep_validate_begin(struct directory *d, struct step *step, bool last);
void skep_validate_beside(struct directory *d, struct step *step); /* async: beside the round that is open */
void skep_validate_grant(struct directory *d, struct step *step, uint32_t preferred);
void skep_validate_on_finished(struct directory *d, struct step *step, const struct skep_message *message);
void skep_validate_refill(struct directory *d, struct step *step, uint32_t preferred);
void skep_validate_worker_gone(struct directory *d, struct step *step, uint32_t worker);

#define TURNS_MOST 256u         /* of all owners together, when a round opens */
#define GRANTS_PER_REFILL 1024u /* at once; what is left is granted as microbatches come back */
