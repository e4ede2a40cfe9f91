/* SPDX-License-Identifier: Apache-2.0
 *
 * test_topology.c - topology files: what both forms give, what they default to, and that each fault is refused with the
 * place where it stands. The caret is checked by the text that it points at.
 */
#include "topologies/read/topology.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/topology_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char profile[] =
	"{name: %s, source: assumed, flops: %d TFLOP/s, efficiency: 0.5, memory_bandwidth: 1 GB/s, "
	"memory: 1 GB, overhead: 1 us}\n";

/* line 1 is the name */
static const char sites_form[] = "name: two\nsource: assumed by this test\ndirectory: west\nsites:\n"
				 "  west:\n" /* 5 */
				 "    machines:\n"
				 "      - {count: 2, gpu: slow, up: 8 Gbit/s, down: 4 Gbit/s, price: 0.5 USD/h}\n"
				 "      - {gpu: fast}\n"
				 "    inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}\n"
				 "  east:\n" /* 10 */
				 "    machines: [{count: 3, gpu: fast}]\n"
				 "    inside: {bandwidth: 20 Gbit/s, latency: 0.1 ms}\n"
				 "links:\n"
				 "  - {from: west, to: east, bandwidth: 200 Mbit/s, latency: 10 ms, shared: true}\n"
				 "  - {from: east, to: west, bandwidth: 100 Mbit/s, latency: 20 ms}\n"; /* 15 */

static const char matrix_form[] = "name: three\nsource: not measured\nmatrix:\n"
				  "  bandwidth: bandwidth.csv\n  bandwidth_unit: Mbit/s\n" /* 5 */
				  "  latency: latency.csv\n  latency_unit: ms\n"
				  "  names: [red, green, blue]\n"
				  "machines:\n"
				  "  - {count: 2, gpu: slow, up: 1 Gbit/s}\n" /* 10 */
				  "  - {gpu: fast, price: 2 USD/h}\n"
				  "directory: 2\n";

static const char bandwidth_csv[] = "# Mbit/s\n0, 100, 200\n\n300, 0, 400\n500, 600, 0 # last\n";
static const char latency_csv[] = "0,1,2\n3,0,4\n5,6,0\n";

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

struct fault {
	const char *find, *replace;
	const char *file; /* NULL: the topology */
	uint32_t line;    /* 0: the file as a whole */
	const char *at;   /* what stands at the caret */
	const char *message;
};

static void check_refused(const struct fault *fault)
{
	struct skep_topology topology;
	struct skep_diag diag = {0};
	const char *file = in_folder(fault->file ? fault->file : "t.yaml");
	char expected[128];
	snprintf(expected, sizeof expected, "%s", file);
	bool ok = skep_topology_read(in_folder("t.yaml"), &topology, &diag);
	if (ok || !diag.set)
		fail_msg("'%s' -> '%s' was accepted", fault->find, fault->replace);
	if (strcmp(diag.file, expected) != 0 || diag.line != fault->line || !strstr(diag.message, fault->message))
		fail_msg("'%s' -> '%s': %s:%u: %s", fault->find, fault->replace, diag.file, diag.line, diag.message);
	if (diag.line > 0 && strncmp(diag.text + diag.caret, fault->at, strlen(fault->at)) != 0)
		fail_msg("'%s' -> '%s': caret %u of '%s'", fault->find, fault->replace, diag.caret, diag.text);
	if (diag.line > 0 && strlen(diag.text) < 200)
		assert_int_equal(diag.column, diag.caret + 1);
	assert_null(topology.machine);
	assert_null(topology.pair);
	assert_int_equal(topology.machines, 0);
}

static void check_pair(struct skep_pair pair, double capacity_Bps, double latency_s, double shared_Bps)
{
	assert_true(pair.capacity_Bps == capacity_Bps || fabs(pair.capacity_Bps - capacity_Bps) < 1e-9 * capacity_Bps);
	assert_true(fabs(pair.latency_s - latency_s) <= 1e-12 * latency_s);
	assert_true(pair.shared_Bps == shared_Bps);
}

