/* SPDX-License-Identifier: Apache-2.0
 *
 * evict.c - see evict.h.
 */
#include "exec/tcp/evict.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t low(const struct skep_disconnect *pair)
{
	return pair->by < pair->about ? pair->by : pair->about;
}

static uint32_t high(const struct skep_disconnect *pair)
{
	return pair->by < pair->about ? pair->about : pair->by;
}

static int by_pair(const void *a, const void *b)
{
	uint64_t x = (uint64_t)low(a) << 32 | high(a), y = (uint64_t)low(b) << 32 | high(b);
	return x < y ? -1 : x > y;
}

uint32_t skep_evict_pairs(struct skep_disconnect *disconnect, uint32_t count)
{
	uint32_t kept = 0;
	if (count > 0)
		qsort(disconnect, count, sizeof *disconnect, by_pair);
	for (uint32_t i = 0; i < count; i++) {
		if (kept == 0 || by_pair(&disconnect[kept - 1], &disconnect[i]) != 0)
			disconnect[kept++] = disconnect[i];
	}
	return kept;
}

bool skep_evict_next(
	struct skep_disconnect *disconnect, uint32_t *count, uint32_t *edges, uint32_t ranks, struct skep_eviction *ret)
{
	uint32_t kept = 0;
	memset(edges, 0, ranks * sizeof *edges);
	for (uint32_t i = 0; i < *count; i++) {
		assert(low(&disconnect[i]) < high(&disconnect[i]) && high(&disconnect[i]) < ranks);
		edges[disconnect[i].by]++;
		edges[disconnect[i].about]++;
	}
	*ret = (struct skep_eviction){.other = UINT32_MAX};
	for (uint32_t rank = 0; rank < ranks; rank++) {
		if (edges[rank] > 0 && edges[rank] >= ret->edges)
			*ret = (struct skep_eviction){rank, edges[rank], UINT32_MAX};
	}
	for (uint32_t i = 0; i < *count; i++) {
		const struct skep_disconnect pair = disconnect[i];
		uint32_t other = pair.by == ret->rank ? pair.about : pair.by;
		if (pair.by != ret->rank && pair.about != ret->rank)
			disconnect[kept++] = pair;
		else if (other < ret->other)
			ret->other = other;
	}
	bool any = *count > 0;
	assert(kept + ret->edges == *count);
	*count = kept;
	return any;
}
