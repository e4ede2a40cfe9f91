/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sweep.c - sweeps in the database: which runs are there, how one comes in as an image, and the table of results.
 */
#include "analysis/summary/sweep_table.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "analysis/store/store_sweep.h"
#include "tests/unit/fresh.h"
#include "tests/unit/store_fixture.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) <= 1e-9 * fabs(b))

static const uint64_t seed[6] = {1, 2, 1, 2, 1, 2}, identity[6] = {11, 12, 21, 22, 31, UINT64_MAX};

/* k in {x, y, z}, seeds 1 and 2 */
static void vary_k(struct skep_vary *vary, const char *text)
{
	*vary = (struct skep_vary){0};
	assert_true(skep_vary_add(vary, text, fresh(&error)));
	assert_true(skep_vary_add_seeds(vary, "1,2", fresh(&error)));
}

static int64_t begin_sweep(struct skep_store *store, const char *text, int64_t *ret_run)
{
	int64_t sweep = 0;
	struct skep_vary vary;
	vary_k(&vary, text);
	const struct skep_sweep_words words = {"synthetic", "synthetic.yaml", &vary, seed, identity};
	if (!skep_sweep_begin(store, &words, &sweep, ret_run, fresh(&error)))
		fail_msg("%s", error.message);
	skep_vary_finish(&vary);
	return sweep;
}

/* A run recorded in memory, with these results. */
static void make_image(const struct synthetic *s, const struct skep_summary *summary, void **ret, size_t *ret_bytes)
{
	int64_t run;
	struct skep_store *memory = skep_store_open_memory(fresh(&error));
	assert_non_null(memory);
	run = must_begin(memory, s);
	struct skep_recorder recorder = skep_store_recorder(memory);
	synthetic_feed(s, &recorder);
	struct skep_summary mine = *summary;
	mine.run_id = run;
	assert_true(skep_store_end(memory, &mine, fresh(&error)));
	assert_true(skep_sweep_image(memory, ret, ret_bytes, fresh(&error)));
	skep_store_close(memory);
}

static int64_t put(struct skep_store *store, uint64_t which, double throughput, double loss, bool ok)
{
	struct synthetic s;
	void *image;
	size_t bytes;
	int64_t run = 0;
	const struct skep_summary summary = {.world = "sim",
		.steps = 20,
		.time_s = 2,
		.throughput_samples_per_s = throughput,
		.final_loss = loss,
		.final_validation_loss = NAN,
		.time_to_target_s = NAN,
		.cost_to_target_usd = NAN,
		.cost_usd = NAN,
		.ok = ok};
	synthetic_init(&s, "synthetic", 4, 2);
	make_image(&s, &summary, &image, &bytes);
	if (skep_sweep_put(store, which, image, bytes, &run, fresh(&error)) != SKEP_SWEEP_PUT_DONE)
		fail_msg("%s", error.message);
	skep_sweep_image_free(image);
	synthetic_finish(&s);
	return run;
}

/* ---- runs that are there ----------------------------------------------------------------------------------------- */

static void test_the_same_words_are_the_same_sweep(void **state)
{
	(void)state;
	int64_t run[6] = {7, 7, 7, 7, 7, 7};
	struct skep_store *store = must_open("a.db", true);
	int64_t sweep = begin_sweep(store, "k=x,y,z", run);
	for (int i = 0; i < 6; i++)
		assert_int_equal(run[i], 0);
	int64_t third = put(store, identity[3], 1, 1, true), last = put(store, identity[5], 1, 1, true);
	assert_true(third > 0 && last > third);
	assert_int_equal(begin_sweep(store, "k=x,y,z", run), sweep);
	for (int i = 0; i < 6; i++)
		assert_int_equal(run[i], i == 3 ? third : i == 5 ? last : 0);
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM sweeps"), 1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM sweep_runs"), 6);
	assert_int_equal(
		query("a.db", "SELECT count(*) FROM v_sweep WHERE key = 'k' AND value = 'z' AND run IS NULL"), 1);
}