static int set_up(void **state)
{
	(void)state;
	static const char *const names[] = {"slow", "fast", "broken"};
	if (!mkdtemp(folder) || mkdir(in_folder("gpus"), 0700) != 0)
		return -1;
	for (int i = 0; i < 3; i++) { /* the last has a speed of 0 */
		char text[256], path[32];
		snprintf(text, sizeof text, profile, names[i], i < 2 ? 1 : 0);
		snprintf(path, sizeof path, "gpus/%s.yaml", names[i]);
		put(path, text);
	}
	put("bandwidth.csv", bandwidth_csv);
	put("latency.csv", latency_csv);
	return 0;
}

/* ---- sites form -------------------------------------------------------------------------------------------------- */

static void test_sites(void **state)
{
	(void)state;
	put("t.yaml", sites_form);
	struct skep_topology t = read_good("t.yaml");
	assert_string_equal(t.name, "two");
	assert_string_equal(t.source, "assumed by this test");
	assert_int_equal(t.machines, 6);
	assert_int_equal(t.places, 2);
	assert_string_equal(t.place_name[0], "west");
	assert_string_equal(t.place_name[1], "east");
	static const char *const gpu[] = {"slow", "slow", "fast", "fast", "fast", "fast"};
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(t.machine[i].place, i < 3 ? 0 : 1);
		assert_string_equal(t.gpu[t.machine[i].gpu].name, gpu[i]);
	}
	assert_int_equal(t.gpus, 2); /* each profile once */
	assert_true(t.machine[1].up_Bps == 1e9 && t.machine[1].down_Bps == 0.5e9);
	assert_true(t.machine[1].price_usd_per_h == 0.5);
	assert_true(isinf(t.machine[2].up_Bps) && isinf(t.machine[2].down_Bps));
	assert_true(t.machine[2].price_usd_per_h == 0);
	assert_int_equal(t.machine[6].place, 0); /* the directory */
	assert_true(isinf(t.machine[6].up_Bps) && isinf(t.machine[6].down_Bps));
	skep_topology_finish(&t);
	assert_null(t.machine);
}

static void test_sites_pairs(void **state)
{
	(void)state;
	put("t.yaml", sites_form);
	struct skep_topology t = read_good("t.yaml");
	check_pair(skep_topology_pair(&t, 0, 2), 1.25e9, 5e-5, INFINITY);
	check_pair(skep_topology_pair(&t, 3, 5), 2.5e9, 1e-4, INFINITY);
	check_pair(skep_topology_pair(&t, 1, 4), 25e6, 0.010, 25e6);       /* west to east */
	check_pair(skep_topology_pair(&t, 4, 1), 12.5e6, 0.020, INFINITY); /* and back */
	check_pair(skep_topology_pair(&t, 6, 0), 1.25e9, 5e-5, INFINITY);  /* the directory stands in west */
	check_pair(skep_topology_pair(&t, 6, 5), 25e6, 0.010, 25e6);
	check_pair(skep_topology_pair(&t, 5, 6), 12.5e6, 0.020, INFINITY);
	for (uint32_t i = 0; i <= 6; i++)
		check_pair(skep_topology_pair(&t, i, i), INFINITY, 0, INFINITY);
	skep_topology_finish(&t);
}

static void test_between_is_both_directions(void **state)
{
	(void)state;
	put_changed("t.yaml", sites_form, strstr(sites_form, "  - {from: west"),
		"  - {between: [east, west], bandwidth: 1 MB/s, latency: 0 s, shared: true}\n");
	struct skep_topology t = read_good("t.yaml");
	check_pair(skep_topology_pair(&t, 0, 3), 1e6, 0, 1e6);
	check_pair(skep_topology_pair(&t, 3, 0), 1e6, 0, 1e6);
	skep_topology_finish(&t);
}

