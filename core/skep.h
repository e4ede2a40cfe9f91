/* SPDX-License-Identifier: Apache-2.0
 *
 * skep.h - the public interface of core/: pure state machines, events in, actions out.
 *
 * One machine per worker and one for the directory. A machine does no I/O, reads no clock, allocates nothing after
 * skep_node_init and cannot tell whether time is virtual or real. Everything that crosses this border is a flat value;
 * tensors are handles that the world owns.
 *
 * Who decides what
 *   directory  who is alive and serves which stage (epochs), how many microbatches each first-stage worker may issue
 *              (grants), who takes part in the reduction that ends a round, and when that reduction is final (commit).
 *   worker     which worker of the next stage gets a microbatch (wiring), which operation runs next (schedule), which
 *              chunk goes where in a reduction (collective).
 *   world      nothing. It moves messages, runs operations, keeps time.
 *
 * What is kept true (the ledger in tests/ checks it from outside)
 *   Per round, stage and microbatch the gradient is counted by exactly one worker that takes part in the committed
 *   reduction, or a LOST note names it; never both, neither or twice. Three rules make it so:
 *     1. A microbatch visits one worker per stage. It is sent once; if the worker that has it is fenced, it is given up
 *        (ABANDON travels back to its owner) and a fresh one is granted in its place. Nothing is ever retried blindly.
 *        With trainer routing a worker that is fenced before the gradient reached it cannot have counted: the owner
 *        has the input, and may choose another one. Nor has one that has told its sender that it dropped the microbatch
 *        before it began, and will ignore it from then on (reissue.h).
 *     2. Every machine remembers which microbatches of the round it has seen and ignores duplicates.
 *     3. A worker's gradient enters the round only if the directory commits a reduction that it took part in. A fenced
 *        worker is struck from the round, and what only it had counted is reported lost.
 *
 * A newcomer is a member of its stage's reductions from the moment at which it is admitted, with an empty accumulator, and makes
 * every step, while it downloads the stage's state in chunks, each as of the version that it is at. A step before a chunk
 * has come computes on numbers that mean nothing and are overwritten; a step after it keeps the chunk up to date. This
 * rests on two things: optimizers work element by element, and what they count over all elements (Adam's number of steps)
 * travels in every chunk. With `gossip` members differ, and a newcomer's steps change nothing (gossip.c).
 *
 * Validation (plan->validation.every). After every so many rounds, and after the last one, all stages have stepped, no
 * round is open, and the directory grants microbatches that are to be judged only, under numbers that no training has.
 * They go forwards as others do, on the parameters that all steps so far have made (with delayed updates too: there the
 * next round waits for this round boundary). In the last stage there is a loss and no gradient: it goes back to the
 * owner as a number (VALIDATED), each worker on the way forgets the microbatch, and with FINISHED it reaches the
 * directory, which adds. No device is asked for a BACKWARD, no accumulator, tally or reduction knows of it, so nothing
 * of it can be in a sum. What is lost is granted again under another number, and is the same samples; after
 * SKEP_VALIDATION_TRIES the mean is over fewer, and the note says over how many. Then the next round opens. All of that
 * takes the time that it takes, in both worlds. With `async` there is no such boundary: but for the last one a
 * validation goes beside the round that is open, under numbers of that, on the parameters of the stage as its worker
 * has them then.
 *
 * Tied embeddings (plan->tied). The first stage and the last one each hold a copy of the table, and each has its part
 * of the gradient. When both have their sums they exchange what these say of the table, both are committed at once, and
 * all members of both step on the same numbers: so copies stay equal, to the bit (tied_embeddings.c).
 *
 * A world's duties, in order
 *   1. Deliver START once to each machine.
 *   2. Deliver one event at a time to a machine, with `now` that never goes backwards for that machine.
 *   3. Perform all actions of a step, in array order, before the next step of that machine.
 *   4. After each step ask skep_node_deadline() and deliver TIMER no earlier than that (late is allowed).
 *   5. Answer every RUN with exactly one OP_DONE unless the process dies. Each lane of a worker is a FIFO: one operation
 *      at a time, in the order of the RUN actions; the lanes run side by side.
 *   6. Deliver every message at least once, or return it to its sender as SEND_FAILED with the payload (no sooner than it
 *      may be tried again), or lose it because the receiver's process is dead. Order is not guaranteed, duplicates are
 *      allowed (the payload of each delivered copy is its own buffer).
 *   7. After each step ask skep_node_wanted(): if the machine needs more memory, move it there before its next step.
 *   8. A SEND hands the payload over to the world; with `keep` it hands over a copy, made before the next action. Free
 *      any other buffer only on RELEASE or when the process dies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/derived.h"
#include "core/note.h"
#include "core/op.h"
#include "core/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- messages: one flat record each --------------------------------------------------------------------------- */

