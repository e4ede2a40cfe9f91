/* SPDX-License-Identifier: Apache-2.0
 *
 * test_link_profiles.c - what a topology file says of its links besides bandwidth and latency: what each key gives, for the
 * file and for one link, and that each fault is refused with the place where it stands.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scenarios/read/scenario.h"
#include "scenarios/read/sources.h"
#include "tests/unit/topology_fixture.h"
#include "topologies/read/path.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Line 3 is free for keys of the whole file. */
#define ONE_WAY                                                                                                        \
	"name: two\nsource: assumed by this test\n"                                                                    \
	"fallback: {bandwidth: 1 MB/s, latency: 1 s}\n"                                                                \
	"directory: west\nsites:\n" /* 5 */                                                                            \
	"  west:\n"                                                                                                    \
	"    machines: [{count: 2, gpu: t4}]\n"                                                                        \
	"    inside: {bandwidth: 1 GB/s, latency: 1 ms}\n"                                                             \
	"  east:\n"                                                                                                    \
	"    machines: [{count: 2, gpu: t4}]\n" /* 10 */                                                               \
	"    inside: {bandwidth: 1 MB/s, latency: 1 s}\n"                                                              \
	"links:\n"                                                                                                     \
	"  - {from: west, to: east, bandwidth: 20 MB/s, latency: 40 ms}\n"
static const char sites_form[] = ONE_WAY "  - {from: east, to: west, bandwidth: 10 MB/s, latency: 60 ms}\n";
static const char one_way_form[] = ONE_WAY; /* from east to west there is the fallback */

static struct skep_topology read_changed(const char *find, const char *replace)
{
	put_changed("t.yaml", sites_form, find, replace);
	return read_good("t.yaml");
}

static struct skep_topology read_one_way(const char *find, const char *replace)
{
	put_changed("t.yaml", one_way_form, find, replace);
	return read_good("t.yaml");
}

static void near_to(double got, double want)
{
	if (fabs(got - want) > 1e-12 * fabs(want))
		fail_msg("%.9g, expected %.9g", got, want);
}

/* ---- what is given ------------------------------------------------------------------------------------------------- */

static void without_keys_there_are_no_link_profiles(void **state)
{
	(void)state;
	struct skep_topology t = read_changed("two", "one");
	assert_true(t.link_profiles == 0 && !t.site_link && !t.link_profile_of);
	assert_null(skep_path_link_profile(&t, 0, 1));
	assert_true(isinf(skep_path_cap_Bps(&t, 0, 1)));
	near_to(skep_path_least_Bps(&t, 0, 1), 20e6);
	near_to(skep_path_late_s(&t, 0, 1), 0.04);
	skep_topology_finish(&t);
}

static void a_packet_counts_where_some_are_lost(void **state)
{
	(void)state;
	static const char *const good[] = {"mss: 1 kB\nloss: 1 %\n", "mss: 1 kB\nloss: 0 %\n"};
	for (size_t i = 0; i < COUNT(good); i++) {
		char text[64];
		snprintf(text, sizeof text, "%sfallback", good[i]);
		struct skep_topology t = read_changed("fallback", text);
		near_to(t.link_profile[0].mss_bytes, 1000);
		skep_topology_finish(&t);
	}
	struct skep_topology t = read_changed("latency: 1 s}", "latency: 1 s, loss: 1 %}\nmss: 1 kB");
	near_to(t.link_profile[0].mss_bytes, 1000);
	skep_topology_finish(&t);
}

static void keys_of_the_file_are_of_all_its_links(void **state)
{
	(void)state;
	struct skep_topology t =
		read_changed("fallback", "window: 4 MiB\nloss: 0.1 %\nmss: 1000 B\noverhead: 20 us\norder: free\n"
					 "jitter: {distribution: lognormal, deviation: 25 %}\nfallback");
	assert_true(t.link_profiles == 1 && !t.link_profile_of);
	for (uint32_t i = 0; i < 4; i++) {
		const struct skep_link_profile *link_profile = skep_path_link_profile(&t, i / 2, i % 2);
		assert_non_null(link_profile);
		near_to(link_profile->window_bytes, 4 << 20);
		near_to(link_profile->loss, 0.001);
		near_to(link_profile->mss_bytes, 1000);
		near_to(link_profile->overhead_s, 20e-6);
		assert_true(link_profile->overtake && link_profile->jitter.kind == SKEP_JITTER_LOGNORMAL &&
			    link_profile->jitter.relative);
		near_to(link_profile->jitter.deviation, 0.25);
	}
	near_to(skep_path_cap_Bps(&t, 0, 1), 1000 / 0.1 * sqrt(1.5 / 0.001));
	near_to(skep_path_late_s(&t, 1, 0), 0.06 + 4 * 0.015);
	skep_topology_finish(&t);
}

