/* SPDX-License-Identifier: Apache-2.0
 *
 * due.h - which transfer changes next, and when: by (time, start order). For network.c.
 *
 * The line has transfers that wait for their latency, in order; the heap has all others: arrivals, and latencies that end
 * before that of the last one in the line.
 */
#pragma once

#include "topologies/network/state.h"

static inline bool skep_due_sooner(const struct skep_due *a, const struct skep_due *b)
{
	return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

/* The first of all; NULL: there is none. Asked before and after each event, so it is no call. */
static inline struct skep_due *skep_due_first(struct skep_network *network)
{
	struct skep_due *line = network->lined > 0 ? &network->line[network->line_first] : NULL;
	if (network->dues == 0 || (line && skep_due_sooner(line, &network->due[0])))
		return line;
	return &network->due[0];
}

void skep_due_pop(struct skep_network *network, const struct skep_due *first);

/* Of a transfer that waits for its latency, and began after all others. */
void skep_due_add(struct skep_network *network, struct skep_due entry);
/* Of a flow, which may be in the heap already. */
void skep_due_set(struct skep_network *network, uint32_t flow, skep_time time);
/* Of a small transfer whose turn has come. */
void skep_due_put_small(struct skep_network *network, struct skep_due entry);

struct skep_due *skep_due_line_at(struct skep_network *network, uint32_t nth);
void skep_due_remove(struct skep_network *network, uint32_t at); /* from the heap */
bool skep_due_grow(struct skep_network *network);                /* false: no memory */
