/* SPDX-License-Identifier: Apache-2.0
 *
 * check_stages.c - whole stages on the CUDA device, against the CPU device: losses, gradients and steps of both
 * architectures, cut and not, with and without recomputation, with codecs; reductions; states that go from one kind of
 * device to the other. What is bf16 cannot be equal to fp32, so there are bounds; what is said to be equal to the bit (cuts,
 * members of a reduction) is held to that.
 *
 * Linked with kernels as nvcc makes them it checks a GPU; else it runs them in the emulation of tests/cuda/emulate.hpp.
 */
#include "tests/cuda/jobs.h"
#include "tests/unit/fresh.h"
#include "tests/unit/tied_job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/corpus/tokens.h"
#include "tests/unit/observed_device.h"

void emulate_refuses(bool refuses) __attribute__((weak));
void emulate_backwards(bool backwards) __attribute__((weak));

/* The length of a - b over that of b. */
static double apart(size_t n, const float *a, const float *b)
{
	double difference = 0, length = 0;
	for (size_t i = 0; i < n; i++) {
		difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
		length += (double)b[i] * (double)b[i];
	}
	return sqrt(difference / length);
}

static void check_gradients(struct job *cuda, struct job *cpu, uint32_t round, double part)
{
	size_t n, m;
	float *ours = job_gradients(cuda, round, &n), *theirs = job_gradients(cpu, round, &m);
	assert_int_equal(n, m);
	double by = apart(n, ours, theirs);
	if (!(by <= part && by > 0))
		fail_msg("%g of the gradient is amiss, more than %g", by, part);
	free(ours);
	free(theirs);
}

/* ---- against the CPU ---------------------------------------------------------------------------------------------------- */

struct setting {
	const char *model;
	uint32_t stages, shared, words; /* words: more than the model has */
	uint32_t frozen;                /* layers */
	bool tied, recomputes;
	enum skep_codec codec;
	enum skep_optimizer_kind optimizer;
	enum skep_offload offload;
	uint32_t rounds;
	double part; /* of the gradient that may be amiss */
};

static void set(struct job *job, const struct setting *s)
{
	job->model.shared = s->shared ? s->shared : 1;
	job->model.tied = s->tied;
	job->model.vocabulary += s->words;
	job->model.frozen = s->frozen;
	job->plan.frozen_vstages = skep_model_frozen_stages(&job->model, s->stages);
	job->training.checkpoint_activations = s->recomputes;
	job->training.activation_codec = s->codec;
	job->training.optimizer.kind = s->optimizer;
	job->training.offload = s->offload;
	job_restart(job);
}

static void check_setting(const struct setting *s)
{
	struct job cuda, cpu;
	size_t n;
	jobs_init(&cuda, s->model, s->stages, SKEP_DEVICE_CUDA);
	jobs_init(&cpu, s->model, s->stages, SKEP_DEVICE_CPU);
	set(&cuda, s);
	set(&cpu, s);
	if (emulate_backwards)
		emulate_backwards(s->offload != SKEP_OFFLOAD_NONE);
	float *before = job_parameters(&cuda, &n);
	for (uint32_t round = 0; round < s->rounds; round++) {
		for (uint32_t microbatch = 0; microbatch < 2; microbatch++) {
			int64_t ours = job_microbatch(&cuda, round, microbatch);
			int64_t theirs = job_microbatch(&cpu, round, microbatch);
			assert_in_range(theirs, INT64_C(2000000000), INT64_C(6000000000));
			if (llabs(ours - theirs) > theirs / 200)
				fail_msg("round %u: loss %g, on the CPU %g", round, (double)ours * 1e-9,
					(double)theirs * 1e-9);
		}
		check_gradients(&cuda, &cpu, round, s->part * (1 + 2 * round));
		job_step(&cuda, round, 2);
		job_step(&cpu, round, 2);
	}
	/* What the last step made, read by the next pass. */
	int64_t ours = job_microbatch(&cuda, s->rounds, 0), theirs = job_microbatch(&cpu, s->rounds, 0);
	assert_true(llabs(ours - theirs) < theirs / 200);
	jobs_check_frozen(&cuda, before);
	jobs_finish(&cuda);
	jobs_finish(&cpu);
}

