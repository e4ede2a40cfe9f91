/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c - see team.h. One lock guards what is left of the loop; a range is some 50 us of work, so taking it under the lock costs
 * nothing. Passes offer one loop right after the other, so whoever waits looks for news for a while (SPINS) before it sleeps:
 * waking a thread takes longer than many a loop.
 */
#include "models/team.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SPINS = 1000 }; /* some 20 us */

struct member {
	struct skep_team *team;
	uint32_t number;
	pthread_t thread;
};

struct skep_team {
	pthread_mutex_t lock;
	pthread_cond_t offered, done;
	bool busy, over;
	atomic_uint offers; /* loops so far, and one more at the end */
	skep_team_fn *fn;   /* the loop: */
	const void *context;
	size_t n, grain, next;
	atomic_size_t left; /* ranges that are not done */
	uint32_t members;   /* with who asks, who is none of these: */
	struct member member[];
};

uint32_t skep_team_cores(void)
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
static void work(struct skep_team *team, uint32_t member)
{
	while (team->next < team->n) {
		size_t first = team->next, end = end_of(first, team->n, team->grain);
		team->next = end;
		pthread_mutex_unlock(&team->lock);
		team->fn(team->context, first, end, member);
		pthread_mutex_lock(&team->lock);
		if (--team->left == 0)
			pthread_cond_signal(&team->done);
	}
}

/* Called and returns with the lock held, which it gives away meanwhile. */
static void wait_for_offer(struct skep_team *team)
{
	unsigned seen = team->offers;
	pthread_mutex_unlock(&team->lock);
	for (int i = 0; i < SPINS && team->offers == seen; i++)
		pause_a_little();
	pthread_mutex_lock(&team->lock);
	while (team->offers == seen)
		pthread_cond_wait(&team->offered, &team->lock);
}

static void wait_until_done(struct skep_team *team)
{
	pthread_mutex_unlock(&team->lock);
	for (int i = 0; i < SPINS && team->left > 0; i++)
		pause_a_little();
	pthread_mutex_lock(&team->lock);
	while (team->left > 0)
		pthread_cond_wait(&team->done, &team->lock);
}

static void *serve(void *context)
{
	struct member *member = context;
	struct skep_team *team = member->team;
	pthread_mutex_lock(&team->lock);
	while (!team->over) {
		work(team, member->number);
		if (!team->over)
			wait_for_offer(team);
	}
	pthread_mutex_unlock(&team->lock);
	return NULL;
}

struct skep_team *skep_team_create(uint32_t members)
{
	assert(members >= 1);
	struct skep_team *team = calloc(1, sizeof *team + (members - 1) * sizeof team->member[0]);
	if (!team)
		return NULL;
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->offered, NULL);
	pthread_cond_init(&team->done, NULL);
	for (team->members = 1; team->members < members; team->members++) {
		struct member *member = &team->member[team->members - 1];
		*member = (struct member){.team = team, .number = team->members};
		if (pthread_create(&member->thread, NULL, serve, member) != 0) {
			skep_team_destroy(team);
			return NULL;
		}
	}
	return team;
}

void skep_team_destroy(struct skep_team *team)
{
	if (!team)
		return;
	pthread_mutex_lock(&team->lock);
	assert(!team->busy);
	team->over = true;
	team->offers++;
	pthread_cond_broadcast(&team->offered);
	pthread_mutex_unlock(&team->lock);
	for (uint32_t i = 1; i < team->members; i++)
		pthread_join(team->member[i - 1].thread, NULL);
	pthread_cond_destroy(&team->offered);
	pthread_cond_destroy(&team->done);
	pthread_mutex_destroy(&team->lock);
	free(team);
}

uint32_t skep_team_members(const struct skep_team *team)
{
	return team ? team->members : 1;
}

/* False: another thread has the team. */
static bool share(struct skep_team *team, size_t n, size_t grain, skep_team_fn *fn, const void *context)
{
	pthread_mutex_lock(&team->lock);
	bool free_now = !team->busy;
	if (free_now) {
		team->busy = true;
		team->fn = fn;
		team->context = context;
		team->n = n;
		team->grain = grain;
		team->next = 0;
		team->left = (n + grain - 1) / grain;
		team->offers++;
		pthread_cond_broadcast(&team->offered);
		work(team, 0);
		wait_until_done(team);
		team->busy = false;
	}
	pthread_mutex_unlock(&team->lock);
	return free_now;
}

void skep_team_share(struct skep_team *team, size_t n, size_t grain, skep_team_fn *fn, const void *context)
{
	assert(grain >= 1);
	if (team && n > grain && share(team, n, grain, fn, context))
		return;
	for (size_t first = 0; first < n; first = end_of(first, n, grain))
		fn(context, first, end_of(first, n, grain), 0);
}
