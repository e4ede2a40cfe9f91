/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_internal.h - the ledger's books, shared by ledger.c and membership.c, which write them, and audit.c, which
 * balances them.
 *
 * A *holder* is one worker under one epoch in one round and stage: it has an accumulator, so it has a bitmap of the
 * microbatches added there. I1 is then a sum over the bitmaps of the holders that the directory called members.
 */
#pragma once

#include "core/scale/policy.h"
#include "tests/cluster/ledger.h"

#define ANY SKEP_NO_INDEX
#define ARENA_WORDS (1u << 20)
#define HOLDERS 8192u

struct holder {
	struct skep_peer peer;
	uint64_t *added, *noted; /* by BACKWARD; by COUNTED notes */
	uint64_t *merged;        /* async: by OUTER_UPDATED notes */
	uint64_t *
		version; /* [capacity] without a flush, or periodic: of the parameters that FORWARD, or BACKWARD, read */
	uint32_t inner, inner_steps, inner_share; /* periodic: microbatches in inner steps, steps, of the first one; */
	uint32_t pseudo;                          /* the newest pseudo-gradient's weight, 0 if a step came after it */
	bool inner_short;                         /* a step was of another number than the first */
	uint32_t next;                            /* in its cell, 0: none */
	bool member, stepped;
	uint32_t attempt; /* gossip: that REDUCE has named last, the same in both of a pair */
};

struct cell { /* one virtual stage in one round; what all virtual stages of a stage have in common is in the first one's */
	uint64_t *forwarded, *backwarded, *lost, *sent_on;
	uint64_t *merged; /* async: by any worker; of outer updates before this one, all that are final: */
	uint32_t merged_before;
	struct skep_peer *forwarder; /* [capacity]: who did the forward pass, the newest in office */
	struct skep_peer *dropper;   /* [capacity]: who said that it dropped the microbatch, the same */
	uint64_t *dropped,
		*again; /* a worker has; the forward pass was done once more, because one in the next stage has */
	uint32_t first_holder, members;
	uint32_t counted, lost_count; /* as STAGE_COMMITTED says */
	bool committed;
	uint32_t stepped;                     /* with shards: the elements that were */
	struct skep_peer alone;               /* without a flush: who stepped before that, on its own word ... */
	uint32_t alone_counted;               /* ... and on the sum of so many; epoch 0: none */
	uint64_t parameter[CLUSTER_ELEMENTS]; /* after the step, as far as `known` says */
	uint32_t known;
};

struct round {
	uint64_t *issued, *finished; /* finished: as their owners told the directory */
	struct skep_peer *owner;     /* [capacity] */
	uint64_t *voided;            /* issued before the round was void last, and not granted again since */
	uint64_t *rerun; /* [capacity], the value of the newest RERUN note: attempt, first and last stage; 0: none */
	int64_t *loss;   /* [capacity], as the devices of the last stage said */
	uint32_t issued_count, attempt, void_attempt; /* of the newest REDUCE; when the round was void last, 0: never */
	bool open, reducing, closed, has_loss, eager;
	uint32_t due; /* without a flush: pipelines that could work when it opened, and are granted one each; */
	uint32_t given[CLUSTER_WORKERS]; /* how many each owner was */
	int64_t loss_nano;
	skep_time committed_ns; /* the first of its stages was; 0: none */
	struct cell cell[CLUSTER_VSTAGES];
};

struct membership { /* what the directory's notes say about one worker */
	struct skep_peer peer;
	uint32_t stage, since_round;
	bool in, restorer; /* restorer: it held its stage from the start, or restored it anew */
	bool admitted;     /* not in yet, but a member from since_round on; what it holds of the state: */
	uint32_t known;
	uint32_t leaving_epoch;         /* the directory has heard its LEAVE of this epoch */
	uint32_t version;               /* async: of its newest STEP, LOAD or RESTORE */
	uint32_t moved_epoch, moved_to; /* of the last move: the new life, and where it is to go */
};

struct news { /* what one worker has heard about another: the newest epoch */
	uint32_t serves, leaves;
	bool heard;
};

