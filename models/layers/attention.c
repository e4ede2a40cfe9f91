/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c - see attention.h. One head at a time, with Q, K, V [sequence][width]: weights P = softmax of Q K^T /
 * sqrt(width), of which causal attention takes the causal part alone, out O = P V. Backwards, dV += P^T dO, dP = dO V^T,
 * dS = P (dP - D) with D the sums of dO O by rows, dQ = dS K and dK += dS^T Q, both over sqrt(width). Heads that
 * share keys add to the same dK and dV, in order.
 */
#include "models/layers/attention.h"

#include <assert.h>

#include "models/layers/spread.h"

struct head { /* where one lies */
	const skep_real *q, *k, *v, *out;
	size_t row, out_row; /* from one token to the next */
	size_t keys, values; /* of k and v, from the sample's first number */
};

size_t skep_attention_work(const struct skep_attention *a)
{
	return 2 * (size_t)SKEP_ATTENTION_ROWS * a->sequence + SKEP_ATTENTION_ROWS;
}

static struct head head_of(
	const struct skep_attention *a, uint32_t sample, uint32_t number, const skep_real *qkv, const skep_real *out)
{
	struct head h = {
		.row = (size_t)(a->heads + 2 * a->kv_heads) * a->width, .out_row = (size_t)a->heads * a->width};
	uint32_t group = number / (a->heads / a->kv_heads);
	h.keys = (size_t)(a->heads + group) * a->width;
	h.values = h.keys + (size_t)a->kv_heads * a->width;
	qkv += (size_t)sample * a->sequence * h.row;
	h.q = qkv + (size_t)number * a->width;
	h.k = qkv + h.keys;
	h.v = qkv + h.values;
	h.out = out + (size_t)sample * a->sequence * h.out_row + (size_t)number * a->width;
	return h;
}

static skep_real scale_of(const struct skep_attention *a)
{
	return 1 / skep_real_root((skep_real)a->width);
}

/* The keys that a strip of queries has, and those of them that its query i sees. */
static inline size_t keys_of(const struct skep_attention *a, uint32_t first, uint32_t rows)
{
	return a->bidirectional ? a->sequence : (size_t)first + rows;
}

static inline size_t seen_by(const struct skep_attention *a, uint32_t first, uint32_t i)
{
	return a->bidirectional ? a->sequence : (size_t)first + i + 1;
}

/* strip[rows][keys] = scale Q K^T for the queries from `first` on. */
static void scores(
	const struct skep_attention *a, const struct head *h, uint32_t first, uint32_t rows, skep_real *strip)
{
	const size_t keys = keys_of(a, first, rows);
	skep_real_product_of(CblasNoTrans, CblasTrans, rows, keys, a->width, scale_of(a), h->q + first * h->row, h->row,
		h->k, h->row, 0, strip, keys);
}

/* What is behind the scores that a row of the strip has becomes 0. ret_kept: log of the sums. */
SKEP_ANY_WIDTH static void soften(
	const struct skep_attention *a, uint32_t first, uint32_t rows, skep_real *strip, skep_real *ret_kept)
{
	const size_t keys = keys_of(a, first, rows);
	for (uint32_t i = 0; i < rows; i++) {
		skep_real *row = strip + i * keys;
		const size_t n = seen_by(a, first, i);
		skep_real most = skep_real_most(n, row);
		for (size_t j = 0; j < n; j++)
			row[j] = skep_real_exp(row[j] - most);
		skep_real sum = skep_real_sum(n, row), part = 1 / sum;
		for (size_t j = 0; j < n; j++)
			row[j] *= part;
		for (size_t j = n; j < keys; j++)
			row[j] = 0;
		ret_kept[i] = most + (skep_real)log((double)sum);
	}
}

/* The weights again, from scores and what was kept. */
SKEP_ANY_WIDTH static void soften_again(
	const struct skep_attention *a, uint32_t first, uint32_t rows, const skep_real *kept, skep_real *strip)
{
	const size_t keys = keys_of(a, first, rows);
	for (uint32_t i = 0; i < rows; i++) {
		skep_real *row = strip + i * keys;
		const skep_real log_sum = kept[i];
		const size_t n = seen_by(a, first, i);
		for (size_t j = 0; j < n; j++)
			row[j] = skep_real_exp(row[j] - log_sum);
		for (size_t j = n; j < keys; j++)
			row[j] = 0;
	}
}

