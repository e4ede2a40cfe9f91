/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.h - a real run once more: its log is fed to fresh machines, which must decide as they did then.
 *
 * Nothing reaches a machine that its world could not have told it (core/skep.h, a world's duties): time does not go back, an
 * operation ends only if this machine has asked for it, a message arrives only if the machine that it comes from has sent
 * it here. So the machines wait for each other, a changed core is caught at the first event that no longer fits, and
 * damaged bytes never get as far as an assertion.
 *
 * A machine may have had several lives, each with fresh state. A life whose log lacks its end, since its host was lost, is
 * replayed as far as its log goes; it is named, and the replay is not whole. What it sent afterwards is known from the logs of
 * those that received it, and is believed there: they are replayed to their ends.
 */
#pragma once

#include <stdio.h>

#include "core/record.h"

enum skep_replay_verdict {
	SKEP_REPLAY_AGREES,  /* as far as the log reaches */
	SKEP_REPLAY_DIFFERS, /* a machine has decided otherwise, or would have been told otherwise */
	SKEP_REPLAY_DAMAGED  /* the bytes are not a log of this plan's run */
};

struct skep_replay_incarnation { /* not replayed to its end */
	uint32_t machine, life;  /* from 1; 0: it has not begun */
	uint64_t events;         /* of the life that were replayed */
	bool waits;              /* for a message that a log without an end does not have */
};
#define SKEP_REPLAY_INCARNATIONS_MAX 32u

struct skep_replay_result {
	enum skep_replay_verdict verdict;
	uint32_t machines;
	uint32_t lives;      /* that have begun */
	uint32_t unfinished; /* of these; the first ones in life[] */
	struct skep_replay_incarnation life[SKEP_REPLAY_INCARNATIONS_MAX];
	uint64_t events;     /* replayed in agreement */
	uint64_t run_events; /* of the run; 0: it has not come to its end */
	uint64_t bytes;      /* of log */
	uint64_t believed;   /* messages of lives without an end, known from their receivers alone */
	bool whole;          /* every life of every machine was replayed to its end */
	/* Unless the verdict is AGREES: the event, the earliest by its time if there are several. */
	uint32_t machine;
	uint64_t event; /* of that machine, from 1 */
	skep_time now;
	char what[128]; /* the event; "" if it cannot be read */
	const char *why;
	char recorded[17], replayed[17]; /* digests, or their low 16 bits; "" where they say nothing */
};

/* Hears what a run did, of the events that are replayed in agreement, machine by machine and each machine's in order. The times
 * are those that the machines were told: of two machines on different hosts by two clocks (exec/loop/clock.h). */
struct skep_replay_witness {
	void *context;
	/* From one machine to another; none of which two alike were sent, for then it is not known which one this is. */
	void (*message)(void *context, const struct skep_message *message, skep_time sent, skep_time received);
	/* From where it was asked for and its lane was free to where the machine heard of its end: hand-overs are in it. */
	void (*op)(void *context, uint32_t machine, const struct skep_op *op, skep_time begin, skep_time end);
};

/* `log`: one of each worker, then the directory's. False: no memory. */
bool skep_replay_run(const struct skep_plan *plan, const struct skep_machine_log *log, struct skep_replay_result *ret);

/* The same, with a witness; NULL: without. */
bool skep_replay_witnessed(const struct skep_plan *plan, const struct skep_machine_log *log,
	const struct skep_replay_witness *witness, struct skep_replay_result *ret);

void skep_replay_print(const struct skep_replay_result *result, int64_t run, bool json, FILE *out);
