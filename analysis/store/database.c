/* SPDX-License-Identifier: Apache-2.0
 *
 * database.c - opens the file that holds all runs.
 *
 * Decides whether a file is ours (application_id), readable by this program (user_version) and writable, and turns what
 * SQLite reports into a sentence that says what to do. Keeps true: a file that is not ours is never changed; a new
 * file is made under another name and appears under its own when it is complete, so that it is whole or not there at all, and
 * of two processes that make it at the same time the second one uses the file of the first.
 */
#include "analysis/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "base/options.h"
#include "base/text.h"

#define SKEP_APPLICATION_ID 1936418160 /* "skep" */
#define SKEP_SCHEMA_VERSION 15
#define OPEN_TIMEOUT_MS 5000
#define NAME_BYTES_MAX (PATH_MAX - 48) /* leaves room for ".PID-RANDOM.new-journal" and "./" */
#define HEADER_BYTES 100               /* of any SQLite file */
#define PAGE_ROOM 4120                 /* what a page takes in the log */
#define CHECKED_BYTES_MAX (32 << 20)   /* of a file that is checked as a whole: some 50 ms */
/* To say in a database that a run is over: its row with the scenario's text in the log, and a part of the log's index. */
#define RESERVE_BYTES (128 << 10)

static const char *const SCHEMA[] = {
#include "schema.sql.inc"
};

enum owner { OURS, FRESH, FOREIGN, NEWER, OLDER, UNKNOWN };

/* ---- errors --------------------------------------------------------------------------------------------------- */

/* Have we come to where a file must not grow any more? SQLite forgets the system's reason when a transaction ends by it. */
static bool at_limit(const char *path)
{
	struct rlimit limit;
	struct stat st;
	char log[PATH_MAX + 8];
	snprintf(log, sizeof log, "%s-wal", path);
	const char *const file[] = {path, log};
	for (size_t i = 0; getrlimit(RLIMIT_FSIZE, &limit) == 0 && i < sizeof file / sizeof file[0]; i++)
		if (stat(file[i], &st) == 0 && (rlim_t)st.st_size + PAGE_ROOM > limit.rlim_cur)
			return true;
	return false;
}

static bool is_full(sqlite3 *db, const char *path, int code)
{
	int os_error = sqlite3_system_errno(db), primary = code & 0xff;
	return primary == SQLITE_FULL || (primary == SQLITE_IOERR && (os_error == ENOSPC || os_error == EDQUOT ||
									     os_error == EFBIG || at_limit(path)));
}

void skep_database_explain(sqlite3 *db, const char *path, int code, struct skep_diag *reterr)
{
	const char *other = "or name another file with --db";
	int os_error = sqlite3_system_errno(db), primary = is_full(db, path, code) ? SQLITE_FULL : code & 0xff;
	switch (primary) {
	case SQLITE_READONLY:
	case SQLITE_PERM:
		skep_fail(reterr, "%s: the database or its folder is read-only: make both writable, %s", path, other);
		return;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		skep_fail(reterr, "%s: locked by another program: wait until it has ended, %s", path, other);
		return;
	case SQLITE_NOTADB:
		skep_fail(reterr, "%s: not a database: name another file with --db", path);
		return;
	case SQLITE_CORRUPT:
		skep_fail(reterr, "%s: the database is damaged: move it away, %s", path, other);
		return;
	case SQLITE_FULL:
		skep_fail(reterr, "%s: the disk, a quota or a limit of file sizes is full: free some space, %s", path,
			other);
		return;
	case SQLITE_CANTOPEN:
		skep_fail(reterr, "%s: cannot be opened, or its folder is not writable%s%s: check both, %s", path,
			os_error ? ": " : "", os_error ? strerror(os_error) : "", other);
		return;
	case SQLITE_IOERR:
		skep_fail(reterr, "%s: cannot be read or written%s%s: check the disk and its limits, %s", path,
			os_error ? ": " : "", os_error ? strerror(os_error) : "", other);
		return;
	default:
		skep_fail(reterr, "%s: %s", path,
			(sqlite3_errcode(db) & 0xff) == primary ? sqlite3_errmsg(db) : sqlite3_errstr(code));
	}
}

