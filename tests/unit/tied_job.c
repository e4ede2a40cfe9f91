/* SPDX-License-Identifier: Apache-2.0
 *
 * tied_job.c - see tied_job.h.
 */
#include "tests/unit/tied_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/update/squares.h"

void tied_init(struct job *job, enum skep_codec reduction)
{
	job->model.tied = true;
	skep_model_part(&job->model, 2);
	assert_true(!job->model.tied && job->model.copied);
	job->plan.stages = job->plan.workers = 2;
	job->plan.tied = skep_model_copied(&job->model);
	job->plan.reduction.codec = job->training.reduction_codec = reduction;
}

size_t tied_parameters(const struct job *job, uint32_t stage)
{
	struct skep_cost cost;
	skep_model_cost(&job->model, 2, stage, &cost);
	return cost.parameters;
}

struct skep_op tied_op(const struct job *job, enum skep_op_kind kind, uint32_t stage, uint32_t round)
{
	return (struct skep_op){.kind = (uint8_t)kind,
		.lane = SKEP_LANE_REDUCE,
		.stage = (uint16_t)stage,
		.round = round,
		.size = 1,
		.first = stage == 0 ? 0 : tied_parameters(job, stage) - job->plan.tied,
		.count = job->plan.tied};
}

/* Parameters and moments of the stage's copy; the number of steps is the header's last field. */
static float *copy_of(struct job *job, uint32_t stage, uint64_t *ret_steps)
{
	uint64_t bytes;
	size_t n = tied_parameters(job, stage), tied = job->plan.tied;
	struct skep_op save = {.kind = SKEP_OP_SAVE, .stage = (uint16_t)stage, .size = 1};
	float *state = job_dump(job->device[stage], save, &bytes), *copy = calloc(3 * tied, sizeof *copy);
	assert_true(copy && bytes == SKEP_STATE_HEADER_BYTES + 3 * n * sizeof *state);
	memcpy(ret_steps, (const char *)state + SKEP_STATE_HEADER_BYTES - sizeof *ret_steps, sizeof *ret_steps);
	for (size_t a = 0; a < 3; a++)
		memcpy(copy + a * tied,
			state + SKEP_STATE_HEADER_BYTES / sizeof *state + a * n + (stage == 0 ? 0 : n - tied),
			tied * sizeof *copy);
	free(state);
	return copy;
}

void tied_check_copies(struct job *job, float **last, bool changed, uint64_t steps)
{
	uint64_t made[2];
	size_t bytes = 3 * job->plan.tied * sizeof(float);
	float *copy[2];
	for (uint32_t s = 0; s < 2; s++)
		copy[s] = copy_of(job, s, &made[s]);
	assert_memory_equal(copy[0], copy[1], bytes);
	assert_true(made[0] == steps && made[1] == steps);
	assert_int_equal(*last != NULL && memcmp(copy[0], *last, bytes) != 0, changed);
	free(*last);
	free(copy[1]);
	*last = copy[0];
}

/* One inner step of each stage, and what it brings. */
static void inner(struct job *job, uint32_t round, const uint32_t *counted)
{
	for (uint32_t s = 0; s < 2; s++) {
		struct skep_op op = {.kind = SKEP_OP_INNER_STEP, .stage = (uint16_t)s, .round = round};
		op.microbatches = counted[s];
		assert_false(job_run(job->device[s], op).failed);
		op.kind = SKEP_OP_PSEUDO_GRAD;
		assert_false(job_run(job->device[s], op).failed);
	}
}

double tied_round(struct job *job, uint32_t round, uint32_t first, uint32_t second)
{
	for (uint32_t m = 0; m < first || m < second; m++) {
		struct job_passage passage;
		job_forward(job, round, m, &passage);
		passage.first = m >= first;
		passage.last = m < second;
		job_backward(job, &passage);
	}
	return tied_finish(job, round, first, second);
}

double tied_finish(struct job *job, uint32_t round, uint32_t first, uint32_t second)
{
	uint32_t counted[2] = {first, second};
	if (skep_plan_periodic(&job->plan))
		inner(job, round, counted);
	struct skep_buf told[2];
	for (uint32_t s = 0; s < 2; s++)
		told[s] = job_run(job->device[s], tied_op(job, SKEP_OP_COPY_TIED, s, round)).out;
	for (uint32_t s = 0; s < 2; s++) {
		struct skep_op take = tied_op(job, SKEP_OP_STORE_TIED, s, round);
		take.in = job_carry(job->device[1 - s], told[1 - s], job->device[s]);
		assert_false(job_run(job->device[s], take).failed);
	}
	double square = 0;
	for (uint32_t part = 0; part < 4 && first > 0 && second > 0; part++) { /* two slices, and the products */
		struct skep_op norm = tied_op(job, SKEP_OP_NORM, part == 3, round);
		norm.chunk = part % 3;
		double told_square = skep_squares_decode(job_run(job->device[norm.stage], norm).square);
		double divisor = (double)counted[part == 3] * counted[part != 0];
		square += part % 3 == 0 ? told_square / divisor : (part == 1 ? 2 : -2) * told_square / divisor;
	}
	for (uint32_t s = 0; s < 2; s++) {
		struct skep_op step = {.kind = SKEP_OP_STEP, .stage = (uint16_t)s, .round = round, .size = 1};
		step.microbatches = counted[s];
		step.tied = counted[1 - s];
		assert_false(job_run(job->device[s], step).failed);
	}
	return square;
}
