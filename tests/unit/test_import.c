/* SPDX-License-Identifier: Apache-2.0
 *
 * test_import.c - networks that others measured: the topology that comes out holds the numbers that stand in the files, and what
 * is wrong in a file is refused at its place. Runs in the root of the tree; tests/data/README.md says where the numbers are from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topologies/import.h"
#include "topologies/topology.h"

#define DATA "tests/data/"

static char folder[64], output[128], scratch[128];

static int enter(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/skep-import-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(output, sizeof output, "%s/out.yaml", folder);
	snprintf(scratch, sizeof scratch, "%s/in.txt", folder);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static struct skep_import_options defaults(enum skep_import_format format)
{
	return (struct skep_import_options){.format = format,
		.output = output,
		.gpu = "v100",
		.rules.constant = {NAN, NAN},
		.up_Bps = NAN,
		.down_Bps = NAN,
		.inside_Bps = NAN,
		.inside_s = NAN,
		.count = 1024};
}

/* Files stand in a list that ends in NULL. */
static bool run(struct skep_import_options *o, char **file, struct skep_import_report *report, struct skep_diag *diag)
{
	o->file = file;
	for (o->files = 0; file[o->files]; o->files++)
		;
	*diag = (struct skep_diag){0};
	bool ok = skep_import(o, report, diag);
	assert_true(ok == !diag->set);
	return ok;
}

static struct skep_topology import_good(struct skep_import_options *o, char **file, struct skep_import_report *report)
{
	struct skep_topology t;
	struct skep_diag diag;
	struct skep_import_report own;
	if (!run(o, file, report ? report : &own, &diag) || !skep_topology_read(output, &t, &diag))
		fail_msg("%s:%u:%u: %s", diag.file, diag.line, diag.column, diag.message);
	return t;
}

static uint32_t files_left(void)
{
	char pattern[160];
	glob_t found;
	snprintf(pattern, sizeof pattern, "%s/out*", folder);
	uint32_t count = glob(pattern, 0, NULL, &found) == 0 ? (uint32_t)found.gl_pathc : 0;
	globfree(&found);
	return count;
}

static void clear(void)
{
	char command[160];
	snprintf(command, sizeof command, "rm -f '%s'/out*", folder);
	assert_int_equal(system(command), 0);
}

/* Refused, at that place (line 0: the file as a whole), and nothing is left behind. */
static void refuse(struct skep_import_options *o, char **file, uint32_t line, uint32_t column, const char *phrase)
{
	struct skep_diag diag;
	struct skep_import_report report;
	clear();
	assert_false(run(o, file, &report, &diag));
	if (strstr(diag.message, phrase) == NULL || diag.line != line || diag.column != column)
		fail_msg("%u:%u: %s\nexpected %u:%u: %s", diag.line, diag.column, diag.message, line, column, phrase);
	assert_int_equal(files_left(), 0);
}

static void write_text(const char *text, size_t size)
{
	FILE *file = fopen(scratch, "w");
	assert_non_null(file);
	fwrite(text, 1, size, file);
	fclose(file);
}

static void refuse_text(
	struct skep_import_options *o, const char *text, uint32_t line, uint32_t column, const char *phrase)
{
	char *file[] = {scratch, NULL};
	write_text(text, strlen(text));
	refuse(o, file, line, column, phrase);
}

static void near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-8 * fabs(expected)))
		fail_msg("%.15g, not %.15g", value, expected);
}

static void check_pair(const struct skep_topology *t, uint32_t from, uint32_t to, double bps, double latency_ms)
{
	struct skep_pair pair = skep_topology_pair(t, from, to);
	near(pair.capacity_Bps, bps / 8);
	near(pair.latency_s, latency_ms * 1e-3);
}

/* ---- cloud tables ------------------------------------------------------------------------------------------------ */

static char *sky[] = {DATA "skyplane-latency.csv", DATA "skyplane-throughput.csv", NULL};

