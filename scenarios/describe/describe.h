/* SPDX-License-Identifier: Apache-2.0
 *
 * describe.h - what a scenario comes to, for `skep check`: stages, workers, memory, bytes and time per step.
 */
#pragma once

#include <stdio.h>

#include "scenarios/plan/pace.h"

struct skep_described_step { /* what an optimizer step is expected to take, seconds; made by who can plan */
	struct skep_pace pace;
	double passes_s, reduction_s, update_s; /* of that; a delayed reduction goes on beside the passes */
	double turn_s;                          /* ... for messages of the directory */
	double busy;                            /* of the passes, the part in which what is busiest has work */
	bool starved;                           /* ... for want of microbatches in flight */
	char bound[160];                        /* what that is, and where */
};

/* One text for a person, or one JSON object. Bytes per round are exact for a round without losses: activations and
 * gradients over every stage boundary, and 2(n-1) times a stage's parameters for a ring of n. `expected` NULL: not known. */
void skep_scenario_describe(
	const struct skep_scenario *scenario, const struct skep_described_step *expected, bool json, FILE *out);
