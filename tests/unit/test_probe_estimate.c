/* SPDX-License-Identifier: Apache-2.0
 *
 * test_probe_estimate.c - what is made of samples of a line that is known: that the estimate is near, or says that it is not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/random.h"
#include "exec/probe/estimate.h"
#include "topologies/import/probed.h"

#define MIB ((uint64_t)1 << 20)

struct line { /* t = trip + bytes / rate, the bytes within a burst at another rate */
	double trip_s, Bps, burst_bytes, burst_Bps;
	double noise_s;          /* deviation */
	double delayed, delay_s; /* part of the samples, and the mean */
};

static double uniform(uint64_t *seed)
{
	return ((double)(skep_random_next(seed) >> 12) + 0.5) / 4503599627370496.0;
}

static double normal(uint64_t *seed)
{
	double u = uniform(seed), v = uniform(seed);
	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double between(uint64_t *seed, double low, double high) /* evenly by orders of magnitude */
{
	return low * pow(high / low, uniform(seed));
}

static double time_of(const struct line *l, uint64_t bytes, uint64_t *seed)
{
	double inside = fmin((double)bytes, l->burst_bytes);
	double s = l->trip_s + ((double)bytes - inside) / l->Bps + (inside > 0 ? inside / l->burst_Bps : 0);
	s += l->noise_s * normal(seed);
	if (uniform(seed) < l->delayed)
		s -= l->delay_s * log(uniform(seed));
	return s;
}

static void add_round(struct skep_transfers *t, const struct line *l, uint64_t *seed)
{
	for (uint32_t i = 0; i < SKEP_TRANSFERS_SIZES; i++)
		t->taken_s[i][t->rounds] = time_of(l, t->bytes[i], seed);
	t->rounds++;
}

static struct skep_transfers transfers(const struct line *l, uint64_t bytes, uint32_t rounds, uint64_t seed)
{
	struct skep_transfers t = {.bytes = {bytes / 3, bytes / 3 * 2, bytes / 3 * 3}};
	while (t.rounds < rounds)
		add_round(&t, l, &seed);
	return t;
}

static void assert_within(double value, double wanted, double part)
{
	if (!(fabs(value / wanted - 1) <= part))
		fail_msg("%g is not %g within %g", value, wanted, part);
}

/* ---- medians ----------------------------------------------------------------------------------------------------- */

static void test_median(void **state)
{
	(void)state;
	double few[] = {3, 1, 2}, eight[] = {8, 1, 7, 2, 6, 3, 5, 4};
	struct skep_median m = skep_median_of(few, 3);
	assert_true(m.value == 2 && isinf(m.low) && m.low < 0 && isinf(m.high) && m.high > 0);
	m = skep_median_of(eight, 8); /* 2 of 2^8 orders of heads and tails have all samples on one side of it */
	assert_true(m.value == 4.5 && m.low == 1 && m.high == 8);
}

/* The interval holds the median as often as it says, of a law that is far from normal. */
static void test_interval_of_a_median(void **state)
{
	(void)state;
	uint64_t seed = 5;
	for (uint32_t count = 8; count <= 400; count = count * 3 / 2) {
		uint32_t missed = 0;
		for (uint32_t i = 0; i < 1000; i++) {
			double sample[400];
			for (uint32_t k = 0; k < count; k++)
				sample[k] = pow(uniform(&seed), -2);
			struct skep_median m = skep_median_of(sample, count);
			missed += m.low > 4 || m.high < 4;
		}
		assert_in_range(missed, 0, 22); /* 10 are expected at most; 22 are 3.8 deviations more */
	}
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void test_exact_line(void **state)
{
	(void)state;
	for (double Bps = 1e4; Bps < 1e12; Bps *= 10) {
		const struct line line = {.trip_s = 0.03, .Bps = Bps};
		struct skep_transfers t = transfers(&line, 3 * MIB, 8, 1);
		struct skep_bandwidth b = skep_bandwidth_estimate(&t);
		assert_int_equal(b.kind, SKEP_ESTIMATE_KNOWN);
		assert_int_equal(b.course, SKEP_RATE_STEADY);
		assert_within(b.Bps, Bps, 1e-6);
		assert_true(b.spread < 1e-6 && b.samples == 24);
	}
}

/* Too few samples bear nothing, however well they agree. */
static void test_few_samples(void **state)
{
	(void)state;
	const struct line line = {.trip_s = 1e-3, .Bps = 1e8};
	for (uint32_t rounds = 1; rounds < SKEP_MEDIAN_SAMPLES_MIN; rounds++) {
		struct skep_transfers t = transfers(&line, 3 * MIB, rounds, 1);
		assert_int_equal(skep_bandwidth_estimate(&t).kind, SKEP_ESTIMATE_UNKNOWN);
	}
}

/* One sample that is late, of any size and by any time, leaves the estimate where it is. */
static void test_one_delayed(void **state)
{
	(void)state;
	const struct line line = {.trip_s = 1e-3, .Bps = 1e8};
	for (uint32_t size = 0; size < SKEP_TRANSFERS_SIZES; size++)
		for (double late_s = 1e-4; late_s < 1000; late_s *= 7) {
			struct skep_transfers t = transfers(&line, 3 * MIB, 20, 1);
			t.taken_s[size][5] += late_s;
			struct skep_bandwidth b = skep_bandwidth_estimate(&t);
			assert_int_equal(b.kind, SKEP_ESTIMATE_KNOWN);
			assert_within(b.Bps, 1e8, 1e-6);
		}
}

/* What the noise hides is not known, and is no rate of terabits: the times of all sizes are alike but for it. */
static void test_heavy_noise(void **state)
{
	(void)state;
	const struct line line = {.trip_s = 0.1, .Bps = 1.25e8, .noise_s = 0.02}; /* 1 Gbit/s, 64 KiB are 0.5 ms */
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct skep_transfers t = transfers(&line, 3 << 16, 60, seed);
		struct skep_bandwidth b = skep_bandwidth_estimate(&t);
		assert_int_equal(b.kind, SKEP_ESTIMATE_UNKNOWN);
		assert_true(isnan(b.Bps) && isinf(b.spread));
	}
}

/* Less noise leaves an estimate that says how uncertain it is, and more samples make it less so. */
static void test_noise(void **state)
{
	(void)state;
	const struct line line = {.trip_s = 0.1, .Bps = 1.25e8, .noise_s = 2e-3}; /* 2 MiB are 16.8 ms */
	double before = INFINITY;
	for (uint32_t rounds = 8; rounds <= 256; rounds *= 4) {
		struct skep_transfers t = transfers(&line, 3 * MIB, rounds, 3);
		struct skep_bandwidth b = skep_bandwidth_estimate(&t);
		assert_true(b.spread < before);
		assert_int_equal(
			b.kind, b.spread > SKEP_PROBED_SPREAD_MOST ? SKEP_ESTIMATE_UNCERTAIN : SKEP_ESTIMATE_KNOWN);
		assert_within(b.Bps, 1.25e8, b.spread);
		before = b.spread;
	}
	assert_true(before < 0.1);
}

/* A token bucket: the first bytes of each transfer go at 10 Gbit/s, the rest at 200 Mbit/s. The rate is the later one where all
 * sizes are beyond the burst, and uncertain or not known where some are not. */
static void test_burst(void **state)
{
	(void)state;
	uint32_t uncertain = 0;
	for (double burst = 0.05; burst < 2.99; burst += 0.05) {
		const struct line line = {.trip_s = 1e-3,
			.Bps = 2.5e7,
			.burst_bytes = burst * (double)MIB,
			.burst_Bps = 1.25e9,
			.noise_s = 1e-6};
		struct skep_transfers t = transfers(&line, 3 * MIB, 20, 1);
		struct skep_bandwidth b = skep_bandwidth_estimate(&t);
		if (burst <= 1) {
			assert_int_equal(b.kind, SKEP_ESTIMATE_KNOWN);
			assert_within(b.Bps, 2.5e7, 0.01);
		} else if (burst > 1.15) {
			assert_int_equal(b.course, SKEP_RATE_FALLS);
		}
		if (b.kind != SKEP_ESTIMATE_UNKNOWN)
			assert_within(b.Bps, 2.5e7, b.kind == SKEP_ESTIMATE_KNOWN ? 0.05 : b.spread);
		if (burst > 1.6)
			assert_int_equal(b.kind, SKEP_ESTIMATE_UNKNOWN);
		if (b.kind == SKEP_ESTIMATE_UNCERTAIN)
			uncertain++;
	}
	assert_true(uncertain > 2);
}

/* A cache is outgrown once, so what comes after it is the rate, however far that has fallen; but its own interval counts. */
static void test_memory(void **state)
{
	(void)state;
	struct line line = {
		.trip_s = 1e-6, .Bps = 4e9, .burst_bytes = 4.0 * (double)MIB, .burst_Bps = 4e10, .noise_s = 1e-9};
	struct skep_transfers t = transfers(&line, 6 * MIB, 20, 1);
	assert_int_equal(skep_bandwidth_estimate(&t).kind, SKEP_ESTIMATE_UNKNOWN);
	t.in_memory = true;
	struct skep_bandwidth b = skep_bandwidth_estimate(&t);
	assert_int_equal(b.kind, SKEP_ESTIMATE_UNCERTAIN);
	assert_within(b.Bps, 4e9, 0.02);
	line.noise_s = 1e-3;
	t = transfers(&line, 6 * MIB, 20, 1);
	t.in_memory = true;
	assert_int_equal(skep_bandwidth_estimate(&t).kind, SKEP_ESTIMATE_UNKNOWN);
}

/* Rounds that went through a burst, and then rounds that did not: a few of the first do not make the rate. */
static void test_burst_of_rounds(void **state)
{
	(void)state;
	const struct line fast = {.trip_s = 1e-3, .Bps = 1.25e9}, slow = {.trip_s = 1e-3, .Bps = 2.5e7};
	for (uint32_t early = 1; early < SKEP_MEDIAN_SAMPLES_MIN; early++) {
		uint64_t seed = 1;
		struct skep_transfers t = transfers(&fast, 3 * MIB, early, 1);
		while (t.rounds < 40) {
			add_round(&t, &slow, &seed);
			struct skep_bandwidth b = skep_bandwidth_estimate(&t);
			if (b.kind == SKEP_ESTIMATE_KNOWN)
				assert_within(b.Bps, 2.5e7, 0.05);
		}
		assert_int_equal(skep_bandwidth_estimate(&t).kind, SKEP_ESTIMATE_KNOWN);
	}
}

/* A cost to begin with, such as a protocol for large messages: the slope over all sizes stands, which is not the faster one. */
static void test_rising(void **state)
{
	(void)state;
	struct skep_transfers t = {.bytes = {0, MIB, 2 * MIB}, .rounds = 8};
	for (uint32_t i = 0; i < 8; i++) {
		t.taken_s[0][i] = 1e-3;
		t.taken_s[1][i] = 9e-3;
		t.taken_s[2][i] = 13e-3;
	}
	struct skep_bandwidth b = skep_bandwidth_estimate(&t);
	assert_int_equal(b.course, SKEP_RATE_RISES);
	assert_within(b.Bps, 2 * (double)MIB / 12e-3, 1e-9);
}

static void test_all_equal(void **state)
{
	(void)state;
	struct skep_transfers t = transfers(&(struct line){.trip_s = 1e-3, .Bps = INFINITY}, 3 * MIB, 30, 1);
	struct skep_bandwidth b = skep_bandwidth_estimate(&t);
	assert_int_equal(b.kind, SKEP_ESTIMATE_UNKNOWN);
	assert_true(isnan(b.Bps));
}

/* Larger ones that are faster, as when the first rounds of all were late: not known. */
static void test_negative_slope(void **state)
{
	(void)state;
	struct skep_transfers t = transfers(&(struct line){.trip_s = 1, .Bps = -1e8}, 3 * MIB, 30, 1);
	struct skep_bandwidth b = skep_bandwidth_estimate(&t);
	assert_int_equal(b.kind, SKEP_ESTIMATE_UNKNOWN);
	assert_true(isnan(b.Bps));
}

/* ---- any line ---------------------------------------------------------------------------------------------------- */

/* 1 Mbit/s to 100 Gbit/s, sizes that are too small to ones that take long, noise, and one sample in five delayed by little or by
 * much. Rounds are added until the estimate says that it is known, so it is asked often. It is within 5 % then; and until
 * then what it gives is within its spread, or nearly. */
static void test_any_line(void **state)
{
	(void)state;
	uint64_t seed = 11;
	uint32_t known = 0, uncertain = 0, unknown = 0;
	for (uint32_t i = 0; i < 3000; i++) {
		struct line line = {
			.trip_s = between(&seed, 1e-5, 0.3), .Bps = between(&seed, 1.25e5, 1.25e10), .delayed = 0.2};
		const double takes_s = between(&seed, 1e-4, 0.3);
		const uint64_t bytes = (uint64_t)(takes_s * line.Bps) + 3;
		line.noise_s = takes_s * between(&seed, 1e-4, 1);
		line.delay_s = takes_s * between(&seed, 1e-3, 1e3);
		struct skep_transfers t = transfers(&line, bytes, SKEP_MEDIAN_SAMPLES_MIN - 1, seed);
		struct skep_bandwidth b;
		do {
			add_round(&t, &line, &seed);
			b = skep_bandwidth_estimate(&t);
			if (b.kind == SKEP_ESTIMATE_UNCERTAIN && b.course != SKEP_RATE_FALLS)
				assert_within(b.Bps, line.Bps, 1.2 * b.spread);
		} while (b.kind != SKEP_ESTIMATE_KNOWN && t.rounds < 100);
		if (b.kind == SKEP_ESTIMATE_KNOWN)
			assert_within(b.Bps, line.Bps, 0.05);
		known += b.kind == SKEP_ESTIMATE_KNOWN;
		uncertain += b.kind == SKEP_ESTIMATE_UNCERTAIN;
		unknown += b.kind == SKEP_ESTIMATE_UNKNOWN;
	}
	assert_true(known > 1000 && uncertain > 300 && unknown > 200); /* all of them have been tried */
}

/* By hand: passes of 1 ms, a hand-over of 15 us, payloads that cost 6 us and 1 ns for each byte beyond 4,096. */
static const struct skep_rehearsed steady = {1e-3, 15e-6, 6e-6, 6e-6 + 1e-9 * 100000};

static void rounds_of(struct skep_rehearsed round[SKEP_REHEARSED_ROUNDS])
{
	for (uint32_t i = 0; i < SKEP_REHEARSED_ROUNDS; i++)
		round[i] = steady;
}

static void test_costs(void **state)
{
	(void)state;
	struct skep_rehearsed round[SKEP_REHEARSED_ROUNDS];
	rounds_of(round);
	round[0].handover_s = -3e-6; /* two rounds of five may be anything */
	round[3] = (struct skep_rehearsed){2e-3, 9e-3, 9e-3, 9e-3};
	struct skep_probed_costs costs = skep_costs_estimate(round, 4096, 104096);
	assert_true(costs.handover_s == 15e-6 && costs.payload_s == 6e-6 && fabs(costs.byte_s - 1e-9) < 1e-15);
	round[1].handover_s = round[2].handover_s = -3e-6; /* faster than in one thread: it costs nothing */
	round[3].handover_s = -4e-6;
	assert_true(skep_costs_estimate(round, 4096, 104096).handover_s == 0);
}

static void test_costs_not_known(void **state)
{
	(void)state;
	struct skep_rehearsed round[SKEP_REHEARSED_ROUNDS];
	rounds_of(round);
	round[0].handover_s = round[1].handover_s = 60e-6; /* apart by more than 20 us and the median */
	round[2].large_s = NAN;
	struct skep_probed_costs costs = skep_costs_estimate(round, 4096, 104096);
	assert_true(isnan(costs.handover_s) && isnan(costs.payload_s) && isnan(costs.byte_s));
	rounds_of(round);
	/* Others want the cores: a quarter of a pass is 250 us. */
	for (uint32_t i = 0; i < SKEP_REHEARSED_ROUNDS; i++)
		round[i].handover_s = 260e-6, round[i].small_s = 1.1e-3;
	costs = skep_costs_estimate(round, 4096, 104096);
	assert_true(isnan(costs.handover_s) && isnan(costs.payload_s));
	for (uint32_t i = 0; i < SKEP_REHEARSED_ROUNDS; i++)
		round[i].handover_s = 240e-6;
	assert_true(skep_costs_estimate(round, 4096, 104096).handover_s == 240e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_interval_of_a_median),
		cmocka_unit_test(test_exact_line),
		cmocka_unit_test(test_few_samples),
		cmocka_unit_test(test_one_delayed),
		cmocka_unit_test(test_heavy_noise),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_burst_of_rounds),
		cmocka_unit_test(test_rising),
		cmocka_unit_test(test_all_equal),
		cmocka_unit_test(test_negative_slope),
		cmocka_unit_test(test_any_line),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_costs_not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
