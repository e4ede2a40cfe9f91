/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream.h - the partitioner of Narayanan, Harlap, Phanishayee et al.: PipeDream: Generalized Pipeline Parallelism for
 * DNN Training. SOSP 2019, section 3.1: which layers make a stage, and how many equal machines serve it, on levels of
 * machines inside of machines. Exact for its own cost, which is the time of the slowest stage or cut per microbatch:
 *
 *   A_0(i .. j)    = sum of compute
 *   T_k(i .. j, m) = max(A_k-1(i .. j, all of a component), 2 (m - 1) W / (M B_k)) / m
 *   A_k(i .. j, m) = min of T_k(i .. j, m) and, over s and n, max(A_k(i .. s, m - n), 2 a_s / B_k, T_k(s + 1 .. j, n))
 *
 * W are the bytes of the layers' weights, which are summed once in M microbatches; M = m where `microbatches_per_sum` is 0.
 *
 * The released tool (optimizer_graph_hierarchical.py) differs: a stage's reduction comes on top of its compute and not
 * beside it, and takes 4 (m - 1) W / (M B), of which the first stage of a level has only the part of one machine of its
 * components; a cut takes 2 a / (n B), before the stage and behind it, n being the machines of the later stage.
 *
 * Ties go to what was found first: no cut, then the earlier cut, then fewer machines for the later stage.
 */
#pragma once

#include "planning/search/chain.h"

#define SKEP_PIPEDREAM_LEVELS 2u
#define SKEP_PIPEDREAM_LAYERS 512u

struct skep_pipedream_level {
	uint32_t components; /* in one of the level above */
	double rate_Bps;     /* between two of them */
};

struct skep_pipedream {
	const struct skep_chain *chain;
	uint32_t levels;
	struct skep_pipedream_level level[SKEP_PIPEDREAM_LEVELS]; /* the innermost first */
	double microbatches_per_sum;                              /* 0: one of each replica */
	bool tool;                                                /* as the released tool does it */
};

size_t skep_pipedream_size(const struct skep_pipedream *p);
/* How many ways to make a stage are looked at, about. */
double skep_pipedream_ways(const struct skep_pipedream *p);
/* ret_stage [layers]: `machines` of it are replicas; stage_s and cut_s are left 0. ret_stage_of [all machines], those of one
 * component of the outer level in a row. */
struct skep_chain_plan skep_pipedream_find(
	const struct skep_pipedream *p, void *mem, struct skep_chain_stage *ret_stage, uint32_t *ret_stage_of);
