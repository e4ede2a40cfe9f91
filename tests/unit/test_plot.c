/* SPDX-License-Identifier: Apache-2.0
 *
 * test_plot.c - pictures: that they are made, and everything that is refused without leaving a file behind.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"
#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/plot_fixture.h"

static int files(void)
{
	int count = 0;
	DIR *dir = opendir(".");
	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 2;
}

static bool has_gnuplot(void)
{
	return system("gnuplot --version >/dev/null 2>&1") == 0;
}

static void draw(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs, const char *target)
{
	if (!plot_rounds(store, kind, run, runs, target, NULL, fresh(&error)))
		fail_msg("%s: %s", target, error.message);
}

static void refuse(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs, const char *target,
	const char *phrase)
{
	int before = files();
	error.message[0] = '\0';
	assert_false(plot_rounds(store, kind, run, runs, target, NULL, fresh(&error)));
	if (strstr(error.message, phrase) == NULL)
		fail_msg("expected '%s' in: %s", phrase, error.message);
	assert_int_equal(files(), before);
}

static void assert_begins(const char *path, const char *magic)
{
	char head[512] = "";
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t size = fread(head, 1, sizeof head - 1, file);
	fseek(file, 0, SEEK_END);
	long length = ftell(file);
	fclose(file);
	assert_true(size > 100 && length > 2000);
	assert_memory_equal(head, magic, strlen(magic));
}

static void test_every_kind_and_format(void **state)
{
	(void)state;
	static const char *const kind[] = {"accuracy", "cost", "matrix", "throughput", "timeline"};
	static const struct {
		const char *ending, *magic;
	} format[] = {{"png", "\x89PNG"}, {"svg", "<?xml"}, {"pdf", "%PDF"}};
	if (!has_gnuplot())
		skip();
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "two data centres", 8, 2);
	record(store, &s, "sim");
	s.decay = 0.8;
	record(store, &s, "real");
	int before = files();
	for (size_t i = 0; i < 5; i++)
		for (size_t j = 0; j < 3; j++) {
			char name[32];
			snprintf(name, sizeof name, "%s.%s", kind[i], format[j].ending);
			draw(store, kind[i], NULL, 0, name);
			assert_begins(name, format[j].magic);
		}
	assert_int_equal(files(), before + 15);
	skep_store_close(store);
	synthetic_finish(&s);
}

static void test_many_shapes(void **state)
{
	(void)state;
	static const uint32_t shape[][2] = {{1, 1}, {2, 1}, {3, 3}, {17, 4}, {64, 8}};
	if (!has_gnuplot())
		skip();
	struct skep_store *store = open_store();
	for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
		struct synthetic s;
		int64_t run;
		synthetic_init(&s, "shape", shape[i][0], shape[i][1]);
		s.rounds = i == 0 ? 1 : 6;
		if (i == 2)
			s.scenario.first_stage_of[2] = SKEP_NO_STAGE - 0u, s.scenario.plan.stages = 2;
		if (i != 2) {
			run = record(store, &s, "sim");
			draw(store, "accuracy", NULL, 0, "a.png");
			draw(store, "timeline", NULL, 0, "t.png");
		} else { /* with a spare, which the made-up run has no work for */
			assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
			struct skep_summary summary = {.world = "sim", .final_loss = NAN};
			assert_true(skep_store_end(store, &summary, fresh(&error)));
		}
		if (shape[i][0] > 1)
			draw(store, "matrix", &run, 1, "m.png");
		else
			refuse(store, "matrix", &run, 1, "m.png", "nothing to show");
		synthetic_finish(&s);
	}
	skep_store_close(store);
}

/* Names go into titles and legends only; they must not be able to do anything there. */
static void test_hostile_names(void **state)
{
	(void)state;
	static const char *const name[] = {"it's", "`touch hacked`", "a\nsystem 'touch hacked'",
		"'; system('touch hacked'); '", "{/Bold x}_1^2 @x $y \\", "naïve – 東京", "\"double\"",
		"\xff\xfe broken \xe2\x80"};
	if (!has_gnuplot())
		skip();
	struct skep_store *store = open_store();
	for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
		struct synthetic s;
		synthetic_init(&s, name[i], 4, 2);
		snprintf(s.scenario.topology.place_name[0], 32, "%s", name[i]);
		record(store, &s, "sim");
		record(store, &s, "real");
		draw(store, "accuracy", NULL, 0, "a.png");
		draw(store, "matrix", NULL, 0, "m.svg");
		draw(store, "timeline", NULL, 0, "t.pdf");
		synthetic_finish(&s);
	}
	assert_int_equal(access("hacked", F_OK), -1);
	draw(store, "matrix", NULL, 0, "it's a `target`.png");
	assert_begins("it's a `target`.png", "\x89PNG");
	skep_store_close(store);
}

