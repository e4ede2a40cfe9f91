/* SPDX-License-Identifier: Apache-2.0
 *
 * network.c - decides when every flow arrives.
 *
 * What is kept true
 *   - The limits of a flow that can bind are links of `sharing`: up and down of each machine and of each place are always
 *     there, a pair's and a pair of places' while a flow needs them. Left out is what cannot bind: an unlimited one, and a
 *     pair's that is no less than up or down. A flow that waits for its latency crosses no link. What limits one flow by
 *     itself (window, loss) is its cap and no link.
 *   - A small transfer is not a flow, only an entry of the line or the heap.
 *   - Starts and ends only mark links as touched; rates are solved when the clock is about to move on, so that all that
 *     happens at one instant is solved together.
 *   - The line and the heap hold every transfer whose next change is known, by (time, start order). A flow that has begun to
 *     share since rates were solved is in neither.
 *   - Latencies are much alike, so transfers that wait for one mostly end that wait in the order in which they began.
 *     These are in the line; a transfer that would be sooner than the last one of the line goes to the heap. A flow
 *     that shares is never in the line.
 *   - `left` is what remained at `since`; both are brought up to date only when the rate changes, so a flow whose rate
 *     stays is not touched and its finish time is rounded once.
 */
#include "topologies/network/network.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "topologies/network/large_pages.h"
#include "topologies/network/order.h"
#include "topologies/network/sender.h"
#include "topologies/network/sharing.h"
#include "topologies/read/path.h"

#define NONE UINT32_MAX
#define SHARED_KEY (UINT64_C(1) << 63)
#define LINE_ROW 4u /* entries of the line that are as good as a row of the heap */

struct flow { /* a small transfer has none */
	uint64_t tag, sequence;
	skep_time since;
	double left, rate; /* bytes at `since`, bytes per ns from then on */
	double cap;        /* bytes per ns; INFINITY: none */
	uint32_t source, destination;
	uint32_t position; /* in the heap; in the free list: the next free flow */
	bool sharing;      /* the latency is over */
};

struct due { /* an entry of the line or the heap */
	skep_time time;
	uint64_t sequence, tag;
	uint32_t flow; /* NONE: a small transfer, this is all of it */
};

struct skep_network {
	const struct skep_topology *topology;
	skep_time clock;
	uint64_t sequence;
	struct flow *flow;
	struct due *due;
	uint32_t transfers; /* under way, small ones and flows */
	uint32_t flow_capacity, free_flow;
	uint32_t dues, due_capacity; /* of the heap; room for all transfers */
	struct due *line;            /* [due_capacity], a ring */
	uint32_t line_first, lined;
	struct skep_sharing sharing;
	struct skep_sender *sender; /* [machines + 1]; NULL: no link has a profile */
	uint32_t rows;              /* how many rows ahead entries are prefetched; 0: none */
	uint64_t soon[SKEP_NETWORK_ROWS + 1];
	struct skep_order order;
};

/* ---- the heap of flows ---------------------------------------------------------------------------------------- */