static void test_fallback_fills_what_is_missing(void **state)
{
	(void)state;
	char text[4096];
	snprintf(text, sizeof text, "%sfallback: {bandwidth: 3 MB/s, latency: 3 s}\n", sites_form);
	put_changed("t.yaml", text, "  - {from: east, to: west, bandwidth: 100 Mbit/s, latency: 20 ms}\n", "");
	struct skep_topology t = read_good("t.yaml");
	check_pair(skep_topology_pair(&t, 0, 3), 25e6, 0.010, 25e6);
	check_pair(skep_topology_pair(&t, 3, 0), 3e6, 3, INFINITY);
	skep_topology_finish(&t);
}

/* A single machine at a site has no other machine there to talk to, unless the directory stands there too. */
static void test_inside_is_needed_by_two_endpoints(void **state)
{
	(void)state;
	static const char one[] = "name: t\nsource: assumed\ndirectory: b\n"
				  "sites: {a: {machines: [{gpu: slow}]}, b: {}}\n"
				  "links: [{between: [a, b], bandwidth: 1 MB/s, latency: 1 s}]\n";
	put("t.yaml", one);
	struct skep_topology t = read_good("t.yaml");
	assert_int_equal(t.machines, 1);
	check_pair(skep_topology_pair(&t, 0, 1), 1e6, 1, INFINITY);
	skep_topology_finish(&t);
	put_changed("t.yaml", one, "directory: b", "directory: a");
	check_refused(&(struct fault){"b", "a", NULL, 4, "{machines", "site a has several endpoints"});
	put_changed("t.yaml", one, "directory: b", "fallback: {bandwidth: 1 MB/s, latency: 1 s}\ndirectory: a");
	check_refused(&(struct fault){"b", "a", NULL, 5, "{machines", "the fallback is of links between sites"});
}

