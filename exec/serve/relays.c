/* SPDX-License-Identifier: Apache-2.0
 *
 * relays.c - see status.h: which pairs of processes are relayed, and whether the topology says so. A pair of workers is compared
 * by the places of their machines, since of these the topology says it.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "exec/serve/status.h"

#define RELAYS_TOLD 20u
#define NAMED_MOST 4u

bool skep_relays_add(struct skep_relays *relays, uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a;
	assert(a != b);
	for (uint32_t i = 0; i < relays->pairs; i++) {
		if (relays->pair[i][0] == low && relays->pair[i][1] == high)
			return false;
	}
	if (!skep_grow(&relays->pair, relays->pairs, sizeof *relays->pair))
		return false;
	relays->pair[relays->pairs][0] = low;
	relays->pair[relays->pairs][1] = high;
	relays->pair[relays->pairs++][2] = 0;
	return true;
}

bool skep_relays_remove(struct skep_relays *relays, uint32_t from, uint32_t to)
{
	assert(from != to);
	for (uint32_t i = 0; i < relays->pairs; i++) {
		uint32_t *pair = relays->pair[i];
		if (pair[0] != (from < to ? from : to) || pair[1] != (from < to ? to : from))
			continue;
		pair[2] |= from < to ? 1 : 2;
		if (pair[2] != 3)
			return false;
		memcpy(pair, relays->pair[--relays->pairs], sizeof *relays->pair);
		return true;
	}
	return false;
}

void skep_relays_keep(
	struct skep_relays *relays, bool (*is_here)(const void *context, uint32_t rank), const void *context)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < relays->pairs; i++) {
		uint32_t low = relays->pair[i][0], high = relays->pair[i][1];
		if (!is_here(context, low) || !is_here(context, high))
			continue;
		memmove(relays->pair[kept++], relays->pair[i], sizeof *relays->pair);
	}
	relays->pairs = kept;
}

uint32_t skep_relays_of(const struct skep_relays *relays, uint32_t rank)
{
	uint32_t count = 0;
	assert(rank > 0);
	for (uint32_t i = 0; i < relays->pairs; i++)
		count += relays->pair[i][0] == rank || relays->pair[i][1] == rank;
	return count;
}

void skep_relays_say(struct skep_relays *relays, const char *host, const char *other)
{
	if (relays->told == RELAYS_TOLD)
		return;
	fprintf(stderr, "skep: %s and %s cannot connect to each other: what they say goes through here%s\n", host,
		other, ++relays->told == RELAYS_TOLD ? " (`skep status` counts further ones)" : "");
}

void skep_relays_say_direct(struct skep_relays *relays, const char *host, const char *other)
{
	if (relays->freed++ < RELAYS_TOLD)
		fprintf(stderr, "skep: %s and %s have connected: what they say goes through here no more\n", host,
			other);
}

void skep_relays_finish(struct skep_relays *relays)
{
	free(relays->pair);
	free(relays->passed);
	*relays = (struct skep_relays){0};
}

/* ---- beside the topology --------------------------------------------------------------------------------------------- */

/* Of an unordered pair of places. */
static size_t index_of(const struct skep_topology *t, uint32_t a, uint32_t b)
{
	return a < b ? (size_t)a * t->places + b : (size_t)b * t->places + a;
}

void skep_relays_between(struct skep_relays *relays, const struct skep_scenario *scenario, uint32_t a, uint32_t b)
{
	const struct skep_topology *t = &scenario->topology;
	uint32_t from = skep_scenario_place(scenario, a), to = skep_scenario_place(scenario, b);
	assert(a != b && a < scenario->plan.workers && b < scenario->plan.workers);
	if (relays->passed == NULL)
		relays->passed = calloc((size_t)t->places * t->places, sizeof *relays->passed);
	if (relays->passed == NULL)
		return;
	relays->passed[index_of(t, from, to)]++;
	if (skep_topology_relays(t, from, to))
		return;
	if (relays->unforeseen++ == 0) {
		relays->first[0] = a < b ? a : b;
		relays->first[1] = a < b ? b : a;
	}
}

void skep_relays_not_between(struct skep_relays *relays, const struct skep_scenario *scenario, uint32_t a, uint32_t b)
{
	const struct skep_topology *t = &scenario->topology;
	uint32_t from = skep_scenario_place(scenario, a), to = skep_scenario_place(scenario, b);
	assert(a != b && a < scenario->plan.workers && b < scenario->plan.workers);
	if (relays->passed == NULL || relays->passed[index_of(t, from, to)] == 0)
		return;
	relays->passed[index_of(t, from, to)]--;
	if (skep_topology_relays(t, from, to))
		return;
	relays->unforeseen--;
	if (relays->first[0] == (a < b ? a : b) && relays->first[1] == (a < b ? b : a))
		relays->first[0] = relays->first[1] = 0;
}

