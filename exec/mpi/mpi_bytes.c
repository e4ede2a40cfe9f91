/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_bytes.c - see mpi_bytes.h.
 */
#include "exec/mpi/mpi_bytes.h"

#include <assert.h>
#include <time.h>

#include "exec/loop/clock.h"

#define UNIT (UINT64_C(1) << 30) /* bytes that are sent as such */

/* MPI counts in int: a tensor of UNIT bytes or more is one element of a type made for it. */
static int body_type(uint64_t bytes, MPI_Datatype *ret)
{
	assert(bytes >= UNIT && bytes / UNIT <= INT32_MAX);
	int lengths[2] = {(int)(bytes / UNIT), (int)(bytes % UNIT)};
	MPI_Aint places[2] = {0, (MPI_Aint)(bytes / UNIT * UNIT)};
	MPI_Datatype big = MPI_DATATYPE_NULL;
	*ret = MPI_DATATYPE_NULL;
	int rc = MPI_Type_contiguous((int)UNIT, MPI_BYTE, &big);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = MPI_Type_create_struct(2, lengths, places, (MPI_Datatype[2]){big, MPI_BYTE}, ret);
	MPI_Type_free(&big);
	if (rc == MPI_SUCCESS && (rc = MPI_Type_commit(ret)) != MPI_SUCCESS)
		MPI_Type_free(ret);
	return rc;
}

int skep_mpi_send(const void *body, uint64_t bytes, int peer, int tag, MPI_Comm comm, MPI_Request *ret)
{
	MPI_Datatype type;
	*ret = MPI_REQUEST_NULL;
	if (bytes < UNIT)
		return MPI_Isend(body, (int)bytes, MPI_BYTE, peer, tag, comm, ret);
	int rc = body_type(bytes, &type);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = MPI_Isend(body, 1, type, peer, tag, comm, ret);
	MPI_Type_free(&type);
	return rc;
}

int skep_mpi_receive(void *body, uint64_t bytes, MPI_Message *matched, MPI_Request *ret)
{
	MPI_Datatype type;
	*ret = MPI_REQUEST_NULL;
	if (bytes < UNIT)
		return MPI_Imrecv(body, (int)bytes, MPI_BYTE, matched, ret);
	int rc = body_type(bytes, &type);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = MPI_Imrecv(body, 1, type, matched, ret);
	MPI_Type_free(&type);
	return rc;
}

uint64_t skep_mpi_size(const MPI_Status *status)
{
	MPI_Count bytes = 0;
	MPI_Get_elements_x(status, MPI_BYTE, &bytes);
	assert(bytes >= 0);
	return (uint64_t)bytes;
}

bool skep_mpi_meet(MPI_Comm comm, uint32_t seconds)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t deadline_ns = skep_monotonic_ns() + (uint64_t)seconds * 1000000000u;
	MPI_Request met = MPI_REQUEST_NULL;
	int done = 0;
	if (MPI_Ibarrier(comm, &met) != MPI_SUCCESS)
		return false;
	while (MPI_Test(&met, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done && skep_monotonic_ns() < deadline_ns)
		nanosleep(&nap, NULL);
	return done != 0;
}
