/* SPDX-License-Identifier: Apache-2.0
 *
 * bells_mpi.h - a bell for every process of this host, where all of them can ring it.
 */
#ifndef SKEP_EXEC_BELLS_MPI_H
#define SKEP_EXEC_BELLS_MPI_H

#include <mpi.h>
#include <stdbool.h>

#include "exec/bell.h"

struct skep_bells {
	struct skep_bell **bell; /* [ranks]; NULL: on another host */
	struct skep_bell *own;   /* bell[rank] */
	bool alone;              /* no peer on another host */
	bool lasting;
	MPI_Win window; /* unless lasting */
};

/* All ranks together. lasting: they are of use when processes have died; `name` is then the run's. False: no memory. */
bool skep_bells_create(struct skep_bells *bells, bool lasting, uint64_t name);
void skep_bells_destroy(struct skep_bells *bells); /* all ranks together */

#endif
