/* SPDX-License-Identifier: Apache-2.0
 *
 * store_fixture.h - what the tests of the database share: a folder of its own for each test, a recorded run, a query.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/store/store.h"
#include "tests/unit/fresh.h"
#include "tests/unit/synthetic.h"

static struct skep_diag error;

/* ---- a folder of its own for each test, the working directory while it runs ------------------------------------- */

static inline int enter(void **state)
{
	static char folder[64];
	snprintf(folder, sizeof folder, "/tmp/skep-store-XXXXXX");
	if (mkdtemp(folder) == NULL || chmod(folder, 0777) != 0 || chdir(folder) != 0)
		return -1;
	*state = folder;
	error.message[0] = '\0';
	return 0;
}

static inline int leave(void **state)
{
	char command[128];
	snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'", (char *)*state, (char *)*state);
	return chdir("/") || system(command);
}

static inline int files(const char *folder)
{
	int count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 2;
}

static inline int64_t query(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *row = NULL;
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	int64_t value = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : INT64_MIN;
	sqlite3_finalize(row);
	sqlite3_close(db);
	return value;
}

static inline void change(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static inline struct skep_store *must_open(const char *path, bool create)
{
	struct skep_store *store = skep_store_open(path, create, fresh(&error));
	if (store == NULL)
		fail_msg("%s", error.message);
	return store;
}

static inline int64_t must_begin(struct skep_store *store, const struct synthetic *s)
{
	int64_t run = 0;
	if (!skep_store_begin(store, &s->scenario, "sim", "cpu", true, false, &run, fresh(&error)))
		fail_msg("%s", error.message);
	return run;
}

static inline bool end_run(struct skep_store *store, int64_t run)
{
	struct skep_summary summary = {.run_id = run,
		.world = "sim",
		.digest = 0xfedcba9876543210u,
		.steps = 20,
		.time_s = 2,
		.final_loss = NAN,
		.final_validation_loss = NAN,
		.time_to_target_s = NAN,
		.cost_to_target_usd = NAN,
		.cost_usd = NAN,
		.ok = true};
	return skep_store_end(store, &summary, fresh(&error));
}

static inline bool try_record(const char *path, const struct synthetic *s)
{
	int64_t run = 0;
	struct skep_store *store = skep_store_open(path, true, fresh(&error));
	bool ok =
		store != NULL && skep_store_begin(store, &s->scenario, "sim", "cpu", true, false, &run, fresh(&error));
	if (ok) {
		struct skep_recorder recorder = skep_store_recorder(store);
		synthetic_feed(s, &recorder);
		ok = end_run(store, run);
	}
	skep_store_close(store);
	return ok;
}

static inline void record(const char *path, const struct synthetic *s)
{
	if (!try_record(path, s))
		fail_msg("%s", error.message);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
