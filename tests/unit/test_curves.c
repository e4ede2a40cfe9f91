/* SPDX-License-Identifier: Apache-2.0
 *
 * test_curves.c - the accuracy of many runs in one picture: which runs are taken together, their mean and band, the axes, and
 * what is refused.
 */
#include "analysis/store/database.h"
#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/plot_fixture.h"

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static const struct skep_plot_axes usual;

static int64_t record_run(
	struct skep_store *store, struct synthetic *s, const char *world, const char *text, double start)
{
	int64_t run;
	free(s->scenario.text);
	s->scenario.text = strdup(text);
	s->start_loss = start;
	sscanf(text, "seed: %lu", &s->scenario.seed);
	if (!skep_store_begin(store, &s->scenario, world, "cpu", true, true, &run, fresh(&error)))
		fail_msg("%s", error.message);
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(s, &recorder);
	struct skep_summary summary = {.world = world,
		.steps = s->rounds,
		.samples = 640,
		.tokens = s->scenario.model.sequence * 640ull,
		.final_loss = 1,
		.ok = true};
	if (!skep_store_end(store, &summary, fresh(&error)))
		fail_msg("%s", error.message);
	return run;
}

static char *draw(struct skep_store *store, const int64_t *run, uint32_t runs, const struct skep_plot_axes *axes)
{
	const struct skep_plot_choice choice = {.axes = axes};
	if (!skep_plot_chosen(store, "accuracy", run, runs, "curves.png", &choice, fresh(&error)))
		fail_msg("%s", error.message);
	return read_script("curves.png");
}

struct row {
	double x, mean, low, high;
};

/* Rows of block g of the data. */
static uint32_t rows_of(const char *script, uint32_t g, struct row *ret, uint32_t room)
{
	const char *at = strstr(script, "$mean << END\n");
	uint32_t count = 0;
	assert_non_null(at);
	at += strlen("$mean << END\n");
	for (uint32_t i = 0; i < g; i++) {
		at = strstr(at, "\n\n\n");
		assert_non_null(at);
		at += 3;
	}
	while (count < room && sscanf(at, "%lf %lf %lf %lf", &ret[count].x, &ret[count].mean, &ret[count].low,
				       &ret[count].high) == 4) {
		at = strchr(at, '\n') + 1;
		count++;
		if (*at == '\n')
			break;
	}
	return count;
}

/* The row nearest to x. */
static struct row row_at(const char *script, uint32_t g, double x)
{
	struct row row[256];
	uint32_t count = rows_of(script, g, row, 256), best = 0;
	assert_true(count > 0);
	for (uint32_t i = 1; i < count; i++)
		best = fabs(row[i].x - x) < fabs(row[best].x - x) ? i : best;
	return row[best];
}

static double loss_of(double start, double round)
{
	return start * pow(0.9, round) + 0.05;
}

