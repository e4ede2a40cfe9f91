/* SPDX-License-Identifier: Apache-2.0
 *
 * test_state.c - a stage's state on devices: from one to another, whole or in chunks while both step, two versions of it,
 * kept and restored, and every wrong one refused.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/job.h"
#include "tests/unit/observed_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void enter(struct skep_device *device, uint32_t stage)
{
	assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_ENTER, .stage = (uint16_t)stage}).failed);
}

static void test_state_moves_between_devices(void **state)
{
	(void)state;
	struct job job;
	struct skep_diag error;
	uint64_t bytes;
	job_init(&job, 2, SKEP_ACTIVATION_TANH, 4, 8);
	for (uint32_t round = 0; round < 3; round++) {
		job_microbatch(&job, round, 0);
		job_step(&job, round, 1);
	}
	struct skep_device *newcomer = skep_device_create_on(
		SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &job.training, SKEP_NO_STAGE, fresh(&error));
	assert_non_null(newcomer);
	for (uint32_t stage = 2; stage--;) { /* no stage to stage 1, then stage 1 to stage 0 */
		struct skep_op save = {.kind = SKEP_OP_SAVE, .stage = (uint16_t)stage};
		float *blob = job_dump(job.device[stage], save, &bytes);
		assert_true(job_load(newcomer, stage, blob, bytes).failed); /* not without room for it */
		enter(newcomer, stage);
		assert_false(job_load(newcomer, stage, blob, bytes).failed);
		assert_true(parameters_digest(newcomer) == parameters_digest(job.device[stage]));
		free(blob);
	}
	/* The moments and the count of steps came along: the next steps are the same. */
	struct job tied_peer = job;
	tied_peer.device[0] = newcomer;
	for (uint32_t round = 3; round < 6; round++) {
		float *blob = job_dump(job.device[1], (struct skep_op){.kind = SKEP_OP_SAVE, .stage = 1}, &bytes);
		int64_t loss = job_microbatch(&job, round, 0);
		enter(job.device[1], 1); /* clears its accumulator */
		assert_false(job_load(job.device[1], 1, blob, bytes).failed);
		assert_true(loss == job_microbatch(&tied_peer, round, 0));
		job_run(newcomer, (struct skep_op){.kind = SKEP_OP_STEP, .round = round, .size = 1, .microbatches = 1});
		job_step(&job, round, 1);
		assert_true(parameters_digest(newcomer) == parameters_digest(job.device[0]));
		free(blob);
	}
	skep_device_destroy(newcomer);
	job_finish(&job);
}

/* Loss of the first microbatch of round 9 on a version of the parameters. */
static int64_t loss_on(struct skep_device *device, uint32_t version)
{
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .round = 9, .version = version};
	struct skep_device_result result = job_run(device, op);
	skep_device_buffer_release(device, result.stash);
	return result.loss_nano;
}

/* With delayed updates a step leaves the version that it begins from, and takes the place of the one before that. */
static void test_two_versions(void **state)
{
	(void)state;
	struct job job;
	struct skep_diag error;
	uint64_t bytes;
	int64_t loss[4];
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 4, 8);
	job.plan.delayed = true;
	job_restart(&job);
	loss[0] = loss_on(job.device[0], 0);
	for (uint32_t round = 0; round < 3; round++) {
		job_microbatch(&job, round, 0); /* whatever it reads */
		job_step(&job, round, 1);
		loss[round + 1] = loss_on(job.device[0], round + 1);
		assert_true(loss[round + 1] != loss[round]);
		assert_true(loss_on(job.device[0], round) == loss[round]);
	}
	job_step(&job, 3, 0); /* nothing was counted: version 4 is version 3 */
	assert_true(loss_on(job.device[0], 4) == loss[3]);
	assert_true(loss_on(job.device[0], 3) == loss[3]);
	struct skep_device *newcomer = skep_device_create_on(
		SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &job.training, SKEP_NO_STAGE, fresh(&error));
	assert_non_null(newcomer);
	float *blob = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE, .version = 4}, &bytes);
	enter(newcomer, 0);
	assert_false(job_load(newcomer, 0, blob, bytes).failed);
	assert_true(loss_on(newcomer, 4) == loss[3]);
	assert_true(loss_on(newcomer, 5) == loss[3]);
	assert_true(parameters_digest(newcomer) == parameters_digest(job.device[0]));
	free(blob);
	skep_device_destroy(newcomer);
	job_finish(&job);
}

