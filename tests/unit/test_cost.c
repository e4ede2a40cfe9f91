/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cost.c - what a run costs while workers come and go and prices change, against sums computed by hand.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/store_fixture.h"

#include "analysis/summary/summary.h"

#define HALF_HOUR (1800 * (skep_time)1000000000u)

/* Three workers, four rounds of an hour. Worker 0 costs 0.5 USD/h. The others have a history: 1 USD/h, from 2 h on 3, from
 * 3 h on 0.25; the run starts half an hour into it, so in its own time prices change after 1.5 and 2.5 h. */
static void init(struct synthetic *s, struct skep_price_series *series)
{
	static struct skep_price_step step[] = {{0, 1}, {4 * HALF_HOUR, 3}, {6 * HALF_HOUR, 0.25}};
	synthetic_init(s, "priced", 3, 1);
	s->period_ns = 2 * HALF_HOUR;
	s->rounds = 4;
	*series = (struct skep_price_series){.step = step, .steps = 3};
	s->scenario.topology.price = series;
	s->scenario.topology.prices = 1;
	s->scenario.topology.machine[0].price_usd_per_h = 0.5;
	s->scenario.topology.machine[1].prices = s->scenario.topology.machine[2].prices = 1;
	assert_null(skep_topology_start_prices(&s->scenario.topology, HALF_HOUR));
}

/* Worker 0 is there all the time; 1 from 0.5 to 1 h and from 1.25 to 3 h; 2 from 2 h on. Told as they end. */
static void feed(const struct synthetic *s, const struct skep_recorder *r)
{
	for (uint32_t round = 0; round < s->rounds; round++)
		synthetic_round(s, r, round, true);
	r->life(r->context, 1, HALF_HOUR, 2 * HALF_HOUR);
	r->life(r->context, 1, 5 * HALF_HOUR / 2, 6 * HALF_HOUR);
	r->life(r->context, 0, 0, 8 * HALF_HOUR);
	r->life(r->context, 2, 4 * HALF_HOUR, 8 * HALF_HOUR);
}

static struct skep_summary run(struct synthetic *s, const char *path)
{
	int64_t id;
	struct skep_summary summary;
	struct skep_store *store = must_open(path, true);
	struct skep_tally *tally = skep_tally_create(&s->scenario, "sim");
	struct skep_recorder_pair pair = {skep_store_recorder(store), skep_tally_recorder(tally)};
	struct skep_recorder recorder = skep_recorder_both(&pair);
	assert_true(skep_store_begin(store, &s->scenario, "sim", "cpu", 0, 0, &id, fresh(&error)));
	feed(s, &recorder);
	skep_tally_finish(tally, 8 * HALF_HOUR, 1, 0, SKEP_DONE, &summary);
	if (!skep_store_end(store, &summary, fresh(&error)))
		fail_msg("%s", error.message);
	skep_tally_destroy(tally);
	skep_store_close(store);
	return summary;
}

/* 0: 4 x 0.5 = 2. 1: 0.5 x 1, then 0.25 x 1 + 1 x 3 + 0.5 x 0.25, together 3.875. 2: 0.5 x 3 + 1.5 x 0.25 = 1.875. */
static void test_come_and_go(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_price_series series;
	init(&s, &series);
	struct skep_summary summary = run(&s, "a.db");
	assert_true(fabs(summary.cost_usd - 7.75) < 1e-12);
	assert_int_equal(query("a.db", "SELECT round(cost_usd * 1e9) FROM runs"), 7750000000);
	assert_int_equal(query("a.db", "SELECT count(*) FROM incarnations"), 4);
	assert_int_equal(
		query("a.db", "SELECT round(sum(cost_usd) * 1e9) FROM incarnations WHERE worker = 1"), 3875000000);
	assert_int_equal(
		query("a.db", "SELECT round(cost_usd * 1e9) FROM incarnations WHERE worker = 2 AND started_s = 7200"),
		1875000000);
	/* After 1 h: 0.5 and 0.5. After 2: 1 and 0.5 + 0.25 + 1.5. After 3: 1.5, 3.875, 1.5 + 0.125. */
	static const int64_t micro[] = {1000000, 3250000, 7000000, 7750000};
	for (int i = 0; i < 4; i++) {
		char sql[96];
		snprintf(sql, sizeof sql, "SELECT round(cost_usd * 1e6) FROM rounds WHERE round = %d", i);
		assert_int_equal(query("a.db", sql), micro[i]);
	}
	assert_int_equal(query("a.db", "SELECT price_usd_per_h * 100 FROM workers WHERE worker = 1"), 100);
	synthetic_finish(&s);
}

/* One price that is not known, though of a machine that was never there: the whole is not known, each life's is. */
static void test_unknown(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_price_series series;
	init(&s, &series);
	s.scenario.topology.machine[0].price_usd_per_h = 0;
	struct skep_summary summary = run(&s, "a.db");
	assert_true(isnan(summary.cost_usd));
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds WHERE cost_usd IS NULL"), 4);
	assert_int_equal(query("a.db", "SELECT count(*) FROM incarnations WHERE cost_usd IS NULL"), 1);
	struct skep_store *store = must_open("a.db", false);
	int64_t one = 1;
	assert_false(plot_rounds(store, "cost", NULL, 0, "a.png", NULL, fresh(&error)));
	assert_non_null(strstr(error.message, "no run in the database has a cost"));
	assert_false(plot_rounds(store, "cost", &one, 1, "a.png", NULL, fresh(&error)));
	assert_non_null(strstr(error.message, "the price of a machine is not known"));
	skep_store_close(store);
	synthetic_finish(&s);
}

/* `cat` plays gnuplot. */
static void test_picture(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_price_series series;
	char text[8192] = "", path[4096];
	init(&s, &series);
	run(&s, "a.db");
	mkdir("bin", 0777);
	FILE *file = fopen("bin/gnuplot", "w");
	assert_non_null(file);
	fputs("#!/bin/sh\nexec cat\n", file);
	fclose(file);
	chmod("bin/gnuplot", 0755);
	const char *before = getenv("PATH");
	snprintf(path, sizeof path, "bin:%s", before);
	char *kept = strdup(before);
	setenv("PATH", path, 1);
	struct skep_store *store = must_open("a.db", false);
	if (!plot_rounds(store, "cost", NULL, 0, "a.png", NULL, fresh(&error)))
		fail_msg("%s", error.message);
	setenv("PATH", kept, 1);
	free(kept);
	skep_store_close(store);
	file = fopen("a.png", "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	assert_non_null(strstr(text, "'priced: cost against time'"));
	assert_non_null(strstr(text, "$cost << END\n0 0\n1 1\n2 3.25\n3 7\n4 7.75\n"));
	assert_non_null(strstr(text, "'run 1, simulated'"));
	synthetic_finish(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_come_and_go),
		TEST(test_unknown),
		TEST(test_picture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
