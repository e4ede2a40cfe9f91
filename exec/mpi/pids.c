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

bool skep_pids_create(struct skep_pids *ret, int rank, int ranks)
{
	*ret = (struct skep_pids){0};
	if (rank > 0)
		return true;
	ret->pid = calloc((size_t)ranks, sizeof *ret->pid);
	ret->process = calloc((size_t)ranks, sizeof *ret->process);
	for (int i = 0; ret->process != NULL && i < ranks; i++)
		ret->process[i].fd = -1; /* poll passes over it */
	if (ret->pid != NULL && ret->process != NULL)
		return true;
	skep_pids_destroy(ret);
	return false;
}

void skep_pids_connect(struct skep_pids *pids, MPI_Comm comm)
{
	int ranks, own = (int)getpid();
	MPI_Comm_size(comm, &ranks);
	MPI_Gather(&own, 1, MPI_INT, pids->pid, 1, MPI_INT, 0, comm);
	for (int i = 1; pids->process != NULL && i < ranks; i++)
		pids->process[i] =
			(struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pids->pid[i], 0), .events = POLLIN};
	pids->ranks = pids->process != NULL ? (uint32_t)ranks : 0;
}

void skep_pids_destroy(struct skep_pids *pids)
{
	for (uint32_t i = 0; i < pids->ranks; i++) {
		if (pids->process[i].fd >= 0)
			close(pids->process[i].fd);
	}
	free(pids->process);
	free(pids->pid);
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
