/* SPDX-License-Identifier: Apache-2.0
 *
 * test_freeze.c - models whose first layers are frozen: the gradients of what is trained are those of the whole model, to the
 * bit, whatever the cut; what is frozen has none, and no step changes it; norms, states and memory are of what is trained.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/corpus/tokens.h"
#include "models/update/squares.h"
#include "tests/unit/job.h"
#include "tests/unit/observed_device.h"

/* ---- models ----------------------------------------------------------------------------------------------------- */

struct shape { /* a model, its layers in each stage, and how many of them are frozen */
	const char *name;
	bool tied, recomputes;
	uint32_t frozen, stages;
	uint32_t layers[STAGES_MAX];
};

static const struct shape shapes[] = {
	{.name = "mlp", .frozen = 3, .stages = 1, .layers = {6}},
	{.name = "mlp", .frozen = 3, .stages = 3, .layers = {2, 2, 2}},
	{.name = "mlp", .frozen = 5, .stages = 3, .layers = {2, 2, 2}},
	{.name = "mlp", .frozen = 2, .stages = 3, .layers = {2, 2, 2}, .recomputes = true},
	{.name = "tiny-gpt2", .frozen = 1, .stages = 1, .layers = {6}},
	{.name = "tiny-gpt2", .frozen = 3, .stages = 2, .layers = {2, 4}},
	{.name = "tiny-gpt2", .frozen = 3, .stages = 3, .layers = {1, 2, 3}, .recomputes = true},
	{.name = "tiny-gpt2", .frozen = 5, .stages = 2, .layers = {4, 2}},
	{.name = "tiny-gpt2", .frozen = 3, .stages = 1, .layers = {6}, .tied = true},
	{.name = "tiny-gpt2", .frozen = 3, .stages = 2, .layers = {2, 4}, .tied = true},
	{.name = "tiny-llama", .frozen = 2, .stages = 2, .layers = {2, 4}},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void read_model(const char *name, struct skep_model *ret)
{
	job_read_model(name, ret);
	skep_model_set_sequence(ret, 16);
}

/* With `frozen` layers in place of the shape's. */
static void init(struct job *job, const struct shape *shape, uint32_t frozen)
{
	bool mlp = strcmp(shape->name, "mlp") == 0;
	job_init(job, 1, SKEP_ACTIVATION_TANH, 6, 8);
	if (!mlp) {
		read_model(shape->name, &job->model);
		job->training.samples = 2;
		job->training.corpus = SKEP_CORPUS_TOKENS;
		job->training.tokens = job_open_text(job->model.sequence);
	}
	job->model.tied = shape->tied;
	skep_model_part(&job->model, shape->stages);
	job->model.frozen = frozen;
	job->model.cuts = shape->stages;
	job->model.cut = calloc(shape->stages, sizeof *job->model.cut);
	memcpy(job->model.cut, shape->layers, shape->stages * sizeof *job->model.cut);
	job->plan.stages = job->plan.workers = shape->stages;
	job->plan.frozen_vstages = skep_model_frozen_stages(&job->model, shape->stages);
	job->training.checkpoint_activations = shape->recomputes ? SKEP_CHECKPOINTING_ALL : SKEP_CHECKPOINTING_NONE;
	job_restart(job);
}

static void finish(struct job *job)
{
	job_finish(job);
	skep_tokens_close((struct skep_tokens *)job->training.tokens);
	if (job->model.width == job->width)
		job->model.width = NULL;
	skep_model_finish(&job->model);
}

static struct skep_cost cost_of(const struct job *job, uint32_t stage)
{
	struct skep_cost cost;
	skep_model_cost(&job->model, job->plan.stages, stage, &cost);
	return cost;
}

/* ---- gradients ---------------------------------------------------------------------------------------------------- */

/* Of what is trained of a stage of `frozen`, in either of the two jobs; NULL: nothing is. */
static float *gradients(struct job *job, const struct job *frozen, uint32_t stage, uint64_t *ret_bytes)
{
	const struct skep_cost cost = cost_of(frozen, stage);
	const struct skep_op take = {.kind = SKEP_OP_COPY_GRAD,
		.stage = (uint16_t)stage,
		.size = 1,
		.first = cost.frozen,
		.count = cost.trained};
	*ret_bytes = 0;
	return cost.trained > 0 ? job_dump(job->device[stage], take, ret_bytes) : NULL;
}

static void test_gradients_are_those_of_the_whole_model(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct job whole, part;
		uint64_t bytes, same;
		init(&whole, &shapes[i], 0);
		init(&part, &shapes[i], shapes[i].frozen);
		for (uint32_t m = 0; m < 2; m++)
			assert_int_equal(job_microbatch(&whole, 0, m), job_microbatch(&part, 0, m));
		for (uint32_t s = 0; s < shapes[i].stages; s++) {
			float *a = gradients(&whole, &part, s, &bytes), *b = gradients(&part, &part, s, &same);
			assert_true(bytes == same && bytes == sizeof(float) * cost_of(&part, s).trained);
			for (size_t n = 0, any = 0; n < bytes / sizeof *a; n++) {
				any += a[n] != 0;
				assert_true(n + 1 < bytes / sizeof *a || any > 0);
			}
			if (bytes > 0)
				assert_memory_equal(a, b, bytes);
			free(a), free(b);
		}
		finish(&whole);
		finish(&part);
	}
}

