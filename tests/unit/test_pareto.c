/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pareto.c - the picture of time against cost: which runs are on it, how they are joined, and the front against one found
 * the slow way.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/plot_fixture.h"

#include "analysis/store/database.h"
#include "core/random.h"

struct made { /* a run; NAN: none */
	const char *text;
	uint64_t seed;
	double time_s, usd, target_s, loss;
};

static int64_t put_in(struct skep_store *store, const struct made *made, const char *world)
{
	struct synthetic s;
	int64_t run;
	char text[256];
	synthetic_init(&s, "made up", 4, 2);
	snprintf(text, sizeof text, "seed: %llu\n%s", (unsigned long long)made->seed, made->text);
	free(s.scenario.text);
	s.scenario.text = strdup(text);
	s.scenario.seed = made->seed;
	assert_true(skep_store_begin(store, &s.scenario, world, "cpu", false, false, &run, fresh(&error)));
	struct skep_summary summary = {.world = world,
		.time_s = made->time_s,
		.cost_usd = made->usd,
		.final_validation_loss = NAN,
		.time_to_target_s = made->target_s,
		.cost_to_target_usd = NAN,
		.final_loss = made->loss > 0 ? made->loss : NAN,
		.ok = true};
	assert_true(skep_store_end(store, &summary, fresh(&error)));
	synthetic_finish(&s);
	return run;
}

static int64_t put(struct skep_store *store, const struct made *made)
{
	return put_in(store, made, "sim");
}

static const char *pareto(struct skep_store *store, const int64_t *run, uint32_t runs, const char *metric)
{
	if (!plot_metric(store, "pareto", run, runs, "script.png", NULL, metric, fresh(&error)))
		fail_msg("%s", error.message);
	return read_script("script.png");
}

/* Numbers of the rows of a block; returns how many there are. */
static uint32_t block(const char *text, const char *name, double ret[][2])
{
	char begin[32];
	uint32_t rows = 0;
	snprintf(begin, sizeof begin, "%s << END\n", name);
	const char *at = strstr(text, begin);
	assert_non_null(at);
	for (at += strlen(begin); sscanf(at, "%lf %lf", &ret[rows][0], &ret[rows][1]) == 2; at = strchr(at, '\n') + 1)
		rows++;
	return rows;
}

static void test_front_is_what_nothing_beats(void **state)
{
	(void)state;
	enum { RUNS = 60 };
	struct made made[RUNS];
	char text[RUNS][32];
	double row[RUNS][2];
	uint64_t random = 5;
	struct skep_store *store = open_store();
	for (uint32_t i = 0; i < RUNS; i++) {
		snprintf(text[i], sizeof text[i], "schedule: {in_flight: %u}\n", i);
		made[i] = (struct made){text[i], 7, 100 + (double)skep_random_below(&random, 20),
			1 + (double)skep_random_below(&random, 20), NAN, NAN};
		put(store, &made[i]);
	}
	play_gnuplot();
	uint32_t rows = block(pareto(store, NULL, 0, NULL), "$front", row);
	for (uint32_t i = 0; i < RUNS; i++) {
		bool beaten = false, shown = false;
		for (uint32_t j = 0; j < RUNS; j++)
			beaten = beaten || (made[j].usd <= made[i].usd && made[j].time_s <= made[i].time_s &&
						   (made[j].usd < made[i].usd || made[j].time_s < made[i].time_s));
		for (uint32_t k = 0; k < rows; k++)
			shown = shown || (row[k][0] == made[i].usd && row[k][1] == made[i].time_s);
		assert_int_equal(shown, !beaten);
	}
	for (uint32_t k = 1; k < rows; k++)
		assert_true(row[k][0] > row[k - 1][0] && row[k][1] < row[k - 1][1]);
	assert_int_equal(block(read_script("script.png"), "$dots", row), RUNS);
	skep_store_close(store);
}

/* The script of a picture of these runs. */
static const char *drawn(struct skep_store *store, const struct made *made, size_t runs)
{
	for (size_t i = 0; i < runs; i++)
		put(store, &made[i]);
	play_gnuplot();
	return pareto(store, NULL, 0, NULL);
}

