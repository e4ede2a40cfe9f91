/* SPDX-License-Identifier: Apache-2.0
 *
 * startup.c - see startup.h.
 */
#include "exec/mpi/startup.h"

#include <mpi.h>
#include <unistd.h>

bool skep_together_agree(struct skep_diag *reterr)
{
	int rank, ranks, first;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int mine = reterr->set ? rank : ranks;
	MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (first == ranks)
		return true;
	MPI_Bcast(reterr, sizeof *reterr, MPI_BYTE, first, MPI_COMM_WORLD);
	return false;
}

bool skep_together_one_host(void)
{
	MPI_Comm host;
	int here = 0, all = 0;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_size(host, &here);
	MPI_Comm_size(MPI_COMM_WORLD, &all);
	MPI_Comm_free(&host);
	return here == all;
}

uint32_t skep_together_host(void)
{
	MPI_Comm host;
	int rank, lowest;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, host);
	MPI_Comm_free(&host);
	return (uint32_t)lowest;
}

struct skep_clock skep_together_clock(bool one_host)
{
	struct skep_clock clock;
	MPI_Barrier(MPI_COMM_WORLD);
	clock.start_ns = skep_monotonic_ns();
	if (one_host)
		MPI_Bcast(&clock.start_ns, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return clock;
}

uint64_t skep_together_name(void)
{
	uint64_t name = skep_monotonic_ns() ^ (uint64_t)getpid() << 40;
	MPI_Bcast(&name, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return name;
}
