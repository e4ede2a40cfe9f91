/* SPDX-License-Identifier: Apache-2.0
 *
 * test_planned.c - what `skep plan` may choose: which keys are free, how points are numbered, drawn and become assignments, the
 * front; and the forecast of time and cost until a loss, against looking at every round.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "planning/expected/expected.h"
#include "planning/problem/choices.h"
#include "planning/problem/forecast.h"
#include "scenarios/plan/loss.h"
#include "tests/unit/fresh.h"

static const char two[] = "scenarios/two-datacentres.yaml";
static const char law_path[] = "test_planned.law.yaml";

static void read_with(struct skep_scenario *ret, const char *const *set, uint32_t sets)
{
	struct skep_diag diag = {0};
	const struct skep_scenario_options options = {.set = set, .sets = sets, .any_memory = true};
	char text[2048] = "";
	if (!skep_scenario_read(two, &options, ret, &diag)) {
		skep_diag_print(&diag, text, sizeof text);
		fail_msg("%s", text);
	}
}

static const char search[] =
	"plan.search={sync.collective: [ring, butterfly], sync: [{method: step}, {method: diloco, every: 8}], "
	"schedule.microbatch: [16, 32, 64]}";

static void test_points_and_assignments(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_choices c;
	char name[256];
	read_with(&s, (const char *[]){search}, 1);
	skep_choices_make(s.planned, NULL, 0, &c);
	assert_int_equal(c.points, 12);
	/* `sync` first, or it would undo its collective. */
	char *first = skep_choices_assignment(&c, 11, 0);
	assert_string_equal(first, "sync={method: diloco, every: 8}");
	free(first);
	skep_choices_name(&c, 4, name, sizeof name);
	assert_string_equal(name, "sync={method: step}, sync.collective=butterfly, schedule.microbatch=32");
	for (uint32_t point = 0; point < c.points; point++)
		for (uint32_t k = 0; k < c.keys; k++) {
			uint32_t other = skep_choices_with(&c, point, k, 1);
			assert_int_equal(skep_choices_digit(&c, other, k), 1);
			for (uint32_t i = 0; i < c.keys; i++)
				if (i != k)
					assert_int_equal(
						skep_choices_digit(&c, other, i), skep_choices_digit(&c, point, i));
		}
	skep_scenario_finish(&s);
}

static uint32_t points_with(const struct skep_scenario *s, const char *set)
{
	struct skep_choices c;
	skep_choices_make(s->planned, &set, 1, &c);
	return c.points;
}

static void test_what_is_set_is_fixed(void **state)
{
	(void)state;
	struct skep_scenario s;
	read_with(&s, (const char *[]){search}, 1);
	assert_int_equal(points_with(&s, "schedule.microbatch=32"), 4);
	assert_int_equal(points_with(&s, "sync.collective=ring"), 3); /* `sync` would undo it */
	assert_int_equal(points_with(&s, "sync={method: step}"), 3);
	assert_int_equal(points_with(&s, "sync.delayed=true"), 6);
	assert_int_equal(points_with(&s, "schedule.micro=32"), 12);
	assert_int_equal(points_with(&s, "schedule.microbatches=32"), 12);
	skep_scenario_finish(&s);
}

static bool is_free(const struct skep_scenario *s, const char *key)
{
	for (uint32_t i = 0; s->planned && i < s->planned->free.keys; i++)
		if (strcmp(s->planned->free.key[i].key, key) == 0)
			return true;
	return false;
}

/* The scenario writes sync.method and sync.collective, and no wiring. */
static void test_auto_frees_what_is_not_written(void **state)
{
	(void)state;
	struct skep_scenario s;
	read_with(&s, NULL, 0);
	assert_null(s.planned);
	skep_scenario_finish(&s);
	read_with(&s, (const char *[]){"plan.search=auto"}, 1);
	assert_true(is_free(&s, "schedule.wiring") && is_free(&s, "schedule.in_flight"));
	assert_false(is_free(&s, "sync") || is_free(&s, "sync.collective") || is_free(&s, "schedule.microbatch"));
	skep_scenario_finish(&s);
	read_with(&s, (const char *[]){"plan.search=auto", "schedule.wiring=latency", "sync={compression: int8}"}, 3);
	assert_true(is_free(&s, "sync.collective"));
	assert_false(
		is_free(&s, "schedule.wiring") || is_free(&s, "sync")); /* throughput does not know what is learnt */
	skep_scenario_finish(&s);
}

