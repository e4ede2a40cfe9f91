/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_bench.c - see stage_bench.h.
 */
#include "models/device/stage_bench.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#define LAST (SKEP_STAGE_BENCH_STAGES - 1)
#define STEPS 5u
#define DISTURBED 1.2               /* of the median's time: more is that of others */
#define BLOCKS 9u                   /* of a figure ... */
#define BLOCK_NS UINT64_C(15000000) /* ... of at least so long: others have had their turn of the processor in it */

/* Small numbers of both signs, so that nothing grows out of bounds. */
static bool fill(struct skep_stage_bench *bench, size_t count, struct skep_buf *ret)
{
	void *memory;
	*ret = skep_device_buffer_create(bench->device, count * sizeof(float), &memory);
	float *number = memory;
	for (size_t i = 0; number != NULL && i < count; i++)
		number[i] = (float)(i % 13) * 1e-3f - 6e-3f;
	return number != NULL;
}

bool skep_stage_bench_begin(
	struct skep_stage_bench *ret, const struct skep_stage_bench_setup *setup, struct skep_diag *reterr)
{
	const struct skep_model *model = setup->model;
	assert(setup->stage <= LAST && setup->samples > 0 && model->cuts == SKEP_STAGE_BENCH_STAGES);
	*ret = (struct skep_stage_bench){.stage = setup->stage};
	ret->plan = (struct skep_plan){
		.workers = SKEP_STAGE_BENCH_STAGES, .stages = SKEP_STAGE_BENCH_STAGES, .microbatches = 1, .seed = 1};
	ret->training = (struct skep_training){.model = model,
		.plan = &ret->plan,
		.samples = setup->samples,
		.tokens = setup->tokens,
		.corpus = model->kind == SKEP_MODEL_MLP ? SKEP_CORPUS_QUADRATIC : SKEP_CORPUS_TOKENS,
		.optimizer = {.kind = SKEP_OPTIMIZER_ADAMW,
			.learning_rate = 1e-9f,
			.beta1 = 0.9f,
			.beta2 = 0.999f,
			.epsilon = 1e-8f}};
	ret->device = skep_device_create_on(setup->kind, setup->place, &ret->training, setup->stage, reterr);
	if (ret->device == NULL)
		return false;
	uint32_t first, layers;
	skep_model_cut(model, SKEP_STAGE_BENCH_STAGES, setup->stage, &first, &layers);
	const size_t samples = setup->samples;
	if ((setup->stage == 0 || fill(ret, samples * model->width[first], &ret->in)) &&
		(setup->stage == LAST || fill(ret, samples * model->width[first + layers], &ret->gradient)))
		return true;
	skep_fail(reterr, "not enough memory to measure the device");
	skep_stage_bench_finish(ret);
	return false;
}

/* Of the microbatch that has been under way for longest nothing is kept. */
static void forget_oldest(struct skep_stage_bench *bench)
{
	const uint64_t i = bench->backwards++ % SKEP_STAGE_BENCH_UNDER_WAY;
	skep_device_buffer_release(bench->device, bench->out[i]);
	skep_device_buffer_release(bench->device, bench->stash[i]);
}

void skep_stage_bench_finish(struct skep_stage_bench *bench)
{
	skep_device_buffer_release(bench->device, bench->in);
	skep_device_buffer_release(bench->device, bench->gradient);
	while (bench->backwards < bench->forwards)
		forget_oldest(bench);
	skep_device_destroy(bench->device);
}

/* Did the operation fail? The reason is then in reterr. */
static bool has_failed(const struct skep_device_result *result, struct skep_diag *reterr)
{
	if (result->failed)
		skep_fail(reterr, "the device cannot be measured: %s",
			result->why
				? result->why
				: "not enough memory: measure smaller layers (--size), or a smaller model (--model)");
	return result->failed;
}

static bool timed_op(struct skep_stage_bench *bench, const struct skep_op *op, struct skep_device_result *ret,
	double *ret_s, struct skep_diag *reterr)
{
	const uint64_t begin_ns = skep_monotonic_ns();
	skep_device_run(bench->device, op, ret);
	*ret_s = 1e-9 * (double)(skep_monotonic_ns() - begin_ns);
	return !has_failed(ret, reterr);
}

