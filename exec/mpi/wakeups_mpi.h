/* SPDX-License-Identifier: Apache-2.0
 *
 * wakeups_mpi.h - a wake-up (exec/transport/wakeup.h) for every process of this host, in memory that all of them share.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "exec/transport/wakeup.h"

struct skep_wakeups {
	struct skep_wakeup **wakeup; /* [ranks]; NULL: on another host */
	struct skep_wakeup *own;     /* the one of this rank */
	bool alone;                  /* no peer on another host */
	bool lasting;
	MPI_Win window; /* unless lasting */
};

/* All ranks together. lasting: they are of use when processes have died; `name` is then the run's. False: no memory. */
bool skep_wakeups_create(struct skep_wakeups *wakeups, bool lasting, uint64_t name);
void skep_wakeups_destroy(struct skep_wakeups *wakeups); /* all ranks together */
