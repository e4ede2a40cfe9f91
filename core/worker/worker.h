/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - the state of a worker's machine, shared by the files that make it up:
 *
 *   worker.c    set-up, dispatch of events; arena.c: memory that grows with what is met
 *   pipeline.c  what becomes of a microbatch: in, out, back, given up; core/route: where it goes
 *   reissue.c  what becomes of a microbatch that has been with another worker for too long
 *   schedule.c  which operation the device runs next; core/schedule: in which order it does passes
 *   interleaved.c      several model chunks on one worker
 *   reduce.c    the end of a round: seal the accumulator, sum, tally, step
 *   transfers.c     the sum, transfer by transfer; roster.c: who takes part in it; shards.c: the step in shards
 *   member.c    joining, being fenced, hearing of others, heartbeats, stopping
 *   download.c  a newcomer fetches its stage's state in chunks, another worker hands it out
 *   orphan.c    the directory is dead
 *
 * A worker is OUT (holds nothing, has asked to join), JOINING (has a stage, downloads its state), SERVING, or STOPPED. One
 * that is joining *enters* its stage (its device makes room for it), then it is *admitted*: a member of the stage's
 * reductions, which steps along. While it serves or is admitted, `version` counts the optimizer steps behind its
 * parameters, and it works on round `version`. Work of the next round may come early (its sender has stepped already) and
 * waits; work of earlier rounds is too late and is ignored.
 *
 * Of which rounds it does work while one is reduced, when a sum may begin and what a step means is the method's to say
 * (methods/method.h); `work` has what follows from that for now.
 */
#pragma once

#include <assert.h>

#include "core/collective/collective.h"
#include "core/machine.h"
#include "core/route/route.h"
#include "core/route/wiring.h"
#include "core/schedule/pipelines.h"
#include "core/worker/inflight.h"
#include "core/worker/marks.h"
#include "core/worker/orphan.h"
#include "core/worker/reissue.h"

enum worker_state { WORKER_OUT, WORKER_JOINING, WORKER_SERVING, WORKER_STOPPED };

#define FETCHERS_MAX 32u
#define DOWNLOADS 2u /* chunks of a newcomer under way */
#define GONE_MAX 256u
#define MARKED_ROUNDS 2u   /* that it may have marks of at a time, two sets each: what was seen, and what was done */
#ifndef SKEP_MET_FIRST     /* a test makes it small */
#define SKEP_MET_FIRST 64u /* numbers that there is room for from the start, at least, if a round has so many */
#endif
#define EARLY_FIRST 4u /* and hops that come early */

enum part_state { PART_FREE, PART_ASKED, PART_HERE, PART_LOADING };

struct part { /* a chunk of the state that a newcomer waits for, or has got */
	uint8_t state;
	uint32_t chunk, version;
	skep_time asked_ns;
	struct skep_buf payload;
};

struct download {                      /* of a newcomer */
	uint32_t chunks, loaded, next; /* all before `next` are loaded */
	uint32_t window;               /* most that are under way */
	skep_time retry_ns;
	skep_time stepped_ns, round_ns,
		took_ns; /* the last step, from one to the next, the last chunk from FETCH to STATE */
	struct part part[DOWNLOADS];
};

struct fetch { /* a chunk that a worker waits for, of this version or a later one */
	struct skep_peer to;
	uint32_t chunk, version;
};

struct grant { /* microbatches this owner may still issue */
	uint32_t round, first, end, attempt;
	uint32_t pipeline; /* fixed pipelines: that the next one takes */
	struct skep_span span;
};

struct early_chunk { /* a hop that came before this worker's REDUCE */
	uint32_t round, attempt, chunk, hop;
	struct skep_buf payload;
};

struct tied { /* a tied table, in the stages that hold a copy */
	bool on;
	struct skep_peer across, along; /* as REDUCE says */
	bool given, arrived, taken;     /* our stage's sum is told; the other's is here, and the device has it */
	uint32_t counted;               /* by the other virtual stage, once committed */
};