static void test_as_the_cpu(void **state)
{
	static const struct setting settings[] = {
		{.model = "tiny-gpt2", .stages = 1, .optimizer = SKEP_OPTIMIZER_ADAMW, .rounds = 2, .part = 0.02},
		{.model = "tiny-gpt2",
			.stages = 1,
			.tied = true,
			.words = 3,
			.optimizer = SKEP_OPTIMIZER_SGD,
			.offload = SKEP_OFFLOAD_GRADIENTS,
			.rounds = 2,
			.part = 0.02},
		{.model = "tiny-gpt2",
			.stages = 3,
			.recomputes = true,
			.optimizer = SKEP_OPTIMIZER_LAMB,
			.offload = SKEP_OFFLOAD_OPTIMIZER,
			.rounds = 1,
			.part = 0.02},
		{.model = "tiny-gpt2",
			.stages = 2,
			.words = 1,
			.codec = SKEP_CODEC_FP16,
			.optimizer = SKEP_OPTIMIZER_NESTEROV,
			.rounds = 2,
			.part = 0.02},
		{.model = "tiny-llama", .stages = 2, .optimizer = SKEP_OPTIMIZER_ADAMW, .rounds = 2, .part = 0.02},
		{.model = "tiny-llama",
			.stages = 1,
			.shared = 2,
			.optimizer = SKEP_OPTIMIZER_SGD,
			.rounds = 2,
			.part = 0.02},
		{.model = "tiny-llama",
			.stages = 2,
			.codec = SKEP_CODEC_INT8,
			.optimizer = SKEP_OPTIMIZER_ADAMW,
			.rounds = 2,
			.part = 0.04},
		{.model = "tiny-gpt2",
			.stages = 2,
			.frozen = 3,
			.optimizer = SKEP_OPTIMIZER_ADAMW,
			.rounds = 2,
			.part = 0.02},
		{.model = "tiny-gpt2", .stages = 1, .frozen = 2, .tied = true, .rounds = 2, .part = 0.02},
		{.model = "tiny-llama", .stages = 3, .frozen = 4, .recomputes = true, .rounds = 2, .part = 0.02},
		{.model = "tiny-bert", .stages = 1, .shared = 2, .words = 5, .tied = true, .rounds = 2, .part = 0.02},
		{.model = "tiny-bert", .stages = 3, .offload = SKEP_OFFLOAD_GRADIENTS, .rounds = 2, .part = 0.02},
		{.model = "tiny-bert", .stages = 1, .frozen = 2, .tied = true, .rounds = 2, .part = 0.02},
	};
	(void)state;
	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
		check_setting(&settings[i]);
}

/* The library may have no fused products. */
static void test_with_nothing_fused(void **state)
{
	(void)state;
	if (!emulate_refuses)
		skip();
	emulate_refuses(true);
	check_setting(&(struct setting){
		.model = "tiny-gpt2", .stages = 2, .optimizer = SKEP_OPTIMIZER_ADAMW, .rounds = 2, .part = 0.02});
	emulate_refuses(false);
}

/* ---- to the bit ----------------------------------------------------------------------------------------------------------- */

enum { CUTS = 4 };

