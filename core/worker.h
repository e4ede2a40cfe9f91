/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - the state of a worker's machine, shared by the files that make it up:
 *
 *   worker.c    set-up, dispatch of events; room.c: memory that grows with what is met
 *   pipeline.c  what becomes of a microbatch: in, out, back, given up; route_peer.c, route_trainer.c: where it goes
 *   patience.c  what becomes of a microbatch that has been with another worker for too long
 *   schedule.c  which operation the device runs next
 *   laps.c      interleaved pipelines: a worker with several slices of the model
 *   reduce.c    the end of a round: seal the accumulator, sum, tally, step
 *   moves.c     the sum, move by move; roster.c: who takes part in it
 *   promised.c  a sum that begins before the round is complete
 *   merge.c     the same, without waiting for others: when its pseudo-gradient is merged, and what it tells of it
 *   tie.c       a tied table: what the other stage that holds a copy has summed of it
 *   inner.c     periodic sync: steps of its own within a round, and the pseudo-gradient that they come to
 *   member.c    joining, being fenced, hearing of others, heartbeats, stopping
 *   download.c  a newcomer fetches its stage's state in chunks, another worker hands it out
 *
 * A worker is OUT (holds nothing, has asked to join), JOINING (has a stage, downloads its state), SERVING, or STOPPED. One
 * that is joining *enters* its stage (its device makes room for it), then it is *admitted*: a member of the stage's
 * reductions, which steps along. While it serves or is admitted, `version` counts the optimizer steps behind its
 * parameters, and it works on round `version`. Work of the next round may come early (its sender has stepped already) and
 * waits; work of earlier rounds is too late and is ignored.
 *
 * With delayed updates it goes on at once in round `version` + 1 when round `version` is sealed, and the step is done beside that
 * work (with periodic sync between two passes of it). One reduction at a time: a REDUCE of the round it works on waits for the
 * step, and the round stays open.
 *
 * Without a flush (`streams`, SKEP_PIPELINE_PIPEDREAM) several rounds are open, round `version` is the oldest that is not behind
 * this worker, and REDUCE comes when a round opens. Its sum begins when the worker has counted its share of it, which is one
 * microbatch or none, and nothing is sealed: what has not come will come, until TURN says that the pipeline has given it up.
 * Sums and steps go round by round, in order. FORWARD reads the parameters that are there, BACKWARD the same ones; a
 * FORWARD whose parameters would lack more than `staleness` steps waits for a step, which is why a step never finds its place
 * in use (schedule.c). BACKWARD waits while the round before the last one is not stepped: there are two accumulators.
 */
#ifndef SKEP_CORE_WORKER_H
#define SKEP_CORE_WORKER_H

#include <assert.h>

#include "core/collective.h"
#include "core/inflight.h"
#include "core/machine.h"
#include "core/marks.h"
#include "core/patience.h"
#include "core/route.h"
#include "core/wiring.h"

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
	skep_time patience_ns;
	skep_time stepped_ns, round_ns,
		took_ns; /* the last step, from one to the next, the last chunk from FETCH to STATE */
	struct part part[DOWNLOADS];
};

struct fetch { /* a chunk that somebody waits for, of this version or a later one */
	struct skep_peer to;
	uint32_t chunk, version;
};

struct grant { /* microbatches this owner may still issue */
	uint32_t round, first, end, attempt;
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
	uint32_t counted;               /* by the other slice, once committed */
};

struct reduction { /* of round `version`; attempt 0: not begun, the round is open */
	uint32_t attempt, rank, size;
	struct skep_peer next;
	uint32_t fragment;         /* the bucket that is being summed, or is next; one after the other */
	uint32_t moves;            /* that a fragment may have; messages number them through all fragments */
	struct skep_scheme scheme; /* of this fragment, whose elements begin there: */
	uint64_t first;
	uint32_t done;  /* moves of it */
	uint64_t whole; /* the ALLREDUCE that runs; 0: none */
	bool waiting;   /* for a BACKWARD that was running when the round was sealed */
	bool promised;  /* the round is open until COMMIT: it begins when this worker's share is counted ... */
	bool overtaken; /* ... and more came after that: this attempt is void */
	bool begun;     /* this fragment is */
	bool complete;  /* all moves are done, the tally is sent */
	bool committed; /* the divisors are known */
	bool stepping;
	bool own;        /* async: it is the merge of what this worker has told, or that is a part of it */
	bool checkpoint; /* after the step */
	uint32_t norms;  /* clip, rank 0: slices whose squares are still to be told; the tally waits */
	uint64_t square; /* clip: of the norm of all gradients, once committed */
	struct tied tied;
	/* Without a flush: begins when so many were counted here; async, gathered: so many are in its part. */
	uint32_t share;
};

