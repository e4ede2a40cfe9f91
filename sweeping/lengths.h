/* SPDX-License-Identifier: Apache-2.0
 *
 * lengths.h - whether all runs of a sweep do the same amount of work. Rounds are whole, so that a run with longer ones may do
 * more than the others: their times, losses and prices are then of different work.
 */
#pragma once

#include <stdio.h>

#include "sweeping/combination.h"

struct skep_sweep_lengths {
	struct skep_sweep_reply least,
		most;      /* those that are to do the fewest and the most samples, in whatever order they ended */
	uint32_t multiple; /* of all numbers of steps of a round; 0: that is too large */
};

void skep_sweep_lengths_hear(struct skep_sweep_lengths *lengths, const struct skep_sweep_reply *reply);
/* Nothing where all do as much, or where that was asked for. */
void skep_sweep_lengths_warn(const struct skep_sweep_lengths *lengths, FILE *out);