enum skep_message_kind {
	/* worker to worker */
	SKEP_MESSAGE_FORWARD = 1, /* round, microbatch, payload: activations for the receiver's stage */
	SKEP_MESSAGE_BACKWARD, /* round, microbatch, u.backward, payload: gradient with respect to what the receiver sent */
	SKEP_MESSAGE_ABANDON, /* round, microbatch: the gradient will not come back */
	SKEP_MESSAGE_CHUNK,   /* round, attempt, u.chunk, payload: one hop of an all-reduce */
	SKEP_MESSAGE_FETCH, /* round, u.state: a newcomer asks for a chunk of the stage's state, of that version or newer */
	SKEP_MESSAGE_STATE, /* round, u.state, payload: that chunk as of the start of that round */
	/* directory to worker */
	SKEP_MESSAGE_GRANT, /* round, microbatch .. microbatch + u.grant.count - 1 may be issued */
	SKEP_MESSAGE_REDUCE, /* round, attempt, u.reduce: seal your accumulator and start the reduction. size == 0: only tell
	                        what you have counted; the round may go on after that. u.reduce.discard: and before that
	                        throw it away. With SKEP_PIPELINE_PIPEDREAM, and with plan->eager, it comes when the round
	                        opens: begin when your share is counted */
	SKEP_MESSAGE_COMMIT, /* round, attempt, u.commit: the reduction is final, step */
	SKEP_MESSAGE_PEER,   /* u.peer: a worker (perhaps the receiver) now has this epoch, stage and standing */
	SKEP_MESSAGE_ASSIGN, /* candidate: you may join its stage `stage` (plan.h; 0 without a trial) */
	SKEP_MESSAGE_STOP,   /* u.stop: the run is over */
	/* worker to directory */
	SKEP_MESSAGE_FINISHED,  /* round, microbatch, u.finished: it came back to its owner, or was abandoned */
	SKEP_MESSAGE_TALLY,     /* round, attempt, u.tally: reduction done; which microbatches the sender counted */
	SKEP_MESSAGE_JOIN,      /* u.join: I hold nothing and want a stage */
	SKEP_MESSAGE_READY,     /* round: I hold my stage's state as of the start of that round */
	SKEP_MESSAGE_SUSPECT,   /* u.peer: who seems dead; with alive set: is it? (it has been silent to me for long) */
	SKEP_MESSAGE_HEARTBEAT, /* I am alive */
	SKEP_MESSAGE_LOAD,      /* u.load: how long my queue was, and what one costs me */
	SKEP_MESSAGE_LEAVE,     /* I shall be taken away: give me no more work, let me go at the round boundary */
	SKEP_MESSAGE_LIST_PEERS, /* tell me anew whom I may send microbatches to (answered by PEER messages) */
	/* worker to worker, with trainer routing alone */
	SKEP_MESSAGE_OUTPUT, /* round, microbatch, u.output, payload: what FORWARD made of the receiver's activations */
	SKEP_MESSAGE_INPUT, /* round, microbatch, payload: the activations of the FORWARD once more; beside a BACKWARD */
	/* worker to worker, if the plan has a reissue timeout */
	SKEP_MESSAGE_CANCEL,    /* round, microbatch: give it back, if you have not begun it */
	SKEP_MESSAGE_CANCELLED, /* round, microbatch, u.cancelled: the answer */
	/* directory to worker, when it joins; numbers are part of digests, so what is new stands at the end */
	SKEP_MESSAGE_ADMIT, /* round, admission, u.admit: you are a member of the stage's reductions from that round on; fetch
	                        the state from there. Sent again, with a higher admission, when the source changes */
	/* worker to directory */
	SKEP_MESSAGE_ENTERED,      /* I have made room for my stage, and can take part in its reductions */
	SKEP_MESSAGE_CHECKPOINTED, /* round: the state of the sender's stage as of the start of that round is kept; with
	                              plan->sharded its own part of it */
	/* directory to worker, with fixed pipelines */
	SKEP_MESSAGE_DRAIN, /* round: not all of your pipeline's share will come, so do not wait for it. With
	                      SKEP_PIPELINE_PIPEDREAM: your pipeline gives up what it has of rounds up to this one */
	/* directory to worker, beside REDUCE, if all members of a reduction must know each other */
	SKEP_MESSAGE_ROSTER, /* round, attempt, u.roster: some of the members */
	/* worker to worker */
	SKEP_MESSAGE_CHUNK_ACK, /* round, attempt, u.chunk: the sender has taken in what was sent to it; go on (collective.h) */
	/* between the last worker of a pipeline and the directory, with `barrier` */
	SKEP_MESSAGE_FORWARDS_DONE,  /* round: all of my share has gone forwards */
	SKEP_MESSAGE_BARRIER_LIFTED, /* round: all shares have, or none is waited for: when yours has, go backwards */
	/* worker to worker */
	SKEP_MESSAGE_VALIDATED, /* round, microbatch, u.validated: what you sent on has come to its end, and this is its loss */
	/* worker to directory, from the first member of a reduction, with `clip`; stage is the virtual stage */
	SKEP_MESSAGE_NORM, /* round, attempt, u.norm: the sum of the squares of what was summed */
	/* worker to directory */
	SKEP_MESSAGE_FAULT, /* round, microbatch, virtual stage, u.fault: the sender's device made NaN or infinity */
	SKEP_MESSAGE_CHECKPOINT_FAILED, /* round: that state, of the sender's stage, could not be kept */
	/* directory to worker */
	/* round: all rounds are closed; keep the state of your stage as of the start of that round. With plan->sharded, where
	 * nothing is kept: say CHECKPOINTED as soon as you hold all of that version. With `async`,
	 * update: keep it under that number, when you have made so many outer updates */
	SKEP_MESSAGE_CHECKPOINT,
	/* with `async`. Worker to directory: u.tally: some of the microbatches of round `round` that are in the
	 * pseudo-gradient which the sender now has, its outer update number `update` (from 1), and u.tally.count in
	 * all, of all rounds. count == 0: there is none. Of rounds before `open_round` it has told all, in outer
	 * updates up to number `update` */
	SKEP_MESSAGE_OUTER_UPDATE,
	/* directory to worker: round `round` is complete: no work of it any more, and announce what you have of it with
	 * your next outer update, or, with u.close_round.now, with one that you begin now */
	SKEP_MESSAGE_CLOSE_ROUND,
	SKEP_MESSAGE_KINDS
};

