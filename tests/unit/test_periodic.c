/* SPDX-License-Identifier: Apache-2.0
 *
 * test_periodic.c - periodic sync on devices: inner steps, the pseudo-gradient and the outer step against their formulas; what is
 * in a state; H = 1 against a synchronous step; and which step a microbatch belongs to.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job.h"
#include "tests/unit/observed_device.h"

#define RATE 0.01f

static void begin(struct job *job, uint32_t inner_steps)
{
	job_init(job, 1, SKEP_ACTIVATION_TANH, 2, 6);
	job->plan.inner.steps = inner_steps;
	job->training.optimizer = (struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = RATE};
	job->training.outer =
		(struct skep_optimizer){.kind = SKEP_OPTIMIZER_NESTEROV, .learning_rate = 0.7f, .momentum = 0.9f};
	job_restart(job);
}

static void run(struct job *job, enum skep_op_kind kind, uint32_t round, uint32_t microbatches, uint32_t nth)
{
	struct skep_op op = {.kind = (uint8_t)kind, .round = round, .microbatches = microbatches, .chunk = nth};
	assert_false(job_run(job->device[0], op).failed);
}

static void near(const float *a, const float *b, size_t n, float most)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabsf(a[i] - b[i]) <= most))
			fail_msg("element %zu is %.9g, not %.9g", i, (double)a[i], (double)b[i]);
}

/* Two inner steps and an outer one, twice, beside the same in plain loops. The gradient of the second step is taken where the
 * first one has led: the device's own gradient differs from that at the parameters of the stage. */
static void test_two_rounds_against_the_formulas(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	begin(&job, 2);
	float *w = job_parameters(&job, &n), *velocity = calloc(n, sizeof *w), *v = malloc(n * sizeof *w);
	for (uint32_t round = 0; round < 2; round++) {
		memcpy(v, w, n * sizeof *v);
		for (uint32_t nth = 0; nth < 2; nth++) {
			job_microbatch(&job, round, 2 * nth);
			job_microbatch(&job, round, 2 * nth + 1);
			float *sum = job_gradients(&job, round, &n);
			for (size_t i = 0; i < n; i++)
				v[i] -= RATE * (sum[i] / 2);
			free(sum);
			run(&job, SKEP_OP_INNER_STEP, round, 2, nth);
		}
		float *empty = job_gradients(&job, round, &n);
		for (size_t i = 0; i < n; i++)
			assert_true(empty[i] == 0);
		free(empty);
		run(&job, SKEP_OP_PSEUDO_GRAD, round, 4, 0);
		float *pseudo = job_gradients(&job, round, &n), *expected = malloc(n * sizeof *expected);
		float most = 0;
		for (size_t i = 0; i < n; i++) {
			expected[i] = 4 * (w[i] - v[i]);
			most = fmaxf(most, fabsf(expected[i]));
		}
		assert_true(most > 1e-3f);
		near(pseudo, expected, n, 1e-5f);
		job_step(&job, round, 4);
		for (size_t i = 0; i < n; i++) {
			float g = w[i] - v[i];
			velocity[i] = 0.9f * velocity[i] + g;
			w[i] -= 0.7f * (g + 0.9f * velocity[i]);
		}
		float *after = job_parameters(&job, &n);
		near(after, w, n, 1e-5f);
		free(after);
		free(pseudo);
		free(expected);
	}
	free(w);
	free(v);
	free(velocity);
	job_finish(&job);
}

/* The rate of an inner step follows the steps of the run, so the fourth of a warm-up over four is made with all of it. */
static void test_rates_count_inner_steps(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	begin(&job, 2);
	job.training.optimizer.rates.warmup = 4;
	job.training.outer = (struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = 1};
	job_restart(&job);
	for (uint32_t step = 0; step < 4; step++) {
		float *before = job_parameters(&job, &n);
		job_microbatch(&job, step / 2, step);
		float *sum = job_gradients(&job, step / 2, &n);
		run(&job, SKEP_OP_INNER_STEP, step / 2, 1, step % 2);
		run(&job, SKEP_OP_PSEUDO_GRAD, step / 2, 1, 0);
		float *pseudo = job_gradients(&job, step / 2, &n);
		for (size_t i = 0; i < n && step % 2 == 0;
			i++) /* the first of a round: from the parameters of the stage */
			sum[i] *= RATE * (float)(step + 1) / 4;
		if (step % 2 == 0)
			near(pseudo, sum, n, 1e-6f);
		run(&job, SKEP_OP_INNER_STEP, step / 2, 0, 0); /* clears it, and leaves the inner parameters */
		if (step % 2 == 1) {
			run(&job, SKEP_OP_PSEUDO_GRAD, step / 2, 1, 0);
			job_step(&job, step / 2, 1);
		}
		free(before);
		free(sum);
		free(pseudo);
	}
	job_finish(&job);
}

