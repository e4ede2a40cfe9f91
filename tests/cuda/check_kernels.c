/* SPDX-License-Identifier: Apache-2.0
 *
 * check_kernels.c - every kernel of models/cuda/ on random input, against the arithmetic of the CPU in double precision
 * (built with SKEP_REAL_DOUBLE) or, where that is a line, against the line. Shapes are odd, and need several blocks and
 * tiles. Each check runs twice, in the emulation with the threads of a block in both orders, and has to give the same bits.
 *
 * Linked with the kernels as nvcc makes them it checks a GPU.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "models/cuda/product.h"
#include "models/layers/attention.h"
#include "models/layers/feed.h"
#include "models/layers/norm.h"
#include "tests/cuda/arrays.h"
#include "tests/cuda/payloads.h"
#include "tests/cuda/wide.h"
#include "tests/unit/fresh.h"

void emulate_backwards(bool backwards) __attribute__((weak));
void emulate_refuses(bool refuses) __attribute__((weak));

static double *zeros(size_t n)
{
	double *ret = calloc(n, sizeof *ret);
	assert(ret);
	return ret;
}

/* ---- norms ------------------------------------------------------------------------------------------------------------ */

static void check_norm_of(struct arrays *all, size_t rows, size_t width, bool centred, bool first)
{
	struct array x = array_random(all, rows * width, false, 2), weight = array_random(all, width, false, 1),
		     bias = array_random(all, width, false, 1), kept = array_of(all, 2 * rows, false, 7),
		     y = array_of(all, rows * width, true, 7), dy = array_random(all, rows * width, true, 1),
		     dw = array_random(all, width, false, 1), db = array_random(all, width, false, 1),
		     sum = array_random(all, rows * width, false, 1), narrowed = array_of(all, rows * width, true, 7);
	struct skep_norm norm = {rows, width, weight.host, centred ? bias.host : NULL, 1e-5, NULL};
	struct skep_cuda_norm of = {rows, width, floats_of(&weight), centred ? floats_of(&bias) : NULL, 1e-5f};
	double *want_kept = zeros(2 * rows), *want = zeros(rows * width);
	skep_norm_measure(&norm, x.host, want_kept);
	skep_norm_apply(&norm, x.host, want_kept, want);
	skep_cuda_norm_forward(all->queue, &of, floats_of(&x), floats_of(&kept), halves_of(&y));
	array_near(all, &kept, want_kept, 1e-5, "norm: kept");
	array_near(all, &y, want, 1e-5, "norm");
	y = array_of(all, rows * width, true, 7);
	skep_cuda_norm_apply(all->queue, &of, floats_of(&x), floats_of(&kept), halves_of(&y));
	array_near(all, &y, want, 1e-5, "norm again");
	if (first)
		memset(sum.host, 0, sum.n * sizeof *sum.host);
	skep_cuda_norm_backward(all->queue, &of, floats_of(&x), floats_of(&kept), halves_of(&dy), floats_of(&dw),
		centred ? floats_of(&db) : NULL, first, floats_of(&sum), halves_of(&narrowed));
	skep_norm_backward(&norm, x.host, want_kept, dy.host, dw.host, centred ? db.host : NULL, sum.host);
	array_near(all, &sum, sum.host, 1e-5, "norm backwards");
	array_near(all, &narrowed, sum.host, 1e-5, "norm backwards, rounded");
	array_near(all, &dw, dw.host, 1e-5, "norm backwards: weight");
	array_near(all, &db, db.host, 1e-5, "norm backwards: bias");
	free(want_kept);
	free(want);
}

static void check_norm(struct arrays *all)
{
	check_norm_of(all, 37, 100, true, false);
	check_norm_of(all, 5, 770, false, true);
}

static void check_many_rows(struct arrays *all)
{
	check_norm_of(all, 1111, 33, true, true);
	struct array x = array_random(all, 1111 * 45, true, 1), sum = array_random(all, 45, false, 1);
	skep_cuda_add_rows(all->queue, 1111, 45, halves_of(&x), floats_of(&sum));
	skep_real_add_rows(1111, 45, x.host, sum.host);
	array_near(all, &sum, sum.host, 1e-5, "sums of rows");
}

/* ---- element by element ----------------------------------------------------------------------------------------------- */

