/* SPDX-License-Identifier: Apache-2.0
 *
 * test_import.c - networks that others measured: the topology that comes out holds the numbers that stand in the files, and what
 * is wrong in a file is refused at its place. Runs in the root of the tree; tests/data/README.md says where the numbers are from.
 */
#include "tests/unit/import_fixture.h"

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
	assert_int_equal(files_left(), 2); /* what was not measured has no matrix */
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
		cmocka_unit_test(test_regions),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
