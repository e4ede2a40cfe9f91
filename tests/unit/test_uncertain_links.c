/* SPDX-License-Identifier: Apache-2.0
 *
 * test_uncertain_links.c - draws of figures that a topology says may be off: what one figure stands for is off alike, all else by
 * itself, and nothing else changes.
 */
#include "topology_fixture.h"

#include <math.h>

#include "topologies/read/uncertain.h"

static const char SITES[] =
	"name: sites\nsource: Assumed.\ndirectory: a\nsites:\n"
	"  a: {machines: [{count: 2, gpu: g, up: 1 Gbit/s, price: 1 USD/h, uncertainty: {up: 0.3, price: 0.2}}, {gpu: g}],\n"
	"    inside: {bandwidth: 1 Gbit/s, latency: 1 ms, uncertainty: {bandwidth: 0.1}}}\n"
	"  b: {machines: [{gpu: g}]}\n  c: {machines: [{gpu: g}]}\n"
	"links:\n  - {between: [a, b], bandwidth: 8 Mbit/s, latency: 5 ms, shared: true,\n"
	"    uncertainty: {bandwidth: 0.1, latency: 0.2}}\n"
	"fallback: {bandwidth: 4 Mbit/s, latency: 7 ms, uncertainty: {bandwidth: 0.1, latency: 0.1}}\n";

static const char GPU[] = "name: g\nsource: Assumed.\nflops: 1 TFLOP/s\nefficiency: 1\nmemory_bandwidth: 100 GB/s\n"
			  "memory: 16 GB\noverhead: 0 s\n";

static int enter(void **state)
{
	(void)state;
	char path[160];
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "mkdir %s/gpus", folder);
	if (system(path) != 0)
		return -1;
	put("gpus/g.yaml", GPU);
	return 0;
}

static void assert_same(double a, double b)
{
	if (fabs(a - b) > 1e-12 * fabs(b))
		fail_msg("%.17g is not %.17g", a, b);
}

static void assert_apart(double a, double b)
{
	if (fabs(a - b) < 1e-6 * fabs(b))
		fail_msg("%.17g is as good as %.17g", a, b);
}

static struct skep_topology drawn(const char *name, uint64_t seed, double extra_s)
{
	struct skep_topology t = read_good(name);
	skep_topology_add_latency(&t, extra_s);
	skep_topology_draw(&t, seed, extra_s);
	return t;
}

static void test_alike(void **state)
{
	(void)state;
	put("sites.yaml", SITES);
	struct skep_topology t = drawn("sites.yaml", 3, 0), again = drawn("sites.yaml", 3, 0),
			     other = drawn("sites.yaml", 4, 0);
	const struct skep_pair *ab = &t.pair[1], *ba = &t.pair[3], *ac = &t.pair[2], *bc = &t.pair[5];
	assert_same(ab->capacity_Bps, ba->capacity_Bps);
	assert_same(ab->shared_Bps, ab->capacity_Bps);
	assert_same(ab->latency_s, ba->latency_s);
	assert_same(ac->capacity_Bps, bc->capacity_Bps); /* the fallback's */
	assert_same(ac->latency_s, bc->latency_s);
	assert_apart(ab->capacity_Bps / 1e6, ac->capacity_Bps / 5e5);
	assert_apart(ab->capacity_Bps, 1e6);
	assert_apart(log(ab->capacity_Bps / 1e6) / 0.1, log(ab->latency_s / 5e-3) / 0.2);
	assert_same(t.pair[0].latency_s, 1e-3); /* it is taken at its word */
	assert_apart(t.pair[0].capacity_Bps, 125e6);
	assert_same(t.machine[0].up_Bps, t.machine[1].up_Bps);
	assert_apart(t.machine[0].up_Bps, 125e6);
	assert_same(t.machine[0].price_usd_per_h, t.machine[1].price_usd_per_h);
	assert_apart(t.machine[0].price_usd_per_h, 1);
	assert_true(isinf(t.machine[0].down_Bps) && isinf(t.machine[2].up_Bps));
	for (size_t i = 0; i < 9; i++)
		assert_memory_equal(&t.pair[i], &again.pair[i], sizeof t.pair[i]);
	assert_apart(ab->capacity_Bps, other.pair[1].capacity_Bps);
	skep_topology_finish(&t);
	skep_topology_finish(&again);
	skep_topology_finish(&other);
}

/* What a scenario adds to latencies is no measurement. */
static void test_extra(void **state)
{
	(void)state;
	put("sites.yaml", SITES);
	struct skep_topology t = drawn("sites.yaml", 3, 0), late = drawn("sites.yaml", 3, 0.25);
	assert_same(late.pair[1].latency_s, t.pair[1].latency_s + 0.25);
	assert_same(late.pair[0].latency_s, 0.251);
	skep_topology_finish(&t);
	skep_topology_finish(&late);
}

/* Without the key there is no table, and a draw changes no bit. */
static void test_sure(void **state)
{
	(void)state;
	put("sure.yaml",
		"name: sure\nsource: Assumed.\ndirectory: a\nsites:\n"
		"  a: {machines: [{count: 2, gpu: g, price: 1 USD/h}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}\n");
	struct skep_topology t = read_good("sure.yaml");
	const struct skep_pair before = t.pair[0];
	assert_false(skep_topology_uncertain(&t));
	skep_topology_draw(&t, 1, 0);
	assert_memory_equal(&before, &t.pair[0], sizeof before);
	assert_null(t.unsure);
	skep_topology_finish(&t);
}

/* Cells are off each by itself, one value is off for all pairs, and a hole has the fallback's. */
static void test_matrix(void **state)
{
	(void)state;
	put("bandwidth.csv", "0,8,8\n8,0,\n8,8,0\n");
	put("matrix.yaml", "name: matrix\nsource: Assumed.\ndirectory: 0\nmachines: [{count: 3, gpu: g}]\n"
			   "matrix: {bandwidth: bandwidth.csv, bandwidth_unit: Mbit/s, latency: 2 ms,\n"
			   "  uncertainty: {bandwidth: 0.1, latency: 0.1}}\n"
			   "fallback: {bandwidth: 4 Mbit/s, latency: 7 ms}\n");
	struct skep_topology t = drawn("matrix.yaml", 1, 0);
	assert_apart(t.pair[1].capacity_Bps, t.pair[3].capacity_Bps);
	assert_apart(t.pair[1].capacity_Bps, 1e6);
	assert_same(t.pair[5].capacity_Bps, 5e5);
	assert_same(t.pair[1].latency_s, t.pair[6].latency_s);
	assert_apart(t.pair[1].latency_s, 2e-3);
	skep_topology_finish(&t);
}

/* Over many seeds the logarithm of what is drawn has mean 0 and the deviation that is said. */
static void test_law(void **state)
{
	(void)state;
	const uint32_t seeds = 2000;
	double sum = 0, squares = 0;
	put("sites.yaml", SITES);
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct skep_topology t = drawn("sites.yaml", seed, 0);
		double z = log(t.pair[1].capacity_Bps / 1e6) / 0.1;
		sum += z;
		squares += z * z;
		skep_topology_finish(&t);
	}
	assert_true(fabs(sum / seeds) < 4 / sqrt(seeds));
	assert_true(fabs(squares / seeds - 1) < 4 * sqrt(2.0 / seeds));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_alike), cmocka_unit_test(test_extra),
		cmocka_unit_test(test_sure), cmocka_unit_test(test_matrix), cmocka_unit_test(test_law)};
	return cmocka_run_group_tests(tests, enter, remove_folder);
}
