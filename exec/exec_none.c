/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_none.c - stands in for the executor where MPI was not found at build time: every function says so.
 */
#include <stdio.h>

#include "exec/exec.h"

static const char missing[] =
	"this program was built without MPI: apt-get install libopenmpi-dev openmpi-bin, and build again";

bool skep_exec_ready(char *reterr, size_t size)
{
	snprintf(reterr, size, "%s", missing);
	return false;
}

bool skep_exec_survives(void)
{
	return false;
}

int skep_exec_launch_surviving(uint32_t ranks, uint64_t largest, char *const argv[], char *reterr, size_t size)
{
	(void)ranks;
	(void)largest;
	(void)argv;
	snprintf(reterr, size, "%s", missing);
	return -1;
}

void skep_exec_leave_word(int status)
{
	(void)status;
}

bool skep_exec_launched(void)
{
	return false;
}

void skep_exec_launch(uint32_t ranks, char *const argv[], char *reterr, size_t size)
{
	(void)ranks;
	(void)argv;
	snprintf(reterr, size, "%s", missing);
}

bool skep_exec_init(uint32_t *ret_rank, uint32_t *ret_ranks, char *reterr, size_t size)
{
	*ret_rank = 0;
	*ret_ranks = 0;
	return skep_exec_ready(reterr, size);
}

void skep_exec_finish(void)
{
}

void skep_exec_finish_bereaved(int status)
{
	(void)status;
}

bool skep_exec_word_wanted(void)
{
	return false;
}

void skep_exec_abort(void)
{
}

bool skep_exec_run(const struct skep_scenario *scenario, const struct skep_exec_options *options,
	const struct skep_recorder *recorder, struct skep_exec_result *ret, char *reterr, size_t size)
{
	(void)scenario;
	(void)options;
	(void)recorder;
	*ret = (struct skep_exec_result){.outcome = SKEP_FAILED};
	return skep_exec_ready(reterr, size);
}
