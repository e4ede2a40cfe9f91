/* SPDX-License-Identifier: Apache-2.0
 *
 * test_layers.c - the gradients of every kind of layer, and of whole models cut into stages, against finite differences. It
 * is built with SKEP_REAL_DOUBLE: the sources of the CPU's arithmetic once more, in double precision. Sizes are odd on purpose.
 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/random.h"
#include "models/corpus/data.h"
#include "models/corpus/tokens.h"
#include "models/device/device_cpu.h"
#include "models/layers/attention.h"
#include "models/vision/shape.h"

#define STEP 1e-5
#define TOLERANCE 1e-7 /* of the largest gradient */

static_assert(sizeof(skep_real) == sizeof(double), "built in double precision");

/* ---- models ----------------------------------------------------------------------------------------------------- */

struct fixture {
	uint32_t width[16];
	struct skep_model model;
	struct skep_plan plan;
	struct skep_training training;
	struct skep_tokens *tokens;
};

enum { VOCABULARY = 11, TOKENS = 500 };

/* A corpus of 16-bit tokens. */
static struct skep_tokens *open_tokens(uint32_t length)
{
	char path[] = "/tmp/skep-test-layers-XXXXXX.bin";
	const char *const files[] = {path};
	int fd = mkstemps(path, 4);
	uint64_t random = 5;
	uint16_t id[TOKENS];
	assert_true(fd >= 0);
	for (int i = 0; i < TOKENS; i++)
		id[i] = (uint16_t)skep_random_below(&random, VOCABULARY);
	assert_int_equal(write(fd, id, sizeof id), sizeof id);
	close(fd);
	struct skep_diag diag = {0};
	struct skep_tokens_options options = {.training = files,
		.trainings = 1,
		.part = SKEP_TOKENS_VALIDATION,
		.format = SKEP_TOKENS_NANOGPT,
		.vocabulary = VOCABULARY,
		.length = length};
	struct skep_tokens *tokens = skep_tokens_open(&options, &diag);
	unlink(path);
	if (!tokens)
		fail_msg("%s", diag.message);
	return tokens;
}

static void init(
	struct fixture *f, enum skep_architecture architecture, uint32_t groups, uint32_t shared, uint32_t samples)
{
	bool llama = architecture == SKEP_ARCHITECTURE_LLAMA;
	*f = (struct fixture){.model = {.name = "test",
				      .kind = SKEP_MODEL_TRANSFORMER,
				      .architecture = architecture,
				      .layers = groups + 2,
				      .width = f->width,
				      .hidden = 18,
				      .sequence = 7,
				      .shared = shared,
				      .vocabulary = VOCABULARY,
				      .heads = 3,
				      .kv_heads = llama ? 1 : 3,
				      .feed_forward = 13,
				      .norm_epsilon = 1e-5,
				      .rotary_base = 10000,
				      .mask_token = VOCABULARY - 1,
				      .predicted = architecture == SKEP_ARCHITECTURE_BERT ? 3 : 0},
		.plan = {.workers = 1, .stages = 1, .microbatches = 8, .seed = 3},
		.training = {.samples = samples, .corpus = SKEP_CORPUS_TOKENS}};
	f->width[0] = f->model.sequence + 1;
	for (uint32_t l = 1; l < f->model.layers; l++)
		f->width[l] = f->model.sequence * f->model.hidden;
	f->width[f->model.layers] = f->model.sequence;
	f->training.model = &f->model;
	f->training.plan = &f->plan;
	f->training.tokens = f->tokens = open_tokens(f->model.sequence);
}

static void init_dense(struct fixture *f, enum skep_activation activation)
{
	*f = (struct fixture){.model = {.name = "dense", .activation = activation, .layers = 3, .width = f->width},
		.plan = {.workers = 1, .stages = 1, .microbatches = 8, .seed = 3},
		.training = {.samples = 5}};
	const uint32_t width[] = {3, 7, 5, 3};
	memcpy(f->width, width, sizeof width);
	f->training.model = &f->model;
	f->training.plan = &f->plan;
}

