/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c - see launch.h.
 */
#include "commands/launch.h"

#include <stdlib.h>
#include <string.h>

#include "planning/problem.h"

/* What was searched for is handed on to all ranks, so that none has to look for it again. */
static int launch_with(
	const struct arguments *arguments, const struct skep_scenario *scenario, char *reterr, size_t size)
{
	char option[] = "--set", *assignment = skep_planning_own_assignment(scenario);
	size_t options = 0, words = 0;
	while (arguments->argv[options] != NULL && strcmp(arguments->argv[options], "--") != 0)
		options++; /* the last of these wins */
	while (arguments->argv[words] != NULL)
		words++;
	char **argv = calloc(words + 3, sizeof *argv);
	int status = -1;
	if (argv && assignment) {
		memcpy(argv, arguments->argv, options * sizeof *argv);
		argv[options] = option;
		argv[options + 1] = assignment;
		memcpy(argv + options + 2, arguments->argv + options, (words - options) * sizeof *argv);
		status = skep_exec_launch(scenario, &arguments->exec, argv, reterr, size);
	} else {
		snprintf(reterr, size, "not enough memory to start the run");
	}
	free(argv);
	free(assignment);
	return status;
}

int skep_launch(const struct arguments *arguments, const struct skep_scenario *scenario, char *reterr, size_t size)
{
	if (skep_allocation_searched(scenario->allocation) && arguments->scenario.sets < SETS_MAX)
		return launch_with(arguments, scenario, reterr, size);
	return skep_exec_launch(scenario, &arguments->exec, arguments->argv, reterr, size);
}
