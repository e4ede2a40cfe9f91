/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h - draws the samples of training. Sample i of a corpus is a pure function of (seed, i): workers draw disjoint
 * sets of samples by drawing disjoint numbers, and the last stage draws the targets that belong to the first stage's
 * inputs. Microbatches of a validation (skep_plan_validates()) have samples that nothing is trained on, the same in
 * every validation and for every seed.
 *
 * With training->points the quadratic corpus is a set of so many samples, those with the numbers below it. The nth that is
 * trained on belongs to epoch n / points, and an epoch is a permutation of the set, so that each is trained on once in it;
 * what makes up for a microbatch that was lost takes samples of its round once more.
 *
 * Images (images.h) are made, each from a key of its own, or read from files, whose records are drawn as windows of tokens are.
 *
 * Of a masked language model the first stage draws samples with tokens hidden, and the last one which these are (masking.h).
 */
#pragma once

#include "models/device/device.h"
#include "models/layers/real.h"

/* Can the corpus feed this model? If not, *reterr_expected says what it needs. */
bool skep_corpus_fits(enum skep_corpus corpus, const struct skep_model *model, const char **reterr_expected);

/* Sample `index`: x[inputs] and y[outputs]. Either may be NULL. */
void skep_corpus_sample(enum skep_corpus corpus, uint64_t seed, uint64_t index, uint32_t inputs, skep_real *ret_x,
	uint32_t outputs, skep_real *ret_y);

/* Sample `index` of `all` that nothing is trained on: the middle of the index-th of `all` equal parts of [-5, 5], in further
 * components of another one of them, each once; so the mean over all of them is the loss, but for the width of a part. */
void skep_corpus_held_out(enum skep_corpus corpus, uint64_t index, uint64_t all, uint32_t inputs, skep_real *ret_x,
	uint32_t outputs, skep_real *ret_y);

/* Is it one of a validation? */
bool skep_training_holds_out(const struct skep_training *training, uint32_t microbatch);

/* All samples of (round, microbatch): x[samples * inputs] and y[samples * outputs]. Either may be NULL. */
void skep_corpus_microbatch(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, skep_real *ret_x, skep_real *ret_y);

/* The same of a corpus of tokens: ids[samples][sequence + 1]. False, with a diagnosis, for an id beyond the vocabulary. */
bool skep_corpus_tokens(const struct skep_training *training, uint32_t round, uint32_t microbatch, int32_t *ret_ids,
	struct skep_diag *reterr);

/* What a masked language model is to predict: of each such token its place in its sequence and its id, [samples][predicted].
 * Into ret_ids go the samples as they are. */
bool skep_corpus_masked(const struct skep_training *training, uint32_t round, uint32_t microbatch, int32_t *ret_ids,
	uint32_t *ret_places, int32_t *ret_targets, struct skep_diag *reterr);

/* The same of a corpus of images: x[samples][width[0]] and the class of each. Either may be NULL. */
void skep_corpus_images(const struct skep_training *training, uint32_t round, uint32_t microbatch, skep_real *ret_x,
	int32_t *ret_class);

/* Draws the inputs of the first stage, for any kind of corpus: samples * width[0] numbers or ids. */
bool skep_corpus_inputs(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, void *ret, struct skep_diag *reterr);
