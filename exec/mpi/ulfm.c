/* SPDX-License-Identifier: Apache-2.0
 *
 * ulfm.c - see mpi_bytes.h: Open MPI 5.
 */
#include "exec/mpi/mpi_bytes.h"

#include <mpi-ext.h>
#include <stdlib.h>

bool skep_ulfm_built(void)
{
	return true;
}

bool skep_ulfm_active(void)
{
	int *active = NULL, found = 0;
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_FT, &active, &found);
	return found && *active;
}

bool skep_ulfm_is_death(int rc)
{
	int class = MPI_SUCCESS;
	if (rc == MPI_SUCCESS || MPI_Error_class(rc, &class) != MPI_SUCCESS)
		return false;
	return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING;
}

void skep_ulfm_failed(MPI_Comm comm, bool *gone)
{
	MPI_Group failed, all;
	int count = 0;
	if (MPIX_Comm_failure_ack(comm) != MPI_SUCCESS || MPIX_Comm_failure_get_acked(comm, &failed) != MPI_SUCCESS)
		return;
	MPI_Group_size(failed, &count);
	int *number = calloc((size_t)count + 1, 2 * sizeof *number), *rank = number + count;
	for (int i = 0; number != NULL && i < count; i++)
		number[i] = i;
	MPI_Comm_group(comm, &all);
	if (number != NULL && count > 0)
		MPI_Group_translate_ranks(failed, count, number, all, rank);
	for (int i = 0; number != NULL && i < count; i++) {
		if (rank[i] != MPI_UNDEFINED)
			gone[rank[i]] = true;
	}
	MPI_Group_free(&all);
	MPI_Group_free(&failed);
	free(number);
}
