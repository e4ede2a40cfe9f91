/* SPDX-License-Identifier: Apache-2.0
 *
 * test_plot.c - pictures: that they are made, and everything that is refused without leaving a file behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/plot.h"
#include "tests/unit/synthetic.h"

static char error[1024];
static char *path_variable;

static int enter(void **state)
{
	static char folder[64];
	snprintf(folder, sizeof folder, "/tmp/skep-plot-XXXXXX");
	if (mkdtemp(folder) == NULL || chmod(folder, 0777) != 0 || chdir(folder) != 0)
		return -1;
	*state = folder;
	path_variable = strdup(getenv("PATH"));
	return path_variable == NULL;
}

static int leave(void **state)
{
	char command[128];
	setenv("PATH", path_variable, 1);
	free(path_variable);
	snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
	return chdir("/") || system(command);
}

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

static struct skep_store *open_store(void)
{
	struct skep_store *store = skep_store_open("plot.db", true, error, sizeof error);
	if (store == NULL)
		fail_msg("%s", error);
	return store;
}

static int64_t record(struct skep_store *store, const struct synthetic *s, const char *world)
{
	int64_t run;
	if (!skep_store_begin(store, &s->scenario, world, "cpu", true, true, &run, error, sizeof error))
		fail_msg("%s", error);
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(s, &recorder);
	struct skep_summary summary = {.world = world, .final_loss = NAN, .ok = true};
	if (!skep_store_end(store, &summary, error, sizeof error))
		fail_msg("%s", error);
	return run;
}

static void draw(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs, const char *target)
{
	if (!skep_plot(store, kind, run, runs, target, NULL, error, sizeof error))
		fail_msg("%s: %s", target, error);
}

static void refuse(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs, const char *target,
	const char *phrase)
{
	int before = files();
	error[0] = '\0';
	assert_false(skep_plot(store, kind, run, runs, target, NULL, error, sizeof error));
	if (strstr(error, phrase) == NULL)
		fail_msg("expected '%s' in: %s", phrase, error);
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
			assert_true(
				skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, error, sizeof error));
			struct skep_summary summary = {.world = "sim", .final_loss = NAN};
			assert_true(skep_store_end(store, &summary, error, sizeof error));
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
	s.scenario.maths = SKEP_MATHS_NONE;
	int64_t dry = record(store, &s, "sim");
	refuse(store, "accuracy", NULL, 0, "a.png", "maths: real");
	refuse(store, "accuracy", &dry, 1, "a.png", "maths: none");
	const int64_t none[] = {99, -1};
	refuse(store, "accuracy", none, 1, "a.png", "no run 99");
	refuse(store, "matrix", none + 1, 1, "a.png", "no run -1");
	refuse(store, "timeline", none, 1, "a.png", "no run 99");
	const int64_t two[] = {dry, dry};
	refuse(store, "matrix", two, 2, "a.png", "shows one run");
	refuse(store, "timeline", two, 2, "a.png", "shows one run");
	int64_t many[40] = {0};
	refuse(store, "accuracy", many, 40, "a.png", "at most");
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
	refuse(store, "pie", NULL, 0, "a.png", "accuracy, cost, matrix, throughput or timeline");
	refuse(store, "", NULL, 0, "a.png", "accuracy, cost, matrix, throughput or timeline");
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
	bool drawn = skep_plot(store, "matrix", NULL, 0, "shut/a.png", NULL, error, sizeof error);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_false(drawn);
	assert_non_null(strstr(error, "not writable"));
	char name[5000];
	memset(name, 'x', sizeof name);
	strcpy(name + sizeof name - 5, ".png");
	refuse(store, "matrix", NULL, 0, name, "too long");
	skep_store_close(store);
	synthetic_finish(&s);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
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

/* From now on pictures hold the script as gnuplot gets it: `cat` plays gnuplot. */
static void play_gnuplot(void)
{
	char path[4200], here[4096];
	mkdir("bin", 0777);
	write_file("bin/gnuplot", "#!/bin/sh\nexec cat\n", 0755);
	assert_non_null(getcwd(here, sizeof here));
	snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", here);
	setenv("PATH", path, 1);
}

