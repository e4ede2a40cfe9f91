/* SPDX-License-Identifier: Apache-2.0
 *
 * evict.c - see evict.h. Disconnects are few: each is looked at once for each other one.
 */
#include "exec/tcp/evict.h"

#include <stdbool.h>

static bool concerns(const struct skep_disconnect *disconnect, uint32_t rank)
{
	return disconnect->by == rank || disconnect->about == rank;
}

static bool same_pair(const struct skep_disconnect *a, const struct skep_disconnect *b)
{
	return concerns(a, b->by) && concerns(a, b->about);
}

/* Pairs that this rank is one of, each counted once, whichever of the two complained. */
static uint32_t edges(const struct skep_disconnect *disconnect, uint32_t count, uint32_t rank)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		bool told = !concerns(&disconnect[i], rank);
		for (uint32_t j = 0; j < i && !told; j++)
			told = same_pair(&disconnect[j], &disconnect[i]);
		sum += !told;
	}
	return sum;
}

uint32_t skep_evict_next(struct skep_disconnect *disconnect, uint32_t *count)
{
	uint32_t worst = UINT32_MAX, most = 0, kept = 0;
	for (uint32_t i = 0; i < 2 * *count; i++) {
		uint32_t rank = i % 2 == 0 ? disconnect[i / 2].by : disconnect[i / 2].about;
		uint32_t sum = edges(disconnect, *count, rank);
		if (sum > most || (sum == most && rank > worst)) {
			most = sum;
			worst = rank;
		}
	}
	for (uint32_t i = 0; i < *count; i++) {
		if (!concerns(&disconnect[i], worst))
			disconnect[kept++] = disconnect[i];
	}
	*count = kept;
	return worst;
}
