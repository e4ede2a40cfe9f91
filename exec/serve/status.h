/* SPDX-License-Identifier: Apache-2.0
 *
 * status.h - what `skep status` is told of a run that is served: who is there and what each does, how far the run is, what it has
 * learnt, what it has cost, and how long it will take.
 *
 * It hears the run as a recorder does, and admissions.c says who the processes are.
 */
#pragma once

#include <stdio.h>

#include "core/record.h"
#include "scenarios/read/scenario.h"

#define SKEP_SETTLED_NS                                                                                                \
	UINT64_C(12000000000) /* both attempts to connect of a pair, of 5 s at most each, are over then */

/* Which pairs of processes cannot connect to each other, so that `serve` passes on what they say. */
struct skep_relays {
	uint32_t (
		*pair)[3]; /* [pairs] ranks, the lower one first; which of them speak directly by now: 1, 2, or both */
	uint32_t pairs, told, freed; /* said to be relayed, and to be so no more: RELAYS_TOLD of each at most */
	uint32_t *passed;            /* [places * places] the lower one first: pairs of workers there; NULL: none was */
	uint32_t unforeseen;         /* pairs that the topology says can connect */
	uint32_t first[2];           /* ... workers of the first one; equal: it has connected since */
};

/* True: the pair was not there. Without memory for another one it is left out. */
bool skep_relays_add(struct skep_relays *relays, uint32_t a, uint32_t b);
/* The first of them speaks to the other one over a connection from now on. True: both do, and the pair is there no more. */
bool skep_relays_remove(struct skep_relays *relays, uint32_t from, uint32_t to);
/* Without those of which `is_here` says no. */
void skep_relays_keep(
	struct skep_relays *relays, bool (*is_here)(const void *context, uint32_t rank), const void *context);
uint32_t skep_relays_of(const struct skep_relays *relays, uint32_t rank); /* in how many pairs it is */
/* On standard error, of the first ones. */
void skep_relays_say(struct skep_relays *relays, const char *host, const char *other);
void skep_relays_say_direct(struct skep_relays *relays, const char *host, const char *other);
/* A pair of workers is relayed, once for each pair of their processes: compared with what the topology says. */
void skep_relays_between(struct skep_relays *relays, const struct skep_scenario *scenario, uint32_t a, uint32_t b);
/* And is relayed no more. */
void skep_relays_not_between(struct skep_relays *relays, const struct skep_scenario *scenario, uint32_t a, uint32_t b);
/* At the end: one line if the topology says of relayed pairs that they can connect, and one if it says of others that they
 * cannot. `settled` [places]: those of workers that are there, and have been for SKEP_SETTLED_NS, in which they have tried all
 * others. */
void skep_relays_compare(
	const struct skep_relays *relays, const struct skep_scenario *scenario, const bool *settled, FILE *out);
void skep_relays_finish(struct skep_relays *relays);

struct skep_status;

struct skep_status_member {
	uint32_t rank, worker; /* worker SKEP_NO_INDEX: it stands by */
	const char *host, *gpu, *address;
	uint32_t relayed; /* members that it has no connection to */
};

struct skep_status *skep_status_create(const struct skep_scenario *scenario); /* NULL: no memory */
void skep_status_destroy(struct skep_status *status);                         /* NULL is fine */
struct skep_recorder skep_status_recorder(struct skep_status *status);

/* A process is this worker from now on. */
void skep_status_begins(struct skep_status *status, uint32_t worker, skep_time now);

/* One JSON object, which the caller frees; NULL: no memory. `running`: the run has begun, and now is its time. */
char *skep_status_json(const struct skep_status *status, bool running, skep_time now,
	const struct skep_status_member *member, uint32_t members, const struct skep_relays *relays);
