/* SPDX-License-Identifier: Apache-2.0
 *
 * test_payload.c - what travels between devices and what waits for its gradient: reductions by hand under each codec, with the
 * error that models/update/codec.h allows; passes on encoded payloads against passes on floats; recomputing against keeping.
 */
#include "tests/unit/job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "tests/unit/observed_device.h"

/* ---- reductions --------------------------------------------------------------------------------------------- */

enum { MEMBERS_MAX = 6 };

struct ring {
	struct job job[MEMBERS_MAX];
	float *sum[MEMBERS_MAX]; /* [parameters] each member's accumulator */
	size_t parameters;
};

static const enum skep_codec codecs[] = {SKEP_CODEC_NONE, SKEP_CODEC_FP16, SKEP_CODEC_INT8, SKEP_CODEC_E3M0};

/* Two microbatches in each accumulator of round 7. SGD without momentum: a step leaves the mean gradient as the moment. */
static void ring_init(struct ring *ring, uint32_t members, enum skep_codec codec)
{
	for (uint32_t m = 0; m < members; m++) {
		struct job *job = &ring->job[m];
		job_init(job, 1, SKEP_ACTIVATION_TANH, 4, 24);
		job->training.optimizer = (struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = 0.125f};
		job_restart(job);
		job_microbatch(job, 7, 2 * m);
		job_microbatch(job, 7, 2 * m + 1);
		ring->sum[m] = job_gradients(job, 7, &ring->parameters);
		job->training.reduction_codec = codec;
	}
}

/* Sum of the shares of the first `count` members from `first` on. */
static double partial_sum(const struct ring *ring, uint32_t members, uint32_t first, uint32_t count, size_t i)
{
	double sum = 0;
	for (uint32_t k = 0; k < count; k++)
		sum += (double)ring->sum[(first + k) % members][i];
	return sum;
}

/* By how much models/update/codec.h allows parameter i of a chunk to be off, the chunk being [begin, end) and on its way from its
 * own member on. */
static double allowed(const struct ring *ring, uint32_t members, enum skep_codec codec, uint32_t chunk, size_t begin,
	size_t end, size_t i)
{
	double off = 0, rounding = 0x1p-24;
	size_t block = begin + (i - begin) / SKEP_CODEC_BLOCK * SKEP_CODEC_BLOCK;
	for (uint32_t count = 1; count <= members; count++) {
		double size = fabs(partial_sum(ring, members, chunk, count, i));
		if (skep_codec_blocks(codec))
			for (size_t j = block; j < end && j < block + SKEP_CODEC_BLOCK; j++)
				size = fmax(size, fabs(partial_sum(ring, members, chunk, count, j)));
		off += count > 1 ? rounding * (size + off) : 0;
		if (codec == SKEP_CODEC_FP16)
			off += fmax((size + off) * 0x1p-11, 0x1p-25);
		if (codec == SKEP_CODEC_INT8)
			off += fmax((size + off) * 1.0001 / 254, 0x1p-127);
		if (codec == SKEP_CODEC_E3M0)
			off += fmax((size + off) * (1 + 0x1p-20) / 3, 0x1p-127);
	}
	return off;
}

static void check_sum(const struct ring *ring, uint32_t members, enum skep_codec codec, const float *mean)
{
	double largest_off = 0, largest = 0;
	for (uint32_t c = 0; c < members; c++) {
		uint64_t begin, count;
		skep_chunk_range(ring->parameters, c, members, &begin, &count);
		for (size_t i = begin; i < begin + count; i++) {
			double sum = partial_sum(ring, members, c, members, i);
			double got = (double)mean[i] * 2 * members, off = fabs(got - sum);
			double most = allowed(
				ring, members, members > 1 ? codec : SKEP_CODEC_NONE, c, begin, begin + count, i);
			if (!(off <= most + 0x1p-23 * fabs(sum)))
				fail_msg("codec %d, %u members, parameter %zu: %g for %g, off by more than %g",
					(int)codec, members, i, got, sum, most);
			largest_off = fmax(largest_off, off);
			largest = fmax(largest, fabs(sum));
		}
	}
	/* What was encoded is seen to have been. */
	double least = codec == SKEP_CODEC_NONE || members == 1 ? 0 : codec == SKEP_CODEC_FP16 ? 1e-5 : 1e-4;
	assert_true(largest > 1 && largest_off >= least * largest);
	assert_true(least > 0 || largest_off < 1e-6 * largest);
}

