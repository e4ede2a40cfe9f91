/* SPDX-License-Identifier: Apache-2.0
 *
 * test_calibrate.c - what is made of samples whose law is known: medians and lines against closed forms, and links against
 * messages that were put on them by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/calibrate/links.h"
#include "core/random.h"
#include "topologies/import/writer.h"

static double uniform(uint64_t *seed)
{
	return (double)(skep_random_next(seed) >> 11) / 9007199254740992.0;
}

static void assert_near(double is, double should, double part)
{
	if (!(fabs(is - should) <= part * fabs(should)))
		fail_msg("%g is not near %g", is, should);
}

/* ---- medians ----------------------------------------------------------------------------------------------------- */

/* Ranks by hand from the binomial law: of 6 samples the first and the last (2 / 64 = 0.031 outside), of 9 the 2nd and the 8th
 * (2 * 10 / 512 = 0.039), of 20 the 6th and the 15th (2 * 21700 / 2^20 = 0.041). */
static void median_has_the_sign_test_s_interval(void **state)
{
	static const struct {
		uint32_t count;
		double value, low, high;
	} want[] = {{1, 1, 1, 1}, {3, 2, 1, 3}, {5, 3, 1, 5}, {6, 3.5, 1, 6}, {9, 5, 2, 8}, {20, 10.5, 6, 15}};
	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		double sample[20];
		for (uint32_t k = 0; k < want[i].count; k++)
			sample[k] = (k * 7) % want[i].count + 1; /* 1 .. count, mixed; 7 divides none of the counts */
		struct skep_ranked r = skep_ranked_median(sample, want[i].count);
		assert_int_equal(r.samples, want[i].count);
		assert_near(r.value, want[i].value, 1e-12);
		assert_near(r.low, want[i].low, 1e-12);
		assert_near(r.high, want[i].high, 1e-12);
	}
	assert_true(isnan(skep_ranked_median(NULL, 0).value));
}

/* In 2,000 draws of 25 samples the interval misses the true median in no more than 5 %, and deviations are those of the law. */
static void median_interval_covers(void **state)
{
	uint64_t seed = 7;
	int missed = 0;
	double sum = 0;
	(void)state;
	for (int draw = 0; draw < 2000; draw++) {
		double sample[25], deviation[25];
		for (int i = 0; i < 25; i++)
			sample[i] = deviation[i] = -log(1 - uniform(&seed)); /* median ln 2 */
		struct skep_ranked r = skep_ranked_median(sample, 25);
		missed += r.low > log(2) || r.high < log(2);
		sum += skep_ranked_deviation(deviation, 25);
	}
	assert_true(missed <= 110);
	assert_true(missed >= 40);             /* 4.3 % are expected: an interval that never misses is too wide */
	assert_near(sum / 2000, 0.7127, 0.05); /* 1.4826 times 0.4807, the median deviation of this law */
}

/* Samples exp(s z): what is written of their median, from its interval, is how far the median is off in fact; over
 * 3,000 draws of 25. */
static void deviation_is_that_of_the_median(void **state)
{
	uint64_t seed = 11;
	double squares = 0, said = 0;
	(void)state;
	for (int draw = 0; draw < 3000; draw++) {
		double sample[25];
		for (int i = 0; i < 25; i++)
			sample[i] = 3 * exp(0.2 * sqrt(-2 * log(1 - uniform(&seed))) *
						cos(6.283185307179586 * uniform(&seed)));
		struct skep_ranked r = skep_ranked_median(sample, 25);
		squares += pow(log(r.value / 3), 2) / 3000;
		said += skep_deviation_of_interval(r.low, r.high, SKEP_NORMAL_95) / 3000;
	}
	assert_near(sqrt(squares), 0.2 * 1.2533 / 5, 0.06); /* of a median the root of pi / 2n */
	assert_near(said, sqrt(squares), 0.12); /* ranks are whole, so the interval has somewhat more than 95 % */
	assert_near(skep_deviation_of_interval(1 / 1.1, 1.1, SKEP_NORMAL_99), log(1.1) / 2.5758293, 1e-6);
	assert_true(skep_deviation_of_interval(0, 1, SKEP_NORMAL_95) == 0 && skep_deviation_of_interval(1, 1, 1) == 0);
	assert_true(skep_deviation_of_interval(1e-9, 1, SKEP_NORMAL_95) == 1);
}