struct reduction { /* of round `version`; attempt 0: not begun, the round is open */
	uint32_t attempt, rank, size;
	struct skep_peer next;
	uint32_t feature;          /* the next one, when the collective is done */
	uint32_t fragment;         /* the bucket that is being summed, or is next; one after the other */
	uint32_t transfers;        /* that a fragment may have; messages number them through all fragments */
	struct skep_scheme scheme; /* of this fragment, whose elements begin there: */
	uint64_t first;
	uint32_t done;  /* transfers of it */
	uint64_t whole; /* the ALLREDUCE that runs; 0: none */
	bool waiting;   /* for a BACKWARD that was running when the round was sealed */
	bool sealed;    /* what is not counted is not in it: the round takes no more work */
	bool eager;     /* the round is open until COMMIT: it begins when this worker's share is counted ... */
	bool given_up;  /* ... and more came after that: this attempt is void */
	bool begun;     /* this fragment is */
	bool complete;  /* all transfers are done, the tally is sent */
	bool discard;   /* what was counted is to be thrown away before the tally */
	bool committed; /* the divisors are known */
	bool stepping;
	bool gathering;    /* sharded: its shard is stepped, and parameters go round */
	bool own;          /* async: it is the merge of what this worker has told, or that is a part of it */
	bool checkpoint;   /* after the step */
	uint32_t norms;    /* clip, rank 0: virtual stages whose squares are still to be told; the tally waits */
	uint32_t expected; /* microbatches that the sum will have; 0: that is not known before COMMIT */
	uint64_t square;   /* clip: of the norm of all gradients, once committed */
	struct tied tied;
	/* Without a flush: begins when so many were counted here; async, gathered: so many are in its part. */
	uint32_t share;
};

struct roster { /* of the newest reduction that one was sent for; attempt 0: none */
	uint32_t round, attempt, size, heard;
};

struct worker_work {           /* what it does work of; the method says so (derive()) after each change */
	uint32_t round;        /* whose work it does, or did last */
	uint32_t first, count; /* rounds that take work now; count 0: none */
	uint32_t early;        /* rounds after `round` whose work may come before its time */
	uint32_t pass; /* attempt that work of round `version` carries: 0 until that was counted for the first time */
	bool stepping; /* the step that makes the parameters of `round` is still to come */
};

struct place {              /* in fixed pipelines (pipelines.h): */
	bool uneven;        /* skep_plan_uneven() */
	uint32_t nth;       /* of the workers of its stage, from 0 */
	uint32_t of;        /* these, */
	uint32_t owners;    /* those of the first stage, */
	uint32_t pipelines; /* and all of them */
	uint32_t partner;   /* the worker of the next stage in the one pipeline, unless there are several */
};

struct model_chunks {     /* a microbatch passes the worker so often: */
	uint32_t count;   /* 1 unless pipelines are interleaved */
	uint32_t stages;  /* of the plan */
	uint32_t stepped; /* virtual stages that have made the step which is under way */
	/* Of this pipeline's own share in the open round: its first microbatch, if known; passes begun here. */
	uint32_t first, forwards, backwards;
};

struct inner { /* periodic sync: of the round that it works on, and of the one that is sealed until its sum begins */
	uint32_t nth;     /* the inner step that it counts for */
	uint32_t counted; /* in the accumulator since the last one */
	uint32_t members; /* of the stage, when it last heard of them */
	bool written;     /* the accumulator of round `version` holds the pseudo-gradient */
	uint32_t judged;  /* newest version that it was to validate, so that all steps up to it are wanted now */
};

struct outer_update { /* periodic sync, async */
	bool told;    /* PSEUDO_GRAD is done and the directory knows what is in it; until its STEP there is no other */
	bool called;  /* gathered: all that it has counted is wanted now, for others to be compared with */
	uint32_t number;   /* outer updates that it has announced */
	uint32_t open;     /* the round that it works on */
	uint32_t resolved; /* of rounds before this one it has told all, and has said so */
	uint32_t forced;   /* of rounds before this one it is to tell all now */
	uint32_t steps;    /* INNER_STEP since the last PSEUDO_GRAD */
	uint32_t counted;  /* microbatches in what is merged now */
	uint32_t base;     /* version that the inner parameters started from */
	uint64_t position; /* of the newest microbatch that it has counted, all rounds in one row; and */
	uint64_t due;      /* where its next merge is, by share; 0: not known yet */
};

