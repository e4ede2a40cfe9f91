/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - the quadratic corpus: x uniform on [-5, 5) per component, y = x^2 per component, or of the first component
 * alone where the model has one output; and sequences of a corpus of tokens, whose training part tokens.h numbers. Sample
 * numbers are those of skep_round_capacity() in core/skep.h.
 */
#include "models/corpus/data.h"

#include <assert.h>

#include "models/corpus/images.h"
#include "models/corpus/masking.h"
#include "models/corpus/tokens.h"
#include "models/layers/random.h"

bool skep_corpus_fits(enum skep_corpus corpus, const struct skep_model *model, const char **reterr_expected)
{
	uint32_t outputs = model->width[model->layers];
	if (corpus == SKEP_CORPUS_TOKENS) {
		*reterr_expected = "a transformer with an architecture";
		return model->architecture != SKEP_ARCHITECTURE_NONE;
	}
	if (corpus == SKEP_CORPUS_IMAGES) {
		*reterr_expected = "a model of `kind: resnet`";
		return model->kind == SKEP_MODEL_RESNET;
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
	return training->plan->validation.every > 0 && skep_plan_validates(training->plan, microbatch);
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
	uint64_t all = (uint64_t)training->plan->validation.microbatches * training->samples;
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

struct drawing { /* samples of tokens, the first of which has the number `first` */
	enum skep_tokens_split split;
	uint64_t seed, first;
};

static struct drawing drawing_of(const struct skep_training *training, uint32_t round, uint32_t microbatch)
{
	if (skep_training_holds_out(training, microbatch))
		return (struct drawing){SKEP_TOKENS_HELD_OUT, 0, first_held_out(training, microbatch)};
	return (struct drawing){SKEP_TOKENS_TRAINING, training->plan->seed, first_sample(training, round, microbatch)};
}

bool skep_corpus_tokens(const struct skep_training *training, uint32_t round, uint32_t microbatch, int32_t *ret_ids,
	struct skep_diag *reterr)
{
	const size_t length = training->model->width[0];
	const struct drawing d = drawing_of(training, round, microbatch);
	for (uint32_t j = 0; j < training->samples; j++)
		if (!skep_tokens_sample(training->tokens, d.split, d.seed, d.first + j, ret_ids + j * length, reterr))
			return false;
	return true;
}

void skep_corpus_images(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, skep_real *ret_x, int32_t *ret_class)
{
	const struct skep_model *m = training->model;
	const struct drawing d = drawing_of(training, round, microbatch);
	assert(m->kind == SKEP_MODEL_RESNET);
	for (uint32_t j = 0; j < training->samples; j++) {
		const uint64_t index = d.first + j;
		skep_real *x = ret_x ? ret_x + (size_t)j * m->width[0] : NULL;
		int32_t class = training->tokens
		                        ? skep_image_read(skep_tokens_record(training->tokens, d.split, d.seed, index),
						  m->resnet.image, x)
		                        : skep_image_make(skep_image_key(d.seed, d.split, index), m->resnet.image,
						  m->resnet.classes, x);
		if (ret_class)
			ret_class[j] = class;
	}
}

static struct skep_masking masking_of(const struct skep_model *model)
{
	return (struct skep_masking){model->sequence, model->predicted, model->vocabulary, model->mask_token};
}

static uint64_t masking_key(const struct drawing *d, uint32_t sample)
{
	return skep_masking_key(d->seed, d->split, d->first + sample);
}

bool skep_corpus_masked(const struct skep_training *training, uint32_t round, uint32_t microbatch, int32_t *ret_ids,
	uint32_t *ret_places, int32_t *ret_targets, struct skep_diag *reterr)
{
	const size_t length = training->model->width[0];
	const struct skep_masking masking = masking_of(training->model);
	const struct drawing d = drawing_of(training, round, microbatch);
	if (!skep_corpus_tokens(training, round, microbatch, ret_ids, reterr))
		return false;
	for (uint32_t j = 0; j < training->samples; j++) {
		uint32_t *place = ret_places + (size_t)j * masking.predicted;
		skep_masking_places(&masking, masking_key(&d, j), place);
		for (uint32_t i = 0; i < masking.predicted; i++)
			ret_targets[(size_t)j * masking.predicted + i] = ret_ids[j * length + place[i]];
	}
	return true;
}

/* Into samples as they are: what a masked language model reads. */
static void hide(const struct skep_training *training, uint32_t round, uint32_t microbatch, int32_t *ids)
{
	const size_t length = training->model->width[0];
	const struct skep_masking masking = masking_of(training->model);
	const struct drawing d = drawing_of(training, round, microbatch);
	for (uint32_t j = 0; j < training->samples; j++)
		skep_masking_hide(&masking, masking_key(&d, j), ids + j * length);
}

bool skep_corpus_inputs(
	const struct skep_training *training, uint32_t round, uint32_t microbatch, void *ret, struct skep_diag *reterr)
{
	if (training->corpus == SKEP_CORPUS_IMAGES) {
		skep_corpus_images(training, round, microbatch, ret, NULL);
		return true;
	}
	if (training->corpus != SKEP_CORPUS_TOKENS) {
		skep_corpus_microbatch(training, round, microbatch, ret, NULL);
		return true;
	}
	if (!skep_corpus_tokens(training, round, microbatch, ret, reterr))
		return false;
	if (training->model->predicted > 0)
		hide(training, round, microbatch, ret);
	return true;
}
