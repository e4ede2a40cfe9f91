/* SPDX-License-Identifier: Apache-2.0
 *
 * hops.c - what hops take and orders come to; see ring.h.
 *
 * A line between two sites, or of one site, is counted as often as hops cross it. Where each place has one member no line is
 * crossed twice, and the table of what each hop takes by itself says all.
 */
#include "topologies/ring/hops.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "topologies/read/path.h"

#define NS_MAX 1e15 /* of a hop: sums of SKEP_RING_MEMBERS_MAX of them stay in range */

static uint64_t to_ns(double seconds)
{
	return (uint64_t)llround(fmin(1e9 * seconds, NS_MAX));
}

static uint32_t place_of(const struct skep_topology *t, uint32_t machine)
{
	assert(machine < t->machines);
	return t->machine[machine].place;
}

static double latency_s(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	uint32_t a = place_of(t, from), b = place_of(t, to);
	return skep_path_mean_s(t, a, b) + skep_path_overhead_s(t, a, b);
}

uint64_t skep_ring_alone_ns(const struct skep_topology *t, uint32_t from, uint32_t to, double bytes)
{
	return to_ns(latency_s(t, from, to) + bytes / skep_path_lone_Bps(t, from, to));
}

/* ---- lines that several hops cross ---------------------------------------------------------------------------------- */

/* Has a place two members, and is there a line that both may use? */
static bool may_share(const struct hops *h)
{
	const struct skep_topology *t = h->topology;
	bool crowded = false, lines = t->site_link != NULL;
	for (uint32_t i = 0; i < h->size; i++)
		h->in[place_of(t, h->machine[i])]++;
	for (uint32_t i = 0; i < t->places; i++) {
		crowded = crowded || h->in[i] > 1;
		h->in[i] = 0;
	}
	for (size_t i = 0; crowded && !lines && i < (size_t)t->places * t->places; i++)
		lines = isfinite(t->pair[i].shared_Bps);
	return crowded && lines;
}

static void cross(const struct hops *h, uint32_t from, uint32_t to, uint32_t by)
{
	uint32_t a = place_of(h->topology, h->machine[from]), b = place_of(h->topology, h->machine[to]);
	h->between[(size_t)a * h->topology->places + b] += by;
	h->out[a] += a == b ? 0 : by;
	h->in[b] += a == b ? 0 : by;
}

static double lesser(double line_Bps, uint32_t crossings, double rate_Bps, uint32_t *ret_crossings)
{
	if (!(line_Bps / crossings < rate_Bps))
		return rate_Bps;
	*ret_crossings = crossings;
	return line_Bps / crossings;
}

/* With the crossings that are counted. */
static double rate_Bps(const struct hops *h, uint32_t from, uint32_t to, uint32_t *ret_crossings)
{
	const struct skep_topology *t = h->topology;
	uint32_t source = h->machine[from], target = h->machine[to], a = place_of(t, source), b = place_of(t, target);
	double rate = h->lone_Bps ? h->lone_Bps[from * (size_t)h->size + to] : skep_path_lone_Bps(t, source, target);
	size_t pair = (size_t)a * t->places + b;
	*ret_crossings = 1;
	if (!h->shares)
		return rate;
	rate = lesser(t->pair[pair].shared_Bps, h->between[pair], rate, ret_crossings);
	if (!t->site_link || a == b)
		return rate;
	rate = lesser(t->site_link[a].up_Bps, h->out[a], rate, ret_crossings);
	return lesser(t->site_link[b].down_Bps, h->in[b], rate, ret_crossings);
}

static uint64_t counted_ns(const struct hops *h, uint32_t from, uint32_t to)
{
	uint32_t crossings;
	double rate = rate_Bps(h, from, to, &crossings);
	double late_s = h->latency_s ? h->latency_s[from * (size_t)h->size + to]
	                             : latency_s(h->topology, h->machine[from], h->machine[to]);
	return to_ns(late_s + h->bytes / rate);
}

/* ---- an order --------------------------------------------------------------------------------------------------------- */

static uint32_t after(const uint32_t *order, uint32_t count, uint32_t rank)
{
	return order[rank + 1 < count ? rank + 1 : 0];
}

struct value skep_hops_value(const struct hops *h, const uint32_t *order, uint32_t count, bool closed)
{
	assert(count > 0 && count <= h->size);
	struct value value = {0};
	uint32_t used = closed ? count : count - 1;
	for (uint32_t rank = 0; h->shares && rank < used; rank++)
		cross(h, order[rank], after(order, count, rank), 1);
	for (uint32_t rank = 0; rank < used; rank++) {
		uint32_t from = order[rank], to = after(order, count, rank);
		uint64_t ns = h->shares || !h->alone_ns ? counted_ns(h, from, to) : hop_ns(h, from, to);
		value.sum_ns += ns;
		value.worsts = ns > value.worst_ns ? 1 : value.worsts + (ns == value.worst_ns);
		value.worst = ns > value.worst_ns ? rank : value.worst;
		value.worst_ns = ns > value.worst_ns ? ns : value.worst_ns;
	}
	for (uint32_t rank = 0; h->shares && rank < used; rank++)
		cross(h, order[rank], after(order, count, rank), (uint32_t)-1);
	return value;
}

