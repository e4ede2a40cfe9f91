/* SPDX-License-Identifier: Apache-2.0
 *
 * live_names.c - a hash table with linear probing over dense slots.
 *
 * What is kept true: every live name stands in the table between its home and the next hole (removal moves later
 * entries back), the table is at most half full, and a slot number is below the largest number alive at once so far.
 */
#include "topologies/churn/live_names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/random.h"

static uint64_t hash_of(const char *name)
{
	return skep_mix(
		skep_hash_bytes(SKEP_HASH_EMPTY, name, strlen(name))); /* mixed: the low bits choose the place */
}

void skep_live_names_finish(struct skep_live_names *live)
{
	for (uint32_t i = 0; i < live->slots; i++)
		free(live->life[i].text);
	free(live->life);
	free(live->unused);
	free(live->table);
	*live = (struct skep_live_names){0};
}

uint32_t skep_live_names_find(const struct skep_live_names *live, const char *name)
{
	if (live->count == 0)
		return SKEP_NOT_LIVE;
	uint64_t hash = hash_of(name);
	for (uint32_t i = (uint32_t)hash & live->mask; live->table[i]; i = (i + 1) & live->mask) {
		const struct skep_live_name *life = &live->life[live->table[i] - 1];
		if (life->hash == hash && strcmp(life->text, name) == 0)
			return live->table[i] - 1;
	}
	return SKEP_NOT_LIVE;
}

static void enter(struct skep_live_names *live, uint32_t slot)
{
	uint32_t i = (uint32_t)live->life[slot].hash & live->mask;
	while (live->table[i])
		i = (i + 1) & live->mask;
	live->table[i] = slot + 1;
}

static bool grow(struct skep_live_names *live)
{
	uint32_t room = live->room ? 2 * live->room : 64;
	if (room > 1u << 29)
		return false;
	struct skep_live_name *life = realloc(live->life, room * sizeof *life);
	live->life = life ? life : live->life;
	uint32_t *unused = realloc(live->unused, room * sizeof *unused);
	live->unused = unused ? unused : live->unused;
	uint32_t *table = calloc(2 * (size_t)room, sizeof *table);
	if (!life || !unused || !table) {
		free(table);
		return false;
	}
	free(live->table);
	live->table = table;
	live->room = room;
	live->mask = 2 * room - 1;
	for (uint32_t i = 0; i < live->slots; i++)
		enter(live, i);
	return true;
}

static char *join_texts(const char *name, const char *gpu, const char *zone, struct skep_live_name *life)
{
	size_t a = strlen(name) + 1, b = strlen(gpu) + 1, c = strlen(zone) + 1;
	char *text = malloc(a + b + c);
	if (!text)
		return NULL;
	memcpy(text, name, a);
	life->gpu = memcpy(text + a, gpu, b);
	life->zone = memcpy(text + a + b, zone, c);
	return text;
}

uint32_t skep_live_names_add(
	struct skep_live_names *live, const char *name, const char *gpu, const char *zone, skep_time joined_ns)
{
	uint32_t unused = live->slots - live->count;
	if (unused == 0 && live->slots == live->room && !grow(live))
		return SKEP_NOT_LIVE;
	struct skep_live_name life = {.hash = hash_of(name), .joined_ns = joined_ns};
	life.text = join_texts(name, gpu, zone, &life);
	if (!life.text)
		return SKEP_NOT_LIVE;
	uint32_t slot = unused > 0 ? live->unused[unused - 1] : live->slots++;
	live->count++;
	live->life[slot] = life;
	enter(live, slot);
	return slot;
}

/* The entry at `hole` is gone: later ones that may not stand behind a hole move into it. */
static void close_hole(struct skep_live_names *live, uint32_t hole)
{
	uint32_t mask = live->mask;
	for (uint32_t i = (hole + 1) & mask; live->table[i]; i = (i + 1) & mask) {
		uint32_t home = (uint32_t)live->life[live->table[i] - 1].hash & mask;
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			live->table[hole] = live->table[i];
			hole = i;
		}
	}
	live->table[hole] = 0;
}

void skep_live_names_remove(struct skep_live_names *live, uint32_t slot)
{
	struct skep_live_name *life = &live->life[slot];
	assert(slot < live->slots && life->text);
	uint32_t i = (uint32_t)life->hash & live->mask;
	while (live->table[i] != slot + 1)
		i = (i + 1) & live->mask;
	close_hole(live, i);
	free(life->text);
	life->text = NULL;
	live->unused[live->slots - live->count] = slot;
	live->count--;
}
