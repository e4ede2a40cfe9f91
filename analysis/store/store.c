/* SPDX-License-Identifier: Apache-2.0
 *
 * store.c - a recorder that writes a run into the database.
 *
 * What is heard waits in memory until a round closes and is then written in one short transaction, so that several runs
 * can write to one database at the same time, and a locked file delays none of them. Keeps true: rounds and stage_rounds
 * hold closed rounds only; memory and rows are bounded by the caps below; after the first error nothing more is
 * written, the run goes on, and skep_store_end() says what happened.
 */
#include "analysis/store/store.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "analysis/store/store_rows.h"

/* Rows of one run, shared evenly among its workers; the directory's notes have as many again. */
#define OPS_CAP 200000u
#define OPS_CAP_SIM 50000u /* of a simulated run, which can be had again */
#define NOTES_CAP 200000u

#define ROUND_TIMEOUT_MS 200 /* a run is not held up for longer by a locked database */
#define END_TIMEOUT_MS 10000 /* unless skep_store_patience() says otherwise */
#define SAY_AFTER_MS 1000    /* waiting at the end is said from here on, and again each minute */
#define SAY_EVERY_MS 60000
#define MARK_TIMEOUT_MS 100

/* ---- transactions ----------------------------------------------------------------------------------------------- */

static int run_sql(struct skep_store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

static bool begin(struct skep_store *store, int timeout_ms)
{
	sqlite3_busy_timeout(store->db, timeout_ms);
	int rc = run_sql(store, "BEGIN IMMEDIATE");
	if (rc != SQLITE_OK)
		skep_store_fail_sql(store, rc);
	return rc == SQLITE_OK;
}

static bool commit(struct skep_store *store, bool ok)
{
	int rc = ok ? run_sql(store, "COMMIT") : SQLITE_OK;
	if (rc != SQLITE_OK)
		skep_store_fail_sql(store, rc);
	if (!sqlite3_get_autocommit(store->db))
		run_sql(store, "ROLLBACK");
	return ok && rc == SQLITE_OK;
}

/* A locked database loses nothing: the rows wait for the end of the next round. Where a row is missing, none are written: a
 * round would stand there with the books of some of its stages. */
static void flush(struct skep_store *store)
{
	if (store->error.set)
		return;
	sqlite3_busy_timeout(store->db, store->behind ? 0 : ROUND_TIMEOUT_MS);
	int rc = run_sql(store, "BEGIN IMMEDIATE");
	store->behind = (rc & 0xff) == SQLITE_BUSY;
	if (store->behind)
		return;
	if (rc != SQLITE_OK)
		skep_store_fail_sql(store, rc);
	else
		commit(store, skep_store_put_undone(store) && skep_store_put_waiting(store));
}

/* ---- the recorder ----------------------------------------------------------------------------------------------- */

static bool spend(uint32_t *left, uint64_t *dropped)
{
	if (*left == 0) {
		++*dropped;
		return false;
	}
	--*left;
	return true;
}

static struct skep_stage_row *open_stages(struct skep_store *store, uint32_t round)
{
	return store->open_stage + (size_t)(round % store->heard) * store->vstages;
}

static struct skep_round_row *open_round(struct skep_store *store, uint32_t round)
{
	return &store->open[round % store->heard];
}

static void hear_open(struct skep_store *store, skep_time now, uint32_t round)
{
	struct skep_stage_row *stage = open_stages(store, round);
	*open_round(store, round) = (struct skep_round_row){.round = round, .opened_ns = now, .loss = NAN};
	for (uint32_t i = 0; i < store->vstages; i++)
		stage[i] = (struct skep_stage_row){.round = round, .stage = i};
}

static void hear_loss(struct skep_store *store, const struct skep_note *note)
{
	struct skep_round_row *open = open_round(store, note->round);
	if (!store->has_loss)
		return;
	open->loss = note->loss_nano == INT64_MAX ? INFINITY : (double)note->loss_nano / 1e9;
	if (open->closed) /* its row was written without */
		skep_rows_push(store, &store->rounds, open);
}

static void hear_counted(struct skep_store *store, const struct skep_note *note)
{
	struct skep_round_row *open = open_round(store, note->round);
	skep_rows_hear_staleness(open, note->staleness, skep_plan_waves(store->plan));
}

static void hear_close(struct skep_store *store, skep_time now, const struct skep_note *note)
{
	struct skep_round_row *open = open_round(store, note->round);
	struct skep_stage_row *stage = open_stages(store, note->round);
	open->closed = true;
	open->closed_ns = now;
	open->issued = note->issued;
	memcpy(open->sent, store->sent, sizeof open->sent);
	if (store->tried && !store->candidates.over && note->round < store->candidates.rounds)
		store->tried[note->round] = *open;
	skep_rows_push(store, &store->rounds, open);
	skep_rows_push(store, &store->closed, &(struct skep_closed_row){note->round, now, store->egress_usd});
	for (uint32_t i = 0; i < store->vstages; i++)
		if (stage[i].committed)
			skep_rows_push(store, &store->stage_rounds, &stage[i]);
	flush(store);
}

/* What the kept candidate has learnt in the trial are the losses of these rounds. */
static void hear_kept(struct skep_store *store)
{
	const struct skep_candidates *c = &store->candidates;
	for (uint32_t round = 0; round < c->end && round < c->rounds && store->has_loss; round++) {
		struct skep_round_row *row =
			store->tried[round].closed ? &store->tried[round] : open_round(store, round);
		row->loss = skep_candidates_loss(c, c->kept, round);
		if (row->closed)
			skep_rows_push(store, &store->rounds, row);
	}
	flush(store);
}

static void hear_validation(struct skep_store *store, skep_time now, const struct skep_note *note)
{
	struct skep_validation_row *row = &store->validation;
	if (note->kind == SKEP_NOTE_VALIDATING) {
		*row = (struct skep_validation_row){.round = note->round, .asked = note->asked, .began_ns = now};
		return;
	}
	row->counted = note->judged;
	row->ended_ns = now;
	memcpy(row->sent, store->sent, sizeof row->sent);
	row->loss = note->loss_nano == INT64_MAX ? INFINITY : (double)note->loss_nano / 1e9;
	if (!store->has_loss || note->judged == 0)
		row->loss = NAN;
	skep_rows_push(store, &store->validations, row);
	flush(store);
}

static void hear_stage(struct skep_store *store, const struct skep_note *note)
{
	struct skep_stage_row *stage = open_stages(store, note->round) + note->stage;
	if (note->kind == SKEP_NOTE_MEMBER) {
		stage->members++;
		return;
	}
	if (note->kind == SKEP_NOTE_OUTER_UPDATED) { /* several notes, from the lowest numbers on, are of one merge */
		bool same = stage->merges > 0 && stage->merged_by == note->peer.index &&
		            note->microbatch > stage->merged_at;
		stage->merges += !same;
		stage->members += !same;
		stage->merged_by = note->peer.index;
		stage->merged_at = note->microbatch;
		return;
	}
	stage->committed = true;
	stage->counted += note->counted; /* of each candidate */
	stage->lost += (uint32_t)note->lost;
}

static void keep_note(struct skep_store *store, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	if (!skep_note_kept(note->kind))
		return;
	if (!skep_note_capped(note->kind) || spend(&store->notes_left[who.index], &store->notes_dropped))
		skep_rows_push(store, &store->notes, &(struct skep_note_row){now, who, *note});
}

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *said)
{
	struct skep_store *store = context;
	if (store->run == 0 || store->error.set || said->kind >= SKEP_NOTE_KINDS || who.index > store->workers)
		return;
	const struct skep_note heard = skep_candidates_hear(&store->candidates, said), *note = &heard;
	keep_note(store, now, who, note);
	if (note->kind == SKEP_NOTE_VALIDATING || note->kind == SKEP_NOTE_VALIDATED) {
		hear_validation(store, now, note);
		return;
	}
	if (note->kind == SKEP_NOTE_CANDIDATE_CHOSEN)
		hear_kept(store);
	if (note->kind == SKEP_NOTE_RESUMED)
		skep_rows_undo(store, note->round);
	if (note->kind == SKEP_NOTE_ROUND_OPENED)
		hear_open(store, now, note->round);
	if (open_round(store, note->round)->round != note->round || note->stage >= store->vstages)
		return;
	if (note->kind == SKEP_NOTE_MEMBER || note->kind == SKEP_NOTE_OUTER_UPDATED ||
		note->kind == SKEP_NOTE_STAGE_COMMITTED)
		hear_stage(store, note);
	else if (note->kind == SKEP_NOTE_COUNTED)
		hear_counted(store, note);
	else if (note->kind == SKEP_NOTE_LOSS)
		hear_loss(store, note);
	else if (note->kind == SKEP_NOTE_ROUND_CLOSED)
		hear_close(store, now, note);
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct skep_store *store = context;
	if (store->run == 0 || span->worker >= store->workers || span->kind >= SKEP_OP_KINDS ||
		span->lane >= SKEP_LANES)
		return;
	skep_activity_add(&store->activity, span);
	if (spend(&store->ops_left[span->worker], &store->ops_dropped))
		skep_rows_push(store, &store->ops, span);
}

