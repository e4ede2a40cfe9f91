/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - reads a model file, cuts a model into stages and says what a stage costs. All of it is integer arithmetic
 * on the widths of the layers, so that every worker and both worlds come to the same cut.
 */
#include "models/read/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/read/architecture.h"
#include "models/read/given.h"
#include "models/read/hf_config.h"
#include "models/read/layer_cost.h"
#include "models/read/resnet.h"

enum { WIDTH_MAX = 65536, HIDDEN_LAYERS_MAX = 4095 };

static const char *const kinds[] = {"mlp", "transformer", "given", "resnet", NULL};
static const char *const activations[] = {"tanh", "relu", "gelu", NULL};

/* ---- the file ----------------------------------------------------------------------------------------------- */

static void read_name(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_model *ret)
{
	const char *name = skep_read_string(r, root, "name", NULL);
	if (r->diag->set)
		return;
	if (!name[0] || strlen(name) >= sizeof ret->name)
		skep_reader_fail(r, root, "name", "expected a name of 1 to %zu characters", sizeof ret->name - 1);
	else
		snprintf(ret->name, sizeof ret->name, "%s", name);
}

static void read_layers(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_model *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, root, "layers", true);
	int64_t inputs = skep_read_integer(r, map, "inputs", 1, WIDTH_MAX, INT64_MIN);
	int64_t hidden = skep_read_integer(r, map, "hidden", 1, WIDTH_MAX, INT64_MIN);
	int64_t depth = skep_read_integer(r, map, "hidden_layers", 1, HIDDEN_LAYERS_MAX, INT64_MIN);
	int64_t outputs = skep_read_integer(r, map, "outputs", 1, WIDTH_MAX, INT64_MIN);
	skep_reader_close_map(r, map);
	if (r->diag->set)
		return;
	ret->layers = (uint32_t)depth + 1;
	ret->width = malloc((ret->layers + 1) * sizeof *ret->width);
	if (!ret->width) {
		skep_reader_fail(r, map, "hidden_layers", "not enough memory for %lld layers", (long long)depth);
		return;
	}
	ret->width[0] = (uint32_t)inputs;
	for (uint32_t l = 1; l < ret->layers; l++)
		ret->width[l] = (uint32_t)hidden;
	ret->width[ret->layers] = (uint32_t)outputs;
}

/* What a block keeps for its backward pass, and into how many parts it can be split. */
static void read_inside(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret)
{
	static const char *const attentions[] = {"recomputed", "kept", NULL}, *const bends[] = {"gelu", "relu", NULL};
	ret->heads = (uint32_t)skep_read_integer(r, map, "heads", 1, WIDTH_MAX, 0);
	ret->keeps_attention = skep_read_choice(r, map, "attention", attentions, 0) == 1;
	ret->relus = skep_read_choice(r, map, "activation", bends, 0) == 1;
	static const char *const dropouts[] = {"all", "residual", "none", NULL};
	ret->dropout = (enum skep_dropout)skep_read_choice(r, map, "dropout", dropouts, SKEP_DROPOUT_ALL);
	if (r->diag->set)
		return;
	if (ret->heads > 0 && ret->hidden % ret->heads != 0)
		skep_reader_fail(r, map, "heads", "expected a divisor of the hidden size, %u", ret->hidden);
	else if (ret->heads == 0 && ret->keeps_attention)
		skep_reader_fail(r, map, "attention",
			"how much the matrices of the attention take depends on the number of heads: add `heads`");
}

/* Groups of blocks, then the head; before them, of what can be trained, the embedding. */
static void read_transformer(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_model *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, root, "transformer", true);
	ret->hidden = (uint32_t)skep_read_integer(r, map, "hidden", 1, WIDTH_MAX, INT64_MIN);
	ret->sequence = (uint32_t)skep_read_integer(r, map, "sequence", 1, WIDTH_MAX - 1, INT64_MIN);
	uint32_t blocks = (uint32_t)skep_read_integer(r, map, "blocks", 1, HIDDEN_LAYERS_MAX, INT64_MIN);
	ret->shared = (uint32_t)skep_read_integer(r, map, "shared", 1, HIDDEN_LAYERS_MAX, 1);
	ret->vocabulary = (uint32_t)skep_read_integer(r, map, "vocabulary", 1, 1 << 24, INT64_MIN);
	if (!skep_architecture_read(r, map, ret))
		read_inside(r, map, ret);
	skep_reader_close_map(r, map);
	if (r->diag->set)
		return;
	if (blocks % ret->shared != 0) {
		skep_reader_fail(r, map, "shared", "expected a divisor of the %u blocks", blocks);
		return;
	}
	if (!skep_model_place(ret, blocks))
		skep_reader_fail(r, map, "blocks", "not enough memory for %u blocks", blocks);
}

