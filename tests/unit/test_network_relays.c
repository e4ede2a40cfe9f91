/* SPDX-License-Identifier: Apache-2.0
 *
 * test_network_relays.c - messages between places that only dial out take two ways, in pieces of 64 KiB or a 64th; every time is
 * worked out by hand from latencies l, rates a (bytes a second) and n pieces: l1 + l2 + B / min(a1, a2) + B / n / max(a1, a2).
 */
#include "tests/unit/flow_drive.h"
#include "tests/unit/observed_network.h"

#define MB UINT64_C(1000000)

/* Machines 0, 1 and 2 at places of their own, of which 0 and 1 only dial out; the directory is machine 3, at place 2 as well.
 * 0 sends and receives 2 MB/s over 50 ms, 1 sends and receives 1 MB/s over 30 ms. */
static void two_homes(struct skep_topology *topology)
{
	topology_init(topology, 3, 3);
	topology->dials_out = calloc(3, sizeof *topology->dials_out);
	assert_non_null(topology->dials_out);
	topology->dials_out[0] = topology->dials_out[1] = true;
	for (uint32_t i = 0; i <= 3; i++)
		topology->machine[i].place = i < 3 ? i : 2;
	for (uint32_t i = 0; i < 2; i++) {
		double Bps = i == 0 ? 2e6 : 1e6, latency_s = i == 0 ? 0.05 : 0.03;
		topology->pair[3 * i + 2] = topology->pair[6 + i] = (struct skep_pair){Bps, latency_s, INFINITY};
	}
	topology->pair[1] = topology->pair[3] = (struct skep_pair){1e-3, 1000, INFINITY}; /* none takes it */
}

static void homes_free(struct skep_topology *topology)
{
	free(topology->dials_out);
	topology_free(topology);
}

/* 1 MB is 16 pieces of 62,500 bytes; 100 MB are 64; 1000 bytes are one, and share with none. */
static void one_message(void **state)
{
	(void)state;
	struct skep_topology topology;
	two_homes(&topology);
	struct transfer there[1] = {{.source = 0, .destination = 1, .bytes = MB}};
	struct transfer back[1] = {{.source = 1, .destination = 0, .bytes = MB}};
	struct transfer large[1] = {{.source = 1, .destination = 0, .bytes = 100 * MB}};
	struct transfer small[1] = {{.source = 1, .destination = 0, .bytes = 1000}};
	drive(&topology, there, 1);
	assert_seconds(there[0].arrival, 0.08 + 1 + 0.03125);
	drive(&topology, back, 1);
	assert_seconds(back[0].arrival, 0.08 + 1 + 0.03125);
	drive(&topology, large, 1);
	assert_true(fabs((double)large[0].arrival * 1e-9 - (0.08 + 100 + 100.0 / 64 / 2)) < 1e-6);
	drive(&topology, small, 1);
	assert_seconds(small[0].arrival, 0.08 + 0.001 + 0.0005);
	homes_free(&topology);
}

/* A ring of two: both send half of 2 MB at once, and again what they have got; the two directions do not disturb each other. */
static void a_ring_of_two(void **state)
{
	(void)state;
	struct skep_topology topology;
	two_homes(&topology);
	const double hop_s = 0.08 + 1 + 0.03125;
	struct transfer t[4] = {{.source = 0, .destination = 1, .bytes = MB},
		{.source = 1, .destination = 0, .bytes = MB},
		{.start = (skep_time)(hop_s * 1e9), .source = 0, .destination = 1, .bytes = MB},
		{.start = (skep_time)(hop_s * 1e9), .source = 1, .destination = 0, .bytes = MB}};
	drive(&topology, t, 4);
	assert_seconds(t[0].arrival, hop_s);
	assert_seconds(t[1].arrival, hop_s);
	assert_true(fabs((double)t[2].arrival * 1e-9 - 2 * hop_s) < 1e-6);
	assert_true(fabs((double)t[3].arrival * 1e-9 - 2 * hop_s) < 1e-6);
	homes_free(&topology);
}

/* Messages of a pair keep their order, small ones too, and the second one has the line when the first one has left it. */
static void messages_follow_each_other(void **state)
{
	(void)state;
	struct skep_topology topology;
	two_homes(&topology);
	struct transfer t[3] = {{.source = 1, .destination = 0, .bytes = MB},
		{.source = 1, .destination = 0, .bytes = MB}, {.source = 1, .destination = 0, .bytes = 1000}};
	drive(&topology, t, 3);
	assert_seconds(t[0].arrival, 0.08 + 1 + 0.03125);
	assert_true(fabs((double)t[1].arrival * 1e-9 - (0.08 + 2 + 0.03125)) < 1e-6);
	assert_int_equal(t[2].rank, 2);
	homes_free(&topology);
}

/* To a place that can be connected to there is one way, and no pieces: 2 has no line of its own. */
static void others_go_straight(void **state)
{
	(void)state;
	struct skep_topology topology;
	two_homes(&topology);
	struct transfer t[2] = {
		{.source = 0, .destination = 2, .bytes = MB}, {.source = 2, .destination = 1, .bytes = MB}};
	drive(&topology, t, 2);
	assert_seconds(t[0].arrival, 0.05 + 0.5);
	assert_seconds(t[1].arrival, 0.03 + 1);
	homes_free(&topology);
}

static void count_ended(void *context, uint64_t tag)
{
	uint32_t *ended = context;
	ended[tag]++;
}

/* At 0.5 s the message is on both ways. Whichever end dies, it is said once that the message will not come, and it does not; one
 * of the other pair does. */
static void a_machine_dies(void **state)
{
	(void)state;
	struct skep_topology topology;
	two_homes(&topology);
	for (uint32_t dead = 0; dead < 2; dead++) {
		struct skep_network *network = skep_network_create(&topology);
		uint32_t ended[2] = {0}, got = 0;
		uint64_t tag[8];
		assert_non_null(network);
		assert_true(skep_network_start(network, 0, 1, 0, MB, 0));
		assert_true(skep_network_start(network, 0, 1 - dead, 2, MB, 1));
		while (skep_network_next(network) < 500000000)
			got += skep_network_advance(network, skep_network_next(network), tag, 8);
		assert_int_equal(got, 0);
		skep_network_close(network, 500000000, dead, count_ended, ended);
		assert_int_equal(ended[0], 1);
		assert_int_equal(ended[1], 0);
		while (skep_network_next(network) != SKEP_TIME_NEVER)
			if (skep_network_advance(network, skep_network_next(network), tag, 8) > 0)
				got += 1 + (tag[0] != 1);
		assert_int_equal(got, 1);
		assert_int_equal(flows_under_way(network), 0);
		skep_network_destroy(network);
	}
	homes_free(&topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_message),
		cmocka_unit_test(a_ring_of_two),
		cmocka_unit_test(messages_follow_each_other),
		cmocka_unit_test(others_go_straight),
		cmocka_unit_test(a_machine_dies),
	};
	return cmocka_run_group_tests_name("network_relays", tests, NULL, NULL);
}