/* Three seeds of one setting, two of another, and a real run of the first: three curves, two colours. */
static void test_groups(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "grouped", 4, 2);
	int64_t run[6];
	run[0] = record_run(store, &s, "sim", "seed: 1\nsync: {every: 8}\n", 40);
	run[1] = record_run(store, &s, "sim", "seed: 2\nsync: {every: 8}\n", 60);
	run[2] = record_run(store, &s, "real", "seed: 1\nsync: {every: 8}\n", 44);
	run[3] = record_run(store, &s, "sim", "seed: 3\nsync: {every: 8}\n", 80);
	run[4] = record_run(store, &s, "sim", "seed: 1\nsync: {every: 64}\n", 20);
	run[5] = record_run(store, &s, "sim", "seed: 2\nsync: {every: 64}\n", 30);
	play_gnuplot();
	const char *script = draw(store, run, 6, &usual);
	assert_non_null(strstr(script, "set title 'grouped: training loss against wall-clock time'"));
	assert_non_null(strstr(script, "Title[1] = '3 seeds, simulated, every 8"));
	assert_non_null(strstr(script, "Title[2] = 'run 3, real, cpu, paced, shaped, every 8"));
	assert_non_null(strstr(script, "Title[3] = '2 seeds, simulated, every 64"));
	assert_non_null(strstr(script, "Points[1] = 0") && strstr(script, "Points[2] = 1"));
	const char *first = strstr(script, "Colour[1] = "), *second = strstr(script, "Colour[2] = "),
		   *third = strstr(script, "Colour[3] = ");
	assert_memory_equal(first + 12, second + 12, 9);
	assert_memory_not_equal(first + 12, third + 12, 9);
	assert_non_null(strstr(script, "band: least to greatest; not smoothed"));
	assert_non_null(strstr(script, "target 1'"));      /* the scenario's */
	for (uint32_t round = 1; round < 19; round += 4) { /* closed after 0.1 (round + 1) s; half a bin off at most */
		struct row row = row_at(script, 0, 0.1 * (round + 1));
		double at = row.x / 0.1 - 1;
		assert_near(row.mean, loss_of(60, at), 0.1);
		assert_near(row.low, loss_of(40, at), 0.1);
		assert_near(row.high, loss_of(80, at), 0.1);
		row = row_at(script, 2, 0.1 * (round + 1));
		assert_near(row.mean, loss_of(25, row.x / 0.1 - 1), 0.1);
	}
	struct row row[256]; /* of a run alone all points, as they are */
	assert_int_equal(rows_of(script, 1, row, 256), 20);
	assert_near(row[0].x, 0.1, 1e-9);
	assert_near(row[0].mean, 44.05, 1e-9);
	assert_true(row[0].low == row[0].mean && row[0].high == row[0].mean);
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Ten seeds: the band leaves out the least and the greatest. Named runs with seeds need no option. */
static void test_percentiles(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "many seeds", 4, 2);
	int64_t run[11];
	for (int i = 0; i < 11; i++) {
		char text[32];
		snprintf(text, sizeof text, "seed: %d\n", i);
		run[i] = record_run(store, &s, "sim", text, 40 + 10 * i);
	}
	play_gnuplot();
	const char *script = draw(store, run, 11, NULL);
	assert_non_null(strstr(script, "10 to 90 %"));
	struct row row = row_at(script, 0, 0.1);
	double at = row.x / 0.1 - 1;
	assert_near(row.mean, loss_of(90, at), 0.2);
	assert_near(row.low, loss_of(50, at), 0.2);
	assert_near(row.high, loss_of(130, at), 0.2);
	script = draw(store, run, 1, NULL); /* and one run by itself */
	assert_non_null(strstr(script, "set title 'many seeds: training loss against wall-clock time'"));
	assert_non_null(strstr(script, "Title[1] = 'run 1, simulated'"));
	skep_store_close(store);
	synthetic_finish(&s);
}

static double only_number(struct skep_store *store, const char *sql, int64_t run)
{
	sqlite3_stmt *row = skep_store_query(store, sql, run, 0, fresh(&error));
	assert_true(row != NULL && skep_store_row(store, row));
	double number = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	return number;
}

static double first_x(struct skep_store *store, int64_t run, const char *x)
{
	struct row row[256];
	const struct skep_plot_axes axes = {.x = x, .log = "none"};
	assert_true(rows_of(draw(store, &run, 1, &axes), 0, row, 256) > 0);
	return row[0].x;
}

/* Runs that go on with each other, the last but one from before the end of what was done: each begins where the one before had
 * come to, in time and bytes, also over two of them. */
static void test_one_line(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "one line", 4, 2);
	int64_t run[3];
	for (uint32_t i = 0; i < 3; i++) {
		s.scenario.kept_as = 100 + i;
		s.scenario.kept_from = i > 0 ? 99 + i : 0;
		s.scenario.plan.first_round = 5 * i; /* it is told of rounds from 0 on in any case */
		run[i] = record_run(store, &s, "sim", "seed: 1\n", 40);
	}
	play_gnuplot();
	for (uint32_t i = 0; i < 3; i++) {
		static const char spent[] =
			"SELECT coalesce(sum(closed_s), 0) FROM rounds JOIN runs ON runs.continues = run"
			" AND round = first_round - 1 WHERE runs.id <= ?1";
		static const char bytes[] =
			"SELECT (SELECT total(rounds.bytes_sync) FROM rounds JOIN runs ON runs.continues = run"
			"  AND round = first_round - 1 WHERE runs.id <= ?1)"
			" - (SELECT total(bytes_sync) FROM v_before WHERE run = ?1)";
		double own = only_number(store, "SELECT min(closed_s) FROM rounds WHERE run = ?1", run[i]);
		double before = only_number(store, spent, run[i]);
		assert_near(before, i == 0 ? 0 : i == 1 ? 0.5 : 1.5, 1e-9);
		assert_near(first_x(store, run[i], "time"), before + own, 1e-9);
		assert_near(only_number(store, bytes, run[i]), 0, 0);
		assert_near(first_x(store, run[i], "steps"), 1, 0); /* as it is told */
		if (i > 0)
			assert_true(only_number(store, "SELECT continues FROM runs WHERE id = ?1", run[i]) ==
				    (double)run[i - 1]);
	}
	skep_store_close(store);
	synthetic_finish(&s);
}

