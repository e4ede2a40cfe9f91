/* SPDX-License-Identifier: Apache-2.0
 *
 * ulfm.h - which ranks are dead, as far as an MPI with User Level Failure Mitigation tells. ulfm.c is built where MPI
 * has it, ulfm_none.c where it has not; the run's launcher has to ask for it as well (mpirun --with-ft ulfm), so it
 * is asked for again at run time.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

bool skep_ulfm_built(void);
bool skep_ulfm_active(void); /* after MPI_Init: does this run survive the death of a process? */

/* Does this error of a call on one peer, or on any, mean that a process has died? */
bool skep_ulfm_is_death(int rc);

/* Takes note of all deaths so far, so that receives from any rank go on; gone[rank of comm] becomes true for each. */
void skep_ulfm_failed(MPI_Comm comm, bool *gone);
