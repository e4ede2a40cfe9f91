/* SPDX-License-Identifier: Apache-2.0
 *
 * product.cu - products by the library with all that can be fused, and where it has no such one, by the library without, and
 * kernels of our own behind it.
 */
#include "models/cuda/portable.cuh"

static void bend_apart(struct skep_cuda_queue *queue, const struct skep_cuda_product *p)
{
	skep_bf16 *c = (skep_bf16 *)p->c;
	const size_t numbers = p->rows * p->columns;
	if (p->bend == SKEP_CUDA_GELU_BACK) {
		skep_cuda_gelu_backward(queue, numbers, p->aux, c, c);
		return;
	}
	if (p->bias && p->wide)
		skep_cuda_add_wide_bias(queue, p->rows, p->columns, (const float *)p->bias, (float *)p->c);
	else if (p->bias)
		skep_cuda_add_bias(queue, p->rows, p->columns, (const skep_bf16 *)p->bias, c);
	if (p->bend == SKEP_CUDA_GELU) {
		skep_cuda_copy(queue, p->aux, c, numbers * sizeof *c);
		skep_cuda_gelu_forward(queue, numbers, p->aux, c);
	}
}

void skep_cuda_multiply(struct skep_cuda_queue *queue, const struct skep_cuda_product *product)
{
	struct skep_cuda_product plain = *product;
	if (skep_lt_multiply(queue, product))
		return;
	plain.bias = NULL;
	plain.bend = SKEP_CUDA_STRAIGHT;
	if (skep_lt_multiply(queue, &plain))
		bend_apart(queue, product);
	else
		note_error(queue, cudaErrorInvalidValue, "a product that cuBLAS does not have");
}