static void test_refuses_bad_sites(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"name: two", "name: two\ncolour: red", NULL, 2, "colour", "colour"},
		{"source: assumed by this test", "source: a guess", NULL, 2, "a guess",
			"measured, published or assumed"},
		{"source: assumed by this test\n", "", NULL, 1, "name", "source"},
		{"directory: west\n", "", NULL, 1, "name", "directory"},
		{"directory: west", "directory: north", NULL, 3, "north", "there are: west, east"},
		{"links:", "fallback: {bandwidth: 1 B/s, latency: 1 s, x: 1}\nlinks:", NULL, 13, "x: 1", "x"},
		{"gpu: slow", "gpu: slwo", NULL, 7, "slwo", "there are: broken, fast, slow"},
		{"gpu: slow", "gpu: broken", "gpus/broken.yaml", 1, "0 TFLOP/s", ""},
		{"gpu: slow, ", "", NULL, 7, "", "gpu"},
		{"gpu: slow", "gpu: ../slow", NULL, 7, "../slow", "no GPU profile"},
		{"count: 2", "count: 0", NULL, 7, "0", ""},
		{"count: 2", "count: 1.5", NULL, 7, "1.5", ""},
		{"count: 3", "count: 1048576", NULL, 11, "1048576", "more than 1048576 machines"},
		{"count: 2", "cuont: 2", NULL, 7, "cuont", "count"},
		{"up: 8 Gbit/s", "up: 0 Gbit/s", NULL, 7, "0 Gbit/s", ""},
		{"up: 8 Gbit/s", "up: 8", NULL, 7, "8", "Mbit/s"},
		{"down: 4 Gbit/s", "down: nan Gbit/s", NULL, 7, "nan", ""},
		{"price: 0.5 USD/h", "price: -0.5 USD/h", NULL, 7, "-0.5", ""},
		{"- {gpu: fast}", "- fast", NULL, 8, "fast", ""},
		{"    machines: [{count: 3, gpu: fast}]", "    machines: 3", NULL, 11, "3", ""},
		{"  east:\n", "  west:\n", NULL, 10, "west", "west"},
		{"  east:", "  a-name-of-a-site-that-is-longer-than-any-name:", NULL, 11, "machines", "1 to 31 bytes"},
		{"    inside: {bandwidth: 20 Gbit/s, latency: 0.1 ms}\n", "", NULL, 11, "machines",
			"site east has several endpoints"},
		{"bandwidth: 10 Gbit/s", "bandwidth: 0 Gbit/s", NULL, 9, "0 Gbit/s", ""},
		{"bandwidth: 10 Gbit/s, ", "", NULL, 9, "", "bandwidth"},
		{"latency: 0.05 ms", "latency: 1 ms, delay: 1 ms", NULL, 9, "delay", "delay"},
		{"    inside: {bandwidth: 10", "    outside: 3\n    inside: {bandwidth: 10", NULL, 9, "outside",
			"outside"},
		{"from: west", "from: north", NULL, 14, "north", "there are: west, east"},
		{"to: east", "to: north", NULL, 14, "north", "there are: west, east"},
		{"from: west, ", "", NULL, 14, "", "between: [a, b], or from: a and to: b"},
		{"to: east, ", "", NULL, 14, "", "to"},
		{"from: west, to: east", "from: west, to: west", NULL, 14, "", "to itself"},
		{"from: west, to: east", "from: east, to: west", NULL, 15, "", "a second link from east to west"},
		{"from: west, to: east", "between: [west, east]", NULL, 15, "", "a second link from east to west"},
		{"from: west, to: east", "between: [west]", NULL, 14, "", "two sites"},
		{"from: west, to: east", "between: [west, north]", NULL, 14, "north", "there are: west, east"},
		{"from: west, to: east", "between: west", NULL, 14, "west", "list"},
		{"from: west, to: east", "between: [west, east], to: east", NULL, 14, "to", "to"},
		{"  - {from: west, to: east, bandwidth: 200 Mbit/s, latency: 10 ms, shared: true}\n", "", NULL, 14, "",
			"no link from west to east"},
		{"{from: east, to: west, bandwidth: 100 Mbit/s, latency: 20 ms}", "wire", NULL, 15, "wire", ""},
		{"links:\n", "machines: []\nlinks:\n", NULL, 13, "machines", "machines"},
		{"links:\n", "matrix: {}\nlinks:\n", NULL, 13, "", "either 'sites' or 'matrix'"},
		{"links:\n", "fallback: {bandwidth: 1 MB/s}\nlinks:\n", NULL, 13, "", "latency"},
		{"links:\n", "fallback: {bandwidth: 0 MB/s, latency: 0 s}\nlinks:\n", NULL, 13, "0 MB/s", ""},
		{sites_form, "", NULL, 1, "", "empty"},
		{sites_form, "name: t\nsource: assumed\n", NULL, 1, "name", "'sites'"},
		{sites_form, "name: t\nsource: assumed\nsites: {}\n", NULL, 3, "{}", "expected 1 to 1024 sites"},
		{sites_form, "name: t\nsource: assumed\nsites: {a: {}}\ndirectory: a\n", NULL, 3, "",
			"at least one machine"},
		{sites_form, "name: t\nsource: assumed\nsites: {a: 3}\ndirectory: a\n", NULL, 3, "3", ""},
	};
	for (size_t i = 0; i < COUNT(faults); i++) {
		put_changed("t.yaml", sites_form, faults[i].find, faults[i].replace);
		check_refused(&faults[i]);
	}
}

