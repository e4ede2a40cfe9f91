/* SPDX-License-Identifier: Apache-2.0
 *
 * microbench.c - see microbench.h. Every model here has three stages, and the middle one is measured: it receives a
 * payload and sends one, as the inner stages of a pipeline do. A perceptron's stage has four layers, of which two widen and
 * two narrow, so that the parameters of each push those of the others out of the caches, as in training.
 *
 * On a GPU a stage's input and output go by way of the host's memory, which may take as long as the block between them. So two
 * stages are measured that differ in their number of blocks alone, and the rates are those of the difference.
 */
#include "models/device/microbench.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "models/device/stage_bench.h"

#define STAGE 1u /* of those of stage_bench.h: the middle one */
#define TURNS_EMPTY 501u
#define LAYERS 4u               /* of a perceptron's stage */
#define PRODUCTS (3.0 * LAYERS) /* one forwards and two backwards, of each layer */
#define RATE_LEAST 20.0
#define HEAD_WIDTH 64u
#define SEQUENCE 256u
#define STEP_WIDTH                                                                                                     \
	1024u /* of the stage whose step is timed: 80 MiB of parameters, sums and state, more than stays in a cache */
#define SINGLE_WIDTH 256u /* of passes that are made one at a time: a payload has 256 KiB */
#define DEEP 3u           /* blocks of the deeper stage; the other one has one */

struct bench { /* not to be moved: the device keeps pointers into it */
	uint32_t width[LAYERS + 3], cut[SKEP_STAGE_BENCH_STAGES];
	struct skep_model model;
	struct skep_stage_bench timed;
};

struct stage {
	enum skep_device_kind kind;
	uint32_t size, depth, samples;
};

/* ---- a model and its device -------------------------------------------------------------------------------------- */

static bool begin(struct bench *bench, enum skep_device_kind kind, const struct skep_device_place *place,
	uint32_t samples, struct skep_diag *reterr)
{
	const struct skep_stage_bench_setup setup = {
		.kind = kind, .place = place, .model = &bench->model, .stage = STAGE, .samples = samples};
	return skep_stage_bench_begin(&bench->timed, &setup, reterr);
}

