/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.c - a run as trace events. The process of worker i has the number i + 1, that of the run 0; the threads of a worker
 * are its life (0), its compute lane (1) and its reduce lane (2).
 *
 * Operations are those that the database keeps (the first ones of a long run, see docs/database.md): where some are left out,
 * counters of each worker's busy time in bins, which cover the whole run, come beside them.
 */
#include <math.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/plot/plot_presence.h"
#include "analysis/store/database.h"
#include "base/json.h"

enum { THREAD_LIFE, THREAD_COMPUTE, THREAD_REDUCE };

struct trace {
	struct skep_store *store;
	struct skep_plot_run run;
	double end_s;
	FILE *out;
	bool any; /* an event is written */
	struct skep_diag *reterr;
};

static void write_string(FILE *out, const char *text)
{
	cJSON *string = cJSON_CreateString(text);
	char *quoted = cJSON_PrintUnformatted(string);
	fputs(quoted ? quoted : "\"\"", out);
	cJSON_free(quoted);
	cJSON_Delete(string);
}

/* Begins an event; the caller adds what the phase needs, and the closing brace. */
static void begin(struct trace *t, const char *name, char phase, int64_t process)
{
	fputs(t->any ? ",\n{\"name\":" : "\n{\"name\":", t->out);
	write_string(t->out, name);
	fprintf(t->out, ",\"ph\":\"%c\",\"pid\":%lld", phase, (long long)process);
	t->any = true;
}

static double us(double seconds)
{
	return seconds * 1e6;
}

/* ---- names ------------------------------------------------------------------------------------------------------------- */

static void name_process(struct trace *t, int64_t process, const char *name, int64_t order)
{
	begin(t, "process_name", 'M', process);
	fputs(",\"args\":{\"name\":", t->out);
	write_string(t->out, name);
	fputs("}}", t->out);
	begin(t, "process_sort_index", 'M', process);
	fprintf(t->out, ",\"args\":{\"sort_index\":%lld}}", (long long)order);
}

