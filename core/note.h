/* SPDX-License-Identifier: Apache-2.0
 *
 * note.h - what machines say about what they do: notes, which change nothing and go to databases, summaries and tests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct skep_span { /* of stages, or virtual stages, both inclusive */
	uint16_t first, last;
};

/* What a device finds to be infinite or no number. */
enum skep_fault {
	SKEP_FAULT_NONE,
	SKEP_FAULT_ACTIVATIONS,       /* by FORWARD, which puts out nothing of use */
	SKEP_FAULT_LOSS,              /* the same, in the last virtual stage */
	SKEP_FAULT_GRADIENT,          /* by BACKWARD, NORM, or STEP, which changes no parameter then */
	SKEP_FAULT_STATE,             /* by CHECKPOINT, which keeps nothing then */
	SKEP_FAULT_CHECKPOINT_FAILED, /* CHECKPOINT could not keep the state; what was kept before is still there */
	SKEP_FAULTS
};

struct skep_fault_at {
	uint8_t kind;   /* enum skep_fault */
	uint16_t layer; /* of the model, in which it was seen first, from 1; 0: that cannot be told */
};

/* With model chunks MEMBER, LOST, STAGE_COMMITTED, COUNTED and RERUN name virtual stages. While several candidates for
 * the first parameters are tried, what the directory says of stages, workers and losses is about one of them,
 * `candidate`. */
enum skep_note_kind {
	/* by the directory */
	SKEP_NOTE_ROUND_OPENED = 1, /* round */
	SKEP_NOTE_ISSUED,           /* round, microbatch .. microbatch + granted - 1, peer: granted to that owner */
	SKEP_NOTE_RERUN,            /* round, microbatch, peer, rerun: granted to that owner again */
	SKEP_NOTE_MEMBER, /* round, stage, peer, microbatches: it counted so many, and is in the committed reduction */
	SKEP_NOTE_LOST,   /* round, stage, bits: microbatch + i is lost for each bit i that is set */
	SKEP_NOTE_STAGE_COMMITTED, /* round, stage, counted, lost */
	SKEP_NOTE_LOSS, /* round, loss_nano: the mean over the microbatches that were counted in the last stage */
	SKEP_NOTE_ROUND_CLOSED, /* round, issued */
	SKEP_NOTE_FENCED,       /* peer (the epoch that is no more), stage */
	SKEP_NOTE_JOINED,   /* peer, stage, round: it holds the state, and works from the next round on at the latest */
	SKEP_NOTE_LEFT,     /* peer (the epoch that is no more), stage: it had given notice and holds nothing */
	SKEP_NOTE_MIGRATED, /* peer (the epoch that is no more), stage: the new one; it joins there as a newcomer */
	SKEP_NOTE_STAGE_EMPTY, /* stage, round: its last worker is gone, and with it all that the stage had learnt */
	SKEP_NOTE_STOPPED, /* round = rounds closed, ok; else it failed: stage has waited in vain, or, with no stage,
	                          DIVERGED says why */
	/* by a worker */
	SKEP_NOTE_COUNTED,  /* round, stage, microbatch, staleness: added to the sender's accumulator */
	SKEP_NOTE_OVERFLOW, /* round, microbatch: no room, abandoned */
	/* by the directory */
	SKEP_NOTE_ADMITTED, /* peer, stage, round: a newcomer takes part from this round's reduction on; it holds no state yet */
	SKEP_NOTE_STAGE_RESTARTED, /* stage, round, peer, version: of the checkpoint, 0: as at the start of the run */
	SKEP_NOTE_CHECKPOINTED,    /* stage, peer, round: the state as of the start of this round is kept */
	SKEP_NOTE_VALIDATING,      /* round = steps behind the parameters, asked */
	SKEP_NOTE_VALIDATED,       /* round, judged, loss_nano: their mean, 0 if there were none */
	SKEP_NOTE_DIVERGED, /* round, stage or virtual stage, microbatch, peer, fault: the first not finite. The run
	                       stops */
	SKEP_NOTE_CHECKPOINT_FAILED, /* stage, peer, round: the state as of the start of this round could not be kept */
	SKEP_NOTE_OUTER_UPDATED, /* round, stage, peer, bits: microbatch + i was counted by the peer, for each bit i that is set,
	                     and is in an outer update that is committed */
	/* the same, in a trial (candidates.c) */
	SKEP_NOTE_CANDIDATE_LOSS,    /* round, candidate, loss_nano: as LOSS has it */
	SKEP_NOTE_CANDIDATE_DROPPED, /* round, candidate, fault; kind SKEP_FAULT_NONE: stage has lost its last worker */
	SKEP_NOTE_CANDIDATE_CHOSEN, /* round = the last one that was open, candidate, loss_nano: what is expected of it,
	                             or if it is the last one left its newest, INT64_MAX: none. The trial is over */
	SKEP_NOTE_ROUND_VOIDED, /* round, issued: what was counted of these so far is thrown away, and the round begins again */
	SKEP_NOTE_UNEQUAL, /* stage, round, peer: its parameters as of the start of this round are not those of the others. It is
	                      fenced, unless that has not helped it before */
	SKEP_NOTE_SCALED,   /* stage = the kind of machines, round, wanted, there: so many are wanted from now on */
	SKEP_NOTE_RETURNED, /* stage, round, peer: its machine is given back; it is told to leave */
	SKEP_NOTE_SHARD_LOST, /* stage, round, peer: it is lost, and with it its shard of the optimizer's state. The run fails */
	SKEP_NOTE_RESUMED, /* round: the directory was lost, and all begin again with what was kept as of the start of this round.
	                      What was counted of it and of later rounds is lost, and they are made again */
	SKEP_NOTE_KINDS
};

