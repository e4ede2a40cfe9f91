/* SPDX-License-Identifier: Apache-2.0
 *
 * event_queue.c - decides which event happens next: the earliest, ties by the drawn key if asked for, then by number.
 */
#include "tests/cluster/internal.h"

static bool before(const struct entry *a, const struct entry *b)
{
	if (a->at != b->at)
		return a->at < b->at;
	if (a->tie != b->tie)
		return a->tie < b->tie;
	return a->number < b->number;
}

static void heap_push(struct cluster *c, struct entry entry)
{
	c->heap = grown(c->heap, &c->heap_capacity, c->heap_count + 1, sizeof(*c->heap));
	uint32_t at = c->heap_count++;
	while (at > 0 && before(&entry, &c->heap[(at - 1) / 2])) {
		c->heap[at] = c->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	c->heap[at] = entry;
}

static struct entry heap_pop(struct cluster *c)
{
	struct entry top = c->heap[0], last = c->heap[--c->heap_count];
	uint32_t at = 0;
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= c->heap_count)
			break;
		if (child + 1 < c->heap_count && before(&c->heap[child + 1], &c->heap[child]))
			child++;
		if (!before(&c->heap[child], &last))
			break;
		c->heap[at] = c->heap[child];
		at = child;
	}
	c->heap[at] = last;
	return top;
}

static bool is_work(uint8_t kind)
{
	return kind == EVENT_MESSAGE || kind == EVENT_FAILED || kind == EVENT_OP;
}

struct event *agenda_add(struct cluster *c, skep_time at, uint8_t kind, uint32_t machine)
{
	uint32_t slot = c->event_free;
	if (slot != ANY) {
		c->event_free = c->event[slot].next_free;
	} else {
		c->event = grown(c->event, &c->event_capacity, c->events + 1, sizeof(*c->event));
		slot = c->events++;
	}
	struct event *event = &c->event[slot];
	*event = (struct event){.kind = kind, .machine = machine, .life = c->process[machine].life};
	c->work += is_work(kind);
	uint32_t tie = c->setup.shuffle_ties ? (uint32_t)draw(&c->random) : 0;
	heap_push(c, (struct entry){at < c->now ? c->now : at, c->number++, tie, slot});
	return event;
}

void agenda_postpone(struct cluster *c, const struct event *event, skep_time at)
{
	struct event copy = *event;
	*agenda_add(c, at, copy.kind, copy.machine) = copy;
}

void agenda_keep(struct cluster *c, bool (*kept)(const struct event *event))
{
	uint32_t count = c->heap_count;
	c->heap_count = 0;
	for (uint32_t i = 0; i < count; i++) { /* pushed to places that were looked at before */
		struct entry entry = c->heap[i];
		struct event *event = &c->event[entry.event];
		if (kept(event)) {
			heap_push(c, entry);
			continue;
		}
		c->work -= is_work(event->kind);
		event->next_free = c->event_free;
		c->event_free = entry.event;
	}
}

skep_time agenda_next(const struct cluster *c)
{
	return c->heap_count > 0 ? c->heap[0].at : SKEP_TIME_NEVER;
}

struct event agenda_take(struct cluster *c)
{
	struct entry entry = heap_pop(c);
	struct event event = c->event[entry.event];
	c->event[entry.event].next_free = c->event_free;
	c->event_free = entry.event;
	c->work -= is_work(event.kind);
	c->now = entry.at;
	return event;
}
