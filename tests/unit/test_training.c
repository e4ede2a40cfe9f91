/* SPDX-License-Identifier: Apache-2.0
 *
 * test_training.c - the arithmetic against an independent model in double precision, written out here, with finite differences
 * for its gradients; optimizers against their formulas; cuts against the uncut model; and the shipped job, which must
 * learn y = x^2.
 */
#include "tests/unit/job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/corpus/data.h"
#include "tests/unit/observed_device.h"

/* ---- an independent model ----------------------------------------------------------------------------------- */

static double activate(enum skep_activation activation, double x)
{
	if (activation == SKEP_ACTIVATION_TANH)
		return tanh(x);
	if (activation == SKEP_ACTIVATION_RELU)
		return x > 0 ? x : 0;
	return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* Mean squared error over the samples of round 0, microbatch 0. */
static double loss_of(const struct job *job, const double *parameter)
{
	float x[SAMPLES], y[SAMPLES];
	double sum = 0, value[2][64];
	skep_corpus_microbatch(&job->training, 0, 0, x, y);
	for (uint32_t b = 0; b < SAMPLES; b++) {
		const double *p = parameter;
		value[0][0] = (double)x[b];
		for (uint32_t l = 0; l < job->model.layers; l++) {
			uint32_t in = job->width[l], out = job->width[l + 1];
			for (uint32_t j = 0; j < out; j++) {
				double z = p[in * out + j];
				for (uint32_t i = 0; i < in; i++)
					z += value[l & 1][i] * p[i * out + j];
				value[~l & 1][j] = l + 1 < job->model.layers ? activate(job->model.activation, z) : z;
			}
			p += in * out + out;
		}
		double error = value[job->model.layers & 1][0] - (double)y[b];
		sum += error * error;
	}
	return sum / (int)SAMPLES;
}

static void check_gradients(enum skep_activation activation, uint32_t stages)
{
	struct job job;
	size_t n, gradients;
	job_init(&job, stages, activation, 5, 9);
	float *parameter = job_parameters(&job, &n);
	double loss = (double)job_microbatch(&job, 0, 0) * 1e-9, scale = 0;
	float *gradient = job_gradients(&job, 0, &gradients);
	assert_int_equal(n, gradients);
	double *p = malloc(n * sizeof *p), *expected = malloc(n * sizeof *expected);
	assert_true(p && expected);
	for (size_t i = 0; i < n; i++)
		p[i] = (double)parameter[i];
	assert_true(fabs(loss_of(&job, p) / loss - 1) < 1e-5);
	for (size_t i = 0; i < n; i++) {
		double was = p[i], h = 1e-6;
		p[i] = was + h;
		expected[i] = loss_of(&job, p);
		p[i] = was - h;
		expected[i] = (expected[i] - loss_of(&job, p)) / (2 * h);
		p[i] = was;
		scale = fmax(scale, fabs(expected[i]));
	}
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)gradient[i] - expected[i]) < 2e-6 * scale))
			fail_msg("activation %d, %u stages, parameter %zu: %g, not %g", activation, stages, i,
				(double)gradient[i], expected[i]);
	free(p), free(expected), free(parameter), free(gradient);
	job_finish(&job);
}

static void test_gradients_against_finite_differences(void **state)
{
	(void)state;
	for (int a = SKEP_ACTIVATION_TANH; a <= SKEP_ACTIVATION_GELU; a++)
		for (uint32_t stages = 1; stages <= 5; stages += 2)
			check_gradients((enum skep_activation)a, stages);
}

/* ---- cuts --------------------------------------------------------------------------------------------------- */

static void test_a_cut_changes_no_bit(void **state)
{
	(void)state;
	struct job job[3];
	float *parameter[3];
	size_t n[3];
	for (uint32_t j = 0; j < 3; j++)
		job_init(&job[j], 1u << j, SKEP_ACTIVATION_GELU, 6, 32);
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t b = 0; b < 2; b++) {
			int64_t loss = job_microbatch(&job[0], round, b);
			assert_true(loss == job_microbatch(&job[1], round, b));
			assert_true(loss == job_microbatch(&job[2], round, b));
		}
		for (uint32_t j = 0; j < 3; j++)
			job_step(&job[j], round, 2);
	}
	for (uint32_t j = 0; j < 3; j++)
		parameter[j] = job_parameters(&job[j], &n[j]);
	for (uint32_t j = 1; j < 3; j++) {
		assert_int_equal(n[j], n[0]);
		assert_memory_equal(parameter[j], parameter[0], n[0] * sizeof(float));
	}
	for (uint32_t j = 0; j < 3; j++) {
		free(parameter[j]);
		job_finish(&job[j]);
	}
}