static void test_limits_of_size(void **state)
{
	(void)state;
	FILE *file = fopen(in_folder("t.yaml"), "w");
	assert_non_null(file);
	fputs("name: t\nsource: assumed\ndirectory: s0\nfallback: {bandwidth: 1 MB/s, latency: 1 ms}\nsites:\n", file);
	for (int i = 0; i < 1024; i++)
		fprintf(file,
			"  s%d: {machines: [{count: 2, gpu: slow}], inside: {bandwidth: 1 MB/s, latency: 1 ms}}\n", i);
	assert_int_equal(fclose(file), 0);
	struct skep_topology t = read_good("t.yaml");
	assert_int_equal(t.machines, 2048);
	assert_int_equal(t.places, 1024);
	check_pair(skep_topology_pair(&t, 2047, 2048), 1e6, 1e-3, INFINITY);
	skep_topology_finish(&t);
	file = fopen(in_folder("t.yaml"), "a");
	assert_non_null(file);
	fputs("  more: {}\n", file);
	assert_int_equal(fclose(file), 0);
	check_refused(&(struct fault){"s1023", "more", NULL, 6, "s0", "expected 1 to 1024 sites, found 1025"});
}

/* ---- matrix form ------------------------------------------------------------------------------------------------- */

static void test_matrix(void **state)
{
	(void)state;
	put("t.yaml", matrix_form);
	struct skep_topology t = read_good("t.yaml");
	assert_int_equal(t.machines, 3);
	assert_int_equal(t.places, 3);
	assert_string_equal(t.place_name[2], "blue");
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(t.machine[i].place, i);
	assert_string_equal(t.gpu[t.machine[2].gpu].name, "fast");
	assert_true(t.machine[0].up_Bps == 125e6 && isinf(t.machine[0].down_Bps));
	check_pair(skep_topology_pair(&t, 0, 1), 12.5e6, 0.001, INFINITY);
	check_pair(skep_topology_pair(&t, 1, 0), 37.5e6, 0.003, INFINITY);
	check_pair(skep_topology_pair(&t, 2, 1), 75e6, 0.006, INFINITY);
	check_pair(skep_topology_pair(&t, 1, 1), INFINITY, 0, INFINITY);
	check_pair(skep_topology_pair(&t, 0, 3), 25e6, 0.002, INFINITY); /* the directory runs on machine 2 */
	check_pair(skep_topology_pair(&t, 3, 0), 62.5e6, 0.005, INFINITY);
	check_pair(skep_topology_pair(&t, 2, 3), INFINITY, 0, INFINITY);
	check_pair(skep_topology_pair(&t, 3, 2), INFINITY, 0, INFINITY);
	skep_topology_finish(&t);
	put_changed("t.yaml", matrix_form, "  names: [red, green, blue]\n", "");
	t = read_good("t.yaml");
	assert_string_equal(t.place_name[2], "2"); /* without names */
	skep_topology_finish(&t);
}

static void test_matrix_holes(void **state)
{
	(void)state;
	put("t.yaml", matrix_form);
	put("bandwidth.csv", ",100,200\n300,nan,\n500,600,nan\n"); /* the diagonal may be empty, (1, 2) may not */
	check_refused(&(struct fault){"400", "", "bandwidth.csv", 2, "", "bandwidth from green to blue"});
	put("bandwidth.csv", "0,100,200\r\n300,0,400\r\n# two\r\n500,  nan ,0\r\n");
	check_refused(&(struct fault){"600", "nan", "bandwidth.csv", 4, "nan", "bandwidth from blue to green"});
	put("bandwidth.csv", bandwidth_csv);
	put("latency.csv", "0,,2\n3,0,4\n5,6,0\n");
	check_refused(&(struct fault){"1", "", "latency.csv", 1, ",2", "latency from red to green"});
	char text[2048];
	snprintf(text, sizeof text, "%sfallback: {bandwidth: 7 MB/s, latency: 8 ms, shared: true}\n", matrix_form);
	put("t.yaml", text);
	put_changed("bandwidth.csv", bandwidth_csv, "600", "");
	struct skep_topology t = read_good("t.yaml");
	check_pair(skep_topology_pair(&t, 0, 1), 12.5e6, 0.008, INFINITY); /* only the latency is missing */
	check_pair(skep_topology_pair(&t, 2, 1), 7e6, 0.006, 7e6);         /* only the bandwidth is */
	check_pair(skep_topology_pair(&t, 1, 0), 37.5e6, 0.003, INFINITY);
	skep_topology_finish(&t);
	put("bandwidth.csv", bandwidth_csv);
	put("latency.csv", latency_csv);
}

