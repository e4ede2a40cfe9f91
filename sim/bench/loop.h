/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.h - the ground that the workloads stand on: the simulator's queue, network and order of events, and topologies made
 * in memory.
 *
 * Time is counted in ticks of the network's clock. A tick is 1 ns as in a simulated run, unless a workload asks for a finer
 * one; capacities and latencies of the topology are then those of a slower world, and only the makespan is scaled back.
 */
#pragma once

#include "sim/queue.h"
#include "topologies/network/network.h"

struct skep_bench_loop {
	struct skep_queue queue;
	struct skep_network *network;
	struct skep_topology topology;
	struct skep_link_profile link_profile; /* of all links: workloads are flows that move at the same time */
	skep_time now;
	uint64_t sequence; /* the next event's */
	double tick_s;
	bool no_memory; /* ends the loop */
};

/* How a workload hears what happens. */
struct skep_bench_hearer {
	void (*event)(void *context, const struct skep_queue_entry *entry);
	void (*arrival)(void *context, uint64_t tag);
};

/* Hosts behind one uplink and one downlink each, joined by a core that never binds; `latency_s` is of one link, two are
 * crossed. heterogeneous: links of 0.5 to 1.5 times `bandwidth_Bps`. False: no memory; finish it all the same. */
bool skep_bench_star(struct skep_bench_loop *loop, uint32_t hosts, bool heterogeneous, double bandwidth_Bps,
	double latency_s, double tick_s);
/* A heterogeneous star of 1.25e8 byte/s whose links have 0.1 to 1.9 times `latency_s`; shares by 1 / latency. */
bool skep_bench_uneven_star(struct skep_bench_loop *loop, uint32_t hosts, double latency_s);
/* A private link for every ordered pair of hosts. */
bool skep_bench_matrix(struct skep_bench_loop *loop, uint32_t hosts);
void skep_bench_loop_finish(struct skep_bench_loop *loop);

/* An event at loop->now + ticks; returns the sequence that it drew. */
uint64_t skep_bench_happen(struct skep_bench_loop *loop, double ticks, uint32_t kind, uint32_t index);
void skep_bench_send(struct skep_bench_loop *loop, uint32_t source, uint32_t destination, uint64_t bytes, uint64_t tag);

/* Until *left is 0 or nothing is left to happen; false: no memory. */
bool skep_bench_loop_run(
	struct skep_bench_loop *loop, const struct skep_bench_hearer *hearer, void *context, const uint64_t *left);

/* An array of zeros; NULL: no memory, and the loop will not run. */
void *skep_bench_array(struct skep_bench_loop *loop, size_t count, size_t size);
