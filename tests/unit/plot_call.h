/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_call.h - skep_plot_chosen() for tests that choose rounds or a metric at most.
 */
#pragma once

#include "analysis/plot/plot.h"
#include "base/diag.h"

static inline bool plot_metric(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs,
	const char *target, const struct skep_plot_rounds *rounds, const char *metric, struct skep_diag *reterr)
{
	const struct skep_plot_choice choice = {.rounds = rounds, .metric = metric};
	return skep_plot_chosen(store, kind, run, runs, target, &choice, reterr);
}

static inline bool plot_rounds(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs,
	const char *target, const struct skep_plot_rounds *rounds, struct skep_diag *reterr)
{
	return plot_metric(store, kind, run, runs, target, rounds, NULL, reterr);
}