static bool was_passed(const struct skep_relays *relays, const struct skep_topology *t, uint32_t a, uint32_t b)
{
	return relays->passed != NULL && relays->passed[index_of(t, a, b)] > 0;
}

/* With the key `reach: out` of this place, is it what the topology lacks? The directory's place cannot have it. */
static bool lacks_key(const struct skep_relays *relays, const struct skep_topology *t, uint32_t place)
{
	if (place == t->machine[t->machines].place || (t->dials_out != NULL && t->dials_out[place]))
		return false;
	for (uint32_t other = 0; other < t->places; other++)
		if (other != place && was_passed(relays, t, place, other))
			return true;
	return false;
}

/* Do its machines need sites of their own, since the one they share cannot say it? */
static bool lacks_sites(const struct skep_relays *relays, const struct skep_topology *t, uint32_t place)
{
	bool passed = was_passed(relays, t, place, place);
	for (uint32_t other = 0; other < t->places && place == t->machine[t->machines].place; other++)
		passed = passed || was_passed(relays, t, place, other);
	return passed;
}

/* Places of which `is` is true, as in `words a, b and 3 more`. How many they are. */
static uint32_t print_places(const struct skep_relays *relays, const struct skep_topology *t,
	bool (*is)(const struct skep_relays *relays, const struct skep_topology *t, uint32_t place), const char *words,
	FILE *out)
{
	uint32_t count = 0;
	for (uint32_t place = 0; place < t->places; place++) {
		if (is(relays, t, place) && count++ < NAMED_MOST)
			fprintf(out, "%s%s", count == 1 ? words : ", ", t->place_name[place]);
	}
	if (count > NAMED_MOST)
		fprintf(out, " and %" PRIu32 " more", count - NAMED_MOST);
	return count;
}

static void print_unforeseen(const struct skep_relays *relays, const struct skep_topology *t, FILE *out)
{
	if (relays->first[0] == relays->first[1])
		fprintf(out, "skep: relayed %" PRIu32 " pair%s of workers", relays->unforeseen,
			relays->unforeseen == 1 ? "" : "s");
	else
		fprintf(out, "skep: relayed workers %" PRIu32 " and %" PRIu32, relays->first[0], relays->first[1]);
	if (relays->first[0] != relays->first[1] && relays->unforeseen > 1)
		fprintf(out, " and %" PRIu32 " more pair%s", relays->unforeseen - 1,
			relays->unforeseen == 2 ? "" : "s");
	fprintf(out, ", which the topology says can connect: ");
	uint32_t keys = print_places(relays, t, lacks_key, "add `reach: out` to ", out);
	print_places(relays, t, lacks_sites,
		keys > 0 ? "; give sites of their own, with `reach: out`, to these machines of "
			 : "give sites of their own, with `reach: out`, to these machines of ",
		out);
	fprintf(out, "\n");
}

/* Pairs of places that only dial out, between which nothing was passed on. The first one is printed. */
static void print_connected(
	const struct skep_relays *relays, const struct skep_topology *t, const bool *settled, FILE *out)
{
	uint32_t count = 0, first[2] = {0};
	for (uint32_t a = 0; t->dials_out != NULL && a < t->places; a++)
		for (uint32_t b = a + 1; settled[a] && b < t->places; b++) {
			if (!settled[b] || !skep_topology_relays(t, a, b) || was_passed(relays, t, a, b))
				continue;
			if (count++ == 0) {
				first[0] = a;
				first[1] = b;
			}
		}
	if (count == 0)
		return;
	fprintf(out, "skep: %s and %s", t->place_name[first[0]], t->place_name[first[1]]);
	if (count > 1)
		fprintf(out, " and %" PRIu32 " more pair%s", count - 1, count == 2 ? "" : "s");
	fprintf(out, " have connected, which the topology says cannot: take `reach: out` from one of the two\n");
}

void skep_relays_compare(
	const struct skep_relays *relays, const struct skep_scenario *scenario, const bool *settled, FILE *out)
{
	if (relays->unforeseen > 0)
		print_unforeseen(relays, &scenario->topology, out);
	if (scenario->plan.scale == NULL) /* who was given back has left in between */
		print_connected(relays, &scenario->topology, settled, out);
}