static void check_cuts(const char *name, uint32_t shared)
{
	static struct job job[CUTS];
	static const uint32_t stages[CUTS] = {1, 2, 4, 3};
	float *parameter[CUTS];
	size_t n[CUTS];
	for (uint32_t j = 0; j < CUTS; j++) {
		jobs_init(&job[j], name, stages[j], SKEP_DEVICE_CUDA);
		set(&job[j],
			&(struct setting){.shared = shared, .recomputes = j == 3, .optimizer = SKEP_OPTIMIZER_ADAMW});
		if (emulate_backwards)
			emulate_backwards(j % 2 == 1);
		for (uint32_t round = 0; round < 2; round++) {
			job_microbatch(&job[j], round, 0);
			job_step(&job[j], round, 1);
		}
		parameter[j] = job_parameters(&job[j], &n[j]);
		assert_int_equal(n[j], n[0]);
		assert_memory_equal(parameter[j], parameter[0], n[0] * sizeof(float));
	}
	for (uint32_t j = 0; j < CUTS; j++) {
		free(parameter[j]);
		jobs_finish(&job[j]);
	}
}

static void test_a_cut_changes_no_bit(void **state)
{
	(void)state;
	check_cuts("tiny-gpt2", 1);
	check_cuts("tiny-llama", 1);
	check_cuts("tiny-bert", 1);
}

/* ---- reductions, state ---------------------------------------------------------------------------------------------------- */

static void check_reduction(enum skep_codec codec)
{
	static struct job job[3];
	uint64_t sum[3];
	for (uint32_t m = 0; m < 3; m++) {
		jobs_init(&job[m], "tiny-gpt2", 1, m == 1 ? SKEP_DEVICE_CPU : SKEP_DEVICE_CUDA);
		job[m].training.reduction_codec = codec;
		job[m].training.optimizer.kind = SKEP_OPTIMIZER_ADAMW;
		job_restart(&job[m]);
		assert_true(parameters_digest(job[m].device[0]) == parameters_digest(job[0].device[0]));
		job_microbatch(&job[m], 0, m);
	}
	job_reduce(job, 3, 0, 0);
	for (uint32_t m = 0; m < 3; m++)
		sum[m] = job_run(job[m].device[0], (struct skep_op){.kind = SKEP_OP_STEP, .size = 3, .microbatches = 3})
		                 .parameters;
	/* Which of them may be compared, the lowest bit says. */
	assert_true(sum[0] == sum[2] && sum[0] > 1 && sum[1] > 1);
	assert_true((sum[0] & 1) == 1 && (sum[1] & 1) == 0);
	/* Both kinds got the same sum, bit for bit, and step alike. */
	assert_true(parameters_digest(job[1].device[0]) == parameters_digest(job[0].device[0]));
	assert_true(parameters_digest(job[2].device[0]) == parameters_digest(job[0].device[0]));
	for (uint32_t j = 0; j < 3; j++)
		jobs_finish(&job[j]);
}

static void test_a_reduction_among_both_kinds(void **state)
{
	(void)state;
	check_reduction(SKEP_CODEC_NONE);
	check_reduction(SKEP_CODEC_FP16);
	check_reduction(SKEP_CODEC_E3M0);
}

/* The state of one after some steps, in chunks, into the other: the same parameters, and as good as the same next loss. */
static void hand_over(struct job *from, struct job *to)
{
	enum { CHUNKS = 3 };
	for (uint32_t c = 0; c < CHUNKS; c++) {
		struct skep_op op = {.kind = SKEP_OP_SAVE, .chunk = c, .size = CHUNKS};
		struct skep_buf state = job_carry(from->device[0], job_run(from->device[0], op).out, to->device[0]);
		op = (struct skep_op){.kind = SKEP_OP_LOAD, .chunk = c, .size = CHUNKS, .version = 2, .in = state};
		assert_false(job_run(to->device[0], op).failed);
		skep_device_buffer_release(to->device[0], state);
	}
	assert_true(parameters_digest(from->device[0]) == parameters_digest(to->device[0]));
}

