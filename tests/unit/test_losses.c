/* SPDX-License-Identifier: Apache-2.0
 *
 * test_losses.c - DISCARD on a device (schedule.on_loss: void): of what was counted before it nothing is left, and what is
 * counted after it makes the step that it would have made alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job.h"

static void begin(struct job *job)
{
	job_init(job, 2, SKEP_ACTIVATION_TANH, 4, 6);
	job->plan.on_loss = SKEP_ON_LOSS_VOID;
}

static void discard(struct job *job, uint32_t round)
{
	for (uint32_t stage = 0; stage < 2; stage++) {
		struct skep_op op = {.kind = SKEP_OP_DISCARD, .stage = (uint16_t)stage, .round = round};
		assert_false(job_run(job->device[stage], op).failed);
	}
}

static void test_nothing_is_left(void **state)
{
	(void)state;
	struct job job;
	size_t n, nonzero = 0;
	begin(&job);
	for (uint32_t round = 0; round < 2; round++) { /* there is an accumulator for each parity */
		job_microbatch(&job, round, 0);
		float *sum = job_gradients(&job, round, &n);
		for (size_t i = 0; i < n; i++)
			nonzero += sum[i] != 0;
		assert_true(nonzero > 0);
		free(sum);
		discard(&job, round);
		sum = job_gradients(&job, round, &n);
		for (size_t i = 0; i < n; i++)
			assert_true(sum[i] == 0);
		free(sum);
		job_step(&job, round, 0);
	}
	job_finish(&job);
}

static void test_what_comes_after_makes_the_step_alone(void **state)
{
	(void)state;
	struct job voided, alone;
	size_t n;
	begin(&voided);
	begin(&alone);
	job_microbatch(&voided, 0, 0);
	job_microbatch(&voided, 0, 1);
	discard(&voided, 0);
	job_microbatch(&voided, 0, 8);
	job_microbatch(&alone, 0, 8);
	job_step(&voided, 0, 1);
	job_step(&alone, 0, 1);
	float *a = job_parameters(&voided, &n), *b = job_parameters(&alone, &n);
	assert_memory_equal(a, b, n * sizeof *a);
	free(a);
	free(b);
	job_finish(&voided);
	job_finish(&alone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_left),
		cmocka_unit_test(test_what_comes_after_makes_the_step_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