/* Of images with an odd side: a stem, blocks of both widths, and a head. */
static void init_resnet(struct fixture *f, const struct skep_resnet *resnet, uint32_t samples)
{
	*f = (struct fixture){.model = {.name = "resnet",
				      .kind = SKEP_MODEL_RESNET,
				      .layers = 2,
				      .width = f->width,
				      .norm_epsilon = 1e-5},
		.plan = {.workers = 1, .stages = 1, .microbatches = 8, .seed = 3},
		.training = {.samples = samples, .corpus = SKEP_CORPUS_IMAGES}};
	f->model.resnet = *resnet;
	f->training.model = &f->model;
	f->training.plan = &f->plan;
	for (uint32_t g = 0; g < resnet->groups; g++)
		f->model.layers += resnet->blocks[g];
	f->width[0] = 3 * resnet->image * resnet->image;
	for (uint32_t l = 0; l + 1 < f->model.layers; l++) {
		const struct skep_resnet_layer layer = skep_resnet_layer_of(&f->model, l);
		f->width[l + 1] = layer.out * layer.to * layer.to;
	}
	f->width[f->model.layers] = resnet->classes;
}

static void finish(struct fixture *f)
{
	skep_tokens_close(f->tokens);
}

/* ---- one layer -------------------------------------------------------------------------------------------------- */

static skep_real *numbers(size_t n, uint64_t seed, double size)
{
	skep_real *a = malloc((n + 1) * sizeof *a);
	assert_non_null(a);
	for (size_t i = 0; i < n; i++)
		a[i] = size * ((double)skep_random_below(&seed, 2000001) / 1e6 - 1);
	return a;
}

struct probe { /* a layer with all that it reads and writes */
	struct skep_layer layer;
	struct skep_pass pass;
	struct skep_op op;
	size_t in, out;
	skep_real *x, *parameter, *direction; /* the function tested is direction . output, or the loss */
	skep_real *kept, *y, *rotation;
	bool ends, begins;
};

static double value(struct probe *p)
{
	double loss = p->layer.type->forward(&p->layer, &p->pass, p->x, p->ends ? NULL : p->y, p->kept), sum = 0;
	if (p->ends)
		return loss;
	for (size_t i = 0; i < p->out; i++)
		sum += p->direction[i] * p->y[i];
	return sum;
}

static double difference(struct probe *p, skep_real *at)
{
	skep_real was = *at;
	*at = was + STEP;
	double above = value(p);
	*at = was - STEP;
	double below = value(p);
	*at = was;
	return (above - below) / (2 * STEP);
}

static void compare(
	struct probe *p, const char *what, size_t n, skep_real *at, const skep_real *gradient, double already)
{
	double *expected = malloc((n + 1) * sizeof *expected), scale = 0;
	assert_non_null(expected);
	for (size_t i = 0; i < n; i++) {
		expected[i] = difference(p, at + i) + already;
		scale = fmax(scale, fabs(expected[i]));
	}
	assert_true(scale > 0);
	for (size_t i = 0; i < n; i++)
		if (!(fabs(gradient[i] - expected[i]) < TOLERANCE * scale + 1e-9))
			fail_msg("layer %u (%s), %s %zu: %.10g, not %.10g", p->layer.number, p->layer.type->name, what,
				i, gradient[i], expected[i]);
	free(expected);
}

static void probe_init(struct probe *p, struct fixture *f, uint32_t number)
{
	const size_t samples = f->training.samples;
	*p = (struct probe){.layer = skep_layer_of(&f->model, number), .op = {.round = 1, .microbatch = 2}};
	const size_t kept = samples * p->layer.type->inside(&p->layer);
	p->begins = number == 0 && f->model.kind == SKEP_MODEL_TRANSFORMER;
	p->ends = number + 1 == f->model.layers;
	p->in = samples * p->layer.in;
	p->out = samples * p->layer.out;
	p->x = numbers(p->in, 1 + number, 1);
	if (p->begins) {
		struct skep_diag diag = {0};
		assert_true(skep_corpus_inputs(&f->training, 1, 2, p->x, &diag));
	}
	p->parameter = numbers(p->layer.parameters, 20 + number, 0.7);
	p->direction = numbers(p->out, 40 + number, 1);
	p->kept = numbers(kept, 9, 1);
	p->y = numbers(p->out, 9, 1);
	p->rotation = numbers((size_t)f->model.sequence * f->model.hidden, 9, 1);
	if (f->model.architecture == SKEP_ARCHITECTURE_LLAMA)
		skep_rotation_fill(
			f->model.sequence, f->model.hidden / f->model.heads, f->model.rotary_base, p->rotation);
	size_t work = p->layer.type->work ? p->layer.type->work(&p->layer, f->training.samples) : p->out;
	p->pass = (struct skep_pass){.training = &f->training,
		.op = &p->op,
		.parameter = p->parameter,
		.rotation = f->model.architecture == SKEP_ARCHITECTURE_LLAMA ? p->rotation : NULL,
		.work = numbers(work, 9, 1),
		.strips = p->layer.type->strips ? numbers(p->layer.type->strips(&p->layer), 9, 1) : NULL};
}

