/* SPDX-License-Identifier: Apache-2.0
 *
 * test_peers.c - topologies of home peers: who lives where is drawn by the shares of a table, the same on every machine; and what
 * is wrong in the table or around it is refused at its place.
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

#include "core/hash.h"
#include "topologies/read/regions.h"
#include "topologies/read/topology.h"
#include "topologies/read/topology_stats.h"

static char folder[64], root[512];

static int enter(void **state)
{
	(void)state;
	char link[640];
	snprintf(folder, sizeof folder, "/tmp/skep-peers-XXXXXX");
	if (!getcwd(root, sizeof root) || mkdtemp(folder) == NULL || chdir(folder) != 0)
		return 1;
	snprintf(link, sizeof link, "%s/topologies/gpus", root);
	return symlink(link, "gpus");
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

#define HEAD "region,node_share,download_bps,upload_bps,latency_ms_to_N,latency_ms_to_S\n"
#define NORTH "N,75,80e6,16e6,10,100\n"
#define SOUTH "S,25,40000000,8000000,120,20\n"
#define TOP "name: peers\nsource: assumed for this test\ndirectory: S\n"

static struct skep_topology read_good(const char *peers)
{
	struct skep_topology t;
	struct skep_diag diag = {0};
	char text[512];
	snprintf(text, sizeof text, TOP "peers: {%s}\n", peers);
	write_file("peers.yaml", text);
	if (!skep_topology_read("peers.yaml", &t, &diag))
		fail_msg("%s:%u:%u: %s", diag.file, diag.line, diag.column, diag.message);
	return t;
}

static void refuse(const char *text, const char *file, uint32_t line, uint32_t column, const char *phrase)
{
	struct skep_topology t;
	struct skep_diag diag = {0};
	write_file("peers.yaml", text);
	assert_false(skep_topology_read("peers.yaml", &t, &diag));
	if (!strstr(diag.message, phrase) || !strstr(diag.file, file) || diag.line != line || diag.column != column)
		fail_msg("%s:%u:%u: %s", diag.file, diag.line, diag.column, diag.message);
}

static void refuse_table(const char *table, uint32_t line, uint32_t column, const char *phrase)
{
	write_file("bad.csv", table);
	refuse(TOP "peers: {count: 3, regions: bad.csv, gpu: v100}\n", "bad.csv", line, column, phrase);
}

static void test_peers(void **state)
{
	(void)state;
	write_file("two.csv", HEAD SOUTH NORTH); /* the order is that of the columns */
	struct skep_topology t = read_good("count: 4000, regions: two.csv, gpu: v100, seed: 3, price: 0.5 USD/h");
	assert_int_equal(t.machines, 4000);
	assert_int_equal(t.places, 2);
	assert_string_equal(t.place_name[0], "N");
	assert_int_equal(t.machine[4000].place, 1); /* the directory */
	uint32_t north = 0;
	for (uint32_t i = 0; i < t.machines; i++) {
		bool n = t.machine[i].place == 0;
		north += n;
		assert_true(t.machine[i].up_Bps == (n ? 2e6 : 1e6) && t.machine[i].down_Bps == (n ? 10e6 : 5e6));
		assert_true(t.machine[i].price_usd_per_h == 0.5 && t.machine[i].gpu == 0);
	}
	assert_in_range(north, 2890, 3110); /* 3000, four standard deviations of 27.4 */
	assert_true(t.pair[0].latency_s == 0.010 && t.pair[1].latency_s == 0.100);
	assert_true(t.pair[2].latency_s == 0.120 && t.pair[3].latency_s == 0.020);
	for (int i = 0; i < 4; i++)
		assert_true(isinf(t.pair[i].capacity_Bps) && isinf(t.pair[i].shared_Bps));
	skep_topology_finish(&t);
}

static uint64_t digest(const struct skep_topology *t, uint32_t machines, bool gpus)
{
	uint64_t hash = SKEP_HASH_EMPTY;
	for (uint32_t i = 0; i < machines; i++)
		hash = skep_hash_word(hash, gpus ? t->machine[i].gpu : t->machine[i].place);
	return hash;
}

static void test_same_seed_same_peers(void **state)
{
	(void)state;
	write_file("two.csv", HEAD NORTH SOUTH);
	struct skep_topology a = read_good("count: 500, regions: two.csv, gpu: v100, seed: 5");
	struct skep_topology b =
		read_good("count: 900, regions: two.csv, gpus: [{gpu: t4, share: 3}, {gpu: v100}], seed: 5");
	struct skep_topology c = read_good("count: 500, regions: two.csv, gpu: v100, seed: 6");
	/* Neither the kinds of GPUs nor how many peers come after change where a peer lives. */
	assert_true(digest(&a, 500, false) == digest(&b, 500, false));
	assert_true(digest(&a, 500, false) != digest(&c, 500, false));
	assert_true(digest(&a, 500, false) == UINT64_C(0x9ce433739d15b475)); /* on every machine and compiler */
	uint32_t t4 = 0;
	for (uint32_t i = 0; i < 900; i++)
		t4 += b.machine[i].gpu == 0;
	assert_in_range(t4, 623, 727); /* 675, four standard deviations of 13 */
	skep_topology_finish(&a);
	skep_topology_finish(&b);
	skep_topology_finish(&c);
}

