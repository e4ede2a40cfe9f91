/* SPDX-License-Identifier: Apache-2.0
 *
 * traffic.c - a hash table from (source, destination, class) to what was sent. Kept true: it is at most half full,
 * and nothing is deleted from it.
 *
 * In a large swarm the table is larger than the caches, and consecutive messages belong to different pairs. So
 * additions are collected and looked up together in one loop, in which the processor waits for many cache lines at a
 * time.
 */
#include "sim/traffic.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "topologies/network/large_pages.h"

void skep_traffic_finish(struct skep_traffic_table *table)
{
	free(table->use);
	*table = (struct skep_traffic_table){0};
}

static struct skep_link_use *find(
	const struct skep_traffic_table *table, uint32_t source, uint32_t destination, uint8_t traffic)
{
	assert(table->count * 2 <= table->size || table->size == 0);
	uint64_t key = ((uint64_t)source << 32 | destination) * SKEP_TRAFFICS + traffic;
	size_t slot = (key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table->size - 1);
	for (;; slot = (slot + 1) & (table->size - 1)) {
		struct skep_link_use *use = &table->use[slot];
		if (use->messages == 0 ||
			(use->source == source && use->destination == destination && use->traffic == traffic))
			return use;
	}
}

static bool grow(struct skep_traffic_table *table)
{
	struct skep_traffic_table grown = {.size = table->size ? table->size * 2 : 256};
	grown.use = calloc(grown.size, sizeof *grown.use);
	if (!grown.use)
		return false;
	skep_large_pages(grown.use, grown.size * sizeof *grown.use);
	for (size_t i = 0; i < table->size; i++) {
		const struct skep_link_use *use = &table->use[i];
		if (use->messages > 0)
			*find(&grown, use->source, use->destination, use->traffic) = *use;
	}
	free(table->use);
	table->use = grown.use;
	table->size = grown.size;
	return true;
}

static bool put(struct skep_traffic_table *table, const struct skep_link_use *more)
{
	assert(more->messages > 0);
	if (table->count * 2 >= table->size && !grow(table))
		return false;
	struct skep_link_use *use = find(table, more->source, more->destination, more->traffic);
	if (use->messages == 0) {
		*use = *more;
		table->count++;
		return true;
	}
	use->messages += more->messages;
	use->bytes += more->bytes;
	return true;
}

static bool put_waiting(struct skep_traffic_table *table)
{
	bool good = true;
	for (uint32_t i = 0; i < table->waits; i++)
		good = put(table, &table->waiting[i]) && good;
	table->waits = 0;
	return good;
}

bool skep_traffic_add(struct skep_traffic_table *table, uint32_t source, uint32_t destination, uint8_t traffic,
	uint64_t messages, uint64_t bytes, double egress_usd)
{
	assert(traffic < SKEP_TRAFFICS);
	assert(table->waits < SKEP_TRAFFIC_WAITING);
	table->waiting[table->waits++] = (struct skep_link_use){
		.source = source, .destination = destination, .traffic = traffic, .messages = messages, .bytes = bytes};
	table->untold.bytes[traffic] += bytes;
	table->untold.egress_usd += egress_usd;
	return table->waits < SKEP_TRAFFIC_WAITING || put_waiting(table);
}

void skep_traffic_tell(struct skep_traffic_table *table, const struct skep_recorder *recorder)
{
	if (recorder->sent)
		recorder->sent(recorder->context, &table->untold);
	table->untold = (struct skep_sent){0};
}

static int by_link(const void *a, const void *b)
{
	const struct skep_link_use *x = a, *y = b;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->destination != y->destination)
		return x->destination < y->destination ? -1 : 1;
	return (int)x->traffic - (int)y->traffic;
}

bool skep_traffic_report(struct skep_traffic_table *table, const struct skep_recorder *recorder)
{
	size_t count = 0;
	bool good = put_waiting(table);
	skep_traffic_tell(table, recorder);
	for (size_t i = 0; i < table->size; i++)
		if (table->use[i].messages > 0)
			table->use[count++] = table->use[i];
	if (count > 0)
		qsort(table->use, count, sizeof *table->use, by_link);
	for (size_t i = 0; recorder->link && i < count; i++)
		recorder->link(recorder->context, &table->use[i]);
	skep_traffic_finish(table);
	return good;
}
