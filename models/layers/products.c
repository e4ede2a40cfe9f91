/* SPDX-License-Identifier: Apache-2.0
 *
 * products.c - the matrix products of a layer, and what it moves through memory beside them.
 *
 * What is kept true: the FLOPs of the products are those of skep_model_cost(), and so are the numbers: each product reads and
 * writes activations once (parameters are counted apart), and the rest is
 *     block  18 s h: two norms (4), two residual sums with dropout (6), the bend of the feed-forward part, 4 h wide (8)
 *     head    s V:   the loss, from the output of the last product
 * The attention's scores stay in fast memory, as those formulas have it. Where they do not (what was profiled layer by layer
 * had none of the kernels that see to it), 8 a s^2 numbers come on top for a heads: scores written, scaled and masked,
 * brought to sum 1 and thinned by dropout (read and written each), and read.
 *
 * Split over g GPUs (Shoeybi et al. 2019) a product has 1/g of its columns, or of what it sums over, attention 1/g of the heads,
 * the head 1/g of the vocabulary, and the bend 1/g of its numbers; norms and residual sums are on every GPU, unless the sequence
 * is split as well (Korthikanti et al. 2022).
 */
#include "models/read/model.h"

#include <assert.h>

#include "models/layers/layer.h"
#include "models/vision/shape.h"

enum { HEAD_WIDTH = 128 }; /* of a model that does not say how many heads it has */

static void add(struct skep_layer_products *p, double batch, double m, double k, double n)
{
	assert(p->products < SKEP_LAYER_PRODUCTS_MAX);
	p->product[p->products].batch = batch;
	p->product[p->products].m = m;
	p->product[p->products].k = k;
	p->product[p->products++].n = n;
	p->flop += 2 * batch * m * k * n;
}

static double heads(const struct skep_model *model)
{
	if (model->heads > 0)
		return model->heads;
	return model->hidden % HEAD_WIDTH == 0 ? model->hidden / HEAD_WIDTH : 1;
}

/* Among how many GPUs the sequence is split, between the products. */
static double sequence_parts(const struct skep_split *split)
{
	return split->sequence ? split->gpus : 1;
}

/* Queries, keys and values in one go; scores; their weighted sum; projection; feed-forward, up and down. */
static void block_products(
	const struct skep_model *model, double samples, const struct skep_split *split, struct skep_layer_products *p)
{
	double h = model->hidden, s = model->sequence, a = heads(model), g = split->gpus, tokens = samples * s;
	add(p, 1, 3 * h / g, h, tokens);
	add(p, samples * a / g, s, h / a, s);
	add(p, samples * a / g, h / a, s, s);
	add(p, 1, h, h / g, tokens);
	add(p, 1, 4 * h / g, h, tokens);
	add(p, 1, h, 4 * h / g, tokens);
	p->repeats = model->shared;
	p->parameters = (12 * h * h + 7 * h) / g + 6 * h;
	p->other_numbers = tokens * (10 * h / sequence_parts(split) + 8 * h / g);
	p->numbers = p->other_numbers + tokens * (4 * h + 12 * h / g);
	p->matrix_numbers = 8 * samples * a / g * s * s;
}

static void head_products(
	const struct skep_model *model, double samples, const struct skep_split *split, struct skep_layer_products *p)
{
	double h = model->hidden, v = (model->vocabulary + split->gpus - 1) / split->gpus;
	double tokens = samples * model->sequence;
	add(p, 1, v, h, tokens);
	p->parameters = v * h + 2 * h;
	p->numbers = tokens * (h + 2 * v);
	p->other_numbers = tokens * v;
}

/* What a block's feed-forward part multiplies; returns the numbers that it keeps beside the operands, for each token. Of experts
 * as if tokens were spread evenly over them: these are gathered and summed again, and routed by two arrays of probabilities. */
static double feed_products(const struct skep_model *model, double tokens, double up, struct skep_layer_products *p)
{
	double h = model->hidden, f = model->feed_forward, count = model->experts.count, k = model->experts.per_token;
	if (model->experts.count == 0) {
		add(p, 1, up, h, tokens);
		add(p, 1, h, f, tokens);
		p->numbers += tokens * (h + up + f + h);
		return up + f;
	}
	add(p, 1, count, h, tokens);
	add(p, count, up, h, tokens * k / count);
	add(p, count, h, f, tokens * k / count);
	p->numbers += tokens * (h + count + k * (h + up + f + h));
	return k * (up + f + 2 * h) + 2 * count;
}

static uint32_t part_of(uint32_t count, uint32_t parts)
{
	return count / parts + (count % parts != 0);
}

/* Of a shard its own heads, columns and rows of the vocabulary: as a model of these would have. A shard is not split again. */
static struct skep_model own_of(const struct skep_model *model, const struct skep_split *split)
{
	struct skep_model own = *model;
	assert(split->gpus == 1 || skep_model_ranks(model) == 1);
	own.heads = part_of(skep_model_own_of(model, model->heads), split->gpus);
	own.kv_heads = part_of(skep_model_own_of(model, model->kv_heads), split->gpus);
	own.feed_forward = part_of(skep_model_own_of(model, model->feed_forward), split->gpus);
	own.vocabulary = part_of((uint32_t)skep_model_own_rows(model, model->vocabulary).places, split->gpus);
	return own;
}

/* Of the tokens that a bert predicts. */
static void masked_head_products(const struct skep_model *model, double samples, struct skep_layer_products *p)
{
	double h = model->hidden, v = model->vocabulary, rows = samples * model->predicted;
	add(p, 1, h, h, rows);
	add(p, 1, v, h, rows);
	p->numbers = rows * (3 * h + v);
	p->other_numbers = rows * (6 * h + 2 * v);
}