static void test_which_runs(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	refuse(store, "accuracy", NULL, 0, "a.png", "no run in the database has a loss");
	refuse(store, "matrix", NULL, 0, "a.png", "holds no run");
	refuse(store, "timeline", NULL, 0, "a.png", "holds no run");
	synthetic_init(&s, "dry", 4, 2);
	s.scenario.arithmetic = SKEP_ARITHMETIC_NONE;
	int64_t dry = record(store, &s, "sim");
	refuse(store, "accuracy", NULL, 0, "a.png", "arithmetic: real");
	refuse(store, "accuracy", &dry, 1, "a.png", "arithmetic: none");
	const int64_t none[] = {99, -1};
	refuse(store, "accuracy", none, 1, "a.png", "no run 99");
	refuse(store, "matrix", none + 1, 1, "a.png", "no run -1");
	refuse(store, "timeline", none, 1, "a.png", "no run 99");
	const int64_t two[] = {dry, dry};
	refuse(store, "matrix", two, 2, "a.png", "shows one run");
	refuse(store, "timeline", two, 2, "a.png", "shows one run");
	int64_t many[300] = {0};
	refuse(store, "accuracy", many, 300, "a.png", "at most 256 runs");
	s.rounds = 0;
	int64_t empty = record(store, &s, "sim");
	refuse(store, "timeline", &empty, 1, "a.png", "closed no round");
	skep_store_close(store);
	assert_int_equal(unlink("plot.db"), 0);
	store = open_store();
	record(store, &s, "sim");
	refuse(store, "timeline", NULL, 0, "a.png", "no run that closed a round");
	skep_store_close(store);
	synthetic_finish(&s);
}

static void test_targets(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "targets", 4, 2);
	record(store, &s, "sim");
	mkdir("folder.png", 0777);
	mkdir("shut", 0555);
	refuse(store, "pie", NULL, 0, "a.png",
		"accuracy, complexity, cost, fit, gantt, jobs, matrix, pareto, search, sweep, throughput, timeline or "
		"utilisation");
	refuse(store, "", NULL, 0, "a.png",
		"accuracy, complexity, cost, fit, gantt, jobs, matrix, pareto, search, sweep, throughput, timeline or "
		"utilisation");
	refuse(store, "matrix", NULL, 0, "a.gif", ".png, .svg or .pdf");
	refuse(store, "matrix", NULL, 0, "png", ".png, .svg or .pdf");
	refuse(store, "matrix", NULL, 0, ".png", ".png, .svg or .pdf");
	refuse(store, "matrix", NULL, 0, "", ".png, .svg or .pdf");
	refuse(store, "matrix", NULL, 0, "nowhere/a.png", "not there");
	refuse(store, "matrix", NULL, 0, "folder.png", "a folder");
	refuse(store, "matrix", NULL, 0, "plot.db/a.png", "not a folder");
	refuse(store, "matrix", NULL, 0, "/proc/a.png", "written");
	bool root = geteuid() == 0;
	if (root)
		assert_int_equal(seteuid(65534), 0);
	bool drawn = plot_rounds(store, "matrix", NULL, 0, "shut/a.png", NULL, fresh(&error));
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_false(drawn);
	assert_non_null(strstr(error.message, "not writable"));
	char name[5000];
	memset(name, 'x', sizeof name);
	strcpy(name + sizeof name - 5, ".png");
	refuse(store, "matrix", NULL, 0, name, "too long");
	skep_store_close(store);
	synthetic_finish(&s);
}

