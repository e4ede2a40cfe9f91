/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h - what a run and the process that has launched it say to each other. A run that outlives its processes cannot
 * tell by its own exit status how it has ended, nor end mpirun; so rank 0 leaves word.
 */
#ifndef SKEP_EXEC_LAUNCH_H
#define SKEP_EXEC_LAUNCH_H

#include "exec/exec.h"

/* Rank 0: the run has ended with this status, and everything is written. */
void skep_launch_leave_word(int status);
bool skep_launch_wants_word(void); /* does somebody wait for it? */

#endif
