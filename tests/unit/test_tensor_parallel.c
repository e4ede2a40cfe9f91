/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tensor_parallel.c - tensor and sequence parallelism on CPU devices: ranks are threads, each with the devices of its own
 * shard, that meet in a group made of barriers. Losses, gradients and parameters are those of the whole model but for rounding;
 * the ranks agree to the bit; shards begin as parts of the whole; and what goes through the group is what
 * models/layers/block.c counts.
 */
#include "tests/unit/tied_job.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/corpus/tokens.h"
#include "models/layers/tensor_group.h"
#include "models/stage/stage_weights.h"
#include "models/tensor/runs.h"
#include "models/weights/hf_weights.h"

enum { RANKS_MAX = 4, STEPS = 20, MICROBATCHES = 2, PER_MICROBATCH = 3 };

/* ---- a group of threads ------------------------------------------------------------------------------------------- */

struct shared {
	uint32_t ranks;
	pthread_barrier_t barrier;
	skep_real *array[RANKS_MAX];
	double number[RANKS_MAX];
};

struct member {
	struct shared *shared;
	uint32_t rank;
	uint64_t sent; /* bytes of gathers and reductions, to all the others together */
	uint64_t sums;
	size_t damages; /* a gather of so many numbers of each rank: the first one comes with a wrong bit; 0: none does */
	struct skep_tensor_group group;
};

static void meet(struct member *m)
{
	pthread_barrier_wait(&m->shared->barrier);
}

static void gather(void *context, size_t n, const skep_real *own, skep_real *ret)
{
	struct member *m = context;
	m->shared->array[m->rank] = (skep_real *)own; /* read alone */
	meet(m);
	for (uint32_t r = 0; r < m->shared->ranks; r++)
		if (ret + r * n != m->shared->array[r])
			memcpy(ret + r * n, m->shared->array[r], n * sizeof *ret);
	m->sent += (m->shared->ranks - 1) * n * sizeof *ret;
	meet(m);
	if (n == m->damages) { /* all have read its own part, which may lie there */
		((unsigned char *)ret)[2] ^= 64;
		m->damages = 0;
	}
}

static void reduce_scatter(void *context, size_t n, skep_real *full, skep_real *ret)
{
	struct member *m = context;
	m->shared->array[m->rank] = full;
	meet(m);
	for (size_t i = 0; i < n; i++) {
		skep_real sum = m->shared->array[0][m->rank * n + i];
		for (uint32_t r = 1; r < m->shared->ranks; r++)
			sum += m->shared->array[r][m->rank * n + i];
		ret[i] = sum;
	}
	m->sent += (m->shared->ranks - 1) * n * sizeof *ret;
	meet(m);
	for (uint32_t r = 0; r < m->shared->ranks; r++) /* what a caller may not count on */
		for (size_t i = 0; i < n; i++)
			if (full + r * n + i < ret || full + r * n + i >= ret + n)
				full[r * n + i] = NAN;
}

static double sum_up(void *context, double own)
{
	struct member *m = context;
	double sum = 0;
	m->shared->number[m->rank] = own;
	meet(m);
	for (uint32_t r = 0; r < m->shared->ranks; r++)
		sum += m->shared->number[r];
	m->sums++;
	meet(m);
	return sum;
}

/* ---- jobs --------------------------------------------------------------------------------------------------------- */

struct shape {
	const char *name;
	uint32_t ranks, stages, shared;
	bool recomputes, clips, tied, lamb;
};

