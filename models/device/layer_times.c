/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_times.c - see layer_times.h. Samples are windows of ids drawn at random, which lie in a file in memory: the time of a
 * pass does not depend on what they say, but an embedding's does on how far apart its rows are.
 */
#include "models/device/layer_times.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/order.h"
#include "core/random.h"
#include "models/corpus/tokens.h"

#define PASS_MOST_S 0.5
#define STEPS_BEHIND_S 0.1 /* a step is timed behind a pass of so long at most */
#define BLOCKS_LEAST 3u
#define BLOCKS_MOST 5u
#define LEAST_PART 0.01
#define AGAIN 3u /* times at most that what may have been disturbed is timed once more */
#define SEVERAL_MOST 1.05
#define SEVERAL_LEAST 0.8
#define WINDOWS 16u

/* ---- parts of stages --------------------------------------------------------------------------------------------- */

/* A stage is so many blocks and two edges. What a single block works on may stay in a cache where that of several does not, and
 * then a block more adds more than the whole of the stage of one: each takes its part of the time of several, and edges are
 * lost in that. */
static void part_blocks(const struct skep_layer_stages *stages, int column, double *ret_block_s, double *ret_edge_s)
{
	const double one_s = stages->one_block.s[column], several_s = stages->several.s[column];
	const double more_s = fmax((several_s - one_s) / (stages->blocks - 1), LEAST_PART * several_s);
	*ret_edge_s = fmax((one_s - more_s) / 2, LEAST_PART * one_s);
	*ret_block_s = more_s <= one_s ? more_s : (several_s - 2 * *ret_edge_s) / stages->blocks;
}

void skep_layer_times_part(const struct skep_layer_stages *stages, struct skep_layer_time ret[SKEP_LAYER_PARTS])
{
	for (int c = 0; c < SKEP_LAYER_COLUMNS; c++) {
		const double embedding_s = stages->embedding.s[c], one_s = stages->one_block.s[c],
			     several_s = stages->several.s[c], head_s = stages->head.s[c];
		double block_s, edge_s;
		assert(stages->blocks > 1 && embedding_s > 0 && one_s > 0 && several_s > 0 && head_s > 0);
		part_blocks(stages, c, &block_s, &edge_s);
		ret[SKEP_PART_BLOCK].s[c] = block_s;
		ret[SKEP_PART_EDGE].s[c] = edge_s;
		ret[SKEP_PART_EMBEDDING].s[c] = fmax(embedding_s - edge_s, LEAST_PART * embedding_s);
		ret[SKEP_PART_HEAD].s[c] = fmax(head_s - edge_s, LEAST_PART * head_s);
	}
}

/* Of times [first, end) of a part. */
static double median_s(const struct skep_layer_time *time, uint32_t first, uint32_t end, int column)
{
	double value[SKEP_LAYER_TIMES_MAX];
	const uint32_t count = end - first;
	assert(first < end && count <= SKEP_LAYER_TIMES_MAX);
	for (uint32_t i = 0; i < count; i++)
		value[i] = time[first + i].s[column];
	qsort(value, count, sizeof *value, skep_order_reals);
	return count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
}

/* Isotonic regression by medians: the most, over spans that begin at `at` or before, of the least over those that end at it or
 * behind (Robertson, Wright and Dykstra, Order Restricted Statistical Inference, 1988, section 1.4). */
static double risen_s(const struct skep_layer_time *time, uint32_t count, uint32_t at, int column)
{
	double most_s = 0;
	for (uint32_t first = 0; first <= at; first++) {
		double least_s = INFINITY;
		for (uint32_t end = at + 1; end <= count; end++)
			least_s = fmin(least_s, median_s(time, first, end, column));
		most_s = fmax(most_s, least_s);
	}
	return most_s;
}