struct job {
	const struct skep_attention *a;
	const skep_real *qkv, *out, *kept, *gradient;
	skep_real *ret_out, *ret_kept, *ret_gradient, *work;
};

/* One head of one sample. */
static void forward_head(const struct job *job, uint32_t sample, uint32_t number, skep_real *work)
{
	const struct skep_attention *a = job->a;
	struct head h = head_of(a, sample, number, job->qkv, job->ret_out);
	skep_real *out = job->ret_out + (h.out - job->ret_out);
	skep_real *kept = job->ret_kept + ((size_t)sample * a->heads + number) * a->sequence;
	for (uint32_t first = 0; first < a->sequence; first += SKEP_ATTENTION_ROWS) {
		uint32_t left = a->sequence - first;
		uint32_t rows = left < SKEP_ATTENTION_ROWS ? left : SKEP_ATTENTION_ROWS;
		scores(a, &h, first, rows, work);
		const size_t keys = keys_of(a, first, rows);
		soften(a, first, rows, work, kept + first);
		skep_real_product_of(CblasNoTrans, CblasNoTrans, rows, a->width, keys, 1, work, keys, h.v, h.row, 0,
			out + first * h.out_row, h.out_row);
	}
}

static void forward(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	skep_real *work = job->work + member * skep_attention_work(job->a);
	for (size_t i = first; i < end; i++)
		forward_head(job, (uint32_t)(i / job->a->heads), (uint32_t)(i % job->a->heads), work);
}

/* Heads in a range: as many as take some 50 us. */
static size_t grain_of(const struct skep_attention *a, uint32_t heads)
{
	size_t products = (size_t)a->sequence * a->sequence * a->width * heads, least = 1000000;
	return products < least ? least / products : 1;
}

void skep_attention_forward(
	const struct skep_attention *a, const skep_real *qkv, skep_real *ret_out, skep_real *ret_kept, skep_real *work)
{
	const struct job job = {.a = a, .qkv = qkv, .ret_out = ret_out, .ret_kept = ret_kept, .work = work};
	skep_thread_pool_for(a->thread_pool, (size_t)a->samples * a->heads, grain_of(a, 1), forward, &job);
}

/* dS in place of dP: P (dP - D). */
SKEP_ANY_WIDTH static void to_scores(size_t rows, size_t keys, const skep_real *restrict weights,
	const skep_real *restrict along, skep_real *restrict strip)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < keys; j++)
			strip[i * keys + j] = weights[i * keys + j] * (strip[i * keys + j] - along[i]);
}

SKEP_ANY_WIDTH static void dots(
	size_t rows, size_t width, size_t step, const skep_real *a, const skep_real *b, skep_real *ret)
{
	for (size_t i = 0; i < rows; i++)
		ret[i] = skep_real_dot(width, a + i * step, b + i * step);
}

/* One strip of one head; `back` is where the gradient at the sample's qkv lies, `q` of its queries. */
static void backward_strip(const struct skep_attention *a, const struct head *h, uint32_t first, const skep_real *kept,
	const skep_real *gradient, skep_real *back, skep_real *q, skep_real *work)
{
	const uint32_t left = a->sequence - first, rows = left < SKEP_ATTENTION_ROWS ? left : SKEP_ATTENTION_ROWS;
	const size_t keys = keys_of(a, first, rows);
	skep_real *weights = work, *strip = work + (size_t)SKEP_ATTENTION_ROWS * a->sequence;
	skep_real *along = strip + (size_t)SKEP_ATTENTION_ROWS * a->sequence;
	const skep_real *out_gradient = gradient + first * h->out_row;
	scores(a, h, first, rows, weights);
	soften_again(a, first, rows, kept + first, weights);
	skep_real_product_of(CblasTrans, CblasNoTrans, keys, a->width, rows, 1, weights, keys, out_gradient, h->out_row,
		1, back + h->values, h->row);
	skep_real_product_of(CblasNoTrans, CblasTrans, rows, keys, a->width, 1, out_gradient, h->out_row, h->v, h->row,
		0, strip, keys);
	dots(rows, a->width, h->out_row, out_gradient, h->out + first * h->out_row, along);
	to_scores(rows, keys, weights, along, strip);
	skep_real_product_of(CblasNoTrans, CblasNoTrans, rows, a->width, keys, scale_of(a), strip, keys, h->k, h->row,
		0, q + first * h->row, h->row);
	skep_real_product_of(CblasTrans, CblasNoTrans, keys, a->width, rows, scale_of(a), strip, keys,
		h->q + first * h->row, h->row, 1, back + h->keys, h->row);
}

