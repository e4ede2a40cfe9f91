/* SPDX-License-Identifier: Apache-2.0
 *
 * store.h - one SQLite database for both worlds: a recorder that writes, one transaction per round.
 *
 * A run that dies leaves a readable database with all finished rounds: the run's row is written at the start with status
 * 'running', every closed round is committed, and skep_store_end() fills in the result.
 */
#pragma once

#include "analysis/summary/summary.h"
#include "base/diag.h"
#include "core/record.h"
#include "scenarios/read/scenario.h"

struct skep_store;

/* create: opens the database at `path` for writing and makes it if it is not there; otherwise it must be there and is only
 * read. Errors name the file and what to do (read-only, locked, not a database, not ours, newer schema, disk full).
 * Creates nothing on error. */
struct skep_store *skep_store_open(const char *path, bool create, struct skep_diag *reterr);
/* One in memory, for a run that goes elsewhere when it has ended (store_sweep.h). */
struct skep_store *skep_store_open_memory(struct skep_diag *reterr);
void skep_store_close(struct skep_store *store); /* NULL is fine */

/* Begins a run; *ret_run is its id. world: "sim" or "real". The scenario stays where it is until the run has ended. */
bool skep_store_begin(struct skep_store *store, const struct skep_scenario *scenario, const char *world,
	const char *device, bool pace, bool shape, int64_t *ret_run, struct skep_diag *reterr);

/* After skep_store_begin(): keeps as many operations of a simulated run as of a real one, 200,000 in place of 50,000. */
void skep_store_keep_details(struct skep_store *store);

/* After skep_store_begin(): keeps only the first so many operations of each worker, and of the notes only those that no cap
 * bounds: a run of a sweep is one of many. */
void skep_store_keep_little(struct skep_store *store, uint32_t ops);

/* What the run reports to; errors are kept and returned by skep_store_end (the run itself goes on). */
struct skep_recorder skep_store_recorder(struct skep_store *store);

/* How long skep_store_end() waits for a database that another program keeps locked (10 s unless this is called), and where it
 * says what it waits for (NULL: nowhere). */
void skep_store_patience(struct skep_store *store, uint32_t seconds, FILE *say);

/* Behind how many rounds the run with this number in its folder of checkpoints (scenario.kept_as) has come by the rows of the
 * database: those that it has closed, and those before it began. False: it cannot be read, or does not know the run. */
bool skep_store_rounds_closed(const char *path, uint64_t kept_as, uint32_t *ret_rounds);

/* What could not be written is lost; the run then keeps the rounds written before and, where that still works, is marked
 * 'dead'. */
bool skep_store_end(struct skep_store *store, const struct skep_summary *summary, struct skep_diag *reterr);
