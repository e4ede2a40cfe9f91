/* SPDX-License-Identifier: Apache-2.0
 *
 * partition.h - two more recurrences over the layers of a chain (planning/search/chain.h), which no search of the program uses
 * yet: yardsticks, each exact against enumeration (tests/unit/test_chain.c).
 *
 *   skep_chain_replicated  Harlap, Narayanan, Phanishayee et al.: PipeDream: Generalized Pipeline Parallelism for DNN Training.
 *       SOSP 2019, section 3.1. Equal machines; a stage may have several. Least time of the slowest stage or cut:
 *       A(j, m) = min over i < j, m' < m of max(A(i, m - m'), 2 a_i / B, T(i + 1 .. j, m'))
 *       T(i .. j, m) = max(sum of compute, 2 (m - 1) / m * weights / B) / m
 *       In words: m machines share a stage's microbatches, and each all-reduces the weights; times per microbatch.
 *   skep_chain_bounded     Zheng, Li, Zhang et al.: Alpa: Automating Inter- and Intra-Operator Parallelism. OSDI 2022, section
 *       5. Any cost of a stage as a table; what a batch takes, sum of t + (B - 1) max t. The bound on the slowest stage is
 *       the outer loop, the sum under that bound the inner recurrence; bounds that cannot win are passed over.
 *
 * Ties go to fewer stages, then to the earlier cut.
 */
#pragma once

#include "planning/search/chain.h"

struct skep_chain_machines { /* equal ones */
	uint32_t machines;
	double rate_Bps;
	double memory_bytes; /* INFINITY: enough */
	uint32_t stages;     /* exactly so many; 0: as many as is best */
};

size_t skep_chain_replicated_size(const struct skep_chain *chain, const struct skep_chain_machines *machines);
/* ret_stage [min(layers, machines)]. Uses all machines or fewer. */
struct skep_chain_plan skep_chain_replicated(const struct skep_chain *chain, const struct skep_chain_machines *machines,
	void *mem, struct skep_chain_stage *ret_stage);

struct skep_chain_bound {
	uint32_t layers, stages_most;
	uint32_t machines, sizes; /* a stage has size[k] of the machines */
	const uint32_t *size;     /* [sizes] ascending */
	/* Seconds of a stage of layers [first, end) on size[k] machines; SKEP_NEVER: does not fit. */
	double (*stage_s)(void *self, uint32_t first, uint32_t end, uint32_t k);
	void *self;
	double microbatches;
	bool all; /* all machines must be used */
};

size_t skep_chain_bounded_size(const struct skep_chain_bound *bound);
/* ret_stage [stages_most]; cut_s is 0. */
struct skep_chain_plan skep_chain_bounded(
	const struct skep_chain_bound *bound, void *mem, struct skep_chain_stage *ret_stage);
