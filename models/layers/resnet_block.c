/* SPDX-License-Identifier: Apache-2.0
 *
 * resnet_block.c - the stem and the blocks of a residual network (vision/shape.h): convolutions, each with a batch norm and a
 * relu behind it; the last relu bends the sum of what the last norm makes and the shortcut. A large stem then takes the largest
 * of each 3 x 3 pixels.
 *
 * Kept: what each convolution makes, and what its norm has measured. What norms and relus make of that is made again where it
 * is read. Tensors: of each convolution its weight and its norm's weight and bias, then, behind each other, running means of
 * all norms and running variances.
 */
#include <assert.h>
#include <string.h>

#include "models/corpus/data.h"
#include "models/layers/layer.h"
#include "models/vision/convolution.h"
#include "models/vision/pool.h"

enum { PER_CONV = 3, ROOMS = 2 }; /* tensors; arrays of `work` */

/* ---- layout ------------------------------------------------------------------------------------------------------- */

struct part { /* a convolution with its norm */
	struct skep_convolution conv;
	struct skep_batch_norm norm;
	size_t weight, average; /* in the parameters; of the running mean, and ... */
	size_t averages;        /* ... so many numbers behind it of the variance */
	skep_real *made;        /* [samples][out][to][to], within what is kept */
};

struct block {
	struct skep_resnet_layer shape;
	const struct skep_pass *pass;
	size_t samples, pixels, numbers; /* that a sample has where the sum is made, without a pool */
	struct part part[SKEP_CONVS_MAX];
	skep_real *room[ROOMS]; /* [samples][widest array] */
};

static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	static const char *const names[SKEP_CONVS_MAX][PER_CONV] = {{"conv1.weight", "bn1.weight", "bn1.bias"},
		{"conv2.weight", "bn2.weight", "bn2.bias"}, {"conv3.weight", "bn3.weight", "bn3.bias"},
		{"downsample.0.weight", "downsample.1.weight", "downsample.1.bias"}};
	const struct skep_resnet_layer l = skep_resnet_layer_of(layer->model, layer->number);
	const uint32_t averages = (uint32_t)skep_resnet_averages(layer->model, layer->number) / 2;
	uint32_t count = 0;
	for (uint32_t i = 0; i < skep_resnet_convs(&l); i++) {
		const char *const *name = names[i < l.convs ? i : SKEP_CONVS_MAX - 1];
		const uint32_t inner = (uint32_t)skep_conv_inner(&l.conv[i]);
		struct skep_tensor weight = {.name = name[0],
			.rows = inner,
			.columns = l.conv[i].out,
			.draw = SKEP_DRAW_NORMAL,
			.size = sqrtf(2.0f / (float)inner),
			.role = SKEP_TENSOR_MATRIX,
			.decays = true};
		struct skep_tensor norm = {
			.name = name[1], .rows = 1, .columns = l.conv[i].out, .size = 1, .draw = SKEP_DRAW_CONSTANT};
		count = skep_tensor_add(ret, count, &weight);
		count = skep_tensor_add(ret, count, &norm);
		norm.name = name[2];
		norm.size = 0;
		count = skep_tensor_add(ret, count, &norm);
	}
	struct skep_tensor average = {
		.name = "running_mean", .rows = 1, .columns = averages, .draw = SKEP_DRAW_CONSTANT, .averaged = true};
	count = skep_tensor_add(ret, count, &average);
	average.name = "running_var";
	average.size = 1;
	return skep_tensor_add(ret, count, &average);
}

/* Of a sample. */
static size_t made_by(const struct skep_conv *conv)
{
	return conv->out * skep_conv_to(conv);
}

static size_t inside(const struct skep_layer *layer)
{
	const struct skep_resnet_layer l = skep_resnet_layer_of(layer->model, layer->number);
	size_t sum = 0;
	for (uint32_t i = 0; i < skep_resnet_convs(&l); i++)
		sum += made_by(&l.conv[i]) + SKEP_BATCH_NORM_KEPT * l.conv[i].out;
	return sum;
}

