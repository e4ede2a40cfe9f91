/* SPDX-License-Identifier: Apache-2.0
 *
 * network.c - decides when every flow arrives.
 *
 * What is kept true
 *   - The limits of a flow that can bind are links of `sharing`: up and down of each machine and of each place are always
 *     there, a pair's and a pair of places' while a flow needs them (crossing.h). A flow that waits for its latency or its turn
 *     crosses no link. What limits one flow by itself (window, loss) is its cap and no link.
 *   - A small transfer that has its turn is not a flow, only an entry of the line or the heap.
 *   - A pair's queue has flows only while all of its streams move one. Within a pair the flow stands for the connection: when
 *     its message has arrived the next one goes on as the same flow, at the same rate.
 *   - Starts and ends only mark links as touched; rates are solved when the clock is about to move on, so that all that
 *     happens at one instant is solved together.
 *   - The line and the heap (due.h) hold every transfer whose next change is known, by (time, start order). A flow that has
 *     begun to share since rates were solved is in neither, nor is one that waits for its turn.
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

#include "topologies/network/crossing.h"
#include "topologies/network/due.h"
#include "topologies/network/large_pages.h"
#include "topologies/network/relays.h"
#include "topologies/read/path.h"

#define NONE SKEP_NO_FLOW

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
	struct skep_flow *flow = &network->flow[f];
	double rate = network->sharing.share[f].rate;
	if (flow->rate == rate)
		return;
	if (flow->position != NONE && network->due[flow->position].time <= network->clock)
		return; /* it arrives at this very instant */
	double left = flow->left - flow->rate * (double)(network->clock - flow->since);
	flow->left = left > 0 ? left : 0;
	flow->since = network->clock;
	flow->rate = rate;
	skep_due_set(network, f, finish_time(network->clock, flow->left, rate));
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

static void flow_free(struct skep_network *network, uint32_t f)
{
	network->flow[f].position = network->free_flow;
	network->free_flow = f;
}

static void flow_end(struct skep_network *network, uint32_t f)
{
	if (network->flow[f].sharing)
		skep_sharing_leave(&network->sharing, f);
	flow_free(network, f);
}

static bool grow_flows(struct skep_network *network)
{
	uint32_t capacity = network->flow_capacity ? network->flow_capacity * 2 : 64;
	struct skep_flow *flow = realloc(network->flow, capacity * sizeof *flow);
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
	assert(network->free_flow != NONE);
	uint32_t f = network->free_flow;
	network->free_flow = network->flow[f].position;
	return f;
}

/* ---- turns ---------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const struct skep_network *network, const struct skep_flow *flow)
{
	if (network->relays && skep_relay_is_piece(flow->tag))
		return skep_relay_key(network, flow->tag);
	return 1 + ((uint64_t)flow->source << 32 | flow->destination);
}

static struct skep_pair_queue *queue_of(const struct skep_network *network, const struct skep_flow *flow)
{
	struct skep_pair_queue *queue = skep_connections_find(&network->connections, key_of(network, flow));
	assert(flow->in_turn && queue);
	return queue;
}

static void drop_if_empty(struct skep_network *network, struct skep_pair_queue *queue)
{
	if (queue->under_way == 0)
		skep_connections_drop(&network->connections, queue);
}

/* Of one that has not begun to move. */
static bool is_small(const struct skep_flow *flow)
{
	return flow->left <= SKEP_NETWORK_SMALL_BYTES;
}

/* A small transfer whose turn has come is on its way, and the next one may begin beside it. */
static void release_small(struct skep_network *network, struct skep_pair_queue *queue, uint32_t f)
{
	const struct skep_flow *flow = &network->flow[f];
	double least = skep_crossing_least(network->topology, flow->source, flow->destination, flow->cap);
	skep_time time = finish_time(network->clock, flow->left, least);
	skep_due_put_small(network, (struct skep_due){time, flow->sequence, flow->tag, NONE});
	queue->under_way--;
	flow_free(network, f);
}

/* The first large one that waits, which no longer does; those small ones before it are on their way. NONE: none waits. */
static uint32_t next_in_turn(struct skep_network *network, struct skep_pair_queue *queue)
{
	while (queue->first != NONE) {
		uint32_t f = queue->first;
		queue->first = network->flow[f].position;
		network->flow[f].position = NONE;
		if (!is_small(&network->flow[f]))
			return f;
		release_small(network, queue, f);
	}
	return NONE;
}

static void append(struct skep_network *network, struct skep_pair_queue *queue, uint32_t f)
{
	if (queue->first == NONE)
		queue->first = f;
	else
		network->flow[queue->last].position = f;
	queue->last = f;
}

