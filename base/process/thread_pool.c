/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_pool.c - see thread_pool.h. One lock guards what is left of the loop; a range is some 50 us of work, so the
 * lock costs nothing in comparison. A pass starts its loops right after each other, so a waiting thread polls for the
 * next one for a while (SPINS) before it sleeps: to wake a thread takes longer than many a loop.
 */
#include "base/process/thread_pool.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#include "base/process/threads.h"

enum { SPINS = 1000 }; /* some 20 us */

struct skep_thread_pool {
	struct skep_threads threads;
	bool busy;
	skep_thread_pool_fn *fn; /* the loop: */
	const void *context;
	size_t n, grain, next;
	atomic_size_t left; /* ranges that are not done */
};

uint32_t skep_thread_pool_cores(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static size_t end_of(size_t first, size_t n, size_t grain)
{
	return n - first > grain ? first + grain : n;
}

/* Takes one range. Called and returns with the lock held. */
static bool take(void *context, uint32_t member)
{
	struct skep_thread_pool *thread_pool = context;
	size_t first = thread_pool->next;
	if (first >= thread_pool->n)
		return false;
	size_t end = end_of(first, thread_pool->n, thread_pool->grain);
	thread_pool->next = end;
	pthread_mutex_unlock(&thread_pool->threads.lock);
	thread_pool->fn(thread_pool->context, first, end, member);
	pthread_mutex_lock(&thread_pool->threads.lock);
	if (--thread_pool->left == 0)
		pthread_cond_signal(&thread_pool->threads.done);
	return true;
}

static void wait_until_done(struct skep_thread_pool *thread_pool)
{
	pthread_mutex_unlock(&thread_pool->threads.lock);
	for (int i = 0; i < SPINS && thread_pool->left > 0; i++)
		skep_threads_pause();
	pthread_mutex_lock(&thread_pool->threads.lock);
	while (thread_pool->left > 0)
		pthread_cond_wait(&thread_pool->threads.done, &thread_pool->threads.lock);
}

struct skep_thread_pool *skep_thread_pool_create(uint32_t members)
{
	assert(members >= 1);
	struct skep_thread_pool *thread_pool = calloc(1, sizeof *thread_pool);
	if (thread_pool && !skep_threads_start(&thread_pool->threads, members - 1, SPINS, take, thread_pool)) {
		free(thread_pool);
		return NULL;
	}
	return thread_pool;
}

void skep_thread_pool_destroy(struct skep_thread_pool *thread_pool)
{
	if (!thread_pool)
		return;
	assert(!thread_pool->busy);
	skep_threads_stop(&thread_pool->threads);
	free(thread_pool);
}

uint32_t skep_thread_pool_size(const struct skep_thread_pool *thread_pool)
{
	return thread_pool ? thread_pool->threads.count + 1 : 1;
}

/* False: another thread uses the pool. */
static bool share(
	struct skep_thread_pool *thread_pool, size_t n, size_t grain, skep_thread_pool_fn *fn, const void *context)
{
	pthread_mutex_lock(&thread_pool->threads.lock);
	bool free_now = !thread_pool->busy;
	if (free_now) {
		thread_pool->busy = true;
		thread_pool->fn = fn;
		thread_pool->context = context;
		thread_pool->n = n;
		thread_pool->grain = grain;
		thread_pool->next = 0;
		thread_pool->left = (n + grain - 1) / grain;
		skep_threads_offer(&thread_pool->threads, true);
		while (take(thread_pool, 0))
			;
		wait_until_done(thread_pool);
		thread_pool->busy = false;
	}
	pthread_mutex_unlock(&thread_pool->threads.lock);
	return free_now;
}

void skep_thread_pool_for(
	struct skep_thread_pool *thread_pool, size_t n, size_t grain, skep_thread_pool_fn *fn, const void *context)
{
	assert(grain >= 1);
	if (thread_pool && n > grain && share(thread_pool, n, grain, fn, context))
		return;
	for (size_t first = 0; first < n; first = end_of(first, n, grain))
		fn(context, first, end_of(first, n, grain), 0);
}