static void probe_finish(struct probe *p)
{
	free(p->x), free(p->parameter), free(p->direction), free(p->kept), free(p->y), free(p->rotation),
		free(p->pass.work), free(p->pass.strips);
}

/* What is in the accumulator is added to; and a gradient that is not counted leaves it alone and is the same. */
static void check_layer(struct fixture *f, uint32_t number)
{
	struct probe p;
	probe_init(&p, f, number);
	skep_real *at_parameter = malloc(p.layer.parameters * sizeof *at_parameter), *at_x = numbers(p.in, 9, 1);
	skep_real *uncounted = numbers(p.in, 8, 1), *gradient = malloc((p.out + p.in) * sizeof *gradient);
	assert_true(at_parameter && gradient);
	for (size_t i = 0; i < p.layer.parameters; i++)
		at_parameter[i] = 0.25;
	value(&p);
	memcpy(gradient, p.direction, p.out * sizeof *gradient);
	p.layer.type->backward(&p.layer, &p.pass, p.x, p.kept, gradient, p.begins ? NULL : uncounted);
	memcpy(gradient, p.direction, p.out * sizeof *gradient);
	p.pass.gradient = at_parameter;
	p.layer.type->backward(&p.layer, &p.pass, p.x, p.kept, gradient, p.begins ? NULL : at_x);
	p.pass.gradient = NULL;
	const size_t averages = skep_resnet_averages(&f->model, number); /* behind the others, and in no loss */
	compare(&p, "parameter", p.layer.parameters - averages, p.parameter, at_parameter, 0.25);
	if (!p.begins) {
		compare(&p, "input", p.in, p.x, at_x, 0);
		assert_memory_equal(at_x, uncounted, p.in * sizeof *at_x);
	}
	free(at_parameter), free(at_x), free(uncounted), free(gradient);
	probe_finish(&p);
}

static void test_dense_layers(void **state)
{
	(void)state;
	struct fixture f;
	for (int a = SKEP_ACTIVATION_TANH; a <= SKEP_ACTIVATION_GELU; a++) {
		init_dense(&f, (enum skep_activation)a);
		for (uint32_t l = 0; l < f.model.layers; l++)
			check_layer(&f, l);
	}
}

static void check_layers(enum skep_architecture architecture, uint32_t shared)
{
	struct fixture f;
	init(&f, architecture, 1, shared, 2);
	for (uint32_t l = 0; l < f.model.layers; l++)
		check_layer(&f, l);
	finish(&f);
}

static void test_gpt2_layers(void **state)
{
	(void)state;
	check_layers(SKEP_ARCHITECTURE_GPT2, 1);
	check_layers(SKEP_ARCHITECTURE_GPT2, 3);
}

static void test_llama_layers(void **state)
{
	(void)state;
	check_layers(SKEP_ARCHITECTURE_LLAMA, 1);
	check_layers(SKEP_ARCHITECTURE_LLAMA, 3);
}

static void test_bert_layers(void **state)
{
	(void)state;
	check_layers(SKEP_ARCHITECTURE_BERT, 1);
	check_layers(SKEP_ARCHITECTURE_BERT, 3);
}

static const struct skep_resnet resnets[] = {{.groups = 2, .blocks = {2, 1}, .channels = 2, .image = 7, .classes = 5},
	{.groups = 2, .blocks = {1, 1}, .channels = 3, .image = 5, .classes = 3, .projected = true},
	{.groups = 2,
		.blocks = {1, 1},
		.channels = 2,
		.image = 11,
		.classes = 4,
		.projected = true,
		.bottleneck = true,
		.large = true},
	{.groups = 2, .blocks = {1, 1}, .channels = 1, .image = 6, .classes = 4, .bottleneck = true}};