static void test_parts_of_a_pass_add_up(void **state)
{
	(void)state;
	struct job whole, part;
	struct job_passage passage;
	uint64_t bytes;
	init(&whole, &shapes[0], shapes[0].frozen);
	init(&part, &shapes[0], shapes[0].frozen);
	job_microbatch(&whole, 0, 0);
	job_forward(&part, 0, 0, &passage);
	const struct skep_cost cost = cost_of(&part, 0);
	struct skep_op op = {.kind = SKEP_OP_BACKWARD, .size = 2, .stash = passage.stash[0]};
	uint64_t last = 9, end = cost.frozen + cost.trained; /* the parameters of the last layer, 8 -> 1 */
	for (op.chunk = 0; op.chunk < 2; op.chunk++) {
		op.first = op.chunk == 0 ? end - last : cost.frozen;
		op.count = op.chunk == 0 ? last : cost.trained - last;
		struct skep_device_result result = job_run(part.device[0], op);
		assert_false(result.failed);
		assert_true((result.out.slot != 0) == (op.chunk == 0));
		skep_device_buffer_release(part.device[0], op.gradient);
		op.gradient = result.out;
	}
	skep_device_buffer_release(part.device[0], op.stash);
	float *a = gradients(&whole, &whole, 0, &bytes), *b = gradients(&part, &part, 0, &bytes);
	assert_memory_equal(a, b, bytes);
	free(a), free(b);
	finish(&whole);
	finish(&part);
}

/* ---- steps -------------------------------------------------------------------------------------------------------- */

/* Are the frozen ones of `after` those of `before`, and do the trained ones equal `other`, or differ from it, as asked? */
static void compare(const struct job *job, const float *before, const float *after, const float *other, bool equal)
{
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		const struct skep_cost cost = cost_of(job, s);
		const size_t end = cost.frozen + cost.trained, rest = cost.parameters - end;
		assert_memory_equal(before, after, cost.frozen * sizeof *after);
		assert_memory_equal(before + end, after + end, rest * sizeof *after);
		int differ = memcmp(other + cost.frozen, after + cost.frozen, cost.trained * sizeof *after);
		assert_int_equal(differ == 0, equal || cost.trained == 0);
		before += cost.parameters, after += cost.parameters, other += cost.parameters;
	}
}

static void test_steps_change_what_is_trained_alone(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct job whole, part;
		size_t n;
		init(&whole, &shapes[i], 0);
		init(&part, &shapes[i], shapes[i].frozen);
		float *before = job_parameters(&part, &n);
		for (uint32_t m = 0; m < 2; m++)
			job_microbatch(&whole, 0, m), job_microbatch(&part, 0, m);
		job_step(&whole, 0, 2);
		job_step(&part, 0, 2);
		float *one = job_parameters(&part, &n), *reference = job_parameters(&whole, &n);
		compare(&part, before, one, reference, true);
		for (uint32_t round = 1; round < 4; round++) {
			job_microbatch(&part, round, 0);
			job_step(&part, round, 1);
		}
		float *all = job_parameters(&part, &n);
		compare(&part, before, all, one, false);
		free(before), free(one), free(reference), free(all);
		finish(&whole);
		finish(&part);
	}
}

