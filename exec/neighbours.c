/* SPDX-License-Identifier: Apache-2.0
 *
 * neighbours.c - who shares a host's GPUs and cores, and what a user has to know of it before the run begins: that passes take
 * longer than predicted since there are more workers than cores, or that they compute in another type than they are timed in.
 */
#include "exec/neighbours.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/layout.h"
#include "base/process/sched.h"
#include "scenarios/shard/shard.h"

struct neighbours { /* the processes of a host that have devices */
	char name[MPI_MAX_PROCESSOR_NAME];
	uint32_t processes, gpus, cores, threads;
};

/* The cores that any process of the host may use. */
static uint32_t cores_of(MPI_Comm host)
{
	cpu_set_t mine, all;
	CPU_ZERO(&mine);
	CPU_ZERO(&all);
	if (sched_getaffinity(0, sizeof mine, &mine) != 0)
		CPU_SET(0, &mine);
	MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, host);
	return (uint32_t)CPU_COUNT(&all);
}

static void say_who_shares(const struct neighbours *n)
{
	if (n->gpus > 0 && n->processes > n->gpus)
		fprintf(stderr,
			"skep: %" PRIu32 " processes on %.64s share %" PRIu32
			" GPU%s: while all of them compute, passes take up to %" PRIu32 " times as long as predicted\n",
			n->processes, n->name, n->gpus, skep_plural(n->gpus), (n->processes + n->gpus - 1) / n->gpus);
	if (n->threads > 1 && n->processes * n->threads > n->cores)
		fprintf(stderr,
			"skep: %" PRIu32 " processes on %.64s with %" PRIu32
			" threads each (cluster.threads) share %" PRIu32 " core%s: fewer threads would be faster\n",
			n->processes, n->name, n->threads, n->cores, skep_plural(n->cores));
}

static double crowding(const struct neighbours *n)
{
	assert(n->cores > 0);
	double wanted = (double)n->processes * n->threads;
	return wanted > n->cores ? wanted / n->cores : 1;
}

/* The topology may say how many workers share how many cores (`host.cores`), and the prediction then has it. */
static void say_how_slow(const struct skep_scenario *scenario, const struct neighbours *n, uint32_t worker)
{
	double predicted = skep_scenario_crowding(scenario, worker), ratio = crowding(n) / predicted;
	bool said = scenario->topology.machine[worker].host > 0;
	if (ratio > 0.95 && ratio < 1.05)
		return;
	fprintf(stderr,
		"skep: %" PRIu32 " worker%s compute%s on %" PRIu32
		" core%s of %.64s: passes take about %.1f times as long as predicted; %s `host: {cores: %" PRIu32
		"}` in %.200s\n",
		n->processes, skep_plural(n->processes), n->processes == 1 ? "s" : "", n->cores, skep_plural(n->cores),
		n->name, ratio, said ? "its machines should have" : "for a prediction that knows give its machines",
		n->cores, scenario->topology.path);
}

/* Paced passes wait for their time beside each other, which those of the model do not. */
static void say_what_paces(const struct skep_scenario *scenario, uint32_t worker)
{
	double predicted = skep_scenario_crowding(scenario, worker);
	if (predicted > 1)
		fprintf(stderr,
			"skep: --pace: each pass takes the time that it takes alone; a simulation, in which the workers "
			"of a host share its cores (host.cores), has them take up to %.1f times as long\n",
			predicted);
}

static void say_type(const struct skep_scenario *scenario, uint32_t worker)
{
	enum skep_type type = scenario->topology.gpu[scenario->topology.machine[worker].gpu].type;
	if (type != SKEP_TYPE_FP32)
		fprintf(stderr, "skep: CPU devices compute in fp32, and the passes of this scenario are timed in %s\n",
			skep_type_names[type]);
}

/* ---- does the arithmetic keep the pace? -------------------------------------------------------------------------------- */

#define LONG_NS UINT64_C(100000000) /* of a pass: touching its memory for the first time is then a small part of it */

/* Of cores, by all threads of the device. 0: it cannot be told. */
static uint64_t forward_ns(struct skep_device *device, const struct skep_op *op)
{
	struct skep_device_result result;
	uint64_t begin_ns = skep_processor_ns();
	skep_device_run(device, op, &result);
	uint64_t ns = skep_processor_ns() - begin_ns;
	skep_device_buffer_release(device, result.out);
	skep_device_buffer_release(device, result.stash);
	return result.failed ? 0 : ns;
}

