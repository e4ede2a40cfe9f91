/* SPDX-License-Identifier: Apache-2.0
 *
 * crossing.h - which links of `sharing` a flow crosses. For network.c.
 */
#pragma once

#include "topologies/network/state.h"
#include "topologies/read/path.h"

static inline const struct skep_pair *skep_crossing_pair(
	const struct skep_topology *topology, uint32_t source, uint32_t destination)
{
	size_t row = topology->machine[source].place;
	return &topology->pair[row * topology->places + topology->machine[destination].place];
}

/* The least capacity between two machines for a flow with this cap, bytes per ns. */
double skep_crossing_least(const struct skep_topology *topology, uint32_t source, uint32_t destination, double cap);

/* The flow begins to move, and joins its links. False if nothing holds it up: it has arrived. */
bool skep_crossing_join(struct skep_network *network, uint32_t flow);