static const struct shape shapes[] = {
	{.name = "tiny-gpt2", .ranks = 2, .stages = 1, .shared = 1},
	{.name = "tiny-gpt2", .ranks = 2, .stages = 2, .shared = 1, .recomputes = true, .clips = true},
	{.name = "tiny-gpt2", .ranks = 4, .stages = 2, .shared = 2, .clips = true},
	{.name = "tiny-gpt2", .ranks = 4, .stages = 1, .shared = 1, .tied = true},
	{.name = "tiny-gpt2", .ranks = 2, .stages = 2, .shared = 1, .tied = true, .recomputes = true},
	{.name = "tiny-llama", .ranks = 2, .stages = 1, .shared = 1, .recomputes = true, .clips = true},
	{.name = "tiny-llama", .ranks = 2, .stages = 2, .shared = 1, .tied = true},
	{.name = "tiny-llama", .ranks = 4, .stages = 2, .shared = 2, .clips = true},
	{.name = "tiny-gpt2", .ranks = 2, .stages = 1, .shared = 1, .lamb = true},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

struct rank {
	struct job job;
	struct member member;
	pthread_t thread;
	int64_t loss[STEPS][MICROBATCHES];
	float *first, *gradient, *last; /* parameters of all stages at the start, the first gradients, and at the end */
	size_t numbers;
	uint64_t pass_bytes, pass_sums; /* of one microbatch */
	double norm;
	struct skep_device_result step;
};

struct run {
	const struct shape *shape;
	struct skep_tokens *tokens;
	struct shared shared;
	struct rank whole, rank[RANKS_MAX];
};

/* 257 tokens are no multiple of 2 or 4. With twice the rate the losses of step 19 jump, and differences between any two orders
 * of addition with them, a hundred times as far as in the step before. The gradient of the keys' biases is 0 but for rounding,
 * from which Adam makes steps as large as any unless its epsilon is above that. */
static void configure(const struct run *run, struct job *job)
{
	const struct shape *shape = run->shape;
	job->plan.stages = job->plan.workers = shape->stages;
	job->plan.clip = shape->clips;
	job->plan.tied = skep_model_copied(&job->model);
	job->training.samples = PER_MICROBATCH;
	job->training.corpus = SKEP_CORPUS_TOKENS;
	job->training.tokens = run->tokens;
	job->training.checkpoint_activations = shape->recomputes ? SKEP_CHECKPOINTING_ALL : SKEP_CHECKPOINTING_NONE;
	job->training.optimizer.clip_norm = 0.25f;
	job->training.optimizer.learning_rate = 1e-3f;
	if (shape->lamb) {
		job->training.optimizer.kind = SKEP_OPTIMIZER_LAMB;
		job->training.optimizer.learning_rate = 1e-2f;
	}
	job->training.optimizer.epsilon = 1e-4f;
	job_restart(job);
}

static void init_whole(struct run *run)
{
	struct job *job = &run->whole.job;
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	job_read_model(run->shape->name, &job->model);
	job->model.vocabulary = 257;
	skep_model_set_sequence(&job->model, 32); /* gpt2 has more positions */
	job->model.shared = run->shape->shared;
	if (run->shape->ranks > job->model.kv_heads)
		job->model.kv_heads = run->shape->ranks, job->model.heads = 2 * job->model.kv_heads;
	job->model.tied = run->shape->tied;
	skep_model_part(&job->model, run->shape->stages);
	run->tokens = job_open_text(job->model.sequence);
	configure(run, job);
}

static void init_rank(struct run *run, uint32_t r)
{
	struct rank *rank = &run->rank[r];
	struct job *job = &rank->job;
	rank->member = (struct member){.shared = &run->shared, .rank = r};
	rank->member.group = (struct skep_tensor_group){
		.context = &rank->member, .all_gather = gather, .reduce_scatter = reduce_scatter, .sum = sum_up};
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	assert_true(skep_model_shard(&run->whole.job.model, r, run->shape->ranks, &job->model));
	job->training.tensor_group = &rank->member.group;
	configure(run, job);
}

static void begin(struct run *run, const struct shape *shape)
{
	*run = (struct run){.shape = shape, .shared.ranks = shape->ranks};
	assert_int_equal(pthread_barrier_init(&run->shared.barrier, NULL, shape->ranks), 0);
	init_whole(run);
	assert_null(skep_model_refuses_shard(&run->whole.job.model, shape->ranks));
	for (uint32_t r = 0; r < shape->ranks; r++)
		init_rank(run, r);
}

static void finish_rank(struct rank *rank)
{
	job_finish(&rank->job);
	skep_model_finish(&rank->job.model);
	free(rank->first), free(rank->gradient), free(rank->last);
}

static void finish(struct run *run)
{
	for (uint32_t r = 0; r < run->shape->ranks; r++)
		finish_rank(&run->rank[r]);
	finish_rank(&run->whole);
	skep_tokens_close(run->tokens);
	pthread_barrier_destroy(&run->shared.barrier);
}

/* As tied_round(), which brings no losses. */
static void end_round(struct rank *rank, uint32_t round)
{
	if (rank->job.model.copied)
		rank->norm = tied_finish(&rank->job, round, MICROBATCHES, MICROBATCHES);
	else
		job_step(&rank->job, round, MICROBATCHES);
}

static void *train(void *context)
{
	struct rank *rank = context;
	rank->first = job_parameters(&rank->job, &rank->numbers);
	for (uint32_t round = 0; round < STEPS; round++) {
		for (uint32_t m = 0; m < MICROBATCHES; m++) {
			rank->loss[round][m] = job_microbatch(&rank->job, round, m);
			if (round > 0 || m > 0)
				continue;
			rank->pass_bytes = rank->member.sent;
			rank->pass_sums = rank->member.sums;
			rank->gradient = job_gradients(&rank->job, 0, &rank->numbers);
		}
		end_round(rank, round);
	}
	rank->last = job_parameters(&rank->job, &rank->numbers);
	return NULL;
}

static void train_all(struct run *run)
{
	for (uint32_t r = 0; r < run->shape->ranks; r++)
		assert_int_equal(pthread_create(&run->rank[r].thread, NULL, train, &run->rank[r]), 0);
	train(&run->whole);
	for (uint32_t r = 0; r < run->shape->ranks; r++)
		assert_int_equal(pthread_join(run->rank[r].thread, NULL), 0);
}

/* ---- comparisons -------------------------------------------------------------------------------------------------- */

/* Layer by layer as if all stages were one. `which` chooses the array of a rank. */
static float *put_together(struct run *run, float *(*which)(const struct rank *rank))
{
	float *ret = calloc(run->whole.numbers, sizeof *ret);
	assert_non_null(ret);
	for (uint32_t r = 0; r < run->shape->ranks; r++) {
		const struct rank *rank = &run->rank[r];
		size_t at = 0, whole = 0;
		for (uint32_t l = 0; l < rank->job.model.layers; l++) {
			const struct skep_layer layer = skep_layer_of(&rank->job.model, l);
			skep_layer_put_shard(&layer, which(rank) + at, ret + whole);
			at += layer.parameters;
			whole += skep_layer_of(&run->whole.job.model, l).parameters;
		}
		assert_true(at == rank->numbers && whole == run->whole.numbers);
	}
	return ret;
}

struct taken {
	const float *whole;
	float *ret_shard;
};

static void take_run(void *context, const struct skep_run *run)
{
	const struct taken *taken = context;
	memcpy(taken->ret_shard + run->own, taken->whole + run->tensor->offset + run->at,
		run->count * sizeof *taken->whole);
}

/* Has the shard exactly what is put together of all, so that all ranks have the same of what each has? */
static void check_shards(struct run *run, const float *all, float *(*which)(const struct rank *rank))
{
	for (uint32_t r = 0; r < run->shape->ranks; r++) {
		const struct rank *rank = &run->rank[r];
		float *shard = calloc(rank->numbers, sizeof *shard);
		size_t at = 0, whole = 0;
		for (uint32_t l = 0; l < rank->job.model.layers; l++) {
			const struct skep_layer layer = skep_layer_of(&rank->job.model, l);
			skep_layer_runs(&layer, take_run, &(struct taken){all + whole, shard + at});
			at += layer.parameters;
			whole += skep_layer_of(&run->whole.job.model, l).parameters;
		}
		assert_memory_equal(shard, which(rank), rank->numbers * sizeof *shard);
		free(shard);
	}
}

static float *first_of(const struct rank *rank)
{
	return rank->first;
}

static float *gradient_of(const struct rank *rank)
{
	return rank->gradient;
}

static float *last_of(const struct rank *rank)
{
	return rank->last;
}

static double largest(size_t n, const float *a)
{
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs((double)a[i]));
	return most;
}

