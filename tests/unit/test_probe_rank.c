/* SPDX-License-Identifier: Apache-2.0
 *
 * test_probe_rank.c - a whole measurement with a thread for each rank and letter boxes between them: that every way and
 * every device is heard of, in either order, and that no rank is left waiting when one rank cannot go on. The shaper
 * stands in for the lines, so that payloads take a time.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/network_fixture.h"

#include <math.h>
#include <stdio.h>

#include "exec/probe/probe_rank.h"

struct desk { /* of a rank */
	struct skep_transport transport;
	struct skep_probe_rank_setup setup;
	pthread_t thread;
	uint32_t rank, fails; /* which rank's device cannot be measured */
	uint32_t fails_to_begin, fails_to_pass, passes, begun, finished;
	bool done, clean;
	struct skep_diag reason;
};

/* One place for all: 2 Mbit/s between any two, 0.1 ms; 4 KiB take longer than a busy machine delays a thread. */
static const struct skep_pair slow = {.capacity_Bps = 2.5e5, .latency_s = 1e-4, .shared_Bps = INFINITY};
/* The same without an end to its rate: messages of all sizes take as long. */
static const struct skep_pair endless = {.capacity_Bps = INFINITY, .latency_s = 1e-4, .shared_Bps = INFINITY};

struct office {
	struct skep_machine machine[RANKS_MAX + 1];
	struct skep_topology shape;
	struct post *post;
	struct skep_clock clock;
	struct skep_probed probed;
	struct desk desk[RANKS_MAX];
	uint32_t ranks, told, all;
};

static bool microbench(void *context, bool alone, struct skep_probed_device *ret, struct skep_diag *reterr)
{
	struct desk *desk = context;
	(void)alone;
	if (desk->rank == desk->fails)
		return skep_fail(reterr, "no such device");
	*ret = (struct skep_probed_device){.name = "made up", .flops = 1e9 * (desk->rank + 1), .products = 1};
	return true;
}

/* Passes of a thread that sleeps: half a millisecond forwards, a whole one backwards. */
struct drill {
	struct desk *desk;
	bool back;
};

static void *begin_passes(void *context, uint64_t *ret_bytes, struct skep_diag *reterr)
{
	struct desk *desk = context;
	struct drill *drill = malloc(sizeof *drill);
	assert_non_null(drill);
	*drill = (struct drill){desk, false};
	*ret_bytes = 64 << 10;
	desk->begun += desk->rank != desk->fails_to_begin;
	if (desk->rank != desk->fails_to_begin)
		return drill;
	free(drill);
	skep_fail(reterr, "no such stage");
	return NULL;
}

static bool next_pass(void *passes, struct skep_diag *reterr)
{
	struct drill *drill = passes;
	if (drill->desk->rank == drill->desk->fails_to_pass && drill->desk->passes > 100)
		return skep_fail(reterr, "the pass failed");
	usleep(drill->back ? 1000 : 500);
	drill->back = !drill->back;
	drill->desk->passes++;
	return true;
}

static void finish_passes(void *passes)
{
	struct drill *drill = passes;
	drill->desk->finished++;
	free(drill);
}

static const struct skep_probe_passes passes = {begin_passes, next_pass, finish_passes};

static void tell(void *context, uint32_t done, uint32_t all)
{
	struct office *office = context;
	assert_true(done > office->told && done <= all);
	office->told = done;
	office->all = all;
}

static void *work(void *context)
{
	struct desk *desk = context;
	desk->done = skep_probe_rank_run(&desk->setup, &desk->clean, fresh(&desk->reason));
	return NULL;
}

