/* SPDX-License-Identifier: Apache-2.0
 *
 * test_resnet_double.c - residual networks in double precision against PyTorch, whose relus then have the same slopes: 100
 * steps of a small one and 20 of ResNet-20, and behind them a microbatch that is judged, by running averages.
 * tests/torch/resnet.py trains the same networks from the same parameters on the same images, which this program writes for it:
 *
 *     test_resnet_double --write tiny-resnet|resnet20 PREFIX     PREFIX.txt, .parameters, .images, .labels
 *
 * and keeps the losses in tests/data/torch-NAME.csv. Its README says how they were made.
 */
#include <assert.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/corpus/data.h"
#include "models/device/device_cpu.h"

static_assert(sizeof(skep_real) == sizeof(double), "built in double precision");

struct reference {
	const char *name;
	uint32_t steps, samples;
};
static const struct reference references[] = {{"tiny-resnet", 100, 16}, {"resnet20", 20, 8}};

struct net { /* in one stage, and not to be moved */
	struct skep_model model;
	struct skep_plan plan;
	struct skep_training training;
	struct skep_stage stage;
	skep_real *stash;
};

static void net_init(struct net *n, const struct reference *of)
{
	char name[64], path[512];
	struct skep_diag diag = {0};
	*n = (struct net){.plan = {.workers = 1,
				  .stages = 1,
				  .microbatches = 8,
				  .seed = 3,
				  .validation = {.every = 1, .microbatches = 1}},
		.training = {.samples = of->samples,
			.corpus = SKEP_CORPUS_IMAGES,
			.optimizer = {.kind = SKEP_OPTIMIZER_SGD, .learning_rate = 1e-2f, .momentum = 0.9f}}};
	snprintf(name, sizeof name, "models/%s.yaml", of->name);
	assert_true(skep_file_find(NULL, __FILE__, name, path, sizeof path));
	assert_true(skep_model_read(path, &n->model, &diag));
	n->training.model = &n->model;
	n->training.plan = &n->plan;
	assert_true(skep_stage_init(&n->training, 0, &n->stage));
	n->stash = malloc(n->stage.stash_bytes);
	assert_non_null(n->stash);
}

static void net_finish(struct net *n)
{
	free(n->stash);
	skep_stage_finish(&n->stage);
	skep_model_finish(&n->model);
}

/* A step on one microbatch, or what its loss is when it is judged. */
static double run(struct net *n, uint32_t round, bool judged)
{
	const struct skep_op op = {
		.round = round, .version = round, .microbatch = judged ? skep_round_capacity(&n->plan) : 0};
	const struct skep_layers all = {0, n->stage.layers};
	const struct skep_vstage_step turn = {.round = round, .microbatches = 1, .scale = 1};
	struct skep_diag diag = {0};
	double loss;
	assert_true(skep_cpu_forward(&n->stage, &n->training, &op, NULL, NULL, n->stash, &loss, &diag));
	if (judged)
		return loss;
	skep_cpu_backward(&n->stage, &n->training, &op, &all, NULL, n->stash, NULL);
	skep_stage_step(&n->stage, &n->training.optimizer, &turn, skep_stage_sum(&n->stage, round));
	return loss;
}

static void follow(const struct reference *of)
{
	char path[512], wanted[64], line[128];
	struct net n;
	net_init(&n, of);
	snprintf(wanted, sizeof wanted, "tests/data/torch-%s.csv", of->name);
	assert_true(skep_file_find(NULL, __FILE__, wanted, path, sizeof path));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	for (uint32_t step = 0; step <= of->steps; step++) {
		assert_non_null(fgets(line, sizeof line, file));
		const double expected = strtod(line, NULL), loss = run(&n, step, step == of->steps);
		if (!(fabs(loss / expected - 1) < 1e-8))
			fail_msg("%s, step %u: %.10f, PyTorch has %.10f", of->name, step, loss, expected);
	}
	fclose(file);
	net_finish(&n);
}

static void test_follows_pytorch(void **state)
{
	(void)state;
	follow(&references[0]);
	follow(&references[1]);
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

static void write_images(const struct net *n, uint32_t steps, FILE *images, FILE *labels)
{
	const size_t numbers = (size_t)n->training.samples * n->model.width[0];
	skep_real *x = malloc(numbers * sizeof *x);
	int32_t class[64];
	assert_true(x && n->training.samples <= 64);
	for (uint32_t step = 0; step <= steps; step++) {
		skep_corpus_images(&n->training, step, step < steps ? 0 : skep_round_capacity(&n->plan), x, class);
		fwrite(x, sizeof *x, numbers, images);
		fwrite(class, sizeof *class, n->training.samples, labels);
	}
	free(x);
}

/* What resnet.py reads. */
static void write_reference(const struct reference *of, const char *prefix)
{
	struct net n;
	net_init(&n, of);
	FILE *names = open_part(prefix, "txt"), *file = open_part(prefix, "parameters");
	fprintf(names, "%u %u %u\n", of->samples, n.model.resnet.image, n.model.layers);
	for (uint32_t l = 0; l < n.model.layers; l++) {
		struct skep_tensor tensor[SKEP_TENSORS_MAX];
		struct skep_layer layer = skep_layer_of(&n.model, l);
		uint32_t tensors = layer.type->tensors(&layer, tensor);
		for (uint32_t t = 0; t < tensors; t++)
			fprintf(names, "%u %s %u %u\n", l, tensor[t].name, tensor[t].rows, tensor[t].columns);
	}
	fwrite(n.stage.parameter, sizeof *n.stage.parameter, n.stage.parameters, file);
	fclose(names), fclose(file);
	FILE *images = open_part(prefix, "images"), *labels = open_part(prefix, "labels");
	write_images(&n, of->steps, images, labels);
	fclose(images), fclose(labels);
	net_finish(&n);
}

int main(int arguments, char **argument)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_follows_pytorch)};
	if (arguments == 4 && strcmp(argument[1], "--write") == 0) {
		write_reference(&references[strcmp(argument[2], references[0].name) != 0], argument[3]);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