/* Of an architecture that can be trained: the same products with its own widths; attention by half where a causal mask has it
 * so. The rest for each token: a block's norms, residual sums, bend, and attention's own operands; a head's norm and its
 * loss; rows of tables. */
static void trained_products(const struct skep_model *model, uint32_t layer, double samples,
	const struct skep_split *split, struct skep_layer_products *p)
{
	const struct skep_layer trained = skep_layer_of(model, layer);
	const struct skep_model own = own_of(model, split);
	double h = model->hidden, s = model->sequence, a = own.heads, width = h / model->heads, tokens = samples * s;
	double f = own.feed_forward, v = own.vocabulary,
	       up = model->architecture == SKEP_ARCHITECTURE_LLAMA ? 2 * f : f;
	const bool bert = model->architecture == SKEP_ARCHITECTURE_BERT;
	double seen = bert ? s : (s + 1) / 2; /* keys, by a query on average */
	double heads = width * a, qkv = heads + 2 * width * own.kv_heads;
	uint64_t attention, flop = trained.type->flop(&trained, &attention);
	if (layer == 0) {
		p->other_numbers = (bert ? 4 : 2) * tokens * h;
	} else if (layer + 1 == model->layers && bert) {
		masked_head_products(&own, samples, p);
	} else if (layer + 1 == model->layers) {
		add(p, 1, v, h, tokens);
		p->other_numbers = tokens * (3 * h + 2 * v);
		p->numbers = tokens * (h + v);
	} else {
		p->repeats = model->shared;
		add(p, 1, qkv, h, tokens);
		add(p, samples * a, s, width, seen);
		add(p, samples * a, width, seen, s);
		add(p, 1, h, heads, tokens);
		p->numbers = tokens * (h + qkv + h + heads);
		p->other_numbers = tokens / skep_model_ranks(model) / sequence_parts(split) * 8 * h;
		p->other_numbers += tokens * (feed_products(&own, tokens, up, p) + qkv + heads);
	}
	p->numbers += p->other_numbers;
	p->parameters = (double)trained.parameters;
	p->backward = flop > 0 ? 2 + 0.5 * (double)attention / (double)flop : 2;
}

/* Beside a convolution its norm reads what it makes twice and writes it once; a block's sum reads the shortcut. A pool reads what
 * the stem makes. */
static void resnet_products(
	const struct skep_model *model, uint32_t layer, double samples, struct skep_layer_products *p)
{
	const struct skep_layer trained = skep_layer_of(model, layer);
	const double in = trained.in, out = trained.out;
	p->parameters = (double)trained.parameters;
	if (layer + 1 == model->layers) {
		const double channels = skep_resnet_layer_of(model, layer - 1).out;
		add(p, 1, out, channels, samples);
		p->other_numbers = samples * (in + channels + 2 * out);
		p->numbers = samples * (channels + out) + p->other_numbers;
		return;
	}
	const struct skep_resnet_layer l = skep_resnet_layer_of(model, layer);
	p->other_numbers = samples * (l.pools || l.shortcut != SKEP_SHORTCUT_NONE ? out : 0);
	for (uint32_t i = 0; i < skep_resnet_convs(&l); i++) {
		const struct skep_conv *conv = &l.conv[i];
		const double pixels = (double)skep_conv_to(conv), made = conv->out * pixels;
		add(p, 1, conv->out, (double)skep_conv_inner(conv), samples * pixels);
		p->other_numbers += samples * 3 * made;
		p->numbers += samples * (conv->in * (double)skep_conv_from(conv) + made);
	}
	p->numbers += p->other_numbers;
}

static void dense_products(const struct skep_model *model, uint32_t layer, double samples,
	const struct skep_split *split, struct skep_layer_products *p)
{
	double in = model->width[layer], out = model->width[layer + 1];
	double own = model->width[layer + 1] % split->gpus == 0 ? out / split->gpus : out;
	add(p, 1, own, in, samples);
	p->backward = layer > model->frozen ? 2 : 1;
	p->parameters = in * own + own;
	p->numbers = samples * (in + own);
}

void skep_model_products(
	const struct skep_model *model, uint32_t layer, uint32_t samples, struct skep_layer_products *ret)
{
	skep_model_share_products(model, layer, samples, &SKEP_SPLIT_NONE, ret);
}

void skep_model_share_products(const struct skep_model *model, uint32_t layer, uint32_t samples,
	const struct skep_split *split, struct skep_layer_products *ret)
{
	assert(layer < model->layers && split->gpus > 0);
	*ret = (struct skep_layer_products){.repeats = 1, .backward = 2};
	if (model->kind == SKEP_MODEL_GIVEN) {
		ret->parameters = (double)model->given[layer].parameters;
	} else if (model->kind == SKEP_MODEL_MLP) {
		dense_products(model, layer, samples, split, ret);
	} else if (model->kind == SKEP_MODEL_RESNET) {
		resnet_products(model, layer, samples, ret);
	} else if (model->architecture != SKEP_ARCHITECTURE_NONE) {
		trained_products(model, layer, samples, split, ret);
	} else if (layer + 1 < model->layers) {
		block_products(model, samples, split, ret);
	} else {
		head_products(model, samples, split, ret);
	}
	ret->trained = ret->parameters;
	if (layer < model->frozen) {
		ret->backward = ret->trained = 0;
	} else if (layer + 1 == model->layers && skep_model_table_is_frozen(model)) { /* its input's gradient alone */
		ret->backward = 1;
		ret->trained -= (double)skep_model_copied(model);
	}
}