bool skep_model_place(struct skep_model *model, uint32_t blocks)
{
	const bool embeds = model->architecture != SKEP_ARCHITECTURE_NONE;
	model->layers = blocks / model->shared + (embeds ? 2 : 1);
	model->width = malloc((model->layers + 1) * sizeof *model->width);
	if (!model->width)
		return false;
	skep_model_set_sequence(model, model->sequence);
	return true;
}

/* The same number in each sequence, so that no microbatch weighs more in a mean than another one. */
static uint32_t predicted_of(const struct skep_model *model)
{
	const uint32_t nearest = (uint32_t)(model->masked * model->sequence + 0.5);
	return model->masked > 0 && nearest == 0 ? 1 : nearest;
}

void skep_model_set_sequence(struct skep_model *model, uint32_t sequence)
{
	const bool embeds = model->architecture != SKEP_ARCHITECTURE_NONE;
	assert(sequence > 0);
	model->sequence = sequence;
	model->predicted = predicted_of(model);
	model->width[0] = sequence + (embeds ? 1 : 0);
	model->width[model->layers] = sequence;
	for (uint32_t l = 1; l < model->layers; l++)
		model->width[l] = sequence * model->hidden;
}

bool skep_model_read(const char *path, struct skep_model *ret, struct skep_diag *reterr)
{
	static const struct skep_mistaken mistaken[] = {{"model", "a scenario, which names one there"},
		{"sites", "a topology; a scenario names it at `cluster.topology`"}};
	*ret = (struct skep_model){0};
	if (skep_hf_config_is(path))
		return skep_hf_model_read(path, ret, reterr);
	char *text = NULL;
	size_t size = 0;
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	snprintf(ret->path, sizeof ret->path, "%s", path);
	struct skep_yaml *yaml = skep_yaml_parse(path, text, size, reterr);
	free(text);
	if (!yaml)
		return false;
	struct skep_reader r = {yaml, reterr};
	const struct skep_yaml_node *root = skep_yaml_root(yaml);
	skep_reader_refuse_mistaken(&r, root, "model", mistaken, sizeof mistaken / sizeof mistaken[0]);
	read_name(&r, root, ret);
	int kind = skep_read_choice(&r, root, "kind", kinds, -1);
	bool mlp = kind == SKEP_MODEL_MLP;
	int activation = mlp ? skep_read_choice(&r, root, "activation", activations, -1) : 0;
	if (kind == SKEP_MODEL_TRANSFORMER)
		read_transformer(&r, root, ret);
	else if (kind == SKEP_MODEL_GIVEN)
		skep_given_read(&r, root, ret);
	else if (kind == SKEP_MODEL_RESNET)
		skep_resnet_read(&r, root, ret);
	else
		read_layers(&r, root, ret);
	skep_reader_close_map(&r, root);
	skep_yaml_destroy(yaml);
	if (reterr->set) {
		skep_model_finish(ret);
		return false;
	}
	ret->kind = (enum skep_model_kind)kind;
	ret->activation = (enum skep_activation)activation;
	return true;
}

void skep_model_finish(struct skep_model *model)
{
	free(model->width);
	free(model->cut);
	free(model->given);
	*model = (struct skep_model){0};
}

void skep_model_part(struct skep_model *model, uint32_t stages)
{
	model->copied = model->tied && stages > 1;
	model->tied = model->tied && !model->copied;
}

const char *skep_model_refuses(const struct skep_model *model, const struct skep_split *split)
{
	if (split->gpus <= 1)
		return NULL;
	if (model->kind == SKEP_MODEL_GIVEN)
		return "has its times given, for one GPU";
	if (model->kind == SKEP_MODEL_RESNET)
		return "is a ResNet, whose convolutions are not split: take more stages, or more workers";
	if (model->kind != SKEP_MODEL_TRANSFORMER)
		return split->sequence ? "has no sequence that could be split" : NULL;
	if (model->heads == 0)
		return "does not say how many heads its attention has: add `heads` to its file";
	if (model->heads % split->gpus != 0)
		return "has a number of heads that is no multiple of that";
	if (model->hidden % split->gpus != 0)
		return "has a hidden size that is no multiple of that";
	return split->sequence && model->sequence % split->gpus != 0 ? "has a sequence that is no multiple of that"
	                                                             : NULL;
}