/* Who makes its first step in the fifth of the run warms up from there: it has no moments to go by yet. In the middle of the
 * run's warm-up as well as behind it; and then its rate is the run's. Its second step here is two of the run later. */
static void test_a_newcomer_warms_up_from_where_it_began(void **state)
{
	(void)state;
	static const uint32_t warmups[] = {4, 6, 1};
	static const float rates[][2] = {
		{1.f / 4, 3.f / 4}, {1.f / 6, 3.f / 6}, {1, 1}}; /* of its first and second step */
	for (uint32_t i = 0; i < 3; i++) {
		struct job job;
		size_t n;
		begin(&job, 2);
		job.training.optimizer.rates.warmup = warmups[i];
		job_restart(&job);
		for (uint32_t round = 0; round < 4; round++) {
			job_microbatch(&job, round, round);
			float *sum = job_gradients(&job, round, &n);
			run(&job, SKEP_OP_INNER_STEP, round, round < 2 ? 0 : 1, 0); /* none in the first two */
			run(&job, SKEP_OP_PSEUDO_GRAD, round, 1, 0);
			float *pseudo = job_gradients(&job, round, &n);
			for (size_t j = 0; j < n; j++)
				sum[j] *= round < 2 ? 0 : RATE * rates[i][round - 2];
			near(pseudo, sum, n, 1e-6f);
			job_step(&job, round, 1);
			free(sum);
			free(pseudo);
		}
		job_finish(&job);
	}
}

/* v -= rate g, where g is the mean gradient, made as short as `most` if it is longer, as PyTorch's clip_grad_norm_ does it.
 * Returns how long it was. */
static double clipped_step(const float *sum, float microbatches, double most, size_t n, float *v)
{
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += pow((double)(sum[i] / microbatches), 2);
	double length = sqrt(squares), scale = fmin(1, most / (length + 1e-6));
	for (size_t i = 0; i < n; i++)
		v[i] -= RATE * (float)(scale * (double)(sum[i] / microbatches));
	return length;
}

/* Each inner step clips by the norm of the worker's own gradient; one limit cuts, the other is beyond reach. */
static void test_inner_steps_are_clipped(void **state)
{
	static const float limit[] = {0.25f, 1e6f};
	(void)state;
	for (size_t l = 0; l < sizeof limit / sizeof limit[0]; l++) {
		struct job job;
		size_t n;
		begin(&job, 2);
		job.training.optimizer.clip_norm = limit[l];
		job_restart(&job);
		float *w = job_parameters(&job, &n), *v = malloc(n * sizeof *v);
		memcpy(v, w, n * sizeof *v);
		for (uint32_t nth = 0; nth < 2; nth++) {
			job_microbatch(&job, 0, 2 * nth);
			job_microbatch(&job, 0, 2 * nth + 1);
			float *sum = job_gradients(&job, 0, &n);
			double length = clipped_step(sum, 2, (double)limit[l], n, v);
			assert_true(length > 1 && length < 1e5);
			free(sum);
			run(&job, SKEP_OP_INNER_STEP, 0, 2, nth);
		}
		run(&job, SKEP_OP_PSEUDO_GRAD, 0, 4, 0);
		float *pseudo = job_gradients(&job, 0, &n);
		for (size_t i = 0; i < n; i++)
			v[i] = 4 * (w[i] - v[i]);
		near(pseudo, v, n, 1e-5f);
		free(pseudo);
		free(w);
		free(v);
		job_finish(&job);
	}
}

