/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mixture.c - mixtures of experts against a referee that goes through one token after the other with plain loops, scores and
 * all, and knows nothing of rows that are gathered: outputs, tokens that are dropped, both losses; gradients against finite
 * differences of what the referee says. Built in double precision, as test_layers is.
 */
#include <assert.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "models/layers/mixture.h"

#define STEP 1e-5
#define TOLERANCE 1e-7 /* of the largest gradient */

static_assert(sizeof(skep_real) == sizeof(double), "built in double precision");

enum { TOKENS = 23, HIDDEN = 6, FEED = 5, COUNT_MAX = 7, CHOICES_MAX = 3 };

struct fixture {
	struct skep_experts experts;
	struct skep_mixture mixture;
	double x[TOKENS * HIDDEN], residual[TOKENS * HIDDEN], direction[TOKENS * HIDDEN], out[TOKENS * HIDDEN];
	double router[HIDDEN * COUNT_MAX], up[COUNT_MAX * HIDDEN * 2 * FEED], down[COUNT_MAX * FEED * HIDDEN];
	double kept[4096], work[16384];
	uint32_t dropped; /* by the referee, in its last pass */
};

static void fill(size_t n, double *a, uint64_t seed, double size)
{
	for (size_t i = 0; i < n; i++)
		a[i] = size * ((double)skep_random_below(&seed, 2000001) / 1e6 - 1);
}

static void init(struct fixture *f, struct skep_experts experts)
{
	*f = (struct fixture){.experts = experts};
	fill(TOKENS * HIDDEN, f->x, 1, 1);
	fill(TOKENS * HIDDEN, f->residual, 2, 1);
	fill(TOKENS * HIDDEN, f->direction, 3, 1);
	fill(HIDDEN * experts.count, f->router, 4, 1);
	fill(experts.count * HIDDEN * 2 * FEED, f->up, 5, 0.9);
	fill(experts.count * FEED * HIDDEN, f->down, 6, 0.9);
	fill(sizeof f->kept / sizeof f->kept[0], f->kept, 7, 1);
	fill(sizeof f->work / sizeof f->work[0], f->work, 8, 1);
	f->mixture = (struct skep_mixture){.experts = &f->experts,
		.tokens = TOKENS,
		.hidden = HIDDEN,
		.feed = FEED,
		.router = f->router,
		.up = f->up,
		.down = f->down,
		.kept = f->kept,
		.work = f->work};
	assert_true(TOKENS * skep_mixture_kept(&experts, FEED) <= sizeof f->kept / sizeof f->kept[0]);
	assert_true(skep_mixture_work(&experts, TOKENS, HIDDEN, FEED) <= sizeof f->work / sizeof f->work[0]);
}

/* ---- the referee ------------------------------------------------------------------------------------------------- */

/* sum[HIDDEN] += weight E(x). */
static void add_expert(const struct fixture *f, uint32_t expert, const double *x, double weight, double *sum)
{
	const double *up = f->up + expert * HIDDEN * 2 * FEED, *down = f->down + expert * FEED * HIDDEN;
	for (uint32_t n = 0; n < FEED; n++) {
		double gate = 0, value = 0;
		for (uint32_t i = 0; i < HIDDEN; i++) {
			gate += x[i] * up[i * 2 * FEED + n];
			value += x[i] * up[i * 2 * FEED + FEED + n];
		}
		for (uint32_t o = 0; o < HIDDEN; o++)
			sum[o] += weight * gate / (1 + exp(-gate)) * value * down[n * HIDDEN + o];
	}
}

struct routed {
	double p[TOKENS][COUNT_MAX], sum[TOKENS];
	uint32_t choice[TOKENS][CHOICES_MAX];
};

static void route(const struct fixture *f, struct routed *ret)
{
	uint32_t count = f->experts.count;
	for (uint32_t t = 0; t < TOKENS; t++) {
		bool taken[COUNT_MAX] = {false};
		ret->sum[t] = 0;
		for (uint32_t e = 0; e < count; e++) {
			double score = 0;
			for (uint32_t i = 0; i < HIDDEN; i++)
				score += f->x[t * HIDDEN + i] * f->router[i * count + e];
			ret->p[t][e] = exp(score);
			ret->sum[t] += ret->p[t][e];
		}
		for (uint32_t e = 0; e < count; e++)
			ret->p[t][e] /= ret->sum[t];
		for (uint32_t j = 0; j < f->experts.per_token; j++) {
			uint32_t best = count;
			for (uint32_t e = 0; e < count; e++)
				if (!taken[e] && (best == count || ret->p[t][e] > ret->p[t][best]))
					best = e;
			taken[best] = true;
			ret->choice[t][j] = best;
		}
	}
}

