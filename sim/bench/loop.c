/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.c - runs a workload through the queue and the network of the simulator. Decides nothing about time: the order of
 * events is next.h's, the rates of flows are the network's.
 */
#include "sim/bench/loop.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "sim/bench/draw.h"
#include "sim/next.h"

/* ---- topologies --------------------------------------------------------------------------------------------------- */

static bool begin(struct skep_bench_loop *loop, uint32_t hosts, uint32_t places, double tick_s)
{
	*loop = (struct skep_bench_loop){.tick_s = tick_s};
	loop->link_profile = (struct skep_link_profile){.window_bytes = INFINITY, .streams = SKEP_STREAMS_EACH};
	loop->topology.link_profile = &loop->link_profile;
	loop->topology.link_profiles = 1;
	loop->topology.machines = hosts;
	loop->topology.places = places;
	loop->topology.machine = malloc((hosts + 1) * sizeof *loop->topology.machine);
	loop->topology.pair = malloc((size_t)places * places * sizeof *loop->topology.pair);
	if (!loop->topology.machine || !loop->topology.pair)
		return false;
	for (uint32_t i = 0; i <= hosts; i++)
		loop->topology.machine[i] = (struct skep_machine){.up_Bps = INFINITY, .down_Bps = INFINITY};
	return true;
}

bool skep_bench_star(struct skep_bench_loop *loop, uint32_t hosts, bool heterogeneous, double bandwidth_Bps,
	double latency_s, double tick_s)
{
	double scale = tick_s / 1e-9; /* the network's clock takes a tick for a ns */
	if (!begin(loop, hosts, 1, tick_s))
		return false;
	for (uint32_t i = 0; i < hosts; i++) {
		loop->topology.machine[i].up_Bps = scale * bandwidth_Bps * (heterogeneous ? 0.5 + u01(2, i) : 1);
		loop->topology.machine[i].down_Bps = scale * bandwidth_Bps * (heterogeneous ? 0.5 + u01(3, i) : 1);
	}
	loop->topology.pair[0] = (struct skep_pair){
		.capacity_Bps = INFINITY, .latency_s = 2 * latency_s / scale, .shared_Bps = INFINITY};
	loop->network = skep_network_create(&loop->topology);
	return loop->network;
}

bool skep_bench_uneven_star(struct skep_bench_loop *loop, uint32_t hosts, double latency_s)
{
	if (!begin(loop, hosts, hosts, 1e-9))
		return false;
	loop->topology.fairness = SKEP_FAIRNESS_LATENCY;
	for (uint32_t i = 0; i < hosts; i++) {
		loop->topology.machine[i].place = i;
		loop->topology.machine[i].up_Bps = 1.25e8 * (0.5 + u01(2, i));
		loop->topology.machine[i].down_Bps = 1.25e8 * (0.5 + u01(3, i));
	}
	for (uint32_t from = 0; from < hosts; from++)
		for (uint32_t to = 0; to < hosts; to++)
			loop->topology.pair[(size_t)from * hosts + to] = (struct skep_pair){.capacity_Bps = INFINITY,
				.latency_s =
					latency_s * (0.1 + 1.8 * u01(4, from)) + latency_s * (0.1 + 1.8 * u01(5, to)),
				.shared_Bps = INFINITY};
	loop->network = skep_network_create(&loop->topology);
	return loop->network;
}

bool skep_bench_matrix(struct skep_bench_loop *loop, uint32_t hosts)
{
	if (!begin(loop, hosts, hosts, 1e-9))
		return false;
	for (uint32_t i = 0; i < hosts; i++)
		loop->topology.machine[i].place = i;
	for (size_t i = 0; i < (size_t)hosts * hosts; i++)
		loop->topology.pair[i] = (struct skep_pair){.capacity_Bps = 1.25e8 * (0.1 + 1.8 * u01(31, i)),
			.latency_s = 0.001 + 0.099 * u01(32, i),
			.shared_Bps = INFINITY};
	loop->network = skep_network_create(&loop->topology);
	return loop->network;
}

void skep_bench_loop_finish(struct skep_bench_loop *loop)
{
	skep_queue_finish(&loop->queue);
	skep_network_destroy(loop->network);
	free(loop->topology.machine);
	free(loop->topology.pair);
}

/* ---- time ----------------------------------------------------------------------------------------------------------- */

uint64_t skep_bench_happen(struct skep_bench_loop *loop, double ticks, uint32_t kind, uint32_t index)
{
	assert(ticks >= 0);
	struct skep_queue_entry entry = {loop->now + (skep_time)llrint(ticks), loop->sequence++, kind, index};
	if (!skep_queue_push(&loop->queue, entry))
		loop->no_memory = true;
	return entry.sequence;
}

void skep_bench_send(struct skep_bench_loop *loop, uint32_t source, uint32_t destination, uint64_t bytes, uint64_t tag)
{
	if (!skep_network_start(loop->network, loop->now, source, destination, bytes, tag))
		loop->no_memory = true;
}

bool skep_bench_loop_run(
	struct skep_bench_loop *loop, const struct skep_bench_hearer *hearer, void *context, const uint64_t *left)
{
	while (*left > 0 && !loop->no_memory) {
		struct skep_queue_entry entry;
		enum skep_next turn = skep_next_event(&loop->queue, loop->network, &loop->now, &entry);
		if (turn == SKEP_NEXT_NONE)
			break;
		if (turn == SKEP_NEXT_EVENT) {
			hearer->event(context, &entry);
			continue;
		}
		uint64_t tag[SKEP_NETWORK_ARRIVALS];
		uint32_t got;
		do {
			got = skep_network_advance(loop->network, loop->now, tag, SKEP_NETWORK_ARRIVALS);
			for (uint32_t i = 0; i < got; i++)
				hearer->arrival(context, tag[i]);
		} while (got == SKEP_NETWORK_ARRIVALS);
	}
	return !loop->no_memory;
}

void *skep_bench_array(struct skep_bench_loop *loop, size_t count, size_t size)
{
	void *array = calloc(count, size);
	if (!array)
		loop->no_memory = true;
	return array;
}
