/* SPDX-License-Identifier: Apache-2.0
 *
 * test_candidates.c - which candidate is expected to have the lowest loss (core/methods/candidates.h), against a
 * straight line in floating point; and a candidate that is kept while its round is open, event by event.
 */
#include <math.h>

#include "core/methods/candidates.h"
#include "directory_fixture.h"

static int64_t expected(const int64_t *loss_nano, uint32_t rounds)
{
	struct skep_candidate_points points;
	skep_candidates_begin(&points);
	for (uint32_t i = 0; i < rounds; i++) {
		if (loss_nano[i] != INT64_MIN) /* else nothing was counted */
			points.last_nano = loss_nano[i];
		skep_candidate_point(&points, i, rounds);
	}
	return skep_candidate_expected(&points, rounds);
}

static double by_squares(const int64_t *loss_nano, uint32_t rounds)
{
	uint32_t m = skep_candidate_window(rounds);
	double t = 0, y = 0, tt = 0, ty = 0;
	for (uint32_t i = 0; i < m; i++) {
		double loss = (double)loss_nano[rounds - m + i];
		t += i, y += loss, tt += (double)i * i, ty += i * loss;
	}
	double slope = (m * ty - t * y) / (m * tt - t * t);
	return (y - slope * t) / m + slope * (2.0 * m - 1);
}

static void a_line_goes_on(void **state)
{
	int64_t loss[100];
	(void)state;
	for (uint32_t rounds = 2; rounds <= 100; rounds++) {
		for (uint32_t i = 0; i < rounds; i++)
			loss[i] = 5000000000 - 7000000 * (int64_t)i;
		int64_t ahead = rounds - 1 + skep_candidate_window(rounds), line = 5000000000 - 7000000 * ahead;
		assert_in_range(expected(loss, rounds) - line + 2, 0, 4);
	}
}

static void follows_least_squares(void **state)
{
	int64_t loss[60];
	uint64_t random = 1;
	(void)state;
	for (uint32_t rounds = 2; rounds <= 60; rounds++) {
		for (uint32_t i = 0; i < rounds; i++)
			loss[i] = (int64_t)((random = random * 6364136223846793005u + 1442695040888963407u) >> 28);
		assert_true(fabs((double)expected(loss, rounds) - by_squares(loss, rounds)) < 8);
	}
}

static void falls_faster_and_wins(void **state)
{
	const int64_t flat[] = {9, 9, 1000, 1000, 1000}, steep[] = {9, 9, 1300, 1150, 1010};
	(void)state;
	assert_true(expected(steep, 5) < expected(flat, 5)); /* though its last loss is higher */
}

static void what_was_never_counted_loses(void **state)
{
	const int64_t none[] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN},
		      late[] = {INT64_MIN, INT64_MIN, INT64_MIN, 5};
	const int64_t gap[] = {8, 7, INT64_MIN, 6}, same[] = {8, 7, 7, 6};
	(void)state;
	assert_true(expected(none, 4) == INT64_MAX && expected(late, 4) == INT64_MAX);
	assert_int_equal(expected(gap, 4), expected(same, 4));
}

static void large_losses_do_not_wrap(void **state)
{
	int64_t high[101], low[101];
	(void)state;
	for (uint32_t i = 0; i < 101; i++) {
		high[i] = i % 2 ? INT64_MAX - 1 : INT64_MAX / 2;
		low[i] = 1000000000;
	}
	assert_true(expected(low, 101) < expected(high, 101));
	high[50] = -INT64_MAX, high[100] = INT64_MAX - 1; /* the steepest slope */
	assert_true(expected(low, 101) < expected(high, 101));
}

static void deals_out_workers(void **state)
{
	const uint32_t stage[] = {0, 1, 0, SKEP_NO_STAGE, 1, 0, 1, 0};
	const uint32_t wanted[] = {0, 0, 1, 0, 1, 2, 2, 0};
	struct skep_plan plan = {.workers = 8, .stages = 2, .first_stage_of = stage, .candidates.count = 3};
	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(skep_plan_candidate_of(&plan, i), wanted[i]);
	plan.candidates.count = 0;
	assert_int_equal(skep_plan_candidate_of(&plan, 5), 0);
}

/* Candidate 0 has told its loss, and candidate 1 falls before the round of candidate 0 is closed: that loss counts for the target
 * of the run, which ends with the round. */
static void a_loss_told_before_the_choice_counts(void **state)
{
	struct fixture f;
	(void)state;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.candidates.count = 2;
	f.plan.candidates.rounds = 2;
	f.plan.rounds = 4;
	f.plan.until.target_loss_nano = 100;
	fixture_make(&f, DIRECTORY);
	fixture_start(&f);
	for (uint32_t i = 0; i < 4; i++)
		finish(&f, 0, i, true);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 2);
	tally(&f, 1, 1, 15); /* of the last stage: 100 each */
	assert_non_null(fixture_noted(&f, SKEP_NOTE_CANDIDATE_LOSS));
	suspect(&f, 3);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_CANDIDATE_CHOSEN));
	assert_int_equal(skep_node_outcome(f.node), SKEP_RUNNING);
	tally(&f, 0, 1, 15);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED));
	assert_int_equal(skep_node_outcome(f.node), SKEP_DONE);
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_line_goes_on), cmocka_unit_test(follows_least_squares),
		cmocka_unit_test(falls_faster_and_wins), cmocka_unit_test(what_was_never_counted_loses),
		cmocka_unit_test(large_losses_do_not_wrap), cmocka_unit_test(deals_out_workers),
		cmocka_unit_test(a_loss_told_before_the_choice_counts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
