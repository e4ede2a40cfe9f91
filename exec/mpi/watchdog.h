/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.h - a limit of time for calls of MPI that wait for other processes and cannot be polled (MPI_Init, windows, splits).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct skep_watchdog {
	const char *what; /* this process waits for; text of the caller's, which lives until the end */
	uint32_t limit_s;
	bool over, runs;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	pthread_t thread;
};

/* From now on a thread watches: after a few seconds rank 0 says what it waits for, and after limit_s the process says so, leaves
 * the launcher the word that the run has failed, and ends with status 1. Without a thread to spare nothing is watched. */
void skep_watchdog_begin(struct skep_watchdog *watchdog, uint32_t limit_s, const char *what);
void skep_watchdog_end(struct skep_watchdog *watchdog);
