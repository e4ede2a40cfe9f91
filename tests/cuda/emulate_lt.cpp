/* SPDX-License-Identifier: Apache-2.0
 *
 * emulate_lt.cpp - stands in for models/cuda/lt.cu: products in loops, with everything that can be fused, or without if a test
 * wants to see what is done then.
 */
#include <algorithm>
#include <vector>

#include "models/cuda/portable.cuh"

static bool refuses_all;

void emulate_refuses(bool refuses)
{
	refuses_all = refuses;
}

struct skep_lt {
	int nothing;
};

struct skep_lt *skep_lt_create(struct skep_diag *)
{
	return new skep_lt{0};
}

void skep_lt_destroy(struct skep_lt *lt)
{
	delete lt;
}

static float gelu(float x)
{
	return 0.5f * x * (1 + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}

static float gelu_slope(float x)
{
	const float a = 0.79788456080286536f, b = 0.044715f, t = tanhf(a * (x + b * x * x * x));
	return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * a * (1 + 3 * b * x * x);
}

static void finish(const skep_cuda_product &p, size_t i, size_t j, float sum)
{
	const size_t row = p.c_row ? p.c_row : p.columns, at = i * row + j;
	if (p.bias)
		sum += p.wide ? ((const float *)p.bias)[j] : wide(((const bf16 *)p.bias)[j]);
	if (p.bend == SKEP_CUDA_GELU) {
		halves(p.aux)[at] = narrow(sum);
		sum = gelu(sum);
	}
	if (p.bend == SKEP_CUDA_GELU_BACK)
		sum *= gelu_slope(wide(halves(p.aux)[at]));
	if (p.wide)
		((float *)p.c)[at] = sum + (p.add ? p.add[at] : 0);
	else
		((bf16 *)p.c)[at] = narrow(sum);
}

/* op(x)[rows][columns] in floats. */
static std::vector<float> widened(const skep_bf16 *x, size_t rows, size_t columns, size_t row, bool transposed)
{
	std::vector<float> ret(rows * columns);
	row = row ? row : transposed ? rows : columns;
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			ret[i * columns + j] = wide(halves(x)[transposed ? j * row + i : i * row + j]);
	return ret;
}

static void multiply(const skep_cuda_product &p)
{
	const std::vector<float> a = widened(p.a, p.rows, p.inner, p.a_row, p.transpose_a);
	const std::vector<float> b = widened(p.b, p.inner, p.columns, p.b_row, p.transpose_b);
	std::vector<float> sum(p.columns);
	for (size_t i = 0; i < p.rows; i++) {
		std::fill(sum.begin(), sum.end(), 0.0f);
		for (size_t k = 0; k < p.inner; k++)
			for (size_t j = 0; j < p.columns; j++)
				sum[j] += a[i * p.inner + k] * b[k * p.columns + j];
		for (size_t j = 0; j < p.columns; j++)
			finish(p, i, j, sum[j]);
	}
}

bool skep_lt_multiply(struct skep_cuda_queue *queue, const struct skep_cuda_product *product)
{
	const skep_cuda_product p = *product;
	if (refuses_all && (p.bend != SKEP_CUDA_STRAIGHT || p.bias))
		return false;
	emulate_enqueue(queue->stream, [=] { multiply(p); });
	return true;
}
