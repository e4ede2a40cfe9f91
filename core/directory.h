/* SPDX-License-Identifier: Apache-2.0
 *
 * directory.h - the state of the directory's machine, shared by the files that make it up:
 *
 *   directory.c  dispatch, the roster: who joins, is ready, is fenced, who is told
 *   rounds.c     grants, the reductions that end a round, commit, what was lost
 *   attempt.c    one attempt of a stage to sum: who is a member, what each is told
 *   promise.c    a reduction of which all are told when the round opens
 *   stream.c     the same where rounds are not flushed: several are open
 *   merges.c     asynchronous periodic sync: each worker's part by itself, and when a round is settled
 *   ties.c       a tied table: two stages whose sums are begun, void and final together
 *   norms.c      the norm of all gradients, where they are clipped
 *   keep.c       who keeps a stage's state, and what is kept in the end
 *   rerun.c      which microbatches of a round have to be run again, and through which stages
 *   validate.c   what is judged between two rounds, and not trained on
 *   refound.c    a stage that has lost its last worker: waits, is founded anew, from a checkpoint if there is one
 *   fixed.c      fixed pipelines: which of them are whole, who owns a share, when nobody waits for all of it
 *   trial.c      several directories beside each other, one for each candidate, until one is kept
 *   edge.c       what changes between two rounds: who gave notice goes, one worker may move to another stage
 *
 * A round is open (microbatches are granted and finish) or is being reduced (every stage sums its gradients). It opens when
 * every stage has committed the one before.
 *
 * With delayed updates it opens when the reduction of the one before begins, and works on the parameters that are there
 * (skep_plan_version). One reduction at a time: an open round that is complete waits for the end of the one before. Two
 * exceptions. Where somebody is to leave, move or join (edge.c) the next round opens only when this one is committed
 * everywhere; its parameters are a step older all the same. And a newcomer holds the version of the step after it joined
 * and no older one, so it cannot work on the round in which it is ready: if such newcomers are all that is left of a stage,
 * the open round is cut short, and goes into the reduction as it is.
 *
 * Where lost gradients are run again (SKEP_ON_LOSS_RERUN, rerun.c) the members are first asked what they have counted, and what
 * is missing is granted again, until nothing is. Then no stage commits before all have their sums: should a member be fenced
 * before that, the sums are void and the members are asked again. So what counts is every microbatch, in every stage.
 */
#ifndef SKEP_CORE_DIRECTORY_H
#define SKEP_CORE_DIRECTORY_H

#include "core/machine.h"
#include "core/route.h"
#include "core/trial.h"

enum standing {
	STANDING_ABSENT,   /* this epoch is fenced, or there never was one */
	STANDING_ASSIGNED, /* has a stage, and has not said yet that its device has made room for it */
	STANDING_ENTERED,  /* it has; nobody holds the stage's state, and another one is to found it anew */
	STANDING_JOINING, /* downloads its stage's state; takes part in reductions from round `since` on, without work */
	STANDING_READY,   /* the same, and it has all of the state */
	STANDING_SERVING,
};

struct pipeline {                  /* fixed pipelines alone */
	uint32_t first, last;      /* workers: who issues its microbatches, and who turns them round */
	uint32_t serving, leaving; /* of its workers */
	bool turned;               /* in the open round: TURN has been sent to those who may wait */
	bool awaited;              /* in the open round: before its barrier */
	uint32_t given_up;         /* without a flush: newest round + 1 that TURN has named, 0: none */
};

struct row { /* one worker */
	uint32_t epoch, stage;
	uint32_t pipeline; /* fixed pipelines: of which one it is a part, for ever */
	uint8_t standing;
	bool announced;  /* SERVING: those who may choose it have been told */
	bool has_joined; /* born_ns and join_epoch are of its newest JOIN */
	bool leaving;    /* it gave notice: no new work, and it goes at the round's edge */
	uint32_t join_epoch, assigned;
	uint32_t since;       /* JOINING and more: member of the reductions from this round on */
	uint64_t queue_milli; /* mean of the reports since the last decision that had any */
	uint64_t queue_sum;
	skep_time needed_ns; /* for a microbatch in this stage, by its newest report; 0: not known */
	uint32_t reports;    /* since the last decision */
	struct skep_peer source;
	skep_time born_ns, heard_ns;
	uint32_t outstanding; /* granted microbatches that have not come back */
	bool member, tallied; /* of its stage's current attempt */
	uint32_t tally_count, tally_heard;
	int64_t loss_nano_sum;
};