/* By hand: of weights 1, 1, 1, 1 and 4 the half, 4, is reached by the fourth sample, and 4 give or take 1.96 * sqrt(20) / 2
 * by the first one and only by the last. Equal weights have the ranks of the normal law: 50 give or take 9.8 of a hundred. */
static void weights_move_the_median(void **state)
{
	double sample[] = {50, 10, 30, 20, 40}, weight[] = {4, 1, 1, 1, 1}, hundred[100], one[100];
	(void)state;
	struct skep_ranked r = skep_ranked_weighted_median(sample, weight, 5);
	assert_int_equal(r.samples, 5);
	assert_near(r.value, 40, 1e-12);
	assert_near(r.low, 10, 1e-12);
	assert_near(r.high, 50, 1e-12);
	for (int i = 0; i < 100; i++)
		hundred[i] = (i * 7) % 100 + 1, one[i] = 1;
	r = skep_ranked_weighted_median(hundred, one, 100);
	assert_near(r.value, 50, 1e-12);
	assert_near(r.low, 41, 1e-12);
	assert_near(r.high, 60, 1e-12);
	assert_int_equal(skep_ranked_weighted_median(NULL, NULL, 0).samples, 0);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void line_is_exact_without_noise(void **state)
{
	struct skep_ranked_point point[40];
	struct skep_ranked_line line;
	(void)state;
	for (int i = 0; i < 40; i++)
		point[i] = (struct skep_ranked_point){1000.0 * (1 + i % 4), 0.5 + 1000.0 * (1 + i % 4) * 2e-6};
	assert_true(skep_ranked_line(point, 40, &line));
	assert_int_equal(line.sizes, 4);
	assert_near(line.slope.value, 2e-6, 1e-9);
	assert_near(line.slope.low, 2e-6, 1e-9);
	assert_near(line.slope.high, 2e-6, 1e-9);
	assert_near(line.intercept.value, 0.5, 1e-9);
}

/* A quarter of the points is late by up to a second. */
static void line_bears_late_points(void **state)
{
	struct skep_ranked_point point[200];
	struct skep_ranked_line line;
	uint64_t seed = 3;
	(void)state;
	for (int i = 0; i < 200; i++) {
		double x = 96 + 1e6 * (double)(i % 5), late = i % 4 == 1 ? uniform(&seed) : 0;
		point[i] = (struct skep_ranked_point){x, 0.01 + 1e-7 * x + 1e-4 * uniform(&seed) + late};
	}
	assert_true(skep_ranked_line(point, 200, &line));
	assert_near(line.slope.value, 1e-7, 0.02);
	assert_true(line.slope.low <= 1e-7 && line.slope.high >= 1e-7);
	assert_near(line.intercept.value, 0.01, 0.02);
}

/* y = 1 + 2 x and uniform noise, sizes far from 0 too: how often the truth is in the two intervals. */
static void intervals_of_a_line_hold(void **state)
{
	(void)state;
	enum { TRIES = 400, POINTS = 40 };
	static const double from[] = {0, 1, 4};
	for (size_t f = 0; f < sizeof from / sizeof from[0]; f++) {
		struct skep_ranked_point point[POINTS];
		struct skep_ranked_line line;
		uint32_t slopes = 0, intercepts = 0;
		uint64_t seed = 11;
		for (int try = 0; try < TRIES; try++) {
			for (int i = 0; i < POINTS; i++) {
				double x = from[f] + i % 8 / 7.0;
				point[i] = (struct skep_ranked_point){x, 1 + 2 * x + uniform(&seed) - 0.5};
			}
			assert_true(skep_ranked_line(point, POINTS, &line));
			slopes += line.slope.low <= 2 && line.slope.high >= 2;
			intercepts += line.intercept.low <= 1 && line.intercept.high >= 1;
			assert_true(line.intercept.low <= line.intercept.value);
			assert_true(line.intercept.high >= line.intercept.value);
		}
		if (slopes < 0.93 * TRIES || intercepts < 0.95 * TRIES)
			fail_msg("from %g: %u and %u of %d", from[f], slopes, intercepts, TRIES);
	}
}

static void line_needs_two_sizes(void **state)
{
	struct skep_ranked_point point[10];
	struct skep_ranked_line line;
	(void)state;
	for (int i = 0; i < 10; i++)
		point[i] = (struct skep_ranked_point){1e6 + i, 2};
	assert_true(skep_ranked_line(point, 10, &line));
	assert_int_equal(line.sizes, 1);
	assert_int_equal(line.slope.samples, 0);
	assert_near(line.intercept.value, 2, 1e-12);
	assert_true(skep_ranked_line(point, 0, &line));
	assert_int_equal(line.intercept.samples, 0);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* Four machines at two places and the directory at the first; what the file says is wrong by a factor of two. */
#define LATENCY_S 0.01
#define BPS 1e6

struct cluster {
	struct skep_topology topology;
	struct skep_machine machine[5];
	struct skep_pair pair[4];
	struct skep_transfer transfer[2000];
	struct skep_samples samples;
	struct skep_link_figures link[4];
};

static void cluster_init(struct cluster *c, bool shared)
{
	*c = (struct cluster){0};
	for (int i = 0; i < 5; i++)
		c->machine[i] =
			(struct skep_machine){.place = i == 2 || i == 3, .up_Bps = INFINITY, .down_Bps = INFINITY};
	for (int i = 0; i < 4; i++)
		c->pair[i] =
			(struct skep_pair){2 * BPS, 2 * LATENCY_S, shared && i != 0 && i != 3 ? 2 * BPS : INFINITY};
	c->topology = (struct skep_topology){.machines = 4, .places = 2, .machine = c->machine, .pair = c->pair};
	c->samples.transfer = c->transfer;
}

static void put(struct cluster *c, uint32_t from, uint32_t to, uint64_t bytes, double sent_s, double received_s)
{
	assert_true(c->samples.transfers < sizeof c->transfer / sizeof c->transfer[0]);
	c->transfer[c->samples.transfers++] = (struct skep_transfer){from, to, bytes, sent_s, received_s};
}

static const struct skep_link_figures *fit(struct cluster *c, double extra_s)
{
	assert_true(skep_links_fit(&c->samples, &c->topology, extra_s, c->link));
	return &c->link[1];
}

/* Messages that find the line idle, of two sizes. */
static void lone_messages_tell_both(void **state)
{
	struct cluster c;
	(void)state;
	cluster_init(&c, false);
	for (int i = 0; i < 40; i++) {
		uint64_t bytes = i % 2 ? 50000 : 5000;
		put(&c, 0, 2, bytes, i, i + LATENCY_S + (double)bytes / BPS);
	}
	const struct skep_link_figures *link = fit(&c, 0);
	assert_near(link->latency.after.value, LATENCY_S, 1e-6);
	assert_near(link->bandwidth.after.value, BPS, 1e-6);
	assert_near(link->latency.before, 2 * LATENCY_S, 1e-12);
	assert_near(link->bandwidth.before, 2 * BPS, 1e-12);
	assert_int_equal(c.link[2].messages, 0);
	assert_string_equal(c.link[2].bandwidth.kept, "no message went over it");
}

/* Messages of one size that follow each other on their connection: i in a row take latency + i * size / rate. */
static void queues_tell_both(void **state)
{
	struct cluster c;
	const double each_s = 20000 / BPS;
	(void)state;
	cluster_init(&c, false);
	for (int burst = 0; burst < 60; burst++)
		for (int i = 0; i <= burst % 4; i++)
			put(&c, 0, 3, 20000, burst + 0.001 * i, burst + LATENCY_S + (i + 1) * each_s);
	const struct skep_link_figures *link = fit(&c, 0);
	assert_near(link->latency.after.value, LATENCY_S, 1e-6);
	assert_near(link->bandwidth.after.value, BPS, 1e-6);
}

/* A shared line: two machines send at once, and each gets half. */
static void shared_lines_are_one(void **state)
{
	struct cluster c;
	(void)state;
	cluster_init(&c, true);
	for (int i = 0; i < 60; i++) {
		bool both = i % 2;
		put(&c, 0, 2, 30000, i, i + LATENCY_S + (both ? 2 : 1) * 30000 / BPS);
		if (both)
			put(&c, 1, 3, 30000, i, i + LATENCY_S + 2 * 30000 / BPS);
	}
	const struct skep_link_figures *link = fit(&c, 0);
	assert_true(link->shared);
	assert_near(link->bandwidth.after.value, BPS, 1e-6);
	assert_near(link->latency.after.value, LATENCY_S, 1e-6);
}

/* The same where the line is not shared but the sender's own: those that met do not count, and the rest tells. */
static void crowded_messages_do_not_count(void **state)
{
	struct cluster c;
	(void)state;
	cluster_init(&c, false);
	c.machine[0].up_Bps = 2 * BPS;
	for (int i = 0; i < 60; i++) {
		uint64_t bytes = i % 4 < 2 ? 30000 : 10000;
		double factor = i % 2 ? 2 : 1;
		put(&c, 0, 2, bytes, i, i + LATENCY_S + factor * (double)bytes / BPS);
		if (i % 2)
			put(&c, 0, 3, bytes, i, i + LATENCY_S + factor * (double)bytes / BPS);
	}
	const struct skep_link_figures *link = fit(&c, 0);
	assert_near(link->bandwidth.after.value, BPS, 1e-6);
	assert_int_equal(link->bandwidth.after.samples, 30);
}

/* One size: what is most of the time is fitted, the other kept. Small messages alone tell the latency. */
static void one_size_tells_one(void **state)
{
	struct cluster c;
	(void)state;
	cluster_init(&c, false);
	for (int i = 0; i < 20; i++)
		put(&c, 0, 2, 1000000, i * 10, i * 10 + 2 * LATENCY_S + 1000000 / BPS);
	const struct skep_link_figures *link = fit(&c, 0);
	assert_int_equal(link->latency.after.samples, 0);
	assert_non_null(link->latency.kept);
	assert_near(link->bandwidth.after.value, BPS, 1e-6); /* with the latency as before */
	cluster_init(&c, false);
	for (int i = 0; i < 20; i++)
		put(&c, 0, 2, 96, i, i + LATENCY_S + 0.005 + 96 / (2 * BPS));
	link = fit(&c, 0.005);
	assert_near(link->latency.after.value, LATENCY_S, 1e-6); /* without what the scenario adds */
	assert_int_equal(link->bandwidth.after.samples, 0);
}

static void noise_is_kept_out(void **state)
{
	struct cluster c;
	uint64_t seed = 11;
	(void)state;
	cluster_init(&c, false);
	for (int i = 0; i < 100; i++) { /* bytes take a thousandth of what the host adds */
		uint64_t bytes = 3000 + 1000 * (uint64_t)(i % 5);
		put(&c, 0, 2, bytes, i, i + LATENCY_S + (double)bytes / 1e9 + 0.01 * uniform(&seed));
	}
	const struct skep_link_figures *link = fit(&c, 0);
	assert_int_equal(link->bandwidth.after.samples, 0);
	assert_non_null(link->bandwidth.kept);
	assert_near(link->latency.after.value, LATENCY_S + 0.005, 0.15);
}

/* One message in five is held up by a host for 5 ms while the next ones are sent: many bytes seem to take long. The line itself
 * takes 0.03 ms. */
static void delays_gather_no_bytes(void **state)
{
	struct cluster c;
	uint64_t seed = 5;
	double free_s = 0;
	(void)state;
	cluster_init(&c, false);
	c.pair[1] = (struct skep_pair){1e9, 1e-4, INFINITY};
	for (int i = 0; i < 400; i++) {
		double sent_s = 0.0012 * i, late_s = skep_random_next(&seed) % 5 == 0 ? 0.005 : 1e-5 * uniform(&seed);
		free_s = fmax(free_s, sent_s + 1e-4 + 3e-5 + late_s); /* none overtakes another */
		put(&c, 0, 2, 30000, sent_s, free_s);
	}
	const struct skep_link_figures *link = fit(&c, 0);
	assert_int_equal(link->bandwidth.after.samples, 0);
	assert_true(link->latency.after.samples == 0 || link->latency.after.value < 3e-4);
}

/* A line that is busy nearly always, of which the topology says four times as much. */
static void crowds_on_a_slow_line(void **state)
{
	struct cluster c;
	double free_s = 0;
	uint64_t seed = 9;
	(void)state;
	cluster_init(&c, false);
	c.pair[1] = (struct skep_pair){4 * BPS, LATENCY_S / 2, INFINITY};
	for (int i = 0; i < 400; i++) {
		double sent_s = 0.03 * i + 0.02 * uniform(&seed);
		free_s = fmax(free_s, sent_s + LATENCY_S) + 25000 / BPS;
		put(&c, 0, 2, 25000, sent_s, free_s);
	}
	const struct skep_link_figures *link = fit(&c, 0);
	assert_near(link->bandwidth.after.value, BPS, 1e-3);
	assert_near(link->latency.after.value, LATENCY_S, 1e-2);
}

/* A ring of which this line is not the slowest part: a burst of four, then one each time that one has come around, which is later
 * than when this line is done with the one before. Nothing has waited but in the bursts. */
static void hops_of_a_ring_are_no_crowd(void **state)
{
	struct cluster c;
	const double each_s = 20000 / BPS, latency_s = 0.07;
	(void)state;
	cluster_init(&c, false);
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < 24; i++) {
			double sent_s = round * 5 + (i < 4 ? 0 : 0.15 + 0.034 * (i - 4));
			put(&c, 0, 2, 20000, sent_s, sent_s + latency_s + (i < 4 ? i + 1 : 1) * each_s);
		}
	const struct skep_link_figures *link = fit(&c, 0);
	assert_near(link->latency.after.value, latency_s, 1e-4);
	assert_near(link->bandwidth.after.value, BPS, 1e-4);
}

/* The same without bursts: any latency that leaves a byte less than the time between two would do. The topology's stays. */
static void hops_alone_tell_no_bandwidth(void **state)
{
	struct cluster c;
	(void)state;
	cluster_init(&c, false);
	for (int i = 0; i < 200; i++)
		put(&c, 0, 2, 20000, 0.034 * i, 0.034 * i + 0.09);
	const struct skep_link_figures *link = fit(&c, 0);
	assert_int_equal(link->bandwidth.after.samples, 0);
	assert_string_equal(link->bandwidth.kept, "one size of messages, mostly latency");
	assert_near(link->latency.after.value, 0.09 - 20000 / (2 * BPS), 1e-3);
	assert_true(link->latency.after.low <= 0.07 && link->latency.after.high >= 0.07);
}

/* Clocks: machine 2 is ahead of the directory by 3 s. Its messages with the directory say so. */
static void clocks_are_aligned(void **state)
{
	struct cluster c;
	(void)state;
	cluster_init(&c, false);
	for (int i = 0; i < 10; i++) {
		put(&c, 2, 4, 96, i + 3, i + LATENCY_S);
		put(&c, 4, 2, 96, i + 0.5, i + 3.5 + LATENCY_S);
		put(&c, 0, 2, 30000, i, i + 3 + LATENCY_S + 30000 / BPS);
	}
	assert_true(skep_samples_align(&c.samples, &c.topology));
	assert_near(c.samples.clocks_apart_s, 3, 1e-9);
	for (size_t i = 0; i < c.samples.transfers; i++) {
		const struct skep_transfer *t = &c.transfer[i];
		assert_near(t->received_s - t->sent_s, LATENCY_S + (t->bytes > 96 ? 30000 / BPS : 0), 1e-6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_has_the_sign_test_s_interval),
		cmocka_unit_test(median_interval_covers),
		cmocka_unit_test(deviation_is_that_of_the_median),
		cmocka_unit_test(weights_move_the_median),
		cmocka_unit_test(line_is_exact_without_noise),
		cmocka_unit_test(line_bears_late_points),
		cmocka_unit_test(intervals_of_a_line_hold),
		cmocka_unit_test(line_needs_two_sizes),
		cmocka_unit_test(lone_messages_tell_both),
		cmocka_unit_test(queues_tell_both),
		cmocka_unit_test(shared_lines_are_one),
		cmocka_unit_test(crowded_messages_do_not_count),
		cmocka_unit_test(one_size_tells_one),
		cmocka_unit_test(noise_is_kept_out),
		cmocka_unit_test(delays_gather_no_bytes),
		cmocka_unit_test(crowds_on_a_slow_line),
		cmocka_unit_test(hops_of_a_ring_are_no_crowd),
		cmocka_unit_test(hops_alone_tell_no_bandwidth),
		cmocka_unit_test(clocks_are_aligned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
