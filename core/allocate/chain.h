/* SPDX-License-Identifier: Apache-2.0
 *
 * chain.h - which layers make a stage: dynamic programming over the layers of a chain and the machines that serve it.
 *
 * Three recurrences, each exact for what it says:
 *
 *   skep_chain_replicated  Harlap, Narayanan, Phanishayee et al.: PipeDream: Generalized Pipeline Parallelism for DNN Training.
 *       SOSP 2019, section 3.1. Equal machines; a stage may have several. Least time of the slowest stage or cut:
 *       A(j, m) = min over i < j, m' < m of max(A(i, m - m'), 2 a_i / B, T(i + 1 .. j, m'))
 *       T(i .. j, m) = max(sum of compute, 2 (m - 1) / m * weights / B) / m
 *       In words: m machines share a stage's microbatches, and each all-reduces the weights; times per microbatch.
 *   skep_chain_bounded     Zheng, Li, Zhang et al.: Alpa: Automating Inter- and Intra-Operator Parallelism. OSDI 2022, section
 *       5. Any cost of a stage as a table; what a batch takes, sum of t + (B - 1) max t. The bound on the slowest stage is
 *       the outer loop, the sum under that bound the inner recurrence; bounds that cannot win are passed over.
 *   skep_chain_ordered     Park, Yi, Yun et al.: HetPipe: Enabling Large DNN Training on (Whimpy) Heterogeneous GPU Clusters.
 *       USENIX ATC 2020, section 5. Machines of different speed and memory, one a stage, in the best order: a recurrence
 *       over layers and sets of machines, of least slowest stage. Machines of one kind are one: sets are counts.
 *
 * All three are exact against enumeration (tests/unit/test_chain.c). Ties go to fewer stages, then to the earlier cut.
 */
#ifndef SKEP_CORE_ALLOCATE_CHAIN_H
#define SKEP_CORE_ALLOCATE_CHAIN_H

#include "core/allocate/allocate.h"

struct skep_chain { /* the layers, front to back */
	uint32_t layers;
	const double *compute_s;        /* [layers] a microbatch forwards and backwards, on a machine of speed 1 */
	const double *weight_bytes;     /* [layers] reduced */
	const double *activation_bytes; /* [layers] that leave the layer for the next one; as many come back */
	const double *memory_bytes;     /* [layers] held by whoever has the layer; NULL: nothing */
};

struct skep_chain_stage {
	uint32_t first, layers; /* of the chain */
	uint32_t machines;
	uint32_t kind;  /* of its machine; 0 where all are equal */
	double stage_s; /* per microbatch: its time, and ... */
	double cut_s;   /* ... that of the cut behind it; 0: the last */
};

struct skep_chain_plan {
	double slowest_s; /* SKEP_NEVER: it cannot be done */
	double batch_s;   /* skep_chain_bounded: of a batch */
	uint32_t stages;
};

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

struct skep_chain_kinds {
	uint32_t kinds;
	const uint32_t *count;      /* [kinds] machines of it */
	const double *speed;        /* [kinds] */
	const double *memory_bytes; /* [kinds] */
	const double *rate_Bps;     /* [kinds * kinds] between machines of two kinds, row = the earlier stage */
	uint32_t stages;            /* so many machines are used, at most the layers; 0: as many as is best */
};

/* SIZE_MAX: too many sets of machines for memory; more than 8 kinds or 2^24 states. */
size_t skep_chain_ordered_size(const struct skep_chain *chain, const struct skep_chain_kinds *kinds);
/* ret_stage [machines or layers, whichever is less]. */
struct skep_chain_plan skep_chain_ordered(const struct skep_chain *chain, const struct skep_chain_kinds *kinds,
	void *mem, struct skep_chain_stage *ret_stage);

#endif
