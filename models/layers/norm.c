/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.c - see norm.h. With z = (x - m) r and g = w dy, the gradient at x is r (g - mean(g) - z mean(g z)); RMSNorm has no
 * mean(g).
 */
#include "models/layers/norm.h"

#include "models/layers/spread.h"

SKEP_ANY_WIDTH static void measure_rows(
	const struct skep_norm *norm, size_t first, size_t end, const skep_real *x, skep_real *ret_kept)
{
	const size_t n = norm->width;
	for (size_t i = first; i < end; i++) {
		const skep_real *row = x + i * n;
		skep_real mean = norm->bias ? skep_real_sum(n, row) / (skep_real)n : 0;
		skep_real variance = skep_real_sum_of_squares(n, row, mean) / (skep_real)n;
		ret_kept[2 * i] = 1 / skep_real_root(variance + norm->epsilon);
		ret_kept[2 * i + 1] = mean * ret_kept[2 * i];
	}
}

static inline void apply_row(size_t n, skep_real scale, skep_real offset, const skep_real *restrict x,
	const skep_real *restrict weight, const skep_real *restrict bias, skep_real *restrict y)
{
	if (bias)
		for (size_t j = 0; j < n; j++)
			y[j] = (x[j] * scale - offset) * weight[j] + bias[j];
	else
		for (size_t j = 0; j < n; j++)
			y[j] = x[j] * scale * weight[j];
}

SKEP_ANY_WIDTH static void norm_rows(const struct skep_norm *norm, size_t first, size_t end, const skep_real *x,
	const skep_real *kept, skep_real *ret_y)
{
	for (size_t i = first; i < end; i++)
		apply_row(norm->width, kept[2 * i], kept[2 * i + 1], x + i * norm->width, norm->weight, norm->bias,
			ret_y + i * norm->width);
}

/* What each number of the row gives to the gradients of weight and bias. */
static inline void add_row(size_t n, skep_real scale, skep_real offset, const skep_real *restrict x,
	const skep_real *restrict dy, skep_real *restrict dw, skep_real *restrict db)
{
	for (size_t j = 0; j < n; j++)
		dw[j] += dy[j] * (x[j] * scale - offset);
	if (db)
		for (size_t j = 0; j < n; j++)
			db[j] += dy[j];
}

SKEP_ANY_WIDTH static void backward_row(const struct skep_norm *norm, skep_real scale, skep_real offset,
	const skep_real *restrict x, const skep_real *restrict weight, skep_real *restrict dy, skep_real *restrict sum)
{
	const size_t n = norm->width;
	for (size_t j = 0; j < n; j++)
		dy[j] *= weight[j];
	skep_real mean = skep_real_sum(n, dy) / (skep_real)n;
	/* z = x scale - offset, so the mean of g z comes from two sums that are there. */
	skep_real along = scale * (skep_real_dot(n, dy, x) / (skep_real)n) - offset * mean;
	mean = norm->bias ? mean : 0;
	for (size_t j = 0; j < n; j++)
		sum[j] += scale * (dy[j] - mean - (x[j] * scale - offset) * along);
}

/* ---- over a team -------------------------------------------------------------------------------------------------- */

struct job {
	const struct skep_norm *norm;
	const skep_real *x, *kept;
	skep_real *ret_kept, *ret_y; /* forwards */
	skep_real *dy, *dw, *db, *sum;
};

static void measure(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	(void)member;
	measure_rows(job->norm, first, end, job->x, job->ret_kept);
}

static void apply(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	(void)member;
	norm_rows(job->norm, first, end, job->x, job->kept, job->ret_y);
}

/* Of columns first .. end - 1: all rows, in their order. */
SKEP_ANY_WIDTH static void add_columns(const struct job *job, size_t first, size_t end)
{
	const size_t n = job->norm->width;
	for (size_t i = 0; i < job->norm->rows; i++)
		add_row(end - first, job->kept[2 * i], job->kept[2 * i + 1], job->x + i * n + first,
			job->dy + i * n + first, job->dw + first, job->db ? job->db + first : NULL);
}

static void add(const void *context, size_t first, size_t end, uint32_t member)
{
	(void)member;
	add_columns(context, first, end);
}

static void go_back(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	const size_t n = job->norm->width;
	(void)member;
	for (size_t i = first; i < end; i++)
		backward_row(job->norm, job->kept[2 * i], job->kept[2 * i + 1], job->x + i * n, job->norm->weight,
			job->dy + i * n, job->sum + i * n);
}

void skep_norm_measure(const struct skep_norm *norm, const skep_real *x, skep_real *ret_kept)
{
	const struct job job = {.norm = norm, .x = x, .ret_kept = ret_kept};
	skep_thread_pool_for(norm->thread_pool, norm->rows, skep_spread_rows(norm->width), measure, &job);
}

void skep_norm_apply(const struct skep_norm *norm, const skep_real *x, const skep_real *kept, skep_real *ret_y)
{
	const struct job job = {.norm = norm, .x = x, .kept = kept, .ret_y = ret_y};
	skep_thread_pool_for(norm->thread_pool, norm->rows, skep_spread_rows(norm->width), apply, &job);
}

void skep_norm_backward(const struct skep_norm *norm, const skep_real *x, const skep_real *kept, skep_real *y_gradient,
	skep_real *weight_gradient, skep_real *bias_gradient, skep_real *sum)
{
	const struct job job = {.norm = norm,
		.x = x,
		.kept = kept,
		.dy = y_gradient,
		.dw = weight_gradient,
		.db = bias_gradient,
		.sum = sum};
	if (weight_gradient)
		skep_thread_pool_for(
			norm->thread_pool, norm->width, skep_spread_columns(norm->rows, norm->width), add, &job);
	if (sum)
		skep_thread_pool_for(norm->thread_pool, norm->rows, skep_spread_rows(norm->width), go_back, &job);
}