static void check_feed(struct arrays *all)
{
	const size_t rows = 19, width = 71, n = rows * width;
	struct array in = array_random(all, n, true, 4), gradient = array_random(all, n, true, 1),
		     both = array_random(all, 2 * n, true, 4), out = array_of(all, n, true, 7),
		     wide_out = array_of(all, 2 * n, true, 7), bias = array_random(all, width, true, 1),
		     wide_bias = array_random(all, width, false, 1), x = array_random(all, n, false, 1);
	double *value = zeros(n), *back = zeros(2 * n);
	skep_gelu_forward(rows, width, in.host, value);
	skep_cuda_gelu_forward(all->queue, n, halves_of(&in), halves_of(&out));
	array_near(all, &out, value, 1e-6, "gelu");
	skep_gelu_backward(rows, width, in.host, gradient.host, value, back);
	skep_cuda_gelu_backward(all->queue, n, halves_of(&in), halves_of(&gradient), halves_of(&out));
	array_near(all, &out, back, 1e-6, "gelu backwards");
	skep_swiglu_forward(rows, width, both.host, value);
	skep_cuda_swiglu_forward(all->queue, rows, width, halves_of(&both), halves_of(&out));
	array_near(all, &out, value, 1e-6, "swiglu");
	skep_swiglu_backward(rows, width, both.host, gradient.host, value, back);
	skep_cuda_swiglu_backward(
		all->queue, rows, width, halves_of(&both), halves_of(&gradient), halves_of(&wide_out));
	array_near(all, &wide_out, back, 1e-6, "swiglu backwards");
	skep_cuda_narrow(all->queue, n, floats_of(&x), halves_of(&out));
	array_near(all, &out, x.host, 0, "rounding");
	skep_cuda_add_bias(all->queue, rows, width, halves_of(&bias), halves_of(&in));
	skep_cuda_add_wide_bias(all->queue, rows, width, floats_of(&wide_bias), floats_of(&x));
	for (size_t i = 0; i < n; i++) {
		in.host[i] += bias.host[i % width];
		x.host[i] += wide_bias.host[i % width];
	}
	array_near(all, &in, in.host, 1e-6, "bias");
	array_near(all, &x, x.host, 1e-6, "bias in fp32");
	free(value);
	free(back);
}

/* ---- products --------------------------------------------------------------------------------------------------------- */

/* a[23][41] b[41][18], as they lie in any of the four ways. */
static void check_products_in(struct arrays *all, bool ta, bool tb)
{
	const size_t rows = 23, inner = 41, columns = 18, n = rows * columns;
	struct array a = array_random(all, rows * inner, true, 1), b = array_random(all, inner * columns, true, 1),
		     add = array_random(all, n, false, 1), c = array_of(all, n, false, 7),
		     half = array_of(all, n, true, 7), aux = array_of(all, n, true, 7),
		     bias = array_random(all, columns, true, 1), wide_bias = array_random(all, columns, false, 1);
	double *plain = zeros(n), *want = zeros(n), *slope = zeros(n), *ignored = zeros(n);
	skep_real_product(ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, rows, columns, inner, a.host,
		b.host, 0, plain);
	struct skep_cuda_product p = {.rows = rows,
		.columns = columns,
		.inner = inner,
		.transpose_a = ta,
		.transpose_b = tb,
		.a = halves_of(&a),
		.b = halves_of(&b),
		.wide = true,
		.c = c.device,
		.bias = wide_bias.device,
		.add = floats_of(&add)};
	skep_cuda_multiply(all->queue, &p);
	for (size_t i = 0; i < n; i++)
		want[i] = plain[i] + wide_bias.host[i % columns] + add.host[i];
	array_near(all, &c, want, 1e-6, "product with sum and bias");
	p.bias = NULL;
	p.add = floats_of(&c);
	skep_cuda_multiply(all->queue, &p);
	for (size_t i = 0; i < n; i++)
		want[i] += plain[i];
	array_near(all, &c, want, 1e-6, "product that adds to itself");
	p = (struct skep_cuda_product){.rows = rows,
		.columns = columns,
		.inner = inner,
		.transpose_a = ta,
		.transpose_b = tb,
		.a = p.a,
		.b = p.b,
		.c = half.device,
		.bias = bias.device,
		.bend = SKEP_CUDA_GELU,
		.aux = halves_of(&aux)};
	skep_cuda_multiply(all->queue, &p);
	for (size_t i = 0; i < n; i++)
		want[i] = plain[i] + bias.host[i % columns];
	array_close(
		all, &aux, want, 0.005, "product before gelu"); /* the bias is added before it is rounded, or after */
	skep_gelu_forward(rows, columns, want, slope);
	array_close(all, &half, slope, 0.005, "product and gelu"); /* bent after it was rounded, or before */
	p.bias = NULL;
	p.bend = SKEP_CUDA_GELU_BACK;
	double *bent = array_read(all, &aux);
	skep_cuda_multiply(all->queue, &p);
	skep_gelu_backward(rows, columns, bent, plain, ignored, slope);
	array_close(all, &half, slope, 0.005, "product and gelu backwards");
	free(bent);
	free(plain);
	free(want);
	free(slope);
	free(ignored);
}

