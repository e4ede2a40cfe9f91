/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transformer.c - transformers on the CPU device: any cut and recomputation give the same bits; what a stage costs is
 * what it allocates; and 100 steps follow PyTorch. For the last, tests/torch/follow.py trains the same models from the same
 * parameters on the same tokens, which this program writes for it:
 *
 *     test_transformer --write gpt2|llama|gpt2-clipped|mixtral|bert PREFIX     PREFIX.txt, .parameters, .ids
 *
 * and keeps the losses in tests/data/torch-NAME.csv. Its README says how they were made. Those of a mixtral are 20 steps of the
 * MixtralForCausalLM of transformers (tests/torch/mixtral.py), those of a bert 100 of its BertForMaskedLM (tests/torch/bert.py).
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

#include "models/corpus/data.h"
#include "models/corpus/tokens.h"
#include "models/stage/stage.h"

/* Wants a restart. */
static void init(struct job *job, const char *name, uint32_t stages)
{
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	job_read_model(name, &job->model);
	job->model.tied = false;
	job->plan.stages = job->plan.workers = stages;
	job->training.samples = 3;
	job->training.corpus = SKEP_CORPUS_TOKENS;
	job->training.tokens = job_open_text(job->model.sequence);
}

static void finish(struct job *job)
{
	job_finish(job);
	skep_tokens_close((struct skep_tokens *)job->training.tokens);
	skep_model_finish(&job->model);
}

/* ---- cuts --------------------------------------------------------------------------------------------------------- */

enum { CUTS = 4 };

