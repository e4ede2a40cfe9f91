/* SPDX-License-Identifier: Apache-2.0
 *
 * places.c - see places.h. A place without a name is not found.
 */
#include "topologies/places/places.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b, void *topology)
{
	const struct skep_topology *t = topology;
	return strcmp(t->place_name[*(const uint32_t *)a], t->place_name[*(const uint32_t *)b]);
}

bool skep_places_make(const struct skep_topology *topology, struct skep_places *ret)
{
	*ret = (struct skep_places){topology, calloc((size_t)topology->places + 1, sizeof *ret->by_name)};
	if (!ret->by_name)
		return false;
	for (uint32_t i = 0; i < topology->places; i++)
		ret->by_name[i] = i;
	qsort_r(ret->by_name, topology->places, sizeof *ret->by_name, by_name, (void *)topology);
	return true;
}

void skep_places_finish(struct skep_places *places)
{
	free(places->by_name);
	places->by_name = NULL;
}

static uint32_t find(const struct skep_places *b, const char *name, size_t length)
{
	uint32_t low = 0, high = b->topology->places;
	while (length > 0 && low < high) {
		uint32_t middle = low + (high - low) / 2, place = b->by_name[middle];
		const char *here = b->topology->place_name[place];
		int order = strncmp(name, here, length);
		if (order == 0 && here[length] == 0)
			return place;
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return SKEP_NO_PLACE;
}

uint32_t skep_places_find(const struct skep_places *b, const char *name)
{
	assert(b->by_name);
	size_t length = strlen(name), stem = length;
	uint32_t place = find(b, name, length);
	while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
		stem--;
	if (place != SKEP_NO_PLACE || stem == length || stem < 2 || !strchr("-/_.:#", name[stem - 1]))
		return place;
	return find(b, name, stem - 1);
}
