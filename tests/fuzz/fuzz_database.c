/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_database.c - a database of strangers: whatever its rows or its bytes are, all that reads it says what is wrong
 * or what it found, prints no control characters, and a writer leaves what is damaged as it is.
 *
 * The first byte of the input chooses. Odd: changes of the file's bytes, four bytes each: place (three) and what the byte there
 * becomes. Even: changes of rows, twelve bytes each: table, column, row, kind of value (a number, a small one, a text,
 * NULL, the row is gone, ...), and eight bytes of it. 128 and more: something else lies where the database should be, by the
 * second byte. With 2 or 4 in it no run is put into the database, which is 40 % of the time that an input takes; most of the rest
 * is that it is opened twice and compared twice.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_database
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments one after the other, or so many random inputs
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "analysis/fit/fit.h"
#include "analysis/store/database.h"
#include "analysis/store/settings.h"
#include "analysis/store/store_log.h"
#include "analysis/store/store_sources.h"
#include "analysis/store/store_sweep.h"
#include "analysis/summary/compare.h"
#include "analysis/summary/sweep_table.h"
#include "core/random.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/synthetic.h"

enum { CHANGES_MAX = 12, OTHERS = 18 /* of put_other() */ };

static struct {
	unsigned opened, refused, compared, swept, fitted, logs;
} tried; /* for the last line */

static struct base {
	uint8_t *bytes;
	size_t size;
	char path[64];
} base;

/* The run of a store in memory, as another process of a sweep hands it over. */
static struct {
	void *bytes;
	size_t size;
	uint64_t identity;
} image;

static const char *const scenario_text[] = {
	"name: one\nmodel: {cut: [1, 2], stages: 2}\nsync: {method: diloco, every: 4}\ntrain: {schedule: {warmup: 8}}\n",
	"name: one\nmodel: {cut: [2, 1], stages: 2, layers: [{a: 1}, {a: 2}]}\nsync: {method: step}\nempty: []\n"};

static void make_scenario(struct synthetic *s, bool real)
{
	struct skep_scenario *c = &s->scenario;
	synthetic_init(s, "one", 4, 2);
	s->rounds = 4;
	free(c->text);
	c->text = strdup(scenario_text[real]);
	snprintf(c->model.path, sizeof c->model.path, "models/square-mlp.yaml");
	snprintf(c->topology.path, sizeof c->topology.path, "no-such-topology.yaml");
}

/* Of the second one the log of each machine, but it has not ended. */
static void record_run(struct skep_store *store, struct synthetic *s, bool real)
{
	struct skep_diag diag = {0};
	int64_t run;
	must(skep_store_begin(store, &s->scenario, real ? "real" : "sim", "cpu", real, false, &run, &diag));
	struct skep_recorder recorder = skep_store_recorder(store);
	for (uint32_t i = 0; real && i <= s->scenario.plan.workers; i++)
		recorder.log(recorder.context, i, (const uint8_t *)scenario_text[0], 20);
	synthetic_feed(s, &recorder);
	struct skep_summary summary = {.run_id = run,
		.world = real ? "real" : "sim",
		.steps = 4,
		.time_s = 2,
		.final_loss = 3,
		.final_validation_loss = NAN,
		.time_to_target_s = NAN,
		.cost_to_target_usd = NAN,
		.cost_usd = NAN,
		.ok = true};
	must(skep_store_end(store, &summary, &diag));
}

static void record_sweep(struct skep_store *store)
{
	struct skep_diag diag = {0};
	struct skep_vary vary = {0};
	must(skep_vary_add(&vary, "schedule.in_flight=1,2", &diag) && skep_vary_add_seeds(&vary, "1..2", &diag));
	const uint64_t seed[4] = {1, 2, 1, 2}, identity[4] = {11, 12, 13, 14};
	int64_t sweep, there[4];
	must(skep_sweep_begin(
		store, &(struct skep_sweep_words){"s", "s.yaml", &vary, seed, identity}, &sweep, there, &diag));
	skep_vary_finish(&vary);
}

static void record_image(void)
{
	struct skep_diag diag = {0};
	struct synthetic s;
	struct skep_store *store = skep_store_open_memory(&diag);
	must(store);
	make_scenario(&s, false);
	image.identity = skep_sweep_identity(&s.scenario);
	record_run(store, &s, false);
	must(skep_sweep_image(store, &image.bytes, &image.size, &diag));
	skep_store_close(store);
	synthetic_finish(&s);
}

static void record(const char *path, bool real)
{
	struct skep_diag diag = {0};
	struct synthetic s;
	struct skep_store *store = skep_store_open(path, true, &diag);
	must(store);
	make_scenario(&s, real);
	record_run(store, &s, real);
	record_sweep(store);
	skep_store_close(store);
	synthetic_finish(&s);
}