struct worker {
	struct skep_node node;
	uint8_t state; /* enum worker_state */
	bool beside;   /* skep_plan_steps_beside() */
	bool gathers;  /* of the plan: parts of a reduction stand side by side */
	bool sharded;  /* of the plan: it steps its shard alone */
	bool met;      /* in this step something that takes room (arena.c) */
	bool stop_when_stepped;
	uint32_t stop_version;    /* that it is to reach first */
	bool checkpoint;          /* its state is to be kept, now */
	uint32_t keep;            /* CHECKPOINT: its state is to be kept under this number; 0: not asked */
	uint32_t keep_version;    /* when it has come to this version; without `async` the same */
	uint8_t orphan;           /* enum orphan */
	bool fresh;               /* it serves, and does not know yet which round is open */
	bool restore;             /* JOINING: it restores its stage, from this version: */
	uint32_t restore_version; /* 0: as at the start of the run */
	uint32_t candidate;       /* for which it works, or did before one was kept */
	bool restored;            /* it has restored its stage, and does not know that the directory has written so */
	bool leaving;             /* notice was given: it does not join again */
	bool returned;            /* the directory gave it, since the run needs fewer machines */
	bool entered, admitted;   /* JOINING: see above */
	uint32_t version, oldest; /* that it ever had of this stage: it began with that */
	uint32_t assigned;        /* number of the newest ADMIT in this epoch */
	struct skep_peer source;
	skep_time started_ns, sent_to_directory_ns, heartbeat_due_ns, load_due_ns, reissue_due_ns;
	skep_time banned_ns; /* when the first was banned that the directory was not asked about, or NEVER */
	bool ban_asked;      /* with the last heartbeat */
	/* Load since the last report, while the round was open: nothing queues in a reduction, and that says nothing. */
	skep_time queue_since_ns, open_ns;
	uint64_t queue_area; /* microbatches that waited, times ns */
	skep_time passes_ns; /* forward and backward, whole ones */
	uint32_t passed;     /* microbatches, both ways */

	uint64_t op_floor;     /* operations below were asked for in an earlier incarnation */
	uint64_t compute_op;   /* id of the one on the compute lane, 0: idle */
	uint8_t compute_kind;  /* what it is: enum skep_op_kind */
	uint32_t reduce_ops;   /* on the reduce lane */
	uint32_t compute_slot; /* its microbatch */
	uint32_t fetchers;
	bool saved; /* the operation before was a SAVE: now something else, if there is anything */
	uint32_t gone_capacity;

	uint32_t issued_in_flight, in_flight; /* and how many there may be, by the newest grant */
	uint32_t grants, grant_capacity;
	struct worker_work work;
	struct reduction reduction;
	struct inner inner;
	struct outer_update update;
	uint32_t early, early_capacity, early_max;
	uint32_t members_max;        /* of a reduction */
	uint32_t transfers_capacity; /* 0: a ring needs none of what is kept for each transfer and each member */

	uint32_t share, held; /* fixed pipelines: granted to this one in a round; most that this worker may hold */
	uint32_t flush;       /* the same: microbatches of its share in one flush; `share` where there is one flush */
	struct place place;   /* the same */
	uint32_t issued;      /* microbatches of the open round that it has issued */
	uint32_t forwarded;   /* microbatches of the open round whose FORWARD was done here */
	uint32_t part, parts; /* of the BACKWARD that runs; parts 0: it runs as a whole */
	uint32_t barrier_lifted; /* newest round + 1 in which the barrier is open, 0: none */
	uint32_t drained; /* newest round + 1 in which it need not wait for all of its share, 0: none; without a flush:
	                         which its pipeline has given up */
	/* skep_plan_staleness() and skep_plan_ahead() of its stage; it never serves another one. */
	uint32_t staleness, ahead;
	uint32_t wave;  /* microbatches of one, 0: without waves (methods/wsp.c) */
	bool backwards; /* its last pass was a BACKWARD */

	uint32_t slots; /* rounds of which it may hold work: from `version` on */
	uint32_t came;  /* without a flush: microbatches of one of them of which it is known whether they have come */

	struct model_chunks model_chunks;
	uint32_t numbers;      /* of a round */
	uint32_t trained;      /* microbatches from this number on are of the validation before the round */
	uint32_t headroom;     /* most that one step may mark */
	uint32_t accumulators; /* skep_plan_accumulators(): worker_sum() is the number of a round's */
	uint32_t tallies;      /* that are kept, by round: 1, or as many */
	uint32_t mark_slots, tally_capacity;
	uint32_t parameters; /* a sum of those that the last STEP has made; 0: not known, or others have come since */
	uint32_t counted[SKEP_ACCUMULATORS_MAX];  /* microbatches in each accumulator */
	int64_t loss_nano[SKEP_ACCUMULATORS_MAX]; /* sum over these */

