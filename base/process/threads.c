/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c - see threads.h. A thread that finds nothing remembers how many offers there were while it holds the lock, so an
 * offer between that and its sleep is seen.
 */
#include "base/process/threads.h"

#include <assert.h>
#include <stdlib.h>

struct skep_thread {
	struct skep_threads *threads;
	uint32_t number;
	pthread_t id;
};

void skep_threads_pause(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#endif
}

/* Called and returns with the lock held. */
static void wait_for_offer(struct skep_threads *threads)
{
	unsigned seen = threads->offers;
	if (threads->spins > 0) {
		pthread_mutex_unlock(&threads->lock);
		for (uint32_t i = 0; i < threads->spins && threads->offers == seen; i++)
			skep_threads_pause();
		pthread_mutex_lock(&threads->lock);
	}
	threads->idle++;
	while (threads->offers == seen)
		pthread_cond_wait(&threads->offered, &threads->lock);
	threads->idle--;
}

static void *serve(void *context)
{
	const struct skep_thread *thread = context;
	struct skep_threads *threads = thread->threads;
	pthread_mutex_lock(&threads->lock);
	while (!threads->over) {
		if (!threads->work(threads->context, thread->number) && !threads->over)
			wait_for_offer(threads);
	}
	pthread_mutex_unlock(&threads->lock);
	return NULL;
}

bool skep_threads_start(
	struct skep_threads *threads, uint32_t count, uint32_t spins, skep_threads_work *work, void *context)
{
	*threads = (struct skep_threads){.spins = spins, .work = work, .context = context};
	threads->thread = calloc(count > 0 ? count : 1, sizeof *threads->thread);
	if (!threads->thread)
		return false;
	pthread_mutex_init(&threads->lock, NULL);
	pthread_cond_init(&threads->offered, NULL);
	pthread_cond_init(&threads->done, NULL);
	for (; threads->count < count; threads->count++) {
		struct skep_thread *thread = &threads->thread[threads->count];
		*thread = (struct skep_thread){.threads = threads, .number = threads->count + 1};
		if (pthread_create(&thread->id, NULL, serve, thread) != 0) {
			skep_threads_stop(threads);
			return false;
		}
	}
	return true;
}

void skep_threads_stop(struct skep_threads *threads)
{
	pthread_mutex_lock(&threads->lock);
	assert(!threads->over);
	threads->over = true;
	skep_threads_offer(threads, true);
	pthread_mutex_unlock(&threads->lock);
	for (uint32_t i = 0; i < threads->count; i++)
		pthread_join(threads->thread[i].id, NULL);
	pthread_cond_destroy(&threads->offered);
	pthread_cond_destroy(&threads->done);
	pthread_mutex_destroy(&threads->lock);
	free(threads->thread);
}

void skep_threads_offer(struct skep_threads *threads, bool all)
{
	threads->offers++;
	if (threads->idle == 0)
		return;
	if (all)
		pthread_cond_broadcast(&threads->offered);
	else
		pthread_cond_signal(&threads->offered);
}