static void check_ring(uint32_t members, enum skep_codec codec)
{
	static struct ring ring;
	uint64_t bytes;
	ring_init(&ring, members, codec);
	if (members > 1)
		job_reduce(ring.job, members, 0, 7);
	struct skep_op step = {.kind = SKEP_OP_STEP, .round = 7, .size = members, .microbatches = 2 * members};
	for (uint32_t m = 0; m < members; m++) {
		job_run(ring.job[m].device[0], step);
		assert_true(parameters_digest(ring.job[m].device[0]) == parameters_digest(ring.job[0].device[0]));
	}
	float *after = job_dump(ring.job[0].device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	check_sum(&ring, members, codec, after + SKEP_STATE_HEADER_BYTES / sizeof(float) + ring.parameters);
	free(after);
	for (uint32_t m = 0; m < members; m++) {
		free(ring.sum[m]);
		job_finish(&ring.job[m]);
	}
}

static void test_a_ring_yields_the_mean(void **state)
{
	(void)state;
	for (uint32_t members = 1; members <= MEMBERS_MAX; members++)
		for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++)
			check_ring(members, codecs[c]);
}

/* ---- payloads and stashes ----------------------------------------------------------------------------------- */

static void *fill(struct skep_device *device, uint64_t bytes, struct skep_buf *ret)
{
	void *memory;
	*ret = skep_device_buffer_create(device, bytes, &memory);
	assert_non_null(memory);
	return memory;
}

static void expect_bytes(struct skep_device *device, struct skep_buf buf, const void *expected, uint64_t n)
{
	uint64_t bytes;
	const void *data = skep_device_buffer_read(device, buf, &bytes);
	assert_int_equal(bytes, n);
	assert_memory_equal(data, expected, n);
	skep_device_buffer_release(device, buf);
}

enum { EDGE = SAMPLES * 9, EDGE_BYTES_MAX = 4 * EDGE };

/* The middle stage of three. With payloads, it does what it would have done with their decoded floats, and encodes what it
 * would have put out. */
static void check_payloads(enum skep_codec codec)
{
	struct job plain, coded;
	uint64_t bytes = skep_codec_bytes(codec, SKEP_CODEC_BLOCK, EDGE), random = 5;
	float x[EDGE];
	unsigned char expected[EDGE_BYTES_MAX];
	struct skep_buf in[2], gradient[2];
	struct skep_device_result result[2];
	job_init(&plain, 3, SKEP_ACTIVATION_GELU, 6, 9);
	job_init(&coded, 3, SKEP_ACTIVATION_GELU, 6, 9);
	coded.training.activation_codec = codec;
	job_restart(&coded);
	struct skep_device *device[2] = {plain.device[1], coded.device[1]};
	for (int side = 0; side < 2; side++) {
		struct skep_buf *buf = side ? gradient : in;
		for (size_t i = 0; i < EDGE; i++)
			x[i] = (float)skep_random_below(&random, 2000001) * 1e-6f - 1.0f;
		void *payload = fill(device[1], bytes, &buf[1]);
		skep_codec_encode(codec, SKEP_CODEC_BLOCK, EDGE, x, payload);
		skep_codec_decode(codec, SKEP_CODEC_BLOCK, EDGE, payload, fill(device[0], sizeof x, &buf[0]));
	}
	for (uint8_t kind = SKEP_OP_FORWARD; kind <= SKEP_OP_BACKWARD; kind++) {
		for (int d = 0; d < 2; d++) {
			struct skep_op op = {.kind = kind, .stage = 1, .in = in[d]};
			if (kind == SKEP_OP_BACKWARD)
				op.gradient = gradient[d], op.stash = result[d].stash;
			struct skep_device_result once = job_run(device[d], op);
			assert_int_equal(once.loss_nano, 0);
			skep_device_buffer_release(device[d], op.stash);
			result[d] = once;
		}
		uint64_t plain_bytes;
		const float *y = skep_device_buffer_read(device[0], result[0].out, &plain_bytes);
		assert_int_equal(plain_bytes, sizeof x);
		skep_codec_encode(codec, SKEP_CODEC_BLOCK, EDGE, y, expected);
		skep_device_buffer_release(device[0], result[0].out);
		expect_bytes(device[1], result[1].out, expected, bytes);
	}
	for (int d = 0; d < 2; d++) {
		skep_device_buffer_release(device[d], in[d]);
		skep_device_buffer_release(device[d], gradient[d]);
	}
	size_t n;
	float *a = job_gradients(&plain, 0, &n), *b = job_gradients(&coded, 0, &n);
	assert_memory_equal(a, b, n * sizeof *a);
	free(a), free(b);
	job_finish(&plain), job_finish(&coded);
}

