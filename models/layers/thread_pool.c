/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_pool.c - see thread_pool.h. One lock guards what is left of the loop; a range is some 50 us of work, so the
 * lock costs nothing in comparison. A pass starts its loops right after each other, so a waiting thread polls for the
 * next one for a while (SPINS) before it sleeps: to wake a thread takes longer than many a loop.
 */
#include "models/layers/thread_pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SPINS = 1000 }; /* some 20 us */

struct member {
	struct skep_thread_pool *thread_pool;
	uint32_t number;
	pthread_t thread;
};

struct skep_thread_pool {
	pthread_mutex_t lock;
	pthread_cond_t offered, done;
	bool busy, over;
	atomic_uint offers;      /* loops so far, and one more at the end */
	skep_thread_pool_fn *fn; /* the loop: */
	const void *context;
	size_t n, grain, next;
	atomic_size_t left; /* ranges that are not done */
	uint32_t members;   /* with who asks, who is none of these: */
	struct member member[];
};

uint32_t skep_thread_pool_cores(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static void pause_a_little(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#endif
}

static size_t end_of(size_t first, size_t n, size_t grain)
{
	return n - first > grain ? first + grain : n;
}

/* Takes ranges until there are none. Called and returns with the lock held. */
static void work(struct skep_thread_pool *thread_pool, uint32_t member)
{
	while (thread_pool->next < thread_pool->n) {
		size_t first = thread_pool->next, end = end_of(first, thread_pool->n, thread_pool->grain);
		thread_pool->next = end;
		pthread_mutex_unlock(&thread_pool->lock);
		thread_pool->fn(thread_pool->context, first, end, member);
		pthread_mutex_lock(&thread_pool->lock);
		if (--thread_pool->left == 0)
			pthread_cond_signal(&thread_pool->done);
	}
}

/* Called and returns with the lock held, which it gives away meanwhile. */
static void wait_for_offer(struct skep_thread_pool *thread_pool)
{
	unsigned seen = thread_pool->offers;
	pthread_mutex_unlock(&thread_pool->lock);
	for (int i = 0; i < SPINS && thread_pool->offers == seen; i++)
		pause_a_little();
	pthread_mutex_lock(&thread_pool->lock);
	while (thread_pool->offers == seen)
		pthread_cond_wait(&thread_pool->offered, &thread_pool->lock);
}

static void wait_until_done(struct skep_thread_pool *thread_pool)
{
	pthread_mutex_unlock(&thread_pool->lock);
	for (int i = 0; i < SPINS && thread_pool->left > 0; i++)
		pause_a_little();
	pthread_mutex_lock(&thread_pool->lock);
	while (thread_pool->left > 0)
		pthread_cond_wait(&thread_pool->done, &thread_pool->lock);
}

static void *serve(void *context)
{
	struct member *member = context;
	struct skep_thread_pool *thread_pool = member->thread_pool;
	pthread_mutex_lock(&thread_pool->lock);
	while (!thread_pool->over) {
		work(thread_pool, member->number);
		if (!thread_pool->over)
			wait_for_offer(thread_pool);
	}
	pthread_mutex_unlock(&thread_pool->lock);
	return NULL;
}

struct skep_thread_pool *skep_thread_pool_create(uint32_t members)
{
	assert(members >= 1);
	struct skep_thread_pool *thread_pool =
		calloc(1, sizeof *thread_pool + (members - 1) * sizeof thread_pool->member[0]);
	if (!thread_pool)
		return NULL;
	pthread_mutex_init(&thread_pool->lock, NULL);
	pthread_cond_init(&thread_pool->offered, NULL);
	pthread_cond_init(&thread_pool->done, NULL);
	for (thread_pool->members = 1; thread_pool->members < members; thread_pool->members++) {
		struct member *member = &thread_pool->member[thread_pool->members - 1];
		*member = (struct member){.thread_pool = thread_pool, .number = thread_pool->members};
		if (pthread_create(&member->thread, NULL, serve, member) != 0) {
			skep_thread_pool_destroy(thread_pool);
			return NULL;
		}
	}
	return thread_pool;
}

void skep_thread_pool_destroy(struct skep_thread_pool *thread_pool)
{
	if (!thread_pool)
		return;
	pthread_mutex_lock(&thread_pool->lock);
	assert(!thread_pool->busy);
	thread_pool->over = true;
	thread_pool->offers++;
	pthread_cond_broadcast(&thread_pool->offered);
	pthread_mutex_unlock(&thread_pool->lock);
	for (uint32_t i = 1; i < thread_pool->members; i++)
		pthread_join(thread_pool->member[i - 1].thread, NULL);
	pthread_cond_destroy(&thread_pool->offered);
	pthread_cond_destroy(&thread_pool->done);
	pthread_mutex_destroy(&thread_pool->lock);
	free(thread_pool);
}

uint32_t skep_thread_pool_size(const struct skep_thread_pool *thread_pool)
{
	return thread_pool ? thread_pool->members : 1;
}

/* False: another thread uses the pool. */
static bool share(
	struct skep_thread_pool *thread_pool, size_t n, size_t grain, skep_thread_pool_fn *fn, const void *context)
{
	pthread_mutex_lock(&thread_pool->lock);
	bool free_now = !thread_pool->busy;
	if (free_now) {
		thread_pool->busy = true;
		thread_pool->fn = fn;
		thread_pool->context = context;
		thread_pool->n = n;
		thread_pool->grain = grain;
		thread_pool->next = 0;
		thread_pool->left = (n + grain - 1) / grain;
		thread_pool->offers++;
		pthread_cond_broadcast(&thread_pool->offered);
		work(thread_pool, 0);
		wait_until_done(thread_pool);
		thread_pool->busy = false;
	}
	pthread_mutex_unlock(&thread_pool->lock);
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
