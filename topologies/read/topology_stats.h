/* SPDX-License-Identifier: Apache-2.0
 *
 * topology_stats.h - a topology in a few lines: the machines of each place, and quantiles of bandwidth and latency over
 * pairs of machines.
 */
#pragma once

#include <stdio.h>

#include "topologies/read/topology.h"

enum {
	SKEP_QUANTILE_LEAST,
	SKEP_QUANTILE_10,
	SKEP_QUANTILE_MEDIAN,
	SKEP_QUANTILE_90,
	SKEP_QUANTILE_MOST,
	SKEP_QUANTILES
};

struct skep_topology_stats {
	uint64_t pairs; /* ordered pairs of two machines */
	bool drawn;     /* the quantiles are of so many pairs that were drawn, not of all */
	uint64_t looked_at;
	double bandwidth_Bps[SKEP_QUANTILES]; /* of one transfer alone in the network; INFINITY: not limited */
	double latency_s[SKEP_QUANTILES];     /* one way */
	uint64_t lopsided;                    /* pairs whose two directions differ by more than a tenth in bandwidth */
};

/* False: no memory. */
bool skep_topology_stats_make(const struct skep_topology *topology, struct skep_topology_stats *ret);
void skep_topology_stats_print(
	const struct skep_topology *topology, const struct skep_topology_stats *stats, FILE *out);
void skep_topology_stats_print_json(
	const struct skep_topology *topology, const struct skep_topology_stats *stats, FILE *out);
