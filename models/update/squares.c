/* SPDX-License-Identifier: Apache-2.0
 *
 * squares.c - see squares.h.
 */
#include "models/update/squares.h"

#include <math.h>
#include <string.h>

#include "models/layers/tensor_group.h"

enum { LANES = SKEP_REAL_LANES };

/* As wide as one register of AVX2: what is wider gcc keeps in memory there, at three times the instructions. */
typedef skep_real wide __attribute__((vector_size(32)));
enum { WIDE = sizeof(wide) / sizeof(skep_real) };

/* A finite number times 0 is 0, any other is none. */
SKEP_ANY_WIDTH static bool all_finite(size_t n, const skep_real *a)
{
	wide even = {0}, odd = {0}, x, y;
	skep_real rest = 0;
	size_t i = 0;
	for (; i + 2 * WIDE <= n; i += 2 * WIDE) {
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, a + i + WIDE, sizeof y);
		even += x * 0;
		odd += y * 0;
	}
	for (int j = 0; j < WIDE; j++)
		rest += even[j] + odd[j];
	for (; i < n; i++)
		rest += a[i] * 0;
	return rest == 0;
}

SKEP_ANY_WIDTH static double sum_of(size_t n, const skep_real *a)
{
	double lane[LANES] = {0};
	size_t i = 0;
	for (; i + LANES <= n; i += LANES)
		for (int j = 0; j < LANES; j++)
			lane[j] += (double)a[i + (size_t)j] * (double)a[i + (size_t)j];
	for (size_t j = 0; i + j < n; j++)
		lane[j] += (double)a[i + j] * (double)a[i + j];
	for (int width = LANES / 2; width > 0; width /= 2)
		for (int j = 0; j < width; j++)
			lane[j] += lane[j + width];
	return lane[0];
}

bool skep_squares_finite(size_t n, const skep_real *a)
{
	return all_finite(n, a);
}

double skep_squares_sum(size_t n, const skep_real *a)
{
	return sum_of(n, a);
}

double skep_squares_products(size_t n, const skep_real *a, const skep_real *b, bool above)
{
	const double sign = above ? 1 : -1;
	double lane[LANES] = {0}, sum = 0;
	for (size_t i = 0; i < n; i++) {
		double product = sign * (double)a[i] * (double)b[i];
		if (product > 0 || isnan(product))
			lane[i % LANES] += product;
	}
	for (int j = 0; j < LANES; j++)
		sum += lane[j];
	return sum;
}

double skep_squares_of_group(const struct skep_training *training, double own)
{
	const struct skep_tensor_group *group = training->tensor_group;
	return group ? group->sum(group->context, own) : own;
}

/* Of a layer of a shard, or of one with running averages, which have no gradient. */
static double layer_squares(
	const struct skep_stage *stage, const struct skep_layer *layer, struct skep_range range, const skep_real *a)
{
	struct skep_tensor tensor[SKEP_TENSORS_MAX];
	const uint32_t tensors = layer->type->tensors(layer, tensor), ranks = skep_model_ranks(layer->model);
	double sum = 0;
	for (uint32_t t = 0; t < tensors; t++) {
		const struct skep_range mine = skep_range_meet(
			range, layer->parameter + tensor[t].offset, (size_t)tensor[t].rows * tensor[t].columns);
		if (mine.count > 0 && !tensor[t].averaged)
			sum += stage->arrays->squares(stage->queue, mine.count, a + mine.first) /
			       (tensor[t].cut == SKEP_TENSOR_REPLICATED ? ranks : 1);
	}
	return sum;
}

double skep_squares_own(const struct skep_stage *stage, struct skep_range range, const skep_real *a)
{
	double sum = 0;
	const struct skep_model *model = stage->layers > 0 ? stage->layer[0].model : NULL;
	if (!model || (skep_model_ranks(model) == 1 && model->kind != SKEP_MODEL_RESNET))
		return stage->arrays->squares(stage->queue, range.count, a + range.first);
	for (uint32_t l = 0; l < stage->layers; l++)
		sum += layer_squares(stage, &stage->layer[l], range, a);
	return sum;
}

uint64_t skep_squares_encode(double squares)
{
	int exponent;
	if (!isfinite(squares))
		return SKEP_SQUARE_INFINITE;
	double part = frexp(squares, &exponent);
	return skep_square_make((uint64_t)ldexp(part, SKEP_SQUARE_BITS), exponent + SKEP_SQUARE_BIAS);
}

double skep_squares_decode(uint64_t square)
{
	if (square == SKEP_SQUARE_INFINITE)
		return INFINITY;
	int exponent = (int)(square >> SKEP_SQUARE_BITS) - SKEP_SQUARE_BIAS - (int)SKEP_SQUARE_BITS;
	return ldexp((double)skep_square_mantissa(square), exponent);
}

double skep_squares_scale(double most, uint64_t square)
{
	double scale = most / (sqrt(skep_squares_decode(square)) + 1e-6);
	return most > 0 && scale < 1 ? scale : 1;
}

uint16_t skep_squares_forward_layer(const struct skep_stage *part, uint32_t samples, const skep_real *stash)
{
	uint32_t l = 0;
	while (l + 1 < part->layers &&
		part->arrays->finite(part->queue, (size_t)samples * part->layer[l].out, stash + part->layer[l].value))
		l++;
	return (uint16_t)(part->layer[l].number + 1);
}

uint16_t skep_squares_backward_layer(const struct skep_stage *part, const skep_real *array)
{
	for (uint32_t l = part->layers; l-- > 0;) {
		const struct skep_layer *layer = &part->layer[l];
		const struct skep_range trained = skep_stage_trained_of(part, layer->parameter, layer->parameters);
		if (!part->arrays->finite(part->queue, trained.count, array + trained.first))
			return (uint16_t)(layer->number + 1);
	}
	return 0;
}
