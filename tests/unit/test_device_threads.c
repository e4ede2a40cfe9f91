/* SPDX-License-Identifier: Apache-2.0
 *
 * test_device_threads.c - a thread pool does every item of a loop once, whichever thread asks and however busy it is;
 * and a device learns to the bit the same on any number of threads: losses, gradients, parameters. The models are large
 * enough that products are cut.
 */
#include "tests/unit/job.h"

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/process/thread_pool.h"
#include "models/corpus/tokens.h"
#include "models/stage/stage.h"

/* ---- the team ----------------------------------------------------------------------------------------------------- */

enum { THINGS = 1000, MEMBERS = 5 };

struct tally {
	size_t grain;
	uint32_t members;
	atomic_uint *times; /* [THINGS] */
	atomic_uint *busy;  /* [MEMBERS] */
};

static void count(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct tally *t = context;
	assert(first % t->grain == 0 && first < end && (end == THINGS || end - first == t->grain));
	assert(member < t->members && t->busy[member]++ == 0);
	for (size_t i = first; i < end; i++)
		t->times[i]++;
	t->busy[member]--;
}

static void test_each_thing_is_done_once(void **state)
{
	static const size_t grains[] = {1, 7, 250, 999, THINGS, 5000};
	(void)state;
	for (uint32_t members = 1; members <= MEMBERS; members++) {
		struct skep_thread_pool *thread_pool = skep_thread_pool_create(members);
		assert_non_null(thread_pool);
		assert_int_equal(skep_thread_pool_size(thread_pool), members);
		for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
			atomic_uint times[THINGS] = {0}, busy[MEMBERS] = {0};
			struct tally tally = {grains[g], members, times, busy};
			for (int loop = 0; loop < 50; loop++)
				skep_thread_pool_for(thread_pool, THINGS, grains[g], count, &tally);
			for (size_t i = 0; i < THINGS; i++)
				assert_int_equal(times[i], 50);
		}
		skep_thread_pool_destroy(thread_pool);
	}
	assert_int_equal(skep_thread_pool_size(NULL), 1);
	skep_thread_pool_destroy(NULL);
}

struct asker {
	struct skep_thread_pool *thread_pool;
	pthread_t thread;
	atomic_uint times[THINGS];
};

static void add_one(const void *context, size_t first, size_t end, uint32_t member)
{
	atomic_uint *const *times = context;
	(void)member;
	for (size_t i = first; i < end; i++)
		(*times)[i]++;
}

static void *ask(void *context)
{
	struct asker *a = context;
	atomic_uint *times = a->times;
	for (int loop = 0; loop < 200; loop++)
		skep_thread_pool_for(a->thread_pool, THINGS, 100, add_one, &times);
	return NULL;
}

