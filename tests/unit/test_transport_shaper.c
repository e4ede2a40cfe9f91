/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transport_shaper.c - the shaper says what the network model says, whatever the order in which it hears of messages.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exec/loop/shaper.h"
#include "tests/unit/observed_network.h"

#define MS UINT64_C(1000000)
#define MACHINES 4u

/* Four machines and the directory at one place: 1 MB/s up and down, 10 ms. */
static struct skep_machine machine[MACHINES + 1];
static struct skep_pair pair = {.capacity_Bps = INFINITY, .latency_s = 0.010, .shared_Bps = INFINITY};
static const struct skep_topology topology = {.machines = MACHINES, .places = 1, .machine = machine, .pair = &pair};

static int setup(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= MACHINES; i++)
		machine[i] = (struct skep_machine){.up_Bps = 1e6, .down_Bps = 1e6};
	return 0;
}

static void start(struct skep_shaper *shaper, uint32_t source, uint32_t destination, uint64_t number, uint64_t bytes,
	skep_time sent)
{
	const struct skep_shaper_flow flow = {.source = source, .destination = destination, .number = number};
	assert_true(skep_shaper_start(shaper, &flow, bytes, sent));
}

/* Latency, then 100,000 bytes at 1 MB/s. */
static void a_message_arrives_when_the_model_says(void **state)
{
	(void)state;
	struct skep_shaper *shaper = skep_shaper_create(&topology);
	struct skep_shaper_flow got;
	assert_true(skep_shaper_next(shaper) == SKEP_TIME_NEVER);
	assert_false(skep_shaper_arrived(shaper, 5 * MS, &got));
	start(shaper, 0, 1, 42, 100000, 7 * MS);
	assert_false(skep_shaper_arrived(shaper, 7 * MS, &got));
	assert_true(skep_shaper_next(shaper) <= 117 * MS);
	assert_false(skep_shaper_arrived(shaper, 117 * MS - 1, &got));
	assert_true(skep_shaper_arrived(shaper, 117 * MS, &got));
	assert_true(got.source == 0 && got.destination == 1 && got.number == 42);
	assert_false(skep_shaper_arrived(shaper, 10000 * MS, &got));
	assert_true(skep_shaper_next(shaper) == SKEP_TIME_NEVER);
	skep_shaper_destroy(shaper);
	skep_shaper_destroy(NULL);
}

/* A shaped run plays the turns of the simulator: tensors of a pair in order, control behind them, other pairs beside them. */
static void messages_of_a_pair_take_turns(void **state)
{
	(void)state;
	static const struct {
		uint64_t number, at_ms;
	} want[] = {{1, 113}, {2, 213}, {3, 214}, {5, 215}, {4, 313}};
	struct skep_shaper *shaper = skep_shaper_create(&topology);
	struct skep_shaper_flow got;
	start(shaper, 2, 3, 5, 202000, 3 * MS); /* the model's clock is there when it hears of the rest */
	start(shaper, 0, 1, 1, 100000, 1 * MS);
	start(shaper, 0, 1, 2, 100000, 1 * MS);
	start(shaper, 0, 1, 3, 1000, 2 * MS); /* takes 1 ms when its turn has come, beside the next one */
	start(shaper, 0, 1, 4, 100000, 2 * MS);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		assert_false(skep_shaper_arrived(shaper, want[i].at_ms * MS - 1000, &got));
		assert_true(skep_shaper_arrived(shaper, want[i].at_ms * MS + 1000, &got));
		assert_int_equal(got.number, want[i].number);
	}
	skep_shaper_destroy(shaper);
}

/* Two to one receiver share its link; one that rank 0 heard of late still starts at its sender's stamp. */
static void late_news_of_a_message_does_not_delay_it(void **state)
{
	(void)state;
	struct skep_shaper *shaper = skep_shaper_create(&topology);
	struct skep_shaper_flow got;
	start(shaper, 0, 2, 1, 100000, 10 * MS);
	assert_false(
		skep_shaper_arrived(shaper, 15 * MS, &got)); /* the loop looks, nothing has happened in the model */
	start(shaper, 1, 2, 1, 100000, 11 * MS);
	/* The first moves 1,000 bytes alone from 20 to 21 ms, then 99,000 at half the rate; the second its last 1,000 alone. */
	assert_false(skep_shaper_arrived(shaper, 219 * MS - 1000, &got));
	assert_true(skep_shaper_arrived(shaper, 219 * MS + 1000, &got));
	assert_int_equal(got.source, 0);
	assert_false(skep_shaper_arrived(shaper, 220 * MS - 1000, &got));
	assert_true(skep_shaper_arrived(shaper, 220 * MS + 1000, &got));
	assert_int_equal(got.source, 1);
	skep_shaper_destroy(shaper);
}

