/* SPDX-License-Identifier: Apache-2.0
 *
 * known.h - what trials (trial.h) have found out, so that the same allocation with the same settings is simulated once: a search
 * that goes on where another one ended, in this process or in one that looked at settings, asks for much of it again.
 *
 * Keeps true: what is simulated twice comes out the same, so nothing depends on what is known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct skep_planner;
struct skep_candidate;

struct skep_known_trial {
	uint64_t key;
	double samples_per_s, round_s; /* means over the seeds */
	double events;
};

struct skep_known_trials {
	struct skep_known_trial *trial;
	uint32_t count;
};

/* Of all that a trial follows from: assignments, allocation, cut, seeds, rounds; `how`: a number for all else. */
uint64_t skep_known_key(const struct skep_planner *planner, const struct skep_candidate *candidate, uint64_t how);
/* NULL: it is not known. */
const struct skep_known_trial *skep_known_find(const struct skep_known_trials *known, uint64_t key);
/* Without memory it is not known afterwards, as before. */
void skep_known_add(struct skep_known_trials *known, const struct skep_known_trial *trial);
void skep_known_finish(struct skep_known_trials *known);