/* ---- the cut ------------------------------------------------------------------------------------------------ */

/* Of a sample. A cut asks for them again and again; of a transformer's layers three differ: the first, a block, the last. */
struct flops {
	const struct skep_model *model;
	uint64_t first, frozen, block, last; /* of a transformer; a block that is frozen, and one that is not */
};

static uint64_t work_out(const struct skep_model *model, uint32_t layer)
{
	struct skep_layer_cost one = skep_layer_cost_of(model, layer, &SKEP_SPLIT_NONE);
	return one.forward_flop + one.backward_flop + one.forward_ns +
	       one.backward_ns; /* it has the ones or the others */
}

static struct flops flops_of(const struct skep_model *model)
{
	struct flops flops = {.model = model};
	if (model->kind != SKEP_MODEL_TRANSFORMER)
		return flops;
	flops.first = work_out(model, 0);
	flops.last = work_out(model, model->layers - 1);
	flops.frozen = model->layers > 2 ? work_out(model, 1) : 0;
	flops.block = model->layers > 2 ? work_out(model, model->layers - 2) : 0;
	return flops;
}

static uint64_t layer_flop(const struct flops *flops, uint32_t layer)
{
	if (flops->model->kind != SKEP_MODEL_TRANSFORMER)
		return work_out(flops->model, layer);
	return layer == 0                          ? flops->first
	       : layer + 1 == flops->model->layers ? flops->last
	       : layer < flops->model->frozen      ? flops->frozen
	                                           : flops->block;
}

/* First layer of the longest stage that ends before layer `end`, costs at most `limit` and leaves `before` layers. The
 * layer end - 1 alone must fit. */
static uint32_t stage_begin(const struct flops *flops, uint32_t before, uint32_t end, uint64_t limit)
{
	uint32_t begin = end - 1;
	uint64_t flop = layer_flop(flops, begin);
	while (begin > before && flop + layer_flop(flops, begin - 1) <= limit)
		flop += layer_flop(flops, --begin);
	return begin;
}

static bool limit_suffices(const struct flops *flops, uint32_t stages, uint64_t limit)
{
	uint32_t end = flops->model->layers;
	for (uint32_t s = stages; s && end; s--)
		end = stage_begin(flops, 0, end, limit);
	return end == 0;
}

