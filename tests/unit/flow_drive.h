/* SPDX-License-Identifier: Apache-2.0
 *
 * flow_drive.h - small topologies made by hand, and transfers driven through the network model: start times in, arrival times
 * out. Checks on the way that each transfer arrives once.
 */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/observed_network.h"
#include "topologies/network/network.h"

/* ---- topologies made by hand -------------------------------------------------------------------------------- */

static inline void topology_init(struct skep_topology *topology, uint32_t machines, uint32_t places)
{
	memset(topology, 0, sizeof *topology);
	topology->machines = machines;
	topology->places = places;
	topology->machine = calloc(machines + 1, sizeof *topology->machine);
	topology->pair = calloc((size_t)places * places, sizeof *topology->pair);
	assert_true(topology->machine && topology->pair);
	for (uint32_t i = 0; i <= machines; i++)
		topology->machine[i].up_Bps = topology->machine[i].down_Bps = INFINITY;
	for (uint32_t i = 0; i < places * places; i++)
		topology->pair[i] = (struct skep_pair){INFINITY, 0, INFINITY};
}

static inline void topology_free(struct skep_topology *topology)
{
	free(topology->machine);
	free(topology->pair);
	free(topology->site_link);
	free(topology->link_profile);
	free(topology->link_profile_of);
}

/* All links alike but for latency and capacity. */
static inline struct skep_link_profile *topology_link_profile(struct skep_topology *topology)
{
	topology->link_profiles = 1;
	topology->link_profile = calloc(1, sizeof *topology->link_profile);
	assert_non_null(topology->link_profile);
	*topology->link_profile = (struct skep_link_profile){.window_bytes = INFINITY, .mss_bytes = 1460, .streams = 1};
	return topology->link_profile;
}

static inline void topology_gates(struct skep_topology *topology)
{
	topology->site_link = calloc(topology->places, sizeof *topology->site_link);
	assert_non_null(topology->site_link);
	for (uint32_t i = 0; i < topology->places; i++)
		topology->site_link[i] = (struct skep_site_link){INFINITY, INFINITY};
}

/* ---- a driver: transfers with start times in, arrival times out ------------------------------------------------ */

struct transfer {
	skep_time start;
	uint32_t source, destination;
	uint64_t bytes;
	skep_time arrival;
	uint32_t rank; /* how many arrived before it */
};

static inline uint32_t take_arrivals(
	struct skep_network *network, skep_time now, struct transfer *transfer, uint32_t rank)
{
	uint64_t tag[3];
	uint32_t got;
	do {
		got = skep_network_advance(network, now, tag, 3);
		for (uint32_t i = 0; i < got; i++) {
			transfer[tag[i]].arrival = now;
			transfer[tag[i]].rank = rank++;
		}
	} while (got == 3);
	return rank;
}

/* `transfer` is sorted by start. */
static inline void drive(const struct skep_topology *topology, struct transfer *transfer, uint32_t count)
{
	struct skep_network *network = skep_network_create(topology);
	assert_non_null(network);
	uint32_t started = 0, rank = 0;
	while (started < count || flows_under_way(network) > 0) {
		skep_time next = skep_network_next(network);
		if (started < count && transfer[started].start <= next) {
			const struct transfer *t = &transfer[started];
			assert_true(
				skep_network_start(network, t->start, t->source, t->destination, t->bytes, started));
			started++;
		} else {
			rank = take_arrivals(network, next, transfer, rank);
		}
	}
	assert_int_equal(rank, count);
	assert_true(skep_network_next(network) == SKEP_TIME_NEVER);
	skep_network_destroy(network);
}

static inline void assert_seconds(skep_time got, double want_s)
{
	double error_ns = (double)got - want_s * 1e9;
	if (fabs(error_ns) > 2 + 1e-9 * want_s * 1e9)
		fail_msg("arrival at %.9f s, expected %.9f s", (double)got * 1e-9, want_s);
}
