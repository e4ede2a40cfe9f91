/* SPDX-License-Identifier: Apache-2.0
 *
 * processes.h - many like things done side by side, in processes (base/process/process_pool.h): each answers with bytes, and the
 * answers come back in the order of their numbers, whichever was done first.
 */
#pragma once

#include "analysis/summary/progress.h"
#include "base/process/process_pool.h"

/* The answer to job `number`, which the callee frees; called in the process of the caller. */
typedef void skep_processes_answer(void *context, uint32_t number, void *bytes, uint64_t count);

/* Jobs 0 .. count-1 of this kind, in at most so many processes; with one, in this process. What work() changes behind its context
 * stays in its process. `order`: [count] in which they are begun, the longest first, say; NULL: by their numbers. False: a
 * process died or was not to be had (*ret_signal 0), or a signal came,
 * be it before (base/process/stop.h); the answers that had come by then are told all the
 * same. `progress` may be NULL. */
bool skep_processes_run(uint32_t processes, uint32_t kind, uint32_t count, skep_process_pool_work *work,
	skep_processes_answer *answer, void *context, const uint32_t *order, struct skep_progress *progress,
	int *ret_signal);