/* What was there before stays, whatever happens to gnuplot. */
static void test_gnuplot_missing_or_failing(void **state)
{
	(void)state;
	static const struct {
		const char *script, *phrase;
	} fake[] = {
		{"#!/bin/sh\necho half a picture\necho 'line 3: no such terminal' >&2\nexit 1\n", "no such terminal"},
		{"#!/bin/sh\nkill -9 $$\n", "gnuplot failed"},
		{"#!/bin/sh\nexit 0\n", "no picture"},
		{"#!/bin/sh\nyes 'line 1: much to say' | head -c 9000000 >&2\nexit 1\n", "much to say"},
	};
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "gnuplot", 4, 2);
	record(store, &s, "sim");
	mkdir("bin", 0777);
	write_file("a.png", "before", 0644);
	setenv("PATH", "bin", 1);
	refuse(store, "matrix", NULL, 0, "a.png", "apt-get install gnuplot-nox");
	setenv("PATH", "", 1);
	refuse(store, "matrix", NULL, 0, "a.png", "apt-get install gnuplot-nox");
	char path[4200], here[4096];
	assert_non_null(getcwd(here, sizeof here));
	snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", here);
	setenv("PATH", path, 1);
	for (size_t i = 0; i < sizeof fake / sizeof fake[0]; i++) {
		write_file("bin/gnuplot", fake[i].script, 0755);
		refuse(store, "matrix", NULL, 0, "a.png", fake[i].phrase);
	}
	write_file("bin/gnuplot", "#!/no/such/shell\n", 0755);
	setenv("PATH", "bin", 1);
	refuse(store, "matrix", NULL, 0, "a.png", "cannot be started");
	char text[16] = "";
	FILE *file = fopen("a.png", "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof text, file));
	fclose(file);
	assert_string_equal(text, "before");
	skep_store_close(store);
	synthetic_finish(&s);
}

/* gnuplot writes without looking: what does not fit onto the disk is no picture, whatever it says. */
static void test_disk_full(void **state)
{
	(void)state;
	struct synthetic s;
	struct rlimit before, small;
	struct skep_store *store = open_store();
	synthetic_init(&s, "full", 4, 2);
	record(store, &s, "sim");
	play_gnuplot();
	write_file("bin/gnuplot", "#!/bin/sh\nhead -c 100000 /dev/zero 2>/dev/null\nexit 0\n", 0755);
	write_file("a.png", "before", 0644);
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){40960, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	refuse(store, "matrix", NULL, 0, "a.png", "a.png: cannot be written: File too large");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, handler);
	assert_string_equal(read_script("a.png"), "before");
	skep_store_close(store);
	synthetic_finish(&s);
}

