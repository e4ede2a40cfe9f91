/* SPDX-License-Identifier: Apache-2.0
 *
 * skep.c - the program: its commands, and how it ends. What a command does is in commands/. Each reads as the data flows:
 *
 *     scenario file -> plan -> one of two worlds -> recorder -> database -> compare, plot
 *
 * Results go to stdout, all else to stderr. Exit status: 0 done, 1 the run failed, 2 bad usage or input; a command that a signal
 * ends writes what is finished and then ends by that signal, 128 + its number to a shell.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/process/stop.h"
#include "commands/commands.h"
#include "version.h"

static const struct skep_command *const commands[] = {
	&skep_command_ask,
	&skep_command_check,
	&skep_command_sim,
	&skep_command_run,
	&skep_command_serve,
	&skep_command_join,
	&skep_command_status,
	&skep_command_slurm,
	&skep_command_runs,
	&skep_command_compare,
	&skep_command_plan,
	&skep_command_sweep,
	&skep_command_jobs,
	&skep_command_published,
	&skep_command_plot,
	&skep_command_report,
	&skep_command_fit,
	&skep_command_export,
	&skep_command_replay,
	&skep_command_probe,
	&skep_command_calibrate,
	&skep_command_topology,
	&skep_command_trace,
	&skep_command_bench,
	&skep_command_doctor,
	&skep_command_help,
	NULL,
};

static const struct skep_example examples[] = {
	{"skep check scenarios/two-datacentres.yaml", "what would run, and does it fit in memory?"},
	{"skep sim scenarios/two-datacentres.yaml", "how fast would it train, and what does it cost?"},
	{"skep run scenarios/two-datacentres.yaml --pace --shape",
		"train for real, on this machine at the cluster's speed"},
	{"skep compare", "the prediction beside what happened"},
	{0},
};

static const struct skep_program skep = {
	.name = "skep",
	.version = SKEP_VERSION,
	.date = SKEP_DATE,
	.summary = "simulate and run training on unreliable, mixed GPUs",
	.text = "Training on pools of GPUs of mixed types that join, leave and have uneven links: skep simulates a "
		"scenario file, runs the same file for real over MPI, and compares the two.",
	.command = commands,
	.example = examples,
};

/* Where the memory of the process is limited a thread of OpenBLAS, which begins when the program is loaded, may look for some
 * for ever, and what the library does at the end of a program waits for it: that is left out. */
static int leave(enum status status)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		fflush(NULL);
		_exit((int)status);
	}
	return (int)status;
}

/* A result that could not be written is an error, whatever the command's own status. A file that would outgrow the system's
 * limit is reported like a full disk. */
int main(int argc, char **argv)
{
	signal(SIGXFSZ, SIG_IGN);
	enum status status = skep_program_run(&skep, argc, argv);
	bool flushed = fflush(stdout) == 0;
	if (status > STATUS_SIGNAL)
		skep_stop_die((int)status - STATUS_SIGNAL);
	if (flushed && !ferror(stdout))
		return leave(status);
	fprintf(stderr, "skep: the results could not all be written to standard output%s%s\n", flushed ? "" : ": ",
		flushed ? "" : strerror(errno));
	return leave(status == STATUS_DONE ? STATUS_FAILED : status);
}