static void test_seeds_are_joined_and_labels_have_what_varies(void **state)
{
	(void)state;
	static const struct made made[] = {
		{"schedule: {wiring: uniform, in_flight: 4}\n", 1, 10, 1, NAN, NAN},
		{"schedule: {wiring: uniform, in_flight: 4}\n", 2, 20, 3, NAN, NAN},
		{"schedule: {wiring: latency, in_flight: 4}\n", 1, 5, 4, NAN, NAN},
		{"schedule: {wiring: latency, in_flight: 4}\n", 2, 5, 4, NAN, NAN},
		{"schedule: {wiring: latency, in_flight: 4}\n", 3, 8, NAN, NAN, NAN}, /* its price is not known */
	};
	double row[8][2];
	struct skep_store *store = open_store();
	const char *text = drawn(store, made, sizeof made / sizeof made[0]);
	assert_int_equal(block(text, "$dots", row), 4);
	assert_int_equal(block(text, "$points", row), 2);
	assert_true(row[0][0] == 2 && row[0][1] == 15 && row[1][0] == 4 && row[1][1] == 5);
	assert_non_null(strstr(text, "set title 'made up: time against cost'"));
	assert_non_null(strstr(text, "set label 'wiring uniform' at first 2, first 15 left"));
	assert_non_null(strstr(text, "set label 'wiring latency' at first 4, first 5 left"));
	assert_non_null(strstr(text, "Runs = '4 runs, those that differ by their seed joined in their mean; 1 without "
				     "a price are left out'"));
	skep_store_close(store);
}

/* A label has what its own run has, however many settings differ, and not what another one has; what was searched for tells no
 * runs apart. */
static void test_labels_have_what_is_set(void **state)
{
	(void)state;
	static const struct made made[] = {
		{"model: {stages: 1}\nschedule: {pipeline: swarm}\n", 1, 10, 1, NAN, NAN},
		{"plan: {objective: throughput}\nmodel: {stages: 2}\nschedule: {pipeline: gpipe, a: 1, b: 2, c: 3}\n"
		 "sync: {d: 4, e: 5}\n",
			1, 5, 2, NAN, NAN},
		{"schedule: {pipeline: gpipe, b: 2, c: 3}\nmodel: {stages: 3}\nsync: {d: 4, e: 5}\ntrain: {f: 6}\n", 1,
			4, 4, NAN, NAN},
		{"model: {stages: 1}\nschedule: {pipeline: swarm}\nplan:\n  objective: cost\n  search: {}\n", 1, 12, 3,
			NAN, NAN},
	};
	double row[8][2];
	struct skep_store *store = open_store();
	const char *text = drawn(store, made, sizeof made / sizeof made[0]);
	assert_int_equal(block(text, "$points", row), 3);
	assert_null(strstr(text, "objective"));
	assert_non_null(
		strstr(text, "'stages 1, pipeline swarm, a default, b default, c default' at first 2, first 11"));
	assert_non_null(strstr(text, "'stages 2, pipeline gpipe, a 1, b 2, c 3' at first 2, first 5"));
	assert_non_null(strstr(text, "'stages 3, pipeline gpipe, a default, b 2, c 3' at first 4, first 4"));
	assert_non_null(strstr(text, "more settings differ than labels have"));
	skep_store_close(store);
}

/* A prediction that is a little faster and cheaper than what it predicts does not beat it. */
static void test_worlds_have_fronts_of_their_own(void **state)
{
	(void)state;
	static const struct made sim = {"schedule: {in_flight: 4}\n", 1, 10, 1, NAN, 3},
				 real = {"schedule: {in_flight: 4}\n", 1, 11, 1.1, NAN, 3};
	double row[8][2];
	struct skep_store *store = open_store();
	put_in(store, &sim, "sim");
	put_in(store, &real, "real");
	play_gnuplot();
	const char *text = pareto(store, NULL, 0, NULL);
	assert_int_equal(block(text, "$front", row), 1);
	assert_true(row[0][1] == 10);
	assert_int_equal(block(text, "$other", row), 1);
	assert_true(row[0][1] == 11);
	assert_non_null(strstr(text, "set label 'simulated' at first 1,"));
	assert_non_null(strstr(text, "set label 'real, cpu' at first 1.1,"));
	skep_store_close(store);
}

