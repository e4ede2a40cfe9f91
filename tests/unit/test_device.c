/* SPDX-License-Identifier: Apache-2.0
 *
 * test_device.c - the operations of a device as the core asks for them: steps and accumulators, state from device to device, and
 * every operand that must be refused.
 */
#include "tests/unit/job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"

static const enum skep_codec codecs[] = {SKEP_CODEC_NONE, SKEP_CODEC_FP16, SKEP_CODEC_INT8};

/* ---- steps -------------------------------------------------------------------------------------------------- */

static void test_a_step_of_nothing_changes_nothing(void **state)
{
	(void)state;
	struct job job;
	uint64_t bytes, bytes_after;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 3, 8);
	job_microbatch(&job, 0, 0);
	float *before = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	job_step(&job, 0, 0);
	float *after = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes_after);
	assert_int_equal(bytes, bytes_after);
	assert_memory_equal(before, after, bytes);
	free(before), free(after);
	job_finish(&job);
}

static void test_microbatches_add_up(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	job_init(&job, 2, SKEP_ACTIVATION_TANH, 4, 8);
	job_microbatch(&job, 0, 0);
	float *a = job_gradients(&job, 0, &n);
	job_microbatch(&job, 0, 1);
	float *both = job_gradients(&job, 0, &n);
	job_step(&job, 0, 0); /* clears */
	job_microbatch(&job, 0, 1);
	float *b = job_gradients(&job, 0, &n);
	for (size_t i = 0; i < n; i++)
		assert_true(fabsf(both[i] - (a[i] + b[i])) <= 1e-6f * (1 + fabsf(a[i]) + fabsf(b[i])));
	free(a), free(b), free(both);
	job_finish(&job);
}

/* Stage 1 of three is to count it: stage 2 hands its gradient on, stage 0 computes for nobody. */
static void test_a_stage_that_does_not_count(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	job_init(&job, 3, SKEP_ACTIVATION_TANH, 6, 8);
	job_microbatch(&job, 0, 0);
	float *all = job_gradients(&job, 0, &n);
	job_step(&job, 0, 0); /* clears */
	struct job_passage passage;
	job_forward(&job, 0, 0, &passage);
	passage.first = passage.last = 1;
	job_backward(&job, &passage);
	float *some = job_gradients(&job, 0, &n);
	size_t at = 0, counted = 0;
	for (uint32_t stage = 0; stage < 3; stage++) {
		struct skep_cost cost;
		skep_model_cost(&job.model, 3, stage, &cost);
		for (uint64_t i = 0; i < cost.parameters; i++, at++) {
			assert_true(some[at] == (stage == 1 ? all[at] : 0.0f));
			counted += some[at] != 0.0f;
		}
	}
	assert_int_equal(at, n);
	assert_true(counted > 0);
	free(all), free(some);
	job_finish(&job);
}

static void test_rounds_have_two_accumulators(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 3, 8);
	job_microbatch(&job, 4, 0);
	float *alone = job_gradients(&job, 4, &n);
	job_microbatch(&job, 5, 0);
	float *even = job_gradients(&job, 4, &n), *odd = job_gradients(&job, 5, &n);
	assert_memory_equal(alone, even, n * sizeof(float));
	assert_true(memcmp(even, odd, n * sizeof(float)) != 0);
	job_step(&job, 4, 1);
	float *kept = job_gradients(&job, 5, &n), *cleared = job_gradients(&job, 4, &n);
	assert_memory_equal(odd, kept, n * sizeof(float));
	for (size_t i = 0; i < n; i++)
		assert_true(cleared[i] == 0.0f);
	free(alone), free(even), free(odd), free(kept), free(cleared);
	job_finish(&job);
}

static void test_more_chunks_than_parameters(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
		struct job job;
		job_init(&job, 1, SKEP_ACTIVATION_TANH, 1, 0); /* one weight, one bias */
		job.training.reduction_codec = codecs[c];
		struct skep_op op = {.kind = SKEP_OP_TAKE, .chunk = 4, .size = 5};
		uint64_t bytes;
		op.in = job_run(job.device[0], op).out;
		assert_non_null(skep_device_buffer_read(job.device[0], op.in, &bytes));
		assert_int_equal(bytes, 0);
		op.kind = SKEP_OP_ADD_STORE;
		struct skep_buf out = job_run(job.device[0], op).out;
		assert_true(out.slot != 0);
		skep_device_buffer_release(job.device[0], out);
		job_finish(&job);
	}
}

