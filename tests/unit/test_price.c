/* SPDX-License-Identifier: Apache-2.0
 *
 * test_price.c - price histories: what is read and refused, and sums that were computed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topologies/read/topology.h"

#define S 1000000000u
#define HOUR (3600 * (skep_time)S)

static char folder[64];

static int enter(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/skep-price-XXXXXX");
	return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int leave(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return chdir("/") || system(command);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct skep_price_series read_good(const char *text, const char *type, const char *zone)
{
	struct skep_price_series series;
	struct skep_diag diag = {0};
	write_file("prices.csv", text);
	if (!skep_price_read("prices.csv", type, zone, &series, &diag))
		fail_msg("%u:%u: %s", diag.line, diag.column, diag.message);
	return series;
}

static void refuse(
	const char *text, const char *type, const char *zone, uint32_t line, uint32_t column, const char *phrase)
{
	struct skep_price_series series;
	struct skep_diag diag = {0};
	write_file("prices.csv", text);
	assert_false(skep_price_read("prices.csv", type, zone, &series, &diag));
	assert_true(diag.set);
	if (strstr(diag.message, phrase) == NULL)
		fail_msg("expected '%s' in: %s", phrase, diag.message);
	assert_int_equal(diag.line, line);
	assert_int_equal(diag.column, column);
	assert_null(series.step);
}

static void near(double value, double expected)
{
	if (!(fabs(value - expected) < 1e-12 * fmax(1, fabs(expected))))
		fail_msg("%.15g, not %.15g", value, expected);
}

static const char AWS[] = "# comment\ntimestamp,zone,instance,usd_per_hour\n"
			  "2019-12-31T23:00:00.000Z,east-a,big,2\n"
			  "2020-01-01T00:00:00.000Z,east-b,big,3\n"
			  "2020-01-01T01:00:00.000Z,east-a,small,0.25\n"
			  "2020-01-01T01:30:00.000Z,east-a,big,4\n";

static void test_plain(void **state)
{
	(void)state;
	struct skep_price_series p = read_good("# ours\ntime,price\n0,1\n\n3600,2.5\n7200.5,0\n7200.5,4\n", "", "");
	assert_int_equal(p.steps, 4);
	near(skep_price_at(&p, 0), 1);
	near(skep_price_at(&p, HOUR - 1), 1);
	near(skep_price_at(&p, HOUR), 2.5);
	near(skep_price_at(&p, 2 * HOUR + S / 2), 4); /* the last row of an instant */
	near(skep_price_at(&p, 1000 * HOUR), 4);
	near(skep_price_cost_usd(&p, 0, 0), 0);
	near(skep_price_cost_usd(&p, 0, HOUR), 1);
	near(skep_price_cost_usd(&p, HOUR / 2, HOUR + HOUR / 2), 0.5 * 1 + 0.5 * 2.5);
	near(skep_price_cost_usd(&p, 0, 4 * HOUR), 1 + 2.5 * (1 + 0.5 / 3600) + 4 * (2 - 0.5 / 3600));
	near(skep_price_cost_usd(&p, 3 * HOUR, 5 * HOUR), 8);
	/* The whole is the sum of its parts. */
	near(skep_price_cost_usd(&p, 0, 12345 * (skep_time)S) +
			skep_price_cost_usd(&p, 12345 * (skep_time)S, 20000 * (skep_time)S),
		skep_price_cost_usd(&p, 0, 20000 * (skep_time)S));
	skep_price_finish(&p);
}

static void test_aws(void **state)
{
	(void)state;
	struct skep_price_series p = read_good(AWS, "big", "east-a");
	assert_int_equal(p.steps, 2);
	near(skep_price_at(&p, 0), 2);
	near(skep_price_cost_usd(&p, 0, 3 * HOUR), 2 * 2.5 + 4 * 0.5); /* over the end of a year */
	skep_price_finish(&p);
	p = read_good(AWS, "big", "east-b");
	assert_true(isnan(skep_price_at(&p, HOUR - 1))); /* counted from the first row of the file */
	near(skep_price_at(&p, HOUR), 3);
	skep_price_finish(&p);
	p = read_good(AWS, "small", ""); /* one zone has it */
	assert_string_equal(p.zone, "east-a");
	near(skep_price_at(&p, 2 * HOUR), 0.25);
	skep_price_finish(&p);
}

