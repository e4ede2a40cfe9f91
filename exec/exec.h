/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.h - the real world: processes over MPI, a device per worker, the real clock.
 */
#ifndef SKEP_EXEC_EXEC_H
#define SKEP_EXEC_EXEC_H

#include "core/record.h"
#include "scenarios/scenario.h"

struct skep_exec_options {
	bool pace;  /* an operation takes at least the time that the profile gives for the worker's GPU */
	bool shape; /* a message is handed over no earlier than the topology's network model says; one host only */
	enum skep_device_kind device;
};

struct skep_exec_result {
	enum skep_outcome outcome;
	skep_time end_ns;
	uint64_t events; /* machine steps, all ranks */
	bool orphaned;   /* rank 0 has died */
	bool bereaved;   /* some process has */
};

/* Can this build start a run on this machine; if not, `reterr` says what is missing and how to get it. */
bool skep_exec_ready(char *reterr, size_t size);

/* Does a run go on when one of its processes is killed? Before skep_exec_init: could it, with this build; afterwards: does this
 * one (it does not if its launcher was not asked for it). */
bool skep_exec_survives(void);

/* Was this process started by mpirun or srun? */
bool skep_exec_launched(void);

/* Replaces this process by `mpirun -n ranks program args...` with the options that a run needs; returns only on failure,
 * with the reason in reterr (mpirun missing: what to install). */
void skep_exec_launch(uint32_t ranks, char *const argv[], char *reterr, size_t size);

/* The same for a run that survives the death of its processes, but as a child: those that have died may keep mpirun from
 * ending, so it is given some seconds after rank 0 has left word (skep_exec_leave_word). `largest`: bytes of the largest
 * message. Returns the exit status of the run, or -1 with the reason. */
int skep_exec_launch_surviving(uint32_t ranks, uint64_t largest, char *const argv[], char *reterr, size_t size);

/* Rank 0 tells whoever has launched the run how it ended; everything is written by then. */
void skep_exec_leave_word(int status);
bool skep_exec_word_wanted(void); /* was the run launched so? */

/* MPI up and down. *ret_rank 0 is the directory, *ret_ranks all processes. */
bool skep_exec_init(uint32_t *ret_rank, uint32_t *ret_ranks, char *reterr, size_t size);
void skep_exec_finish(void);
/* Instead of it, when processes have died: ends this one. */
void skep_exec_finish_bereaved(int status);
/* Ends every rank at once, after an error on this one that the others cannot hear of (MPI_Abort). */
void skep_exec_abort(void);

/* Runs this rank's machine to its end: rank 0 the directory, rank r worker r-1; needs workers + 1 ranks, and takes more as spares
 * if it survives. Rank 0's `recorder` hears of all ranks; others pass NULL. Returns false with the reason when the run could not go on (device, memory, peer lost). */
bool skep_exec_run(const struct skep_scenario *scenario, const struct skep_exec_options *options,
	const struct skep_recorder *recorder, struct skep_exec_result *ret, char *reterr, size_t size);

#endif