/* To say what is usual changes nothing; without runs the newest of both worlds, or all where there is but one. */
static void test_one_form(void **state)
{
	(void)state;
	static const struct skep_plot_axes time = {.x = "time"};
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "one form", 4, 2);
	record_run(store, &s, "sim", "seed: 1\n", 40);
	record_run(store, &s, "sim", "seed: 1\nsync: {every: 8}\n", 50);
	play_gnuplot();
	for (int real = 0; real < 2; real++) {
		if (real)
			record_run(store, &s, "real", "seed: 1\n", 45);
		/* With a real run the pair of `compare`, which prefers two of the same text. */
		char *plain = strdup(draw(store, NULL, 0, NULL));
		assert_string_equal(draw(store, NULL, 0, &time), plain);
		assert_non_null(strstr(plain, "groups = 2\n"));
		assert_true((strstr(plain, "'run 2,") != NULL) == !real);
		assert_non_null(strstr(plain, "Colour[1] = '#0072B2'"));
		assert_non_null(strstr(plain, "Colour[2] = '#D55E00'")); /* of a world, or of other settings */
		assert_true(strstr(plain, "'run 1, simulated") != NULL);
		assert_true((strstr(plain, "'run 3, real") != NULL) == real);
		free(plain);
	}
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Where a loss stands on each axis, by its first and last row. */
static void expect_axis(struct skep_store *store, int64_t run, const struct skep_plot_axes *axes, double first,
	double last, double first_y, const char *label)
{
	struct row row[256];
	const char *script = draw(store, &run, 1, axes);
	uint32_t count = rows_of(script, 0, row, 256);
	assert_int_equal(count, 20);
	assert_near(row[0].x, first, 1e-6 * first);
	assert_near(row[19].x, last, 1e-6 * last);
	assert_near(row[0].mean, first_y, 1e-5 * first_y);
	if (!strstr(script, label))
		fail_msg("no `%s` in the script", label);
}