static void test_skyplane(void **state)
{
	(void)state;
	struct skep_import_report report;
	struct skep_import_options o = defaults(SKEP_IMPORT_SKYPLANE);
	o.between = "aws:us-east-1,aws:us-west-2,gcp:us-west1-a,azure:eastus";
	struct skep_topology t = import_good(&o, sky, &report);
	assert_int_equal(t.machines, 4);
	assert_int_equal(t.places, 4);
	assert_string_equal(t.place_name[2], "gcp:us-west1-a");
	check_pair(&t, 0, 1, 4352247543, 68.272 / 2);
	check_pair(&t, 1, 0, 4346991228, 68.481 / 2);
	check_pair(&t, 2, 3, 5617761000, 124.009 / 2); /* both at the premium tier */
	check_pair(&t, 3, 2, 11468058509, 66.355 / 2);
	near(t.machine[0].up_Bps, 4781672711.0 / 8); /* the most that leaves AWS here */
	near(t.machine[1].up_Bps, 4781672711.0 / 8);
	near(t.machine[3].up_Bps, 11468058509.0 / 8);
	assert_true(isinf(t.machine[0].down_Bps));
	assert_non_null(strstr(t.source, "Measured by Skyplane"));
	assert_non_null(strstr(t.source, "Assumed: GPUs"));
	assert_null(strstr(t.source, "Filled"));
	assert_non_null(strstr(report.notes, "16 rows of another network tier than premium left out"));
	skep_topology_finish(&t);
}

/* Premium and standard of one pair: two measurements, so the median is their mean. */
static void test_median_of_several(void **state)
{
	(void)state;
	struct skep_import_report report;
	struct skep_import_options o = defaults(SKEP_IMPORT_SKYPLANE);
	o.tier = SKEP_TIER_ANY;
	o.between = "azure:eastus,gcp:us-west1-a";
	struct skep_topology t = import_good(&o, sky, &report);
	check_pair(&t, 0, 1, 0.5 * (11468058509.0 + 5349262528.0), 0.25 * (88.148 + 66.355));
	assert_non_null(strstr(report.notes, "bandwidth of 2 pairs measured more than once: the median"));
	skep_topology_finish(&t);
	o = defaults(SKEP_IMPORT_CITY_PAIRS);
	char *file[] = {scratch, NULL};
	const char *text = "region_a,region_b,delay_ms,bandwidth_gbps\nA,B,9,1\nA,B,2,5\nB,A,4,2\n";
	write_text(text, strlen(text));
	t = import_good(&o, file, NULL);
	check_pair(&t, 0, 1, 2e9, 2); /* of three the middle one */
	check_pair(&t, 1, 0, 2e9, 2);
	skep_topology_finish(&t);
}

static void test_skyplane_choices(void **state)
{
	(void)state;
	struct skep_import_options o = defaults(SKEP_IMPORT_SKYPLANE);
	o.provider = "aws,azure";
	o.machines = 3;
	o.inside_Bps = 1.25e9;
	o.inside_s = 1e-4;
	struct skep_topology t = import_good(&o, sky, NULL);
	assert_int_equal(t.places, 3);
	assert_int_equal(t.machines, 9);
	near(skep_topology_pair(&t, 0, 1).capacity_Bps, 1.25e9);
	near(skep_topology_pair(&t, 0, 1).latency_s, 1e-4);
	assert_true(skep_topology_pair(&t, 0, 3).capacity_Bps < 1.25e9);
	skep_topology_finish(&t);
	o = defaults(SKEP_IMPORT_SKYPLANE);
	o.between = "aws:us-east-1,aws:us-west-9";
	refuse(&o, sky, 0, 0, "no 'aws:us-west-9' in these files; there are also: ");
	o.between = "aws:us-east-1,aws:us-east-1";
	refuse(&o, sky, 0, 0, "is named twice");
	o.between = "aws:us-east-1";
	refuse(&o, sky, 0, 0, "expected at least two places");
	o.between = NULL;
	o.machines = 2;
	refuse(&o, sky, 0, 0, "which has 2 machines: give it, such as --inside");
	char *throughput[] = {DATA "skyplane-throughput.csv", NULL};
	o.machines = 0;
	refuse(&o, throughput, 0, 0, "these files have no latency: give one for all pairs");
}

