/* SPDX-License-Identifier: Apache-2.0
 *
 * test_network.c - closed forms, the workloads F and X with their published exact makespans, and random small networks
 * against an oracle that solves everything again at every event.
 */
#include "sim/bench/draw.h"
#include "tests/unit/flow_drive.h"
#include "tests/unit/observed_network.h"

/* ---- closed forms ------------------------------------------------------------------------------------------- */

static void one_flow_takes_latency_and_bytes_over_the_least_capacity(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 1);
	topology.pair[0].latency_s = 0.25;
	topology.machine[0].up_Bps = 4e6;
	topology.machine[1].down_Bps = 1e6;
	struct transfer t = {.start = 1000000000, .destination = 1, .bytes = 3000000};
	drive(&topology, &t, 1);
	assert_seconds(t.arrival, 4.25);
	topology.pair[0].capacity_Bps = 5e5;
	drive(&topology, &t, 1);
	assert_seconds(t.arrival, 7.25);
	topology.pair[0].shared_Bps = 2.5e5;
	drive(&topology, &t, 1);
	assert_seconds(t.arrival, 13.25);
	topology_free(&topology);
}

static void a_finish_time_is_rounded_up(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 1);
	topology.machine[0].up_Bps = 3e6;
	struct transfer t = {.destination = 1, .bytes = 10000};
	drive(&topology, &t, 1);
	assert_int_equal(t.arrival, 3333334);
	topology_free(&topology);
}

static void nothing_limits_means_latency_alone(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 1);
	topology.pair[0].latency_s = 0.125;
	struct transfer t[2] = {{.destination = 1, .bytes = 1u << 30}, {.source = 1, .destination = 2, .bytes = 0}};
	drive(&topology, t, 2);
	assert_true(t[0].arrival == 125000000 && t[1].arrival == 125000000);
	topology.machine[0].up_Bps = 1; /* no bytes: no transfer time, at any speed */
	t[0].bytes = 0;
	drive(&topology, t, 2);
	assert_true(t[0].arrival == 125000000);
	topology_free(&topology);
}

static void flows_on_one_uplink_share_it_equally(void **state)
{
	(void)state;
	struct skep_topology topology;
	struct transfer t[7];
	topology_init(&topology, 8, 1);
	topology.machine[0].up_Bps = 1e7;
	for (uint32_t i = 0; i < 7; i++)
		t[i] = (struct transfer){.destination = i + 1, .bytes = 1000000};
	drive(&topology, t, 7);
	for (uint32_t i = 0; i < 7; i++) {
		assert_seconds(t[i].arrival, 0.7);
		assert_int_equal(t[i].rank, i); /* equal finish: in start order */
	}
	topology_free(&topology);
}

static void flows_of_rising_size_on_one_downlink(void **state)
{
	(void)state;
	struct skep_topology topology;
	struct transfer t[6];
	topology_init(&topology, 7, 1);
	topology.machine[0].down_Bps = 1e6;
	for (uint32_t i = 0; i < 6; i++)
		t[i] = (struct transfer){.source = i + 1, .bytes = 1000000 * (6 - i)};
	drive(&topology, t, 6);
	double at = 0;
	for (uint32_t i = 6; i-- > 0;) { /* i + 1 flows are left while the next million bytes each go */
		at += i + 1;
		assert_seconds(t[i].arrival, at);
		assert_int_equal(t[i].rank, 5 - i);
	}
	topology_free(&topology);
}

/* Three links in a row of capacities 1, 2, 1 MB/s; a long flow over the first two, one short flow on each. */
static void classic_example(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 4, 1);
	topology.machine[0].up_Bps = 1e6;
	topology.machine[1].down_Bps = 2e6;
	struct transfer t[3] = {
		{.source = 0, .destination = 1, .bytes = 1000000}, /* 0.5 beside t[1], then alone */
		{.source = 0, .destination = 2, .bytes = 500000},  /* 0.5 */
		{.source = 3, .destination = 1, .bytes = 2500000}, /* 1.5, then 1 when t[0] has all of the uplink */
	};
	drive(&topology, t, 3);
	assert_seconds(t[1].arrival, 1);
	assert_seconds(t[0].arrival, 1.5);
	assert_seconds(t[2].arrival, 1.5 + 0.5 / 2); /* 1.5 s and 2.0 MB in, the rest at 2 MB/s */
	topology_free(&topology);
}

