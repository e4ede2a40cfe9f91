/* SPDX-License-Identifier: Apache-2.0
 *
 * rebalance.h - which worker should serve another stage, and which stage a newcomer should serve. The frame is that of
 * SWARM (Ryabinin et al. 2023, section 3.2): once a period the worker with the shortest queue of the least loaded stage
 * moves to the most loaded one, and newcomers go there too. What a load is, is the plan's `rebalance_by`:
 *
 *   rate    the time that the stage needs for a microbatch, all its workers together: 1 / sum of 1 / (time that one
 *           needs), from what they report. It is kept upside down, as a rate. A pipeline is as fast as its slowest stage, so
 *           the stage with the least rate is the one that holds all others up. Queues do not tell that: in a synchronous
 *           round, which fills the pipeline and drains it again, they are long where microbatches enter and where they turn
 *           round, and a stage that has many workers may hold more that waits than one that has few.
 *           The giver is the stage that has the highest rate left without the one that would go. It gives only if it then
 *           still has a higher rate than the taker had, so the slower of the two gains by each move, as far as the times
 *           that were reported are right, and no move is taken back by the next one.
 *   queue   the paper's Algorithm 2: the sum of the queues of the stage's workers. The giver is the stage with the smallest
 *           sum, and it gives if another one has a larger sum, by however little. Stages without a difference in their
 *           sums, as when none has reported yet, compare by their number of workers. A queue is not what waits at the moment
 *           of the report, as in the paper, but its mean over the period: workers move at the end of a round, when
 *           nothing waits anywhere.
 *
 * With both, queues choose among the workers of a stage, and a stage keeps its last worker, which the paper's does not. With
 * a horizon, a move must also pay for itself: what the taker gains by one more worker over the horizon, a share of
 * 1 / (its workers + 1), must exceed the time that the mover needs to fetch its new stage's state.
 */
#pragma once

#include "core/skep.h"

struct skep_load { /* one worker that has a stage */
	uint32_t worker, stage;
	bool serves; /* and could move; else it will serve soon */
	uint64_t queue_milli;
	/* For a microbatch, forward and backward; 0: not known, so as its stage, or as all on the mean. */
	skep_time needed_ns;
};

struct skep_stage_load {                  /* scratch and result: one per stage */
	uint32_t workers, serving, known; /* all; those that could move; those whose time is known */
	uint32_t idle;                    /* of those that could move, the one with the shortest queue */
	uint64_t idle_queue_milli;
	uint64_t queue_milli; /* of all together */
	/* In microbatches per 10^15 ns: of all together, of the idle one, of one whose time is not known. */
	uint64_t rate, idle_rate, each;
};

struct skep_migration {
	uint32_t worker; /* SKEP_NO_INDEX: none */
	uint32_t to;
};

/* `stage` is filled: [plan->stages]. */
void skep_stage_loads(
	const struct skep_plan *plan, const struct skep_load *load, uint32_t loads, struct skep_stage_load *stage);

/* The two below read what that has filled. Ties go to the lower number. */
struct skep_migration skep_rebalance(const struct skep_plan *plan, const struct skep_stage_load *stage);
uint32_t skep_most_loaded(const struct skep_plan *plan, const struct skep_stage_load *stage);
