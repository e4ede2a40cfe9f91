/* SPDX-License-Identifier: Apache-2.0
 *
 * startup.h - what all ranks agree on before the run begins. Every function is collective: all ranks call it at the
 * same place, between MPI_Init and MPI_Finalize.
 */
#ifndef SKEP_EXEC_MPI_STARTUP_H
#define SKEP_EXEC_MPI_STARTUP_H

#include "base/diag.h"
#include "exec/loop/clock.h"

/* True if the diagnosis of no rank is set; else all ranks get that of the lowest one that has failed. */
bool skep_together_agree(struct skep_diag *reterr);

bool skep_together_one_host(void);

/* The lowest rank on this one's host: the same for all that share its memory. */
uint32_t skep_together_host(void);

/* One instant for all processes of a host; over several hosts each takes its own after the barrier. */
struct skep_clock skep_together_clock(bool one_host);

/* Of rank 0: what names the run, so that a frame of another one is known as such. */
uint64_t skep_together_name(void);

#endif
