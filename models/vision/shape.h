/* SPDX-License-Identifier: Apache-2.0
 *
 * shape.h - which convolutions the layers of a residual network have (He et al. 2015, arXiv 1512.03385). Layers, as cuts see
 * them, are the stem, each block, and the head: a mean over each plane, and a dense layer. Groups of blocks follow each other;
 * the first block of each but the first one halves the side of the images, with a stride of 2, and doubles the channels.
 *
 * A batch norm stands behind each convolution, and a relu behind each norm; that of the last one of a block stands behind the
 * shortcut's sum.
 */
#pragma once

#include "models/read/model.h"

enum { SKEP_CONVS_MAX = 4 };

struct skep_conv {
	uint32_t in, out;        /* channels */
	uint32_t kernel, stride; /* kernel / 2 pixels of 0 are around the images */
	uint32_t from, to;       /* sides of the images that it reads and makes */
};

enum skep_shortcut {
	SKEP_SHORTCUT_NONE,     /* of a stem */
	SKEP_SHORTCUT_SAME,     /* what the block reads */
	SKEP_SHORTCUT_PADDED,   /* of that each stride-th pixel, and further channels of 0: He et al., option A */
	SKEP_SHORTCUT_PROJECTED /* a convolution of that with a kernel of 1, the last one of the block: option B */
};

struct skep_resnet_layer { /* a stem or a block */
	uint32_t convs;    /* one behind the other, without that of the shortcut, which follows them */
	struct skep_conv conv[SKEP_CONVS_MAX];
	enum skep_shortcut shortcut;
	bool pools;       /* behind it the largest of each 3 x 3 pixels, with a stride of 2 */
	uint32_t out, to; /* channels that leave it, and their side */
};

/* Of any layer but the last one. */
struct skep_resnet_layer skep_resnet_layer_of(const struct skep_model *model, uint32_t layer);
/* Convolutions, that of a shortcut included. */
static inline uint32_t skep_resnet_convs(const struct skep_resnet_layer *layer)
{
	return layer->convs + (layer->shortcut == SKEP_SHORTCUT_PROJECTED);
}
/* Numbers of a weight, for each channel that it makes. */
static inline size_t skep_conv_inner(const struct skep_conv *conv)
{
	return (size_t)conv->in * conv->kernel * conv->kernel;
}
static inline size_t skep_conv_from(const struct skep_conv *conv) /* pixels of a plane */
{
	return (size_t)conv->from * conv->from;
}
static inline size_t skep_conv_to(const struct skep_conv *conv)
{
	return (size_t)conv->to * conv->to;
}
/* Running averages of a layer, or of layers first .. end - 1, of all their norms: a mean and a variance for each channel. Other
 * models have none. */
uint64_t skep_resnet_averages(const struct skep_model *model, uint32_t layer);
uint64_t skep_resnet_averages_of(const struct skep_model *model, uint32_t first, uint32_t end);