/* Equal from equal seeds, and no two layers or seeds share their numbers; all within sqrt(6 / in) of 0. */
static void test_first_parameters(void **state)
{
	(void)state;
	struct job job;
	size_t n;
	job_init(&job, 2, SKEP_ACTIVATION_GELU, 4, 8);
	float *first = job_parameters(&job, &n);
	job_restart(&job);
	float *again = job_parameters(&job, &n);
	assert_memory_equal(first, again, n * sizeof(float));
	assert_true(memcmp(first + 16, first + 16 + 72, 72 * sizeof(float)) != 0); /* layers 1 and 2, 8 x 8 + 8 */
	job.plan.seed++;
	job_restart(&job);
	float *other = job_parameters(&job, &n);
	for (size_t i = 0; i < n; i++) {
		assert_true(first[i] != other[i]);
		assert_true(fabsf(first[i]) <= (i < 16 ? 2.45f : 0.867f));
	}
	free(first), free(again), free(other);
	job_finish(&job);
}

/* ---- optimizers --------------------------------------------------------------------------------------------- */

struct reference {
	double w, m, v;
};

/* The learning rate, left out: what is subtracted is that times this. */
static double reference_update(const struct skep_optimizer *o, struct reference *r, double g, int t)
{
	double momentum = (double)o->momentum, b1 = (double)o->beta1, b2 = (double)o->beta2;
	if (o->kind == SKEP_OPTIMIZER_SGD || o->kind == SKEP_OPTIMIZER_NESTEROV) {
		r->m = momentum * r->m + g;
		return (o->kind == SKEP_OPTIMIZER_SGD ? r->m : g + momentum * r->m) + (double)o->weight_decay * r->w;
	}
	r->m = b1 * r->m + (1 - b1) * g;
	r->v = b2 * r->v + (1 - b2) * g * g;
	return r->m / (1 - pow(b1, t)) / (sqrt(r->v / (1 - pow(b2, t))) + (double)o->epsilon) +
	       (double)o->weight_decay * r->w;
}

/* LAMB scales by tensor: of 1 -> 6 -> 1 these are 6 and 6, 6 and 1. */
static void reference_step(const struct skep_optimizer *o, struct reference r[19], const float *sum, int t)
{
	static const int begin[] = {0, 6, 12, 18, 19};
	double update[19];
	for (int i = 0; i < 19; i++)
		update[i] = reference_update(o, &r[i], (double)sum[i] / 2, t);
	for (int tensor = 0; tensor < 4; tensor++) {
		double w = 0, u = 0, scale = 1;
		for (int i = begin[tensor]; i < begin[tensor + 1]; i++)
			w += r[i].w * r[i].w, u += update[i] * update[i];
		if (o->kind == SKEP_OPTIMIZER_LAMB)
			scale = sqrt(w / u);
		for (int i = begin[tensor]; i < begin[tensor + 1]; i++)
			r[i].w -= (double)o->learning_rate * scale * update[i];
	}
}

static void check_optimizer(enum skep_optimizer_kind kind)
{
	struct job job;
	size_t n;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 2, 6);
	job.training.optimizer.kind = kind;
	job_restart(&job);
	struct reference reference[19] = {0};
	for (int t = 1; t <= 20; t++) {
		float *before = job_parameters(&job, &n);
		for (int i = 0; t == 1 && i < 19; i++)
			reference[i].w = (double)before[i];
		job_microbatch(&job, (uint32_t)t, 0);
		job_microbatch(&job, (uint32_t)t, 1);
		float *sum = job_gradients(&job, (uint32_t)t, &n);
		assert_int_equal(n, 19);
		job_step(&job, (uint32_t)t, 2);
		float *after = job_parameters(&job, &n);
		reference_step(&job.training.optimizer, reference, sum, t);
		for (size_t i = 0; i < n; i++) {
			double off = fabs((double)after[i] - reference[i].w);
			assert_true(off < 1e-5 * fmax(1.0, fabs(reference[i].w)));
			assert_true(after[i] != before[i]);
		}
		free(before), free(sum), free(after);
	}
	job_finish(&job);
}

static void test_optimizers_against_their_formulas(void **state)
{
	(void)state;
	for (int kind = SKEP_OPTIMIZER_SGD; kind <= SKEP_OPTIMIZER_LAMB; kind++)
		check_optimizer((enum skep_optimizer_kind)kind);
}

