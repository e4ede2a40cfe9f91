/* SPDX-License-Identifier: Apache-2.0
 *
 * due.c - see due.h. The heap has four children below each entry; a flow knows its place in it.
 */
#include "topologies/network/due.h"

#include <stdlib.h>

#define LINE_ROW 4u /* entries of the line that are as good as a row of the heap */

/* ---- the heap of flows ---------------------------------------------------------------------------------------- */

static void due_put(struct skep_network *network, uint32_t at, struct skep_due entry)
{
	network->due[at] = entry;
	if (entry.flow != SKEP_NO_FLOW)
		network->flow[entry.flow].position = at;
}

static void due_up(struct skep_network *network, uint32_t at, struct skep_due entry)
{
	while (at > 0 && skep_due_sooner(&entry, &network->due[(at - 1) / 4])) {
		due_put(network, at, network->due[(at - 1) / 4]);
		at = (at - 1) / 4;
	}
	due_put(network, at, entry);
}

/* Prefetches for an entry that is `level` rows before its turn: first the flow itself, then its links. `ends`: it is an
 * arrival. */
static void come_up(struct skep_network *network, const struct skep_due *entry, uint32_t level, bool ends)
{
	const struct skep_flow *flow = entry->flow != SKEP_NO_FLOW ? &network->flow[entry->flow] : NULL;
	if (ends)
		network->soon[level] = entry->tag;
	if (flow && level == SKEP_NETWORK_ROWS) {
		__builtin_prefetch(flow);
		skep_sharing_fetch(&network->sharing, entry->flow);
	} else if (flow && level == SKEP_NETWORK_ROWS - 1) {
		__builtin_prefetch(&network->sharing.link[2 * flow->source]);
		__builtin_prefetch(&network->sharing.link[2 * flow->destination + 1]);
	}
}

static void due_down(struct skep_network *network, uint32_t at, struct skep_due entry)
{
	uint32_t level = at == 0 ? 0 : SKEP_NETWORK_ROWS + 1; /* only what leaves the top lets others come up */
	for (;;) {
		uint32_t child = 4 * at + 1, end = child + 4 < network->dues ? child + 4 : network->dues;
		if (child >= end)
			break;
		for (uint32_t other = child + 1; other < end; other++)
			if (skep_due_sooner(&network->due[other], &network->due[child]))
				child = other;
		if (!skep_due_sooner(&network->due[child], &entry))
			break;
		due_put(network, at, network->due[child]);
		if (level > 0 && level <= network->rows)
			come_up(network, &network->due[at], level, true);
		level++;
		at = child;
	}
	due_put(network, at, entry);
}

void skep_due_set(struct skep_network *network, uint32_t f, skep_time time)
{
	struct skep_flow *flow = &network->flow[f];
	struct skep_due entry = {time, flow->sequence, flow->tag, f};
	if (flow->position == SKEP_NO_FLOW)
		due_up(network, network->dues++, entry);
	else if (skep_due_sooner(&entry, &network->due[flow->position]))
		due_up(network, flow->position, entry);
	else
		due_down(network, flow->position, entry);
}

void skep_due_remove(struct skep_network *network, uint32_t at)
{
	if (network->due[at].flow != SKEP_NO_FLOW)
		network->flow[network->due[at].flow].position = SKEP_NO_FLOW;
	struct skep_due last = network->due[--network->dues];
	if (at == network->dues)
		return;
	if (at > 0 && skep_due_sooner(&last, &network->due[(at - 1) / 4]))
		due_up(network, at, last);
	else
		due_down(network, at, last);
}

/* ---- the line ------------------------------------------------------------------------------------------------- */

struct skep_due *skep_due_line_at(struct skep_network *network, uint32_t nth)
{
	uint32_t at = network->line_first + nth;
	return &network->line[at < network->due_capacity ? at : at - network->due_capacity];
}

void skep_due_pop(struct skep_network *network, const struct skep_due *first)
{
	if (first == network->due) {
		skep_due_remove(network, 0);
		return;
	}
	network->lined--;
	network->line_first = network->line_first + 1 < network->due_capacity ? network->line_first + 1 : 0;
	for (uint32_t row = 1; row <= network->rows && network->lined > LINE_ROW * row; row++)
		come_up(network, skep_due_line_at(network, LINE_ROW * row), row,
			skep_due_line_at(network, LINE_ROW * row)->flow == SKEP_NO_FLOW);
}

void skep_due_add(struct skep_network *network, struct skep_due entry)
{
	if (network->lined == 0 || skep_due_line_at(network, network->lined - 1)->time <= entry.time)
		*skep_due_line_at(network, network->lined++) = entry;
	else if (entry.flow == SKEP_NO_FLOW)
		due_up(network, network->dues++, entry);
	else
		skep_due_set(network, entry.flow, entry.time);
}

void skep_due_put_small(struct skep_network *network, struct skep_due entry)
{
	due_up(network, network->dues++, entry);
}

bool skep_due_grow(struct skep_network *network)
{
	uint32_t capacity = network->due_capacity ? network->due_capacity * 2 : 64;
	struct skep_due *line = malloc(capacity * sizeof *line);
	struct skep_due *due = line ? realloc(network->due, capacity * sizeof *due) : NULL;
	if (!due) {
		free(line);
		return false;
	}
	for (uint32_t i = 0; i < network->lined; i++)
		line[i] = *skep_due_line_at(network, i);
	free(network->line);
	network->line = line;
	network->line_first = 0;
	network->due = due;
	network->due_capacity = capacity;
	return true;
}
