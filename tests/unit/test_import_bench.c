/* SPDX-License-Identifier: Apache-2.0
 *
 * test_import_bench.c - what nccl-tests, the OSU micro-benchmarks and iperf3 print, as topologies. Runs in the root of the tree.
 */
#include "tests/unit/import_fixture.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nccl),
		cmocka_unit_test(test_nccl_between_hosts),
		cmocka_unit_test(test_bad_nccl),
		cmocka_unit_test(test_osu),
		cmocka_unit_test(test_iperf3),
		cmocka_unit_test(test_iperf3_reverse),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
