/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_norm.c - see batch_norm.h. A channel is one range of a loop, and its planes are gone through in the order of the
 * samples: no bit depends on the number of threads. Sums of a plane have lanes (real.h), those of planes are in double
 * precision.
 *
 * With z = (x - mean) / deviation, and n numbers in a channel, the gradient at x is
 *     weight / deviation (g - (sum g + z sum g z) / n)
 * where g is that at y, sum g is the gradient of the bias and sum g z that of the weight.
 */
#include "models/vision/batch_norm.h"

#include <string.h>

struct job {
	const struct skep_batch_norm *norm;
	const skep_real *x, *at_y;
	bool bends;
	skep_real *weight_gradient, *bias_gradient, *ret;
};

static size_t plane_of(const struct skep_batch_norm *norm, size_t sample, size_t channel)
{
	return (sample * norm->channels + channel) * norm->pixels;
}

static void keep(const struct skep_batch_norm *norm, size_t channel, skep_real mean, skep_real variance)
{
	norm->kept[channel] = mean;
	norm->kept[norm->channels + channel] = 1 / skep_real_root(variance + norm->epsilon);
	norm->kept[2 * norm->channels + channel] = variance;
}

SKEP_ANY_WIDTH static void measure_norm_channels(
	const struct skep_batch_norm *norm, const skep_real *x, size_t first, size_t end)
{
	const double n = (double)(norm->samples * norm->pixels);
	for (size_t c = first; c < end; c++) {
		double sum = 0, squares = 0;
		for (size_t s = 0; s < norm->samples; s++)
			sum += (double)skep_real_sum(norm->pixels, x + plane_of(norm, s, c));
		const skep_real mean = (skep_real)(sum / n);
		for (size_t s = 0; s < norm->samples; s++)
			squares += (double)skep_real_sum_of_squares(norm->pixels, x + plane_of(norm, s, c), mean);
		keep(norm, c, mean, (skep_real)(squares / n));
	}
}

static void measure(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	(void)member;
	measure_norm_channels(job->norm, job->x, first, end);
}

void skep_batch_norm_measure(const struct skep_batch_norm *norm, const skep_real *x)
{
	skep_thread_pool_for(norm->thread_pool, norm->channels, 1, measure, &(struct job){.norm = norm, .x = x});
}

void skep_batch_norm_recall(const struct skep_batch_norm *norm, const skep_real *mean, const skep_real *variance)
{
	for (size_t c = 0; c < norm->channels; c++)
		keep(norm, c, mean[c], variance[c] > 0 ? variance[c] : 0);
}

/* y = scale x + shift */
static inline skep_real scale_of(const struct skep_batch_norm *norm, size_t channel, skep_real *ret_shift)
{
	const skep_real scale = norm->weight[channel] * norm->kept[norm->channels + channel];
	*ret_shift = norm->bias[channel] - norm->kept[channel] * scale;
	return scale;
}

SKEP_ANY_WIDTH static void apply_norm(
	const struct skep_batch_norm *norm, const skep_real *restrict x, bool adds, skep_real *restrict ret)
{
	for (size_t c = 0; c < norm->channels; c++, x += norm->pixels, ret += norm->pixels) {
		skep_real shift, scale = scale_of(norm, c, &shift);
		if (adds)
			for (size_t i = 0; i < norm->pixels; i++)
				ret[i] += scale * x[i] + shift;
		else
			for (size_t i = 0; i < norm->pixels; i++)
				ret[i] = scale * x[i] + shift;
	}
}

SKEP_ANY_WIDTH static void bend_normed(const struct skep_batch_norm *norm, size_t first, size_t channels,
	const skep_real *restrict x, skep_real *restrict ret)
{
	for (size_t c = 0; c < channels; c++, x += norm->pixels, ret += norm->pixels) {
		skep_real shift, scale = scale_of(norm, first + c, &shift);
		for (size_t i = 0; i < norm->pixels; i++) {
			skep_real y = scale * x[i] + shift;
			ret[i] = y < 0 ? 0 : y;
		}
	}
}

