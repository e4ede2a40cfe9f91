/* SPDX-License-Identifier: Apache-2.0
 *
 * candidates.h - reads from the notes of a trial of candidates (core/methods/candidates.c) the losses of each, and
 * which was kept.
 *
 * Kept true: in what comes out, a microbatch of candidate k has number m + k * capacity; so all candidates together
 * are one round, in which everything is counted once or lost, as in any other. Without a trial notes go through as
 * they are.
 */
#pragma once

#include "core/skep.h"

#define SKEP_CANDIDATE_LIVES 16u /* of a worker; when two are so far apart nothing comes of the first any more */

struct skep_candidates {
	const struct skep_plan *plan; /* of which these are */
	uint32_t candidates, rounds, capacity;
	bool over;
	uint32_t kept, end; /* over: rounds before `end` are the trial's */
	int64_t *loss_nano; /* [candidates * rounds], INT64_MIN: none */
	uint32_t workers;
	uint8_t *home; /* [workers * SKEP_CANDIDATE_LIVES]: the candidate that a worker served, by its epoch */
};

bool skep_candidates_init(struct skep_candidates *c, const struct skep_plan *plan); /* false: no memory */
void skep_candidates_finish(struct skep_candidates *c);

/* Hears the note, and returns it as it is to be kept. */
struct skep_note skep_candidates_hear(struct skep_candidates *c, const struct skep_note *note);

/* Of a candidate after a round of the trial; NAN: none. */
double skep_candidates_loss(const struct skep_candidates *c, uint32_t candidate, uint32_t round);
/* The newest one, and the mean of the newest ones of all that have one. */
double skep_candidates_last(const struct skep_candidates *c, uint32_t candidate);
double skep_candidates_mean(const struct skep_candidates *c);
