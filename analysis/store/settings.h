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

/* By the text of a scenario: inner steps between two outer ones (1: every step is synchronous, 0: each worker or stage has its
 * own), and rounds until the learning rate is what it is to be. */
double skep_settings_every(const char *text, uint32_t *ret_warmup);

/* By the text of a scenario: inner steps of a round, those of the shortest period where stages differ; 1: each worker has its
 * own. */
double skep_settings_round_steps(const char *text);

/* How many times as long passes take in virtual time, and in a paced run (cluster.compute_scale). */
double skep_settings_compute_scale(const char *text);
