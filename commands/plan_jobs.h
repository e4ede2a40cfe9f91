/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_jobs.h - many like things done side by side, in processes (sweep_pool.h): each answers with bytes, and the answers come
 * back in the order of their numbers, whoever was first.
 */
#ifndef SKEP_COMMANDS_PLAN_JOBS_H
#define SKEP_COMMANDS_PLAN_JOBS_H

#include "commands/sweep_pool.h"

/* The answer to job `number`, to be freed by whoever is told; in the process of the caller. */
typedef void plan_answer(void *context, uint32_t number, void *bytes, uint64_t count);

/* Jobs 0 .. count-1 of this kind, in at most so many processes; with one, in this process. What work() changes behind its context
 * is not seen by anybody. False: a process died or was not to be had (*ret_signal 0), or a signal came;
 * the answers that had come by then are told all the same. */
bool plan_jobs_run(uint32_t processes, uint32_t kind, uint32_t count, skep_sweep_work *work, plan_answer *answer,
	void *context, int *ret_signal);

#endif
