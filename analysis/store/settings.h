/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h - what the texts of scenarios in a database say. Private to analysis/.
 */
#pragma once

#include "analysis/store/store.h"
#include "base/diag.h"
#include "base/yaml/settings.h"

/* As skep_settings_compare(), of two runs of the database, which must be there. */
bool skep_settings_compare_runs(struct skep_store *store, int64_t first, int64_t second, skep_settings_counts *counts,
	struct skep_differences *ret, struct skep_diag *reterr);

/* Does the key tell runs apart? What `skep plan` was to search for (plan.*) changes nothing in a run. */
bool skep_settings_of_runs(const char *key);

/* By the text of a scenario: inner steps between two outer ones, which with `streaming` are those of a round, of one fragment
 * (1: every step is synchronous, 0: each worker or stage has its own), and rounds until the learning rate is what it is to be. */
double skep_settings_every(const char *text, uint32_t *ret_warmup);

/* By the text of a scenario: inner steps of so many rounds, one but with `streaming`, where r rounds are
 * floor(r * steps / rounds); those of the shortest period where stages differ, and the mean where each worker has its own. */
double skep_settings_steps(const char *text, double *ret_rounds);

/* Microbatches of so many rounds, which have so many each: where rounds differ the mean, rounded (runs.microbatches). Those of a
 * step, which is no longer than a round, are a whole number. */
int64_t skep_settings_microbatches(const char *text, double rounds, double each);

/* How many times as long passes take in virtual time, and in a paced run (cluster.compute_scale). */
double skep_settings_compute_scale(const char *text);
