/* SPDX-License-Identifier: Apache-2.0
 *
 * matching.h - the perfect matching of two groups whose longest edge is the shortest, and the shortest open path through all
 * groups. Private to planning/search/.
 *
 * Matching. The threshold begins at the least that gives every member some edge. Members are matched one after the other by a
 * breadth-first search for an augmenting path over edges up to the threshold (Kuhn 1955); where there is none, the members
 * that were reached, and the partners that were not, are what Hall's theorem forbids, so the threshold must rise to the least
 * edge between those. It never falls, so the result is the bottleneck, and the matching one that has it.
 *
 * Path. By dynamic programming over sets of groups (Held, Karp 1962) up to SKEP_DTFM_EXACT_STAGES of them. For more: from each
 * of a few first groups always on to the nearest, then reversals and moves of single groups until none shortens it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "planning/search/hunt.h"

struct matching { /* scratch for groups of up to `size` */
	uint32_t size, words;
	double *edge;             /* [size * size] */
	uint64_t *near, *left;    /* [size * words] up to the threshold; [words] partners that were not reached */
	uint32_t *queue, *parent; /* [size] */
	uint32_t *row_of,
		*column_of; /* [size] the matching: of each column its row, and the other way; SKEP_NO_WORKER: none yet */
};

void skep_matching_init(struct matching *m, struct skep_search_carve *c, uint32_t size);
/* m->edge is filled for `size` rows and columns. */
double skep_matching_solve(struct matching *m, uint32_t size);

struct path {
	uint32_t stages;
	double *reach;           /* [2^stages * stages], with few stages */
	uint8_t *from;           /* the same */
	uint32_t *order, *trial; /* [stages] */
};

void skep_path_init(struct path *p, struct skep_search_carve *c, uint32_t stages);
/* edge [stages * stages], symmetric. Length of the path; its order is in p->order. */
double skep_path_solve(struct path *p, const double *edge);
