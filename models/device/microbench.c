/* SPDX-License-Identifier: Apache-2.0
 *
 * microbench.c - see microbench.h. Every model here has three stages, and the middle one is measured: it receives a
 * payload and sends one, as the inner stages of a pipeline do. A perceptron's stage has two layers, one that widens and
 * one that narrows, so that the parameters of each push those of the other out of the caches, as in training.
 *
 * A time is the median over blocks of passes, and a block's time is the mean of its passes. So the load that other
 * processes put on the host all the time is part of the result, and a short disturbance is not.
 *
 * On a GPU a stage's input and output go by way of the host's memory, which may take as long as the block between them. So two
 * stages are measured that differ in their number of blocks alone, and the rates are those of the difference.
 */
#include "models/device/microbench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "models/device/backend.h"

#define STAGE 1u
#define STEPS 5u
#define TURNS_EMPTY 501u
#define BLOCKS 5u                   /* of a figure ... */
#define BLOCK_NS UINT64_C(10000000) /* ... of at least so long: others have had their turn of the processor in it */
#define PRODUCTS 6.0                /* of two layers: one forwards, two backwards each */
#define RATE_LEAST 20.0
#define HEAD_WIDTH 64u
#define SEQUENCE 256u
#define DEEP 3u /* blocks of the deeper stage; the other one has one */

struct bench { /* not to be moved: the device keeps pointers into it */
	uint32_t width[5], cut[3];
	struct skep_model model;
	struct skep_plan plan;
	struct skep_training training;
	struct skep_device *device;
	struct skep_buf in, gradient;
};

struct pair { /* of one passage */
	double forward_s, backward_s;
};

struct stage {
	enum skep_device_kind kind;
	uint32_t size, depth, samples;
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* ---- a model and its device -------------------------------------------------------------------------------------- */

/* Small numbers of both signs, so that nothing grows out of bounds. */
static bool fill(struct bench *bench, size_t count, struct skep_buf *ret)
{
	void *memory;
	*ret = skep_device_buffer_create(bench->device, count * sizeof(float), &memory);
	float *number = memory;
	for (size_t i = 0; number != NULL && i < count; i++)
		number[i] = (float)(i % 13) * 1e-3f - 6e-3f;
	return number != NULL;
}

/* Numbers of a sample, before and behind the stage. */
static uint32_t in_of(const struct bench *bench)
{
	return bench->model.width[1];
}

static uint32_t out_of(const struct bench *bench)
{
	return bench->model.width[bench->model.layers - 1];
}

static bool begin(struct bench *bench, enum skep_device_kind kind, const struct skep_device_place *place,
	uint32_t samples, struct skep_diag *reterr)
{
	bench->plan = (struct skep_plan){.workers = 3, .stages = 3, .microbatches = 1, .seed = 1};
	bench->training = (struct skep_training){.model = &bench->model,
		.plan = &bench->plan,
		.samples = samples,
		.corpus = bench->model.kind == SKEP_MODEL_MLP ? SKEP_CORPUS_QUADRATIC : SKEP_CORPUS_TOKENS,
		.optimizer = {.kind = SKEP_OPTIMIZER_ADAMW,
			.learning_rate = 1e-9f,
			.beta1 = 0.9f,
			.beta2 = 0.999f,
			.epsilon = 1e-8f}};
	bench->device = skep_device_create_on(kind, place, &bench->training, STAGE, reterr);
	if (bench->device == NULL)
		return false;
	if (fill(bench, (size_t)samples * in_of(bench), &bench->in) &&
		fill(bench, (size_t)samples * out_of(bench), &bench->gradient))
		return true;
	skep_fail(reterr, "not enough memory to measure the device");
	skep_device_destroy(bench->device);
	return false;
}

static void finish(struct bench *bench)
{
	skep_device_buffer_release(bench->device, bench->in);
	skep_device_buffer_release(bench->device, bench->gradient);
	skep_device_destroy(bench->device);
}

/* From k to m numbers and back, between a layer and a layer that are not measured. */
static void perceptron(struct bench *bench, uint32_t m, uint32_t k)
{
	*bench = (struct bench){.width = {1, k, m, k, 1},
		.cut = {1, 2, 1},
		.model = {.name = "gauge", .activation = SKEP_ACTIVATION_GELU, .layers = 4, .cuts = 3}};
	bench->model.cut = bench->cut;
	bench->model.width = bench->width;
}

static bool blocks(struct bench *bench, uint32_t size, uint32_t depth)
{
	*bench = (struct bench){.cut = {1, depth, 1},
		.model = {.name = "gauge",
			.kind = SKEP_MODEL_TRANSFORMER,
			.architecture = SKEP_ARCHITECTURE_GPT2,
			.activation = SKEP_ACTIVATION_GELU,
			.hidden = size,
			.sequence = SEQUENCE,
			.shared = 1,
			.vocabulary = 256,
			.heads = size / HEAD_WIDTH,
			.kv_heads = size / HEAD_WIDTH,
			.feed_forward = 4 * size,
			.norm_epsilon = 1e-5,
			.cuts = 3}};
	bench->model.cut = bench->cut;
	return skep_model_place(&bench->model, depth);
}

static void finish_blocks(struct bench *bench)
{
	bench->model.cut = NULL; /* it is the bench's */
	skep_model_finish(&bench->model);
}

/* ---- one figure -------------------------------------------------------------------------------------------------- */

static bool failed(const struct skep_device_result *result, struct skep_diag *reterr)
{
	if (result->failed)
		skep_fail(reterr, "the device cannot be measured: %s",
			result->why ? result->why : "not enough memory: measure smaller layers (--size)");
	return result->failed;
}

static bool pass(struct bench *bench, struct pair *ret, struct skep_diag *reterr)
{
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = STAGE, .in = bench->in};
	struct skep_device_result forward, backward;
	uint64_t begin_ns = skep_monotonic_ns();
	skep_device_run(bench->device, &op, &forward);
	uint64_t middle_ns = skep_monotonic_ns();
	if (failed(&forward, reterr))
		return false;
	op.kind = SKEP_OP_BACKWARD;
	op.stash = forward.stash;
	op.gradient = bench->gradient;
	uint64_t again_ns = skep_monotonic_ns();
	skep_device_run(bench->device, &op, &backward);
	uint64_t end_ns = skep_monotonic_ns();
	skep_device_buffer_release(bench->device, forward.out);
	skep_device_buffer_release(bench->device, forward.stash);
	if (failed(&backward, reterr))
		return false;
	skep_device_buffer_release(bench->device, backward.out);
	*ret = (struct pair){1e-9 * (double)(middle_ns - begin_ns), 1e-9 * (double)(end_ns - again_ns)};
	return true;
}

