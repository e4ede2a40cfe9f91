/* SPDX-License-Identifier: Apache-2.0
 *
 * host_memory.h - memory that all ranks of a run on one host share, by means of the kernel alone: it stays usable
 * when processes have died, which is not certain of a window of MPI.
 */
#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* All ranks of `comm` together, on one host. All zero at the start, and there to the end of the process. `name` must be the
 * same on all, and of this run alone. NULL, on all of them: there is none to be had. */
void *skep_host_memory_create(MPI_Comm comm, uint64_t name, size_t bytes);
