/* SPDX-License-Identifier: Apache-2.0
 *
 * test_resnet.c - residual networks on the CPU device: any cut, recomputation and number of threads give the same bits; what a
 * stage costs is what it allocates, and FLOPs are those of a count by hand; running averages; and training follows PyTorch,
 * which test_resnet_double.c holds for longer.
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

#include "models/stage/stage.h"
#include "models/vision/shape.h"

/* Wants a restart. */
static void init(struct job *job, const char *name, uint32_t stages)
{
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	job_read_model(name, &job->model);
	job->plan.stages = job->plan.workers = stages;
	job->training.samples = 4;
	job->training.corpus = SKEP_CORPUS_IMAGES;
	job->training.optimizer.learning_rate = 3e-3f;
}

static void finish(struct job *job)
{
	job_finish(job);
	skep_model_finish(&job->model);
}

/* ---- cuts --------------------------------------------------------------------------------------------------------- */

enum { CUTS = 5 };

/* T = 1, 2 and 5 stages, 3 that keep no activations, and 1 with three threads. */
static void test_a_cut_changes_no_bit(void **state)
{
	static struct job job[CUTS];
	static const uint32_t stages[CUTS] = {1, 2, 5, 3, 1};
	float *parameter[CUTS];
	size_t n[CUTS];
	(void)state;
	for (uint32_t j = 0; j < CUTS; j++) {
		init(&job[j], "tiny-resnet", stages[j]);
		job[j].training.checkpoint_activations = j == 3;
		job[j].threads = j == 4 ? 3 : 0;
		job_restart(&job[j]);
	}
	for (uint32_t round = 0; round < 5; round++) {
		int64_t loss = 0;
		for (uint32_t j = 0; j < CUTS; j++) {
			int64_t now = job_microbatch(&job[j], round, 0) + job_microbatch(&job[j], round, 1);
			assert_true(j == 0 || now == loss);
			loss = now;
			job_step(&job[j], round, 2);
		}
		assert_in_range(loss, INT64_C(1000000000), INT64_C(8000000000));
	}
	for (uint32_t j = 0; j < CUTS; j++) {
		parameter[j] = job_parameters(&job[j], &n[j]);
		assert_int_equal(n[j], n[0]);
		assert_memory_equal(parameter[j], parameter[0], n[0] * sizeof(float));
	}
	for (uint32_t j = 0; j < CUTS; j++) {
		free(parameter[j]);
		finish(&job[j]);
	}
}

/* ---- costs -------------------------------------------------------------------------------------------------------- */

/* Each array of a stash is rounded up to 64 bytes. */
static void check_cost(const struct job *job, uint32_t stages)
{
	struct skep_plan plan = job->plan;
	struct skep_training training = job->training;
	plan.stages = stages;
	training.plan = &plan;
	for (uint32_t s = 0; s < stages; s++) {
		struct skep_stage stage;
		struct skep_cost cost;
		skep_model_cost(&job->model, stages, s, &cost);
		assert_true(skep_stage_init(&training, s, &stage));
		assert_int_equal(stage.parameters, cost.parameters);
		uint64_t kept = cost.stash_bytes * training.samples;
		assert_in_range(stage.stash_bytes, kept, kept + 64 * (2 * (uint64_t)stage.layers + 1));
		assert_int_equal(
			cost.activation_bytes * training.samples, s + 1 < stages ? stage.leaving * sizeof(float) : 0);
		skep_stage_finish(&stage);
	}
}

struct known { /* by hand */
	const char *name;
	uint64_t parameters, averages;
	double products; /* of numbers, forwards and of an image */
};

static void check_known(const struct known *known)
{
	struct job job;
	struct skep_cost cost;
	double flop = 0, numbers = 0, parameters = 0;
	init(&job, known->name, 1);
	skep_model_cost(&job.model, 1, 0, &cost);
	assert_int_equal(skep_resnet_averages_of(&job.model, 0, job.model.layers), known->averages);
	assert_int_equal(cost.parameters, known->parameters + known->averages);
	assert_true(cost.forward_flop == 2 * known->products && cost.backward_flop == 2 * cost.forward_flop);
	for (uint32_t l = 0; l < job.model.layers; l++) {
		struct skep_layer_products p;
		skep_model_products(&job.model, l, 1, &p);
		flop += p.flop;
		numbers += p.numbers;
		parameters += p.parameters;
	}
	assert_true(flop == cost.forward_flop && parameters == (double)cost.parameters);
	assert_true(numbers * sizeof(float) == cost.sample_bytes);
	job_restart(&job);
	for (uint32_t stages = 1; stages <= 5; stages++)
		check_cost(&job, stages);
	finish(&job);
}

/* ResNet-20: a stem of 27 x 16, in each group a first block and two like it, and 64 x 10; a norm has two parameters and averages
 * for each of its channels. Groups meet 1024, 256 and 64 pixels. ResNet-50 is table 1 of the paper, with 4.1 x 10^9 products. */