struct pipe { /* a fixed pipeline in the open round; where stages are uneven all of them */
	uint32_t granted, first;
	bool disturbed, turned; /* a microbatch was given up, or a worker came; those in it need not wait */
	uint32_t excused;       /* without a flush: newest round + 1 that it has a reason to give up */
};

struct passer { /* what one worker did in a round */
	uint32_t epoch, round, forwards, backwards;
};

#define VALIDATION_MOST 64u /* microbatches */

struct validation { /* the newest */
	bool open;
	uint32_t round; /* steps behind what is judged */
	uint32_t heard; /* as the note says, with mean_nano */
	int64_t mean_nano;
	bool judged[VALIDATION_MOST]; /* in the last stage, with this loss: */
	int64_t loss_nano[VALIDATION_MOST];
	bool back[VALIDATION_MOST]; /* its owner has said so */
	uint32_t tries[VALIDATION_MOST];
};

struct ailment { /* an operation whose result is not finite, or was not kept */
	struct skep_peer who;
	uint32_t round, microbatch;
	uint16_t stage;
	uint8_t fault;
	bool ended, redone; /* the operation is over; the same was done once more, and went well */
};

#define REPLICAS_KEPT 4u

struct replica { /* gossip: what a worker holds at a version, by the remainder of its epoch; epoch 0: nothing that was seen */
	uint32_t epoch, stage, known;
	uint64_t parameter[CLUSTER_ELEMENTS];
};

#define MERGES_KEPT 256u

struct merged {                       /* async: a merge of a stage */
	uint16_t by[CLUSTER_WORKERS]; /* under which epoch, 0: nothing of it is in there; so many are: */
	uint32_t parts;
	uint32_t count; /* microbatches */
	uint64_t sum[CLUSTER_ELEMENTS];
	uint64_t parameter[CLUSTER_ELEMENTS]; /* after its step, as far as `known` says */
	uint32_t known;
};

struct scale_books { /* machines that the run asks for */
	bool begun, unasked,
		unchecked; /* anything was said; of the newest note the world does not know; nor are all in it added up */
	uint32_t kind, wanted[SKEP_SCALE_KINDS_MAX];
	skep_time changed_ns, returned_ns;
	uint32_t returns;                   /* at returned_ns */
	uint32_t returned[CLUSTER_WORKERS]; /* the epoch in which the worker is to leave; in which it is, or was, ... */
	uint32_t told[CLUSTER_WORKERS], heard[CLUSTER_WORKERS],
		asked[CLUSTER_WORKERS]; /* ... told so, has heard it, has asked to */
};

struct holding { /* of a worker in this life: STEPs of the round that it is at; the newest version that it has, and ... */
	uint32_t epoch, stage, round, steps, newest;
	uint32_t version; /* ... that it has made since all know that it serves; 0: none, or it is within a step */
	/* Versions that it has made since the directory was lost; `presumed` without having been told, as all know; 0: none. */
	uint32_t late, presumed;
	bool restored; /* by it, and word that this is written has not come to it */
	uint64_t kept; /* versions that it has kept since the directory was lost, bit by bit */
};

