/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ask_rank.c - which rows of "what would help most" an answer has, and in which order.
 */
#include "asking/answer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Two seeds that take as long and cost as much. */
static struct skep_ask_figures taking(double time_s, double usd)
{
	struct skep_ask_figures f = {.ok = true, .stretches = 2, .time_s = time_s, .usd_machines = usd};
	for (uint32_t i = 0; i < SKEP_ASK_SEEDS_MAX; i++)
		f.stretch[i] = (struct skep_ask_stretch){NAN, NAN, NAN};
	f.stretch[0] = f.stretch[1] = (struct skep_ask_stretch){time_s, usd, 0};
	return f;
}

enum { AS_IT_IS, FASTER, SLOWER, MORE_FASTER, MORE_SLOWER, HELPS };

static struct skep_ask_answer *answer(struct skep_ask_request *request)
{
	struct skep_ask_answer *a = calloc(1, sizeof *a);
	assert_non_null(a);
	a->question.request = request;
	a->helps = HELPS;
	a->help[AS_IT_IS].figures = taking(100, 10);
	a->help[FASTER].figures = taking(90, 10);
	a->help[SLOWER].figures = taking(110, 10);
	a->help[MORE_FASTER].figures = taking(80, 12);
	a->help[MORE_SLOWER].figures = taking(105, 13);
	a->help[MORE_FASTER].variation.more = a->help[MORE_SLOWER].variation.more = true;
	return a;
}

/* A machine that makes the whole slower is one that would not be used. */
static void more_machines_do_no_harm(void **state)
{
	(void)state;
	struct skep_ask_request request = {.objective = SKEP_ASK_TIME};
	struct skep_ask_answer *a = answer(&request);
	uint32_t row[SKEP_ASK_VARIATIONS_MAX], told;
	assert_int_equal(skep_ask_rank_helps(a, row, &told), 3);
	assert_int_equal(told, 3);
	assert_true(row[0] == MORE_FASTER && row[1] == FASTER && row[2] == SLOWER);
	request.objective = SKEP_ASK_MONEY; /* what is faster and dearer stays */
	assert_int_equal(skep_ask_rank_helps(a, row, &told), 3);
	assert_true(row[0] == MORE_FASTER && told == 1);
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(more_machines_do_no_harm)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