static void check_products(struct arrays *all)
{
	for (int way = 0; way < 4; way++)
		check_products_in(all, way & 1, way & 2);
}

static void check_products_apart(struct arrays *all)
{
	if (emulate_refuses)
		emulate_refuses(true);
	check_products(all);
	if (emulate_refuses)
		emulate_refuses(false);
}

/* ---- attention -------------------------------------------------------------------------------------------------------- */

static void check_attention_of(struct arrays *all, struct skep_attention a)
{
	const struct skep_cuda_attention of = {a.samples, a.sequence, a.heads, a.kv_heads, a.width, a.bidirectional};
	const size_t tokens = (size_t)a.samples * a.sequence, numbers = tokens * a.heads * a.width;
	const size_t all_numbers = tokens * (a.heads + 2 * a.kv_heads) * a.width;
	struct array qkv = array_random(all, all_numbers, true, 2), out = array_of(all, numbers, true, 7),
		     kept = array_of(all, tokens * a.heads, false, 7), gradient = array_random(all, numbers, true, 1),
		     back = array_of(all, all_numbers, true, 7), along = array_of(all, tokens * a.heads, false, 7);
	double *want = zeros(numbers), *want_kept = zeros(tokens * a.heads), *want_back = zeros(all_numbers);
	double *work = zeros(skep_attention_work(&a));
	skep_attention_forward(&a, qkv.host, want, want_kept, work);
	skep_cuda_attention_forward(all->queue, &of, halves_of(&qkv), halves_of(&out), floats_of(&kept));
	array_near(all, &out, want, 0.004, "attention");
	array_close(all, &out, want, 0.004, "attention");
	array_near(all, &kept, want_kept, 1e-5, "attention: kept");
	skep_attention_backward(&a, qkv.host, want, want_kept, gradient.host, want_back, work);
	skep_cuda_attention_backward(all->queue, &of, halves_of(&qkv), halves_of(&out), floats_of(&kept),
		halves_of(&gradient), halves_of(&back), floats_of(&along));
	array_near(all, &back, want_back, 0.01, "attention backwards");
	array_close(all, &back, want_back, 0.01, "attention backwards");
	free(want);
	free(want_kept);
	free(want_back);
	free(work);
}

static void check_attention(struct arrays *all)
{
	check_attention_of(all, (struct skep_attention){2, 150, 4, 4, 16, NULL, false});
	check_attention_of(all, (struct skep_attention){2, 150, 4, 4, 16, NULL, true});
}

static void check_attention_shared(struct arrays *all)
{
	check_attention_of(all, (struct skep_attention){1, 131, 6, 2, 32, NULL, false});
}

static void check_attention_wide(struct arrays *all)
{
	check_attention_of(all, (struct skep_attention){1, 70, 2, 1, 128, NULL, false});
	check_attention_of(all, (struct skep_attention){1, 129, 1, 1, 64, NULL, false});
	check_attention_of(all, (struct skep_attention){1, 128, 2, 1, 128, NULL, true});
}

static void check_attention_odd(struct arrays *all)
{
	check_attention_of(all, (struct skep_attention){1, 67, 3, 3, 13, NULL, false});
	check_attention_of(all, (struct skep_attention){1, 65, 2, 2, 40, NULL, false});
	check_attention_of(all, (struct skep_attention){3, 1, 2, 2, 8, NULL, false});
	check_attention_of(all, (struct skep_attention){2, 65, 3, 3, 13, NULL, true});
	check_attention_of(all, (struct skep_attention){3, 1, 2, 2, 8, NULL, true});
}

