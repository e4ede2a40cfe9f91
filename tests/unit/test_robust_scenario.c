/* SPDX-License-Identifier: Apache-2.0
 *
 * test_robust_scenario.c - what a scenario makes of `sync.aggregate` and `cluster.byzantine`: memory and time of what is
 * gathered, and who lies.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scenarios/read/scenario.h"

static void must_read(const char *set, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	struct skep_scenario_options options = {.set = &set, .sets = 1};
	if (!skep_scenario_read("scenarios/byzantine.yaml", &options, ret, &diag))
		fail_msg("%s: %s", set, diag.message);
}

static double time_of(const struct skep_scenario *s, enum skep_op_kind kind, struct skep_buf in)
{
	struct skep_op op = {.kind = (uint8_t)kind, .size = 6, .count = 60000, .in = in};
	return (double)skep_scenario_op_ns(s, 0, &op);
}

/* Six workers in stage 0, five in stage 1: all parts of what is made at once are beside each other. */
static void test_gathered_parts_need_memory(void **state)
{
	(void)state;
	struct skep_scenario mean, all, butterfly;
	must_read("sync={collective: all-to-all}", &mean);
	must_read("sync={collective: all-to-all, aggregate: trimmed-mean, trim: 40 %}", &all);
	must_read("sync={collective: butterfly, chunks: 4, aggregate: zeno}", &butterfly);
	assert_false(mean.plan.reduction.gather);
	assert_true(all.plan.reduction.gather && all.training.robust.method == SKEP_ROBUST_TRIMMED_MEAN);
	assert_true(all.robust.trim == 0 && all.robust.share == 0.4);
	assert_true(butterfly.robust.trim == 1 && butterfly.robust.rho == 0.5);
	for (uint32_t i = 0; i < 2; i++) {
		double array = 4.0 * (double)mean.stage[i].parameters, members = 6 - i;
		/* a butterfly has all but its own share on the way, out and in, others one share each way */
		double under_way = 2 * (members - 1) / members * array - 2 / members * array;
		assert_true(all.memory_bytes[i] - mean.memory_bytes[i] == (6 - i) * array);
		assert_true(fabs(butterfly.memory_bytes[i] - mean.memory_bytes[i] - array / 4 - under_way) < 16);
	}
	skep_scenario_finish(&mean);
	skep_scenario_finish(&all);
	skep_scenario_finish(&butterfly);
}

/* By what passes through memory: all six parts, by a score twice, and what is made of them. */
static void test_gathered_parts_need_time(void **state)
{
	(void)state;
	const struct skep_buf none = {0, 0}, some = {1, 1};
	const double plain = 4 * 60000.0, encoded = plain / 2;
	struct skep_scenario trimmed, zeno;
	must_read("sync={collective: butterfly, aggregate: trimmed-mean, compression: fp16}", &trimmed);
	must_read("sync={collective: butterfly, aggregate: zeno, compression: fp16}", &zeno);
	const struct skep_gpu *gpu = &trimmed.topology.gpu[0];
	const struct {
		const struct skep_scenario *scenario;
		enum skep_op_kind kind;
		struct skep_buf in;
		double bytes;
	} cases[] = {{&trimmed, SKEP_OP_PACK_PART, none, plain + encoded},
		{&trimmed, SKEP_OP_UNPACK_PART, none, 2 * plain},
		{&trimmed, SKEP_OP_UNPACK_PART, some, plain + encoded}, {&trimmed, SKEP_OP_AGGREGATE, none, 7 * plain},
		{&zeno, SKEP_OP_AGGREGATE, none, 13 * plain}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		double right = 1e9 * gpu->overhead_s + 1e9 * cases[i].bytes / gpu->memory_Bps;
		assert_true(fabs(time_of(cases[i].scenario, cases[i].kind, cases[i].in) - right) <= 1);
	}
	skep_scenario_finish(&trimmed);
	skep_scenario_finish(&zeno);
}

/* Also of one that there is not: the directory. */
static void test_attackers_are_who_was_named(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read("cluster.byzantine={workers: [4, 1], attack: noise, scale: 2}", &s);
	for (uint32_t i = 0; i < 12; i++) {
		struct skep_byzantine b = skep_scenario_byzantine(&s, i);
		assert_int_equal(b.attack, i == 1 || i == 4 ? SKEP_ATTACK_NOISE : SKEP_ATTACK_NONE);
		assert_true(b.scale == (i == 1 || i == 4 ? 2.0f : 0));
	}
	assert_true(skep_scenario_byzantine(&s, 1).seed != skep_scenario_byzantine(&s, 4).seed);
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gathered_parts_need_memory),
		cmocka_unit_test(test_gathered_parts_need_time),
		cmocka_unit_test(test_attackers_are_who_was_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
