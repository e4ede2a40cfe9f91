/* SPDX-License-Identifier: Apache-2.0
 *
 * give_arena.h - a world's duty after each step: the machine may want more memory, all of it malloc's.
 */
#pragma once

#include <assert.h>
#include <stdlib.h>

#include "core/skep.h"

static inline struct skep_node *give_room(struct skep_node *node)
{
	size_t wanted = skep_node_wanted(node);
	if (wanted == 0)
		return node;
	struct skep_node *moved = skep_node_relocate(aligned_alloc(16, (wanted + 15) / 16 * 16), node);
	assert(skep_node_wanted(moved) == 0);
	free(node);
	return moved;
}