static void expect_failure(struct skep_device *device, struct skep_op op, const char *why)
{
	struct skep_device_result result = job_run(device, op);
	assert_true(result.failed);
	if (why)
		assert_string_equal(result.why, why);
	else
		assert_null(result.why);
}

/* Rounds first .. end - 1 once more: each ends where it ended before. The gradient in the accumulator of the first one was made
 * with other parameters, and is cleared. */
static void enter_round_again(struct job *job, uint32_t first, uint32_t end, const uint64_t *digest)
{
	struct skep_op clear = {.kind = SKEP_OP_STEP, .round = first, .size = 1};
	assert_false(job_run(job->device[0], clear).failed);
	for (uint32_t round = first; round < end; round++) {
		job_microbatch(job, round, 0);
		job_step(job, round, 1);
		assert_true(parameters_digest(job->device[0]) == digest[round]);
	}
}

/* A newcomer that enters a stage and steps along holds, chunk by chunk, what the others hold: parameters, moments, and the count
 * of steps, which a wrong one would show in the next step of Adam. */
static void test_a_newcomer_steps_along(void **state)
{
	(void)state;
	enum { CHUNKS = 5 };
	struct job job;
	struct skep_diag error;
	uint64_t bytes;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 4, 8);
	struct skep_device *newcomer = skep_device_create_on(
		SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &job.training, SKEP_NO_STAGE, fresh(&error));
	for (uint32_t round = 0; round < 3; round++) {
		job_microbatch(&job, round, 0);
		job_step(&job, round, 1);
	}
	enter(newcomer, 0);
	for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) { /* one in each round, the last one first */
		uint32_t round = 3 + chunk, c = CHUNKS - 1 - chunk;
		struct skep_op save = {.kind = SKEP_OP_SAVE, .chunk = c, .size = CHUNKS}, op = save;
		void *blob = job_dump(job.device[0], save, &bytes), *memory;
		op.kind = SKEP_OP_LOAD;
		op.in = skep_device_buffer_create(newcomer, bytes, &memory);
		memcpy(memory, blob, bytes);
		op.chunk = (c + 1) % CHUNKS;
		assert_true(job_run(newcomer, op).failed); /* it is another chunk */
		op.chunk = c;
		assert_false(job_run(newcomer, op).failed);
		assert_true(parameters_digest(newcomer) != parameters_digest(job.device[0]) || chunk == CHUNKS - 1);
		skep_device_buffer_release(newcomer, op.in);
		free(blob);
		job_microbatch(&job, round, 0);
		struct skep_op take = {.kind = SKEP_OP_COPY_GRAD, .round = round, .size = 1}; /* the sum of the two */
		take = job_chunk(&job, take);
		blob = job_dump(job.device[0], take, &bytes);
		take.kind = SKEP_OP_STORE;
		take.in = skep_device_buffer_create(newcomer, bytes, &memory);
		memcpy(memory, blob, bytes);
		skep_device_buffer_release(newcomer, job_run(newcomer, take).out);
		job_run(newcomer, (struct skep_op){.kind = SKEP_OP_STEP, .round = round, .size = 2, .microbatches = 1});
		job_step(&job, round, 1);
		free(blob);
	}
	assert_true(parameters_digest(newcomer) == parameters_digest(job.device[0]));
	void *ours = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	void *theirs = job_dump(newcomer, (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	assert_memory_equal(ours, theirs, bytes);
	free(ours);
	free(theirs);
	skep_device_destroy(newcomer);
	job_finish(&job);
}

struct memory { /* a keeper of one state */
	uint32_t stage, version;
	void *state;
	uint64_t bytes;
};

static bool keep(void *context, uint32_t stage, uint32_t version, bool presumed, const void *state, uint64_t bytes,
	struct skep_diag *reterr)
{
	(void)presumed;
	struct memory *m = context;
	(void)reterr;
	*m = (struct memory){stage, version, realloc(m->state, bytes), bytes};
	memcpy(m->state, state, bytes);
	return true;
}

static bool find_kept(
	void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, struct skep_diag *reterr)
{
	const struct memory *m = context;
	if (stage == m->stage && version == m->version && bytes == m->bytes)
		return memcpy(ret_state, m->state, bytes), true;
	return skep_fail(reterr, "no such state");
}

/* What is restored is the state of that version, and version 0 that of the start; the next steps are those of then. */
static void test_a_state_is_kept_and_restored(void **state)
{
	(void)state;
	struct job job;
	struct memory m = {0};
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 4, 8);
	struct skep_device *device = job.device[0];
	uint64_t start = parameters_digest(device), digest[6];
	struct skep_device_result kept = job_run(device, (struct skep_op){.kind = SKEP_OP_CHECKPOINT, .round = 1});
	assert_int_equal(kept.fault, SKEP_FAULT_CHECKPOINT_FAILED);
	assert_string_equal(kept.why, "this worker has nowhere to keep checkpoints");
	skep_device_set_keeper(device, &(struct skep_keeper){&m, keep, find_kept});
	for (uint32_t round = 0; round < 6; round++) {
		if (round == 2)
			assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_CHECKPOINT, .round = 2}).failed);
		job_microbatch(&job, round, 0);
		job_step(&job, round, 1);
		digest[round] = parameters_digest(device);
	}
	expect_failure(device, (struct skep_op){.kind = SKEP_OP_RESTORE, .round = 6, .microbatch = 3}, "no such state");
	assert_true(parameters_digest(device) == digest[5]);
	job_microbatch(&job, 2, 0); /* what is in the accumulator stays there */
	assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_RESTORE, .round = 2, .microbatch = 2}).failed);
	assert_true(parameters_digest(device) == digest[1]);
	enter_round_again(&job, 2, 6, digest);
	assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_RESTORE, .round = 0}).failed);
	assert_true(parameters_digest(device) == start);
	job_microbatch(&job, 0, 0);
	job_step(&job, 0, 1);
	assert_true(parameters_digest(device) == digest[0]);
	assert_int_equal(buffers_live(device), 0);
	free(m.state);
	job_finish(&job);
}

