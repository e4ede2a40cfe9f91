/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c - how the processes of a run come into being: by mpirun, which this file starts, or by whoever has started it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/exec.h"

/* srun numbers real steps from 0; the batch script, an interactive shell and the like have numbers from here on. */
#define SLURM_SPECIAL_STEPS 4294967280u

static bool set(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0';
}

/* Is this a task of an srun step, and not just a shell inside an allocation? */
static bool slurm_step(void)
{
	const char *step = getenv("SLURM_STEP_ID");
	if (!set("SLURM_PROCID") || step == NULL)
		return false;
	char *end;
	unsigned long number = strtoul(step, &end, 10);
	return end != step && *end == '\0' && number < SLURM_SPECIAL_STEPS;
}

bool skep_exec_launched(void)
{
	return set("OMPI_COMM_WORLD_SIZE") || set("PMIX_RANK") || set("PMI_SIZE") || set("PMI_RANK") || slurm_step();
}

bool skep_exec_ready(char *reterr, size_t size)
{
	const char *folder = getenv("PATH");
	char file[4096];
	while (folder != NULL && *folder != '\0') {
		int length = (int)strcspn(folder, ":");
		snprintf(file, sizeof file, "%.*s/mpirun", length, folder);
		if (access(file, X_OK) == 0)
			return true;
		folder += length + (folder[length] == ':');
	}
	snprintf(reterr, size, "mpirun is not installed: apt-get install openmpi-bin");
	return false;
}

/* What mpirun's children are to inherit. OpenBLAS: one thread a rank, before it starts its own. All ranks of a run that
 * mpirun starts outside of a cluster's allocation are on this host, so shared memory will do: Open MPI 5 complains for
 * each pair of ranks when no network interface suits it. */
static void prepare_environment(void)
{
	setenv("OPENBLAS_NUM_THREADS", "1", 1);
	if (!set("SLURM_JOB_ID") && !set("PBS_JOBID") && !set("LSB_JOBID"))
		setenv("OMPI_MCA_btl", "^tcp", 0);
	if (geteuid() != 0)
		return;
	static const char *const allow[] = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", /* Open MPI 4 */
		"PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"};                            /* 5 */
	for (size_t i = 0; i < sizeof allow / sizeof allow[0]; i++)
		setenv(allow[i], "1", 1);
}

void skep_exec_launch(uint32_t ranks, char *const argv[], char *reterr, size_t size)
{
	char program[4096], number[16];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	if (length <= 0) {
		snprintf(reterr, size, "cannot tell where this program is: %s", strerror(errno));
		return;
	}
	program[length] = '\0';
	snprintf(number, sizeof number, "%" PRIu32, ranks);
	/* More ranks than cores; idle ones give way; nobody is tied to a core; after SIGTERM rank 0 gets time to write. */
	char *const option[] = {"mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
		"--mca", "odls_base_sigkill_timeout", "3", "-n", number, program};
	size_t options = sizeof option / sizeof option[0], arguments = 0;
	while (argv[arguments] != NULL)
		arguments++;
	char **all = calloc(options + arguments + 1, sizeof *all);
	if (all == NULL) {
		snprintf(reterr, size, "no memory to start mpirun");
		return;
	}
	memcpy(all, option, sizeof option);
	for (size_t i = 1; i < arguments; i++) /* argv[0] is the program's own name */
		all[options + i - 1] = argv[i];
	prepare_environment();
	execvp(all[0], all);
	snprintf(reterr, size, "mpirun does not start: %s", strerror(errno));
	free(all);
}