bool skep_stage_bench_forward(struct skep_stage_bench *bench, double *ret_s, struct skep_diag *reterr)
{
	const struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = (uint16_t)bench->stage, .in = bench->in};
	struct skep_device_result result;
	assert(bench->forwards - bench->backwards < SKEP_STAGE_BENCH_UNDER_WAY);
	if (!timed_op(bench, &op, &result, ret_s, reterr))
		return false;
	const uint64_t i = bench->forwards++ % SKEP_STAGE_BENCH_UNDER_WAY;
	bench->out[i] = result.out;
	bench->stash[i] = result.stash;
	return true;
}

bool skep_stage_bench_backward(struct skep_stage_bench *bench, double *ret_s, struct skep_diag *reterr)
{
	assert(bench->backwards < bench->forwards);
	const struct skep_op op = {.kind = SKEP_OP_BACKWARD,
		.stage = (uint16_t)bench->stage,
		.in = bench->in,
		.stash = bench->stash[bench->backwards % SKEP_STAGE_BENCH_UNDER_WAY],
		.gradient = bench->gradient};
	struct skep_device_result result;
	const bool done = timed_op(bench, &op, &result, ret_s, reterr);
	forget_oldest(bench);
	if (done)
		skep_device_buffer_release(bench->device, result.out);
	return done;
}

bool skep_stage_bench_pass(struct skep_stage_bench *bench, struct skep_pass_times *ret, struct skep_diag *reterr)
{
	do
		if (!skep_stage_bench_forward(bench, &ret->forward_s, reterr))
			return false;
	while (bench->forwards - bench->backwards < SKEP_STAGE_BENCH_UNDER_WAY);
	return skep_stage_bench_backward(bench, &ret->backward_s, reterr);
}

/* Over a block of time; both passes together say which of several blocks it is that counts. */
static bool mean_passes(struct skep_stage_bench *bench, struct skep_pass_times *ret, struct skep_diag *reterr)
{
	struct skep_pass_times one, sum = {0, 0};
	uint32_t turns = 0;
	for (uint64_t end_ns = skep_monotonic_ns() + BLOCK_NS; turns == 0 || skep_monotonic_ns() < end_ns; turns++) {
		if (!skep_stage_bench_pass(bench, &one, reterr))
			return false;
		sum.forward_s += one.forward_s;
		sum.backward_s += one.backward_s;
	}
	*ret = (struct skep_pass_times){sum.forward_s / turns, sum.backward_s / turns};
	return true;
}

static int by_both(const void *a, const void *b)
{
	const struct skep_pass_times *x = a, *y = b;
	double p = x->forward_s + x->backward_s, q = y->forward_s + y->backward_s;
	return (p > q) - (p < q);
}

/* The mean of the blocks that do not stand out. */
static struct skep_pass_times undisturbed(struct skep_pass_times block[BLOCKS])
{
	struct skep_pass_times sum = {0, 0};
	uint32_t count = 0;
	qsort(block, BLOCKS, sizeof *block, by_both);
	const struct skep_pass_times *median = &block[BLOCKS / 2];
	const double most_s = DISTURBED * (median->forward_s + median->backward_s);
	for (; count < BLOCKS && block[count].forward_s + block[count].backward_s <= most_s; count++) {
		sum.forward_s += block[count].forward_s;
		sum.backward_s += block[count].backward_s;
	}
	return (struct skep_pass_times){sum.forward_s / count, sum.backward_s / count};
}

bool skep_stage_bench_passes(struct skep_stage_bench *bench, struct skep_pass_times *ret, struct skep_diag *reterr)
{
	struct skep_pass_times block[BLOCKS];
	if (!skep_stage_bench_pass(bench, &block[0], reterr))
		return false;
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (!mean_passes(bench, &block[i], reterr))
			return false;
	*ret = undisturbed(block);
	return true;
}

bool skep_stage_bench_step(struct skep_stage_bench *bench, double *ret_s, struct skep_diag *reterr)
{
	const struct skep_op op = {.kind = SKEP_OP_STEP, .stage = (uint16_t)bench->stage, .size = 1, .microbatches = 1};
	struct skep_pass_times passes;
	struct skep_device_result result;
	double sum_s = 0, one_s;
	for (uint32_t i = 0; i <= STEPS; i++) {
		if (!skep_stage_bench_pass(bench, &passes, reterr) || !timed_op(bench, &op, &result, &one_s, reterr))
			return false;
		sum_s += i == 0 ? 0 : one_s;
	}
	*ret_s = sum_s / STEPS;
	return true;
}
