/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.c - a run on real processes from its start to its end: what all ranks must agree on before the loop begins.
 *
 * Every check is made together: each rank says what it found, the first one that cannot go on names its reason, and all of
 * them give up with it. So no rank is left waiting for another that has gone.
 */
#include "exec/exec.h"

#include <assert.h>
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/process/signals.h"
#include "base/process/thread_pool.h"
#include "core/hash.h"
#include "exec/loop/loop.h"
#include "exec/loop/post_mortem.h"
#include "exec/mpi/mpi_bytes.h"
#include "exec/mpi/startup.h"
#include "exec/mpi/transport_mpi.h"
#include "exec/neighbours.h"
#include "exec/shards.h"
#include "models/checkpoint/checkpoint_folder.h"
#include "scenarios/resume/resume.h"

#define MEET_S 600u /* rank 0 may have a lot to write while the others wait */

#define SHARDS_MEET_S 10u /* at the end of a run with several planes, of which one may have had to give up */

#define ABORT_S 10u /* longer than that MPI_Abort waits for processes that will not hear of it */

/* Open MPI hands a large tensor to its TCP module in one piece ("put"), and says behind whatever is queued by then that it is
 * there: behind the next tensor to the same process, if there is one. The receiver of a chunk of an all-reduce would wait for the
 * chunk behind it. In fragments a tensor is there with its last one; they are large, since three of a tensor are under way, and
 * a process that naps meanwhile sends no more. What a user has set stays. */
static void ask_for_fragments(void)
{
	setenv("OMPI_MCA_btl_tcp_flags", "send,inplace,need-ack,need-csum", 0);
	setenv("OMPI_MCA_btl_tcp_max_send_size", "4194304", 0);
}

static bool init_in_time(uint32_t limit_s, int wanted, int *ret_provided)
{
	struct skep_watchdog watchdog;
	skep_watchdog_begin(&watchdog, limit_s, "all processes of the run, to come up in MPI_Init");
	bool up = MPI_Init_thread(NULL, NULL, wanted, ret_provided) == MPI_SUCCESS;
	skep_watchdog_end(&watchdog);
	return up;
}

/* Before the run has a record in which it could fail: rank 0 says why, and ends all. MPI_Abort may hang once rank 0 is dead, and
 * where deaths are survived each rank ends by itself. */
static void end_all(int rank, const struct skep_start *start, const struct skep_diag *why)
{
	const struct timespec while_rank_0_speaks = {.tv_sec = 2};
	if (rank == 0)
		fprintf(stderr, "skep: %s\n", why->message);
	else if (start->orphaned)
		skep_launch_leave_word_of_orphan();
	else
		nanosleep(&while_rank_0_speaks, NULL);
	if (start->orphaned && skep_ulfm_active())
		_exit(1);
	skep_exec_abort(1);
}

