/* SPDX-License-Identifier: Apache-2.0
 *
 * candidates.h - by which of several candidates a run goes on (candidates.c): what is expected of a loss, by least squares.
 *
 * A candidate's *points* are its losses after each of the last m of n rounds, m = skep_candidate_window(n): half of
 * them, so that the steep beginning says nothing. The line through the points that has the least squares of differences
 * is read off m rounds behind the last one, and the candidate with the lowest value there is kept: a loss that is a
 * little higher and falls faster may win. With i = 0 .. m - 1, y_i the points and c_i = 2i - (m - 1)
 *
 *     value = sum y_i / m + (2 h + m - 1) sum c_i y_i / (m (m^2 - 1) / 3),    h = m rounds ahead
 *
 * or, if one of the points is missing since nothing was counted so far, the highest there is. All of it is
 * in integers, so both worlds and all compilers agree. Losses are cut off where sums would overflow: at 10^8 with 100 rounds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/derived.h"

struct skep_candidate_points {
	int64_t last_nano; /* 1e-9 units, like all below; INT64_MAX: there was none yet */
	int64_t sum, moment;
	bool lacking; /* a point */
};

void skep_candidates_begin(struct skep_candidate_points *points);
/* After round `round` of `rounds`; one in which nothing was counted has the loss of the one before. */
void skep_candidate_point(struct skep_candidate_points *points, uint32_t round, uint32_t rounds);
/* When all rounds are over. */
int64_t skep_candidate_expected(const struct skep_candidate_points *points, uint32_t rounds);
