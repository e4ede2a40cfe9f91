/* SPDX-License-Identifier: Apache-2.0
 *
 * test_planning.c - the problem that a scenario poses: its links in both views, times, bytes, memory, who takes part; and an
 * allocation turned back into what the scenario's reader takes.
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

#include "core/record.h"
#include "planning/problem.h"
#include "planning/traffic.h"

static const char two[] = "scenarios/two-datacentres.yaml";

static void read_with(struct skep_scenario *ret, const char *path, const char *const *set, uint32_t sets)
{
	struct skep_diag diag = {0};
	const struct skep_scenario_options options = {.set = set, .sets = sets, .any_memory = true};
	char text[2048] = "";
	bool read = skep_scenario_read(path, &options, ret, &diag);
	if (!read)
		skep_diag_print(&diag, text, sizeof text);
	if (!read)
		print_error("%s\n", text);
	assert_true(read);
}

static void make(struct skep_scenario *s, struct skep_planning *p, const char *const *set, uint32_t sets)
{
	char error[1024] = "";
	read_with(s, two, set, sets);
	bool made = skep_planning_make(s, p, error, sizeof error);
	if (!made)
		print_error("%s\n", error);
	assert_true(made);
}

static void finish(struct skep_scenario *s, struct skep_planning *p)
{
	skep_planning_finish(p);
	skep_scenario_finish(s);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* 10 Gbit/s inside, and one line of 200 Mbit/s for all four of each place. */
static void test_links_in_both_views(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	make(&s, &p, NULL, 0);
	assert_int_equal(p.workers, 8);
	assert_int_equal(p.stages, 4);
	const double *alone = p.rate_Bps[SKEP_VIEW_ALONE], *shared = p.rate_Bps[SKEP_VIEW_SHARED];
	assert_true(near(alone[0 * 8 + 3], 1.25e9) && near(shared[0 * 8 + 3], 1.25e9));
	assert_true(near(alone[0 * 8 + 4], 25e6) && near(shared[0 * 8 + 4], 25e6 / 4));
	assert_true(near(p.delay_s[0 * 8 + 4], 0.010) && near(p.delay_s[0 * 8 + 3], 0.05e-3));
	finish(&s, &p);
}

static void test_stages_as_the_simulator_has_them(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	make(&s, &p, NULL, 0);
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t stage = 0; stage < 4; stage++) {
			struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = (uint16_t)stage};
			double ns = (double)skep_scenario_op_ns(&s, i, &op);
			op.kind = SKEP_OP_BACKWARD;
			ns += (double)skep_scenario_op_ns(&s, i, &op);
			assert_true(near(p.compute_s[i * 4 + stage], 1e-9 * ns));
		}
	assert_true(p.compute_s[0 * 4 + 1] > 2 * p.compute_s[2 * 4 + 1]); /* a T4, a V100 */
	for (uint32_t stage = 0; stage < 4; stage++)
		assert_true(near(p.reduced_bytes[stage], 4.0 * (double)s.stage[stage].parameters));
	assert_true(near(p.forward_bytes[1], (double)s.stage[1].activation_bytes + SKEP_HEADER_BYTES));
	assert_true(p.kind[0] == p.kind[1] && p.kind[0] != p.kind[2] && p.kind[0] != p.kind[4]);
	finish(&s, &p);
}

/* What --set makes of it is read back as the same. */
static void test_an_allocation_there_and_back(void **state)
{
	(void)state;
	static const uint32_t stage_of[8] = {3, 1, 2, 0, 1, 1, 0, 0};
	struct skep_scenario s, again;
	struct skep_planning p;
	uint32_t start[8];
	make(&s, &p, NULL, 0);
	assert_true(skep_planning_start(&p, start));
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(start[i], i % 4);
	char *assignment = skep_planning_assignment(&p, stage_of);
	assert_non_null(assignment);
	const char *set[] = {assignment};
	read_with(&again, two, set, 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(again.first_stage_of[i], stage_of[i]);
	skep_scenario_finish(&again);
	free(assignment);
	finish(&s, &p);
}

static void test_random_is_even_and_of_its_seed(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	uint32_t a[8], b[8], differ = 0;
	make(&s, &p, NULL, 0);
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t count[4] = {0};
		skep_planning_random(&p, seed, a);
		skep_planning_random(&p, seed, b);
		assert_memory_equal(a, b, sizeof a);
		skep_planning_random(&p, seed + 1, b);
		differ += memcmp(a, b, sizeof a) != 0;
		for (uint32_t i = 0; i < 8; i++)
			count[a[i]]++;
		for (uint32_t stage = 0; stage < 4; stage++)
			assert_int_equal(count[stage], 2);
	}
	assert_true(differ >= 18);
	finish(&s, &p);
}

