/* SPDX-License-Identifier: Apache-2.0
 *
 * test_parts.c - machines of several GPUs that have several workers (cluster.worker_gpus): how many GPUs each has, what is
 * between them and to others, what they cost, and what is refused. The folder is that of split_fixture.h.
 */
#include "tests/unit/split_fixture.h"

#include <math.h>

#include "scenarios/plan/split.h"
#include "topologies/read/path.h"

#define HOSTS                                                                                                                    \
	"{gpu: g, count: 2, gpus: 4, inner: {bandwidth: 4 GB/s, latency: 1 us}, up: 0.5 GB/s, down: 0.25 GB/s, price: 8 USD/h, " \
	"host: {memory: 8 GB, bandwidth: 2 GB/s}}"

static void make_topologies(void)
{
	write_topology("hosts.yaml", HOSTS);
	write_file("apart.yaml",
		"name: t\nsource: assumed\ndirectory: a\nsites:\n  a: {machines: []}\n  b: {machines: [" HOSTS
		"], inside: {bandwidth: 1 GB/s, latency: 1 ms, shared: true}}\n"
		"links: [{between: [a, b], bandwidth: 1 GB/s, latency: 2 ms}]\n");
	write_file("alone.yaml",
		"name: t\nsource: assumed\ndirectory: a\nsites:\n  a: {machines: []}\n"
		"  b: {machines: [{gpu: g, gpus: 4, inner: {bandwidth: 4 GB/s, latency: 1 us}, up: 0.5 GB/s}], uplink: 2 GB/s}\n"
		"links: [{between: [a, b], bandwidth: 3 GB/s, latency: 2 ms, shared: true}]\n");
	write_file("up.yaml",
		"name: t\nsource: assumed\ndirectory: a\nsites:\n  a: {machines: []}\n  b: {machines: [" HOSTS
		"], inside: {bandwidth: 1 GB/s, latency: 1 ms}, uplink: 2 GB/s}\n"
		"links: [{between: [a, b], bandwidth: 1 GB/s, latency: 2 ms}]\n");
	write_file("out.yaml",
		"name: t\nsource: assumed\ndirectory: a\nsites:\n  a: {machines: []}\n  b: {machines: [" HOSTS
		"], inside: {bandwidth: 1 GB/s, latency: 1 ms}, reach: out}\n"
		"links: [{between: [a, b], bandwidth: 1 GB/s, latency: 2 ms}]\n");
}