/* One for each pair unless the file says otherwise; what a link does not say is as at the top. */
static void streams_are_of_the_file_or_a_link(void **state)
{
	(void)state;
	struct skep_topology t = read_changed("fallback", "fallback");
	assert_int_equal(t.link_profiles, 0);
	assert_int_equal(skep_path_streams(&t, 0, 1), 1);
	skep_topology_finish(&t);
	t = read_changed("fallback", "streams: 1\nfallback");
	assert_int_equal(t.link_profiles, 0);
	skep_topology_finish(&t);
	t = read_changed("latency: 40 ms", "latency: 40 ms, streams: 3");
	assert_int_equal(skep_path_streams(&t, 0, 1), 3);
	assert_int_equal(skep_path_streams(&t, 1, 0), 1);
	skep_topology_finish(&t);
	t = read_one_way("fallback: {bandwidth: 1 MB/s, latency: 1 s}",
		"streams: each\nfallback: {bandwidth: 1 MB/s, latency: 1 s, streams: 1024, window: 100 kB}");
	assert_int_equal(skep_path_streams(&t, 0, 1), SKEP_STREAMS_EACH);
	assert_int_equal(skep_path_streams(&t, 1, 0), 1024);
	skep_topology_finish(&t);
}

static void a_link_says_otherwise(void **state)
{
	(void)state;
	struct skep_topology t = read_one_way("fallback: {bandwidth: 1 MB/s, latency: 1 s}",
		"window: 1 MB\noverhead: 5 us\nfallback: {bandwidth: 1 MB/s, latency: 1 s, window: 100 kB}");
	near_to(skep_path_cap_Bps(&t, 0, 1), 1e6 / 1.04);
	near_to(skep_path_cap_Bps(&t, 0, 0), 1e6 / 0.002);
	near_to(skep_path_cap_Bps(&t, 1, 0), 1e5 / 1.04);
	near_to(skep_path_overhead_s(&t, 1, 0), 5e-6);
	skep_topology_finish(&t);
	t = read_changed("latency: 40 ms", "latency: 40 ± 15 ms, window: 50 kB, loss: 1 %");
	near_to(skep_path_cap_Bps(&t, 0, 1), fmin(5e4 / 0.1, 1460 / 0.1 * sqrt(150)));
	near_to(skep_path_link_profile(&t, 0, 1)->jitter.deviation, 0.015);
	assert_true(isinf(skep_path_cap_Bps(&t, 1, 0)));
	assert_int_equal(skep_path_link_profile(&t, 1, 0)->jitter.kind, SKEP_JITTER_NONE);
	skep_topology_finish(&t);
	t = read_changed("fallback", "jitter: {distribution: normal, deviation: 1 ms}\nfallback");
	assert_int_equal(skep_path_link_profile(&t, 1, 0)->jitter.kind, SKEP_JITTER_NORMAL);
	skep_topology_finish(&t);
}

static void links_may_be_made_longer(void **state)
{
	(void)state;
	struct skep_topology t = read_changed("latency: 40 ms", "latency: 40 ms");
	double across_s = skep_topology_pair(&t, 0, 2).latency_s, inside_s = skep_topology_pair(&t, 0, 1).latency_s;
	skep_topology_add_latency(&t, 0.025);
	near_to(skep_topology_pair(&t, 0, 2).latency_s, across_s + 0.025);
	near_to(skep_topology_pair(&t, 0, 1).latency_s, inside_s + 0.025);
	near_to(skep_topology_pair(&t, 1, 1).latency_s, 0);
	skep_topology_finish(&t);
}

