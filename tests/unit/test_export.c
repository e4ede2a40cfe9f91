/* SPDX-License-Identifier: Apache-2.0
 *
 * test_export.c - weights of files become the first parameters of stages, whatever the cut, and checkpoints become files of
 * weights that are the same to the bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/checkpoint/checkpoint_folder.h"
#include "models/read/hf_config.h"
#include "models/stage/stage_weights.h"
#include "tests/unit/fresh.h"

static const char gpt2[] = "tests/data/hf/gpt2", llama[] = "tests/data/hf/llama";

struct bench { /* not to be moved */
	char folder[64], kept[96], out[96];
	struct skep_model model;
	struct skep_plan plan;
	struct skep_training training;
	struct skep_export options;
	struct skep_export_facts facts;
	struct skep_diag diag;
	uint64_t run; /* which keeps */
};

static void good(bool ok, const struct skep_diag *diag)
{
	if (!ok)
		print_message("%s: %s\n", diag->file, diag->message);
	assert_true(ok);
}

static void begin(struct bench *b, const char *from, uint32_t stages)
{
	char path[96], *list;
	memset(b, 0, sizeof *b);
	strcpy(b->folder, "/tmp/skep-export-XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	strcpy(stpcpy(b->kept, b->folder), "/kept");
	strcpy(stpcpy(b->out, b->folder), "/out");
	snprintf(path, sizeof path, "%s/config.json", from);
	good(skep_model_read(path, &b->model, &b->diag), &b->diag);
	b->plan = (struct skep_plan){.workers = stages, .stages = stages, .microbatches = 1, .seed = 3};
	b->training = (struct skep_training){
		.model = &b->model, .plan = &b->plan, .samples = 1, .optimizer = {.kind = SKEP_OPTIMIZER_ADAMW}};
	b->training.weights = skep_model_weights_open(&b->model, from, &list, &b->diag);
	good(b->training.weights != NULL, &b->diag);
	free(list);
	b->options = (struct skep_export){.from = b->kept, .job = 7, .to = b->out, .name = "test"};
}

static void finish(struct bench *b)
{
	char command[128];
	skep_safetensors_close((struct skep_safetensors *)b->training.weights);
	skep_model_finish(&b->model);
	snprintf(command, sizeof command, "rm -r %s", b->folder);
	assert_int_equal(system(command), 0);
}

/* As a worker of that stage keeps it. */
static void keep(struct bench *b, uint32_t index, uint32_t version)
{
	struct skep_checkpoint_folder folder = {.path = b->kept, .job = b->options.job, .run = 1 + b->run};
	struct skep_keeper keeper = skep_checkpoint_keeper(&folder);
	struct skep_stage stage;
	struct skep_diag why;
	assert_true(skep_stage_begin(&b->training, NULL, index, &stage));
	uint64_t bytes = skep_stage_kept_bytes(&stage);
	void *state = malloc(bytes);
	stage.steps = version;
	skep_stage_keep(&stage, state);
	assert_true(keeper.write(keeper.context, index, version, false, state, bytes, fresh(&why)));
	free(state);
	skep_stage_finish(&stage);
}

static void keep_all(struct bench *b, uint32_t version)
{
	for (uint32_t s = 0; s < b->plan.stages; s++)
		keep(b, s, version);
}

static void export(struct bench *b)
{
	good(skep_export_weights(&b->training, &b->options, &b->facts, &b->diag), &b->diag);
}

static void refused(struct bench *b, const char *why)
{
	assert_false(skep_export_weights(&b->training, &b->options, &b->facts, &b->diag));
	if (strstr(b->diag.message, why) == NULL)
		print_message("%s: %s\n", b->diag.file, b->diag.message);
	assert_non_null(strstr(b->diag.message, why));
	b->diag.set = false;
}

static void expect_same(const char *a, const char *b)
{
	struct skep_diag diag = {0};
	struct skep_safetensors *x = skep_safetensors_open(a, &diag), *y = skep_safetensors_open(b, &diag);
	assert_non_null(x);
	assert_non_null(y);
	assert_int_equal(skep_safetensors_count(x), skep_safetensors_count(y));
	for (uint32_t i = 0; i < skep_safetensors_count(x); i++) {
		const struct skep_safetensor *t = skep_safetensors_item(x, i), *u = skep_safetensors_item(y, i);
		assert_string_equal(t->name, u->name);
		assert_int_equal(t->dimensions, u->dimensions);
		assert_memory_equal(t->shape, u->shape, sizeof t->shape);
		assert_int_equal(t->bytes, u->bytes);
		assert_memory_equal(t->data, u->data, t->bytes);
	}
	skep_safetensors_close(x);
	skep_safetensors_close(y);
}

static void same_config(const struct skep_model *a, const struct skep_model *b)
{
	struct skep_hf_config x = skep_hf_config_of(a), y = skep_hf_config_of(b);
	char *text_x = skep_hf_config_print(&x), *text_y = skep_hf_config_print(&y);
	assert_non_null(text_x);
	assert_non_null(text_y);
	assert_string_equal(text_x, text_y);
	free(text_x);
	free(text_y);
}

/* In through three stages, out through checkpoints: what was read, byte for byte. */
static void test_weights_go_through_stages(void **state)
{
	(void)state;
	static const struct {
		const char *from;
		uint32_t stages;
		uint64_t parameters;
	} c[] = {{gpt2, 1, 7616}, {llama, 1, 6992}, {llama, 2, 6992}, {llama, 4, 6992}};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct bench b;
		char path[128];
		struct skep_model model;
		begin(&b, c[i].from, c[i].stages);
		keep_all(&b, 20);
		export(&b);
		assert_int_equal(b.facts.step, 20);
		expect_same(c[i].from, b.out);
		snprintf(path, sizeof path, "%s/config.json", b.out);
		good(skep_model_read(path, &model, &b.diag), &b.diag);
		same_config(&model, &b.model);
		assert_int_equal(b.facts.parameters, c[i].parameters);
		skep_model_finish(&model);
		finish(&b);
	}
}