	uint32_t view_capacity; /* workers in each of its views */
	size_t view_at, view_bytes, leg_at, inflight_at, grant_at, hops_at, loaded_at, gone_at, transferred_at, held_at,
		roster_at, fact_at, divisor_at, pending_at, came_at;
	size_t met_at; /* from here on lies what grows with what is met (arena.c): */
	size_t marks_at, tally_at, early_at;

	/* What is seldom needed lies behind what each event touches. */
	struct roster roster;
	struct download download;
	struct fetch fetch[FETCHERS_MAX]; /* oldest first */
};

/* Of the workers of a stage that this one sends microbatches to. */
static inline struct skep_view *worker_view(struct worker *w, const struct skep_plan *plan, uint32_t stage)
{
	uint32_t nth = plan->routing == SKEP_ROUTING_TRAINER ? stage - 1 : 0;
	assert(nth < route_views(plan));
	return skep_at(w, w->view_at + nth * w->view_bytes);
}

static inline struct skep_inflight *worker_inflight(struct worker *w)
{
	return skep_at(w, w->inflight_at);
}

/* How long the work was on the lines, there and back: who had it meanwhile says for how long, by its own clock. */
static inline skep_time worker_line_ns(const struct worker *w, const struct skep_work *work, skep_time held_ns)
{
	skep_time away_ns = w->node.now - work->sent_ns;
	return held_ns < away_ns ? away_ns - held_ns : 0;
}

/* Trainer routing: what this owner keeps of a later stage. Its microbatches are in the first slots, no more than it may have
 * in flight: an owner holds nothing but its own, and the slot that was freed last is taken first. */
static inline struct skep_leg *worker_leg(
	struct worker *w, const struct skep_plan *plan, const struct skep_work *work, uint32_t stage)
{
	size_t slot = (size_t)(work - worker_inflight(w)->work);
	assert(slot < skep_plan_in_flight_most(plan) && stage > 0 && stage < plan->stages);
	return (struct skep_leg *)skep_at(w, w->leg_at) + slot * (plan->stages - 1) + stage - 1;
}

static inline struct grant *worker_grants(struct worker *w)
{
	return skep_at(w, w->grant_at);
}

/* The pipeline that the next one takes of what an owner is granted together. */
static inline uint32_t worker_next_pipeline(const struct worker *w, uint32_t pipeline)
{
	return pipeline + w->place.of < w->place.pipelines ? pipeline + w->place.of : w->place.nth;
}

static inline struct early_chunk *worker_early(struct worker *w)
{
	return skep_at(w, w->early_at);
}

/* Microbatches of the round that have been here, whatever became of them. */
static inline struct skep_mark_set worker_seen(struct worker *w, uint32_t round)
{
	return (struct skep_mark_set){skep_at(w, w->marks_at), round & 1};
}

/* Trainer routing: those whose BACKWARD was done here, counted or not. */
static inline struct skep_mark_set worker_done(struct worker *w, uint32_t round)
{
	return (struct skep_mark_set){skep_at(w, w->marks_at), MARKED_ROUNDS + (round & 1)};
}

static inline uint32_t worker_sum(const struct worker *w, uint32_t round)
{
	return round & (w->accumulators - 1);
}

static inline size_t worker_tally_at(const struct worker *w, uint32_t round)
{
	return w->tally_at + (round & (w->tallies - 1)) * skep_align(skep_tally_size(w->tally_capacity));
}

/* Those in the round's accumulator. */
static inline struct skep_tally *worker_tally(struct worker *w, uint32_t round)
{
	return skep_at(w, worker_tally_at(w, round));
}

/* A REDUCE that came before its time, of a round after `version`: it overtook a COMMIT, or the round before is not stepped yet.
 * kind 0: none. */
static inline struct skep_message *worker_pending(struct worker *w, uint32_t round)
{
	return (struct skep_message *)skep_at(w, w->pending_at) + round % (w->slots - 1);
}

/* Hops of the current attempt that have arrived. */
static inline uint64_t *worker_hops(struct worker *w)
{
	return skep_at(w, w->hops_at);
}

/* Transfers of the current attempt that are done. */
static inline uint64_t *worker_transferred(struct worker *w)
{
	return skep_at(w, w->transferred_at);
}

/* By transfer: what has arrived for it, or what it carries on, until it begins. */
static inline struct skep_buf *worker_held(struct worker *w)
{
	return skep_at(w, w->held_at);
}