static void a_latency_may_have_a_deviation(void **state)
{
	(void)state;
	static const char *const way[] = {
		"100 ± 50 ms", "100±50 ms", "100 +- 50 ms", "100 ms ± 50 ms", "0.1 s +-50 ms", "100+-50 ms"};
	for (size_t i = 0; i < COUNT(way); i++) {
		char text[64];
		snprintf(text, sizeof text, "latency: %s", way[i]);
		struct skep_topology t = read_changed("latency: 40 ms", text);
		near_to(skep_topology_pair(&t, 0, 2).latency_s, 0.1);
		const struct skep_jitter *jitter = &skep_path_link_profile(&t, 0, 1)->jitter;
		assert_true(jitter->kind == SKEP_JITTER_NORMAL && !jitter->relative);
		near_to(jitter->deviation, 0.05);
		skep_topology_finish(&t);
	}
	struct skep_topology t =
		read_changed("latency: 40 ms", "latency: 10 ± 50 ms"); /* larger than the mean: cut off */
	near_to(skep_path_late_s(&t, 0, 1), 0.01 + 4 * 0.05);
	skep_topology_finish(&t);
}

static void tables_come_from_lists_and_files(void **state)
{
	(void)state;
	struct skep_topology t = read_changed("latency: 40 ms",
		"latency: 40 ms, jitter: {distribution: empirical, values: [0 ms, 2 ms, -1 ms, 11 ms]}");
	const struct skep_jitter *jitter = &skep_path_link_profile(&t, 0, 1)->jitter;
	assert_int_equal(jitter->count, 4);
	near_to(t.delay_s[jitter->first + 3], 0.011);
	near_to(skep_path_mean_s(&t, 0, 1), 0.043);
	near_to(skep_path_late_s(&t, 0, 1), 0.051);
	near_to(skep_path_mean_s(&t, 1, 0), 0.06);
	skep_topology_finish(&t);
	put("delays.csv", "# above the least, ms\n0\n1.5\n\n30\n");
	t = read_changed("fallback", "jitter: {distribution: empirical, file: delays.csv, unit: ms}\n"
				     "fallback");
	jitter = &skep_path_link_profile(&t, 1, 0)->jitter;
	assert_true(jitter->count == 3 && t.delays == 3 && t.delay_files == 1);
	near_to(t.delay_s[2], 0.03);
	near_to(skep_path_mean_s(&t, 1, 0), 0.06 + 0.0105);
	assert_string_equal(t.delay_file[0].path, in_folder("delays.csv"));
	skep_topology_finish(&t);
}

static void a_file_of_delays_is_read_once_and_is_a_source(void **state)
{
	(void)state;
	put("delays.csv", "0\n1\n");
	struct skep_scenario scenario = {
		.topology = read_changed("latency: 40 ms}\n  - {from: east, to: west, bandwidth: "
					 "10 MB/s, latency: 60 ms}",
			"latency: 40 ms, jitter: {distribution: empirical, file: delays.csv, "
			"unit: ms}}\n"
			"  - {from: east, to: west, bandwidth: 10 MB/s, latency: 60 ms, jitter: "
			"{distribution: empirical, file: delays.csv, unit: ms}}")};
	assert_true(scenario.topology.delays == 2 && scenario.topology.delay_files == 1);
	assert_int_equal(scenario.topology.link_profiles, 2); /* the file's, and that of both links */
	bool found = false;
	const char *path;
	for (uint32_t i = 0; (path = skep_scenario_source(&scenario, i)) != NULL; i++)
		found |= strcmp(path, in_folder("delays.csv")) == 0;
	assert_true(found);
	skep_topology_finish(&scenario.topology);
}

