/* SPDX-License-Identifier: Apache-2.0
 *
 * places.h - the places of a topology by their names, for what names machines by where they stand.
 */
#pragma once

#include "topologies/read/topology.h"

#define SKEP_NO_PLACE UINT32_MAX

struct skep_places {
	const struct skep_topology *topology;
	uint32_t *by_name; /* [places] places, sorted by name */
};

/* False: no memory. An all-zero struct may be finished. */
bool skep_places_make(const struct skep_topology *topology, struct skep_places *ret);
void skep_places_finish(struct skep_places *places);

/* The place whose name is `name`, or `name` without a number at its end: west, west-2, west/0 and west.1 are at `west`. */
uint32_t skep_places_find(const struct skep_places *places, const char *name);
