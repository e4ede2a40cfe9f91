/* SPDX-License-Identifier: Apache-2.0
 *
 * test_collective_time.c - how long each collective takes in a simulated star that is idle otherwise, and what it sends: the
 * closed forms of core/collective/collective.h. Each message has its header, CHUNK_ACK is nothing else; GPUs
 * need no time but the least that
 * an operation takes, a nanosecond.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/names.h"
#include "core/record.h"
#include "sim/sim.h"
#include "star_fixture.h"

/* Bytes of the gradients: a multiple of every number of members, and of chunks, in here. */
enum { WIDTH = 527, OUTPUTS = 33, VECTOR = 4 * (WIDTH + 1) * (WIDTH + OUTPUTS) };
#define RATE_BPS 1e8
#define LATENCY_NS 150000.0
#define CHUNKS 8
/* An operation of a nanosecond, and a transfer rounded up to one, for each of a few hundred moves in a row. */
#define TOLERANCE_NS 1000.0

/* `sites` of `members` each, with nothing between them but the latency. */
static void write_files(uint32_t sites, uint32_t members)
{
	char text[2048];
	int at = snprintf(text, sizeof text, "name: star\nsource: \"Assumed: a test.\"\ndirectory: s0\nsites:\n");
	for (uint32_t i = 0; i < sites; i++)
		at += snprintf(text + at, sizeof text - (size_t)at,
			"  s%u:\n    machines: [{count: %u, gpu: fast, up: 100 MB/s, down: 100 MB/s}]\n"
			"    inside: {bandwidth: 1000 Gbit/s, latency: 0.15 ms}\n",
			i, members);
	if (sites > 1)
		at += snprintf(text + at, sizeof text - (size_t)at, "links:\n");
	for (uint32_t i = 1; i < sites; i++)
		for (uint32_t j = 0; j < i; j++)
			at += snprintf(text + at, sizeof text - (size_t)at,
				"  - {between: [s%u, s%u], bandwidth: 1000 Gbit/s, latency: 0.15 ms}\n", j, i);
	star_write("star.yaml", text);
	star_write("gpus/fast.yaml", "name: fast\nsource: \"Assumed: a test.\"\nflops: 1000000 TFLOP/s\nefficiency: 1\n"
				     "memory_bandwidth: 1000000 GB/s\nmemory: 1000 GB\noverhead: 0 ms\n");
	snprintf(text, sizeof text,
		"name: m\nkind: mlp\nactivation: gelu\nlayers: {inputs: %d, hidden: %d, hidden_layers: 1, outputs: "
		"%d}\n",
		WIDTH, WIDTH, OUTPUTS);
	star_write("model.yaml", text);
}

struct heard {
	skep_time begin_ns, end_ns;
	uint64_t sync_messages, sync_bytes;
	uint32_t operations;
};

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct heard *heard = context;
	if (span->lane != SKEP_LANE_REDUCE)
		return;
	if (heard->operations++ == 0 || span->begin_ns < heard->begin_ns)
		heard->begin_ns = span->begin_ns;
	heard->end_ns = span->end_ns > heard->end_ns ? span->end_ns : heard->end_ns;
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	struct heard *heard = context;
	heard->sync_messages += use->traffic == SKEP_TRAFFIC_SYNC ? use->messages : 0;
	heard->sync_bytes += use->traffic == SKEP_TRAFFIC_SYNC ? use->bytes : 0;
}