#define SKEP_TALLY_PART 11
#define SKEP_ROSTER_PART 4
#define SKEP_HOP_TIED UINT32_MAX
#define SKEP_CHECKPOINTS_KEPT 3u /* of each stage, the newest: in the directory's book and in the folder of a run */

#ifndef SKEP_VIEW_MAX      /* a test makes it small */
#define SKEP_VIEW_MAX 128u /* workers of the next stage that one knows (route/wiring.h) */
#endif
#define SKEP_VIEW_SMOOTHING 10u /* an answer is a tenth of what one knows of a worker, and */
#define SKEP_VIEW_SLACK 2u      /* a wait on the lines of a half of what its device needs is none */

/* What an operation NORM measures. */
enum skep_norm_term {
	SKEP_NORM_SQUARES,  /* the squares of the virtual stage's result */
	SKEP_NORM_POSITIVE, /* the products above 0 of what the two stages with a tied table have summed of it */
	SKEP_NORM_NEGATIVE, /* those below 0, without their sign */
	SKEP_NORM_TERMS
};

struct skep_message {
	uint8_t kind; /* enum skep_message_kind */
	/* The stage of the sender; of a microbatch's tensor the stage that it comes from, whichever worker passes it
	 * on. With model chunks FORWARD, BACKWARD, ABANDON and COMMIT name the virtual stage. */
	uint16_t stage;
	uint32_t round;
	struct skep_peer from, to;
	union {
		uint32_t microbatch; /* its number within the round; (round, microbatch) names the samples */
		uint32_t candidate;  /* ASSIGN */
		uint32_t serving; /* ADMIT with `async`: workers that serve the stage, the receiver included; else 0 */
		/* TALLY: of the parameters that the sender's last STEP has made, which are those of version `round`, a sum
		 * that is equal for equal ones; 0: it does not say. Its lowest bit names the arithmetic, since processors of
		 * another kind may round otherwise: only sums of one arithmetic are compared. Digests leave it out. */
		uint32_t parameters;
		uint32_t open_round; /* OUTER_UPDATE: the first round of which the sender has not told all */
		uint32_t number;     /* whichever of these the kind has: for digests and wires */
	};
	union {
		/* Of the round's reduction, from 1. What travels through the stages: that of the count after which it is run
		 * again, 0 the first time. */
		uint32_t attempt;
		uint32_t admission; /* ADMIT: counts up per receiver, from 1 */
		uint32_t update;    /* OUTER_UPDATE: its number, from 1; CHECKPOINT with `async`: how many there are */
		uint32_t ordinal;   /* whichever of these the kind has: for digests and wires */
	};
	struct skep_span span; /* GRANT, and what travels forwards: the stages that are to count the microbatch */
	union {
		struct {
			uint32_t count;
			uint32_t in_flight; /* that the receiver is to keep in the pipeline */
			/* Fixed pipelines: that the first one takes; the others take the receiver's next ones in turn. */
			uint32_t pipeline;
		} grant;
		struct {
			uint32_t pipeline; /* fixed pipelines: the one that it takes */
		} forward;
		struct {
			uint64_t queue_milli; /* mean since the last report, in thousandths of a microbatch */
			skep_time needed_ns;  /* by the sender's device for one, on the mean; 0: it did none */
		} load;
		struct {
			/* What forward and backward took the sender's device, as far as it knows. */
			skep_time needed_ns;
			skep_time held_ns; /* from when the sender had what it needed for this until it sent it */
		} backward;
		struct {
			skep_time needed_ns; /* what forward took the sender's device */
			skep_time held_ns;   /* as above */
		} output;
		struct {
			bool dropped; /* the sender will never work on it; else it has begun, and keeps it */
		} cancelled;
		struct {
			int64_t loss_nano; /* of a validation, else 0 */
			/* What forward and backward took the sender's device; 0: it did not do both */
			skep_time needed_ns;
			bool ok;
		} finished;
		struct {
			int64_t loss_nano;
		} validated;
		struct {
			uint32_t rank, size;
			struct skep_peer next;
			union {
				uint32_t share;  /* without a flush: begin when so many were counted, and do not seal */
				uint32_t merged; /* `async` with `gather`: so many of yours are in this merge */
				/* plan->together: so many microbatches the sum will have, as COMMIT will say; 0: that
				 * is not known yet */
				uint32_t expected;
			};
			bool eager; /* begin when your share of the round is counted; if that will not be, another comes */
			bool discard;    /* size == 0: the round is void */
			bool checkpoint; /* without a flush: after this step, keep the state */
			/* With tied embeddings: the peer that gets what your stage has summed of the table, and what
			 * the other one has; index SKEP_NO_INDEX: none. */
			struct skep_peer across, along;
		} reduce;
		struct {
			uint32_t chunk, hop;
		} chunk; /* hop: the receiver's transfer (collective.h), in a ring hop h of 2(n-1), from 1; those of the buckets
		            before come first, as many for each as skep_scheme_transfers_max() says. SKEP_HOP_TIED: what
		            stage `stage` has summed of the tied embeddings */
		struct {
			uint32_t microbatches;
			uint32_t tied;   /* the same of the other virtual stage with a copy of the tied embeddings */
			bool checkpoint; /* after this step, keep the state */
			uint64_t square; /* with `clip`: of the norm of the means of all virtual stages (square.h) */
		} commit;                /* counted by all members together: the divisor of the sum */
		struct {
			uint64_t square; /* square.h */
			uint32_t term;   /* enum skep_norm_term */
		} norm;
		struct skep_fault_at fault;
		struct {
			struct skep_peer who;
			bool alive;
			bool leaving; /* it serves, but wants to go: new work for others, if there are any */
		} peer;
		struct {
			/* Index SKEP_NO_INDEX: no worker holds the state any more, restore the stage ... */
			struct skep_peer source;
			uint32_t checkpoint; /* ... from what was kept of this version, 0: as at the start of the run */
		} admit;
		struct {
			uint32_t chunk;
		} state;
		struct {
			skep_time started_ns; /* START of the process: tells a restarted one from a late duplicate */
		} join;
		struct {
			bool ok;
		} stop;
		struct {
			bool now;
		} close_round;
		struct {                   /* some of the microbatches counted: base + offset[0 .. used - 1] */
			int64_t loss_nano; /* sum over all that were counted, 0 unless last stage */
			uint32_t count;    /* in all parts together */
			uint32_t base;
			uint16_t used, offset[SKEP_TALLY_PART];
		} tally;
		struct { /* ranks first .. first + SKEP_ROSTER_PART - 1, those below size */
			uint32_t first, size;
			struct skep_peer peer[SKEP_ROSTER_PART];
		} roster;
	} u;
	struct skep_buf payload; /* none: the message is all there is */
	uint64_t payload_bytes;
};

