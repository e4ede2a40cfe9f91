/* SPDX-License-Identifier: Apache-2.0
 *
 * cores.h - when operations end on hosts whose cores several workers share (`host: {cores}` of a topology).
 */
#pragma once

#include "core/skep.h"
#include "topologies/read/topology.h"

#define SKEP_CORES_NONE UINT32_MAX

struct skep_cores;

/* Each operation wants `threads` cores; a worker has one in each of its `lanes`. *ret is NULL where no machine says how many
 * cores its host has. False: no memory. */
bool skep_cores_create(const struct skep_topology *topology, uint32_t workers, uint32_t lanes, uint32_t threads,
	struct skep_cores **ret);
void skep_cores_destroy(struct skep_cores *cores); /* NULL: nothing */

/* Does this worker's host say how many cores it has? False without cores. */
bool skep_cores_shared(const struct skep_cores *cores, uint32_t worker);

/* An operation that takes work_ns alone begins in a lane of the worker, or it ends or is lost. */
void skep_cores_begin(struct skep_cores *cores, uint32_t worker, uint32_t lane, skep_time now, skep_time work_ns);
void skep_cores_end(struct skep_cores *cores, uint32_t worker, uint32_t lane, skep_time now);

struct skep_cores_turn {
	uint32_t was, slot; /* worker * lanes + lane of the operation that was to end first, and of that which now is */
	skep_time end_ns;   /* when that ends, if nothing begins or ends before; nothing without a slot */
};

/* Of the worker's host, after operations have begun and ended on it. False: what was said before still holds. */
bool skep_cores_turn(struct skep_cores *cores, uint32_t worker, skep_time now, struct skep_cores_turn *ret);
