/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap.c - see overlap.h. A bucket is a run of whole layers: from the last layer of a stage on they are gathered until their
 * gradients, 4 bytes for each parameter, are at least as many as `sync.bucket` says. So a layer that is larger is a bucket of its
 * own, and all but the last, which has the first layers, are at least that large. PyTorch's DistributedDataParallel cuts between
 * tensors in the same way (Li et al. 2020; 25 MiB there and here); whole layers are what the arithmetic knows.
 *
 * A part of BACKWARD has the share of the pass that its layers have of all: by their own backward times, from the predictor that
 * the scenario asks for or the roofline. What is recomputed is recomputed at once, so that is in the first part.
 *
 * Kept true: the parts of a pass take exactly what the pass takes, whatever rounding does.
 */
#include "scenarios/plan/overlap.h"

#include <math.h>
#include <stdlib.h>

#include "scenarios/plan/split.h"

#define BUCKET_BYTES (25.0 * 0x1p20)
#define WHOLE (UINT64_C(1) << 32) /* of a pass */

void skep_overlap_read(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	bool overlap = skep_read_bool(r, sync, "overlap", false);
	bool has_bucket = skep_read_has(r, sync, "bucket");
	s->bucket_bytes = skep_read_quantity(r, sync, "bucket", SKEP_BYTES, 1, 0x1p50, BUCKET_BYTES);
	if (r->diag->set)
		return;
	if (has_bucket && !skep_read_has(r, sync, "overlap"))
		skep_reader_fail(r, sync, "bucket",
			"sync.bucket: a reduction goes in buckets where it overlaps with the backward pass: add "
			"`overlap: true`, or leave this out");
	else if (overlap && !skep_plan_fixed(&s->plan))
		skep_reader_fail(r, sync, "overlap",
			"sync.overlap: a worker of a swarm does not know which gradient of a round is its last; take a "
			"fixed pipeline: `pipeline: 1f1b`, with `model.stages: 1` that is data parallel training");
	else if (overlap && (s->plan.pipeline == SKEP_PIPELINE_INTERLEAVED || skep_plan_no_flush(&s->plan)))
		skep_reader_fail(r, sync, "overlap",
			"sync.overlap: goes with `pipeline: gpipe` and `1f1b`; leave it out with `interleaved` and `pipedream`");
	s->plan.eager = overlap;
}

/* ---- buckets ---------------------------------------------------------------------------------------------------- */

/* Of the microbatch, on that GPU; only its share of the stage's counts. */
static double layer_backward_s(const struct skep_scenario *s, uint32_t gpu, uint32_t layer)
{
	struct skep_cost cost;
	struct skep_compute_task task = {.model = &s->model,
		.first_layer = layer,
		.layers = 1,
		.samples = s->samples,
		.split = skep_split_of(s, gpu),
		.scale = 1};
	struct skep_compute_stage time;
	if (s->predictor) {
		skep_compute_time(&s->predictor[gpu], &task, &time);
		return 1e-9 * skep_compute_sum(&time.backward);
	}
	skep_model_cost(&s->model, s->model.layers, layer, &cost); /* as if each layer were a stage */
	if (cost.backward_ns > 0)
		return 1e-9 * (double)cost.backward_ns;
	return skep_gpu_busy_s(&s->topology.gpu[gpu], s->samples * cost.backward_flop,
		cost.backward_bytes + s->samples * cost.backward_sample_bytes);
}

struct cut { /* a stage's layers, and how far its buckets have been made */
	uint32_t first_layer, layers;
	uint64_t *bucket_first;
};

/* Fills cut->bucket_first, and with ret_layer the lowest layer of each bucket; returns how many: none where nothing is
 * trained. */
static uint32_t cut_stage(const struct skep_scenario *s, const struct cut *cut, uint32_t *ret_layer)
{
	uint32_t buckets = 0, end = cut->first_layer + cut->layers;
	uint32_t lowest = cut->first_layer > s->model.frozen ? cut->first_layer : s->model.frozen;
	uint64_t parameters = 0, below = 0;
	for (uint32_t l = end; l-- > lowest;) {
		struct skep_layer_products p;
		skep_model_products(&s->model, l, 1, &p);
		parameters += (uint64_t)p.trained;
		below += (uint64_t)p.trained;
		if ((double)(skep_model_number_bytes(&s->model) * parameters) < s->bucket_bytes && l > lowest)
			continue;
		cut->bucket_first[buckets] = below; /* from the end; turned round by the caller */
		ret_layer[buckets++] = l;
		parameters = 0;
	}
	return buckets;
}