bool skep_exec_init(uint32_t limit_s, bool threads, uint32_t *ret_rank, uint32_t *ret_ranks, struct skep_diag *reterr)
{
	int provided, rank, ranks, wanted = threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
	/* To the end of the process: one that comes late must not cut off what rank 0 still writes. */
	skep_quit_block(NULL);
	signal(SIGPIPE, SIG_IGN); /* a message to a process that has just died */
	ask_for_fragments();
	if (!init_in_time(limit_s, wanted, &provided))
		return skep_fail(reterr, "MPI does not start");
	if (skep_ulfm_active()) {
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	*ret_rank = (uint32_t)rank;
	*ret_ranks = (uint32_t)ranks;
	struct skep_start start;
	if (!skep_start_begin(&start, limit_s, reterr) ||
		!skep_together_agree(&start, "to answer after MPI_Init", 1, reterr))
		end_all(rank, &start, reterr);
	skep_start_finish(&start);
	if (provided >= wanted)
		return true;
	return skep_fail(reterr,
		threads ? "this MPI lets no two threads of a process call it, as passes of a stage that is split "
			  "over ranks do (MPI_THREAD_MULTIPLE)"
			: "this MPI was built without threads");
}

/* Ends this process after the death of others, when MPI_Finalize might not return. mpirun then waits for the
 * processes that end without MPI_Finalize: if skep has launched mpirun, skep ends it; otherwise rank 0 aborts the
 * job. */
static void finish_bereaved(int rank, int status)
{
	if (rank == 0 && !skep_launch_wants_word())
		MPI_Abort(MPI_COMM_WORLD, status);
	fflush(NULL);
	_exit(status);
}

void skep_exec_finish(int status, const struct skep_exec_result *result)
{
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		skep_launch_leave_word(status);
	else if (result->orphaned)
		skep_launch_leave_word_of_orphan();
	if (skep_ulfm_active() && (result->bereaved || status != 0))
		finish_bereaved(rank, status);
	if (result->bereaved && rank == 0)
		MPI_Abort(MPI_COMM_WORLD, status); /* MPI_Finalize would wait for those who are silent */
	if (!skep_mpi_meet(MPI_COMM_WORLD, MEET_S))
		skep_exec_abort(1); /* a rank has died or hangs, and MPI_Finalize would wait for it */
	MPI_Finalize();
}

void skep_exec_tell_all(uint64_t *number, uint32_t count, uint32_t limit_s)
{
	struct skep_start start;
	struct skep_diag error = {0};
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!skep_start_begin(&start, limit_s, &error) ||
		!skep_together_tell(&start, "to hear what rank 0 has found", SKEP_START_AT_WORK, number,
			count * sizeof *number, &error))
		end_all(rank, &start, &error);
	skep_start_finish(&start);
}

void skep_exec_abort(int status)
{
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		skep_launch_leave_word(status);
	struct skep_watchdog watchdog; /* which ends the process if MPI does not */
	skep_watchdog_begin(&watchdog, ABORT_S, "MPI_Abort, which does not return");
	MPI_Abort(MPI_COMM_WORLD, status);
}

/* ---- agreeing ---------------------------------------------------------------------------------------------------- */

/* Over what makes two processes run the same thing. */
static uint64_t fingerprint(const struct skep_scenario *scenario, const struct skep_exec_options *options)
{
	uint64_t hash = skep_hash_bytes(SKEP_HASH_EMPTY, scenario->text, strlen(scenario->text));
	uint64_t more[] = {
		scenario->seed, scenario->plan.workers, scenario->plan.stages, options->pace, options->shape};
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
		hash = skep_hash_word(hash, more[i]);
	return hash;
}

static bool agree_on_scenario(struct skep_start *start, const struct skep_scenario *scenario,
	const struct skep_exec_options *options, struct skep_diag *reterr)
{
	int rank;
	char name[MPI_MAX_PROCESSOR_NAME] = "";
	uint64_t mine = fingerprint(scenario, options), first = mine;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	int length = 0;
	MPI_Get_processor_name(name, &length);
	if (!skep_together_tell(start, "its scenario", 1, &first, sizeof first, reterr))
		return false;
	if (mine != first)
		skep_fail(reterr, "rank %d on %.64s has read another scenario than rank 0", rank, name);
	return skep_together_agree(start, "its scenario", 1, reterr);
}

/* More threads than cores would wait for each other. */
static bool has_cores(const struct skep_device_place *place, uint32_t rank, struct skep_diag *reterr)
{
	uint32_t cores = skep_thread_pool_cores();
	if (place->threads <= cores)
		return true;
	skep_fail(reterr,
		"worker %" PRIu32 ": cluster.threads: %" PRIu32 " threads, but this process may use %" PRIu32
		" core%s: take --set cluster.threads=%" PRIu32 "%s",
		rank - 1, place->threads, cores, cores > 1 ? "s" : "", cores,
		cores < (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) ? ", or give it more (mpirun --bind-to none)" : "");
	return false;
}