static void check_rotation(struct arrays *all)
{
	struct skep_attention a = {2, 21, 4, 2, 12, NULL, false};
	const struct skep_cuda_attention of = {2, 21, 4, 2, 12, false};
	const size_t n = 2 * 21 * (4 + 2 * 2) * 12;
	struct array qkv = array_random(all, n, true, 1), turns = array_random(all, 21 * 12, false, 1);
	for (int back = 0; back < 2; back++) {
		struct array x = array_copy(all, &qkv);
		skep_rotation_apply(&a, turns.host, back, x.host);
		skep_cuda_rotate(all->queue, &of, floats_of(&turns), back, halves_of(&x));
		array_near(all, &x, x.host, 1e-6, "rotation");
	}
}

/* ---- ends ------------------------------------------------------------------------------------------------------------- */

static void check_embedding(struct arrays *all)
{
	enum { SAMPLES = 3, SEQUENCE = 9, WIDTH = 300, VOCABULARY = 11 };
	int32_t id[SAMPLES * (SEQUENCE + 1)], group[SAMPLES * SEQUENCE] = {0}, start[VOCABULARY + 1] = {0},
							      order[SAMPLES * SEQUENCE];
	for (int i = 0; i < SAMPLES * (SEQUENCE + 1); i++)
		id[i] = i * i % 7; /* some never, some often */
	struct skep_cuda_groups groups = {0};
	int32_t placed = 0;
	for (int32_t t = 0; t < VOCABULARY; t++) {
		for (int32_t i = 0; i < SAMPLES * SEQUENCE; i++)
			if (id[i / SEQUENCE * (SEQUENCE + 1) + i % SEQUENCE] == t)
				order[placed++] = i;
		if (placed > start[groups.most]) {
			group[groups.most++] = t;
			start[groups.most] = placed;
		}
	}
	groups.count = array_integers(all, 1, &(int32_t){(int32_t)groups.most});
	groups.most += 3; /* more than there are */
	groups.id = array_integers(all, placed, group);
	groups.start = array_integers(all, VOCABULARY + 1, start);
	groups.order = array_integers(all, SAMPLES * SEQUENCE, order);
	const int32_t *ids = array_integers(all, SAMPLES * (SEQUENCE + 1), id);
	struct array table = array_random(all, VOCABULARY * WIDTH, false, 1),
		     places = array_random(all, SEQUENCE * WIDTH, false, 1),
		     out = array_of(all, SAMPLES * SEQUENCE * WIDTH, false, 7),
		     gradient = array_random(all, SAMPLES * SEQUENCE * WIDTH, false, 1);
	double *want = zeros(out.n);
	for (int with = 0; with < 2; with++) {
		for (int i = 0; i < SAMPLES * SEQUENCE * WIDTH; i++) {
			int token = i / WIDTH, at = token / SEQUENCE * (SEQUENCE + 1) + token % SEQUENCE;
			want[i] = table.host[id[at] * WIDTH + i % WIDTH] +
			          (with ? places.host[token % SEQUENCE * WIDTH + i % WIDTH] : 0);
		}
		skep_cuda_embed(all->queue, SAMPLES, SEQUENCE, WIDTH, ids, floats_of(&table),
			with ? floats_of(&places) : NULL, floats_of(&out));
		array_near(all, &out, want, 0, "embedding");
	}
	for (int i = 0; i < SAMPLES * SEQUENCE * WIDTH; i++) {
		int token = i / WIDTH, at = token / SEQUENCE * (SEQUENCE + 1) + token % SEQUENCE;
		table.host[id[at] * WIDTH + i % WIDTH] += gradient.host[i];
		places.host[token % SEQUENCE * WIDTH + i % WIDTH] += gradient.host[i];
	}
	skep_cuda_embed_backward(all->queue, SAMPLES, SEQUENCE, WIDTH, &groups, floats_of(&gradient), floats_of(&table),
		floats_of(&places));
	array_near(all, &table, table.host, 1e-6, "embedding backwards");
	array_near(all, &places, places.host, 1e-6, "positions backwards");
	free(want);
}