static void test_refuses_bad_matrix_topologies(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"directory: 2\n", "", NULL, 1, "name", "directory"},
		{"directory: 2", "directory: 3", NULL, 12, "3", "0 to 2"},
		{"directory: 2", "directory: -1", NULL, 12, "-1", "0 to 2"},
		{"count: 2", "count: 3", NULL, 4, "bandwidth.csv",
			"the matrix has 3 rows, but the file has 4 machines"},
		{"  - {gpu: fast, price: 2 USD/h}\n", "", NULL, 4, "bandwidth.csv",
			"3 rows, but the file has 2 machines"},
		{"bandwidth: bandwidth.csv", "bandwidth: nowhere.csv", NULL, 4, "nowhere.csv", "no file 'nowhere.csv'"},
		{"bandwidth: bandwidth.csv", "bandwidth: gpus", "gpus", 0, "", "directory"},
		{"  bandwidth: bandwidth.csv\n", "", NULL, 4, "bandwidth_unit", "bandwidth"},
		{"  bandwidth_unit: Mbit/s\n", "", NULL, 4, "bandwidth", "bandwidth_unit"},
		{"  latency_unit: ms\n", "", NULL, 4, "bandwidth", "latency_unit"},
		{"bandwidth_unit: Mbit/s", "bandwidth_unit: Mbits", NULL, 5, "Mbits", "Mbit/s"},
		{"  names:", "  naems:", NULL, 8, "naems", "did you mean `names`"},
		{"[red, green, blue]", "[red, green]", NULL, 8, "", "2 names, but the file has 3 machines"},
		{"[red, green, blue]", "[red, green, {}]", NULL, 8, "{}", ""},
		{"[red, green, blue]", "[red, green, a-name-that-is-longer-than-thirty-one-bytes]", NULL, 8, "a-name",
			"1 to 31 bytes"},
		{"[red, green, blue]", "[red, green, \"\"]", NULL, 8, "", ""},
		{"directory: 2", "directory: 2\nlinks: []", NULL, 13, "links", "links"},
	};
	for (size_t i = 0; i < COUNT(faults); i++) {
		put_changed("t.yaml", matrix_form, faults[i].find, faults[i].replace);
		check_refused(&faults[i]);
	}
	put("t.yaml", "name: t\nsource: assumed\nmatrix: {}\nmachines: []\ndirectory: 0\n");
	check_refused(&(struct fault){"", "no machines", NULL, 4, "", "at least one machine"});
	put("t.yaml", "name: t\nsource: assumed\nmatrix: {}\ndirectory: 0\n");
	check_refused(&(struct fault){"", "no key machines", NULL, 1, "name", "machines"});
}

static void test_refuses_bad_matrices(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"0, 100, 200\n", "0, 100\n", "bandwidth.csv", 4, " 400", "row 2"},
		{"300, 0, 400\n", "300, 0\n", "bandwidth.csv", 4, "", ""},
		{"500, 600, 0", "500, -600, 0", "bandwidth.csv", 5, "-600", ""},
		{"500, 600, 0", "500, fast, 0", "bandwidth.csv", 5, "fast", ""},
		{"500, 600, 0", "500, 0, 0", "bandwidth.csv", 5, "0, 0", "bandwidth from blue to green"},
		{"300, 0, 400", "300, 0,  1e300", "bandwidth.csv", 4, "1e300", "bandwidth from green to blue"},
		{"0, 100, 200", "0, 1e-9, 200", "bandwidth.csv", 2, "1e-9", "bandwidth from red to green"},
		{bandwidth_csv, "", "bandwidth.csv", 1, "", "empty"},
	};
	put("t.yaml", matrix_form);
	for (size_t i = 0; i < COUNT(faults); i++) {
		put_changed("bandwidth.csv", bandwidth_csv, faults[i].find, faults[i].replace);
		check_refused(&faults[i]);
	}
	put("bandwidth.csv", bandwidth_csv);
	put_changed("latency.csv", latency_csv, "3,0,4", "3,0,3600001");
	check_refused(&(struct fault){"4", "3600001", "latency.csv", 2, "3600001", "latency from green to blue"});
	put("latency.csv", latency_csv);
}

