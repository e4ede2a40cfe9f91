/* SPDX-License-Identifier: Apache-2.0
 *
 * regions.h - a table of regions: which share of all peers lives in each, how fast their access is, and how long a message takes
 * from one region to another.
 *
 *     region,node_share,download_bps,upload_bps,latency_ms_to_NORTH,latency_ms_to_SOUTH
 *     NORTH,0.75,52000000,19200000,32,124
 *     SOUTH,0.25,40000000,20700000,124,11
 *
 * A row for each region and a latency column for each row, in any order; shares are weights, so that percent will do.
 */
#pragma once

#include "base/reader.h"

#define SKEP_REGIONS_MAX 256u

struct skep_region {
	char name[32];
	double share; /* of 1 */
	double up_Bps, down_Bps;
};

struct skep_regions {
	uint32_t count;
	struct skep_region *region; /* [count] */
	double *latency_s; /* [count * count], one way, row = source; the diagonal: between two peers of the region */
};

bool skep_regions_read(const char *path, struct skep_regions *ret, struct skep_diag *reterr);
void skep_regions_finish(struct skep_regions *regions);
