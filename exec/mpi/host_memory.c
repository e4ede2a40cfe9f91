/* SPDX-License-Identifier: Apache-2.0
 *
 * host_memory.c - see startup.h. The memory has a name only until all have found it.
 */
#include "exec/mpi/startup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

void *skep_host_memory_create(MPI_Comm comm, uint64_t name, size_t bytes)
{
	char path[64];
	int rank, lacking = 0;
	MPI_Comm_rank(comm, &rank);
	snprintf(path, sizeof path, "/skep-%016" PRIx64, name);
	int file = rank == 0 ? shm_open(path, O_RDWR | O_CREAT | O_EXCL, 0600) : -1;
	bool made = rank != 0 || (file >= 0 && ftruncate(file, (off_t)bytes) == 0);
	MPI_Barrier(comm);
	if (rank != 0)
		file = shm_open(path, O_RDWR, 0);
	void *memory = made && file >= 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
	int lacks = memory == MAP_FAILED;
	MPI_Allreduce(&lacks, &lacking, 1, MPI_INT, MPI_SUM, comm);
	if (rank == 0)
		shm_unlink(path);
	if (file >= 0)
		close(file);
	return lacking == 0 ? memory : NULL;
}
