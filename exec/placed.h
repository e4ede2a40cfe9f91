/* SPDX-License-Identifier: Apache-2.0
 *
 * placed.h - does each worker of a real run sit where the topology has its machine? mpirun gives ranks to hosts in the order of
 * its hostfile, as many to each as it has slots, and knows nothing of the scenario. A worker on another host has other lines
 * than the simulator plays for it, and the run nevertheless succeeds.
 */
#pragma once

#include "topologies/read/topology.h"

#define SKEP_HOST_NAME 64 /* bytes, with the final 0 */

/* host [workers + 1]: of each rank, rank 0 being the directory; worker w is rank w + 1 and machine w of the topology. Names are
 * compared without regard to case, and up to the first dot. False, with the reason in ret, if
 *   - a place has the name of one of these hosts, and one of its workers is on another host, or
 *   - workers of two places are on one host.
 * A run whose ranks are all on one host says nothing of places: true. */
bool skep_placed_well(const struct skep_topology *topology, const char (*host)[SKEP_HOST_NAME], uint32_t workers,
	char *ret, size_t room);

/* What skep_placed_well() finds, on stderr with how to place ranks. */
void skep_placed_say(const struct skep_topology *topology, const char (*host)[SKEP_HOST_NAME], uint32_t workers);