static void test_a_cut_changes_no_loss(void **state)
{
	(void)state;
	static const struct shape cuts[] = {
		{.name = "tiny-gpt2", .frozen = 3, .stages = 1, .layers = {6}},
		{.name = "tiny-gpt2", .frozen = 3, .stages = 3, .layers = {2, 2, 2}},
		{.name = "tiny-gpt2", .frozen = 3, .stages = 2, .layers = {3, 3}, .recomputes = true},
	};
	int64_t first[4];
	for (int i = 0; i < 3; i++) {
		struct job job;
		init(&job, &cuts[i], cuts[i].frozen);
		for (uint32_t round = 0; round < 4; round++) {
			int64_t loss = job_microbatch(&job, round, 0);
			assert_true(i == 0 || loss == first[round]);
			first[round] = loss;
			job_step(&job, round, 1);
		}
		finish(&job);
	}
}

static void test_norms_are_of_what_is_trained(void **state)
{
	(void)state;
	struct job job;
	uint64_t bytes;
	init(&job, &shapes[5], shapes[5].frozen);
	job_microbatch(&job, 0, 0);
	for (uint32_t s = 0; s < job.plan.stages; s++) {
		const struct skep_op norm = {.kind = SKEP_OP_NORM, .stage = (uint16_t)s, .size = 1};
		float *gradient = gradients(&job, &job, s, &bytes);
		double squares = gradient ? skep_squares_sum(bytes / sizeof *gradient, gradient) : 0;
		assert_int_equal(job_run(job.device[s], norm).square, skep_squares_encode(squares));
		free(gradient);
	}
	finish(&job);
}

/* ---- states and memory ---------------------------------------------------------------------------------------------- */

static void test_states_in_chunks(void **state)
{
	(void)state;
	enum { CHUNKS = 5 };
	for (int i = 0; i < SHAPES; i++) {
		struct job from, to;
		init(&from, &shapes[i], shapes[i].frozen);
		init(&to, &shapes[i], shapes[i].frozen);
		job_microbatch(&from, 0, 0);
		job_step(&from, 0, 1);
		for (uint32_t s = 0; s < shapes[i].stages; s++) {
			const struct skep_cost cost = cost_of(&from, s);
			struct skep_stage_plan stages[STAGES_MAX] = {0};
			stages[s] = (struct skep_stage_plan){.parameters = cost.parameters,
				.frozen = cost.frozen,
				.frozen_end = cost.parameters - cost.frozen - cost.trained,
				.state_chunks = CHUNKS,
				.state_bytes = skep_device_state_bytes(
					&from.training.optimizer, cost.parameters, cost.trained, CHUNKS)};
			from.plan.stage = stages;
			uint64_t all = 0, bytes, same;
			struct skep_op save = {.kind = SKEP_OP_SAVE, .stage = (uint16_t)s, .chunks = CHUNKS};
			for (save.chunk = 0; save.chunk < CHUNKS; save.chunk++) {
				struct skep_op load = save;
				load.kind = SKEP_OP_LOAD;
				load.in = job_carry(from.device[s], job_run(from.device[s], save).out, to.device[s]);
				skep_device_buffer_read(to.device[s], load.in, &bytes);
				assert_int_equal(bytes, skep_state_chunk_bytes(&from.plan, s, save.chunk));
				all += bytes;
				assert_false(job_run(to.device[s], load).failed);
				skep_device_buffer_release(to.device[s], load.in);
			}
			assert_int_equal(all, stages[s].state_bytes);
			save = (struct skep_op){.kind = SKEP_OP_SAVE, .stage = (uint16_t)s};
			float *a = job_dump(from.device[s], save, &bytes), *b = job_dump(to.device[s], save, &same);
			assert_int_equal(bytes, same);
			assert_memory_equal(a, b, bytes);
			free(a), free(b);
		}
		from.plan.stage = NULL;
		finish(&from);
		finish(&to);
	}
}

static void test_a_state_of_another_freeze_is_refused(void **state)
{
	(void)state;
	struct job whole, part;
	uint64_t bytes;
	init(&whole, &shapes[0], 0);
	init(&part, &shapes[0], shapes[0].frozen);
	float *saved = job_dump(whole.device[0], (struct skep_op){.kind = SKEP_OP_SAVE}, &bytes);
	assert_true(job_load(part.device[0], 0, saved, bytes).failed);
	free(saved);
	finish(&whole);
	finish(&part);
}