static bool fail_owner(enum owner owner, const char *path, struct skep_diag *reterr)
{
	const char *why = owner == FOREIGN ? "a database of another program: name another file with --db"
	                  : owner == NEWER
	                          ? "written by a newer skep: use that one, or name another file with --db"
	                          : "written by an older skep: read it with that one, or name another file with --db";
	return skep_fail(reterr, "%s: %s", path, why);
}

/* ---- the path ------------------------------------------------------------------------------------------------- */

/* Both the file and its folder, where the write-ahead log lives. */
static bool writable(const char *path)
{
	char folder[PATH_MAX];
	skep_path_folder(path, folder, sizeof folder);
	return euidaccess(path, W_OK) == 0 && euidaccess(folder, W_OK | X_OK) == 0;
}

static bool check_file(const char *path, const struct stat *st, bool write, struct skep_diag *reterr)
{
	if (S_ISDIR(st->st_mode))
		skep_fail(reterr, "%s: a folder, not a database: name a file with --db", path);
	else if (!S_ISREG(st->st_mode))
		skep_fail(reterr, "%s: not a regular file: name a file with --db", path);
	else if (st->st_size > 0 && st->st_size < HEADER_BYTES) /* SQLite may take it for empty */
		skep_fail(reterr, "%s: not a database: name another file with --db", path);
	else if (write && !writable(path)) /* SQLite would leave its log beside it */
		skep_fail(reterr, "%s: it or its folder is read-only: make both writable, or name another with --db",
			path);
	else
		return true;
	return false;
}

/* ret_absent: there is no such file, and it may be made. */
static bool check_path(const char *path, bool create, bool *ret_absent, struct skep_diag *reterr)
{
	struct stat st;
	*ret_absent = false;
	if (path[0] == '\0')
		return skep_fail(reterr, "the database needs a file name: --db FILE");
	if (strlen(path) > NAME_BYTES_MAX)
		return skep_fail(reterr, "the name of the database is longer than %d bytes", NAME_BYTES_MAX);
	if (stat(path, &st) == 0)
		return check_file(path, &st, create, reterr);
	if (errno == ENOENT && create)
		return *ret_absent = true;
	if (errno == ENOENT)
		return skep_fail(reterr, "%s: no such database: `skep sim` and `skep run` make one", path);
	return skep_fail(reterr, "%s: cannot be opened: %s", path, strerror(errno));
}

/* ---- whose it is ---------------------------------------------------------------------------------------------- */

