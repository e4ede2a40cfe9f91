/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_cost.c - what a layer costs each of the GPUs that share it: by formulas of its widths, or, of what can be trained, from
 * what its arithmetic does and allocates.
 */
#include "models/read/layer_cost.h"

#include "models/layers/layer.h"

/* Split by columns where they can be: each GPU makes a part of the outputs, which all then gather; backwards the gradients of
 * the inputs are all-reduced. */
static struct skep_layer_cost dense_layer(const struct skep_model *model, uint32_t l, const struct skep_split *split)
{
	uint64_t in = model->width[l], out = model->width[l + 1];
	bool splits = split->gpus > 1 && out % split->gpus == 0;
	uint64_t own = splits ? out / split->gpus : out;
	struct skep_layer_cost layer = {.parameters = in * own + own,
		.forward_flop = 2 * in * own,
		.backward_flop = 2 * in * own * (l > model->frozen ? 2 : 1),
		.numbers = in + out,
		.kept_bytes = skep_model_number_bytes(model) * own,
		.widest = in > out ? in : out};
	if (splits) {
		layer.forward_gathers = 1;
		layer.forward_gathered = out;
		layer.backward_gathers = l > model->frozen ? 2 : 0;
		layer.backward_gathered = l > model->frozen ? 2 * in : 0;
	}
	return layer;
}

/* What a block keeps, in bytes: Korthikanti et al. 2022, equations 1, 2 and 4, with 4 bytes for what has 2 there, unless the
 * model is in halves. Inputs of the two norms, of the attention and of the feed-forward part are s h numbers each, the masks of
 * two dropouts s h bytes each: on every GPU unless the sequence is split. Queries, keys, values and the attention's output are
 * s h numbers each, the insides of the feed-forward part 8 s h (relu: 4 s h, its input is not needed), the attention's matrices
 * a s^2 (with dropout twice and the mask). */
static uint64_t block_bytes(const struct skep_model *model, const struct skep_split *split)
{
	uint64_t h = model->hidden, s = model->sequence, a = model->heads, g = split->gpus;
	uint64_t mask = model->dropout == SKEP_DROPOUT_NONE ? 0 : 1, drops = model->dropout == SKEP_DROPOUT_ALL ? 1 : 0;
	uint64_t number = skep_model_number_bytes(model);
	uint64_t between = s * h * (4 * number + 2 * mask);
	uint64_t inside = s * h * (model->relus ? 8 : 12) * number;
	if (model->keeps_attention)
		inside += a * s * s * (number + drops * (number + 1));
	return between / (split->sequence ? g : 1) + inside / g;
}

/* Products are split in one direction, then in the other (Shoeybi et al. 2019): one all-reduce for attention and one for the
 * feed-forward part, each way. With the sequence split each becomes a reduce-scatter and an all-gather of the same bytes;
 * the gather of kept inputs that comes on top backwards is hidden behind a product (Korthikanti et al.), and not counted. Of
 * what moves through memory, 34 s h numbers, 10 are on every GPU, as of what is kept. Norms and the biases behind the second
 * product are not split: 6 h of the 13 h. Shapes and FLOPs: Narayanan et al. 2021, 24 s h^2 + 4 s^2 h forward, 12 h^2 + 13 h
 * parameters. */
static struct skep_layer_cost block_layer(const struct skep_model *model, const struct skep_split *split)
{
	uint64_t h = model->hidden, s = model->sequence, n = model->shared, g = split->gpus;
	uint64_t whole = split->sequence ? g : 1, matrices = model->keeps_attention ? model->heads * s * s / g : 0;
	uint64_t gathers = g > 1 ? 4 * n : 0;
	return (struct skep_layer_cost){.parameters = (12 * h * h + 7 * h) / g + 6 * h,
		.forward_flop = n * (24 * s * h * h + 4 * s * s * h) / g,
		.numbers = n * s * (24 * h / g + 10 * h / whole),
		.kept_bytes = n * block_bytes(model, split),
		.recompute_bytes = n * (s * h * skep_model_number_bytes(model) / whole),
		.block_bytes = block_bytes(model, split),
		.widest = 4 * s * h / g > matrices ? 4 * s * h / g : matrices,
		.forward_gathers = (uint32_t)gathers,
		.backward_gathers = (uint32_t)gathers,
		.forward_gathered = gathers * s * h,
		.backward_gathered = gathers * s * h};
}

/* The vocabulary is split. Kept: the input of the last product, its output, and what the softmax makes of that: measured, by
 * the tables of OPT that tests/unit/test_memory.c quotes (Korthikanti et al. 2022, 4.3, count one of the two). The sums of
 * the loss over the vocabulary are three numbers a token, and not counted. */
static struct skep_layer_cost head_layer(const struct skep_model *model, const struct skep_split *split)
{
	uint64_t h = model->hidden, s = model->sequence, g = split->gpus, whole = split->sequence ? g : 1;
	uint64_t own = (model->vocabulary + g - 1) / g, number = skep_model_number_bytes(model);
	return (struct skep_layer_cost){.parameters = own * h + 2 * h,
		.forward_flop = 2 * s * h * own,
		.numbers = s * (h / whole + 2 * own),
		.kept_bytes = s * (h / whole + 2 * own) * number,
		.recompute_bytes = s * h / whole * number,
		.block_bytes = 2 * s * own * number,
		.widest = s * own,
		.forward_gathers = split->sequence && g > 1 ? 1 : 0, /* of the input */
		.forward_gathered = split->sequence && g > 1 ? s * h : 0,
		.backward_gathers = g > 1 ? (split->sequence ? 1 : 2) : 0,
		.backward_gathered = g > 1 ? (split->sequence ? 1 : 2) * s * h : 0};
}