static void test_memory_is_of_what_is_trained(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct job job;
		init(&job, &shapes[i], shapes[i].frozen);
		for (uint32_t s = 0; s < shapes[i].stages; s++) {
			const struct skep_cost cost = cost_of(&job, s);
			const struct device_memory memory = device_memory_of(job.device[s]);
			assert_int_equal(memory.weights_bytes, sizeof(float) * cost.parameters);
			assert_int_equal(memory.gradients_bytes, 2 * sizeof(float) * cost.trained);
			assert_int_equal(memory.optimizer_bytes, 2 * sizeof(float) * cost.trained);
			assert_int_equal(memory.result_bytes, sizeof(float) * cost.trained);
		}
		finish(&job);
	}
}

/* ---- costs ---------------------------------------------------------------------------------------------------------- */

/* Of layers first .. first + count - 1: none of those that are frozen, and of a perceptron's first other one a product less. */
static double backward_flop(const struct job *job, struct skep_model *thawed, uint32_t first, uint32_t count)
{
	double flop = 0;
	for (uint32_t l = first; l < first + count; l++) {
		struct skep_cost one;
		skep_model_cost(thawed, thawed->layers, l, &one);
		bool last = job->model.hidden == 0 && l == job->model.frozen;
		flop += l < job->model.frozen ? 0 : last ? one.forward_flop : one.backward_flop;
	}
	return flop;
}

static void test_costs_of_frozen_layers(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct job job;
		init(&job, &shapes[i], shapes[i].frozen);
		struct skep_model thawed = job.model;
		thawed.frozen = 0;
		for (uint32_t s = 0, first = 0; s < shapes[i].stages; first += shapes[i].layers[s++]) {
			const struct skep_cost cost = cost_of(&job, s);
			struct skep_cost whole;
			skep_model_cost(&thawed, shapes[i].stages, s, &whole);
			const bool none = first + shapes[i].layers[s] <= shapes[i].frozen;
			const bool all =
				first >= shapes[i].frozen; /* a perceptron's first one then has one product less */
			assert_true(cost.forward_flop == whole.forward_flop && whole.trained == whole.parameters);
			assert_true(cost.parameters == whole.parameters && whole.frozen == 0);
			assert_int_equal(none, s < job.plan.frozen_vstages);
			assert_true(none == (cost.trained == 0) && (!none || cost.backward_flop == 0));
			assert_true(!none || (cost.stash_bytes == 0 && cost.workspace_bytes == whole.stash_bytes));
			if (all && !shapes[i].tied)
				assert_true(
					cost.trained == cost.parameters && cost.backward_bytes == whole.backward_bytes);
			else if (!all)
				assert_true(cost.backward_bytes < whole.backward_bytes);
			if (!shapes[i].tied)
				assert_true(
					cost.backward_flop == backward_flop(&job, &thawed, first, shapes[i].layers[s]));
		}
		finish(&job);
	}
}

/* A head that shares a frozen table goes back through it once: no gradient of the table is made. */
static void test_cost_of_a_frozen_table(void **state)
{
	(void)state;
	struct shape shape = {.name = "tiny-gpt2", .frozen = 3, .stages = 2, .layers = {5, 1}, .tied = true};
	struct job job;
	init(&job, &shape, shape.frozen);
	const struct skep_cost head = cost_of(&job, 1);
	assert_int_equal(head.trained, 2 * job.model.hidden); /* its norm */
	assert_true(head.frozen == 0 && head.backward_flop == head.forward_flop);
	finish(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients_are_those_of_the_whole_model),
		cmocka_unit_test(test_parts_of_a_pass_add_up),
		cmocka_unit_test(test_steps_change_what_is_trained_alone),
		cmocka_unit_test(test_a_cut_changes_no_loss),
		cmocka_unit_test(test_norms_are_of_what_is_trained),
		cmocka_unit_test(test_states_in_chunks),
		cmocka_unit_test(test_a_state_of_another_freeze_is_refused),
		cmocka_unit_test(test_memory_is_of_what_is_trained),
		cmocka_unit_test(test_costs_of_frozen_layers),
		cmocka_unit_test(test_cost_of_a_frozen_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
