/* SPDX-License-Identifier: Apache-2.0
 *
 * test_scale.c - how many machines a run asks for, against sums by hand. A machine alone takes 110 ms for a microbatch, of which
 * 100 ms shrink with machines: with n of them t = 100 / n + 10 ms.
 */
#include "core/scale/scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define S (1000 * MS)

enum { SPEED = 1000, MANY = 64 };

struct swarm {
	struct skep_scale_kind kind[3];
	struct skep_scale scale;
	struct skep_scale_state state;
	struct skep_scale_now now;
};

static void begin(struct swarm *w, enum skep_scale_policy policy, uint32_t start)
{
	*w = (struct swarm){.kind = {{.workers = MANY, .speed = SPEED, .start = start}}};
	w->scale = (struct skep_scale){.policy = policy,
		.kinds = 1,
		.kind = w->kind,
		.min = 1,
		.max = MANY,
		.period_ns = S,
		.cool_down_ns = 10 * S,
		.margin_ppm = 100000,
		.share_ppm = 480000};
	w->now.there[0] = start;
	w->now.price[0] = 360000;
	skep_scale_init(&w->state, &w->scale, 0, start * SPEED);
	w->state.begun = true; /* the first round of a run is another matter */
}

/* Rounds of ten microbatches with so many machines; the first one is of other ones too, and says nothing. */
static void measure(struct swarm *w, uint32_t machines, uint32_t rounds)
{
	for (uint32_t i = 0; i <= rounds; i++) {
		w->now.now_ns += 10 * (100 * MS / machines + 10 * MS);
		skep_scale_measure(&w->state, w->now.now_ns, machines * SPEED, 10);
	}
}

static bool decide(struct swarm *w)
{
	return skep_scale_decide(&w->state, &w->scale, &w->now);
}

/* Whatever the memory held before. */
static void test_begins_with_nothing(void **unused)
{
	struct swarm w;
	(void)unused;
	begin(&w, SKEP_SCALE_PRICE, 2);
	struct skep_scale_state clean = {0}, used;
	memset(&used, 0xa5, sizeof used);
	skep_scale_init(&clean, &w.scale, 7 * S, 2 * SPEED);
	skep_scale_init(&used, &w.scale, 7 * S, 2 * SPEED);
	assert_memory_equal(&used, &clean, sizeof used);
	assert_int_equal(used.points, 0);
	assert_false(used.begun);
}

static void near(double is, double should)
{
	assert_true(fabs(is - should) <= 1e-6 * fabs(should));
}

static void test_one_size_is_a_line(void **unused)
{
	struct swarm w;
	(void)unused;
	begin(&w, SKEP_SCALE_PRICE, 2);
	measure(&w, 2, 3);
	struct skep_scale_curve curve = skep_scale_fit(&w.state);
	near(curve.shared_ns, 2 * SPEED * 60.0 * MS);
	assert_true(curve.fixed_ns == 0);
	near(skep_scale_rate(&curve, 4 * SPEED), 1 / (30.0 * MS));
}

static void test_two_sizes_are_a_curve(void **unused)
{
	struct swarm w;
	(void)unused;
	begin(&w, SKEP_SCALE_PRICE, 2);
	measure(&w, 2, 3);
	measure(&w, 5, 3);
	struct skep_scale_curve curve = skep_scale_fit(&w.state);
	near(curve.shared_ns, SPEED * 100.0 * MS);
	near(curve.fixed_ns, 10.0 * MS);
	near(skep_scale_rate(&curve, 10 * SPEED), 1 / (20.0 * MS));
	assert_true(skep_scale_rate(&curve, 0) == 0);
}

