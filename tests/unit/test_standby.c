/* SPDX-License-Identifier: Apache-2.0
 *
 * test_standby.c - machines that are out, and workers that stand by: what the reader makes of them, with and without a trace, and
 * what becomes of them in a simulation.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/summary/summary.h"
#include "scenarios/read/pool.h"
#include "sim/sim.h"
#include "tests/unit/fresh.h"

static const char two[] = "scenarios/two-datacentres.yaml", churn[] = "scenarios/churn.yaml";

static bool try_read(
	struct skep_scenario *ret, const char *path, const char *const *set, uint32_t sets, struct skep_diag *reterr)
{
	const struct skep_scenario_options options = {.set = set, .sets = sets};
	return skep_scenario_read(path, &options, ret, reterr);
}

static void read_with(struct skep_scenario *ret, const char *path, const char *stage_of)
{
	char set[256];
	struct skep_diag why;
	snprintf(set, sizeof set, "cluster.allocation={method: explicit, stage_of: %s}", stage_of);
	const char *const sets[] = {set, "train.arithmetic=none"};
	if (!try_read(ret, path, sets, 2, fresh(&why)))
		fail_msg("%s", why.message);
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* In all fields; between them there may be padding. */
static void expect_same(const struct skep_machine *a, const struct skep_machine *b)
{
	assert_true(a->place == b->place && a->gpu == b->gpu && a->up_Bps == b->up_Bps && a->down_Bps == b->down_Bps);
	assert_true(skep_machine_same_price(a, b) && a->instance_gpus == b->instance_gpus);
	assert_true(a->of_site == b->of_site && a->unsure == b->unsure && a->host == b->host);
}

static void test_who_is_out_is_not_there(void **state)
{
	(void)state;
	static const uint32_t machine[] = {0, 2, 3, 4, 7}, stage[] = {0, 2, 1, 3, 2};
	struct skep_scenario all, s;
	read_with(&all, two, "[0, 0, 1, 1, 2, 2, 3, 3]");
	read_with(&s, two, "[0, unused, 2, 1, 3, unused, unused, 2]");
	assert_int_equal(s.plan.workers, 5);
	assert_int_equal(s.topology.machines, 5);
	assert_int_equal(s.machines_out, 3);
	assert_int_equal(skep_pool_machines(&s), 8);
	assert_null(s.plan.stands_by);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(s.first_stage_of[i], stage[i]);
		assert_int_equal(skep_pool_machine(&s, i), machine[i]);
		expect_same(&s.topology.machine[i], &all.topology.machine[machine[i]]);
	}
	expect_same(&s.topology.machine[5], &all.topology.machine[8]);
	skep_scenario_finish(&all);
	skep_scenario_finish(&s);
}

static void test_who_stands_by_is_there(void **state)
{
	(void)state;
	struct skep_scenario s;
	read_with(&s, two, "[0, spare, 1, 2, -1, unused, 3, spare]");
	assert_int_equal(s.plan.workers, 7);
	assert_non_null(s.plan.stands_by);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(s.plan.stands_by[i], i == 1 || i == 6);
	assert_int_equal(s.first_stage_of[1], SKEP_NO_STAGE);
	assert_int_equal(s.first_stage_of[4], SKEP_NO_STAGE);
	skep_scenario_finish(&s);
}