static void test_a_stage_computes_on_decoded_payloads(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++)
		check_payloads(codecs[c]);
}

static void test_a_chunk_travels_encoded(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
		struct job job;
		size_t n;
		unsigned char expected[2048];
		job_init(&job, 1, SKEP_ACTIVATION_TANH, 4, 12);
		job_microbatch(&job, 1, 0);
		float *sum = job_gradients(&job, 1, &n);
		job.training.reduction_codec = codecs[c];
		for (uint32_t chunk = 0; chunk < 3; chunk++) {
			uint64_t first, count;
			struct skep_op op = {.kind = SKEP_OP_COPY_GRAD, .round = 1, .chunk = chunk, .size = 3};
			skep_chunk_range(n, chunk, 3, &first, &count);
			assert_true(4 * count <= sizeof expected);
			skep_codec_encode(codecs[c], SKEP_CODEC_BLOCK, count, sum + first, expected);
			struct skep_buf out = job_run(job.device[0], job_chunk(&job, op)).out;
			expect_bytes(
				job.device[0], out, expected, skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, count));
		}
		free(sum);
		job_finish(&job);
	}
}

/* Bytes of what a microbatch keeps between its passes; nothing else may be live but `passages` times this. */
static uint64_t kept_bytes(struct job *job, const struct job_passage *passage, uint32_t passages)
{
	uint64_t sum = 0, bytes;
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		uint32_t handles = (passage->in[s].slot != 0) + (passage->stash[s].slot != 0);
		assert_int_equal(buffers_live(job->device[s]), handles * passages);
		skep_device_buffer_read(job->device[s], passage->in[s], &bytes);
		sum += bytes;
		skep_device_buffer_read(job->device[s], passage->stash[s], &bytes);
		sum += bytes;
	}
	return sum;
}

/* Rounds of three microbatches that are all forward before the first is backward. */
static uint64_t train(struct job *job, int64_t *ret_loss)
{
	uint64_t kept = 0;
	for (uint32_t round = 0; round < 4; round++) {
		struct job_passage passage[3];
		for (uint32_t b = 0; b < 3; b++) {
			job_forward(job, round, b, &passage[b]);
			ret_loss[3 * round + b] = passage[b].loss_nano;
		}
		kept = kept_bytes(job, &passage[1], 3);
		for (uint32_t b = 0; b < 3; b++)
			job_backward(job, &passage[(b + round) % 3]);
		job_step(job, round, 3);
	}
	return kept;
}

static void check_recompute(uint32_t stages, enum skep_codec codec)
{
	struct job job[2];
	int64_t loss[2][12];
	float *parameter[2];
	size_t n;
	uint64_t kept[2], in_bytes = 0, stash_bytes = 0;
	for (uint32_t j = 0; j < 2; j++) {
		job_init(&job[j], stages, SKEP_ACTIVATION_GELU, 6, 32);
		job[j].training.activation_codec = codec;
		job[j].training.checkpoint_activations = j == 1 ? SKEP_CHECKPOINTING_ALL : SKEP_CHECKPOINTING_NONE;
		job_restart(&job[j]);
		kept[j] = train(&job[j], loss[j]);
		parameter[j] = job_parameters(&job[j], &n);
	}
	assert_memory_equal(loss[0], loss[1], sizeof loss[0]);
	assert_memory_equal(parameter[0], parameter[1], n * sizeof(float));
	for (uint32_t s = 0; s < stages; s++) {
		struct skep_cost cost;
		skep_model_cost(&job[0].model, stages, s, &cost);
		in_bytes += skep_cost_payload_bytes(&cost, codec, SKEP_CODEC_BLOCK, SAMPLES);
		stash_bytes += cost.stash_bytes * SAMPLES;
	}
	assert_int_equal(kept[1], in_bytes);
	assert_int_equal(kept[0], in_bytes + stash_bytes);
	for (uint32_t j = 0; j < 2; j++) {
		free(parameter[j]);
		job_finish(&job[j]);
	}
}

static void test_recomputing_changes_no_bit_and_keeps_only_inputs(void **state)
{
	(void)state;
	for (uint32_t stages = 1; stages <= 5; stages++)
		for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++)
			check_recompute(stages, codecs[c]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_ring_yields_the_mean),
		cmocka_unit_test(test_a_stage_computes_on_decoded_payloads),
		cmocka_unit_test(test_a_chunk_travels_encoded),
		cmocka_unit_test(test_recomputing_changes_no_bit_and_keeps_only_inputs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