/* With delayed updates STEP comes when the worker has gone on: it keeps `mixing` of the way that it is from the stage. */
static void test_mixing(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	begin(&job, 1);
	job.plan.delayed = true;
	job.training.mixing = 0.25f;
	job_restart(&job);
	job_microbatch(&job, 0, 0);
	run(&job, SKEP_OP_INNER_STEP, 0, 1, 0);
	run(&job, SKEP_OP_PSEUDO_GRAD, 0, 1, 0);
	float *old = job_parameters(&job, &n);
	job_microbatch(&job, 1, 0);
	run(&job, SKEP_OP_INNER_STEP, 1, 1, 0);
	run(&job, SKEP_OP_PSEUDO_GRAD, 1, 1, 0);
	float *both = job_gradients(&job, 1, &n); /* w0 - v, both steps */
	job_step(&job, 0, 1);
	float *new = job_parameters(&job, &n);
	run(&job, SKEP_OP_INNER_STEP, 1, 0, 0);
	run(&job, SKEP_OP_PSEUDO_GRAD, 1, 1, 0);
	float *left = job_gradients(&job, 1, &n), *expected = malloc(n * sizeof *expected);
	for (size_t i = 0; i < n; i++) {
		float v = old[i] - both[i];
		expected[i] = 0.25f * (new[i] - v);
	}
	near(left, expected, n, 1e-6f);
	free(old), free(both), free(new), free(left), free(expected);
	job_finish(&job);
}

