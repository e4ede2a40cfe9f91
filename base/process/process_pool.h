/* SPDX-License-Identifier: Apache-2.0
 *
 * process_pool.h - processes of this host that do jobs, one at a time each, and answer with bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct skep_process_pool_job {
	uint32_t kind, number;
	uint64_t word; /* what else its worker has to know */
};

/* In a worker: does the job; *ret is what it answers, to be freed. False: no memory even for an answer. */
typedef bool skep_process_pool_work(
	void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count);

enum skep_process_pool_event {
	SKEP_PROCESS_POOL_NOTHING, /* the time is over */
	SKEP_PROCESS_POOL_ANSWER,
	SKEP_PROCESS_POOL_DEATH, /* the process that did the job has ended without an answer */
	SKEP_PROCESS_POOL_SIGNAL /* SIGINT, SIGTERM or SIGHUP */
};

struct skep_process_pool_answer {
	struct skep_process_pool_job job;
	void *bytes; /* ANSWER: to be freed */
	uint64_t count;
	int number;   /* SIGNAL: which; DEATH: the state that waitpid() gives */
	uint32_t pid; /* DEATH */
};

/* Forks so many processes. From here on these signals do nothing but come out of skep_process_pool_wait(). The caller's
 * memory is the workers': what `context` points to is as it was when a worker was forked. */
struct skep_process_pool *skep_process_pool_create(
	uint32_t workers, skep_process_pool_work *work, void *context, struct skep_diag *reterr);
/* Ends all processes at once, whatever they do. */
void skep_process_pool_destroy(struct skep_process_pool *pool); /* NULL is fine */

uint32_t skep_process_pool_busy(const struct skep_process_pool *pool);
/* To a worker that has nothing to do; a new one if the last has died. False: no process can be started. */
bool skep_process_pool_give(struct skep_process_pool *pool, const struct skep_process_pool_job *job);
/* Waits for at most so long; -1: as long as it takes. */
enum skep_process_pool_event skep_process_pool_wait(
	struct skep_process_pool *pool, int timeout_ms, struct skep_process_pool_answer *ret);
/* The signal that has come, without waiting; 0: none. */
int skep_process_pool_signal(struct skep_process_pool *pool);
