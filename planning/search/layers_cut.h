/* SPDX-License-Identifier: Apache-2.0
 *
 * layers_cut.h - where to cut the layers into stages, once it is known who serves which stage: the cut with the least
 * expected time of a step (throughput.h).
 *
 * Groups of machines in a given order, one a stage (HetPipe's virtual workers, Park et al. 2020), each of any mixture; the
 * outer loop is over the slowest stage, as in Alpa (Zheng et al. 2022). For every bound on the pace
 *
 *   F[s][j] = the least (trip, reduction, update) of stages 0 .. s-1 that are the layers before j, none slower than the bound
 *
 * where trips add up, and of reductions and updates the longest counts. So a cell holds not one value but those that no
 * other beats in all three, of which at most CUTS_LABELS are kept, the least expected ones. Bounds are the paces of
 * stages themselves, ascending; the first one below which there is a way is found by halving, and one that alone is no
 * better than what was found ends the search.
 *
 * Exact for stages that know nothing of each other, as long as no cell overflows and there are no more than CUTS_BOUNDS
 * bounds to look at; with more, those within a thousandth of the one before are passed over. (By speed, whom a worker sends
 * to depends on its neighbours' speeds a little; the caller asks the cost about what is found here.) Ties go to the lower
 * bound, then to the earlier cut.
 *
 * The caller: fills the struct, asks for the size, calls find() with that much memory, and asks its cost about the answer.
 */
#pragma once

#include "planning/search/throughput.h"

#define CUTS_LABELS 16u
#define CUTS_BOUNDS 256u

struct skep_cuts {
	uint32_t layers, stages;
	/* [stages + 1] where a stage may begin, both included: 0 of the first, `layers` behind the last, and there is room
	 * between for at least one layer each. */
	const uint32_t *low, *high;
	/* Of layers [first, end), as skep_throughput_measure() says it; pace_s SKEP_NEVER: it cannot be. */
	struct skep_throughput_stage (*stage)(void *self, uint32_t stage, uint32_t first, uint32_t end);
	/* Memory; asked of what is not hopeless otherwise. NULL: all fits. */
	bool (*fits)(void *self, uint32_t stage, uint32_t first, uint32_t end);
	void *self;
	const struct skep_throughput *throughput; /* microbatches, in_flight, period, delayed of it */
	uint32_t first_workers;                   /* in the first stage */
	double outstanding, turn_s;               /* of skep_throughput_parts */
	double worth;                             /* only a step of less than this is wanted; SKEP_NEVER: any */
};

size_t skep_cuts_size(const struct skep_cuts *cuts);

/* ret_first [stages + 1], the last one `layers`. SKEP_NEVER: there is none that is worth it, and ret_first is not filled. */
double skep_cuts_find(const struct skep_cuts *cuts, void *mem, uint32_t *ret_first);
