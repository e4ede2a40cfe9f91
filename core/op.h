/* SPDX-License-Identifier: Apache-2.0
 *
 * op.h - what a worker's device does: the operations that a machine asks for (SKEP_ACTION_RUN), and what each of them reads,
 * writes and answers. A device of either world does them; which of them follow each other, machines alone decide.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/derived.h"

enum skep_op_kind {
	/* FORWARD and BACKWARD read the parameters of op.version, both of a microbatch the same, unless no_flush.weights says
	 * otherwise. With delayed updates two versions are at hand: v is kept where v - 2 was; with SKEP_PIPELINE_PIPEDREAM
	 * skep_plan_versions(). op.moved > 0: not these themselves, but what they will be so many steps later
	 * (SKEP_WEIGHTS_PREDICTED), or were so many earlier (SKEP_WEIGHTS_CORRECTED), as far as the world can tell. With
	 * SKEP_WEIGHTS_WAVES FORWARD reads them less what its own accumulators hold of rounds from op.version to its own, `moved`
	 * microbatches, and keeps what it read; BACKWARD reads that. */
	SKEP_OP_FORWARD = 1, /* in: activations (none in the first stage: the samples of (round, microbatch), or where
	                        skep_plan_validates() those of skep_plan_validation()).
	                        out: activations for the next stage (none in the last), stash: what BACKWARD needs (none
	                        where it does the forward pass again, or nothing),
	                        loss_nano in the last stage */
	SKEP_OP_BACKWARD,    /* in, stash, gradient (none in the last stage). Adds to the round's accumulator.
	                        out: gradient with respect to `in` (none in the first stage, and where nothing before it is
	                        trained). Where nothing is trained up to here, skep_plan_is_frozen(), there is neither stash
	                        nor gradient, and nothing is done.
	                        parts > 0: part `part` of so many, of the parameters first .. first + count - 1, one part
	                        after the other and nothing between them on this lane; out: but in the last part, what
	                        the device needs for the next, whose `gradient` it is. All parts add what one BACKWARD
	                        adds, to the bit; what the device makes anew for it is made in the first */
	SKEP_OP_STEP, /* gradient = reduced sum / microbatches (nothing is changed if microbatches == 0); optimizer
	                        step from version `round` to the next; clears the round's accumulator. members == 1: the
	                        sum is the accumulator itself. Delayed: on the reduce lane, beside the next round's work.
	                        With tied embeddings, in the two virtual stages that hold a copy, the gradient of its
	                        elements is the result of the first stage / microbatches counted there + that of the
	                        last one / those counted there, in this order, of which `tied` are the other virtual
	                        stage's; what no worker has counted is 0, and nothing is changed only if both are.
	                        With plan->sharded of the shard of rank `rank` of `members` alone, which all STEPs of a
	                        device name; what else the parameters become STORE_SHARD says */
	SKEP_OP_SAVE, /* out: chunk `chunk` of `chunks` of the stage's state, as of now (chunks 0: all of it) */
	SKEP_OP_LOAD, /* in: such a chunk, which takes the place of what the device holds of it */
	/* the reduction of the round's accumulator among `members` workers, of elements first .. first + count - 1; they never
	 * change the accumulator */
	SKEP_OP_COPY_GRAD, /* out: copy of the accumulator */
	SKEP_OP_ADD,       /* out = in + accumulator. `in` is consumed */
	SKEP_OP_ADD_STORE, /* the same, and the result holds this sum in its place. `in` is consumed */
	SKEP_OP_STORE,     /* out = in, and the result holds it. `in` is consumed */
	/* on the compute lane again */
	SKEP_OP_ENTER, /* the device holds this stage from now on, as at the start of the run, and nothing of another
	                  one; every accumulator is empty */
	SKEP_OP_CHECKPOINT, /* the stage's state is kept for good as that of version `round`; with `async`, where versions
	                       count outer updates, under that number */
	SKEP_OP_RESTORE, /* the device holds the state that was kept of version `checkpoint`, 0: that of the start of the
	                       run, of candidate `candidate`; it is version `round` from now on. Accumulators are left alone */
	/* on the reduce lane again; in the simulator alone (SKEP_COLLECTIVE_FUSED) */
	SKEP_OP_ALLREDUCE, /* the result holds the sum over all `members` of (stage, round, attempt, first); this worker has
	                      rank `rank` in the ring and sends to worker `receiver`. Ends when the sum is there, which
	                      needs all to have asked, or, without a result, after CANCEL */
	/* sums that grow in the result, of the same elements as COPY_GRAD and the others */
	SKEP_OP_INIT_RESULT,   /* the result holds the accumulator */
	SKEP_OP_ADD_TO_RESULT, /* the result holds the result + in. `in` is consumed */
	SKEP_OP_COPY_RESULT,   /* out: copy of the result, which holds from now on what out says */
	/* on the compute lane */
	SKEP_OP_RECOMPUTE, /* in: as FORWARD had it. The device does the forward pass again and keeps what BACKWARD needs in
	                      its own memory, until its next pass */
	/* the same, with periodic sync alone (plan.h): the device holds inner parameters beside those of the stage. They are
	 * what FORWARD and BACKWARD read and what INNER_STEP changes; op.version says what the newest STEP was, and a step
	 * may come between the two passes of a microbatch. STEP makes new parameters of the stage and sets the inner ones to
	 * them; LOAD and RESTORE set both. The inner optimizer's state is the device's own. */
	SKEP_OP_INNER_STEP, /* gradient = accumulator / microbatches, one step of the inner optimizer; clears the round's
	                   accumulator. nth: the number of the step in the round. microbatches == 0: only that. Behind a part of
	                   BACKWARD that says so (op.inner) the last step of the round is made with it, and PSEUDO_GRAD, of its
	                   elements alone */
	SKEP_OP_PSEUDO_GRAD, /* the round's accumulator holds the pseudo-gradient: (parameters of the stage - inner ones) *
	                   microbatches, that many were counted in the round. With inner.fragments of elements first ..
	                   first + count - 1, and STEP changes those alone; the rest of the accumulator is 0. With `async`:
	                   (what the inner ones started from - inner ones) * microbatches, in a place of its own, which the
	                   reduction reads; the round's accumulator is left alone. With `gossip`: the inner ones * microbatches;
	                   STEP steps towards the sum of these / microbatches */
	/* on the reduce lane, with reduction.gather. A part is what one member brings: a range of its accumulator, and how many
	 * microbatches are in it */
	SKEP_OP_PACK_PART,   /* out: the part of member `member`, from the accumulator, with `microbatches` */
	SKEP_OP_UNPACK_PART, /* the device has the part of member `member` of `members` beside the others. `in`, which is
	                      consumed; none: its own, from the accumulator, with `microbatches` */
	SKEP_OP_AGGREGATE, /* the result holds what the world makes of the `members` parts of these elements: as if it were
	                      their sum, with all their microbatches for the divisor */
	/* on the reduce lane */
	SKEP_OP_NORM, /* the event says the sum of the squares of the virtual stage's result, with members == 1 of its
	                 accumulator. With tied embeddings, in the first virtual stage, `term` says what is summed:
	                 enum skep_norm_term */
	/* the same, with tied embeddings, of their elements first .. first + count - 1 in this stage's vector */
	SKEP_OP_COPY_TIED, /* out: copy of the result, which holds from now on what out says, also with members == 1; of the
	                     accumulator then, which stays as it is */
	SKEP_OP_STORE_TIED, /* the device has `in`, the sum of the other stage, beside its result. `in` is consumed */
	/* on the compute lane */
	SKEP_OP_DISCARD, /* the round's accumulator is empty, whatever was added to it */
	/* on the reduce lane, with plan->sharded, behind the STEP of the worker's own shard: of the parameters that round's step
	 * makes, elements first .. first + count - 1 */
	SKEP_OP_COPY_SHARD,  /* out: copy of them */
	SKEP_OP_STORE_SHARD, /* out = in, and they are what it says. `in` is consumed */
	SKEP_OP_KINDS
};

