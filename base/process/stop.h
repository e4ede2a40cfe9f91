/* SPDX-License-Identifier: Apache-2.0
 *
 * stop.h - SIGINT, SIGTERM and SIGHUP as a wish that a command grants when what it does is whole. Said again, it ends the process
 * wherever it is.
 */
#pragma once

#include <signal.h>

/* From here on the first such signal does nothing but stand in what is returned: its number, 0 until then. A SIGHUP that is
 * ignored (nohup) stays so. */
const volatile sig_atomic_t *skep_stop_listen(void);
/* The same number, for those who were not handed the place. */
int skep_stop_asked(void);
/* Signals end the process again. What has come is kept. */
void skep_stop_deafen(void);

/* Ends the process by this signal, so that its parent process learns of the signal; returns if that cannot be. */
void skep_stop_die(int number);
