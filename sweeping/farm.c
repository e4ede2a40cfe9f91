/* SPDX-License-Identifier: Apache-2.0
 *
 * farm.c - see farm.h.
 *
 * A rank never works itself: its pool does, whose processes were forked before MPI came up and call nothing of it. So a crash
 * takes one job with it under any MPI, and messages are answered while jobs are done. A rank says HELLO with the number of its
 * processes, gets a JOB whenever rank 0 knows one of them idle, and sends what comes of it. Where MPI survives the death of a
 * whole rank its jobs count as dead; where it does not, the job ends and can be started again.
 */
#include "sweeping/farm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"
#include "exec/mpi/farm.h"

#define TURN_MS 2    /* between two looks for messages of other ranks */
#define ALONE_MS 200 /* without MPI: the caller is told this often that nothing has come */
#define GONE_TURNS 250

enum { HELLO = 1, JOB, ANSWER, DEATH, STOP };

struct head { /* of every message; the bytes of an answer follow */
	uint32_t kind, workers;
	struct skep_process_pool_job job;
	int32_t number;
	uint32_t pid;
};

struct member { /* another rank, as rank 0 knows it */
	uint32_t workers, busy;
	struct skep_process_pool_job *job; /* [busy], room for [workers] */
};

struct skep_sweep_farm {
	struct skep_process_pool *pool;
	uint32_t rank, ranks, workers, limit, turn;
	struct member *member; /* [ranks]; 0 is not used */
};

struct skep_sweep_farm *skep_sweep_farm_create(
	uint32_t workers, skep_process_pool_work *work, void *context, struct skep_diag *reterr)
{
	struct skep_sweep_farm *farm = calloc(1, sizeof *farm);
	if (farm == NULL) {
		skep_fail(reterr, "no memory");
		return NULL;
	}
	*farm = (struct skep_sweep_farm){.ranks = 1, .workers = workers, .limit = workers};
	farm->pool = skep_process_pool_create(workers, work, context, reterr);
	bool up = farm->pool != NULL && (!skep_exec_launched() || skep_farm_init(&farm->rank, &farm->ranks, reterr));
	if (up)
		farm->member = calloc(farm->ranks, sizeof *farm->member);
	if (up && farm->member != NULL)
		return farm;
	skep_fail(reterr, "no memory");
	skep_process_pool_destroy(farm->pool);
	free(farm);
	return NULL;
}

uint32_t skep_sweep_farm_rank(const struct skep_sweep_farm *farm)
{
	return farm->rank;
}

/* ---- another rank ------------------------------------------------------------------------------------------------ */

static void report(const struct skep_process_pool_answer *answer, enum skep_process_pool_event event)
{
	struct head head = {.kind = event == SKEP_PROCESS_POOL_ANSWER ? ANSWER : DEATH,
		.job = answer->job,
		.number = answer->number,
		.pid = answer->pid};
	char *message = malloc(sizeof head + answer->count);
	if (message == NULL || answer->count > SKEP_FARM_BYTES_MAX - sizeof head) {
		head.kind = DEATH; /* as far as rank 0 is concerned */
		skep_farm_send(0, &head, sizeof head);
	} else {
		memcpy(message, &head, sizeof head);
		if (answer->count > 0)
			memcpy(message + sizeof head, answer->bytes, answer->count);
		skep_farm_send(0, message, sizeof head + answer->count);
	}
	free(message);
}

static void take_job(struct skep_sweep_farm *farm, const struct head *head)
{
	if (!skep_process_pool_give(farm->pool, &head->job))
		report(&(struct skep_process_pool_answer){.job = head->job}, SKEP_PROCESS_POOL_DEATH);
}

bool skep_sweep_farm_serve(struct skep_sweep_farm *farm)
{
	struct head hello = {.kind = HELLO, .workers = farm->workers};
	bool served = skep_farm_send(0, &hello, sizeof hello);
	while (served) {
		struct skep_process_pool_answer answer;
		void *bytes = NULL;
		uint32_t from;
		uint64_t count;
		if (skep_farm_receive(&from, &bytes, &count)) {
			const struct head *head = bytes;
			bool stop = head->kind == STOP;
			if (head->kind == JOB)
				take_job(farm, head);
			free(bytes);
			if (stop)
				return true;
		}
		enum skep_process_pool_event event = skep_process_pool_wait(farm->pool, TURN_MS, &answer);
		if (event == SKEP_PROCESS_POOL_SIGNAL)
			return false;
		if (event != SKEP_PROCESS_POOL_NOTHING)
			report(&answer, event);
		free(answer.bytes);
	}
	return false;
}

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

uint32_t skep_sweep_farm_busy(const struct skep_sweep_farm *farm)
{
	uint32_t busy = skep_process_pool_busy(farm->pool);
	for (uint32_t i = 1; i < farm->ranks; i++)
		busy += farm->member[i].busy;
	return busy;
}