static void test_city_pairs(void **state)
{
	(void)state;
	char *file[] = {DATA "city-pairs.csv", NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_CITY_PAIRS);
	struct skep_topology t = import_good(&o, file, NULL);
	assert_int_equal(t.places, 3);
	check_pair(&t, 0, 1, 0.79e9, 33.5);
	check_pair(&t, 1, 0, 0.79e9, 33.5);
	check_pair(&t, 2, 1, 1.12e9, 5.5);
	skep_topology_finish(&t);
	o.one_way = true;
	t = import_good(&o, file, NULL);
	check_pair(&t, 0, 1, 0.79e9, 67);
	skep_topology_finish(&t);
}

static void test_bad_tables(void **state)
{
	(void)state;
	struct skep_import_options o = defaults(SKEP_IMPORT_CITY_PAIRS);
	refuse_text(&o, "", 0, 0, "is empty");
	refuse_text(
		&o, "a,b\n1,2\n", 1, 1, "the header lacks these columns: region_a, region_b, delay_ms, bandwidth_gbps");
#define HEAD "region_a,region_b,delay_ms,bandwidth_gbps\n"
	refuse_text(&o, HEAD, 0, 0, "nothing was measured");
	refuse_text(&o, HEAD "A,B,1,1\nA,C,1\n", 3, 6, "this row has 3 cells, the header 4");
	refuse_text(&o, HEAD "A,B,1,1,7\n", 2, 8, "this row has 5 cells, the header 4");
	refuse_text(&o, HEAD "A,B,1,-3\n", 2, 7, "expected a bandwidth in Gbit/s from");
	refuse_text(&o, HEAD "A,B,1,0\n", 2, 7, "expected a bandwidth in Gbit/s from");
	refuse_text(&o, HEAD "A,B,-1,1\n", 2, 5, "expected a delay in ms from 0");
	refuse_text(&o, HEAD "A,B,nan,1\n", 2, 5, "a plain decimal number, not 'nan'");
	refuse_text(&o, HEAD "A,B,1,1e999\n", 2, 7, "expected a bandwidth in Gbit/s from");
	refuse_text(&o, HEAD "A,B,,1\n", 2, 5, "but the cell is empty");
	refuse_text(&o, HEAD ",B,1,1\n", 2, 1, "expected a name of 1 to 31 bytes");
	refuse_text(&o, HEAD "A,01234567890123456789012345678901,1,1\n", 2, 3, "expected a name of 1 to 31 bytes");
	refuse_text(&o, HEAD "A,B\x07,1,1\n", 2, 3, "printable ASCII");
	refuse_text(&o, HEAD "A,A,1,1\n", 0, 0, "one place with one machine is no network");
	char *file[] = {scratch, NULL};
	write_text(HEAD "A\0B,1,1\n", sizeof(HEAD "A\0B,1,1\n") - 1);
	refuse(&o, file, 2, 2, "is not text");
	o = defaults(SKEP_IMPORT_SKYPLANE);
	refuse_text(&o, HEAD "A,B,1,1\n", 1, 1, "expected Skyplane's throughput");
	refuse_text(&o, "src_region,src_tier,dst_region,dst_tier,received_bps,ok\naws:a,PREMIUM,aws:b,PREMIUM,0,True\n",
		2, 29, "expected the received bit/s from 8");
	refuse_text(&o,
		"src_region,src_tier,dst_region,dst_tier,received_bps,ok\naws:a,PREMIUM,aws:b,PREMIUM,9,False\n", 0, 0,
		"nothing was measured");
}

/* ---- holes ------------------------------------------------------------------------------------------------------- */

#define PING "src_region,src_tier,dst_region,dst_tier,avg_rtt\n"
#define ROW(from, to, ms) "p:" from ",PREMIUM,p:" to ",PREMIUM," ms "\n"

/* A to B 10, B to A 30, B to C 50, C to B 70; nothing between A and C but A to C 20. */
static const char lame[] =
	PING ROW("A", "B", "10") ROW("B", "A", "30") ROW("B", "C", "50") ROW("C", "B", "70") ROW("A", "C", "20");