static void check_near(struct run *run, float *(*which)(const struct rank *rank), const char *what, double tolerance)
{
	const float *expected = which(&run->whole);
	float *all = put_together(run, which);
	check_shards(run, all, which);
	for (size_t i = 0; i < run->whole.numbers; i++)
		if (!(fabs((double)all[i] - (double)expected[i]) <= tolerance * fmax(1, fabs((double)expected[i]))))
			fail_msg("%s, %u ranks, %u stages: %s %zu is %.9g, not %.9g", run->shape->name,
				run->shape->ranks, run->shape->stages, what, i, (double)all[i], (double)expected[i]);
	free(all);
}

static void check_losses(struct run *run)
{
	for (uint32_t step = 0; step < STEPS; step++)
		for (uint32_t m = 0; m < MICROBATCHES; m++) {
			const int64_t whole = run->whole.loss[step][m], own = run->rank[0].loss[step][m];
			if (llabs(own - whole) > 10000)
				fail_msg("%s, %u ranks, %u stages, step %u: loss %.9f, not %.9f", run->shape->name,
					run->shape->ranks, run->shape->stages, step, (double)own * 1e-9,
					(double)whole * 1e-9);
			for (uint32_t r = 1; r < run->shape->ranks; r++)
				assert_int_equal(run->rank[r].loss[step][m], own);
		}
	assert_true(run->whole.loss[STEPS - 1][0] < run->whole.loss[0][0] - 500000000);
}