struct roster { /* of the newest reduction that one was sent for; attempt 0: none */
	uint32_t round, attempt, size, heard;
};

struct laps {             /* a microbatch passes the worker so often: */
	uint32_t count;   /* 1 unless pipelines are interleaved */
	uint32_t stages;  /* of the plan */
	uint32_t stepped; /* slices that have made the step which is under way */
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

struct merge {             /* periodic sync, async */
	bool told;         /* PSEUDO is done and the directory knows what is in it; until its STEP there is no other */
	bool fresh;        /* it serves, and does not know yet which round is open */
	bool called;       /* gathered: all that it has counted is wanted now, for others to be compared with */
	uint32_t number;   /* merges that it has told */
	uint32_t open;     /* the round that it works on */
	uint32_t settled;  /* of rounds before this one it has told all, and has said so */
	uint32_t pressed;  /* of rounds before this one it is to tell all now */
	uint32_t steps;    /* INNER since the last PSEUDO */
	uint32_t counted;  /* microbatches in what is merged now */
	uint32_t base;     /* version that the inner parameters started from */
	uint64_t position; /* of the newest microbatch that it has counted, all rounds in one row; and */
	uint64_t due;      /* where its next merge is, by share; 0: not known yet */
};

struct worker {
	struct skep_node node;
	uint8_t state; /* enum worker_state */
	bool delayed;  /* of the plan */
	bool periodic; /* of the plan: periodic sync */
	bool beside;   /* skep_plan_steps_beside() */
	bool streams;  /* of the plan: rounds without a flush */
	bool async;    /* of the plan */
	bool met;      /* in this step something that takes room (room.c) */
	bool stop_when_stepped;
	uint32_t stop_version;    /* without a flush: that it is to reach first */
	bool checkpoint;          /* its state is to be kept, now */
	uint32_t keep;            /* KEEP: its state is to be kept under this number; 0: nobody asked */
	uint32_t keep_version;    /* when it has come to this version; without `async` the same */
	bool restore;             /* JOINING: it founds its stage anew, from this version: */
	uint32_t restore_version; /* 0: as at the start of the run */
	uint32_t candidate;       /* for which it works, or did before one was kept */
	bool leaving;             /* notice was given: it does not join again */
	bool entered, admitted;   /* JOINING: see above */
	uint32_t version;
	uint32_t assigned; /* number of the newest ADMIT in this epoch */
	struct skep_peer source;
	skep_time born_ns, sent_to_directory_ns, heartbeat_due_ns, load_due_ns, patience_due_ns;
	/* Load since the last report, while the round was open: nothing queues in a reduction, and that says nothing. */
	skep_time queue_since_ns, open_ns;
	uint64_t queue_area; /* microbatches that were ready, times ns */
	skep_time passes_ns; /* forward and backward, whole ones */
	uint32_t passed;     /* microbatches, both ways */

	uint64_t op_floor;     /* operations below were asked for in an earlier life */
	uint64_t compute_op;   /* id of the one on the compute lane, 0: idle */
	uint8_t compute_kind;  /* what it is: enum skep_op_kind */
	uint32_t reduce_ops;   /* on the reduce lane */
	uint32_t compute_slot; /* its microbatch */
	uint32_t fetchers;
	bool saved; /* the operation before was a SAVE: now something else, if there is anything */
	uint32_t gone_capacity;

