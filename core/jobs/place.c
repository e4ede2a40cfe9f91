/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c - which machines a job gets: see jobs.h.
 *
 * What a job has already it gets more of on the same hosts. Else all on one host, if one has room: on the one whose jobs ask for
 * least of its cores and memory, of these on the fullest one. Else at one place, the fullest one that has room; and there, or at
 * all places where none has, from the hosts with most room on, so that it is on few.
 */
#include "core/jobs/jobs.h"

#include <assert.h>

static void count_free(const struct skep_jobs_cluster *c, const uint32_t *owner)
{
	for (uint32_t h = 0; h < c->hosts; h++)
		c->free_of[h] = 0;
	for (uint32_t p = 0; p < c->places; p++)
		c->free_at[p] = 0;
	for (uint32_t m = 0; m < c->machines; m++) {
		bool is_free = owner[m] == SKEP_JOBS_NONE;
		assert(c->host_of[m] < c->hosts && c->place_of[c->host_of[m]] < c->places);
		c->free_of[c->host_of[m]] += is_free;
		c->free_at[c->place_of[c->host_of[m]]] += is_free;
	}
}

/* Takes up to so many free machines of one host. Returns how many. */
static uint32_t take(const struct skep_jobs_cluster *c, uint32_t host, uint32_t job, uint32_t more, uint32_t *owner)
{
	uint32_t taken = 0;
	assert(host < c->hosts);
	for (uint32_t m = 0; m < c->machines && taken < more; m++)
		if (c->host_of[m] == host && owner[m] == SKEP_JOBS_NONE) {
			owner[m] = job;
			taken++;
		}
	assert(taken <= c->free_of[host] && taken <= c->free_at[c->place_of[host]]);
	c->free_of[host] -= taken;
	c->free_at[c->place_of[host]] -= taken;
	return taken;
}

static uint32_t held(const struct skep_jobs_cluster *c, uint32_t host, uint32_t job, const uint32_t *owner)
{
	uint32_t count = 0;
	for (uint32_t m = 0; m < c->machines; m++)
		count += c->host_of[m] == host && owner[m] == job;
	return count;
}

/* A host that has room for all, or SKEP_JOBS_NONE. */
static uint32_t whole_host(const struct skep_jobs_cluster *c, uint32_t more, const double *demand)
{
	uint32_t best = SKEP_JOBS_NONE;
	for (uint32_t h = 0; h < c->hosts; h++) {
		if (c->free_of[h] < more)
			continue;
		double here = demand ? demand[h] : 0, least = demand && best != SKEP_JOBS_NONE ? demand[best] : 0;
		if (best == SKEP_JOBS_NONE || here < least || (here <= least && c->free_of[h] < c->free_of[best]))
			best = h;
	}
	return best;
}

static uint32_t whole_place(const struct skep_jobs_cluster *c, uint32_t more)
{
	uint32_t best = SKEP_JOBS_NONE;
	for (uint32_t p = 0; p < c->places; p++)
		if (c->free_at[p] >= more && (best == SKEP_JOBS_NONE || c->free_at[p] < c->free_at[best]))
			best = p;
	return best;
}

/* Of the hosts of a place (SKEP_JOBS_NONE: of all) the one with most room. */
static uint32_t roomiest(const struct skep_jobs_cluster *c, uint32_t place)
{
	uint32_t best = SKEP_JOBS_NONE;
	for (uint32_t h = 0; h < c->hosts; h++)
		if ((place == SKEP_JOBS_NONE || c->place_of[h] == place) && c->free_of[h] > 0 &&
			(best == SKEP_JOBS_NONE || c->free_of[h] > c->free_of[best]))
			best = h;
	return best;
}

void skep_jobs_place(
	const struct skep_jobs_cluster *c, uint32_t job, uint32_t more, const double *demand, uint32_t *owner)
{
	count_free(c, owner);
	for (uint32_t h = 0; h < c->hosts && more > 0; h++)
		if (c->free_of[h] > 0 && held(c, h, job, owner) > 0)
			more -= take(c, h, job, more, owner);
	uint32_t host = more > 0 ? whole_host(c, more, demand) : SKEP_JOBS_NONE;
	if (host != SKEP_JOBS_NONE)
		more -= take(c, host, job, more, owner);
	uint32_t place = more > 0 ? whole_place(c, more) : SKEP_JOBS_NONE;
	while (more > 0) {
		host = roomiest(c, place);
		assert(host != SKEP_JOBS_NONE);
		more -= take(c, host, job, more, owner);
	}
}

void skep_jobs_release(const struct skep_jobs_cluster *c, uint32_t job, uint32_t fewer, uint32_t *owner)
{
	while (fewer > 0) {
		uint32_t host = SKEP_JOBS_NONE, least = 0;
		for (uint32_t h = 0; h < c->hosts; h++) {
			uint32_t count = held(c, h, job, owner);
			if (count > 0 && (host == SKEP_JOBS_NONE || count < least)) {
				host = h;
				least = count;
			}
		}
		assert(host != SKEP_JOBS_NONE);
		for (uint32_t m = c->machines; m > 0 && fewer > 0; m--)
			if (c->host_of[m - 1] == host && owner[m - 1] == job) {
				owner[m - 1] = SKEP_JOBS_NONE;
				fewer--;
			}
	}
}
