/* SPDX-License-Identifier: Apache-2.0
 *
 * test_network_link_profiles.c - what links have besides capacity and latency: windows, loss, ways in and out of sites, overhead,
 * jitter. Closed forms, and laws met by many draws.
 */
#include "tests/unit/flow_drive.h"

#include "core/hash.h"
#include "core/random.h"
#include "topologies/churn/deviate.h"
#include "topologies/network/sender.h"
#include "topologies/read/path.h"

#define MS UINT64_C(1000000)
#define DRAWS 200000

/* ---- caps --------------------------------------------------------------------------------------------------------- */

/* Three places with one machine each, 50 ms apart; a window of 25,000 bytes on one link: 250 kB/s. */
static void a_window_leaves_its_share_to_others(void **state)
{
	(void)state;
	static uint16_t of[9] = {0, 1, 0, 1, 0, 0, 0, 0, 0};
	struct skep_topology topology;
	topology_init(&topology, 3, 3);
	struct skep_link_profile link_profile[2] = {{.window_bytes = INFINITY}, {.window_bytes = 25000}};
	for (uint32_t i = 0; i < 3; i++)
		topology.machine[i] = (struct skep_machine){.place = i, .up_Bps = 1e6, .down_Bps = INFINITY};
	for (uint32_t i = 0; i < 9; i++)
		topology.pair[i].latency_s = 0.05;
	struct skep_topology with = topology;
	with.link_profile = link_profile;
	with.link_profiles = 2;
	with.link_profile_of = of;
	struct transfer t[2] = {{.destination = 1, .bytes = 250000}, {.destination = 2, .bytes = 1500000}};
	drive(&with, t, 2);
	assert_seconds(t[0].arrival, 0.05 + 1);
	assert_seconds(t[1].arrival, 0.05 + 1 + 0.75); /* 750 kB/s for a second, then alone */
	assert_true(skep_path_cap_Bps(&with, 0, 1) < 250001 && skep_path_cap_Bps(&with, 0, 1) > 249999);
	assert_true(isinf(skep_path_cap_Bps(&with, 0, 2)));
	topology_free(&topology);
}

/* A cap that is above what the links give does not count; three capped flows leave the rest of a link unused. */
static void capped_flows_share_what_is_below_their_caps(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 4, 1);
	topology_link_profile(&topology)->window_bytes = 20000; /* 200 kB/s */
	topology.pair[0].latency_s = 0.05;
	topology.machine[0].up_Bps = 1e6;
	topology.machine[2].down_Bps = 100e3;
	struct transfer t[3] = {{.destination = 1, .bytes = 200000}, {.destination = 2, .bytes = 200000},
		{.destination = 3, .bytes = 400000}};
	drive(&topology, t, 3);
	assert_seconds(t[0].arrival, 0.05 + 1);
	assert_seconds(t[1].arrival, 0.05 + 2);
	assert_seconds(t[2].arrival, 0.05 + 2);
	topology_free(&topology);
}

/* Mathis et al. 1997: 1460 bytes / 100 ms * sqrt(1.5 / 0.001) = 565,455.6 bytes a second. */
static void loss_limits_a_flow(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 1);
	topology_link_profile(&topology)->loss = 0.001;
	topology.pair[0].latency_s = 0.05;
	topology.machine[0].up_Bps = 1e9;
	struct transfer t[2] = {{.destination = 1, .bytes = 2000}, {.destination = 1, .bytes = 5654556}};
	drive(&topology, t, 2);
	assert_true(fabs((double)t[0].arrival * 1e-9 - 0.05 - 2000 / 565455.6) < 1e-8); /* a small one as well */
	assert_true(fabs((double)t[1].arrival * 1e-9 - 10.05) < 1e-5);
	topology_free(&topology);
}

/* ---- shares in proportion to 1 / latency or 1 / round trip ---------------------------------------------------------- */

/* Places 5 ms apart each way, and 10 ms there and 30 ms back; both flows share from 10 ms on. */
static void near_and_far(struct skep_topology *topology, enum skep_fairness fairness)
{
	topology_init(topology, 3, 3);
	topology->fairness = fairness;
	topology->machine[0].up_Bps = 1e6;
	for (uint32_t i = 0; i < 3; i++)
		topology->machine[i].place = i;
	topology->pair[0 * 3 + 1].latency_s = topology->pair[1 * 3 + 0].latency_s = 0.005;
	topology->pair[0 * 3 + 2].latency_s = 0.010;
	topology->pair[2 * 3 + 0].latency_s = 0.030;
}