/* By rank. */
static inline struct skep_peer *worker_roster(struct worker *w)
{
	return skep_at(w, w->roster_at);
}

/* The divisor of each virtual stage in the next step; SKEP_NO_INDEX: not known yet. */
static inline uint32_t *worker_divisor(struct worker *w)
{
	return skep_at(w, w->divisor_at);
}

/* The number under which a microbatch is known here in one of its model chunks. */
static inline uint32_t worker_item(const struct worker *w, uint32_t microbatch, uint32_t model_chunk)
{
	return microbatch * w->model_chunks.count + model_chunk;
}

/* The virtual stage that a microbatch is in. */
static inline uint32_t worker_vstage(const struct worker *w, const struct skep_work *work)
{
	return work->model_chunk * w->model_chunks.stages + w->node.stage;
}

static inline uint64_t *worker_fact(struct worker *w)
{
	return skep_at(w, w->fact_at);
}

/* Chunks of the state that the newcomer's device holds. */
static inline uint64_t *worker_loaded(struct worker *w)
{
	return skep_at(w, w->loaded_at);
}

/* By index modulo gone_capacity: the newest epoch known to have ended. Exact in a swarm of up to GONE_MAX workers, in a
 * larger one for the last of those that share a place. */
static inline struct skep_peer *worker_gone(struct worker *w)
{
	return skep_at(w, w->gone_at);
}

/* It takes part in its stage's reductions. */
static inline bool worker_member(const struct worker *w)
{
	return w->state == WORKER_SERVING || (w->state == WORKER_JOINING && w->entered);
}

static inline bool worker_sealed(const struct worker *w)
{
	return w->reduction.sealed;
}

/* May the first stage issue another microbatch? Not while the flush before is under way. Whatever is given up is no longer in
 * flight, so in the end it always may. */
static inline bool worker_flushed(const struct worker *w)
{
	bool one_flush = w->flush == w->share;
	return one_flush || w->issued == 0 || w->issued % w->flush > 0 || w->issued_in_flight == 0;
}

/* It goes forwards to be judged, and leaves nothing behind. */
static inline bool worker_validates(const struct worker *w, uint32_t microbatch)
{
	return microbatch >= w->trained;
}

/* The round whose work it does, or did last. */
static inline uint32_t worker_round(const struct worker *w)
{
	return w->work.round;
}

/* It has told what it counted, and no reduction followed: what is missing may be run again. */
static inline bool worker_recounted(const struct worker *w)
{
	return worker_sealed(w) && w->reduction.size == 0 && w->reduction.complete;
}

/* Does it do work of this round now? */
static inline bool worker_works_on(const struct worker *w, uint32_t round)
{
	return round - w->work.first < w->work.count;
}

/* The attempt that work of this round carries. */
static inline uint32_t worker_pass(const struct worker *w, uint32_t round)
{
	return round == w->version ? w->work.pass : 0;
}

/* worker.c */
void skep_worker_send(struct worker *w, struct step *step, struct skep_message *message);
void skep_worker_compute(struct worker *w, struct step *step, struct skep_op *op);
void skep_worker_clear_views(struct worker *w, const struct skep_plan *plan);
void skep_worker_forget(struct worker *w, struct step *step); /* releases all that the device is not using right now */

/* arena.c */
/* What grows, as large as at first. */
size_t skep_arena_lay_out(struct worker *w, const struct skep_plan *plan, const struct skep_methods *how, size_t at);
void skep_arena_init(struct worker *w);
size_t skep_arena_wanted(const struct worker *w); /* for the next step; 0: there is room */

/* pipeline.c */
bool skep_pipeline_recomputing(struct worker *w, const struct skep_work *work); /* its input is in use */
void skep_pipeline_recompute(struct worker *w, struct step *step, struct skep_work *work);
void skep_pipeline_recompute_done(struct worker *w, struct step *step, struct skep_work *work, skep_time elapsed_ns);
void skep_pipeline_release(struct worker *w, struct step *step, const struct skep_work *work); /* all its tensors */
void skep_pipeline_drop(struct worker *w, struct step *step, struct skep_work *work);          /* and forgets it */
/* The gradient will not come back: says so to where the microbatch came from, and drops it. */
void skep_pipeline_give_up(struct worker *w, struct step *step, struct skep_work *work);
/* Is work of this round still, or already, of use here? */
bool skep_pipeline_round_open(struct worker *w, struct step *step, const struct skep_message *message);
/* A new entry for what has come; NULL: no room, and its sender has been told. */
struct skep_work *skep_pipeline_take_in(struct worker *w, struct step *step, const struct skep_message *message);
/* The microbatch that waits for word from this very sender, or NULL. */
struct skep_work *skep_pipeline_awaited(struct worker *w, const struct skep_message *message);
void skep_pipeline_ready_backward(struct worker *w, struct skep_work *work, struct skep_buf gradient);
/* A message with a tensor of the microbatch: activations of stage `stage`, or the gradient that it makes of its own. */
struct skep_message skep_pipeline_tensor(struct worker *w, struct step *step, const struct skep_work *work,
	enum skep_message_kind kind, struct skep_peer to, uint32_t stage, struct skep_buf payload);
