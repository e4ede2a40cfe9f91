/* SPDX-License-Identifier: Apache-2.0
 *
 * shaper.c - see shaper.h. The model's tag of a flow is its place in flow[]; places are used again through a free list.
 * Arrivals are taken from the model one instant at a time, so that it never moves past a start that is still to come in
 * the same call.
 */
#include "exec/loop/shaper.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64u

struct place {
	struct skep_shaper_flow flow;
	uint32_t next_free;
};

struct skep_shaper {
	struct skep_network *network;
	skep_time clock; /* of the model: the latest start or arrival */
	struct place *place;
	uint32_t places, room, free;    /* free: SKEP_NO_INDEX when every place is taken */
	uint64_t *ready;                /* tags that have arrived and were not asked for, in order */
	size_t ready_head, ready_count; /* room for all places */
};

struct skep_shaper *skep_shaper_create(const struct skep_topology *topology)
{
	struct skep_shaper *shaper = calloc(1, sizeof *shaper);
	if (shaper == NULL)
		return NULL;
	shaper->free = SKEP_NO_INDEX;
	shaper->network = skep_network_create(topology);
	if (shaper->network != NULL)
		return shaper;
	free(shaper);
	return NULL;
}

void skep_shaper_destroy(struct skep_shaper *shaper)
{
	if (shaper == NULL)
		return;
	skep_network_destroy(shaper->network);
	free(shaper->place);
	free(shaper->ready);
	free(shaper);
}

/* A place, and with it one among those that are ready: only a place can become ready, and only once. */
static bool grow(struct skep_shaper *shaper)
{
	uint32_t room = 2 * shaper->room + 64;
	struct place *place = realloc(shaper->place, room * sizeof *place);
	if (place != NULL)
		shaper->place = place;
	uint64_t *ready = realloc(shaper->ready, room * sizeof *ready);
	if (ready != NULL)
		shaper->ready = ready;
	if (place == NULL || ready == NULL)
		return false;
	shaper->room = room;
	return true;
}

/* SKEP_NO_INDEX: no memory. */
static uint32_t place_take(struct skep_shaper *shaper)
{
	assert(shaper->places <= shaper->room);
	if (shaper->free != SKEP_NO_INDEX) {
		uint32_t at = shaper->free;
		shaper->free = shaper->place[at].next_free;
		return at;
	}
	if (shaper->places == shaper->room && !grow(shaper))
		return SKEP_NO_INDEX;
	return shaper->places++;
}

static void ready_push(struct skep_shaper *shaper, uint64_t tag)
{
	if (shaper->ready_count == shaper->room) { /* those that were asked for make room */
		shaper->ready_count -= shaper->ready_head;
		memmove(shaper->ready, shaper->ready + shaper->ready_head, shaper->ready_count * sizeof *shaper->ready);
		shaper->ready_head = 0;
	}
	assert(shaper->ready_count < shaper->room);
	shaper->ready[shaper->ready_count++] = tag;
}

/* All arrivals up to `now` become ready. A change that is no arrival (a flow begins to share) yields no tag. */
static void catch_up(struct skep_shaper *shaper, skep_time now)
{
	skep_time at;
	while ((at = skep_network_next(shaper->network)) <= now && at != SKEP_TIME_NEVER) {
		uint64_t tag[BATCH];
		uint32_t count;
		do {
			count = skep_network_advance(shaper->network, at, tag, BATCH);
			for (uint32_t i = 0; i < count; i++)
				ready_push(shaper, tag[i]);
		} while (count == BATCH);
		shaper->clock = at;
	}
}

bool skep_shaper_start(struct skep_shaper *shaper, const struct skep_shaper_flow *flow, uint64_t bytes, skep_time sent)
{
	assert(flow->source != flow->destination);
	catch_up(shaper, sent);
	if (sent > shaper->clock)
		shaper->clock = sent;
	uint32_t at = place_take(shaper);
	if (at == SKEP_NO_INDEX)
		return false;
	shaper->place[at].flow = *flow;
	return skep_network_start(shaper->network, shaper->clock, flow->source, flow->destination, bytes, at);
}

bool skep_shaper_arrived(struct skep_shaper *shaper, skep_time now, struct skep_shaper_flow *ret)
{
	catch_up(shaper, now);
	if (shaper->ready_head == shaper->ready_count)
		return false;
	uint32_t at = (uint32_t)shaper->ready[shaper->ready_head++];
	*ret = shaper->place[at].flow;
	shaper->place[at].next_free = shaper->free;
	shaper->free = at;
	return true;
}

skep_time skep_shaper_next(struct skep_shaper *shaper)
{
	return shaper->ready_head < shaper->ready_count ? 0 : skep_network_next(shaper->network);
}
