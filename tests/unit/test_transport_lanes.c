/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transport_lanes.c - the lanes around a stand-in device: order, one piece of arithmetic at a time, pace, and the end.
 * Times are checked only from below, and by what overlaps what, so a busy machine cannot fail them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/loop/lanes.h"
#include "exec/transport/wakeup.h"

#define MS UINT64_C(1000000)

struct skep_device { /* the stand-in */
	_Atomic int inside;
	_Atomic int most_inside;
	_Atomic uint32_t runs;
	_Atomic int waiting;
	_Atomic int most_waiting;
	useconds_t sleep_us;
	int together; /* so many wait at once before the first of them has waited */
};

void skep_device_start(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	int inside = atomic_fetch_add(&device->inside, 1) + 1;
	if (inside > atomic_load(&device->most_inside))
		atomic_store(&device->most_inside, inside);
	usleep(device->sleep_us);
	*ret = (struct skep_device_result){.failed = op->id % 7 == 3, .loss_nano = (int64_t)op->id};
	atomic_fetch_add(&device->runs, 1);
	atomic_fetch_sub(&device->inside, 1);
}

/* What it does beside its host: that of several lanes at once. */
void skep_device_wait(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	int waiting = atomic_fetch_add(&device->waiting, 1) + 1;
	if (waiting > atomic_load(&device->most_waiting))
		atomic_store(&device->most_waiting, waiting);
	while (atomic_load(&device->most_waiting) < device->together)
		usleep(1000);
	assert_true(ret->loss_nano == (int64_t)op->id);
	atomic_fetch_sub(&device->waiting, 1);
}

uint64_t skep_scenario_op_ns(const struct skep_scenario *scenario, uint32_t worker, const struct skep_op *op)
{
	assert_true(scenario->seed == 77 && worker == 3);
	return op->microbatches * MS; /* each operation says for itself */
}

static const struct skep_scenario paced = {.seed = 77};
static struct skep_clock start;

static void ring(void *context)
{
	skep_wakeup_ring(context);
}

static struct skep_lanes *lanes_with(struct skep_device *device, struct skep_wakeup *wakeup, bool pace)
{
	start.start_ns = skep_monotonic_ns();
	struct skep_lanes_setup setup = {.device = device,
		.clock = &start,
		.wake = ring,
		.wake_context = wakeup,
		.pace_from = pace ? &paced : NULL,
		.worker = 3};
	struct skep_lanes *lanes = skep_lanes_create(&setup);
	assert_non_null(lanes);
	return lanes;
}

static void push(struct skep_lanes *lanes, enum skep_lane lane, uint64_t id, uint32_t ms)
{
	struct skep_op op = {.id = id, .kind = SKEP_OP_FORWARD, .lane = (uint8_t)lane, .microbatches = ms};
	assert_true(skep_lanes_push(lanes, &op));
}

static struct skep_lanes_done next(struct skep_lanes *lanes, struct skep_wakeup *wakeup)
{
	struct skep_lanes_done done;
	while (true) {
		uint32_t seen = skep_wakeup_count(wakeup);
		if (skep_lanes_pop(lanes, &done))
			return done;
		uint64_t most_ns = skep_monotonic_ns() + 10000 * MS;
		while (skep_wakeup_count(wakeup) ==
			seen) { /* it may also be woken by the end of a ring that was seen */
			skep_wakeup_wait(wakeup, seen, 10000 * MS);
			assert_true(skep_monotonic_ns() < most_ns); /* an ended operation rings */
		}
	}
}

static void a_lane_keeps_its_order(void **state)
{
	(void)state;
	struct skep_device device = {.sleep_us = 10};
	struct skep_wakeup wakeup = {0};
	struct skep_lanes *lanes = lanes_with(&device, &wakeup, false);
	uint64_t expected[SKEP_LANES] = {0, 1000};
	for (uint64_t i = 0; i < 100; i++) {
		push(lanes, SKEP_LANE_COMPUTE, i, 0);
		push(lanes, SKEP_LANE_REDUCE, 1000 + i, 0);
	}
	skep_time ended[SKEP_LANES] = {0};
	for (int i = 0; i < 200; i++) {
		struct skep_lanes_done done = next(lanes, &wakeup);
		assert_int_equal(done.op.id, expected[done.op.lane]++);
		assert_int_equal(done.result.loss_nano, done.op.id);
		assert_int_equal(done.result.failed, done.op.id % 7 == 3);
		assert_true(done.begin_ns >= ended[done.op.lane]);
		assert_true(done.end_ns - done.begin_ns >= done.busy_ns && done.busy_ns >= 10000);
		ended[done.op.lane] = done.end_ns;
	}
	assert_int_equal(device.most_inside, 1);
	skep_lanes_destroy(lanes);
}