/* Stages that begin with weights are those of a whole model that begins with them. */
static void test_the_cut_does_not_matter(void **state)
{
	(void)state;
	struct bench whole, cut;
	struct skep_stage one, part;
	size_t at = 0;
	begin(&whole, llama, 1);
	begin(&cut, llama, 3);
	assert_true(skep_stage_begin(&whole.training, NULL, 0, &one));
	for (uint32_t s = 0; s < 3; s++) {
		assert_true(skep_stage_begin(&cut.training, NULL, s, &part));
		assert_memory_equal(one.parameter + at, part.parameter, part.parameters * sizeof(float));
		at += part.parameters;
		skep_stage_finish(&part);
	}
	assert_int_equal(at, one.parameters);
	uint64_t read = skep_stage_digest(&one);
	skep_stage_finish(&one);
	assert_true(skep_stage_init(&whole.training, 0, &one)); /* drawn */
	assert_true(skep_stage_digest(&one) != read);
	skep_stage_finish(&one);
	finish(&whole);
	finish(&cut);
}

static uint32_t newest(const struct bench *b, const char *path, uint32_t stages)
{
	struct skep_checkpoints list;
	assert_true(skep_checkpoints_find(path, b->options.job, stages, &list));
	uint32_t version = list.versions > 0 ? list.version[list.versions - 1] : 0;
	skep_checkpoints_finish(&list);
	return version;
}

