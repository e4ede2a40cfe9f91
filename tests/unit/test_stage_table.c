/* SPDX-License-Identifier: Apache-2.0
 *
 * test_stage_table.c - tables of measured stages: what is looked up, between what, and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topologies/gpu/stage_table.h"

static char path[64];

static bool read_text(const char *text, struct skep_stage_table *ret, struct skep_diag *diag)
{
	snprintf(path, sizeof path, "/tmp/skep-stages-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	*ret = (struct skep_stage_table){0};
	*diag = (struct skep_diag){0};
	snprintf(ret->path, sizeof ret->path, "%s", path);
	bool read = skep_stage_table_read(ret, diag);
	unlink(path);
	return read;
}

#define HEAD SKEP_STAGE_TABLE_HEADER "\n"

static void test_look_up(void **state)
{
	struct skep_stage_table t;
	struct skep_diag diag;
	double s;
	bool exact;
	(void)state;
	if (!read_text("# of a run\n" HEAD "0,3,8,1000,2000,,,50,,\n0,3,32,4000,8000,,,50,,\n3,2,8,10,20,5,15,1,2,3\n",
		    &t, &diag))
		fail_msg("%s", diag.message);
	assert_int_equal(t.rows, 3);
	struct skep_measured_stage query = {.first_layer = 0, .layers = 3, .microbatch = 8};
	assert_true(skep_stage_table_look(&t, &query, SKEP_STAGE_BACKWARD, &s, &exact));
	assert_true(exact && fabs(s - 2e-3) < 1e-12);
	assert_false(skep_stage_table_look(&t, &query, SKEP_STAGE_RECOMPUTE, &s, &exact));
	query.microbatch = 16; /* half of the way from 8 to 32 in logarithms: the square root of 1000 x 4000 */
	assert_true(skep_stage_table_look(&t, &query, SKEP_STAGE_FORWARD, &s, &exact));
	assert_true(!exact && fabs(s - 2e-3) < 1e-12);
	query.microbatch = 64; /* beyond what was measured, as is below it */
	assert_false(skep_stage_table_look(&t, &query, SKEP_STAGE_FORWARD, &s, &exact));
	query.microbatch = 4;
	assert_false(skep_stage_table_look(&t, &query, SKEP_STAGE_FORWARD, &s, &exact));
	query = (struct skep_measured_stage){.first_layer = 3, .layers = 2, .microbatch = 8};
	assert_true(skep_stage_table_look(&t, &query, SKEP_STAGE_PSEUDO, &s, &exact) && fabs(s - 3e-6) < 1e-15);
	query.layers = 3; /* other layers */
	assert_false(skep_stage_table_look(&t, &query, SKEP_STAGE_FORWARD, &s, &exact));
	skep_stage_table_finish(&t);
}

static void test_refuses(void **state)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *message;
	} bad[] = {
		{"", 0, "empty"},
		{HEAD, 0, "empty"},
		{"batch,m,k,n,time_us\n1,1,1,1,1\n", 1, "as the first row of a table of stages"},
		{HEAD "0,3,8,1,2,,,5,\n", 2, "ragged"},
		{HEAD "0,3,8,1,2,,,5,,,\n", 2, "ragged"},
		{HEAD "0,0,8,1,2,,,5,,\n", 2, "expected layers"},
		{HEAD "0,3,2.5,1,2,,,5,,\n", 2, "microbatch: expected a whole number"},
		{HEAD "0,3,8,-1,2,,,5,,\n", 2, "expected forward"},
		{HEAD "0,3,8,1,nan,,,5,,\n", 2, "expected backward"},
		{HEAD "0,3,8,1,0,,,5,,\n", 2, "expected backward"},
		{HEAD "0,3,8,1,2,,,5,,\n0,3,8,1,2,,,5,,\n", 3, "not rising"},
		{HEAD "3,3,8,1,2,,,5,,\n0,3,8,1,2,,,5,,\n", 3, "not rising"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct skep_stage_table t;
		struct skep_diag diag;
		if (read_text(bad[i].text, &t, &diag))
			fail_msg("read: %s", bad[i].text);
		if (diag.line != bad[i].line || !strstr(diag.message, bad[i].message))
			fail_msg("%s: line %u, %s", bad[i].text, diag.line, diag.message);
		assert_int_equal(t.rows, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_look_up), cmocka_unit_test(test_refuses)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