/* How much of a pass is over when each bucket's part is. */
static void share_pass(const struct skep_scenario *s, uint32_t gpu, const struct cut *cut, const uint32_t *lowest,
	uint32_t buckets, uint64_t *ret_end)
{
	double all_s = 0, done_s = 0;
	for (uint32_t l = 0; l < cut->layers; l++)
		all_s += layer_backward_s(s, gpu, cut->first_layer + l);
	for (uint32_t b = 0, l = cut->first_layer + cut->layers; b < buckets; b++) {
		while (l > lowest[b])
			done_s += layer_backward_s(s, gpu, --l);
		ret_end[b] = b + 1 < buckets ? (uint64_t)(fmin(1, done_s / all_s) * (double)WHOLE) : WHOLE;
	}
}

static uint64_t *part_ends(const struct skep_scenario *s, uint32_t gpu, uint32_t stage)
{
	size_t before = (size_t)(s->stage[stage].bucket_first - s->bucket_first);
	return &s->part_end[(size_t)gpu * s->model.layers + before];
}

/* Where layers of the description and parameters of the stage are not the same thing there is one bucket. */
static void make_stage(struct skep_scenario *s, uint32_t stage, struct cut *cut, uint32_t *layer)
{
	struct skep_stage_plan *plan = &s->stage[stage];
	skep_model_cut(&s->model, s->plan.stages, stage, &cut->first_layer, &cut->layers);
	uint32_t buckets = cut_stage(s, cut, layer);
	const uint64_t trained = skep_plan_trained(&s->plan, stage), end = plan->parameters - plan->frozen_end;
	if (buckets == 0 || cut->bucket_first[buckets - 1] != trained) {
		buckets = 1;
		layer[0] = cut->first_layer;
		cut->bucket_first[0] = trained;
	}
	for (uint32_t b = 0; b < buckets; b++)
		cut->bucket_first[b] = end - cut->bucket_first[b];
	plan->buckets = buckets;
	plan->bucket_first = cut->bucket_first;
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		share_pass(s, gpu, cut, layer, buckets, part_ends(s, gpu, stage));
	cut->bucket_first += buckets;
}

bool skep_overlap_make(struct skep_scenario *s)
{
	if (!s->plan.eager)
		return true;
	uint32_t *layer = calloc(s->model.layers, sizeof *layer);
	s->bucket_first = calloc(s->model.layers, sizeof *s->bucket_first);
	s->part_end = calloc((size_t)s->topology.gpus * s->model.layers, sizeof *s->part_end);
	struct cut cut = {.bucket_first = s->bucket_first};
	bool good = layer && s->bucket_first && s->part_end;
	for (uint32_t stage = 0; good && stage < s->plan.stages; stage++)
		make_stage(s, stage, &cut, layer);
	free(layer);
	return good;
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* ns times share / 2^32, rounded down; ns up to 1e18, share up to 2^32. */
static uint64_t part_of(uint64_t ns, uint64_t share)
{
	return (ns >> 32) * share + ((ns & (WHOLE - 1)) * share >> 32);
}

uint64_t skep_overlap_part_ns(const struct skep_scenario *s, uint32_t gpu, const struct skep_op *op, uint64_t ns)
{
	const struct skep_op_time *time = &s->op_time[(size_t)gpu * s->plan.stages + op->stage];
	const uint64_t *end = part_ends(s, gpu, op->stage);
	uint64_t rest = ns; /* without what is recomputed */
	bool recomputes = skep_plan_recomputes(&s->plan, s->checkpoint_activations, op->stage);
	if (recomputes && !op->recomputed && time->recomputed_ns < time->backward_ns)
		rest = part_of(ns, (uint64_t)((double)time->recomputed_ns / (double)time->backward_ns * (double)WHOLE));
	uint64_t until = part_of(rest, end[op->part]), since = op->part > 0 ? part_of(rest, end[op->part - 1]) : 0;
	return until - since + (op->part == 0 ? ns - rest : 0);
}