enum { RESNETS = sizeof resnets / sizeof *resnets };

static void test_resnet_layers(void **state)
{
	(void)state;
	struct fixture f;
	for (int i = 0; i < RESNETS; i++) {
		init_resnet(&f, &resnets[i], 3);
		for (uint32_t l = 0; l < f.model.layers; l++)
			check_layer(&f, l);
	}
}

/* Two of three experts for each token, which is what the router says of it for steps of this size. */
static void test_experts(void **state)
{
	(void)state;
	struct fixture f;
	for (uint32_t shared = 1; shared < 4; shared += 2) {
		init(&f, SKEP_ARCHITECTURE_LLAMA, 1, shared, 2);
		f.model.experts = (struct skep_experts){3, 2, .renormalized = shared == 1};
		for (uint32_t l = 0; l < f.model.layers; l++)
			check_layer(&f, l);
		finish(&f);
	}
}

/* Sequences of one token, and longer than a strip of queries. */
static void test_sequences(void **state)
{
	(void)state;
	static const uint32_t lengths[] = {1, 2, SKEP_ATTENTION_ROWS, SKEP_ATTENTION_ROWS + 3};
	static const enum skep_architecture architectures[] = {
		SKEP_ARCHITECTURE_GPT2, SKEP_ARCHITECTURE_LLAMA, SKEP_ARCHITECTURE_BERT};
	for (int i = 0; i < 8; i++) {
		struct fixture f;
		const bool bert = i >= 4;
		init(&f, architectures[bert ? 2 : i % 2], 1, 1, 1);
		f.model.sequence = lengths[i % 4];
		f.model.hidden = 6;
		f.model.feed_forward = 3;
		f.model.heads = 3, f.model.kv_heads = i % 2 && !bert ? 1 : 3;
		f.width[1] = f.width[2] = 6 * lengths[i % 4];
		check_layer(&f, 1);
		finish(&f);
	}
}

/* ---- whole models ------------------------------------------------------------------------------------------------ */

enum { STAGES_MAX = 4 };

struct pipeline {
	struct fixture *f;
	struct skep_stage stage[STAGES_MAX];
	skep_real *edge[STAGES_MAX + 1], *stash[STAGES_MAX]; /* edge[s]: into stage s */
	struct skep_op op;
};

static void pipeline_init(struct pipeline *p, struct fixture *f, uint32_t stages)
{
	*p = (struct pipeline){.f = f, .op = {.round = 3, .microbatch = 1, .version = 3}};
	f->plan.stages = stages;
	for (uint32_t s = 0; s < stages; s++) {
		assert_true(skep_stage_init(&f->training, s, &p->stage[s]));
		p->edge[s] = numbers(p->stage[s].entering, 9, 1);
		p->stash[s] = malloc(p->stage[s].stash_bytes);
		assert_non_null(p->stash[s]);
	}
}

static void pipeline_finish(struct pipeline *p)
{
	for (uint32_t s = 0; s < p->f->plan.stages; s++) {
		skep_stage_finish(&p->stage[s]);
		free(p->edge[s]), free(p->stash[s]);
	}
}

static double pipeline_loss(struct pipeline *p)
{
	double loss = 0;
	struct skep_diag diag = {0};
	for (uint32_t s = 0; s < p->f->plan.stages; s++)
		assert_true(skep_cpu_forward(&p->stage[s], &p->f->training, &p->op, s ? p->edge[s] : NULL,
			s + 1 < p->f->plan.stages ? p->edge[s + 1] : NULL, p->stash[s], &loss, &diag));
	return loss;
}