/* With the files as they are. `equal`: links of a butterfly count as equal. */
static struct heard run(uint8_t kind, uint32_t members, bool equal)
{
	char path[128], text[1024];
	struct skep_scenario scenario;
	struct skep_diag diag = {0};
	struct heard heard = {0};
	struct skep_recorder recorder = {.context = &heard, .op = hear_op, .link = hear_link};
	struct skep_sim_result result;
	snprintf(path, sizeof path, "%s/scenario.yaml", folder);
	int size = snprintf(text, sizeof text,
		"name: t\nmodel: {file: model.yaml, stages: 1}\ncluster: {topology: star.yaml}\n"
		"schedule: {global_batch: %u, microbatch: 1}\nsync: {collective: %s}\n"
		"train: {arithmetic: none, until: {steps: 1}}\n",
		members, skep_collective_name(kind));
	if (!skep_scenario_read_text(path, text, (size_t)size, NULL, &scenario, &diag))
		fail_msg("%s", diag.message);
	assert_int_equal(4 * scenario.stage[0].parameters, VECTOR);
	if (equal)
		scenario.plan.reduction.link_Bps = NULL;
	assert_true(skep_sim_run(&scenario, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	skep_scenario_finish(&scenario);
	return heard;
}

static struct heard simulate(uint8_t kind, uint32_t sites, uint32_t members)
{
	write_files(sites, members);
	return run(kind, sites * members, false);
}

/* ---- closed forms --------------------------------------------------------------------------------------------------- */

/* A message of so many bytes, alone on its link, but for the latency. */
static double t(double bytes)
{
	return 1e9 * (bytes + SKEP_HEADER_BYTES) / RATE_BPS;
}

static uint32_t log2_up(uint32_t n)
{
	uint32_t k = 0;
	while (1u << k < n)
		k++;
	return k;
}

/* From all to the root: powers of two, and one more, whose last member has no child. */
static double binomial_up_ns(uint32_t n)
{
	uint32_t k = log2_up(n);
	return 1u << k == n ? k * (LATENCY_NS + t(VECTOR)) : LATENCY_NS + k * t(VECTOR);
}

static double binomial_down_ns(uint32_t n)
{
	uint32_t k = log2_up(n);
	return n == 1 ? 0 : k * (LATENCY_NS + t(VECTOR)) + (k - 1) * (LATENCY_NS + t(0));
}

/* But for the waits of the halving, if there are any. */
static double halving_ns(uint32_t n)
{
	uint32_t k = log2_up(n / 2 + 1), p = 1u << k;
	double ns = n > p ? 2 * (LATENCY_NS + t(VECTOR)) : 0;
	for (uint32_t step = 1; step <= k; step++)
		ns += 2 * (LATENCY_NS + t((double)VECTOR / (1u << step)));
	return ns;
}

/* Of a full tree with so many levels below the root. */
static double tree_ns(uint32_t depth, uint32_t children)
{
	double sent = LATENCY_NS + children * t((double)VECTOR / CHUNKS), taken = LATENCY_NS + t(0);
	return 2 * (depth * sent + (CHUNKS - 1) * (sent + taken));
}

/* All pieces are under way at once, and the sums follow them on each line. The last sum cannot go before the last piece has
 * come, nor the others before all pieces have gone. */
static double butterfly_ns(uint32_t n)
{
	double chunk = (n - 1) * t((double)VECTOR / n / CHUNKS), all = CHUNKS * chunk;
	return LATENCY_NS + fmax(2 * all, LATENCY_NS + all + chunk);
}

/* By the rule: a latency carries 15,000 bytes here, far less than half a chunk, and a segment has 64 KiB at least. */
static uint32_t segments_of(uint32_t n)
{
	uint32_t most = VECTOR / n / 65536;
	return most < 1 ? 1 : most < 3 ? most : 3;
}

static double ring_ns(uint32_t n)
{
	uint32_t k = segments_of(n);
	double segment = t((double)VECTOR / n / k);
	return (2 * n - 3) * fmax(k * segment, segment + LATENCY_NS) + k * segment + LATENCY_NS;
}

/* Each link has the sum's chunks behind it, and then what is whole. */
static double chain_ns(uint32_t n)
{
	double chunk = t((double)VECTOR / CHUNKS), way = 2 * (n - 1) * (LATENCY_NS + chunk) + (CHUNKS - 1) * chunk;
	double twice = 2 * CHUNKS * chunk + (n - 2.0) * LATENCY_NS + (n - 3.0) * chunk;
	return n > 2 ? fmax(way, twice) : way;
}

static void expect_time(const struct heard *heard, uint8_t kind, uint32_t n, double expected_ns, double more_ns)
{
	double ns = (double)(heard->end_ns - heard->begin_ns);
	if (ns < expected_ns - TOLERANCE_NS || ns > expected_ns + more_ns + TOLERANCE_NS)
		fail_msg("%s of %u members takes %.0f ns, not %.0f", skep_collective_name(kind), n, ns, expected_ns);
}

static void expect_bytes(const struct heard *heard, uint32_t messages, double vectors)
{
	assert_int_equal(heard->sync_messages, messages);
	assert_true(heard->sync_bytes == (uint64_t)(vectors * VECTOR) + (uint64_t)messages * SKEP_HEADER_BYTES);
}

static const uint32_t sizes[] = {2, 3, 5, 8, 16, 33};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void test_each_takes_as_long_as_its_closed_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZES; i++) {
		uint32_t n = sizes[i], k = log2_up(n / 2 + 1), p = 1u << k;
		double server = 2 * (LATENCY_NS + (n - 1) * t(VECTOR));
		const struct {
			uint8_t kind;
			double ns, vectors;
			uint32_t messages;
		} cases[] = {
			{SKEP_COLLECTIVE_RING, ring_ns(n), 2 * (n - 1), 2 * n * (n - 1) * segments_of(n)},
			{SKEP_COLLECTIVE_CHAIN, chain_ns(n), 2 * (n - 1), 2 * (n - 1) * CHUNKS},
			{SKEP_COLLECTIVE_PARAMETER_SERVER, server, 2 * (n - 1), 2 * (n - 1)},
			{SKEP_COLLECTIVE_REDUCE_BROADCAST, binomial_up_ns(n) + binomial_down_ns(n), 2 * (n - 1),
				2 * (n - 1)},
			{SKEP_COLLECTIVE_ALL_TO_ALL, LATENCY_NS + (n - 1) * t(VECTOR), n * (n - 1), n * (n - 1)},
			{SKEP_COLLECTIVE_HALVING_DOUBLING, halving_ns(n), 2 * (n - 1), 2 * (n - p) + 2 * p * k},
			{SKEP_COLLECTIVE_BUTTERFLY, butterfly_ns(n), 2 * (n - 1), 2 * n * (n - 1) * CHUNKS},
			{SKEP_COLLECTIVE_HIERARCHICAL, binomial_up_ns(n) + binomial_down_ns(n), 2 * (n - 1),
				2 * (n - 1)},
		};
		for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
			struct heard heard = simulate(cases[c].kind, 1, n);
			double waits = n > p && cases[c].kind == SKEP_COLLECTIVE_HALVING_DOUBLING ? k : 0;
			expect_time(&heard, cases[c].kind, n, cases[c].ns, waits * (LATENCY_NS + t(0)));
			expect_bytes(&heard, cases[c].messages, cases[c].vectors);
		}
	}
}