static void the_near_flow_gets_more(void **state)
{
	(void)state;
	static const double part[] = {1, 4, 2}; /* times what the far one gets */
	struct skep_topology topology;
	for (int f = SKEP_FAIRNESS_EQUAL; f <= SKEP_FAIRNESS_LATENCY; f++) {
		near_and_far(&topology, (enum skep_fairness)f);
		struct transfer t[2] = {{.start = 0, .destination = 2, .bytes = 1000000},
			{.start = 5 * MS, .destination = 1, .bytes = (uint64_t)(1e6 * part[f])}};
		drive(&topology, t, 2);
		assert_seconds(t[0].arrival, 0.01 + 1 + part[f]);
		assert_seconds(t[1].arrival, 0.01 + 1 + part[f]);
		topology_free(&topology);
	}
}

/* What the near one's window leaves goes to the far one; who is alone has all, however far. */
static void weights_share_what_caps_and_ends_leave(void **state)
{
	(void)state;
	static uint16_t of[9] = {0, 1};
	struct skep_link_profile link_profile[2] = {
		{.window_bytes = INFINITY}, {.window_bytes = 4000}}; /* 400 kB/s at 10 ms */
	struct skep_topology topology;
	near_and_far(&topology, SKEP_FAIRNESS_RTT);
	struct skep_topology with = topology;
	with.link_profile = link_profile;
	with.link_profiles = 2;
	with.link_profile_of = of;
	struct transfer t[2] = {
		{.start = 0, .destination = 2, .bytes = 1600000}, {.start = 5 * MS, .destination = 1, .bytes = 400000}};
	drive(&with, t, 2);
	assert_seconds(t[1].arrival, 0.01 + 1);
	assert_seconds(t[0].arrival, 0.01 + 1 + 1); /* 600 kB/s for a second, then alone */
	topology_free(&topology);
}

static void what_is_near_counts_as_a_microsecond(void **state)
{
	(void)state;
	struct skep_topology topology;
	near_and_far(&topology, SKEP_FAIRNESS_RTT);
	topology.pair[1].latency_s = topology.pair[3].latency_s = 0;
	assert_true(fabs(skep_path_weight(&topology, 0, 1) - 5e5) < 1e-3);
	topology.fairness = SKEP_FAIRNESS_LATENCY;
	assert_true(fabs(skep_path_weight(&topology, 0, 1) - 1e6) < 1e-3);
	assert_true(fabs(skep_path_weight(&topology, 0, 2) - 100) < 1e-9);
	topology.fairness = SKEP_FAIRNESS_EQUAL;
	assert_true(skep_path_weight(&topology, 0, 1) <= 1 && skep_path_weight(&topology, 0, 1) >= 1);
	topology_free(&topology);
}

static void without_a_round_trip_there_is_no_window(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 1);
	topology_link_profile(&topology)->window_bytes = 1;
	topology.link_profile->loss = 0.5;
	topology.machine[0].up_Bps = 1e6;
	struct transfer t = {.destination = 1, .bytes = 1000000};
	drive(&topology, &t, 1);
	assert_seconds(t.arrival, 1);
	topology_free(&topology);
}

/* Nothing but the window holds the flow: it crosses no link at all. */
static void a_cap_needs_no_link(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 1);
	topology_link_profile(&topology)->window_bytes = 1e5;
	topology.pair[0].latency_s = 0.05;
	struct transfer t[2] = {{.destination = 1, .bytes = 1000000}, {.destination = 1, .bytes = 2000000}};
	drive(&topology, t, 2);
	assert_seconds(t[0].arrival, 1.05);
	assert_seconds(t[1].arrival, 3.05); /* one connection, one window */
	topology.link_profile->streams = SKEP_STREAMS_EACH;
	drive(&topology, t, 2);
	assert_seconds(t[0].arrival, 1.05);
	assert_seconds(t[1].arrival, 2.05);
	struct skep_network *network = skep_network_create(&topology);
	uint64_t left, tag;
	assert_true(skep_network_start(network, 0, 0, 1, 1000000, 7));
	assert_int_equal(skep_network_advance(network, 50 * MS, &tag, 1), 0);
	assert_int_equal(skep_network_stop(network, 550 * MS, 7, &left), 1);
	assert_true(left >= 499999 && left <= 500001);
	skep_network_destroy(network);
	topology_free(&topology);
}