static void test_a_state_goes_to_the_other_kind(void **state)
{
	struct job cuda, cpu;
	(void)state;
	for (int way = 0; way < 2; way++) {
		jobs_init(&cuda, "tiny-llama", 1, SKEP_DEVICE_CUDA);
		jobs_init(&cpu, "tiny-llama", 1, SKEP_DEVICE_CPU);
		job_restart(&cuda);
		job_restart(&cpu);
		struct job *from = way ? &cuda : &cpu, *to = way ? &cpu : &cuda;
		for (uint32_t round = 0; round < 2; round++) {
			job_microbatch(from, round, 0);
			job_step(from, round, 1);
		}
		hand_over(from, to);
		int64_t a = job_microbatch(from, 2, 1), b = job_microbatch(to, 2, 1);
		assert_true(llabs(a - b) < a / 200);
		job_step(from, 2, 1); /* with the moments that were handed over */
		job_step(to, 2, 1);
		a = job_microbatch(from, 3, 1), b = job_microbatch(to, 3, 1);
		assert_true(llabs(a - b) < a / 200);
		jobs_finish(&cuda);
		jobs_finish(&cpu);
	}
}

/* ---- periodic sync -------------------------------------------------------------------------------------------------------- */

enum { MEMBERS = 2, MEMBERS_MAX = 3, INNER_STEPS = 2 };

static void each(struct job *job, struct skep_op op)
{
	for (uint32_t m = 0; m < MEMBERS; m++)
		assert_false(job_run(job[m].device[0], op).failed);
}

/* One of each kind: their stages are the same to the bit after each STEP, since the sums are. What they read, inner parameters
 * in bf16, is as good as that of the CPU. */
static void begin_members(struct job *job, const struct skep_plan *plan, const struct skep_optimizer *outer)
{
	for (uint32_t m = 0; m < MEMBERS; m++) {
		jobs_init(&job[m], "tiny-gpt2", 1, m == 0 ? SKEP_DEVICE_CUDA : SKEP_DEVICE_CPU);
		job[m].plan = *plan;
		job[m].plan.workers = job[m].plan.stages = 1;
		job[m].plan.microbatches = 16;
		job[m].training.outer = *outer;
		job[m].training.mixing = 0.25f;
		job[m].training.optimizer.learning_rate = 0.005f;
		job[m].training.optimizer.epsilon = 1e-3f; /* else signs of small gradients tell */
		job_restart(&job[m]);
	}
}

static void check_members(struct job *job)
{
	assert_true(parameters_digest(job[0].device[0]) == parameters_digest(job[1].device[0]));
}

static void check_losses(struct job *job, uint32_t round, uint32_t microbatch)
{
	struct job_passage passage;
	int64_t loss[MEMBERS];
	for (uint32_t m = 0; m < MEMBERS; m++) {
		job_forward(&job[m], round, microbatch, &passage);
		skep_device_buffer_release(job[m].device[0], passage.stash[0]);
		loss[m] = passage.loss_nano;
	}
	if (llabs(loss[0] - loss[1]) > loss[1] / 2000)
		fail_msg("microbatch %u: loss %g, on the CPU %g", microbatch, (double)loss[0] * 1e-9,
			(double)loss[1] * 1e-9);
}

static void work(struct job *job, uint32_t round, uint32_t nth)
{
	for (uint32_t m = 0; m < MEMBERS; m++)
		job_microbatch(&job[m], round, nth);
	each(job, (struct skep_op){.kind = SKEP_OP_INNER_STEP, .round = round, .chunk = nth, .microbatches = 1});
}