/* Over a block of time; both passes together say which of several blocks it is that counts. */
static bool mean_passes(struct bench *bench, struct pair *ret, struct skep_diag *reterr)
{
	struct pair one, sum = {0, 0};
	uint32_t turns = 0;
	for (uint64_t end_ns = skep_monotonic_ns() + BLOCK_NS; turns == 0 || skep_monotonic_ns() < end_ns; turns++) {
		if (!pass(bench, &one, reterr))
			return false;
		sum.forward_s += one.forward_s;
		sum.backward_s += one.backward_s;
	}
	*ret = (struct pair){sum.forward_s / turns, sum.backward_s / turns};
	return true;
}

static int by_both(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	double p = x->forward_s + x->backward_s, q = y->forward_s + y->backward_s;
	return (p > q) - (p < q);
}

/* The median of blocks; a first pass is not counted. */
static bool passes(struct bench *bench, struct pair *ret, struct skep_diag *reterr)
{
	struct pair block[BLOCKS];
	if (!pass(bench, &block[0], reterr))
		return false;
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (!mean_passes(bench, &block[i], reterr))
			return false;
	qsort(block, BLOCKS, sizeof *block, by_both);
	*ret = block[BLOCKS / 2];
	return true;
}

/* Bytes of a step per second of it: as its time is told from its bytes in scenarios/plan/plan.c. A first one is not counted: in
 * it a GPU loads what it runs, and a CPU touches the moments for the first time. */