/* ---- any input --------------------------------------------------------------------------------------------------- */

static void test_faults_of_the_file_itself(void **state)
{
	(void)state;
	struct skep_topology t;
	struct skep_diag missing = {0}, directory = {0}, binary = {0};
	assert_false(skep_topology_read(in_folder("nowhere.yaml"), &t, &missing));
	assert_string_equal(missing.file, in_folder("nowhere.yaml"));
	assert_false(skep_topology_read(folder, &t, &directory));
	assert_non_null(strstr(directory.message, "directory"));
	FILE *file = fopen(in_folder("binary.yaml"), "w");
	assert_non_null(file);
	assert_int_equal(fwrite("ELF\0\1", 1, 5, file), 5);
	assert_int_equal(fclose(file), 0);
	assert_false(skep_topology_read(in_folder("binary.yaml"), &t, &binary));
	assert_true(binary.set);
}

/* Every mutation is either read, and then whole, or refused with a diagnosis. */
static void check_whole(const struct skep_topology *t)
{
	assert_true(t->machines > 0 && t->places > 0);
	for (uint32_t i = 0; i <= t->machines && i < 8; i++)
		for (uint32_t j = 0; j <= t->machines && j < 8; j++) {
			struct skep_pair pair = skep_topology_pair(t, i, j);
			assert_true(pair.capacity_Bps >= 1 && pair.latency_s >= 0 && pair.latency_s <= 3600);
			assert_true(pair.shared_Bps == pair.capacity_Bps || isinf(pair.shared_Bps));
		}
	for (uint32_t i = 0; i < t->machines; i++)
		assert_true(
			t->machine[i].gpu < t->gpus && t->machine[i].place < t->places && t->machine[i].up_Bps >= 1);
}

static void mutate(const char *text, char *ret, uint64_t *seed)
{
	static const char bytes[] = "\n :,[]{}-\"'#&*!|>%0123456789.eE";
	size_t length = strlen(text);
	memcpy(ret, text, length + 1);
	for (int i = 0; i < 3; i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		size_t at = (size_t)(*seed >> 33) % length, span = (size_t)(*seed >> 20) % 12;
		if (*seed >> 63)
			ret[at] = bytes[(*seed >> 40) % (sizeof bytes - 1)];
		else if (at + span < length)
			memset(ret + at, ret[(at * 7) % length], span);
	}
}

static void test_mutations(void **state)
{
	(void)state;
	static const char *const names[] = {"t.yaml", "t.yaml", "bandwidth.csv"};
	static const char *const texts[] = {sites_form, matrix_form, bandwidth_csv};
	uint64_t seed = 1;
	int accepted = 0, refused = 0;
	put("t.yaml", matrix_form);
	for (int kind = 2; kind >= 0; kind--)
		for (int i = 0; i < 1000; i++) {
			char text[4096];
			struct skep_topology t;
			struct skep_diag diag = {0};
			mutate(texts[kind], text, &seed);
			put(names[kind], text);
			if (skep_topology_read(in_folder("t.yaml"), &t, &diag)) {
				check_whole(&t);
				skep_topology_finish(&t);
				accepted++;
			} else {
				assert_true(diag.set && diag.message[0]);
				refused++;
			}
			put("bandwidth.csv", bandwidth_csv);
		}
	assert_true(accepted > 50 && refused > 500);
}

