/* SPDX-License-Identifier: Apache-2.0
 *
 * map.h - a hash from numbers of 64 bits to numbers of 32, for what a trace has to find again. Open addressing, at most half
 * full; nothing is deleted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/random.h"

#define SKEP_MAP_NONE UINT32_MAX

struct skep_map_entry {
	uint64_t key;
	uint32_t value; /* NONE: free */
};

struct skep_map { /* all zero: empty */
	struct skep_map_entry *entry;
	uint32_t count, size;
};

static inline struct skep_map_entry *skep_map_slot(const struct skep_map *map, uint64_t key)
{
	uint32_t at = (uint32_t)skep_mix(key) & (map->size - 1);
	while (map->entry[at].value != SKEP_MAP_NONE && map->entry[at].key != key)
		at = (at + 1) & (map->size - 1);
	return &map->entry[at];
}

static inline uint32_t skep_map_get(const struct skep_map *map, uint64_t key)
{
	return map->size > 0 ? skep_map_slot(map, key)->value : SKEP_MAP_NONE;
}

/* Replaces what the key had. False: no memory, and nothing has changed. */
static inline bool skep_map_set(struct skep_map *map, uint64_t key, uint32_t value)
{
	if (map->size <= 2 * map->count) {
		struct skep_map grown = {.count = map->count, .size = map->size > 0 ? 2 * map->size : 64};
		grown.entry = malloc(grown.size * sizeof *grown.entry);
		if (!grown.entry)
			return false;
		for (uint32_t i = 0; i < grown.size; i++)
			grown.entry[i].value = SKEP_MAP_NONE;
		for (uint32_t i = 0; i < map->size; i++)
			if (map->entry[i].value != SKEP_MAP_NONE)
				*skep_map_slot(&grown, map->entry[i].key) = map->entry[i];
		free(map->entry);
		*map = grown;
	}
	struct skep_map_entry *slot = skep_map_slot(map, key);
	map->count += slot->value == SKEP_MAP_NONE;
	*slot = (struct skep_map_entry){key, value};
	return true;
}

static inline void skep_map_finish(struct skep_map *map)
{
	free(map->entry);
	*map = (struct skep_map){0};
}