static void pair_capacity_holds_one_pair_only(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 4, 2);
	topology.machine[1].place = topology.machine[2].place = 1;
	topology.pair[1].capacity_Bps = 1e6;
	topology.machine[0].up_Bps = 4e6;
	struct transfer t[4] = {
		{.destination = 1, .bytes = 1000000}, /* on 0 -> 1: 1, one after the other */
		{.destination = 1, .bytes = 1000000}, {.destination = 2, .bytes = 1000000}, /* 0 -> 2: 1 */
		{.destination = 3, .bytes = 4000000}, /* inside the place: what is left of the uplink, 2 */
	};
	drive(&topology, t, 4);
	assert_seconds(t[0].arrival, 1);
	assert_seconds(t[1].arrival, 2);
	assert_seconds(t[2].arrival, 1);
	assert_seconds(t[3].arrival, 1 + 2.0 / 3);
	topology_free(&topology);
}

static void shared_capacity_holds_all_pairs_of_two_places_one_way(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 4, 2);
	topology.machine[2].place = topology.machine[3].place = 1;
	topology.pair[1].shared_Bps = 1e6;
	topology.pair[2].shared_Bps = 5e5;
	struct transfer t[4] = {
		{.source = 0, .destination = 2, .bytes = 1000000}, {.source = 1, .destination = 3, .bytes = 1000000},
		{.source = 2, .destination = 0, .bytes = 1000000},
		{.source = 0, .destination = 1, .bytes = 1000000}, /* inside: not limited */
	};
	drive(&topology, t, 4);
	assert_seconds(t[0].arrival, 2);
	assert_seconds(t[1].arrival, 2);
	assert_seconds(t[2].arrival, 2);
	assert_seconds(t[3].arrival, 0);
	topology_free(&topology);
}

static void small_transfers_take_no_bandwidth(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 3, 1);
	topology.machine[0].up_Bps = 1e6;
	struct transfer t[3] = {
		{.destination = 1, .bytes = 1000000},
		{.destination = 2, .bytes = SKEP_NETWORK_SMALL_BYTES},
		{.destination = 2, .bytes = SKEP_NETWORK_SMALL_BYTES + 1},
	};
	drive(&topology, t, 3);
	assert_seconds(t[1].arrival, SKEP_NETWORK_SMALL_BYTES * 1e-6);
	assert_seconds(t[2].arrival, 2 * (SKEP_NETWORK_SMALL_BYTES + 1) * 1e-6);
	assert_seconds(t[0].arrival, 1 + (SKEP_NETWORK_SMALL_BYTES + 1) * 1e-6);
	topology_free(&topology);
}

static void latency_is_waited_without_bandwidth(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 2);
	topology.machine[1].place = topology.machine[2].place = 1;
	topology.pair[1].latency_s = 1;
	topology.machine[2].up_Bps = topology.machine[0].up_Bps = 1e6;
	topology.machine[1].down_Bps = 1e6;
	struct transfer t[2] = {
		{.source = 0, .destination = 1, .bytes = 1000000}, /* begins to share at 1 s */
		{.source = 2, .destination = 1, .bytes = 2000000}, /* alone for 1 s, then half each */
	};
	drive(&topology, t, 2);
	assert_seconds(t[0].arrival, 3);
	assert_seconds(t[1].arrival, 3);
	assert_int_equal(t[0].rank, 0);
	topology_free(&topology);
}

/* ---- the workloads F and X: slots that send one flow after another ---------------------------------------------- */

