/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.h - measures a cluster with the processes that mpirun or srun has started on it, one for each device. One process
 * alone has no link: its device is measured.
 */
#pragma once

#include "base/diag.h"
#include "models/device/device.h"
#include "topologies/import/probed.h"
#include "topologies/read/topology.h"

struct skep_probe_options {
	enum skep_device_kind device;
	bool bind;              /* each process to cores of its own, where its host has enough */
	uint32_t threads, size; /* of each device; of the largest layer that it is measured with, a multiple of 64 */
	bool by_rank;           /* every rank is a place of its own; else every host is one */
	bool at_once;
	const struct skep_model *model;    /* whose layers are measured besides; NULL: none */
	const char *gpu;                   /* the profile of all devices, which are not measured then; NULL: they are */
	uint64_t pair_ns;                  /* for one way, about; 0: a second, less where there are many */
	uint64_t bytes;                    /* of a payload; 0: what takes long enough */
	const struct skep_topology *shape; /* imposed on the messages, one host only: machine r is rank r; NULL: none */
	const char *shape_path;
	/* Progress at rank 0, NULL: not reported. begin says once how many ways will be measured and in how many
	 * turns; tell says after each measurement how many of all are done. */
	void (*begin)(void *context, const struct skep_probed *probed, uint32_t ways, uint32_t turns);
	void (*tell)(void *context, uint32_t done, uint32_t all);
	void *context;
};

/* All ranks together, between skep_exec_init() and skep_exec_finish(). On rank 0 `ret` is filled, and the
 * caller's to finish. False, with the reason: nothing was measured. */
bool skep_probe_run(const struct skep_probe_options *options, struct skep_probed *ret, struct skep_diag *reterr);
