/* SPDX-License-Identifier: Apache-2.0
 *
 * skep.h - the whole public face of core/: pure state machines, events in, actions out.
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
 *        before it began, and will ignore it from then on (patience.h).
 *     2. Every machine remembers which microbatches of the round it has seen and ignores duplicates.
 *     3. A worker's gradient enters the round only if the directory commits a reduction that it took part in. A fenced
 *        worker is struck from the round, and what only it had counted is reported lost.
 *
 * A newcomer is a member of its stage's reductions from the moment at which it is admitted, with an empty accumulator, and makes
 * every step, while it downloads the stage's state in chunks, each as of the version that it is at. A step before a chunk
 * has come computes on numbers that mean nothing and are overwritten; a step after it keeps the chunk up to date. This
 * rests on two things: optimizers work element by element, and what they count over all elements (Adam's number of steps)
 * travels in every chunk.
 *
 * Validation (plan->validate_every). After every so many rounds, and after the last one, all stages have stepped, no round is
 * open, and the directory grants microbatches that are to be judged only, under numbers that no training has. They go
 * forwards as others do, on the parameters that all steps so far have made (with delayed updates too: there the next
 * round waits for this edge). In the last stage there is a loss and no gradient: it goes back to the owner as a number
 * (VALIDATED), each worker on the way forgets the microbatch, and with FINISHED it reaches the directory, which adds. No
 * device is asked for a BACKWARD, no accumulator, tally or reduction knows of it, so nothing of it can be in a sum. What is
 * lost is granted again under another number, and is the same samples; after SKEP_VALIDATION_TRIES the mean is over fewer,
 * and the note says over how many. Then the next round opens. All of that takes the time that it takes, in both worlds.
 * With `async` there is no such edge: but for the last one a validation goes beside the round that is open, under numbers of
 * that, on the parameters of the stage as its worker has them then.
 *
 * A tied table (plan->tied). The first stage and the last one each hold a copy, and each has its part of the gradient. When both
 * have their sums they exchange what these say of the table, both are committed at once, and all members of both step on the same
 * numbers: so copies stay equal, to the bit (tie.c, ties.c).
 *
 * A world's duties, in order
 *   1. Deliver START once to each machine.
 *   2. Deliver one event at a time to a machine, with `now` that never goes backwards for that machine.
 *   3. Perform all actions of a step, in array order, before the next step of that machine.
 *   4. After each step ask skep_node_deadline() and deliver TIMER no earlier than that (late is allowed).
 *   5. Answer every RUN with exactly one OP_DONE unless the process dies. Each lane of a worker is a FIFO: one operation
 *      at a time, in the order of the RUN actions; the lanes run side by side.
 *   6. Deliver every message at least once, or return it to its sender as SEND_FAILED with the payload (no sooner than it
 *      may be tried again), or lose it because the receiver's process is dead. Order is not promised, duplicates are
 *      allowed (the payload of each delivered copy is its own buffer).
 *   7. After each step ask skep_node_wanted(): if the machine needs more memory, move it there before its next step.
 *   8. A SEND hands the payload over to the world; with `keep` it hands over a copy, made before the next action. Free
 *      any other buffer only on RELEASE or when the process dies.
 */