/* True if op.stage names a virtual stage; else it names a stage. */
static inline bool skep_op_sliced(uint8_t kind)
{
	return kind == SKEP_OP_FORWARD || kind == SKEP_OP_BACKWARD || kind == SKEP_OP_STEP || kind == SKEP_OP_NORM;
}

/* A pass of a microbatch. */
static inline bool skep_op_passes(uint8_t kind)
{
	return kind == SKEP_OP_FORWARD || kind == SKEP_OP_BACKWARD || kind == SKEP_OP_RECOMPUTE;
}

/* It is a part of a reduction, and runs on that lane. */
static inline bool skep_op_reduces(uint8_t kind)
{
	return (kind >= SKEP_OP_COPY_GRAD && kind <= SKEP_OP_STORE) || kind == SKEP_OP_ALLREDUCE ||
	       kind == SKEP_OP_INIT_RESULT || kind == SKEP_OP_ADD_TO_RESULT || kind == SKEP_OP_COPY_RESULT ||
	       (kind >= SKEP_OP_PACK_PART && kind <= SKEP_OP_AGGREGATE) ||
	       (kind >= SKEP_OP_NORM && kind <= SKEP_OP_STORE_TIED) || kind == SKEP_OP_COPY_SHARD ||
	       kind == SKEP_OP_STORE_SHARD;
}