static void test_draws_are_even_and_of_their_seed(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_choices c;
	uint32_t drawn[12], again[12], seen[12] = {0};
	read_with(&s, (const char *[]){search}, 1);
	skep_choices_make(s.planned, NULL, 0, &c);
	assert_int_equal(skep_choices_draw(&c, 1, 12, drawn), 12);
	for (uint32_t seed = 0; seed < 600; seed++) {
		assert_int_equal(skep_choices_draw(&c, seed, 4, drawn), 4);
		assert_int_equal(skep_choices_draw(&c, seed, 4, again), 4);
		assert_memory_equal(drawn, again, 4 * sizeof *drawn);
		for (uint32_t i = 0; i < 4; i++) {
			assert_true(i == 0 || drawn[i] > drawn[i - 1]);
			seen[drawn[i]]++;
		}
	}
	for (uint32_t i = 0; i < 12; i++)
		assert_in_range(seen[i], 150, 250); /* 200 is the mean, 11.5 its deviation */
	skep_scenario_finish(&s);
}

static void test_the_front(void **state)
{
	(void)state;
	const double time_s[] = {5, 3, 3, 4, 1, INFINITY, 2, 5}, usd[] = {1, 2, 2, 3, 9, 0, NAN, 1};
	const bool expected[] = {true, true, false, false, true, false, false, false};
	bool front[8];
	skep_choices_front(time_s, usd, 8, front);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(front[i], expected[i]);
}

/* ---- forecasts --------------------------------------------------------------------------------------------------- */

static void write_law(void)
{
	const struct skep_law law = {.model = "square-mlp",
		.reference = 100000,
		.first = 60,
		.value = {[SKEP_LAW_AMPLITUDE] = 2,
			[SKEP_LAW_EXPONENT] = 0.5,
			[SKEP_LAW_PERIOD] = 0.3,
			[SKEP_LAW_REPLICAS] = 0.2,
			[SKEP_LAW_STALENESS] = 0.4},
		.fixed = {"made", "made", "made", "made", "made", "made", "made"},
		.least = {0, 1, 1, 0, 1},
		.most = {1e6, 8, 2, 1, 1e4}};
	FILE *out = fopen(law_path, "w");
	assert_non_null(out);
	skep_law_write(&law, out);
	assert_int_equal(fclose(out), 0);
}

static const char *const by_law[] = {"train.arithmetic=law", "train.law.file=test_planned.law.yaml",
	"train.until.steps=400", "train.until.loss=2.5", "plan.objective=time-to-loss"};

