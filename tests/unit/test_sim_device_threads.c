/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sim_device_threads.c - the arithmetic of a simulated run on several threads: the same digest, times, losses and
 * order of everything as on one, in calm and while processes die in the middle of what they compute.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/random.h"
#include "scenarios/read/scenario.h"
#include "sim/device_threads.h"
#include "sim/sim.h"
#include "tests/unit/fresh.h"
#include "tests/unit/observed_device.h"

struct heard { /* everything that the recorder hears, in order, as one number */
	uint64_t hash;
	uint32_t losses, lives;
	int64_t first_loss, last_loss;
};

static void fold(struct heard *heard, uint64_t value)
{
	heard->hash = skep_mix(heard->hash ^ value);
}

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct heard *heard = context;
	fold(heard, now ^ (uint64_t)note->kind << 56);
	fold(heard, (uint64_t)who.index << 32 | who.epoch);
	fold(heard, (uint64_t)note->value);
	if (note->kind != SKEP_NOTE_LOSS)
		return;
	heard->first_loss = heard->losses++ == 0 ? note->value : heard->first_loss;
	heard->last_loss = note->value;
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	fold(context, use->digest);
}

static void hear_life(void *context, uint32_t worker, skep_time begin_ns, skep_time end_ns)
{
	struct heard *heard = context;
	heard->lives++;
	fold(heard, worker ^ begin_ns ^ end_ns << 1);
}

static void read_scenario(const char *path, const char *set, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	struct skep_scenario_options options = {.set = &set, .sets = 1};
	if (!skep_scenario_read(path, &options, ret, &diag))
		fail_msg("%s", diag.text);
}

static struct heard simulate(const char *path, const char *set, uint32_t threads)
{
	struct skep_scenario s;
	struct skep_sim_result result;
	struct heard heard = {0};
	const struct skep_recorder recorder = {
		.context = &heard, .note = hear_note, .worker = hear_worker, .life = hear_life};
	read_scenario(path, set, &s);
	assert_true(skep_sim_run_with(&s, &(struct skep_sim_options){.threads = threads}, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	fold(&heard, result.events ^ result.end_ns);
	skep_scenario_finish(&s);
	return heard;
}

static void check_same(const char *path, const char *set, uint32_t least_lives)
{
	struct heard alone = simulate(path, set, 1);
	assert_true(alone.losses >= 6 && alone.last_loss < alone.first_loss);
	assert_true(alone.lives >= least_lives);
	for (uint32_t threads = 2; threads <= 5; threads++) {
		struct heard heard = simulate(path, set, threads);
		assert_int_equal(heard.losses, alone.losses);
		assert_int_equal(heard.last_loss, alone.last_loss);
		assert_true(heard.hash == alone.hash);
	}
}

static void test_same_when_calm(void **state)
{
	(void)state;
	check_same("scenarios/two-datacentres.yaml", "train.until.steps=6", 8);
}

/* The step is on the reduce lane, beside passes on the same device. */
static void test_same_when_delayed(void **state)
{
	(void)state;
	check_same("scenarios/delayed.yaml", "train.until.steps=6", 4);
}

/* Newcomers download states, stages lose workers in the middle of a pass. */
static void test_same_with_deaths(void **state)
{
	(void)state;
	check_same("scenarios/churn.yaml", "train.until.steps=60", 14);
}

/* A lane's operation that is never called in is given up with its device, begun or not. */
static void test_forget(void **state)
{
	(void)state;
	struct skep_scenario s;
	read_scenario("scenarios/two-datacentres.yaml", "seed=1", &s);
	for (uint32_t round = 0; round < 200; round++) {
		struct skep_device_threads *device_threads = skep_device_threads_create(2, 3);
		struct skep_diag error;
		struct skep_device *device[2];
		struct skep_device_result result;
		assert_non_null(device_threads);
		for (uint32_t i = 0; i < 2; i++) {
			device[i] = skep_device_create_on(
				SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &s.training, 0, fresh(&error));
			assert_non_null(device[i]);
			struct skep_op op = {.kind = SKEP_OP_FORWARD, .lane = SKEP_LANE_COMPUTE, .microbatch = i};
			struct skep_op take = {.kind = SKEP_OP_COPY_GRAD, .lane = SKEP_LANE_REDUCE, .count = 100};
			skep_device_threads_begin(device_threads, i, device[i], &op, false);
			skep_device_threads_begin(device_threads, i, device[i], &take, round % 2 == 0);
		}
		skep_device_threads_forget(device_threads, 0);
		skep_device_destroy(device[0]);
		skep_device_threads_end(device_threads, 1, SKEP_LANE_REDUCE, &result);
		assert_false(result.failed);
		assert_int_equal(buffers_live(device[1]), 3); /* the pass is done before: out, stash */
		skep_device_threads_end(device_threads, 1, SKEP_LANE_COMPUTE, &result);
		assert_false(result.failed);
		skep_device_threads_destroy(device_threads);
		skep_device_destroy(device[1]);
	}
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_when_calm),
		cmocka_unit_test(test_same_when_delayed),
		cmocka_unit_test(test_same_with_deaths),
		cmocka_unit_test(test_forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
