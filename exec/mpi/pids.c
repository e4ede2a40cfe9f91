/* SPDX-License-Identifier: Apache-2.0
 *
 * pids.c - see transport_mpi.h. Without descriptors of processes (Linux before 5.3) nothing is watched.
 */
#include "exec/mpi/transport_mpi.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/loop/clock.h"

#define LOOK_NS 1000000u

void skep_pids_create(struct skep_pids *pids, MPI_Comm comm)
{
	int rank, ranks, own = (int)getpid();
	*pids = (struct skep_pids){0};
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	int *all = calloc((size_t)ranks, sizeof *all);
	struct pollfd *process = calloc((size_t)ranks, sizeof *process);
	MPI_Gather(&own, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
	for (int i = 0; rank == 0 && all != NULL && process != NULL && i < ranks; i++) {
		int file = i > 0 ? (int)syscall(SYS_pidfd_open, all[i], 0) : -1; /* poll passes over -1 */
		process[i] = (struct pollfd){.fd = file, .events = POLLIN};
	}
	free(all);
	if (rank == 0 && process != NULL)
		*pids = (struct skep_pids){.process = process, .ranks = (uint32_t)ranks};
	else
		free(process);
}

void skep_pids_destroy(struct skep_pids *pids)
{
	for (uint32_t i = 0; i < pids->ranks; i++) {
		if (pids->process[i].fd >= 0)
			close(pids->process[i].fd);
	}
	free(pids->process);
	*pids = (struct skep_pids){0};
}

bool skep_pids_look(struct skep_pids *pids, bool *gone)
{
	bool any = false;
	uint64_t now = pids->process != NULL ? skep_monotonic_ns() : 0;
	if (pids->process == NULL || now < pids->looked_ns + LOOK_NS)
		return false;
	pids->looked_ns = now;
	if (poll(pids->process, pids->ranks, 0) <= 0)
		return false;
	for (uint32_t i = 0; i < pids->ranks; i++) {
		if (pids->process[i].fd < 0 || pids->process[i].revents == 0)
			continue;
		any = any || !gone[i];
		gone[i] = true;
		close(pids->process[i].fd);
		pids->process[i].fd = -1;
	}
	return any;
}
