/* SPDX-License-Identifier: Apache-2.0
 *
 * hops.h - what the hops of a ring take, for the searches of this folder. Members are numbered as they were given.
 */
#pragma once

#include "topologies/ring/ring.h"

struct hops {
	const struct skep_topology *topology;
	const uint32_t *machine; /* [size] */
	uint32_t size;
	double bytes;
	bool shares; /* several hops may cross one shared line, whose parts are counted in ... */
	/* ... [places * places] of the topology, and [places] each. */
	uint32_t *between, *out, *in;
	/* [size * size] row = sender; NULL in skep_ring_pace(), which looks at few of them. */
	uint64_t *alone_ns;
	double *lone_Bps, *latency_s; /* the same, and NULL too where nothing is shared */
};

struct value {
	uint64_t worst_ns, sum_ns;
	uint32_t worsts; /* hops that take as long */
	uint32_t worst;  /* the rank that the first of them leaves */
};

static inline uint64_t hop_ns(const struct hops *h, uint32_t from, uint32_t to)
{
	return h->alone_ns[(size_t)from * h->size + to];
}

/* Of a path over so many members, and, if it is closed, back to the first. */
struct value skep_hops_value(const struct hops *h, const uint32_t *order, uint32_t count, bool closed);

static inline bool better(const struct value *a, const struct value *b)
{
	return a->worst_ns != b->worst_ns ? a->worst_ns < b->worst_ns : a->sum_ns < b->sum_ns;
}

/* exact.c: at most SKEP_RING_EXACT_MAX members, and more than 2. `order` is the best one known so far, and then the best one.
 * *ret_exact as in ring.h. */
bool skep_hops_exact(const struct hops *h, uint32_t *order, bool *ret_exact);
/* search.c: the same for any number. */
bool skep_hops_search(const struct hops *h, uint32_t *order);
