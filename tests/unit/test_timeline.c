/* SPDX-License-Identifier: Apache-2.0
 *
 * test_timeline.c - what the timeline shows: of some rounds each operation, of a whole run bins of time.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/plot_fixture.h"

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
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(&s, &recorder);
	synthetic_op(&s, &recorder, SKEP_OP_STEP, SKEP_LANE_COMPUTE, 0, 0, 0, 1.1, 0.2);
	synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 1, 0, 1, 0.25, 0.4);
	synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 1, 0, 1, 0.7, 0.1);
	synthetic_op(&s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 1, 0, 2, -0.2, 0.08); /* beside a reduction */
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true};
	assert_true(skep_store_end(store, &summary, fresh(&error)));
	play_gnuplot();
	const char *text = script_of_rounds(store, "timeline", &(struct skep_plot_rounds){0});
	assert_non_null(strstr(text, "set xrange [0:130]"));
	assert_non_null(strstr(text, "\n110 130 -0.42 0.16 2\n"));
	assert_non_null(strstr(text, "\n125 130 0.58 1.16 0\n")); /* of the next round: cut */
	assert_null(strstr(text, "\n170 "));
	assert_non_null(strstr(text, "'stage 0'"));
	assert_null(strstr(text, "'stage 1'"));
	assert_non_null(strstr(text, "'stage 2'"));
	assert_non_null(strstr(text, "'sums of a reduction'"));
	/* From its first operation to the step; a strip while a pass goes on, else as high as a row. */
	assert_non_null(strstr(text, "\n82 110 -0.42 0.42 5\n"));
	assert_non_null(strstr(text, "\n82 88 2.20 2.42 5\n"));
	assert_non_null(strstr(text, "\n88 95 1.58 2.42 5\n"));
	assert_non_null(strstr(text, "Group[5] = 5\nTitle[5] = 'reduction under way'"));
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
		char *end; /* not sscanf(), which looks for the end of all of the text each time */
		strtod(line, &end);
		double y = strtod(end, &end);
		unsigned long colour = 0;
		for (int i = 0; i < 3; i++)
			colour = colour << 8 | strtoul(end, &end, 10);
		assert_true(*end == ' ' || *end == '\n'); /* all five were there */
		found += fabs(y - row) < 1e-6 && colour == rgb;
	}
	if (found < least)
		fail_msg("row %g has %d cells of colour %06x, not %d", row, found, rgb, least);
}

#define SECOND_NS(seconds) ((skep_time)((seconds)*1e9))

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
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder recorder = skep_store_recorder(store), quiet = recorder;
	quiet.op = NULL;
	quiet.life = NULL;
	synthetic_feed(&s, &quiet);
	for (uint32_t i = 0; i < 47; i++)
		recorder.life(recorder.context, i, 0, SECOND_NS(2));
	recorder.life(recorder.context, 47, 0, SECOND_NS(0.3)); /* the directory notices it a tenth later */
	recorder.life(recorder.context, 47, SECOND_NS(0.8), SECOND_NS(1.6));
	note(&s, &recorder, 0.4, SKEP_NOTE_FENCED, 47, 1);
	note(&s, &recorder, 0.8, SKEP_NOTE_ADMITTED, 47, 0);
	note(&s, &recorder, 1.2, SKEP_NOTE_JOINED, 47, 0);
	note(&s, &recorder, 1.6, SKEP_NOTE_LEFT, 47, 0);
	synthetic_op(&s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 0, 0, 47, 12, 4);
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true, .time_s = 2};
	assert_true(skep_store_end(store, &summary, fresh(&error)));
	play_gnuplot();
	const char *text = script_of(store, "timeline");
	assert_non_null(strstr(text, "'whole: run 1, simulated: the whole run, 20 rounds in 2 s'"));
	assert_non_null(strstr(text, "set xrange [0:2]"));
	assert_non_null(strstr(text, "panel = 1\n"));
	int fifth =
		(int)(0.4 / 0.0020972) - 3; /* bins are 2^21 ns long: 1.6 s in at most 1,024 of them, and 48 workers */
	assert_cells(text, 47, 0x8a8a8a, 2 * fifth + fifth / 4);
	assert_cells(text, 47, 0xcc79a7, fifth);
	assert_cells(text, 47, 0xe69f00, fifth);
	assert_cells(text, 47, 0xeeeeee, 3 * fifth / 4 - 3);
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
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder recorder = skep_store_recorder(store), quiet = recorder;
	quiet.op = NULL;
	synthetic_feed(&s, &quiet);
	for (int i = 0; i < 200; i++) { /* each millisecond */
		synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 0, 0, 2, i / 100.0, 0.0025);
		synthetic_op(&s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 0, 0, 2, i / 100.0 + 0.0025, 0.005);
	}
	note(&s, &recorder, 0.1, SKEP_NOTE_MIGRATED, 3, 0);
	note(&s, &recorder, 0.15, SKEP_NOTE_JOINED, 3, 0);
	struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true, .time_s = 0.2};
	assert_true(skep_store_end(store, &summary, fresh(&error)));
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

/* Steps that the reduce lane does, half of every bin, are drawn there and not in the compute lane. */
static void test_overview_delayed(void **state)
{
	(void)state;
	for (int delayed = 0; delayed < 2; delayed++) {
		struct synthetic s;
		int64_t run;
		struct skep_store *store = open_store();
		synthetic_init(&s, "delayed", 4, 2);
		s.rounds = 2;
		assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
		struct skep_recorder recorder = skep_store_recorder(store), quiet = recorder;
		quiet.op = NULL;
		synthetic_feed(&s, &quiet);
		for (int i = 0; i < 200; i++) { /* each millisecond */
			synthetic_op(&s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 0, 0, 2, i / 100.0, 0.005);
			synthetic_op(&s, &recorder, SKEP_OP_STEP, delayed ? SKEP_LANE_REDUCE : SKEP_LANE_COMPUTE, 0, 0,
				2, i / 100.0 + 0.005, 0.005);
		}
		struct skep_summary summary = {.world = "sim", .final_loss = NAN, .ok = true, .time_s = 0.2};
		assert_true(skep_store_end(store, &summary, fresh(&error)));
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
	assert_non_null(strstr(text, "Title[5] = 'reduction under way'"));
	/* In the highest row of pixels of the compute lane, 13 ms of each round. */
	assert_cells(text, -0.5 + 1.5 / 23, 0xa9dcc8, 20 * (13 / 2 - 2));
	text = script_of(store, "timeline");
	assert_non_null(strstr(text, "the first "));
	struct skep_plot_rounds beyond = {.first = 20, .last = 30};
	assert_false(plot_rounds(store, "timeline", NULL, 0, "a.png", &beyond, fresh(&error)));
	assert_non_null(strstr(error.message, "closed 20 rounds: there is no round 20"));
	assert_false(plot_rounds(store, "matrix", NULL, 0, "a.png", &beyond, fresh(&error)));
	assert_non_null(strstr(error.message, "--rounds is for the timeline"));
	skep_store_close(store);
	synthetic_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_timeline),
		TEST(test_overview),
		TEST(test_overview_stacked),
		TEST(test_overview_delayed),
		TEST(test_rounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
