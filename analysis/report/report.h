/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - one page to show: an HTML file that holds all of itself.
 *
 * It needs no network and no other file, adapts to a dark or a light screen, to a phone and to paper, and its script runs nothing
 * that comes from a name: names are text (page.h), and the page forbids the browser to load anything.
 */
#pragma once

#include "analysis/store/store.h"
#include "base/diag.h"

#define SKEP_REPORT_RUNS_MAX 8u
#define SKEP_REPORT_HEAD "<!doctype html>\n<!-- written by skep report -->\n" /* by which skep knows its own file */

/* Of these runs; none: the pair that `skep compare` takes, or if there is none the newest run that closed a round. Pictures that
 * cannot be drawn (a run without losses, no gnuplot) leave their reason in the page. */
bool skep_report_runs(
	struct skep_store *store, const int64_t *run, uint32_t runs, const char *target, struct skep_diag *reterr);

/* Of a sweep: that of one run, or without runs the newest. Of two runs and more: these side by side, of a sweep or not. */
bool skep_report_sweep(
	struct skep_store *store, const int64_t *run, uint32_t runs, const char *target, struct skep_diag *reterr);