/* Who the trace lets come later has no part, and stays a spare. */
static void test_only_who_is_there(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	char error[1024];
	static const char *const set[] = {"cluster.trace={file: topologies/traces/aws-p3.csv, any_gpu: true}"};
	read_with(&s, "scenarios/preempted.yaml", NULL, 0);
	bool traced = s.has_trace;
	skep_scenario_finish(&s);
	read_with(&s, "scenarios/preempted.yaml", set, traced ? 0 : 1);
	assert_true(skep_planning_make(&s, &p, error, sizeof error));
	assert_int_equal(p.workers, s.churn.presents);
	uint32_t *stage_of = calloc(p.workers, sizeof *stage_of);
	assert_true(skep_planning_start(&p, stage_of));
	for (uint32_t i = 0; i < p.workers; i++)
		assert_int_equal(p.machine[i], s.churn.present[i]);
	free(stage_of);
	finish(&s, &p);
}

/* A T4 and a V100 have 16 GB each. */
static void test_what_fits_nobody(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	char error[1024] = "";
	static const char *const set[] = {"schedule.global_batch=4194304", "schedule.microbatch=1048576"};
	read_with(&s, two, set, 2);
	assert_false(skep_planning_make(&s, &p, error, sizeof error));
	assert_non_null(strstr(error, "nearest changes"));
	assert_non_null(strstr(error, "stage "));
	skep_scenario_finish(&s);
}

/* With the sizes that the scenario has all fits; with one worker in a stage it holds more, and the need says so. */
static void test_needs_rise_to_what_was_seen(void **state)
{
	(void)state;
	static const uint32_t lean[8] = {0, 0, 0, 0, 0, 1, 2, 3};
	struct skep_scenario s;
	struct skep_planning p;
	make(&s, &p, NULL, 0);
	assert_false(skep_planning_tighten(&p, lean)); /* it fits by far */
	for (uint32_t i = 0; i < s.topology.gpus; i++)
		s.topology.gpu[i].memory_bytes = (double)p.need_bytes[1] + 1000; /* of the even sizes */
	uint64_t before = p.need_bytes[1];
	assert_true(skep_planning_tighten(&p, lean));
	assert_true(p.need_bytes[1] > before + 1000);
	assert_false(skep_planning_tighten(&p, lean));
	finish(&s, &p);
}

/* The closed form is exact where all boundaries are alike; what the classes have is all that moves. */
static void test_bytes_by_class_of_link(void **state)
{
	(void)state;
	static const uint32_t in_order[8] = {0, 0, 1, 1, 2, 2, 3, 3};
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_planning_traffic t;
	make(&s, &p, NULL, 0);
	assert_true(skep_planning_traffic(&p, in_order, &t));
	double pipeline = 0, reduction = 0;
	for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++) {
		pipeline += t.on[i].pipeline;
		reduction += t.on[i].reduction;
	}
	assert_true(near(pipeline, t.closed.pipeline) && near(reduction, t.closed.reduction));
	assert_true(near(t.closed.pipeline, 2.0 * 32 * 3 * p.forward_bytes[0]));
	/* Stages 1 and 2 are in different places: a third of it crosses, and no reduction does. */
	assert_true(near(t.on[2].pipeline, t.closed.pipeline / 3));
	assert_true(t.on[2].reduction <= 0 && t.on[0].reduction > 0);
	finish(&s, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links_in_both_views),
		cmocka_unit_test(test_stages_as_the_simulator_has_them),
		cmocka_unit_test(test_an_allocation_there_and_back),
		cmocka_unit_test(test_random_is_even_and_of_its_seed),
		cmocka_unit_test(test_only_who_is_there),
		cmocka_unit_test(test_what_fits_nobody),
		cmocka_unit_test(test_needs_rise_to_what_was_seen),
		cmocka_unit_test(test_bytes_by_class_of_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
