/* SPDX-License-Identifier: Apache-2.0
 *
 * test_compare.c - two runs side by side: which ones, the figures, the two forms of output.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "analysis/store/settings.h"
#include "analysis/summary/compare.h"
#include "tests/unit/fresh.h"
#include "tests/unit/synthetic.h"

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

#define DATABASE "compare.db"

static struct skep_diag error;

static int enter(void **state)
{
	static char folder[64];
	snprintf(folder, sizeof folder, "/tmp/skep-compare-XXXXXX");
	*state = folder;
	return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int leave(void **state)
{
	return unlink(DATABASE) || chdir("/") || rmdir(*state);
}

static struct skep_store *open_store(void)
{
	struct skep_store *store = skep_store_open(DATABASE, true, fresh(&error));
	if (store == NULL)
		fail_msg("%s", error.message);
	return store;
}

static int64_t record(struct skep_store *store, const struct synthetic *s, const char *world, bool ok)
{
	int64_t run;
	struct skep_summary summary;
	if (!skep_store_begin(store, &s->scenario, world, "cpu", false, false, &run, fresh(&error)))
		fail_msg("%s", error.message);
	struct skep_tally *tally = skep_tally_create(&s->scenario, world);
	struct skep_recorder_pair pair = {skep_tally_recorder(tally), skep_store_recorder(store)};
	struct skep_recorder recorder = skep_recorder_both(&pair);
	synthetic_feed(s, &recorder);
	skep_tally_finish(tally, s->rounds * s->period_ns, 1, 1, ok ? SKEP_DONE : SKEP_FAILED, &summary);
	skep_tally_destroy(tally);
	if (!skep_store_end(store, &summary, fresh(&error)))
		fail_msg("%s", error.message);
	return run;
}

static char *compare(struct skep_store *store, int64_t first, int64_t second, bool json)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!skep_compare(store, first, second, json, out, fresh(&error)))
		fail_msg("%s", error.message);
	fclose(out);
	return text;
}

static void refuse(struct skep_store *store, int64_t first, int64_t second, const char *phrase)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_false(skep_compare(store, first, second, false, out, fresh(&error)));
	fclose(out);
	assert_int_equal(size, 0); /* nothing half-printed */
	free(text);
	if (strstr(error.message, phrase) == NULL)
		fail_msg("expected '%s' in: %s", phrase, error.message);
}

static const cJSON *metric(const cJSON *object, const char *name)
{
	const cJSON *item;
	cJSON_ArrayForEach(item,
		cJSON_GetObjectItem(object, "metrics")) if (strcmp(cJSON_GetObjectItem(item, "metric")->valuestring,
								    name) == 0) return item;
	fail_msg("no metric %s", name);
	return NULL;
}

static void expect(const cJSON *object, const char *name, double first, double second, double percent)
{
	const cJSON *item = metric(object, name);
	assert_near(cJSON_GetObjectItem(item, "first")->valuedouble, first, 1e-6);
	assert_near(cJSON_GetObjectItem(item, "second")->valuedouble, second, 1e-6);
	assert_near(cJSON_GetObjectItem(item, "difference_percent")->valuedouble, percent, 1e-6);
}

static void test_figures(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "two", 8, 2);
	record(store, &s, "sim", true);
	s.period_ns = 110000000;
	record(store, &s, "real", true);
	char *text = compare(store, 0, 0, true);
	cJSON *object = cJSON_Parse(text);
	assert_non_null(object);
	assert_int_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(object, "first"), "run_id")->valueint, 1);
	assert_string_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(object, "second"), "world")->valuestring, "real");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(object, "same_scenario_text")));
	expect(object, "throughput", 640, 640 / 1.1, -100 / 11.0);
	expect(object, "utilisation", 50, 50, 0);
	expect(object, "time per round, median", 0.1, 0.11, 10);
	expect(object, "time per round, p90", 0.1, 0.11, 10);
	expect(object, "pipeline bytes", 8000, 8000, 0);
	expect(object, "control bytes", 32000, 32000, 0);
	expect(object, "sync messages", 80, 80, 0);
	expect(object, "bytes inside places", 40000, 40000, 0);
	expect(object, "bytes between places", 40000, 40000, 0);
	expect(object, "gradients issued", 640, 640, 0);
	cJSON_Delete(object);
	free(text);
	skep_store_close(store);
	synthetic_finish(&s);
}