static void check_fill(enum skep_fill rule, double latency_ms, const char *said)
{
	char *file[] = {scratch, NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_SKYPLANE);
	o.rules.fill[0] = rule;
	o.rules.fills = 1;
	o.rules.constant[SKEP_BANDWIDTH_SAMPLE] = 1e6;
	struct skep_topology t = import_good(&o, file, NULL);
	check_pair(&t, 2, 0, 8e6, latency_ms);
	check_pair(&t, 0, 2, 8e6, 10);
	assert_non_null(strstr(t.source, said));
	skep_topology_finish(&t);
}

static void test_holes(void **state)
{
	(void)state;
	write_text(lame, strlen(lame));
	check_fill(SKEP_FILL_REVERSE, 10, "Filled: latency of 1 pairs by reverse.");
	check_fill(SKEP_FILL_WORST, 35, "Filled: latency of 1 pairs by worst."); /* C to B 35, B to A 15 */
	check_fill(SKEP_FILL_MEDIAN, 15, "Filled: latency of 1 pairs by median.");
	struct skep_import_options o = defaults(SKEP_IMPORT_SKYPLANE);
	o.rules.constant[SKEP_BANDWIDTH_SAMPLE] = 1e6;
	refuse_text(&o, lame, 0, 0, "no latency of 1 of 6 ordered pairs: p:C to p:A. Fill them by rules");
	o.rules.constant[SKEP_LATENCY_SAMPLE] = 0.5;
	char *file[] = {scratch, NULL};
	struct skep_topology t = import_good(&o, file, NULL);
	check_pair(&t, 2, 0, 8e6, 500);
	check_pair(&t, 1, 2, 8e6, 25);
	assert_non_null(strstr(t.source, "bandwidth of all pairs, latency of some pairs"));
	skep_topology_finish(&t);
}

/* A rule does not build on what another rule made up: D is known by A to D alone. */
static void test_rules_in_order(void **state)
{
	(void)state;
	char *file[] = {scratch, NULL};
	const char *text = PING ROW("A", "B", "10") ROW("B", "A", "20") ROW("A", "D", "40");
	struct skep_import_options o = defaults(SKEP_IMPORT_SKYPLANE);
	o.rules = (struct skep_survey_rules){
		.fill = {SKEP_FILL_REVERSE, SKEP_FILL_WORST, SKEP_FILL_MEDIAN}, .fills = 3, .constant = {1e6, NAN}};
	write_text(text, strlen(text));
	struct skep_topology t = import_good(&o, file, NULL);
	check_pair(&t, 2, 0, 8e6, 20); /* D to A: reverse */
	check_pair(&t, 1, 2, 8e6, 20); /* B to D: the worst of B to A, 10, and A to D, 20 */
	check_pair(&t, 2, 1, 8e6, 5);  /* D to B: nothing leaves D, so A to B */
	skep_topology_finish(&t);
}

static void test_disconnected(void **state)
{
	(void)state;
	const char *text = PING ROW("A", "B", "10") ROW("B", "A", "10") ROW("C", "D", "10") ROW("D", "C", "10");
	char *file[] = {scratch, NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_SKYPLANE);
	o.rules = (struct skep_survey_rules){.fill = {SKEP_FILL_MEDIAN}, .fills = 1, .constant = {1e6, NAN}};
	refuse_text(&o, text, 0, 0,
		"the places fall into 2 groups with nothing measured between them: p:A is in one, p:C in");
	o.rules.constant[SKEP_LATENCY_SAMPLE] = 0.1;
	o.rules.fills = 0;
	struct skep_topology t = import_good(&o, file, NULL);
	check_pair(&t, 0, 3, 8e6, 100);
	skep_topology_finish(&t);
}

/* ---- round trips ------------------------------------------------------------------------------------------------- */