static void check_surprise(struct arrays *all)
{
	enum { SAMPLES = 2, SEQUENCE = 7, VOCABULARY = 531, STRIDE = 536, TOKENS = SAMPLES * SEQUENCE };
	int32_t id[SAMPLES * (SEQUENCE + 1)];
	struct array score = array_random(all, TOKENS * STRIDE, true, 9), loss = array_of(all, TOKENS, false, 7);
	double *want = zeros(TOKENS * STRIDE), want_loss[TOKENS];
	for (int i = 0; i < SAMPLES * (SEQUENCE + 1); i++)
		id[i] = i * 101 % VOCABULARY;
	id[3] = VOCABULARY - 1;
	for (int t = 0; t < TOKENS; t++) {
		const double *row = score.host + t * STRIDE;
		const int target = id[t / SEQUENCE * (SEQUENCE + 1) + t % SEQUENCE + 1];
		double sum = 0;
		for (int j = 0; j < VOCABULARY; j++)
			sum += exp(row[j]);
		for (int j = 0; j < VOCABULARY; j++)
			want[t * STRIDE + j] = (exp(row[j]) / sum - (j == target)) / TOKENS;
		want_loss[t] = log(sum) - row[target];
	}
	skep_cuda_surprise(all->queue, SAMPLES, SEQUENCE, VOCABULARY, STRIDE,
		array_integers(all, SAMPLES * (SEQUENCE + 1), id), halves_of(&score), floats_of(&loss));
	array_near(all, &score, want, 1e-6, "gradient of the cross-entropy");
	array_near(all, &loss, want_loss, 1e-6, "cross-entropy");
	free(want);
}

/* ---- optimizers ------------------------------------------------------------------------------------------------------- */

static double direction(const struct skep_cuda_step *s, double *m, double *v, double sum, double w)
{
	double g = sum / (double)s->divisor, decay = (double)s->decay * w;
	if (s->rule == SKEP_CUDA_DELAYED_NESTEROV) {
		const double buffer = *v + g, turns = (double)s->turns;
		*m = s->last ? (double)s->momentum * *m + buffer / turns : *m;
		*v = s->last ? 0 : buffer;
		return g / turns + (s->last ? (double)s->momentum * *m : 0);
	}
	if (s->rule == SKEP_CUDA_SGD || s->rule == SKEP_CUDA_NESTEROV) {
		*m = (double)s->momentum * *m + g;
		return (s->rule == SKEP_CUDA_SGD ? *m : g + (double)s->momentum * *m) + decay;
	}
	*m = (double)s->beta1 * *m + (1 - (double)s->beta1) * g;
	*v = (double)s->beta2 * *v + (1 - (double)s->beta2) * g * g;
	return *m * (double)s->unbias_mean / (sqrt(*v * (double)s->unbias_square) + (double)s->epsilon) + decay;
}

static void check_step_of(struct arrays *all, enum skep_cuda_rule rule, bool last)
{
	const size_t n = 40001;
	struct array w = array_random(all, n, false, 1), sum = array_random(all, n, false, 3),
		     m = array_random(all, n, false, 1), v = array_random(all, n, false, 1),
		     half = array_of(all, n, true, 7), norms = array_of(all, skep_cuda_norms_bytes() / 4, false, 7);
	double *way = zeros(n), squares = 0, ways = 0;
	for (size_t i = 0; i < n; i++)
		v.host[i] = fabs(v.host[i]);
	v = array_copy(all, &v);
	struct skep_cuda_step s = {.rule = rule,
		.rate = 0.01f,
		.decay = 0.1f,
		.divisor = 3,
		.unbias_mean = 1.5f,
		.unbias_square = 1.25f,
		.momentum = 0.9f,
		.beta1 = 0.9f,
		.beta2 = 0.99f,
		.epsilon = 1e-3f,
		.turns = 3,
		.last = last,
		.n = n,
		.sum = floats_of(&sum),
		.w = floats_of(&w),
		.moment = {floats_of(&m), rule >= SKEP_CUDA_ADAMW ? floats_of(&v) : NULL},
		.narrowed = halves_of(&half)};
	skep_cuda_step(all->queue, &s, norms.device);
	for (size_t i = 0; i < n; i++) {
		way[i] = direction(&s, &m.host[i], &v.host[i], sum.host[i], w.host[i]);
		squares += w.host[i] * w.host[i];
		ways += way[i] * way[i];
	}
	for (size_t i = 0; i < n; i++)
		w.host[i] -= (double)s.rate * way[i] * (rule == SKEP_CUDA_LAMB ? sqrt(squares / ways) : 1);
	array_near(all, &w, w.host, 1e-6, "step");
	array_near(all, &half, w.host, 1e-6, "step, rounded");
	array_near(all, &m, m.host, 1e-6, "step: first moment");
	array_near(all, &v, v.host, 1e-6, "step: second moment");
	free(way);
}