/* What a STEP means to the inner parameters, with `async`. */
enum skep_outer_update {
	SKEP_OUTER_UPDATE_OTHER, /* nothing: they are on their way from the parameters of the stage as they were */
	SKEP_OUTER_UPDATE_OWN, /* what is merged is their own PSEUDO_GRAD: they go on from the new parameters, by what they
			          did since */
	SKEP_OUTER_UPDATE_FRESH, /* they have done nothing since the last one: they are the new parameters */
};

enum skep_lane { SKEP_LANE_COMPUTE, SKEP_LANE_REDUCE, SKEP_LANES };

struct skep_op {
	uint64_t id; /* counts up per machine */
	uint8_t kind, lane;
	/* With several model chunks FORWARD, BACKWARD and STEP name one of them; STEP is asked for each in turn, and
	 * the version is the next one after the last. */
	uint16_t stage;
	uint32_t round;
	union {
		uint32_t microbatch; /* FORWARD, BACKWARD, RECOMPUTE: its number within the round */
		uint32_t checkpoint; /* RESTORE: the version that was kept */
		uint32_t receiver;   /* SAVE, ALLREDUCE: the worker that what comes of it goes to */
		uint32_t member;     /* PACK_PART, UNPACK_PART: whose part it is, by its rank */
		uint32_t number;     /* whichever of these the kind has: for digests and records */
	};
	uint32_t version; /* of the parameters it reads: so many steps are behind them */
	struct skep_buf in, stash, gradient;
	union {
		uint32_t chunk;     /* SAVE, LOAD; a transfer of a reduction: of what its scheme says (collective.h) */
		uint32_t part;      /* BACKWARD */
		uint32_t candidate; /* RESTORE */
		uint32_t rank;      /* ALLREDUCE, and STEP with plan->sharded: of this worker */
		uint32_t nth;       /* INNER_STEP, PSEUDO_GRAD: steps of the inner optimizer in this round before it */
		uint32_t term;      /* NORM: enum skep_norm_term */
		uint32_t index;     /* whichever of these the kind has: for digests */
	};
	union {
		uint32_t chunks;  /* SAVE, LOAD */
		uint32_t parts;   /* BACKWARD */
		uint32_t members; /* STEP, NORM and all that a reduction is made of */
		uint32_t size;    /* whichever of these the kind has: for digests */
	};
	union {
		uint64_t first;  /* reduction: elements */
		uint64_t square; /* STEP with `clip`: of the norm of the means of all virtual stages */
		uint64_t moved;  /* FORWARD, BACKWARD with no_flush.weights: see there */
	};
	uint64_t count;
	union {
		uint32_t attempt;        /* as in messages */
		uint32_t receiver_epoch; /* SAVE */
	};
	union {
		uint32_t hop;  /* that brought `in`, or the number of the transfer */
		uint32_t tied; /* STEP with a copy of tied embeddings: what the other virtual stage has counted */
		/* BACKWARD in parts, with periodic sync: an inner step of so many microbatches follows on its elements, and
		 * their pseudo-gradient, weighted by `microbatches`, takes the place of what they were. 0: neither */
		uint32_t inner;
	};
	uint32_t microbatches; /* STEP: the divisor; PACK_PART, UNPACK_PART: of its own part; BACKWARD: see inner */
	uint8_t update;        /* STEP with `async`: enum skep_outer_update */
	bool uncounted;        /* BACKWARD, for the sake of earlier stages: the accumulator stays as it is */
	bool recomputed;       /* BACKWARD, and the operation before it on this lane was the RECOMPUTE for it */
	bool presumed;         /* CHECKPOINT, of what a step has made that no word came for (worker/orphan.c) */
};