struct ledger {
	const struct skep_plan *plan;
	struct verdict *verdict;
	uint32_t candidate; /* whose parameters these were at the start */
	uint32_t capacity, words, rounds_closed, view;
	/* Rounds that had closed at the run's start; that closed and were undone since; all have begun again (outage.c), and the
	 * directory is to say so; the parameters then. */
	uint32_t rounds_before;
	uint64_t undone;
	bool resumed, resumed_due;
	bool lost; /* the directory, now, and workers keep what they hold */
	uint64_t begun[CLUSTER_STAGES][CLUSTER_ELEMENTS];
	skep_time closed_ns; /* the last of these */
	bool stopped;
	bool empty[CLUSTER_STAGES]; /* has no worker, since empty_ns; its restorer is at work from restored_version */
	skep_time empty_ns[CLUSTER_STAGES];
	bool restarted[CLUSTER_STAGES];    /* ever */
	uint32_t restored[CLUSTER_STAGES]; /* version + 1 of the last RESTORE, 0: none since it was empty */
	uint32_t kept[CLUSTER_STAGES];     /* newest version that the directory has called kept */
	uint32_t whole[CLUSTER_STAGES][3]; /* the newest three of these: older ones are removed */
	uint32_t unkept[CLUSTER_STAGES];   /* newest version that it has called unkept */
	struct kept checkpoint[CLUSTER_STAGES][CLUSTER_ROUNDS + 1];
	struct ailment ailment[64];
	uint32_t ailments;
	bool diverged; /* the directory has said so */
	skep_time now;
	bool moved; /* a worker did, last at moved_ns */
	skep_time moved_ns;
	uint64_t given_back;
	/* A worker was, since the last time; its round must be void; it is, and nothing was granted since. */
	bool fenced, void_due, voiding;
	uint64_t voids;
	bool is_short[CLUSTER_STAGES]; /* lacks a worker, since ... */
	skep_time short_ns[CLUSTER_STAGES];
	bool shard_lost;                                        /* the directory has said so */
	uint32_t shard_owner[CLUSTER_STAGES][CLUSTER_ELEMENTS]; /* who has stepped it, + 1; 0: no worker yet */
	uint32_t mover;
	struct membership membership[CLUSTER_WORKERS];
	struct scale_books scale;
	uint32_t news_epoch[CLUSTER_WORKERS]; /* in which life the worker has heard its news */
	struct news news[CLUSTER_WORKERS][CLUSTER_WORKERS];
	uint32_t assigned_epoch[CLUSTER_WORKERS]; /* the newest life that it was given a stage for */
	struct pipe pipe[CLUSTER_WORKERS];
	struct passer passer[CLUSTER_WORKERS];
	bool regular;        /* the open round: all were there when it opened, and nothing has happened to them */
	bool broken;         /* no pipeline was whole when a worker went last, since ... */
	skep_time broken_ns; /* ... then */
	struct holding holding[CLUSTER_WORKERS];
	struct validation validation;
	struct replica replica[CLUSTER_WORKERS][CLUSTER_ROUNDS + 1][REPLICAS_KEPT];
	struct round round[CLUSTER_ROUNDS];
	uint32_t merges[CLUSTER_STAGES];  /* async: that are final */
	uint32_t merging[CLUSTER_STAGES]; /* microbatches of the next one, as far as was noted in this step */
	struct holder holder[HOLDERS];
	struct merged merged[CLUSTER_STAGES][MERGES_KEPT];
	uint32_t holders;
	uint64_t arena[ARENA_WORDS];
	size_t arena_used;
};

static inline bool bit(const uint64_t *map, uint32_t at)
{
	return map[at / 64] >> at % 64 & 1;
}

static inline void set_bit(uint64_t *map, uint32_t at)
{
	map[at / 64] |= UINT64_C(1) << at % 64;
}

uint32_t books_bits(const struct ledger *ledger, const uint64_t *map); /* how many are set */
struct holder *books_holder(struct ledger *ledger, struct cell *cell, struct skep_peer peer);
/* How many steps the parameters lacked on which the holder did this microbatch, or the round. */
uint32_t books_staleness(const struct ledger *ledger, const struct holder *holder, uint32_t round, uint32_t microbatch);
/* The sum of what the holder added, worked out anew from hashes, on top of what `sum` holds. */
void books_add_own(
	const struct ledger *ledger, const struct holder *holder, uint32_t round, uint32_t stage, uint64_t *sum);
/* The same over all members. */
void books_expected_sum(struct ledger *ledger, uint32_t round, uint32_t stage, uint64_t *ret);
/* What the worker holds of a version is what the others hold, as far as it is known. */
void books_check_parameters(
	struct ledger *ledger, struct skep_peer who, uint32_t version, uint32_t stage, const struct effect *effect);
/* Are these numbers of something that there is? Else it says so. */
bool books_valid(struct ledger *ledger, const char *what, uint32_t round, uint32_t stage, uint32_t microbatch);
uint32_t books_counted(const struct ledger *ledger, const struct cell *cell); /* by all members together */
/* Of what the operation's virtual stage trains, and its round sums, do both hold the same? */
bool books_same_sum(const struct ledger *ledger, const struct skep_op *op, const uint64_t *a, const uint64_t *b);

/* frozen.c */
void frozen_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void frozen_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);