static void test_other_losses_are_said(void **state)
{
	(void)state;
	static const struct made made[] = {
		{"schedule: {in_flight: 4}\n", 1, 10, 1, NAN, 3.4},
		{"schedule: {in_flight: 4}\n", 2, 10, 1, NAN, 3.6},
		{"schedule: {in_flight: 8}\n", 1, 9, 2, NAN, 3.6},
		{"schedule: {in_flight: 16}\n", 1, 8, 3, NAN, 4.7},
	};
	struct skep_store *store = open_store();
	for (size_t i = 0; i < 3; i++)
		put(store, &made[i]);
	play_gnuplot();
	assert_non_null(strstr(pareto(store, NULL, 0, NULL), "Warning = ''")); /* no more than the seeds differ */
	put(store, &made[3]);
	assert_non_null(strstr(pareto(store, NULL, 0, NULL),
		"Warning = 'but final losses differ, 3.5 to 4.7: set train.target_loss to compare the time to it'"));
	skep_store_close(store);
}

/* Labels stand beside each other, and on no other dot. */
static void test_labels_cover_no_other(void **state)
{
	(void)state;
	struct at {
		double x, y;
		int left;
	} seen[16];
	uint32_t labels = 0;
	char text[64];
	struct skep_store *store = open_store();
	for (int i = 0; i < 12; i++) {
		snprintf(text, sizeof text, "schedule: {in_flight: %d}\n", 100 + i);
		put(store, &(struct made){text, 1, i < 11 ? 10 + 0.5 * i : 20, i < 11 ? 1 + 0.05 * i : 2, NAN, NAN});
	}
	play_gnuplot();
	const char *at = pareto(store, NULL, 0, NULL);
	while ((at = strstr(at, "set label 'in_flight ")) != NULL) {
		char side[8];
		double up, along;
		at += strlen("set label 'in_flight 1xx' ");
		struct at *s = &seen[labels];
		assert_int_equal(
			sscanf(at, "at first %lf, first %lf %7s offset %lf, %lf", &s->x, &s->y, side, &along, &up), 5);
		s->left = side[0] == 'l';
		s->y += up * 0.34; /* a line is 0.34 of these 10 */
		for (uint32_t i = 0; i < labels; i++)
			assert_true(s->left != seen[i].left || fabs(s->y - seen[i].y) > 0.25 ||
				    fabs(s->x - seen[i].x) > 0.1);
		for (int i = 0; i < 11; i++) { /* of those that are near, none is where its letters are */
			double dx = 1 + 0.05 * i - s->x, dy = 10 + 0.5 * i - s->y;
			assert_true(fabs(dy) > 0.17 || (s->left ? dx < 0.005 || dx > 0.12 : dx > -0.005 || dx < -0.12));
		}
		labels++;
	}
	assert_in_range(labels, 3, 12);
	skep_store_close(store);
}

/* What a point does not set is said where others set it, but not of a method that it does not have. */
static void test_labels_say_defaults(void **state)
{
	(void)state;
	static const struct made made[] = {
		{"schedule: {in_flight: 16}\nsync: {method: step}\n", 1, 10, 1, NAN, NAN},
		{"schedule: {in_flight: 16, wiring: latency}\nsync: {method: step}\n", 1, 8, 2, NAN, NAN},
		{"schedule: {in_flight: 16}\nsync: {method: diloco, every: 8}\n", 1, 5, 3, NAN, NAN},
	};
	struct skep_store *store = open_store();
	const char *text = drawn(store, made, sizeof made / sizeof made[0]);
	assert_non_null(strstr(text, "set label 'wiring default, sync step' at first 1,"));
	assert_non_null(strstr(text, "set label 'wiring latency, sync step' at first 2,"));
	assert_non_null(strstr(text, "set label 'wiring default, sync diloco, every 8' at first 3,"));
	skep_store_close(store);
}

/* Of points at one place the later labels are at the end of lines; those that find none are counted. */
static void test_labels_are_led_to(void **state)
{
	(void)state;
	enum { POINTS = 20 };
	char text[64];
	uint32_t lines = 0, labels = 0;
	struct skep_store *store = open_store();
	for (int i = 0; i < POINTS; i++) {
		snprintf(text, sizeof text, "schedule: {in_flight: %d}\n", 100 + i);
		put(store, &(struct made){text, 1, i ? 10 : 20, i ? 1 : 2, NAN, NAN});
	}
	play_gnuplot();
	const char *script = pareto(store, NULL, 0, NULL);
	for (const char *at = script; (at = strstr(at, "set label 'in_flight")) != NULL; at++)
		labels++;
	for (const char *at = script; (at = strstr(at, "set arrow from first 1, first 10 rto character ")) != NULL;
		at++)
		lines++;
	assert_in_range(lines, 2, 10);
	assert_in_range(labels, lines + 2, POINTS - 1);
	snprintf(text, sizeof text, "; %u without room for a label'", POINTS - labels);
	assert_non_null(strstr(script, text));
	skep_store_close(store);
}