static void check_steps(struct arrays *all)
{
	for (int rule = SKEP_CUDA_SGD; rule <= SKEP_CUDA_LAMB; rule++)
		check_step_of(all, (enum skep_cuda_rule)rule, false);
}

static void check_steps_by_turns(struct arrays *all)
{
	check_step_of(all, SKEP_CUDA_DELAYED_NESTEROV, false);
	check_step_of(all, SKEP_CUDA_DELAYED_NESTEROV, true);
}

static void check_following(struct arrays *all)
{
	const size_t n = 3001;
	struct array w = array_random(all, n, false, 1), v = array_random(all, n, false, 1),
		     u = array_random(all, n, false, 1), ret = array_of(all, n, false, 7);
	skep_cuda_weigh(all->queue, n, floats_of(&w), floats_of(&v), 12, floats_of(&ret));
	for (size_t i = 0; i < n; i++)
		ret.host[i] = (w.host[i] - v.host[i]) * 12;
	array_near(all, &ret, ret.host, 1e-6, "pseudo-gradient");
	skep_cuda_mix(all->queue, n, 0.7f, floats_of(&w), floats_of(&v));
	for (size_t i = 0; i < n; i++)
		v.host[i] = 0.7 * v.host[i] + 0.3 * w.host[i];
	array_near(all, &v, v.host, 1e-6, "mixing");
	skep_cuda_shift(all->queue, n, floats_of(&w), floats_of(&u), floats_of(&v));
	for (size_t i = 0; i < n; i++)
		v.host[i] += u.host[i] - w.host[i];
	array_near(all, &v, v.host, 1e-6, "shifting");
}

/* To the bit, in place too; p or q 0: without that part, whatever lies there. */
static void check_blend(struct arrays *all)
{
	static const float divisors[][2] = {{3, 7}, {0, 5}, {6, 0}, {0, 0}};
	const size_t n = 3001;
	struct array a = array_random(all, n, false, 1), b = array_random(all, n, false, 1);
	for (size_t way = 0; way < sizeof divisors / sizeof divisors[0]; way++) {
		const float p = divisors[way][0], q = divisors[way][1];
		struct array ret = array_copy(all, way % 2 ? &a : &b);
		skep_cuda_blend(all->queue, n, way % 2 ? floats_of(&ret) : floats_of(&a), p,
			way % 2 ? floats_of(&b) : floats_of(&ret), q, floats_of(&ret));
		double *got = array_read(all, &ret);
		size_t amiss = 0;
		for (size_t i = 0; i < n; i++) {
			const float x = p > 0 ? (float)a.host[i] / p : 0, y = q > 0 ? (float)b.host[i] / q : 0;
			const float sum = x + y;
			amiss += !((float)got[i] == sum);
		}
		if (amiss > 0)
			fprintf(stderr, "gradient of a tied table over %g and %g: %zu are amiss\n", (double)p,
				(double)q, amiss);
		all->failures += amiss > 0;
		free(got);
	}
}

/* The first number at ret, when it is there. */
static double first_of(struct arrays *all, const struct array *ret)
{
	void *locked = skep_cuda_take(all->queue, SKEP_MEMORY_HOST, sizeof(double));
	char why[256];
	double got;
	skep_cuda_copy(all->queue, locked, ret->device, sizeof got);
	all->failures += !skep_cuda_wait(all->queue, why, sizeof why);
	memcpy(&got, locked, sizeof got);
	skep_cuda_give(all->queue, SKEP_MEMORY_HOST, locked);
	return got;
}

static void check_sum(struct arrays *all, double got, double sum, const char *what)
{
	if (fabs(got - sum) <= 1e-12 * sum)
		return;
	fprintf(stderr, "the sum of %s is %g, expected %g\n", what, got, sum);
	all->failures++;
}

static void check_squares(struct arrays *all)
{
	struct array x = array_random(all, 300001, false, 2),
		     ret = array_of(all, skep_cuda_norms_bytes() / 4, false, 0);
	double sum = 0;
	for (size_t i = 0; i < x.n; i++)
		sum += x.host[i] * x.host[i];
	skep_cuda_squares(all->queue, x.n, floats_of(&x), ret.device);
	check_sum(all, first_of(all, &ret), sum, "squares");
}

