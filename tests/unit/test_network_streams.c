/* SPDX-License-Identifier: Apache-2.0
 *
 * test_network_streams.c - messages of an ordered pair of machines take turns on its connections, which share links with
 * those of other pairs; and what a connection has: a window, an order, its own place in the way of control messages.
 */
#include "tests/unit/flow_drive.h"
#include "tests/unit/observed_network.h"

#define MS UINT64_C(1000000)
#define MB UINT64_C(1000000)

/* So many machines in one place; each sends 1 MB/s. */
static void line_of_machines(struct skep_topology *topology, uint32_t machines, uint32_t streams)
{
	topology_init(topology, machines, 1);
	topology_link_profile(topology)->streams = streams;
	topology->pair[0].latency_s = 0.05;
	for (uint32_t i = 0; i < machines; i++)
		topology->machine[i].up_Bps = 1e6;
}

static void messages_of_a_pair_follow_each_other(void **state)
{
	(void)state;
	struct skep_topology topology;
	struct transfer t[8];
	line_of_machines(&topology, 2, 1);
	for (uint32_t i = 0; i < 8; i++)
		t[i] = (struct transfer){.start = i * 10 * MS, .destination = 1, .bytes = MB};
	drive(&topology, t, 8);
	for (uint32_t i = 0; i < 8; i++) {
		assert_seconds(t[i].arrival, 0.05 + 1 + i);
		assert_int_equal(t[i].rank, i);
	}
	topology_free(&topology);
}

/* A connection that has been idle begins with the next message's own latency. */
static void an_idle_connection_goes_on_at_once(void **state)
{
	(void)state;
	struct skep_topology topology;
	line_of_machines(&topology, 2, 1);
	struct transfer t[3] = {{.destination = 1, .bytes = MB}, {.start = 1050 * MS, .destination = 1, .bytes = MB},
		{.start = 9000 * MS, .destination = 1, .bytes = MB}};
	drive(&topology, t, 3);
	assert_seconds(t[0].arrival, 1.05);
	assert_seconds(t[1].arrival, 2.1);
	assert_seconds(t[2].arrival, 10.05);
	topology_free(&topology);
}

/* However many messages a pair has: 0 -> 1 has half of the uplink, 0 -> 2 the other one. */
static void pairs_share_and_each_is_in_order(void **state)
{
	(void)state;
	struct skep_topology topology;
	line_of_machines(&topology, 3, 1);
	struct transfer t[6] = {
		{.destination = 1, .bytes = MB},
		{.destination = 1, .bytes = MB},
		{.destination = 1, .bytes = MB},
		{.destination = 1, .bytes = MB},
		{.destination = 2, .bytes = MB / 2},
		{.destination = 2, .bytes = MB},
	};
	drive(&topology, t, 6);
	assert_seconds(t[4].arrival, 0.05 + 1);
	assert_seconds(t[0].arrival, 0.05 + 2);
	assert_seconds(t[5].arrival, 0.05 + 3); /* the other pair has the uplink to itself from here on */
	assert_seconds(t[1].arrival, 0.05 + 3.5);
	assert_seconds(t[2].arrival, 0.05 + 4.5);
	assert_seconds(t[3].arrival, 0.05 + 5.5);
	topology_free(&topology);
}