/* Neither overhead nor jitter, but the cap. */
static void a_steady_flow_waits_the_mean(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 2, 1);
	*topology_link_profile(&topology) = (struct skep_link_profile){
		.window_bytes = 1e5, .overhead_s = 1, .jitter = {.kind = SKEP_JITTER_NORMAL, .deviation = 10}};
	topology.pair[0].latency_s = 0.05;
	struct skep_network *network = skep_network_create(&topology);
	for (uint32_t i = 0; i < 16; i++)
		assert_true(skep_network_start_steady(network, 0, 0, 1, 100000, i));
	uint64_t tag[16];
	assert_int_equal(skep_network_next(network), 50 * MS);
	assert_int_equal(skep_network_advance(network, 50 * MS, tag, 16), 0);
	assert_seconds(skep_network_next(network), 0.05 + 0.1);
	skep_network_destroy(network);
	topology_free(&topology);
}

/* ---- sites -------------------------------------------------------------------------------------------------------- */

/* Machines 0, 1, 2 at the first site, whose uplink is 3 MB/s; 3 at the second; 4 at the third, whose downlink is 0.5 MB/s. */
static void a_site_has_ways_out_and_in(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 5, 3);
	topology.machine[3].place = 1;
	topology.machine[4].place = 2;
	topology_gates(&topology);
	topology.site_link[0].up_Bps = 3e6;
	topology.site_link[2].down_Bps = 5e5;
	topology.machine[2].up_Bps = 4e6;
	struct transfer t[5] = {
		{.source = 0, .destination = 3, .bytes = 1250000}, /* 1.25 */
		{.source = 1, .destination = 3, .bytes = 1250000}, /* 1.25 */
		{.source = 2, .destination = 4, .bytes = 1000000}, /* 0.5 */
		{.source = 2,
			.destination = 1,
			.bytes = 3500000}, /* inside the site: what is left of the machine's, 3.5 */
		{.source = 3, .destination = 0, .bytes = 1000000}, /* into the site: not limited */
	};
	drive(&topology, t, 5);
	assert_seconds(t[0].arrival, 1);
	assert_seconds(t[1].arrival, 1);
	assert_seconds(t[2].arrival, 2);
	assert_seconds(t[3].arrival, 1);
	assert_seconds(t[4].arrival, 0);
	t[0] = (struct transfer){.source = 2, .destination = 4, .bytes = 2000};
	drive(&topology, t, 1);
	assert_seconds(t[0].arrival, 2000 / 5e5); /* a small one takes the least of all */
	topology_free(&topology);
}

/* ---- overhead ------------------------------------------------------------------------------------------------------ */

/* Of the sender, one message after the other, whichever machine it is for. */
static void messages_take_their_senders_time(void **state)
{
	(void)state;
	struct skep_topology topology;
	topology_init(&topology, 3, 1);
	topology_link_profile(&topology)->overhead_s = 20e-6;
	topology.pair[0].latency_s = 0.001;
	topology.machine[0].up_Bps = 1e6;
	struct transfer t[5] = {
		{.destination = 1, .bytes = 0}, {.destination = 2, .bytes = 1000000}, {.destination = 1, .bytes = 0},
		{.source = 1, .destination = 2, .bytes = 0},
		{.start = 50000, .destination = 1, .bytes = 0}, /* the third is still with the sender */
	};
	drive(&topology, t, 5);
	assert_int_equal(t[0].arrival, 1020000);
	assert_seconds(t[1].arrival, 1.00104);
	assert_int_equal(t[2].arrival, 1060000);
	assert_int_equal(t[3].arrival, 1020000);
	assert_int_equal(t[4].arrival, 1080000);
	topology_free(&topology);
}

/* ---- jitter --------------------------------------------------------------------------------------------------------- */

static double analytic_truncated_mean(double mean, double deviation)
{
	double z = mean / deviation;
	return mean * 0.5 * erfc(-z / sqrt(2)) + deviation * exp(-z * z / 2) / sqrt(2 * acos(-1));
}

struct moments {
	double mean, deviation, least, most;
};

static struct moments draw_many(
	const struct skep_topology *topology, const struct skep_jitter *jitter, double latency_s)
{
	struct moments m = {.least = INFINITY};
	double squares = 0;
	uint64_t random = 1;
	for (uint32_t i = 0; i < DRAWS; i++) {
		double s = skep_jitter_draw_s(topology, jitter, latency_s, &random);
		m.mean += s / DRAWS;
		squares += s * s / DRAWS;
		m.least = fmin(m.least, s);
		m.most = fmax(m.most, s);
	}
	m.deviation = sqrt(squares - m.mean * m.mean);
	return m;
}

