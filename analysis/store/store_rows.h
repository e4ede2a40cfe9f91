/* SPDX-License-Identifier: Apache-2.0
 *
 * store_rows.h - what a store holds while a run is recorded, and how it becomes rows. Private to analysis/.
 */
#pragma once

#include <sqlite3.h>

#include "analysis/store/candidates.h"
#include "analysis/store/store.h"
#include "analysis/store/store_activity.h"

enum skep_statement {
	SKEP_INSERT_RUN,
	SKEP_INSERT_SOURCE,
	SKEP_INSERT_PLACE,
	SKEP_INSERT_PAIR,
	SKEP_INSERT_WORKER,
	SKEP_INSERT_ROUND,
	SKEP_INSERT_STAGE_ROUND,
	SKEP_INSERT_VALIDATION,
	SKEP_INSERT_OP,
	SKEP_INSERT_NOTE,
	SKEP_INSERT_ACTIVITY,
	SKEP_INSERT_INCARNATION,
	SKEP_UPDATE_ROUND_COST,
	SKEP_INSERT_LINK,
	SKEP_ADD_LINK,
	SKEP_INSERT_LOG,
	SKEP_UPDATE_WORKER,
	SKEP_UPDATE_RUN,
	SKEP_UPDATE_EARLIER,
	SKEP_STATEMENTS
};

#define SKEP_ROWS_AT_ONCE 32u             /* by one statement of store.many */
#define SKEP_STORE_BEGIN_TIMEOUT_MS 10000 /* a run or a sweep waits for a locked database for so long when it begins */

struct skep_note_row {
	skep_time now;
	struct skep_peer who;
	struct skep_note note;
};

struct skep_round_row {
	uint32_t round, issued;
	bool closed;
	skep_time opened_ns, closed_ns;
	double loss; /* NAN: none */
	bool has_staleness;
	bool waves;
	int64_t staleness, local_staleness; /* the largest that was heard of; local_staleness with waves alone */
	uint64_t sent[SKEP_TRAFFICS];       /* bytes, until it closed */
};

struct skep_validation_row {
	uint32_t round, asked, counted;
	skep_time began_ns, ended_ns;
	double loss;                  /* NAN: none */
	uint64_t sent[SKEP_TRAFFICS]; /* bytes, until it ended */
};

struct skep_stage_row {
	uint32_t round, stage, counted, lost, members;
	uint32_t merges, merged_by, merged_at; /* async: so far; of the newest note, the worker and its first number */
	bool committed;
};

struct skep_incarnation_row {
	uint32_t worker;
	skep_time started_ns, ended_ns;
};

struct skep_closed_row { /* a round that was closed, for its cost */
	uint32_t round;
	skep_time closed_ns;
	double egress_usd; /* from the start of the run until then, 0 without prices of traffic; NAN: not known */
};

struct skep_log_row { /* a part of a machine's log */
	uint32_t worker, part;
	size_t first, count; /* in log_bytes */
};

struct skep_rows { /* what waits for the next transaction */
	void *item;
	size_t count, capacity, item_size;
};

/* Of a COUNTED note. */
static inline void skep_rows_hear_staleness(struct skep_round_row *row, int64_t staleness, bool waves)
{
	int64_t lacked = waves ? skep_note_lacked(staleness) : staleness,
		own = waves ? skep_note_lacked_own(staleness) : 0;
	if (!row->has_staleness || lacked > row->staleness)
		row->staleness = lacked;
	row->local_staleness = own > row->local_staleness ? own : row->local_staleness;
	row->waves = waves;
	row->has_staleness = true;
}

struct skep_store {
	sqlite3 *db;
	sqlite3_stmt *statement[SKEP_STATEMENTS];
	sqlite3_stmt *many[SKEP_STATEMENTS]; /* the same for SKEP_ROWS_AT_ONCE rows; NULL where one at a time will do */
	char path[512];
	struct skep_diag error;  /* the first failure to write */
	struct skep_diag unread; /* the first failure to read */
	bool behind;             /* the database was locked when the last round closed */
	int patience_ms;         /* at the end, for a locked database */
	FILE *say;               /* that it waits; NULL: nothing */
	int reserve;             /* of the disk, for mark_dead(); -1: none */

	int64_t run; /* 0: none has begun */
	uint32_t workers, stages,
		vstages; /* virtual stages: where microbatches are counted; stages, unless pipelines are interleaved */
	bool has_loss, has_tokens;
	const struct skep_plan *plan;
	struct skep_validation_row validation; /* the one under way */
	uint32_t *place;                       /* [workers + 1] */
	uint32_t *ops_left, *notes_left;       /* [workers + 1] */
	uint64_t ops_dropped, notes_dropped;
	uint64_t sent[SKEP_TRAFFICS];      /* bytes so far */
	double egress_usd;                 /* paid for them */
	uint32_t heard;                    /* skep_plan_heard() */
	struct skep_round_row *open;       /* [heard], by round modulo that */
	struct skep_stage_row *open_stage; /* [heard * vstages] */
	struct skep_rows rounds, stage_rounds, validations, notes, ops, links, uses, logs, log_bytes;
	struct skep_rows lives, closed; /* of the whole run */
	uint32_t undone; /* what the database has of rounds from this one on is void; UINT32_MAX: nothing is */
	const struct skep_topology *topology;
	uint32_t *log_parts; /* [workers + 1] */
	struct skep_activity activity;
	struct skep_candidates candidates;
	struct skep_round_row *tried; /* [candidates.rounds]: those that have closed, whose loss is not known yet */
};

/* store_waiting.c */
void skep_store_fail(struct skep_store *store, const char *reason);
void skep_store_fail_sql(struct skep_store *store, int code);

void skep_rows_push(struct skep_store *store, struct skep_rows *rows, const void *item);
void skep_rows_append(struct skep_store *store, struct skep_rows *rows, const void *items, size_t count);

/* Rounds from this one on are made again: drops what waits of them, and notes that what the database has is void. */
void skep_rows_undo(struct skep_store *store, uint32_t first);
/* Deletes what is void; before any row of these rounds is written. False: skep_store_fail_sql(). */
bool skep_store_put_undone(struct skep_store *store);

/* store_rows.c */

/* Kinds that are rows of `notes`, and those of them that a cap bounds. */
bool skep_note_kept(uint8_t kind);
bool skep_note_capped(uint8_t kind);

/* All of these return false after an error, which is then in store->error. The caller holds the transaction. */
bool skep_store_prepare(struct skep_store *store);
bool skep_store_put_start(struct skep_store *store, const struct skep_scenario *scenario, const char *world,
	const char *device, bool pace, bool shape);
bool skep_store_put_waiting(struct skep_store *store);
bool skep_store_put_activity(struct skep_store *store);
bool skep_store_put_costs(struct skep_store *store); /* lives, and the cost of rounds */
bool skep_store_put_logs(struct skep_store *store);  /* store_log.c */
bool skep_store_put_sources(struct skep_store *store, const struct skep_scenario *scenario); /* store_sources.c */
bool skep_store_put_result(struct skep_store *store, const struct skep_summary *summary);
