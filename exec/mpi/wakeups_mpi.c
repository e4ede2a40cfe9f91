/* SPDX-License-Identifier: Apache-2.0
 *
 * wakeups_mpi.c - see transport_mpi.h. A window of MPI's is the better memory, because MPI removes it whatever happens; but it is
 * not made to outlive a process.
 */
#include "exec/mpi/transport_mpi.h"

#include <stdlib.h>
#include <string.h>

#include "exec/mpi/startup.h"

/* Makes the wake-ups of a run that survives the death of a process. On several hosts there are none, and all
 * sleeps are short. */
static bool create_lasting(struct skep_wakeups *wakeups, int rank, int ranks, uint64_t name)
{
	MPI_Comm host = MPI_COMM_NULL; /* it stays that when a process dies meanwhile */
	int here = 0;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
	MPI_Comm_size(host, &here);
	MPI_Comm_free(&host);
	const size_t line = 64;
	unsigned char *memory = NULL;
	if (here == ranks) /* on all of them, or on none */
		memory = skep_host_memory_create(MPI_COMM_WORLD, name, (size_t)ranks * line);
	wakeups->alone = memory != NULL;
	wakeups->wakeup = calloc((size_t)ranks, sizeof(struct skep_wakeup *));
	if (wakeups->wakeup == NULL)
		return false;
	for (int i = 0; memory != NULL && i < ranks; i++)
		wakeups->wakeup[i] = (struct skep_wakeup *)(void *)(memory + (size_t)i * line);
	if (memory == NULL)
		wakeups->wakeup[rank] = calloc(1, sizeof(struct skep_wakeup));
	wakeups->own = wakeups->wakeup[rank];
	return wakeups->own != NULL;
}

/* Makes the wake-ups of the processes of this host, in a window of the host's communicator. */
bool skep_wakeups_create(struct skep_wakeups *wakeups, bool lasting, uint64_t name)
{
	int rank, ranks;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	*wakeups = (struct skep_wakeups){.lasting = lasting};
	if (lasting)
		return create_lasting(wakeups, rank, ranks, name);
	MPI_Comm host;
	MPI_Group world_group, host_group;
	int *number = calloc((size_t)ranks, 2 * sizeof *number), *of_host = number + ranks, here = 0;
	wakeups->wakeup = calloc((size_t)ranks, sizeof(struct skep_wakeup *));
	if (number == NULL || wakeups->wakeup == NULL) {
		free(number);
		return false;
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
	MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, host, &wakeups->own, &wakeups->window); /* a cache line each */
	memset(wakeups->own, 0, sizeof *wakeups->own);
	MPI_Comm_size(host, &here);
	wakeups->alone = here == ranks;
	for (int i = 0; i < ranks; i++)
		number[i] = i;
	MPI_Comm_group(MPI_COMM_WORLD, &world_group);
	MPI_Comm_group(host, &host_group);
	MPI_Group_translate_ranks(world_group, ranks, number, host_group, of_host);
	for (int i = 0; i < ranks; i++) {
		MPI_Aint size;
		int unit;
		if (of_host[i] != MPI_UNDEFINED)
			MPI_Win_shared_query(wakeups->window, of_host[i], &size, &unit, &wakeups->wakeup[i]);
	}
	MPI_Group_free(&world_group);
	MPI_Group_free(&host_group);
	MPI_Barrier(host); /* no process signals a wake-up that its owner is still clearing */
	MPI_Comm_free(&host);
	free(number);
	return true;
}

void skep_wakeups_destroy(struct skep_wakeups *wakeups)
{
	if (!wakeups->lasting)
		MPI_Win_free(&wakeups->window);
	else if (!wakeups->alone)
		free(wakeups->own);
	free(wakeups->wakeup);
}