/* A state is that of the stage: outer parameters and outer moments. Who loads it is where the stage is. */
static void test_a_state_has_no_inner_part(void **state)
{
	(void)state;
	struct job job, newcomer;
	uint64_t bytes;
	size_t n;
	begin(&job, 4);
	begin(&newcomer, 4);
	job.training.optimizer.kind = newcomer.training.optimizer.kind =
		SKEP_OPTIMIZER_ADAMW; /* two moments, not one */
	job_restart(&job);
	job_restart(&newcomer);
	job_microbatch(&job, 0, 0);
	run(&job, SKEP_OP_INNER_STEP, 0, 1, 0);
	float *kept = job_dump(job.device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	free(job_parameters(&job, &n));
	assert_int_equal(bytes, SKEP_STATE_HEADER_BYTES + sizeof(float) * n * 2);
	job_microbatch(&newcomer, 0, 1);
	run(&newcomer, SKEP_OP_INNER_STEP, 0, 1, 0);
	assert_false(job_load(newcomer.device[0], 0, kept, bytes).failed);
	run(&newcomer, SKEP_OP_PSEUDO_GRAD, 0, 7, 0);
	float *zero = job_gradients(&newcomer, 0, &n);
	for (size_t i = 0; i < n; i++)
		assert_true(zero[i] == 0);
	assert_true(parameters_digest(job.device[0]) == parameters_digest(newcomer.device[0]));
	struct device_memory memory = device_memory_of(job.device[0]);
	assert_int_equal(memory.weights_bytes, 2 * sizeof(float) * n);
	assert_int_equal(memory.optimizer_bytes, 3 * sizeof(float) * n);
	free(kept);
	free(zero);
	job_finish(&job);
	job_finish(&newcomer);
}

/* Two members of unequal shares, one inner step of plain descent each, and an outer one of rate 1: what both together make of
 * all microbatches in a synchronous step. With the weights left out the larger share would count too little. */
static void test_one_step_is_plain_data_parallelism(void **state)
{
	(void)state;
	static struct job plain[2], inner[2];
	size_t n;
	for (uint32_t m = 0; m < 2; m++) {
		begin(&plain[m], 0);
		begin(&inner[m], 1);
		inner[m].training.outer = (struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = 1};
		job_restart(&inner[m]);
	}
	for (uint32_t round = 0; round < 20; round++) {
		struct skep_op step = {.kind = SKEP_OP_STEP, .round = round, .size = 2, .microbatches = 4};
		for (uint32_t b = 0; b < 4; b++) {
			job_microbatch(&plain[b > 0], round, b);
			job_microbatch(&inner[b > 0], round, b);
		}
		for (uint32_t m = 0; m < 2; m++) {
			run(&inner[m], SKEP_OP_INNER_STEP, round, m ? 3 : 1, 0);
			run(&inner[m], SKEP_OP_PSEUDO_GRAD, round, m ? 3 : 1, 0);
		}
		job_reduce(plain, 2, 0, round);
		job_reduce(inner, 2, 0, round);
		for (uint32_t m = 0; m < 2; m++) {
			assert_false(job_run(plain[m].device[0], step).failed);
			assert_false(job_run(inner[m].device[0], step).failed);
		}
		float *a = job_parameters(&plain[0], &n), *b = job_parameters(&inner[0], &n);
		float *c = job_parameters(&inner[1], &n);
		near(b, a, n, 2e-6f);
		assert_memory_equal(b, c, n * sizeof *b);
		free(a), free(b), free(c);
	}
	for (uint32_t m = 0; m < 2; m++) {
		job_finish(&plain[m]);
		job_finish(&inner[m]);
	}
}

/* Two fragments in turn, one inner step each round: PSEUDO_GRAD and STEP leave the other half alone, and what a worker has learnt
 * in it is in the pseudo-gradient of its next turn: both steps. */
static void test_fragments_in_turn(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	begin(&job, 1);
	job.plan.inner.fragments = 2;
	job.training.outer = (struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = 0.5f};
	job_restart(&job);
	float *start = job_parameters(&job, &n), *moved = calloc(n, sizeof *moved);
	for (uint32_t round = 0; round < 2; round++) {
		struct skep_op op = {.kind = SKEP_OP_PSEUDO_GRAD, .round = round, .microbatches = 2, .size = 1};
		float *before = job_parameters(&job, &n);
		job_microbatch(&job, round, 0);
		float *sum = job_gradients(&job, round, &n);
		for (size_t i = 0; i < n; i++)
			moved[i] += RATE * sum[i];
		run(&job, SKEP_OP_INNER_STEP, round, 1, 0);
		skep_chunk_range(n, round, 2, &op.first, &op.count);
		assert_false(job_run(job.device[0], op).failed);
		float *pseudo = job_gradients(&job, round, &n);
		op.kind = SKEP_OP_STEP;
		assert_false(job_run(job.device[0], op).failed);
		float *after = job_parameters(&job, &n);
		for (size_t i = 0; i < n; i++) {
			bool in = i >= op.first && i < op.first + op.count;
			assert_true(fabsf(pseudo[i] - (in ? 2 * moved[i] : 0)) <= 2e-6f);
			assert_true(in ? fabsf(after[i] - (start[i] - moved[i] / 2)) <= 2e-6f : after[i] == before[i]);
			moved[i] = in ? 0 : moved[i]; /* it is where the stage is */
		}
		free(before), free(sum), free(pseudo), free(after);
	}
	free(start), free(moved);
	job_finish(&job);
}

static void begin_async(struct job *job, float rate, float momentum, uint32_t turns)
{
	begin(job, 1);
	job->plan.async.on = job->plan.delayed = true;
	job->training.outer = (struct skep_optimizer){
		.kind = SKEP_OPTIMIZER_DELAYED_NESTEROV, .learning_rate = rate, .momentum = momentum, .turns = turns};
	job_restart(job);
}

static void go(struct job *job, uint32_t microbatch)
{
	job_microbatch(job, 0, microbatch);
	run(job, SKEP_OP_INNER_STEP, 0, 1, 0);
}

static void merge(struct job *job, uint32_t version, enum skep_outer_update kind)
{
	struct skep_op op = {
		.kind = SKEP_OP_STEP, .round = version, .microbatches = 1, .size = 1, .update = (uint8_t)kind};
	assert_false(job_run(job->device[0], op).failed);
}

/* What the worker would merge now, as others would get it. */
static float *pseudo_of(struct job *job)
{
	size_t n;
	run(job, SKEP_OP_PSEUDO_GRAD, 0, 1, 0);
	return job_gradients(job, 0, &n);
}

/* Six merges with a momentum that moves once in three, beside algorithm 3 of Liu et al. 2024 in plain loops, with c = 0. */
static void test_delayed_nesterov_against_its_algorithm(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	begin_async(&job, 0.7f, 0.9f, 3);
	float *w = job_parameters(&job, &n), *m = calloc(n, sizeof *m), *delta = calloc(n, sizeof *delta), most = 0;
	for (uint32_t t = 0; t < 6; t++) {
		bool last = t % 3 == 2;
		go(&job, 2 * t);
		float *g = pseudo_of(&job);
		if (t % 2 == 0) /* while its merge is under way */
			go(&job, 2 * t + 1);
		for (size_t i = 0; i < n; i++) {
			most = fmaxf(most, fabsf(g[i]));
			delta[i] += g[i];
			m[i] = last ? 0.9f * m[i] + delta[i] / 3 : m[i];
			w[i] -= 0.7f * ((last ? 0.9f * m[i] : 0) + g[i] / 3);
			delta[i] = last ? 0 : delta[i];
		}
		merge(&job, t, SKEP_OUTER_UPDATE_OWN);
		float *after = job_parameters(&job, &n);
		near(after, w, n, 1e-6f);
		free(g), free(after);
	}
	assert_true(most > 1e-3f);
	free(w), free(m), free(delta);
	job_finish(&job);
}

/* What it does after PSEUDO_GRAD is in its next one, all of it and nothing else: after its own merge, here of rate 0,
 * as after one of another worker, which changes the stage's parameters and not its own. */
static void test_nothing_is_lost_beside_a_merge(void **state)
{
	(void)state;
	struct job whole;
	size_t n;
	begin_async(&whole, 0, 0, 2);
	go(&whole, 0);
	go(&whole, 1);
	float *both = pseudo_of(&whole);
	for (int other = 0; other < 2; other++) {
		struct job job;
		begin_async(&job, (float)other, 0, 2);
		float *start = job_parameters(&job, &n), moved = 0;
		go(&job, 0);
		float *first = pseudo_of(&job);
		go(&job, 1);
		merge(&job, 0, other ? SKEP_OUTER_UPDATE_OTHER : SKEP_OUTER_UPDATE_OWN);
		float *after = job_parameters(&job, &n), *second = pseudo_of(&job);
		for (size_t i = 0; i < n; i++) {
			moved = fmaxf(moved, fabsf(after[i] - start[i]));
			first[i] += second[i];
		}
		near(first, both, n, 1e-6f);
		assert_true((moved > 1e-3f) == (other == 1));
		free(start), free(first), free(after), free(second);
		job_finish(&job);
	}
	free(both);
	job_finish(&whole);
}

/* Who has done nothing takes the new parameters for its own. */
static void test_a_fresh_worker_follows(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	begin_async(&job, 1, 0, 2);
	float *start = job_parameters(&job, &n);
	go(&job, 0);
	float *g = pseudo_of(&job);
	merge(&job, 0, SKEP_OUTER_UPDATE_FRESH);
	float *w = job_parameters(&job, &n), *none = pseudo_of(&job);
	for (size_t i = 0; i < n; i++) {
		assert_true(fabsf(w[i] - (start[i] - g[i] / 2)) <= 1e-6f);
		assert_true(none[i] == 0);
	}
	free(start), free(g), free(w), free(none);
	job_finish(&job);
}

/* Three parts, of weights 1 to 3 or nothing, are collected, and a step is made of them. */
static void merge_gathered(struct job *job, uint32_t version, const uint32_t *weight)
{
	struct skep_op op = {
		.kind = SKEP_OP_PACK_PART, .round = version, .lane = SKEP_LANE_REDUCE, .size = 3, .attempt = 1};
	size_t n;
	uint32_t all = 0;
	free(job_parameters(job, &n));
	op.count = n;
	for (uint32_t rank = 0; rank < 3; rank++) {
		op.microbatch = rank;
		op.microbatches = weight[rank];
		struct skep_op collect = op;
		collect.kind = SKEP_OP_UNPACK_PART;
		collect.in = job_run(job->device[0], op).out;
		assert_false(job_run(job->device[0], collect).failed);
		all += weight[rank];
	}
	op.kind = SKEP_OP_AGGREGATE;
	assert_false(job_run(job->device[0], op).failed);
	struct skep_op step = {.kind = SKEP_OP_STEP,
		.round = version,
		.microbatches = all,
		.size = 3,
		.update = SKEP_OUTER_UPDATE_OWN};
	assert_false(job_run(job->device[0], step).failed);
}

/* Of three that are to be compared. The parts have the same sum, of one microbatch, two and three: the median is half of it. */
static void test_a_merge_of_too_few_is_nothing(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	begin_async(&job, 1, 0, 1);
	job.plan.reduction.gather = true;
	job.plan.async.group_size = 3;
	job.training.robust = (struct skep_robust){.method = SKEP_ROBUST_TRIMMED_MEAN, .trim = 1};
	float *start = job_parameters(&job, &n);
	go(&job, 0);
	float *g = pseudo_of(&job);
	merge_gathered(&job, 0, (const uint32_t[]){1, 2, 0});
	float *same = job_parameters(&job, &n);
	assert_memory_equal(same, start, n * sizeof *same);
	merge_gathered(&job, 1, (const uint32_t[]){1, 2, 3});
	float *w = job_parameters(&job, &n), most = 0;
	for (size_t i = 0; i < n; i++) {
		most = fmaxf(most, fabsf(g[i]));
		start[i] -= g[i] / 2;
	}
	assert_true(most > 1e-3f);
	near(w, start, n, 1e-6f);
	free(start), free(g), free(same), free(w);
	job_finish(&job);
}

static void test_without_it_there_is_nothing_inner(void **state)
{
	(void)state;
	struct job job;
	begin(&job, 0);
	assert_true(job_run(job.device[0], (struct skep_op){.kind = SKEP_OP_INNER_STEP, .microbatches = 1}).failed);
	assert_true(job_run(job.device[0], (struct skep_op){.kind = SKEP_OP_PSEUDO_GRAD, .microbatches = 1}).failed);
	job_finish(&job);
}

static void test_which_step_a_microbatch_belongs_to(void **state)
{
	(void)state;
	struct skep_plan plan = {.microbatches = 12, .inner.steps = 3};
	assert_int_equal(skep_plan_inner_batch(&plan), 4);
	assert_int_equal(skep_plan_inner_step(&plan, 0, 3), 0);
	assert_int_equal(skep_plan_inner_step(&plan, 0, 4), 1);
	assert_int_equal(skep_plan_inner_step(&plan, 0, 11), 2);
	assert_int_equal(skep_plan_inner_step(&plan, 0, 17), 2); /* it replaces another one */
	assert_false(skep_plan_steps_beside(&plan));
	plan.delayed = true;
	assert_false(skep_plan_steps_beside(&plan));
	assert_int_equal(skep_plan_versions(&plan, 0), 1);
	/* Seven steps, three fragments, by hand: sums behind steps 2, 4 and 7. */
	plan = (struct skep_plan){.microbatches = 12, .inner.steps = 3, .inner.fragments = 3, .inner.cycle = 7};
	const uint32_t behind[] = {0, 2, 4, 7, 9, 11, 14, 16};
	for (uint32_t round = 0; round < 7; round++) {
		assert_int_equal(skep_plan_steps_before(&plan, round), behind[round]);
		assert_int_equal(skep_plan_steps(&plan, round), behind[round + 1] - behind[round]);
		assert_int_equal(skep_plan_quota(&plan, round), 4 * (behind[round + 1] - behind[round]));
	}
	assert_int_equal(skep_plan_inner_step(&plan, 1, 11), 1); /* which has two */
	assert_int_equal(skep_plan_rounds_of(&plan, 14), 6);
	assert_int_equal(skep_plan_rounds_of(&plan, 15), 7);
	plan = (struct skep_plan){.microbatches = 12, .delayed = true};
	assert_true(skep_plan_steps_beside(&plan));
	assert_int_equal(skep_plan_versions(&plan, 0), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_rounds_against_the_formulas),
		cmocka_unit_test(test_rates_count_inner_steps),
		cmocka_unit_test(test_a_newcomer_warms_up_from_where_it_began),
		cmocka_unit_test(test_inner_steps_are_clipped),
		cmocka_unit_test(test_mixing),
		cmocka_unit_test(test_a_state_has_no_inner_part),
		cmocka_unit_test(test_one_step_is_plain_data_parallelism),
		cmocka_unit_test(test_fragments_in_turn),
		cmocka_unit_test(test_delayed_nesterov_against_its_algorithm),
		cmocka_unit_test(test_nothing_is_lost_beside_a_merge),
		cmocka_unit_test(test_a_fresh_worker_follows),
		cmocka_unit_test(test_a_merge_of_too_few_is_nothing),
		cmocka_unit_test(test_without_it_there_is_nothing_inner),
		cmocka_unit_test(test_which_step_a_microbatch_belongs_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
