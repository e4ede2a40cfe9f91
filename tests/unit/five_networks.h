/* SPDX-License-Identifier: Apache-2.0
 *
 * five_networks.h - the five kinds of network that DT-FM (Yuan et al. 2022) was tried on, rebuilt for `workers` of them, a
 * multiple of 32: by rule, and from the table of ten regions in topologies/matrices/, whose latencies are half of the paper's
 * delays.
 *
 *   datacentre    eight machines, 100 Gbit/s inside and 3.125 outside, no delays
 *   spot          half of the workers in machines of four, 100 Gbit/s inside, the others alone; 1.25 outside, no delays
 *   universities  two halves: 5 Gbit/s and 1 ms inside, 1.12 Gbit/s and 11 ms across
 *   regional      four regions of the table, 2 Gbit/s and 5 ms inside
 *   worldwide     eight regions of the table, likewise
 *
 * Which regions the paper had is as its program says, but for California, which the table lacks; Ireland stands in.
 */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "planning/search/published/dtfm.h"

enum { NETWORKS = 5, REGIONS = 10 };

static const char *const network_name[NETWORKS] = {"datacentre", "spot", "universities", "regional", "worldwide"};

struct network { /* and what training on it sends: 1.3 billion parameters in eight stages, or somewhat less */
	struct skep_links links;
	double gradient_bytes, activation_bytes;
};

static inline void read_regions(const char *path, double ret[REGIONS][REGIONS])
{
	char line[512];
	uint32_t row = 0;
	FILE *file = fopen(path, "r");
	assert(file);
	while (row < REGIONS && fgets(line, sizeof line, file)) {
		char *at = line;
		if (line[0] == '#')
			continue;
		for (uint32_t i = 0; i < REGIONS; i++, at += *at == ',')
			ret[row][i] = strtod(at, &at);
		row++;
	}
	fclose(file);
	assert(row == REGIONS);
}

static inline void link_of(uint32_t kind, uint32_t workers, uint32_t i, uint32_t j, double ret_ms_gbps[2])
{
	static double latency[REGIONS][REGIONS], bandwidth[REGIONS][REGIONS];
	static const uint32_t regional[] = {1, 0, 9, 2}, worldwide[] = {0, 1, 2, 3, 4, 7, 8, 9};
	uint32_t places = kind == 0 ? 8 : kind == 2 ? 2 : kind == 3 ? 4 : 8, size = workers / places;
	bool same = kind == 1 ? i / 4 == j / 4 && i < workers / 2 : i / size == j / size;
	if (kind < 3) {
		static const double inside[] = {100, 100, 5}, outside[] = {3.125, 1.25, 1.12};
		ret_ms_gbps[0] = kind < 2 ? 0 : same ? 1 : 11;
		ret_ms_gbps[1] = same ? inside[kind] : outside[kind];
		return;
	}
	if (bandwidth[0][1] <= 0) {
		read_regions("topologies/matrices/ten-regions-latency.csv", latency);
		read_regions("topologies/matrices/ten-regions-bandwidth.csv", bandwidth);
	}
	const uint32_t *region = kind == 3 ? regional : worldwide;
	ret_ms_gbps[0] = same ? 5 : 2 * latency[region[i / size]][region[j / size]];
	ret_ms_gbps[1] = same ? 2 : bandwidth[region[i / size]][region[j / size]];
}

static inline struct network network_make(uint32_t kind, uint32_t workers)
{
	static const double gradients[] = {1e9, 1e9, 1e9, 0.7e9, 0.9e9};
	static const double activations[] = {0.28125e9, 0.28125e9, 0.28125e9, 0.4e9, 0.5e9};
	double *delay = calloc((size_t)workers * workers, sizeof *delay);
	double *rate = calloc((size_t)workers * workers, sizeof *rate);
	assert(workers % 32 == 0);
	for (uint32_t i = 0; i < workers; i++)
		for (uint32_t j = 0; j < workers; j++) {
			double ms_gbps[2];
			link_of(kind, workers, i, j, ms_gbps);
			delay[(size_t)i * workers + j] = ms_gbps[0] / 1e3;
			rate[(size_t)i * workers + j] = ms_gbps[1] * 1e9 / 8;
		}
	return (struct network){{workers, delay, rate}, gradients[kind], activations[kind]};
}

static inline void network_finish(struct network *network)
{
	free((void *)network->links.delay_s);
	free((void *)network->links.rate_Bps);
}