static void check_products_of_sums(struct arrays *all)
{
	struct array a = array_random(all, 300001, false, 2), b = array_random(all, a.n, false, 2),
		     ret = array_of(all, skep_cuda_norms_bytes() / 4, false, 0),
		     none = array_of(all, 301, false, (double)NAN), ones = array_of(all, 301, false, 1);
	for (int above = 0; above < 2; above++) {
		double sum = 0;
		for (size_t i = 0; i < a.n; i++)
			sum += fmax((above ? 1 : -1) * a.host[i] * b.host[i], 0);
		skep_cuda_products(all->queue, a.n, floats_of(&a), floats_of(&b), above, ret.device);
		check_sum(all, first_of(all, &ret), sum, above ? "products above 0" : "products below 0");
		skep_cuda_products(all->queue, ones.n, floats_of(&ones), floats_of(&none), above, ret.device);
		all->failures += !isnan(first_of(all, &ret));
	}
}

/* A bit, or two numbers that have changed places. */
static void check_bits(struct arrays *all)
{
	struct array x = array_random(all, 300001, false, 2),
		     ret = array_of(all, skep_cuda_norms_bytes() / 4, false, 0);
	for (int way = 0; way < 3; way++) {
		uint64_t want = 0, got;
		if (way == 1)
			x.host[299999] = nextafterf((float)x.host[299999], 9);
		if (way == 2)
			x.host[3] = x.host[4];
		x = array_copy(all, &x);
		for (size_t i = 0; i < x.n; i++) {
			const float number = (float)x.host[i];
			uint32_t bits;
			memcpy(&bits, &number, sizeof bits);
			want += skep_mix((uint64_t)i << 32 | bits);
		}
		skep_cuda_sum_bits(all->queue, x.n, floats_of(&x), ret.device);
		const double first = first_of(all, &ret);
		memcpy(&got, &first, sizeof got);
		all->failures += got != want;
	}
}

/* ---- all -------------------------------------------------------------------------------------------------------------- */

static unsigned run(struct skep_cuda_queue *queue, const char *name, void (*check)(struct arrays *))
{
	struct arrays all;
	uint64_t hash[2];
	unsigned failures = 0;
	for (int way = 0; way < 2; way++) {
		if (emulate_backwards)
			emulate_backwards(way == 1);
		arrays_begin(&all, queue, 5);
		float *partial =
			skep_cuda_take(queue, SKEP_MEMORY_DEVICE, sizeof(float) * skep_cuda_partial_floats(1024));
		skep_cuda_queue_set_partial(queue, partial, skep_cuda_partial_floats(1024));
		check(&all);
		arrays_end(&all);
		skep_cuda_give(queue, SKEP_MEMORY_DEVICE, partial);
		hash[way] = all.hash;
		failures += all.failures;
	}
	if (hash[0] != hash[1]) {
		fprintf(stderr, "%s: another run gives other bits\n", name);
		failures++;
	}
	printf("%s %s\n", failures ? "not ok" : "ok", name);
	fflush(stdout);
	return failures;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*check)(struct arrays *);
	} checks[] = {{"norm", check_norm}, {"norm in fp32", check_norm_wide}, {"sums over many rows", check_many_rows},
		{"feed", check_feed}, {"feed in fp32", check_wide}, {"products", check_products},
		{"products with nothing fused", check_products_apart}, {"attention", check_attention},
		{"attention with shared keys", check_attention_shared},
		{"attention with wide heads", check_attention_wide}, {"attention of odd shapes", check_attention_odd},
		{"rotation", check_rotation}, {"embedding", check_embedding}, {"cross-entropy", check_surprise},
		{"steps", check_steps}, {"steps by turns", check_steps_by_turns}, {"following", check_following},
		{"gathered parts", check_robust}, {"lies", check_lies}, {"squares", check_squares},
		{"gradient of a tied table", check_blend}, {"products of two sums", check_products_of_sums},
		{"bits", check_bits}, {"codecs", check_codecs}, {"codecs with other blocks", check_codec_blocks}};
	struct skep_diag error;
	unsigned failures = 0;
	if (skep_cuda_count(fresh(&error)) == 0) {
		fprintf(stderr, "%s\n", error.message);
		return 77; /* skipped, for meson */
	}
	struct skep_cuda_queue *queue = skep_cuda_queue_create(0, true, fresh(&error));
	if (!queue) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
		failures += run(queue, checks[i].name, checks[i].check);
	skep_cuda_queue_destroy(queue);
	return failures > 0;
}
