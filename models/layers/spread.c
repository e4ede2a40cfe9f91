/* SPDX-License-Identifier: Apache-2.0
 *
 * spread.c - see spread.h. The fewer rows a block of a product has, the more of its time goes into packing the other operand,
 * which each call does again: with 250 rows it is 3 to 5 in a hundred, with 130 twice that. So a product has four blocks, fewer
 * if these would be less than LEAST_ROWS high or worth less than waking a thread, and more only where they stay high.
 */
#include "models/layers/spread.h"

#include <assert.h>
#include <stdbool.h>

enum {
	LEAST_ROWS = 120,
	HIGH_ROWS = 256,
	BLOCKS = 4,
	TOGETHER = 12,           /* rows */
	LEAST_PRODUCTS = 1 << 23 /* of numbers, in a block: some 0.1 ms */
};

struct product {
	bool transposed; /* A */
	enum CBLAS_TRANSPOSE tb;
	size_t rows, columns, inner, ldb;
	const skep_real *a, *b;
	skep_real beta, *c;
};

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t rows_of_block(size_t rows, size_t columns, size_t inner)
{
	size_t blocks = rows / HIGH_ROWS > BLOCKS ? rows / HIGH_ROWS : least(rows / LEAST_ROWS, BLOCKS);
	blocks = least(blocks, rows * columns * inner / LEAST_PRODUCTS);
	if (blocks < 2)
		return rows;
	size_t height = (rows + blocks - 1) / blocks;
	return (height + TOGETHER - 1) / TOGETHER * TOGETHER;
}

static void multiply(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct product *p = context;
	const skep_real *a = p->a + first * (p->transposed ? 1 : p->inner);
	(void)member;
	skep_real_product_of(p->transposed ? CblasTrans : CblasNoTrans, p->tb, end - first, p->columns, p->inner, 1, a,
		p->transposed ? p->rows : p->inner, p->b, p->ldb, p->beta, p->c + first * p->columns, p->columns);
}

void skep_spread_product(struct skep_thread_pool *thread_pool, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb,
	size_t rows, size_t columns, size_t inner, const skep_real *a, const skep_real *b, skep_real beta, skep_real *c)
{
	const struct product product = {.transposed = ta != CblasNoTrans,
		.tb = tb,
		.rows = rows,
		.columns = columns,
		.inner = inner,
		.ldb = tb == CblasNoTrans ? columns : inner,
		.a = a,
		.b = b,
		.beta = beta,
		.c = c};
	skep_thread_pool_for(thread_pool, rows, rows_of_block(rows, columns, inner), multiply, &product);
}

struct beginning {
	size_t width;
	const skep_real *residual, *bias;
	skep_real *ret;
};

static void begin_rows(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct beginning *b = context;
	(void)member;
	for (size_t i = first; i < end; i++) {
		skep_real *row = b->ret + i * b->width;
		memcpy(row, b->residual ? b->residual + i * b->width : b->bias, b->width * sizeof *row);
		for (size_t j = 0; b->residual && b->bias && j < b->width; j++)
			row[j] += b->bias[j];
	}
}

void skep_spread_begin(struct skep_thread_pool *thread_pool, size_t rows, size_t width, const skep_real *residual,
	const skep_real *bias, skep_real *ret)
{
	const struct beginning b = {width, residual, bias, ret};
	assert(residual || bias);
	skep_thread_pool_for(thread_pool, rows, skep_spread_rows(width), begin_rows, &b);
}

struct sum {
	size_t rows, width;
	const skep_real *from;
	skep_real *sum;
};

static void add_columns(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct sum *s = context;
	(void)member;
	for (size_t i = 0; i < s->rows; i++)
		skep_real_add_rows(1, end - first, s->from + i * s->width + first, s->sum + first);
}

void skep_spread_add_rows(
	struct skep_thread_pool *thread_pool, size_t rows, size_t width, const skep_real *from, skep_real *sum)
{
	const struct sum context = {rows, width, from, sum};
	skep_thread_pool_for(thread_pool, width, skep_spread_columns(rows, width), add_columns, &context);
}
