/* SPDX-License-Identifier: Apache-2.0
 *
 * test_simgrid.c - platform files of SimGrid: what the subset means, and that everything else is refused by its name at its
 * place. Without the XML library: that the refusal says what to install.
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

#include "topologies/import/import.h"
#include "topologies/read/topology.h"

#define ANYWHERE UINT32_MAX /* in the line: versions of the library differ */

static char folder[64], output[128], input[128];

static int enter(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/skep-simgrid-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(output, sizeof output, "%s/out.yaml", folder);
	snprintf(input, sizeof input, "%s/in.xml", folder);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static bool run(char *path, const char *text, struct skep_import_report *report, struct skep_diag *diag)
{
	char *file[] = {path, NULL};
	struct skep_import_options o = skep_import_defaults();
	o.format = SKEP_IMPORT_SIMGRID;
	o.file = file;
	o.files = 1;
	o.output = output;
	if (text) {
		FILE *f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
	}
	*diag = (struct skep_diag){0};
	return skep_import(&o, report, diag);
}

static bool has_library(void)
{
	struct skep_diag diag;
	struct skep_import_report report;
	char sample[] = "tests/data/simgrid-two-hosts.xml";
	return run(sample, NULL, &report, &diag) || !strstr(diag.message, "install libexpat1-dev");
}

static struct skep_topology import_good(const char *text, struct skep_import_report *report)
{
	struct skep_topology t = {0};
	struct skep_diag diag;
	if (!run(input, text, report, &diag) || !skep_topology_read(output, &t, &diag))
		fail_msg("%s:%u:%u: %s", diag.file, diag.line, diag.column, diag.message);
	return t;
}

static void refuse(const char *text, uint32_t line, uint32_t column, const char *phrase)
{
	struct skep_diag diag;
	struct skep_import_report report;
	assert_false(run(input, text, &report, &diag));
	if (!strstr(diag.message, phrase) || diag.line != line || (column != ANYWHERE && diag.column != column))
		fail_msg("%u:%u: %s\nexpected %u:%u: %s", diag.line, diag.column, diag.message, line, column, phrase);
}

static void near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-8 * fabs(expected)))
		fail_msg("%.15g, not %.15g", value, expected);
}

static void test_sample(void **state)
{
	(void)state;
	if (!has_library())
		skip();
	struct skep_topology t;
	struct skep_diag diag;
	struct skep_import_report report;
	char sample[] = "tests/data/simgrid-two-hosts.xml";
	assert_true(run(sample, NULL, &report, &diag) && skep_topology_read(output, &t, &diag));
	assert_int_equal(t.machines, 2);
	assert_string_equal(t.place_name[0], "t4-a");
	for (uint32_t i = 0; i < 2; i++) {
		near(skep_topology_pair(&t, i, 1 - i).capacity_Bps, 125e6);
		near(skep_topology_pair(&t, i, 1 - i).latency_s, 0.035);
		assert_true(isinf(t.machine[i].up_Bps));
	}
	assert_non_null(strstr(report.notes, "1 route from a host to itself left out"));
	skep_topology_finish(&t);
}

#define OPEN "<platform version='4.1'>\n<zone id='z' routing='Full'>\n"
#define HOSTS "<host id='a' speed='1Gf'/><host id='b' speed='1Gf'/><host id='c' speed='1Gf'/>\n"
#define CLOSE "</zone></platform>\n"
#define CTN(link) "<link_ctn id='" link "'/>"
#define UP(link) "<link_ctn id='" link "' direction='UP'/>"
#define DOWN(link) "<link_ctn id='" link "' direction='DOWN'/>"
#define ROUTE(src, dst, links) "<route src='" src "' dst='" dst "'>" links "</route>\n"
#define ONE_WAY(src, dst, links) "<route src='" src "' dst='" dst "' symmetrical='NO'>" links "</route>\n"

/* Access links of three hosts, split; and a core that each pair has to itself. */
static void test_access_links(void **state)
{
	(void)state;
	if (!has_library())
		skip();
	struct skep_import_report report;
	struct skep_topology t = import_good(OPEN HOSTS
		"<link id='la' bandwidth='1Gbps' latency='1ms' sharing_policy='SPLITDUPLEX'/>\n"
		"<link id='lb' bandwidth='10MiBps' latency='2000us' sharing_policy='SPLITDUPLEX'/>\n"
		"<link id='lc' bandwidth='40e6' latency='0.003' sharing_policy='SPLITDUPLEX'/>\n"
		"<link id='core' bandwidth='20MBps' latency='0.1s' sharing_policy='FATPIPE'/>\n" ROUTE(
			"a", "b", UP("la") CTN("core") DOWN("lb")) ROUTE("a", "c", UP("la") CTN("core") DOWN("lc"))
			ROUTE("b", "c", UP("lb") CTN("core") DOWN("lc")) CLOSE,
		&report);
	const double access[] = {125e6, 10 * 1048576.0, 40e6};
	for (int i = 0; i < 3; i++) {
		near(t.machine[i].up_Bps, access[i]);
		near(t.machine[i].down_Bps, access[i]);
	}
	near(skep_topology_pair(&t, 0, 2).capacity_Bps, 20e6);
	near(skep_topology_pair(&t, 2, 0).capacity_Bps, 20e6);
	near(skep_topology_pair(&t, 0, 1).capacity_Bps, 10 * 1048576.0);
	near(skep_topology_pair(&t, 1, 2).latency_s, 0.105);
	assert_null(strstr(report.notes, "share")); /* nothing is lost */
	skep_topology_finish(&t);
}