void skep_layer_times_smooth(struct skep_layer_times *times)
{
	const uint32_t count = times->microbatches;
	const struct skep_layer_times seen = *times;
	assert(count <= SKEP_LAYER_TIMES_MAX);
	for (int p = 0; p < SKEP_LAYER_PARTS; p++)
		for (uint32_t i = 0; i < count; i++) {
			struct skep_layer_time *time = &times->part[p][i];
			for (int c = SKEP_LAYER_FORWARD; c <= SKEP_LAYER_BACKWARD; c++)
				time->s[c] = risen_s(seen.part[p], count, i, c);
			time->s[SKEP_LAYER_UPDATE] = median_s(seen.part[p], 0, count, SKEP_LAYER_UPDATE);
		}
}

/* ---- what is timed ----------------------------------------------------------------------------------------------- */

/* Ids of 16 bits below the vocabulary, enough for some windows, in a file that is nowhere. */
static struct skep_tokens *draw_tokens(const struct skep_model *model, struct skep_diag *reterr)
{
	const size_t count = (size_t)WINDOWS * model->sequence + 1;
	const uint32_t vocabulary = model->vocabulary < UINT16_MAX ? model->vocabulary : UINT16_MAX;
	uint16_t *id = malloc(count * sizeof *id);
	uint64_t state = 1;
	char path[64];
	struct skep_tokens *tokens = NULL;
	for (size_t i = 0; id != NULL && i < count; i++)
		id[i] = (uint16_t)(skep_random_next(&state) % vocabulary);
	const int fd = id != NULL ? memfd_create("tokens", MFD_CLOEXEC) : -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	const char *const files[] = {path};
	const struct skep_tokens_options options = {.training = files,
		.trainings = 1,
		.format = SKEP_TOKENS_NANOGPT,
		.vocabulary = model->vocabulary,
		.length = model->sequence};
	if (fd < 0 || write(fd, id, count * sizeof *id) != (ssize_t)(count * sizeof *id))
		skep_fail(reterr, "not enough memory for the samples to measure the model with");
	else
		tokens = skep_tokens_open(&options, reterr);
	if (fd >= 0)
		close(fd);
	free(id);
	return tokens;
}

struct measuring {
	enum skep_device_kind kind;
	const struct skep_device_place *place;
	const struct skep_model *model; /* as its file has it */
	const struct skep_tokens *tokens;
};

/* The passes of a stage of the model with so many blocks, and its step, unless *ret has one already. Every block has
 * parameters of its own here, and the head too: the time of a product does not depend on which layers share its weights. */
static bool time_stage(const struct measuring *m, uint32_t stage, uint32_t blocks, uint32_t samples,
	struct skep_layer_time *ret, struct skep_diag *reterr)
{
	struct skep_pass_times passes;
	uint32_t cut[SKEP_STAGE_BENCH_STAGES] = {1, blocks, 1};
	struct skep_model model = *m->model;
	struct skep_stage_bench bench;
	model.shared = 1;
	model.tied = model.copied = false;
	model.cut = cut;
	model.cuts = SKEP_STAGE_BENCH_STAGES;
	if (!skep_model_place(&model, blocks))
		return skep_fail(reterr, "not enough memory to measure the device");
	const struct skep_stage_bench_setup setup = {.kind = m->kind,
		.place = m->place,
		.model = &model,
		.tokens = m->tokens,
		.stage = stage,
		.samples = samples};
	bool done = skep_stage_bench_begin(&bench, &setup, reterr);
	if (done) {
		double *step_s = &ret->s[SKEP_LAYER_UPDATE];
		done = skep_stage_bench_passes(&bench, &passes, reterr) &&
		       (*step_s > 0 || skep_stage_bench_step(&bench, step_s, reterr));
		skep_stage_bench_finish(&bench);
	}
	free(model.width);
	if (done) {
		ret->s[SKEP_LAYER_FORWARD] = passes.forward_s;
		ret->s[SKEP_LAYER_BACKWARD] = passes.backward_s;
	}
	return done;
}

static double longest_s(const struct skep_layer_stages *stages)
{
	double most_s = 0;
	for (int c = SKEP_LAYER_FORWARD; c <= SKEP_LAYER_BACKWARD; c++)
		most_s = fmax(most_s, fmax(stages->head.s[c], stages->several.s[c]));
	return most_s;
}