static void test_sweeps_share_runs(void **state)
{
	(void)state;
	int64_t run[6], more[6];
	struct skep_store *store = must_open("a.db", true);
	int64_t first = begin_sweep(store, "k=x,y", run), there = put(store, identity[2], 1, 1, true);
	int64_t second = begin_sweep(store, "k=x,y,z", more);
	assert_int_not_equal(first, second);
	assert_int_equal(more[2], there);
	there = put(store, identity[0], 1, 1, true);
	begin_sweep(store, "k=x,y", run);
	assert_int_equal(run[0], there);
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM sweep_runs WHERE run IS NOT NULL"), 4);
}

static void test_a_run_that_was_deleted_is_missing(void **state)
{
	(void)state;
	int64_t run[6];
	struct skep_store *store = must_open("a.db", true);
	begin_sweep(store, "k=x,y,z", run);
	put(store, identity[0], 1, 1, true);
	change("a.db", "DELETE FROM runs");
	begin_sweep(store, "k=x,y,z", run);
	assert_int_equal(run[0], 0);
	skep_store_close(store);
}

/* ---- a run comes in ---------------------------------------------------------------------------------------------- */

static void test_an_identity_has_one_run(void **state)
{
	(void)state;
	int64_t run[6];
	struct skep_store *store = must_open("a.db", true);
	begin_sweep(store, "k=x,y,z", run);
	int64_t first = put(store, identity[1], 1, 1, true);
	assert_int_equal(put(store, identity[1], 2, 2, true), first);
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs"), 1);
	assert_int_equal(query("a.db", "SELECT throughput_samples_per_s FROM runs"), 1);
	assert_int_equal(query("a.db", "SELECT count(DISTINCT run) FROM ops"), 1);
}

/* Every table of the image has the rows that the same run has when it is recorded into the file; whatever tables there are. */
static void test_an_image_becomes_the_run_that_it_was(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run[6];
	synthetic_init(&s, "synthetic", 4, 2);
	assert_true(try_record("a.db", &s));
	assert_true(try_record("direct.db", &s));
	assert_true(try_record("direct.db", &s));
	synthetic_finish(&s);
	struct skep_store *store = must_open("a.db", true);
	begin_sweep(store, "k=x,y,z", run);
	assert_int_equal(put(store, identity[4], 1, 1, true), 2);
	skep_store_close(store);

	sqlite3 *db;
	sqlite3_stmt *table = NULL;
	int tables = 0, filled = 0;
	assert_int_equal(sqlite3_open("a.db", &db), SQLITE_OK);
	sqlite3_prepare_v2(db,
		"SELECT name FROM sqlite_master m WHERE type = 'table' AND name NOT LIKE 'sweep%' AND"
		" (SELECT name FROM pragma_table_info(m.name) WHERE cid = 0) = 'run'",
		-1, &table, NULL);
	while (sqlite3_step(table) == SQLITE_ROW) {
		char sql[256];
		const char *name = (const char *)sqlite3_column_text(table, 0);
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE run = 2", name);
		int64_t rows = query("a.db", sql);
		assert_int_equal(rows, query("direct.db", sql));
		filled += rows > 0;
		tables++;
	}
	sqlite3_finalize(table);
	sqlite3_close(db);
	assert_true(tables >= 12 && filled >= 8);
	assert_int_equal(query("a.db", "SELECT count(*) FROM (SELECT begin_s, end_s FROM ops WHERE run = 1 EXCEPT"
				       " SELECT begin_s, end_s FROM ops WHERE run = 2)"),
		0);
}