static void directions_are_independent(void **state)
{
	(void)state;
	struct skep_topology topology;
	line_of_machines(&topology, 2, 1);
	struct transfer t[4] = {{.destination = 1, .bytes = MB}, {.source = 1, .bytes = MB},
		{.destination = 1, .bytes = MB}, {.source = 1, .bytes = MB}};
	drive(&topology, t, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_seconds(t[i].arrival, 0.05 + (i < 2 ? 1 : 2));
	topology_free(&topology);
}

/* The third of two streams goes to the one that is free first. */
static void two_streams_move_two_messages(void **state)
{
	(void)state;
	struct skep_topology topology;
	line_of_machines(&topology, 2, 2);
	struct transfer t[4] = {{.destination = 1, .bytes = 2 * MB}, {.destination = 1, .bytes = MB},
		{.destination = 1, .bytes = MB}, {.destination = 1, .bytes = MB}};
	drive(&topology, t, 4);
	assert_seconds(t[1].arrival, 0.05 + 2); /* half each */
	assert_seconds(t[0].arrival, 0.05 + 4); /* 1 MB of it is left at 2 s, beside t[2] */
	assert_seconds(t[2].arrival, 0.05 + 4);
	assert_seconds(t[3].arrival, 0.05 + 5);
	topology_free(&topology);
}

static void each_message_may_have_its_own(void **state)
{
	(void)state;
	struct skep_topology topology;
	struct transfer t[4];
	line_of_machines(&topology, 2, SKEP_STREAMS_EACH);
	for (uint32_t i = 0; i < 4; i++)
		t[i] = (struct transfer){.destination = 1, .bytes = MB};
	drive(&topology, t, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_seconds(t[i].arrival, 0.05 + 4);
	topology_free(&topology);
}

/* 20 kB in 100 ms: 200 kB/s of a line of 1 MB/s, as often as there are connections. */
static void a_window_is_of_a_connection(void **state)
{
	(void)state;
	static const uint32_t streams[] = {1, 2, SKEP_STREAMS_EACH};
	static const double last_s[] = {0.05 + 20, 0.05 + 10, 0.05 + 5};
	struct skep_topology topology;
	line_of_machines(&topology, 2, 1);
	topology.link_profile->window_bytes = 20000;
	for (uint32_t k = 0; k < 3; k++) {
		struct transfer t[4];
		topology.link_profile->streams = streams[k];
		for (uint32_t i = 0; i < 4; i++)
			t[i] = (struct transfer){.destination = 1, .bytes = MB};
		drive(&topology, t, 4);
		assert_seconds(t[0].arrival, 0.05 + 5);
		assert_seconds(t[3].arrival, last_s[k]);
	}
	topology_free(&topology);
}

/* Of 1000 bytes; between two tensors, behind them, before them, and on the way of another pair. */
static void control_waits_for_its_turn(void **state)
{
	(void)state;
	struct skep_topology topology;
	line_of_machines(&topology, 3, 1);
	struct transfer t[6] = {
		{.destination = 1, .bytes = 1000},
		{.destination = 1, .bytes = MB},
		{.destination = 1, .bytes = 1000},
		{.destination = 2, .bytes = 1000},
		{.destination = 1, .bytes = MB},
		{.destination = 1, .bytes = 1000},
	};
	drive(&topology, t, 6);
	assert_seconds(t[0].arrival, 0.05 + 0.001);
	assert_seconds(t[1].arrival, 0.05 + 1);
	assert_seconds(t[2].arrival, 0.05 + 1 + 0.001);
	assert_seconds(t[3].arrival, 0.05 + 0.001);
	assert_seconds(t[4].arrival, 0.05 + 2); /* control takes no bandwidth */
	assert_seconds(t[5].arrival, 0.05 + 2 + 0.001);
	topology.link_profile->streams = 2; /* t[2] finds the second one free; t[5] waits for one of the two tensors */
	drive(&topology, t, 6);
	assert_seconds(t[2].arrival, 0.05 + 0.001);
	assert_seconds(t[1].arrival, 0.05 + 2);
	assert_seconds(t[5].arrival, 0.05 + 2 + 0.001);
	topology.link_profile->streams = 1;
	topology.link_profile->overtake = true;
	drive(&topology, t, 6);
	assert_seconds(t[2].arrival, 0.05 + 0.001);
	assert_seconds(t[4].arrival, 0.05 + 2);
	assert_seconds(t[5].arrival, 0.05 + 0.001);
	topology_free(&topology);
}

/* ---- what is stopped ------------------------------------------------------------------------------------------------ */

static skep_time arrival_of(struct skep_network *network, uint64_t tag)
{
	for (;;) {
		uint64_t got;
		skep_time next = skep_network_next(network);
		assert_true(next != SKEP_TIME_NEVER);
		if (skep_network_advance(network, next, &got, 1) == 1) {
			assert_int_equal(got, tag);
			return next;
		}
	}
}

/* Of the queue 1 2 3 4 5, with control behind 3, first what waits is stopped, then what moves. */
static void a_stopped_message_leaves_its_turn_to_the_next(void **state)
{
	(void)state;
	struct skep_topology topology;
	uint64_t left;
	line_of_machines(&topology, 2, 1);
	struct skep_network *network = skep_network_create(&topology);
	for (uint64_t tag = 1; tag <= 5; tag++) {
		assert_true(skep_network_start(network, 0, 0, 1, MB, tag));
		if (tag == 3)
			assert_true(skep_network_start(network, 0, 0, 1, 1000, 33));
	}
	assert_seconds(arrival_of(network, 1), 1.05);
	assert_int_equal(skep_network_stop(network, 1050 * MS, 3, &left), 1);
	assert_int_equal(left, MB);
	assert_int_equal(skep_network_stop(network, 1050 * MS, 33, &left), 1);
	assert_int_equal(left, 0);
	assert_int_equal(skep_network_stop(network, 1550 * MS, 2, &left), 1);
	assert_true(left >= MB / 2 - 1 && left <= MB / 2 + 1);
	assert_int_equal(flows_under_way(network), 2);
	assert_seconds(arrival_of(network, 4), 2.55);
	assert_seconds(arrival_of(network, 5), 3.55);
	assert_int_equal(flows_under_way(network), 0);
	skep_network_destroy(network);
	topology_free(&topology);
}

/* What shares the uplink is stopped at the instant at which a message arrives: the next one has the rate of now. */
static void the_next_message_has_the_rate_of_now(void **state)
{
	(void)state;
	struct skep_topology topology;
	uint64_t left;
	line_of_machines(&topology, 3, 1);
	struct skep_network *network = skep_network_create(&topology);
	assert_true(skep_network_start(network, 0, 0, 1, MB, 1));
	assert_true(skep_network_start(network, 0, 0, 1, MB, 2));
	assert_true(skep_network_start(network, 0, 0, 2, 9 * MB, 3));
	assert_int_equal(skep_network_advance(network, 50 * MS, &left, 1), 0);
	assert_true(skep_network_next(network) == 2050 * MS);
	assert_int_equal(skep_network_stop(network, 2050 * MS, 3, &left), 1);
	assert_true(skep_network_next(network) == 2050 * MS);
	assert_seconds(arrival_of(network, 1), 2.05);
	assert_seconds(arrival_of(network, 2), 3.05);
	skep_network_destroy(network);
	topology_free(&topology);
}

/* A machine dies with ten messages under way to each of 40 others: all of them go, at whatever stage they are, and what
 * others send arrives as if those had never been. */
static void a_machine_dies_with_a_queue_of_messages(void **state)
{
	(void)state;
	enum { OTHERS = 40, EACH = 10, DEAD = 7, ALIVE = 8 };
	struct skep_topology topology;
	uint64_t left, all = 0;
	line_of_machines(&topology, 2 + OTHERS, 1);
	struct skep_network *network = skep_network_create(&topology);
	for (uint32_t i = 0; i < OTHERS * EACH; i++)
		assert_true(skep_network_start(network, 0, 0, 2 + i % OTHERS, MB, DEAD));
	assert_true(skep_network_start(network, 0, 1, 2, MB, ALIVE));
	assert_int_equal(skep_network_advance(network, 50 * MS, &left, 1), 0);
	for (uint32_t i = 0; i < OTHERS; i++) /* these still wait for their latency */
		assert_true(skep_network_start(network, 50 * MS, 0, 2 + i, MB, DEAD));
	assert_int_equal(skep_network_stop(network, 90 * MS, DEAD, &all), OTHERS * (EACH + 1));
	assert_true(all > (OTHERS * (EACH + 1) - 1) * MB && all < OTHERS * (EACH + 1) * MB);
	assert_int_equal(flows_under_way(network), 1);
	assert_seconds(arrival_of(network, ALIVE), 1.05);
	assert_true(skep_network_start(network, 2000 * MS, 0, 2, MB, ALIVE)); /* another one in its place */
	assert_seconds(arrival_of(network, ALIVE), 3.05);
	assert_int_equal(skep_network_stop(network, 4000 * MS, DEAD, &left), 0);
	skep_network_destroy(network);
	topology_free(&topology);
}

static void count_tag(void *context, uint64_t tag)
{
	((uint32_t *)context)[tag]++;
}

/* Tensors from it and to it are lost, at whatever stage they are; control still arrives, and so does what goes elsewhere. */
static void connections_end_with_their_machine(void **state)
{
	(void)state;
	struct skep_topology topology;
	uint32_t ended[10] = {0};
	line_of_machines(&topology, 3, 1);
	struct skep_network *network = skep_network_create(&topology);
	assert_true(skep_network_start(network, 0, 0, 1, MB, 1)); /* moves */
	assert_true(skep_network_start(network, 0, 0, 1, 1000, 2));
	assert_true(skep_network_start(network, 0, 0, 1, MB, 3)); /* waits for its turn */
	assert_true(skep_network_start(network, 0, 2, 0, MB, 4)); /* to it */
	assert_true(skep_network_start(network, 0, 2, 1, MB, 5)); /* shares 2's uplink with 4, which leaves it */
	assert_true(skep_network_start_steady(network, 0, 0, 1, MB, 6));
	assert_int_equal(skep_network_advance(network, 50 * MS, (uint64_t[1]){0}, 1), 0);
	assert_true(skep_network_start(network, 80 * MS, 0, 2, MB, 7)); /* waits for its latency */
	skep_network_close(network, 100 * MS, 0, count_tag, ended);
	assert_true(ended[1] == 1 && ended[3] == 1 && ended[4] == 1 && ended[7] == 1);
	assert_true(ended[2] == 0 && ended[5] == 0 && ended[6] == 0);
	assert_seconds(arrival_of(network, 2), 0.1 + 0.001);
	assert_true(skep_network_start(network, 150 * MS, 0, 2, MB, 8)); /* the next process: no queue before it */
	assert_seconds(arrival_of(network, 5), 0.05 + 1 + 0.025);        /* half of the uplink for 50 ms */
	/* 25 kB by 100 ms, 100 kB alone to 200 ms, then half. */
	assert_seconds(arrival_of(network, 6), 0.2 + 2 * (1 - 0.125));
	assert_seconds(arrival_of(network, 8), 0.2 + 2 * 0.875 + 0.125);
	assert_int_equal(flows_under_way(network), 0);
	skep_network_destroy(network);
	topology_free(&topology);
}

/* What stands for many messages is beside the turns of its pair, and has a share of its own. */
static void a_steady_flow_waits_for_no_turn(void **state)
{
	(void)state;
	struct skep_topology topology;
	line_of_machines(&topology, 2, 1);
	struct skep_network *network = skep_network_create(&topology);
	assert_true(skep_network_start_steady(network, 0, 0, 1, 4 * MB, 1));
	assert_true(skep_network_start(network, 0, 0, 1, MB, 2));
	assert_true(skep_network_start(network, 0, 0, 1, MB, 3));
	assert_seconds(arrival_of(network, 2), 2.05);
	assert_seconds(arrival_of(network, 3), 4.05);
	assert_seconds(arrival_of(network, 1), 6.05);
	skep_network_destroy(network);
	topology_free(&topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_a_pair_follow_each_other),
		cmocka_unit_test(an_idle_connection_goes_on_at_once),
		cmocka_unit_test(pairs_share_and_each_is_in_order),
		cmocka_unit_test(directions_are_independent),
		cmocka_unit_test(two_streams_move_two_messages),
		cmocka_unit_test(each_message_may_have_its_own),
		cmocka_unit_test(a_window_is_of_a_connection),
		cmocka_unit_test(control_waits_for_its_turn),
		cmocka_unit_test(a_stopped_message_leaves_its_turn_to_the_next),
		cmocka_unit_test(the_next_message_has_the_rate_of_now),
		cmocka_unit_test(a_machine_dies_with_a_queue_of_messages),
		cmocka_unit_test(connections_end_with_their_machine),
		cmocka_unit_test(a_steady_flow_waits_for_no_turn),
	};
	return cmocka_run_group_tests_name("network_streams", tests, NULL, NULL);
}
