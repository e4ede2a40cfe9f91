/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ends.c - what ends a run before its rounds are over: a time, and money that machines, by prices which
 * change, and traffic cost.
 */
#include "directory_fixture.h"

enum { WORKERS = 4 };

/* The four workers of directory_fixture.h pay 3.6 USD an hour, which is 1 millionth of a dollar a millisecond; workers 2 and 3
 * twice that from 5 s on. */
static const struct skep_price_at price[] = {{0, 3600000}, {0, 3600000}, {5000, 7200000}};
static const uint32_t price_of[WORKERS] = {0, 0, 1, 1}, price_first[] = {0, 1, 3};

static void begin_with(struct fixture *f, uint64_t budget_microusd, skep_time end_ns)
{
	fixture_init(f, WORKERS, 2, DIRECTORY);
	f->plan.until.budget_microusd = budget_microusd;
	f->plan.price.of = price_of;
	f->plan.price.first = price_first;
	f->plan.price.step = price;
	f->plan.until.end_ns = end_ns;
	fixture_start(f);
}

/* Closes round 0 at that time; is the run over? */
static bool is_over_after(struct fixture *f, skep_time at_ns)
{
	f->now = at_ns;
	finish(f, 0, 0, true);
	finish(f, 0, 1, true);
	finish(f, 2, 2, true);
	finish(f, 2, 3, true);
	tally(f, 0, 1, 3);
	tally(f, 2, 1, 12);
	tally(f, 1, 1, 5);
	tally(f, 3, 1, 10);
	return skep_node_outcome(f->node) == SKEP_DONE;
}

static bool is_spent(uint64_t budget_microusd, skep_time at_ns)
{
	struct fixture f;
	begin_with(&f, budget_microusd, 0);
	bool over = is_over_after(&f, at_ns);
	fixture_finish(&f);
	return over;
}

/* Four machines of 1 microdollar a millisecond for a second, and 250 microdollars of traffic: the newest figure counts. */
static void test_traffic_comes_on_top(void **state)
{
	(void)state;
	for (uint64_t more = 0; more < 2; more++) {
		struct fixture f;
		begin_with(&f, 4250 + more, 0);
		fixture_event(&f, (struct skep_event){.kind = SKEP_EVENT_EGRESS, .u.egress_microusd = 100});
		fixture_event(&f, (struct skep_event){.kind = SKEP_EVENT_EGRESS, .u.egress_microusd = 250});
		assert_int_equal(is_over_after(&f, SECOND_NS), !more);
		fixture_finish(&f);
	}
}

/* Traffic alone may be more than there was to spend; it ends the run with a round, not before. */
static void test_traffic_alone(void **state)
{
	struct fixture f;
	(void)state;
	begin_with(&f, 5000, 0);
	fixture_event(&f, (struct skep_event){.kind = SKEP_EVENT_EGRESS, .u.egress_microusd = 7000});
	assert_int_equal(skep_node_outcome(f.node), SKEP_RUNNING);
	assert_true(is_over_after(&f, SECOND_NS));
	fixture_finish(&f);
}

static void test_time(void **state)
{
	struct fixture f;
	(void)state;
	for (int late = 0; late < 2; late++) {
		begin_with(&f, 0, SECOND_NS);
		assert_int_equal(is_over_after(&f, SECOND_NS - 1 + (skep_time)late), late);
		fixture_finish(&f);
	}
}

static void test_money_of_four(void **state)
{
	(void)state;
	assert_true(is_spent(4000, SECOND_NS)); /* 4 machines, 1000 ms each */
	assert_false(is_spent(4001, SECOND_NS));
	assert_false(is_spent(0, 4 * SECOND_NS));
}

/* 2 * 8000, and 2 * (5000 + 2 * 3000). No machine has been silent for too long by then. */
static void test_a_price_that_changes(void **state)
{
	struct fixture f;
	(void)state;
	for (uint64_t more = 0; more < 2; more++) {
		begin_with(&f, 38000 + more, 0);
		f.plan.liveness.fence_after_ns = 100 * SECOND_NS;
		assert_int_equal(is_over_after(&f, 8 * SECOND_NS), !more);
		fixture_finish(&f);
	}
}

/* Worker 3 is gone from 1 s to 2 s, and its new process was started at 1.5 s: it has cost 1000 + 500 ms by then. */
static void test_who_is_gone_costs_nothing(void **state)
{
	struct fixture f;
	(void)state;
	for (uint64_t more = 0; more < 2; more++) {
		begin_with(&f, 3 * 3000 + 1000 + 1500 + more, 0);
		f.now = SECOND_NS;
		suspect(&f, 3);
		f.now = 2 * SECOND_NS;
		join(&f, 3, 0, SECOND_NS + SECOND_NS / 2);
		f.now = 3 * SECOND_NS;
		finish(&f, 0, 0, true);
		finish(&f, 0, 1, true);
		finish(&f, 2, 2, true);
		finish(&f, 2, 3, true);
		tally(&f, 0, 1, 3);
		tally(&f, 2, 1, 12);
		tally(&f, 1, 1, 15);
		assert_int_equal(skep_node_outcome(f.node) == SKEP_DONE, !more);
		fixture_finish(&f);
	}
}

/* Four workers of 642,857 microdollars an hour have cost 17,999,996 of the 18,000,000 that 5 microdollars are after 7 ms, and the
 * next thing that happens, a ms later, is more than enough. */
static void test_no_one_pays_more_than_it_costs(void **state)
{
	static const struct skep_price_at odd[] = {{0, 642857}};
	static const uint32_t of[WORKERS] = {0, 0, 0, 0}, first[] = {0, 1};
	(void)state;
	for (skep_time ms = 7; ms <= 8; ms++) {
		struct fixture f;
		begin_with(&f, 5, 0);
		f.plan.price.of = of;
		f.plan.price.first = first;
		f.plan.price.step = odd;
		assert_int_equal(is_over_after(&f, ms * 1000000), ms == 8);
		fixture_finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_traffic_comes_on_top),
		cmocka_unit_test(test_traffic_alone), cmocka_unit_test(test_time), cmocka_unit_test(test_money_of_four),
		cmocka_unit_test(test_a_price_that_changes), cmocka_unit_test(test_who_is_gone_costs_nothing),
		cmocka_unit_test(test_no_one_pays_more_than_it_costs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