/* Of a forward and a backward pass of all layers, in floats to one other rank: see models/layers/block.c. */
static uint64_t floats_of_passes(const struct run *run)
{
	const struct skep_model *m = &run->whole.job.model;
	const bool gpt2 = m->architecture == SKEP_ARCHITECTURE_GPT2;
	const uint64_t T = run->shape->ranks, h = m->hidden, tokens = (uint64_t)PER_MICROBATCH * m->sequence;
	const uint64_t rows = tokens / T * h, groups = m->layers - 2, blocks = groups * m->shared;
	const uint64_t of_block = (gpt2 ? 6 : 2) * h, of_head = (gpt2 ? 2 : 1) * h;
	const uint64_t forward = rows + blocks * 4 * rows + rows + 3 * tokens;
	const uint64_t backward = rows + blocks * 6 * rows + groups * 2 * ((of_block + T - 1) / T) + 2 * rows +
	                          2 * ((of_head + T - 1) / T);
	return forward * (run->shape->recomputes ? 2 : 1) + backward;
}

static void check_bytes(const struct run *run)
{
	const uint64_t bytes = floats_of_passes(run) * sizeof(float) * (run->shape->ranks - 1);
	for (uint32_t r = 0; r < run->shape->ranks; r++) {
		assert_int_equal(run->rank[r].pass_bytes, bytes);
		assert_int_equal(run->rank[r].pass_sums, 2 * run->shape->stages - 1);
	}
}

static void test_ranks_learn_what_the_whole_learns(void **state)
{
	(void)state;
	static struct run run;
	for (int i = 0; i < SHAPES; i++) {
		begin(&run, &shapes[i]);
		train_all(&run);
		float *first = put_together(&run, first_of);
		assert_memory_equal(first, run.whole.first, run.whole.numbers * sizeof *first);
		check_shards(&run, first, first_of);
		free(first);
		check_losses(&run);
		check_near(
			&run, gradient_of, "gradient", 2e-6 * fmin(1, largest(run.whole.numbers, run.whole.gradient)));
		check_near(&run, last_of, "parameter", 1e-5);
		check_bytes(&run);
		for (uint32_t r = 0; r < shapes[i].ranks; r++)
			assert_true(fabs(run.rank[r].norm - run.whole.norm) <= 1e-5 * run.whole.norm);
		finish(&run);
	}
}