static uint64_t part_of(uint64_t numbers, uint64_t parts)
{
	return numbers / parts + (numbers % parts != 0);
}

/* What one of g GPUs has of the tensors of a layer: as a rank of a tensor parallel group does. */
static uint64_t own_parameters(const struct skep_layer *layer, uint64_t g)
{
	struct skep_tensor tensor[SKEP_TENSORS_MAX];
	const uint32_t tensors = layer->type->tensors(layer, tensor);
	uint64_t sum = 0;
	for (uint32_t t = 0; t < tensors; t++)
		sum += part_of(tensor[t].rows, tensor[t].cut == SKEP_TENSOR_BY_ROWS ? g : 1) *
		       part_of(tensor[t].columns, tensor[t].cut == SKEP_TENSOR_BY_COLUMNS ? g : 1);
	return sum;
}

/* As of the layers above. An embedding sums over the GPUs what each has looked up of its own rows; with the sequence split it
 * scatters the sums, and gathers the gradients at them. */
static void count_gathers(
	const struct skep_model *model, uint32_t l, const struct skep_split *split, struct skep_layer_cost *ret)
{
	const uint64_t edge = (uint64_t)model->sequence * model->hidden;
	const uint32_t blocks = 4 * model->shared, one = split->sequence ? 1 : 2, other = split->sequence ? 1 : 0;
	const bool last = l + 1 == model->layers;
	if (split->gpus <= 1)
		return;
	ret->forward_gathers = last ? other : l == 0 ? one : blocks;
	ret->backward_gathers = last ? one : l == 0 ? other : blocks;
	ret->forward_gathered = ret->forward_gathers * edge;
	ret->backward_gathered = ret->backward_gathers * edge;
}

/* A layer of what can be trained, from what its arithmetic does and allocates. Split over g GPUs: matrices and work g-fold, and
 * what is kept inside of the split products; what lies between these is on every GPU, unless the sequence is split. */
static struct skep_layer_cost trained_layer(const struct skep_model *model, uint32_t l, const struct skep_split *split)
{
	const struct skep_layer trained = skep_layer_of(model, l);
	struct skep_layer_products products;
	uint64_t attention, g = split->gpus, flop = trained.type->flop(&trained, &attention);
	size_t work = trained.type->work ? trained.type->work(&trained, 1) : 0;
	size_t kept = trained.type->inside(&trained),
	       between = trained.type->between ? trained.type->between(&trained) : 0;
	skep_model_share_products(model, l, 1, split, &products);
	struct skep_layer_cost layer = {.parameters = own_parameters(&trained, g),
		.forward_flop = flop / g,
		.backward_flop = (2 * flop + attention / 2) / g,
		.numbers = (uint64_t)(products.repeats * products.numbers),
		.kept_bytes =
			skep_model_number_bytes(model) * (between / (split->sequence ? g : 1) + (kept - between) / g),
		.widest = trained.in > trained.out ? trained.in : trained.out,
		.work = work / g};
	count_gathers(model, l, split, &layer);
	return layer;
}

static struct skep_layer_cost given_layer(const struct skep_model *model, uint32_t l)
{
	const struct skep_given *given = &model->given[l];
	return (struct skep_layer_cost){.parameters = given->parameters,
		.kept_bytes = given->kept_bytes,
		.recompute_bytes = given->kept_bytes, /* of all layers of a stage: it is done again as a whole */
		.widest = model->width[l + 1],
		.forward_ns = given->forward_ns,
		.backward_ns = given->backward_ns,
		.step_ns = given->step_ns};
}

static struct skep_layer_cost whole_layer(const struct skep_model *model, uint32_t l, const struct skep_split *split)
{
	if (model->kind == SKEP_MODEL_GIVEN)
		return given_layer(model, l);
	if (model->architecture != SKEP_ARCHITECTURE_NONE || model->kind == SKEP_MODEL_RESNET)
		return trained_layer(model, l, split);
	if (model->kind != SKEP_MODEL_TRANSFORMER)
		return dense_layer(model, l, split);
	struct skep_layer_cost layer = l + 1 < model->layers ? block_layer(model, split) : head_layer(model, split);
	layer.backward_flop = 2 * layer.forward_flop;
	return layer;
}

/* Of a head whose table is frozen, where it is a copy: on each GPU. */
static uint64_t frozen_table(const struct skep_model *model, uint64_t gpus)
{
	return part_of(skep_model_copied(model) / model->hidden, gpus) * model->hidden;
}

/* A frozen layer is not gone back through: what is trained lies behind it. Of a head whose table is frozen the gradient of its
 * input is made, which its norm needs, and no other product. */
struct skep_layer_cost skep_layer_cost_of(const struct skep_model *model, uint32_t l, const struct skep_split *split)
{
	struct skep_layer_cost layer = whole_layer(model, l, split);
	layer.trained = layer.parameters;
	if (l < model->frozen) {
		layer.trained = layer.backward_flop = layer.backward_ns = layer.step_ns = 0;
		layer.backward_gathers = 0;
		layer.backward_gathered = 0;
	} else if (l + 1 == model->layers && skep_model_table_is_frozen(model)) {
		layer.trained -= frozen_table(model, split->gpus);
		layer.backward_flop = layer.forward_flop;
	}
	return layer;
}