struct stage_state {
	uint32_t serving; /* workers */
	uint32_t leaving; /* of these, those that gave notice: they work on only if nobody else does */
	uint32_t attempt, pending;
	bool committed;
	bool waiting; /* for a worker that founds it anew: nobody holds its state */
	skep_time waiting_since_ns;
	struct skep_peer founder; /* waiting: who is at it; epoch 0: nobody */
	uint32_t checkpoint;      /* newest version that is kept, 0: none */
	uint32_t unkept;          /* newest version that could not be, 0: none */
	struct skep_peer keeper;  /* who was told last to keep a state, and ... */
	uint32_t keeps;           /* ... of which version; 0: nobody was */
	uint32_t behind;          /* without a flush: rounds that it has committed; async: merges */
};

enum phase {
	PHASE_OPEN,       /* round `round` is open; the one before may still be reduced */
	PHASE_COUNTING,   /* round `round` is complete, its members tell what they have counted (SKEP_ON_LOSS_RERUN) */
	PHASE_REDUCING,   /* round `round` is being reduced, none is open */
	PHASE_VALIDATING, /* none is open or reduced: what round `round` will begin with is judged */
	PHASE_STOPPED
};

struct reduced { /* the round whose gradients are summed */
	bool on;
	uint32_t round, issued;
};

struct judged {         /* a microbatch of a validation (validate.c) */
	uint32_t owner; /* who has it, SKEP_NO_INDEX: nobody */
	uint8_t tries;  /* grants, so far */
	bool settled;   /* its loss is known, or it is given up */
};

struct merger {                /* async: one worker, since it serves (merges.c) */
	bool ready;            /* all of its merge `merged` + 1 is told */
	bool member, awaited;  /* of the merge of its stage; it has not said yet that it has the part */
	bool in;               /* what it has told is in that merge */
	bool asked;            /* SETTLE was sent for the round that is being settled */
	uint32_t merged;       /* merges of it that are final */
	uint32_t heard, count; /* microbatches of the next one */
	uint32_t settled;      /* of rounds before this one nothing is left there when ... */
	uint32_t settled_by;   /* ... so many of its merges are final */
	uint64_t came;         /* ready: in which order */
	int64_t loss_nano[2];  /* of the next one, by round parity */
};

struct merging { /* async: one stage; merges that are final are its `behind` */
	bool on; /* there is one, of those that are `in` it; in a chain of one worker: */
	uint32_t by;
	uint32_t attempt, pending;
	int64_t loss_nano[2]; /* of what is merged, by round parity */
};

struct validation {
	bool last;            /* no round follows */
	bool beside;          /* async: it is under way beside round `round`, which stays open until it is over, ... */
	uint32_t outstanding; /* ... and so many of what is outstanding are its */
	uint32_t settled, heard; /* microbatches; heard: losses that are in the sum */
	uint32_t from;           /* all before it are granted or settled */
	int64_t loss_nano_sum;
	size_t judged_at;
};

struct stream { /* without a flush: what is known of each open round, by round modulo window (stream.c) */
	uint32_t window;
	size_t round_at, sum_at, part_at, counter_at, share_at;
};

struct tried {     /* as one of several candidates (trial.c) */
	bool on;   /* the trial is not over */
	bool held; /* its round has closed, and it waits for the others */
	bool fell; /* it is out: phase STOPPED, and nobody was told */
	uint32_t candidate;
	uint32_t beside; /* microbatches of the open round by others, which are out since */
	int64_t fault;   /* fell: as CANDIDATE_OUT says */
	uint32_t stage;  /* fell: which was empty */
	uint32_t heard;  /* the round that has the newest loss, from 1 */
	struct skep_trial_points points;
};