static void test_rtt(void **state)
{
	(void)state;
	struct skep_import_report report;
	char *planetlab[] = {DATA "planetlab-5.txt", NULL}, *seattle[] = {DATA "seattle-8.txt", NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_RTT);
	o.rules.constant[SKEP_BANDWIDTH_SAMPLE] = 1.25e7;
	struct skep_topology t = import_good(&o, planetlab, &report);
	assert_int_equal(t.machines, 5);
	check_pair(&t, 0, 1, 1e8, 0.0875);
	check_pair(&t, 3, 1, 1e8, 66.945);
	assert_non_null(strstr(report.notes, "round trips taken as ms: their median is"));
	assert_int_equal(files_left(), 2); /* what nobody measured has no matrix */
	skep_topology_finish(&t);

	refuse(&o, seattle, 0, 0, "the unit cannot be told: the median round trip would be 0.");
	o.unit_s = 1;
	refuse(&o, seattle, 0, 0, "no latency of 2 of 56 ordered pairs: 0 to 6, 6 to 0. Fill them");
	o.rules.fill[0] = SKEP_FILL_WORST;
	o.rules.fills = 1;
	t = import_good(&o, seattle, NULL);
	check_pair(&t, 0, 1, 1e8, 85);
	check_pair(&t, 1, 0, 1e8, 60);
	check_pair(&t, 0, 6, 1e8, 310); /* row 0 has at most 0.44, column 6 at most 0.62 */
	skep_topology_finish(&t);
	o = defaults(SKEP_IMPORT_RTT);
	o.rules.constant[SKEP_BANDWIDTH_SAMPLE] = 1.25e7;
	o.between = "4,0,2";
	t = import_good(&o, planetlab, NULL);
	assert_string_equal(t.place_name[0], "4");
	check_pair(&t, 0, 1, 1e8, 60.665);
	check_pair(&t, 1, 2, 1e8, 1.2765);
	skep_topology_finish(&t);
}

static void test_bad_rtt(void **state)
{
	(void)state;
	struct skep_import_options o = defaults(SKEP_IMPORT_RTT);
	o.unit_s = 1e-3;
	refuse_text(&o, "# nothing\n\n", 0, 0, "is empty");
	refuse_text(&o, "0 1\n1 0 2\n", 2, 5, "a cell too many: the first row has 2");
	refuse_text(&o, "0 1 2\n1 0\n1 2 0\n", 2, 4, "this row has 2 cells, the first one 3");
	refuse_text(&o, "0 1\n1 0\n1 2\n", 3, 1, "a row too many");
	refuse_text(&o, "0 1 2\n1 0 2\n", 0, 0, "is not square: 2 rows of 3");
	refuse_text(&o, "0 1\n-1 0\n", 2, 1, "expected a round trip from 0");
	refuse_text(&o, "0 inf\n1 0\n", 1, 3, "a plain decimal number, not 'inf'");
	refuse_text(&o, "0 1e8\n1 0\n", 0, 0, "at most an hour is taken; is the unit right?");
	refuse_text(&o, "0 nan\n1 0\n", 0, 0, "these files have no bandwidth");
	o.rules.constant[SKEP_BANDWIDTH_SAMPLE] = 1e6;
	refuse_text(&o, "0 nan\n1 0\n", 0, 0, "no latency of 1 of 2 ordered pairs: 0 to 1");
	refuse_text(&o, "0 0\n0 0\n", 0, 0, "nothing was measured");
	char noise[4096];
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (char)(1 + (i * 2654435761u >> 7) % 255);
	char *file[] = {scratch, NULL};
	struct skep_diag diag;
	struct skep_import_report report;
	for (int format = 0; format < SKEP_IMPORT_FORMATS; format++) {
		struct skep_import_options any = defaults((enum skep_import_format)format);
		write_text(noise, sizeof noise);
		assert_false(run(&any, file, &report, &diag));
		assert_int_equal(files_left(), 0);
	}
}