static bool write_names(struct trace *t)
{
	static const char sql[] =
		"SELECT worker, gpu, (SELECT name FROM places WHERE places.run = ?1 AND places.place = workers.place),"
		" row_number() OVER (ORDER BY coalesce(first_stage, 4294967295), worker) FROM workers WHERE run = ?1"
		" AND role = 'worker'";
	static const char *const thread[] = {"life", "compute", "reduce"};
	char name[256];
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	snprintf(name, sizeof name, "run %lld: %s", (long long)t->run.id, t->run.scenario);
	name_process(t, 0, name, 0);
	while (row != NULL && skep_store_row(t->store, row)) {
		int64_t worker = sqlite3_column_int64(row, 0);
		snprintf(name, sizeof name, "worker %lld, %s, %s", (long long)worker, skep_column_text(row, 1),
			skep_column_text(row, 2));
		name_process(t, worker + 1, name, sqlite3_column_int64(row, 3));
		for (int i = 0; i < 3; i++) {
			begin(t, "thread_name", 'M', worker + 1);
			fprintf(t->out, ",\"tid\":%d,\"args\":{\"name\":\"%s\"}}", i, thread[i]);
		}
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* ---- of workers ---------------------------------------------------------------------------------------------------------- */

static bool write_ops(struct trace *t)
{
	static const char sql[] = "SELECT worker, kind, lane, begin_s, end_s, epoch, round, stage, microbatch, busy_s"
				  " FROM ops WHERE run = ?1 AND worker < ?2 ORDER BY begin_s";
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, t->run.workers, t->reterr);
	while (row != NULL && skep_store_row(t->store, row)) {
		double begin_s = sqlite3_column_double(row, 3), end_s = sqlite3_column_double(row, 4);
		bool reduce = strcmp(skep_column_text(row, 2), "reduce") == 0;
		begin(t, skep_column_text(row, 1), 'X', sqlite3_column_int64(row, 0) + 1);
		fprintf(t->out,
			",\"cat\":\"%s\",\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"epoch\":%lld,\"round\":%lld,"
			"\"stage\":%lld,\"microbatch\":%lld,\"busy_ms\":%.6g}}",
			reduce ? "reduce" : "compute", reduce ? THREAD_REDUCE : THREAD_COMPUTE, us(begin_s),
			us(end_s - begin_s), (long long)sqlite3_column_int64(row, 5),
			(long long)sqlite3_column_int64(row, 6), (long long)sqlite3_column_int64(row, 7),
			(long long)sqlite3_column_int64(row, 8), 1e3 * sqlite3_column_double(row, 9));
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_lives(struct trace *t)
{
	struct skep_presence presence;
	char name[64];
	if (!skep_presence_read(t->store, &t->run, t->end_s, &presence, t->reterr))
		return false;
	for (size_t i = 0; i < presence.spans; i++) {
		const struct skep_presence_span *span = &presence.span[i];
		if (span->state == SKEP_PRESENCE_AWAY || span->end_s <= span->begin_s)
			continue;
		if (span->state == SKEP_PRESENCE_IDLE)
			snprintf(name, sizeof name, "alive, without a stage");
		else
			snprintf(name, sizeof name, "%s stage %lld",
				span->state == SKEP_PRESENCE_SERVING ? "serves" : "downloads", (long long)span->stage);
		begin(t, name, 'X', (int64_t)span->worker + 1);
		fprintf(t->out, ",\"cat\":\"life\",\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}", THREAD_LIFE,
			us(span->begin_s), us(span->end_s - span->begin_s));
	}
	skep_presence_finish(&presence);
	return true;
}

/* Notes about membership; those about single microbatches are what the operations show. */
static bool write_notes(struct trace *t)
{
	static const char sql[] =
		"SELECT time_s, kind, peer, stage, round FROM notes WHERE run = ?1 AND kind IN ('fenced', 'left', 'admitted',"
		" 'joined', 'migrated', 'stage_empty', 'stage_restarted', 'checkpointed', 'checkpoint_failed', 'diverged',"
		" 'stopped') ORDER BY time_s, rowid";
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	while (row != NULL && skep_store_row(t->store, row)) {
		int64_t peer = sqlite3_column_int64(row, 2);
		bool of_worker = sqlite3_column_type(row, 2) != SQLITE_NULL && peer < t->run.workers;
		begin(t, skep_column_text(row, 1), 'i', of_worker ? peer + 1 : 0);
		fprintf(t->out, ",\"cat\":\"membership\",\"tid\":%d,\"s\":\"%s\",\"ts\":%.3f,\"args\":{\"round\":%lld",
			THREAD_LIFE, of_worker ? "p" : "g", us(sqlite3_column_double(row, 0)),
			(long long)sqlite3_column_int64(row, 4));
		if (sqlite3_column_type(row, 3) != SQLITE_NULL)
			fprintf(t->out, ",\"stage\":%lld", (long long)sqlite3_column_int64(row, 3));
		fputs("}}", t->out);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* Of a run whose later operations the database does not keep. */
static bool write_activity(struct trace *t)
{
	static const char sql[] =
		"SELECT worker, bin * activity_bin_s, 100 * (forward_s + backward_s) / activity_bin_s, 100 * reduce_s /"
		" activity_bin_s FROM activity JOIN runs ON runs.id = run WHERE run = ?1 AND worker < ?2 AND ops_dropped > 0"
		" ORDER BY worker, bin";
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, t->run.workers, t->reterr);
	while (row != NULL && skep_store_row(t->store, row)) {
		begin(t, "busy (%)", 'C', sqlite3_column_int64(row, 0) + 1);
		fprintf(t->out, ",\"ts\":%.3f,\"args\":{\"passes\":%.4g,\"reduction\":%.4g}}",
			us(sqlite3_column_double(row, 1)), sqlite3_column_double(row, 2),
			sqlite3_column_double(row, 3));
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* ---- of the run ---------------------------------------------------------------------------------------------------------- */

static void write_counter(struct trace *t, const char *name, double at_s, double value)
{
	if (!isfinite(value))
		return;
	begin(t, name, 'C', 0);
	fprintf(t->out, ",\"ts\":%.3f,\"args\":{\"value\":%.9g}}", us(at_s), value);
}

/* Rounds may overlap, which complete events of one thread may not. */
static bool write_rounds(struct trace *t)
{
	static const char sql[] =
		"WITH sent AS (SELECT round, opened_s, closed_s, loss, cost_usd, lag(closed_s, 1, 0) OVER by_round AS before_s,"
		" bytes_pipeline - lag(bytes_pipeline, 1, 0) OVER by_round AS pipeline,"
		" bytes_sync - lag(bytes_sync, 1, 0) OVER by_round AS sync"
		" FROM rounds WHERE run = ?1 WINDOW by_round AS (ORDER BY round))"
		" SELECT round, opened_s, closed_s, loss, cost_usd, 8e-6 * pipeline / nullif(closed_s - before_s, 0),"
		" 8e-6 * sync / nullif(closed_s - before_s, 0), before_s FROM sent ORDER BY round";
	char name[32];
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	while (row != NULL && skep_store_row(t->store, row)) {
		long long round = (long long)sqlite3_column_int64(row, 0);
		double opened_s = sqlite3_column_double(row, 1), closed_s = sqlite3_column_double(row, 2);
		snprintf(name, sizeof name, "round %lld", round);
		for (int end = 0; end < 2; end++) {
			begin(t, name, end ? 'e' : 'b', 0);
			fprintf(t->out, ",\"cat\":\"round\",\"id\":%lld,\"tid\":0,\"ts\":%.3f}", round,
				us(end ? closed_s : opened_s));
		}
		write_counter(t, "loss", closed_s, skep_column_real(row, 3));
		write_counter(t, "cost (USD)", closed_s, skep_column_real(row, 4));
		write_counter(t, "between stages (Mbit/s)", sqlite3_column_double(row, 7), skep_column_real(row, 5));
		write_counter(t, "in reductions (Mbit/s)", sqlite3_column_double(row, 7), skep_column_real(row, 6));
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_living(struct trace *t)
{
	static const char sql[] =
		"WITH turn(at_s, change) AS (SELECT started_s, 1 FROM incarnations WHERE run = ?1 AND worker < ?2 UNION ALL"
		" SELECT ended_s, -1 FROM incarnations WHERE run = ?1 AND worker < ?2)"
		" SELECT at_s, sum(sum(change)) OVER (ORDER BY at_s) FROM turn GROUP BY at_s ORDER BY at_s";
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, t->run.workers, t->reterr);
	while (row != NULL && skep_store_row(t->store, row))
		write_counter(t, "workers alive", sqlite3_column_double(row, 0), sqlite3_column_double(row, 1));
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_head(struct trace *t)
{
	static const char sql[] =
		"SELECT coalesce(time_s, (SELECT max(closed_s) FROM rounds WHERE run = ?1), 0), version, coalesce(ops_dropped, 0)"
		" FROM runs WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	bool read = row != NULL && skep_store_row(t->store, row);
	if (read) {
		t->end_s = sqlite3_column_double(row, 0);
		fprintf(t->out, SKEP_TRACE_EVENTS_HEAD "\"version\":");
		write_string(t->out, skep_column_text(row, 1));
		fprintf(t->out, ",\"run\":%lld,\"world\":\"%s\",\"seed\":\"%s\",\"scenario\":", (long long)t->run.id,
			t->run.world, t->run.seed);
		write_string(t->out, t->run.scenario);
		fprintf(t->out, ",\"operations_left_out\":%lld},\n\"traceEvents\":[",
			(long long)sqlite3_column_int64(row, 2));
	}
	sqlite3_finalize(row);
	return read;
}

bool skep_export_timeline(struct skep_store *store, int64_t run, FILE *out, struct skep_diag *reterr)
{
	struct trace t = {.store = store, .out = out, .reterr = reterr};
	bool ok = skep_plot_single_run(store, &run, run != 0, &t.run, reterr) && write_head(&t) && write_names(&t) &&
	          write_lives(&t) && write_ops(&t) && write_notes(&t) && write_activity(&t) && write_rounds(&t) &&
	          write_living(&t);
	fputs("\n]}\n", out);
	return skep_store_read_all(store, reterr) && ok;
}