/* ---- events: everything a machine may learn ------------------------------------------------------------------- */

enum skep_event_kind {
	SKEP_EVENT_START = 1,
	SKEP_EVENT_TIMER,
	SKEP_EVENT_MESSAGE,
	SKEP_EVENT_OP_DONE,
	SKEP_EVENT_SEND_FAILED, /* message: as it was sent; its payload belongs to the machine again */
	/* peer: the world believes that this process is dead; it may be wrong. To a worker, of the directory: that is dead, and
	 * so is the run; if skep_plan_leaves_states() the worker keeps what it holds between two steps (CHECKPOINT), and with
	 * plan->together, if it knows it, also what the step would make that it waits to be told (worker/orphan.c) */
	SKEP_EVENT_SUSPECT,
	SKEP_EVENT_PREEMPT_NOTICE, /* leave_at: the machine will be taken away then */
	/* to the directory, with until.budget_microusd: egress_microusd, of all traffic since the start, and to one that takes
	 * the place of another of all that was spent before */
	SKEP_EVENT_EGRESS,
	SKEP_EVENT_KINDS
};

struct skep_event {
	skep_time now;
	uint8_t kind;
	uint8_t fault;  /* OP_DONE: as struct skep_fault_at has it */
	uint16_t layer; /* the same */
	union {
		struct skep_message message;
		struct {
			struct skep_op op; /* as it was asked for */
			struct skep_buf out, stash;
			union {
				int64_t loss_nano;   /* mean over the microbatch's samples, 1e-9 units */
				uint64_t square;     /* NORM (square.h) */
				uint64_t parameters; /* STEP: a sum of what it has made of all of the stage,
				                        its lowest bit as in TALLY; 0: not known */
			};
			skep_time elapsed_ns;
		} done;
		struct skep_peer peer;
		skep_time leave_at;
		uint64_t egress_microusd;
		bool resumes; /* START of the directory: it takes the place of one that was lost, from plan->first_round on */
	} u;
};