void skep_pipeline_on_forward(struct worker *w, struct step *step, const struct skep_message *message);
void skep_pipeline_on_abandon(struct worker *w, struct step *step, const struct skep_message *message);
void skep_pipeline_on_validated(struct worker *w, struct step *step, const struct skep_message *message);
void skep_pipeline_on_grant(struct worker *w, struct step *step, const struct skep_message *message);
void skep_pipeline_forward_done(
	struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event);
void skep_pipeline_backward_done(
	struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event);
void skep_pipeline_run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind);
void skep_pipeline_issue(struct worker *w, struct step *step); /* start one of the granted microbatches */
void skep_pipeline_seal(struct worker *w, struct step *step);  /* the round takes no more work */
void skep_pipeline_seal_round(struct worker *w, struct step *step, uint32_t round);
void skep_pipeline_seal_given_up(struct worker *w, struct step *step); /* nor do those that DRAIN has named */
void skep_pipeline_peer_gone(struct worker *w, struct step *step, struct skep_peer gone);
void skep_pipeline_hand_back(struct worker *w, struct step *step); /* what was granted and not begun */
void skep_pipeline_peer_new(struct worker *w, struct step *step);

/* schedule.c */
void skep_schedule_forward(struct worker *w, struct step *step); /* the oldest that is ready, or one that is granted */
bool skep_schedule_may_add(
	struct worker *w, struct step *step); /* a BACKWARD may begin; else there may be another operation */
void skep_schedule_backward(struct worker *w, struct step *step); /* the oldest that is ready */
void skep_schedule_next(struct worker *w, struct step *step);     /* gives an idle device its next operation */
void skep_schedule_on_barrier_lifted(
	struct worker *w, struct step *step, const struct skep_message *message); /* DRAIN, BARRIER_LIFTED */

/* interleaved.c */
void skep_interleaved_init(struct worker *w, const struct skep_plan *plan);
void skep_interleaved_begin(struct worker *w);
uint32_t skep_interleaved_of_message(
	const struct worker *w, const struct skep_message *message); /* that it is about, here */
bool skep_interleaved_commit(struct worker *w, const struct skep_message *message);
bool skep_interleaved_step_on(struct worker *w);
void skep_interleaved_uncommit(struct worker *w);

/* reduce.c */
void skep_reduce_on_reduce(struct worker *w, struct step *step, const struct skep_message *message);
void skep_reduce_on_chunk(struct worker *w, struct step *step, const struct skep_message *message);
void skep_reduce_on_commit(struct worker *w, struct step *step, const struct skep_message *message);
void skep_reduce_on_feature_done(struct worker *w, struct step *step, const struct skep_event *event);
void skep_reduce_on_op_done(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf out);
void skep_reduce_backward_ended(struct worker *w, struct step *step);      /* that it waited for */
bool skep_reduce_backward_running(struct worker *w);                       /* of the round that is summed */
void skep_reduce_stepped(struct worker *w, struct step *step, bool fault); /* fault: the parameters are as they were */
void skep_reduce_forget(struct worker *w, struct step *step);
bool skep_reduce_discard(struct worker *w, struct step *step); /* starts a DISCARD, if one is due */
void skep_reduce_discarded(struct worker *w, struct step *step, const struct skep_op *op);
void skep_reduce_catch_up(struct worker *w, struct step *step,
	uint32_t attempt); /* a newcomer begins in a round that is being run again */