static void forecast(const char *more, double step_s, struct skep_forecast *ret, uint32_t *ret_rounds)
{
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_diag error;
	uint32_t stage_of[8];
	const char *set[6];
	double at[SKEP_LAW_AXES];
	memcpy(set, by_law, sizeof by_law);
	set[5] = more;
	read_with(&s, set, more ? 6 : 5);
	assert_true(skep_planning_make(&s, &p, fresh(&error)));
	assert_true(skep_planning_start(&p, stage_of));
	skep_forecast_make(&p, stage_of, step_s, ret);
	*ret_rounds = 0;
	for (uint32_t round = 0; round < s.plan.rounds && *ret_rounds == 0; round++) {
		skep_loss_at(&s, round, s.plan.microbatches / 2, at);
		*ret_rounds = skep_law_loss(s.law, at) <= 2.5 ? round + 1 : 0;
	}
	skep_planning_finish(&p);
	skep_scenario_finish(&s);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_the_target_is_reached_when_the_law_says(void **state)
{
	(void)state;
	struct skep_forecast step, diloco, none;
	uint32_t rounds;
	write_law();
	forecast(NULL, 0.5, &step, &rounds);
	assert_true(rounds > 10 && step.rounds == rounds);
	assert_true(near(step.samples_per_s, 2048 / 0.5) && near(step.time_s, 0.5 * rounds));
	assert_true(near(step.usd, step.time_s / 3600 * step.usd_per_h) && !step.extrapolated);
	assert_true(near(skep_forecast_value(&step, SKEP_AIM_TIME), step.time_s));
	assert_true(near(skep_forecast_value(&step, SKEP_AIM_COST), step.usd));
	assert_true(near(skep_forecast_value(&step, SKEP_AIM_THROUGHPUT), 0.5 / 2048));
	/* Rounds of eight steps: more steps, since H costs some. */
	forecast("sync={method: diloco, every: 8}", 0.5, &diloco, &rounds);
	assert_true(diloco.rounds == rounds && rounds * 8 > step.rounds);
	assert_true(near(diloco.time_s, 0.5 * 8 * rounds) && !diloco.extrapolated);
	/* Not within the run, and not where the law was fitted. */
	forecast("train.until.loss=0.5", 0.5, &none, &rounds);
	assert_true(none.rounds == 0 && isinf(none.time_s) && isinf(skep_forecast_value(&none, SKEP_AIM_COST)));
	forecast("sync={method: diloco, every: 10}", 0.5, &diloco, &rounds);
	assert_true(diloco.rounds == rounds && diloco.extrapolated && strstr(diloco.how, "H = 10"));
	unlink(law_path);
}

/* Over a thin line a ring of four pays six ways; a butterfly two. Two at each site: one of them is the site's. */
static void test_collectives_differ(void **state)
{
	(void)state;
	static const char *const names[] = {"ring", "butterfly", "parameter-server", "hierarchical", "chain"};
	static const uint32_t stage_of[8] = {0, 1, 0, 1, 0, 1, 0, 1}; /* two of each stage at either site */
	double seconds[5];
	for (uint32_t i = 0; i < 5; i++) {
		struct skep_scenario s;
		struct skep_planning p;
		char set[64];
		struct skep_diag error;
		snprintf(set, sizeof set, "sync.collective=%s", names[i]);
		read_with(&s, (const char *[]){"model.stages=2", set}, 2);
		assert_true(skep_planning_make(&s, &p, fresh(&error)));
		seconds[i] = skep_forecast_reduction_s(&p, SKEP_UNCONTENDED, stage_of, 0);
		double bytes = p.reduced_bytes[0], rate_Bps = 25e6, delay_s = (8 * 0.010 + 4 * 0.05e-3) / 12;
		if (i == 0)
			assert_true(near(seconds[0], 6 * (delay_s + bytes / 4 / rate_Bps))); /* too few for segments */
		if (i == 1)
			assert_true(
				near(seconds[1], delay_s + fmax(1.5 * bytes / rate_Bps,
								   delay_s + 0.75 * bytes / rate_Bps * (1 + 1.0 / 8))));
		if (i == 3)
			assert_true(
				near(seconds[3], 2 * (0.010 + bytes / 2 / rate_Bps) + 2 * (0.05e-3 + bytes / 1.25e9)));
		if (i == 4) { /* tests/cli/sums.py; here the latency of six hops is longer than the vector on a link */
			double chunk_s = bytes / 8 / rate_Bps;
			assert_true(near(seconds[4], 6 * (delay_s + chunk_s) + 7 * chunk_s));
		}
		skep_planning_finish(&p);
		skep_scenario_finish(&s);
	}
	assert_true(seconds[1] < seconds[0] && seconds[3] < seconds[0] && seconds[2] > seconds[1]);
}

/* Four members: each merge goes down a chain of three hops in eight chunks, and four of them follow each other; half of it hides
 * behind a round of eight steps, as does all of it where passes take longer. */
static void test_merges_follow_each_other(void **state)
{
	(void)state;
	static const uint32_t stage_of[8] = {0, 1, 0, 1, 0, 1, 0, 1};
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_diag error;
	read_with(&s, (const char *[]){"model.stages=2", "sync={method: async, every: 8}"}, 2);
	assert_true(skep_planning_make(&s, &p, fresh(&error)));
	double bytes = p.reduced_bytes[0], delay_s = (8 * 0.010 + 4 * 0.05e-3) / 12, chunk_s = bytes / 8 / 25e6;
	double merges_s = 4 * (3 * (delay_s + chunk_s) + 7 * chunk_s);
	assert_int_equal(s.plan.reduction.chunks, 8);
	assert_true(near(skep_forecast_reduction_s(&p, SKEP_UNCONTENDED, stage_of, 0), merges_s));
	/* No barrier: what is merged meanwhile costs nothing as long as it is done within the round. */
	struct skep_expected e;
	assert_true(skep_expected_make(&p, stage_of, &e));
	assert_true(near(e.reduction_s, skep_forecast_reduction_s(&p, SKEP_CONTENDED, stage_of, 0) / 8));
	assert_true(near(e.step_s, fmax(e.flow_s, e.reduction_s) + e.update_s + e.turn_s));
	skep_planning_finish(&p);
	skep_scenario_finish(&s);
}

static struct skep_expected delayed_with(const char *optimizer, const char *batch)
{
	static const uint32_t stage_of[8] = {0};
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_diag error;
	struct skep_expected e;
	read_with(&s,
		(const char *[]){"model.stages=1", "sync.delayed=true", "train.arithmetic=none", optimizer, batch}, 5);
	assert_true(skep_planning_make(&s, &p, fresh(&error)));
	assert_true(skep_expected_make(&p, stage_of, &e));
	skep_planning_finish(&p);
	skep_scenario_finish(&s);
	return e;
}

/* The step is made beside the passes of the next round, and the next sum waits for it. */
static void test_a_delayed_sum_waits_for_the_update(void **state)
{
	(void)state;
	static const char adamw[] = "train.optimizer={name: adamw, lr: 0.001}",
			  sgd[] = "train.optimizer={name: sgd, lr: 0.001}";
	struct skep_expected slow = delayed_with(adamw, "schedule.global_batch=2048");
	struct skep_expected fast = delayed_with(sgd, "schedule.global_batch=2048");
	assert_true(slow.update_s > fast.update_s && slow.flow_s < slow.reduction_s);
	assert_true(fabs(slow.step_s - fast.step_s - (slow.update_s - fast.update_s)) < 1e-9);
	assert_true(slow.step_s > slow.reduction_s + slow.update_s);
	slow = delayed_with(adamw, "schedule.global_batch=65536");
	fast = delayed_with(sgd, "schedule.global_batch=65536");
	assert_true(slow.flow_s > slow.reduction_s + slow.update_s + slow.turn_s && near(slow.step_s, fast.step_s));
	assert_true(near(slow.step_s, slow.flow_s + slow.turn_s / 2));
}

/* Whatever is free can be fixed by itself, and no other key with it, but for what is inside of it. */
static void test_any_setting_can_be_fixed(void **state)
{
	(void)state;
	static const struct {
		const char *set;
		uint32_t points; /* that are left of 2 x 3 x 2 x 2 x 3 x 2 x 2 */
	} all[] = {{"schedule.microbatch=32", 144}, {"schedule.in_flight=8", 96}, {"schedule.wiring=latency", 144},
		{"schedule.compression=none", 144}, {"sync.method=step", 96}, {"sync.every=8", 96},
		{"sync.compression=none", 48}, {"sync={method: diloco, every: 4}", 48}, {"model.stages=2", 144},
		{"model={file: models/square-mlp.yaml, stages: 2}", 144}, {"train.arithmetic=none", 288}};
	struct skep_scenario s;
	struct skep_choices c;
	read_with(&s,
		(const char *[]){
			"plan.search={schedule.microbatch: [32, 64], schedule.in_flight: [4, 8, 16], schedule.wiring: "
			"[uniform, latency], schedule.compression: [none, fp16], sync: [{method: step}, {method: diloco, "
			"every: 8}, {method: async, every: 8}], sync.compression: [none, int8], model.stages: [2, 4]}"},
		1);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		skep_choices_make(s.planned, &all[i].set, 1, &c);
		if (c.points != all[i].points)
			fail_msg("%s leaves %u points, not %u", all[i].set, c.points, all[i].points);
		for (uint32_t k = 0; k < c.keys; k++)
			assert_int_not_equal(
				strncmp(c.free->key[c.key[k]].key, all[i].set, strcspn(all[i].set, "=")), 0);
	}
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points_and_assignments),
		cmocka_unit_test(test_what_is_set_is_fixed),
		cmocka_unit_test(test_auto_frees_what_is_not_written),
		cmocka_unit_test(test_draws_are_even_and_of_their_seed),
		cmocka_unit_test(test_the_front),
		cmocka_unit_test(test_the_target_is_reached_when_the_law_says),
		cmocka_unit_test(test_collectives_differ),
		cmocka_unit_test(test_merges_follow_each_other),
		cmocka_unit_test(test_a_delayed_sum_waits_for_the_update),
		cmocka_unit_test(test_any_setting_can_be_fixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