static void start_slot(struct skep_network *network, skep_time now, uint32_t hosts, uint32_t flow)
{
	uint32_t source = (uint32_t)(rnd(11, flow) % hosts);
	uint32_t destination = (uint32_t)((source + 1 + rnd(12, flow) % (hosts - 1)) % hosts);
	uint64_t bytes = (uint64_t)(1e6 * (1 + 99 * u01(13, flow)));
	assert_true(skep_network_start(network, now, source, destination, bytes, flow));
}

static double slots_makespan(const struct skep_topology *topology, uint32_t slots, uint32_t each)
{
	struct skep_network *network = skep_network_create(topology);
	assert_non_null(network);
	for (uint32_t j = 0; j < slots; j++)
		start_slot(network, 0, topology->machines, j * each);
	skep_time now = 0;
	while (flows_under_way(network) > 0) {
		uint64_t tag[64];
		now = skep_network_next(network);
		uint32_t got = skep_network_advance(network, now, tag, 64);
		for (uint32_t i = 0; i < got; i++)
			if ((tag[i] + 1) % each != 0)
				start_slot(network, now, topology->machines, (uint32_t)tag[i] + 1);
	}
	skep_network_destroy(network);
	return (double)now * 1e-9;
}

static void check_star(uint32_t hosts, uint32_t slots, double want)
{
	struct skep_topology topology;
	topology_init(&topology, hosts, 1);
	topology_link_profile(&topology)->streams = SKEP_STREAMS_EACH; /* flows of equal ends are simultaneous */
	topology.pair[0].latency_s = 0.002;
	for (uint32_t i = 0; i < hosts; i++) {
		topology.machine[i].up_Bps = 1.25e8 * (0.5 + u01(2, i));
		topology.machine[i].down_Bps = 1.25e8 * (0.5 + u01(3, i));
	}
	double got = slots_makespan(&topology, slots, 10);
	if (fabs(got - want) > 1e-6 * want)
		fail_msg("F %u %u: %.9f s, expected %.9f s", hosts, slots, got, want);
	topology_free(&topology);
}

static void workload_f(void **state)
{
	(void)state;
	check_star(16, 16, 17.262426316);
	check_star(16, 64, 40.199893617);
	check_star(128, 128, 17.978721704);
	check_star(128, 512, 39.201652554);
}

static void check_matrix(uint32_t hosts, double want)
{
	struct skep_topology topology;
	topology_init(&topology, hosts, hosts + 1);
	topology_link_profile(&topology)->streams = SKEP_STREAMS_EACH;
	for (uint32_t i = 0; i <= hosts; i++)
		topology.machine[i].place = i;
	for (uint32_t i = 0; i < hosts; i++)
		for (uint32_t j = 0; j < hosts; j++)
			topology.pair[i * (hosts + 1) + j] =
				(struct skep_pair){1.25e8 * (0.1 + 1.8 * u01(31, i * hosts + j)),
					0.001 + 0.099 * u01(32, i * hosts + j), INFINITY};
	double got = slots_makespan(&topology, hosts, 10);
	if (fabs(got - want) > 1e-6 * want)
		fail_msg("X %u: %.9f s, expected %.9f s", hosts, got, want);
	topology_free(&topology);
}

static void workload_x(void **state)
{
	(void)state;
	check_matrix(64, 14.262981491);
	check_matrix(128, 13.031767802);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_flow_takes_latency_and_bytes_over_the_least_capacity),
		cmocka_unit_test(a_finish_time_is_rounded_up),
		cmocka_unit_test(nothing_limits_means_latency_alone),
		cmocka_unit_test(flows_on_one_uplink_share_it_equally),
		cmocka_unit_test(flows_of_rising_size_on_one_downlink),
		cmocka_unit_test(classic_example),
		cmocka_unit_test(pair_capacity_holds_one_pair_only),
		cmocka_unit_test(shared_capacity_holds_all_pairs_of_two_places_one_way),
		cmocka_unit_test(small_transfers_take_no_bandwidth),
		cmocka_unit_test(latency_is_waited_without_bandwidth),
		cmocka_unit_test(workload_f),
		cmocka_unit_test(workload_x),
	};
	return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
