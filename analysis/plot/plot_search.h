/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_search.h - how searches came down: the best cost so far against evaluations, a panel for each network (or scenario), a
 * line for each method.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reader.h"

#define SKEP_SEARCH_PANELS_MAX 12u
#define SKEP_SEARCH_LINES_MAX 16u /* of a panel */

struct skep_search_dot { /* an improvement, or the end of the search */
	double evaluations, cost_s;
};

struct skep_search_line {
	char method[32];
	struct skep_search_dot *dot; /* by rising evaluations */
	uint32_t dots;
};

struct skep_search_panel {
	char network[64];
	struct skep_search_line line[SKEP_SEARCH_LINES_MAX];
	uint32_t lines;
};

struct skep_search_figure {
	char title[128];
	struct skep_search_panel panel[SKEP_SEARCH_PANELS_MAX];
	uint32_t panels;
};

/* From a table with the columns network, method, evaluations, steps and cost_s, as `test_allocate_64 --table` writes it. On
 * failure *ret is empty, and finishing it does nothing. */
bool skep_search_figure_read(const char *path, struct skep_search_figure *ret, struct skep_diag *reterr);
void skep_search_figure_finish(struct skep_search_figure *figure);

/* One more dot of that line, which is made if it is not there. False: no memory, or too many lines or panels. */
bool skep_search_figure_add(
	struct skep_search_figure *figure, const char *network, const char *method, struct skep_search_dot dot);

/* The format follows the ending of `target`: .png .svg .pdf. */
bool skep_plot_search(const struct skep_search_figure *figure, const char *target, struct skep_diag *reterr);
