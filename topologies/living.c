/* SPDX-License-Identifier: Apache-2.0
 *
 * living.c - a hash table with linear probing over dense slots.
 *
 * What is kept true: every living name stands in the table between its home and the next hole (removal moves later
 * entries back), the table is at most half full, and a slot number is below the largest number alive so far.
 */
#include "topologies/living.h"

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

void skep_living_finish(struct skep_living *living)
{
	for (uint32_t i = 0; i < living->slots; i++)
		free(living->life[i].text);
	free(living->life);
	free(living->unused);
	free(living->table);
	*living = (struct skep_living){0};
}

uint32_t skep_living_find(const struct skep_living *living, const char *name)
{
	if (living->count == 0)
		return SKEP_NOT_LIVING;
	uint64_t hash = hash_of(name);
	for (uint32_t i = (uint32_t)hash & living->mask; living->table[i]; i = (i + 1) & living->mask) {
		const struct skep_life *life = &living->life[living->table[i] - 1];
		if (life->hash == hash && strcmp(life->text, name) == 0)
			return living->table[i] - 1;
	}
	return SKEP_NOT_LIVING;
}

static void enter(struct skep_living *living, uint32_t slot)
{
	uint32_t i = (uint32_t)living->life[slot].hash & living->mask;
	while (living->table[i])
		i = (i + 1) & living->mask;
	living->table[i] = slot + 1;
}

static bool grow(struct skep_living *living)
{
	uint32_t room = living->room ? 2 * living->room : 64;
	if (room > 1u << 29)
		return false;
	struct skep_life *life = realloc(living->life, room * sizeof *life);
	living->life = life ? life : living->life;
	uint32_t *unused = realloc(living->unused, room * sizeof *unused);
	living->unused = unused ? unused : living->unused;
	uint32_t *table = calloc(2 * (size_t)room, sizeof *table);
	if (!life || !unused || !table) {
		free(table);
		return false;
	}
	free(living->table);
	living->table = table;
	living->room = room;
	living->mask = 2 * room - 1;
	for (uint32_t i = 0; i < living->slots; i++)
		enter(living, i);
	return true;
}

static char *join_texts(const char *name, const char *gpu, const char *zone, struct skep_life *life)
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

uint32_t skep_living_add(
	struct skep_living *living, const char *name, const char *gpu, const char *zone, skep_time joined_ns)
{
	uint32_t unused = living->slots - living->count;
	if (unused == 0 && living->slots == living->room && !grow(living))
		return SKEP_NOT_LIVING;
	struct skep_life life = {.hash = hash_of(name), .joined_ns = joined_ns};
	life.text = join_texts(name, gpu, zone, &life);
	if (!life.text)
		return SKEP_NOT_LIVING;
	uint32_t slot = unused > 0 ? living->unused[unused - 1] : living->slots++;
	living->count++;
	living->life[slot] = life;
	enter(living, slot);
	return slot;
}

/* The entry at `hole` is gone: later ones that may not stand behind a hole move into it. */
static void close_hole(struct skep_living *living, uint32_t hole)
{
	uint32_t mask = living->mask;
	for (uint32_t i = (hole + 1) & mask; living->table[i]; i = (i + 1) & mask) {
		uint32_t home = (uint32_t)living->life[living->table[i] - 1].hash & mask;
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			living->table[hole] = living->table[i];
			hole = i;
		}
	}
	living->table[hole] = 0;
}

void skep_living_remove(struct skep_living *living, uint32_t slot)
{
	struct skep_life *life = &living->life[slot];
	assert(slot < living->slots && life->text);
	uint32_t i = (uint32_t)life->hash & living->mask;
	while (living->table[i] != slot + 1)
		i = (i + 1) & living->mask;
	close_hole(living, i);
	free(life->text);
	life->text = NULL;
	living->unused[living->slots - living->count] = slot;
	living->count--;
}
