/* SPDX-License-Identifier: Apache-2.0
 *
 * admissions.h - how `serve` lets processes into a run: the other half of what join.c says (words.h has the order).
 *
 * A process is admitted by the secret of its ticket and given a rank once it has all files and a key. Before the run begins it
 * gets a worker of the scenario, the one that it fits best; when all are taken, and afterwards, it stands by and the loop gives
 * it the place of a worker that was lost (skep_admissions_newcomers). Ranks 1 to `workers` are those of the first processes, so
 * that a run begins as one over MPI does; each later process has a rank that no other had before it.
 *
 * Everything here is called from within the mesh's poll, in one thread, and none of it waits.
 */
#pragma once

#include "exec/files/manifest.h"
#include "exec/keeping/lease.h"
#include "exec/loop/clock.h"
#include "exec/loop/loop.h"
#include "exec/serve/status.h"
#include "exec/tcp/mesh.h"
#include "models/checkpoint/checkpoint.h"

#define SKEP_NEWCOMERS_MAX 20000u /* ranks beyond those of the workers */

struct skep_admissions_setup {
	const struct skep_scenario *scenario;
	const struct skep_manifest *manifest;
	const struct skep_authority *authority;
	struct skep_tickets *tickets;
	void (*spent)(void *context); /* after a ticket has lost one of its admissions; NULL: nothing needs to know */
	void *spent_context;
	struct skep_status *status;                  /* of the run */
	const struct skep_checkpoint_folder *states; /* where those of processes are kept; NULL: they keep none */
	struct skep_lease *lease; /* a state is kept once a majority of the replicas has it; NULL: there are none */
	const char *allocation;   /* that the scenario was resolved with, as --set takes it; NULL: it says it itself */
	const char *version;      /* of this program */
	struct skep_offer offer;  /* all but the list and the allocation */
	uint32_t least;           /* workers that the run begins with; 0: all */
	bool quiet;
};

struct skep_admissions; /* nothing that it was given may go before it */

struct skep_admissions *skep_admissions_create(const struct skep_admissions_setup *setup, struct skep_diag *reterr);
void skep_admissions_destroy(struct skep_admissions *admissions); /* NULL is fine */

uint32_t skep_admissions_ranks(const struct skep_scenario *scenario); /* that a mesh of such a run has */

/* What the mesh calls, and the mesh that is told. */
struct skep_lobby skep_admissions_lobby(struct skep_admissions *admissions);
/* False: no memory, or no thread that keeps states. */
bool skep_admissions_attach(struct skep_admissions *admissions, struct skep_mesh *mesh, struct skep_diag *reterr);
/* Before the mesh goes: what has been handed over is on the disk then. NULL is fine. */
void skep_admissions_detach(struct skep_admissions *admissions);

/* Before the run: a member has gone. Its place is free again. */
void skep_admissions_lost(struct skep_admissions *admissions, uint32_t rank);
/* Are there as many as the run begins with, and one of each stage? */
bool skep_admissions_complete(const struct skep_admissions *admissions);
/* The run begins now: all who are there hear who is, and the time. *ret_absent [ranks], to be freed, says who is not; NULL: no
 * memory. */
bool *skep_admissions_begin(struct skep_admissions *admissions, const struct skep_clock *clock);

/* Behind the run: waits until a majority of the replicas, if there are any, has all that was handed over. */
void skep_admissions_settle(struct skep_admissions *admissions);

/* How many guests were told that they may not join; each of the first ones has its line on standard error. */
uint64_t skep_admissions_refused(const struct skep_admissions *admissions);

/* At the end: says on standard error where which pairs are relayed is not what the topology says. */
void skep_admissions_compare_relays(const struct skep_admissions *admissions);

/* Who gets the place of a worker that was lost, for the loop. */
struct skep_newcomers skep_admissions_newcomers(struct skep_admissions *admissions);
