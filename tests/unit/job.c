/* SPDX-License-Identifier: Apache-2.0
 *
 * job.c - drives the devices of job.h as the core would, one operation after the other.
 */
#include "tests/unit/job.h"
#include "tests/unit/fresh.h"

#include "core/square.h"
#include "tests/unit/observed_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/text.h"

void job_init(struct job *job, uint32_t stages, enum skep_activation activation, uint32_t layers, uint32_t hidden)
{
	*job = (struct job){
		.model = {.name = "test", .activation = activation, .layers = layers, .width = job->width},
		.plan = {.workers = stages, .stages = stages, .microbatches = 8, .seed = 3},
		.training = {.samples = SAMPLES,
			.optimizer = {.kind = SKEP_OPTIMIZER_ADAMW,
				.learning_rate = 2e-3f,
				.momentum = 0.9f,
				.beta1 = 0.9f,
				.beta2 = 0.999f,
				.epsilon = 1e-8f,
				.weight_decay = 0.01f}},
	};
	job->training.model = &job->model;
	job->training.plan = &job->plan;
	for (uint32_t i = 1; i < layers; i++)
		job->width[i] = hidden;
	job->width[0] = job->width[layers] = 1;
	job_restart(job);
}

void job_restart(struct job *job)
{
	struct skep_diag error;
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		skep_device_destroy(job->device[s]);
		job->device[s] = skep_device_create_on(job->kind, &(struct skep_device_place){.threads = job->threads},
			&job->training, s, fresh(&error));
		assert_non_null(job->device[s]);
	}
}

void job_finish(struct job *job)
{
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		assert_int_equal(buffers_live(job->device[s]), 0);
		skep_device_destroy(job->device[s]);
	}
}

struct skep_device_result job_run(struct skep_device *device, struct skep_op op)
{
	struct skep_device_result result;
	skep_device_run(device, &op, &result);
	return result;
}

/* The buffer of one device as a buffer of another; the first is released. */
struct skep_buf job_carry(struct skep_device *from, struct skep_buf buf, struct skep_device *to)
{
	uint64_t bytes;
	void *memory;
	const void *data = skep_device_buffer_read(from, buf, &bytes);
	assert_non_null(data);
	struct skep_buf copy = skep_device_buffer_create(to, bytes, &memory);
	memcpy(memory, data, bytes);
	skep_device_buffer_release(from, buf);
	return copy;
}

void job_forward(struct job *job, uint32_t round, uint32_t microbatch, struct job_passage *ret)
{
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .round = round, .microbatch = microbatch};
	*ret = (struct job_passage){.round = round, .microbatch = microbatch, .last = job->plan.stages - 1};
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		op.stage = (uint16_t)s, op.in = ret->in[s];
		struct skep_device_result result = job_run(job->device[s], op);
		ret->stash[s] = result.stash;
		ret->loss_nano = result.loss_nano;
		if (s + 1 < job->plan.stages)
			ret->in[s + 1] = job_carry(job->device[s], result.out, job->device[s + 1]);
	}
}

void job_backward(struct job *job, const struct job_passage *passage)
{
	struct skep_op op = {.kind = SKEP_OP_BACKWARD, .round = passage->round, .microbatch = passage->microbatch};
	struct skep_buf gradient = {0};
	for (uint32_t s = job->plan.stages; s--;) {
		op.stage = (uint16_t)s, op.in = passage->in[s], op.stash = passage->stash[s], op.gradient = gradient;
		op.uncounted = s < passage->first || s > passage->last;
		struct skep_device_result result = job_run(job->device[s], op);
		assert_int_equal(result.loss_nano, 0);
		skep_device_buffer_release(job->device[s], op.in);
		skep_device_buffer_release(job->device[s], op.stash);
		skep_device_buffer_release(job->device[s], gradient);
		bool sends = s > 0 && !skep_plan_is_frozen(&job->plan, s - 1);
		assert_int_equal(result.out.slot != 0, sends);
		gradient = sends ? job_carry(job->device[s], result.out, job->device[s - 1]) : (struct skep_buf){0};
	}
}

int64_t job_microbatch(struct job *job, uint32_t round, uint32_t microbatch)
{
	struct job_passage passage;
	job_forward(job, round, microbatch, &passage);
	job_backward(job, &passage);
	return passage.loss_nano;
}

/* As the directory adds it up. */
static uint64_t norm_square(struct job *job, uint32_t round, uint32_t microbatches)
{
	uint64_t total = 0;
	for (uint32_t s = 0; s < job->plan.stages && job->plan.clip; s++) {
		struct skep_op op = {.kind = SKEP_OP_NORM, .stage = (uint16_t)s, .round = round, .size = 1};
		uint64_t square = skep_square_divide(job_run(job->device[s], op).square, microbatches);
		total = skep_square_add(total, skep_square_divide(square, microbatches));
	}
	return total;
}