static bool steps(struct bench *bench, double overhead_s, double *ret_Bps, struct skep_diag *reterr)
{
	struct skep_op op = {.kind = SKEP_OP_STEP, .stage = STAGE, .size = 1, .microbatches = 1};
	struct skep_device_result result;
	struct skep_cost cost;
	double sum_s = 0;
	skep_model_cost(&bench->model, 3, STAGE, &cost);
	double bytes = 2.0 * sizeof(float) * (double)cost.parameters +
	               2.0 * (double)skep_device_state_bytes(&bench->training.optimizer, cost.parameters, 1);
	for (uint32_t i = 0; i <= STEPS; i++) {
		uint64_t begin_ns = skep_monotonic_ns();
		skep_device_run(bench->device, &op, &result);
		sum_s += i == 0 ? 0 : 1e-9 * (double)(skep_monotonic_ns() - begin_ns);
		if (failed(&result, reterr))
			return false;
	}
	double rest_s = sum_s / STEPS - overhead_s;
	*ret_Bps = bytes / fmax(rest_s, sum_s / STEPS / 4);
	return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* Of both passes, without the overhead of either. Never less than a part of what was seen, for what is hardly longer than the
 * overhead is not known any better. */
static double beyond(const struct skep_microbench *microbench, const struct pair *pair)
{
	double seen_s = pair->forward_s + pair->backward_s, rest_s = seen_s - 2 * microbench->overhead_s;
	return fmax(rest_s, seen_s / 4);
}

/* A rate is one of passes that are much longer than their overhead. */
static void note_rate(struct skep_microbench *microbench, double flop, double seconds)
{
	if (seconds > RATE_LEAST * microbench->overhead_s && flop / seconds > microbench->flops)
		microbench->flops = flop / seconds;
}

/* A layer of one number: nothing but the operation itself. The median, since there is nothing in it to be shared. */
static bool measure_overhead(
	const struct skep_device_place *place, struct skep_microbench *ret, struct skep_diag *reterr)
{
	struct bench bench;
	struct pair pair = {0, 0};
	double seconds[TURNS_EMPTY];
	perceptron(&bench, 1, 1);
	bool done = begin(&bench, SKEP_DEVICE_CPU, place, 1, reterr);
	if (!done)
		return false;
	for (uint32_t i = 0; done && i < TURNS_EMPTY; i++) {
		done = pass(&bench, &pair, reterr);
		seconds[i] = (pair.forward_s + pair.backward_s) / 2;
	}
	finish(&bench);
	qsort(seconds, TURNS_EMPTY, sizeof *seconds, ascending);
	ret->overhead_s = seconds[TURNS_EMPTY / 2];
	return done;
}

static bool measure_product(const struct skep_device_place *place, struct skep_microbench_product *product,
	bool largest, struct skep_microbench *microbench, struct skep_diag *reterr)
{
	struct bench bench;
	struct pair pair = {0, 0};
	perceptron(&bench, product->m, product->k);
	if (!begin(&bench, SKEP_DEVICE_CPU, place, product->n, reterr))
		return false;
	bool done = passes(&bench, &pair, reterr) &&
	            (!largest || steps(&bench, microbench->overhead_s, &microbench->memory_Bps, reterr));
	finish(&bench);
	double rest_s = beyond(microbench, &pair);
	product->seconds = rest_s / PRODUCTS;
	note_rate(microbench, 2.0 * PRODUCTS * product->m * product->k * product->n, rest_s);
	return done;
}

static bool too_small(uint32_t size, struct skep_diag *reterr)
{
	return skep_fail(reterr,
		"layers of %u numbers take the device hardly longer than none: measure larger ones (--size)", size);
}

static bool measure_cpu(
	const struct skep_device_place *place, uint32_t size, struct skep_microbench *ret, struct skep_diag *reterr)
{
	const uint32_t wide[] = {size / 16, size / 4, size}, many[] = {size / 64, size / 8, size / 2};
	if (!measure_overhead(place, ret, reterr))
		return false;
	for (uint32_t i = 0; i < SKEP_MICROBENCH_PRODUCTS_MAX; i++) {
		struct skep_microbench_product *product = &ret->product[i];
		*product = (struct skep_microbench_product){wide[i / 9], wide[i / 3 % 3], many[i % 3], 0};
		bool largest = i + 1 == SKEP_MICROBENCH_PRODUCTS_MAX;
		if (!measure_product(place, product, largest, ret, reterr))
			return false;
	}
	ret->products = SKEP_MICROBENCH_PRODUCTS_MAX;
	if (ret->flops > 0)
		return true;
	return too_small(size, reterr);
}

/* Of a stage of so many blocks: what both of its passes do, as the simulator counts it, and how long they take; and, if it is
 * asked for, the rate of a step. */
static bool measure_stage(const struct skep_device_place *place, const struct stage *stage,
	struct skep_microbench_passes *ret, double overhead_s, double *ret_step_Bps, struct skep_diag *reterr)
{
	struct bench bench;
	struct skep_cost cost;
	struct pair pair = {0, 0};
	if (!blocks(&bench, stage->size, stage->depth))
		return skep_fail(reterr, "not enough memory to measure the device");
	bool done = begin(&bench, stage->kind, place, stage->samples, reterr);
	if (done) {
		done = passes(&bench, &pair, reterr) &&
		       (ret_step_Bps == NULL || steps(&bench, overhead_s, ret_step_Bps, reterr));
		finish(&bench);
	}
	skep_model_cost(&bench.model, 3, STAGE, &cost);
	*ret = (struct skep_microbench_passes){.flop = stage->samples * (cost.forward_flop + cost.backward_flop),
		.bytes = cost.forward_bytes + cost.backward_bytes +
	                 stage->samples * (cost.sample_bytes + cost.backward_sample_bytes),
		.seconds = pair.forward_s + pair.backward_s};
	finish_blocks(&bench);
	return done;
}

void skep_microbench_note(struct skep_microbench *microbench, const struct skep_microbench_passes *shallow,
	const struct skep_microbench_passes *deep)
{
	struct skep_microbench_passes more = {
		deep->flop - shallow->flop, deep->bytes - shallow->bytes, deep->seconds - shallow->seconds};
	/* A disturbance of the shallow one would make the difference too short, so the rate may be twice that of the deep one,
	 * way in and out included, but not more. */
	if (more.seconds < deep->seconds * more.flop / deep->flop / 2)
		more = *deep;
	if (deep->seconds <= RATE_LEAST * microbench->overhead_s)
		return;
	microbench->flops = fmax(microbench->flops, more.flop / more.seconds);
	microbench->memory_Bps = fmax(microbench->memory_Bps, more.bytes / more.seconds);
}

static bool measure_blocks(enum skep_device_kind kind, const struct skep_device_place *place, uint32_t size,
	struct skep_microbench *ret, struct skep_diag *reterr)
{
	const uint32_t narrow = size / 4 / HEAD_WIDTH * HEAD_WIDTH;
	const struct {
		uint32_t size, samples;
	} shape[] = {{size, 1}, {size, 4}, {size, 16}, {narrow > 0 ? narrow : HEAD_WIDTH, 64}};
	struct skep_microbench_passes shallow = {0, 0, 0}, deep;
	/* A block of one sequence is as good as nothing to a GPU that is worth its name, if the block is narrow: the overhead. */
	bool done = measure_stage(place, &(struct stage){kind, HEAD_WIDTH, 1, 1}, &shallow, 0, NULL, reterr);
	ret->overhead_s = shallow.seconds / 2;
	for (size_t i = 0; done && i < sizeof shape / sizeof *shape; i++) {
		struct stage stage = {kind, shape[i].size, 1, shape[i].samples};
		double step_Bps = 0;
		done = measure_stage(place, &stage, &shallow, 0, NULL, reterr);
		stage.depth = DEEP;
		done = done && measure_stage(place, &stage, &deep, ret->overhead_s, &step_Bps, reterr);
		if (!done)
			break;
		ret->memory_Bps = fmax(ret->memory_Bps, step_Bps);
		skep_microbench_note(ret, &shallow, &deep);
	}
	if (!done || ret->flops > 0)
		return done;
	return too_small(size, reterr);
}

bool skep_microbench_measure(enum skep_device_kind kind, const struct skep_device_place *place, uint32_t size,
	struct skep_microbench *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_microbench){0};
	return kind == SKEP_DEVICE_CPU ? measure_cpu(place, size, ret, reterr)
	                               : measure_blocks(kind, place, size, ret, reterr);
}
