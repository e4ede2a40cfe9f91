/* SPDX-License-Identifier: Apache-2.0
 *
 * rebalance.h - which worker should serve another stage (SWARM, Ryabinin et al. 2023, section 3.3).
 *
 * The load of a stage is the sum of the queue lengths of its workers, as they report them every period. The worker with the
 * shortest queue of the least loaded stage moves to the most loaded one, if its own stage keeps another worker. At most one
 * move a period. With a horizon, a move must pay for itself: what the most loaded stage gains by one more worker over the
 * horizon, a share of 1 / (its workers + 1), must exceed the time that the mover needs to fetch its new stage's state.
 */
#ifndef SKEP_CORE_REBALANCE_H
#define SKEP_CORE_REBALANCE_H

#include "core/skep.h"

struct skep_load { /* one worker that serves */
	uint32_t worker, stage;
	uint64_t queue_milli;
};

struct skep_stage_load { /* scratch and result: one per stage */
	uint32_t workers;
	uint64_t queue_milli;
};

struct skep_move {
	uint32_t worker; /* SKEP_NO_INDEX: none */
	uint32_t to;
};

/* `stage` is filled: [plan->stages]. Ties go to the lower number. */
struct skep_move skep_rebalance(
	const struct skep_plan *plan, const struct skep_load *load, uint32_t loads, struct skep_stage_load *stage);

#endif