/* ---- state -------------------------------------------------------------------------------------------------- */

static struct skep_device_result load(struct skep_device *device, uint32_t stage, const void *state, uint64_t bytes)
{
	void *memory;
	struct skep_buf in = skep_device_buffer_create(device, bytes, &memory);
	memcpy(memory, state, bytes);
	struct skep_device_result result =
		job_run(device, (struct skep_op){.kind = SKEP_OP_LOAD, .stage = (uint16_t)stage, .in = in});
	skep_device_buffer_release(device, in);
	return result;
}

static void enter(struct skep_device *device, uint32_t stage)
{
	assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_ENTER, .stage = (uint16_t)stage}).failed);
}

static void test_state_moves_between_devices(void **state)
{
	(void)state;
	struct job job;
	char error[64];
	uint64_t bytes;
	job_init(&job, 2, SKEP_ACTIVATION_TANH, 4, 8);
	for (uint32_t round = 0; round < 3; round++) {
		job_microbatch(&job, round, 0);
		job_step(&job, round, 1);
	}
	struct skep_device *newcomer =
		skep_device_create(SKEP_DEVICE_CPU, &job.training, SKEP_NO_STAGE, error, sizeof error);
	assert_non_null(newcomer);
	for (uint32_t stage = 2; stage--;) { /* no stage to stage 1, then stage 1 to stage 0 */
		struct skep_op save = {.kind = SKEP_OP_SAVE, .stage = (uint16_t)stage};
		float *blob = job_dump(job.device[stage], save, &bytes);
		assert_true(load(newcomer, stage, blob, bytes).failed); /* not without room for it */
		enter(newcomer, stage);
		assert_false(load(newcomer, stage, blob, bytes).failed);
		assert_true(skep_device_digest(newcomer) == skep_device_digest(job.device[stage]));
		free(blob);
	}
	/* The moments and the count of steps came along: the next steps are the same. */
	struct job twin = job;
	twin.device[0] = newcomer;
	for (uint32_t round = 3; round < 6; round++) {
		float *blob = job_dump(job.device[1], (struct skep_op){.kind = SKEP_OP_SAVE, .stage = 1}, &bytes);
		int64_t loss = job_microbatch(&job, round, 0);
		enter(job.device[1], 1); /* clears its accumulator */
		assert_false(load(job.device[1], 1, blob, bytes).failed);
		assert_true(loss == job_microbatch(&twin, round, 0));
		job_run(newcomer, (struct skep_op){.kind = SKEP_OP_STEP, .round = round, .size = 1, .microbatches = 1});
		job_step(&job, round, 1);
		assert_true(skep_device_digest(newcomer) == skep_device_digest(job.device[0]));
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
	char error[64];
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
	struct skep_device *newcomer =
		skep_device_create(SKEP_DEVICE_CPU, &job.training, SKEP_NO_STAGE, error, sizeof error);
	assert_non_null(newcomer);
	float *blob = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE, .version = 4}, &bytes);
	enter(newcomer, 0);
	assert_false(load(newcomer, 0, blob, bytes).failed);
	assert_true(loss_on(newcomer, 4) == loss[3]);
	assert_true(loss_on(newcomer, 5) == loss[3]);
	assert_true(skep_device_digest(newcomer) == skep_device_digest(job.device[0]));
	free(blob);
	skep_device_destroy(newcomer);
	job_finish(&job);
}

/* A newcomer that enters a stage and steps along holds, chunk by chunk, what the others hold: parameters, moments, and the count
 * of steps, which a wrong one would show in the next step of Adam. */
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
		assert_true(skep_device_digest(job->device[0]) == digest[round]);
	}
}