/* The worker's device; the directory has none. */
static bool agree_on_device(struct skep_start *start, const struct skep_scenario *scenario,
	const struct skep_exec_options *options, uint32_t rank, const struct skep_device_place *place,
	struct skep_device **ret, struct skep_diag *reterr)
{
	struct skep_diag error = {0};
	*ret = NULL;
	if (rank > 0 && has_cores(place, rank, reterr)) {
		uint32_t stage = rank > scenario->plan.workers ? SKEP_NO_STAGE : scenario->first_stage_of[rank - 1];
		struct skep_device_place own = *place;
		own.candidate = stage == SKEP_NO_STAGE ? 0 : skep_plan_candidate_of(&scenario->plan, rank - 1);
		*ret = skep_device_create_on(options->device, &own, &scenario->training, stage, &error);
		if (*ret == NULL)
			skep_fail(reterr, "worker %" PRIu32 ": %s", rank - 1, error.message);
	}
	if (skep_together_agree(start, "its device", SKEP_START_AT_WORK, reterr))
		return true;
	skep_device_destroy(*ret);
	*ret = NULL;
	return false;
}

/* Says what will not keep its pace, which takes passes, and collectives that have no limit of their own. */
static bool look_at_pace(const struct skep_scenario *scenario, const struct skep_exec_options *options,
	struct skep_device *device, struct skep_start *start, struct skep_diag *reterr)
{
	struct skep_watchdog watchdog;
	if (!options->pace || options->device != SKEP_DEVICE_CPU)
		return true;
	skep_watchdog_begin(&watchdog, SKEP_START_AT_WORK * start->limit_s,
		"the processes of the host, to see what they take of it");
	skep_neighbours_say_pace(scenario, device);
	skep_watchdog_end(&watchdog);
	return skep_together_agree(start, "its pace", 1, reterr);
}

/* Opens the folder for checkpoints on every rank and fails unless every worker can write there. Checkpoints of
 * other runs are moved away before any worker begins; a run that continues another one takes over that run's
 * checkpoints. */