static void test_costs_are_those_of_the_papers(void **state)
{
	(void)state;
	const double first = 9 * 16 * 16 * 6, second = 9 * (16 * 32 + 5 * 32 * 32), third = 9 * (32 * 64 + 5 * 64 * 64);
	const uint64_t channels = 16 * 7 + 32 * 6 + 64 * 6;
	const uint64_t weights = 27 * 16 + (uint64_t)(first + second + third) + 64 * 10 + 10;
	const struct known known[] = {{"resnet20", weights + 2 * channels, 2 * channels,
					      1024 * (27 * 16 + first) + 256 * second + 64 * third + 640},
		{"resnet56", 853018, 2 * 2032, 0}, {"resnet50", 25557032, 53120, 4089184256}};
	assert_int_equal(known[0].parameters, 269722);
	check_known(&known[0]);
	check_known(&known[2]);
	struct job job;
	struct skep_cost cost;
	init(&job, known[1].name, 1);
	skep_model_cost(&job.model, 1, 0, &cost);
	assert_int_equal(cost.parameters, known[1].parameters + known[1].averages);
	job_finish(&job);
	skep_model_finish(&job.model);
}

/* ---- running averages --------------------------------------------------------------------------------------------- */

/* The first running mean or variance of the stem: behind a weight of 27 x 8 and two vectors. */
static double average_of(struct job *job, bool variance)
{
	size_t n;
	float *parameter = job_parameters(job, &n);
	const double ret = (double)parameter[27 * 8 + 2 * 8 + (variance ? 8 : 0)];
	free(parameter);
	return ret;
}

/* By a tenth of the way to the mean of the microbatches in each step, whatever the optimizer, its rate and its clipping. */
static void test_running_averages(void **state)
{
	struct job job;
	double first[2], both[2], none[2] = {0, 1};
	(void)state;
	init(&job, "tiny-resnet", 1);
	for (uint32_t i = 0; i < 4; i++) {
		job.training.optimizer.kind = i == 3 ? SKEP_OPTIMIZER_LAMB : SKEP_OPTIMIZER_ADAMW;
		job.plan.clip = i == 2;
		job.training.optimizer.clip_norm = i == 2 ? 1e-3f : 0;
		job_restart(&job);
		assert_true(average_of(&job, false) == none[0] && average_of(&job, true) == none[1]);
		job_microbatch(&job, 0, i == 0 ? 0 : 1);
		if (i >= 1)
			job_microbatch(&job, 0, 0);
		job_step(&job, 0, i == 0 ? 1 : 2);
		for (int v = 0; v < 2; v++) {
			const double now = average_of(&job, v == 1);
			if (i == 0)
				first[v] = now;
			else if (i == 1)
				both[v] = now;
			else
				assert_true(now == both[v]);
		}
	}
	assert_true(fabs(first[0]) > 1e-4 && first[1] > 0.9 && first[1] < 1.5);
	assert_true(both[0] != first[0] && both[1] != first[1]);
	job.training.optimizer.kind = SKEP_OPTIMIZER_ADAMW; /* and the other microbatch alone */
	job_restart(&job);
	job_microbatch(&job, 0, 1);
	job_step(&job, 0, 1);
	assert_true(fabs((first[0] + average_of(&job, false)) / 2 - both[0]) < 1e-7);
	assert_true(fabs((first[1] + average_of(&job, true)) / 2 - both[1]) < 1e-6);
	finish(&job);
}

/* ---- PyTorch ------------------------------------------------------------------------------------------------------ */

/* The first steps of those that test_resnet_double.c holds; then a number that is 0 for the one is not for the other, and a relu
 * has another slope: PyTorch in single precision leaves itself in double precision as fast. */
static void test_follows_pytorch(void **state)
{
	enum { STEPS = 30 };
	char path[512], line[128];
	struct job job;
	(void)state;
	init(&job, "tiny-resnet", 2);
	job.training.samples = 16;
	job.training.optimizer.kind = SKEP_OPTIMIZER_SGD;
	job.training.optimizer.learning_rate = 1e-2f;
	job.training.optimizer.weight_decay = 0;
	job_restart(&job);
	assert_true(skep_file_find(NULL, __FILE__, "tests/data/torch-tiny-resnet.csv", path, sizeof path));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	for (uint32_t step = 0; step < STEPS; step++) {
		assert_non_null(fgets(line, sizeof line, file));
		const double expected = strtod(line, NULL), loss = (double)job_microbatch(&job, step, 0) * 1e-9;
		if (!(fabs(loss / expected - 1) < 1e-5))
			fail_msg("step %u: %.9f, PyTorch has %.9f", step, loss, expected);
		job_step(&job, step, 1);
	}
	fclose(file);
	finish(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cut_changes_no_bit),
		cmocka_unit_test(test_costs_are_those_of_the_papers),
		cmocka_unit_test(test_running_averages),
		cmocka_unit_test(test_follows_pytorch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
