/* SPDX-License-Identifier: Apache-2.0
 *
 * store_statements.c - what a store asks of SQLite while a run is recorded: the columns of each table in the order of schema.sql,
 * in which store_rows.c binds them.
 */
#include "analysis/store/store_rows.h"

#include <assert.h>
#include <string.h>

static const char *const SQL[SKEP_STATEMENTS] = {
	[SKEP_INSERT_RUN] =
		"INSERT INTO runs (scenario, path, text, world, device, pace, shape, seed, version, host, pid, started,"
		" model, topology, arithmetic, workers, stages, rounds_planned, microbatches, samples_per_microbatch,"
		" target_loss, vstages, first_round, number_format, kept_as, continues) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,"
		" ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT max(id) FROM runs WHERE kept_as = ?))",
	[SKEP_INSERT_SOURCE] = "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_PLACE] = "INSERT INTO places VALUES (?, ?, ?)",
	[SKEP_INSERT_PAIR] = "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_WORKER] = "INSERT INTO workers (run, worker, role, gpu, place, up_bytes_per_s, down_bytes_per_s,"
			       " price_usd_per_h, first_stage) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_ROUND] = "INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)"
			      " ON CONFLICT (run, round) DO UPDATE SET loss = excluded.loss",
	[SKEP_INSERT_STAGE_ROUND] = "INSERT INTO stage_rounds VALUES (?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_VALIDATION] = "INSERT INTO validations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_OP] = "INSERT INTO ops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_NOTE] = "INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_ACTIVITY] = "INSERT INTO activity VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[SKEP_INSERT_INCARNATION] = "INSERT INTO incarnations VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
	[SKEP_UPDATE_ROUND_COST] = "UPDATE rounds SET cost_usd = ? WHERE run = ? AND round = ?",
	[SKEP_INSERT_LINK] = "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?)"
			     " ON CONFLICT (run, source, destination, traffic) DO NOTHING",
	[SKEP_ADD_LINK] = "UPDATE links SET messages = messages + ?, bytes = bytes + ?"
			  " WHERE run = ? AND source = ? AND destination = ? AND traffic = ?",
	[SKEP_INSERT_LOG] = "INSERT INTO event_log VALUES (?, ?, ?, ?, ?)",
	[SKEP_UPDATE_WORKER] =
		"UPDATE workers SET final_stage = ?, final_epoch = ?, alive_s = ?, compute_s = ?, arithmetic_s = ?,"
		" events = ?, digest = ? WHERE run = ? AND worker = ?",
	[SKEP_UPDATE_EARLIER] = "UPDATE runs SET status = 'dead' WHERE kept_as = ? AND status = 'running'",
	[SKEP_UPDATE_RUN] =
		"UPDATE runs SET status = ?, digest = ?, steps = ?, samples = ?, tokens = ?, time_s = ?,"
		" throughput_samples_per_s = ?, utilisation = ?, passes_s = ?, reduction_s = ?, bytes_pipeline = ?,"
		" bytes_sync = ?, issued = ?, counted = ?, lost = ?, preemptions = ?, joins = ?, migrations = ?,"
		" final_loss = ?, final_validation_loss = ?, time_to_target_s = ?, cost_to_target_usd = ?, cost_usd = ?,"
		" egress_usd = ?, expert_imbalance = ?, expert_dropped = ?, expert_balance = ?, events = ?, wall_s = ?,"
		" ops_dropped = ?, notes_dropped = ?, activity_bin_s = ?, damaged = ?, extrapolated = ?"
		" WHERE id = ?",
};

static bool prepare(struct skep_store *store, const char *sql, sqlite3_stmt **statement)
{
	int rc = *statement ? SQLITE_OK
	                    : sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
	if (rc != SQLITE_OK)
		skep_store_fail_sql(store, rc);
	return rc == SQLITE_OK;
}

/* The same INSERT, with what stands in its parentheses so many times. */
static bool prepare_many(struct skep_store *store, enum skep_statement statement)
{
	char sql[64 * SKEP_ROWS_AT_ONCE];
	const char *one = SQL[statement], *values = strchr(one, '(');
	int length = snprintf(sql, sizeof sql, "%s", one);
	for (uint32_t i = 1; i < SKEP_ROWS_AT_ONCE; i++)
		length += snprintf(sql + length, sizeof sql - (size_t)length, ", %s", values);
	assert((size_t)length < sizeof sql);
	return prepare(store, sql, &store->many[statement]);
}

bool skep_store_prepare(struct skep_store *store)
{
	for (int i = 0; i < SKEP_STATEMENTS; i++)
		if (!prepare(store, SQL[i], &store->statement[i]))
			return false;
	return prepare_many(store, SKEP_INSERT_OP) && prepare_many(store, SKEP_INSERT_NOTE) &&
	       prepare_many(store, SKEP_INSERT_ACTIVITY);
}