static char *script_of_rounds(struct skep_store *store, const char *kind, const struct skep_plot_rounds *rounds)
{
	static char text[4000000];
	if (!skep_plot(store, kind, NULL, 0, "script.png", rounds, error, sizeof error))
		fail_msg("%s", error);
	FILE *file = fopen("script.png", "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return text;
}

static char *script_of(struct skep_store *store, const char *kind)
{
	return script_of_rounds(store, kind, NULL);
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
	const char *text = script_of(store, "accuracy");
	assert_non_null(strstr(text, "'run 1: simulated, tuned, seed 7, microbatch 64, clip 1.5'"));
	assert_non_null(strstr(text, "'run 2: real, tuned, seed 7, microbatch 32, clip not set (cpu, paced, shaped)'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* The picture ends with the last step, which is after the end of its round; the names of 90 stages do not all fit. */
static void test_timeline(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	struct skep_store *store = open_store();
	synthetic_init(&s, "late", 90, 90);
	s.scenario.plan.microbatches = 2;
	s.rounds = 1;
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, error, sizeof error));
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(&s, &recorder);
	synthetic_op(&s, &recorder, SKEP_OP_STEP, SKEP_LANE_COMPUTE, 0, 0, 0, 1.1, 0.2);
	synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 1, 0, 1, 0.25, 0.4);
	synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 1, 0, 1, 0.7, 0.1);
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true};
	assert_true(skep_store_end(store, &summary, error, sizeof error));
	play_gnuplot();
	const char *text = script_of_rounds(store, "timeline", &(struct skep_plot_rounds){0});
	assert_non_null(strstr(text, "set xrange [0:130]"));
	assert_non_null(strstr(text, "\n110 130 -0.42 0.16 2\n"));
	assert_non_null(strstr(text, "\n125 130 0.58 1.16 0\n")); /* of the next round: cut */
	assert_null(strstr(text, "\n170 "));
	assert_non_null(strstr(text, "'stage 0'"));
	assert_null(strstr(text, "'stage 1'"));
	assert_non_null(strstr(text, "'stage 2'"));
	assert_non_null(strstr(text, "'reduction'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* The colour of one bin: of `count` that may follow, so many are as said. */
static void assert_cells(const char *text, double row, uint32_t rgb, int least)
{
	int found = 0;
	const char *line = strstr(text, "$cells << END\n");
	assert_non_null(line);
	for (line = strchr(line, '\n') + 1; strncmp(line, "END", 3) != 0; line = strchr(line, '\n') + 1) {
		double at, y;
		unsigned r, g, b;
		assert_int_equal(sscanf(line, "%lf %lf %u %u %u", &at, &y, &r, &g, &b), 5);
		found += fabs(y - row) < 1e-6 && (r << 16 | g << 8 | b) == rgb;
	}
	if (found < least)
		fail_msg("row %g has %d cells of colour %06x, not %d", row, found, rgb, least);
}

static void note(
	const struct synthetic *s, struct skep_recorder *r, double at_s, uint8_t kind, uint32_t peer, uint16_t stage)
{
	synthetic_note(r, (skep_time)(at_s * 1e9), s->scenario.plan.workers,
		(struct skep_note){.kind = kind, .stage = stage, .peer = {peer, 2}});
}

/* Many workers: the whole run. Of one worker every state for a fifth of two seconds: it serves and is idle, is dead,
 * downloads, computes backwards, is gone for good. */
static void test_overview(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	struct skep_store *store = open_store();
	synthetic_init(&s, "whole", 48, 2);
	s.rounds = 20;
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, error, sizeof error));
	struct skep_recorder recorder = skep_store_recorder(store), quiet = recorder;
	quiet.op = NULL;
	synthetic_feed(&s, &quiet);
	note(&s, &recorder, 0.4, SKEP_NOTE_FENCED, 47, 1);
	note(&s, &recorder, 0.8, SKEP_NOTE_ADMITTED, 47, 0);
	note(&s, &recorder, 1.2, SKEP_NOTE_JOINED, 47, 0);
	note(&s, &recorder, 1.6, SKEP_NOTE_LEFT, 47, 0);
	synthetic_op(&s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 0, 0, 47, 12, 4);
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true, .time_s = 2};
	assert_true(skep_store_end(store, &summary, error, sizeof error));
	play_gnuplot();
	const char *text = script_of(store, "timeline");
	assert_non_null(strstr(text, "'run 1: whole, simulated world: the whole run, 20 rounds in 2 s'"));
	assert_non_null(strstr(text, "set xrange [0:2]"));
	assert_non_null(strstr(text, "panel = 1\n"));
	int fifth =
		(int)(0.4 / 0.0020972) - 3; /* bins are 2^21 ns long: 1.6 s in at most 1,024 of them, and 48 workers */
	assert_cells(text, 47, 0x8a8a8a, 2 * fifth);
	assert_cells(text, 47, 0xcc79a7, fifth);
	assert_cells(text, 47, 0xe69f00, fifth);
	assert_cells(text, 47, 0xeeeeee, fifth);
	assert_cells(text, 0, 0xeeeeee, 5 * fifth);
	/* In the panel: 24 and 24 workers; then one less in stage 1; then one that downloads; then one more in stage 0. */
	assert_non_null(strstr(text, " 0 24 48 48\n"));
	assert_non_null(strstr(text, " 0 24 47 47\n"));
	assert_non_null(strstr(text, " 0 24 47 48\n"));
	assert_non_null(strstr(text, " 0 25 48 48\n"));
	assert_non_null(strstr(text, "'dead or not there'"));
	assert_null(strstr(text, "'forward'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Few workers: stacked bars, and the stage that a mover goes to. A quarter of every bin forward, half of it backward. */
static void test_overview_stacked(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	struct skep_store *store = open_store();
	synthetic_init(&s, "stacked", 4, 2);
	s.rounds = 2;
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, error, sizeof error));
	struct skep_recorder recorder = skep_store_recorder(store), quiet = recorder;
	quiet.op = NULL;
	synthetic_feed(&s, &quiet);
	for (int i = 0; i < 200; i++) { /* each millisecond */
		synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 0, 0, 2, i / 100.0, 0.0025);
		synthetic_op(&s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 0, 0, 2, i / 100.0 + 0.0025, 0.005);
	}
	note(&s, &recorder, 0.1, SKEP_NOTE_MOVED, 3, 0);
	note(&s, &recorder, 0.15, SKEP_NOTE_JOINED, 3, 0);
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true, .time_s = 0.2};
	assert_true(skep_store_end(store, &summary, error, sizeof error));
	play_gnuplot();
	const char *text = script_of(store, "timeline");
	assert_non_null(strstr(text, "set label '→ 0' at first 150, first 3 "));
	assert_null(strstr(text, "set label '→ 0' at first 100"));
	assert_non_null(strstr(text, " left front boxed ")); /* on bars of every colour */
	assert_non_null(strstr(text, "set style textbox opaque "));
	assert_cells(text, 2 - 0.5 + 15.5 / 23, 0xe69f00, 100); /* the lowest row of pixels of the compute lane */
	assert_cells(text, 2 - 0.5 + 1.5 / 23, 0xeeeeee, 100);  /* and the highest */
	assert_cells(text, 3 - 0.5 + 1.5 / 23, 0xcc79a7, 20);
	assert_null(strstr(text, "'dead or not there'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Steps that the reduce lane does, half of every bin, are drawn there: no part of a compute lane that was busy all the time. */
static void test_overview_delayed(void **state)
{
	(void)state;
	for (int delayed = 0; delayed < 2; delayed++) {
		struct synthetic s;
		int64_t run;
		struct skep_store *store = open_store();
		synthetic_init(&s, "delayed", 4, 2);
		s.rounds = 2;
		assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, error, sizeof error));
		struct skep_recorder recorder = skep_store_recorder(store), quiet = recorder;
		quiet.op = NULL;
		synthetic_feed(&s, &quiet);
		for (int i = 0; i < 200; i++) { /* each millisecond */
			synthetic_op(&s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 0, 0, 2, i / 100.0, 0.005);
			synthetic_op(&s, &recorder, SKEP_OP_STEP, delayed ? SKEP_LANE_REDUCE : SKEP_LANE_COMPUTE, 0, 0,
				2, i / 100.0 + 0.005, 0.005);
		}
		struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true, .time_s = 0.2};
		assert_true(skep_store_end(store, &summary, error, sizeof error));
		play_gnuplot();
		const char *text = script_of_rounds(store, "timeline", &(struct skep_plot_rounds){.all = true});
		/* The highest row of pixels of the compute lane, and the lowest of the reduce lane. */
		assert_cells(text, 2 - 0.5 + 1.5 / 23, delayed ? 0xeeeeee : 0x000000, 100);
		assert_cells(text, 2 - 0.5 + 21.5 / 23, delayed ? 0x000000 : 0xeeeeee, 100);
		assert_cells(text, 2 - 0.5 + 15.5 / 23, 0xe69f00, 100);
		skep_store_close(store);
		assert_int_equal(unlink("plot.db"), 0);
		synthetic_finish(&s);
	}
}