/* The least FLOPs per sample that the most loaded of `stages` stages can have. */
static uint64_t least_limit(const struct flops *flops, uint32_t stages)
{
	uint64_t low = 0, high = 0;
	for (uint32_t l = 0; l < flops->model->layers; l++) {
		uint64_t flop = layer_flop(flops, l);
		low = flop > low ? flop : low;
		high += flop;
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (limit_suffices(flops, stages, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Filling the stages from the back as far as the limit allows puts every cut as early as can be. A shard is cut as its whole. */
void skep_model_cut(
	const struct skep_model *model, uint32_t stages, uint32_t stage, uint32_t *ret_first, uint32_t *ret_count)
{
	assert(stage < stages && stages <= model->layers);
	if (stages == model->cuts) {
		*ret_first = 0;
		for (uint32_t s = 0; s < stage; s++)
			*ret_first += model->cut[s];
		*ret_count = model->cut[stage];
		return;
	}
	const struct skep_model whole = skep_model_whole(model);
	const struct flops flops = flops_of(&whole);
	uint64_t limit = least_limit(&flops, stages);
	uint32_t end = model->layers;
	for (uint32_t s = stages - 1; s > stage; s--)
		end = stage_begin(&flops, s, end, limit);
	*ret_first = stage ? stage_begin(&flops, stage, end, limit) : 0;
	*ret_count = end - *ret_first;
}

uint32_t skep_model_frozen_stages(const struct skep_model *model, uint32_t stages)
{
	uint32_t first, count, frozen = 0;
	if (model->frozen == 0)
		return 0;
	for (uint32_t stage = 0; stage < stages; stage++) {
		skep_model_cut(model, stages, stage, &first, &count);
		frozen += first + count <= model->frozen;
	}
	return frozen;
}

/* ---- the cost ----------------------------------------------------------------------------------------------- */

/* Blocks cost the same one by one, so that one is worked out for all: costs are asked for thousands of times by a plan. */
static bool is_like_the_last(const struct skep_model *model, uint32_t l)
{
	return model->kind == SKEP_MODEL_TRANSFORMER && l >= 2 && l + 1 < model->layers && l != model->frozen;
}

/* Beside what its layers keep, of what models/stage/stage.c lays out as a stash: inputs of the first stage, and outputs within
 * the stage, which every GPU has whole unless the sequence is split. */
static uint64_t stash_edges(
	const struct skep_model *model, uint32_t first, uint32_t count, const struct skep_split *split)
{
	uint64_t outputs = 0;
	for (uint32_t l = first + 1; l < first + count; l++)
		outputs += model->width[l];
	return (first > 0 ? 0 : model->width[0]) + outputs / (split->sequence ? split->gpus : 1);
}

/* Where nothing is trained nothing is gone back through. */
static void add_layer(const struct skep_layer_cost *layer, uint64_t number, bool goes_back, struct skep_cost *ret)
{
	ret->parameters += layer->parameters;
	ret->trained += layer->trained;
	ret->frozen += goes_back ? 0 : layer->parameters;
	ret->backward_bytes += goes_back ? (double)(number * (layer->parameters + 2 * layer->trained)) : 0;
	ret->backward_sample_bytes += goes_back ? 2 * (double)(number * layer->numbers) : 0;
	ret->forward_flop += (double)layer->forward_flop;
	ret->backward_flop += (double)layer->backward_flop;
	ret->sample_bytes += (double)(number * layer->numbers);
	ret->stash_bytes += layer->kept_bytes;
	ret->forward_ns += layer->forward_ns;
	ret->backward_ns += layer->backward_ns;
	ret->step_ns += layer->step_ns;
	ret->recompute_bytes += layer->recompute_bytes;
	ret->forward_gathers += layer->forward_gathers;
	ret->backward_gathers += layer->backward_gathers;
	ret->forward_gathered_bytes += number * layer->forward_gathered;
	ret->backward_gathered_bytes += number * layer->backward_gathered;
	if (layer->parameters > ret->largest_parameters)
		ret->largest_parameters = layer->parameters;
	if (number * (2 * layer->widest + layer->work) > ret->scratch_bytes)
		ret->scratch_bytes = number * (2 * layer->widest + layer->work);
}

void skep_model_share(const struct skep_model *model, uint32_t stages, uint32_t stage, const struct skep_split *split,
	struct skep_cost *ret)
{
	uint32_t first, count;
	uint64_t block = 0, number = skep_model_number_bytes(model);
	skep_model_cut(model, stages, stage, &first, &count);
	struct skep_layer_cost layer = {0};
	bool trains = skep_model_computes(model);
	*ret = (struct skep_cost){0};
	for (uint32_t l = first; l < first + count; l++) {
		if (l == first || !is_like_the_last(model, l))
			layer = skep_layer_cost_of(model, l, split);
		add_layer(&layer, number, l >= model->frozen, ret);
		block = layer.block_bytes > block ? layer.block_bytes : block;
	}
	if (trains)
		ret->recompute_bytes = ret->stash_bytes += number * stash_edges(model, first, count, split);
	ret->recompute_bytes += block;
	ret->forward_bytes = (double)(number * ret->parameters);
	if (first + count <= model->frozen) { /* what a pass makes is needed in that pass alone */
		ret->workspace_bytes = trains ? ret->stash_bytes : block;
		ret->stash_bytes = 0;
	}
	if (stage + 1 < stages)
		ret->activation_bytes = sizeof(float) * (uint64_t)model->width[first + count];
}

void skep_model_cost(const struct skep_model *model, uint32_t stages, uint32_t stage, struct skep_cost *ret)
{
	skep_model_share(model, stages, stage, &SKEP_SPLIT_NONE, ret);
}

void skep_cost_checkpoint(struct skep_cost *cost)
{
	cost->backward_flop += cost->forward_flop;
	cost->backward_ns += cost->forward_ns;
	cost->backward_bytes += cost->forward_bytes;
	cost->backward_sample_bytes += cost->sample_bytes;
	cost->backward_gathers += cost->forward_gathers;
	cost->backward_gathered_bytes += cost->forward_gathered_bytes;
	cost->workspace_bytes += cost->recompute_bytes;
	cost->stash_bytes = 0;
}

uint64_t skep_cost_payload_bytes(const struct skep_cost *cost, enum skep_codec codec, uint32_t block, uint32_t samples)
{
	return skep_codec_bytes(codec, block, cost->activation_bytes / sizeof(float) * samples);
}