/* A tree that is not full lies between the full ones below and above it. */
static void test_a_tree_is_a_pipeline(void **state)
{
	(void)state;
	const uint32_t members[] = {2, 3, 5, 7, 8, 15, 16, 31, 33};
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
		uint32_t n = members[i], depth = log2_up(n / 2 + 1);
		struct heard heard = simulate(SKEP_COLLECTIVE_TREE, 1, n);
		double ns = (double)(heard.end_ns - heard.begin_ns);
		expect_bytes(&heard, 2 * (n - 1) * CHUNKS, 2 * (n - 1));
		if (n == 2 || (n & (n + 1)) == 0)
			expect_time(&heard, SKEP_COLLECTIVE_TREE, n, tree_ns(depth, n == 2 ? 1 : 2), 0);
		else
			assert_true(ns > tree_ns(depth - 1, 2) && ns < tree_ns(depth, 2) + TOLERANCE_NS);
	}
}

/* Sites of equal size: up in all of them at once, a ring of their leaders, down in all. */
static void test_sites_work_side_by_side(void **state)
{
	(void)state;
	const struct {
		uint32_t sites, members;
	} cases[] = {{2, 1}, {2, 4}, {3, 2}, {4, 4}, {3, 8}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint32_t s = cases[i].sites, m = cases[i].members, n = s * m;
		struct heard heard = simulate(SKEP_COLLECTIVE_HIERARCHICAL, s, m);
		double ring = 2 * (s - 1) * (LATENCY_NS + t((double)VECTOR / s));
		expect_time(&heard, SKEP_COLLECTIVE_HIERARCHICAL, n, binomial_up_ns(m) + ring + binomial_down_ns(m), 0);
		expect_bytes(&heard, 2 * (n - s) + 2 * s * (s - 1), 2 * (n - 1));
	}
}