/* As `sqlite3 plot.db SQL` does by hand. */
static void change(const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open("plot.db", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void test_rounds_that_are_not_there(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "late", 4, 2);
	record(store, &s, "sim");
	change("UPDATE rounds SET round = round + 1000");
	refuse(store, "timeline", NULL, 0, "a.png", "there is no round 0");
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Rows that cannot be read are not taken for the end of the table. */
static void test_damage(void **state)
{
	(void)state;
	static const struct {
		const char *kind, *table, *from;
	} damage[] = {{"accuracy", "losses", "round > 1"}, {"cost", "rounds", "round > 1"},
		{"matrix", "workers", "worker > 2"}, {"throughput", "rounds", "round > 1"},
		{"timeline", "ops", "begin_s > 0.1"}};
	for (size_t i = 0; i < 5; i++) {
		struct synthetic s;
		char sql[256];
		struct skep_store *store = open_store();
		synthetic_init(&s, "damaged", 4, 2);
		record(store, &s, "sim");
		snprintf(sql, sizeof sql,
			"CREATE TEMP VIEW %s AS SELECT * FROM main.%s WHERE abs(-9223372036854775807 - (%s)) > 0",
			damage[i].table, damage[i].table, damage[i].from);
		assert_int_equal(sqlite3_exec(skep_store_database(store), sql, NULL, NULL, NULL), SQLITE_OK);
		refuse(store, damage[i].kind, NULL, 0, "a.png", "integer overflow");
		skep_store_close(store);
		synthetic_finish(&s);
	}
}

/* A run that failed at once does not hide those before it. */
static void test_newest(void **state)
{
	(void)state;
	static const char *const kind[] = {"accuracy", "matrix", "timeline"};
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "good", 4, 2);
	record(store, &s, "sim");
	snprintf(s.scenario.name, sizeof s.scenario.name, "corpse");
	s.rounds = 0;
	record(store, &s, "sim");
	play_gnuplot();
	for (size_t i = 0; i < 3; i++) {
		const char *text = script_of(store, kind[i]);
		assert_non_null(strstr(text, "good"));
		assert_null(strstr(text, "corpse"));
		if (strcmp(kind[i], "matrix") == 0) /* the diagonal */
			assert_non_null(strstr(text, "\nWhite = 'to itself'\n"));
	}
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Runs of one scenario say in which settings they differ. */
static void test_legend(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "tuned", 4, 2);
	for (int i = 0; i < 2; i++) {
		free(s.scenario.text);
		s.scenario.text = strdup(i ? "seed: 9\nschedule: {microbatch: 32}\n"
					   : "seed: 7\nschedule: {microbatch: 64}\ntrain: {clip: 1.5}\n");
		record(store, &s, i ? "real" : "sim");
	}
	play_gnuplot();
	const char *text = script_of(store, "cost"); /* as compare takes them: no two have the same text */
	assert_non_null(strstr(text, "'run 1, simulated, microbatch 64, clip 1.5'"));
	assert_non_null(strstr(text, "'run 2, real, cpu, paced, shaped, microbatch 32, clip not set'"));
	assert_true(plot_rounds(store, "cost", (const int64_t[]){1, 2}, 2, "script.png", NULL, fresh(&error)));
	text = read_script("script.png");
	assert_non_null(strstr(text, "'run 1, simulated, microbatch 64, clip 1.5'"));
	assert_non_null(strstr(text, "'run 2, real, cpu, paced, shaped, microbatch 32, clip not set'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* One unit for every picture, and the titles of runs of one scenario and of two. */
static void test_axis_and_title(void **state)
{
	(void)state;
	static const struct {
		double end_s, per_s;
		const char *name;
	} expected[] = {{0, 1e3, "ms"}, {0.999, 1e3, "ms"}, {1, 1, "s"}, {299, 1, "s"}, {300, 1 / 60.0, "min"},
		{7199, 1 / 60.0, "min"}, {7200, 1 / 3600.0, "h"}, {1e7, 1 / 3600.0, "h"}, {NAN, 1, NULL}};
	for (size_t i = 0; expected[i].name != NULL; i++) {
		struct skep_plot_unit unit = skep_plot_unit(expected[i].end_s);
		assert_true(unit.per_s == expected[i].per_s);
		assert_string_equal(unit.name, expected[i].name);
	}
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "first", 4, 2);
	int64_t run[2] = {record(store, &s, "sim")};
	play_gnuplot();
	static const char *const kind[] = {"accuracy", "cost", "throughput", "timeline"};
	struct skep_plot_rounds all = {.all = true};
	for (size_t i = 0; i < 4; i++) { /* of two seconds */
		const char *text = script_of_rounds(store, kind[i], i == 3 ? &all : NULL);
		assert_non_null(strstr(text, "time since the start of the run (s)'"));
	}
	assert_non_null(
		strstr(script_of(store, "accuracy"), "set title 'first: training loss against wall-clock time'"));
	assert_non_null(strstr(script_of(store, "cost"), "set title 'first: cost against time'"));
	snprintf(s.scenario.name, sizeof s.scenario.name, "second");
	run[1] = record(store, &s, "sim");
	draw(store, "cost", run, 2, "two.png");
	assert_non_null(strstr(read_script("two.png"), "set title 'Cost against time'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* One run has its number, runs that differ by their seed are counted; 8 microbatches of 4 samples each 100 ms. */
static void test_throughput(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "spread", 4, 2);
	record(store, &s, "sim");
	play_gnuplot();
	const char *text = script_of(store, "throughput");
	assert_non_null(strstr(text, "set title 'spread: throughput'"));
	assert_non_null(strstr(text, "'320 samples/s, spread 100 %: run 1, simulated'"));
	s.scenario.seed = 8;
	record(store, &s, "sim");
	text = script_of(store, "throughput");
	assert_non_null(strstr(text, "'320 samples/s, spread 100 %: 2 runs, simulated'"));
	assert_non_null(strstr(text, "remark = ''"));
	/* What was real is no more of the same. */
	record(store, &s, "real");
	text = script_of(store, "throughput");
	assert_non_null(strstr(text, "groups = 2\n"));
	assert_non_null(strstr(text, "'320 samples/s, spread 100 %: run 3, real, cpu, paced, shaped'"));
	/* Another kind of GPU beside it: what is said of equal workers has to be taken back. */
	free(s.scenario.topology.gpu);
	s.scenario.topology.gpu = calloc(2, sizeof *s.scenario.topology.gpu);
	assert_non_null(s.scenario.topology.gpu);
	snprintf(s.scenario.topology.gpu[0].name, sizeof s.scenario.topology.gpu[0].name, "t4");
	snprintf(s.scenario.topology.gpu[1].name, sizeof s.scenario.topology.gpu[1].name, "v100");
	s.scenario.topology.gpus = 2;
	s.scenario.topology.machine[3].gpu = 1;
	snprintf(s.scenario.name, sizeof s.scenario.name, "mixed");
	record(store, &s, "sim");
	text = script_of(store, "throughput");
	assert_non_null(strstr(text, "'320 samples/s, spread 100 %: run 4, simulated'"));
	assert_non_null(strstr(text, "remark = 'mixed GPUs, each taken as the mean of its stage: 100 % is no bound'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* 32 samples in each 100 and each 80 ms: 320 and 400, of which the standard deviation is 80 over the root of 2. */
static void test_throughput_has_the_deviation_of_a_sample(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "band", 4, 2);
	record(store, &s, "sim");
	s.scenario.seed = 8;
	s.period_ns = 80000000;
	record(store, &s, "sim");
	play_gnuplot();
	assert_non_null(strstr(script_of(store, "throughput"), " 360 303.431 416.569\n"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* gnuplot leaves out what a key has no room for, without a word. */
static void test_key_has_all_groups(void **state)
{
	(void)state;
	enum { SETTINGS = 11 };
	if (!has_gnuplot())
		skip();
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "many", 4, 2);
	for (int i = 0; i < SETTINGS; i++) {
		char text[64];
		free(s.scenario.text);
		snprintf(text, sizeof text, "seed: 7\nschedule: {in_flight: %d}\n", 100 + i);
		s.scenario.text = strdup(text);
		record(store, &s, "sim");
	}
	draw(store, "throughput", NULL, 0, "many.svg");
	const char *picture = read_script("many.svg");
	for (int i = 0; i < SETTINGS; i++) {
		char title[64];
		snprintf(title, sizeof title, "run %d, simulated, in_flight %d<", i + 1, 100 + i);
		assert_non_null(strstr(picture, title));
	}
	skep_store_close(store);
	synthetic_finish(&s);
}

static void test_script(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "scripted", 4, 2);
	record(store, &s, "sim");
	s.start_loss = 80;
	record(store, &s, "real");
	record(store, &s, "real");
	play_gnuplot();
	const char *text = script_of(store, "accuracy");
	assert_non_null(strstr(text, "set terminal pngcairo"));
	assert_non_null(strstr(text, "'run 1, simulated'"));
	assert_non_null(strstr(text, "'run 3, real, cpu, paced, shaped'"));
	assert_null(strstr(text, "run 2"));
	assert_non_null(strstr(text, "\n0.1 40.05 ")); /* round 0 ends after 0.1 s */
	assert_non_null(strstr(text, "\n0.1 80.05 "));
	assert_non_null(strstr(text, "set logscale y"));
	struct stat st;
	mode_t mask = umask(0);
	umask(mask);
	assert_int_equal(stat("script.png", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
	skep_store_close(store);
	synthetic_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_kind_and_format),
		TEST(test_many_shapes),
		TEST(test_hostile_names),
		TEST(test_which_runs),
		TEST(test_targets),
		TEST(test_gnuplot_missing_or_failing),
		TEST(test_disk_full),
		TEST(test_rounds_that_are_not_there),
		TEST(test_damage),
		TEST(test_newest),
		TEST(test_legend),
		TEST(test_axis_and_title),
		TEST(test_throughput),
		TEST(test_throughput_has_the_deviation_of_a_sample),
		TEST(test_key_has_all_groups),
		TEST(test_script),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