/* What cannot be said here is told. */
static void test_links_that_pairs_share(void **state)
{
	(void)state;
	if (!has_library())
		skip();
	struct skep_import_report report;
	struct skep_topology t =
		import_good(OPEN HOSTS "<link id='bus' bandwidth='8MBps' latency='1ms'/>\n" ROUTE("a", "b", CTN("bus"))
				    ROUTE("a", "c", CTN("bus")) ROUTE("b", "c", CTN("bus")) CLOSE,
			&report);
	near(skep_topology_pair(&t, 0, 2).capacity_Bps, 8e6);
	assert_true(isinf(t.machine[0].up_Bps));
	assert_non_null(strstr(report.notes, "1 link that several pairs share in SimGrid ('bus' first)"));
	skep_topology_finish(&t);
	t = import_good(
		"<platform version='3'><AS id='z' routing='Full'><host id='a' speed='1'/><host id='b' speed='1'/>"
		"<link id='wire' bandwidth='8MBps' latency='1ms'/>" ROUTE("a", "b", CTN("wire")) "</AS></platform>",
		&report);
	assert_non_null(strstr(report.notes, "1 link whose two directions share in SimGrid ('wire' first)"));
	skep_topology_finish(&t);
}

/* Two of a host's three routes share a link: the third does not, so that it is no limit of the host. */
static void test_link_of_some_routes(void **state)
{
	(void)state;
	if (!has_library())
		skip();
	struct skep_import_report report;
	const char *text = OPEN HOSTS
		"<host id='d' speed='1Gf'/><link id='half' bandwidth='8MBps' latency='1ms'/>"
		"<link id='back' bandwidth='7MBps' latency='1ms'/>"
		"<link id='f' bandwidth='9MBps' latency='1ms' sharing_policy='FATPIPE'/>\n" ONE_WAY(
			"a", "b", CTN("half")) ONE_WAY("a", "c", CTN("half")) ONE_WAY("a", "d", CTN("f"))
			ONE_WAY("b", "a", CTN("back")) ONE_WAY("c", "a", CTN("back")) ONE_WAY("d", "a", CTN("f"))
				ROUTE("b", "c", CTN("f")) ROUTE("b", "d", CTN("f")) ROUTE("c", "d", CTN("f")) CLOSE;
	struct skep_topology t = import_good(text, &report);
	assert_true(isinf(t.machine[0].up_Bps) && isinf(t.machine[0].down_Bps));
	near(skep_topology_pair(&t, 0, 1).capacity_Bps, 8e6);
	near(skep_topology_pair(&t, 0, 3).capacity_Bps, 9e6);
	assert_non_null(strstr(report.notes, "2 links that several pairs share in SimGrid ('half' first)"));
	skep_topology_finish(&t);
}

/* A site whose machines have links of their own and, with a backbone, share that. */
static void test_clusters(void **state)
{
	(void)state;
	if (!has_library())
		skip();
	struct skep_import_report report;
	struct skep_topology t =
		import_good("<platform version='4.1'><cluster id='rack' prefix='n' suffix='.org' radical='0-15' "
			    "speed='1Gf' bw='125MBps' lat='50us' bb_bw='2.25GBps' bb_lat='500us'/></platform>",
			&report);
	assert_int_equal(t.machines, 16);
	assert_int_equal(t.places, 1);
	assert_string_equal(t.place_name[0], "rack");
	near(t.machine[15].up_Bps, 125e6);
	near(t.machine[15].down_Bps, 125e6);
	near(t.pair[0].shared_Bps, 2.25e9);
	near(t.pair[0].latency_s, 600e-6);
	skep_topology_finish(&t);
	t = import_good(OPEN
		"<cluster id='rack' radical='0-2,8,10-11' bw='1Gbps' lat='1ms' sharing_policy='FATPIPE' bb_bw='100MBps' "
		"bb_sharing_policy='FATPIPE'/>" CLOSE,
		&report);
	assert_int_equal(t.machines, 6);
	assert_true(isinf(t.machine[0].up_Bps) && isinf(t.pair[0].shared_Bps));
	near(t.pair[0].capacity_Bps, 100e6);
	near(t.pair[0].latency_s, 2e-3);
	skep_topology_finish(&t);
	t = import_good(OPEN "<cluster id='rack' radical='7-8' bw='1Gbps' sharing_policy='SHARED'/>" CLOSE, &report);
	assert_int_equal(t.machines, 2);
	assert_non_null(strstr(report.notes, "whose two directions share in SimGrid ('rack' first)"));
	skep_topology_finish(&t);
}