/* One statement, so that all three values are of one moment: another process may be making the schema just then. */
static int read_owner(sqlite3 *db, enum owner *ret)
{
	static const char sql[] = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
				  " FROM pragma_application_id JOIN pragma_user_version";
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(row);
	if (rc == SQLITE_ROW) {
		int id = sqlite3_column_int(row, 0), version = sqlite3_column_int(row, 1),
		    tables = sqlite3_column_int(row, 2);
		if (id == SKEP_APPLICATION_ID)
			*ret = version == SKEP_SCHEMA_VERSION ? OURS : version > SKEP_SCHEMA_VERSION ? NEWER : OLDER;
		else
			*ret = id == 0 && version == 0 && tables == 0 ? FRESH : FOREIGN;
	}
	sqlite3_finalize(row);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int make_schema(sqlite3 *db)
{
	sqlite3_str *text = sqlite3_str_new(db);
	for (size_t i = 0; i < sizeof SCHEMA / sizeof SCHEMA[0]; i++)
		sqlite3_str_appendall(text, SCHEMA[i]);
	char *sql = sqlite3_str_finish(text);
	int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc;
}

/* ---- for writing ---------------------------------------------------------------------------------------------- */

static void host_name(sqlite3_context *context, int arguments, sqlite3_value **value)
{
	(void)arguments, (void)value;
	char name[256] = "";
	gethostname(name, sizeof name - 1);
	sqlite3_result_text(context, name, -1, SQLITE_TRANSIENT);
}

static void process_gone(sqlite3_context *context, int arguments, sqlite3_value **value)
{
	(void)arguments;
	pid_t pid = (pid_t)sqlite3_value_int64(value[0]);
	sqlite3_result_int(context, pid > 0 && kill(pid, 0) != 0 && errno == ESRCH);
}

/* Takes the write lock once. That waits for another process that makes the schema, and fails if the file cannot be
 * written. */
static int prepare_writer(sqlite3 *db, enum owner *ret_owner)
{
	int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = read_owner(db, ret_owner);
	if (rc == SQLITE_OK && *ret_owner == FRESH) {
		rc = make_schema(db);
		*ret_owner = OURS;
	}
	if (rc == SQLITE_OK && *ret_owner == OURS)
		rc = sqlite3_exec(db,
			"UPDATE runs SET status = 'dead' WHERE status = 'running' AND host = host_name() AND "
			"process_gone(pid)",
			NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	return rc;
}

/* A checkpoint waits for the disk: the long log leaves that to the end of most runs. SQLite does not wait by itself when two
 * switch to a log at the same time. */
static int use_write_ahead_log(sqlite3 *db)
{
	static const char sql[] =
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 16384";
	for (int waited_ms = 0;; waited_ms += 10) {
		int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
		if ((rc & 0xff) != SQLITE_BUSY || waited_ms >= OPEN_TIMEOUT_MS)
			return rc;
		sqlite3_sleep(10);
	}
}

/* Damage that SQLite has not met yet: a page out of order, a row that is cut off. The check reads the whole file; of a large one
 * it reads the table of runs alone. SQLITE_CORRUPT: the file is damaged, and ret says how. */
static int check_sound(sqlite3 *db, const char *path, char *ret, size_t size)
{
	struct stat st;
	bool large = stat(path, &st) == 0 && st.st_size > CHECKED_BYTES_MAX;
	sqlite3_stmt *row = NULL;
	ret[0] = '\0';
	int rc = sqlite3_prepare_v2(db, large ? "PRAGMA quick_check(runs)" : "PRAGMA quick_check(1)", -1, &row, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(row);
	bool sound = rc == SQLITE_ROW && strcmp(skep_column_text(row, 0), "ok") == 0;
	if (rc == SQLITE_ROW && !sound) { /* the first line may say no more than in which database */
		const char *text = skep_column_text(row, 0), *line = strchr(text, '\n');
		text = line ? line + 1 : text;
		skep_text_show(ret, size, text, strlen(text), UINT32_MAX);
	}
	sqlite3_finalize(row);
	return sound ? SQLITE_OK : rc == SQLITE_ROW ? SQLITE_CORRUPT : rc;
}

/* Nothing is added to a damaged file, for that would bury what can still be saved. */
static int refuse_damaged(sqlite3 *db, const char *path, struct skep_diag *reterr)
{
	char how[200];
	int rc = check_sound(db, path, how, sizeof how);
	if (how[0] != '\0')
		skep_fail(reterr,
			"%s: the database is damaged (%s): nothing was written to it; move it away, or name another file "
			"with --db",
			path, how);
	return rc;
}

static bool setup_writer(sqlite3 *db, const char *path, struct skep_diag *reterr)
{
	enum owner owner = UNKNOWN;
	int rc = read_owner(db, &owner);
	if (rc == SQLITE_OK && owner != OURS && owner != FRESH)
		return fail_owner(owner, path, reterr);
	if (rc == SQLITE_OK && sqlite3_db_readonly(db, "main") == 1)
		rc = SQLITE_READONLY;
	if (rc == SQLITE_OK && owner == OURS)
		rc = refuse_damaged(db, path, reterr);
	if (rc == SQLITE_OK)
		rc = use_write_ahead_log(db);
	if (rc == SQLITE_OK)
		rc = prepare_writer(db, &owner);
	if (rc == SQLITE_OK && owner != OURS)
		return fail_owner(owner, path, reterr);
	if (rc != SQLITE_OK)
		skep_database_explain(db, path, rc, reterr);
	return rc == SQLITE_OK;
}

/* ---- for reading ---------------------------------------------------------------------------------------------- */

/* What can still be read of a damaged file is read, but not as if it were whole. */
static void warn_of_damage(sqlite3 *db, const char *path)
{
	char how[200];
	if ((check_sound(db, path, how, sizeof how) & 0xff) == SQLITE_CORRUPT)
		skep_say("skep: warning: %s: the database is damaged%s%s%s: rows may be missing or wrong\n", path,
			how[0] != '\0' ? " (" : "", how, how[0] != '\0' ? ")" : "");
}

/* ret_full: it cannot be read with its log, for which there is no room. */
static bool setup_reader(sqlite3 *db, const char *path, bool *ret_full, struct skep_diag *reterr)
{
	enum owner owner = UNKNOWN;
	int rc = sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = read_owner(db, &owner);
	*ret_full = rc != SQLITE_OK && is_full(db, path, rc);
	if (rc != SQLITE_OK)
		skep_database_explain(db, path, rc, reterr);
	else if (owner == FRESH)
		skep_fail(reterr, "%s: an empty database: `skep sim` and `skep run` fill it", path);
	else if (owner != OURS)
		fail_owner(owner, path, reterr);
	else
		warn_of_damage(db, path);
	return rc == SQLITE_OK && owner == OURS;
}

static sqlite3 *connect_name(const char *name, int flags, const char *path, struct skep_diag *reterr)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(name, &db, flags, NULL);
	if (rc == SQLITE_OK) {
		/* The file may be a stranger's: no function but SQLite's own in its schema, no change of that by data,
		 * and pages are checked when they are read. */
		sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_exec(db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
		sqlite3_busy_timeout(db, OPEN_TIMEOUT_MS);
		sqlite3_create_function(
			db, "host_name", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, host_name, NULL, NULL);
		sqlite3_create_function(
			db, "process_gone", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, process_gone, NULL, NULL);
		return db;
	}
	if (db != NULL)
		skep_database_explain(db, path, rc, reterr);
	else
		skep_fail(reterr, "%s: no memory", path);
	sqlite3_close(db);
	return NULL;
}

/* The "./" keeps SQLite from seeing a name that means something else to it, such as ":memory:". */
static sqlite3 *connect_plain(const char *file, const char *path, struct skep_diag *reterr)
{
	char name[PATH_MAX + 4];
	snprintf(name, sizeof name, "%s%s", file[0] == '/' ? "" : "./", file);
	return connect_name(name, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, path, reterr);
}

/* Without one the file alone is the whole database. */
static bool has_log(const char *path)
{
	char log[PATH_MAX + 8];
	struct stat st;
	snprintf(log, sizeof log, "%s-wal", path);
	return stat(log, &st) == 0 ? st.st_size > 0 : errno != ENOENT;
}

/* True: the folder is read-only, so that SQLite cannot open its write-ahead log or would leave one behind, and
 * there is no log: then no process writes. */
static bool frozen(const char *path)
{
	char log[PATH_MAX + 8];
	snprintf(log, sizeof log, "%s-wal", path);
	return !writable(path) && access(log, F_OK) != 0;
}

static sqlite3 *connect_frozen(const char *path, struct skep_diag *reterr)
{
	char name[3 * PATH_MAX + 32];
	size_t used = (size_t)snprintf(name, sizeof name, "file:%s", path[0] == '/' ? "" : "./");
	for (const char *c = path; *c; c++)
		used += (size_t)snprintf(name + used, sizeof name - used, strchr("%?#", *c) ? "%%%02x" : "%c", *c);
	snprintf(name + used, sizeof name - used, "?immutable=1");
	return connect_name(name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, path, reterr);
}

static sqlite3 *read_with(sqlite3 *db, const char *path, bool *ret_full, struct skep_diag *reterr)
{
	*ret_full = false;
	if (db != NULL && setup_reader(db, path, ret_full, reterr))
		return db;
	sqlite3_close(db);
	return NULL;
}

/* A full disk has no room for what SQLite keeps beside a log, even if there is none, and nothing can be written meanwhile. */
static sqlite3 *open_reader(const char *path, struct skep_diag *reterr)
{
	struct skep_diag error = skep_diag_beside(reterr);
	bool full;
	if (frozen(path))
		return read_with(connect_frozen(path, reterr), path, &full, reterr);
	sqlite3 *db = read_with(connect_plain(path, path, &error), path, &full, &error);
	if (db == NULL && full && !has_log(path))
		return read_with(connect_frozen(path, reterr), path, &full, reterr);
	if (db == NULL)
		skep_fail(reterr, "%s", error.message);
	return db;
}

static sqlite3 *open_writer(const char *path, struct skep_diag *reterr)
{
	sqlite3 *db = connect_plain(path, path, reterr);
	if (db != NULL && setup_writer(db, path, reterr))
		return db;
	sqlite3_close(db);
	return NULL;
}

/* ---- a new one ------------------------------------------------------------------------------------------------ */

static void remove_all(const char *path)
{
	static const char *const ending[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
		char name[PATH_MAX + 16];
		snprintf(name, sizeof name, "%s%s", path, ending[i]);
		unlink(name);
	}
}

/* Makes the file, empty, so that the reason for a refusal is the system's own. */
static bool make_empty(const char *path, char *ret_name, struct skep_diag *reterr)
{
	int fd = skep_temporary_create(path, ret_name);
	if (fd >= 0) {
		close(fd);
		return true;
	}
	const char *hint = errno == ENOENT ? "make its folder first" : "name another file with --db";
	return skep_fail(reterr, "%s: cannot be created: %s: %s", path, strerror(errno), hint);
}

/* Gives the complete file its own name. If another process has made one meanwhile, that one stays; on a file
 * system without hard links two processes may still both see none, and the later one wins. */
static bool publish(const char *name, const char *path, struct skep_diag *reterr)
{
	if (link(name, path) == 0 || errno == EEXIST || access(path, F_OK) == 0 || rename(name, path) == 0)
		return true;
	return skep_fail(reterr, "%s: cannot be created: %s: name another file with --db", path, strerror(errno));
}

static bool make_database(const char *path, struct skep_diag *reterr)
{
	char name[SKEP_PATH_BYTES];
	if (!make_empty(path, name, reterr))
		return false;
	enum owner owner = UNKNOWN;
	sqlite3 *db = connect_plain(name, path, reterr);
	int rc = db != NULL ? prepare_writer(db, &owner) : SQLITE_OK;
	if (rc != SQLITE_OK)
		skep_database_explain(db, path, rc, reterr);
	bool made = db != NULL && rc == SQLITE_OK;
	sqlite3_close(db);
	made = made && publish(name, path, reterr);
	remove_all(name);
	return made;
}

sqlite3 *skep_database_open(const char *path, bool create, struct skep_diag *reterr)
{
	bool absent;
	if (!check_path(path, create, &absent, reterr) || (absent && !make_database(path, reterr)))
		return NULL;
	return create ? open_writer(path, reterr) : open_reader(path, reterr);
}

sqlite3 *skep_database_open_memory(struct skep_diag *reterr)
{
	static const char name[] = ":memory:";
	sqlite3 *db = connect_name(name, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, name, reterr);
	int rc = db != NULL ? make_schema(db) : SQLITE_OK;
	if (rc == SQLITE_OK)
		return db;
	skep_database_explain(db, name, rc, reterr);
	sqlite3_close(db);
	return NULL;
}

double skep_column_real(sqlite3_stmt *row, int column)
{
	bool null = sqlite3_column_type(row, column) == SQLITE_NULL;
	return null ? NAN : sqlite3_column_double(row, column);
}

const char *skep_column_text(sqlite3_stmt *row, int column)
{
	const unsigned char *text = sqlite3_column_text(row, column);
	return text ? (const char *)text : "";
}

void skep_column_show(sqlite3_stmt *row, int column, char *ret, size_t size)
{
	const char *text = skep_column_text(row, column);
	skep_text_show(ret, size, text, strlen(text), UINT32_MAX);
}

/* ---- the last word ------------------------------------------------------------------------------------------------ */

int skep_reserve_take(const char *path)
{
	char folder[PATH_MAX];
	skep_path_folder(path, folder, sizeof folder);
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, RESERVE_BYTES) == 0)
		return fd;
	close(fd);
	return -1;
}

void skep_reserve_give_back(int reserve)
{
	if (reserve >= 0)
		close(reserve);
}