static size_t widest(const struct skep_resnet_layer *l)
{
	size_t most = 0;
	for (uint32_t i = 0; i < skep_resnet_convs(l); i++)
		most = made_by(&l->conv[i]) > most ? made_by(&l->conv[i]) : most;
	return most;
}

static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_resnet_layer l = skep_resnet_layer_of(layer->model, layer->number);
	return ROOMS * samples * widest(&l);
}

/* Of each thread: what a convolution takes, and the sum of a sample before it bends. */
static size_t strips(const struct skep_layer *layer)
{
	const struct skep_resnet_layer l = skep_resnet_layer_of(layer->model, layer->number);
	size_t most = widest(&l);
	for (uint32_t i = 0; i < skep_resnet_convs(&l); i++) {
		const size_t strip = skep_convolution_strip(&l.conv[i]);
		most = strip > most ? strip : most;
	}
	return most;
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	const struct skep_resnet_layer l = skep_resnet_layer_of(layer->model, layer->number);
	uint64_t sum = 0;
	*ret_attention = 0;
	for (uint32_t i = 0; i < skep_resnet_convs(&l); i++)
		sum += 2 * (uint64_t)skep_conv_inner(&l.conv[i]) * made_by(&l.conv[i]);
	return sum;
}

static void place_part(struct block *b, uint32_t i, const struct skep_model *model, size_t *parameter, size_t *average,
	skep_real **kept)
{
	const struct skep_pass *pass = b->pass;
	const struct skep_conv *shape = &b->shape.conv[i];
	struct part *p = &b->part[i];
	const size_t weights = skep_conv_inner(shape) * shape->out;
	p->weight = *parameter;
	p->average = *average;
	p->made = *kept;
	p->conv = (struct skep_convolution){.shape = *shape,
		.samples = b->samples,
		.weight = pass->parameter + *parameter,
		.thread_pool = pass->thread_pool,
		.strips = pass->strips};
	p->norm = (struct skep_batch_norm){.samples = b->samples,
		.channels = shape->out,
		.pixels = skep_conv_to(shape),
		.weight = pass->parameter + *parameter + weights,
		.bias = pass->parameter + *parameter + weights + shape->out,
		.epsilon = (skep_real)model->norm_epsilon,
		.kept = *kept + b->samples * made_by(shape),
		.thread_pool = pass->thread_pool};
	*parameter += weights + 2 * (size_t)shape->out;
	*average += shape->out;
	*kept += b->samples * (made_by(shape) + SKEP_BATCH_NORM_KEPT * shape->out);
}

/* The block of a pass: what each part reads, and where what it makes is kept. */
static void block_init(struct block *b, const struct skep_layer *layer, const struct skep_pass *pass,
	const skep_real *in, skep_real *kept)
{
	*b = (struct block){.shape = skep_resnet_layer_of(layer->model, layer->number),
		.pass = pass,
		.samples = pass->training->samples};
	const uint32_t convs = skep_resnet_convs(&b->shape);
	const size_t averages = skep_resnet_averages(layer->model, layer->number) / 2;
	size_t parameter = 0, average = layer->parameters - 2 * averages;
	for (uint32_t i = 0; i < convs; i++) {
		const bool enters = i == 0 || i == b->shape.convs;
		place_part(b, i, layer->model, &parameter, &average, &kept);
		b->part[i].averages = averages;
		b->part[i].conv.strip = strips(layer);
		b->part[i].conv.x = enters ? in : b->part[i - 1].made;
		b->part[i].conv.norm = enters ? NULL : &b->part[i - 1].norm;
	}
	assert(parameter + 2 * averages == layer->parameters);
	b->numbers = made_by(&b->shape.conv[b->shape.convs - 1]);
	b->pixels = skep_conv_to(&b->shape.conv[b->shape.convs - 1]);
	b->room[0] = pass->work;
	b->room[1] = pass->work + b->samples * widest(&b->shape);
}

/* ---- forwards ------------------------------------------------------------------------------------------------------- */

static const struct part *last_of(const struct block *b)
{
	return &b->part[b->shape.convs - 1];
}

/* The side of what the block reads, and its channels. */
static const struct skep_conv *entry_of(const struct block *b)
{
	return &b->shape.conv[0];
}

