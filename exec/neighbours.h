/* SPDX-License-Identifier: Apache-2.0
 *
 * neighbours.h - what the processes of a host share: its GPUs and its cores.
 */
#pragma once

#include "exec/exec.h"
#include "models/device/device.h"

/* The place of this process's device, together with all others: those of a host that have one take its GPUs in turn. The first of
 * them says on stderr who shares what, and how far the prediction of an unpaced run is off for it. `place` is w + 1 for a
 * process of worker w, and 0 for the directory, which has no device. */
struct skep_device_place skep_neighbours_place(
	const struct skep_scenario *scenario, const struct skep_exec_options *options, uint32_t place);

/* With pace, on CPUs, together with all others: does the arithmetic of a host's workers fit its cores while all of them compute?
 * Each makes forward passes on its device, NULL: it has none. The first of a host says on stderr if not, and by how much. */
void skep_neighbours_say_pace(const struct skep_scenario *scenario, struct skep_device *device);
