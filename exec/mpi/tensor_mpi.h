/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_mpi.h - the collectives of tensor parallelism (models/layers/tensor_group.h) over MPI, among the ranks that share the
 * stage of a worker. They are called by the thread of a device while the loop's thread uses MPI for the messages of the core, so
 * MPI has to be initialised with MPI_THREAD_MULTIPLE.
 *
 * Each collective sends every other rank its part directly, and adds up in the order of the ranks: of V bytes in all a rank
 * sends (T - 1) / T V for an all-gather or a reduce-scatter, as a ring does, in one step instead of T - 1. Behind each part is
 * its sum, 8 bytes that are not counted; a part that was damaged on its way ends the run.
 */
#pragma once

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "models/layers/tensor_group.h"

struct skep_tensor_mpi {
	MPI_Comm comm;
	int rank, ranks;
	MPI_Request *request; /* [2 * ranks] */
	double *part;         /* [ranks] of a sum */
	char *scratch;        /* grows; messages that come, and that go */
	size_t room;
	uint64_t bytes, calls; /* that this rank has sent, and collectives */
	atomic_bool abandoned; /* set: nothing is waited for, and results are worthless */
	struct skep_tensor_group group;
};

/* All ranks of MPI_COMM_WORLD together; those of the same `color` become a group. The struct stays where it is. */
bool skep_tensor_mpi_create(struct skep_tensor_mpi *ret, int color);
/* All ranks of a group together if `clean`; else the connection is left to the end of the process. */
void skep_tensor_mpi_destroy(struct skep_tensor_mpi *tensor, bool clean);