/* ---- what all ranks have ------------------------------------------------------------------------------------------ */

static void *step_once(void *context)
{
	struct rank *rank = context;
	job_microbatch(&rank->job, 0, 0);
	rank->step = job_run(rank->job.device[0], (struct skep_op){.kind = SKEP_OP_STEP, .size = 1, .microbatches = 1});
	return NULL;
}

/* One rank gets a wrong bit of the gradient of the head's norm, so that its copy becomes another one: all of them say so. */
static void check_damage(uint32_t ranks, uint32_t damaged)
{
	static struct run run;
	const struct shape shape = {.name = "tiny-gpt2", .ranks = ranks, .stages = 1, .shared = 1};
	begin(&run, &shape);
	if (damaged < ranks)
		run.rank[damaged].member.damages = (2 * run.whole.job.model.hidden + ranks - 1) / ranks;
	for (uint32_t r = 0; r < ranks; r++)
		assert_int_equal(pthread_create(&run.rank[r].thread, NULL, step_once, &run.rank[r]), 0);
	for (uint32_t r = 0; r < ranks; r++) {
		assert_int_equal(pthread_join(run.rank[r].thread, NULL), 0);
		const struct skep_device_result *step = &run.rank[r].step;
		assert_true(step->failed == (damaged < ranks) && (step->parameters == 0) == step->failed);
		if (step->failed)
			assert_non_null(strstr(step->why, "no longer equal on all of them"));
	}
	finish(&run);
}

static void test_ranks_compare_what_all_of_them_have(void **state)
{
	(void)state;
	check_damage(2, 2); /* none */
	check_damage(2, 0);
	check_damage(2, 1);
	check_damage(4, 2);
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

/* Writes the whole model's parameters, drawn from another seed, as files name them. Returns them; the caller frees them. */
static float *write_weights(const struct skep_model *model, const char *path)
{
	struct skep_weight weight[128]; /* blocks that share their parameters are in files one by one */
	struct skep_diag diag = {0};
	size_t numbers = 0, at = 0;
	uint32_t weights = 0;
	for (uint32_t l = 0; l < model->layers; l++)
		numbers += skep_layer_of(model, l).parameters;
	float *parameter = calloc(numbers, sizeof *parameter);
	assert_non_null(parameter);
	for (uint32_t l = 0; l < model->layers; l++) {
		const struct skep_layer layer = skep_layer_of(model, l);
		skep_layer_draw(&layer, 77, parameter + at);
		for (size_t i = 0; i < layer.parameters; i++) /* biases are drawn as zeros */
			parameter[at + i] += 1e-6f * (float)(at + i);
		weights += skep_hf_layer_weights(model, l, parameter + at, weight + weights);
		at += layer.parameters;
	}
	struct skep_safetensors_target target = {.path = path};
	weights -= model->copied; /* files have one table */
	assert_true(skep_safetensors_write(&target, weight, weights, &diag));
	return parameter;
}

static void check_weights(const struct shape *shape)
{
	static struct run run;
	char path[] = "/tmp/skep-tensor-XXXXXX.safetensors", *list = NULL;
	struct skep_diag diag = {0};
	close(mkstemps(path, (int)strlen(".safetensors")));
	begin(&run, shape);
	float *written = write_weights(&run.whole.job.model, path);
	for (uint32_t r = 0; r < shape->ranks; r++) {
		struct job *job = &run.rank[r].job;
		struct skep_safetensors *set = skep_model_weights_open(&job->model, path, &list, &diag);
		assert_non_null(set);
		free(list);
		job->training.weights = set;
		job_restart(job);
		run.rank[r].first = job_parameters(job, &run.rank[r].numbers);
		skep_safetensors_close(set);
	}
	run.whole.first = job_parameters(&run.whole.job, &run.whole.numbers);
	if (run.whole.job.model.copied) { /* of which files have the first */
		const size_t table = skep_model_copied(&run.whole.job.model);
		memcpy(written + run.whole.numbers - table, written, table * sizeof *written);
	}
	float *all = put_together(&run, first_of);
	assert_memory_equal(all, written, run.whole.numbers * sizeof *all);
	check_shards(&run, all, first_of);
	free(all), free(written);
	finish(&run);
	assert_int_equal(unlink(path), 0);
}

static void test_shards_of_weights_that_files_have(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++)
		check_weights(&shapes[i]);
}

