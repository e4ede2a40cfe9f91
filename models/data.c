/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - the quadratic corpus: x uniform on [-5, 5) per component, y = x^2 per component, or of the first component
 * alone where the model has one output. Sample numbers are those of skep_round_capacity() in core/skep.h.
 */
#include "models/data.h"

#include <assert.h>

#include "models/random.h"

bool skep_corpus_fits(enum skep_corpus corpus, const struct skep_model *model, const char **reterr_expected)
{
	assert(corpus == SKEP_CORPUS_QUADRATIC);
	uint32_t outputs = model->width[model->layers];
	*reterr_expected = "a model with as many outputs as inputs, or with one output";
	return outputs == model->width[0] || outputs == 1;
}

void skep_corpus_sample(enum skep_corpus corpus, uint64_t seed, uint64_t index, uint32_t inputs, float *ret_x,
	uint32_t outputs, float *ret_y)
{
	assert(corpus == SKEP_CORPUS_QUADRATIC && (outputs == inputs || outputs == 1));
	uint64_t key = skep_random_key(seed, SKEP_STREAM_DATA);
	for (uint32_t c = 0; c < inputs; c++) {
		float x = 5.0f * skep_random_signed(key, index * inputs + c);
		if (ret_x)
			ret_x[c] = x;
		if (ret_y && c < outputs)
			ret_y[c] = x * x;
	}
}

void skep_corpus_microbatch(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, float *ret_x, float *ret_y)
{
	const struct skep_model *model = training->model;
	uint32_t inputs = model->width[0], outputs = model->width[model->layers];
	uint64_t number = (uint64_t)round * skep_round_capacity(training->plan) + microbatch;
	for (uint32_t j = 0; j < training->samples; j++)
		skep_corpus_sample(training->corpus, training->plan->seed, number * training->samples + j, inputs,
			ret_x ? ret_x + (size_t)j * inputs : NULL, outputs, ret_y ? ret_y + (size_t)j * outputs : NULL);
}