/* With the activations that it kept, or with those made again. */
static void pipeline_backward(struct pipeline *p, bool again)
{
	skep_real *gradient = NULL;
	for (uint32_t s = p->f->plan.stages; s-- > 0;) {
		struct skep_stage *stage = &p->stage[s];
		struct skep_diag diag = {0};
		if (again) {
			memset(p->stash[s], 0x55, stage->stash_bytes);
			assert_true(skep_cpu_recompute(
				stage, &p->f->training, &p->op, s ? p->edge[s] : NULL, p->stash[s], &diag));
		}
		if (gradient)
			memcpy(stage->scratch[0], gradient, stage->leaving * sizeof *gradient);
		free(gradient);
		gradient = s ? numbers(stage->entering, 9, 1) : NULL;
		const skep_real *at = NULL;
		for (uint32_t l = stage->layers; l-- > 0;) { /* each with what the one above has left */
			struct skep_layers one = {l, l + 1};
			at = skep_cpu_backward(stage, &p->f->training, &p->op, &one, s ? p->edge[s] : NULL, p->stash[s],
				l ? NULL : gradient);
			if (l)
				memmove(stage->scratch[0], at,
					p->f->training.samples * stage->layer[l].in * sizeof *at);
		}
		assert_ptr_equal(at, gradient);
	}
}

/* Every seventh parameter of each stage. */
static void check_pipeline(struct fixture *f, uint32_t stages, bool again)
{
	struct pipeline p;
	pipeline_init(&p, f, stages);
	pipeline_loss(&p);
	pipeline_backward(&p, again);
	double scale = 0;
	for (uint32_t s = 0; s < stages; s++)
		for (size_t i = 0; i < p.stage[s].parameters; i++)
			scale = fmax(scale, fabs(p.stage[s].accumulator[1][i]));
	assert_true(scale > 0.01);
	for (uint32_t s = 0; s < stages; s++)
		for (size_t i = s; i < p.stage[s].parameters; i += 7) {
			skep_real *at = p.stage[s].parameter + i, was = *at;
			*at = was + STEP;
			double above = pipeline_loss(&p);
			*at = was - STEP;
			double expected = (above - pipeline_loss(&p)) / (2 * STEP);
			*at = was;
			if (!(fabs(p.stage[s].accumulator[1][i] - expected) < TOLERANCE * scale))
				fail_msg("stage %u of %u, parameter %zu: %.10g, not %.10g", s, stages, i,
					p.stage[s].accumulator[1][i], expected);
		}
	pipeline_finish(&p);
}

static void test_whole_models(void **state)
{
	(void)state;
	struct fixture f;
	for (int a = SKEP_ARCHITECTURE_GPT2; a <= SKEP_ARCHITECTURE_BERT; a++) {
		init(&f, (enum skep_architecture)a, 2, 2, 2);
		check_pipeline(&f, 1, false);
		check_pipeline(&f, 2, true);
		check_pipeline(&f, 4, false);
		f.model.tied = true;
		check_pipeline(&f, 1, false);
		finish(&f);
	}
	init_dense(&f, SKEP_ACTIVATION_TANH);
	check_pipeline(&f, 1, false);
	check_pipeline(&f, 3, true);
}

/* Losses, and gradients one after the other, are the same to the bit however a model is cut. */
static void test_a_cut_changes_no_bit(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, SKEP_ARCHITECTURE_LLAMA, 2, 1, 3);
	skep_real *first = NULL;
	double loss = 0;
	for (uint32_t stages = 1; stages <= 4; stages++) {
		struct pipeline p;
		size_t n = 0;
		pipeline_init(&p, &f, stages);
		double now = pipeline_loss(&p);
		pipeline_backward(&p, stages == 3);
		assert_true(stages == 1 || now == loss);
		loss = now;
		for (uint32_t s = 0; s < stages; s++) {
			size_t bytes = p.stage[s].parameters * sizeof *first;
			if (stages == 1) {
				first = malloc(bytes);
				assert_non_null(first);
				memcpy(first, p.stage[0].accumulator[1], bytes);
			}
			assert_memory_equal(first + n, p.stage[s].accumulator[1], bytes);
			n += p.stage[s].parameters;
		}
		pipeline_finish(&p);
	}
	free(first);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dense_layers),
		cmocka_unit_test(test_gpt2_layers),
		cmocka_unit_test(test_llama_layers),
		cmocka_unit_test(test_bert_layers),
		cmocka_unit_test(test_resnet_layers),
		cmocka_unit_test(test_experts),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_whole_models),
		cmocka_unit_test(test_a_cut_changes_no_bit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
