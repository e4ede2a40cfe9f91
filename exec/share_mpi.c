/* SPDX-License-Identifier: Apache-2.0
 *
 * share_mpi.c - see share.h. Nobody waits inside MPI for a message: it would turn there, on a core that the work needs.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec/mpi_bytes.h"
#include "exec/share.h"
#include "exec/ulfm.h"

#define TAG 1
#define MEET_S 600u
#define NAP_US 500

bool skep_share_init(uint32_t *ret_rank, uint32_t *ret_ranks, char *reterr, size_t size)
{
	int rank, ranks;
	signal(SIGPIPE, SIG_IGN);
	if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
		snprintf(reterr, size, "MPI does not start");
		return false;
	}
	if (skep_ulfm_active())
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	*ret_rank = (uint32_t)rank;
	*ret_ranks = (uint32_t)ranks;
	return true;
}

bool skep_share_send(uint32_t rank, const void *bytes, uint64_t count)
{
	MPI_Request request;
	int done = 0;
	if (count > SKEP_SHARE_BYTES_MAX ||
		skep_mpi_send(bytes, count, (int)rank, TAG, MPI_COMM_WORLD, &request) != MPI_SUCCESS)
		return false;
	while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
		if (done)
			return true;
		usleep(NAP_US);
	}
	return false;
}

bool skep_share_receive(uint32_t *ret_rank, void **ret, uint64_t *ret_count)
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
		skep_share_abort(1); /* the message cannot be left where it is */
	if (skep_mpi_receive(*ret, *ret_count, &message, &request) == MPI_SUCCESS &&
		MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS)
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}

bool skep_share_gone(uint32_t rank)
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

void skep_share_finish(void)
{
	if (!skep_mpi_meet(MPI_COMM_WORLD, MEET_S))
		skep_share_abort(1); /* somebody has died, and MPI_Finalize would wait for them */
	MPI_Finalize();
}

void skep_share_abort(int status)
{
	MPI_Abort(MPI_COMM_WORLD, status);
}
