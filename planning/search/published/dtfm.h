/* SPDX-License-Identifier: Apache-2.0
 *
 * dtfm.h - what an allocation costs by pairwise delays and bandwidths: data parallel and pipeline traffic of one step.
 *
 * Yuan, He, Davis, Zhang, Dao, Chen, Liang, Re, Zhang: Decentralized Training of Foundation Models in Heterogeneous
 * Environments. NeurIPS 2022, section 3. S groups of R workers; delay a in s, bandwidth b in bytes/s; c_dp bytes of
 * gradients of a stage, c_pp bytes of activations of a microbatch:
 *
 *   data parallel  max over groups, max over members d, of the sum over other members d' of 2 (a + c_dp / (R b))
 *   pipeline       the shortest open path over the groups, where two groups are as far apart as the bottleneck of a perfect
 *                  matching of their members with edges a + c_pp / b
 *   total          data parallel + 2 pipeline
 *
 * a and b are those of the ordered pair (d, d'), and of (group's, next group's) with the group of the lower number first: on
 * symmetric links, which the paper has, that is the same in both directions; on others the worse of both directions counts, so
 * that the path has no direction. The path is exact up to SKEP_DTFM_EXACT_STAGES stages (Held and Karp 1962); beyond, it is the
 * shortest that insertion and reversal find, never less than the true one.
 *
 * Incremental: two workers that change places alter the sums of two groups, and 2S - 3 of the S(S-1)/2 matchings.
 *
 * The sketch writes the matchings and the path down: worker -> (stage, pipeline), stages in the order of the chain. A change of
 * places costs R + S steps there instead of matchings and a path; its least over all arrangements is the cost above.
 */
#pragma once

#include "planning/search/allocation.h"

#define SKEP_DTFM_EXACT_STAGES 12u

struct skep_dtfm { /* workers is a multiple of stages, no spares: all groups have the same size */
	const struct skep_links *links;
	uint32_t stages;
	double gradient_bytes;   /* c_dp */
	double activation_bytes; /* c_pp */
};

size_t skep_dtfm_size(const struct skep_dtfm *dtfm);

/* The cost lives in `mem`, and the sketch too. */
const struct skep_objective *skep_dtfm_init(void *mem, const struct skep_dtfm *dtfm);

/* For struct skep_search: [workers * workers] each, in `mem`. */
const double *skep_dtfm_together(const struct skep_objective *cost);
const double *skep_dtfm_along(const struct skep_objective *cost);