static void test_a_locked_file_is_for_later(void **state)
{
	(void)state;
	struct synthetic s;
	sqlite3 *holder;
	void *image;
	size_t bytes;
	int64_t run[6], id = 0;
	const struct skep_summary summary = {.world = "sim", .ok = true};
	struct skep_store *store = must_open("a.db", true);
	begin_sweep(store, "k=x,y,z", run);
	synthetic_init(&s, "synthetic", 4, 2);
	make_image(&s, &summary, &image, &bytes);
	assert_int_equal(sqlite3_open("a.db", &holder), SQLITE_OK);
	assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(skep_sweep_put(store, identity[0], image, bytes, &id, fresh(&error)), SKEP_SWEEP_PUT_LOCKED);
	assert_non_null(strstr(error.message, "locked"));
	assert_int_equal(sqlite3_exec(holder, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(holder);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs"), 0);
	assert_int_equal(skep_sweep_put(store, identity[0], image, bytes, &id, fresh(&error)), SKEP_SWEEP_PUT_DONE);
	assert_int_equal(id, 1);
	skep_sweep_image_free(image);
	synthetic_finish(&s);
	skep_store_close(store);
}

static void test_bytes_that_are_no_run_change_nothing(void **state)
{
	(void)state;
	int64_t run[6], id;
	static char junk[8192] = "not a database";
	struct skep_store *store = must_open("a.db", true);
	begin_sweep(store, "k=x,y,z", run);
	assert_int_equal(
		skep_sweep_put(store, identity[0], junk, sizeof junk, &id, fresh(&error)), SKEP_SWEEP_PUT_FAILED);
	assert_true(put(store, identity[0], 1, 1, true) == 1);
	skep_store_close(store);
}

/* An error that SQLite itself undoes nothing of. */
static void test_an_error_in_the_middle_leaves_no_half_run(void **state)
{
	(void)state;
	struct synthetic s;
	void *image;
	size_t bytes;
	int64_t run[6], id;
	const struct skep_summary summary = {.world = "sim", .ok = true};
	struct skep_store *store = must_open("a.db", true);
	begin_sweep(store, "k=x,y,z", run);
	change("a.db", "CREATE TRIGGER t BEFORE INSERT ON stage_rounds WHEN NEW.round = 7"
		       " BEGIN SELECT RAISE(FAIL, 'no more'); END");
	synthetic_init(&s, "synthetic", 4, 2);
	make_image(&s, &summary, &image, &bytes);
	assert_int_equal(skep_sweep_put(store, identity[0], image, bytes, &id, fresh(&error)), SKEP_SWEEP_PUT_FAILED);
	assert_non_null(strstr(error.message, "constraint"));
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs"), 0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM stage_rounds"), 0);
	change("a.db", "DROP TRIGGER t");
	assert_int_equal(skep_sweep_put(store, identity[0], image, bytes, &id, fresh(&error)), SKEP_SWEEP_PUT_DONE);
	skep_sweep_image_free(image);
	synthetic_finish(&s);
	skep_store_close(store);
}

static void test_little_is_kept(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "synthetic", 4, 2);
	struct skep_store *store = must_open("a.db", true);
	int64_t run = must_begin(store, &s);
	skep_store_keep_little(store, 2);
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(&s, &recorder);
	assert_true(end_run(store, run));
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT max(n) FROM (SELECT count(*) AS n FROM ops GROUP BY worker)"), 2);
	assert_int_equal(query("a.db", "SELECT count(*) FROM notes WHERE kind IN ('counted', 'member', 'issued')"), 0);
	assert_true(query("a.db", "SELECT count(*) FROM rounds") > 0);
	synthetic_finish(&s);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void test_rows_are_means_over_seeds(void **state)
{
	(void)state;
	int64_t run[6];
	struct skep_sweep_table table;
	struct skep_store *store = must_open("a.db", true);
	int64_t sweep = begin_sweep(store, "k=x,y,z", run);
	put(store, identity[0], 1e9 + 1, 0.5, true);
	put(store, identity[1], 1e9 + 4, INFINITY, true);
	put(store, identity[2], 70, 0.5, true);
	put(store, identity[3], 10, 0.25, false);
	assert_true(skep_sweep_table_read(store, 0, &table, fresh(&error)));
	assert_int_equal(table.sweep, sweep);
	assert_int_equal(table.points, 3);
	assert_int_equal(table.wanted, 6);
	assert_int_equal(table.done, 3);
	assert_int_equal(table.failed, 1);
	assert_string_equal(table.key[0], "k");
	assert_string_equal(table.value[2], "z");
	const struct skep_sweep_row *row = table.row;
	assert_near(row[0].figure[SKEP_SWEEP_THROUGHPUT].mean, 1e9 + 2.5);
	assert_near(row[0].figure[SKEP_SWEEP_THROUGHPUT].spread, 3 / sqrt(2));
	assert_int_equal(row[0].figure[SKEP_SWEEP_LOSS].runs, 1);
	assert_int_equal(row[0].diverged, 1);
	assert_int_equal(row[0].figure[SKEP_SWEEP_TO_TARGET].runs, 0);
	assert_near(row[1].figure[SKEP_SWEEP_THROUGHPUT].mean, 70.0); /* the run that failed bends nothing */
	assert_true(isnan(row[1].figure[SKEP_SWEEP_THROUGHPUT].spread));
	assert_int_equal(row[1].failed, 1);
	assert_int_equal(row[2].done + row[2].failed, 0);
	assert_true(isnan(row[2].figure[SKEP_SWEEP_TIME].mean));
	skep_sweep_table_finish(&table);
	skep_store_close(store);
}

