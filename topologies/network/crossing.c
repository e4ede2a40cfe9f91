/* SPDX-License-Identifier: Apache-2.0
 *
 * crossing.c - see crossing.h. Left out is what cannot bind: an unlimited link, and a pair's that is no less than up or down.
 */
#include "topologies/network/crossing.h"

#include <math.h>

#define SHARED_KEY (UINT64_C(1) << 63)

double skep_crossing_least(const struct skep_topology *topology, uint32_t source, uint32_t destination, double cap)
{
	double access = fmin(topology->machine[source].up_Bps, topology->machine[destination].down_Bps);
	double least =
		skep_path_least_Bps(topology, topology->machine[source].place, topology->machine[destination].place);
	return fmin(1e-9 * fmin(access, least), cap);
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

static bool is_limited(const struct skep_topology *topology, const struct skep_flow *flow)
{
	const struct skep_pair *pair = skep_crossing_pair(topology, flow->source, flow->destination);
	if (topology->machine[flow->source].up_Bps < INFINITY ||
		topology->machine[flow->destination].down_Bps < INFINITY)
		return true;
	if (pair->capacity_Bps < INFINITY || pair->shared_Bps < INFINITY || flow->cap < INFINITY)
		return true;
	return topology->site_link && !isinf(skep_crossing_least(topology, flow->source, flow->destination, INFINITY));
}

bool skep_crossing_join(struct skep_network *network, uint32_t f)
{
	const struct skep_topology *topology = network->topology;
	struct skep_sharing *sharing = &network->sharing;
	struct skep_flow *flow = &network->flow[f];
	const struct skep_pair *pair = skep_crossing_pair(topology, flow->source, flow->destination);
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