/* True: it has arrived. */
static bool latency_over(struct skep_network *network, uint32_t f)
{
	struct skep_flow *flow = &network->flow[f];
	if (!flow->in_turn)
		return !skep_crossing_join(network, f);
	struct skep_pair_queue *queue = queue_of(network, flow);
	if (queue->moving == queue->streams) {
		append(network, queue, f);
		return false;
	}
	if (is_small(flow)) {
		release_small(network, queue, f);
		drop_if_empty(network, queue);
		return false;
	}
	queue->moving++;
	return !skep_crossing_join(network, f);
}

/* The message of flow f has arrived. The next one of its pair crosses the same links with the same cap, so it goes on as
 * flow f, and no rate changes. */
static void arrive(struct skep_network *network, uint32_t f)
{
	struct skep_flow *flow = &network->flow[f];
	if (flow->in_turn) {
		struct skep_pair_queue *queue = queue_of(network, flow);
		queue->under_way--;
		uint32_t next = next_in_turn(network, queue);
		if (next != NONE) {
			assert(flow->sharing);
			flow->tag = network->flow[next].tag;
			flow->sequence = network->flow[next].sequence;
			flow->left = network->flow[next].left;
			flow->since = network->clock;
			flow->rate = network->sharing.share[f].rate;
			flow_free(network, next);
			skep_due_set(network, f, finish_time(network->clock, flow->left, flow->rate));
			return;
		}
		queue->moving--;
		drop_if_empty(network, queue);
	}
	flow_end(network, f);
}

/* ---- the public face ------------------------------------------------------------------------------------------ */

/* Whether latencies depend on what a sender has sent. */
static bool has_senders(const struct skep_topology *topology)
{
	for (uint32_t i = 0; i < topology->link_profiles; i++)
		if (topology->link_profile[i].overhead_s > 0 ||
			topology->link_profile[i].jitter.kind != SKEP_JITTER_NONE)
			return true;
	return false;
}

static bool set_up(struct skep_network *network, const struct skep_topology *topology)
{
	network->topology = topology;
	network->free_flow = network->free_relay = NONE;
	network->relays = topology->dials_out != NULL;
	uint32_t ends = topology->machines + 1, site_links = topology->site_link ? topology->places : 0;
	if (!skep_sharing_init(&network->sharing, 2 * ends + 2 * site_links))
		return false;
	network->sharing.weighted = topology->fairness != SKEP_FAIRNESS_EQUAL;
	if (has_senders(topology) && !(network->sender = calloc(ends, sizeof *network->sender)))
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
	return grow_flows(network) && skep_due_grow(network);
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
	skep_connections_finish(&network->connections);
	free(network->sender);
	free(network->relay);
	free(network);
}

static void set_clock(struct skep_network *network, skep_time now)
{
	assert(now >= network->clock);
	if (now == network->clock)
		return;
	solve(network);
	assert(!skep_due_first(network) || now <= skep_due_first(network)->time);
	network->clock = now;
}

/* Bytes per ns. */
static double cap_of(const struct skep_topology *topology, uint32_t source, uint32_t destination)
{
	if (topology->link_profiles == 0)
		return INFINITY;
	return 1e-9 *
	       skep_path_cap_Bps(topology, topology->machine[source].place, topology->machine[destination].place);
}

/* Enters a message into the turns of its pair. A small one takes a turn only where it finds no stream free, or those before it
 * are still to come; *ret: it does. False: no memory. */
static bool enter_turns(struct skep_network *network, const struct skep_flow *flow, bool *ret)
{
	const struct skep_topology *t = network->topology;
	uint32_t from = t->machine[flow->source].place, to = t->machine[flow->destination].place;
	uint32_t streams = skep_path_streams(t, from, to);
	uint64_t key = key_of(network, flow);
	struct skep_pair_queue *queue = NULL;
	*ret = false;
	if (streams == SKEP_STREAMS_EACH)
		return true;
	if (is_small(flow)) {
		queue = skep_connections_find(&network->connections, key);
		if (!queue || queue->under_way < streams || skep_path_overtakes(t, from, to))
			return true;
	} else if (!(queue = skep_connections_get(&network->connections, key, streams))) {
		return false;
	}
	queue->under_way++;
	*ret = true;
	return true;
}