/* How many cores the worker takes while it makes forward passes at its pace, by one whose input is 0; 0: it cannot be told. */
static double cores_taken(const struct skep_scenario *scenario, uint32_t worker, struct skep_device *device)
{
	const struct skep_plan *plan = &scenario->plan;
	uint32_t stage = scenario->first_stage_of[worker], version = skep_plan_first_version(plan);
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = (uint16_t)stage, .round = version, .version = version};
	assert(stage != SKEP_NO_STAGE);
	void *memory = NULL;
	uint64_t bytes = stage > 0 ? skep_plan_vstage_bytes(plan, stage - 1) : 0;
	if (stage > 0)
		op.in = skep_device_buffer_create(device, bytes, &memory);
	if (memory != NULL)
		memset(memory, 0, bytes);
	uint64_t first_ns = forward_ns(device, &op), ns = first_ns > LONG_NS ? first_ns : forward_ns(device, &op);
	skep_device_buffer_release(device, op.in);
	uint64_t paced_ns = skep_scenario_op_ns(scenario, worker, &op);
	return paced_ns > 0 ? (double)ns / (double)paced_ns : 0;
}

void skep_neighbours_say_pace(const struct skep_scenario *scenario, struct skep_device *device)
{
	MPI_Comm host = MPI_COMM_NULL; /* as below */
	char name[MPI_MAX_PROCESSOR_NAME] = "";
	int length = 0, rank = 0, nth = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Get_processor_name(name, &length);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_rank(host, &nth);
	uint32_t worker = (uint32_t)rank - 1, cores = cores_of(host);
	bool computes =
		device != NULL && worker < scenario->plan.workers && scenario->first_stage_of[worker] != SKEP_NO_STAGE;
	double mine = computes ? cores_taken(scenario, worker, device) : 0, all = 0, most = 0;
	MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, host);
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, host);
	MPI_Comm_free(&host);
	double slow = fmax(all / cores, most / scenario->threads);
	if (nth == 0 && slow > 1)
		fprintf(stderr,
			"skep: --pace: the run cannot keep up: on %.64s, while all its workers compute, passes take %.1f times "
			"as long as paced; they need %.1f cores, and there %s %" PRIu32 "\n",
			name, slow, all, cores == 1 ? "is" : "are", cores);
}

/* The nth process of its host that has a device, from 0. Where there are too few cores for all none is bound, or some would share
 * cores while others have their own. */
static void bind(const struct neighbours *n, uint32_t nth, bool speaks)
{
	assert(nth < n->processes && n->threads > 0);
	const bool enough = n->processes * n->threads <= n->cores;
	if (enough && skep_sched_keep_to(nth * n->threads, n->threads))
		return;
	if (speaks)
		fprintf(stderr,
			"skep: --bind: %" PRIu32 " worker%s on %.64s with %" PRIu32
			" thread%s each want cores of their own, and %s\n",
			n->processes, skep_plural(n->processes), n->name, n->threads, skep_plural(n->threads),
			enough ? "each may use some of them alone: they stay as their launcher has bound them"
			       : "there are fewer: they stay where the kernel puts them");
}

/* Together with all others. Which of those of its host this process is, from 1; if it has no device, the last one before. */
static uint32_t find(bool has, struct neighbours *ret)
{
	MPI_Comm host = MPI_COMM_NULL; /* it stays that when a process dies meanwhile */
	int length = 0;
	uint32_t one = has, nth = 0;
	MPI_Get_processor_name(ret->name, &length);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Scan(&one, &nth, 1, MPI_UINT32_T, MPI_SUM, host);
	MPI_Allreduce(&one, &ret->processes, 1, MPI_UINT32_T, MPI_SUM, host);
	ret->cores = cores_of(host);
	MPI_Comm_free(&host);
	return nth;
}

struct skep_device_place skep_neighbours_place(
	const struct skep_scenario *scenario, const struct skep_exec_options *options, uint32_t place)
{
	const bool has = place > 0;
	bool cpu = options->device == SKEP_DEVICE_CPU;
	struct skep_device_place ret = {.threads = cpu ? scenario->threads : 1};
	struct neighbours n = {.gpus = skep_device_count(options->device), .threads = ret.threads};
	int rank = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	uint32_t nth = find(has, &n);
	bool speaks = has && nth == 1 && place <= scenario->plan.workers;
	if (speaks)
		say_who_shares(&n);
	if (speaks && options->pace)
		say_what_paces(scenario, place - 1);
	if (speaks && cpu && !options->pace)
		say_how_slow(scenario, &n, place - 1);
	if (options->bind && has)
		bind(&n, nth - 1, speaks);
	if ((uint32_t)rank == skep_shard_ranks(scenario) && cpu && !options->pace)
		say_type(scenario, 0);
	ret.ordinal = has && n.gpus > 0 ? (nth - 1) % n.gpus : 0;
	return ret;
}

void skep_neighbours_bind(uint32_t threads)
{
	struct neighbours n = {.threads = threads};
	uint32_t nth = find(true, &n);
	bind(&n, nth - 1, nth == 1);
}