static void hear_sent(void *context, const struct skep_sent *sent)
{
	struct skep_store *store = context;
	for (int i = 0; i < SKEP_TRAFFICS; i++)
		store->sent[i] += sent->bytes[i];
	store->egress_usd += sent->egress_usd;
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	struct skep_store *store = context;
	bool known = use->source <= store->workers && use->destination <= store->workers;
	if (store->run != 0 && known && use->traffic < SKEP_TRAFFICS)
		skep_rows_push(store, &store->links, use);
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct skep_store *store = context;
	if (store->run != 0 && use->index <= store->workers)
		skep_rows_push(store, &store->uses, use);
}

static void hear_life(void *context, uint32_t machine, skep_time started_ns, skep_time ended_ns)
{
	struct skep_store *store = context;
	if (store->run != 0 && machine < store->workers)
		skep_rows_push(store, &store->lives, &(struct skep_incarnation_row){machine, started_ns, ended_ns});
}

static void hear_log(void *context, uint32_t machine, const uint8_t *bytes, uint32_t count)
{
	struct skep_store *store = context;
	if (store->run == 0 || machine > store->workers || count == 0)
		return;
	struct skep_log_row row = {.worker = machine, .first = store->log_bytes.count, .count = count};
	row.part = store->log_parts[machine]++;
	skep_rows_append(store, &store->log_bytes, bytes, count);
	skep_rows_push(store, &store->logs, &row);
}

