/* SPDX-License-Identifier: Apache-2.0
 *
 * neighbours.h - what the processes of a host share: its GPUs and its cores.
 */
#pragma once

#include "exec/exec.h"
#include "models/device/device.h"
#include "topologies/read/topology.h"

/* The place of this process's device, together with all others: those of a host that have one take its GPUs in turn. The first of
 * them says on stderr who shares what, and how far the prediction of an unpaced run is off for it. `place` is w + 1 for a
 * process of worker w, and 0 for the directory, which has no device. */
struct skep_device_place skep_neighbours_place(
	const struct skep_scenario *scenario, const struct skep_exec_options *options, uint32_t place);

/* Where each process has a device, together with all others: keeps this one to so many cores of its own, as above with
 * options->bind. Where a host has too few, or its processes are bound otherwise, the first of them says so on stderr. */
void skep_neighbours_bind(uint32_t threads);

/* With pace, on CPUs, together with all others: does the arithmetic of a host's workers fit its cores while all of them compute?
 * Each makes forward passes on its device, NULL: it has none. The first of a host says on stderr if not, and by how much. */
void skep_neighbours_say_pace(const struct skep_scenario *scenario, struct skep_device *device);

/* placed.c: does each worker of a real run sit where the topology has its machine? mpirun gives ranks to hosts in the order
 * of its hostfile, as many to each as it has slots, and knows nothing of the scenario. A worker on another host has other
 * lines than the simulator plays for it, and the run nevertheless succeeds. */
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