/* tied.c */
void resumed_books(struct ledger *ledger); /* resumed.c: rounds before the first one are closed */
uint64_t books_drawn(const struct ledger *ledger, uint32_t stage, uint32_t element); /* before any step */
void tied_step(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void tied_compare(
	struct ledger *ledger, struct skep_peer who, uint32_t version, uint32_t stage, const struct effect *effect);
double tied_products(struct ledger *ledger, uint32_t round);

/* outage.c: all begin again, with the plan's first round; the first that is noted then says so. */
void outage_committed(struct ledger *ledger, const struct skep_note *note);
void outage_begins(struct ledger *ledger, uint32_t began, uint64_t stayed); /* `began`: the first round until then */
void outage_noted(struct ledger *ledger, const struct skep_note *note);

/* held.c: a STEP or LOAD is done; the newest version that these workers are known to hold of all stages, 0: none; may they hold
 * this one of all? */
void held_changed(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
uint32_t held_of_all(const struct ledger *ledger, uint64_t stayed);
void held_arrived(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);
void held_kept(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, bool well);
bool held_presumes(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
bool held_by_all(const struct ledger *ledger, uint64_t stayed, uint32_t version);

/* keeping.c */
void keeping_kept(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void keeping_restored(
	struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void keeping_noted(struct ledger *ledger, const struct skep_note *note);
bool ledger_target_reached(const struct ledger *ledger); /* by the loss of the last round, or of its validation */

/* sharded.c */
void sharded_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void sharded_lost(struct ledger *ledger, const struct skep_note *note);
void sharded_end(struct ledger *ledger, const uint32_t *epoch);
/* Of all shards of the virtual stage's sum, each by itself. */
double sharded_squares(const struct skep_plan *plan, uint32_t vstage, uint32_t members, const uint64_t *sum);

/* membership.c */
void membership_begin(struct ledger *ledger);
void membership_fenced(struct ledger *ledger, const struct skep_note *note);
void membership_admitted(struct ledger *ledger, const struct skep_note *note);
void membership_joined(struct ledger *ledger, const struct skep_note *note);
void membership_left(struct ledger *ledger, const struct skep_note *note);
void membership_moved(struct ledger *ledger, const struct skep_note *note);
void membership_granted(struct ledger *ledger, const struct skep_note *note);
void membership_round_opens(struct ledger *ledger, uint32_t round);
void membership_assigned(struct ledger *ledger, const struct skep_message *m);
void membership_forward(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);
/* Does the peer serve the stage, and take part in the round, as far as the directory has said? */
bool books_seated(const struct ledger *ledger, struct skep_peer peer, uint32_t stage, uint32_t round);
/* Can the seat's worker do the round's work? Not the round in which it joined, for which it came too late. */
bool books_able(const struct ledger *ledger, const struct membership *membership, uint32_t round);
/* True if a stage has no worker that can do the round's work. */
bool books_round_stuck(const struct ledger *ledger, uint32_t round);
/* Is it a member of the round's reduction: seated, or a newcomer that was admitted? */
bool books_member(const struct ledger *ledger, struct skep_peer peer, uint32_t stage, uint32_t round);
bool books_any_empty(const struct ledger *ledger);
bool books_stage_has_worker(const struct ledger *ledger, uint32_t stage);

/* microbatches.c */
void travel_forward(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, int64_t loss_nano);
void travel_backward(struct ledger *ledger, struct skep_peer who, const struct skep_op *op);
void travel_dropped(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);
void travel_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);
void travel_rerun(struct ledger *ledger, const struct skep_note *note);

/* pipelines.c */
bool pipes_fixed(const struct ledger *ledger);
bool pipes_stream(const struct ledger *ledger); /* and their rounds are not flushed */
/* Most steps that the parameters of a microbatch may lack in the stage, and rounds that may be open at once. */
uint32_t pipes_staleness(const struct ledger *ledger, uint32_t stage);
uint32_t pipes_window(const struct ledger *ledger);
void pipes_overflowed(struct ledger *ledger, struct skep_peer who, const struct skep_note *note);
bool pipes_all_broken(const struct ledger *ledger);  /* no pipeline is whole */
bool pipes_waited(const struct ledger *ledger);      /* and that for as long as the plan says */
bool pipes_other_stays(const struct ledger *ledger); /* one is, and no worker in it wants to leave */
void pipes_round_opens(struct ledger *ledger, uint32_t round);
void pipes_round_closes(struct ledger *ledger, uint32_t round);
void pipes_changed(struct ledger *ledger, const struct skep_note *note);
void pipes_granted(struct ledger *ledger, const struct skep_note *note);
void pipes_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);
void pipes_eager(struct ledger *ledger, const struct skep_message *reduce);
void pipes_passed(struct ledger *ledger, struct skep_peer who, const struct skep_op *op);

/* no_flush.c */
void stream_read(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void stream_stepped_alone(
	struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
bool stream_may_open(const struct ledger *ledger, uint32_t round);
void stream_told(struct ledger *ledger, const struct skep_message *m);
void stream_committed(struct ledger *ledger, const struct skep_note *note, struct cell *cell);

/* inner.c */
void inner_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op);
void inner_of_fragment(struct ledger *ledger, struct skep_peer who, const struct skep_op *op);
void inner_summed(struct ledger *ledger, const struct holder *holder, const struct skep_op *op);
void inner_read(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
/* gossip.c */
void gossip_told(struct ledger *ledger, const struct skep_message *m);
/* True: there is nothing else to look at. */
bool gossip_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
/* async.c */
void merge_read(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
/* True: there is nothing else to look at. */
bool merge_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void merge_noted(struct ledger *ledger, const struct skep_note *note);
void merge_committed(struct ledger *ledger, const struct skep_message *m);
void merge_restarted(struct ledger *ledger, uint32_t stage);
void merge_closes(struct ledger *ledger, uint32_t round, uint32_t stage);
void merge_ends(struct ledger *ledger, const uint32_t *epoch);
/* validation.c */
bool validation_names(
	const struct ledger *ledger, uint32_t microbatch);           /* is it the number of one of its microbatches */
bool validation_missing(const struct ledger *ledger);                /* one is due here and has not ended */
bool validation_blocks(const struct ledger *ledger, uint32_t round); /* so this round must not open yet */
bool validation_target_reached(const struct ledger *ledger);
void validation_op(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void validation_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);
void validation_noted(struct ledger *ledger, const struct skep_note *note);
/* finite.c */
void sound_step(struct ledger *ledger, struct skep_peer who, const struct skep_op *op);
void sound_forward(struct ledger *ledger, struct skep_peer who, const struct skep_op *op);
void sound_passed_on(struct ledger *ledger, struct skep_peer who, uint32_t round, uint32_t vstage, uint32_t microbatch);
void sound_diverged(struct ledger *ledger, const struct skep_note *note);
void sound_unkept(struct ledger *ledger, const struct skep_note *note);
void sound_end(struct ledger *ledger);

/* losses.c */
void losses_fenced(struct ledger *ledger, const struct skep_note *note);
void losses_changed(struct ledger *ledger);
void losses_emptied(struct ledger *ledger, const struct skep_note *note);
void losses_restarted(struct ledger *ledger, const struct skep_note *note);
void losses_goes_on(struct ledger *ledger, const struct skep_note *note);
void losses_voided(struct ledger *ledger, const struct skep_note *note);
void losses_discarded(struct ledger *ledger, struct skep_peer who, const struct skep_op *op);
void losses_member(struct ledger *ledger, const struct holder *holder, uint32_t round, uint32_t stage);
bool losses_any_short(const struct ledger *ledger);
bool losses_waited(const struct ledger *ledger, uint32_t stage); /* as long as the plan says */

/* messages.c */
void books_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);

/* audit.c */
void audit_round(struct ledger *ledger, uint32_t round);

/* Is it later than the plan's end? Then the run is over as soon as no round is open. */
static inline bool ledger_is_late(const struct ledger *ledger)
{
	return ledger->plan->until.end_ns > 0 && ledger->now >= ledger->plan->until.end_ns;
}

/* scaled.c: what is asked for (I25). */
void scale_noted(struct ledger *ledger, const struct skep_note *note);
void scale_asked(struct ledger *ledger, const struct skep_action *action);
void scale_sent(struct ledger *ledger, const struct skep_message *m);
void scale_arrived(struct ledger *ledger, struct skep_peer who, const struct skep_message *m);
void scale_round_opens(struct ledger *ledger, uint32_t round);