/* T = 1, 2 and 4 stages, and 4 that keep no activations. */
static void check_cuts(const char *name, uint32_t shared)
{
	static struct job job[CUTS];
	static const uint32_t stages[CUTS] = {1, 2, 4, 4};
	float *parameter[CUTS];
	size_t n[CUTS];
	for (uint32_t j = 0; j < CUTS; j++) {
		init(&job[j], name, stages[j]);
		job[j].model.shared = shared;
		job[j].training.checkpoint_activations = j == 3;
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
		assert_true(loss > INT64_C(2000000000) && loss < 2 * INT64_C(5700000000));
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

static void test_a_cut_changes_no_bit(void **state)
{
	(void)state;
	check_cuts("tiny-gpt2", 1);
	check_cuts("tiny-llama", 2);
	check_cuts("tiny-mixtral", 1);
	check_cuts("tiny-bert", 1);
	check_cuts("tiny-bert", 2);
}

/* ---- costs -------------------------------------------------------------------------------------------------------- */

/* Each array of a stash is rounded up to 64 bytes. */
static void check_cost(const struct job *job, uint32_t stages)
{
	struct skep_plan plan = job->plan;
	struct skep_training training = job->training;
	uint64_t parameters = 0;
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
		parameters += cost.parameters;
		skep_stage_finish(&stage);
	}
	uint64_t h = job->model.hidden, f = job->model.feed_forward, v = job->model.vocabulary, t = job->model.sequence;
	uint64_t gpt2 = v * h + t * h + 4 * (4 * h * h + 2 * h * f + 9 * h + f) + 2 * h + v * h;
	uint64_t e = job->model.experts.count, feed = e > 0 ? h * e + e * 3 * h * f : 3 * h * f;
	uint64_t llama = v * h + 4 * (3 * h * h + feed + 2 * h) + h + v * h;
	/* Two segments and a norm in the embedding, a dense layer in the head, and a bias for each token. */
	uint64_t bert = gpt2 + 4 * h + h * h + h + v;
	uint64_t expected[] = {
		[SKEP_ARCHITECTURE_GPT2] = gpt2, [SKEP_ARCHITECTURE_LLAMA] = llama, [SKEP_ARCHITECTURE_BERT] = bert};
	assert_int_equal(parameters, expected[job->model.architecture]);
}

static void test_costs_are_what_is_allocated(void **state)
{
	(void)state;
	static const char *const names[] = {"tiny-gpt2", "tiny-llama", "tiny-mixtral", "tiny-bert"};
	for (int i = 0; i < 4; i++) {
		struct job job;
		init(&job, names[i], 1);
		job_restart(&job);
		for (uint32_t stages = 1; stages <= 6; stages++)
			check_cost(&job, stages);
		finish(&job);
	}
}

static void check_products(const struct skep_model *model, const struct skep_cost *cost)
{
	double flop = 0, back = 0, parameters = 0, numbers = 0;
	for (uint32_t l = 0; l < model->layers; l++) {
		struct skep_layer_products p;
		skep_model_products(model, l, 1, &p);
		flop += p.repeats * p.flop;
		back += p.repeats * p.flop * p.backward;
		parameters += p.parameters;
		numbers += p.repeats * p.numbers;
	}
	assert_true(flop == cost->forward_flop && fabs(back / cost->backward_flop - 1) < 1e-12);
	assert_true(parameters == (double)cost->parameters && numbers * sizeof(float) == cost->sample_bytes);
}

/* FLOPs of the shipped gpt2-256x4, and of its products: 2 per weight and token, and of attention 4 h for each of the T (T +
 * 1) / 2 pairs; backwards twice that of weights, 2.5 times that of attention. */
static void test_flops(void **state)
{
	(void)state;
	struct skep_model model;
	struct skep_cost cost;
	job_read_model("gpt2-256x4", &model);
	skep_model_cost(&model, 1, 0, &cost);
	double t = 128, h = 256, weights = 4 * 12 * h * h + 256 * h, attention = 4 * 2 * t * (t + 1) * h;
	assert_true(cost.forward_flop == 2 * t * weights + attention);
	assert_true(cost.backward_flop == 2 * 2 * t * weights + 2.5 * attention);
	check_products(&model, &cost);
	skep_model_finish(&model);
}

/* The same of tiny-mixtral: a token meets two of the eight experts, of 3 h f weights each, and the router, h weights for each of
 * the eight; 2 of 4 heads have keys and values. */
static void test_flops_of_experts(void **state)
{
	(void)state;
	struct skep_model model;
	struct skep_cost cost;
	job_read_model("tiny-mixtral", &model);
	skep_model_cost(&model, 1, 0, &cost);
	double t = 64, h = 64, f = 88, weights = 4 * (3 * h * h + 2 * 3 * h * f + 8 * h) + 256 * h;
	double attention = 4 * 2 * t * (t + 1) * h;
	assert_true(cost.forward_flop == 2 * t * weights + attention);
	assert_true(cost.backward_flop == 2 * 2 * t * weights + 2.5 * attention);
	check_products(&model, &cost);
	skep_model_finish(&model);
}

/* Of tiny-bert: attention has 4 h for all T T pairs, and the head works on the 10 tokens alone that are predicted. */
static void test_flops_of_bert(void **state)
{
	(void)state;
	struct skep_model model;
	struct skep_cost cost;
	job_read_model("tiny-bert", &model);
	skep_model_cost(&model, 1, 0, &cost);
	double t = 64, h = 64, weights = 2 * t * 4 * 12 * h * h + 2 * 10 * (h * h + 257 * h);
	double attention = 4 * 4 * t * t * h;
	assert_true(cost.forward_flop == weights + attention);
	assert_true(cost.backward_flop == 2 * weights + 2.5 * attention);
	check_products(&model, &cost);
	skep_model_finish(&model);
}

/* ---- PyTorch ------------------------------------------------------------------------------------------------------ */

enum { STEPS = 100, STEPS_OF_EXPERTS = 20 };

static uint32_t steps_of(const char *architecture)
{
	return strncmp(architecture, "mixtral", 7) == 0 ? STEPS_OF_EXPERTS : STEPS;
}

/* gpt2-clipped is a gpt2; a mixtral has the losses of its router as mixtral-balanced alone. */
static void init_reference(struct job *job, const char *architecture)
{
	char name[64] = "tiny-";
	strncat(name, architecture, strcspn(architecture, "-"));
	const bool bert = strcmp(architecture, "bert") == 0; /* in one stage its head is tied */
	init(job, name, bert ? 1 : 2);
	job->model.tied = bert;
	job->plan.clip = strstr(architecture, "clipped") != NULL;
	job->training.optimizer.clip_norm = 0.5f;
	job->training.samples = 4;
	job->training.optimizer.learning_rate = 3e-3f;
	job->training.optimizer.beta2 = 0.99f;
	job->training.optimizer.weight_decay = 0.1f;
	job->training.optimizer.rates = (struct skep_rates){SKEP_RATE_COSINE, 10, steps_of(architecture), 0.1f, 0};
	if (strcmp(architecture, "mixtral") == 0)
		job->model.experts.aux_loss = job->model.experts.z_loss = 0;
	job_restart(job);
}

static void follow(const char *architecture, double tolerance)
{
	char path[512], wanted[64], line[128];
	struct job job;
	init_reference(&job, architecture);
	snprintf(wanted, sizeof wanted, "tests/data/torch-%s.csv", architecture);
	assert_true(skep_file_find(NULL, __FILE__, wanted, path, sizeof path));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	uint32_t step = 0;
	while (fgets(line, sizeof line, file)) {
		double expected;
		if (sscanf(line, "%lf", &expected) != 1)
			continue;
		double loss = (double)job_microbatch(&job, step, 0) * 1e-9;
		if (!(fabs(loss / expected - 1) < tolerance))
			fail_msg("%s, step %u: %.9f, PyTorch has %.9f", architecture, step, loss, expected);
		job_step(&job, step++, 1);
	}
	assert_int_equal(step, steps_of(architecture));
	fclose(file);
	finish(&job);
}

static void test_follows_pytorch(void **state)
{
	(void)state;
	follow("gpt2", 1e-4);
	follow("llama", 1e-4);
	follow("gpt2-clipped", 1e-4);
}

static void test_follows_transformers(void **state)
{
	(void)state;
	follow("mixtral", 2e-6);
	follow("mixtral-balanced", 2e-6);
	follow("bert", 2e-6);
}

static FILE *open_part(const char *prefix, const char *end)
{
	char path[512];
	snprintf(path, sizeof path, "%s.%s", prefix, end);
	FILE *file = fopen(path, "w");
	if (!file)
		perror(path), exit(1);
	return file;
}

/* Of a bert, behind what it reads: what it is to predict, and -100 elsewhere. */
static void write_labels(struct job *job, uint32_t step, FILE *file)
{
	enum { SAMPLES_OF = 4, LENGTH = 65, PREDICTED_MAX = 64 };
	int32_t id[SAMPLES_OF * LENGTH], target[SAMPLES_OF * PREDICTED_MAX];
	uint32_t place[SAMPLES_OF * PREDICTED_MAX], predicted = job->model.predicted;
	struct skep_diag diag = {0};
	assert_true(skep_corpus_masked(&job->training, step, 0, id, place, target, &diag));
	for (size_t i = 0; i < sizeof id / sizeof *id; i++)
		id[i] = -100;
	for (uint32_t i = 0; i < SAMPLES_OF * predicted; i++)
		id[i / predicted * LENGTH + place[i]] = target[i];
	fwrite(id, sizeof *id, sizeof id / sizeof *id, file);
}

/* What follow.py reads. */
static void write_reference(const char *architecture, const char *prefix)
{
	struct job job;
	size_t n;
	init_reference(&job, architecture);
	FILE *names = open_part(prefix, "txt"), *file = open_part(prefix, "parameters");
	fprintf(names, "%u %u %u %u %u %u %u\n", job.training.samples, job.model.sequence, job.model.hidden,
		job.model.heads, job.model.kv_heads, job.model.feed_forward, job.model.layers - 2);
	for (uint32_t l = 0; l < job.model.layers; l++) {
		struct skep_tensor tensor[SKEP_TENSORS_MAX];
		struct skep_layer layer = skep_layer_of(&job.model, l);
		uint32_t tensors = layer.type->tensors(&layer, tensor);
		for (uint32_t t = 0; t < tensors; t++)
			fprintf(names, "%u %s %u %u %d\n", l, tensor[t].name, tensor[t].rows, tensor[t].columns,
				tensor[t].decays);
	}
	float *parameter = job_parameters(&job, &n);
	fwrite(parameter, sizeof *parameter, n, file);
	fclose(names), fclose(file), free(parameter);
	file = open_part(prefix, "ids");
	for (uint32_t step = 0; step < steps_of(architecture); step++) {
		int32_t id[4 * 65];
		struct skep_diag diag = {0};
		assert_true(skep_corpus_inputs(&job.training, step, 0, id, &diag));
		fwrite(id, sizeof *id, sizeof id / sizeof *id, file);
		if (job.model.predicted > 0)
			write_labels(&job, step, file);
	}
	fclose(file);
	finish(&job);
}

int main(int arguments, char **argument)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cut_changes_no_bit),
		cmocka_unit_test(test_costs_are_what_is_allocated),
		cmocka_unit_test(test_flops),
		cmocka_unit_test(test_flops_of_experts),
		cmocka_unit_test(test_flops_of_bert),
		cmocka_unit_test(test_follows_pytorch),
		cmocka_unit_test(test_follows_transformers),
	};
	if (arguments == 4 && strcmp(argument[1], "--write") == 0) {
		write_reference(argument[2], argument[3]);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