/* sum[channels][pixels] += what a padded shortcut makes of x. */
static void add_padded(const struct block *b, const skep_real *x, skep_real *sum)
{
	const struct skep_conv *in = entry_of(b);
	const size_t to = last_of(b)->conv.shape.to, stride = in->from > to ? 2 : 1;
	for (size_t c = 0; c < in->in && c < b->shape.out; c++)
		for (size_t i = 0; i < b->pixels; i++)
			sum[c * b->pixels + i] +=
				x[c * skep_conv_from(in) + i / to * stride * in->from + i % to * stride];
}

/* Of one sample, before it bends. */
static void add_up(const struct block *b, size_t sample, skep_real *restrict ret)
{
	const size_t n = b->numbers;
	const struct part *last = last_of(b), *other = &b->part[b->shape.convs];
	const skep_real *x = b->part[0].conv.x + sample * entry_of(b)->in * skep_conv_from(entry_of(b));
	skep_batch_norm_apply(&last->norm, last->made + sample * n, false, ret);
	if (b->shape.shortcut == SKEP_SHORTCUT_SAME)
		for (size_t i = 0; i < n; i++)
			ret[i] += x[i];
	else if (b->shape.shortcut == SKEP_SHORTCUT_PADDED)
		add_padded(b, x, ret);
	else if (b->shape.shortcut == SKEP_SHORTCUT_PROJECTED)
		skep_batch_norm_apply(&other->norm, other->made + sample * n, true, ret);
}

struct ending {
	const struct block *block;
	const skep_real *gradient;
	skep_real *ret;
};

static skep_real *strip_of(const struct block *b, uint32_t member)
{
	return b->part[0].conv.strips + member * b->part[0].conv.strip;
}

SKEP_ANY_WIDTH static void bend_sum(size_t n, skep_real *x)
{
	for (size_t i = 0; i < n; i++)
		x[i] = x[i] < 0 ? 0 : x[i];
}

static void end_samples(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct ending *e = context;
	const struct block *b = e->block;
	const size_t leaving = (size_t)b->shape.out * b->shape.to * b->shape.to;
	for (size_t i = first; i < end; i++) {
		skep_real *sum = b->shape.pools ? strip_of(b, member) : e->ret + i * leaving;
		add_up(b, i, sum);
		bend_sum(b->numbers, sum);
		if (b->shape.pools)
			skep_pool_forward(b->shape.out, last_of(b)->conv.shape.to, sum, e->ret + i * leaving);
	}
}

/* A microbatch that is judged, and is not trained on, meets the running averages. */
static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	struct block b;
	block_init(&b, layer, pass, in, ret_inside);
	const bool judged = skep_training_holds_out(pass->training, pass->op->microbatch);
	for (uint32_t i = 0; i < skep_resnet_convs(&b.shape); i++) {
		const struct part *p = &b.part[i];
		const skep_real *mean = pass->parameter + p->average;
		skep_convolution_forward(&p->conv, p->made);
		if (judged)
			skep_batch_norm_recall(&p->norm, mean, mean + p->averages);
		else
			skep_batch_norm_measure(&p->norm, p->made);
	}
	skep_thread_pool_for(
		pass->thread_pool, b.samples, 1, end_samples, &(struct ending){.block = &b, .ret = ret_out});
	return 0;
}

/* ---- backwards ------------------------------------------------------------------------------------------------------ */

SKEP_ANY_WIDTH static void unbend_sum(size_t n, const skep_real *x, skep_real *gradient)
{
	for (size_t i = 0; i < n; i++)
		gradient[i] = x[i] > 0 ? gradient[i] : 0;
}

/* The gradient at the sum, from that at what leaves the block. */
static void begin_samples(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct ending *e = context;
	const struct block *b = e->block;
	const size_t leaving = (size_t)b->shape.out * b->shape.to * b->shape.to;
	for (size_t i = first; i < end; i++) {
		skep_real *sum = strip_of(b, member), *ret = e->ret + i * b->numbers;
		add_up(b, i, sum);
		if (b->shape.pools)
			skep_pool_backward(
				b->shape.out, last_of(b)->conv.shape.to, sum, e->gradient + i * leaving, ret);
		unbend_sum(b->numbers, sum, ret);
	}
}

