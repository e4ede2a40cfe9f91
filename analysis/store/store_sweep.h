/* SPDX-License-Identifier: Apache-2.0
 *
 * store_sweep.h - the sweeps of a database: which combinations were asked for, and which of their runs are there.
 *
 * One process writes. A run of a sweep is recorded in a database in memory, wherever it was simulated, and comes here as
 * the image of that: a crash on the way leaves nothing behind, and readers see whole runs only.
 */
#pragma once

#include "analysis/store/store.h"
#include "base/diag.h"
#include "scenarios/read/scenario.h"
#include "scenarios/vary/vary.h"

struct skep_sweep_words { /* what a sweep is asked to do */
	const char *scenario, *path;
	const struct skep_vary *vary;
	const uint64_t *seed, *identity; /* [combinations] */
};

/* Finds the sweep that was asked for in these words, or writes it down. ret_run[combinations]: the run that is there, 0 where
 * none is. Runs that another sweep has made count. */
bool skep_sweep_begin(struct skep_store *store, const struct skep_sweep_words *words, int64_t *ret_sweep,
	int64_t *ret_run, struct skep_diag *reterr);

/* The run that a store in memory holds, as bytes; *ret_image is to be given to skep_sweep_image_free(). */
bool skep_sweep_image(struct skep_store *memory, void **ret_image, size_t *ret_bytes, struct skep_diag *reterr);
void skep_sweep_image_free(void *image);

/* Of two runs that are the same: the scenario's text with its overrides and its seed, the bytes of the files that it names,
 * and the version of the code. */
uint64_t skep_sweep_identity(const struct skep_scenario *scenario);

/* Copies the run of an image: in one transaction, or not at all. *ret_run is its number here; where a run of this identity is
 * there already, by another process, it is that one, and nothing is copied. */
enum skep_sweep_put { SKEP_SWEEP_PUT_DONE, SKEP_SWEEP_PUT_LOCKED, SKEP_SWEEP_PUT_FAILED };
enum skep_sweep_put skep_sweep_put(struct skep_store *store, uint64_t identity, const void *image, size_t bytes,
	int64_t *ret_run, struct skep_diag *reterr);