static void test_the_newest_of_all_stages(void **state)
{
	(void)state;
	struct bench b;
	begin(&b, llama, 2);
	refused(&b, "has no checkpoint of all 2 stages: `skep run` of this scenario keeps them");
	for (uint32_t version = 1; version <= 10; version++)
		keep_all(&b, version);
	keep(&b, 0, 20);
	assert_int_equal(newest(&b, b.kept, 1), 20);
	assert_int_equal(newest(&b, b.kept, 2), 10);
	assert_int_equal(newest(&b, b.kept, 3), 0);
	assert_int_equal(newest(&b, "/tmp/no-such-checkpoints", 1), 0);
	export(&b);
	assert_int_equal(b.facts.step, 10);
	b.options.step = 9;
	export(&b);
	assert_int_equal(b.facts.step, 9);
	b.options.step = 20;
	refused(&b, "has no checkpoint of all 2 stages of step 20, but of steps 1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
	b.training.optimizer.kind = SKEP_OPTIMIZER_SGD;
	b.options.step = 9;
	refused(&b, "of another stage, version, model or optimizer");
	finish(&b);
}

/* Rounds of four inner steps: steps are counted as the results count them. */
static void test_steps_of_rounds(void **state)
{
	(void)state;
	struct bench b;
	begin(&b, llama, 2);
	b.plan.inner.steps = 4;
	for (uint32_t version = 1; version <= 12; version++)
		keep_all(&b, version);
	export(&b);
	assert_int_equal(b.facts.step, 48);
	b.options.step = 44;
	export(&b);
	assert_int_equal(b.facts.step, 44);
	b.options.step = 11;
	refused(&b, "of step 11, but of steps ... 12, 16, 20, 24, 28, 32, 36, 40, 44, 48");
	finish(&b);
}

/* An older run has come further, one of another seed has come further still: neither is taken. */
static void test_the_last_run_of_the_job(void **state)
{
	(void)state;
	struct bench b;
	begin(&b, llama, 2);
	for (uint32_t version = 6; version <= 9; version++)
		keep_all(&b, version);
	b.run = 1;
	keep_all(&b, 2);
	keep_all(&b, 4);
	keep(&b, 0, 5);
	b.run = 2; /* has just begun */
	keep(&b, 1, 1);
	b.options.job++;
	b.run = 3;
	keep_all(&b, 11);
	b.options.job--;
	export(&b);
	assert_int_equal(b.facts.step, 4);
	b.options.step = 8;
	refused(&b, "has no checkpoint of all 2 stages of step 8, but of steps 2, 4");
	b.options.job += 2;
	refused(&b, "of runs with another seed or scenario: take the --seed and --set of that run");
	finish(&b);
}

/* What cannot be exported leaves what was there. */
static void test_old_weights_stay(void **state)
{
	(void)state;
	struct bench b;
	char path[128];
	begin(&b, gpt2, 1);
	keep_all(&b, 5);
	export(&b);
	snprintf(path, sizeof path, "%s/stage-0-version-6.kept", b.kept);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("cut off", file);
	fclose(file);
	refused(&b, "no checkpoint"); /* it is the newest, and damaged */
	expect_same(gpt2, b.out);
	b.options.step = 5;
	b.options.to = "/tmp/no-such-folder/out";
	refused(&b, "cannot be made: No such file");
	b.options.to = path;
	refused(&b, "Not a directory");
	finish(&b);
}

static void test_halves(void **state)
{
	(void)state;
	struct bench b;
	char *list;
	begin(&b, gpt2, 1);
	keep_all(&b, 5);
	b.options.dtype = SKEP_DTYPE_BF16;
	export(&b);
	struct skep_safetensors *set = skep_model_weights_open(&b.model, b.out, &list, &b.diag);
	good(set != NULL, &b.diag);
	assert_int_equal(skep_safetensors_item(set, 0)->dtype, SKEP_DTYPE_BF16);
	free(list);
	skep_safetensors_close(set);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights_go_through_stages),
		cmocka_unit_test(test_the_cut_does_not_matter),
		cmocka_unit_test(test_the_newest_of_all_stages),
		cmocka_unit_test(test_steps_of_rounds),
		cmocka_unit_test(test_the_last_run_of_the_job),
		cmocka_unit_test(test_old_weights_stay),
		cmocka_unit_test(test_halves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
