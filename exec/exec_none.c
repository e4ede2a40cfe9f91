/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_none.c - stands in for the executor where MPI was not found at build time: every function reports that. Without
 * MPI a program has no other ranks, so the functions of the farm have none to send to or receive from.
 */
#include <stdio.h>

#include "exec/exec.h"
#include "exec/mpi/farm.h"
#include "exec/probe/probe.h"

static const char missing[] =
	"this program was built without MPI: apt-get install libopenmpi-dev openmpi-bin, and build again";

bool skep_exec_ready(const struct skep_exec_options *options, struct skep_diag *reterr)
{
	(void)options;
	return skep_fail(reterr, "%s", missing);
}

bool skep_exec_survives(void)
{
	return false;
}

bool skep_exec_launched(void)
{
	return false;
}

int skep_exec_launch(const struct skep_scenario *scenario, const struct skep_exec_options *options, char *const argv[],
	struct skep_diag *reterr)
{
	(void)scenario;
	(void)options;
	(void)argv;
	skep_fail(reterr, "%s", missing);
	return -1;
}

int skep_exec_launch_ranks(uint32_t ranks, char *const argv[], struct skep_diag *reterr)
{
	(void)ranks;
	(void)argv;
	skep_fail(reterr, "%s", missing);
	return -1;
}

bool skep_exec_init(uint32_t limit_s, bool threads, uint32_t *ret_rank, uint32_t *ret_ranks, struct skep_diag *reterr)
{
	(void)limit_s;
	(void)threads;
	*ret_rank = 0;
	*ret_ranks = 0;
	return skep_exec_ready(NULL, reterr);
}

void skep_exec_tell_all(uint64_t *number, uint32_t count, uint32_t limit_s)
{
	(void)limit_s;
	(void)number;
	(void)count;
}

void skep_exec_finish(int status, const struct skep_exec_result *result)
{
	(void)status;
	(void)result;
}

void skep_exec_abort(int status)
{
	(void)status;
}

bool skep_exec_run(const struct skep_scenario *scenario, const struct skep_exec_options *options,
	const struct skep_recorder *recorder, struct skep_exec_result *ret, struct skep_diag *reterr)
{
	(void)scenario;
	(void)recorder;
	*ret = (struct skep_exec_result){.outcome = SKEP_FAILED};
	return skep_exec_ready(options, reterr);
}

bool skep_probe_run(const struct skep_probe_options *options, struct skep_probed *ret, struct skep_diag *reterr)
{
	(void)options;
	*ret = (struct skep_probed){0};
	return skep_exec_ready(NULL, reterr);
}

bool skep_farm_init(uint32_t *ret_rank, uint32_t *ret_ranks, struct skep_diag *reterr)
{
	*ret_rank = 0;
	*ret_ranks = 1;
	return skep_exec_ready(NULL, reterr);
}

bool skep_farm_send(uint32_t rank, const void *bytes, uint64_t count)
{
	(void)rank;
	(void)bytes;
	(void)count;
	return false;
}

bool skep_farm_receive(uint32_t *ret_rank, void **ret, uint64_t *ret_count)
{
	*ret_rank = 0;
	*ret = NULL;
	*ret_count = 0;
	return false;
}

bool skep_farm_gone(uint32_t rank)
{
	(void)rank;
	return false;
}

void skep_farm_finish(void)
{
}

void skep_farm_abort(int status)
{
	(void)status;
}
