/* SPDX-License-Identifier: Apache-2.0
 *
 * lockstep.c - one machine of the core in several planes (exec/transport/plane.h): all of them step through the same events.
 *
 * Plane 0 leads. It steps its machine through events as they come, as in any run, and tells each one to the other planes before
 * it does what the machine asks for. In another plane what comes is held until it is told: a message of that plane's own, with
 * that plane's own payload, or the end of an operation of its own device. The event then has the time, the duration and the
 * loss that plane 0 has seen. Timers and START come from plane 0 alone. So all copies of the machine take the same decisions,
 * ask for the same operations in the same order, and have the same digest. Plane 0 says its own with each event, and a machine
 * that has another one ends the run.
 *
 * What differs between planes enters no decision: sizes of payloads, and the sum of parameters in a TALLY, which is compared
 * within a plane alone. A plane that ends early tells the others, whose devices then wait for its passes no longer.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exec/loop/rank.h"
#include "exec/transport/plane.h"

enum { WORD_EVENT = 1, WORD_HALT };

bool skep_lockstep_follows(const struct rank *rank)
{
	return rank->setup->plane != NULL && skep_plane_number(rank->setup->plane) > 0;
}

/* What all planes have in common of an event, but for when it was and what came of it. */
static struct skep_event common(const struct skep_event *event)
{
	struct skep_event ret = *event;
	bool message = event->kind == SKEP_EVENT_MESSAGE || event->kind == SKEP_EVENT_SEND_FAILED;
	if (message)
		ret.u.message.payload_bytes = 0;
	if (message && event->u.message.kind == SKEP_MESSAGE_TALLY)
		ret.u.message.parameters = 0;
	return ret;
}

/* Of the events that all planes have: which one it is. */
static size_t name_of(const struct skep_event *event, uint8_t *ret, size_t size)
{
	struct skep_event named = common(event);
	struct skep_wire wire = skep_wire_writer(ret, size);
	named.now = 0;
	if (event->kind == SKEP_EVENT_OP_DONE) {
		skep_wire_u64(&wire, &named.u.done.op.id);
	} else {
		skep_wire_u8(&wire, &named.kind);
		skep_wire_message(&wire, &named.u.message);
	}
	assert(wire.ok);
	return (size_t)(wire.at - ret);
}

static bool same(const struct skep_event *a, const struct skep_event *b)
{
	uint8_t name[2][SKEP_LOG_ENTRY_MAX];
	if (a->kind != b->kind)
		return false;
	size_t size = name_of(a, name[0], sizeof name[0]);
	return size == name_of(b, name[1], sizeof name[1]) && memcmp(name[0], name[1], size) == 0;
}

void skep_lockstep_tell(struct rank *rank, const struct skep_event *event)
{
	uint8_t bytes[SKEP_LOG_ENTRY_MAX] = {WORD_EVENT};
	if (rank->setup->plane == NULL || skep_lockstep_follows(rank))
		return;
	struct skep_event told = common(event);
	uint64_t digest = skep_node_digest(rank->node);
	struct skep_wire wire = skep_wire_writer(bytes + 1, sizeof bytes - 1);
	skep_wire_u64(&wire, &digest);
	skep_wire_event(&wire, &told);
	assert(wire.ok);
	skep_plane_tell(rank->setup->plane, bytes, (uint32_t)(wire.at - bytes));
}

void skep_lockstep_hold(struct rank *rank, const struct skep_event *event)
{
	struct held_events *held = &rank->ahead;
	if (event->kind != SKEP_EVENT_MESSAGE && event->kind != SKEP_EVENT_SEND_FAILED &&
		event->kind != SKEP_EVENT_OP_DONE)
		return;
	if (held->count == held->room) {
		size_t room = 2 * held->room + 16;
		struct skep_event *bigger = realloc(held->event, room * sizeof *bigger);
		if (bigger == NULL) {
			skep_rank_fail(rank, "no memory for an event that plane 0 has not told yet");
			return;
		}
		held->event = bigger;
		held->room = room;
	}
	held->event[held->count++] = *event;
}

/* What has come here of the event that was told; false: it has not come yet. */
static bool take(struct held_events *held, const struct skep_event *told, struct skep_event *ret)
{
	for (size_t i = 0; i < held->count; i++) {
		if (!same(&held->event[i], told))
			continue;
		*ret = held->event[i];
		held->count--;
		memmove(&held->event[i], &held->event[i + 1], (held->count - i) * sizeof *held->event);
		return true;
	}
	return false;
}

/* The event as plane 0 has seen it, with what this plane has of it. */
static bool complete(struct rank *rank, const struct skep_event *told, struct skep_event *ret)
{
	switch (told->kind) {
	case SKEP_EVENT_OP_DONE:
		if (!take(&rank->ahead, told, ret))
			return false;
		ret->fault = told->fault;
		ret->layer = told->layer;
		if (ret->u.done.op.kind != SKEP_OP_STEP) /* whose sum of parameters is this plane's own */
			ret->u.done.loss_nano = told->u.done.loss_nano; /* or the square of NORM */
		ret->u.done.elapsed_ns = told->u.done.elapsed_ns;
		break;
	case SKEP_EVENT_MESSAGE:
	case SKEP_EVENT_SEND_FAILED:
		if (!take(&rank->ahead, told, ret))
			return false;
		break;
	default:
		*ret = *told;
		break;
	}
	ret->now = told->now;
	return true;
}

/* False: what was told has not come here yet. */
static bool follow(struct rank *rank, const uint8_t *bytes, uint32_t count)
{
	struct skep_event told = {0}, event;
	uint64_t digest = 0;
	struct skep_wire wire = skep_wire_reader(bytes + 1, count - 1);
	skep_wire_u64(&wire, &digest);
	skep_wire_event(&wire, &told);
	if (!wire.ok) {
		skep_rank_fail(rank, "plane 0 has told an event that there is not");
		return true;
	}
	if (rank->phase == PHASE_LEAVING || !rank->alive)
		return true;
	if (digest != skep_node_digest(rank->node)) {
		skep_rank_fail(rank, "has decided otherwise than the rank of plane 0 that runs the same machine");
		return true;
	}
	if (!complete(rank, &told, &event))
		return false;
	skep_perform_told(rank, &event);
	return true;
}

bool skep_lockstep_turn(struct rank *rank)
{
	struct skep_plane *plane = rank->setup->plane;
	const uint8_t *bytes;
	uint32_t count;
	bool any = false;
	while (plane != NULL && (bytes = skep_plane_heard(plane, &count)) != NULL) {
		if (count > 0 && bytes[0] == WORD_HALT && skep_rank_is_root(rank))
			skep_rank_halt(rank, "another process of a worker's stage cannot go on");
		else if (count > 0 && bytes[0] == WORD_EVENT && !follow(rank, bytes, count))
			return any;
		skep_plane_forget(plane);
		any = true;
	}
	return any;
}

void skep_lockstep_halt(struct rank *rank)
{
	const uint8_t word = WORD_HALT;
	if (rank->setup->plane == NULL)
		return;
	atomic_store(rank->setup->abandoned, true);
	if (skep_rank_is_root(rank))
		skep_plane_tell(rank->setup->plane, &word, 1);
}

void skep_lockstep_finish(struct rank *rank)
{
	free(rank->ahead.event);
	rank->ahead = (struct held_events){0};
}