static void near_to(double got, double want, double relative)
{
	if (fabs(got - want) > relative * want)
		fail_msg("%.6g, expected %.6g", got, want);
}

static void laws_have_their_means(void **state)
{
	(void)state;
	static double delay[] = {0, 0.005, 0.080, -0.2};
	const struct skep_topology topology = {.delay_s = delay, .delays = 4};
	struct skep_jitter jitter = {.kind = SKEP_JITTER_NORMAL, .deviation = 0.02};
	struct moments m = draw_many(&topology, &jitter, 0.1);
	near_to(m.mean, 0.1, 0.005);
	near_to(m.deviation, 0.02, 0.02);
	jitter.deviation = 0.3; /* more than the mean: cut off at 0, and so longer on average */
	m = draw_many(&topology, &jitter, 0.1);
	near_to(m.mean, analytic_truncated_mean(0.1, 0.3), 0.01);
	assert_true(m.least >= 0 && m.least <= 0);
	jitter = (struct skep_jitter){.kind = SKEP_JITTER_LOGNORMAL, .relative = true, .deviation = 0.5};
	m = draw_many(&topology, &jitter, 0.1);
	near_to(m.mean, 0.1, 0.01);
	near_to(m.deviation, 0.05, 0.04);
	assert_true(m.least > 0);
	m = draw_many(&topology, &jitter, 0);
	assert_true(m.most <= 0);
	jitter = (struct skep_jitter){.kind = SKEP_JITTER_EMPIRICAL, .count = 3};
	m = draw_many(&topology, &jitter, 0.1);
	near_to(m.mean, 0.1 + 0.085 / 3, 0.005);
	near_to(m.most, 0.18, 1e-9);
	near_to(m.least, 0.1, 1e-9);
	jitter.count = 4; /* a delay that would arrive before it was sent arrives at once */
	m = draw_many(&topology, &jitter, 0.1);
	near_to(m.mean, (0.1 + 0.105 + 0.18 + 0) / 4, 0.01);
	assert_true(m.least >= 0 && m.least <= 0);
}

static void init_jittery(struct skep_topology *topology)
{
	topology_init(topology, 4, 1);
	topology_link_profile(topology)->jitter = (struct skep_jitter){.kind = SKEP_JITTER_NORMAL, .deviation = 0.05};
	topology->pair[0].latency_s = 0.1;
	for (uint32_t i = 0; i < 4; i++)
		topology->machine[i].up_Bps = 1e7;
}

enum { MESSAGES = 2000 };

/* Small and large ones, among four machines. */
static void send_many(const struct skep_topology *topology, struct transfer *t)
{
	for (uint32_t i = 0; i < MESSAGES; i++)
		t[i] = (struct transfer){.start = i * MS,
			.source = i % 4,
			.destination = (i + 1 + i / 4 % 3) % 4,
			.bytes = i % 2 ? 0 : 3000 + i};
	drive(topology, t, MESSAGES);
}

/* Of two messages of one pair that take no time to move. */
static uint32_t overtakings(const struct transfer *t)
{
	uint32_t count = 0;
	for (uint32_t i = 1; i < MESSAGES; i += 2)
		for (uint32_t j = i + 2; j < MESSAGES && j < i + 200; j += 2)
			count += t[i].source == t[j].source && t[i].destination == t[j].destination &&
			         t[j].arrival < t[i].arrival;
	return count;
}

static void messages_of_a_pair_keep_their_order_unless_let_go(void **state)
{
	(void)state;
	struct skep_topology topology;
	static struct transfer kept[MESSAGES], released[MESSAGES], again[MESSAGES], other[MESSAGES];
	init_jittery(&topology);
	send_many(&topology, kept);
	assert_int_equal(overtakings(kept), 0);
	send_many(&topology, again);
	assert_memory_equal(kept, again, sizeof kept);
	topology.link_profile->overtake = true;
	send_many(&topology, released);
	assert_true(overtakings(released) > MESSAGES);
	uint32_t later = 0;
	for (uint32_t i = 1; i < MESSAGES; i += 2) { /* the same draws, but a message may be held up by one before it */
		assert_true(kept[i].arrival >= released[i].arrival);
		later += kept[i].arrival > released[i].arrival;
	}
	assert_true(later > MESSAGES / 10 && later < MESSAGES / 2);
	topology.seed = 2;
	send_many(&topology, other);
	assert_memory_not_equal(released, other, sizeof other);
	topology_free(&topology);
}