/* Slower with more machines: no machine helps, so the rate is the mean. A perfect line: nothing is fixed. */
static void test_neither_part_is_negative(void **unused)
{
	struct swarm w;
	(void)unused;
	begin(&w, SKEP_SCALE_PRICE, 1);
	skep_scale_measure(&w.state, 10 * S, SPEED, 10);
	skep_scale_measure(&w.state, 20 * S, 2 * SPEED, 10);
	skep_scale_measure(&w.state, 40 * S, 2 * SPEED, 10);
	struct skep_scale_curve curve = skep_scale_fit(&w.state);
	assert_true(curve.shared_ns == 0);
	near(curve.fixed_ns, 1.2 * S); /* least squares of b / t - 1 over 1 s and 2 s: b = (1 + 1/2) / (1 + 1/4) */
	begin(&w, SKEP_SCALE_PRICE, 1);
	skep_scale_measure(&w.state, 100 * S, SPEED, 10);
	skep_scale_measure(&w.state, 110 * S, 2 * SPEED, 10);
	skep_scale_measure(&w.state, 150 * S, 2 * SPEED, 10);
	curve = skep_scale_fit(&w.state);
	assert_true(curve.fixed_ns == 0 && curve.shared_ns > 0);
}

static void test_rounds_with_changes_are_left_out(void **unused)
{
	struct swarm w;
	(void)unused;
	begin(&w, SKEP_SCALE_PRICE, 1);
	w.state.begun = false;
	skep_scale_measure(&w.state, 0, SPEED, 10);
	skep_scale_measure(&w.state, 1, SPEED, 10);
	assert_int_equal(w.state.points, 1); /* of the second round */
	begin(&w, SKEP_SCALE_PRICE, 1);
	skep_scale_measure(&w.state, S, 2 * SPEED, 10);
	skep_scale_measure(&w.state, 2 * S, 3 * SPEED, 10);
	assert_int_equal(w.state.points, 0);
	skep_scale_measure(&w.state, 3 * S, 4 * SPEED, 10); /* three in a row: the mean of 3 and 4 */
	assert_int_equal(w.state.points, 1);
	assert_int_equal(w.state.point[0].speed, 7 * SPEED / 2);
	w.now.now_ns = 3 * S;
	for (uint32_t i = 0; i < 40; i++) /* more sizes than are kept */
		measure(&w, 2 + i, 1);
	assert_int_equal(w.state.points, SKEP_SCALE_POINTS);
}

/* 10,000 microbatches in 400 s are 40 ms each. With the margin t <= 40 / 1.1, so n >= 100 / 26.36 = 3.8; with twice the margin
 * t <= 40 / 1.2, so n >= 100 / 23.33 = 4.3. */
static void test_deadline(void **unused)
{
	static const uint32_t from[] = {2, 3, 4, 5, 6, 8}, to[] = {4, 4, 4, 5, 5, 5};
	(void)unused;
	for (uint32_t i = 0; i < sizeof from / sizeof from[0]; i++) {
		struct swarm w;
		begin(&w, SKEP_SCALE_DEADLINE, from[i]);
		measure(&w, 4, 30);
		measure(&w, from[i] == 4 ? 8 : from[i], 30);
		w.scale.deadline_ns = w.now.now_ns + 400 * S;
		w.now.left = 10000;
		assert_int_equal(decide(&w), from[i] != to[i]);
		assert_int_equal(w.state.wanted[0], to[i]);
	}
}

/* What cannot be done in time, and what is late, gets all that there may be; but no more than twice what was measured. */
static void test_too_late(void **unused)
{
	struct swarm w;
	(void)unused;
	for (uint32_t late = 0; late < 2; late++) {
		begin(&w, SKEP_SCALE_DEADLINE, 4);
		measure(&w, 4, 30);
		w.scale.deadline_ns = late ? 1 : w.now.now_ns + S;
		w.now.left = 10000;
		assert_true(decide(&w));
		assert_int_equal(w.state.wanted[0], 8);
		measure(&w, 8, 30);
		w.scale.max = 10;
		w.now.there[0] = 8;
		assert_true(decide(&w));
		assert_int_equal(w.state.wanted[0], 10);
	}
}

/* Machine n brings 100 / (100 + 10 n) of the mean of those before: at least 0.48 where n <= 10.8, and nine tenths of that where
 * n <= 13.1. */
static void test_price(void **unused)
{
	static const uint32_t from[] = {6, 9, 10, 13, 14, 20}, to[] = {10, 10, 10, 13, 13, 13};
	(void)unused;
	for (uint32_t i = 0; i < sizeof from / sizeof from[0]; i++) {
		struct swarm w;
		begin(&w, SKEP_SCALE_PRICE, from[i]);
		measure(&w, 3, 20);
		measure(&w, from[i], 20);
		assert_int_equal(decide(&w), from[i] != to[i]);
		assert_int_equal(w.state.wanted[0], to[i]);
	}
}