/* By hand: 50 + 500 us to west's edge, 20 us to east's, 36 ms between; the least of 2.25 GB/s, 250 MB/s and 1 Gbit/s. */
static void test_routes_of_clusters(void **state)
{
	(void)state;
	char sample[] = "tests/data/simgrid-clusters.xml";
	struct skep_import_report report;
	struct skep_diag diag;
	if (!has_library())
		skip();
	assert_true(run(sample, NULL, &report, &diag));
	struct skep_topology t;
	assert_true(skep_topology_read(output, &t, &diag));
	assert_true(t.places == 2 && t.machines == 6);
	for (uint32_t from = 0; from < 2; from++) {
		const struct skep_pair *pair = &t.pair[2 * from + 1 - from];
		near(pair->latency_s, 36.57e-3);
		near(pair->shared_Bps, 125e6);
	}
	assert_non_null(strstr(report.notes, "1 link whose two directions share in SimGrid ('sea' first)"));
	skep_topology_finish(&t);
}

#define TWO "<cluster id='a' radical='0-1' bw='1Gbps'/><cluster id='b' radical='2-3' bw='1Gbps'/>"
#define WIRE "<link id='l' bandwidth='1Gbps'/>"

static void test_refused_routes_of_clusters(void **state)
{
	(void)state;
	if (!has_library())
		skip();
	refuse(OPEN TWO WIRE "\n<zoneRoute src='a' dst='c'>", 4, 1,
		"a <zoneRoute> of 'c', which is no cluster of this zone");
	refuse(OPEN TWO WIRE "\n<ASroute src='a' dst='a'>", 4, 1, "a <ASroute> from a cluster to itself");
	refuse(OPEN TWO WIRE "\n<route src='a' dst='b'>", 4, 1,
		"a <route> of the cluster 'a': between clusters <zoneRoute> is taken");
	refuse(OPEN "<host id='h'/>" TWO WIRE "\n<zoneRoute src='a' dst='h'>", 4, 1,
		"a <zoneRoute> of 'h', which is no cluster of this zone");
	refuse(OPEN TWO "\n<zoneRoute src='a' dst='b'></zoneRoute>" CLOSE, 4, 28, "a route without links");
	refuse(OPEN TWO WIRE "<zoneRoute src='a' dst='b'><link_ctn id='l'/></zoneRoute>\n"
			     "<zoneRoute src='b' dst='a'><link_ctn id='l'/></zoneRoute>" CLOSE,
		4, 46, "a second route from 'b' to 'a'");
	refuse(OPEN TWO WIRE "\n<zoneRoute src='a'>", 4, 1, "<zoneRoute> without its dst");
}