static bool agree_on_checkpoints(struct skep_start *start, const struct skep_scenario *scenario,
	struct skep_shards *shards, struct skep_checkpoint_folder *folder, struct skep_loop_setup *setup,
	struct skep_diag *reterr)
{
	uint32_t moved = 0;
	uint64_t all = 0;
	if (scenario->plan.checkpoint_every == 0)
		return true;
	*folder = skep_scenario_folder(scenario);
	const struct skep_keeper all_parts = skep_checkpoint_keeper(folder);
	setup->keeper = skep_shards_keeper(shards, &all_parts);
	bool usable = setup->device == NULL || skep_checkpoint_folder_usable(folder, &moved, reterr);
	if (usable && shards->place == 1 && shards->plane_number == 0) /* one of those that write there */
		skep_resume_note_files(scenario, reterr);
	if (setup->device != NULL && usable) {
		skep_device_set_keeper(setup->device, &setup->keeper);
		skep_device_take_up(setup->device, scenario->plan.first_round,
			skep_plan_first_rank(&scenario->plan, shards->place - 1), reterr);
	}
	bool agreed = skep_together_sum(start, "its folder for checkpoints", SKEP_START_AT_WORK,
		setup->device != NULL ? moved : 0, &all, reterr);
	skep_checkpoint_say_moved(folder, (uint32_t)all, stderr);
	return agreed;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static bool connect_all(
	struct skep_start *start, struct skep_shards *shards, struct skep_loop_setup *setup, struct skep_diag *reterr)
{
	struct skep_transport *whole = shards->ranks > 1 ? &shards->all : setup->transport;
	struct skep_watchdog watchdog;
	uint64_t name;
	bool created = skep_transport_mpi_create(whole, setup->rejects);
	if (created && shards->ranks > 1) {
		setup->plane = shards->plane = skep_plane_create(whole, shards->ranks, setup->transport);
		setup->abandoned = &shards->tensor.abandoned;
	}
	if (!created || (shards->ranks > 1 && shards->plane == NULL))
		skep_fail(reterr, "no memory for the transport");
	if (!skep_together_agree(start, "its transport", 1, reterr) || !skep_together_name(start, &name, reterr))
		return false;
	skep_watchdog_begin(&watchdog, start->limit_s, "all processes, to connect the transport");
	if (!skep_transport_mpi_connect(whole, name))
		skep_fail(reterr, "MPI does not connect the transport");
	skep_watchdog_end(&watchdog);
	return skep_together_agree(start, "its transport", 1, reterr);
}

/* What happened to this rank no other one knows, and all wait for it. */
static void end_alone(const struct skep_diag *why)
{
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fprintf(stderr, "skep: rank %d: %s\n", rank, why->message);
	skep_exec_abort(1);
}

/* The clock starts when all ranks have their transport, for a simulation has its first START at time 0, and connecting the ranks
 * takes some tenths of a second. Device and transport are kept when the loop did not end cleanly: a transfer may still touch
 * their memory, and the process is about to end. */
static bool run_loop(struct skep_start *start, struct skep_shards *shards, struct skep_loop_setup *setup, bool one_host,
	struct skep_exec_result *ret, bool *ret_clean, struct skep_diag *reterr)
{
	struct skep_rejects rejects = {.rank = setup->transport->rank};
	setup->rejects = &rejects;
	struct skep_clock clock;
	if (!connect_all(start, shards, setup, reterr) || !skep_together_clock(start, one_host, &clock, reterr))
		return false;
	setup->clock = &clock;
	bool fine = skep_loop_run(setup, ret, ret_clean, reterr);
	if (ret->alone && !skep_ulfm_active()) /* else it dies, which the others notice */
		end_alone(reterr);
	skep_rejects_close(&rejects);
	skep_transport_mpi_destroy(shards->ranks > 1 ? &shards->all : setup->transport, *ret_clean);
	if (*ret_clean)
		skep_device_destroy(setup->device);
	return fine;
}

static void say_how_hard(uint32_t spares)
{
	if (skep_ulfm_active())
		fprintf(stderr, "skep: cluster.trace: kills are hard (SIGKILL); %" PRIu32 " spare processes stand by\n",
			spares);
	else
		fputs("skep: cluster.trace: this run's MPI does not survive the death of a process, so kills are soft: "
		      "a worker drops\n"
		      "skep: all it holds, falls silent for as long as the trace says, and comes back as a newcomer\n",
			stderr);
}

/* What killed processes leave, for rank 0 to find. */
static bool share_post_mortem(struct skep_start *start, const struct skep_scenario *scenario, size_t ranks,
	struct skep_loop_setup *setup, struct skep_diag *reterr)
{
	struct skep_watchdog watchdog;
	uint64_t name;
	size_t links = (size_t)(scenario->plan.workers + 1) * SKEP_TRAFFICS;
	if (!skep_together_name(start, &name, reterr))
		return false;
	skep_watchdog_begin(&watchdog, start->limit_s, "all processes, to share the host's memory");
	setup->post_mortem = skep_host_memory_create(MPI_COMM_WORLD, name, ranks * sizeof *setup->post_mortem);
	setup->used = skep_host_memory_create(MPI_COMM_WORLD, name + 1, ranks * links * sizeof *setup->used);
	skep_watchdog_end(&watchdog);
	return skep_together_agree(start, "the host's memory", 1, reterr);
}

/* Looks who shares the host, which takes collectives that have no limit of their own. */
static bool look_around(const struct skep_scenario *scenario, const struct skep_exec_options *options, uint32_t place,
	struct skep_start *start, struct skep_device_place *ret, struct skep_diag *reterr)
{
	struct skep_watchdog watchdog;
	skep_watchdog_begin(&watchdog, start->limit_s, "the processes of the host, to see who shares it");
	*ret = skep_neighbours_place(scenario, options, place);
	skep_watchdog_end(&watchdog);
	return skep_together_agree(start, "who shares its host", 1, reterr);
}

/* Connects the ranks that share a stage, each of which takes its shard of the scenario. */
static bool agree_on_shards(struct skep_start *start, const struct skep_scenario *scenario, struct skep_shards *shards,
	struct skep_diag *reterr)
{
	struct skep_watchdog watchdog;
	skep_watchdog_begin(&watchdog, start->limit_s, "the ranks that share its stage");
	skep_shards_begin(shards, scenario, reterr);
	skep_watchdog_end(&watchdog);
	return skep_together_agree(start, "its shard", 1, reterr);
}

/* `shards` has begun when it returns. */
static bool run_checked(struct skep_start *start, const struct skep_scenario *whole,
	const struct skep_exec_options *options, const struct skep_recorder *recorder, struct skep_shards *shards,
	struct skep_exec_result *ret, bool *ret_clean, struct skep_diag *reterr)
{
	int rank, ranks;
	struct skep_transport transport = {0};
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!skep_together_agree(start, "to begin the run", SKEP_START_AT_WORK, reterr) ||
		!agree_on_shards(start, whole, shards, reterr))
		return false;
	const struct skep_scenario *scenario = skep_shards_scenario(shards, whole);
	const uint32_t place = shards->place;
	bool one = skep_together_one_host(start);
	if (options->shape && !one)
		skep_fail(reterr, "--shape plays the network on one host, and these processes are on several");
	struct skep_loop_setup setup = {.scenario = scenario,
		.pace = options->pace,
		.shape = options->shape,
		.transport = &transport,
		.recorder = recorder,
		.device_kind = options->device,
		.signal_fd = -1};
	struct skep_checkpoint_folder folder = {0};
	if (rank == 0 && !one && shards->ranks == 1 && !reterr->set)
		skep_placed_say(
			&scenario->topology, (const char(*)[SKEP_HOST_NAME])start->host, scenario->plan.workers);
	if (!look_around(scenario, options, place, start, &setup.device_place, reterr) ||
		!agree_on_scenario(start, whole, options, reterr) ||
		!skep_together_same_files(start, &scenario->files, reterr) ||
		!agree_on_device(start, scenario, options, place, &setup.device_place, &setup.device, reterr) ||
		!look_at_pace(scenario, options, setup.device, start, reterr) ||
		!agree_on_checkpoints(start, scenario, shards, &folder, &setup, reterr))
		return false;
	if (rank == 0) /* the others wait for its HALT */
		setup.signal_fd = skep_quit_open();
	transport.rank = place;
	bool fine = !one || !skep_ulfm_active() || share_post_mortem(start, scenario, (size_t)ranks, &setup, reterr);
	fine = fine && run_loop(start, shards, &setup, one, ret, ret_clean, reterr);
	if (setup.signal_fd >= 0)
		close(setup.signal_fd);
	return fine;
}