/* Two lanes of a device may ask at once: one has the team, the other does its loop alone. */
static void test_two_may_ask_at_once(void **state)
{
	static struct asker asker[2];
	struct skep_thread_pool *thread_pool = skep_thread_pool_create(3);
	(void)state;
	for (int i = 0; i < 2; i++) {
		asker[i].thread_pool = thread_pool;
		assert_int_equal(pthread_create(&asker[i].thread, NULL, ask, &asker[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(asker[i].thread, NULL);
		for (size_t t = 0; t < THINGS; t++)
			assert_int_equal(asker[i].times[t], 200);
	}
	skep_thread_pool_destroy(thread_pool);
}

/* ---- devices ------------------------------------------------------------------------------------------------------ */

enum { ROUNDS = 2, RUNS = 3 };

/* 512 tokens a microbatch: the products of its matrices are up to 512 x 512 x 128. */
static void init_transformer(struct job *job, enum skep_architecture architecture, uint32_t stages)
{
	const uint32_t hidden = 128, sequence = 64;
	bool llama = architecture == SKEP_ARCHITECTURE_LLAMA;
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	job->width[0] = sequence + 1, job->width[1] = job->width[2] = sequence * hidden, job->width[3] = sequence;
	job->model = (struct skep_model){.name = "threads",
		.kind = SKEP_MODEL_TRANSFORMER,
		.architecture = architecture,
		.layers = 3,
		.width = job->width,
		.hidden = hidden,
		.sequence = sequence,
		.context = sequence,
		.vocabulary = 256,
		.heads = 4,
		.kv_heads = llama ? 2 : 4,
		.feed_forward = 512,
		.shared = 2,
		.norm_epsilon = 1e-5,
		.rotary_base = 10000};
	job->plan.stages = job->plan.workers = stages;
	job->training.samples = 8;
	job->training.corpus = SKEP_CORPUS_TOKENS;
	job->training.tokens = job_open_text(sequence);
}

static void init_perceptron(struct job *job)
{
	job_init(job, 2, SKEP_ACTIVATION_TANH, 4, 384);
	job->training.samples = 512;
}

struct learnt {
	int64_t loss[ROUNDS];
	float *gradient, *parameter;
	size_t gradients, parameters;
};

/* The gradients are those of the round after the last step. */
static void learn(struct job *job, uint32_t threads, struct learnt *ret)
{
	job->threads = threads;
	job_restart(job);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		ret->loss[round] = job_microbatch(job, round, 0);
		assert_true(ret->loss[round] > 0 && ret->loss[round] != INT64_MAX);
		job_step(job, round, 1);
	}
	job_microbatch(job, ROUNDS, 0);
	ret->gradient = job_gradients(job, ROUNDS, &ret->gradients);
	ret->parameter = job_parameters(job, &ret->parameters);
}

static void check_same(struct job *job)
{
	static const uint32_t threads[RUNS] = {1, 2, 4};
	struct learnt learnt[RUNS];
	for (int i = 0; i < RUNS; i++) {
		learn(job, threads[i], &learnt[i]);
		assert_memory_equal(learnt[i].loss, learnt[0].loss, sizeof learnt[0].loss);
		assert_int_equal(learnt[i].parameters, learnt[0].parameters);
		assert_memory_equal(learnt[i].gradient, learnt[0].gradient, learnt[0].gradients * sizeof(float));
		assert_memory_equal(learnt[i].parameter, learnt[0].parameter, learnt[0].parameters * sizeof(float));
	}
	for (int i = 0; i < RUNS; i++) {
		free(learnt[i].gradient);
		free(learnt[i].parameter);
	}
	struct skep_tokens *tokens = (struct skep_tokens *)job->training.tokens;
	job_finish(job);
	if (tokens)
		skep_tokens_close(tokens);
}

static void test_gpt2_on_threads(void **state)
{
	static struct job job;
	(void)state;
	init_transformer(&job, SKEP_ARCHITECTURE_GPT2, 2);
	job.plan.clip = true;
	job.training.optimizer.clip_norm = 0.5f;
	check_same(&job);
}

static void test_llama_on_threads(void **state)
{
	static struct job job;
	(void)state;
	init_transformer(&job, SKEP_ARCHITECTURE_LLAMA, 1);
	job.training.optimizer.kind = SKEP_OPTIMIZER_LAMB;
	check_same(&job);
}

static void test_bert_on_threads(void **state)
{
	static struct job job;
	(void)state;
	init_transformer(&job, SKEP_ARCHITECTURE_BERT, 2);
	job.model.predicted = 20;
	job.model.mask_token = job.model.vocabulary - 1;
	check_same(&job);
}

/* Some 600 of 1024 rows for each of three experts, in blocks. */
static void test_experts_on_threads(void **state)
{
	static struct job job;
	(void)state;
	init_transformer(&job, SKEP_ARCHITECTURE_LLAMA, 1);
	job.model.experts =
		(struct skep_experts){3, 2, true, .capacity_factor = 1.5, .aux_loss = 0.01, .z_loss = 0.001};
	job.training.samples = 16;
	check_same(&job);
}

static void test_perceptrons_on_threads(void **state)
{
	static struct job job;
	(void)state;
	init_perceptron(&job);
	check_same(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_thing_is_done_once),
		cmocka_unit_test(test_two_may_ask_at_once),
		cmocka_unit_test(test_gpt2_on_threads),
		cmocka_unit_test(test_llama_on_threads),
		cmocka_unit_test(test_bert_on_threads),
		cmocka_unit_test(test_experts_on_threads),
		cmocka_unit_test(test_perceptrons_on_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