#ifndef SKEP_CORE_SKEP_H
#define SKEP_CORE_SKEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	                        what you have counted; the round may go on after that. With SKEP_PIPELINE_PIPEDREAM, and
	                        with plan->promise, it comes when the round opens: begin when your share is counted */
	SKEP_MESSAGE_COMMIT, /* round, attempt, u.commit: the reduction is final, step */
	SKEP_MESSAGE_PEER,   /* u.peer: a worker (perhaps the receiver) now has this epoch, stage and standing */
	SKEP_MESSAGE_ASSIGN, /* stage: you may join it; microbatch: of this candidate (plan.h) */
	SKEP_MESSAGE_STOP,   /* u.stop: the run is over */
	/* worker to directory */
	SKEP_MESSAGE_FINISHED,  /* round, microbatch, u.finished: it came back to its owner, or was abandoned */
	SKEP_MESSAGE_TALLY,     /* round, attempt, u.tally: reduction done; which microbatches the sender counted */
	SKEP_MESSAGE_JOIN,      /* u.join: I hold nothing and want a stage */
	SKEP_MESSAGE_READY,     /* round: I hold my stage's state as of the start of that round */
	SKEP_MESSAGE_SUSPECT,   /* u.peer: who seems dead; with alive set: is it? (it has been silent to me for long) */
	SKEP_MESSAGE_HEARTBEAT, /* I am alive */
	SKEP_MESSAGE_LOAD,      /* u.load: how long my queue was, and what one costs me */
	SKEP_MESSAGE_LEAVE,     /* I shall be taken away: give me no more work, let me go at the round's edge */
	SKEP_MESSAGE_WHO,       /* tell me anew whom I may send microbatches to (answered by PEER messages) */
	/* worker to worker, with trainer routing alone */
	SKEP_MESSAGE_OUTPUT, /* round, microbatch, u.output, payload: what FORWARD made of the receiver's activations */
	SKEP_MESSAGE_INPUT, /* round, microbatch, payload: the activations of the FORWARD once more; beside a BACKWARD */
	/* worker to worker, if the plan has patience */
	SKEP_MESSAGE_CANCEL,    /* round, microbatch: give it back, if you have not begun it */
	SKEP_MESSAGE_CANCELLED, /* round, microbatch, u.cancelled: the answer */
	/* directory to worker, when it joins; numbers are part of digests, so what is new stands at the end */
	SKEP_MESSAGE_ADMIT, /* round, attempt, u.admit: you are a member of the stage's reductions from that round on; fetch
	                        the state from there. Again, with a higher attempt, when the source changes */
	/* worker to directory */
	SKEP_MESSAGE_ENTERED,      /* I have made room for my stage, and can take part in its reductions */
	SKEP_MESSAGE_CHECKPOINTED, /* round: the state of the sender's stage as of the start of that round is kept */
	/* directory to worker, with SKEP_PIPELINE_GPIPE, SKEP_PIPELINE_INTERLEAVED and SKEP_PIPELINE_PIPEDREAM */
	SKEP_MESSAGE_TURN, /* round: not all of your pipeline's share will come, so do not wait for it. With
	                      SKEP_PIPELINE_PIPEDREAM: your pipeline gives up what it has of rounds up to this one */
	/* directory to worker, beside REDUCE, if all members of a reduction must know each other */
	SKEP_MESSAGE_ROSTER, /* round, attempt, u.roster: some of the members */
	/* worker to worker */
	SKEP_MESSAGE_TAKEN, /* round, attempt, u.chunk: the sender has taken in what was sent to it; go on (collective.h) */
	/* between the last worker of a pipeline and the directory, with `barrier` */
	SKEP_MESSAGE_PASSED, /* round: all of my share has gone forwards */
	SKEP_MESSAGE_BACK, /* round: so has everybody's, or nobody waits for it any more; when yours has, go backwards */
	/* worker to worker */
	SKEP_MESSAGE_VALIDATED, /* round, microbatch, u.validated: what you sent on has come to its end, and this is its loss */
	/* worker to directory, from the first member of a reduction, with `clip`; stage is the slice */
	SKEP_MESSAGE_NORM, /* round, attempt, u.norm: the sum of the squares of what was summed */
	/* worker to directory */
	SKEP_MESSAGE_FAULT, /* round, microbatch, stage (the slice), u.fault: what the sender's device made is not finite */
	SKEP_MESSAGE_UNKEPT, /* round: the state of the sender's stage as of the start of that round could not be kept */
	/* directory to worker */
	/* round: all rounds are closed; keep the state of your stage as of the start of that round. With `async`: keep it under
	 * that number, when you have made `attempt` merges */
	SKEP_MESSAGE_KEEP,
	/* with `async`. Worker to directory: u.tally: some of the microbatches of round `round` that are in the pseudo-gradient
	 * which the sender now has to merge, its merge number `attempt` (from 1), and u.tally.count in all, of all rounds.
	 * count == 0: there is none. Of rounds before `microbatch` it has told all, in merges up to number `attempt` */
	SKEP_MESSAGE_MERGE,
	/* directory to worker: round `round` is complete: no work of it any more, and tell what you have of it with your next
	 * merge, or, with u.settle.now, with one that you begin now */
	SKEP_MESSAGE_SETTLE,
	SKEP_MESSAGE_KINDS
};

#define SKEP_TALLY_PART 11
#define SKEP_ROSTER_PART 4
#define SKEP_HOP_TIED UINT32_MAX