/* A transfer whose latency is over at `due`. `alone`: on a connection of its own. */
static bool start(struct skep_network *network, skep_time due, const struct skep_flow *message, bool alone)
{
	struct skep_flow flow = *message;
	flow.sequence = network->sequence;
	flow.position = NONE;
	flow.cap = cap_of(network->topology, flow.source, flow.destination);
	if (network->free_flow == NONE && !grow_flows(network))
		return false;
	if (!alone && !enter_turns(network, &flow, &flow.in_turn))
		return false;
	if (is_small(&flow) && !flow.in_turn) {
		due = finish_time(due, flow.left,
			skep_crossing_least(network->topology, flow.source, flow.destination, flow.cap));
		skep_due_add(network, (struct skep_due){due, flow.sequence, flow.tag, NONE});
	} else {
		uint32_t f = flow_take(network);
		network->flow[f] = flow;
		skep_due_add(network, (struct skep_due){due, flow.sequence, flow.tag, f});
	}
	network->sequence++;
	network->transfers++;
	return true;
}

static bool prepare(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination)
{
	assert(source != destination && source <= network->topology->machines &&
		destination <= network->topology->machines);
	set_clock(network, now);
	const struct skep_pair *pair = skep_crossing_pair(network->topology, source, destination);
	assert(pair->capacity_Bps > 0 && pair->shared_Bps > 0 && pair->latency_s >= 0);
	return network->transfers < network->due_capacity || skep_due_grow(network);
}

bool skep_network_due(
	struct skep_network *network, skep_time now, uint32_t source, uint32_t destination, skep_time *ret)
{
	if (!prepare(network, now, source, destination))
		return false;
	double latency_s = skep_crossing_pair(network->topology, source, destination)->latency_s;
	*ret = now + (skep_time)llrint(latency_s * 1e9);
	return !network->sender || skep_sender_latency_end(&network->sender[source], network->topology, &network->order,
					   network->clock, source, destination, latency_s, ret);
}

bool skep_network_put(struct skep_network *network, skep_time due, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag)
{
	struct skep_flow flow = {.tag = tag, .left = (double)bytes, .source = source, .destination = destination};
	return start(network, due, &flow, false);
}

bool skep_network_start(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag)
{
	const struct skep_topology *topology = network->topology;
	skep_time due;
	if (network->relays &&
		skep_topology_relays(topology, topology->machine[source].place, topology->machine[destination].place))
		return skep_relay_start(network, now, source, destination, bytes, tag);
	return !network->failed && skep_network_due(network, now, source, destination, &due) &&
	       skep_network_put(network, due, source, destination, bytes, tag);
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
	struct skep_flow flow = {.tag = tag, .left = (double)bytes, .source = source, .destination = destination};
	return start(network, due, &flow, true);
}

skep_time skep_network_next(struct skep_network *network)
{
	solve(network);
	const struct skep_due *first = skep_due_first(network);
	return first ? first->time : SKEP_TIME_NEVER;
}

uint32_t skep_network_advance(struct skep_network *network, skep_time now, uint64_t *ret_tag, uint32_t capacity)
{
	set_clock(network, now);
	uint32_t count = 0;
	const struct skep_due *next;
	for (uint32_t row = 1; row <= network->rows; row++)
		network->soon[row] = SKEP_NETWORK_NO_FLOW;
	while (count < capacity && (next = skep_due_first(network)) && next->time <= now) {
		struct skep_due first = *next;
		skep_due_pop(network, next);
		if (first.flow != NONE && !network->flow[first.flow].sharing && !latency_over(network, first.flow))
			continue;
		if (first.flow != NONE)
			arrive(network, first.flow);
		if (network->relays && skep_relay_is_piece(first.tag)) {
			network->transfers--;
			if (!skep_relay_arrived(network, first.tag, &first.tag))
				continue;
			network->transfers++;
		}
		ret_tag[count++] = first.tag;
	}
	network->transfers -= count;
	return count;
}

/* ---- stopping ------------------------------------------------------------------------------------------------- */

struct stop { /* which transfers end before they have arrived, and what comes of them */
	uint64_t tag;
	uint32_t machine; /* NONE: those of the tag; else those that move or wait in turn from it or to it */
	void (*ended)(void *context, uint64_t tag);
	void *context;
	uint64_t left; /* bytes that have not been moved */
	uint32_t count;
};

static bool is_meant(const struct skep_network *network, const struct stop *stop, uint64_t tag, uint32_t f)
{
	if (stop->machine == NONE)
		return tag == stop->tag;
	const struct skep_flow *flow = f != NONE ? &network->flow[f] : NULL;
	return flow && flow->in_turn && (flow->sharing || !is_small(flow)) &&
	       (flow->source == stop->machine || flow->destination == stop->machine);
}

static void stopped(struct skep_network *network, struct stop *stop, uint64_t tag)
{
	stop->count++;
	if (network->relays && skep_relay_is_piece(tag) && !skep_relay_dropped(network, tag, &tag))
		return;
	if (stop->ended)
		stop->ended(stop->context, tag);
}

