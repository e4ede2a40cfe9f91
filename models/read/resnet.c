/* SPDX-License-Identifier: Apache-2.0
 *
 * resnet.c - see resnet.h. Keeps true: width[] holds what a layer makes.
 */
#include "models/read/resnet.h"

#include <stdlib.h>

#include "models/vision/shape.h"

enum { BLOCKS_MAX = 1024, SIDE_MAX = 1024, CHANNELS_MAX = 4096, CLASSES_MAX = 1 << 20 };
#define WIDTH_MAX (UINT64_C(1) << 30) /* numbers of a sample between two layers */

static void read_blocks(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_resnet *ret)
{
	const struct skep_yaml_node *list = skep_read_list(r, map, "blocks", true);
	ret->groups = skep_yaml_length(list);
	if (!r->diag->set && (ret->groups == 0 || ret->groups > SKEP_RESNET_GROUPS_MAX))
		skep_reader_fail(r, map, "blocks",
			"expected the number of blocks of each of 1 to %d groups, as in [3, 3, 3]",
			SKEP_RESNET_GROUPS_MAX);
	for (uint32_t g = 0; g < ret->groups && !r->diag->set; g++)
		ret->blocks[g] =
			(uint32_t)skep_read_integer(r, skep_yaml_item(list, g), NULL, 1, BLOCKS_MAX, INT64_MIN);
}

/* Once the rest is known. */
static void place(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret)
{
	ret->layers = 2;
	for (uint32_t g = 0; g < ret->resnet.groups; g++)
		ret->layers += ret->resnet.blocks[g];
	ret->kind = SKEP_MODEL_RESNET;
	ret->width = calloc(ret->layers + 1, sizeof *ret->width);
	if (!ret->width) {
		skep_reader_fail(r, map, "blocks", "not enough memory for %u layers", ret->layers);
		return;
	}
	ret->width[0] = SKEP_RESNET_COLOURS * ret->resnet.image * ret->resnet.image;
	ret->width[ret->layers] = ret->resnet.classes;
	for (uint32_t l = 0; l + 1 < ret->layers && !r->diag->set; l++) {
		const struct skep_resnet_layer layer = skep_resnet_layer_of(ret, l);
		const uint64_t width = (uint64_t)layer.out * layer.to * layer.to;
		if (width > WIDTH_MAX)
			skep_reader_fail(r, map, "image", "layer %u makes %.3g numbers of an image, more than %.3g", l,
				(double)width, (double)WIDTH_MAX);
		ret->width[l + 1] = (uint32_t)width;
	}
}

void skep_resnet_read(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_model *ret)
{
	static const char *const blocks[] = {"basic", "bottleneck", NULL},
				 *const shortcuts[] = {"padded", "projected", NULL},
				 *const stems[] = {"small", "large", NULL};
	const struct skep_yaml_node *map = skep_read_map(r, root, "resnet", true);
	struct skep_resnet *n = &ret->resnet;
	read_blocks(r, map, n);
	n->channels = (uint32_t)skep_read_integer(r, map, "channels", 1, CHANNELS_MAX, INT64_MIN);
	n->image = (uint32_t)skep_read_integer(r, map, "image", 1, SIDE_MAX, INT64_MIN);
	n->classes = (uint32_t)skep_read_integer(r, map, "classes", 2, CLASSES_MAX, INT64_MIN);
	n->bottleneck = skep_read_choice(r, map, "block", blocks, 0) == 1;
	n->projected = skep_read_choice(r, map, "shortcut", shortcuts, 0) == 1;
	n->large = skep_read_choice(r, map, "stem", stems, 0) == 1;
	n->momentum = skep_read_number(r, map, "norm_momentum", 1e-6, 1, 0.1);
	ret->norm_epsilon = skep_read_number(r, map, "norm_epsilon", 1e-12, 1, 1e-5);
	skep_reader_close_map(r, map);
	if (!r->diag->set)
		place(r, map, ret);
}
