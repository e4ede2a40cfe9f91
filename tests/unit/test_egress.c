/* SPDX-License-Identifier: Apache-2.0
 *
 * test_egress.c - prices of traffic in topology files: which of link, site and fallback holds, what is not known, and what is
 * refused. Sums of runs are held against the database in tests/cli/egress.sh.
 */
#include "topologies/read/topology.h"

#include <math.h>
#include <sys/stat.h>

#include "tests/unit/topology_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char profile[] =
	"{name: card, source: assumed, flops: 1 TFLOP/s, efficiency: 0.5, memory_bandwidth: 1 GB/s, "
	"memory: 1 GB, overhead: 1 us}\n";

static const char sites_form[] =
	"name: three\nsource: assumed by this test\ndirectory: west\nsites:\n"
	"  west: {machines: [{count: 2, gpu: card}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}, egress: 0.08 USD/GB}\n" /* 5 */
	"  east: {machines: [{count: 2, gpu: card}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms, egress: 0.01 USD/GB}}\n"
	"  home: {machines: [{gpu: card}]}\n"
	"links:\n"
	"  - {from: west, to: east, bandwidth: 200 Mbit/s, latency: 10 ms, egress: 20 USD/TB}\n"
	"  - {from: east, to: west, bandwidth: 100 Mbit/s, latency: 20 ms}\n" /* 10 */
	"fallback: {bandwidth: 10 Mbit/s, latency: 9 ms, egress: 0 USD/GB}\n";

static const char matrix_form[] = "name: three\nsource: not measured\nmatrix:\n"
				  "  bandwidth: 1 Gbit/s\n  latency: 1 ms\n" /* 5 */
				  "  egress: prices.csv\n"
				  "  egress_unit: USD/GB\n"
				  "machines: [{count: 3, gpu: card}]\n"
				  "directory: 2\n";

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || mkdir(in_folder("gpus"), 0700) != 0)
		return -1;
	put("gpus/card.yaml", profile);
	put("prices.csv", "0, 0.01, 0.02\n0.03, 0, nan\n0.05, 0.06, 0\n");
	return 0;
}

static void check_price(double usd_per_B, double usd_per_GB)
{
	assert_true(fabs(usd_per_B - 1e-9 * usd_per_GB) <= 1e-12 * 1e-9 * usd_per_GB);
}

/* west is machines 0 and 1, east 2 and 3, home 4; the directory, 5, is in west. */
static void test_link_before_site_before_fallback(void **state)
{
	(void)state;
	put("t.yaml", sites_form);
	struct skep_topology t = read_good("t.yaml");
	check_price(skep_topology_egress_usd_per_B(&t, 0, 2), 0.02);
	check_price(skep_topology_egress_usd_per_B(&t, 1, 4), 0.08); /* by the fallback's line, at the site's price */
	check_price(skep_topology_egress_usd_per_B(&t, 2, 4), 0);    /* the fallback's */
	check_price(skep_topology_egress_usd_per_B(&t, 4, 0), 0);
	check_price(skep_topology_egress_usd_per_B(&t, 0, 1), 0); /* inside */
	check_price(skep_topology_egress_usd_per_B(&t, 2, 3), 0.01);
	check_price(skep_topology_egress_usd_per_B(&t, 2, 2), 0);     /* inside of the machine */
	check_price(skep_topology_egress_usd_per_B(&t, 5, 3), 0.02);  /* of the directory */
	assert_true(isnan(skep_topology_egress_usd_per_B(&t, 3, 1))); /* a link, a site and no price */
	assert_true(isnan(skep_topology_egress_usd(&t, 3, 5, 1)));
	check_price(skep_topology_egress_usd(&t, 3, 5, 0), 0);
	check_price(skep_topology_egress_usd(&t, 0, 2, 1e9), 0.02e9);
	skep_topology_finish(&t);
}