static void test_refused(void **state)
{
	(void)state;
	if (!has_library())
		skip();
	refuse("", 1, 1, "is not well-formed XML: no element found");
	refuse("<html></html>", 1, 1, "expected <platform>, not <html>");
	refuse(OPEN HOSTS, 4, 1, "is not well-formed XML: no element found");
	refuse(OPEN "<host id='a'></zone>", 3, 16, "is not well-formed XML: mismatched tag");
	refuse(OPEN CLOSE, 0, 0, "there is no host in it");
	refuse("<platform><zone id='z' routing='Dijkstra'/></platform>", 1, 11,
		"routing 'Dijkstra' is not taken; Full is");
	refuse(OPEN "<zone id='y' routing='Full'/>" CLOSE, 3, 1, "a second <zone>, or one within another");
	refuse(OPEN "<router id='r'/>" CLOSE, 3, 1,
		"<router> is not taken; host, cluster, link, route, zoneRoute, link_ctn and one zone are");
#define CLUSTER(more) "<cluster id='c' bw='1Gbps' " more "/>"
	refuse(OPEN CLUSTER("") CLOSE, 3, 1, "<cluster> without its radical");
	refuse(OPEN "<cluster id='c' radical='0-3'/>" CLOSE, 3, 1, "<cluster> without its bw");
	refuse(OPEN "<cluster bw='1Gbps' radical='0-3'/>" CLOSE, 3, 1, "<cluster> without its id");
	static const char *const radicals[] = {
		"", "a", "3-1", "0-", "0-3,", ",1", "0-65536", "0-40000,40001-80000", "-1", "0..3"};
	for (size_t i = 0; i < sizeof radicals / sizeof *radicals; i++) {
		char text[256];
		snprintf(text, sizeof text, OPEN "<cluster id='c' bw='1Gbps' radical='%s'/>" CLOSE, radicals[i]);
		refuse(text, 3, 1, "expected at most 65536 numbers, such as 0-15 or 0-3,8");
	}
	refuse(OPEN CLUSTER("radical='0-3' topology='TORUS'") CLOSE, 3, 1,
		"topology 'TORUS' of a cluster is not taken");
	refuse(OPEN CLUSTER("radical='0-3' limiter_link='1Gbps'") CLOSE, 3, 1,
		"the attribute 'limiter_link' of <cluster>");
	refuse(OPEN CLUSTER("radical='0-3' bb_sharing_policy='WIFI'") CLOSE, 3, 1, "the sharing policies of a cluster");
	refuse(OPEN CLUSTER("radical='0-3'") CLUSTER("radical='4-7'") CLOSE, 3, 43, "a second host or cluster 'c'");
	refuse(OPEN CLUSTER("radical='0-3'") "<host id='c'/>" CLOSE, 3, 43, "a second host 'c'");
	refuse(OPEN CLUSTER("radical='0-3'") "<host id='a'/>" ROUTE("a", "c", "") CLOSE, 3, 57,
		"a <route> of the cluster 'c'");
	refuse(OPEN "  <host id='a' speed='1' speed_file='x'/>" CLOSE, 3, 3,
		"the attribute 'speed_file' of <host> is not taken");
	refuse(OPEN "<host speed='1'/>" CLOSE, 3, 1, "<host> without its id");
	refuse(OPEN "<host id='a'/><host id='a'/>" CLOSE, 3, 15, "a second host 'a'");
	refuse(OPEN "<host id='a host whose name is far too long'/>" CLOSE, 3, 1, "expected a name of 1 to 31 bytes");
	refuse(OPEN "<link id='l' bandwidth='0Bps'/>" CLOSE, 3, 1, "bandwidth '0Bps': expected one above 0");
	refuse(OPEN "<link id='l' bandwidth='-1Bps'/>" CLOSE, 3, 1, "bandwidth '-1Bps': expected one above 0");
	refuse(OPEN "<link id='l' bandwidth='nan'/>" CLOSE, 3, 1, "bandwidth 'nan': expected one above 0");
	refuse(OPEN "<link id='l' bandwidth='5'  latency='1 year'/>" CLOSE, 3, 1, "latency '1 year': expected a time");
	refuse(OPEN "<link id='l' bandwidth='5' sharing_policy='WIFI'/>" CLOSE, 3, 1,
		"sharing_policy 'WIFI' is not taken");
	refuse(OPEN "<link id='l' bandwidth='5'/><link id='l' bandwidth='5'/>" CLOSE, 3, 29, "a second link 'l'");
#define LINK "<link id='l' bandwidth='5'/><link id='s' bandwidth='5' sharing_policy='SPLITDUPLEX'/>\n"
	refuse(OPEN HOSTS LINK ROUTE("a", "d", CTN("l")) CLOSE, 5, 1, "a route of 'd', which is no host of this zone");
	refuse(OPEN HOSTS LINK ROUTE("a", "b", CTN("k")) CLOSE, 5, 24, "a route over 'k', which is no link above");
	refuse(OPEN HOSTS LINK ROUTE("a", "b", CTN("s")) CLOSE, 5, 24, "direction=\"UP\" or \"DOWN\" is needed");
	refuse(OPEN HOSTS LINK ROUTE("a", "b", "") CLOSE, 5, 24, "a route without links");
	refuse(OPEN HOSTS LINK ROUTE("a", "b", CTN("l")) ROUTE("b", "a", CTN("l")) CLOSE, 6, 42,
		"a second route from 'b' to 'a'");
	refuse(OPEN HOSTS LINK ROUTE("a", "b", CTN("l")) CLOSE, 0, 0, "the places fall into 2 groups");
	refuse(OPEN HOSTS LINK ROUTE("a", "b", CTN("l")) ONE_WAY("c", "a", CTN("l")) CLOSE, 0, 0,
		"no bandwidth of 3 of 6 ordered pairs: a to c, b to c, c to b");
	refuse("<!DOCTYPE platform [<!ENTITY lol 'lol'>]>\n" OPEN CLOSE, 1, ANYWHERE, "the entity 'lol' is not taken");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_access_links),
		cmocka_unit_test(test_links_that_pairs_share),
		cmocka_unit_test(test_link_of_some_routes),
		cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_routes_of_clusters),
		cmocka_unit_test(test_refused_routes_of_clusters),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