/* ---- what ships -------------------------------------------------------------------------------------------------- */

static struct skep_topology read_shipped(const char *name)
{
	char relative[128], path[512];
	struct skep_topology t;
	struct skep_diag diag = {0};
	snprintf(relative, sizeof relative, "topologies/%s", name);
	if (!skep_file_find(NULL, __FILE__, relative, path, sizeof path))
		fail_msg("run in the source tree: no %s from %s", relative, __FILE__);
	if (!skep_topology_read(path, &t, &diag))
		fail_msg("%s:%u:%u: %s", diag.file, diag.line, diag.column, diag.message);
	check_whole(&t);
	return t;
}

static void test_shipped_topologies(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t machines, places, gpus;
	} shipped[] = {
		{"two-datacentres.yaml", 8, 2, 2},
		{"two-datacentres-wan.yaml", 8, 2, 2},
		{"homogeneous-256.yaml", 256, 1, 1},
		{"one-host.yaml", 2, 1, 1},
		{"one-worker.yaml", 1, 1, 1},
		{"ten-regions.yaml", 10, 10, 1},
		{"cloud-regions.yaml", 24, 24, 3},
	};
	for (size_t i = 0; i < COUNT(shipped); i++) {
		struct skep_topology t = read_shipped(shipped[i].name);
		assert_int_equal(t.machines, shipped[i].machines);
		assert_int_equal(t.places, shipped[i].places);
		assert_int_equal(t.gpus, shipped[i].gpus);
		skep_topology_finish(&t);
	}
}

/* Values picked from the sources of the shipped files. */
static void test_shipped_values(void **state)
{
	(void)state;
	struct skep_topology t = read_shipped("two-datacentres.yaml");
	check_pair(skep_topology_pair(&t, 0, 1), 1.25e9, 5e-5, INFINITY);
	check_pair(skep_topology_pair(&t, 0, 7), 25e6, 0.010, 25e6);
	check_pair(skep_topology_pair(&t, 8, 7), 25e6, 0.010, 25e6);
	check_pair(skep_topology_pair(&t, 8, 3), 1.25e9, 5e-5, INFINITY);
	skep_topology_finish(&t);
	t = read_shipped("ten-regions.yaml");
	assert_string_equal(t.place_name[3], "Tokyo");
	check_pair(skep_topology_pair(&t, 0, 3), 0.523e9 / 8, 0.048, INFINITY);
	check_pair(skep_topology_pair(&t, 3, 0), 0.523e9 / 8, 0.048, INFINITY);
	skep_topology_finish(&t);
	t = read_shipped("cloud-regions.yaml");
	check_pair(skep_topology_pair(&t, 0, 1), 4.352e9 / 8, 0.034136, INFINITY);
	check_pair(skep_topology_pair(&t, 1, 0), 4.347e9 / 8, 0.034240, INFINITY);
	check_pair(skep_topology_pair(&t, 0, 3), 4.178e9 / 8, 0.077, INFINITY); /* the latency is the fallback's */
	skep_topology_finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sites),
		cmocka_unit_test(test_sites_pairs),
		cmocka_unit_test(test_between_is_both_directions),
		cmocka_unit_test(test_fallback_fills_what_is_missing),
		cmocka_unit_test(test_inside_is_needed_by_two_endpoints),
		cmocka_unit_test(test_refuses_bad_sites),
		cmocka_unit_test(test_limits_of_size),
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_matrix_holes),
		cmocka_unit_test(test_refuses_bad_matrix_topologies),
		cmocka_unit_test(test_refuses_bad_matrices),
		cmocka_unit_test(test_faults_of_the_file_itself),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_shipped_topologies),
		cmocka_unit_test(test_shipped_values),
	};
	return cmocka_run_group_tests(tests, set_up, remove_folder);
}
