/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.c - see startup.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec/mpi/startup.h"

/* The number that the launcher gave this process, which has it before MPI_Init. */
static const char *number(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (getenv(names[i]) != NULL)
			return getenv(names[i]);
	}
	return "?";
}

/* False: it ended before. */
static bool outlasts(struct skep_watchdog *w, const struct timespec *began, uint32_t seconds)
{
	struct timespec until = {began->tv_sec + seconds, began->tv_nsec};
	while (!w->over && pthread_cond_timedwait(&w->ended, &w->lock, &until) != ETIMEDOUT)
		;
	return !w->over;
}

static void *watch(void *argument)
{
	struct skep_watchdog *w = argument;
	char host[64] = "";
	const char *rank = number();
	bool root = strcmp(rank, "0") == 0;
	struct timespec began;
	clock_gettime(CLOCK_MONOTONIC, &began);
	gethostname(host, sizeof host - 1);
	pthread_mutex_lock(&w->lock);
	if (w->limit_s > SKEP_START_SAYS_S && outlasts(w, &began, SKEP_START_SAYS_S) && root)
		fprintf(stderr, "skep: rank 0 on %s has waited for %u s: %s\n", host, SKEP_START_SAYS_S, w->what);
	if (outlasts(w, &began, w->limit_s)) {
		fprintf(stderr,
			"skep: rank %s on %s has waited for %" PRIu32 " s and gives up: %s; see whether all hosts live "
			"and reach each other, or take a longer --start-limit\n",
			rank, host, w->limit_s, w->what);
		if (root)
			skep_launch_leave_word(1);
		_exit(1);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void skep_watchdog_begin(struct skep_watchdog *w, uint32_t limit_s, const char *what)
{
	pthread_condattr_t attributes;
	sigset_t all, before;
	*w = (struct skep_watchdog){.what = what, .limit_s = limit_s};
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the thread that has begun this one */
	w->runs = pthread_create(&w->thread, NULL, watch, w) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void skep_watchdog_end(struct skep_watchdog *w)
{
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	if (w->runs)
		pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
}
