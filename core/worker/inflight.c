/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight.c - see inflight.h. Chained hash over slots; queues are lists of slots.
 */
#include "core/worker/inflight.h"
#include "core/schedule/pipelines.h"

#include <assert.h>
#include <string.h>

/* The directory keeps a swarm below half of what a stage can hold (rounds.c), so that overflow is rare. */
uint32_t skep_inflight_capacity(const struct skep_plan *plan)
{
	if (skep_plan_no_flush(plan)) /* of each of its pipelines what it is granted of each round that may be open */
		return (skep_plan_window(plan) + 2) *
		       (skep_plan_uneven(plan) ? plan->microbatches : skep_plan_wave(plan));
	if (skep_plan_uneven(
		    plan)) { /* what all senders hold, twice: at most as many as all workers, and one each for rounding up */
		uint64_t items = 4 * (uint64_t)plan->workers + 4;
		return items < SKEP_NO_WORK / 2 ? (uint32_t)items : SKEP_NO_WORK / 2;
	}
	if (skep_plan_fixed(plan)) { /* of one pipeline, and after a death what is left of it beside fresh ones */
		uint64_t items = skep_plan_model_chunks(plan) * (2 * (uint64_t)plan->in_flight + 4);
		return items < SKEP_NO_WORK / 2 ? (uint32_t)items : SKEP_NO_WORK / 2;
	}
	uint32_t owners = 0;
	for (uint32_t i = 0; i < plan->workers; i++)
		owners += plan->first_stage_of[i] == 0;
	return skep_swarm_capacity(plan, owners, plan->workers);
}

static uint32_t bucket_count(uint32_t capacity)
{
	uint32_t buckets = 8;
	while (buckets < capacity)
		buckets *= 2;
	return buckets;
}

size_t skep_inflight_size(uint32_t capacity)
{
	return sizeof(struct skep_inflight) + capacity * sizeof(struct skep_work) +
	       bucket_count(capacity) * sizeof(uint16_t);
}

static uint16_t *bucket(struct skep_inflight *table, uint32_t round, uint32_t item)
{
	uint16_t *buckets = (uint16_t *)(table->work + table->capacity);
	return &buckets[(item * 2 + (round & 1)) & (table->buckets - 1)];
}

void skep_inflight_init(struct skep_inflight *table, uint32_t capacity)
{
	memset(table, 0, skep_inflight_size(capacity));
	table->capacity = capacity;
	table->buckets = bucket_count(capacity);
	for (uint32_t i = 0; i < capacity; i++)
		table->work[i].next = (uint16_t)(i + 1); /* of the last one: never taken, the table is full then */
	memset(table->work + capacity, 0xff, table->buckets * sizeof(uint16_t)); /* SKEP_NO_WORK */
	struct skep_work_queue empty = {SKEP_NO_WORK, SKEP_NO_WORK};
	table->forward[0] = table->forward[1] = table->backward[0] = table->backward[1] = empty;
}

struct skep_work *skep_inflight_find(struct skep_inflight *table, uint32_t round, uint32_t item)
{
	for (uint16_t slot = *bucket(table, round, item); slot != SKEP_NO_WORK; slot = table->work[slot].hash_next) {
		struct skep_work *work = &table->work[slot];
		if (work->round == round && work->item == item && !work->doomed)
			return work;
	}
	return NULL;
}

struct skep_work *skep_inflight_add(struct skep_inflight *table, uint32_t round, uint32_t item)
{
	if (table->used == table->capacity)
		return NULL;
	uint16_t slot = table->free, *head = bucket(table, round, item);
	struct skep_work *work = &table->work[slot];
	table->free = work->next;
	table->used++;
	memset(work, 0, sizeof *work);
	work->round = round;
	work->item = work->microbatch = item;
	work->up.index = work->down.index = work->returned.index = SKEP_NO_INDEX;
	work->next = SKEP_NO_WORK;
	work->hash_next = *head;
	*head = slot;
	return work;
}

static void unqueue(struct skep_inflight *table, struct skep_work_queue *queue, uint16_t slot)
{
	assert(table->ready > 0);
	uint16_t before = SKEP_NO_WORK;
	for (uint16_t i = queue->head; i != slot; i = table->work[i].next)
		before = i;
	uint16_t after = table->work[slot].next;
	table->ready--;
	if (before == SKEP_NO_WORK)
		queue->head = after;
	else
		table->work[before].next = after;
	if (after == SKEP_NO_WORK)
		queue->tail = before;
}

void skep_work_unqueue(struct skep_inflight *table, struct skep_work *work)
{
	uint16_t slot = (uint16_t)(work - table->work);
	if (work->state == SKEP_WORK_READY_FORWARD)
		unqueue(table, &table->forward[work->round & 1], slot);
	else if (work->state == SKEP_WORK_READY_BACKWARD)
		unqueue(table, &table->backward[work->round & 1], slot);
}

void skep_inflight_remove(struct skep_inflight *table, struct skep_work *work)
{
	assert(table->used > 0);
	uint16_t slot = (uint16_t)(work - table->work), *link = bucket(table, work->round, work->item);
	skep_work_unqueue(table, work);
	while (*link != slot)
		link = &table->work[*link].hash_next;
	*link = work->hash_next;
	work->state = SKEP_WORK_FREE;
	work->next = table->free;
	table->free = slot;
	table->used--;
}

void skep_work_push(struct skep_inflight *table, struct skep_work_queue *queue, struct skep_work *work)
{
	assert(work->state == SKEP_WORK_READY_FORWARD || work->state == SKEP_WORK_READY_BACKWARD);
	uint16_t slot = (uint16_t)(work - table->work);
	work->next = SKEP_NO_WORK;
	table->ready++;
	if (queue->head == SKEP_NO_WORK)
		queue->head = slot;
	else
		table->work[queue->tail].next = slot;
	queue->tail = slot;
}

struct skep_work *skep_work_pop(struct skep_inflight *table, struct skep_work_queue *queue)
{
	if (queue->head == SKEP_NO_WORK)
		return NULL;
	struct skep_work *work = &table->work[queue->head];
	queue->head = work->next;
	table->ready--;
	work->next = SKEP_NO_WORK;
	return work;
}
