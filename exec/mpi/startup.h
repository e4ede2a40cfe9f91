/* SPDX-License-Identifier: Apache-2.0
 *
 * startup.h - what all ranks agree on before the run begins. Every function is collective: all ranks call it at the same place,
 * between MPI_Init and MPI_Finalize. All go by way of rank 0, which so knows who is missing, and have a limit of time.
 */
#pragma once

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/files/files.h"
#include "exec/loop/clock.h"

#define SKEP_START_SAYS_S 5u /* of waiting, until rank 0 says for whom */
#define SKEP_START_AT_WORK                                                                                             \
	10u /* times as long as the limit is what a rank may take that has files to read or to search */

/* The start of a run, in one process. */
struct skep_start {
	uint32_t limit_s;                 /* longest wait for a rank that has nothing to do but to answer */
	struct skep_start_memory *memory; /* of what is said and heard */
	bool lost; /* some rank is dead, or has not answered: the start has failed, and nothing waits for it any more */
	bool orphaned;    /* that one is rank 0 */
	char (*host)[64]; /* rank 0: [ranks] of those who have answered before; "": it has not */
};

/* False, and set: no memory. The others do not know that, and wait for this rank: it has to end them (skep_exec_abort). Nothing
 * below asks for more, so that no rank fails alone. */
bool skep_start_begin(struct skep_start *ret, uint32_t limit_s, struct skep_diag *reterr);
void skep_start_finish(struct skep_start *start);

/* True if the diagnosis of no rank is set; else all ranks get that of the lowest one that has failed. `what` they do
 * beforehand goes into what is said of one that does not come, and `times` the limit it may take. */
bool skep_together_agree(struct skep_start *start, const char *what, uint32_t times, struct skep_diag *reterr);

/* The same, and *ret is on rank 0 the sum of what all bring. */
bool skep_together_sum(struct skep_start *start, const char *what, uint32_t times, uint64_t mine, uint64_t *ret,
	struct skep_diag *reterr);

/* Rank 0's bytes become those of all, which know their number. False: a rank does not answer. */
bool skep_together_tell(struct skep_start *start, const char *what, uint32_t times, void *bytes, uint64_t count,
	struct skep_diag *reterr);

bool skep_together_one_host(const struct skep_start *start);

/* The lowest rank on this one's host: the same for all that share its memory. */
uint32_t skep_together_host(const struct skep_start *start);

/* One instant for all processes of a host; over several hosts each takes its own when rank 0 has heard from all. */
bool skep_together_clock(struct skep_start *start, bool one_host, struct skep_clock *ret, struct skep_diag *reterr);

/* Of rank 0: what names the run, so that a frame of another one is known as such. */
bool skep_together_name(struct skep_start *start, uint64_t *ret, struct skep_diag *reterr);

/* same_files.c: do all ranks read the same? The scenario's text alone says little: a corpus, a model or a trace under the
 * same name may be another one on another host. */

/* Collective. False on all ranks if some rank has read another file than rank 0 in its place: the reason names it, the rank
 * and its host. A file that is the very same one, on the same host, is not read again. */
bool skep_together_same_files(struct skep_start *start, const struct skep_files *files, struct skep_diag *reterr);

/* launch.c: how rank 0 tells the process that has launched the run with which status it has ended. When processes of the run
 * have died, mpirun's exit status does not say that, and mpirun may not end by itself. */

/* Rank 0: the run has ended with this status, and everything is written. */
void skep_launch_leave_word(int status);
/* Any other rank: rank 0 is dead, and the run has no outcome. */
void skep_launch_leave_word_of_orphan(void);
bool skep_launch_wants_word(void); /* true: skep has launched this process and waits for that status */

/* host_memory.c: memory that all ranks of a run on one host share, by means of the kernel alone: it stays usable when
 * processes have died, which is not certain of a window of MPI. */

/* All ranks of `comm` together, on one host. All zero at the start, and there to the end of the process. `name` must be the
 * same on all, and of this run alone. NULL, on all of them: there is none to be had. */
void *skep_host_memory_create(MPI_Comm comm, uint64_t name, size_t bytes);

/* watchdog.c: a limit of time for calls of MPI that wait for other processes and cannot be polled (MPI_Init, windows,
 * splits). */
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
