/* SPDX-License-Identifier: Apache-2.0
 *
 * dtfm_state.h - what the cost of dtfm.h and its sketch share. Private to planning/search/.
 */
#pragma once

#include "planning/search/published/dtfm.h"
#include "planning/search/published/matching.h"

struct grid { /* the sketch: who stands where, the columns in the order of the chain */
	struct skep_objective objective;
	double cap;        /* what a missing link counts, so that sums stay numbers */
	uint32_t *who;     /* [stages * size] */
	uint32_t *cell_of; /* [workers] */
	double *row_s;     /* [workers] sum over the others of its column */
	double *column_s;  /* [stages] the largest of these */
	double *edge_s;    /* [stages * size] to the next column; the last column has none */
	double *longest_s; /* [stages] the longest of these */
	double *next_row;  /* [2 * size] of the change that was asked about last */
	double next_column[2];
	struct skep_change asked;
};

struct state {
	struct skep_objective objective; /* self is this */
	uint32_t workers, stages, size, words;
	double *together, *along; /* [workers * workers] */
	uint64_t *member;         /* [stages * words] */
	uint32_t *stage_of;       /* [workers] */
	double *group_s;          /* [stages] the largest sum of a member */
	double *edge, *next_edge; /* [stages * stages] bottlenecks; those of the change that was asked about last */
	double least_along;       /* the shortest edge there is */
	double next_group[2], path_s, next_path_s, total_s, next_total_s;
	struct skep_change asked;
	uint32_t *list; /* [2 * size] members of two groups */
	struct matching matching;
	struct path path;
	struct grid grid;
};

/* Members of a group in ascending order. */
void skep_dtfm_members(const struct state *d, uint32_t stage, uint32_t *ret);
/* The bottleneck of two groups; the matching is in d->matching, rows and columns as skep_dtfm_members() lists them. */
double skep_dtfm_bottleneck(struct state *d, uint32_t a, uint32_t b);
double skep_dtfm_whole(void *self, const uint32_t *stage_of);

void skep_dtfm_grid_init(struct state *d, struct skep_search_carve *c);