/* aux_loss E sum f P + z_loss mean (log sum exp)^2 */
static double losses(const struct fixture *f, const struct routed *r)
{
	double balance = 0, z = 0;
	for (uint32_t e = 0; e < f->experts.count; e++) {
		double chosen = 0, mean = 0;
		for (uint32_t t = 0; t < TOKENS; t++) {
			for (uint32_t j = 0; j < f->experts.per_token; j++)
				chosen += r->choice[t][j] == e;
			mean += r->p[t][e];
		}
		balance += chosen / TOKENS * mean / TOKENS;
	}
	for (uint32_t t = 0; t < TOKENS; t++)
		z += log(r->sum[t]) * log(r->sum[t]) / TOKENS;
	return f->experts.aux_loss * f->experts.count * balance + f->experts.z_loss * z;
}

/* Fills `out`; returns direction . out + the losses. */
static double referee(struct fixture *f, double out[TOKENS * HIDDEN])
{
	struct routed r;
	uint32_t taken[COUNT_MAX] = {0};
	double limit = f->experts.capacity_factor > 0
	                       ? ceil(f->experts.capacity_factor * TOKENS * f->experts.per_token / f->experts.count)
	                       : TOKENS;
	route(f, &r);
	memcpy(out, f->residual, TOKENS * HIDDEN * sizeof *out);
	f->dropped = 0;
	for (uint32_t j = 0; j < f->experts.per_token; j++)
		for (uint32_t t = 0; t < TOKENS; t++) {
			double of = 0;
			for (uint32_t i = 0; i < f->experts.per_token; i++)
				of += r.p[t][r.choice[t][i]];
			if (taken[r.choice[t][j]] >= limit) {
				f->dropped++;
				continue;
			}
			taken[r.choice[t][j]]++;
			add_expert(f, r.choice[t][j], f->x + t * HIDDEN,
				r.p[t][r.choice[t][j]] / (f->experts.renormalized ? of : 1), out + t * HIDDEN);
		}
	double sum = losses(f, &r);
	for (uint32_t i = 0; i < TOKENS * HIDDEN; i++)
		sum += f->direction[i] * out[i];
	return sum;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static void compare(struct fixture *f, const char *what, size_t n, double *at, const double *gradient, double already)
{
	double expected[COUNT_MAX * HIDDEN * 2 * FEED], out[TOKENS * HIDDEN], scale = 0;
	assert_true(n <= sizeof expected / sizeof expected[0]);
	for (size_t i = 0; i < n; i++) {
		double was = at[i];
		at[i] = was + STEP;
		double above = referee(f, out);
		at[i] = was - STEP;
		expected[i] = (above - referee(f, out)) / (2 * STEP) + already;
		at[i] = was;
		scale = fmax(scale, fabs(expected[i]));
	}
	for (size_t i = 0; i < n; i++)
		if (!(fabs(gradient[i] - expected[i]) < TOLERANCE * scale + 1e-9))
			fail_msg("%u experts, %u per token: %s %zu: %.10g, not %.10g", f->experts.count,
				f->experts.per_token, what, i, gradient[i], expected[i]);
}

/* What a forward pass tells of the tokens: all choices, the dropped ones, the most of an expert, and the balance by itself. */
static void check_use(struct fixture *f, const struct skep_expert_use *use)
{
	struct routed r;
	uint32_t chosen[COUNT_MAX] = {0}, most = 0;
	const struct skep_experts asked = f->experts;
	route(f, &r);
	for (uint32_t t = 0; t < TOKENS; t++)
		for (uint32_t j = 0; j < asked.per_token; j++)
			chosen[r.choice[t][j]]++;
	for (uint32_t e = 0; e < asked.count; e++)
		most = chosen[e] > most ? chosen[e] : most;
	f->experts.aux_loss = 1, f->experts.z_loss = 0;
	double balance = losses(f, &r);
	f->experts = asked;
	assert_true(use->passes == 1 && use->choices == (uint64_t)TOKENS * asked.per_token);
	assert_true(use->dropped == f->dropped && use->fullest == (uint64_t)most * asked.count);
	assert_true(fabs(1e-9 * (double)use->balance_nano - balance) < 1e-8);
}

static void check(struct skep_experts experts, bool drops)
{
	static struct fixture f;
	static double at_router[HIDDEN * COUNT_MAX], at_up[COUNT_MAX * HIDDEN * 2 * FEED],
		at_down[COUNT_MAX * FEED * HIDDEN];
	double out[TOKENS * HIDDEN], at_x[TOKENS * HIDDEN], uncounted[TOKENS * HIDDEN];
	init(&f, experts);
	referee(&f, out);
	assert_int_equal(f.dropped > 0, drops);
	struct skep_expert_use use = {0};
	f.mixture.use = &use;
	skep_mixture_forward(&f.mixture, f.x, f.residual, f.out);
	check_use(&f, &use);
	for (uint32_t i = 0; i < TOKENS * HIDDEN; i++)
		assert_true(fabs(f.out[i] - out[i]) < 1e-12);
	skep_mixture_backward(&f.mixture, NULL, f.direction, uncounted);
	for (size_t i = 0; i < sizeof at_up / sizeof at_up[0]; i++)
		at_up[i] = 0.25;
	memcpy(at_router, at_up, sizeof at_router);
	memcpy(at_down, at_up, sizeof at_down);
	f.mixture.router_gradient = at_router, f.mixture.up_gradient = at_up, f.mixture.down_gradient = at_down;
	memcpy(at_x, f.x, sizeof at_x);
	skep_mixture_backward(&f.mixture, at_x, f.direction, at_x);
	assert_memory_equal(at_x, uncounted, sizeof at_x);
	compare(&f, "x", TOKENS * HIDDEN, f.x, at_x, 0);
	compare(&f, "router", HIDDEN * experts.count, f.router, at_router, 0.25);
	compare(&f, "up", experts.count * HIDDEN * 2 * FEED, f.up, at_up, 0.25);
	compare(&f, "down", experts.count * FEED * HIDDEN, f.down, at_down, 0.25);
}

static void test_switch(void **state)
{
	(void)state;
	check((struct skep_experts){.count = 5, .per_token = 1}, false);
	check((struct skep_experts){5, 1, false, .aux_loss = 0.3}, false);
	check((struct skep_experts){5, 1, false, .capacity_factor = 0.7, .aux_loss = 0.3, .z_loss = 0.1}, true);
}

static void test_several_per_token(void **state)
{
	(void)state;
	check((struct skep_experts){7, 2, .renormalized = true}, false);
	check((struct skep_experts){.count = 7, .per_token = 3}, false);
	check((struct skep_experts){7, 2, true, .capacity_factor = 0.5, .aux_loss = 0.2, .z_loss = 0.4}, true);
	check((struct skep_experts){7, 3, false, .capacity_factor = 1, .aux_loss = 0.2, .z_loss = 0.4}, true);
}

/* One expert, whose weight is 1; all of them; and one that no token chooses, since it has no room. */
static void test_edges(void **state)
{
	(void)state;
	check((struct skep_experts){1, 1, .z_loss = 0.1}, false);
	check((struct skep_experts){3, 3, .renormalized = true}, false);
	check((struct skep_experts){7, 1, false, .capacity_factor = 0.01}, true);
}

/* By hand: 2 experts per token of 8, 100 tokens, 25 each if even. */
static void test_capacity(void **state)
{
	(void)state;
	struct skep_experts e = {.count = 8, .per_token = 2};
	assert_int_equal(skep_mixture_capacity(&e, 100), 100);
	e.capacity_factor = 1;
	assert_int_equal(skep_mixture_capacity(&e, 100), 25);
	e.capacity_factor = 1.25;
	assert_int_equal(skep_mixture_capacity(&e, 100), 32);
	assert_int_equal(skep_mixture_capacity(&e, 3), 1);
	e.capacity_factor = 1e6;
	assert_int_equal(skep_mixture_capacity(&e, 100), 100);
}

/* Equal probabilities go to the experts of the least numbers, and what is no number goes somewhere. */
static void test_ties(void **state)
{
	(void)state;
	static struct fixture f;
	init(&f, (struct skep_experts){7, 2, .renormalized = true, .capacity_factor = 1});
	double out[TOKENS * HIDDEN];
	memset(f.router, 0, sizeof f.router);
	referee(&f, out);
	skep_mixture_forward(&f.mixture, f.x, f.residual, f.out);
	for (uint32_t i = 0; i < TOKENS * HIDDEN; i++)
		assert_true(fabs(f.out[i] - out[i]) < 1e-12);
	f.router[3] = NAN;
	skep_mixture_forward(&f.mixture, f.x, f.residual, f.out);
	assert_true(isnan(f.out[0]));
	skep_mixture_backward(&f.mixture, NULL, f.direction, out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_several_per_token),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_ties),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