static void test_gcp_ping(void **state)
{
	(void)state;
	char *file[] = {DATA "gcp-ping/us-east1.dat", DATA "gcp-ping/us-east4.dat", DATA "gcp-ping/us-west1.dat", NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_GCP_PING);
	o.rules.constant[SKEP_BANDWIDTH_SAMPLE] = 1.25e8;
	struct skep_topology t = import_good(&o, file, NULL);
	assert_int_equal(t.places, 3);
	assert_string_equal(t.place_name[0], "us-east1");
	check_pair(&t, 0, 1, 1e9, 6.275);
	check_pair(&t, 1, 0, 1e9, 6.282);
	check_pair(&t, 2, 0, 1e9, 33.651);
	skep_topology_finish(&t);
	o.machines = 2; /* the ping of a region to itself is what is inside */
	o.inside_Bps = 1.25e9;
	t = import_good(&o, file, NULL);
	near(skep_topology_pair(&t, 0, 1).latency_s, 0.136e-3);
	near(skep_topology_pair(&t, 4, 5).latency_s, 0.141e-3);
	skep_topology_finish(&t);
	o.machines = 0;
	file[2] = NULL; /* us-west1 is only reached */
	refuse(&o, file, 0, 0, "no latency of 2 of 6 ordered pairs: us-west1 to us-east1, us-west1 to us-east4.");
	o.rules.fill[o.rules.fills++] = SKEP_FILL_REVERSE;
	t = import_good(&o, file, NULL);
	check_pair(&t, 2, 0, 1e9, 33.649);
	skep_topology_finish(&t);
	refuse_text(&o, "1/2/3/4:b\n", 0, 0, "a file that is called as its source: REGION.dat");
	char dat[160];
	snprintf(dat, sizeof dat, "%s/a.dat", folder);
	char *one[] = {dat, NULL};
	const struct {
		const char *text;
		uint32_t line, column;
		const char *phrase;
	} wrong[] = {
		{"", 0, 0, "is empty"},
		{"1/2/3/4:b\n1/2/3:c\n", 2, 5, "expected min/avg/max/mdev:destination"},
		{"1/2/3/4\n", 1, 1, "expected min/avg/max/mdev:destination"},
		{"1/x/3/4:b\n", 1, 3, "not 'x'"},
		{"3/2/1/0:b\n", 1, 1, "these are not in order"},
		{"1/2/3/4:\n", 1, 9, "expected a name"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		FILE *f = fopen(dat, "w");
		assert_non_null(f);
		fputs(wrong[i].text, f);
		fclose(f);
		refuse(&o, one, wrong[i].line, wrong[i].column, wrong[i].phrase);
	}
}

/* ---- benchmarks -------------------------------------------------------------------------------------------------- */

/* t = 40 us + S / 12 GB/s among four: 18 GB/s on the ring, and 40 us over 6 hops. */
static void test_nccl(void **state)
{
	(void)state;
	char *plain[] = {DATA "nccl-all-reduce.txt", NULL}, *tagged[] = {DATA "nccl-tagged.txt", NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_NCCL);
	for (int i = 0; i < 2; i++) {
		struct skep_topology t = import_good(&o, i ? tagged : plain, NULL);
		assert_int_equal(t.machines, 4);
		assert_string_equal(t.place_name[0], "node-a");
		struct skep_pair pair = skep_topology_pair(&t, 0, 3);
		assert_true(fabs(pair.capacity_Bps / 18e9 - 1) < 1e-4);
		assert_true(fabs(pair.latency_s / (40e-6 / 6) - 1) < 1e-3);
		skep_topology_finish(&t);
	}
}

#define STARTING "# Collective test starting: sendrecv_perf\n"
#define RANKS "#  Rank  0 Pid 1 on  n0 device  0 [0] G\n#  Rank  1 Pid 2 on  n1 device  0 [0] G\n"
#define TWICE RANKS "#  Rank  2 Pid 1 on  n0 device  1 [0] G\n#  Rank  3 Pid 2 on  n1 device  1 [0] G\n"
#define ROWS                                                                                                           \
	"1000 250 float none -1 11.0 0.09 0.09 0 11 0.09 0.09 0\n"                                                     \
	"500000 125000 float none -1 510.0 1 1 0 11 1 1 0\n"                                                           \
	"1000000 250000 float none -1 1010.0 1 1 N/A 11 1 1 N/A\n"

/* t = 10 us + S / 1 GB/s; one hop. */
static void test_nccl_between_hosts(void **state)
{
	(void)state;
	char *file[] = {scratch, NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_NCCL);
	write_text(STARTING RANKS ROWS, strlen(STARTING RANKS ROWS));
	struct skep_topology t = import_good(&o, file, NULL);
	assert_int_equal(t.places, 2);
	check_pair(&t, 0, 1, 8e9, 0.01);
	check_pair(&t, 1, 0, 8e9, 0.01);
	skep_topology_finish(&t);
	write_text(STARTING TWICE ROWS, strlen(STARTING TWICE ROWS)); /* two GPUs at each host share what is between */
	o.inside_Bps = 1e11;
	o.inside_s = 1e-6;
	t = import_good(&o, file, NULL);
	assert_int_equal(t.machines, 4);
	assert_int_equal(t.places, 2);
	near(skep_topology_pair(&t, 0, 2).shared_Bps, 1e9);
	near(skep_topology_pair(&t, 0, 1).capacity_Bps, 1e11);
	skep_topology_finish(&t);
}

static void test_bad_nccl(void **state)
{
	(void)state;
	struct skep_import_options o = defaults(SKEP_IMPORT_NCCL);
	refuse_text(&o, RANKS ROWS, 0, 0, "no line '# Collective test starting: NAME'");
	refuse_text(&o, STARTING ROWS, 0, 0, "0 ranks: two are needed");
	refuse_text(&o, STARTING RANKS, 0, 0, "no rows with a size above 0");
	refuse_text(
		&o, "# Collective test starting: alltoall_perf\n", 1, 29, "this test is not taken; all_reduce_perf");
	refuse_text(&o, STARTING STARTING, 2, 29, "a second test in this file");
	refuse_text(
		&o, STARTING RANKS "1000 250 float none -1 11.0 0.09 0.09 5 11 0 0 0\n", 4, 39, "found wrong results");
	refuse_text(&o, STARTING RANKS "1000 250 float none -1 -11 0.09 0.09 0\n", 4, 24, "expected a time in us from");
	refuse_text(&o, STARTING RANKS "1000 250 float\n", 4, 1, "size count type redop");
	refuse_text(&o, STARTING "# Rank 0 somewhere\n", 2, 3, "expected a rank such as");
	refuse_text(
		&o, "bash: all_reduce_perf: command not found\n", 1, 1, "expected the output of one of the nccl-tests");
}

static void test_osu(void **state)
{
	(void)state;
	char *file[] = {"a,b=" DATA "osu-bw.txt", "a,b=" DATA "osu-latency.txt", "b,a=" DATA "osu-bw.txt", NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_OSU);
	struct skep_topology t = import_good(&o, file, NULL);
	check_pair(&t, 0, 1, 8 * 11948.72e6, 1.5e-3);
	check_pair(&t, 1, 0, 8 * 11948.72e6, 1.5e-3);
	skep_topology_finish(&t);
	file[2] = NULL;
	refuse(&o, file, 0, 0, "no bandwidth of 1 of 2 ordered pairs: b to a.");
	char *unnamed[] = {DATA "osu-bw.txt", NULL};
	refuse(&o, unnamed, 0, 0, "OSU's output does not name its machines");
	refuse_text(&o, "# OSU MPI Bi-Directional Bandwidth Test v7.3\n", 1, 1,
		"this test is not taken; osu_bw and osu_latency are");
	refuse_text(&o, "1 2\n", 1, 1, "expected a line such as '# OSU MPI Bandwidth Test'");
	refuse_text(&o, "# OSU MPI Bandwidth Test v7.3\n1 0\n", 2, 3, "expected a bandwidth in MB/s from");
	refuse_text(&o, "# OSU MPI Bandwidth Test v7.3\n1\n", 2, 2, "but the cell is empty");
	refuse_text(&o, "# OSU MPI Bandwidth Test v7.3\n", 0, 0, "no numbers");
}

static void test_iperf3(void **state)
{
	(void)state;
	char *file[] = {"a,b=" DATA "iperf3-two-streams.json", NULL},
	     *unnamed[] = {DATA "iperf3-two-streams.json", NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_IPERF3);
	refuse(&o, unnamed, 0, 0, "a test from one address to itself");
	refuse(&o, file, 0, 0, "no bandwidth of 1 of 2 ordered pairs: b to a.");
	o.rules.fill[o.rules.fills++] = SKEP_FILL_REVERSE;
	struct skep_topology t = import_good(&o, file, NULL);
	check_pair(&t, 0, 1, 25988403625.9914, 0.0135); /* half of the lesser min_rtt, 27 us */
	check_pair(&t, 1, 0, 25988403625.9914, 0.0135);
	assert_non_null(strstr(t.source, "capacity of several TCP streams"));
	skep_topology_finish(&t);
	refuse_text(&o, "", 1, 1, "is empty");
	refuse_text(&o, "{\"start\": {\n  \"connected\": [", 2, 17, "the text ends in the middle");
	refuse_text(&o, "{\"start\": nothing}\n", 1, 11, "is not JSON here");
	refuse_text(&o, "{\"error\": \"unable to connect\"}", 0, 0, "the test failed");
	refuse_text(&o, "{\"start\": {\"test_start\": {\"protocol\": \"UDP\"}}}", 0, 0, "expected a test of TCP");
	refuse_text(
		&o, "{\"start\": {\"test_start\": {\"protocol\": \"TCP\"}}}", 0, 0, "end.sum_received.bits_per_second");
	refuse_text(&o,
		"{\"start\": {\"test_start\": {\"protocol\": \"TCP\"}}, \"end\": {\"sum_received\": "
		"{\"bits_per_second\": 0}}}",
		0, 0, "expected a bandwidth above 0");
}

#define CLIENT(reverse)                                                                                                \
	"{\"start\": {\"connected\": [{\"local_host\": \"10.0.0.1\", \"remote_host\": \"10.0.0.2\"}], "                \
	"\"test_start\": "                                                                                             \
	"{\"protocol\": \"TCP\", \"num_streams\": 1, \"reverse\": " reverse "}}, \"end\": {\"sum_received\": "         \
	"{\"bits_per_second\": 8e6}}}"

/* With --reverse the bytes come from the other side. */
static void test_iperf3_reverse(void **state)
{
	(void)state;
	char *file[] = {scratch, NULL};
	struct skep_import_report report;
	struct skep_import_options o = defaults(SKEP_IMPORT_IPERF3);
	o.rules.constant[SKEP_LATENCY_SAMPLE] = 0.01;
	o.rules.constant[SKEP_BANDWIDTH_SAMPLE] = 5;
	for (int reverse = 0; reverse < 2; reverse++) {
		const char *text = reverse ? CLIENT("1") : CLIENT("0");
		write_text(text, strlen(text));
		struct skep_topology t = import_good(&o, file, &report);
		assert_string_equal(t.place_name[0], "10.0.0.1");
		check_pair(&t, 0, 1, reverse ? 40 : 8e6, 10);
		check_pair(&t, 1, 0, reverse ? 8e6 : 40, 10);
		assert_non_null(strstr(report.notes, "what one flow gets, not the capacity"));
		skep_topology_finish(&t);
	}
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static void test_regions(void **state)
{
	(void)state;
	char *file[] = {"topologies/regions/home-2019.csv", NULL};
	struct skep_import_options o = defaults(SKEP_IMPORT_REGIONS);
	o.count = 300;
	o.seed = 7;
	o.directory = "JAPAN";
	struct skep_topology t = import_good(&o, file, NULL);
	assert_int_equal(t.machines, 300);
	assert_int_equal(t.places, 6);
	assert_string_equal(t.place_name[t.machine[300].place], "JAPAN");
	skep_topology_finish(&t);
	o.directory = "MARS";
	refuse(&o, file, 0, 0, "no region 'MARS' in this table");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_skyplane),
		cmocka_unit_test(test_median_of_several),
		cmocka_unit_test(test_skyplane_choices),
		cmocka_unit_test(test_city_pairs),
		cmocka_unit_test(test_bad_tables),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_rules_in_order),
		cmocka_unit_test(test_disconnected),
		cmocka_unit_test(test_rtt),
		cmocka_unit_test(test_bad_rtt),
		cmocka_unit_test(test_gcp_ping),
		cmocka_unit_test(test_nccl),
		cmocka_unit_test(test_nccl_between_hosts),
		cmocka_unit_test(test_bad_nccl),
		cmocka_unit_test(test_osu),
		cmocka_unit_test(test_iperf3),
		cmocka_unit_test(test_iperf3_reverse),
		cmocka_unit_test(test_regions),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
