/* SPDX-License-Identifier: Apache-2.0
 *
 * test_device.c - the operations of a device as the core asks for them: steps and accumulators, and every
 * operand that must be refused. States are in test_state.c.
 */
#include "tests/unit/fresh.h"
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
#include "tests/unit/observed_device.h"

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

/* Stage 1 of three is to count it: stage 2 hands its gradient on, stage 0 does not compute it. */
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
		struct skep_op op = job_chunk(&job, (struct skep_op){.kind = SKEP_OP_COPY_GRAD, .chunk = 4, .size = 5});
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

/* ---- what is refused ---------------------------------------------------------------------------------------- */

static bool consumes(const struct skep_op *op)
{
	return op->kind == SKEP_OP_ADD || op->kind == SKEP_OP_ADD_STORE || op->kind == SKEP_OP_STORE ||
	       op->kind == SKEP_OP_ADD_TO_RESULT;
}

static void expect_refused(struct skep_device *device, struct skep_op op)
{
	uint64_t bytes;
	uint32_t live = buffers_live(device);
	bool gone = consumes(&op) && skep_device_buffer_read(device, op.in, &bytes);
	struct skep_device_result result = job_run(device, op);
	assert_true(result.failed && result.loss_nano == INT64_MAX);
	assert_true(!result.out.slot && !result.stash.slot);
	assert_int_equal(buffers_live(device), live - gone);
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
			expect_refused(middle, job_chunk(&job, op));
		}
		op = (struct skep_op){.kind = SKEP_OP_ADD_TO_RESULT, .stage = 1, .size = 2, .in = bad[i]};
		expect_refused(middle, job_chunk(&job, op));
	}
	/* Operands that a stage does not have, and operations for a stage that the device does not serve. */
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = 0, .in = zeros(job.device[0], SAMPLES * sizeof(float))};
	expect_refused(job.device[0], op);
	skep_device_buffer_release(job.device[0], op.in);
	forward.stage = 2;
	expect_refused(middle, forward);
	const uint8_t kinds[] = {SKEP_OP_COPY_GRAD, SKEP_OP_INIT_RESULT, SKEP_OP_COPY_RESULT};
	for (size_t i = 0; i < sizeof kinds; i++) { /* beyond the parameters */
		op = job_chunk(&job, (struct skep_op){.kind = kinds[i], .stage = 2, .size = 1});
		op.first = 1;
		expect_refused(last, op);
		op.first = UINT64_MAX;
		expect_refused(last, op);
	}
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
	const struct skep_op take = job_chunk(&job, (struct skep_op){.kind = SKEP_OP_COPY_GRAD, .stage = 1, .size = 2});
	uint64_t chunk_bytes, bytes[3];
	struct skep_buf chunk = job_run(middle, take).out, fits[3];
	skep_device_buffer_read(middle, chunk, &chunk_bytes);
	skep_device_buffer_release(middle, chunk);
	for (size_t c = 0; c < 3; c++)
		fits[c] = zeros(middle, bytes[c] = skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, SAMPLES * 8));
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
		op = job_chunk(&job, op);
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
	struct skep_diag error;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 2, 4);
	struct skep_device *idle = skep_device_create_on(
		SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &job.training, SKEP_NO_STAGE, fresh(&error));
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
	assert_false(job_load(job.device[0], 0, blob, bytes).failed);
	assert_true(job_microbatch(&job, 0, 0) == INT64_MAX);
	blob[SKEP_STATE_HEADER_BYTES / sizeof(float) + 20] = 1e20f; /* finite, but its square is beyond 1e-9 units */
	assert_false(job_load(job.device[0], 0, blob, bytes).failed);
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
	assert_int_equal(job_load(device, 0, blob, bytes).loss_nano, 0);
	free(blob);
}

/* What a member cannot count in reaches all of them: each says so, and steps with nothing. */
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
		uint64_t before = parameters_digest(job[0].device[0]);
		for (uint32_t m = 0; m < 3; m += 2) {
			struct skep_device_result result = job_run(job[m].device[0], step);
			assert_int_equal(result.fault, SKEP_FAULT_GRADIENT);
			assert_in_range(result.layer, 1, job[m].model.layers);
		}
		assert_true(parameters_digest(job[0].device[0]) == before);
		assert_true(parameters_digest(job[0].device[0]) == parameters_digest(job[2].device[0]));
		assert_true(job_microbatch(&job[0], 1, 0) < INT64_MAX);
		for (uint32_t m = 0; m < 3; m++)
			job_finish(&job[m]);
	}
}

/* ---- parts that are gathered, and lies --------------------------------------------------------------------------- */

static float *brought(struct skep_device *device, uint8_t kind, size_t n)
{
	uint64_t bytes;
	struct skep_op op = {.kind = kind, .size = 2, .count = n, .microbatches = 7};
	if (kind != SKEP_OP_ADD)
		return job_dump(device, op, &bytes);
	void *zeros;
	op.in = skep_device_buffer_create(device, n * sizeof(float), &zeros);
	memset(zeros, 0, n * sizeof(float));
	return job_dump(device, op, &bytes);
}

