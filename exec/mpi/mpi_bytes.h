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

/* ulfm.c: which ranks are dead, as far as an MPI with User Level Failure Mitigation tells. ulfm.c is built where MPI has it,
 * ulfm_none.c where it has not; the run's launcher has to ask for it as well (mpirun --with-ft ulfm), so it is asked for
 * again at run time. */
bool skep_ulfm_built(void);
bool skep_ulfm_active(void); /* after MPI_Init: does this run survive the death of a process? */

/* Does this error of a call on one peer, or on any, mean that a process has died? */
bool skep_ulfm_is_death(int rc);

/* Takes note of all deaths so far, so that receives from any rank go on; gone[rank of comm] becomes true for each. */
void skep_ulfm_failed(MPI_Comm comm, bool *gone);
