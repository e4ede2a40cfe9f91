/* SPDX-License-Identifier: Apache-2.0
 *
 * placed.c - see neighbours.h.
 */
#include "exec/neighbours.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_same_host(const char *a, const char *b)
{
	size_t length = strcspn(a, ".");
	return length == strcspn(b, ".") && strncasecmp(a, b, length) == 0;
}

static const char *place_of(const struct skep_topology *topology, uint32_t worker)
{
	assert(worker < topology->machines);
	return topology->place_name[topology->machine[worker].place];
}

/* Is there a rank on a host of this name? */
static bool is_host(const char *place, const char (*host)[SKEP_HOST_NAME], uint32_t workers)
{
	uint32_t rank = 0;
	while (rank <= workers && !is_same_host(host[rank], place))
		rank++;
	return rank <= workers;
}

static bool is_one_host(const char (*host)[SKEP_HOST_NAME], uint32_t workers)
{
	uint32_t rank = 1;
	while (rank <= workers && is_same_host(host[rank], host[0]))
		rank++;
	return rank > workers;
}

/* The first worker before this one that is on the same host, but at another place; `worker` itself: there is none. */
static uint32_t first_stranger(
	const struct skep_topology *topology, const char (*host)[SKEP_HOST_NAME], uint32_t worker)
{
	uint32_t other = 0;
	while (other < worker && (!is_same_host(host[other + 1], host[worker + 1]) ||
					 topology->machine[other].place == topology->machine[worker].place))
		other++;
	return other;
}

bool skep_placed_well(const struct skep_topology *topology, const char (*host)[SKEP_HOST_NAME], uint32_t workers,
	char *ret, size_t room)
{
	assert(workers > 0 && workers <= topology->machines);
	for (uint32_t w = 0; w < workers && !is_one_host(host, workers); w++) {
		const char *place = place_of(topology, w);
		uint32_t other = first_stranger(topology, host, w);
		if (is_host(place, host, workers) && !is_same_host(place, host[w + 1])) {
			snprintf(ret, room, "worker %" PRIu32 " runs on %s, and the topology has it at %s", w,
				host[w + 1], place);
			return false;
		}
		if (other < w) {
			snprintf(ret, room,
				"workers %" PRIu32 " and %" PRIu32
				" both run on %s, and the topology has them at %s and %s: what they send each other crosses no "
				"line",
				other, w, host[w + 1], place_of(topology, other), place);
			return false;
		}
	}
	return true;
}

void skep_placed_say(const struct skep_topology *topology, const char (*host)[SKEP_HOST_NAME], uint32_t workers)
{
	char what[512];
	if (skep_placed_well(topology, host, workers, what, sizeof what))
		return;
	fprintf(stderr,
		"skep: %s. So `skep sim` predicts another run than this one.\n"
		"skep: rank 0 is the directory and rank w + 1 is worker w, in the topology's order; a host of mpirun's hostfile "
		"gets as many ranks as it has slots\n",
		what);
}