static void sites_have_uplinks_and_downlinks(void **state)
{
	(void)state;
	struct skep_topology t = read_changed("  east:\n", "  east:\n    uplink: 8 Mbit/s\n");
	assert_non_null(t.site_link);
	assert_true(isinf(t.site_link[0].up_Bps) && isinf(t.site_link[0].down_Bps) && isinf(t.site_link[1].down_Bps));
	near_to(t.site_link[1].up_Bps, 1e6);
	near_to(skep_path_least_Bps(&t, 1, 0), 1e6);
	near_to(skep_path_least_Bps(&t, 0, 1), 20e6);
	skep_topology_finish(&t);
	t = read_changed("  west:\n", "  west:\n    downlink: 4 Mbit/s\n");
	near_to(skep_path_least_Bps(&t, 1, 0), 5e5);
	near_to(skep_path_least_Bps(&t, 0, 0), 1e9);
	skep_topology_finish(&t);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

struct fault {
	const char *find, *replace;
	const char *file; /* NULL: the topology */
	uint32_t line;
	const char *at; /* what stands at the caret */
	const char *message;
};

static void check_refused(const struct fault *fault)
{
	struct skep_topology topology;
	struct skep_diag diag = {0};
	put_changed("t.yaml", sites_form, fault->find, fault->replace);
	if (skep_topology_read(in_folder("t.yaml"), &topology, &diag) || !diag.set)
		fail_msg("'%s' was accepted", fault->replace);
	const char *file = in_folder(fault->file ? fault->file : "t.yaml");
	if (strcmp(diag.file, file) != 0 || diag.line != fault->line || !strstr(diag.message, fault->message))
		fail_msg("'%s': %s:%u: %s", fault->replace, diag.file, diag.line, diag.message);
	if (diag.line > 0 && strncmp(diag.text + diag.caret, fault->at, strlen(fault->at)) != 0)
		fail_msg("'%s': caret %u of '%s'", fault->replace, diag.caret, diag.text);
}

#define LINK(keys) "latency: 60 ms", "latency: 60 ms, " keys, NULL, 14

static void faults_are_refused_where_they_stand(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"fallback", "window: 0 B\nfallback", NULL, 3, "0 B", "never moves: expected at least 1 B"},
		{"fallback", "window: -4 MiB\nfallback", NULL, 3, "-4 MiB", "never moves"},
		{"fallback", "window: 4 Mbit/s\nfallback", NULL, 3, "4 Mbit/s", "a size with its unit"},
		{"fallback", "loss: 100 %\nfallback", NULL, 3, "100 %", "nothing arrives"},
		{"fallback", "loss: 0.1\nfallback", NULL, 3, "0.1", "such as `0.1 %`"},
		{"fallback", "loss: -1 %\nfallback", NULL, 3, "-1 %", "at least 0"},
		{"fallback", "overhead: -1 us\nfallback", NULL, 3, "-1 us", "0"},
		{"fallback", "mss: 0 B\nfallback", NULL, 3, "0 B", "1 B"},
		{"fallback", "mss: 1 kB\nfallback", NULL, 3, "1 kB", "counts with `loss` alone"},
		{LINK("mss: 1 kB"), "1 kB", "counts with `loss` alone"},
		{"fallback", "streams: 0\nfallback", NULL, 3, "0", "1 to 1024"},
		{"fallback", "streams: 1025\nfallback", NULL, 3, "1025", "1 to 1024"},
		{"fallback", "streams: all\nfallback", NULL, 3, "all", "1 to 1024, or `each`"},
		{LINK("streams: -1"), "-1", "1 to 1024, or `each`"},
		{LINK("streams: [2]"), "[2]", "expected"},
		{"fallback", "order: any\nfallback", NULL, 3, "any", "kept, free"},
		{"fallback", "jitter: 50 ms\nfallback", NULL, 3, "50 ms", "keys with values"},
		{"fallback", "latency: 3 ms\nfallback", NULL, 3, "latency", "unknown key"},
		{LINK("window: 0 B"), "0 B", "never moves"},
		{LINK("jitter: {distribution: cauchy, deviation: 1 ms}"), "cauchy",
			"none, normal, lognormal, empirical"},
		{LINK("jitter: {deviation: 1 ms}"), "{deviation", "distribution"},
		{LINK("jitter: {distribution: normal}"), "{distribution", "deviation"},
		{LINK("jitter: {distribution: normal, deviation: -1 ms}"), "-1 ms", "at least 0"},
		{LINK("jitter: {distribution: normal, deviation: 12}"), "12", "a part of the latency"},
		{LINK("jitter: {distribution: normal, values: [1 ms]}"), "{distribution", "deviation` is missing"},
		{LINK("jitter: {distribution: normal, deviation: 1 ms, mean: 3 ms}"), "mean", "unknown key"},
		{LINK("jitter: {distribution: empirical}"), "{distribution", "expected a table"},
		{LINK("jitter: {distribution: empirical, values: []}"), "[]", "the table is empty"},
		{LINK("jitter: {distribution: empirical, values: [1 ms, 3]}"), "3", "a time with its unit"},
		{LINK("jitter: {distribution: empirical, values: [1 ms], file: a}"), "a}", "not both"},
		{LINK("jitter: {distribution: empirical, file: a, unit: ms}"), "a, unit", "no file"},
		{LINK("jitter: {distribution: empirical, file: empty.csv}"), "{distribution", "unit"},
		{LINK("jitter: {distribution: empirical, file: empty.csv, unit: mm}"), "mm", "the unit alone"},
		{"latency: 60 ms", "latency: 60 ms, jitter: {distribution: empirical, file: empty.csv, unit: ms}",
			"empty.csv", 0, "", "no delay in this file"},
		{"latency: 60 ms", "latency: 60 ms, jitter: {distribution: empirical, file: bad.csv, unit: ms}",
			"bad.csv", 2, "x7", "a delay in ms"},
		{"latency: 60 ms", "latency: 60 +- 5 ms, jitter: {distribution: normal, deviation: 1 ms}", NULL, 14,
			"{distribution", "not both"},
		{"latency: 60 ms", "latency: 60 ± ms", NULL, 14, "60", "two values"},
		{"latency: 60 ms", "latency: 60 ms ± 5", NULL, 14, "60", "two values"},
		{"latency: 60 ms", "latency: 60 ± -5 ms", NULL, 14, "60", "from 0 s"},
		{"latency: 60 ms", "latency: -60 ± 5 ms", NULL, 14, "-60", "from 0 s"},
		{"latency: 60 ms", "latency: 60 ± 5 GB", NULL, 14, "60", "two values"},
		{"  east:\n", "  east:\n    uplink: 0 Mbit/s\n", NULL, 10, "0 Mbit/s", "from 8 bit/s to 8000 Tbit/s"},
		{"  east:\n", "  east:\n    downlink: 5 MiB\n", NULL, 10, "5 MiB", "a bandwidth with its unit"},
	};
	put("empty.csv", "# nothing\n");
	put("bad.csv", "1\nx7\n");
	for (size_t i = 0; i < COUNT(faults); i++)
		check_refused(&faults[i]);
}