static void test_a_newcomer_steps_along(void **state)
{
	(void)state;
	enum { CHUNKS = 5 };
	struct job job;
	char error[64];
	uint64_t bytes;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 4, 8);
	struct skep_device *newcomer =
		skep_device_create(SKEP_DEVICE_CPU, &job.training, SKEP_NO_STAGE, error, sizeof error);
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
		assert_true(skep_device_digest(newcomer) != skep_device_digest(job.device[0]) || chunk == CHUNKS - 1);
		skep_device_buffer_release(newcomer, op.in);
		free(blob);
		job_microbatch(&job, round, 0);
		struct skep_op take = {.kind = SKEP_OP_TAKE, .round = round, .size = 1}; /* the sum of the two */
		blob = job_dump(job.device[0], take, &bytes);
		take.kind = SKEP_OP_STORE;
		take.in = skep_device_buffer_create(newcomer, bytes, &memory);
		memcpy(memory, blob, bytes);
		skep_device_buffer_release(newcomer, job_run(newcomer, take).out);
		job_run(newcomer, (struct skep_op){.kind = SKEP_OP_STEP, .round = round, .size = 2, .microbatches = 1});
		job_step(&job, round, 1);
		free(blob);
	}
	assert_true(skep_device_digest(newcomer) == skep_device_digest(job.device[0]));
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

static bool keep(
	void *context, uint32_t stage, uint32_t version, const void *state, uint64_t bytes, char *reterr, size_t size)
{
	struct memory *m = context;
	(void)reterr, (void)size;
	*m = (struct memory){stage, version, realloc(m->state, bytes), bytes};
	memcpy(m->state, state, bytes);
	return true;
}

static bool find_kept(
	void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, char *reterr, size_t size)
{
	const struct memory *m = context;
	if (stage == m->stage && version == m->version && bytes == m->bytes)
		return memcpy(ret_state, m->state, bytes), true;
	snprintf(reterr, size, "no such state");
	return false;
}

/* What is restored is the state of that version, and version 0 that of the start; the next steps are those of then. */
static void test_a_state_is_kept_and_restored(void **state)
{
	(void)state;
	struct job job;
	struct memory m = {0};
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 4, 8);
	struct skep_device *device = job.device[0];
	uint64_t start = skep_device_digest(device), digest[6];
	expect_failure(device, (struct skep_op){.kind = SKEP_OP_CHECKPOINT, .round = 1}, NULL); /* nobody keeps it */
	skep_device_set_keeper(device, &(struct skep_keeper){&m, keep, find_kept});
	for (uint32_t round = 0; round < 6; round++) {
		if (round == 2)
			assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_CHECKPOINT, .round = 2}).failed);
		job_microbatch(&job, round, 0);
		job_step(&job, round, 1);
		digest[round] = skep_device_digest(device);
	}
	expect_failure(device, (struct skep_op){.kind = SKEP_OP_RESTORE, .round = 6, .microbatch = 3}, "no such state");
	assert_true(skep_device_digest(device) == digest[5]);
	job_microbatch(&job, 2, 0); /* what is in the accumulator stays there */
	assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_RESTORE, .round = 2, .microbatch = 2}).failed);
	assert_true(skep_device_digest(device) == digest[1]);
	enter_round_again(&job, 2, 6, digest);
	assert_false(job_run(device, (struct skep_op){.kind = SKEP_OP_RESTORE, .round = 0}).failed);
	assert_true(skep_device_digest(device) == start);
	job_microbatch(&job, 0, 0);
	job_step(&job, 0, 1);
	assert_true(skep_device_digest(device) == digest[0]);
	assert_int_equal(skep_device_buffers_live(device), 0);
	free(m.state);
	job_finish(&job);
}