static bool sooner(const struct due *a, const struct due *b)
{
	return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static void due_put(struct skep_network *network, uint32_t at, struct due entry)
{
	network->due[at] = entry;
	if (entry.flow != NONE)
		network->flow[entry.flow].position = at;
}

static void due_up(struct skep_network *network, uint32_t at, struct due entry)
{
	while (at > 0 && sooner(&entry, &network->due[(at - 1) / 4])) {
		due_put(network, at, network->due[(at - 1) / 4]);
		at = (at - 1) / 4;
	}
	due_put(network, at, entry);
}

/* Prefetches for an entry that is `level` rows before its turn: first the flow itself, then its links. `ends`: it is an
 * arrival. */
static void come_up(struct skep_network *network, const struct due *entry, uint32_t level, bool ends)
{
	const struct flow *flow = entry->flow != NONE ? &network->flow[entry->flow] : NULL;
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

static void due_down(struct skep_network *network, uint32_t at, struct due entry)
{
	uint32_t level = at == 0 ? 0 : SKEP_NETWORK_ROWS + 1; /* only what leaves the top lets others come up */
	for (;;) {
		uint32_t child = 4 * at + 1, end = child + 4 < network->dues ? child + 4 : network->dues;
		if (child >= end)
			break;
		for (uint32_t other = child + 1; other < end; other++)
			if (sooner(&network->due[other], &network->due[child]))
				child = other;
		if (!sooner(&network->due[child], &entry))
			break;
		due_put(network, at, network->due[child]);
		if (level > 0 && level <= network->rows)
			come_up(network, &network->due[at], level, true);
		level++;
		at = child;
	}
	due_put(network, at, entry);
}

static void due_set(struct skep_network *network, uint32_t f, skep_time time)
{
	struct flow *flow = &network->flow[f];
	struct due entry = {time, flow->sequence, flow->tag, f};
	if (flow->position == NONE)
		due_up(network, network->dues++, entry);
	else if (sooner(&entry, &network->due[flow->position]))
		due_up(network, flow->position, entry);
	else
		due_down(network, flow->position, entry);
}

static void due_remove(struct skep_network *network, uint32_t at)
{
	if (network->due[at].flow != NONE)
		network->flow[network->due[at].flow].position = NONE;
	struct due last = network->due[--network->dues];
	if (at == network->dues)
		return;
	if (at > 0 && sooner(&last, &network->due[(at - 1) / 4]))
		due_up(network, at, last);
	else
		due_down(network, at, last);
}

/* ---- the line ------------------------------------------------------------------------------------------------- */

static struct due *line_at(struct skep_network *network, uint32_t nth)
{
	uint32_t at = network->line_first + nth;
	return &network->line[at < network->due_capacity ? at : at - network->due_capacity];
}

/* The first of all transfers, in the line or the heap; NULL: there is none. */
static struct due *first_due(struct skep_network *network)
{
	struct due *line = network->lined > 0 ? &network->line[network->line_first] : NULL;
	if (network->dues == 0 || (line && sooner(line, &network->due[0])))
		return line;
	return &network->due[0];
}

static void due_pop(struct skep_network *network, const struct due *first)
{
	if (first == network->due) {
		due_remove(network, 0);
		return;
	}
	network->lined--;
	network->line_first = network->line_first + 1 < network->due_capacity ? network->line_first + 1 : 0;
	for (uint32_t row = 1; row <= network->rows && network->lined > LINE_ROW * row; row++)
		come_up(network, line_at(network, LINE_ROW * row), row, line_at(network, LINE_ROW * row)->flow == NONE);
}

/* Of a transfer that waits for its latency, and began after all others. */
static void due_add(struct skep_network *network, struct due entry)
{
	if (network->lined == 0 || line_at(network, network->lined - 1)->time <= entry.time)
		*line_at(network, network->lined++) = entry;
	else if (entry.flow == NONE)
		due_up(network, network->dues++, entry);
	else
		due_set(network, entry.flow, entry.time);
}

static const struct skep_pair *pair_of(const struct skep_topology *topology, uint32_t source, uint32_t destination)
{
	size_t row = topology->machine[source].place;
	return &topology->pair[row * topology->places + topology->machine[destination].place];
}

/* The least capacity between two machines for a flow with this cap, bytes per ns. */
static double least_capacity(const struct skep_topology *topology, uint32_t source, uint32_t destination, double cap)
{
	double access = fmin(topology->machine[source].up_Bps, topology->machine[destination].down_Bps);
	double least =
		skep_path_least_Bps(topology, topology->machine[source].place, topology->machine[destination].place);
	return fmin(1e-9 * fmin(access, least), cap);
}

/* ---- flows ---------------------------------------------------------------------------------------------------- */

/* Rounded up; by hand, since ceil() is a call where the processor is not known to have it. */
static skep_time finish_time(skep_time now, double bytes, double rate)
{
	double ns = bytes / rate;
	if (!(ns < 1e18))
		return now + (skep_time)1e18;
	skep_time whole = (skep_time)ns;
	return now + whole + ((double)whole < ns);
}

/* Takes over the rate that was solved. */
static void set_rate(struct skep_network *network, uint32_t f)
{
	struct flow *flow = &network->flow[f];
	double rate = network->sharing.share[f].rate;
	if (flow->rate == rate)
		return;
	if (flow->position != NONE && network->due[flow->position].time <= network->clock)
		return; /* it arrives at this very instant */
	double left = flow->left - flow->rate * (double)(network->clock - flow->since);
	flow->left = left > 0 ? left : 0;
	flow->since = network->clock;
	flow->rate = rate;
	due_set(network, f, finish_time(network->clock, flow->left, rate));
}

static void solve(struct skep_network *network)
{
	if (network->sharing.touches == 0 && network->sharing.changes == 0)
		return;
	skep_sharing_solve(&network->sharing);
	for (uint32_t i = 0; i < network->sharing.changes; i++)
		set_rate(network, network->sharing.changed[i]);
	skep_sharing_noted(&network->sharing);
}

/* The ways out of and into places come after those of the machines. */
static void join_site_links(struct skep_network *network, uint32_t f, uint32_t from, uint32_t to)
{
	const struct skep_topology *topology = network->topology;
	uint32_t first = 2 * (topology->machines + 1);
	if (!topology->site_link || from == to)
		return;
	if (!isinf(topology->site_link[from].up_Bps))
		skep_sharing_join(&network->sharing, f, first + 2 * from);
	if (!isinf(topology->site_link[to].down_Bps))
		skep_sharing_join(&network->sharing, f, first + 2 * to + 1);
}

static bool is_limited(const struct skep_topology *topology, const struct flow *flow)
{
	const struct skep_pair *pair = pair_of(topology, flow->source, flow->destination);
	if (topology->machine[flow->source].up_Bps < INFINITY ||
		topology->machine[flow->destination].down_Bps < INFINITY)
		return true;
	if (pair->capacity_Bps < INFINITY || pair->shared_Bps < INFINITY || flow->cap < INFINITY)
		return true;
	return topology->site_link && !isinf(least_capacity(topology, flow->source, flow->destination, INFINITY));
}

/* The latency is over: the flow joins its links. False if nothing holds it up and it has arrived. */
static bool flow_share(struct skep_network *network, uint32_t f)
{
	const struct skep_topology *topology = network->topology;
	struct skep_sharing *sharing = &network->sharing;
	struct flow *flow = &network->flow[f];
	const struct skep_pair *pair = pair_of(topology, flow->source, flow->destination);
	double up = topology->machine[flow->source].up_Bps, down = topology->machine[flow->destination].down_Bps;
	uint32_t from = topology->machine[flow->source].place, to = topology->machine[flow->destination].place;
	if (!is_limited(topology, flow))
		return false;
	flow->sharing = true;
	flow->since = network->clock;
	skep_sharing_begin(sharing, f, flow->cap);
	if (sharing->weighted)
		skep_sharing_weigh(sharing, f, skep_path_weight(topology, from, to));
	if (!isinf(up))
		skep_sharing_join(sharing, f, 2 * flow->source);
	if (!isinf(down))
		skep_sharing_join(sharing, f, 2 * flow->destination + 1);
	if (pair->capacity_Bps < up && pair->capacity_Bps < down) {
		uint64_t key = (uint64_t)flow->source << 32 | flow->destination;
		skep_sharing_join(sharing, f, skep_sharing_link(sharing, key, 1e-9 * pair->capacity_Bps));
	}
	if (!isinf(pair->shared_Bps)) {
		uint64_t key = SHARED_KEY | (uint64_t)from << 32 | to;
		skep_sharing_join(sharing, f, skep_sharing_link(sharing, key, 1e-9 * pair->shared_Bps));
	}
	join_site_links(network, f, from, to);
	return true;
}

static void flow_end(struct skep_network *network, uint32_t f)
{
	struct flow *flow = &network->flow[f];
	if (flow->sharing)
		skep_sharing_leave(&network->sharing, f);
	flow->position = network->free_flow;
	network->free_flow = f;
}

static bool grow_dues(struct skep_network *network)
{
	uint32_t capacity = network->due_capacity ? network->due_capacity * 2 : 64;
	struct due *line = malloc(capacity * sizeof *line);
	struct due *due = line ? realloc(network->due, capacity * sizeof *due) : NULL;
	if (!due) {
		free(line);
		return false;
	}
	for (uint32_t i = 0; i < network->lined; i++)
		line[i] = *line_at(network, i);
	free(network->line);
	network->line = line;
	network->line_first = 0;
	network->due = due;
	network->due_capacity = capacity;
	return true;
}

static bool grow_flows(struct skep_network *network)
{
	uint32_t capacity = network->flow_capacity ? network->flow_capacity * 2 : 64;
	struct flow *flow = realloc(network->flow, capacity * sizeof *flow);
	if (!flow)
		return false;
	network->flow = flow;
	skep_large_pages(flow, capacity * sizeof *flow);
	if (!skep_sharing_reserve(&network->sharing, capacity))
		return false;
	for (uint32_t f = capacity; f-- > network->flow_capacity;) {
		flow[f].position = network->free_flow;
		network->free_flow = f;
	}
	network->flow_capacity = capacity;
	return true;
}

static uint32_t flow_take(struct skep_network *network)
{
	if (network->free_flow == NONE && !grow_flows(network))
		return NONE;
	uint32_t f = network->free_flow;
	network->free_flow = network->flow[f].position;
	return f;
}

/* ---- the public face ------------------------------------------------------------------------------------------ */

static bool set_up(struct skep_network *network, const struct skep_topology *topology)
{
	network->topology = topology;
	network->free_flow = NONE;
	uint32_t ends = topology->machines + 1, site_links = topology->site_link ? topology->places : 0;
	if (!skep_sharing_init(&network->sharing, 2 * ends + 2 * site_links))
		return false;
	network->sharing.weighted = topology->fairness != SKEP_FAIRNESS_EQUAL;
	if (topology->link_profiles > 0 && !(network->sender = calloc(ends, sizeof *network->sender)))
		return false;
	for (uint32_t i = 0; i < ends; i++) {
		assert(topology->machine[i].up_Bps > 0 && topology->machine[i].down_Bps > 0);
		network->sharing.link[2 * i].capacity = 1e-9 * topology->machine[i].up_Bps;
		network->sharing.link[2 * i + 1].capacity = 1e-9 * topology->machine[i].down_Bps;
	}
	for (uint32_t i = 0; i < site_links; i++) {
		assert(topology->site_link[i].up_Bps > 0 && topology->site_link[i].down_Bps > 0);
		network->sharing.link[2 * (ends + i)].capacity = 1e-9 * topology->site_link[i].up_Bps;
		network->sharing.link[2 * (ends + i) + 1].capacity = 1e-9 * topology->site_link[i].down_Bps;
	}
	return grow_flows(network) && grow_dues(network);
}

struct skep_network *skep_network_create(const struct skep_topology *topology)
{
	struct skep_network *network = calloc(1, sizeof *network);
	if (network && !set_up(network, topology)) {
		skep_network_destroy(network);
		return NULL;
	}
	return network;
}

void skep_network_destroy(struct skep_network *network)
{
	if (!network)
		return;
	free(network->flow);
	free(network->due);
	free(network->line);
	skep_sharing_finish(&network->sharing);
	skep_order_finish(&network->order);
	free(network->sender);
	free(network);
}

static void set_clock(struct skep_network *network, skep_time now)
{
	assert(now >= network->clock);
	if (now == network->clock)
		return;
	solve(network);
	assert(!first_due(network) || now <= first_due(network)->time);
	network->clock = now;
}

/* A transfer whose latency is over at `due`. */
static bool start(struct skep_network *network, skep_time due, uint32_t source, uint32_t destination, uint64_t bytes,
	uint64_t tag, double cap)
{
	if (bytes <= SKEP_NETWORK_SMALL_BYTES) {
		due = finish_time(due, (double)bytes, least_capacity(network->topology, source, destination, cap));
		due_add(network, (struct due){due, network->sequence++, tag, NONE});
	} else {
		uint32_t f = flow_take(network);
		if (f == NONE)
			return false;
		network->flow[f] = (struct flow){.tag = tag,
			.sequence = network->sequence,
			.left = (double)bytes,
			.cap = cap,
			.position = NONE,
			.source = source,
			.destination = destination};
		due_add(network, (struct due){due, network->sequence++, tag, f});
	}
	network->transfers++;
	return true;
}

/* Bytes per ns. */
static double cap_of(const struct skep_topology *topology, uint32_t source, uint32_t destination)
{
	if (topology->link_profiles == 0)
		return INFINITY;
	return 1e-9 *
	       skep_path_cap_Bps(topology, topology->machine[source].place, topology->machine[destination].place);
}

static bool prepare(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination)
{
	assert(source != destination && source <= network->topology->machines &&
		destination <= network->topology->machines);
	set_clock(network, now);
	const struct skep_pair *pair = pair_of(network->topology, source, destination);
	assert(pair->capacity_Bps > 0 && pair->shared_Bps > 0 && pair->latency_s >= 0);
	return network->transfers < network->due_capacity || grow_dues(network);
}

bool skep_network_start(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag)
{
	if (!prepare(network, now, source, destination))
		return false;
	double latency_s = pair_of(network->topology, source, destination)->latency_s;
	skep_time due = now + (skep_time)llrint(latency_s * 1e9);
	if (network->sender && !skep_sender_latency_end(&network->sender[source], network->topology, &network->order,
				       network->clock, source, destination, latency_s, &due))
		return false;
	return start(network, due, source, destination, bytes, tag, cap_of(network->topology, source, destination));
}

bool skep_network_start_steady(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag)
{
	const struct skep_topology *topology = network->topology;
	if (!prepare(network, now, source, destination))
		return false;
	double mean_s =
		skep_path_mean_s(topology, topology->machine[source].place, topology->machine[destination].place);
	skep_time due = now + (skep_time)llrint(mean_s * 1e9);
	return start(network, due, source, destination, bytes, tag, cap_of(topology, source, destination));
}

skep_time skep_network_next(struct skep_network *network)
{
	solve(network);
	const struct due *first = first_due(network);
	return first ? first->time : SKEP_TIME_NEVER;
}

uint32_t skep_network_advance(struct skep_network *network, skep_time now, uint64_t *ret_tag, uint32_t capacity)
{
	set_clock(network, now);
	uint32_t count = 0;
	const struct due *next;
	for (uint32_t row = 1; row <= network->rows; row++)
		network->soon[row] = SKEP_NETWORK_NO_FLOW;
	while (count < capacity && (next = first_due(network)) && next->time <= now) {
		struct due first = *next;
		due_pop(network, next);
		if (first.flow != NONE && !network->flow[first.flow].sharing && flow_share(network, first.flow))
			continue;
		if (first.flow != NONE)
			flow_end(network, first.flow);
		ret_tag[count++] = first.tag;
	}
	network->transfers -= count;
	return count;
}

/* Returns the bytes that have not been moved. */
static uint64_t stop_flow(struct skep_network *network, uint32_t f)
{
	const struct flow *flow = &network->flow[f];
	double left = flow->left - flow->rate * (double)(network->clock - flow->since);
	flow_end(network, f);
	return (uint64_t)fmax(left, 0);
}

static uint32_t stop_in_line(struct skep_network *network, uint64_t tag, uint64_t *ret_left)
{
	uint32_t kept = 0, lined = network->lined;
	for (uint32_t i = 0; i < lined; i++) {
		struct due entry = *line_at(network, i);
		if (entry.tag != tag)
			*line_at(network, kept++) = entry;
		else if (entry.flow != NONE)
			*ret_left += stop_flow(network, entry.flow);
	}
	network->lined = kept;
	return lined - kept;
}

/* From the end: what takes the place of a removed entry has been looked at, or comes from nearer the top and is looked at
 * here. */
static uint32_t stop_in_heap(struct skep_network *network, uint64_t tag, uint64_t *ret_left)
{
	uint32_t count = 0;
	for (uint32_t at = network->dues; at-- > 0;) {
		while (at < network->dues && network->due[at].tag == tag) {
			uint32_t f = network->due[at].flow;
			due_remove(network, at);
			count++;
			if (f != NONE)
				*ret_left += stop_flow(network, f);
		}
	}
	return count;
}

uint32_t skep_network_stop(struct skep_network *network, skep_time now, uint64_t tag, uint64_t *ret_left)
{
	set_clock(network, now);
	solve(network); /* so that every flow is in the line or the heap */
	*ret_left = 0;
	uint32_t count = stop_in_line(network, tag, ret_left) + stop_in_heap(network, tag, ret_left);
	network->transfers -= count;
	return count;
}

void skep_network_look_ahead(struct skep_network *network)
{
	network->rows = SKEP_NETWORK_ROWS;
}

uint64_t skep_network_soon(const struct skep_network *network, uint32_t level)
{
	return network->soon[level];
}

uint32_t skep_network_flows(const struct skep_network *network)
{
	return network->transfers;
}