static void test_budget(void **unused)
{
	struct swarm w;
	(void)unused;
	begin(&w, SKEP_SCALE_PRICE, 6);
	measure(&w, 3, 20);
	measure(&w, 6, 20);
	w.scale.budget_microusd_per_h = 8 * 360000;
	assert_true(decide(&w));
	assert_int_equal(w.state.wanted[0], 8);
	w.now.now_ns += S;
	w.now.there[0] = 8;
	w.now.price[0] = 720000; /* no cool-down where the budget is exceeded */
	assert_true(decide(&w));
	assert_int_equal(w.state.wanted[0], 4);
	w.now.now_ns += 20 * S;
	w.now.there[0] = 4;
	w.scale.machine_microusd_per_h = 700000;
	w.scale.min = 2;
	assert_true(decide(&w));
	assert_int_equal(w.state.wanted[0], 2); /* too dear beyond `min` */
}

static void test_time(void **unused)
{
	struct swarm w;
	(void)unused;
	begin(&w, SKEP_SCALE_PRICE, 6);
	assert_false(decide(&w)); /* nothing is known */
	measure(&w, 3, 20);
	measure(&w, 6, 20);
	assert_true(decide(&w));
	w.scale.max = 4;
	w.now.there[0] = 10;
	w.now.now_ns += S - 1;
	assert_false(decide(&w)); /* within a period */
	w.now.now_ns += 9 * S;
	assert_false(decide(&w)); /* within the cool-down */
	w.now.now_ns += S;
	assert_true(decide(&w));
	assert_int_equal(w.state.wanted[0], 4);
}

/* Three kinds: speeds 1, 2, 1 for 0.36, 0.54, 0.30 USD/h: by price for speed the second, the third, the first. */
static void kinds(struct swarm *w)
{
	begin(w, SKEP_SCALE_DEADLINE, 2);
	w->scale.kinds = 3;
	w->kind[1] = (struct skep_scale_kind){.workers = 2, .speed = 2 * SPEED};
	w->kind[2] = (struct skep_scale_kind){.workers = 3, .speed = SPEED};
	w->now.price[1] = 540000;
	w->now.price[2] = 300000;
	skep_scale_init(&w->state, &w->scale, 0, 2 * SPEED);
	measure(w, 2, 30);
	w->scale.deadline_ns = 1; /* all that may be had: twice the size */
}

static void test_cheapest_first(void **unused)
{
	struct swarm w;
	(void)unused;
	kinds(&w);
	assert_true(decide(&w));
	assert_int_equal(w.state.wanted[0], 0);
	assert_int_equal(w.state.wanted[1], 2);
	assert_int_equal(w.state.wanted[2], 0);
}

/* Of the second kind one comes in a cool-down, so two of the third are asked for in place of the other, and it stays asked
 * for. */
static void test_short(void **unused)
{
	struct swarm w;
	(void)unused;
	kinds(&w);
	assert_true(decide(&w));
	w.now.there[1] = 1;
	w.now.now_ns += 5 * S;
	assert_false(decide(&w));
	w.now.now_ns += 9 * S;
	assert_false(decide(&w)); /* its last machine came 9 s ago */
	w.now.now_ns += S;
	assert_true(decide(&w));
	assert_int_equal(w.state.wanted[0], 0);
	assert_int_equal(w.state.wanted[1], 2);
	assert_int_equal(w.state.wanted[2], 2);
	w.now.there[1] = 2; /* it has come after all: the two are too many, in time */
	w.now.there[2] = 2;
	w.now.now_ns += S;
	assert_false(decide(&w));
	w.now.now_ns += 10 * S;
	assert_true(decide(&w));
	assert_int_equal(w.state.wanted[1], 2);
	assert_int_equal(w.state.wanted[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begins_with_nothing),
		cmocka_unit_test(test_one_size_is_a_line),
		cmocka_unit_test(test_two_sizes_are_a_curve),
		cmocka_unit_test(test_neither_part_is_negative),
		cmocka_unit_test(test_rounds_with_changes_are_left_out),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_price),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_cheapest_first),
		cmocka_unit_test(test_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