/* `part`: of the parameters alone, as fragments are. `pairs`: with gossip. */
static void check_periodic(bool delayed, bool part, bool pairs)
{
	static struct job job[MEMBERS];
	struct skep_plan plan = {.seed = 3,
		.inner.steps = INNER_STEPS,
		.delayed = delayed,
		.gossip = pairs,
		.validation.every = 1,
		.validation.microbatches = 1};
	begin_members(job, &plan,
		&(struct skep_optimizer){.kind = SKEP_OPTIMIZER_NESTEROV, .learning_rate = 0.7f, .momentum = 0.9f});
	const uint32_t held_out = skep_round_capacity(&job[0].plan);
	const struct skep_op chunk = job_chunk(&job[0], (struct skep_op){.chunk = 1, .size = 3});
	for (uint32_t round = 0; round < 2; round++) {
		struct skep_op op = {.kind = SKEP_OP_PSEUDO_GRAD, .round = round, .microbatches = INNER_STEPS};
		op.first = part ? chunk.first : 0, op.count = part ? chunk.count : 0;
		work(job, round, 0);
		work(job, round, 1);
		each(job, op);
		check_gradients(&job[0], &job[1], round, 0.03);
		job_reduce(job, MEMBERS, 0, round);
		op.kind = SKEP_OP_STEP, op.size = MEMBERS, op.microbatches = MEMBERS * INNER_STEPS;
		each(job, op);
		check_members(job);
	}
	check_losses(job, 2, 5);
	check_losses(job, 2, held_out);
	for (uint32_t m = 0; m < MEMBERS; m++)
		jobs_finish(&job[m]);
}

static void test_periodic_sync(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		check_periodic(i == 1, i == 1, i == 2);
}

/* A merge of one's own, after a step beside it; one that finds a worker with nothing to do; one of another. */
static void test_merges(void **state)
{
	static struct job job[MEMBERS];
	static const uint8_t merges[] = {SKEP_OUTER_UPDATE_OWN, SKEP_OUTER_UPDATE_FRESH, SKEP_OUTER_UPDATE_OTHER};
	struct skep_plan plan = {.seed = 3, .inner.steps = INNER_STEPS, .async.on = true};
	(void)state;
	begin_members(job, &plan,
		&(struct skep_optimizer){
			.kind = SKEP_OPTIMIZER_DELAYED_NESTEROV, .learning_rate = 0.7f, .momentum = 0.9f, .turns = 2});
	for (uint32_t round = 0; round < 3; round++) {
		work(job, round, 0);
		each(job, (struct skep_op){.kind = SKEP_OP_PSEUDO_GRAD, .round = round, .microbatches = 1});
		check_gradients(&job[0], &job[1], round, 0.03);
		if (merges[round] == SKEP_OUTER_UPDATE_OWN)
			work(job, round, 1);
		job_reduce(job, MEMBERS, 0, round);
		each(job, (struct skep_op){.kind = SKEP_OP_STEP,
				  .round = round,
				  .size = MEMBERS,
				  .microbatches = MEMBERS,
				  .update = merges[round]});
		check_members(job);
		check_losses(job, round + 1, 5);
	}
	for (uint32_t m = 0; m < MEMBERS; m++)
		jobs_finish(&job[m]);
}

/* ---- gathering ------------------------------------------------------------------------------------------------------------- */

/* All bring their parts, the last one a lie, and each makes the aggregate of them. */
static void gather(struct job *job, uint32_t members)
{
	struct skep_buf part[MEMBERS_MAX];
	for (uint32_t m = 0; m < members; m++) {
		const struct skep_op whole = {.chunk = 0, .size = 1};
		for (uint32_t from = 0; from < members; from++) {
			struct skep_op op = job_chunk(&job[m], whole);
			op.kind = SKEP_OP_PACK_PART, op.microbatches = 1 + from;
			part[from] = from == m ? (struct skep_buf){0}
			                       : job_carry(job[from].device[0], job_run(job[from].device[0], op).out,
							 job[m].device[0]);
			op.kind = SKEP_OP_UNPACK_PART, op.in = part[from], op.size = members, op.microbatch = from;
			assert_false(job_run(job[m].device[0], op).failed);
		}
		struct skep_op op = job_chunk(&job[m], whole);
		op.kind = SKEP_OP_AGGREGATE, op.size = members;
		assert_false(job_run(job[m].device[0], op).failed);
	}
}

