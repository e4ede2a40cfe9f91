/* SPDX-License-Identifier: Apache-2.0
 *
 * test_periods.c - stages that sum each in rounds of their own (plan->sum_every): a simulated run beside the same training by
 * hand, stage for stage, in plain loops around gradients of devices that know nothing of it; and what a STEP of a round without
 * a sum leaves as it was.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/sums.h"
#include "sim/sim.h"
#include "tests/unit/job.h"

#define FILE_NAME "scenarios/two-datacentres.yaml"
#define OUTER_RATE 0.7f
#define OUTER_MOMENTUM 0.6f

enum { ROUNDS = 8, PASSES_MOST = 4096, PIPELINES_MOST = 4, STAGES = 2 };

/* ---- a simulated run: its losses, and which pipeline counted what, in which order --------------------------------- */

struct pass {
	uint32_t round, pipeline, microbatch;
};

struct heard {
	const struct skep_plan *plan;
	uint32_t passes, pseudo[STAGES][ROUNDS], steps[STAGES][ROUNDS];
	struct pass pass[PASSES_MOST]; /* backwards, in the first stage */
	int64_t loss_nano[ROUNDS];
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct heard *heard = context;
	(void)now, (void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		heard->loss_nano[note->round] = note->value;
}

static uint32_t pipeline_of(const struct skep_plan *plan, uint32_t worker)
{
	uint32_t rank = 0;
	for (uint32_t i = 0; i < worker; i++)
		rank += plan->first_stage_of[i] == plan->first_stage_of[worker];
	return rank;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct heard *heard = context;
	if (span->kind == SKEP_OP_PSEUDO_GRAD)
		heard->pseudo[span->stage][span->round]++;
	if (span->kind == SKEP_OP_STEP)
		heard->steps[span->stage][span->round]++;
	if (span->kind != SKEP_OP_BACKWARD || span->stage > 0)
		return;
	assert_true(heard->passes < PASSES_MOST);
	heard->pass[heard->passes++] = (struct pass){span->round, pipeline_of(heard->plan, span->worker), span->number};
}

static void read_with(const char *every, struct skep_scenario *ret)
{
	char text[64];
	struct skep_diag diag = {0};
	snprintf(text, sizeof text, "sync.every=%s", every);
	const char *const sets[] = {"model.stages=2", "schedule={pipeline: 1f1b, global_batch: 64, microbatch: 4}",
		"sync={method: diloco, outer: {optimizer: nesterov, lr: 0.7, momentum: 0.6}}", text,
		"train={optimizer: {name: sgd, lr: 2.0e-4}, until: {steps: 16}}"};
	const struct skep_scenario_options options = {.set = sets, .sets = sizeof sets / sizeof *sets};
	if (!skep_scenario_read(FILE_NAME, &options, ret, &diag))
		fail_msg("%s", diag.message);
}

static skep_time simulate(struct skep_scenario *s, struct heard *heard)
{
	struct skep_recorder recorder = {.context = heard, .note = hear_note, .op = hear_op};
	struct skep_sim_result result;
	*heard = (struct heard){.plan = &s->plan};
	assert_true(skep_sim_run(s, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	return result.end_ns;
}

/* ---- by hand ------------------------------------------------------------------------------------------------------ */

struct hand {
	struct job job; /* plain devices, of which only gradients are asked */
	size_t n[STAGES];
	float *state[STAGES]; /* as SAVE says it; parameters follow the header */
	uint64_t bytes[STAGES];
	float *w[STAGES], *velocity[STAGES], *v[PIPELINES_MOST][STAGES], *sum[PIPELINES_MOST][STAGES];
	float counted[PIPELINES_MOST][STAGES], since[PIPELINES_MOST];
	uint32_t every[STAGES]; /* rounds */
};

static float *numbers_of(struct hand *h, uint32_t stage)
{
	return h->state[stage] + SKEP_STATE_HEADER_BYTES / sizeof(float);
}

static void begin(struct hand *h, const struct skep_scenario *s, const uint32_t *every)
{
	*h = (struct hand){.job = {.model = s->model, .plan = s->plan, .training = s->training}};
	struct job *job = &h->job;
	job->plan.inner.steps = 0;
	job->plan.inner.sum_every = NULL;
	job->training.model = &job->model;
	job->training.plan = &job->plan;
	job_restart(job);
	for (uint32_t stage = 0; stage < STAGES; stage++) {
		struct skep_op save = {.kind = SKEP_OP_SAVE, .stage = (uint16_t)stage};
		size_t n = s->stage[stage].parameters;
		h->state[stage] = job_dump(job->device[stage], save, &h->bytes[stage]);
		h->n[stage] = n;
		h->every[stage] = every[stage];
		h->w[stage] = malloc(n * sizeof(float));
		h->velocity[stage] = calloc(n, sizeof(float));
		memcpy(h->w[stage], numbers_of(h, stage), n * sizeof(float));
		for (uint32_t p = 0; p < PIPELINES_MOST; p++) {
			h->v[p][stage] = malloc(n * sizeof(float));
			h->sum[p][stage] = calloc(n, sizeof(float));
			memcpy(h->v[p][stage], h->w[stage], n * sizeof(float));
		}
	}
}

static void finish(struct hand *h)
{
	for (uint32_t stage = 0; stage < STAGES; stage++) {
		for (uint32_t p = 0; p < PIPELINES_MOST; p++)
			free(h->v[p][stage]), free(h->sum[p][stage]);
		free(h->w[stage]), free(h->velocity[stage]), free(h->state[stage]);
	}
	job_finish(&h->job);
}

/* Adds the gradient of a microbatch where the pipeline's workers are, and says its loss. */
static double pass(struct hand *h, const struct pass *at)
{
	struct job *job = &h->job;
	size_t all;
	for (uint32_t stage = 0; stage < STAGES; stage++) {
		memcpy(numbers_of(h, stage), h->v[at->pipeline][stage], h->n[stage] * sizeof(float));
		assert_false(job_load(job->device[stage], stage, h->state[stage], h->bytes[stage]).failed);
	}
	double loss = 1e-9 * (double)job_microbatch(job, at->round, at->microbatch);
	float *gradient = job_gradients(job, at->round, &all), *from = gradient;
	for (uint32_t stage = 0; stage < STAGES; stage++)
		for (size_t i = 0; i < h->n[stage]; i++)
			h->sum[at->pipeline][stage][i] += *from++;
	assert_int_equal(from - gradient, all);
	free(gradient);
	job_step(job, at->round, 1); /* clears the accumulators; what it makes is overwritten */
	return loss;
}

static void inner_step(struct hand *h, uint32_t pipeline, float rate, float batch)
{
	for (uint32_t stage = 0; stage < STAGES; stage++)
		for (size_t i = 0; i < h->n[stage]; i++) {
			h->v[pipeline][stage][i] -= rate * (h->sum[pipeline][stage][i] / batch);
			h->sum[pipeline][stage][i] = 0;
		}
}

/* All pipelines have counted as much. */
static void outer_step(struct hand *h, uint32_t stage, uint32_t pipelines)
{
	for (size_t i = 0; i < h->n[stage]; i++) {
		float mean = 0;
		for (uint32_t p = 0; p < pipelines; p++)
			mean += (h->w[stage][i] - h->v[p][stage][i]) / (float)pipelines;
		h->velocity[stage][i] = OUTER_MOMENTUM * h->velocity[stage][i] + mean;
		h->w[stage][i] -= OUTER_RATE * (mean + OUTER_MOMENTUM * h->velocity[stage][i]);
		for (uint32_t p = 0; p < pipelines; p++)
			h->v[p][stage][i] = h->w[stage][i];
	}
}

/* The largest part by which the mean loss of a round differs from the simulated one. */
static double train(struct hand *h, const struct skep_scenario *s, const struct heard *heard)
{
	uint32_t pipelines = s->plan.workers / STAGES, counted[PIPELINES_MOST] = {0};
	uint32_t share = s->plan.microbatches / pipelines, batch = share / s->plan.inner.steps;
	double most = 0;
	for (uint32_t round = 0; round < s->plan.rounds; round++) {
		double loss = 0, told = 1e-9 * (double)heard->loss_nano[round];
		for (uint32_t i = 0; i < heard->passes; i++) {
			const struct pass *at = &heard->pass[i];
			if (at->round != round)
				continue;
			loss += pass(h, at);
			if (++counted[at->pipeline] % batch == 0)
				inner_step(h, at->pipeline, s->optimizer.learning_rate, (float)batch);
		}
		for (uint32_t stage = 0; stage < STAGES; stage++)
			if ((round + 1) % h->every[stage] == 0)
				outer_step(h, stage, pipelines);
		most = fmax(most, fabs(loss / s->plan.microbatches / told - 1));
	}
	return most;
}

/* Two pipelines of every worker, eight rounds of two steps; the second stage, then the first one, sums in every second round. */
static void test_a_run_beside_loops(void **state)
{
	(void)state;
	static const char *const text[] = {"[2, 4]", "[8, 2]"};
	static const uint32_t every[][STAGES] = {{1, 2}, {4, 1}}, alike[STAGES] = {1, 1};
	for (uint32_t i = 0; i < 2; i++) {
		struct skep_scenario s;
		struct heard *heard = calloc(1, sizeof *heard);
		struct hand hand;
		read_with(text[i], &s);
		assert_true(s.plan.rounds == ROUNDS && s.plan.stages == STAGES && s.plan.inner.steps == 2);
		assert_true(s.plan.workers <= STAGES * PIPELINES_MOST);
		simulate(&s, heard);
		for (uint32_t stage = 0; stage < STAGES; stage++)
			for (uint32_t round = 0; round < ROUNDS; round++) {
				uint32_t members = s.plan.workers / STAGES;
				bool sums = (round + 1) % every[i][stage] == 0;
				assert_int_equal(heard->pseudo[stage][round], sums ? members : 0);
				assert_int_equal(heard->steps[stage][round], members);
			}
		begin(&hand, &s, every[i]);
		double differs = train(&hand, &s, heard);
		finish(&hand);
		begin(&hand, &s, alike);
		double would = train(&hand, &s, heard);
		finish(&hand);
		if (differs > 1e-4 || would < 1e-3)
			fail_msg(
				"%s: losses differ by %g, and by %g from those of one period", text[i], differs, would);
		skep_scenario_finish(&s);
		free(heard);
	}
}

static void test_one_period_for_all_is_that_of_each(void **state)
{
	(void)state;
	struct heard *heard = calloc(2, sizeof *heard);
	struct skep_scenario one, each;
	read_with("2", &one);
	read_with("[2, 2]", &each);
	assert_null(each.plan.inner.sum_every);
	assert_true(simulate(&one, heard) == simulate(&each, heard + 1));
	assert_memory_equal(heard[0].loss_nano, heard[1].loss_nano, sizeof heard->loss_nano);
	assert_memory_equal(heard[0].pass, heard[1].pass, sizeof heard->pass);
	skep_scenario_finish(&one);
	skep_scenario_finish(&each);
	free(heard);
}

/* ---- a device --------------------------------------------------------------------------------------------------- */

/* A STEP of a round without a sum: neither the parameters of the stage change nor its outer moments, which are in its state, nor
 * what passes read, by which the loss of the next round is what it was. It asks for no sum: of two members there is none. */
static void test_a_step_without_a_sum(void **state)
{
	(void)state;
	static const uint32_t every[] = {2};
	struct job job;
	uint64_t bytes;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 2, 6);
	job.plan.inner.steps = 1;
	job.plan.inner.sum_every = every;
	job.training.outer =
		(struct skep_optimizer){.kind = SKEP_OPTIMIZER_NESTEROV, .learning_rate = 0.7f, .momentum = 0.9f};
	job_restart(&job);
	const struct skep_op save = {.kind = SKEP_OP_SAVE};
	struct job_passage passage;
	int64_t loss = job_microbatch(&job, 0, 0);
	struct skep_op inner = {.kind = SKEP_OP_INNER_STEP, .microbatches = 1}, step = {.kind = SKEP_OP_STEP};
	assert_false(job_run(job.device[0], inner).failed);
	float *before = job_dump(job.device[0], save, &bytes);
	step.size = 2, step.microbatches = 2;
	const struct skep_device_result result = job_run(job.device[0], step);
	assert_true(!result.failed && result.fault == SKEP_FAULT_NONE);
	float *after = job_dump(job.device[0], save, &bytes);
	assert_memory_equal(before, after, bytes);
	job_forward(&job, 0, 0, &passage); /* the same samples, after an inner step */
	assert_true(passage.loss_nano < loss);
	job_backward(&job, &passage);
	free(before), free(after);
	job_finish(&job);
}

static void test_which_rounds(void **state)
{
	(void)state;
	static const uint32_t every[] = {1, 2};
	struct skep_plan plan = {.stages = 2, .inner.sum_every = every};
	assert_int_equal(skep_plan_cycle(&plan), 2);
	assert_int_equal(skep_plan_first_sum(&plan, 0), 0);
	assert_int_equal(skep_plan_first_sum(&plan, 1), 1);
	for (uint32_t round = 0; round < 5; round++) {
		assert_true(skep_plan_sums(&plan, 0, round));
		assert_int_equal(skep_plan_sums(&plan, 1, round), round % 2 == 1);
	}
	plan.inner.sum_every = NULL;
	assert_int_equal(skep_plan_cycle(&plan), 1);
	assert_true(skep_plan_sums(&plan, 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_beside_loops),
		cmocka_unit_test(test_one_period_for_all_is_that_of_each),
		cmocka_unit_test(test_a_step_without_a_sum),
		cmocka_unit_test(test_which_rounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