bool skep_reduce_wants(const struct worker *w, const struct skep_message *chunk); /* is this hop of use still */
void skep_reduce_begin(struct worker *w, struct step *step);                      /* unless something is missing */
void skep_reduce_complete(struct worker *w, struct step *step);
void skep_reduce_go_on(struct worker *w, struct step *step); /* with the next feature, or the tally */
void skep_reduce_send_tally(struct worker *w, struct step *step);
void skep_reduce_cancel(struct worker *w, struct step *step); /* the ALLREDUCE of an attempt that is void */
void skep_reduce_run(struct worker *w, struct step *step, struct skep_op *op);
void skep_reduce_take_early(struct worker *w, struct step *step); /* hops of what has begun now */
struct skep_op skep_reduce_op(const struct worker *w, enum skep_op_kind kind);

/* shards.c */
bool skep_shards_between(
	const struct worker *w); /* it has its shard's sum, and has not stepped: hops of the gather wait */
enum skep_collective skep_shards_half(const struct worker *w);
bool skep_shards_gather(
	struct worker *w, struct step *step); /* behind STEP; false: there is nothing to gather any more */
bool skep_shards_want(
	const struct worker *w, const struct skep_message *chunk); /* is this hop of the gather of use still */

/* transfers.c */
void skep_transfers_prepare(struct worker *w, const struct skep_plan *plan); /* of a new attempt */
void skep_transfers_begin(struct worker *w, struct step *step);              /* those that wait for nothing */
void skep_transfers_arrive(
	struct worker *w, struct step *step, uint32_t chunk, uint32_t number, struct skep_buf payload);
void skep_transfers_done(struct worker *w, struct step *step, uint32_t number, struct skep_buf out);
void skep_transfers_forget(struct worker *w, struct step *step); /* releases what is held */

/* roster.c */
void skep_roster_on_roster(struct worker *w, struct step *step, const struct skep_message *message);
bool skep_roster_complete(const struct worker *w, const struct skep_plan *plan); /* for the current attempt */

/* member.c */
void skep_member_start(struct worker *w, struct step *step);
void skep_member_measure(struct worker *w, const struct skep_plan *plan); /* of its load, since the last event */
void skep_member_timer(struct worker *w, struct step *step);
void skep_member_on_assign(struct worker *w, struct step *step, const struct skep_message *message);
void skep_member_on_admit(struct worker *w, struct step *step, const struct skep_message *message);
void skep_member_admit(struct worker *w, struct step *step, uint32_t round); /* its first round is that one */
void skep_member_enter(struct worker *w, struct step *step);                 /* starts ENTER, if it can */
void skep_member_entered(struct worker *w, struct step *step);
void skep_member_ready(struct worker *w, struct step *step);
bool skep_member_restore(struct worker *w, struct step *step); /* starts RESTORE, in a restorer */
bool skep_member_checkpoint(struct worker *w, struct step *step);
void skep_member_checkpointed(struct worker *w, struct step *step, const struct skep_event *event);
void skep_member_keep(struct worker *w, uint32_t version, uint32_t number);
void skep_member_fault(
	struct worker *w, struct step *step, const struct skep_event *event); /* says what is not finite */
void skep_member_on_peer(struct worker *w, struct step *step, const struct skep_message *message);
void skep_member_on_stop(struct worker *w, struct step *step, const struct skep_message *message);
void skep_member_notice(struct worker *w, struct step *step);
void skep_member_suspect(struct worker *w, struct step *step, struct skep_peer who, bool asking);
void skep_member_stop(struct worker *w, struct step *step, bool ok);

/* download.c, the newcomer */
void skep_download_begin(struct worker *w, const struct skep_plan *plan);
void skep_download_from(struct worker *w, struct step *step, struct skep_peer source); /* asks what is missing there */
void skep_download_on_state(struct worker *w, struct step *step, const struct skep_message *message);
bool skep_download_load(struct worker *w, struct step *step); /* starts a LOAD, if there is one for this version */
void skep_download_loaded(struct worker *w, struct step *step, const struct skep_op *op);
void skep_download_stepped(struct worker *w, struct step *step);
void skep_download_heartbeat(struct worker *w, struct step *step);
bool skep_download_wants(const struct worker *w, const struct skep_message *fetch); /* is it still of use */
void skep_download_forget(struct worker *w, struct step *step);
/* the source */
void skep_download_on_fetch(struct worker *w, const struct skep_plan *plan, const struct skep_message *message);
bool skep_download_save(struct worker *w, struct step *step); /* starts a SAVE, if a worker waits for one */
void skep_download_saved(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf state);
bool skep_download_state_failed(struct worker *w, const struct skep_message *message); /* send it again? */
