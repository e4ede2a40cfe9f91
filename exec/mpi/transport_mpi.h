/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_mpi.h - the transport over MPI_COMM_WORLD, between MPI_Init and MPI_Finalize.
 */
#pragma once

#include <mpi.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "exec/mpi/mpi_bytes.h"
#include "exec/transport/rejects.h"
#include "exec/transport/transport.h"
#include "exec/transport/wakeup.h"

/* What this rank needs: the ranks agree that all have it before any connects. False: no memory. */
bool skep_transport_mpi_create(struct skep_transport *ret, struct skep_rejects *rejects);

/* All ranks together, and `run` is the same on all. False: MPI refused. */
bool skep_transport_mpi_connect(struct skep_transport *transport, uint64_t run);

/* All ranks together if `clean`, and nothing may be pending; else everything is left to the end of the process. */
void skep_transport_mpi_destroy(struct skep_transport *transport, bool clean);

/* pids.c: learns from the kernel that a process of this host has ended. MPI may need seconds to notice, while no rank sends
 * to the dead one. */
struct skep_pids {
	struct pollfd *process; /* [ranks] of rank 0; NULL: nothing is watched */
	int *pid;               /* [ranks] of rank 0 */
	uint32_t ranks;         /* that are watched */
	uint64_t looked_ns;
};

bool skep_pids_create(struct skep_pids *ret, int rank, int ranks); /* false: no memory */
/* All ranks of `comm` together, on one host. Rank 0 watches the others. */
void skep_pids_connect(struct skep_pids *pids, MPI_Comm comm);
void skep_pids_destroy(struct skep_pids *pids);

/* Now and then: sets gone[] of those that have ended; true: some have that had not. */
bool skep_pids_look(struct skep_pids *pids, bool *gone);

/* wakeups_mpi.c: a wake-up (exec/transport/wakeup.h) for every process of this host, in memory that all of them share. */
struct skep_wakeups {
	struct skep_wakeup **wakeup; /* [ranks]; NULL: on another host */
	struct skep_wakeup *own;     /* the one of this rank */
	bool alone;                  /* no peer on another host */
	bool lasting;
	MPI_Win window;           /* unless lasting */
	struct skep_wakeup *lone; /* this rank's, where there is no memory to share */
	int *number;              /* [2 * ranks] */
};

/* What this rank needs. lasting: they are of use when processes have died. False: no memory. */
bool skep_wakeups_create(struct skep_wakeups *ret, bool lasting);
void skep_wakeups_connect(struct skep_wakeups *wakeups, uint64_t run); /* all ranks together */
void skep_wakeups_destroy(struct skep_wakeups *wakeups);               /* all ranks together */
