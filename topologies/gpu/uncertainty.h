/* SPDX-License-Identifier: Apache-2.0
 *
 * uncertainty.h - how far the times of a predictor are off where nothing was measured, and a draw of it.
 *
 * What is not known of a kind of GPU is one number for each origin of its times (enum skep_time_origin): the deviation of
 * ln(real / predicted). A draw is one factor for each origin, lognormal with median 1. It belongs to the kind of GPU and to a
 * seed, so that all cards of the kind and all their passes are off together: a fault of a law does not average out over a run.
 *
 *   measured               0: a row of a table is taken at its word
 *   interpolated, fitted   found by what a predictor has not seen: it is made anew of every second row of its table and asked
 *                          for the others, then the other way round; the 90 % quantile of |ln(predicted / measured)| over
 *                          1.645, that of the normal law. With fewer than SKEP_UNSEEN_LEAST such rows: of a law the error on
 *                          its own points, of interpolation the deviation of the law
 *   assumed, memory        `uncertainty` of the profile
 */
#pragma once

#include "topologies/gpu/gpu_predictor.h"

enum { SKEP_UNSEEN_LEAST = 8 };
#define SKEP_NORMAL_P90 1.6448536269514722 /* |z| is below that with 90 % */

struct skep_unseen {
	double log_error; /* ln(predicted / measured) */
	enum skep_time_origin origin;
};

/* What the predictor says of one half of the rows of `table` (its products or layers) when it has seen nothing but the other
 * half, both ways round: forward and backward passes of layers, embeddings left out. `ret` has room for two entries a row.
 * Returns how many there are; 0: half of the table is too little for anything. */
uint32_t skep_unseen_errors(const struct skep_predictor *predictor, const struct skep_gpu_table *table,
	struct skep_unseen *ret, struct skep_diag *reterr);

/* Of each origin, for passes of a model of that name. Without a predictor (NULL: the roofline) all is assumed. Error: no
 * memory. */
bool skep_uncertainty_find(const struct skep_gpu *gpu, const struct skep_predictor *predictor, const char *model,
	double ret_deviation[SKEP_TIME_ORIGINS], struct skep_diag *reterr);

/* A draw: exp(deviation z), z from the normal law by (seed, the GPU's name, the origin), in four digits. */
void skep_uncertainty_draw(const struct skep_gpu *gpu, const double deviation[SKEP_TIME_ORIGINS], uint64_t seed,
	double ret_factor[SKEP_TIME_ORIGINS]);
