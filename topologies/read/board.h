/* SPDX-License-Identifier: Apache-2.0
 *
 * board.h - what a machine has beside the speed of one GPU: keys gpus, inner, pcie and host of a group of machines.
 */
#pragma once

#include "base/reader.h"

#define SKEP_BOARD_GPUS_MAX 1024
#define SKEP_BOARD_CORES_MAX 65536
/* One way, where a machine says nothing. PCIe 3.0 x16 has 15.75 GB/s (published: 8 GT/s, 16 lanes, 128 of 130 bits); three
 * quarters of that is what copies between pinned memory and a GPU are assumed to reach. */
#define SKEP_PCIE_BPS 12e9

struct skep_board {
	uint32_t gpus;
	double inner_Bps, inner_latency_s; /* between two GPUs, each way; 0 with one GPU */
	double pcie_Bps;                   /* of each GPU to the host and of the host to each GPU */
	bool pcie_assumed;                 /* it is SKEP_PCIE_BPS */
	double host_bytes, host_Bps;       /* memory of the machine, and how fast it is; 0: not said */
	uint32_t cores;                    /* of the host; 0: not said */
	uint32_t host_machines;            /* of the group that are on one host, with cores; 0: all */
};

void skep_board_read(struct skep_reader *r, const struct skep_yaml_node *group, struct skep_board *ret);
bool skep_board_equal(const struct skep_board *a, const struct skep_board *b);