/* A flow in the line or the heap. Those that wait for its stream go on waiting, and the queue stays. */
static void stop_flow(struct skep_network *network, struct stop *stop, uint32_t f)
{
	const struct skep_flow *flow = &network->flow[f];
	double left = flow->left - flow->rate * (double)(network->clock - flow->since);
	if (!flow->sharing && is_small(flow))
		left = 0;
	if (flow->in_turn) {
		struct skep_pair_queue *queue = queue_of(network, flow);
		queue->under_way--;
		queue->moving -= flow->sharing;
	}
	stop->left += (uint64_t)fmax(left, 0);
	flow_end(network, f);
}

static void stop_in_line(struct skep_network *network, struct stop *stop)
{
	uint32_t kept = 0, lined = network->lined;
	for (uint32_t i = 0; i < lined; i++) {
		struct skep_due entry = *skep_due_line_at(network, i);
		if (!is_meant(network, stop, entry.tag, entry.flow)) {
			*skep_due_line_at(network, kept++) = entry;
			continue;
		}
		stopped(network, stop, entry.tag);
		if (entry.flow != NONE)
			stop_flow(network, stop, entry.flow);
	}
	network->lined = kept;
}

/* From the end: what takes the place of a removed entry has been looked at, or comes from nearer the top and is looked at
 * here. */
static void stop_in_heap(struct skep_network *network, struct stop *stop)
{
	for (uint32_t at = network->dues; at-- > 0;) {
		while (at < network->dues && is_meant(network, stop, network->due[at].tag, network->due[at].flow)) {
			struct skep_due entry = network->due[at];
			skep_due_remove(network, at);
			stopped(network, stop, entry.tag);
			if (entry.flow != NONE)
				stop_flow(network, stop, entry.flow);
		}
	}
}

/* Of what waits for a stream. */
static void stop_in_queue(struct skep_network *network, struct stop *stop, struct skep_pair_queue *queue)
{
	uint32_t f = queue->first;
	queue->first = NONE;
	while (f != NONE) {
		struct skep_flow *flow = &network->flow[f];
		uint32_t next = flow->position, this = f;
		flow->position = NONE;
		f = next;
		if (!is_meant(network, stop, flow->tag, this)) {
			append(network, queue, this);
			continue;
		}
		stopped(network, stop, flow->tag);
		stop->left += is_small(flow) ? 0 : (uint64_t)flow->left;
		queue->under_way--;
		flow_free(network, this);
	}
}

/* Streams that have become free take the next ones, and queues without messages go. */
static void resume_queues(struct skep_network *network)
{
	struct skep_connections *connections = &network->connections;
	for (uint32_t i = 0; i < connections->size;) {
		struct skep_pair_queue *queue = &connections->queue[i];
		uint32_t f = NONE;
		while (queue->key != 0 && queue->moving < queue->streams &&
			(f = next_in_turn(network, queue)) != NONE) {
			queue->moving++;
			skep_crossing_join(network, f);
		}
		if (queue->key != 0 && queue->under_way == 0)
			skep_connections_drop(connections, queue); /* another one may have taken its place */
		else
			i++;
	}
}

static void stop_all(struct skep_network *network, skep_time now, struct stop *stop)
{
	set_clock(network, now);
	solve(network); /* so that every flow is in the line or the heap, or waits for its turn */
	stop_in_line(network, stop);
	stop_in_heap(network, stop);
	for (uint32_t i = 0; i < network->connections.size; i++)
		if (network->connections.queue[i].key != 0)
			stop_in_queue(network, stop, &network->connections.queue[i]);
	resume_queues(network);
	network->transfers -= stop->count;
}

uint32_t skep_network_stop(struct skep_network *network, skep_time now, uint64_t tag, uint64_t *ret_left)
{
	struct stop stop = {.tag = tag, .machine = NONE};
	stop_all(network, now, &stop);
	*ret_left = stop.left;
	return stop.count;
}

void skep_network_close(struct skep_network *network, skep_time now, uint32_t machine,
	void (*ended)(void *context, uint64_t tag), void *context)
{
	assert(machine <= network->topology->machines);
	if (network->relays)
		skep_relay_close(network, machine, ended, context);
	stop_all(network, now, &(struct stop){.machine = machine, .ended = ended, .context = context});
}

void skep_network_look_ahead(struct skep_network *network)
{
	network->rows = SKEP_NETWORK_ROWS;
}

uint64_t skep_network_soon(const struct skep_network *network, uint32_t level)
{
	return skep_relay_is_piece(network->soon[level]) ? SKEP_NETWORK_NO_FLOW : network->soon[level];
}