/* ---- actions: everything a machine may ask for ---------------------------------------------------------------- */

enum skep_action_kind {
	SKEP_ACTION_SEND = 1,
	SKEP_ACTION_RUN,
	SKEP_ACTION_RELEASE,
	SKEP_ACTION_NOTE,
	SKEP_ACTION_CANCEL, /* in the simulator alone: the sum of this ALLREDUCE is void; end it, and answer it as any RUN */
	/* by the directory, with plan->scale: so many machines of the kind are wanted from now on. The world gets more, and
	 * replaces those that are lost; those that are too many are told to leave, one by one */
	SKEP_ACTION_SCALE
};

struct skep_action {
	uint8_t kind;
	bool keep; /* SEND: a copy of the payload goes, the buffer stays */
	union {
		struct skep_message send;
		struct skep_op run;
		struct skep_buf release;
		struct skep_note note;
		uint64_t cancel; /* id of the operation */
		struct {
			uint32_t kind, machines;
		} scale;
	} u;
};

struct skep_actions { /* the caller's; capacity from skep_actions_limit() */
	struct skep_action *item;
	uint32_t count, capacity;
};

/* ---- what is legal -------------------------------------------------------------------------------------------- */

/* May a message, an operation, a note, an event of its kind have these fields? All that a machine makes may; what comes to a
 * world from outside is to be asked about before a machine hears of it. So an event's message or operation has been looked at
 * when the event comes, and skep_event_legal() looks at what is the event's own. */