struct skep_rerun {
	uint32_t attempt;      /* of the count after which the microbatch is run again */
	struct skep_span span; /* the stages that are to count it */
};

struct skep_note {
	uint8_t kind;
	uint8_t candidate; /* while several are tried; afterwards, and without a trial, 0 */
	uint16_t stage;
	uint32_t round;
	union {
		uint32_t microbatch; /* its number within the round; of several the first */
		uint32_t issued;     /* ROUND_CLOSED, ROUND_VOIDED */
		uint32_t counted;    /* STAGE_COMMITTED */
		uint32_t asked;      /* VALIDATING: microbatches that are to be judged */
		uint32_t judged;     /* VALIDATED: over how many the mean is */
		uint32_t wanted;     /* SCALED: machines */
		uint32_t number;     /* whichever of these the kind has (skep_note_number) */
	};
	struct skep_peer peer;
	union {
		int64_t granted;      /* ISSUED: microbatches */
		int64_t microbatches; /* MEMBER: that it counted */
		int64_t lost;         /* STAGE_COMMITTED: microbatches */
		int64_t loss_nano; /* LOSS, VALIDATED, CANDIDATE_LOSS, CANDIDATE_CHOSEN: 1e-9 units; INT64_MAX: not finite */
		int64_t ok;        /* STOPPED: 1 or 0 */
		/* COUNTED: steps (async: outer updates) that the parameters of its passes lacked. With waves skep_note_lacked()
		 * and skep_note_lacked_own() */
		int64_t staleness;
		int64_t version;            /* STAGE_RESTARTED */
		int64_t there;              /* SCALED: machines that were, when that was decided */
		uint64_t bits;              /* LOST, OUTER_UPDATED */
		struct skep_rerun rerun;    /* RERUN */
		struct skep_fault_at fault; /* DIVERGED, CANDIDATE_DROPPED */
		int64_t value;              /* whichever of these the kind has, if it is one number (skep_note_value) */
	};
};

/* COUNTED with waves: how many microbatches before it FORWARD lacked, of each other virtual worker and of its own. */
static inline uint32_t skep_note_lacked(int64_t staleness)
{
	return (uint32_t)((uint64_t)staleness & UINT32_MAX);
}
static inline uint32_t skep_note_lacked_own(int64_t staleness)
{
	return (uint32_t)((uint64_t)staleness >> 32);
}

/* A note as two numbers, as digests and databases have it. RERUN: attempt << 32 | first << 16 | last; DIVERGED and
 * CANDIDATE_DROPPED: kind << 16 | layer. */
uint32_t skep_note_number(const struct skep_note *note);
int64_t skep_note_value(const struct skep_note *note);
/* The other way round: of a note whose kind is set. */
void skep_note_set(struct skep_note *note, uint32_t number, int64_t value);

#ifdef __cplusplus
}
#endif