/* A simulated run, two real ones, of which the second is said to be under way, and a sweep. */
static void make_base(void)
{
	sqlite3 *db = NULL;
	strcpy(base.path, "/dev/shm/skep-fuzz-db-XXXXXX"); /* in memory, else on a disk */
	int fd = mkstemp(base.path);
	if (fd < 0) {
		strcpy(base.path, "/tmp/skep-fuzz-db-XXXXXX");
		fd = mkstemp(base.path);
	}
	must(fd >= 0 && close(fd) == 0);
	record(base.path, false);
	record(base.path, true);
	record(base.path, true);
	record_image();
	must(sqlite3_open(base.path, &db) == SQLITE_OK);
	must(sqlite3_exec(db,
		     "UPDATE runs SET status = 'running', pid = 2147483647 WHERE id = 3;"
		     "UPDATE sweep_runs SET run = 1 + number % 2;"
		     "PRAGMA journal_mode = DELETE",
		     NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	FILE *file = fopen(base.path, "rb");
	struct stat st;
	must(file && fstat(fileno(file), &st) == 0);
	base.size = (size_t)st.st_size;
	base.bytes = malloc(base.size);
	must(base.bytes && fread(base.bytes, 1, base.size, file) == base.size);
	fclose(file);
}

/* ---- changes ---------------------------------------------------------------------------------------------------------- */

static void put_bytes(const uint8_t *change, size_t changes)
{
	uint8_t *bytes = malloc(base.size);
	must(bytes);
	memcpy(bytes, base.bytes, base.size);
	for (size_t i = 0; i < changes; i++, change += 4)
		bytes[(size_t)(change[0] | change[1] << 8 | change[2] << 16) % base.size] = change[3];
	FILE *file = fopen(base.path, "wb");
	must(file && fwrite(bytes, 1, base.size, file) == base.size && fclose(file) == 0);
	free(bytes);
}

static char *name_of(sqlite3 *db, const char *sql, unsigned which, unsigned *ret_count)
{
	sqlite3_stmt *row = NULL;
	char *name = NULL;
	*ret_count = 0;
	must(sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK);
	while (sqlite3_step(row) == SQLITE_ROW)
		++*ret_count;
	sqlite3_reset(row);
	for (unsigned i = 0; *ret_count > 0 && i <= which % *ret_count && sqlite3_step(row) == SQLITE_ROW; i++) {
		free(name);
		name = strdup((const char *)sqlite3_column_text(row, 0));
	}
	sqlite3_finalize(row);
	return name;
}

static char *value_of(unsigned kind, const uint8_t *bytes)
{
	int64_t number;
	double real;
	memcpy(&number, bytes, sizeof number);
	memcpy(&real, bytes, sizeof real);
	switch (kind % 8) {
	case 0:
		return sqlite3_mprintf("%lld", (long long)number);
	case 1:
		return sqlite3_mprintf("%d", (int8_t)bytes[0]);
	case 2:
		return sqlite3_mprintf("%!.17g", isfinite(real) ? real : 1e308);
	case 3:
		return sqlite3_mprintf("CAST(x'%02x1b5b0a%02x%02x' AS TEXT)", bytes[0], bytes[1], bytes[2]);
	case 4:
		return sqlite3_mprintf("NULL");
	case 5:
		return sqlite3_mprintf("%lld", (long long)UINT32_MAX - bytes[0] % 4 + bytes[1] % 4);
	case 6:
		return sqlite3_mprintf("'%c%c%c'", ' ' + bytes[0] % 7, 'a' + bytes[1] % 26, '0' + bytes[2] % 10);
	default:
		return sqlite3_mprintf("printf('%%.*c', %u, 'x')", bytes[0] * 16);
	}
}

/* What the schema does not allow is left out. */
static void change_row(sqlite3 *db, const uint8_t *c)
{
	unsigned tables, columns;
	char *table = name_of(db, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", c[0], &tables);
	char *list = sqlite3_mprintf("SELECT name FROM pragma_table_info('%q')", table), *sql;
	char *column = name_of(db, list, c[1], &columns), *value = value_of(c[3], c + 4);
	if (c[3] >= 240)
		sql = sqlite3_mprintf(
			"DELETE FROM \"%w\" WHERE \"%w\" IN (SELECT \"%w\" FROM \"%w\" LIMIT 1 OFFSET %u)", table,
			column, column, table, c[2] % 32);
	else
		sql = sqlite3_mprintf(
			"UPDATE OR IGNORE \"%w\" SET \"%w\" = %s WHERE %u >= 128 OR \"%w\" IN (SELECT \"%w\" FROM "
			"\"%w\" LIMIT 1 OFFSET %u)",
			table, column, value, c[2], column, column, table, c[2] % 32);
	sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	sqlite3_free(value);
	sqlite3_free(list);
	free(column);
	free(table);
}

static void put_rows(const uint8_t *change, size_t changes)
{
	sqlite3 *db = NULL;
	put_bytes(NULL, 0);
	must(sqlite3_open(base.path, &db) == SQLITE_OK);
	sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA ignore_check_constraints = ON",
		NULL, NULL, NULL);
	for (size_t i = 0; i < changes; i++, change += 12)
		change_row(db, change);
	sqlite3_close(db);
}

/* ---- something else ----------------------------------------------------------------------------------------------------- */

static void put_sql(const char *sql)
{
	sqlite3 *db = NULL;
	must(sqlite3_open(base.path, &db) == SQLITE_OK && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
}

static void put_other(unsigned kind)
{
	static const char *const sql[] = {"PRAGMA user_version = 1", "PRAGMA user_version = 1000000",
		"PRAGMA application_id = 7", "PRAGMA application_id = 0; PRAGMA user_version = 0", "DROP TABLE rounds",
		"DELETE FROM runs WHERE id = 2", "DELETE FROM event_log", "DROP TABLE event_log",
		"DELETE FROM sweeps; DELETE FROM sweep_runs", "UPDATE sweep_runs SET run = NULL",
		"UPDATE runs SET text = '[1'", "UPDATE runs SET text = ''"};
	put_bytes(NULL, 0);
	if (kind < sizeof sql / sizeof *sql) {
		put_sql(sql[kind]);
		return;
	}
	must(unlink(base.path) == 0);
	kind -= (unsigned)(sizeof sql / sizeof *sql);
	must(kind != 1 || mkdir(base.path, 0777) == 0);
	must(kind != 2 || mkfifo(base.path, 0666) == 0);
	FILE *file = kind < 3 ? NULL : fopen(base.path, "wb"); /* a 0: nothing is there */
	for (unsigned i = 0; file != NULL && i < (kind == 3 ? 0 : kind == 4 ? 5 : 2000); i++)
		fputc("text\n"[i % 5], file);
	must(file == NULL || fclose(file) == 0);
}

/* What was opened for writing may be where nothing was before. */
static void remove_other(void)
{
	char name[sizeof base.path + 8];
	(void)!rmdir(base.path);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", base.path, i == 0 ? "-wal" : i == 1 ? "-shm" : "");
		(void)!unlink(name);
	}
}

/* ---- readers ------------------------------------------------------------------------------------------------------------ */

static void check_said(bool fine, const struct skep_diag *diag)
{
	must(fine == !diag->set);
	if (!fine)
		check_diag(diag);
}

static void check_text(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		must((uint8_t)text[i] >= 0x20 || text[i] == '\n');
}

static void try_compare(struct skep_store *store, bool json)
{
	struct skep_diag diag = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool fine = skep_compare(store, 0, 0, json, out, &diag) && !diag.set;
	fclose(out);
	check_said(fine, &diag);
	check_text(text, size);
	tried.compared += fine;
	free(text);
}

static void try_sweep(struct skep_store *store)
{
	struct skep_diag diag = {0};
	struct skep_sweep_table table;
	char *text = NULL;
	size_t size = 0;
	bool fine = skep_sweep_table_read(store, 0, &table, &diag);
	check_said(fine, &diag);
	tried.swept += fine;
	if (!fine)
		return;
	FILE *out = open_memstream(&text, &size);
	skep_sweep_table_print(&table, out);
	skep_sweep_table_print_json(&table, out);
	fclose(out);
	check_text(text, size);
	free(text);
	skep_sweep_table_finish(&table);
}

static void try_fit(struct skep_store *store)
{
	struct skep_diag diag = {0};
	struct skep_loss_points points;
	struct skep_law law;
	if (!skep_loss_points_read(store, NULL, 0, SKEP_FIT_FROM_USUAL, &points, &diag)) {
		check_said(false, &diag);
		return;
	}
	tried.fitted += skep_law_fit(&points, &law, &diag);
	skep_loss_points_finish(&points);
}

static void try_log(struct skep_store *store, int64_t run)
{
	struct skep_diag diag = {0};
	struct skep_run_log log;
	bool fine = skep_run_log_read(store, run, &log, &diag);
	check_said(fine, &diag);
	tried.logs += fine;
	if (!fine)
		return;
	uint32_t warmup;
	must(skep_settings_every(log.text, &warmup) >= 0);
	const char *changed = skep_run_sources_changed(&log.sources, NULL);
	must(changed == NULL || changed[0] != 0 || log.sources.count > 0);
	skep_run_log_finish(&log);
}

static void try_settings(struct skep_store *store)
{
	struct skep_diag diag = {0};
	struct skep_differences d = {0};
	if (!skep_settings_compare_runs(store, 1, 2, NULL, &d, &diag))
		must(diag.set || d.count == 0);
	for (size_t i = 0; i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++)
		must(strcmp(d.item[i].first, d.item[i].second) != 0 ||
			strlen(d.item[i].first) + 1 == sizeof d.item[i].first);
}

/* A run of another process comes to the sweep, whole or not at all; the second time it is there already. */
static void try_put(struct skep_store *store)
{
	int64_t run = 0, again = 0;
	for (int i = 0; i < 2; i++) {
		struct skep_diag diag = {0};
		enum skep_sweep_put put =
			skep_sweep_put(store, image.identity, image.bytes, image.size, i == 0 ? &run : &again, &diag);
		must((put == SKEP_SWEEP_PUT_DONE) == !diag.set);
	}
}

/* Whatever SQLite answers, there are words for it; and names that are none are refused. */
static void try_answers(void)
{
	static const int code[] = {SQLITE_ERROR, SQLITE_READONLY, SQLITE_BUSY, SQLITE_NOTADB, SQLITE_CORRUPT,
		SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_IOERR};
	struct skep_diag diag = {0};
	sqlite3 *db = skep_database_open_memory(&diag);
	char name[8192];
	must(db);
	for (size_t i = 0; i < sizeof code / sizeof *code; i++) {
		diag = (struct skep_diag){0};
		skep_database_explain(db, base.path, code[i], &diag);
		check_said(false, &diag);
	}
	sqlite3_close(db);
	for (int i = 0; i < 4; i++) { /* none, too long, below a file, in no folder */
		diag = (struct skep_diag){0};
		snprintf(name, sizeof name, "%s%s", i > 1 ? base.path : "", i > 2 ? "-none/x" : i > 1 ? "/x" : "");
		memset(name + (i == 1 ? 0 : sizeof name), 'x', i == 1 ? sizeof name - 1 : 0);
		name[sizeof name - 1] = 0;
		must(skep_database_open(name, i != 2, &diag) == NULL);
		check_said(false, &diag);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skep_diag diag = {0};
	if (base.bytes == NULL) {
		make_base();
		try_answers();
	}
	if (size < 2)
		return 0;
	size_t each = data[0] & 1 ? 4 : 12, changes = (size - 1) / each < CHANGES_MAX ? (size - 1) / each : CHANGES_MAX;
	if (data[0] >= 128)
		put_other(data[1] % OTHERS);
	else if (data[0] & 1)
		put_bytes(data + 1, changes);
	else
		put_rows(data + 1, changes);
	struct skep_store *store = skep_store_open(base.path, false, &diag);
	check_said(store != NULL, &diag);
	tried.opened += store != NULL;
	tried.refused += store == NULL;
	if (store != NULL) {
		try_compare(store, false);
		try_compare(store, true);
		try_sweep(store);
		try_fit(store);
		try_log(store, 1);
		try_log(store, 2);
		try_log(store, 99);
		try_settings(store);
		skep_store_close(store);
	}
	diag = (struct skep_diag){0};
	store = skep_store_open(base.path, true, &diag);
	check_said(store != NULL, &diag);
	if (store != NULL && (data[0] & 6) == 0)
		try_put(store);
	skep_store_close(store);
	if (data[0] >= 128)
		remove_other();
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = true;
	uint64_t random = skep_mix(1);
	unsigned long tries = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	for (unsigned long i = 0; i < tries; i++) {
		uint8_t data[1 + 12 * 3];
		size_t size = 1 + 12 * (size_t)(1 + skep_random_below(&random, 3));
		for (size_t at = 0; at < size; at++)
			data[at] = (uint8_t)skep_random_below(&random, 256);
		data[0] = skep_random_below(&random, 4) == 0;
		LLVMFuzzerTestOneInput(data, size);
	}
	for (uint8_t kind = 0; tries > 0 && kind < OTHERS; kind++)
		LLVMFuzzerTestOneInput((uint8_t[]){128, kind}, 2);
	for (int i = 1; i < argc && tries == 0; i++)
		ok = fuzz_file(argv[i]) && ok;
	unlink(base.path);
	printf("%u opened, %u refused, %u compared, %u sweeps, %u fits, %u logs\n", tried.opened, tried.refused,
		tried.compared, tried.swept, tried.fitted, tried.logs);
	return ok && tried.opened > 0 && tried.refused > 0 && tried.compared > 0 && tried.swept > 0 &&
	                       (tries == 0 || tried.logs > 0)
	               ? 0
	               : 1;
}
#endif
