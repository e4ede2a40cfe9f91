/* SPDX-License-Identifier: Apache-2.0
 *
 * neighbours.h - what the processes of a host share: its GPUs and its cores.
 */
#ifndef SKEP_EXEC_NEIGHBOURS_H
#define SKEP_EXEC_NEIGHBOURS_H

#include "exec/exec.h"
#include "models/device/device.h"

/* The place of this process's device, together with all others: those of a host that have one (`has`) take its GPUs in turn. The
 * first of them says on stderr who shares what, and how far the prediction of an unpaced run is off for it. */
struct skep_device_place skep_neighbours_place(
	const struct skep_scenario *scenario, const struct skep_exec_options *options, bool has);

#endif