/* A step does not depend on the microbatch: where passes are long, that of half the microbatch is kept. */
static void begin_stages(struct skep_layer_stages *stages, double pass_s)
{
	struct skep_layer_time *each[] = {&stages->embedding, &stages->one_block, &stages->several, &stages->head};
	for (size_t i = 0; i < sizeof each / sizeof *each && pass_s <= STEPS_BEHIND_S; i++)
		each[i]->s[SKEP_LAYER_UPDATE] = 0;
}

/* A block that takes so much more among several than alone, or so much less, may have been disturbed. */
static bool stands_out(const struct skep_layer_stages *stages)
{
	bool ret = false;
	for (int c = SKEP_LAYER_FORWARD; c <= SKEP_LAYER_BACKWARD; c++) {
		const double ratio = stages->several.s[c] / (stages->blocks * stages->one_block.s[c]);
		ret = ret || ratio > SEVERAL_MOST || ratio < SEVERAL_LEAST;
	}
	return ret;
}

static void keep_lesser(struct skep_layer_time *time, const struct skep_layer_time *again)
{
	for (int c = SKEP_LAYER_FORWARD; c <= SKEP_LAYER_BACKWARD; c++)
		time->s[c] = fmin(time->s[c], again->s[c]);
}

static bool time_blocks(
	const struct measuring *m, uint32_t samples, struct skep_layer_stages *ret, struct skep_diag *reterr)
{
	if (!time_stage(m, 1, ret->blocks, samples, &ret->several, reterr) ||
		!time_stage(m, 1, 1, samples, &ret->one_block, reterr))
		return false;
	for (uint32_t i = 0; i < AGAIN && stands_out(ret); i++) {
		struct skep_layer_time several = ret->several,
				       one = ret->one_block; /* with their steps, which are kept */
		if (!time_stage(m, 1, ret->blocks, samples, &several, reterr) ||
			!time_stage(m, 1, 1, samples, &one, reterr))
			return false;
		keep_lesser(&ret->several, &several);
		keep_lesser(&ret->one_block, &one);
	}
	return true;
}

static bool time_stages(
	const struct measuring *m, uint32_t samples, struct skep_layer_stages *ret, struct skep_diag *reterr)
{
	return time_blocks(m, samples, ret, reterr) && time_stage(m, 2, 1, samples, &ret->head, reterr) &&
	       time_stage(m, 0, 1, samples, &ret->embedding, reterr);
}

bool skep_layer_times_measure(enum skep_device_kind kind, const struct skep_device_place *place,
	const struct skep_model *model, struct skep_layer_times *ret, struct skep_diag *reterr)
{
	struct measuring m = {kind, place, model, NULL};
	const uint32_t blocks = model->layers > 2 ? model->layers - 2 : 1; /* behind the embedding, before the head */
	struct skep_layer_stages stages = {.blocks = blocks < BLOCKS_LEAST  ? BLOCKS_LEAST
	                                             : blocks < BLOCKS_MOST ? blocks
	                                                                    : BLOCKS_MOST};
	double pass_s = 0;
	assert(model->kind == SKEP_MODEL_TRANSFORMER && model->architecture != SKEP_ARCHITECTURE_NONE);
	*ret = (struct skep_layer_times){0};
	struct skep_tokens *tokens = draw_tokens(model, reterr);
	m.tokens = tokens;
	for (uint32_t i = 0; tokens != NULL && i < SKEP_LAYER_TIMES_MAX && pass_s < PASS_MOST_S; i++) {
		/* That larger microbatches do not fit is no fault. */
		struct skep_diag lacks = {0};
		begin_stages(&stages, pass_s);
		if (!time_stages(&m, 1u << i, &stages, i == 0 ? reterr : &lacks))
			break;
		struct skep_layer_time part[SKEP_LAYER_PARTS];
		skep_layer_times_part(&stages, part);
		for (int p = 0; p < SKEP_LAYER_PARTS; p++)
			ret->part[p][i] = part[p];
		ret->microbatches++;
		pass_s = longest_s(&stages);
	}
	skep_tokens_close(tokens);
	skep_layer_times_smooth(ret);
	return ret->microbatches > 0;
}
