/* SPDX-License-Identifier: Apache-2.0
 *
 * export.h - what the database holds in forms that other programs read: a run as trace events, which Perfetto and Chrome show,
 * and runs as tables of comma-separated values.
 */
#pragma once

#include <stdio.h>

#include "analysis/store/store.h"
#include "base/diag.h"

#define SKEP_TRACE_EVENTS_HEAD                                                                                         \
	"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"generator\":\"skep\"," /* how such a file begins */

/* The object of the Trace Event Format (JSON Object Format, with complete, instant, counter, asynchronous and metadata events;
 * times in microseconds) of a run; 0: the newest that closed a round. A process for each worker with threads for its lanes and
 * its life, and one for the run with its rounds, losses, traffic and number of workers. */
bool skep_export_timeline(struct skep_store *store, int64_t run, FILE *out, struct skep_diag *reterr);

/* A header and a row for each run, or for each closed round of runs; without runs all that there are. Cells as RFC 4180 has them;
 * nothing where the database holds NULL. */
enum skep_export_table { SKEP_EXPORT_RUNS, SKEP_EXPORT_ROUNDS };
bool skep_export_csv(struct skep_store *store, enum skep_export_table table, const int64_t *run, uint32_t runs,
	FILE *out, struct skep_diag *reterr);

/* The scenario of a run, as it had read it; 0: of the newest. */
bool skep_export_scenario(struct skep_store *store, int64_t run, FILE *out, struct skep_diag *reterr);
