/* SPDX-License-Identifier: Apache-2.0
 *
 * cores.c - processor sharing: r operations on a host of c cores, each of which wants t of them, all run at the speed
 * min(1, c / (r t)), which is max-min fair since all want as much.
 *
 * A host's clock goes at that speed. An operation that begins when the clock shows v and takes w alone ends when it shows
 * v + w, however many begin or end meanwhile: the order of ends never changes, and only the first one needs an event.
 *
 * Keeps true: as long as the cores suffice each operation takes what it takes alone, to the nanosecond (the clock is then a whole
 * number, which a double holds up to 2^53 ns); otherwise times are within 1 ns of the formula for each begin and end meanwhile.
 */
#include "sim/cores.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct host {
	double cores;
	uint32_t first, workers; /* of member[] */
	uint32_t running;        /* operations */
	skep_time at_ns;         /* when its clock showed ... */
	double clock_ns;
	uint32_t slot;    /* whose end has been told as the first one, or SKEP_CORES_NONE, ... */
	skep_time end_ns; /* ... and when */
};

struct skep_cores {
	uint32_t hosts, lanes;
	double threads;
	struct host *host;
	uint32_t *host_of; /* [workers] or SKEP_CORES_NONE */
	uint32_t *member;  /* [workers] those of each host together */
	double *finish_ns; /* [workers * lanes] what the host's clock shows when the operation ends; NAN: none runs */
};

static uint32_t count_hosts(const struct skep_topology *t, uint32_t workers)
{
	uint32_t hosts = 0;
	for (uint32_t i = 0; i < workers; i++)
		hosts = t->machine[i].host > hosts ? t->machine[i].host : hosts;
	return hosts;
}

/* Counts the workers of each host, then sets them down host by host. */
static void fill(struct skep_cores *c, const struct skep_topology *t, uint32_t workers)
{
	for (uint32_t i = 0; i < workers; i++) {
		const struct skep_machine *m = &t->machine[i];
		c->host_of[i] = m->host > 0 ? m->host - 1 : SKEP_CORES_NONE;
		if (m->host > 0) {
			c->host[m->host - 1].cores = t->gpu[m->gpu].board.cores;
			c->host[m->host - 1].workers++;
		}
	}
	for (uint32_t h = 0, first = 0; h < c->hosts; h++) {
		c->host[h].first = first;
		c->host[h].slot = SKEP_CORES_NONE;
		first += c->host[h].workers;
		c->host[h].workers = 0;
	}
	for (uint32_t i = 0; i < workers; i++)
		if (c->host_of[i] != SKEP_CORES_NONE) {
			struct host *host = &c->host[c->host_of[i]];
			c->member[host->first + host->workers++] = i;
		}
	for (uint32_t slot = 0; slot < workers * c->lanes; slot++)
		c->finish_ns[slot] = NAN;
}

bool skep_cores_create(const struct skep_topology *topology, uint32_t workers, uint32_t lanes, uint32_t threads,
	struct skep_cores **ret)
{
	uint32_t hosts = count_hosts(topology, workers);
	*ret = NULL;
	if (hosts == 0)
		return true;
	assert(workers <= topology->machines && lanes > 0 && threads > 0);
	struct skep_cores *c = calloc(1, sizeof *c);
	if (!c)
		return false;
	*c = (struct skep_cores){.hosts = hosts, .lanes = lanes, .threads = threads};
	c->host = calloc(hosts, sizeof *c->host);
	c->host_of = calloc(workers, sizeof *c->host_of);
	c->member = calloc(workers, sizeof *c->member);
	c->finish_ns = calloc((size_t)workers * lanes, sizeof *c->finish_ns);
	if (!c->host || !c->host_of || !c->member || !c->finish_ns) {
		skep_cores_destroy(c);
		return false;
	}
	fill(c, topology, workers);
	*ret = c;
	return true;
}

void skep_cores_destroy(struct skep_cores *c)
{
	if (!c)
		return;
	free(c->host);
	free(c->host_of);
	free(c->member);
	free(c->finish_ns);
	free(c);
}

bool skep_cores_shared(const struct skep_cores *c, uint32_t worker)
{
	return c && c->host_of[worker] != SKEP_CORES_NONE;
}

static double speed(const struct skep_cores *c, const struct host *host)
{
	double wanted = host->running * c->threads;
	return wanted <= host->cores ? 1 : host->cores / wanted;
}

static struct host *advance(struct skep_cores *c, uint32_t worker, skep_time now)
{
	assert(skep_cores_shared(c, worker));
	struct host *host = &c->host[c->host_of[worker]];
	assert(now >= host->at_ns);
	host->clock_ns += (double)(now - host->at_ns) * speed(c, host);
	host->at_ns = now;
	return host;
}

void skep_cores_begin(struct skep_cores *c, uint32_t worker, uint32_t lane, skep_time now, skep_time work_ns)
{
	struct host *host = advance(c, worker, now);
	double *finish_ns = &c->finish_ns[(size_t)worker * c->lanes + lane];
	assert(lane < c->lanes && isnan(*finish_ns));
	*finish_ns = host->clock_ns + (double)work_ns;
	host->running++;
}

void skep_cores_end(struct skep_cores *c, uint32_t worker, uint32_t lane, skep_time now)
{
	struct host *host = advance(c, worker, now);
	uint32_t slot = worker * c->lanes + lane;
	assert(lane < c->lanes && !isnan(c->finish_ns[slot]) && host->running > 0);
	c->finish_ns[slot] = NAN;
	host->running--;
	if (host->slot == slot)
		host->slot = SKEP_CORES_NONE;
}

/* The one whose end is first; of several the first worker's. */
static uint32_t first_slot(const struct skep_cores *c, const struct host *host)
{
	uint32_t first = SKEP_CORES_NONE;
	double least_ns = INFINITY;
	for (uint32_t i = 0; i < host->workers; i++)
		for (uint32_t lane = 0; lane < c->lanes; lane++) {
			uint32_t slot = c->member[host->first + i] * c->lanes + lane;
			if (c->finish_ns[slot] < least_ns) {
				least_ns = c->finish_ns[slot];
				first = slot;
			}
		}
	return first;
}

bool skep_cores_turn(struct skep_cores *c, uint32_t worker, skep_time now, struct skep_cores_turn *ret)
{
	struct host *host = advance(c, worker, now);
	*ret = (struct skep_cores_turn){.was = host->slot, .slot = first_slot(c, host)};
	assert((ret->slot == SKEP_CORES_NONE) == (host->running == 0));
	if (ret->slot != SKEP_CORES_NONE) {
		double left_ns = (c->finish_ns[ret->slot] - host->clock_ns) / speed(c, host);
		ret->end_ns = now + (left_ns > 0 ? (skep_time)(left_ns + 0.5) : 0);
	}
	if (ret->slot == ret->was && (ret->slot == SKEP_CORES_NONE || ret->end_ns == host->end_ns))
		return false;
	host->slot = ret->slot;
	host->end_ns = ret->end_ns;
	return true;
}
