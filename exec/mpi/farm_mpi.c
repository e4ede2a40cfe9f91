/* SPDX-License-Identifier: Apache-2.0
 *
 * farm_mpi.c - the farm's messages over MPI: see farm.h. A process never waits for a message inside MPI, which
 * would spin on a core that the jobs need; it polls and sleeps in between.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec/mpi/farm.h"
#include "exec/mpi/mpi_bytes.h"

#define TAG 1
#define MEET_S 600u
#define NAP_US 500

bool skep_farm_init(uint32_t *ret_rank, uint32_t *ret_ranks, struct skep_diag *reterr)
{
	int rank, ranks;
	signal(SIGPIPE, SIG_IGN);
	if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
		return skep_fail(reterr, "MPI does not start");
	if (skep_ulfm_active())
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	*ret_rank = (uint32_t)rank;
	*ret_ranks = (uint32_t)ranks;
	return true;
}

bool skep_farm_send(uint32_t rank, const void *bytes, uint64_t count)
{
	MPI_Request request;
	int done = 0;
	if (count > SKEP_FARM_BYTES_MAX ||
		skep_mpi_send(bytes, count, (int)rank, TAG, MPI_COMM_WORLD, &request) != MPI_SUCCESS)
		return false;
	while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
		if (done)
			return true;
		usleep(NAP_US);
	}
	return false;
}

bool skep_farm_receive(uint32_t *ret_rank, void **ret, uint64_t *ret_count)
{
	MPI_Message message;
	MPI_Status status;
	MPI_Request request;
	int there = 0;
	if (MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &message, &status) != MPI_SUCCESS || !there)
		return false;
	*ret_rank = (uint32_t)status.MPI_SOURCE;
	*ret_count = skep_mpi_size(&status);
	*ret = malloc(*ret_count > 0 ? *ret_count : 1);
	if (*ret == NULL)
		skep_farm_abort(1); /* the message cannot be left where it is */
	if (skep_mpi_receive(*ret, *ret_count, &message, &request) == MPI_SUCCESS &&
		MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS)
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}

bool skep_farm_gone(uint32_t rank)
{
	int ranks;
	if (!skep_ulfm_active())
		return false;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	bool *gone = calloc((size_t)ranks, sizeof *gone);
	bool answer = false;
	if (gone != NULL) {
		skep_ulfm_failed(MPI_COMM_WORLD, gone);
		answer = gone[rank];
	}
	free(gone);
	return answer;
}

void skep_farm_finish(void)
{
	if (!skep_mpi_meet(MPI_COMM_WORLD, MEET_S))
		skep_farm_abort(1); /* a rank has died, and MPI_Finalize would wait for it */
	MPI_Finalize();
}

void skep_farm_abort(int status)
{
	MPI_Abort(MPI_COMM_WORLD, status);
}
