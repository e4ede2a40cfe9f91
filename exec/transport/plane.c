/* SPDX-License-Identifier: Apache-2.0
 *
 * plane.c - see plane.h.
 */
#include "exec/transport/plane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct told {
	struct told *next;
	uint32_t count;
	uint8_t bytes[];
};

struct skep_plane {
	struct skep_transport *whole;
	uint32_t planes, number;
	struct told *first, **end;
	bool no_memory;
	const struct skep_landing *landing; /* of the poll under way */
};

static uint32_t rank_below(const struct skep_plane *plane, uint32_t peer)
{
	return peer * plane->planes + plane->number;
}

static void plane_send(void *self, uint32_t peer, const struct skep_frame *frame, const void *body)
{
	const struct skep_plane *plane = self;
	plane->whole->send(plane->whole->self, rank_below(plane, peer), frame, body);
}

static void *landed(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	const struct skep_plane *plane = context;
	if (peer % plane->planes != plane->number)
		return NULL;
	return plane->landing->memory(plane->landing->context, peer / plane->planes, frame, ret);
}

static void keep(struct skep_plane *plane, const struct skep_frame *frame)
{
	struct told *told = malloc(sizeof *told + frame->u.text.count);
	if (told == NULL) {
		plane->no_memory = true;
		return;
	}
	told->next = NULL;
	told->count = frame->u.text.count;
	memcpy(told->bytes, frame->u.text.bytes, told->count);
	*plane->end = told;
	plane->end = &told->next;
}

static bool broken(const char *reason, struct skep_transport_event *ret)
{
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_BROKEN, .reason = reason};
	return true;
}

static bool plane_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	struct skep_plane *plane = self;
	struct skep_landing below = {.context = plane, .memory = landed};
	plane->landing = landing;
	while (plane->whole->poll(plane->whole->self, &below, ret)) {
		if (ret->kind == SKEP_TRANSPORT_BROKEN)
			return true;
		if (ret->kind == SKEP_TRANSPORT_GONE || ret->kind == SKEP_TRANSPORT_NEW)
			return broken("a process of the run has died, and its shard of the stage with it", ret);
		uint32_t from = ret->peer % plane->planes;
		ret->peer /= plane->planes;
		if (from == plane->number)
			return true;
		if (ret->kind != SKEP_TRANSPORT_ARRIVED || ret->frame.type != SKEP_FRAME_LOCKSTEP ||
			ret->peer != plane->whole->rank / plane->planes)
			continue; /* of another machine in another plane: no process sends it */
		keep(plane, &ret->frame);
		if (plane->no_memory)
			return broken("no memory for what another plane has told", ret);
	}
	return false;
}

static uint32_t plane_pending(const void *self)
{
	const struct skep_plane *plane = self;
	return plane->whole->pending(plane->whole->self);
}

static void plane_wait(void *self, uint64_t most_ns)
{
	const struct skep_plane *plane = self;
	plane->whole->wait(plane->whole->self, most_ns);
}

static void plane_wake(void *self)
{
	const struct skep_plane *plane = self;
	plane->whole->wake(plane->whole->self);
}

struct skep_plane *skep_plane_create(struct skep_transport *whole, uint32_t planes, struct skep_transport *ret)
{
	assert(planes > 1 && whole->ranks % planes == 0);
	struct skep_plane *plane = calloc(1, sizeof *plane);
	if (plane == NULL)
		return NULL;
	plane->whole = whole;
	plane->planes = planes;
	plane->number = whole->rank % planes;
	plane->end = &plane->first;
	*ret = (struct skep_transport){.self = plane,
		.rank = whole->rank / planes,
		.ranks = whole->ranks / planes,
		.send = plane_send,
		.poll = plane_poll,
		.pending = plane_pending,
		.wait = plane_wait,
		.wake = plane_wake};
	return plane;
}

void skep_plane_destroy(struct skep_plane *plane)
{
	while (plane != NULL && plane->first != NULL)
		skep_plane_forget(plane);
	free(plane);
}

uint32_t skep_plane_number(const struct skep_plane *plane)
{
	return plane->number;
}

uint32_t skep_plane_count(const struct skep_plane *plane)
{
	return plane->planes;
}

void skep_plane_tell(struct skep_plane *plane, const uint8_t *bytes, uint32_t count)
{
	assert(count <= SKEP_FRAME_CONTENT);
	struct skep_frame frame = {.type = SKEP_FRAME_LOCKSTEP};
	uint32_t first = plane->whole->rank - plane->number;
	frame.u.text.bytes = bytes;
	frame.u.text.count = count;
	for (uint32_t t = 0; t < plane->planes; t++) {
		if (t != plane->number)
			plane->whole->send(plane->whole->self, first + t, &frame, NULL);
	}
}

const uint8_t *skep_plane_heard(const struct skep_plane *plane, uint32_t *ret_count)
{
	if (plane->first == NULL)
		return NULL;
	*ret_count = plane->first->count;
	return plane->first->bytes;
}

void skep_plane_forget(struct skep_plane *plane)
{
	assert(plane->first != NULL);
	struct told *told = plane->first;
	plane->first = told->next;
	if (plane->first == NULL)
		plane->end = &plane->first;
	free(told);
}
