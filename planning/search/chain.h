/* SPDX-License-Identifier: Apache-2.0
 *
 * chain.h - which layers make a stage: dynamic programming over the layers of a chain and the machines that serve it.
 *
 *   skep_chain_ordered     Park, Yi, Yun et al.: HetPipe: Enabling Large DNN Training on (Whimpy) Heterogeneous GPU Clusters.
 *       USENIX ATC 2020, section 5. Machines of different speed and memory, one a stage, in the best order: a recurrence
 *       over layers and sets of machines, of least slowest stage. Machines of one kind are one: sets are counts.
 *
 * Exact against enumeration (tests/unit/test_chain.c). Ties go to fewer stages, then to the earlier cut.
 */
#pragma once

#include "planning/search/allocation.h"

#define SKEP_CHAIN_KINDS_MOST 8u /* kinds of machines: sets of them are counts of each */

struct skep_chain { /* the layers, front to back */
	uint32_t layers;
	const double *compute_s;        /* [layers] a microbatch forwards and backwards, on a machine of speed 1 */
	const double *weight_bytes;     /* [layers] reduced */
	const double *activation_bytes; /* [layers] that leave the layer for the next one; as many come back */
	const double *memory_bytes;     /* [layers] held by the worker that has the layer; NULL: nothing */
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
	double batch_s;   /* of a batch, where the recurrence minimises that */
	uint32_t stages;
};

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
