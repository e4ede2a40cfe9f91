/* SPDX-License-Identifier: Apache-2.0
 *
 * saver.c - see saver.h.
 */
#include "exec/keeping/saver.h"

#include <assert.h>
#include <stdlib.h>

#include "base/process/threads.h"

enum { THREADS = 4 }; /* which mostly wait */

struct saving {
	struct saving *next;
	struct skep_arrival *arrival; /* NULL: a thread has begun */
	struct skep_state_word word;
	struct skep_diag why;
	uint32_t who;
	bool ended;
};

struct skep_saver {
	struct skep_threads threads; /* whose lock guards the list */
	struct saving *first;        /* in the order in which they were given */
	void (*wake)(void *context);
	void *context;
};

static bool end_next(void *context, uint32_t number)
{
	struct skep_saver *saver = context;
	struct saving *saving = saver->first;
	(void)number;
	while (saving != NULL && saving->arrival == NULL)
		saving = saving->next;
	if (saving == NULL)
		return false;
	/* No other thread touches these two, or frees them, before it has ended. */
	assert(!saving->ended);
	struct skep_arrival *arrival = saving->arrival;
	struct skep_diag *why = &saving->why;
	saving->arrival = NULL;
	pthread_mutex_unlock(&saver->threads.lock);
	skep_arrival_end(arrival, why);
	pthread_mutex_lock(&saver->threads.lock);
	saving->ended = true;
	saver->wake(saver->context);
	return true;
}

struct skep_saver *skep_saver_create(void (*wake)(void *context), void *context)
{
	struct skep_saver *saver = calloc(1, sizeof *saver);
	if (saver == NULL)
		return NULL;
	saver->wake = wake;
	saver->context = context;
	if (skep_threads_start(&saver->threads, THREADS, 0, end_next, saver))
		return saver;
	free(saver);
	return NULL;
}

void skep_saver_destroy(struct skep_saver *saver)
{
	if (saver == NULL)
		return;
	skep_threads_stop(&saver->threads);
	while (saver->first != NULL) {
		struct saving *next = saver->first->next;
		if (saver->first->arrival != NULL)
			skep_arrival_end(saver->first->arrival, &saver->first->why);
		free(saver->first);
		saver->first = next;
	}
	free(saver);
}

bool skep_saver_give(struct skep_saver *saver, struct skep_arrival *arrival, uint32_t who)
{
	assert(arrival != NULL && who != SKEP_SAVER_NO_ONE);
	struct saving *saving = calloc(1, sizeof *saving);
	if (saving == NULL) {
		skep_arrival_abandon(arrival);
		return false;
	}
	*saving = (struct saving){.arrival = arrival, .word = skep_arrival_word(arrival), .who = who};
	pthread_mutex_lock(&saver->threads.lock);
	struct saving **at = &saver->first;
	while (*at != NULL)
		at = &(*at)->next;
	*at = saving;
	skep_threads_offer(&saver->threads, false);
	pthread_mutex_unlock(&saver->threads.lock);
	return true;
}

void skep_saver_forget(struct skep_saver *saver, uint32_t who)
{
	pthread_mutex_lock(&saver->threads.lock);
	for (struct saving *saving = saver->first; saving != NULL; saving = saving->next) {
		if (saving->who == who)
			saving->who = SKEP_SAVER_NO_ONE;
	}
	pthread_mutex_unlock(&saver->threads.lock);
}

bool skep_saver_take(
	struct skep_saver *saver, uint32_t *ret_who, struct skep_state_word *ret_word, struct skep_diag *ret_why)
{
	pthread_mutex_lock(&saver->threads.lock);
	struct saving **at = &saver->first;
	while (*at != NULL && !(*at)->ended)
		at = &(*at)->next;
	struct saving *saving = *at;
	if (saving != NULL)
		*at = saving->next;
	pthread_mutex_unlock(&saver->threads.lock);
	if (saving == NULL)
		return false;
	assert(saving->arrival == NULL);
	*ret_who = saving->who;
	*ret_word = saving->word;
	*ret_why = saving->why;
	free(saving);
	return true;
}