/* What the trace does to the others is what it would have done. */
static void test_a_trace_without_who_is_out(void **state)
{
	(void)state;
	char list[128] = "[";
	struct skep_scenario all, s;
	size_t at = 0;
	uint32_t kept = 0;
	read_with(&all, churn, "[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]");
	const uint32_t out = all.churn.event[0].worker;
	for (uint32_t i = 0; i < 11; i++)
		strcat(strcat(list, i == out     ? "unused"
				    : i % 3 == 0 ? "0"
				    : i % 3 == 1 ? "1"
						 : "2"),
			i < 10 ? ", " : "]");
	read_with(&s, churn, list);
	for (size_t i = 0; i < all.churn.events; i++) {
		struct skep_churn_event event = all.churn.event[i];
		if (event.worker == out)
			continue;
		assert_true(at < s.churn.events);
		assert_int_equal(s.churn.event[at].at_ns, event.at_ns);
		assert_int_equal(s.churn.event[at].worker, event.worker - (event.worker > out));
		assert_int_equal(s.churn.event[at++].join, event.join);
	}
	assert_int_equal(at, s.churn.events);
	assert_true(at < all.churn.events);
	for (uint32_t i = 0; i < all.churn.presents; i++)
		if (all.churn.present[i] != out)
			assert_int_equal(s.churn.present[kept++], all.churn.present[i] - (all.churn.present[i] > out));
	assert_int_equal(kept, s.churn.presents);
	assert_int_equal(s.churn.joins + s.churn.leaves, at);
	skep_scenario_finish(&all);
	skep_scenario_finish(&s);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *set, *says;
	} cases[] = {
		{"[0, 1, 2, 3, 0, 1, 2, off]", "`off`: expected a stage, -1 for a spare that joins as soon as it can"},
		{"[0, 1, 2, unused, 0, 1, 2, spare]", "no worker serves stage 3"},
		{"[unused, unused, unused, unused, unused, unused, unused, unused]", "no worker serves stage 0"},
		{"[0, 1, 2, 3, 0, 1, 2]", "7 entries, the topology has 8 machines"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct skep_scenario s;
		char set[256];
		struct skep_diag why;
		snprintf(set, sizeof set, "cluster.allocation={method: explicit, stage_of: %s}", cases[i].set);
		const char *const sets[] = {set};
		assert_false(try_read(&s, two, sets, 1, fresh(&why)));
		if (!strstr(why.message, cases[i].says))
			fail_msg("%s: %s", cases[i].set, why.message);
	}
}

/* ---- a simulation ------------------------------------------------------------------------------------------------- */

static struct skep_summary simulate(struct skep_scenario *s)
{
	struct skep_sim_result result;
	struct skep_summary summary;
	struct skep_tally *tally = skep_tally_create(s, "sim");
	assert_non_null(tally);
	const struct skep_recorder recorder = skep_tally_recorder(tally);
	assert_true(skep_sim_run(s, &recorder, &result));
	skep_tally_finish(tally, result.end_ns, result.events, 0, result.outcome, &summary);
	skep_tally_destroy(tally);
	assert_true(summary.ok);
	return summary;
}

static double usd_per_h(const struct skep_summary *summary)
{
	return summary->cost_usd / summary->time_s * 3600;
}

/* Four T4 at 0.35 USD/h and four V100 at 2.48: a standby worker is paid for, one that is out is not, and none is
 * called. */
static void test_who_is_paid(void **state)
{
	(void)state;
	struct skep_scenario s;
	read_with(&s, two, "[0, 1, 2, 3, 0, 1, 2, spare]");
	s.plan.rounds = 6;
	struct skep_summary waits = simulate(&s);
	skep_scenario_finish(&s);
	read_with(&s, two, "[0, 1, 2, 3, 0, 1, 2, unused]");
	s.plan.rounds = 6;
	struct skep_summary out = simulate(&s);
	skep_scenario_finish(&s);
	assert_int_equal(waits.joins, 0);
	assert_true(fabs(usd_per_h(&waits) / 11.32 - 1) < 0.02);
	assert_true(fabs(usd_per_h(&out) / 8.84 - 1) < 0.02);
}

/* One of two is lost: who stands by comes, and only then, and the other one goes on standing by. */
static void test_who_is_called(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_churn_event lost = {.at_ns = 300000000, .worker = 4};
	uint32_t present[8];
	read_with(&s, two, "[0, 1, 2, 3, 0, 1, spare, spare]");
	assert_int_equal(simulate(&s).joins, 0);
	for (uint32_t i = 0; i < 8; i++)
		present[i] = i;
	s.has_trace = true;
	s.churn = (struct skep_churn){
		.event = &lost, .events = 1, .present = present, .presents = 8, .leaves = 1, .most = 8};
	struct skep_summary summary = simulate(&s);
	assert_int_equal(summary.joins, 1);
	s.has_trace = false;
	s.churn = (struct skep_churn){0};
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_out_is_not_there),
		cmocka_unit_test(test_who_stands_by_is_there),
		cmocka_unit_test(test_a_trace_without_who_is_out),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_who_is_paid),
		cmocka_unit_test(test_who_is_called),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