static bool has_gradient(struct skep_device *device, uint16_t stage)
{
	uint64_t bytes;
	float *sum = job_dump(device, (struct skep_op){.kind = SKEP_OP_TAKE, .stage = stage, .size = 1}, &bytes);
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
	uint64_t digest = skep_device_digest(device);
	job_microbatch(&job, 0, 0);
	assert_true(load(device, 1, blob, bytes - 1).failed);
	assert_true(load(device, 1, blob, 0).failed);
	assert_true(load(device, 1, other, other_bytes).failed);
	assert_true(load(device, 0, blob, bytes).failed);
	assert_true(load(device, 3, blob, bytes).failed);
	struct skep_op stale = {.kind = SKEP_OP_LOAD, .stage = 1, .in = {1, 77}};
	assert_true(job_run(device, stale).failed);
	for (uint32_t byte = 0; byte < 24; byte++) { /* magic, stage, moments, parameters */
		((char *)blob)[byte] ^= 1;
		assert_true(load(device, 1, blob, bytes).failed);
		((char *)blob)[byte] ^= 1;
	}
	assert_true(skep_device_digest(device) == digest);
	assert_true(has_gradient(device, 1));
	assert_false(load(device, 1, blob, bytes).failed);
	assert_true(has_gradient(device, 1));
	enter(device, 1);
	assert_false(has_gradient(device, 1));
	free(blob), free(other);
	job_finish(&job);
}

/* ---- what is refused ---------------------------------------------------------------------------------------- */

static bool consumes(const struct skep_op *op)
{
	return op->kind == SKEP_OP_ADD || op->kind == SKEP_OP_ADD_STORE || op->kind == SKEP_OP_STORE;
}

static void expect_refused(struct skep_device *device, struct skep_op op)
{
	uint64_t bytes;
	uint32_t live = skep_device_buffers_live(device);
	bool gone = consumes(&op) && skep_device_buffer_read(device, op.in, &bytes);
	struct skep_device_result result = job_run(device, op);
	assert_true(result.failed && result.loss_nano == INT64_MAX);
	assert_true(!result.out.slot && !result.stash.slot);
	assert_int_equal(skep_device_buffers_live(device), live - gone);
}

static struct skep_buf zeros(struct skep_device *device, uint64_t bytes)
{
	void *memory;
	struct skep_buf buf = skep_device_buffer_create(device, bytes, &memory);
	memset(memory, 0, bytes);
	return buf;
}

static void test_wrong_operands_are_refused(void **state)
{
	(void)state;
	struct job job;
	job_init(&job, 3, SKEP_ACTIVATION_TANH, 6, 8);
	struct skep_device *middle = job.device[1], *last = job.device[2];
	struct skep_buf fits = zeros(middle, sizeof(float) * SAMPLES * 8);
	struct skep_buf small = zeros(middle, sizeof(float) * SAMPLES * 8 - 4);
	struct skep_op forward = {.kind = SKEP_OP_FORWARD, .stage = 1, .in = fits};
	struct skep_device_result passed = job_run(middle, forward);
	const struct skep_buf bad[] = {{0, 0}, small, {fits.slot, fits.generation + 1}, {99, 1}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct skep_op backward = {
			.kind = SKEP_OP_BACKWARD, .stage = 1, .in = fits, .stash = passed.stash, .gradient = fits};
		struct skep_op op = forward;
		op.in = bad[i], expect_refused(middle, op);
		op = backward, op.in = bad[i], expect_refused(middle, op);
		op = backward, op.stash = bad[i], expect_refused(middle, op);
		op = backward, op.gradient = bad[i], expect_refused(middle, op);
		for (int kind = SKEP_OP_ADD; kind <= SKEP_OP_STORE; kind++) {
			op = (struct skep_op){.kind = (uint8_t)kind, .stage = 1, .size = 2, .in = bad[i]};
			expect_refused(middle, op);
		}
	}
	/* Operands that a stage does not have, and operations for a stage that the device does not serve. */
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = 0, .in = zeros(job.device[0], SAMPLES * sizeof(float))};
	expect_refused(job.device[0], op);
	skep_device_buffer_release(job.device[0], op.in);
	forward.stage = 2;
	expect_refused(middle, forward);
	expect_refused(last, (struct skep_op){.kind = SKEP_OP_TAKE, .stage = 2, .chunk = 2, .size = 2});
	expect_refused(last, (struct skep_op){.kind = SKEP_OP_TAKE, .stage = 2});
	const struct skep_buf held[] = {fits, passed.out, passed.stash};
	for (size_t i = 0; i < 3; i++)
		skep_device_buffer_release(middle, held[i]);
	job_finish(&job);
}

