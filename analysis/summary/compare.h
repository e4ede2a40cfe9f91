/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h - prediction against reality, metric by metric, from the database.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "analysis/store/store.h"
#include "base/diag.h"

/* Compares two runs; 0, 0 takes a finished simulated and a finished real run of the same scenario name: the newest two with
 * the same text, or the newest if there are none. A warning names the settings in which the two differ.
 * Prints a table (metric, unit, first, second, difference in percent): throughput, utilisation, time per round (median,
 * p90), bytes and messages per class and per link class (inside a place, between places), issued, counted, lost, final loss. */
bool skep_compare(
	struct skep_store *store, int64_t first, int64_t second, bool json, FILE *out, struct skep_diag *reterr);

/* The object that `json` prints, which the caller deletes; NULL: it could not be made. */
cJSON *skep_compare_json(struct skep_store *store, int64_t first, int64_t second, struct skep_diag *reterr);

/* The two runs that 0, 0 stands for: a simulated and a real one. */
bool skep_compare_choose(struct skep_store *store, int64_t *ret_first, int64_t *ret_second, struct skep_diag *reterr);
