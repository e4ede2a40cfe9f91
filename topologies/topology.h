/* SPDX-License-Identifier: Apache-2.0
 *
 * topology.h - where it runs: machines with a GPU and access links, and what joins them.
 *
 * A machine stands at a place. Capacity and latency are per ordered pair of places (sites form: a place is a site; matrix
 * form: every machine is its own place), so a topology of thousands of machines at few sites stays small. The directory
 * is one more endpoint, with index `machines`, at the place that the file marks as reliable.
 */
#ifndef SKEP_TOPOLOGIES_TOPOLOGY_H
#define SKEP_TOPOLOGIES_TOPOLOGY_H

#include "topologies/gpu.h"

struct skep_machine {
	uint32_t place;
	uint32_t gpu;            /* index into gpu[] */
	double up_Bps, down_Bps; /* bytes per second; INFINITY: not limited */
	double price_usd_per_h;  /* 0 unknown */
};

struct skep_pair {           /* ordered pair of places */
	double capacity_Bps; /* what one ordered pair of machines can get; INFINITY: not limited */
	double latency_s;    /* one way */
	double shared_Bps;   /* all traffic of the ordered pair of places together; INFINITY: not shared */
};

struct skep_topology {
	char name[64];
	char source[256];                    /* measured, published or assumed, and by whom */
	char path[512], matrix_path[2][512]; /* where it was read; "": nowhere */
	uint32_t machines, places, gpus;
	struct skep_machine *machine; /* [machines + 1]; the last is the directory's: no limits, gpu UINT32_MAX */
	struct skep_pair *pair;       /* [places * places], row = source */
	char (*place_name)[32];       /* [places] */
	struct skep_gpu *gpu;         /* [gpus] */
};

bool skep_topology_read(const char *path, struct skep_topology *ret, struct skep_diag *reterr);
void skep_topology_finish(struct skep_topology *topology);

/* Between two machines (directory included). A machine to itself: not limited, no latency. */
struct skep_pair skep_topology_pair(const struct skep_topology *topology, uint32_t source, uint32_t destination);

#endif