static void test_bad_peers(void **state)
{
	(void)state;
	write_file("two.csv", HEAD NORTH SOUTH);
	refuse(TOP "peers: {count: 0, regions: two.csv, gpu: v100}\n", "peers.yaml", 4, 16, "peers.count");
	refuse(TOP "peers: {count: 3, gpu: v100}\n", "peers.yaml", 4, 8, "regions");
	refuse(TOP "peers: {count: 3, regions: none.csv, gpu: v100}\n", "peers.yaml", 4, 28, "no file 'none.csv'");
	refuse(TOP "peers: {count: 3, regions: two.csv}\n", "peers.yaml", 4, 8, "gpu");
	refuse(TOP "peers: {count: 3, regions: two.csv, gpu: v1000}\n", "peers.yaml", 4, 42, "no GPU profile 'v1000'");
	refuse(TOP "peers: {count: 3, regions: two.csv, gpu: t4, gpus: [{gpu: t4}]}\n", "peers.yaml", 4, 42,
		"not both");
	refuse(TOP "peers: {count: 3, regions: two.csv, gpus: [{gpu: t4, share: 0}]}\n", "peers.yaml", 4, 61, "share");
	refuse(TOP "peers: {count: 3, regions: two.csv, gpus: []}\n", "peers.yaml", 4, 43, "1 to 64 kinds");
	refuse(TOP "peers: {count: 3, regions: two.csv, gpu: t4, up: 1 Gbit/s}\n", "peers.yaml", 4, 46, "unknown key");
	refuse(TOP "peers: {count: 3, regions: two.csv, gpu: t4}\nlinks: []\n", "peers.yaml", 5, 1, "unknown key");
	refuse(TOP "peers: {count: 3, regions: two.csv, gpu: t4}\nsites: {}\n", "peers.yaml", 4, 8, "not two of them");
	refuse("name: p\nsource: assumed\ndirectory: W\npeers: {count: 3, regions: two.csv, gpu: t4}\n", "peers.yaml",
		3, 12, "no region 'W'; there are: N, S");
}

static void test_bad_tables(void **state)
{
	(void)state;
	refuse_table("", 0, 0, "is empty");
	refuse_table("# nothing\n", 0, 0, "is empty");
	refuse_table("region,node_share\n", 1, 1, "the header lacks these columns: download_bps, upload_bps");
	refuse_table("region,node_share,download_bps,upload_bps\n", 1, 1, "expected a column latency_ms_to_NAME");
	refuse_table(HEAD NORTH, 0, 0, "the column latency_ms_to_S has no row of its region");
	refuse_table(HEAD NORTH NORTH SOUTH, 3, 1, "a second row of region N");
	refuse_table(HEAD NORTH SOUTH "W,1,1,1,1,1\n", 4, 1, "region 'W' has no column latency_ms_to_W");
	refuse_table(HEAD "N,0,80e6,16e6,10,100\nS,0,80e6,16e6,10,100\n", 0, 0, "all shares are 0");
	refuse_table(HEAD "N,-1,80e6,16e6,10,100\n", 2, 3, "expected a share of the peers from 0");
	refuse_table(HEAD "N,1,0,16e6,10,100\n", 2, 5, "expected a bandwidth in bit/s from 8");
	refuse_table(HEAD "N,1,80e6,nan,10,100\n", 2, 10, "not 'nan'");
	refuse_table(HEAD "N,1,80e6,16e6,,100\n", 2, 15, "but the cell is empty");
	refuse_table(HEAD "N,1,80e6,16e6,10\n", 2, 17, "this row has 5 cells, the header 6");
}

/* Quantiles over pairs: three of N and one of S would be 12 pairs; here all of one kind, counted by hand. */
static void test_stats(void **state)
{
	(void)state;
	struct skep_topology_stats s;
	write_file("two.csv", HEAD NORTH SOUTH);
	struct skep_topology t = read_good("count: 2000, regions: two.csv, gpu: v100, seed: 1");
	assert_true(skep_topology_stats_make(&t, &s));
	assert_true(s.pairs == 2000 * 1999 && s.drawn && s.looked_at == 1000000);
	assert_true(s.bandwidth_Bps[SKEP_QUANTILE_LEAST] == 1e6 && s.bandwidth_Bps[SKEP_QUANTILE_MOST] == 2e6);
	assert_true(s.latency_s[SKEP_QUANTILE_LEAST] == 0.010 && s.latency_s[SKEP_QUANTILE_MOST] == 0.120);
	assert_true(s.latency_s[SKEP_QUANTILE_MEDIAN] == 0.010); /* 0.75^2 of the pairs */
	assert_in_range(s.lopsided, 355000, 395000);             /* 2 * 0.75 * 0.25 of them */
	skep_topology_finish(&t);
	write_file("one.yaml",
		"name: one\nsource: assumed\ndirectory: a\nsites:\n  a:\n    machines: [{count: 3, gpu: v100}]\n"
		"    inside: {bandwidth: 8 Mbit/s, latency: 2 ms}\n");
	struct skep_diag diag = {0};
	assert_true(skep_topology_read("one.yaml", &t, &diag));
	assert_true(skep_topology_stats_make(&t, &s));
	assert_true(s.pairs == 6 && !s.drawn && s.looked_at == 6 && s.lopsided == 0);
	for (int q = 0; q < SKEP_QUANTILES; q++)
		assert_true(s.bandwidth_Bps[q] == 1e6 && s.latency_s[q] == 0.002);
	skep_topology_finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_same_seed_same_peers),
		cmocka_unit_test(test_bad_peers),
		cmocka_unit_test(test_bad_tables),
		cmocka_unit_test(test_stats),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