/* The parts add up to the time of each run, and what is the same in both makes no difference. */
static void test_time_parts(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	double first_s = 0, second_s = 0, difference_s = 0;
	const cJSON *part;
	synthetic_init(&s, "parts", 8, 2);
	record(store, &s, "sim", true);
	s.period_ns = 130000000;
	record(store, &s, "real", true);
	char *text = compare(store, 1, 2, true);
	cJSON *object = cJSON_Parse(text), *parts = cJSON_GetObjectItem(object, "time_parts");
	assert_int_equal(cJSON_GetArraySize(parts), 6);
	cJSON_ArrayForEach(part, parts)
	{
		first_s += cJSON_GetObjectItem(part, "first_s")->valuedouble;
		second_s += cJSON_GetObjectItem(part, "second_s")->valuedouble;
		difference_s += cJSON_GetObjectItem(part, "difference_s")->valuedouble;
		if (strcmp(cJSON_GetObjectItem(part, "part")->valuestring, "joins") == 0)
			assert_near(cJSON_GetObjectItem(part, "difference_s")->valuedouble, 0, 1e-9);
	}
	assert_near(first_s, s.rounds * 0.1, 1e-9);
	assert_near(second_s, s.rounds * 0.13, 1e-9);
	assert_near(difference_s, s.rounds * 0.03, 1e-9);
	assert_true(cJSON_IsString(cJSON_GetObjectItem(object, "largest_part")));
	assert_true(cJSON_IsString(cJSON_GetObjectItem(object, "measure_next")));
	cJSON_Delete(object);
	free(text);
	text = compare(store, 1, 2, false);
	assert_non_null(strstr(text, "time of a mean worker\n  passes "));
	assert_non_null(strstr(text, "measure next: "));
	free(text);
	text = compare(store, 1, 1, false);
	assert_non_null(strstr(text, "within 1 % of each other"));
	free(text);
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Rounds of 1, 2, .. 10 s: the median lies at 5.5 s, nine tenths of the way from 1 to 10 at 9.1 s. */
static void test_quantiles(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	synthetic_init(&s, "uneven", 2, 1);
	struct skep_store *store = open_store();
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder r = skep_store_recorder(store);
	for (uint32_t i = 0; i < 10; i++) {
		skep_time opened = 100000000000u * i;
		synthetic_note(&r, opened, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = i});
		synthetic_note(&r, opened + (10 - i) * UINT64_C(1000000000), 2,
			(struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = i});
	}
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true};
	assert_true(skep_store_end(store, &summary, fresh(&error)));
	char *text = compare(store, 1, 1, true);
	cJSON *object = cJSON_Parse(text);
	expect(object, "time per round, median", 5.5, 5.5, 0);
	expect(object, "time per round, p90", 9.1, 9.1, 0);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(metric(object, "final loss"), "first")));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(metric(object, "final loss"), "difference_percent")));
	cJSON_Delete(object);
	free(text);
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Rounds of 2 s each, one of which opens each second, as where nothing is flushed; the last one, of 3 s, after a pause. */
static void test_rounds_side_by_side(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	const skep_time second = UINT64_C(1000000000);
	synthetic_init(&s, "side by side", 2, 1);
	struct skep_store *store = open_store();
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder r = skep_store_recorder(store);
	for (uint32_t i = 0; i < 11; i++) {
		if (i > 1)
			synthetic_note(
				&r, i * second, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = i - 2});
		if (i < 9)
			synthetic_note(
				&r, i * second, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = i});
	}
	synthetic_note(&r, 15 * second, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = 9});
	synthetic_note(&r, 18 * second, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = 9});
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true};
	assert_true(skep_store_end(store, &summary, fresh(&error)));
	char *text = compare(store, 1, 1, true);
	cJSON *object = cJSON_Parse(text);
	expect(object, "rounds", 10, 10, 0);
	expect(object, "time per round, median", 1, 1, 0);
	expect(object, "time per round, p90", 2.1, 2.1, 0); /* of 1, eight times, 2 and 3 */
	cJSON_Delete(object);
	free(text);
	skep_store_close(store);
	synthetic_finish(&s);
}

