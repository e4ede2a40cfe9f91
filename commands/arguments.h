/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.h - the command line of the program: which options there are, what a command takes, and what a user gave.
 */
#ifndef SKEP_COMMANDS_ARGUMENTS_H
#define SKEP_COMMANDS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/plot.h"
#include "exec/exec.h"
#include "scenarios/scenario.h"
#include "scenarios/vary.h"

#define SETS_MAX 64
#define PLAN_CONFIRM_SEEDS_MOST 1000u
#define SETS_ROOM (SETS_MAX + SKEP_VARY_KEYS_MAX + 4) /* with what a plan adds */
#define RUNS_MAX 256
#define VARIES_MAX 64

/* Above STATUS_SIGNAL: by so much the signal that ended the command, when all that was to be written is. */
enum status { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_BAD_INPUT = 2, STATUS_SIGNAL = 128 };

struct arguments {
	const char *set[SETS_ROOM];
	struct skep_scenario_options scenario;
	const char *db, *output, *metric;     /* metric NULL: not given */
	const char *vary[VARIES_MAX], *seeds; /* of a sweep; seeds NULL: not given */
	uint32_t varies, jobs;                /* jobs 0: not given */
	bool details;
	bool has_axes;
	struct skep_plot_axes axes;
	bool has_from;
	uint32_t from;   /* the first round that `fit` takes */
	double budget_s; /* 0: not given */
	bool explain, pareto;
	uint32_t confirm; /* seeds; 0: not given */
	bool has_db;
	uint32_t step; /* of a checkpoint; 0: not given */
	bool bf16;
	bool resume, keep;   /* resume.h */
	uint32_t ranks;      /* 0: not given */
	uint32_t repeat;     /* 1: not given */
	uint32_t threads;    /* 0: not given */
	char time_scale[64]; /* as --set has it */
	bool json, quiet, has_rounds;
	struct skep_plot_rounds rounds;
	struct skep_exec_options exec;
	char **positional;
	uint32_t positionals;
	char **argv; /* the whole command line, for mpirun */
};

struct command {
	const char *name, *operands, *summary;
	const char *options;  /* letters of long_options that it takes */
	uint32_t least, most; /* operands */
	enum status (*run)(const struct arguments *arguments);
	const char *help;
};

/* Reads the options and operands of one command; argv[0] begins what getopt_long() says. Says itself what is wrong. *ret_help:
 * the user asks for the command's help, and nothing else counts. */
enum status skep_arguments_read(
	const struct command *command, int argc, char **argv, struct arguments *ret, bool *ret_help);
void skep_arguments_print_help(const struct command *command, FILE *out);

/* The scenario that the first operand names, with what --set and --seed say; false: it was said what is wrong. */
bool skep_arguments_scenario(const struct arguments *arguments, struct skep_scenario *ret);

/* Operands `first` and on are numbers of runs; false: one is not, and it was said. */
bool skep_arguments_runs(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count);
/* The same, and 3..14 stands for all of these; at most RUNS_MAX. */
bool skep_arguments_run_ranges(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count);

#endif