/* The draw of a message depends on its sender and how many that one has sent, not on what others do meanwhile. */
static void draws_are_the_senders_own(void **state)
{
	(void)state;
	struct skep_topology topology;
	struct transfer t[3] = {{.destination = 1}, {.source = 2, .destination = 3}, {.source = 3, .destination = 2}};
	init_jittery(&topology);
	drive(&topology, t, 3);
	struct transfer alone = {.source = 3, .destination = 2, .start = 0};
	drive(&topology, &alone, 1);
	assert_true(alone.arrival == t[2].arrival && t[1].arrival != t[2].arrival && t[0].arrival != t[1].arrival);
	topology_free(&topology);
}

/* The memory goes with those under way, not with all pairs there ever were. */
static void order_forgets_what_is_over(void **state)
{
	(void)state;
	struct skep_order order = {0};
	for (uint64_t i = 0; i < 100000; i++) {
		skep_time time = i + 10;
		assert_true(skep_order_keep(&order, i, 1 + i % 50000, &time));
		assert_int_equal(time, i + 10);
	}
	assert_true(order.size <= 128);
	skep_time sooner = 99990; /* behind the one that was kept last */
	assert_true(skep_order_keep(&order, 99999, 1 + 99999 % 50000, &sooner));
	assert_int_equal(sooner, 99999 + 10);
	for (uint64_t pair = 1; pair <= 2000; pair++) { /* the second time each comes back, over all growing between */
		skep_time time = pair <= 1000 ? 100001 : 100000;
		assert_true(skep_order_keep(&order, 100000, 1000000 + (pair - 1) % 1000, &time));
		assert_int_equal(time, 100001);
	}
	skep_order_finish(&order);
}

/* ---- arithmetic that is the same everywhere --------------------------------------------------------------------------- */

static void logarithms_and_powers_are_right(void **state)
{
	(void)state;
	uint64_t random = 1;
	for (uint32_t i = 0; i < DRAWS; i++) {
		double x = ((double)(skep_random_next(&random) >> 11) * 0x1p-53 - 0.5) * 200;
		assert_true(fabs(skep_deviate_exp(x) / exp(x) - 1) < 1e-13);
		x = exp(x);
		assert_true(fabs(skep_deviate_log(x) - log(x)) < 1e-14 * fmax(1, fabs(log(x))));
	}
}

/* To the last bit: a compiler or library that gives another number gives another run. */
static void draws_are_pinned(void **state)
{
	(void)state;
	static double delay[] = {0.001, 0.002, 0.03};
	const struct skep_topology topology = {.delay_s = delay, .delays = 3};
	uint64_t hash = SKEP_HASH_EMPTY, random = 1;
	for (uint32_t i = 0; i < DRAWS; i++) {
		struct skep_jitter jitter = {.kind = SKEP_JITTER_NORMAL + i % 3, .deviation = 0.07, .count = 3};
		double s = skep_jitter_draw_s(&topology, &jitter, 0.1 + 0.001 * i, &random);
		hash = skep_hash_bytes(hash, &s, sizeof s);
	}
	if (hash != UINT64_C(0x26643b458a815baa))
		fail_msg("the draws have the hash %#lx", (unsigned long)hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_leaves_its_share_to_others),
		cmocka_unit_test(capped_flows_share_what_is_below_their_caps),
		cmocka_unit_test(loss_limits_a_flow),
		cmocka_unit_test(without_a_round_trip_there_is_no_window),
		cmocka_unit_test(the_near_flow_gets_more),
		cmocka_unit_test(weights_share_what_caps_and_ends_leave),
		cmocka_unit_test(what_is_near_counts_as_a_microsecond),
		cmocka_unit_test(a_cap_needs_no_link),
		cmocka_unit_test(a_steady_flow_waits_the_mean),
		cmocka_unit_test(a_site_has_ways_out_and_in),
		cmocka_unit_test(messages_take_their_senders_time),
		cmocka_unit_test(laws_have_their_means),
		cmocka_unit_test(messages_of_a_pair_keep_their_order_unless_let_go),
		cmocka_unit_test(draws_are_the_senders_own),
		cmocka_unit_test(order_forgets_what_is_over),
		cmocka_unit_test(logarithms_and_powers_are_right),
		cmocka_unit_test(draws_are_pinned),
	};
	return cmocka_run_group_tests_name("network_traits", tests, NULL, NULL);
}