static void test_gathering_among_both_kinds(void **state)
{
	static struct job job[MEMBERS_MAX];
	const struct skep_byzantine lies = {.attack = SKEP_ATTACK_NOISE, .scale = 9, .seed = 5};
	(void)state;
	for (uint32_t m = 0; m < MEMBERS_MAX; m++) {
		jobs_init(&job[m], "tiny-gpt2", 1, m == 1 ? SKEP_DEVICE_CPU : SKEP_DEVICE_CUDA);
		job[m].training.reduction_codec = SKEP_CODEC_NONE;
		job[m].training.robust = (struct skep_robust){.method = SKEP_ROBUST_ZENO, .trim = 1, .rho = 0.5};
		job_restart(&job[m]);
		job_microbatch(&job[m], 0, m);
	}
	skep_device_set_byzantine(job[MEMBERS_MAX - 1].device[0], &lies);
	gather(job, MEMBERS_MAX);
	for (uint32_t m = 0; m < MEMBERS_MAX; m++) {
		const struct skep_op op = {.kind = SKEP_OP_STEP, .size = MEMBERS_MAX, .microbatches = 6};
		assert_false(job_run(job[m].device[0], op).failed);
		assert_true(parameters_digest(job[m].device[0]) == parameters_digest(job[0].device[0]));
	}
	for (uint32_t m = 0; m < MEMBERS_MAX; m++)
		jobs_finish(&job[m]);
}

/* ---- a tied head in two stages --------------------------------------------------------------------------------------------- */

struct tie {
	enum skep_device_kind kind[2]; /* of the stages */
	enum skep_codec codec;
	bool alone, periodic; /* alone: with no CPU, so LAMB has the same norms; and with gradients on the host */
};

static void init_tied(struct job *job, const struct tie *tie, bool cpu)
{
	jobs_init(job, "tiny-gpt2", 1, SKEP_DEVICE_CPU);
	tied_init(job, tie->codec);
	job->plan.inner.steps = tie->periodic;
	job->training.samples = 1;
	job->training.optimizer.kind = tie->alone ? SKEP_OPTIMIZER_LAMB : SKEP_OPTIMIZER_ADAMW;
	job->training.optimizer.epsilon = 1e-3f; /* else signs of small gradients tell */
	job->training.outer = job->training.optimizer;
	job->training.offload = tie->alone ? SKEP_OFFLOAD_GRADIENTS : SKEP_OFFLOAD_NONE;
	for (uint32_t s = 0; s < 2; s++) {
		skep_device_destroy(job->device[s]);
		job->device[s] = skep_device_create_on(cpu ? SKEP_DEVICE_CPU : tie->kind[s],
			&(struct skep_device_place){0}, &job->training, s, &(struct skep_diag){0});
		assert_non_null(job->device[s]);
	}
}

/* Both copies are equal to the bit, whatever made them, and what is learnt, and gradients after that, are as on the CPU. In the
 * first round nothing is counted in the first stage. */
static void check_tie(const struct tie *tie)
{
	static const uint32_t counted[2][2] = {{0, 1}, {2, 1}};
	static struct job cuda, cpu;
	float *ours = NULL, *theirs = NULL;
	if (emulate_backwards)
		emulate_backwards(tie->alone);
	init_tied(&cuda, tie, false);
	init_tied(&cpu, tie, true);
	tied_check_copies(&cuda, &ours, false, 0);
	tied_check_copies(&cpu, &theirs, false, 0);
	assert_memory_equal(ours, theirs, 3 * cpu.plan.tied * sizeof *ours);
	for (uint32_t round = 0; round < 2; round++) {
		double square = tied_round(&cuda, round, counted[round][0], counted[round][1]);
		double expected = tied_round(&cpu, round, counted[round][0], counted[round][1]);
		if (fabs(square - expected) > 0.02 * expected)
			fail_msg("round %u: a square of %g, on the CPU %g", round, square, expected);
		tied_check_copies(&cuda, &ours, true, round + 1);
		tied_check_copies(&cpu, &theirs, true, round + 1);
		double by = apart(cpu.plan.tied, ours, theirs);
		if (!(by < 0.002))
			fail_msg("round %u: %g of the table is amiss", round, by);
	}
	free(ours);
	free(theirs);
	jobs_finish(&cuda);
	jobs_finish(&cpu);
}