static void test_rounds(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "asked", 4, 2);
	record(store, &s, "sim");
	play_gnuplot();
	const char *text = script_of_rounds(store, "timeline", &(struct skep_plot_rounds){.first = 3, .last = 5});
	assert_non_null(strstr(text, "rounds 3 to 5 of 20"));
	assert_non_null(strstr(text, "set xrange [300:600]"));
	assert_non_null(strstr(text, "'round 5'"));
	assert_null(strstr(text, "'round 6'"));
	/* Each line where its round opened, with the name beside it; the first on the axis. */
	assert_non_null(strstr(text, "set arrow from first 300, graph 0 to first 300, graph 1 "));
	assert_non_null(strstr(text, "set arrow from first 500, graph 0 to first 500, graph 1 "));
	assert_non_null(strstr(text, "set label 'round 4' at first 400, graph 1 "));
	assert_null(strstr(text, "set arrow from first 600,"));
	text = script_of_rounds(store, "timeline", &(struct skep_plot_rounds){.all = true});
	assert_non_null(strstr(text, "the whole run, 20 rounds in 2 s"));
	assert_non_null(strstr(text, "panel = 0\n"));
	text = script_of(store, "timeline");
	assert_non_null(strstr(text, "the first "));
	struct skep_plot_rounds beyond = {.first = 20, .last = 30};
	assert_false(skep_plot(store, "timeline", NULL, 0, "a.png", &beyond, error, sizeof error));
	assert_non_null(strstr(error, "closed 20 rounds: there is no round 20"));
	assert_false(skep_plot(store, "matrix", NULL, 0, "a.png", &beyond, error, sizeof error));
	assert_non_null(strstr(error, "--rounds is for the timeline"));
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
	assert_non_null(strstr(text, "'run 1: simulated, scripted, seed 7'"));
	assert_non_null(strstr(text, "'run 3: real, scripted, seed 7 (cpu, paced, shaped)'"));
	assert_null(strstr(text, "run 2"));
	assert_non_null(strstr(text, "\n0.1 40.05\n")); /* round 0 ends after 0.1 s */
	assert_non_null(strstr(text, "\n0.1 80.05\n"));
	assert_non_null(strstr(text, "set logscale y"));
	struct stat st;
	mode_t mask = umask(0);
	umask(mask);
	assert_int_equal(stat("script.png", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
	skep_store_close(store);
	synthetic_finish(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_kind_and_format),
		TEST(test_many_shapes),
		TEST(test_hostile_names),
		TEST(test_which_runs),
		TEST(test_targets),
		TEST(test_gnuplot_missing_or_failing),
		TEST(test_newest),
		TEST(test_legend),
		TEST(test_timeline),
		TEST(test_overview),
		TEST(test_overview_stacked),
		TEST(test_overview_delayed),
		TEST(test_rounds),
		TEST(test_script),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