/* Four links of 100 MB/s and four of 25 MB/s. No member is done before the slow ones have sent what they have, V / B;
 * with equal shares they take V (1 + 6/8) / B. That members wait for each other between the two halves comes on top. */
static void test_a_butterfly_spares_slow_links(void **state)
{
	(void)state;
	write_files(1, 1);
	star_write("star.yaml",
		"name: star\nsource: \"Assumed: a test.\"\ndirectory: s0\nsites:\n  s0:\n    machines:\n"
		"      - {count: 4, gpu: fast, up: 100 MB/s, down: 100 MB/s}\n"
		"      - {count: 4, gpu: fast, up: 25 MB/s, down: 25 MB/s}\n"
		"    inside: {bandwidth: 1000 Gbit/s, latency: 0.15 ms}\n");
	struct heard shares = run(SKEP_COLLECTIVE_BUTTERFLY, 8, false), equal = run(SKEP_COLLECTIVE_BUTTERFLY, 8, true);
	double ns = (double)(shares.end_ns - shares.begin_ns), equal_ns = (double)(equal.end_ns - equal.begin_ns);
	double least_ns = 1e9 * VECTOR / 25e6;
	print_message("%.0f us with shares by links, %.0f us with equal ones, %.0f us at least\n", ns / 1e3,
		equal_ns / 1e3, least_ns / 1e3);
	assert_true(equal_ns > 1.75 * least_ns && ns > least_ns && ns < 0.8 * equal_ns);
	expect_bytes(&shares, 2 * 8 * 7 * CHUNKS, 2 * 7);
}

/* Two machines of six are behind a line that all they send to the others shares. */
static void test_a_butterfly_spares_thin_sites(void **state)
{
	(void)state;
	write_files(1, 1);
	star_write("star.yaml",
		"name: sites\nsource: \"Assumed: a test.\"\ndirectory: s0\nsites:\n"
		"  s0: {machines: [{count: 2, gpu: fast}], inside: {bandwidth: 10 Gbit/s, latency: 1 us},\n"
		"       uplink: 100 Mbit/s, downlink: 100 Mbit/s}\n"
		"  s1: {machines: [{count: 4, gpu: fast}], inside: {bandwidth: 10 Gbit/s, latency: 1 us}}\n"
		"links: [{between: [s0, s1], bandwidth: 10 Gbit/s, latency: 1 ms}]\n");
	struct heard shares = run(SKEP_COLLECTIVE_BUTTERFLY, 6, false), equal = run(SKEP_COLLECTIVE_BUTTERFLY, 6, true);
	double ns = (double)(shares.end_ns - shares.begin_ns), equal_ns = (double)(equal.end_ns - equal.begin_ns);
	print_message("%.0f us with shares by links, %.0f us with equal ones\n", ns / 1e3, equal_ns / 1e3);
	assert_true(ns < 0.9 * equal_ns);
}

static void test_one_member_needs_no_time(void **state)
{
	(void)state;
	for (uint8_t kind = 0; kind < SKEP_COLLECTIVES; kind++) {
		struct heard heard = {0};
		if (kind != SKEP_COLLECTIVE_FUSED)
			heard = simulate(kind, 1, 1);
		assert_int_equal(heard.operations, 0);
		assert_int_equal(heard.sync_messages, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_takes_as_long_as_its_closed_form),
		cmocka_unit_test(test_a_tree_is_a_pipeline),
		cmocka_unit_test(test_sites_work_side_by_side),
		cmocka_unit_test(test_a_butterfly_spares_slow_links),
		cmocka_unit_test(test_a_butterfly_spares_thin_sites),
		cmocka_unit_test(test_one_member_needs_no_time),
	};
	return cmocka_run_group_tests(tests, star_enter, star_leave);
}
