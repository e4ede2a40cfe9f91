/* SPDX-License-Identifier: Apache-2.0
 *
 * pids.h - learns from the kernel that a process of this host has ended. MPI may need seconds to notice, while no
 * rank sends to the dead one.
 */
#pragma once

#include <mpi.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct skep_pids {
	struct pollfd *process; /* [ranks] of rank 0; NULL: nothing is watched */
	uint32_t ranks;
	uint64_t looked_ns;
};

/* All ranks of `comm` together, on one host. Rank 0 watches the others. */
void skep_pids_create(struct skep_pids *pids, MPI_Comm comm);
void skep_pids_destroy(struct skep_pids *pids);

/* Now and then: sets gone[] of those that have ended; true: some have that had not. */
bool skep_pids_look(struct skep_pids *pids, bool *gone);