/* In whatever operation it is asked, and in a step by itself; but what it has is what it had. */
static void test_a_liar_lies_wherever_it_brings_its_own(void **state)
{
	(void)state;
	const uint8_t kinds[] = {SKEP_OP_COPY_GRAD, SKEP_OP_ADD, SKEP_OP_PACK_PART};
	const struct skep_byzantine honest = {.attack = SKEP_ATTACK_NONE},
				    liar = {.attack = SKEP_ATTACK_SIGN_FLIP, .scale = 3, .seed = 1};
	struct job job;
	size_t n;
	uint64_t bytes;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 3, 8);
	job_microbatch(&job, 0, 0);
	float *own = job_gradients(&job, 0, &n);
	struct skep_op keep = {.kind = SKEP_OP_INIT_RESULT, .size = 2, .count = n}, give = keep;
	give.kind = SKEP_OP_COPY_RESULT;
	for (size_t k = 0; k <= 3; k++) {
		skep_device_set_byzantine(job.device[0], &liar);
		if (k == 3)
			job_run(job.device[0], keep);
		float *told = k < 3 ? brought(job.device[0], kinds[k], n) : job_dump(job.device[0], give, &bytes);
		skep_device_set_byzantine(job.device[0], &honest);
		const float *value = told + (k == 2);
		uint32_t count;
		memcpy(&count, told, sizeof count);
		assert_true(k != 2 || count == 7);
		for (size_t i = 0; i < n; i++)
			assert_true(value[i] == -3 * own[i]);
		free(told);
	}
	float *still = job_gradients(&job, 0, &n);
	assert_memory_equal(still, own, n * sizeof *own);
	free(still), free(own);
	job_finish(&job);
}

/* To the next stage alone: what it brings into sums and keeps for its backward pass are as ever, and so is what says whether it
 * has computed something that is not finite. */
static void test_a_liar_sends_other_activations(void **state)
{
	(void)state;
	static const enum skep_attack attacks[] = {SKEP_ATTACK_NONE, SKEP_ATTACK_SIGN_FLIP, SKEP_ATTACK_NAN};
	struct job job;
	float *sent[3];
	uint64_t bytes = 0;
	job_init(&job, 2, SKEP_ACTIVATION_TANH, 3, 8);
	for (size_t a = 0; a < 3; a++) {
		const struct skep_byzantine byzantine = {
			.attack = attacks[a], .scale = 4, .seed = 1, .activations = a > 0};
		skep_device_set_byzantine(job.device[0], &byzantine);
		struct skep_device_result result = job_run(job.device[0], (struct skep_op){.kind = SKEP_OP_FORWARD});
		assert_int_equal(result.fault, 0);
		const void *out = skep_device_buffer_read(job.device[0], result.out, &bytes);
		sent[a] = malloc(bytes);
		memcpy(sent[a], out, bytes);
		skep_device_buffer_release(job.device[0], result.out);
		skep_device_buffer_release(job.device[0], result.stash);
	}
	assert_true(bytes > 0);
	for (size_t i = 0; i < bytes / sizeof(float); i++)
		assert_true(sent[1][i] == -4 * sent[0][i] && isnan(sent[2][i]));
	for (size_t a = 0; a < 3; a++)
		free(sent[a]);
	job_finish(&job);
}

static struct skep_buf offered(struct skep_device *device, size_t n)
{
	return job_run(device, (struct skep_op){.kind = SKEP_OP_PACK_PART, .size = 2, .count = n, .microbatches = 1})
	        .out;
}

/* Parts of no member, of another size, stale ones; a whole without parts. What is refused is released. */
static void test_parts_that_cannot_be_collected(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 3, 8);
	struct skep_device *device = job.device[0];
	free(job_gradients(&job, 0, &n));
	struct skep_op op = {.kind = SKEP_OP_AGGREGATE, .size = 2, .count = n};
	assert_true(job_run(device, op).failed);
	for (uint32_t wrong = 0; wrong < 4; wrong++) {
		op = (struct skep_op){.kind = SKEP_OP_UNPACK_PART, .size = 2, .count = n, .in = offered(device, n)};
		op.microbatch = wrong == 0 ? 2 : 1;
		op.count -= wrong == 1;
		op.first = wrong == 2 ? n : 0;
		if (wrong == 3)
			skep_device_buffer_release(device, op.in);
		assert_true(job_run(device, op).failed);
		assert_int_equal(buffers_live(device), 0);
	}
	for (uint32_t member = 0; member < 2; member++) {
		op = (struct skep_op){.kind = SKEP_OP_UNPACK_PART, .size = 2, .count = n, .microbatch = member};
		op.in = member == 1 ? offered(device, n) : op.in;
		assert_false(job_run(device, op).failed);
	}
	op.kind = SKEP_OP_AGGREGATE;
	assert_false(job_run(device, op).failed);
	job_finish(&job);
}

static void test_what_cannot_be_created(void **state)
{
	(void)state;
	struct job job;
	struct skep_diag error;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 2, 4);
	assert_true(skep_device_available(SKEP_DEVICE_CPU, fresh(&error)));
	assert_false(skep_device_available(SKEP_DEVICE_CUDA, fresh(&error)));
	assert_non_null(strstr(error.message, "CUDA"));
	error.message[0] = '\0';
	assert_null(skep_device_create_on(
		SKEP_DEVICE_CUDA, &(struct skep_device_place){0}, &job.training, 0, fresh(&error)));
	assert_non_null(strstr(error.message, "CUDA"));
	job.width[2] = 3;
	assert_null(skep_device_create_on(
		SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &job.training, 0, fresh(&error)));
	assert_non_null(strstr(error.message, "one output"));
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
		cmocka_unit_test(test_wrong_operands_are_refused),
		cmocka_unit_test(test_operands_of_another_codec_are_refused),
		cmocka_unit_test(test_a_device_without_a_stage_refuses),
		cmocka_unit_test(test_a_loss_that_is_no_number),
		cmocka_unit_test(test_a_gradient_that_is_no_number_reaches_all),
		cmocka_unit_test(test_a_liar_lies_wherever_it_brings_its_own),
		cmocka_unit_test(test_a_liar_sends_other_activations),
		cmocka_unit_test(test_parts_that_cannot_be_collected),
		cmocka_unit_test(test_what_cannot_be_created),
		cmocka_unit_test(test_a_warm_device_makes_no_new_buffers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