/* A stamp that the model has passed counts as the model's clock: nothing is lost, and no time runs backwards. */
static void a_stamp_of_the_past_is_the_present(void **state)
{
	(void)state;
	struct skep_shaper *shaper = skep_shaper_create(&topology);
	struct skep_shaper_flow got;
	start(shaper, 0, 1, 1, 100000, 0);
	assert_true(skep_shaper_arrived(shaper, 110 * MS, &got));
	start(shaper, 0, 1, 2, 100000, 50 * MS);
	assert_false(skep_shaper_arrived(shaper, 220 * MS - 1, &got));
	assert_true(skep_shaper_arrived(shaper, 220 * MS, &got));
	assert_int_equal(got.number, 2);
	skep_shaper_destroy(shaper);
}

/* A few thousand at once, more than one call of the model yields: each arrives once, never before it could. */
static void every_message_arrives_once(void **state)
{
	(void)state;
	enum { MANY = 5000 };
	struct skep_shaper *shaper = skep_shaper_create(&topology);
	struct skep_shaper_flow got;
	unsigned char *seen = calloc(MANY, 1);
	uint32_t arrived = 0;
	uint64_t i = 0;
	for (skep_time now = 0; arrived < MANY && now < 100000 * MS; now += 13 * MS) {
		for (; i < MANY && i / 7 * MS <= now; i++)
			start(shaper, (uint32_t)(i % 5), (uint32_t)((i + 1 + i / 5 % 4) % 5), i, i % 3 * 3000,
				i / 7 * MS);
		while (skep_shaper_arrived(shaper, now, &got)) {
			assert_true(got.number < MANY && !seen[got.number]++);
			assert_int_equal(got.source, got.number % 5);
			assert_true(now >= got.number / 7 * MS + 10 * MS);
			arrived++;
		}
	}
	assert_int_equal(arrived, MANY);
	free(seen);
	skep_shaper_destroy(shaper);
}

/* All at once, with all that links may have: the shaper hands each one over when the model by itself says so, and not a
 * nanosecond before, however seldom it is asked; not even the first comes before its overhead and its bytes at the cap. */
static void nothing_comes_before_the_model_allows(void **state)
{
	(void)state;
	enum { MANY = 1000 };
	struct skep_link_profile link_profile = {.window_bytes = 2000, /* 100 kB/s */
		.overhead_s = 0.002,
		.jitter = {.kind = SKEP_JITTER_NORMAL, .deviation = 0.005}};
	struct skep_topology jittery = topology;
	jittery.link_profile = &link_profile;
	jittery.link_profiles = 1;
	jittery.seed = 3;
	struct skep_shaper *shaper = skep_shaper_create(&jittery);
	struct skep_network *network = skep_network_create(&jittery);
	struct skep_shaper_flow got;
	static skep_time due[MANY];
	uint32_t arrived = 0;
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t source = i % 4, destination = (i + 1 + i / 4 % 3) % 4;
		assert_true(skep_network_start(network, 5 * MS, source, destination, i % 2 ? 4000 : 1000, i));
		start(shaper, source, destination, i, i % 2 ? 4000 : 1000, 5 * MS);
	}
	while (flows_under_way(network) > 0) {
		uint64_t tag;
		skep_time at = skep_network_next(network);
		while (skep_network_advance(network, at, &tag, 1) == 1)
			due[tag] = at;
	}
	for (skep_time now = 5 * MS; arrived < MANY && now < 10000 * MS; now += 3333333) {
		skep_time next = skep_shaper_next(shaper);
		while (skep_shaper_arrived(shaper, now, &got)) {
			uint64_t place_in_line = got.number / 4 + 1; /* with its sender */
			skep_time least = 5 * MS + place_in_line * 2 * MS + (got.number % 2 ? 40 : 10) * MS;
			assert_true(due[got.number] <= now && now < due[got.number] + 3333333);
			assert_true(due[got.number] >= least && next <= now);
			arrived++;
		}
	}
	assert_int_equal(arrived, MANY);
	skep_network_destroy(network);
	skep_shaper_destroy(shaper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_arrives_when_the_model_says),
		cmocka_unit_test(messages_of_a_pair_take_turns),
		cmocka_unit_test(late_news_of_a_message_does_not_delay_it),
		cmocka_unit_test(a_stamp_of_the_past_is_the_present),
		cmocka_unit_test(every_message_arrives_once),
		cmocka_unit_test(nothing_comes_before_the_model_allows),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