static void refuses(struct skep_store *store, const int64_t *run, uint32_t runs, const char *metric, const char *phrase)
{
	assert_false(plot_metric(store, "pareto", run, runs, "a.png", NULL, metric, fresh(&error)));
	if (!strstr(error.message, phrase))
		fail_msg("'%s' is not in: %s", phrase, error.message);
}

static void test_targets(void **state)
{
	(void)state;
	static const struct made made[] = {
		{"train: {until: {steps: 9}}\n", 1, 100, 10, 40, NAN},
		{"train: {until: {steps: 8}}\n", 1, 90, 8, NAN, NAN},
	};
	double row[8][2];
	struct skep_store *store = open_store();
	int64_t run[2];
	for (size_t i = 0; i < 2; i++)
		run[i] = put(store, &made[i]);
	play_gnuplot();
	const char *text = pareto(store, NULL, 0, NULL);
	assert_int_equal(block(text, "$dots", row), 1);
	assert_true(row[0][1] == 40);
	assert_non_null(strstr(text, "1 did not reach their target"));
	assert_int_equal(block(pareto(store, run, 2, "time_s"), "$dots", row), 2);
	refuses(store, run + 1, 1, "time_to_target_s", "no run reached its target loss");
	refuses(store, run, 1, "utilisation", "time_s or time_to_target_s");
	skep_store_close(store);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct made poor = {"name: poor\n", 1, 10, NAN, NAN, NAN},
				 rich = {"name: rich\n", 1, 10, 1, NAN, NAN};
	struct skep_store *store = open_store();
	refuses(store, NULL, 0, NULL, "no run that is done has a cost");
	int64_t run[2] = {put(store, &rich), put(store, &poor)};
	refuses(store, run, 2, NULL, "run 2 is not done, or has no cost");
	const int64_t none = 9;
	refuses(store, &none, 1, NULL, "there is no run 9");
	refuses(store, (const int64_t[]){1, none}, 2, NULL, "there is no run 9");
	assert_int_equal(sqlite3_exec(skep_store_database(store),
				 "UPDATE runs SET rounds_planned = 7, cost_usd = 2 WHERE id = 2", NULL, NULL, NULL),
		SQLITE_OK);
	refuses(store, run, 2, NULL, "different numbers of samples");
	skep_store_close(store);
}

/* 84 steps of 32 microbatches in rounds of 3.5, 7/3 and 1 of them; then one step more. */
static void test_streams_have_the_same_work(void **state)
{
	(void)state;
	static const struct {
		uint32_t fragments, rounds, microbatches;
	} stream[] = {{2, 24, 112}, {3, 36, 75}, {7, 84, 32}, {7, 85, 32}};
	struct skep_store *store = open_store();
	int64_t run[4];
	double row[8][2];
	for (size_t i = 0; i < 4; i++) {
		char text[96], sql[128];
		snprintf(
			text, sizeof text, "sync: {method: streaming, every: 7, fragments: %u}\n", stream[i].fragments);
		run[i] = put(store, &(struct made){text, 1, 10, 1, NAN, NAN});
		snprintf(sql, sizeof sql, "UPDATE runs SET rounds_planned = %u, microbatches = %u WHERE id = %lld",
			stream[i].rounds, stream[i].microbatches, (long long)run[i]);
		assert_int_equal(sqlite3_exec(skep_store_database(store), sql, NULL, NULL, NULL), SQLITE_OK);
	}
	play_gnuplot();
	assert_int_equal(block(pareto(store, run, 3, NULL), "$dots", row), 3);
	refuses(store, run + 2, 2, NULL, "different numbers of samples");
	skep_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_front_is_what_nothing_beats),
		TEST(test_seeds_are_joined_and_labels_have_what_varies),
		TEST(test_labels_have_what_is_set),
		TEST(test_worlds_have_fronts_of_their_own),
		TEST(test_other_losses_are_said),
		TEST(test_labels_cover_no_other),
		TEST(test_labels_say_defaults),
		TEST(test_labels_are_led_to),
		TEST(test_targets),
		TEST(test_streams_have_the_same_work),
		TEST(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