static void test_which_runs(void **state)
{
	(void)state;
	struct synthetic a, b;
	struct skep_store *store = open_store();
	synthetic_init(&a, "first", 4, 2);
	synthetic_init(&b, "second", 4, 2);
	refuse(store, 0, 0, "both a finished simulated and a finished real run");
	record(store, &a, "sim", true);  /* 1 */
	record(store, &b, "real", true); /* 2 */
	refuse(store, 0, 0, "both a finished simulated and a finished real run");
	record(store, &a, "real", false); /* 3 failed */
	refuse(store, 0, 0, "both a finished simulated and a finished real run");
	record(store, &a, "real", true); /* 4 */
	record(store, &a, "sim", true);  /* 5 */
	record(store, &b, "real", true); /* 6, still without a simulated one */
	char *text = compare(store, 0, 0, false);
	assert_non_null(strstr(text, "run 5 sim"));
	assert_non_null(strstr(text, "run 4 real"));
	free(text);
	record(store, &b, "sim", true); /* 7 */
	text = compare(store, 0, 0, false);
	assert_non_null(strstr(text, "run 7 sim"));
	assert_non_null(strstr(text, "run 6 real"));
	free(text);
	text = compare(store, 3, 2, false); /* any two */
	assert_non_null(strstr(text, "run 3 real"));
	assert_non_null(strstr(text, "NOT FINISHED"));
	free(text);
	refuse(store, 1, 99, "no run 99");
	refuse(store, 99, 1, "no run 99");
	refuse(store, -1, 1, "no run -1");
	refuse(store, 1, 0, "two runs");
	skep_store_close(store);
	synthetic_finish(&a);
	synthetic_finish(&b);
}

static void set_text(struct synthetic *s, const char *text)
{
	free(s->scenario.text);
	s->scenario.text = strdup(text);
}

static void test_same_text_first(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "tuned", 4, 2);
	set_text(&s, "schedule: {microbatch: 64}\n");
	record(store, &s, "sim", true); /* 1 */
	set_text(&s, "schedule: {microbatch: 32}\n");
	record(store, &s, "real", true); /* 2 */
	char *text = compare(store, 0, 0, false);
	assert_non_null(strstr(text, "run 1 sim")); /* nothing better is there */
	assert_non_null(strstr(text, "warning: the scenario texts of the two runs differ:\n  schedule.microbatch "));
	assert_non_null(strstr(text, " 64 | 32\n"));
	free(text);
	set_text(&s, "schedule: {microbatch: 64}\n");
	record(store, &s, "real", true); /* 3 */
	set_text(&s, "schedule: {microbatch: 16}\n");
	record(store, &s, "sim", true); /* 4: newer, but of another text than any real run */
	text = compare(store, 0, 0, false);
	assert_non_null(strstr(text, "run 1 sim"));
	assert_non_null(strstr(text, "run 3 real"));
	assert_null(strstr(text, "warning"));
	free(text);
	text = compare(store, 2, 4, true);
	cJSON *object = cJSON_Parse(text);
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(object, "same_scenario_text")));
	const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(object, "scenario_differences"), 0);
	assert_string_equal(cJSON_GetObjectItem(item, "key")->valuestring, "schedule.microbatch");
	assert_string_equal(cJSON_GetObjectItem(item, "first")->valuestring, "32");
	assert_string_equal(cJSON_GetObjectItem(item, "second")->valuestring, "16");
	cJSON_Delete(object);
	free(text);
	skep_store_close(store);
	synthetic_finish(&s);
}