	uint32_t issued_in_flight;
	uint32_t grants, grant_capacity;
	struct reduction reduction;
	struct inner inner;
	struct merge merge;
	uint32_t early, early_capacity, early_max;
	uint32_t members_max;    /* of a reduction */
	uint32_t moves_capacity; /* 0: a ring needs none of what is kept for each move and each member */

	uint32_t share, held; /* fixed pipelines: granted to this one in a round; most that this worker may hold */
	uint32_t forwarded;   /* microbatches of the open round whose FORWARD was done here */
	uint32_t part, parts; /* of the BACKWARD that runs; parts 0: it runs as a whole */
	uint32_t back;        /* newest round + 1 in which the barrier is open, 0: none */
	uint32_t turn; /* newest round + 1 in which it need not wait for all of its share, 0: none; without a flush:
	                         which its pipeline has given up */
	uint32_t staleness; /* skep_plan_staleness() of its stage; it never serves another one */
	bool backwards;     /* its last pass was a BACKWARD */

	uint32_t slots; /* rounds of which it may hold work: from `version` on */

	struct laps laps;
	uint32_t numbers;  /* of a round */
	uint32_t trained;  /* microbatches from this number on are of the validation before the round */
	uint32_t headroom; /* most that one step may mark */
	uint32_t mark_slots, tally_capacity;
	uint32_t counted[2];  /* microbatches in the accumulator, by round parity */
	int64_t loss_nano[2]; /* sum over these */