struct skep_recorder skep_store_recorder(struct skep_store *store)
{
	return (struct skep_recorder){.context = store,
		.note = hear_note,
		.op = hear_op,
		.link = hear_link,
		.worker = hear_worker,
		.life = hear_life,
		.sent = hear_sent,
		.log = hear_log};
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

static bool allocate(struct skep_store *store, const struct skep_scenario *scenario)
{
	uint32_t workers = scenario->plan.workers, vstages = skep_plan_vstages(&scenario->plan);
	store->place = malloc((workers + 1) * sizeof *store->place);
	store->ops_left = malloc((workers + 1) * sizeof *store->ops_left);
	store->notes_left = malloc((workers + 1) * sizeof *store->notes_left);
	store->heard = skep_plan_heard(&scenario->plan);
	store->open = calloc(store->heard, sizeof *store->open);
	store->open_stage = calloc((size_t)store->heard * vstages, sizeof *store->open_stage);
	store->log_parts = calloc(workers + 1, sizeof *store->log_parts);
	bool tries = skep_plan_has_candidates(&scenario->plan),
	     room = skep_candidates_init(&store->candidates, &scenario->plan);
	store->tried = tries ? calloc(scenario->plan.candidates.rounds, sizeof *store->tried) : NULL;
	if (store->place == NULL || store->ops_left == NULL || store->notes_left == NULL || store->open_stage == NULL ||
		store->open == NULL || store->log_parts == NULL || !room || (tries && !store->tried)) {
		skep_store_fail(store, "no memory to record the run");
		return false;
	}
	if (!skep_activity_init(&store->activity, workers)) {
		skep_store_fail(store, "no memory to record the run");
		return false;
	}
	store->workers = workers;
	store->stages = scenario->plan.stages;
	store->vstages = vstages;
	store->topology = &scenario->topology;
	for (uint32_t i = 0; i <= workers; i++) {
		store->place[i] = scenario->topology.machine[i].place;
		store->notes_left[i] = i < workers ? NOTES_CAP / workers : NOTES_CAP;
	}
	return true;
}

/* Forgets the run, keeps the connection and the memory of the waiting rows. */
static void forget(struct skep_store *store)
{
	struct skep_rows *const rows[] = {&store->rounds, &store->stage_rounds, &store->validations, &store->notes,
		&store->ops, &store->links, &store->uses, &store->logs, &store->log_bytes, &store->lives,
		&store->closed};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		rows[i]->count = 0;
	free(store->place);
	free(store->ops_left);
	free(store->notes_left);
	free(store->open);
	free(store->open_stage);
	free(store->log_parts);
	free(store->tried);
	skep_candidates_finish(&store->candidates);
	store->tried = NULL;
	skep_activity_finish(&store->activity);
	store->place = store->ops_left = store->notes_left = store->log_parts = NULL;
	store->open_stage = NULL;
	store->open = NULL;
	store->run = 0;
	store->ops_dropped = store->notes_dropped = 0;
	memset(store->sent, 0, sizeof store->sent);
	store->egress_usd = 0;
	store->error = (struct skep_diag){0};
	store->behind = false;
	store->undone = UINT32_MAX;
	skep_reserve_give_back(store->reserve);
	store->reserve = -1;
}

static void share_ops(struct skep_store *store, uint32_t cap)
{
	for (uint32_t i = 0; i <= store->workers; i++)
		store->ops_left[i] = cap / store->workers;
}

bool skep_store_begin(struct skep_store *store, const struct skep_scenario *scenario, const char *world,
	const char *device, bool pace, bool shape, int64_t *ret_run, struct skep_diag *reterr)
{
	forget(store);
	bool ok = allocate(store, scenario) && skep_store_prepare(store) && begin(store, SKEP_STORE_BEGIN_TIMEOUT_MS);
	if (ok)
		ok = commit(store, skep_store_put_start(store, scenario, world, device, pace, shape));
	if (!ok) {
		*reterr = store->error;
		forget(store);
		return false;
	}
	share_ops(store, strcmp(world, "real") == 0 ? OPS_CAP : OPS_CAP_SIM);
	store->has_loss = scenario->arithmetic != SKEP_ARITHMETIC_NONE;
	store->has_tokens = scenario->model.sequence > 0;
	store->plan = &scenario->plan;
	for (uint32_t round = 0; round < store->heard; round++)
		hear_open(store, 0, round);
	if (sqlite3_db_filename(store->db, "main")[0] != '\0') /* not in memory */
		store->reserve = skep_reserve_take(store->path);
	*ret_run = store->run;
	return true;
}

void skep_store_keep_details(struct skep_store *store)
{
	share_ops(store, OPS_CAP);
}

void skep_store_keep_little(struct skep_store *store, uint32_t ops)
{
	for (uint32_t i = 0; i <= store->workers; i++) {
		store->ops_left[i] = store->ops_left[i] < ops ? store->ops_left[i] : ops;
		store->notes_left[i] = 0;
	}
}

void skep_store_patience(struct skep_store *store, uint32_t seconds, FILE *say)
{
	store->patience_ms = (int)(seconds < INT_MAX / 1000 ? seconds : INT_MAX / 1000) * 1000;
	store->say = say;
}

static void say_waiting(struct skep_store *store, int waited_ms)
{
	if (store->say == NULL)
		return;
	fprintf(store->say,
		"skep: %s is locked by another program: run %" PRId64
		" waits with its last %zu rounds until it is free, for at most %d s more\n",
		store->path, store->run, store->rounds.count, (store->patience_ms - waited_ms) / 1000);
	fflush(store->say);
}

/* The write lock for the rows that are left, however long it takes. */
static bool begin_end(struct skep_store *store)
{
	int waited_ms = 0, step_ms = SAY_AFTER_MS, rc;
	for (;;) {
		int left_ms = store->patience_ms - waited_ms;
		step_ms = step_ms < left_ms ? step_ms : left_ms;
		sqlite3_busy_timeout(store->db, step_ms);
		rc = run_sql(store, "BEGIN IMMEDIATE");
		waited_ms += step_ms;
		if ((rc & 0xff) != SQLITE_BUSY || waited_ms >= store->patience_ms)
			break;
		say_waiting(store, waited_ms);
		step_ms = SAY_EVERY_MS;
	}
	if (rc != SQLITE_OK)
		skep_store_fail_sql(store, rc);
	return rc == SQLITE_OK;
}

/* Marks the run in the database as dead, so that readers do not take it for one that still goes on. A full disk or
 * a full file has room for that: the reserve that was kept for it, or the log's, once the log has gone into the
 * file. If that fails for the reason that ended the run, the next process that writes to the database marks it. */
static void mark_dead(struct skep_store *store)
{
	char sql[96];
	snprintf(sql, sizeof sql, "UPDATE runs SET status = 'dead' WHERE id = %" PRId64, store->run);
	sqlite3_busy_timeout(store->db, MARK_TIMEOUT_MS);
	skep_reserve_give_back(store->reserve);
	store->reserve = -1;
	if (run_sql(store, sql) != SQLITE_OK && run_sql(store, "PRAGMA wal_checkpoint(TRUNCATE)") == SQLITE_OK)
		run_sql(store, sql);
}

bool skep_store_end(struct skep_store *store, const struct skep_summary *summary, struct skep_diag *reterr)
{
	bool ok = store->run != 0 && !store->error.set && begin_end(store);
	if (ok)
		ok = commit(store, skep_store_put_undone(store) && skep_store_put_waiting(store) &&
					   skep_store_put_activity(store) && skep_store_put_costs(store) &&
					   skep_store_put_result(store, summary));
	if (!ok && store->run == 0) {
		skep_fail(reterr, "no run has begun");
	} else if (!ok) {
		mark_dead(store);
		skep_fail(reterr, "run %" PRId64 " was not recorded to its end: %s", store->run, store->error.message);
	}
	forget(store);
	return ok;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static struct skep_store *create_store(const char *path, struct skep_diag *reterr)
{
	struct skep_store *store = calloc(1, sizeof *store);
	if (store == NULL) {
		skep_fail(reterr, "no memory for the database");
		return NULL;
	}
	store->rounds.item_size = sizeof(struct skep_round_row);
	store->stage_rounds.item_size = sizeof(struct skep_stage_row);
	store->validations.item_size = sizeof(struct skep_validation_row);
	store->notes.item_size = sizeof(struct skep_note_row);
	store->ops.item_size = sizeof(struct skep_op_span);
	store->links.item_size = sizeof(struct skep_link_use);
	store->uses.item_size = sizeof(struct skep_worker_use);
	store->logs.item_size = sizeof(struct skep_log_row);
	store->log_bytes.item_size = 1;
	store->lives.item_size = sizeof(struct skep_incarnation_row);
	store->closed.item_size = sizeof(struct skep_closed_row);
	store->patience_ms = END_TIMEOUT_MS;
	store->reserve = -1;
	snprintf(store->path, sizeof store->path, "%s", path);
	return store;
}

static struct skep_store *opened(struct skep_store *store, sqlite3 *db)
{
	if (db == NULL)
		free(store);
	else
		store->db = db;
	return db != NULL ? store : NULL;
}

struct skep_store *skep_store_open(const char *path, bool create, struct skep_diag *reterr)
{
	struct skep_store *store = create_store(path, reterr);
	return store != NULL ? opened(store, skep_database_open(path, create, reterr)) : NULL;
}

struct skep_store *skep_store_open_memory(struct skep_diag *reterr)
{
	struct skep_store *store = create_store(":memory:", reterr);
	return store != NULL ? opened(store, skep_database_open_memory(reterr)) : NULL;
}

void skep_store_close(struct skep_store *store)
{
	if (store == NULL)
		return;
	forget(store);
	for (int i = 0; i < SKEP_STATEMENTS; i++) {
		sqlite3_finalize(store->statement[i]);
		sqlite3_finalize(store->many[i]);
	}
	sqlite3_close(store->db);
	free(store->rounds.item);
	free(store->stage_rounds.item);
	free(store->validations.item);
	free(store->notes.item);
	free(store->ops.item);
	free(store->links.item);
	free(store->uses.item);
	free(store->logs.item);
	free(store->log_bytes.item);
	free(store->lives.item);
	free(store->closed.item);
	free(store);
}

sqlite3 *skep_store_database(struct skep_store *store)
{
	return store->db;
}

static void keep_unread(struct skep_store *store, int code)
{
	skep_database_explain(store->db, store->path, code, &store->unread);
}

bool skep_store_row(struct skep_store *store, sqlite3_stmt *row)
{
	int rc = sqlite3_step(row);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		keep_unread(store, rc);
	return rc == SQLITE_ROW;
}

bool skep_store_read_all(const struct skep_store *store, struct skep_diag *reterr)
{
	if (store->unread.set)
		*reterr = store->unread; /* the cause of what a caller has made of the rows that it lacks */
	return !store->unread.set;
}

sqlite3_stmt *skep_store_query(
	struct skep_store *store, const char *sql, int64_t first, int64_t second, struct skep_diag *reterr)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
	if (rc != SQLITE_OK) {
		keep_unread(store, rc);
		skep_database_explain(store->db, store->path, rc, reterr);
		return NULL;
	}
	sqlite3_bind_int64(statement, 1, first);
	if (sqlite3_bind_parameter_count(statement) > 1)
		sqlite3_bind_int64(statement, 2, second);
	return statement;
}

bool skep_store_rounds_closed(const char *path, uint64_t kept_as, uint32_t *ret_rounds)
{
	static const char *const SQL =
		"SELECT coalesce((SELECT max(round) + 1 FROM rounds WHERE run = runs.id), first_round)"
		" FROM runs WHERE kept_as = ?1 ORDER BY id DESC";
	struct skep_diag why = {0};
	struct skep_store *store = skep_store_open(path, false, &why);
	sqlite3_stmt *row = store != NULL ? skep_store_query(store, SQL, (int64_t)kept_as, 0, &why) : NULL;
	bool known = row != NULL && skep_store_row(store, row);
	*ret_rounds = known ? (uint32_t)sqlite3_column_int64(row, 0) : 0;
	sqlite3_finalize(row);
	skep_store_close(store);
	return known;
}
