/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pareto.c - the picture of time against cost: which runs are on it, how they are joined, and the front against one found
 * the slow way.
 */
#include "tests/unit/plot_fixture.h"

#include "analysis/database.h"
#include "core/random.h"

struct made { /* a run; NAN: none */
	const char *text;
	uint64_t seed;
	double time_s, usd, target_s;
};

static int64_t put(struct skep_store *store, const struct made *made)
{
	struct synthetic s;
	int64_t run;
	char text[256];
	synthetic_init(&s, "made up", 4, 2);
	snprintf(text, sizeof text, "seed: %llu\n%s", (unsigned long long)made->seed, made->text);
	free(s.scenario.text);
	s.scenario.text = strdup(text);
	s.scenario.seed = made->seed;
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", false, false, &run, error, sizeof error));
	struct skep_summary summary = {.world = "sim",
		.time_s = made->time_s,
		.cost_usd = made->usd,
		.final_validation_loss = NAN,
		.time_to_target_s = made->target_s,
		.cost_to_target_usd = NAN,
		.final_loss = NAN,
		.ok = true};
	assert_true(skep_store_end(store, &summary, error, sizeof error));
	synthetic_finish(&s);
	return run;
}

static const char *pareto(struct skep_store *store, const int64_t *run, uint32_t runs, const char *metric)
{
	if (!skep_plot_metric(store, "pareto", run, runs, "script.png", NULL, metric, error, sizeof error))
		fail_msg("%s", error);
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
			1 + (double)skep_random_below(&random, 20), NAN};
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

static void test_seeds_are_joined_and_labels_have_what_varies(void **state)
{
	(void)state;
	static const struct made made[] = {
		{"schedule: {wiring: uniform, in_flight: 4}\n", 1, 10, 1, NAN},
		{"schedule: {wiring: uniform, in_flight: 4}\n", 2, 20, 3, NAN},
		{"schedule: {wiring: latency, in_flight: 4}\n", 1, 5, 4, NAN},
		{"schedule: {wiring: latency, in_flight: 4}\n", 2, 5, 4, NAN},
		{"schedule: {wiring: latency, in_flight: 4}\n", 3, 8, NAN, NAN}, /* nobody knows its price */
	};
	double row[8][2];
	struct skep_store *store = open_store();
	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
		put(store, &made[i]);
	play_gnuplot();
	const char *text = pareto(store, NULL, 0, NULL);
	assert_int_equal(block(text, "$dots", row), 4);
	assert_int_equal(block(text, "$points", row), 2);
	assert_true(row[0][0] == 2 && row[0][1] == 15 && row[1][0] == 4 && row[1][1] == 5);
	assert_non_null(strstr(text, "set title 'made up: time against cost'"));
	assert_non_null(strstr(text, "set label 'uniform' at first 2, first 15"));
	assert_non_null(strstr(text, "set label 'latency' at first 4, first 5"));
	assert_non_null(strstr(text, "Keys = 'wiring'"));
	assert_non_null(strstr(text, "Runs = '4 runs, those that differ by their seed joined in their mean; 1 without "
				     "a price are left out'"));
	skep_store_close(store);
}

static void refuses(struct skep_store *store, const int64_t *run, uint32_t runs, const char *metric, const char *phrase)
{
	assert_false(skep_plot_metric(store, "pareto", run, runs, "a.png", NULL, metric, error, sizeof error));
	if (!strstr(error, phrase))
		fail_msg("'%s' is not in: %s", phrase, error);
}

static void test_targets(void **state)
{
	(void)state;
	static const struct made made[] = {
		{"train: {until: {steps: 9}}\n", 1, 100, 10, 40},
		{"train: {until: {steps: 8}}\n", 1, 90, 8, NAN},
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
	static const struct made poor = {"name: poor\n", 1, 10, NAN, NAN}, rich = {"name: rich\n", 1, 10, 1, NAN};
	struct skep_store *store = open_store();
	refuses(store, NULL, 0, NULL, "no run that is done has a cost");
	int64_t run[2] = {put(store, &rich), put(store, &poor)};
	refuses(store, run, 2, NULL, "run 2 is not done, or has no cost");
	const int64_t none = 9;
	refuses(store, &none, 1, NULL, "there is no run 9");
	assert_int_equal(sqlite3_exec(skep_store_database(store),
				 "UPDATE runs SET rounds_planned = 7, cost_usd = 2 WHERE id = 2", NULL, NULL, NULL),
		SQLITE_OK);
	refuses(store, run, 2, NULL, "different numbers of samples");
	skep_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_front_is_what_nothing_beats),
		TEST(test_seeds_are_joined_and_labels_have_what_varies),
		TEST(test_targets),
		TEST(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