static void test_learning_rates(void **state)
{
	(void)state;
	struct skep_optimizer o = {.learning_rate = 2.0f};
	assert_true(skep_optimizer_rate(&o, 0) == 2.0f && skep_optimizer_rate(&o, 1000000) == 2.0f);
	o.rates = (struct skep_rates){SKEP_RATE_CONSTANT, 4, 10, 0, 0};
	static const float rises[] = {0.5f, 1.0f, 1.5f, 2.0f, 2.0f};
	for (uint32_t i = 0; i < 5; i++)
		assert_true(skep_optimizer_rate(&o, i) == rises[i]);
	o.rates = (struct skep_rates){SKEP_RATE_LINEAR, 4, 12, 0.25f, 0};
	static const float falls[] = {2.0f, 1.8125f, 1.625f, 1.4375f, 1.25f, 1.0625f, 0.875f, 0.6875f, 0.5f, 0.5f};
	for (uint32_t i = 0; i < 10; i++)
		assert_true(skep_optimizer_rate(&o, 4 + i) == falls[i]);
	o.rates.decay = SKEP_RATE_COSINE;
	for (uint32_t i = 0; i < 10; i++) {
		double done = i < 8 ? i / 8.0 : 1, expected = 2 * (0.25 + 0.75 * (1 + cos(acos(-1) * done)) / 2);
		assert_true(fabs((double)skep_optimizer_rate(&o, 4 + i) - expected) < 1e-6);
	}
}

/* ---- the job ------------------------------------------------------------------------------------------------ */

/* The settings that models/square-mlp.yaml recommends: 100 steps of 2048 fresh samples. */
enum { STEPS = 100, MICROBATCHES = 8 };

/* Wants a restart. */
static void job_init_square(struct job *job)
{
	char path[512];
	struct skep_diag diag = {0};
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	if (!skep_file_find(NULL, __FILE__, "models/square-mlp.yaml", path, sizeof path))
		fail_msg("run in the source tree: no models/square-mlp.yaml from %s", __FILE__);
	assert_true(skep_model_read(path, &job->model, &diag));
	job->training.samples = 256;
	job->training.optimizer.learning_rate = 1e-3f;
}

static void test_the_shipped_model_learns_the_square(void **state)
{
	(void)state;
	struct job job;
	job_init_square(&job);
	job_restart(&job);
	double first = 0, last = 0;
	for (uint32_t round = 0; round < STEPS; round++) {
		int64_t sum = 0;
		for (uint32_t b = 0; b < MICROBATCHES; b++)
			sum += job_microbatch(&job, round, b);
		last = (double)sum * 1e-9 / (int)MICROBATCHES;
		first = round ? first : last;
		job_step(&job, round, MICROBATCHES);
	}
	if (first < 50 || first > 500 || !(last < 0.1))
		fail_msg("mean squared error from %g to %g", first, last);
	job_finish(&job);
	skep_model_finish(&job.model);
}

/* The same job in two pipelines of three stages, all that travels between them encoded, and no stash kept. */
static void check_square_with(enum skep_codec codec)
{
	static struct job job[2];
	int64_t sum = 0;
	for (uint32_t m = 0; m < 2; m++) {
		job_init_square(&job[m]);
		job[m].plan.workers = job[m].plan.stages = 3;
		job[m].training.activation_codec = job[m].training.reduction_codec = codec;
		job[m].training.checkpoint_activations = true;
		job_restart(&job[m]);
	}
	for (uint32_t round = 0; round < STEPS; round++) {
		sum = 0;
		for (uint32_t b = 0; b < MICROBATCHES; b++)
			sum += job_microbatch(&job[b % 2], round, b);
		for (uint32_t s = 0; s < 3; s++) {
			struct skep_op step = {.kind = SKEP_OP_STEP, .stage = (uint16_t)s, .round = round, .size = 2};
			step.microbatches = MICROBATCHES;
			job_reduce(job, 2, s, round);
			job_run(job[0].device[s], step), job_run(job[1].device[s], step);
			assert_true(parameters_digest(job[0].device[s]) == parameters_digest(job[1].device[s]));
		}
	}
	double last = (double)sum * 1e-9 / (int)MICROBATCHES;
	if (!(last < 0.1))
		fail_msg("codec %d: mean squared error %g", (int)codec, last);
	for (uint32_t m = 0; m < 2; m++) {
		job_finish(&job[m]);
		skep_model_finish(&job[m].model);
	}
}

static void test_the_square_is_learned_through_codecs(void **state)
{
	(void)state;
	check_square_with(SKEP_CODEC_FP16);
	check_square_with(SKEP_CODEC_INT8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients_against_finite_differences),
		cmocka_unit_test(test_a_cut_changes_no_bit),
		cmocka_unit_test(test_first_parameters),
		cmocka_unit_test(test_optimizers_against_their_formulas),
		cmocka_unit_test(test_learning_rates),
		cmocka_unit_test(test_the_shipped_model_learns_the_square),
		cmocka_unit_test(test_the_square_is_learned_through_codecs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