void skep_sweep_farm_limit(struct skep_sweep_farm *farm, uint32_t workers)
{
	farm->limit = workers < farm->workers ? workers : farm->workers;
}

/* 0: this rank; `ranks`: none is idle. */
static uint32_t idle_rank(const struct skep_sweep_farm *farm)
{
	if (skep_process_pool_busy(farm->pool) < farm->limit)
		return 0;
	for (uint32_t i = 1; i < farm->ranks; i++)
		if (farm->member[i].busy < farm->member[i].workers)
			return i;
	return farm->ranks;
}

bool skep_sweep_farm_idle(const struct skep_sweep_farm *farm)
{
	return idle_rank(farm) < farm->ranks;
}

bool skep_sweep_farm_give(struct skep_sweep_farm *farm, const struct skep_process_pool_job *job)
{
	struct head head = {.kind = JOB, .job = *job};
	uint32_t rank = idle_rank(farm);
	if (rank == 0)
		return skep_process_pool_give(farm->pool, job);
	struct member *member = &farm->member[rank];
	member->job[member->busy++] = *job;
	return skep_farm_send(rank, &head, sizeof head);
}

static void greet(struct member *member, uint32_t workers)
{
	member->job = calloc(workers + 1, sizeof *member->job);
	member->workers = member->job != NULL ? workers : 0;
}

static void forget(struct member *member, const struct skep_process_pool_job *job)
{
	for (uint32_t i = 0; i < member->busy; i++)
		if (member->job[i].kind == job->kind && member->job[i].number == job->number) {
			member->job[i] = member->job[--member->busy];
			return;
		}
}

/* The next message of another rank, if there is one. */
static enum skep_process_pool_event hear_ranks(struct skep_sweep_farm *farm, struct skep_process_pool_answer *ret)
{
	void *bytes;
	uint32_t from;
	uint64_t count;
	if (farm->ranks == 1 || !skep_farm_receive(&from, &bytes, &count))
		return SKEP_PROCESS_POOL_NOTHING;
	const struct head head = *(struct head *)bytes;
	struct member *member = &farm->member[from];
	*ret = (struct skep_process_pool_answer){.job = head.job, .number = head.number, .pid = head.pid};
	if (head.kind == HELLO)
		greet(member, head.workers);
	else
		forget(member, &head.job);
	if (head.kind == ANSWER) {
		ret->count = count - sizeof head;
		memmove(bytes, (char *)bytes + sizeof head, ret->count);
		ret->bytes = bytes;
		return SKEP_PROCESS_POOL_ANSWER;
	}
	free(bytes);
	return head.kind == DEATH ? SKEP_PROCESS_POOL_DEATH : SKEP_PROCESS_POOL_NOTHING;
}

/* A job of a rank that is gone, one at a time. */
static enum skep_process_pool_event find_gone(struct skep_sweep_farm *farm, struct skep_process_pool_answer *ret)
{
	if (farm->ranks == 1 || ++farm->turn % GONE_TURNS != 0)
		return SKEP_PROCESS_POOL_NOTHING;
	for (uint32_t i = 1; i < farm->ranks; i++) {
		struct member *member = &farm->member[i];
		if (!skep_farm_gone(i))
			continue;
		member->workers = 0;
		if (member->busy == 0)
			continue;
		*ret = (struct skep_process_pool_answer){.job = member->job[--member->busy]};
		farm->turn = GONE_TURNS - 1; /* the next at once */
		return SKEP_PROCESS_POOL_DEATH;
	}
	return SKEP_PROCESS_POOL_NOTHING;
}

enum skep_process_pool_event skep_sweep_farm_wait(struct skep_sweep_farm *farm, struct skep_process_pool_answer *ret)
{
	enum skep_process_pool_event event = hear_ranks(farm, ret);
	if (event == SKEP_PROCESS_POOL_NOTHING)
		event = skep_process_pool_wait(farm->pool, farm->ranks > 1 ? TURN_MS : ALONE_MS, ret);
	if (event == SKEP_PROCESS_POOL_NOTHING)
		event = find_gone(farm, ret);
	return event;
}

int skep_sweep_farm_signal(struct skep_sweep_farm *farm)
{
	return skep_process_pool_signal(farm->pool);
}

void skep_sweep_farm_destroy(struct skep_sweep_farm *farm, bool clean, int status)
{
	const struct head stop = {.kind = STOP};
	bool launched = skep_exec_launched();
	for (uint32_t i = 1; clean && farm->rank == 0 && i < farm->ranks; i++)
		if (!skep_farm_gone(i))
			skep_farm_send(i, &stop, sizeof stop);
	skep_process_pool_destroy(farm->pool);
	if (launched && !clean && farm->ranks > 1) {
		fflush(NULL);
		skep_farm_abort(status);
	}
	if (launched)
		skep_farm_finish();
	for (uint32_t i = 0; i < farm->ranks; i++)
		free(farm->member[i].job);
	free(farm->member);
	free(farm);
}