/* Thousands of links that all differ are refused, not taken for one another. */
static void there_is_an_end_to_differences(void **state)
{
	(void)state;
	struct skep_topology t;
	struct skep_diag diag = {0};
	FILE *file = fopen(in_folder("t.yaml"), "w");
	assert_non_null(file);
	fputs("name: t\nsource: assumed\ndirectory: s0\nfallback: {bandwidth: 1 MB/s, latency: 1 ms}\nsites:\n", file);
	for (int i = 0; i < 80; i++)
		fprintf(file, "  s%d: {machines: [{gpu: t4}]}\n", i);
	fputs("links:\n", file);
	for (int i = 0; i < 80 * 80; i++)
		if (i / 80 != i % 80)
			fprintf(file, "  - {from: s%d, to: s%d, bandwidth: 1 MB/s, latency: 1 ms, window: %d B}\n",
				i / 80, i % 80, i + 1);
	assert_int_equal(fclose(file), 0);
	assert_false(skep_topology_read(in_folder("t.yaml"), &t, &diag));
	assert_non_null(strstr(diag.message, "more than 4096 links that differ"));
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_keys_there_are_no_link_profiles),
		cmocka_unit_test(a_packet_counts_where_some_are_lost),
		cmocka_unit_test(keys_of_the_file_are_of_all_its_links),
		cmocka_unit_test(streams_are_of_the_file_or_a_link),
		cmocka_unit_test(a_link_says_otherwise),
		cmocka_unit_test(links_may_be_made_longer),
		cmocka_unit_test(a_latency_may_have_a_deviation),
		cmocka_unit_test(tables_come_from_lists_and_files),
		cmocka_unit_test(a_file_of_delays_is_read_once_and_is_a_source),
		cmocka_unit_test(sites_have_uplinks_and_downlinks),
		cmocka_unit_test(faults_are_refused_where_they_stand),
		cmocka_unit_test(there_is_an_end_to_differences),
	};
	return cmocka_run_group_tests_name("traits", tests, set_up, remove_folder);
}