/* A list of one period for all is that period; others differ from stage to stage, and a round has the steps of the shortest. */
static void test_periods_of_a_text(void **state)
{
	(void)state;
	const struct {
		const char *sync;
		double every, steps, rounds;
		uint32_t warmup;
	} all[] = {
		{"{method: step}", 1, 1, 1, 12},
		{"{method: diloco, every: 4}", 4, 4, 1, 3},
		{"{method: diloco, every: [4, 4]}", 4, 4, 1, 3},
		{"{method: diloco, every: [12, 4]}", 0, 4, 1, 3},
		{"{method: diloco, every: auto, mean_inner_steps: 4}", 0, 4, 1, 3},
		{"{method: diloco, every: []}", 1, 1, 1, 12},
		{"{method: streaming, every: 8, fragments: 4}", 2, 8, 4, 6},
		{"{method: streaming, every: 6, fragments: 4}", 1.5, 6, 4, 8},
		{"{method: streaming, every: 3, fragments: 5}", 1, 3, 3, 12},
	};
	double rounds;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		char text[160];
		uint32_t warmup;
		snprintf(text, sizeof text, "sync: %s\ntrain: {schedule: {warmup: 12}}\n", all[i].sync);
		double every = skep_settings_every(text, &warmup), steps = skep_settings_steps(text, &rounds);
		if (fabs(every - all[i].every) > 0 || fabs(steps - all[i].steps) > 0 ||
			fabs(rounds - all[i].rounds) > 0 || warmup != all[i].warmup)
			fail_msg("%s: %g, %g in %g, %" PRIu32, all[i].sync, every, steps, rounds, warmup);
	}
	assert_true(fabs(skep_settings_steps("sync: [1", &rounds) - 1) <= 0 && fabs(rounds - 1) <= 0);
}

static void test_settings(void **state)
{
	(void)state;
	struct skep_differences d;
	skep_settings_compare("a: 1 # one\nb: {c: [2, 3]}\n", "a: 1\nb:\n  c:\n  - 2\n  - 3\n", NULL, &d);
	assert_true(d.same);
	skep_settings_compare(
		"a: 4.0e-3\nb: 200 Mbit/s\nc: 0 USD/h\n", "a: 0.004\nb: 0.2 Gbit/s\nc: 0 USD/h\n", NULL, &d);
	assert_true(d.same);
	skep_settings_compare("a: 4.0e-3\nb: 200 Mbit/s\n", "a: 0.0041\nb: 200 Mbyte/s\n", NULL, &d);
	assert_int_equal(d.count, 2);
	skep_settings_compare("seed: 9007199254740993\n", "seed: 9007199254740992\n", NULL, &d);
	assert_int_equal(d.count, 1);
	skep_settings_compare_written("a: 4.0e-3\nb: 1 s\n", "a: 0.004\nb: 1000 ms\n", NULL, &d);
	assert_int_equal(d.count, 1);
	assert_string_equal(d.item[0].key, "b");
	skep_settings_compare("a: 1\nb: {c: [2, 3], d: x}\n", "e: new\nb: {c: [2, 4]}\na: 1\n", NULL, &d);
	assert_false(d.same);
	assert_int_equal(d.count, 3);
	assert_string_equal(d.item[0].key, "b.c");
	assert_string_equal(d.item[0].first, "[2,3]");
	assert_string_equal(d.item[0].second, "[2,4]");
	assert_string_equal(d.item[1].key, "b.d");
	assert_string_equal(d.item[1].second, "");
	assert_string_equal(d.item[2].key, "e");
	assert_string_equal(d.item[2].first, "");
	assert_string_equal(d.item[2].second, "new");
	skep_settings_compare(
		"a: [1, 2, 3, 4, 5, 6, 7]\nb: {c: [1]}\nz: 0\n", "a: [1, 3, 4, 5]\nb: {c: [2]}\nz: 1\n", NULL, &d);
	assert_int_equal(d.count, 3); /* a list is one setting */
	assert_string_equal(d.item[0].key, "a");
	assert_string_equal(d.item[1].key, "b.c");
	assert_string_equal(d.item[2].key, "z");
	skep_settings_compare("a: 1\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\n", "name: none\n", NULL, &d);
	assert_int_equal(d.count, 8);
	char value[3][SKEP_SETTING_BYTES];
	skep_settings_values("a: 1\nb: {c: [2, 3]}\n", (const char *[]){"b.c", "b", "a"}, 3, value);
	assert_string_equal(value[0], "[2,3]");
	assert_string_equal(value[1], "");
	assert_string_equal(value[2], "1");
	char large[400] = "a: ", broken[] = "a: [1\n";
	memset(large + 3, 'x', sizeof large - 4);
	skep_settings_compare(large, "a: 1\n", NULL, &d);
	assert_int_equal(d.count, 1);
	assert_int_equal(strlen(d.item[0].first), sizeof d.item[0].first - 1);
	assert_string_equal(d.item[0].first + sizeof d.item[0].first - 4, "...");
	skep_settings_compare("a: [{b: [1]}, 2]\nc: []\n", "a: [{b: []}, 2]\nc: [1]\n", NULL, &d);
	assert_int_equal(d.count, 2);
	assert_string_equal(d.item[0].key, "a[0].b");
	assert_string_equal(d.item[0].second, "[]");
	assert_string_equal(d.item[1].first, "[]");
	skep_settings_compare(broken, broken, NULL, &d);
	assert_true(d.same);
	skep_settings_compare(broken, "a: 1\n", NULL, &d);
	assert_true(!d.same && d.count == 0);
	skep_settings_compare("a: 1\n", "", NULL, &d);
	assert_true(!d.same && d.count == 0);
}