/* What has ended is kept in order while there are always some that were not asked for. */
static void a_lane_that_is_never_empty(void **state)
{
	(void)state;
	struct skep_device device = {0};
	struct skep_wakeup wakeup = {0};
	struct skep_lanes *lanes = lanes_with(&device, &wakeup, false);
	for (uint64_t i = 0; i < 500; i++) {
		push(lanes, SKEP_LANE_COMPUTE, i, 0);
		if (i >= 5)
			assert_int_equal(next(lanes, &wakeup).op.id, i - 5);
	}
	for (uint64_t i = 495; i < 500; i++)
		assert_int_equal(next(lanes, &wakeup).op.id, i);
	skep_lanes_destroy(lanes);
}

static void pace_is_the_least_time(void **state)
{
	(void)state;
	struct skep_device device = {.sleep_us = 1000};
	struct skep_wakeup wakeup = {0};
	struct skep_lanes *lanes = lanes_with(&device, &wakeup, true);
	push(lanes, SKEP_LANE_COMPUTE, 1, 20);
	push(lanes, SKEP_LANE_COMPUTE, 2, 0);
	struct skep_lanes_done slow = next(lanes, &wakeup), fast = next(lanes, &wakeup);
	assert_true(slow.end_ns - slow.begin_ns >= 20 * MS);
	assert_true(slow.busy_ns >= 1 * MS && slow.busy_ns < slow.end_ns - slow.begin_ns);
	assert_true(fast.begin_ns >= slow.end_ns && fast.end_ns - fast.begin_ns >= 1 * MS);
	skep_lanes_destroy(lanes);
}

/* One lane sleeps out its time, an hour, while the other computes. */
static void paced_lanes_run_side_by_side(void **state)
{
	(void)state;
	struct skep_device device = {.sleep_us = 100};
	struct skep_wakeup wakeup = {0};
	struct skep_lanes *lanes = lanes_with(&device, &wakeup, true);
	push(lanes, SKEP_LANE_COMPUTE, 1, 3600000);
	while (atomic_load(&device.runs) == 0)
		usleep(1000);
	push(lanes, SKEP_LANE_REDUCE, 2, 1);
	struct skep_lanes_done short_one = next(lanes, &wakeup);
	assert_int_equal(short_one.op.id, 2);
	assert_true(short_one.end_ns - short_one.begin_ns >= 1 * MS);
	assert_int_equal(device.most_inside, 1);
	skep_lanes_destroy(lanes);
}

/* What the device does beside its host is waited for by both lanes at once, each with one operation. */
static void lanes_wait_side_by_side(void **state)
{
	(void)state;
	struct skep_device device = {.together = 2};
	struct skep_wakeup wakeup = {0};
	struct skep_lanes *lanes = lanes_with(&device, &wakeup, false);
	for (uint64_t i = 0; i < 20; i++)
		push(lanes, i % 2 ? SKEP_LANE_REDUCE : SKEP_LANE_COMPUTE, i, 0);
	for (int i = 0; i < 20; i++)
		next(lanes, &wakeup);
	assert_int_equal(device.most_waiting, 2);
	assert_int_equal(device.most_inside, 1);
	skep_lanes_destroy(lanes);
}

/* An hour of pace and a full queue do not hold up the end. */
static void the_end_does_not_wait_for_pace(void **state)
{
	(void)state;
	struct skep_device device = {0};
	struct skep_wakeup wakeup = {0};
	struct skep_lanes *lanes = lanes_with(&device, &wakeup, true);
	for (uint64_t i = 0; i < 50; i++)
		push(lanes, SKEP_LANE_COMPUTE, i, 3600000);
	while (atomic_load(&device.runs) == 0)
		usleep(1000);
	skep_lanes_destroy(lanes);
	assert_int_equal(device.runs, 1);
	skep_lanes_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lane_keeps_its_order),
		cmocka_unit_test(a_lane_that_is_never_empty),
		cmocka_unit_test(pace_is_the_least_time),
		cmocka_unit_test(paced_lanes_run_side_by_side),
		cmocka_unit_test(lanes_wait_side_by_side),
		cmocka_unit_test(the_end_does_not_wait_for_pace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
