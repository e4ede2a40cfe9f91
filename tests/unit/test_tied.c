/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tied.c - a tied head in another stage than its embedding, on devices: both copies of the table begin as one, stay equal to
 * the bit whatever the encoding and however unevenly the stages have counted, moments included, and count once in the norm. That
 * what they learn is what one device learns is shown by tests/exec/equal.sh.
 */
#include "tests/unit/job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/squares.h"
#include "models/tokens.h"

static void init(struct job *job, enum skep_codec codec)
{
	char path[512];
	struct skep_diag diag = {0};
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	if (!skep_file_find(__FILE__, "models/tiny-gpt2.yaml", path, sizeof path) ||
		!skep_model_read(path, &job->model, &diag))
		fail_msg("run in the source tree: no tiny-gpt2 from %s", __FILE__);
	job->model.tied = true;
	skep_model_part(&job->model, 2);
	assert_true(!job->model.tied && job->model.copied);
	job->plan.stages = job->plan.workers = 2;
	job->plan.tied = skep_model_copied(&job->model);
	job->plan.reduction_codec = job->training.reduction_codec = codec;
	job->training.samples = 2;
	job->training.corpus = SKEP_CORPUS_TOKENS;
	job->training.tokens = job_open_text(job->model.sequence);
	job_restart(job);
}

static void finish(struct job *job)
{
	job_finish(job);
	skep_tokens_close((struct skep_tokens *)job->training.tokens);
	skep_model_finish(&job->model);
}

static size_t parameters_of(const struct job *job, uint32_t stage)
{
	struct skep_cost cost;
	skep_model_cost(&job->model, 2, stage, &cost);
	return cost.parameters;
}

static struct skep_op tied_op(const struct job *job, enum skep_op_kind kind, uint32_t stage, uint32_t round)
{
	return (struct skep_op){.kind = (uint8_t)kind,
		.lane = SKEP_LANE_REDUCE,
		.stage = (uint16_t)stage,
		.round = round,
		.size = 1,
		.first = stage == 0 ? 0 : parameters_of(job, stage) - job->plan.tied,
		.count = job->plan.tied};
}

/* Parameters and moments of the stage's copy; the number of steps is the header's last field. */
static float *copy_of(struct job *job, uint32_t stage, uint64_t *ret_steps)
{
	uint64_t bytes;
	size_t n = parameters_of(job, stage), tied = job->plan.tied;
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

/* Are they equal, and have they changed since? */
static void check_copies(struct job *job, float **last, bool changed, uint64_t steps)
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

/* `first` microbatches are counted in the first stage, `second` in the last one; then both step. Returns the square of the norm
 * as they were told. */
static double round_of(struct job *job, uint32_t round, uint32_t first, uint32_t second)
{
	uint32_t counted[2] = {first, second};
	for (uint32_t m = 0; m < first || m < second; m++) {
		struct job_passage passage;
		job_forward(job, round, m, &passage);
		passage.first = m >= first;
		passage.last = m < second;
		job_backward(job, &passage);
	}
	struct skep_buf told[2];
	for (uint32_t s = 0; s < 2; s++)
		told[s] = job_run(job->device[s], tied_op(job, SKEP_OP_TIE_GIVE, s, round)).out;
	for (uint32_t s = 0; s < 2; s++) {
		struct skep_op take = tied_op(job, SKEP_OP_TIE_TAKE, s, round);
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

static void test_copies_stay_equal(void **state)
{
	(void)state;
	static const enum skep_codec codecs[] = {SKEP_CODEC_NONE, SKEP_CODEC_FP16, SKEP_CODEC_INT8};
	for (size_t c = 0; c < sizeof codecs / sizeof codecs[0]; c++) {
		static struct job job;
		float *copy = NULL;
		init(&job, codecs[c]);
		check_copies(&job, &copy, false, 0);
		round_of(&job, 0, 2, 2);
		check_copies(&job, &copy, true, 1);
		round_of(&job, 1, 3, 1); /* some were lost in the last stage */
		check_copies(&job, &copy, true, 2);
		round_of(&job, 2, 0, 2); /* and here all in the first one */
		check_copies(&job, &copy, true, 3);
		round_of(&job, 3, 0, 0);
		check_copies(&job, &copy, false, 3);
		free(copy);
		finish(&job);
	}
}

/* Of all gradients as accumulators have them, the table's as the sum of both means. */
static void test_the_table_counts_once(void **state)
{
	(void)state;
	static struct job job;
	uint64_t bytes;
	float *sum[2];
	double expected = 0;
	init(&job, SKEP_CODEC_NONE);
	uint32_t counted[2] = {3, 2};
	size_t n[2] = {parameters_of(&job, 0), parameters_of(&job, 1)}, tied = job.plan.tied;
	for (uint32_t m = 0; m < 3; m++) {
		struct job_passage passage;
		job_forward(&job, 0, m, &passage);
		passage.last = m < 2;
		job_backward(&job, &passage);
	}
	for (uint32_t s = 0; s < 2; s++)
		sum[s] = job_dump(job.device[s],
			(struct skep_op){.kind = SKEP_OP_TAKE, .stage = (uint16_t)s, .size = 2, .count = n[s]}, &bytes);
	for (size_t i = tied; i < n[0]; i++)
		expected += pow((double)sum[0][i] / counted[0], 2);
	for (size_t i = 0; i < n[1] - tied; i++)
		expected += pow((double)sum[1][i] / counted[1], 2);
	for (size_t i = 0; i < tied; i++)
		expected += pow((double)sum[0][i] / counted[0] + (double)sum[1][n[1] - tied + i] / counted[1], 2);
	finish(&job);
	init(&job, SKEP_CODEC_NONE);
	double told = round_of(&job, 0, 3, 2);
	assert_true(fabs(told / expected - 1) < 1e-6);
	free(sum[0]), free(sum[1]);
	finish(&job);
}

static void test_what_is_no_part_of_a_table_is_refused(void **state)
{
	(void)state;
	static struct job job;
	init(&job, SKEP_CODEC_NONE);
	void *memory;
	struct skep_op take = tied_op(&job, SKEP_OP_TIE_TAKE, 0, 0);
	take.in = skep_device_buffer_create(job.device[0], 4 * job.plan.tied - 4, &memory);
	assert_true(job_run(job.device[0], take).failed);
	take.in = skep_device_buffer_create(job.device[0], 4 * job.plan.tied, &memory);
	take.first = 1;
	assert_true(job_run(job.device[0], take).failed);
	finish(&job); /* which finds no buffer left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_stay_equal),
		cmocka_unit_test(test_the_table_counts_once),
		cmocka_unit_test(test_what_is_no_part_of_a_table_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
