/* SPDX-License-Identifier: Apache-2.0
 *
 * observed_dtfm.h - what the cost of an allocation by dtfm.h is made of, which no search asks for.
 */
#pragma once

#include "planning/search/published/dtfm_state.h"

struct dtfm_parts {
	double data_parallel_s, pipeline_s, total_s;
	uint32_t slowest_stage; /* the group of the largest sum */
	uint32_t longest_edge;  /* stage whose edge to the next one in the chain is the longest; stages is arranged */
};

/* The matching of this stage with the next one takes each pipeline on. */
static inline void follow_edge(struct state *d, uint32_t stage, uint32_t *pipeline)
{
	const uint32_t *here = d->list, *next = d->list + d->size;
	(void)skep_dtfm_bottleneck(d, stage, stage + 1);
	for (uint32_t i = 0; i < d->size; i++)
		pipeline[next[d->matching.column_of[i]]] = pipeline[here[i]];
}

/* Of an arranged allocation (whole() and arrange() have been asked). ret_pipeline [workers], NULL or each worker's pipeline in
 * [0, R): who follows whom in the matchings of the path. */
static inline struct dtfm_parts dtfm_explain(
	const struct skep_objective *cost, const uint32_t *stage_of, uint32_t *ret_pipeline)
{
	struct state *d = cost->self;
	struct dtfm_parts parts = {0};
	double longest = -1;
	skep_dtfm_whole(d, stage_of);
	for (uint32_t s = 0; s < d->stages; s++) {
		double edge = s + 1 < d->stages ? d->edge[(size_t)s * d->stages + s + 1] : 0;
		parts.pipeline_s += edge;
		if (edge > longest) {
			longest = edge;
			parts.longest_edge = s;
		}
		if (d->group_s[s] > parts.data_parallel_s) {
			parts.data_parallel_s = d->group_s[s];
			parts.slowest_stage = s;
		}
	}
	parts.total_s = parts.data_parallel_s + 2 * parts.pipeline_s;
	if (!ret_pipeline)
		return parts;
	skep_dtfm_members(d, 0, d->list);
	for (uint32_t i = 0; i < d->size; i++)
		ret_pipeline[d->list[i]] = i;
	for (uint32_t s = 0; s + 1 < d->stages; s++)
		follow_edge(d, s, ret_pipeline);
	return parts;
}