void skep_batch_norm_apply(const struct skep_batch_norm *norm, const skep_real *x, bool adds, skep_real *ret)
{
	apply_norm(norm, x, adds, ret);
}

void skep_batch_norm_bend(
	const struct skep_batch_norm *norm, size_t first, size_t channels, const skep_real *x, skep_real *ret)
{
	bend_normed(norm, first, channels, x, ret);
}

/* The gradient at y, of a plane; at what a relu has made of it, 0 where that is 0. */
static inline void unbend(const struct job *job, size_t channel, size_t at)
{
	skep_real shift, scale = scale_of(job->norm, channel, &shift);
	const skep_real *x = job->x + at, *from = job->at_y + at;
	skep_real *ret = job->ret + at;
	for (size_t i = 0; i < job->norm->pixels; i++)
		ret[i] = scale * x[i] + shift > 0 ? from[i] : 0;
}

/* sum g x */
static inline void add_sums(const struct job *job, const skep_real *g, size_t at, double *sum, double *products)
{
	*sum += (double)skep_real_sum(job->norm->pixels, g);
	*products += (double)skep_real_dot(job->norm->pixels, g, job->x + at);
}

static inline void go_back(size_t n, const skep_real *x, const skep_real *g, skep_real slope, skep_real by_x,
	skep_real constant, skep_real *ret)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = slope * g[i] + by_x * x[i] + constant;
}

SKEP_ANY_WIDTH static void backward_norm_channels(const struct job *job, size_t first, size_t end)
{
	const struct skep_batch_norm *norm = job->norm;
	const double n = (double)(norm->samples * norm->pixels);
	const skep_real *g = job->bends ? job->ret : job->at_y;
	for (size_t c = first; c < end; c++) {
		const double mean = (double)norm->kept[c], deviation = (double)norm->kept[norm->channels + c];
		double sum = 0, products = 0;
		for (size_t s = 0; s < norm->samples; s++) {
			const size_t at = plane_of(norm, s, c);
			if (job->bends)
				unbend(job, c, at);
			add_sums(job, g + at, at, &sum, &products);
		}
		const double z = (products - mean * sum) * deviation, slope = (double)norm->weight[c] * deviation;
		const double by_x = -slope * z * deviation / n, constant = -slope * sum / n - by_x * mean;
		for (size_t s = 0; s < norm->samples; s++) {
			const size_t at = plane_of(norm, s, c);
			go_back(norm->pixels, job->x + at, g + at, (skep_real)slope, (skep_real)by_x,
				(skep_real)constant, job->ret + at);
		}
		if (job->weight_gradient) {
			job->weight_gradient[c] += (skep_real)z;
			job->bias_gradient[c] += (skep_real)sum;
		}
	}
}

static void backward(const void *context, size_t first, size_t end, uint32_t member)
{
	(void)member;
	backward_norm_channels(context, first, end);
}

void skep_batch_norm_backward(const struct skep_batch_norm *norm, const skep_real *x, bool bends, const skep_real *at_y,
	skep_real *weight_gradient, skep_real *bias_gradient, skep_real *ret)
{
	skep_thread_pool_for(norm->thread_pool, norm->channels, 1, backward,
		&(struct job){norm, x, at_y, bends, weight_gradient, bias_gradient, ret});
}

void skep_batch_norm_average(const struct skep_batch_norm *norm, const skep_real *mean, const skep_real *variance,
	skep_real *mean_sum, skep_real *variance_sum)
{
	const skep_real n = (skep_real)(norm->samples * norm->pixels), unbiased = n > 1 ? n / (n - 1) : 1;
	for (size_t c = 0; c < norm->channels; c++) {
		mean_sum[c] += (mean ? mean[c] : 0) - norm->kept[c];
		variance_sum[c] += (variance ? variance[c] : 0) - norm->kept[2 * norm->channels + c] * unbiased;
	}
}
