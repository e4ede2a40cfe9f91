/* SPDX-License-Identifier: Apache-2.0
 *
 * bells_mpi.c - see bells_mpi.h. A window of MPI's is the better memory, because MPI removes it whatever happens; but it is
 * not made to outlive a process.
 */
#include "exec/bells_mpi.h"

#include <stdlib.h>
#include <string.h>

#include "exec/host_memory.h"

/* The bells of a run that survives its processes. On several hosts there are none, and all naps are short. */
static bool create_lasting(struct skep_bells *bells, int rank, int ranks, uint64_t name)
{
	MPI_Comm host;
	int here = 0;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
	MPI_Comm_size(host, &here);
	MPI_Comm_free(&host);
	const size_t line = 64;
	unsigned char *memory = NULL;
	if (here == ranks) /* on all of them, or on none */
		memory = skep_host_memory_create(MPI_COMM_WORLD, name, (size_t)ranks * line);
	bells->alone = memory != NULL;
	bells->bell = calloc((size_t)ranks, sizeof(struct skep_bell *));
	if (bells->bell == NULL)
		return false;
	for (int i = 0; memory != NULL && i < ranks; i++)
		bells->bell[i] = (struct skep_bell *)(void *)(memory + (size_t)i * line);
	if (memory == NULL)
		bells->bell[rank] = calloc(1, sizeof(struct skep_bell));
	bells->own = bells->bell[rank];
	return bells->own != NULL;
}

/* The bells of the processes of this host, in a window of the host's communicator. */
bool skep_bells_create(struct skep_bells *bells, bool lasting, uint64_t name)
{
	int rank, ranks;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	*bells = (struct skep_bells){.lasting = lasting};
	if (lasting)
		return create_lasting(bells, rank, ranks, name);
	MPI_Comm host;
	MPI_Group world_group, host_group;
	int *number = calloc((size_t)ranks, 2 * sizeof *number), *of_host = number + ranks, here = 0;
	bells->bell = calloc((size_t)ranks, sizeof(struct skep_bell *));
	if (number == NULL || bells->bell == NULL) {
		free(number);
		return false;
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
	MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, host, &bells->own, &bells->window); /* a cache line each */
	memset(bells->own, 0, sizeof *bells->own);
	MPI_Comm_size(host, &here);
	bells->alone = here == ranks;
	for (int i = 0; i < ranks; i++)
		number[i] = i;
	MPI_Comm_group(MPI_COMM_WORLD, &world_group);
	MPI_Comm_group(host, &host_group);
	MPI_Group_translate_ranks(world_group, ranks, number, host_group, of_host);
	for (int i = 0; i < ranks; i++) {
		MPI_Aint size;
		int unit;
		if (of_host[i] != MPI_UNDEFINED)
			MPI_Win_shared_query(bells->window, of_host[i], &size, &unit, &bells->bell[i]);
	}
	MPI_Group_free(&world_group);
	MPI_Group_free(&host_group);
	MPI_Barrier(host); /* nobody rings a bell that is still being cleared */
	MPI_Comm_free(&host);
	free(number);
	return true;
}

void skep_bells_destroy(struct skep_bells *bells)
{
	if (!bells->lasting)
		MPI_Win_free(&bells->window);
	else if (!bells->alone)
		free(bells->own);
	free(bells->bell);
}