/* Seeds alone: a row for each figure, with its quantiles, and nothing of figures that no run has. */
static void test_text_of_seeds(void **state)
{
	(void)state;
	char *text = NULL;
	size_t size = 0;
	struct skep_sweep_row row = {.wanted = 5, .done = 5};
	struct skep_sweep_table table = {.sweep = 1, .points = 1, .row = &row};
	row.figure[SKEP_SWEEP_THROUGHPUT] =
		(struct skep_sweep_figure){.runs = 5, .mean = 12.3, .spread = 0.4, .p5 = 11.82, .p95 = 12.9};
	row.figure[SKEP_SWEEP_TO_TARGET] =
		(struct skep_sweep_figure){.runs = 1, .mean = 7, .spread = NAN, .p5 = 7, .p95 = 7};
	FILE *out = open_memstream(&text, &size);
	skep_sweep_table_print(&table, out);
	fclose(out);
	assert_non_null(strstr(text, "\n  figure         runs   mean  deviation    5 %   95 %\n"
				     "  samples/s         5  12.30       0.40  11.82  12.90\n"
				     "  to target (s)     5  7.000          -  7.000  7.000  (1 of 5)\n"));
	assert_null(strstr(text, "final loss"));
	free(text);
}

/* Four digits, shares as %, and which row is best at what was asked for. */
static void test_text_of_figures(void **state)
{
	(void)state;
	char *key = "k", *value[] = {"x", "y", "z"}, *text = NULL;
	size_t size = 0;
	struct skep_sweep_row row[3] = {0};
	struct skep_sweep_table table = {.sweep = 1, .keys = 1, .points = 3, .key = &key, .value = value, .row = row};
	for (int i = 0; i < 3; i++) {
		row[i].wanted = row[i].done = 2;
		row[i].figure[SKEP_SWEEP_THROUGHPUT] =
			(struct skep_sweep_figure){.runs = 2, .mean = 10137.3 + i, .spread = 44.2};
		row[i].figure[SKEP_SWEEP_UTILISATION] =
			(struct skep_sweep_figure){.runs = 2, .mean = 0.20568416, .spread = 0.00000043};
		row[i].figure[SKEP_SWEEP_COST] = (struct skep_sweep_figure){.runs = 2, .mean = 0.10159, .spread = 0};
	}
	for (int target = 0; target < 2; target++) {
		if (target) { /* y is first, but one of its seeds did not get there */
			row[0].figure[SKEP_SWEEP_TO_TARGET] =
				(struct skep_sweep_figure){.runs = 2, .mean = 8, .spread = 1};
			row[1].figure[SKEP_SWEEP_TO_TARGET] =
				(struct skep_sweep_figure){.runs = 1, .mean = 5, .spread = NAN};
			row[2].figure[SKEP_SWEEP_TO_TARGET] =
				(struct skep_sweep_figure){.runs = 2, .mean = 9, .spread = 1};
		}
		FILE *out = open_memstream(&text, &size);
		skep_sweep_table_print(&table, out);
		fclose(out);
		assert_non_null(strstr(text, " 10137         44 "));
		assert_non_null(strstr(text, "\nutilisation (%)\n"));
		assert_non_null(strstr(text, " 20.57    4.3e-05 "));
		assert_non_null(strstr(text, " 0.1016          0 "));
		const char *mark = strstr(text, "<- "), *line = mark;
		assert_non_null(mark);
		while (line > text && line[-1] != '\n')
			line--;
		assert_int_equal(line[strspn(line, " ")], target ? 'x' : 'z');
		assert_memory_equal(mark, target ? "<- first at the target\n" : "<- highest throughput\n", 22);
		assert_null(strstr(mark + 1, "<- "));
		free(text);
	}
}