/* Of a sample, what is added to: dK and dV of the heads that share `h`'s keys. */
static void clear_keys(const struct skep_attention *a, const struct head *h, skep_real *back)
{
	for (uint32_t t = 0; t < a->sequence; t++) {
		memset(back + t * h->row + h->keys, 0, a->width * sizeof *back);
		memset(back + t * h->row + h->values, 0, a->width * sizeof *back);
	}
}

/* The heads of one sample that share keys. */
static void backward_group(const struct job *job, uint32_t sample, uint32_t group, skep_real *work)
{
	const struct skep_attention *a = job->a;
	const uint32_t heads = a->heads / a->kv_heads;
	for (uint32_t number = group * heads; number < (group + 1) * heads; number++) {
		struct head h = head_of(a, sample, number, job->qkv, job->out);
		skep_real *back = job->ret_gradient + (size_t)sample * a->sequence * h.row;
		const skep_real *log_sums = job->kept + ((size_t)sample * a->heads + number) * a->sequence;
		if (number == group * heads)
			clear_keys(a, &h, back);
		for (uint32_t first = 0; first < a->sequence; first += SKEP_ATTENTION_ROWS)
			backward_strip(a, &h, first, log_sums, job->gradient + (h.out - job->out), back,
				back + (size_t)number * a->width, work);
	}
}

static void backward(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	skep_real *work = job->work + member * skep_attention_work(job->a);
	for (size_t i = first; i < end; i++)
		backward_group(job, (uint32_t)(i / job->a->kv_heads), (uint32_t)(i % job->a->kv_heads), work);
}

void skep_attention_backward(const struct skep_attention *a, const skep_real *qkv, const skep_real *out,
	const skep_real *kept, const skep_real *gradient, skep_real *ret_gradient, skep_real *work)
{
	const struct job job = {.a = a,
		.qkv = qkv,
		.out = out,
		.kept = kept,
		.gradient = gradient,
		.ret_gradient = ret_gradient,
		.work = work};
	skep_thread_pool_for(
		a->thread_pool, (size_t)a->samples * a->kv_heads, grain_of(a, a->heads / a->kv_heads), backward, &job);
}

/* ---- rotary positions ------------------------------------------------------------------------------------------- */

void skep_rotation_fill(uint32_t sequence, uint32_t width, double base, skep_real *ret)
{
	for (uint32_t i = 0; i < width / 2; i++) {
		double speed = pow(base, -2.0 * i / width);
		for (uint32_t p = 0; p < sequence; p++) {
			ret[(size_t)p * width + 2 * i] = (skep_real)cos(p * speed);
			ret[(size_t)p * width + 2 * i + 1] = (skep_real)sin(p * speed);
		}
	}
}

static void turn(uint32_t half, const skep_real *rotation, skep_real sign, skep_real *x)
{
	for (uint32_t i = 0; i < half; i++) {
		skep_real c = rotation[2 * i], s = sign * rotation[2 * i + 1], a = x[i], b = x[i + half];
		x[i] = a * c - b * s;
		x[i + half] = b * c + a * s;
	}
}

struct rotation {
	const struct skep_attention *a;
	const skep_real *rotation;
	skep_real sign, *qkv;
};

static void rotate(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct rotation *r = context;
	const struct skep_attention *a = r->a;
	const uint32_t turned = a->heads + a->kv_heads;
	const size_t row = (size_t)(turned + a->kv_heads) * a->width;
	(void)member;
	for (size_t t = first; t < end; t++)
		for (uint32_t h = 0; h < turned; h++)
			turn(a->width / 2, r->rotation + t % a->sequence * a->width, r->sign,
				r->qkv + t * row + (size_t)h * a->width);
}

void skep_rotation_apply(const struct skep_attention *a, const skep_real *rotation, int back, skep_real *qkv)
{
	const struct rotation r = {a, rotation, back ? -1 : 1, qkv};
	assert(a->width % 2 == 0);
	skep_thread_pool_for(a->thread_pool, (size_t)a->samples * a->sequence,
		skep_spread_rows((size_t)(a->heads + a->kv_heads) * a->width), rotate, &r);
}