static void test_a_tied_head_in_two_stages(void **state)
{
	static const struct tie ties[] = {
		{{SKEP_DEVICE_CUDA, SKEP_DEVICE_CUDA}, SKEP_CODEC_NONE, true, false},
		{{SKEP_DEVICE_CPU, SKEP_DEVICE_CUDA}, SKEP_CODEC_INT8, false, true},
	};
	(void)state;
	for (size_t i = 0; i < sizeof ties / sizeof ties[0]; i++)
		check_tie(&ties[i]);
}

/* ---- what cannot be ------------------------------------------------------------------------------------------------------- */

static void refuses(struct job *job, uint32_t ordinal, const char *word)
{
	struct skep_diag error;
	assert_null(skep_device_create_on(
		SKEP_DEVICE_CUDA, &(struct skep_device_place){.ordinal = ordinal}, &job->training, 0, fresh(&error)));
	if (!strstr(error.message, word))
		fail_msg("no \"%s\" in: %s", word, error.message);
}

static void test_what_it_refuses(void **state)
{
	struct job job, dense;
	(void)state;
	jobs_init(&job, "tiny-gpt2", 1, SKEP_DEVICE_CUDA);
	refuses(&job, 99, "no number 99");
	job.model.heads = job.model.kv_heads = 0;
	job.model.heads = 1, job.model.hidden = 192;
	refuses(&job, 0, "up to 128 numbers");
	job.model.heads = job.model.kv_heads = 4, job.model.hidden = 64;
	skep_device_destroy(job.device[0]);
	skep_tokens_close((struct skep_tokens *)job.training.tokens);
	skep_model_finish(&job.model);
	job_init(&dense, 1, SKEP_ACTIVATION_GELU, 3, 8);
	refuses(&dense, 0, "transformers that have an architecture");
	job_finish(&dense);
}

/* An operation that cannot be done changes nothing and leaves no buffer. */
static void test_operands_are_checked(void **state)
{
	struct job job;
	void *memory;
	(void)state;
	jobs_init(&job, "tiny-gpt2", 2, SKEP_DEVICE_CUDA);
	job_restart(&job);
	uint64_t before = parameters_digest(job.device[1]);
	struct skep_buf in = skep_device_buffer_create(job.device[1], 100, &memory);
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = 1, .in = in};
	assert_true(job_run(job.device[1], op).failed);
	op = (struct skep_op){.kind = SKEP_OP_LOAD, .stage = 1, .in = in};
	assert_true(job_run(job.device[1], op).failed);
	skep_device_buffer_release(job.device[1], in);
	assert_int_equal(buffers_live(job.device[1]), 0);
	assert_true(parameters_digest(job.device[1]) == before);
	jobs_finish(&job);
}

int main(void)
{
	struct skep_diag error;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_cpu),
		cmocka_unit_test(test_with_nothing_fused),
		cmocka_unit_test(test_a_cut_changes_no_bit),
		cmocka_unit_test(test_a_reduction_among_both_kinds),
		cmocka_unit_test(test_a_state_goes_to_the_other_kind),
		cmocka_unit_test(test_periodic_sync),
		cmocka_unit_test(test_merges),
		cmocka_unit_test(test_gathering_among_both_kinds),
		cmocka_unit_test(test_a_tied_head_in_two_stages),
		cmocka_unit_test(test_what_it_refuses),
		cmocka_unit_test(test_operands_are_checked),
	};
	if (!skep_device_available(SKEP_DEVICE_CUDA, fresh(&error))) {
		fprintf(stderr, "%s\n", error.message);
		return 77; /* skipped, for meson */
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