bool skep_exec_run(const struct skep_scenario *scenario, const struct skep_exec_options *options,
	const struct skep_recorder *recorder, struct skep_exec_result *ret, struct skep_diag *reterr)
{
	const struct skep_recorder no_worker = {0};
	uint32_t workers = scenario->plan.workers, needed = skep_shard_processes(scenario);
	int ranks;
	bool clean = false;
	struct skep_shards shards = {.ranks = 1};
	assert(!scenario->unresolved);
	*ret = (struct skep_exec_result){.outcome = SKEP_FAILED};
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if ((uint32_t)ranks < needed || ((uint32_t)ranks > needed && !skep_exec_survives()))
		return skep_fail(reterr,
			"the scenario needs %" PRIu32 " processes (of %" PRIu32
			" workers and the directory), this run has %d",
			needed, workers, ranks);
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0 && scenario->has_trace)
		say_how_hard((uint32_t)ranks - workers - 1);
	struct skep_start start;
	if (!skep_start_begin(
		    &start, options->start_limit_s > 0 ? options->start_limit_s : SKEP_EXEC_START_LIMIT_S, reterr))
		end_all(rank, &start, reterr);
	bool fine = run_checked(
		&start, scenario, options, recorder != NULL ? recorder : &no_worker, &shards, ret, &clean, reterr);
	if (shards.ranks > 1)
		clean = clean && skep_mpi_meet(MPI_COMM_WORLD, SHARDS_MEET_S);
	if (clean)
		skep_shards_say(&shards);
	skep_shards_finish(&shards, clean);
	ret->bereaved = ret->bereaved || start.lost;
	ret->orphaned = ret->orphaned || start.orphaned;
	skep_start_finish(&start);
	return fine;
}