/* Rank i is at place i mod `places`, on the host of that number. */
static void open_office(struct office *o, uint32_t ranks, uint32_t places, bool at_once, uint32_t fails)
{
	*o = (struct office){.post = post_new(ranks), .ranks = ranks, .clock = {skep_monotonic_ns()}};
	assert_true(skep_probed_create(&o->probed, ranks, places));
	o->probed.at_once = at_once;
	o->shape = (struct skep_topology){.machines = ranks, .places = 1, .machine = o->machine, .pair = (void *)&slow};
	for (uint32_t i = 0; i <= ranks; i++)
		o->machine[i] = (struct skep_machine){.up_Bps = INFINITY, .down_Bps = INFINITY};
	for (uint32_t i = 0; i < ranks; i++) {
		struct desk *desk = &o->desk[i];
		o->probed.place_of[i] = o->probed.host_of[i] = i % places;
		desk->rank = i;
		desk->fails = fails;
		desk->fails_to_begin = desk->fails_to_pass = UINT32_MAX;
		desk->transport = (struct skep_transport){.self = &o->post->box[i],
			.rank = i,
			.ranks = ranks,
			.send = box_send,
			.poll = box_poll,
			.pending = box_pending,
			.wait = box_wait,
			.wake = box_wake};
		desk->setup = (struct skep_probe_rank_setup){.transport = &desk->transport,
			.clock = &o->clock,
			.shape = &o->shape,
			.shaped = true,
			.pair_ns = 20000000,
			.bytes = 4096,
			.signal_fd = -1,
			.microbench = microbench,
			.microbench_context = desk,
			.tell = i == 0 ? tell : NULL,
			.tell_context = o,
			.probed = i == 0 ? &o->probed : NULL};
	}
}

static void run_office(struct office *o)
{
	for (uint32_t i = 0; i < o->ranks; i++)
		assert_int_equal(pthread_create(&o->desk[i].thread, NULL, work, &o->desk[i]), 0);
	for (uint32_t i = 0; i < o->ranks; i++)
		pthread_join(o->desk[i].thread, NULL);
}

static void close_office(struct office *o)
{
	post_free(o->post);
	skep_probed_finish(&o->probed);
}

static void all_is_heard(uint32_t ranks, uint32_t places, bool at_once)
{
	struct office o;
	uint32_t ways, turns;
	open_office(&o, ranks, places, at_once, UINT32_MAX);
	skep_probe_rank_count(&o.probed, &ways, &turns);
	run_office(&o);
	for (uint32_t i = 0; i < ranks; i++)
		if (!o.desk[i].done || !o.desk[i].clean)
			fail_msg("rank %u: %s", i, o.desk[i].reason.message);
	for (uint32_t a = 0; a < places; a++)
		for (uint32_t b = 0; b < places; b++) {
			const struct skep_probed_link *way = skep_probed_link(&o.probed, a, b);
			bool inside = a == b && ranks <= places + a;
			assert_int_equal(isnan(way->latency_s), inside);
			if (inside)
				continue;
			assert_true(way->least_s > 0 && way->least_s <= way->latency_s && way->latency_s < 1);
			assert_true(way->Bps > 0 && way->bytes == 4096 && way->pings > 0 && !way->falling);
			assert_true(way->latency_spread >= 0 && way->Bps_spread >= 0 && way->Bps_spread <= 1);
			assert_true(way->transfers >= 24 && way->transfers % 3 == 0);
			ways--;
		}
	assert_int_equal(ways, 0);
	for (uint32_t i = 0; i < ranks; i++) {
		const struct skep_probed_device *device = &o.probed.device[i];
		assert_string_equal(device->name, "made up");
		assert_true(device->flops == 1e9 * (i + 1));
		assert_int_equal(isnan(device->alone_flops), i >= places || ranks == places);
	}
	assert_true(o.told > 0 && o.told == o.all);
	close_office(&o);
}

static void test_one_after_the_other(void **state)
{
	(void)state;
	all_is_heard(2, 2, false);
	all_is_heard(4, 1, false);
	all_is_heard(5, 3, false);
}

static void test_at_once(void **state)
{
	(void)state;
	all_is_heard(5, 5, true);
	all_is_heard(8, 4, true);
}

/* Of n places no more than n / 2 pairs can be measured at once: so many turns are the least, there and back. */
static void test_turns(void **state)
{
	(void)state;
	for (uint32_t n = 2; n < 40; n++) {
		struct skep_probed p;
		uint32_t ways, turns;
		assert_true(skep_probed_create(&p, n, n));
		for (uint32_t i = 0; i < n; i++)
			p.place_of[i] = i;
		skep_probe_rank_count(&p, &ways, &turns);
		assert_int_equal(ways, n * (n - 1));
		assert_int_equal(turns, ways);
		p.at_once = true;
		skep_probe_rank_count(&p, &ways, &turns);
		assert_int_equal(turns, n % 2 ? 2 * n : 2 * (n - 1));
		skep_probed_finish(&p);
	}
}