static bool has_gradient(const struct job *job, struct skep_device *device, uint16_t stage)
{
	uint64_t bytes;
	float *sum = job_dump(
		device, job_chunk(job, (struct skep_op){.kind = SKEP_OP_COPY_GRAD, .stage = stage, .size = 1}), &bytes);
	bool any = false;
	for (size_t i = 0; i < bytes / sizeof *sum; i++)
		any = any || sum[i] != 0.0f;
	free(sum);
	return any;
}

static void test_wrong_states_are_refused(void **state)
{
	(void)state;
	struct job job;
	uint64_t bytes, other_bytes;
	job_init(&job, 3, SKEP_ACTIVATION_TANH, 5, 8);
	struct skep_device *device = job.device[1];
	float *blob = job_dump(device, (struct skep_op){.kind = SKEP_OP_SAVE, .stage = 1}, &bytes);
	float *other = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &other_bytes);
	uint64_t digest = parameters_digest(device);
	job_microbatch(&job, 0, 0);
	assert_true(job_load(device, 1, blob, bytes - 1).failed);
	assert_true(job_load(device, 1, blob, 0).failed);
	assert_true(job_load(device, 1, other, other_bytes).failed);
	assert_true(job_load(device, 0, blob, bytes).failed);
	assert_true(job_load(device, 3, blob, bytes).failed);
	struct skep_op stale = {.kind = SKEP_OP_LOAD, .stage = 1, .in = {1, 77}};
	assert_true(job_run(device, stale).failed);
	for (uint32_t byte = 0; byte < 24; byte++) { /* magic, stage, moments, parameters */
		((char *)blob)[byte] ^= 1;
		assert_true(job_load(device, 1, blob, bytes).failed);
		((char *)blob)[byte] ^= 1;
	}
	assert_true(parameters_digest(device) == digest);
	assert_true(has_gradient(&job, device, 1));
	assert_false(job_load(device, 1, blob, bytes).failed);
	assert_true(has_gradient(&job, device, 1));
	enter(device, 1);
	assert_false(has_gradient(&job, device, 1));
	free(blob), free(other);
	job_finish(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state_moves_between_devices),
		cmocka_unit_test(test_two_versions),
		cmocka_unit_test(test_a_newcomer_steps_along),
		cmocka_unit_test(test_a_state_is_kept_and_restored),
		cmocka_unit_test(test_wrong_states_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
