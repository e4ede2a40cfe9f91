/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tied_directory.c - a tied head in another stage than its embedding, on devices: both copies of the table begin as
 * one, stay equal to the bit whatever the encoding and however unevenly the stages have counted, moments included, and
 * count once in the norm. That what they learn is what one device learns is shown by tests/exec/equal.sh.
 */
#include "tests/unit/tied_job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/corpus/tokens.h"

static void init(struct job *job, enum skep_codec codec)
{
	char path[512];
	struct skep_diag diag = {0};
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	if (!skep_file_find(NULL, __FILE__, "models/tiny-gpt2.yaml", path, sizeof path) ||
		!skep_model_read(path, &job->model, &diag))
		fail_msg("run in the source tree: no tiny-gpt2 from %s", __FILE__);
	tied_init(job, codec);
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

static void test_copies_stay_equal(void **state)
{
	(void)state;
	static const enum skep_codec codecs[] = {SKEP_CODEC_NONE, SKEP_CODEC_FP16, SKEP_CODEC_INT8};
	for (size_t c = 0; c < sizeof codecs / sizeof codecs[0]; c++) {
		static struct job job;
		float *copy = NULL;
		init(&job, codecs[c]);
		tied_check_copies(&job, &copy, false, 0);
		tied_round(&job, 0, 2, 2);
		tied_check_copies(&job, &copy, true, 1);
		tied_round(&job, 1, 3, 1); /* some were lost in the last stage */
		tied_check_copies(&job, &copy, true, 2);
		tied_round(&job, 2, 0, 2); /* and here all in the first one */
		tied_check_copies(&job, &copy, true, 3);
		tied_round(&job, 3, 0, 0);
		tied_check_copies(&job, &copy, false, 3);
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
	size_t n[2] = {tied_parameters(&job, 0), tied_parameters(&job, 1)}, tied = job.plan.tied;
	for (uint32_t m = 0; m < 3; m++) {
		struct job_passage passage;
		job_forward(&job, 0, m, &passage);
		passage.last = m < 2;
		job_backward(&job, &passage);
	}
	for (uint32_t s = 0; s < 2; s++)
		sum[s] = job_dump(job.device[s],
			(struct skep_op){.kind = SKEP_OP_COPY_GRAD, .stage = (uint16_t)s, .size = 2, .count = n[s]},
			&bytes);
	for (size_t i = tied; i < n[0]; i++)
		expected += pow((double)sum[0][i] / counted[0], 2);
	for (size_t i = 0; i < n[1] - tied; i++)
		expected += pow((double)sum[1][i] / counted[1], 2);
	for (size_t i = 0; i < tied; i++)
		expected += pow((double)sum[0][i] / counted[0] + (double)sum[1][n[1] - tied + i] / counted[1], 2);
	finish(&job);
	init(&job, SKEP_CODEC_NONE);
	double told = tied_round(&job, 0, 3, 2);
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
	struct skep_op take = tied_op(&job, SKEP_OP_STORE_TIED, 0, 0);
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