static void fails_together(uint32_t who)
{
	struct office o;
	open_office(&o, 4, 2, false, who);
	run_office(&o);
	for (uint32_t i = 0; i < 4; i++)
		assert_false(o.desk[i].done);
	assert_non_null(strstr(o.desk[0].reason.message, "no such device"));
	close_office(&o);
}

static void test_a_device_fails(void **state)
{
	(void)state;
	fails_together(0);
	fails_together(1);
	fails_together(3);
}

/* Times that do not grow with size bear no bandwidth, and no figure at all is made of them. */
static void test_bandwidth_not_known(void **state)
{
	(void)state;
	struct office o;
	open_office(&o, 4, 2, false, UINT32_MAX);
	o.shape.pair = (void *)&endless;
	for (uint32_t i = 0; i < 2; i++)
		snprintf(o.probed.place_name[i], sizeof *o.probed.place_name, "host%u", i);
	run_office(&o);
	for (uint32_t i = 0; i < 4; i++)
		assert_false(o.desk[i].done);
	assert_non_null(strstr(o.desk[0].reason.message, "host0 -> itself: bandwidth not known: "));
	assert_non_null(
		strstr(o.desk[0].reason.message, "messages of up to 4 KiB take times that vary more than they"));
	close_office(&o);
}

/* Two hosts of two ranks and one of one, which has no partner. */
static void open_rehearsal(struct office *o)
{
	open_office(o, 5, 3, true, UINT32_MAX);
	o->probed.hosts = 3;
	for (uint32_t i = 0; i < o->ranks; i++) {
		o->desk[i].setup.shaped = false;
		o->desk[i].setup.passes = &passes;
	}
}

static void test_a_rehearsal(void **state)
{
	(void)state;
	struct office o;
	open_rehearsal(&o);
	run_office(&o);
	for (uint32_t i = 0; i < o.ranks; i++) {
		const struct skep_probed_device *device = &o.probed.device[i];
		if (!o.desk[i].done && strstr(o.desk[0].reason.message, "bandwidth not known") == NULL)
			fail_msg("rank %u: %s", i, o.desk[i].reason.message);
		assert_true(o.desk[i].passes > 100 && o.desk[i].passes % 2 == 0);
		assert_int_equal(o.desk[i].finished, 1);
		assert_true(isnan(device->costs.handover_s) ||
			    (device->costs.handover_s >= 0 && device->overhead_s == device->costs.handover_s));
		assert_true(i != 2 || isnan(device->costs.payload_s));
		assert_true(
			isnan(device->costs.payload_s) || (device->costs.payload_s >= 0 && device->costs.byte_s >= 0));
	}
	close_office(&o);
}

static void test_a_rehearsal_fails(void **state)
{
	(void)state;
	for (uint32_t who = 0; who < 4; who++) {
		struct office o;
		open_rehearsal(&o);
		o.desk[who / 2].fails_to_begin = who % 2 ? who / 2 : UINT32_MAX;
		o.desk[who / 2].fails_to_pass = who % 2 ? UINT32_MAX : who / 2;
		run_office(&o);
		for (uint32_t i = 0; i < o.ranks; i++) {
			assert_false(o.desk[i].done);
			assert_int_equal(o.desk[i].finished, o.desk[i].begun);
		}
		assert_non_null(strstr(o.desk[0].reason.message, who % 2 ? "no such stage" : "the pass failed"));
		close_office(&o);
	}
}

/* What no rank of this version writes ends the measurement, and is said. */
static void test_a_letter_that_cannot_be(void **state)
{
	(void)state;
	struct office o;
	const uint8_t bytes[] = {1, 2, 3};
	struct skep_frame frame = {.type = SKEP_FRAME_PROBE};
	frame.u.text.bytes = bytes;
	frame.u.text.count = sizeof bytes;
	open_office(&o, 2, 2, false, UINT32_MAX);
	post_frame(o.post, 1, 0, &frame, NULL);
	run_office(&o);
	assert_false(o.desk[0].done);
	assert_false(o.desk[1].done);
	assert_non_null(strstr(o.desk[0].reason.message, "are they all of one version?"));
	close_office(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_a_device_fails),
		cmocka_unit_test(test_bandwidth_not_known),
		cmocka_unit_test(test_a_rehearsal),
		cmocka_unit_test(test_a_rehearsal_fails),
		cmocka_unit_test(test_a_letter_that_cannot_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
