/* SPDX-License-Identifier: Apache-2.0
 *
 * wakeups_mpi.c - see transport_mpi.h. A window of MPI's is the better memory, because MPI removes it whatever happens; but it is
 * not made to outlive a process.
 */
#include "exec/mpi/transport_mpi.h"

#include <stdlib.h>
#include <string.h>

#include "exec/mpi/startup.h"

static void free_memory(struct skep_wakeups *wakeups)
{
	free(wakeups->wakeup);
	free(wakeups->lone);
	free(wakeups->number);
}

/* Makes the wake-ups of a run that survives the death of a process. On several hosts there are none, and all
 * sleeps are short. */
static void connect_lasting(struct skep_wakeups *wakeups, int rank, int ranks, uint64_t run)
{
	MPI_Comm host = MPI_COMM_NULL; /* it stays that when a process dies meanwhile */
	int here = 0;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
	MPI_Comm_size(host, &here);
	MPI_Comm_free(&host);
	const size_t line = 64;
	unsigned char *memory = NULL;
	if (here == ranks) /* on all of them, or on none */
		memory = skep_host_memory_create(MPI_COMM_WORLD, run, (size_t)ranks * line);
	wakeups->alone = memory != NULL;
	for (int i = 0; memory != NULL && i < ranks; i++)
		wakeups->wakeup[i] = (struct skep_wakeup *)(void *)(memory + (size_t)i * line);
	if (memory == NULL)
		wakeups->wakeup[rank] = wakeups->lone;
	wakeups->own = wakeups->wakeup[rank];
}

bool skep_wakeups_create(struct skep_wakeups *ret, bool lasting)
{
	int ranks;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	*ret = (struct skep_wakeups){.lasting = lasting};
	ret->wakeup = calloc((size_t)ranks, sizeof(struct skep_wakeup *));
	ret->lone = calloc(1, sizeof(struct skep_wakeup));
	ret->number = calloc((size_t)ranks, 2 * sizeof *ret->number);
	if (ret->wakeup != NULL && ret->lone != NULL && ret->number != NULL)
		return true;
	free_memory(ret);
	return false;
}

/* Unless they have to last they are in a window of the host's communicator. */
void skep_wakeups_connect(struct skep_wakeups *wakeups, uint64_t run)
{
	int rank, ranks, here = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (wakeups->lasting) {
		connect_lasting(wakeups, rank, ranks, run);
		return;
	}
	MPI_Comm host;
	MPI_Group world_group, host_group;
	int *number = wakeups->number, *of_host = number + ranks;
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
}

void skep_wakeups_destroy(struct skep_wakeups *wakeups)
{
	if (!wakeups->lasting)
		MPI_Win_free(&wakeups->window);
	free_memory(wakeups);
}
