/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h - where samples come from. Sample i of a corpus is a pure function of (seed, i): workers draw disjoint shards by
 * drawing disjoint numbers, and the last stage draws the targets that belong to the first stage's inputs.
 */
#ifndef SKEP_MODELS_DATA_H
#define SKEP_MODELS_DATA_H

#include "models/device.h"

/* Can the corpus feed this model? If not, *reterr_expected says what it needs. */
bool skep_corpus_fits(enum skep_corpus corpus, const struct skep_model *model, const char **reterr_expected);

/* Sample `index`: x[inputs] and y[outputs]. Either may be NULL. */
void skep_corpus_sample(enum skep_corpus corpus, uint64_t seed, uint64_t index, uint32_t inputs, float *ret_x,
	uint32_t outputs, float *ret_y);

/* All samples of (round, microbatch): x[samples * inputs] and y[samples * outputs]. Either may be NULL. */
void skep_corpus_microbatch(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, float *ret_x, float *ret_y);

#endif