static void test_refused(void **state)
{
	(void)state;
	refuse("", "", "", 0, 0, "empty");
	refuse("time,price\n", "", "", 0, 0, "no row behind");
	refuse("0,1\n", "", "", 1, 1, "expected `time,price`");
	refuse("time,price\n0,1\n10,-2\n", "", "", 3, 4, "expected a price");
	refuse("time,price\n0,nan\n", "", "", 2, 3, "expected a price");
	refuse("time,price\n0,1e7\n", "", "", 2, 3, "expected a price");
	refuse("time,price\n0,2000000\n", "", "", 2, 3, "expected a price");
	refuse("time,price\n0,\n", "", "", 2, 3, "expected a price");
	refuse("time,price\n5,1\n4,1\n", "", "", 3, 1, "time goes backwards");
	refuse("time,price\n5,1,2\n", "", "", 2, 1, "two columns");
	refuse("time,price\n-5,1\n", "", "", 2, 1, "");
	refuse("time,price\n5,1\n", "big", "", 1, 1, "leave `type` and `zone` out");
	refuse(AWS, "huge", "", 0, 0, "no row of type `huge`");
	refuse(AWS, "small", "east-b", 0, 0, "no row of type `small` in zone `east-b`");
	refuse(AWS, "big", "", 4, 26, "a second zone in this file: choose one with `zone: east-a`");
	refuse(AWS, "", "east-a", 5, 33, "a second type in this file");
	refuse("timestamp,zone,instance,usd_per_hour\nyesterday,a,b,1\n", "", "", 2, 1, "expected a time such as");
	refuse("timestamp,zone,instance,usd_per_hour\n2020-01-01T00:00:00Z,a,b,1\n2019-01-01T00:00:00Z,a,b,1\n", "", "",
		3, 1, "time goes backwards");
	struct skep_price_series series;
	struct skep_diag diag = {0};
	assert_false(skep_price_read("nowhere.csv", "", "", &series, &diag));
	assert_true(diag.set);
}

/* Two kinds of machine, two histories, one fixed price; the run starts half an hour into the histories. */
static void test_topology(void **state)
{
	(void)state;
	static const char gpu[] = "name: slow\nsource: assumed\nflops: 1 TFLOP/s\nefficiency: 0.5\n"
				  "memory_bandwidth: 100 GB/s\nmemory: 8 GB\noverhead: 1 ms\n";
	static const char text[] = "name: mixed\nsource: assumed\ndirectory: a\nsites:\n  a:\n    machines:\n"
				   "      - {count: 2, gpu: slow, price: 0.5 USD/h}\n"
				   "      - {count: 2, gpu: slow, prices: {file: aws.csv, type: big, zone: east-a}}\n"
				   "      - {gpu: slow, prices: {file: aws.csv, type: big, zone: east-a}}\n"
				   "      - {gpu: slow, prices: {file: plain.csv}}\n"
				   "      - {gpu: slow}\n"
				   "      - {gpu: slow, price: 0 USD/h}\n"
				   "    inside: {bandwidth: 1 Gbit/s, latency: 1 ms}\n";
	struct skep_topology t;
	struct skep_diag diag = {0};
	assert_int_equal(system("mkdir gpus"), 0);
	write_file("gpus/slow.yaml", gpu);
	write_file("aws.csv", AWS);
	write_file("plain.csv", "time,price\n1200,10\n5400,20\n");
	write_file("t.yaml", text);
	if (!skep_topology_read("t.yaml", &t, &diag))
		fail_msg("%u:%u: %s", diag.line, diag.column, diag.message);
	assert_int_equal(t.prices, 2);
	assert_string_equal(skep_topology_start_prices(&t, 1199 * (skep_time)S)->path, "plain.csv");
	assert_null(skep_topology_start_prices(&t, HOUR / 2));
	assert_true(t.machine[2].price_usd_per_h == 2 && t.machine[5].price_usd_per_h == 10);
	near(skep_topology_cost_usd(&t, 1, HOUR, 3 * HOUR), 1);
	near(skep_topology_cost_usd(&t, 2, HOUR, 3 * HOUR), 2 * 1 + 4 * 1);
	near(skep_topology_cost_usd(&t, 4, 0, HOUR), 2);
	near(skep_topology_cost_usd(&t, 5, 0, 2 * HOUR), 10 * 1 + 20 * 1);
	assert_true(isnan(skep_topology_cost_usd(&t, 6, 0, HOUR)));
	near(skep_topology_cost_usd(&t, 7, 0, HOUR), 0); /* that costs nothing is known */
	assert_true(skep_machine_has_price(&t.machine[7]) && !skep_machine_has_price(&t.machine[6]));
	skep_topology_finish(&t);
}