/* From the gradient at what the norm makes to that at what the convolution makes. */
static void norm_back(const struct block *b, uint32_t i, bool bends, const skep_real *at_y, skep_real *ret)
{
	const struct part *p = &b->part[i];
	skep_real *gradient =
		b->pass->gradient ? b->pass->gradient + p->weight + skep_conv_inner(&p->conv.shape) * p->conv.shape.out
				  : NULL;
	skep_batch_norm_backward(
		&p->norm, p->made, bends, at_y, gradient, gradient ? gradient + p->conv.shape.out : NULL, ret);
}

static void weigh(const struct block *b, uint32_t i, const skep_real *at_made)
{
	if (b->pass->gradient)
		skep_convolution_weight(&b->part[i].conv, at_made, b->pass->gradient + b->part[i].weight);
}

/* In the place of the running averages' gradients. */
static void average(const struct block *b)
{
	const struct skep_pass *pass = b->pass;
	for (uint32_t i = 0; i < skep_resnet_convs(&b->shape); i++) {
		const struct part *p = &b->part[i];
		const skep_real *mean = pass->differs ? pass->parameter + p->average : NULL;
		skep_real *sum = pass->gradient + p->average;
		skep_batch_norm_average(&p->norm, mean, mean ? mean + p->averages : NULL, sum, sum + p->averages);
	}
}

/* ret[samples][in][from][from] += the gradient at the sum, as the shortcut has it. */
static void short_back(const struct block *b, const skep_real *at_sum, skep_real *ret)
{
	const struct skep_conv *in = entry_of(b);
	const size_t to = last_of(b)->conv.shape.to, stride = in->from > to ? 2 : 1,
		     entering = in->in * skep_conv_from(in);
	if (b->shape.shortcut == SKEP_SHORTCUT_SAME) {
		skep_real_add_rows(1, b->samples * b->numbers, at_sum, ret);
		return;
	}
	for (size_t s = 0; s < b->samples; s++)
		for (size_t c = 0; c < in->in && c < b->shape.out; c++)
			for (size_t i = 0; i < b->pixels; i++)
				ret[s * entering + c * skep_conv_from(in) + i / to * stride * in->from +
					i % to * stride] += at_sum[s * b->numbers + c * b->pixels + i];
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	struct block b;
	block_init(&b, layer, pass, in, (skep_real *)inside); /* not written through */
	skep_real *at_sum = b.shape.pools ? b.room[0] : gradient, *at_made = b.room[0], *other = b.room[1];
	skep_thread_pool_for(pass->thread_pool, b.samples, 1, begin_samples,
		&(struct ending){.block = &b, .gradient = gradient, .ret = at_sum});
	norm_back(&b, b.shape.convs - 1, false, at_sum, at_made);
	for (uint32_t i = b.shape.convs; i-- > 0;) {
		weigh(&b, i, at_made);
		if (i > 0) {
			skep_convolution_input(&b.part[i].conv, at_made, false, other);
			norm_back(&b, i - 1, true, other, other);
			skep_real *was = at_made;
			at_made = other;
			other = was;
		} else if (ret) {
			skep_convolution_input(&b.part[i].conv, at_made, false, ret);
		}
	}
	if (b.shape.shortcut == SKEP_SHORTCUT_PROJECTED) {
		norm_back(&b, b.shape.convs, false, at_sum, at_made);
		weigh(&b, b.shape.convs, at_made);
		if (ret)
			skep_convolution_input(&b.part[b.shape.convs].conv, at_made, true, ret);
	} else if (ret && b.shape.shortcut != SKEP_SHORTCUT_NONE) {
		short_back(&b, at_sum, ret);
	}
	if (pass->gradient)
		average(&b);
}

const struct skep_layer_type skep_layer_resnet_block = {.name = "block",
	.tensors = tensors,
	.inside = inside,
	.work = work,
	.strips = strips,
	.flop = flop,
	.forward = forward,
	.backward = backward};
