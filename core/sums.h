/* SPDX-License-Identifier: Apache-2.0
 *
 * sums.h - in which rounds a stage sums. All do in each round, unless stages have periods of their own (inner.sum_every). In
 * the other rounds a stage has nothing to sum: its range has no elements; its members still tell what they have counted, and
 * make a STEP that changes nothing but the version. What they have learnt stays in their inner parameters until it sums.
 */
#pragma once

#include "core/derived.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rounds from one sum of a stage to its next one. */
static inline uint32_t skep_plan_sum_every(const struct skep_plan *plan, uint32_t stage)
{
	return plan->inner.sum_every ? plan->inner.sum_every[stage % plan->stages] : 1;
}

static inline bool skep_plan_sums(const struct skep_plan *plan, uint32_t stage, uint32_t round)
{
	return !plan->inner.sum_every || (round + 1) % skep_plan_sum_every(plan, stage) == 0;
}

/* The first round in which the stage does. */
static inline uint32_t skep_plan_first_sum(const struct skep_plan *plan, uint32_t stage)
{
	return skep_plan_sum_every(plan, stage) - 1;
}

/* Does it end rounds in which not all of it has been summed? Its workers' inner parameters are then more than its state, and kept
 * with it. */
static inline bool skep_plan_inner_kept(const struct skep_plan *plan, uint32_t stage)
{
	return skep_plan_fragments(plan) > 1 || skep_plan_sum_every(plan, stage) > 1;
}

/* Rounds behind which all of each stage has been summed. */
uint32_t skep_plan_cycle(const struct skep_plan *plan);

#ifdef __cplusplus
}
#endif