void job_step(struct job *job, uint32_t round, uint32_t microbatches)
{
	uint64_t square = norm_square(job, round, microbatches);
	for (uint32_t s = 0; s < job->plan.stages; s++)
		job_run(job->device[s], (struct skep_op){.kind = SKEP_OP_STEP,
						.stage = (uint16_t)s,
						.round = round,
						.size = 1,
						.square = square,
						.microbatches = microbatches});
}

/* Each chunk once around the ring: the first member takes, the others add, the last stores, then the rest store. */
void job_reduce(struct job *job, uint32_t members, uint32_t stage, uint32_t round)
{
	for (uint32_t c = 0; c < members; c++) {
		struct skep_op op = {.kind = SKEP_OP_COPY_GRAD, .stage = (uint16_t)stage, .round = round, .chunk = c};
		op.size = members;
		op = job_chunk(job, op);
		struct skep_device *at = job[c].device[stage];
		struct skep_buf buf = job_run(at, op).out;
		for (uint32_t hop = 1; hop < 2 * members - 1; hop++) {
			struct skep_device *next = job[(c + hop) % members].device[stage];
			op.in = job_carry(at, buf, next);
			op.kind = hop + 1 < members    ? SKEP_OP_ADD
			          : hop + 1 == members ? SKEP_OP_ADD_STORE
			                               : SKEP_OP_STORE;
			buf = job_run(next, op).out;
			assert_true(buf.slot != 0);
			at = next;
		}
		skep_device_buffer_release(at, buf);
	}
}

/* A device's state or, with COPY_GRAD, the accumulator of the round, as floats in memory of the caller's to free. */
float *job_dump(struct skep_device *device, struct skep_op op, uint64_t *ret_bytes)
{
	struct skep_device_result result = job_run(device, op);
	const void *data = skep_device_buffer_read(device, result.out, ret_bytes);
	assert_non_null(data);
	float *copy = malloc(*ret_bytes + 1);
	assert_non_null(copy);
	memcpy(copy, data, *ret_bytes);
	skep_device_buffer_release(device, result.out);
	return copy;
}

static float *append(float *all, size_t *n, const float *more, size_t count)
{
	all = realloc(all, (*n + count) * sizeof *all);
	assert_non_null(all);
	memcpy(all + *n, more, count * sizeof *all);
	*n += count;
	return all;
}

float *job_parameters(struct job *job, size_t *ret_n)
{
	float *all = NULL;
	uint64_t bytes;
	*ret_n = 0;
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		struct skep_cost cost;
		skep_model_cost(&job->model, job->plan.stages, s, &cost);
		float *one =
			job_dump(job->device[s], (struct skep_op){.kind = SKEP_OP_SAVE, .stage = (uint16_t)s}, &bytes);
		assert_int_equal(bytes, skep_device_state_bytes(skep_training_stepper(&job->training), cost.parameters,
						cost.trained, 1));
		all = append(all, ret_n, one + SKEP_STATE_HEADER_BYTES / sizeof(float), cost.parameters);
		free(one);
	}
	return all;
}

float *job_gradients(struct job *job, uint32_t round, size_t *ret_n)
{
	float *all = NULL;
	uint64_t bytes;
	*ret_n = 0;
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		struct skep_op take = {.kind = SKEP_OP_COPY_GRAD, .stage = (uint16_t)s, .round = round, .size = 1};
		float *one = job_dump(job->device[s], job_chunk(job, take), &bytes);
		all = append(all, ret_n, one, bytes / sizeof(float));
		free(one);
	}
	return all;
}

struct skep_device_result job_load(struct skep_device *device, uint32_t stage, const void *state, uint64_t bytes)
{
	void *memory;
	struct skep_buf in = skep_device_buffer_create(device, bytes, &memory);
	memcpy(memory, state, bytes);
	struct skep_device_result result =
		job_run(device, (struct skep_op){.kind = SKEP_OP_LOAD, .stage = (uint16_t)stage, .in = in});
	skep_device_buffer_release(device, in);
	return result;
}

struct skep_op job_chunk(const struct job *job, struct skep_op op)
{
	struct skep_cost cost;
	skep_model_cost(&job->model, job->plan.stages, op.stage, &cost);
	skep_chunk_range(cost.trained, op.chunk, op.size, &op.first, &op.count);
	op.first += cost.frozen;
	return op;
}

struct skep_tokens *job_open_text(uint32_t length)
{
	struct skep_diag diag = {0};
	struct skep_tokens *tokens = text_open(__FILE__, length, &diag);
	if (!tokens)
		fail_msg("%s: %s", diag.file, diag.message);
	return tokens;
}

void job_read_model(const char *name, struct skep_model *ret)
{
	char path[512], wanted[64];
	struct skep_diag diag = {0};
	snprintf(wanted, sizeof wanted, "models/%s.yaml", name);
	if (!skep_file_find(NULL, __FILE__, wanted, path, sizeof path))
		fail_msg("run in the source tree: no %s from %s", wanted, __FILE__);
	if (!skep_model_read(path, ret, &diag))
		fail_msg("%s: %s", path, diag.message);
}
