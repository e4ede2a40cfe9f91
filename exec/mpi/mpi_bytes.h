/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_bytes.h - adds what MPI lacks: messages of any length (MPI counts in int), and a barrier with a time limit.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* As MPI_Isend and MPI_Imrecv. */
int skep_mpi_send(const void *body, uint64_t bytes, int peer, int tag, MPI_Comm comm, MPI_Request *ret);
int skep_mpi_receive(void *body, uint64_t bytes, MPI_Message *matched, MPI_Request *ret);

uint64_t skep_mpi_size(const MPI_Status *status); /* bytes of a message that a probe has found */

/* A barrier that does not wait for ever, and sleeps: false if not all came within so many seconds. */
bool skep_mpi_meet(MPI_Comm comm, uint32_t seconds);
