/* SPDX-License-Identifier: Apache-2.0
 *
 * store_spread.h - how well the workers of a run were spread over its stages, round by round.
 *
 * A pipeline is as fast as its slowest stage: with w_s workers in stage s that take c_s seconds each for a microbatch it
 * does min w_s / c_s of them a second. The best possible is the largest such minimum over all ways to spread the same
 * workers; 100 % is thus what perfect rebalancing would give to those who are there at that time (the measure of SWARM's
 * experiments with rebalancing, Ryabinin et al. 2023, arXiv 2301.11913). w_s: members of the round's reduction; c_s: mean
 * time of forward and backward in the run, equal for all stages where it is not known. Pauses of the pipeline are not in
 * it: reductions, fill and drain hit every spread alike.
 *
 * All workers of a stage count the same, with the mean cost of that stage. So when GPUs are mixed 100 % is not what perfect
 * rebalancing would give: a stage served by slow GPUs looks costly instead of badly staffed, and swapping a fast worker for
 * a slow one changes nothing.
 */
#pragma once

#include "analysis/store/store.h"

/* Of a round, from when it opened to when it closed. */
typedef void skep_spread_visit(void *context, double opened_s, double closed_s, double percent);

/* In the order of the rounds. What cannot be read ends it early, as skep_store_row() does. */
bool skep_store_spread(struct skep_store *store, int64_t run, uint32_t stages, skep_spread_visit *visit, void *context,
	struct skep_diag *reterr);

/* Its mean over the time of all rounds, in percent; NAN: no round took any. */
bool skep_store_spread_mean(
	struct skep_store *store, int64_t run, uint32_t stages, double *ret, struct skep_diag *reterr);