static void test_none(void **state)
{
	(void)state;
	put("t.yaml", "name: one\nsource: assumed by this test\ndirectory: west\nsites:\n"
		      "  west: {machines: [{count: 2, gpu: card}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}\n");
	struct skep_topology t = read_good("t.yaml");
	assert_null(t.egress_usd_per_B);
	assert_true(isnan(skep_topology_egress_usd_per_B(&t, 0, 1)));
	assert_true(skep_topology_set_egress(&t, 0, 0, 3e-9));
	check_price(skep_topology_egress_usd_per_B(&t, 0, 1), 3);
	skep_topology_finish(&t);
}

static void test_matrix(void **state)
{
	(void)state;
	put("t.yaml", matrix_form);
	struct skep_topology t = read_good("t.yaml");
	check_price(skep_topology_egress_usd_per_B(&t, 0, 1), 0.01);
	check_price(skep_topology_egress_usd_per_B(&t, 2, 1), 0.06);
	assert_true(isnan(skep_topology_egress_usd_per_B(&t, 1, 2)));
	assert_non_null(strstr(t.matrix_path[2], "prices.csv"));
	skep_topology_finish(&t);
	put_changed("t.yaml", matrix_form, "prices.csv\n  egress_unit: USD/GB", "5 USD/TiB");
	t = read_good("t.yaml");
	assert_true(fabs(skep_topology_egress_usd_per_B(&t, 1, 2) - 5 * 0x1p-40) < 1e-24);
	check_price(skep_topology_egress_usd_per_B(&t, 1, 1), 0);
	skep_topology_finish(&t);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *find, *replace;
		uint32_t line;
		const char *message;
	} faults[] = {
		{sites_form, "egress: 0.08 USD/GB", "egress: 0.08", 5, "a price of traffic with its unit"},
		{sites_form, "egress: 0.08 USD/GB", "egress: 0.08 USD/h", 5, "a price of traffic with its unit"},
		{sites_form, "egress: 0.08 USD/GB", "egress: -0.08 USD/GB", 5, "0 USD/GB"},
		{sites_form, "egress: 0.01 USD/GB", "egress: 2000 USD/GB", 6, "1000 USD/GB"},
		{sites_form, "egress: 20 USD/TB", "egress: nan USD/GB", 9, "a price of traffic with its unit"},
		{sites_form, "egress: 20 USD/TB", "egress: [1 USD/GB]", 9, "expected"},
		{matrix_form, "egress: prices.csv", "egress: absent.csv", 6, "no file 'absent.csv'"},
		{matrix_form, "egress_unit: USD/GB", "egress_unit: USD/h", 7, "expected the unit alone"},
		{matrix_form, "  egress_unit: USD/GB\n", "", 4, "egress_unit"},
	};
	put("prices.csv", "0, 0.01, 0.02\n0.03, 0, 0.04\n0.05, 0.06, 0\n");
	for (size_t i = 0; i < COUNT(faults); i++) {
		struct skep_topology t;
		struct skep_diag diag = {0};
		put_changed("t.yaml", faults[i].text, faults[i].find, faults[i].replace);
		if (skep_topology_read(in_folder("t.yaml"), &t, &diag))
			fail_msg("'%s' was accepted", faults[i].replace);
		if (diag.line != faults[i].line || !strstr(diag.message, faults[i].message))
			fail_msg("'%s': line %u: %s", faults[i].replace, diag.line, diag.message);
		assert_null(t.egress_usd_per_B);
	}
	struct skep_topology t;
	struct skep_diag diag = {0};
	put("prices.csv", "0, 0.01, 0.02\n0.03, 0, 2000\n0.05, 0.06, 0\n");
	put("t.yaml", matrix_form);
	assert_false(skep_topology_read(in_folder("t.yaml"), &t, &diag));
	assert_non_null(strstr(diag.file, "prices.csv"));
	assert_int_equal(diag.line, 2);
	assert_non_null(strstr(diag.message, "egress from 1 to 2: expected 0 to 1000 USD/GB"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link_before_site_before_fallback),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests_name("egress", tests, set_up, remove_folder);
}
