/* SPDX-License-Identifier: Apache-2.0
 *
 * reductions.h - how long the sums of all stages take, at once, under one allocation.
 */
#pragma once

#include "planning/expected/loads.h"

/* Of a round, with the tables of tied embeddings behind them: each stage's into loads->reduce_s, and the longest. Of a step in
 * shards that is the first half of a ring, and the other one, behind the step, is loads->gather_s. Clears the loads. */
double skep_reductions_s(struct skep_loads *loads);