/* A payload of another codec's size is of the wrong size, and a stash is wrong where none is kept. */
static void test_operands_of_another_codec_are_refused(void **state)
{
	(void)state;
	struct job job;
	job_init(&job, 3, SKEP_ACTIVATION_TANH, 6, 8);
	job.training.activation_codec = SKEP_CODEC_INT8;
	job.training.reduction_codec = SKEP_CODEC_FP16;
	job.training.checkpoint_activations = true;
	job_restart(&job);
	struct skep_device *middle = job.device[1];
	const struct skep_op take = {.kind = SKEP_OP_TAKE, .stage = 1, .size = 2};
	uint64_t chunk_bytes, bytes[3];
	struct skep_buf chunk = job_run(middle, take).out, fits[3];
	skep_device_buffer_read(middle, chunk, &chunk_bytes);
	skep_device_buffer_release(middle, chunk);
	for (size_t c = 0; c < 3; c++)
		fits[c] = zeros(middle, bytes[c] = skep_codec_bytes(codecs[c], SAMPLES * 8));
	assert_int_equal(bytes[SKEP_CODEC_INT8], SAMPLES * 8 + 4 * 2);
	for (size_t c = 0; c < 3; c++) {
		struct skep_op forward = {.kind = SKEP_OP_FORWARD, .stage = 1, .in = fits[c]}, backward = forward;
		backward.kind = SKEP_OP_BACKWARD, backward.gradient = fits[SKEP_CODEC_INT8];
		if (c != SKEP_CODEC_INT8) {
			expect_refused(middle, forward);
			expect_refused(middle, backward);
			backward.in = fits[SKEP_CODEC_INT8], backward.gradient = fits[c];
			expect_refused(middle, backward);
		}
	}
	struct skep_op op = {.kind = SKEP_OP_BACKWARD, .stage = 1, .in = fits[SKEP_CODEC_INT8]};
	op.gradient = op.in, op.stash = zeros(middle, 64);
	expect_refused(middle, op);
	skep_device_buffer_release(middle, op.stash);
	for (uint8_t kind = SKEP_OP_ADD; kind <= SKEP_OP_STORE; kind++) {
		op = (struct skep_op){.kind = kind, .stage = 1, .size = 2, .in = zeros(middle, 2 * chunk_bytes)};
		expect_refused(middle, op);
		op.in = zeros(middle, chunk_bytes);
		struct skep_buf out = job_run(middle, op).out;
		assert_true(out.slot != 0);
		skep_device_buffer_release(middle, out);
	}
	for (size_t c = 0; c < 3; c++)
		skep_device_buffer_release(middle, fits[c]);
	job_finish(&job);
}

static void test_a_device_without_a_stage_refuses(void **state)
{
	(void)state;
	struct job job;
	char error[256];
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 2, 4);
	struct skep_device *idle =
		skep_device_create(SKEP_DEVICE_CPU, &job.training, SKEP_NO_STAGE, error, sizeof error);
	for (uint8_t kind = SKEP_OP_FORWARD; kind < SKEP_OP_KINDS; kind++)
		if (kind != SKEP_OP_ENTER) /* which gives it one */
			expect_refused(idle, (struct skep_op){.kind = kind, .stage = 0, .size = 1, .microbatches = 1});
	skep_device_destroy(idle);
	job_finish(&job);
}

static void test_a_loss_that_is_no_number(void **state)
{
	(void)state;
	struct job job;
	uint64_t bytes;
	job_init(&job, 1, SKEP_ACTIVATION_GELU, 3, 8);
	float *blob = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	blob[SKEP_STATE_HEADER_BYTES / sizeof(float) + 20] = NAN;
	assert_false(load(job.device[0], 0, blob, bytes).failed);
	assert_true(job_microbatch(&job, 0, 0) == INT64_MAX);
	blob[SKEP_STATE_HEADER_BYTES / sizeof(float) + 20] = 1e20f; /* finite, but its square is beyond 1e-9 units */
	assert_false(load(job.device[0], 0, blob, bytes).failed);
	assert_true(job_microbatch(&job, 0, 0) == INT64_MAX);
	free(blob);
	job_finish(&job);
}