/* Without a flush `round` is the next one to open, and rounds `closed` to `round` - 1 are open. */
struct directory {
	struct skep_node node;
	uint8_t phase;
	bool cut;                  /* nobody can do the rest of the open round */
	uint32_t pass;             /* of the open round: 0, or the attempt that found something missing */
	uint32_t rerun_microbatch; /* where to go on looking for what is missing */
	bool ending; /* all rounds are closed, and a stage waits, or its last state is not kept yet: a run is not done while
	                what it has learnt is lost */
	bool async;    /* of the plan */
	bool diverged; /* the run stops for what is not finite */
	uint32_t round, issued, finished, outstanding;
	bool full; /* every owner holds its credit: nothing has happened since that was seen that may give one of them room */
	uint32_t closed; /* rounds */
	struct reduced reduced;
	bool promised;         /* members were told of the open round's reduction, `reduced`, which is not on yet */
	uint32_t void_attempt; /* of the open round, that was promised and is off; 0: none */
	int64_t loss_nano;     /* of the newest round that has one, else INT64_MAX */
	uint32_t capacity;     /* skep_round_capacity() */
	uint32_t inflight_capacity; /* of a worker */
	uint32_t unannounced;
	skep_time rebalance_due_ns;
	struct skep_peer mover; /* the last one, in its new life */
	skep_time scan_ns;      /* when to look for silent workers */
	/* Fixed pipelines: all; those of which every place is taken; of these, those of which nobody will leave. */
	uint32_t pipelines, whole, staying; /* pipelines: 0 in a swarm */
	uint32_t stages;                    /* of the plan */
	uint32_t awaited;          /* that have not gone forwards with all of their share, while there is a barrier */
	skep_time broken_since_ns; /* no pipeline can be whole without a join; SKEP_TIME_NEVER: one can */
	size_t pipeline_at;
	struct stream stream;
	struct validation validation;
	size_t square_at; /* clip: [slices], norms.c */
	uint64_t square;  /* clip: of the norm, in the commits under way */
	uint32_t tied[2]; /* a tied table: what the first and the last slice have counted, the same */
	size_t merger_at, merging_at;
	uint64_t merges; /* async: that were told */
	bool pressed;    /* async: the round that is being settled is wanted now */
	struct tried tried;
	size_t row_at, stage_at, owner_at, counter_at, order_at, load_at, stage_load_at;
};

static inline struct row *directory_row(struct directory *d, uint32_t worker)
{
	return (struct row *)skep_at(d, d->row_at) + worker;
}

