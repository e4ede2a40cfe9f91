/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.h - what the pictures of a scenario show: bytes of a step by class of link, cut by cut, and how each search
 * came down.
 */
#pragma once

#include "analysis/plot/plot_complexity.h"
#include "analysis/plot/plot_search.h"
#include "base/diag.h"
#include "scenarios/read/scenario.h"

/* Of the scenario at `path`, read with `options` as `own`, and of the same scenario with other numbers of stages. *ret is all
 * zero before. */
bool skep_figure_complexity(const char *path, const struct skep_scenario_options *options,
	const struct skep_scenario *own, struct skep_complexity_figure *ret, struct skep_diag *reterr);
/* Of each method of search, with what `skep plan` lets it evaluate. *ret is all zero before, and
 * to be finished in either case. */
bool skep_figure_search(const struct skep_scenario *scenario, struct skep_search_figure *ret, struct skep_diag *reterr);
