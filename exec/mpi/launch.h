/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h - how rank 0 tells the process that has launched the run with which status it has ended. When processes of
 * the run have died, mpirun's exit status does not say that, and mpirun may not end by itself.
 */
#pragma once

#include "exec/exec.h"

/* Rank 0: the run has ended with this status, and everything is written. */
void skep_launch_leave_word(int status);
/* Any other rank: rank 0 is dead, and the run has no outcome. */
void skep_launch_leave_word_of_orphan(void);
bool skep_launch_wants_word(void); /* true: skep has launched this process and waits for that status */