static inline struct stage_state *directory_stage(struct directory *d, uint32_t stage)
{
	return (struct stage_state *)skep_at(d, d->stage_at) + stage;
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
void directory_tell(
	struct directory *d, struct step *step, uint32_t to, struct skep_peer who, uint32_t stage, bool alive);
void directory_tell_fenced(struct directory *d, struct step *step, struct skep_peer fenced);
void directory_fence(struct directory *d, struct step *step, uint32_t worker);
void directory_assign(struct directory *d, struct step *step, uint32_t worker, uint32_t stage);
/* It is a member from now on; source.index SKEP_NO_INDEX: the founder. */
void directory_let_in(struct directory *d, struct step *step, uint32_t worker, struct skep_peer source);
void directory_let_in_from_any(
	struct directory *d, struct step *step, uint32_t worker); /* of those that hold the state */
/* The round whose reduction is the stage's next one. */
uint32_t directory_next_reduction(struct directory *d, const struct skep_plan *plan, const struct row *row);
void directory_new_sources(struct directory *d, struct step *step); /* for newcomers whose source is gone */
void directory_serve(struct directory *d, uint32_t worker);         /* a READY worker serves from now on */
void directory_stop(struct directory *d, struct step *step, bool ok);

/* A serving worker comes, goes or gives notice: the counts of its stage and pipeline. */
void directory_count_in(struct directory *d, const struct row *row);
void directory_count_out(struct directory *d, const struct row *row);

/* Ends the epoch of a worker that holds nothing, and tells its neighbours. */
void directory_retire(struct directory *d, struct step *step, uint32_t worker);

/* refound.c: a stage that has lost its last worker */
void refound_stage(struct directory *d, struct step *step, uint32_t stage);   /* its last serving worker is gone */
void refound_entered(struct directory *d, struct step *step, uint32_t stage); /* chooses a founder, if one is wanted */
void refound_ready(struct directory *d, struct step *step, uint32_t worker);  /* it holds all; is it the founder? */
void refound_gone(struct directory *d, struct step *step, struct skep_peer gone, uint32_t stage);
void refound_timer(struct directory *d, struct step *step);
/* The stage that has waited longest, SKEP_NO_STAGE: none waits. */
uint32_t refound_waiting(struct directory *d, const struct skep_plan *plan);

/* norms.c: all of it with `clip` alone */
uint32_t norms_begin(struct directory *d, const struct skep_plan *plan, uint32_t stage); /* how many will be told */
void norms_on_norm(struct directory *d, struct step *step, const struct skep_message *message);
void norms_on_fault(struct directory *d, struct step *step, const struct skep_message *message);
uint64_t norms_total(struct directory *d, const struct skep_plan *plan);

uint32_t norms_counted(struct directory *d, const struct skep_plan *plan, uint32_t slice); /* by its members */

/* ties.c: all of it with a tied table alone */
/* Actions per worker, of one step that fences so many. */
uint32_t ties_actions(const struct skep_plan *plan, uint32_t fences);
uint32_t ties_twin(const struct skep_plan *plan, uint32_t stage); /* SKEP_NO_STAGE: it holds no copy */
/* To whom a member of rank `rank` is to give what; `order`: the `size` members of its stage, and then those of the twin. */
void ties_name(struct directory *d, const uint32_t *order, uint32_t size, uint32_t others, struct skep_message *reduce);
void ties_count(struct directory *d, const struct skep_plan *plan); /* before the commit of the two */
uint32_t ties_counted(struct directory *d, const struct skep_plan *plan, uint32_t slice); /* by the other slice */
void ties_commit(struct directory *d, struct step *step, uint32_t stage); /* all of this stage have told */

/* keep.c */
void keep_begin(struct directory *d, const struct skep_plan *plan); /* with what is kept of the first round */
uint32_t keep_by(struct directory *d, const struct skep_plan *plan, uint32_t stage); /* SKEP_NO_INDEX: nobody */
bool keep_in_stream(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t worker);
void keep_heard(struct directory *d, struct step *step, const struct skep_message *message);
bool keep_last(struct directory *d, struct step *step);                   /* is it? Else somebody is asked */
void keep_merged(struct directory *d, struct step *step, uint32_t stage); /* async: it commits a round; is that kept? */

/* fixed.c: all of it for fixed pipelines alone */
void fixed_init(struct directory *d, const struct skep_plan *plan);
void fixed_count_in(struct directory *d, const struct row *row);
void fixed_count_out(struct directory *d, const struct row *row);
uint32_t fixed_owner_count(const struct directory *d);
bool fixed_is_owner(struct directory *d, const struct row *row);
void fixed_opened(struct directory *d, struct step *step); /* shares are granted: tell those whose share is not whole */
void fixed_on_passed(struct directory *d, struct step *step, const struct skep_message *message);
void fixed_lift_barrier(struct directory *d, struct step *step);            /* not all will come to it */
void fixed_turn(struct directory *d, struct step *step, uint32_t pipeline); /* not all of its share will come */
void fixed_ready(struct directory *d, struct step *step, uint32_t worker);  /* it holds all: it takes its place */
void fixed_serve_ready(struct directory *d, const struct skep_plan *plan);  /* all that hold all do */
void fixed_timer(struct directory *d, struct step *step);
uint32_t fixed_missing_stage(struct directory *d, const struct skep_plan *plan); /* one that lacks a worker */

/* Do workers of the two rows send each other microbatches, the first to the second? */
static inline bool directory_leads(const struct skep_plan *plan, const struct row *from, const struct row *to)
{
	return route_leads(plan, from->stage, to->stage) && (!skep_plan_fixed(plan) || from->pipeline == to->pipeline);
}

/* edge.c */
bool edge_due(struct directory *d, const struct skep_plan *plan); /* is there something to change at the next one */
void edge_pass(struct directory *d, struct step *step);           /* after a round has closed, before the next opens */
void edge_serve_late(struct directory *d, const struct skep_plan *plan); /* the same: who was late for the commit */
void edge_on_load(struct directory *d, uint32_t worker, uint64_t queue_milli, skep_time needed_ns);
void edge_forget_load(struct directory *d, uint32_t worker);
void edge_on_leave(struct directory *d, struct step *step, uint32_t worker);
uint32_t edge_needy_stage(struct directory *d, const struct skep_plan *plan, uint32_t worker);
bool edge_wants(struct directory *d, const struct skep_plan *plan, uint32_t worker); /* is it to have a stage at all? */
/* Where a worker goes that was in this stage: there, unless too many are. */
uint32_t edge_place(struct directory *d, const struct skep_plan *plan, uint32_t stage);

/* rounds.c */
void rounds_open(struct directory *d, struct step *step);
void rounds_next(struct directory *d, struct step *step); /* the last one has closed, and been judged if that was due */
void rounds_go_on(struct directory *d, struct step *step); /* one has closed: what follows */
/* What the members counted of a slice, and what is lost; returns how many were counted. */
uint32_t rounds_note_slice(struct directory *d, struct step *step, uint32_t slice);
void rounds_on_finished(struct directory *d, struct step *step, const struct skep_message *message);
void rounds_on_tally(struct directory *d, struct step *step, const struct skep_message *message);
void rounds_cut(struct directory *d, const struct skep_plan *plan); /* rounds_worker_gone() ends it */
void rounds_refill(struct directory *d, struct step *step); /* something is missing, or somebody works who did not */
void rounds_worker_gone(struct directory *d, struct step *step, uint32_t worker);

void rounds_commit(struct directory *d, struct step *step, uint32_t stage);
void rounds_stage_told(struct directory *d, struct step *step, uint32_t stage); /* all of its members have */
void rounds_reduce(struct directory *d, struct step *step);   /* the open round is complete: sum its gradients */
void rounds_all_told(struct directory *d, struct step *step); /* has everybody? then what follows */
uint32_t *rounds_counters(struct directory *d, uint32_t slice);
/* The same of a round and stage, where two rounds are kept (async). */
uint32_t *rounds_counters_of(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t stage);
/* Of the slice, by this member. */
uint32_t rounds_counted_by(struct directory *d, const struct skep_plan *plan, uint32_t slice, uint32_t worker);
/* No stage commits before all have their sums. */
static inline bool rounds_together(const struct skep_plan *plan)
{
	return plan->on_loss == SKEP_ON_LOSS_RERUN || plan->clip;
}
void rounds_end(struct directory *d, struct step *step); /* all are closed, or the loss is low enough */

/* attempt.c: sum: of the gradients; else the members only tell what they have counted */
void attempt_begin(struct directory *d, struct step *step, uint32_t stage, bool sum);
/* For those that have to know each other. */
void attempt_roster(struct directory *d, struct step *step, const struct skep_message *reduce, const uint32_t *order,
	uint32_t size);

/* promise.c */
void promise_opened(
	struct directory *d, struct step *step); /* shares are granted: tell who is to sum, if all is as planned */
void promise_off(struct directory *d);           /* it will not be as planned */
void promise_complete(struct directory *d, struct step *step); /* it was: all has come back */

/* merges.c: all of it with `async` alone */
size_t merges_lay_out(struct directory *d, const struct skep_plan *plan, size_t at); /* returns where it ends */
void merges_opened(struct directory *d, const struct skep_plan *plan);               /* the open round is a new one */
void merges_settle(struct directory *d, struct step *step);                          /* the round that is complete */
void merges_press(struct directory *d, struct step *step);                           /* it is wanted now */
void merges_serve(struct directory *d, uint32_t worker);
void merges_ask_new(struct directory *d, struct step *step);
uint32_t merges_let_in(struct directory *d, uint32_t worker);               /* returns its first version */
void merges_ready(struct directory *d, struct step *step, uint32_t worker); /* it holds all of the state */
void merges_go_on(struct directory *d, struct step *step, uint32_t stage);  /* with what was waiting */
void merges_on_merge(struct directory *d, struct step *step, const struct skep_message *message);
void merges_on_tally(struct directory *d, struct step *step, const struct skep_message *message);
void merges_worker_gone(struct directory *d, struct step *step, uint32_t worker);
int64_t merges_loss(struct directory *d, uint32_t round, uint32_t stage); /* sum, of what is merged */

/* stream.c: all of it without a flush alone; rounds.c asks it */
size_t stream_lay_out(struct directory *d, const struct skep_plan *plan, size_t at); /* returns where it ends */
void stream_fill(struct directory *d, struct step *step);                            /* opens what may be open */
void stream_on_finished(struct directory *d, struct step *step, const struct skep_message *message);
void stream_on_tally(struct directory *d, struct step *step, const struct skep_message *message);
void stream_worker_gone(struct directory *d, struct step *step, uint32_t worker);

uint32_t rounds_choose_owner(struct directory *d, const struct skep_plan *plan, uint32_t preferred); /* for one grant */
uint64_t rounds_limit(struct directory *d, const struct skep_plan *plan); /* of what may be outstanding */
bool rounds_nobody_can(struct directory *d, const struct skep_plan *plan);
void rounds_send_grant(
	struct directory *d, struct step *step, uint32_t worker, uint32_t first, uint32_t count, struct skep_span span);

/* validate.c; all but the first three do something while there is a validation alone */
size_t validate_lay_out(struct directory *d, const struct skep_plan *plan, size_t at); /* returns where it ends */
void validate_begin(struct directory *d, struct step *step, bool last);
void validate_beside(struct directory *d, struct step *step); /* async: beside the round that is open */
void validate_grant(struct directory *d, struct step *step, uint32_t preferred);
void validate_on_finished(struct directory *d, struct step *step, const struct skep_message *message);
void validate_refill(struct directory *d, struct step *step, uint32_t preferred);
void validate_worker_gone(struct directory *d, struct step *step, uint32_t worker);

/* rerun.c */
void rerun_count(struct directory *d, struct step *step);   /* asks every member what it has counted */
void rerun_counted(struct directory *d, struct step *step); /* all have told */
bool rerun_next(
	struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch, struct skep_span *ret_span);

#define GRANTS_PER_REFILL 1024u /* at once; what is left is granted as microbatches come back */

#endif