	size_t view_at, view_bytes, leg_at, inflight_at, grant_at, hops_at, loaded_at, gone_at, moved_at, held_at,
		roster_at, fact_at, divisor_at, pending_at, came_at;
	size_t met_at; /* from here on lies what grows with what is met (room.c): */
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

/* Trainer routing: what this owner keeps of a later stage. Its microbatches are in the first slots, no more than it may have
 * in flight: an owner holds nothing but its own, and the slot that was freed last is taken first. */
static inline struct skep_leg *worker_leg(
	struct worker *w, const struct skep_plan *plan, const struct skep_work *work, uint32_t stage)
{
	size_t slot = (size_t)(work - worker_inflight(w)->work);
	assert(slot < plan->in_flight && stage > 0 && stage < plan->stages);
	return (struct skep_leg *)skep_at(w, w->leg_at) + slot * (plan->stages - 1) + stage - 1;
}

static inline struct grant *worker_grants(struct worker *w)
{
	return skep_at(w, w->grant_at);
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

static inline size_t worker_tally_at(const struct worker *w, uint32_t round)
{
	return w->tally_at + ((w->delayed || w->streams) && round & 1) * skep_align(skep_tally_size(w->tally_capacity));
}

/* Those in the round's accumulator. */
static inline struct skep_tally *worker_tally(struct worker *w, uint32_t round)
{
	return skep_at(w, worker_tally_at(w, round));
}

/* Without a flush, of which at most one microbatch of a round comes here: the newest round + 1 of this slot that has. */
static inline uint32_t *worker_came(struct worker *w, uint32_t round)
{
	return (uint32_t *)skep_at(w, w->came_at) + round % w->slots;
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

/* Moves of the current attempt that are done. */
static inline uint64_t *worker_moved(struct worker *w)
{
	return skep_at(w, w->moved_at);
}

/* By move: what has arrived for it, or what it carries on, until it begins. */
static inline struct skep_buf *worker_held(struct worker *w)
{
	return skep_at(w, w->held_at);
}

/* By rank. */
static inline struct skep_peer *worker_roster(struct worker *w)
{
	return skep_at(w, w->roster_at);
}

/* Of each slice in the step that is to come; SKEP_NO_INDEX: not heard of yet. */
static inline uint32_t *worker_divisor(struct worker *w)
{
	return skep_at(w, w->divisor_at);
}

/* The number under which a microbatch is known here in one of its laps. */
static inline uint32_t worker_item(const struct worker *w, uint32_t microbatch, uint32_t lap)
{
	return microbatch * w->laps.count + lap;
}

/* The slice of the model that a microbatch is in; the stage, where each has one. */
static inline uint32_t worker_slice(const struct worker *w, const struct skep_work *work)
{
	return work->lap * w->laps.stages + w->node.stage;
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
	return w->reduction.attempt > 0 && !w->reduction.promised && !w->async;
}

/* It goes forwards to be judged, and leaves nothing behind. */
static inline bool worker_validates(const struct worker *w, uint32_t microbatch)
{
	return microbatch >= w->trained;
}

/* The round whose work it does, or did last. */
static inline uint32_t worker_round(const struct worker *w)
{
	return w->async ? w->merge.open : w->version + (w->delayed && worker_sealed(w));
}

/* It has told what it counted, and no reduction followed: what is missing may be run again. */
static inline bool worker_recounted(const struct worker *w)
{
	return worker_sealed(w) && w->reduction.size == 0 && w->reduction.complete;
}

/* Does it do work of this round now? */
static inline bool worker_works_on(const struct worker *w, uint32_t round)
{
	if (w->streams)
		return round >= w->version && round - w->version < w->slots && round >= w->turn;
	return round == worker_round(w) && (w->delayed || !worker_sealed(w) || worker_recounted(w));
}

/* The attempt that work of this round carries: 0 until its microbatches were counted for the first time. */
static inline uint32_t worker_pass(const struct worker *w, uint32_t round)
{
	return round == w->version && !w->delayed && !w->streams && worker_sealed(w) ? w->reduction.attempt : 0;
}

/* worker.c */
void worker_send(struct worker *w, struct step *step, struct skep_message *message);
void worker_compute(struct worker *w, struct step *step, struct skep_op *op);
void worker_clear_views(struct worker *w, const struct skep_plan *plan);
void worker_forget(struct worker *w, struct step *step); /* releases all that the device is not using right now */

/* room.c */
size_t room_lay_out(struct worker *w, const struct skep_plan *plan, size_t at); /* what grows, as large as at first */
void room_init(struct worker *w);
size_t room_wanted(const struct worker *w); /* for the next step; 0: there is room */

/* pipeline.c */
bool pipeline_recomputing(struct worker *w, const struct skep_work *work); /* its input is in use */
void pipeline_recompute(struct worker *w, struct step *step, struct skep_work *work);
void pipeline_recompute_done(struct worker *w, struct step *step, struct skep_work *work, skep_time elapsed_ns);
void pipeline_release(struct worker *w, struct step *step, const struct skep_work *work); /* all its tensors */
void pipeline_drop(struct worker *w, struct step *step, struct skep_work *work);          /* and forgets it */
/* The gradient will not come back: says so to where the microbatch came from, and drops it. */
void pipeline_give_up(struct worker *w, struct step *step, struct skep_work *work);
/* Is work of this round still, or already, of use here? */
bool pipeline_round_open(struct worker *w, const struct skep_message *message);
/* A new entry for what has come; NULL: no room, and its sender has been told. */
struct skep_work *pipeline_take_in(struct worker *w, struct step *step, const struct skep_message *message);
/* The microbatch that waits for word from this very sender, or NULL. */
struct skep_work *pipeline_awaited(struct worker *w, const struct skep_message *message);
void pipeline_ready_backward(struct worker *w, struct skep_work *work, struct skep_buf gradient);
/* A message with a tensor of the microbatch: activations of stage `stage`, or the gradient that it makes of its own. */
struct skep_message pipeline_tensor(struct worker *w, struct step *step, const struct skep_work *work,
	enum skep_message_kind kind, struct skep_peer to, uint32_t stage, struct skep_buf payload);
void pipeline_on_forward(struct worker *w, struct step *step, const struct skep_message *message);
void pipeline_on_abandon(struct worker *w, struct step *step, const struct skep_message *message);
void pipeline_on_validated(struct worker *w, struct step *step, const struct skep_message *message);
void pipeline_on_grant(struct worker *w, const struct skep_message *message);
void pipeline_forward_done(struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event);
void pipeline_backward_done(
	struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event);
void pipeline_run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind);
void pipeline_issue(struct worker *w, struct step *step); /* start one of the granted microbatches */
void pipeline_seal(struct worker *w, struct step *step);  /* the round takes no more work */
void pipeline_seal_round(struct worker *w, struct step *step, uint32_t round);
void pipeline_seal_given_up(struct worker *w, struct step *step); /* nor do those that TURN has named */
void pipeline_peer_gone(struct worker *w, struct step *step, struct skep_peer gone);
void pipeline_hand_back(struct worker *w, struct step *step); /* what was granted and not begun */
void pipeline_peer_new(struct worker *w, struct step *step);

/* schedule.c */
void schedule_next(struct worker *w, struct step *step); /* gives an idle device its next operation */
void schedule_on_gate(struct worker *w, struct step *step, const struct skep_message *message); /* TURN, BACK */
void schedule_passed(struct worker *w, struct step *step); /* the last stage has gone forwards once more */

/* laps.c */
void laps_init(struct worker *w, const struct skep_plan *plan);
void laps_begin(struct worker *w);
uint32_t laps_of_message(const struct worker *w, const struct skep_message *message); /* that it is about, here */
bool laps_commit(struct worker *w, const struct skep_message *message);
bool laps_step_on(struct worker *w);
void laps_uncommit(struct worker *w);
void laps_pick(struct worker *w, struct step *step); /* gives an idle device its next pass */

/* reduce.c */
void reduce_on_reduce(struct worker *w, struct step *step, const struct skep_message *message);
void reduce_on_chunk(struct worker *w, struct step *step, const struct skep_message *message);
void reduce_on_commit(struct worker *w, struct step *step, const struct skep_message *message);
void reduce_on_op_done(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf out);
void reduce_measured(struct worker *w, struct step *step, const struct skep_event *event); /* NORM */
void reduce_backward_ended(struct worker *w, struct step *step);
void reduce_settle(
	struct worker *w, struct step *step); /* without a flush: the share of a round may have been counted */
void reduce_stepped(struct worker *w, struct step *step, bool fault); /* fault: the parameters are as they were */
void reduce_forget(struct worker *w, struct step *step);
void reduce_catch_up(struct worker *w, uint32_t attempt); /* a newcomer begins in a round that is being run again */
bool reduce_wants(const struct worker *w, const struct skep_message *chunk); /* is this hop of use still */
void reduce_begin(struct worker *w, struct step *step);                      /* unless something is missing */
void reduce_complete(struct worker *w, struct step *step);
void reduce_summed(struct worker *w, struct step *step); /* all that it steps on is here */
void reduce_cancel(struct worker *w, struct step *step); /* the ALLREDUCE of an attempt that is void */
void reduce_run(struct worker *w, struct step *step, struct skep_op *op);
struct skep_op reduce_op(const struct worker *w, enum skep_op_kind kind);

/* tie.c: all of it with a tied table alone, in the stages that hold a copy */
void tie_begin(struct worker *w, struct step *step); /* this stage's sum is here */
void tie_given(struct worker *w, struct step *step, struct skep_buf out);
void tie_arrived(struct worker *w, struct step *step, struct skep_buf payload); /* the other one's */
void tie_taken(struct worker *w, struct step *step);
void tie_measure(struct worker *w, struct step *step); /* with `clip`: what no slice can tell by itself */

/* promised.c */
bool promised_due(const struct worker *w);         /* may the next fragment of a promised reduction begin? */
bool promised_counts_more(const struct worker *w); /* a BACKWARD that runs now is of more than its share */
void promised_counted(struct worker *w, struct step *step);
uint32_t promised_parts(struct worker *w, const struct skep_plan *plan); /* of a BACKWARD that counts; 0: a whole */
void promised_make_way(struct worker *w, struct step *step);             /* more is about to be counted */

/* inner.c: all of it with periodic sync alone */
void inner_init(struct worker *w, const struct skep_plan *plan);
void inner_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch);
uint32_t inner_share(const struct worker *w, const struct skep_plan *plan); /* microbatches of a step, here */
void inner_do(struct worker *w, struct step *step, enum skep_op_kind kind, uint32_t round, uint32_t microbatches);
bool inner_unwritten(const struct worker *w);        /* the sum has to wait for the pseudo-gradient */
bool inner_run(struct worker *w, struct step *step); /* gives an idle device what is due, if anything is */
bool inner_puts_off(struct worker *w, const struct skep_plan *plan); /* STEP waits for inner steps of the next round */
void inner_done(struct worker *w, struct step *step, const struct skep_op *op);
void inner_stepped(struct worker *w); /* the round's STEP is done */

/* merge.c: all of it with `async` alone */
void merge_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch);
bool merge_run(struct worker *w, struct step *step);     /* as inner_run() */
void merge_written(struct worker *w, struct step *step); /* PSEUDO is done */
void merge_settle(struct worker *w, struct step *step);  /* the device is idle: says what has been told, if it is new */
void merge_on_settle(struct worker *w, struct step *step, const struct skep_message *message);
void merge_first_work(struct worker *w, uint32_t round); /* has come to one that did not know which round is open */
enum skep_merge merge_of_step(const struct worker *w);
void merge_stepped(struct worker *w);
bool merge_waits(const struct worker *w, const struct skep_plan *plan); /* its own is under way, so it makes no pass */

/* moves.c */
void moves_prepare(struct worker *w, const struct skep_plan *plan); /* of a new attempt */
void moves_begin(struct worker *w, struct step *step);              /* those that wait for nothing */
void moves_arrive(struct worker *w, struct step *step, uint32_t chunk, uint32_t number, struct skep_buf payload);
void moves_done(struct worker *w, struct step *step, uint32_t number, struct skep_buf out);
void moves_forget(struct worker *w, struct step *step); /* releases what is held */

/* roster.c */
void roster_on_roster(struct worker *w, struct step *step, const struct skep_message *message);
bool roster_complete(const struct worker *w, const struct skep_plan *plan); /* for the current attempt */

/* member.c */
void member_start(struct worker *w, struct step *step);
void member_measure(struct worker *w); /* of its load, since the last event */
void member_timer(struct worker *w, struct step *step);
void member_on_assign(struct worker *w, struct step *step, const struct skep_message *message);
void member_on_admit(struct worker *w, struct step *step, const struct skep_message *message);
void member_admit(struct worker *w, const struct skep_plan *plan, uint32_t round); /* its first round is that one */
bool member_enter(struct worker *w, struct step *step);                            /* starts ENTER, if it can */
void member_entered(struct worker *w, struct step *step);
void member_ready(struct worker *w, struct step *step);
bool member_restore(struct worker *w, struct step *step); /* starts RESTORE, for a founder */
bool member_checkpoint(struct worker *w, struct step *step);
void member_checkpointed(struct worker *w, struct step *step, const struct skep_event *event);
void member_on_keep(struct worker *w, const struct skep_message *message);
void member_fault(struct worker *w, struct step *step, const struct skep_event *event); /* says what is not finite */
void member_on_peer(struct worker *w, struct step *step, const struct skep_message *message);
void member_on_stop(struct worker *w, struct step *step, const struct skep_message *message);
void member_notice(struct worker *w, struct step *step);
void member_suspect(struct worker *w, struct step *step, struct skep_peer who, bool asking);
void member_stop(struct worker *w, struct step *step, bool ok);

/* download.c, the newcomer */
void download_begin(struct worker *w, const struct skep_plan *plan);
void download_from(struct worker *w, struct step *step, struct skep_peer source); /* asks what is missing there */
void download_on_state(struct worker *w, struct step *step, const struct skep_message *message);
bool download_load(struct worker *w, struct step *step); /* starts a LOAD, if there is one for this version */
void download_loaded(struct worker *w, struct step *step, const struct skep_op *op);
void download_stepped(struct worker *w, struct step *step);
void download_heartbeat(struct worker *w, struct step *step);
bool download_wants(const struct worker *w, const struct skep_message *fetch); /* is it still of use */
void download_forget(struct worker *w, struct step *step);
/* the source */
void download_on_fetch(struct worker *w, const struct skep_plan *plan, const struct skep_message *message);
bool download_save(struct worker *w, struct step *step); /* starts a SAVE, if somebody waits for one */
void download_saved(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf state);
bool download_state_failed(struct worker *w, const struct skep_message *message); /* send it again? */

#endif