static bool make_table(struct hops *h)
{
	size_t n = h->size;
	h->alone_ns = malloc(n * n * sizeof *h->alone_ns);
	h->lone_Bps = h->shares ? malloc(n * n * sizeof *h->lone_Bps) : NULL;
	h->latency_s = h->shares ? malloc(n * n * sizeof *h->latency_s) : NULL;
	if (!h->alone_ns || (h->shares && (!h->lone_Bps || !h->latency_s)))
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			uint32_t from = h->machine[i], to = h->machine[j];
			h->alone_ns[i * n + j] = i == j ? 0 : skep_ring_alone_ns(h->topology, from, to, h->bytes);
			if (!h->shares)
				continue;
			h->lone_Bps[i * n + j] = skep_path_lone_Bps(h->topology, from, to);
			h->latency_s[i * n + j] = latency_s(h->topology, from, to);
		}
	return true;
}

/* The first four fields are set. False: no memory. */
static bool make(struct hops *h, bool table)
{
	size_t places = h->topology->places;
	h->between = calloc(places * places, sizeof *h->between);
	h->out = calloc(places, sizeof *h->out);
	h->in = calloc(places, sizeof *h->in);
	if (!h->between || !h->out || !h->in)
		return false;
	h->shares = may_share(h);
	return !table || make_table(h);
}

static void finish(struct hops *h)
{
	free(h->between);
	free(h->out);
	free(h->in);
	free(h->alone_ns);
	free(h->lone_Bps);
	free(h->latency_s);
}

/* ---- the public face ------------------------------------------------------------------------------------------------ */

static struct skep_ring_hop describe(const struct hops *h, const uint32_t *order, uint32_t rank, uint64_t ns)
{
	uint32_t from = order[rank], to = after(order, h->size, rank);
	struct skep_ring_hop hop = {.from = h->machine[from],
		.to = h->machine[to],
		.latency_s = latency_s(h->topology, h->machine[from], h->machine[to]),
		.ns = ns};
	for (uint32_t i = 0; h->shares && i < h->size; i++)
		cross(h, order[i], after(order, h->size, i), 1);
	hop.rate_Bps = rate_Bps(h, from, to, &hop.crossings);
	return hop;
}

static uint32_t *as_given(uint32_t size)
{
	uint32_t *order = malloc(size * sizeof *order);
	for (uint32_t i = 0; order && i < size; i++)
		order[i] = i;
	return order;
}

bool skep_ring_pace(const struct skep_topology *topology, const uint32_t *machine, uint32_t size, double bytes,
	struct skep_ring_pace *ret)
{
	assert(size > 1);
	struct hops h = {.topology = topology, .machine = machine, .size = size, .bytes = bytes};
	uint32_t *order = as_given(size);
	bool made = make(&h, false) && order;
	if (made) {
		struct value value = skep_hops_value(&h, order, size, true);
		*ret = (struct skep_ring_pace){
			.slowest = describe(&h, order, value.worst, value.worst_ns), .round_ns = value.sum_ns};
	}
	finish(&h);
	free(order);
	return made;
}

/* Into the order that `order` says, turned so that the machine which was first still is. */
static bool settle(uint32_t *machine, const uint32_t *order, uint32_t size)
{
	uint32_t *old = malloc(size * sizeof *old), first = 0;
	for (uint32_t i = 0; old && i < size; i++) {
		old[i] = machine[i];
		first = order[i] == 0 ? i : first;
	}
	for (uint32_t i = 0; old && i < size; i++)
		machine[i] = old[order[(first + i) % size]];
	free(old);
	return old != NULL;
}

bool skep_ring_arrange(
	const struct skep_topology *topology, uint32_t *machine, uint32_t size, double bytes, bool *ret_exact)
{
	assert(size <= SKEP_RING_MEMBERS_MAX);
	struct hops h = {.topology = topology, .machine = machine, .size = size, .bytes = bytes};
	*ret_exact = size <= SKEP_RING_EXACT_MAX;
	if (size <= 2)
		return true;
	uint32_t *order = as_given(size);
	bool made = make(&h, true) && order;
	if (made && (h.shares || size > SKEP_RING_EXACT_MAX))
		made = skep_hops_search(&h, order);
	if (made && size <= SKEP_RING_EXACT_MAX)
		made = skep_hops_exact(&h, order, ret_exact);
	made = made && settle(machine, order, size);
	finish(&h);
	free(order);
	return made;
}
