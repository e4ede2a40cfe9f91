/* SPDX-License-Identifier: Apache-2.0
 *
 * test_views.c - the two views that check the promise: they see each way of breaking it, and a long run is not more work than it
 * has to be.
 */
#include "tests/unit/store_fixture.h"

/* Both views must see a promise that was broken, each way of breaking it. */
static void test_broken_promises(void **state)
{
	(void)state;
	static const struct {
		const char *sql, *verdict;
		int64_t times, ledger;
	} broken[] = {
		{"DELETE FROM notes WHERE kind = 'lost' AND microbatch = 1", "neither", 1, 0},
		{"UPDATE notes SET value = 3 WHERE kind = 'lost' AND microbatch = 1", "counted and lost", 1, 0},
		{"UPDATE notes SET value = 5 WHERE kind = 'lost' AND microbatch = 1", "lost twice", 1, 0},
		{"UPDATE notes SET value = value + 1 WHERE kind = 'issued' AND round = 2", "neither", 3, 0},
		{"INSERT INTO notes SELECT run, time_s, worker, epoch, kind, 2, 0, 0, NULL, NULL, value FROM notes"
		 " WHERE kind = 'counted' AND round = 2 AND stage = 0 AND microbatch = 1 LIMIT 1",
			"counted twice", 1, 0},
		{"UPDATE notes SET microbatch = 99 WHERE kind = 'counted' AND round = 2 AND stage = 0 AND microbatch = "
		 "1",
			"never issued", 1, 0},
		{"DELETE FROM notes WHERE kind = 'member' AND round = 2 AND stage = 0 AND peer = 0", "not seen", 1, 0},
		{"UPDATE stage_rounds SET lost = lost + 1 WHERE round = 3 AND stage = 0", "neither", 0, 1},
		{"DELETE FROM stage_rounds WHERE round = 3 AND stage = 0", "neither", 0, 1},
	};
	struct synthetic s;
	synthetic_init(&s, "lossy", 6, 3);
	s.lost_round = 4;
	record("good.db", &s);
	synthetic_finish(&s);
	for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
		char sql[256];
		assert_int_equal(system("cp good.db bad.db"), 0);
		change("bad.db", broken[i].sql);
		snprintf(
			sql, sizeof sql, "SELECT count(*) FROM v_counted_once WHERE verdict = '%s'", broken[i].verdict);
		assert_int_equal(query("bad.db", sql), broken[i].times);
		assert_int_equal(
			query("bad.db", "SELECT count(*) FROM v_ledger WHERE verdict = 'broken'"), broken[i].ledger);
		unlink("bad.db");
	}
}

static void test_counted_twice_by_two(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "liar", 4, 2);
	s.attack = true;
	record("a.db", &s);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE verdict = 'counted twice'"
				       " AND round = 1 AND stage = 0 AND microbatch = 0"),
		1);
	synthetic_finish(&s);
}

/* Steps of SQLite's machine to read the view of a run of so many rounds. */
static int work_of(const char *path, uint32_t rounds)
{
	struct synthetic s;
	sqlite3 *db = NULL;
	sqlite3_stmt *row = NULL;
	synthetic_init(&s, "long", 8, 2);
	s.rounds = rounds;
	record(path, &s);
	synthetic_finish(&s);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM v_counted_once", -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(row, 0), rounds * 2 * 16);
	int steps = sqlite3_stmt_status(row, SQLITE_STMTSTATUS_VM_STEP, 0);
	sqlite3_finalize(row);
	sqlite3_close(db);
	return steps;
}

/* Four times as long a run is about four times as much to look at, not sixteen times. */
static void test_view_of_a_long_run(void **state)
{
	(void)state;
	int some = work_of("short.db", 20);
	assert_in_range(work_of("long.db", 80), 2 * some, 6 * some);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_broken_promises),
		TEST(test_counted_twice_by_two),
		TEST(test_view_of_a_long_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