/* A parameter that is no number makes all gradients such. */
static void spoil(struct skep_device *device)
{
	uint64_t bytes;
	float *blob = job_dump(device, (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	blob[SKEP_STATE_HEADER_BYTES / sizeof(float)] = NAN;
	assert_int_equal(load(device, 0, blob, bytes).loss_nano, 0);
	free(blob);
}

/* What a member cannot count in reaches all of them. */
static void test_a_gradient_that_is_no_number_reaches_all(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
		struct job job[3];
		for (uint32_t m = 0; m < 3; m++) {
			job_init(&job[m], 1, SKEP_ACTIVATION_TANH, 3, 8);
			job[m].training.reduction_codec = codecs[c];
			if (m == 1)
				spoil(job[m].device[0]);
			job_microbatch(&job[m], 0, m);
		}
		job_reduce(job, 3, 0, 0);
		struct skep_op step = {.kind = SKEP_OP_STEP, .size = 3, .microbatches = 3};
		job_run(job[0].device[0], step), job_run(job[2].device[0], step);
		assert_true(skep_device_digest(job[0].device[0]) == skep_device_digest(job[2].device[0]));
		assert_true(job_microbatch(&job[0], 1, 0) == INT64_MAX);
		for (uint32_t m = 0; m < 3; m++)
			job_finish(&job[m]);
	}
}

static void test_what_cannot_be_created(void **state)
{
	(void)state;
	struct job job;
	char error[256] = "";
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 2, 4);
	assert_true(skep_device_available(SKEP_DEVICE_CPU, error, sizeof error));
	assert_false(skep_device_available(SKEP_DEVICE_CUDA, error, sizeof error));
	assert_non_null(strstr(error, "CUDA"));
	error[0] = '\0';
	assert_null(skep_device_create(SKEP_DEVICE_CUDA, &job.training, 0, error, sizeof error));
	assert_non_null(strstr(error, "CUDA"));
	job.width[2] = 3;
	assert_null(skep_device_create(SKEP_DEVICE_CPU, &job.training, 0, error, sizeof error));
	assert_non_null(strstr(error, "one output"));
	job.width[2] = 1;
	skep_device_destroy(NULL);
	job_finish(&job);
}

/* After the first microbatch every buffer comes from a free list: the handles are those of the microbatch before, a
 * generation later. */
static void test_a_warm_device_makes_no_new_buffers(void **state)
{
	(void)state;
	struct job job;
	job_init(&job, 3, SKEP_ACTIVATION_TANH, 6, 8);
	void *memory;
	uint32_t next[3];
	for (uint32_t round = 0; round < 20; round++) {
		job_microbatch(&job, round, 0);
		job_step(&job, round, 1);
		for (uint32_t s = 0; s < 3; s++) { /* a size that nothing else uses shows the next new slot */
			struct skep_buf probe =
				skep_device_buffer_create(job.device[s], 1000000u << round % 8, &memory);
			assert_true(round < 1 || round >= 8 || probe.slot == next[s] + 1);
			next[s] = probe.slot;
			skep_device_buffer_release(job.device[s], probe);
		}
	}
	job_finish(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_step_of_nothing_changes_nothing),
		cmocka_unit_test(test_microbatches_add_up),
		cmocka_unit_test(test_a_stage_that_does_not_count),
		cmocka_unit_test(test_rounds_have_two_accumulators),
		cmocka_unit_test(test_more_chunks_than_parameters),
		cmocka_unit_test(test_state_moves_between_devices),
		cmocka_unit_test(test_two_versions),
		cmocka_unit_test(test_a_newcomer_steps_along),
		cmocka_unit_test(test_a_state_is_kept_and_restored),
		cmocka_unit_test(test_wrong_states_are_refused),
		cmocka_unit_test(test_wrong_operands_are_refused),
		cmocka_unit_test(test_operands_of_another_codec_are_refused),
		cmocka_unit_test(test_a_device_without_a_stage_refuses),
		cmocka_unit_test(test_a_loss_that_is_no_number),
		cmocka_unit_test(test_a_gradient_that_is_no_number_reaches_all),
		cmocka_unit_test(test_what_cannot_be_created),
		cmocka_unit_test(test_a_warm_device_makes_no_new_buffers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
