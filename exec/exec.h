/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.h - the real world: processes over MPI, a device per worker, the real clock.
 */
#pragma once

#include "base/diag.h"
#include "core/record.h"
#include "scenarios/read/scenario.h"

struct skep_exec_options {
	bool bind;  /* each worker keeps to cores of its own, where its host has enough (neighbours.h) */
	bool pace;  /* an operation takes at least the time that the profile gives for the worker's GPU */
	bool shape; /* a message is handed over no earlier than the topology's network model says; one host only */
	enum skep_device_kind device;
	bool has_spares; /* `spares` was asked for: the run shall survive the death of its processes */
	uint32_t spares;
	uint32_t start_limit_s; /* longest wait for a rank during the start; 0: SKEP_EXEC_START_LIMIT_S */
};
#define SKEP_EXEC_START_LIMIT_S 60u
#define SKEP_EXEC_SPARES_MAX 4096u

struct skep_exec_result {
	enum skep_outcome outcome;
	skep_time end_ns;
	uint64_t events; /* machine steps, all ranks */
	bool alone;      /* this rank has failed, and nothing says that rank 0 knows: the others may wait for it */
	bool orphaned;   /* rank 0 has died */
	bool bereaved;   /* some process has */
	int signal;      /* that rank 0 was told to end by; 0: none */
};

/* Can this build start such a run on this machine; if not, `reterr` says what is missing and how to get it. */
bool skep_exec_ready(const struct skep_exec_options *options, struct skep_diag *reterr);

/* Does a run go on when one of its processes is killed? Before skep_exec_init: could it, with this build; afterwards: does this
 * one (it does not if its launcher was not asked for it). */
bool skep_exec_survives(void);

/* Was this process started by mpirun or srun? */
bool skep_exec_launched(void);

/* Starts mpirun with this very program, its arguments, and the options that a run needs, and waits for its end. Returns the
 * run's exit status, or -1: it did not start. Where there is something to say that the run could not say itself it is in
 * reterr, else that is clear. */
int skep_exec_launch(const struct skep_scenario *scenario, const struct skep_exec_options *options, char *const argv[],
	struct skep_diag *reterr);

/* The same for a command that is no run: so many processes, which end together. */
int skep_exec_launch_ranks(uint32_t ranks, char *const argv[], struct skep_diag *reterr);

/* MPI up and down. *ret_rank 0 is the directory, *ret_ranks all processes. A process that has waited for the others for limit_s
 * seconds says so and ends. `threads`: several threads of a process will call MPI, as they do with tensor parallelism. */
bool skep_exec_init(uint32_t limit_s, bool threads, uint32_t *ret_rank, uint32_t *ret_ranks, struct skep_diag *reterr);
/* Collective: rank 0's numbers become those of all. When a rank does not come within ten times limit_s, for rank 0 may have to
 * work for the numbers, all are ended (MPI_Abort). */
void skep_exec_tell_all(uint64_t *number, uint32_t count, uint32_t limit_s);
/* `status` is the run's, known to rank 0. When processes have died this ends the process. */
void skep_exec_finish(int status, const struct skep_exec_result *result);
/* Ends every rank at once, after an error on this one that the others cannot hear of (MPI_Abort). */
void skep_exec_abort(int status);

/* Runs this rank's machine to its end: rank 0 the directory, rank r worker r-1; needs workers + 1 ranks, and takes more as
 * spares if it survives. Of a scenario whose stages are split over T ranks (shard.h) ranks p T to p T + T - 1 run machine p
 * together, each about its own shard. Rank 0's `recorder` hears of all ranks; others pass NULL. Returns false with the reason
 * when the run could not go on (device, memory, peer lost). */
bool skep_exec_run(const struct skep_scenario *scenario, const struct skep_exec_options *options,
	const struct skep_recorder *recorder, struct skep_exec_result *ret, struct skep_diag *reterr);