/* From k to m numbers and back, twice, between a layer and a layer that are not measured. */
static void perceptron(struct bench *bench, uint32_t m, uint32_t k)
{
	*bench = (struct bench){.width = {1, k, m, k, m, k, 1},
		.cut = {1, LAYERS, 1},
		.model = {.name = "gauge", .activation = SKEP_ACTIVATION_GELU, .layers = LAYERS + 2, .cuts = 3}};
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

/* Bytes of a step per second of it: as its time is told from its bytes in scenarios/plan/plan.c. */
static bool steps(struct bench *bench, double overhead_s, double *ret_Bps, struct skep_diag *reterr)
{
	struct skep_cost cost;
	double step_s;
	skep_model_cost(&bench->model, SKEP_STAGE_BENCH_STAGES, STAGE, &cost);
	const double bytes = 2.0 * sizeof(float) * (double)cost.parameters +
	                     2.0 * (double)skep_device_state_bytes(
					   &bench->timed.training.optimizer, cost.parameters, cost.trained, 1);
	if (!skep_stage_bench_step(&bench->timed, &step_s, reterr))
		return false;
	*ret_Bps = bytes / fmax(step_s - overhead_s, step_s / 4);
	return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* Of both passes, without the overhead of either. Never less than a part of what was seen, for what is hardly longer than the
 * overhead is not known any better. */
static double beyond(const struct skep_microbench *microbench, const struct skep_pass_times *pair)
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
	struct skep_pass_times pair = {0, 0};
	double seconds[TURNS_EMPTY];
	perceptron(&bench, 1, 1);
	bool done = begin(&bench, SKEP_DEVICE_CPU, place, 1, reterr);
	if (!done)
		return false;
	for (uint32_t i = 0; done && i < TURNS_EMPTY; i++) {
		done = skep_stage_bench_pass(&bench.timed, &pair, reterr);
		seconds[i] = (pair.forward_s + pair.backward_s) / 2;
	}
	skep_stage_bench_finish(&bench.timed);
	qsort(seconds, TURNS_EMPTY, sizeof *seconds, skep_order_reals);
	ret->overhead_s = seconds[TURNS_EMPTY / 2];
	return done;
}

static bool measure_memory(const struct skep_device_place *place, struct skep_microbench *ret, struct skep_diag *reterr)
{
	struct bench bench;
	perceptron(&bench, STEP_WIDTH, STEP_WIDTH);
	if (!begin(&bench, SKEP_DEVICE_CPU, place, 1, reterr))
		return false;
	const bool done = steps(&bench, ret->overhead_s, &ret->memory_Bps, reterr);
	skep_stage_bench_finish(&bench.timed);
	return done;
}

static bool measure_product(const struct skep_device_place *place, struct skep_microbench_product *product,
	struct skep_microbench *microbench, struct skep_diag *reterr)
{
	struct bench bench;
	struct skep_pass_times pair = {0, 0};
	perceptron(&bench, product->m, product->k);
	if (!begin(&bench, SKEP_DEVICE_CPU, place, product->n, reterr))
		return false;
	bool done = skep_stage_bench_passes(&bench.timed, &pair, reterr);
	skep_stage_bench_finish(&bench.timed);
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
		if (!measure_product(place, product, ret, reterr))
			return false;
	}
	if (!measure_memory(place, ret, reterr))
		return false;
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
	struct skep_pass_times pair = {0, 0};
	if (!blocks(&bench, stage->size, stage->depth))
		return skep_fail(reterr, "not enough memory to measure the device");
	bool done = begin(&bench, stage->kind, place, stage->samples, reterr);
	if (done) {
		done = skep_stage_bench_passes(&bench.timed, &pair, reterr) &&
		       (ret_step_Bps == NULL || steps(&bench, overhead_s, ret_step_Bps, reterr));
		skep_stage_bench_finish(&bench.timed);
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

/* ---- passes one at a time ---------------------------------------------------------------------------------------- */

struct skep_single_passes {
	struct bench bench;
	bool blocks; /* of a transformer, else perceptrons */
	bool forward_done;
};

struct skep_single_passes *skep_single_passes_begin(enum skep_device_kind kind, const struct skep_device_place *place,
	uint64_t *ret_bytes, struct skep_diag *reterr)
{
	struct skep_single_passes *passes = calloc(1, sizeof *passes);
	if (passes == NULL) {
		skep_fail(reterr, "no memory to measure the device");
		return NULL;
	}
	passes->blocks = kind == SKEP_DEVICE_CUDA;
	*ret_bytes = sizeof(float) * SINGLE_WIDTH * SINGLE_WIDTH;
	static_assert(SEQUENCE == SINGLE_WIDTH, "a payload of one sequence is one of as many samples");
	bool placed = true;
	if (passes->blocks)
		placed = blocks(&passes->bench, SINGLE_WIDTH, 1);
	else
		perceptron(&passes->bench, SINGLE_WIDTH, SINGLE_WIDTH);
	if (!placed)
		skep_fail(reterr, "no memory to measure the device");
	if (placed && begin(&passes->bench, kind, place, passes->blocks ? 1 : SINGLE_WIDTH, reterr))
		return passes;
	if (passes->blocks)
		finish_blocks(&passes->bench);
	free(passes);
	return NULL;
}

bool skep_single_passes_next(struct skep_single_passes *passes, struct skep_diag *reterr)
{
	double seconds;
	passes->forward_done = !passes->forward_done;
	return passes->forward_done ? skep_stage_bench_forward(&passes->bench.timed, &seconds, reterr)
	                            : skep_stage_bench_backward(&passes->bench.timed, &seconds, reterr);
}

void skep_single_passes_finish(struct skep_single_passes *passes)
{
	if (passes == NULL)
		return;
	skep_stage_bench_finish(&passes->bench.timed);
	if (passes->blocks)
		finish_blocks(&passes->bench);
	free(passes);
}