/* A key that changes nothing has no best value, and no better ones lie beyond it; one that does has, whatever others tie. */
static void test_text_of_ties(void **state)
{
	(void)state;
	char *key[] = {"price", "every"}, *text = NULL;
	char *value[] = {
		"1", "10", "2", "10", "3", "10", "1", "20", "2", "20", "3", "20", "1", "30", "2", "30", "3", "30"};
	size_t size = 0;
	struct skep_sweep_row row[9] = {0};
	struct skep_sweep_table table = {.sweep = 1, .keys = 2, .points = 9, .key = key, .value = value, .row = row};
	for (int every = 0; every < 2; every++) {
		for (int i = 0; i < 9; i++) {
			row[i].wanted = row[i].done = 1;
			row[i].figure[SKEP_SWEEP_THROUGHPUT] =
				(struct skep_sweep_figure){.runs = 1, .mean = 100 + every * (i / 3), .spread = NAN};
		}
		FILE *out = open_memstream(&text, &size);
		skep_sweep_table_print(&table, out);
		fclose(out);
		assert_int_equal(strstr(text, "<- highest throughput") != NULL, every);
		assert_int_equal(strstr(text, "The best every is the largest that was tried, 30") != NULL, every);
		assert_null(strstr(text, "The best price"));
		free(text);
	}
}

static void test_both_forms_of_output_say_the_same(void **state)
{
	(void)state;
	int64_t run[6];
	char *text = NULL;
	size_t size = 0;
	struct skep_sweep_table table;
	struct skep_store *store = must_open("a.db", true);
	begin_sweep(store, "k=x,y,z", run);
	put(store, identity[0], 100, NAN, true);
	put(store, identity[1], 110, NAN, true);
	put(store, identity[2], 50, NAN, false);
	assert_true(skep_sweep_table_read(store, 0, &table, fresh(&error)));
	FILE *out = open_memstream(&text, &size);
	skep_sweep_table_print(&table, out);
	fclose(out);
	assert_non_null(strstr(text, "sweep 1: synthetic, 3 of 6 runs, some of which failed\n"));
	assert_non_null(strstr(text, " 105.0        7.1 "));
	assert_non_null(strstr(text, "0 of 2, 1 failed"));
	assert_null(strstr(text, "final loss"));
	free(text);
	out = open_memstream(&text, &size);
	skep_sweep_table_print_json(&table, out);
	fclose(out);
	cJSON *object = cJSON_Parse(text);
	const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(object, "rows"), 0);
	const cJSON *figure = cJSON_GetObjectItem(row, "throughput_samples_per_s");
	assert_near(cJSON_GetObjectItem(figure, "mean")->valuedouble, 105.0);
	assert_near(cJSON_GetObjectItem(figure, "sd")->valuedouble, sqrt(50));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "final_loss"), "mean")));
	assert_string_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "values"), "k")->valuestring, "x");
	assert_int_equal(cJSON_GetObjectItem(object, "missing")->valueint, 3);
	cJSON_Delete(object);
	free(text);
	skep_sweep_table_finish(&table);
	skep_store_close(store);
}

static void test_a_sweep_that_is_not_there(void **state)
{
	(void)state;
	struct skep_sweep_table table;
	struct skep_store *store = must_open("a.db", true);
	assert_false(skep_sweep_table_read(store, 0, &table, fresh(&error)));
	assert_non_null(strstr(error.message, "holds no sweep"));
	assert_false(skep_sweep_table_read(store, 4, &table, fresh(&error)));
	assert_non_null(strstr(error.message, "there is no sweep 4"));
	skep_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_same_words_are_the_same_sweep),
		TEST(test_sweeps_share_runs),
		TEST(test_a_run_that_was_deleted_is_missing),
		TEST(test_an_identity_has_one_run),
		TEST(test_an_image_becomes_the_run_that_it_was),
		TEST(test_a_locked_file_is_for_later),
		TEST(test_bytes_that_are_no_run_change_nothing),
		TEST(test_an_error_in_the_middle_leaves_no_half_run),
		TEST(test_little_is_kept),
		TEST(test_rows_are_means_over_seeds),
		TEST(test_text_of_figures),
		TEST(test_text_of_seeds),
		TEST(test_text_of_ties),
		TEST(test_both_forms_of_output_say_the_same),
		TEST(test_a_sweep_that_is_not_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
