/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h - in which settings two scenarios differ, by their texts. Private to analysis/.
 */
#ifndef SKEP_ANALYSIS_SETTINGS_H
#define SKEP_ANALYSIS_SETTINGS_H

#include "analysis/store/store.h"
#include "base/diag.h"

#define SKEP_DIFFERENCES_SHOWN 5u

struct skep_difference { /* what is too long is cut; "": not set there */
	char key[96];    /* as --set writes it: schedule.microbatch */
	char first[64], second[64];
};

struct skep_differences {
	bool same;    /* comments and layout apart */
	size_t count; /* all of them; 0 though not the same: a text could not be read */
	struct skep_difference item[SKEP_DIFFERENCES_SHOWN]; /* the first ones */
};

void skep_settings_compare(const char *first, const char *second, struct skep_differences *ret);

/* The same for two runs of the database, which must be there. */
bool skep_settings_compare_runs(struct skep_store *store, int64_t first, int64_t second, struct skep_differences *ret,
	struct skep_diag *reterr);

/* By the text of a scenario: inner steps between two outer ones (1: every step is synchronous, 0: each worker has its own), and
 * rounds until the learning rate is what it is to be. */
double skep_settings_every(const char *text, uint32_t *ret_warmup);

#endif