/* ---- what has no shards, and what shards cost ------------------------------------------------------------------------ */

static void test_refusals(void **state)
{
	(void)state;
	struct skep_model gpt2, llama, mixtral, bert, mlp;
	job_read_model("tiny-gpt2", &gpt2);
	job_read_model("tiny-llama", &llama);
	job_read_model("tiny-mixtral", &mixtral);
	job_read_model("tiny-bert", &bert);
	job_read_model("tiny-mlp", &mlp);
	assert_null(skep_model_refuses_shard(&mlp, 1));
	assert_null(skep_model_refuses_shard(&gpt2, 4));
	assert_non_null(strstr(skep_model_refuses_shard(&gpt2, 3), "number of heads"));
	assert_non_null(strstr(skep_model_refuses_shard(&llama, 4), "kv_heads"));
	assert_non_null(strstr(skep_model_refuses_shard(&mixtral, 2), "experts"));
	assert_non_null(strstr(skep_model_refuses_shard(&bert, 2), "is a BERT"));
	assert_non_null(strstr(skep_model_refuses_shard(&mlp, 2), "no transformer"));
	gpt2.feed_forward = 255;
	assert_non_null(strstr(skep_model_refuses_shard(&gpt2, 2), "feed_forward"));
	gpt2.feed_forward = 256;
	skep_model_set_sequence(&gpt2, 63);
	assert_non_null(strstr(skep_model_refuses_shard(&gpt2, 2), "sequence"));
	llama.frozen = 1;
	assert_non_null(strstr(skep_model_refuses_shard(&llama, 2), "frozen"));
	skep_model_finish(&gpt2), skep_model_finish(&llama), skep_model_finish(&mixtral), skep_model_finish(&bert);
	skep_model_finish(&mlp);
}

/* Of two stages of tiny-gpt2: the cut is the whole's, and each rank has the parameters and the stash that its stage allocates,
 * and its part of what travels. */
static void test_costs(void **state)
{
	(void)state;
	static struct run run;
	begin(&run, &shapes[2]);
	for (uint32_t s = 0; s < 2; s++) {
		struct skep_cost whole;
		uint32_t first, count, own_first, own_count;
		skep_model_cost(&run.whole.job.model, 2, s, &whole);
		skep_model_cut(&run.whole.job.model, 2, s, &first, &count);
		for (uint32_t r = 0; r < shapes[2].ranks; r++) {
			struct job *job = &run.rank[r].job;
			struct skep_cost cost;
			struct skep_stage stage;
			skep_model_cost(&job->model, 2, s, &cost);
			skep_model_cut(&job->model, 2, s, &own_first, &own_count);
			assert_true(own_first == first && own_count == count);
			assert_true(skep_stage_init(&job->training, s, &stage));
			assert_true(stage.parameters == cost.parameters && stage.trained.count == cost.trained);
			assert_in_range(stage.stash_bytes, cost.stash_bytes * PER_MICROBATCH,
				cost.stash_bytes * PER_MICROBATCH + 64 * (2 * (uint64_t)stage.layers + 1));
			assert_int_equal(cost.activation_bytes * shapes[2].ranks, whole.activation_bytes);
			assert_true(fabs(cost.forward_flop * shapes[2].ranks / whole.forward_flop - 1) < 0.01);
			skep_stage_finish(&stage);
		}
	}
	finish(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks_learn_what_the_whole_learns),
		cmocka_unit_test(test_ranks_compare_what_all_of_them_have),
		cmocka_unit_test(test_shards_of_weights_that_files_have),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_costs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