static void test_table(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "table", 8, 2);
	record(store, &s, "sim", true);
	char *same = compare(store, 1, 1, false);
	assert_null(strstr(same, "warning"));
	assert_null(strstr(same, "0.0 %")); /* equal is said otherwise */
	static const char *const group[] = {
		"\nspeed\n", "\ntraffic by class\n", "\ntraffic by link\n", "\ngradients\n", "\nloss\n"};
	const char *at = same;
	for (size_t i = 0; i < sizeof group / sizeof group[0]; i++) {
		at = strstr(at, group[i]);
		assert_non_null(at);
	}
	assert_non_null(strstr(at, "\nutilisation: compute time over time alive"));
	free(same);
	s.scenario.text[0] = 'N';
	s.lost_round = 3;
	record(store, &s, "real", true);
	char *text = compare(store, 1, 2, false);
	assert_non_null(strstr(text, "warning: the scenario texts of the two runs differ"));
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		if (strcspn(line, "\n") > 100)
			fail_msg("wider than 100: %s", line);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	assert_non_null(strstr(text, "-0.6 %")); /* 4 of 640 gradients lost */
	free(text);
	skep_store_close(store);
	synthetic_finish(&s);
}

/* A run that has not ended has rounds, but no totals. */
static void test_running(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	struct skep_store *store = open_store(), *reader;
	synthetic_init(&s, "running", 4, 2);
	record(store, &s, "sim", true);
	assert_true(skep_store_begin(store, &s.scenario, "real", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_round(&s, &recorder, 0, true);
	reader = skep_store_open(DATABASE, false, fresh(&error));
	assert_non_null(reader);
	char *text = compare(reader, 1, run, false);
	assert_non_null(strstr(text, "time per round"));
	assert_null(strstr(text, "nan"));
	free(text);
	skep_store_close(reader);
	skep_store_close(store);
	synthetic_finish(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_figures), TEST(test_time_parts), TEST(test_quantiles),
		TEST(test_rounds_side_by_side), TEST(test_which_runs), TEST(test_same_text_first),
		cmocka_unit_test(test_settings), cmocka_unit_test(test_periods_of_a_text), TEST(test_table),
		TEST(test_running)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