/* One worker for each GPU of an instance pays its part, whether the price is fixed or has a history. */
static void test_instances(void **state)
{
	(void)state;
	static const char gpu[] = "name: slow\nsource: assumed\nflops: 1 TFLOP/s\nefficiency: 0.5\n"
				  "memory_bandwidth: 100 GB/s\nmemory: 8 GB\noverhead: 1 ms\n";
	static const char head[] = "name: parts\nsource: assumed\ndirectory: a\nsites:\n  a:\n    machines:\n";
	static const char foot[] = "    inside: {bandwidth: 1 Gbit/s, latency: 1 ms}\n";
	static const struct {
		const char *machine;
		double usd_per_h; /* 0: refused */
		const char *message;
	} cases[] = {
		{"price: 8 USD/h", 8, ""},
		{"price: 8 USD/h, instance_gpus: 8", 1, ""},
		{"price: 8 USD/h, instance_gpus: 8, gpus: 2, inner: {bandwidth: 1 GB/s, latency: 1 us}", 2, ""},
		{"prices: {file: log.csv, type: p3.16xlarge}", 3, ""},
		{"prices: {file: log.csv, type: p3.16xlarge}, gpus: 8, inner: {bandwidth: 1 GB/s, latency: 1 us}", 24,
			""},
		{"prices: {file: log.csv, type: p3.16xlarge}, instance_gpus: 2", 12, ""},
		{"prices: {file: log.csv, type: p3.2xlarge}", 3.2, ""},
		{"prices: {file: log.csv, type: odd}", 7, ""},
		{"prices: {file: log.csv, type: odd}, instance_gpus: 4", 1.75, ""},
		{"instance_gpus: 4", 0, "there is no price"},
		{"price: 1 USD/h, instance_gpus: 0", 0, "from 1 to"},
		{"prices: {file: log.csv, type: p3.2xlarge}, gpus: 2, inner: {bandwidth: 1 GB/s, latency: 1 us}", 0,
			"2 GPUs and the instance that is priced 1"},
	};
	assert_int_equal(system("mkdir -p gpus"), 0);
	write_file("gpus/slow.yaml", gpu);
	write_file("log.csv", "timestamp,zone,instance,usd_per_hour\n2020-01-01T00:00:00.000Z,a,p3.16xlarge,24\n"
			      "2020-01-01T00:00:00.000Z,a,p3.2xlarge,3.2\n2020-01-01T00:00:00.000Z,a,odd,7\n");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct skep_topology t;
		struct skep_diag diag = {0};
		char text[1024];
		snprintf(text, sizeof text, "%s      - {gpu: slow, %s}\n%s", head, cases[i].machine, foot);
		write_file("part.yaml", text);
		if (skep_topology_read("part.yaml", &t, &diag) != (cases[i].usd_per_h > 0))
			fail_msg("%s: %s", cases[i].machine, diag.message);
		if (diag.set) {
			if (!strstr(diag.message, cases[i].message))
				fail_msg("%s: %s", cases[i].machine, diag.message);
			continue;
		}
		assert_null(skep_topology_start_prices(&t, 0));
		near(t.machine[0].price_usd_per_h, cases[i].usd_per_h);
		near(skep_topology_cost_usd(&t, 0, HOUR, 3 * HOUR), 2 * cases[i].usd_per_h);
		skep_topology_finish(&t);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
		TEST(test_aws),
		TEST(test_refused),
		TEST(test_topology),
		TEST(test_instances),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
