/* SPDX-License-Identifier: Apache-2.0
 *
 * product.h - products of matrices of bf16 numbers, with what is done to the result before it is written. Matrices are row by
 * row, as everywhere in skep.
 */
#pragma once

#include "base/diag.h"
#include "models/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum skep_cuda_bend {
	SKEP_CUDA_STRAIGHT,
	SKEP_CUDA_GELU,     /* c = gelu(product + bias); aux = product + bias */
	SKEP_CUDA_GELU_BACK /* c = product, times the slope of gelu at aux */
};

/* c[rows][columns] = bend(op(a) op(b) + bias) + add, with op(a) [rows][inner] and op(b) [inner][columns]. */
struct skep_cuda_product {
	size_t rows, columns, inner;
	bool transpose_a, transpose_b;
	const skep_bf16 *a, *b;
	size_t a_row, b_row, c_row; /* numbers from one row to the next as they lie; 0: as many as a row has */
	bool wide;                  /* c is fp32, and so is bias; else both are bf16 */
	void *c;
	const void *bias; /* [columns]; NULL: none */
	const float *add; /* [rows][columns], may be c; NULL: nothing. Of a wide c */
	enum skep_cuda_bend bend;
	skep_bf16 *aux; /* [rows][columns] */
};

void skep_cuda_multiply(struct skep_cuda_queue *queue, const struct skep_cuda_product *product);

/* lt.cu: false, and nothing is asked for, where the library has no such product. */
struct skep_lt;
struct skep_lt *skep_lt_create(struct skep_diag *reterr);
void skep_lt_destroy(struct skep_lt *lt);
bool skep_lt_multiply(struct skep_cuda_queue *queue, const struct skep_cuda_product *product);

#ifdef __cplusplus
}
#endif
