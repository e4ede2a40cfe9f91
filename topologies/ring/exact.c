/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.c - the best ring of a few members.
 *
 * Where each hop takes what it takes alone: dynamic programming over subsets (Held and Karp 1962). A path from member 0 through a
 * subset to its last member is extended by one member at a time, first for the least slowest hop, then among the hops that are
 * no slower than that for the least sum.
 *
 * Where hops share lines a path does not say what its hops take. What they take alone bounds that from below, and mostly the
 * best order known comes to just this. If not, all paths are tried, those left out whose slowest hop is no faster than the best
 * order's (a longer path only adds crossings), and of machines that are alike, in place and rates, only the first.
 */
#include "topologies/ring/hops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX
#define OTHERS (SKEP_RING_EXACT_MAX - 1)
#define PATHS_MAX 2000000u /* then the best order so far counts, and nothing is promised */

struct table { /* of paths from member 0 through the others in a mask to one of them, `last`: [mask][last] */
	uint64_t least[1u << OTHERS][OTHERS];
	uint8_t before[1u << OTHERS][OTHERS];
};

static uint64_t joined(uint64_t path, uint64_t hop, bool sum)
{
	return sum ? path + hop : path > hop ? path : hop;
}

static void extend(struct table *t, const struct hops *h, uint32_t mask, uint32_t last, uint64_t limit, bool sum)
{
	if (!(mask >> last & 1) || t->least[mask][last] == NEVER)
		return;
	for (uint32_t next = 0; next + 1 < h->size; next++) {
		uint64_t hop = hop_ns(h, last + 1, next + 1), path = joined(t->least[mask][last], hop, sum);
		uint32_t with = mask | 1u << next;
		if (with == mask || hop > limit || path >= t->least[with][next])
			continue;
		t->least[with][next] = path;
		t->before[with][next] = (uint8_t)last;
	}
}

/* Of cycles without a hop over the limit the least slowest hop, or sum. */
static uint64_t best_cycle(struct table *t, const struct hops *h, uint64_t limit, bool sum, uint32_t *ret_order)
{
	uint32_t others = h->size - 1, all = (1u << others) - 1, last = 0;
	uint64_t best = NEVER;
	memset(t->least, 0xff, sizeof t->least);
	for (uint32_t first = 0; first < others; first++)
		if (hop_ns(h, 0, first + 1) <= limit)
			t->least[1u << first][first] = hop_ns(h, 0, first + 1);
	for (uint32_t mask = 1; mask < all; mask++)
		for (uint32_t end = 0; end < others; end++)
			extend(t, h, mask, end, limit, sum);
	for (uint32_t end = 0; end < others; end++) {
		uint64_t hop = hop_ns(h, end + 1, 0);
		if (t->least[all][end] == NEVER || hop > limit || joined(t->least[all][end], hop, sum) >= best)
			continue;
		best = joined(t->least[all][end], hop, sum);
		last = end;
	}
	assert(best != NEVER);
	for (uint32_t rank = others, mask = all; rank > 0; rank--) {
		uint32_t before = t->before[mask][last];
		ret_order[rank] = last + 1;
		mask &= ~(1u << last);
		last = before;
	}
	ret_order[0] = 0;
	return best;
}

/* ---- with shared lines ------------------------------------------------------------------------------------------------ */

struct tried {
	const struct hops *h;
	uint64_t floor_ns; /* no order is faster than this */
	struct value best;
	uint32_t *order; /* that has it */
	uint32_t path[SKEP_RING_EXACT_MAX];
	uint32_t paths;
};

static bool alike(const struct hops *h, uint32_t i, uint32_t j)
{
	const struct skep_machine *a = &h->topology->machine[h->machine[i]], *b = &h->topology->machine[h->machine[j]];
	bool slower = a->up_Bps < b->up_Bps || a->down_Bps < b->down_Bps;
	bool faster = a->up_Bps > b->up_Bps || a->down_Bps > b->down_Bps;
	return a->place == b->place && !slower && !faster;
}

static bool first_of_its_kind(const struct hops *h, uint32_t used, uint32_t member)
{
	for (uint32_t i = 0; i < member; i++)
		if (!(used >> i & 1) && alike(h, i, member))
			return false;
	return true;
}

/* Not deeper than SKEP_RING_EXACT_MAX. */
static void try_all(struct tried *t, uint32_t count, uint32_t used)
{
	assert(count >= 1 && count <= t->h->size);
	struct value value = skep_hops_value(t->h, t->path, count, count == t->h->size);
	t->paths++;
	if (value.worst_ns >= t->best.worst_ns)
		return;
	if (count == t->h->size) {
		t->best = value;
		memcpy(t->order, t->path, count * sizeof *t->order);
		return;
	}
	for (uint32_t next = 1; next < t->h->size; next++) {
		bool over = t->paths >= PATHS_MAX || t->best.worst_ns == t->floor_ns;
		if (over || used >> next & 1 || !first_of_its_kind(t->h, used, next))
			continue;
		t->path[count] = next;
		try_all(t, count + 1, used | 1u << next);
	}
}

bool skep_hops_exact(const struct hops *h, uint32_t *order, bool *ret_exact)
{
	assert(h->size > 2 && h->size <= SKEP_RING_EXACT_MAX);
	uint32_t found[SKEP_RING_EXACT_MAX];
	struct table *table = malloc(sizeof *table);
	if (!table)
		return false;
	uint64_t floor_ns = best_cycle(table, h, NEVER, false, found);
	best_cycle(table, h, floor_ns, true, found);
	free(table);
	struct value value = skep_hops_value(h, found, h->size, true), known = skep_hops_value(h, order, h->size, true);
	if (!h->shares || better(&value, &known)) {
		memcpy(order, found, h->size * sizeof *order);
		known = value;
	}
	struct tried tried = {.h = h, .floor_ns = floor_ns, .best = known, .order = order};
	if (known.worst_ns > floor_ns)
		try_all(&tried, 1, 1);
	*ret_exact = tried.paths < PATHS_MAX;
	return true;
}