static void test_axes(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "axes", 4, 2);
	int64_t plain = record_run(store, &s, "sim", "seed: 1\n", 4);
	s.scenario.model.sequence = 16;
	int64_t run = record_run(store, &s, "sim", "sync: {method: diloco, every: 5}\n", 4);
	int64_t thirds = record_run(store, &s, "sim", "sync: {method: streaming, every: 7, fragments: 3}\n", 4);
	int64_t own = record_run(store, &s, "sim", "sync: {method: diloco, every: auto, mean_inner_steps: 3}\n", 4);
	play_gnuplot();
	struct skep_plot_axes axes = {0};
	expect_axis(store, run, &axes, 0.1, 2, 4.05, "time since the start of the run (s)");
	axes.x = "steps"; /* five inner ones in each round */
	expect_axis(store, run, &axes, 5, 100, 4.05, "optimizer steps");
	expect_axis(store, plain, &axes, 1, 20, 4.05, "optimizer steps");
	expect_axis(store, thirds, &axes, 2, 46, 4.05, "optimizer steps"); /* 2, 2, 3 in turn */
	expect_axis(store, own, &axes, 3, 60, 4.05, "optimizer steps");
	axes.x = "tokens"; /* 8 microbatches of 4 samples of 16 */
	expect_axis(store, run, &axes, 0.512, 10.24, 4.05, "'thousand tokens trained on");
	expect_axis(store, plain, &axes, 32, 640, 4.05, "'tokens trained on");
	axes.x = "bytes"; /* of each round its own, not a part of the run's: the first one sent least */
	expect_axis(store, run, &axes, 0.012, 1.76, 4.05, "between stages and in reductions (MB)");
	axes.x = "sync-bytes";
	expect_axis(store, run, &axes, 0.008, 1.68, 4.05, "sent by all workers in reductions (MB)");
	axes = (struct skep_plot_axes){.y = "perplexity", .log = "y"};
	expect_axis(store, run, &axes, 0.1, 2, exp(4.05), "training perplexity (logarithmic)");
	assert_non_null(strstr(read_script("curves.png"), "target 2.718")); /* of the loss 1 */
	axes.log = "none";
	assert_null(strstr(draw(store, &run, 1, &axes), "logscale"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* Runs whose ends differ by more than a factor of 10 have a logarithmic axis; settings of one number are shaded in its order. */
static void test_order(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	static const int every[] = {64, 1, 400, 8};
	int64_t run[4];
	for (int i = 0; i < 4; i++) {
		char text[64];
		synthetic_init(&s, "ordered", 4, 2);
		s.period_ns = UINT64_C(4000000000) / (skep_time)every[i];
		snprintf(text, sizeof text, "sync: {every: %d}\n", every[i]);
		run[i] = record_run(store, &s, "sim", text, 40);
		synthetic_finish(&s);
	}
	play_gnuplot();
	const char *script = draw(store, run, 4, &usual);
	assert_non_null(strstr(script, "set logscale x"));
	assert_non_null(strstr(script, "Title[1] = 'run 2, simulated, every 1"));
	assert_non_null(strstr(script, "Title[4] = 'run 3, simulated, every 400"));
	assert_non_null(strstr(script, "Colour[1] = '#440154'"));
	assert_non_null(strstr(script, "Colour[4] = '#c8d228'"));
	skep_store_close(store);
}

static void refuse(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs,
	const struct skep_plot_axes *axes, const char *expected)
{
	const struct skep_plot_choice choice = {.axes = axes};
	assert_false(skep_plot_chosen(store, kind, run, runs, "no.png", &choice, fresh(&error)));
	if (!strstr(error.message, expected))
		fail_msg("`%s` instead of `%s`", error.message, expected);
	assert_int_not_equal(access("no.png", F_OK), 0);
}

static void test_refusals(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	int64_t run[300];
	synthetic_init(&s, "refused", 4, 2);
	refuse(store, "accuracy", NULL, 0, &usual, "no run in the database has a loss");
	for (int i = 0; i < 26; i++) {
		char text[32];
		snprintf(text, sizeof text, "setting: %d\n", i);
		run[i] = record_run(store, &s, "sim", text, 40);
	}
	struct skep_plot_axes axes = {.x = "weeks"};
	refuse(store, "accuracy", run, 1, &axes, "--x weeks: expected time, steps, tokens, bytes, sync-bytes or cost");
	axes = (struct skep_plot_axes){.y = "regret"};
	refuse(store, "accuracy", run, 1, &axes, "--y regret: expected loss or perplexity");
	axes = (struct skep_plot_axes){.log = "z"};
	refuse(store, "accuracy", run, 1, &axes, "--log z: expected none, x, y or xy");
	axes = (struct skep_plot_axes){.y = "perplexity"};
	refuse(store, "accuracy", run, 1, &axes, "run 1 has no tokens, so there is no perplexity");
	refuse(store, "cost", run, 1, &axes, "are for accuracy, not for cost");
	refuse(store, "accuracy", run, 26, NULL, "more than 24 different settings");
	for (int i = 26; i < 300; i++)
		run[i] = 1;
	refuse(store, "accuracy", run, 300, NULL, "at most 256 runs");
	s.scenario.arithmetic = SKEP_ARITHMETIC_NONE;
	run[0] = record_run(store, &s, "sim", "seed: 1\n", 40);
	refuse(store, "accuracy", run, 1, &usual, "arithmetic: none");
	skep_store_close(store);
	synthetic_finish(&s);
}

/* A law is drawn over the runs that it is fitted to; what cannot be fitted is refused. */
static void test_fit(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "fit", 4, 2);
	s.rounds = s.scenario.plan.rounds = 120;
	int64_t run = record_run(store, &s, "sim", "seed: 1\n", 40);
	play_gnuplot();
	s.decay = 0.995;
	run = record_run(store, &s, "sim", "seed: 2\n", 40);
	if (!plot_rounds(store, "fit", &run, 1, "fit.png", NULL, fresh(&error)))
		fail_msg("%s", error.message);
	const char *script = read_script("fit.png");
	assert_non_null(strstr(script, "set title 'mlp: a law of the loss'"));
	assert_non_null(strstr(script, "Title[1] = 'H = 1, 2 replicas, staleness 0'"));
	assert_non_null(strstr(script, "$law << END\n"));
	assert_false(plot_rounds(store, "fit", (int64_t[]){77}, 1, "none.png", NULL, fresh(&error)));
	assert_non_null(strstr(error.message, "run 77 is not in the database"));
	skep_store_close(store);
	synthetic_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_groups),
		TEST(test_percentiles),
		TEST(test_one_line),
		TEST(test_one_form),
		TEST(test_axes),
		TEST(test_order),
		TEST(test_refusals),
		TEST(test_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
