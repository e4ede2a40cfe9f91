/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - the quadratic corpus: x uniform on [-5, 5) per component, y = x^2 per component, or of the first component
 * alone where the model has one output; and sequences of a corpus of tokens, whose training part tokens.h numbers. Sample
 * numbers are those of skep_round_capacity() in core/skep.h.
 */
#include "models/corpus/data.h"

#include <assert.h>

#include "models/corpus/tokens.h"
#include "models/layers/random.h"

bool skep_corpus_fits(enum skep_corpus corpus, const struct skep_model *model, const char **reterr_expected)
{
	uint32_t outputs = model->width[model->layers];
	if (corpus == SKEP_CORPUS_TOKENS) {
		*reterr_expected = "a transformer with an architecture";
		return model->architecture != SKEP_ARCHITECTURE_NONE;
	}
	*reterr_expected = "a model with as many outputs as inputs, or with one output";
	return model->kind == SKEP_MODEL_MLP && (outputs == model->width[0] || outputs == 1);
}

void skep_corpus_sample(enum skep_corpus corpus, uint64_t seed, uint64_t index, uint32_t inputs, skep_real *ret_x,
	uint32_t outputs, skep_real *ret_y)
{
	assert(corpus == SKEP_CORPUS_QUADRATIC && (outputs == inputs || outputs == 1));
	uint64_t key = skep_random_key(seed, SKEP_STREAM_DATA);
	for (uint32_t c = 0; c < inputs; c++) {
		skep_real x = 5.0f * skep_random_signed(key, index * inputs + c);
		if (ret_x)
			ret_x[c] = x;
		if (ret_y && c < outputs)
			ret_y[c] = x * x;
	}
}

void skep_corpus_held_out(enum skep_corpus corpus, uint64_t index, uint64_t all, uint32_t inputs, skep_real *ret_x,
	uint32_t outputs, skep_real *ret_y)
{
	assert(corpus == SKEP_CORPUS_QUADRATIC && index < all && (outputs == inputs || outputs == 1));
	for (uint32_t c = 0; c < inputs; c++) {
		uint64_t part = c == 0 ? index : skep_permute(skep_random_key(c, SKEP_STREAM_DATA), all, index);
		skep_real x = (skep_real)(10 * ((double)part + 0.5) / (double)all - 5);
		if (ret_x)
			ret_x[c] = x;
		if (ret_y && c < outputs)
			ret_y[c] = x * x;
	}
}

bool skep_training_holds_out(const struct skep_training *training, uint32_t microbatch)
{
	return training->plan->validate_every > 0 && skep_plan_validates(training->plan, microbatch);
}

static uint64_t first_held_out(const struct skep_training *training, uint32_t microbatch)
{
	return (uint64_t)skep_plan_validation(training->plan, microbatch) * training->samples;
}

static uint64_t first_sample(const struct skep_training *training, uint32_t round, uint32_t microbatch)
{
	uint64_t number = (uint64_t)round * skep_round_capacity(training->plan) + microbatch;
	return number * training->samples;
}

/* The nth sample that is trained on, of a finite set of them. */
static uint64_t point(const struct skep_training *training, uint64_t n)
{
	uint64_t all = training->points, key = skep_random_key(training->plan->seed, SKEP_STREAM_DATA);
	return skep_permute(skep_mix(key ^ skep_mix(n / all)), all, n % all);
}

/* Of the first sample of a microbatch, n as point() has it: rounds follow each other without the numbers that are kept for what
 * makes up for losses. */
static uint64_t first_point(const struct skep_training *training, uint32_t round, uint32_t microbatch)
{
	uint64_t microbatches = training->plan->microbatches;
	return (round * microbatches + microbatch % microbatches) * training->samples;
}

void skep_corpus_microbatch(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, skep_real *ret_x, skep_real *ret_y)
{
	const struct skep_model *model = training->model;
	uint32_t inputs = model->width[0], outputs = model->width[model->layers];
	bool held_out = skep_training_holds_out(training, microbatch);
	uint64_t all = (uint64_t)training->plan->validate_microbatches * training->samples;
	uint64_t first = held_out               ? first_held_out(training, microbatch)
	                 : training->points > 0 ? first_point(training, round, microbatch)
	                                        : first_sample(training, round, microbatch);
	for (uint32_t j = 0; j < training->samples; j++) {
		skep_real *x = ret_x ? ret_x + (size_t)j * inputs : NULL,
			  *y = ret_y ? ret_y + (size_t)j * outputs : NULL;
		if (held_out)
			skep_corpus_held_out(training->corpus, first + j, all, inputs, x, outputs, y);
		else
			skep_corpus_sample(training->corpus, training->plan->seed,
				training->points > 0 ? point(training, first + j) : first + j, inputs, x, outputs, y);
	}
}

bool skep_corpus_tokens(const struct skep_training *training, uint32_t round, uint32_t microbatch, int32_t *ret_ids,
	struct skep_diag *reterr)
{
	size_t length = training->model->width[0];
	bool held_out = skep_training_holds_out(training, microbatch);
	uint64_t first = held_out ? first_held_out(training, microbatch) : first_sample(training, round, microbatch);
	enum skep_tokens_split split = held_out ? SKEP_TOKENS_HELD_OUT : SKEP_TOKENS_TRAINING;
	uint64_t seed = held_out ? 0 : training->plan->seed;
	for (uint32_t j = 0; j < training->samples; j++)
		if (!skep_tokens_sample(training->tokens, split, seed, first + j, ret_ids + j * length, reterr))
			return false;
	return true;
}

bool skep_corpus_inputs(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, void *ret, struct skep_diag *reterr)
{
	if (training->corpus == SKEP_CORPUS_TOKENS)
		return skep_corpus_tokens(training, round, microbatch, ret, reterr);
	skep_corpus_microbatch(training, round, microbatch, ret, NULL);
	return true;
}