static bool same(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static uint32_t degree(const struct skep_scenario *s, uint32_t worker)
{
	return skep_split_of(s, s->topology.machine[worker].gpu).gpus;
}

static void has_workers(void **state)
{
	(void)state;
	struct skep_scenario s, whole, two;
	make_topologies();
	must_read("block.yaml", "hosts.yaml", "cluster.worker_gpus=[[2, 1, 1], [4]]", &s);
	must_read("block.yaml", "hosts.yaml", NULL, &whole);
	must_read("block.yaml", "hosts.yaml", "cluster.tensor_parallel=2", &two);
	const struct skep_topology *t = &s.topology;
	assert_int_equal(s.plan.workers, 4);
	assert_true(degree(&s, 0) == 2 && degree(&s, 1) == 1 && degree(&s, 2) == 1 && degree(&s, 3) == 4);
	/* each takes as long as on so many GPUs of a machine that it has to itself */
	assert_int_equal(s.op_time[t->machine[0].gpu].forward_ns, two.op_time[0].forward_ns);
	assert_int_equal(s.op_time[t->machine[3].gpu].backward_ns, whole.op_time[0].backward_ns);
	/* the link between GPUs; the machine's way out, for all of its workers; and the site's network */
	struct skep_pair inner = skep_topology_pair(t, 0, 2), outer = skep_topology_pair(t, 1, 3);
	assert_true(same(inner.capacity_Bps, 4e9) && same(inner.latency_s, 1e-6) && isinf(inner.shared_Bps));
	assert_true(same(outer.capacity_Bps, 1e9) && same(outer.latency_s, 1e-3));
	assert_true(same(skep_path_lone_Bps(t, 0, 1), 4e9) && same(skep_path_lone_Bps(t, 0, 3), 0.25e9));
	assert_true(same(skep_path_lone_Bps(t, 3, 0), 0.25e9) && same(skep_path_lone_Bps(t, 0, t->machines), 0.5e9));
	assert_true(t->machine[0].place == t->machine[2].place && t->machine[0].place != t->machine[3].place);
	assert_true(skep_machine_site(&t->machine[0]) ==
		    skep_machine_site(&t->machine[3])); /* sums by site cross nothing */
	assert_true(same(t->site_link[t->machine[0].place].up_Bps, 0.5e9) && isinf(t->machine[0].up_Bps));
	/* what the machine costs is theirs, and so is its memory */
	assert_true(same(t->machine[0].price_usd_per_h, 4) && same(t->machine[1].price_usd_per_h, 2));
	assert_true(same(t->machine[3].price_usd_per_h, 8));
	assert_true(same(t->gpu[t->machine[0].gpu].board.host_bytes, 4e9));
	skep_scenario_finish(&s);
	skep_scenario_finish(&whole);
	skep_scenario_finish(&two);
}

/* GPUs that are left out are paid for all the same. */
static void leaves_gpus_out(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read("block.yaml", "hosts.yaml", "cluster.worker_gpus=[[1, 1], [2]]", &s);
	assert_int_equal(s.plan.workers, 3);
	assert_true(degree(&s, 0) == 1 && degree(&s, 2) == 2);
	assert_true(same(s.topology.machine[0].price_usd_per_h, 4) && same(s.topology.machine[2].price_usd_per_h, 8));
	assert_true(same(skep_path_lone_Bps(&s.topology, 2, 0), 0.25e9));
	skep_scenario_finish(&s);
}

/* A machine that is a site by itself stays that site, with what it shares. */
static void stays_at_its_place(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read("block.yaml", "alone.yaml", "cluster.worker_gpus=[[2, 2]]", &s);
	const struct skep_topology *t = &s.topology;
	assert_true(t->places == 2 && t->machine[1].place == 1);
	assert_true(same(skep_path_lone_Bps(t, 0, 1), 4e9) && same(t->site_link[1].up_Bps, 0.5e9));
	assert_true(same(skep_topology_pair(t, 0, 2).shared_Bps, 3e9));
	skep_scenario_finish(&s);
	must_read("block.yaml", "up.yaml", "cluster.worker_gpus=[[4], [4]]", &s); /* nothing is taken apart */
	assert_true(s.plan.workers == 2 && s.topology.places == 2);
	skep_scenario_finish(&s);
}

static void refuses(void **state)
{
	(void)state;
	must_refuse("block.yaml", "hosts.yaml", "cluster.worker_gpus=[[4]]", "1 entries, the topology has 2 machines");
	must_refuse("block.yaml", "hosts.yaml", "cluster.worker_gpus=[[4], [2, 1, 2]]",
		"the workers of machine 1 have 5 GPUs together, and it has 4");
	must_refuse(
		"block.yaml", "hosts.yaml", "cluster.worker_gpus=[[4], []]", "the GPUs of each worker of machine 1");
	must_refuse("block.yaml", "hosts.yaml", "cluster.worker_gpus=[4, 4]", "as in [2, 2]; it has 4");
	must_refuse("block.yaml", "hosts.yaml", "cluster.worker_gpus=[[4], [0]]", "from 1 to 1024");
	must_refuse("block.yaml", "hosts.yaml", "cluster.worker_gpus=[[3, 1], [4]]",
		"a number of heads that is no multiple of that");
	must_refuse("block.yaml", "apart.yaml", "cluster.worker_gpus=[[2, 2], [4]]",
		"a link that it shares with other machines");
	must_refuse(
		"block.yaml", "up.yaml", "cluster.worker_gpus=[[2, 2], [4]]", "an uplink or a downlink that it shares");
	must_refuse("block.yaml", "out.yaml", "cluster.worker_gpus=[[2, 2], [4]]", "its site only dials out");
	const char *sets[] = {"cluster.worker_gpus=[[2, 2], [4]]", "cluster.tensor_parallel=4"};
	struct skep_scenario s;
	struct skep_diag diag;
	assert_false(try_read("block.yaml", "hosts.yaml", sets, 2, &s, &diag));
	assert_non_null(strstr(diag.message, "4 GPUs for each worker, the machine of worker 0 has 2"));
	write_file("gone.csv", "seconds,event,name\n5,join,x\n6,leave,x\n");
	for (int i = 0; i < 2; i++) {
		sets[1] = i == 0 ? "cluster.trace={file: gone.csv}" : "cluster.scale={policy: price, min: 2, max: 2}";
		assert_false(try_read("block.yaml", "hosts.yaml", sets, 2, &s, &diag));
		if (!strstr(diag.message, "come and go as a whole"))
			fail_msg("`%s`", diag.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_workers),
		cmocka_unit_test(leaves_gpus_out),
		cmocka_unit_test(stays_at_its_place),
		cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