struct skep_span { /* of stages, or slices, both inclusive */
	uint16_t first, last;
};

struct skep_message {
	uint8_t kind; /* enum skep_message_kind */
	/* Of the sender; of a microbatch's tensor: that it comes from, whoever passes it on. Where a stage has several
	 * slices: FORWARD, BACKWARD, ABANDON and COMMIT name the slice. */
	uint16_t stage;
	uint32_t round;
	struct skep_peer from, to;
	uint32_t microbatch; /* its number within the round; (round, microbatch) names the samples */
	/* Of the round's reduction, from 1. What travels through the stages: that of the count after which it is run
	 * again, 0 the first time. */
	uint32_t attempt;
	struct skep_span span; /* GRANT, and what travels forwards: the stages that are to count the microbatch */
	union {
		struct {
			uint32_t count;
		} grant;
		struct {
			uint64_t queue_milli; /* mean since the last report, in thousandths of a microbatch */
			skep_time needed_ns;  /* by the sender's device for one, on the mean; 0: it did none */
		} load;
		struct {
			/* What forward and backward took the sender's device, as far as it knows. */
			skep_time needed_ns;
		} backward;
		struct {
			skep_time needed_ns; /* what forward took the sender's device */
		} output;
		struct {
			bool dropped; /* the sender will never work on it; else it has begun, and keeps it */
		} cancelled;
		struct {
			int64_t loss_nano; /* of a validation, else 0 */
			bool ok;
		} finished;
		struct {
			int64_t loss_nano;
		} validated;
		struct {
			uint32_t rank, size;
			struct skep_peer next;
			/* rounds without a flush: begin when so many were counted, and do not seal. `async` with `gather`:
			 * so many are in what you told, which is in this merge; 0: it is not */
			uint32_t share;
			bool promised; /* begin when your share of the round is counted; if that will not be, another comes */
			bool checkpoint; /* without a flush: after this step, keep the state */
			/* With a tied table: to whom goes what your stage has summed of it, and what the other one has; index
			 * SKEP_NO_INDEX: to nobody. */
			struct skep_peer across, along;
		} reduce;
		struct {
			uint32_t chunk, hop;
		} chunk; /* hop: the receiver's move (collective.h), in a ring hop h of 2(n-1), from 1; those of the buckets
		            before come first, as many for each as skep_scheme_moves_max() says. SKEP_HOP_TIED: what
		            stage `stage` has summed of the tied table */
		struct {
			uint32_t microbatches;
			uint32_t tied;   /* the same of the other slice that holds a copy of a tied table */
			bool checkpoint; /* after this step, keep the state */
			uint64_t square; /* with `clip`: of the norm of the means of all slices (square.h) */
		} commit;                /* counted by all members together: the divisor of the sum */
		struct {
			uint64_t square; /* square.h */
			uint32_t part;   /* as operation NORM has its chunk */
		} norm;
		struct {
			uint8_t kind;   /* enum skep_fault */
			uint16_t layer; /* of the model, from 1; 0: that cannot be told */
		} fault;
		struct {
			struct skep_peer who;
			bool alive;
			bool leaving; /* it serves, but wants to go: new work for others, if there are any */
		} peer;
		struct {
			/* Index SKEP_NO_INDEX: nobody holds the state any more, found the stage anew ... */
			struct skep_peer source;
			uint32_t checkpoint; /* ... from what was kept of this version, 0: as at the start of the run */
		} admit;
		struct {
			uint32_t chunk;
		} state;
		struct {
			skep_time born_ns; /* START of the process: tells a restarted one from a late duplicate */
		} join;
		struct {
			bool ok;
		} stop;
		struct {
			bool now;
		} settle;
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

/* ---- operations: what a worker's device does ------------------------------------------------------------------ */

enum skep_op_kind {
	/* FORWARD and BACKWARD read the parameters of op.version, both of a microbatch the same. With delayed updates two
	 * versions are at hand: v is kept where v - 2 was; with SKEP_PIPELINE_PIPEDREAM skep_plan_versions(). */
	SKEP_OP_FORWARD = 1, /* in: activations (none in the first stage: the samples of (round, microbatch), or where
	                        skep_plan_validates() those of skep_plan_validation()).
	                        out: activations for the next stage (none in the last), stash: what BACKWARD needs (none
	                        where it does the forward pass again),
	                        loss_nano in the last stage */
	SKEP_OP_BACKWARD,    /* in, stash, gradient (none in the last stage). Adds to the round's accumulator.
	                        out: gradient with respect to `in` (none in the first stage).
	                        size > 0: part `chunk` of so many, of the parameters first .. first + count - 1, one part
	                        after the other and nothing between them on this lane; out: but in the last part, what
	                        the device needs for the next, whose `gradient` it is. All parts add what one BACKWARD
	                        adds, to the bit; what the device makes anew for it is made in the first */
	SKEP_OP_STEP, /* gradient = reduced sum / microbatches (nothing is changed if microbatches == 0); optimizer
	                        step from version `round` to the next; clears the round's accumulator. size == 1: the
	                        sum is the accumulator itself. Delayed: on the reduce lane, beside the next round's work.
	                        With a tied table, in the two slices that hold a copy, the gradient of its elements is
	                        the result of the first stage / microbatches counted there + that of the last one /
	                        those counted there, in this order, of which `tied` are the other slice's; what nobody
	                        has counted is 0, and nothing is changed only if both are */
	SKEP_OP_SAVE, /* out: chunk `chunk` of `size` of the stage's state, as of now (size 0: all of it) */
	SKEP_OP_LOAD, /* in: such a chunk, which takes the place of what the device holds of it */
	/* the reduction of the round's accumulator among `size` members, of elements first .. first + count - 1; they never
	 * change the accumulator */
	SKEP_OP_TAKE,      /* out: copy of the accumulator */
	SKEP_OP_ADD,       /* out = in + accumulator. `in` is consumed */
	SKEP_OP_ADD_STORE, /* the same, and the result holds this sum in its place. `in` is consumed */
	SKEP_OP_STORE,     /* out = in, and the result holds it. `in` is consumed */
	/* on the compute lane again */
	SKEP_OP_ENTER, /* the device holds this stage from now on, as at the start of the run, and nothing of another
	                  one; every accumulator is empty */
	SKEP_OP_CHECKPOINT, /* the stage's state is kept for good as that of version `round`; with `async`, where versions
	                       count merges, under that number */
	SKEP_OP_RESTORE, /* the device holds the state that was kept of version `microbatch`, 0: that of the start of the
	                       run, of candidate `chunk`; it is called version `round` from now on. Accumulators are left alone */
	/* on the reduce lane again */
	SKEP_OP_ALLREDUCE, /* the result holds the sum over all `size` members of (stage, round, attempt, first); chunk = rank,
	                      microbatch = the worker that rank sends to. Ends when the sum is there, which needs all to
	                      have asked, or, without a result, after CANCEL */
	/* sums that grow in the result, of the same elements as TAKE and the others */
	SKEP_OP_KEEP, /* the result holds the accumulator */
	SKEP_OP_FOLD, /* the result holds the result + in. `in` is consumed */
	SKEP_OP_GIVE, /* out: copy of the result, which holds from now on what out says */
	/* on the compute lane */
	SKEP_OP_RECOMPUTE, /* in: as FORWARD had it. The device does the forward pass again and keeps what BACKWARD needs in
	                      its own memory, until its next pass */
	/* the same, with periodic sync alone (plan.h): the device holds inner parameters beside those of the stage. They are
	 * what FORWARD and BACKWARD read and what INNER changes; op.version says what the newest STEP was, and a step may come
	 * between the two passes of a microbatch. STEP makes new parameters of the stage and sets the inner ones to
	 * them; LOAD and RESTORE set both. The inner optimizer's state is the device's own. */
	SKEP_OP_INNER,  /* gradient = accumulator / microbatches, one step of the inner optimizer; clears the round's
	                   accumulator. chunk: the number of the step in the round. microbatches == 0: only that */
	SKEP_OP_PSEUDO, /* the round's accumulator holds the pseudo-gradient: (parameters of the stage - inner ones) *
	                   microbatches, that many were counted in the round. With plan->fragments of elements first ..
	                   first + count - 1, and STEP changes those alone; the rest of the accumulator is 0. With `async`:
	                   (what the inner ones started from - inner ones) * microbatches, in a place of its own, which the
	                   reduction reads; the round's accumulator is left alone */
	/* on the reduce lane, with plan->gather. A part is what one member brings: a range of its accumulator, and how many
	 * microbatches are in it */
	SKEP_OP_OFFER,     /* out: the part of member `microbatch`, from the accumulator, with `microbatches` */
	SKEP_OP_COLLECT,   /* the device has the part of member `microbatch` of `size` beside the others. `in`, which is
	                      consumed; none: its own, from the accumulator, with `microbatches` */
	SKEP_OP_AGGREGATE, /* the result holds what the world makes of the `size` parts of these elements: as if it were
	                      their sum, with all their microbatches for the divisor */
	/* on the reduce lane */
	SKEP_OP_NORM, /* the event says the sum of the squares of the slice's result, with size == 1 of its accumulator. With a
	                 tied table, in the first slice, of the products of what the two stages have summed of it: chunk 1 of
	                 those above 0, chunk 2 of the others, without their sign */
	/* with a tied table, of its elements first .. first + count - 1 in this stage's vector; on the reduce lane */
	SKEP_OP_TIE_GIVE, /* out: copy of the result, which holds from now on what out says, also with size == 1; of the
	                     accumulator then, which stays as it is */
	SKEP_OP_TIE_TAKE, /* the device has what the other stage has summed, which is `in`, beside its result. `in` is consumed */
	SKEP_OP_KINDS
};

/* Does op.stage name a slice? Else it names a stage. */
static inline bool skep_op_sliced(uint8_t kind)
{
	return kind == SKEP_OP_FORWARD || kind == SKEP_OP_BACKWARD || kind == SKEP_OP_STEP || kind == SKEP_OP_NORM;
}

/* It is a part of a reduction, and runs on that lane. */
static inline bool skep_op_reduces(uint8_t kind)
{
	return (kind >= SKEP_OP_TAKE && kind <= SKEP_OP_STORE) || kind == SKEP_OP_ALLREDUCE || kind == SKEP_OP_KEEP ||
	       kind == SKEP_OP_FOLD || kind == SKEP_OP_GIVE || (kind >= SKEP_OP_OFFER && kind <= SKEP_OP_AGGREGATE) ||
	       (kind >= SKEP_OP_NORM && kind <= SKEP_OP_TIE_TAKE);
}

/* What a STEP means to the inner parameters, with `async`. */
enum skep_merge {
	SKEP_MERGE_OTHER, /* nothing: they are on their way from the parameters of the stage as they were */
	SKEP_MERGE_OWN, /* what is merged is their own PSEUDO: they go on from the new parameters, by what they did since */
	SKEP_MERGE_FRESH, /* they have done nothing since the last one: they are the new parameters */
};

enum skep_lane { SKEP_LANE_COMPUTE, SKEP_LANE_REDUCE, SKEP_LANES };

struct skep_op {
	uint64_t id; /* counts up per machine */
	uint8_t kind, lane;
	/* Where it has several slices, FORWARD, BACKWARD and STEP name one of them; STEP is asked for each in turn, and
	 * the version is the next one after the last. */
	uint16_t stage;
	uint32_t round, microbatch;
	uint32_t version; /* of the parameters it reads: so many steps are behind them */
	struct skep_buf in, stash, gradient;
	uint32_t chunk, size; /* state: chunk `chunk` of `size`; reduction, STEP: size = members */
	union {
		uint64_t first;  /* reduction: elements */
		uint64_t square; /* STEP with `clip`: of the norm of the means of all slices */
	};
	uint64_t count;
	uint32_t attempt; /* as in messages */
	union {
		uint32_t hop;  /* that brought `in`, or the number of the move */
		uint32_t tied; /* STEP of a slice that holds a copy of a tied table: what the other one has counted */
	};
	uint32_t microbatches; /* STEP: the divisor; OFFER, COLLECT: how many its own part has */
	uint8_t merge;         /* STEP with `async`: enum skep_merge */
	bool uncounted;        /* BACKWARD, for the sake of earlier stages: the accumulator stays as it is */
	bool recomputed;       /* BACKWARD, and the operation before it on this lane was the RECOMPUTE for it */
};

/* ---- events: everything a machine may learn ------------------------------------------------------------------- */

/* What a device finds to be infinite or no number. */
enum skep_fault {
	SKEP_FAULT_NONE,
	SKEP_FAULT_ACTIVATIONS, /* by FORWARD, which puts out nothing of use */
	SKEP_FAULT_LOSS,        /* the same, in the last slice */
	SKEP_FAULT_GRADIENT,    /* by BACKWARD, NORM, or STEP, which changes no parameter then */
	SKEP_FAULT_STATE,       /* by CHECKPOINT, which keeps nothing then */
	SKEP_FAULT_UNKEPT,      /* CHECKPOINT could not keep the state; what was kept before is still there */
	SKEP_FAULTS
};

enum skep_event_kind {
	SKEP_EVENT_START = 1,
	SKEP_EVENT_TIMER,
	SKEP_EVENT_MESSAGE,
	SKEP_EVENT_OP_DONE,
	SKEP_EVENT_SEND_FAILED,   /* message: as it was sent; its payload belongs to the machine again */
	SKEP_EVENT_SUSPECT,       /* peer: the world believes that this process is dead; it may be wrong */
	SKEP_EVENT_PREEMPT_NOTICE /* leave_at: the machine will be taken away then */
};

struct skep_event {
	skep_time now;
	uint8_t kind;
	uint8_t fault;  /* OP_DONE: enum skep_fault, and ... */
	uint16_t layer; /* ... the layer of the model in which it was seen first, from 1; 0: that cannot be told */
	union {
		struct skep_message message;
		struct {
			struct skep_op op; /* as it was asked for */
			struct skep_buf out, stash;
			union {
				int64_t loss_nano; /* mean over the microbatch's samples, 1e-9 units */
				uint64_t square;   /* NORM (square.h) */
			};
			skep_time elapsed_ns;
		} done;
		struct skep_peer peer;
		skep_time leave_at;
	} u;
};

/* ---- actions: everything a machine may ask for ---------------------------------------------------------------- */

/* Where a stage has several slices, MEMBER, LOST, STAGE_COMMITTED, COUNTED and RERUN speak of slices. */
enum skep_note_kind {
	/* by the directory */
	SKEP_NOTE_ROUND_OPENED = 1, /* round */
	SKEP_NOTE_ISSUED,           /* round, microbatch .. microbatch + value - 1, peer: granted to that owner */
	SKEP_NOTE_RERUN,            /* round, microbatch, peer: granted to that owner again; value = attempt << 32 |
	                              first << 16 | last stage of those that are to count it */
	SKEP_NOTE_MEMBER,          /* round, stage, peer, value = microbatches it counted: in the committed reduction */
	SKEP_NOTE_LOST,            /* round, stage, bits: microbatch + i is lost for each bit i set in value */
	SKEP_NOTE_STAGE_COMMITTED, /* round, stage, microbatch = counted, value = lost */
	SKEP_NOTE_LOSS, /* round, value = mean loss in 1e-9 units, of the microbatches counted in the last stage */
	SKEP_NOTE_ROUND_CLOSED, /* round, microbatch = issued */
	SKEP_NOTE_FENCED,       /* peer (the epoch that is no more), stage */
	SKEP_NOTE_JOINED, /* peer, stage, round: it holds the state, and works from the next round on at the latest */
	SKEP_NOTE_LEFT,   /* peer (the epoch that is no more), stage: it had given notice and holds nothing */
	SKEP_NOTE_MOVED,  /* peer (the epoch that is no more), stage: the new one; it joins there as a newcomer */
	SKEP_NOTE_STAGE_EMPTY, /* stage, round: its last worker is gone, and with it all that the stage had learnt */
	SKEP_NOTE_STOPPED,     /* round = rounds closed, value = 1 ok; 0 failed: stage has waited in vain, or, with no
	                          stage, DIVERGED says why */
	/* by a worker */
	SKEP_NOTE_COUNTED,  /* round, stage, microbatch: added to the sender's accumulator; value = staleness, the steps
	                       that the parameters it was computed on lacked; with `async` merges */
	SKEP_NOTE_OVERFLOW, /* round, microbatch: no room, abandoned */
	/* by the directory */
	SKEP_NOTE_ADMITTED, /* peer, stage, round: a newcomer takes part from this round's reduction on; it holds no state yet */
	SKEP_NOTE_STAGE_RESTARTED, /* stage, round, peer, value = version of the checkpoint, 0: as at the start of the run */
	SKEP_NOTE_CHECKPOINTED, /* stage, peer, round: the state as of the start of this round is kept */
	SKEP_NOTE_VALIDATING,   /* round = steps behind the parameters, microbatch = how many are to be judged */
	SKEP_NOTE_VALIDATED, /* round, microbatch = over how many, value = their mean loss in 1e-9 units, 0 if there were none */
	SKEP_NOTE_DIVERGED, /* round, stage (or slice), microbatch, peer: the first that saw what is not finite;
	                       value = enum skep_fault << 16 | layer. The run stops */
	SKEP_NOTE_UNKEPT,   /* stage, peer, round: the state as of the start of this round could not be kept */
	SKEP_NOTE_MERGED, /* round, stage, peer, bits: microbatch + i was counted by the peer, for each bit i set in value, and is
	                     in a merge that is committed */
	/* the same, in a trial (trial.c), whose notes name stage candidate * stages + stage; microbatch = the candidate */
	SKEP_NOTE_CANDIDATE_LOSS, /* round, value = its mean loss, as LOSS has it */
	SKEP_NOTE_CANDIDATE_OUT, /* round, value = 0: stage has lost its last worker; else enum skep_fault << 16 | layer */
	SKEP_NOTE_CANDIDATE_KEPT, /* round = the last one that was open; value = the loss that is expected of it (trial.h), or
	                             if it is the last one left its newest, INT64_MAX: none. The trial is over */
	SKEP_NOTE_KINDS
};

struct skep_note {
	uint8_t kind;
	uint16_t stage;
	uint32_t round, microbatch;
	struct skep_peer peer;
	int64_t value;
};

enum skep_action_kind {
	SKEP_ACTION_SEND = 1,
	SKEP_ACTION_RUN,
	SKEP_ACTION_RELEASE,
	SKEP_ACTION_NOTE,
	SKEP_ACTION_CANCEL /* nobody waits for the sum of this ALLREDUCE any more: end it, and answer it as any RUN */
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
	} u;
};

struct skep_actions { /* the caller's; capacity from skep_actions_limit() */
	struct skep_action *item;
	uint32_t count, capacity;
};

/* ---- a machine ------------------------------------------------------------------------------------------------ */

struct skep_node;

/* Bytes that machine `index` needs at first, and the most actions that one step of any machine may return. */
size_t skep_node_size(const struct skep_plan *plan, uint32_t index);
uint32_t skep_actions_limit(const struct skep_plan *plan);

/* `mem`: skep_node_size() bytes, aligned to 16; stays the caller's. No inner pointers: a byte copy is a snapshot.
 * index == plan->workers makes the directory. `epoch`: 1 for a process of the first allocation, which holds the state
 * of its stage as of plan->first_round; for a spare, or a process that replaces a dead one, 0: it holds nothing and will ask to
 * join. */
struct skep_node *skep_node_init(void *mem, const struct skep_plan *plan, uint32_t index, uint32_t epoch);

/* One event in; `actions` is emptied and filled. */
void skep_node_step(struct skep_node *node, const struct skep_plan *plan, const struct skep_event *event,
	struct skep_actions *actions);

/* What a worker keeps grows with what it meets. Bytes that the next step may need, if they are more than it has; else 0. Then
 * skep_node_move(): `mem` is so many bytes, aligned to 16; the memory that the machine was in is free. */
size_t skep_node_wanted(const struct skep_node *node);
struct skep_node *skep_node_move(void *mem, const struct skep_node *node);

/* Changes nothing: asks the caches for what the machine's next step will touch. `deep` reads what was asked for without, some
 * steps of other machines earlier, and asks for what that leads to. For worlds of many machines. */
void skep_node_fetch(const struct skep_node *node, bool deep);

skep_time skep_node_deadline(const struct skep_node *node); /* SKEP_TIME_NEVER: no TIMER wanted */
uint32_t skep_node_epoch(const struct skep_node *node);
uint32_t skep_node_stage(const struct skep_node *node); /* SKEP_NO_STAGE while it serves none */

/* Over every decision since init; equal for equal event sequences on every compiler. Losses do not enter. */
uint64_t skep_node_digest(const struct skep_node *node);

enum skep_outcome { SKEP_RUNNING, SKEP_DONE, SKEP_FAILED };
enum skep_outcome skep_node_outcome(const struct skep_node *node);

#ifdef __cplusplus
}
#endif
#endif
