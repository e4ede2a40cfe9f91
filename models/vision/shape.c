/* SPDX-License-Identifier: Apache-2.0
 *
 * shape.c - see shape.h. Keeps true: what a layer makes is what the next one reads.
 */
#include "models/vision/shape.h"

#include <assert.h>

enum { WIDENED = 4 }; /* what leaves a bottleneck, by what is within it */

/* The side of what a stride makes, with kernel / 2 pixels around and an odd kernel. */
static uint32_t strided(uint32_t side, uint32_t stride)
{
	return (side - 1) / stride + 1;
}

static uint32_t widened(const struct skep_resnet *n)
{
	return n->bottleneck ? WIDENED : 1;
}

static void add_conv(
	struct skep_resnet_layer *l, uint32_t in, uint32_t out, uint32_t kernel, uint32_t stride, uint32_t from)
{
	struct skep_conv *conv = &l->conv[l->convs++];
	assert(l->convs <= SKEP_CONVS_MAX);
	*conv = (struct skep_conv){in, out, kernel, stride, from, strided(from, stride)};
}

static struct skep_resnet_layer stem_of(const struct skep_resnet *n)
{
	struct skep_resnet_layer l = {.pools = n->large, .out = n->channels};
	add_conv(&l, SKEP_RESNET_COLOURS, n->channels, n->large ? 7 : 3, n->large ? 2 : 1, n->image);
	l.to = strided(l.conv[0].to, l.pools ? 2 : 1);
	return l;
}

static struct skep_resnet_layer block_of(
	const struct skep_resnet *n, uint32_t in, uint32_t group, bool first, uint32_t from)
{
	const uint32_t stride = first && group > 0 ? 2 : 1, middle = n->channels << group, out = middle * widened(n);
	struct skep_resnet_layer l = {.out = out, .to = strided(from, stride)};
	if (n->bottleneck) {
		add_conv(&l, in, middle, 1, 1, from);
		add_conv(&l, middle, middle, 3, stride, from);
		add_conv(&l, middle, out, 1, 1, l.to);
	} else {
		add_conv(&l, in, middle, 3, stride, from);
		add_conv(&l, middle, out, 3, 1, l.to);
	}
	l.shortcut = in == out && stride == 1 ? SKEP_SHORTCUT_SAME
	             : n->projected           ? SKEP_SHORTCUT_PROJECTED
	                                      : SKEP_SHORTCUT_PADDED;
	if (l.shortcut == SKEP_SHORTCUT_PROJECTED) {
		add_conv(&l, in, out, 1, stride, from);
		l.convs--;
	}
	return l;
}

struct skep_resnet_layer skep_resnet_layer_of(const struct skep_model *model, uint32_t layer)
{
	const struct skep_resnet *n = &model->resnet;
	struct skep_resnet_layer l = stem_of(n);
	assert(model->kind == SKEP_MODEL_RESNET && layer + 1 < model->layers);
	uint32_t group = 0, nth = 0;
	for (uint32_t i = 0; i < layer; i++) {
		l = block_of(n, l.out, group, nth == 0, l.to);
		nth = nth + 1 < n->blocks[group] ? nth + 1 : 0;
		group += nth == 0;
	}
	return l;
}

uint64_t skep_resnet_averages(const struct skep_model *model, uint32_t layer)
{
	uint64_t channels = 0;
	if (model->kind != SKEP_MODEL_RESNET || layer + 1 == model->layers)
		return 0;
	const struct skep_resnet_layer l = skep_resnet_layer_of(model, layer);
	for (uint32_t c = 0; c < skep_resnet_convs(&l); c++)
		channels += l.conv[c].out;
	return 2 * channels;
}

uint64_t skep_resnet_averages_of(const struct skep_model *model, uint32_t first, uint32_t end)
{
	uint64_t sum = 0;
	assert(end <= model->layers);
	for (uint32_t l = first; l < end; l++)
		sum += skep_resnet_averages(model, l);
	return sum;
}