bool skep_message_legal(const struct skep_plan *plan, const struct skep_message *message);
bool skep_op_legal(const struct skep_plan *plan, const struct skep_op *op);
bool skep_note_legal(const struct skep_plan *plan, const struct skep_note *note);
bool skep_event_legal(const struct skep_plan *plan, const struct skep_event *event);

/* ---- a machine ------------------------------------------------------------------------------------------------ */

struct skep_node;
/* Bytes that machine `index` needs at first, and the most actions that one step of any machine may return. */
size_t skep_node_size(const struct skep_plan *plan, uint32_t index);
uint32_t skep_actions_limit(const struct skep_plan *plan);

/* `mem`: skep_node_size() bytes, aligned to 16; stays the caller's. No inner pointers: a byte copy is a snapshot.
 * index == plan->workers makes the directory. `epoch`: 1 for a process of the first allocation, which holds the state
 * of its stage as of plan->first_round; for a spare, or a process that replaces a dead one, 0: it holds nothing and will
 * ask to join. */
struct skep_node *skep_node_init(void *mem, const struct skep_plan *plan, uint32_t index, uint32_t epoch);

/* One event in; `actions` is emptied and filled. */
void skep_node_step(struct skep_node *node, const struct skep_plan *plan, const struct skep_event *event,
	struct skep_actions *actions);

/* What a worker keeps grows with what it meets. Bytes that the next step may need, if they are more than it has; else 0. Then
 * skep_node_relocate(): `mem` is so many bytes, aligned to 16; the memory that the machine was in is free. */
size_t skep_node_wanted(const struct skep_node *node);
struct skep_node *skep_node_relocate(void *mem, const struct skep_node *node);

skep_time skep_node_deadline(const struct skep_node *node); /* SKEP_TIME_NEVER: no TIMER wanted */
uint32_t skep_node_epoch(const struct skep_node *node);
uint32_t skep_node_stage(const struct skep_node *node); /* SKEP_NO_STAGE while it serves none */

/* Over every decision since init; equal for equal event sequences on every compiler. Losses do not enter. */
uint64_t skep_node_digest(const struct skep_node *node);
/* May a worker that loses the directory keep what it holds (SUSPECT)? Not where that is no state of any version by itself. */
bool skep_plan_leaves_states(const struct skep_plan *plan);
/* A worker that has lost the directory: is it still to keep what it holds? If not, it does nothing more. */
bool skep_node_keeps(const struct skep_node *node);
/* The directory's: the newest version that is among the last three that each stage has kept; without one plan->first_round. */
uint32_t skep_node_kept(const struct skep_node *node, const struct skep_plan *plan);
/* The same, with until.budget_microusd: what machines have cost since it began, in 1e-6 USD. */
uint64_t skep_node_spent(const struct skep_node *node, const struct skep_plan *plan, skep_time now);

enum skep_outcome { SKEP_RUNNING, SKEP_DONE, SKEP_FAILED };
enum skep_outcome skep_node_outcome(const struct skep_node *node);
/* A worker that has stopped because its machine is given back: the run goes on without it, and the machine may be turned off. */
bool skep_node_returned(const struct skep_node *node);

#ifdef __cplusplus
}
#endif
