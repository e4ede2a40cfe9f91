/* SPDX-License-Identifier: Apache-2.0
 *
 * processes.c - see processes.h. Keeps true: answers are told in ascending order, so what a plan decides by them does not
 * depend on how many processes there were, and those that have come are told of whatever ends the others; afterwards signals do
 * again what they did before.
 */
#include "planning/trial/processes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/process/signals.h"
#include "base/process/stop.h"

struct slot {
	void *bytes;
	uint64_t count;
};

static void show(struct skep_progress *progress, uint32_t done, uint32_t count, uint32_t running)
{
	if (progress)
		skep_progress_show(progress, done, 0, count, running);
}

static bool run_here(uint32_t kind, uint32_t count, skep_process_pool_work *work, skep_processes_answer *answer,
	void *context, struct skep_progress *progress, int *ret_signal)
{
	for (uint32_t i = 0; i < count; i++) {
		if ((*ret_signal = skep_stop_asked()) != 0)
			return false;
		const struct skep_process_pool_job job = {.kind = kind, .number = i};
		void *bytes;
		uint64_t size;
		if (!work(context, &job, &bytes, &size))
			return false;
		answer(context, i, bytes, size);
		show(progress, i + 1, count, 1);
	}
	return true;
}

/* Hands out and hears until all are done. */
static bool run_there(struct skep_process_pool *pool, uint32_t processes, uint32_t kind, uint32_t count,
	const uint32_t *order, struct slot *slot, struct skep_progress *progress, int *ret_signal)
{
	uint32_t given = 0, done = 0;
	while (done < count) {
		struct skep_process_pool_answer answer = {0};
		while (given < count && skep_process_pool_busy(pool) < processes) {
			const struct skep_process_pool_job job = {.kind = kind, .number = order ? order[given] : given};
			given++;
			if (!skep_process_pool_give(pool, &job))
				return false;
		}
		enum skep_process_pool_event event = skep_process_pool_wait(pool, -1, &answer);
		if (event == SKEP_PROCESS_POOL_SIGNAL)
			*ret_signal = answer.number;
		if (event == SKEP_PROCESS_POOL_SIGNAL || event == SKEP_PROCESS_POOL_DEATH)
			return false;
		if (event != SKEP_PROCESS_POOL_ANSWER)
			continue;
		slot[answer.job.number] = (struct slot){answer.bytes, answer.count};
		show(progress, ++done, count, skep_process_pool_busy(pool));
	}
	return true;
}

bool skep_processes_run(uint32_t processes, uint32_t kind, uint32_t count, skep_process_pool_work *work,
	skep_processes_answer *answer, void *context, const uint32_t *order, struct skep_progress *progress,
	int *ret_signal)
{
	struct skep_diag error = {0};
	*ret_signal = skep_stop_asked(); /* before the first is begun */
	if (*ret_signal != 0)
		return false;
	processes = processes < count ? processes : count;
	if (processes <= 1)
		return run_here(kind, count, work, answer, context, progress, ret_signal);
	struct slot *slot = calloc(count, sizeof *slot);
	struct skep_quit_before before;
	skep_quit_block(&before);
	struct skep_process_pool *pool = slot ? skep_process_pool_create(processes, work, context, &error) : NULL;
	bool ok = pool && run_there(pool, processes, kind, count, order, slot, progress, ret_signal);
	skep_process_pool_destroy(pool);
	skep_quit_restore(&before);
	for (uint32_t i = 0; slot && i < count; i++)
		if (slot[i].bytes)
			answer(context, i, slot[i].bytes, slot[i].count);
	free(slot);
	return ok;
}
