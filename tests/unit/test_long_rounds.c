/* SPDX-License-Identifier: Apache-2.0
 *
 * test_long_rounds.c - rounds of 128 local steps, from rounds of 16 and 32, against rounds of 128: time, money, traffic and what
 * machines do.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "planning/trial/long_rounds.h"

struct heard {
	struct skep_trial_ear ear;
	double bytes;
};

static void hear(void *context, const struct skep_link_use *use)
{
	struct heard *h = context;
	h->bytes += h->ear.weight * (double)use->bytes;
}

#define MOST_SETS 4u

static void read_scenario(const char *const *set, uint32_t sets, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	const char *all[MOST_SETS + 3] = {"train.arithmetic=none", "train.until.steps=384",
		"sync={method: diloco, every: 128, compression: int8, outer: {optimizer: nesterov, lr: 0.7, momentum: 0.9}}"};
	assert_true(sets <= MOST_SETS);
	for (uint32_t i = 0; i < sets; i++)
		all[3 + i] = set[i];
	const struct skep_scenario_options options = {.set = all, .sets = 3 + sets, .any_memory = true};
	if (!skep_scenario_read("scenarios/two-datacentres.yaml", &options, ret, &diag))
		fail_msg("%s", diag.message);
}

static void simulate(
	const struct skep_scenario *s, uint32_t steps, uint32_t warm_up, struct skep_summary *ret, double *ret_bytes)
{
	struct heard heard = {.bytes = 0};
	struct skep_diag diag = {0};
	heard.ear.recorder = (struct skep_recorder){.context = &heard, .link = hear};
	assert_true(skep_long_rounds_simulate(s, steps, warm_up, &heard.ear, ret, &diag));
	assert_true(ret->ok);
	*ret_bytes = heard.bytes;
}

static void assert_near(const char *what, double seen, double wanted, double part)
{
	if (1)
		fprintf(stderr, "%s %.4f\n", what, seen / wanted - 1);
	if (!(fabs(seen - wanted) <= part * fabs(wanted)))
		fail_msg("%s: %.9g by short rounds, %.9g by long ones", what, seen, wanted);
}

static void compare(const struct skep_scenario *s, uint32_t warm_up)
{
	struct skep_summary whole, line;
	double all, sent;
	simulate(s, 0, warm_up, &whole, &all);
	simulate(s, 16, warm_up, &line, &sent);
	assert_int_equal(whole.steps, 384);
	assert_int_equal(line.steps, whole.steps);
	assert_int_equal(line.samples, whole.samples);
	assert_true(line.events < whole.events / 2);
	assert_near("the time", line.time_s, whole.time_s, 0.01);
	assert_near("a round", line.round_s, whole.round_s, 0.01);
	assert_near("passes", line.passes_s, whole.passes_s, 0.01);
	/* it begins with whichever stage ends its passes last, which a round decides */
	assert_near("the sum", line.reduction_s, whole.reduction_s, 0.25);
	assert_near("throughput", line.throughput_samples_per_s, whole.throughput_samples_per_s, 0.01);
	assert_near("utilisation", line.utilisation, whole.utilisation, 0.01);
	assert_near("USD", line.cost_usd, whole.cost_usd, 0.01);
	assert_near("bytes of sums", (double)line.bytes_sync, (double)whole.bytes_sync, 0.01);
	assert_near("bytes of passes", (double)line.bytes_pipeline, (double)whole.bytes_pipeline, 0.02);
	assert_near("bytes that were heard", sent, all, 0.02);
}

static void test_the_line(void **state)
{
	(void)state;
	static const char *const set[][MOST_SETS] = {
		{"schedule={pipeline: swarm, global_batch: 2048, microbatch: 64}"},
		{"schedule={pipeline: swarm, wiring: throughput, global_batch: 2048, microbatch: 64}"},
		{"schedule={pipeline: gpipe, global_batch: 2048, microbatch: 64}"},
		{"schedule={pipeline: 1f1b, global_batch: 2048, microbatch: 64, accumulate: 2}"},
	};
	for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
		struct skep_scenario s;
		read_scenario(set[i], 1, &s);
		for (uint32_t warm_up = 0; warm_up < 2; warm_up++)
			compare(&s, warm_up);
		skep_scenario_finish(&s);
	}
}

/* Only what is dear, and only what is a straight line. */
static void test_which_rounds(void **state)
{
	(void)state;
	const char *set[] = {"schedule.pipeline=gpipe", NULL};
	static const char *const bent[] = {"sync={method: step}",
		"schedule={pipeline: swarm, global_batch: 2048, microbatch: 128}", "checkpoint={every: 2, to: kept}",
		"cluster.trace={file: topologies/traces/ten-kills.csv, scale: 0.1}"};
	struct skep_scenario s;
	read_scenario(set, 1, &s);
	assert_int_equal(skep_long_rounds_steps(&s, 2e5), 0);
	assert_int_equal(skep_long_rounds_steps(&s, 2.5e5), 13); /* 12.8 steps are 25,000 events */
	assert_int_equal(skep_long_rounds_steps(&s, 1e6), 8);    /* 3.2 steps are, fewer than there are to be */
	s.plan.inner.steps = 1000;
	assert_int_equal(skep_long_rounds_steps(&s, 1e6), 25);
	s.plan.delayed = true;
	assert_int_equal(skep_long_rounds_steps(&s, 1e6), 0);
	s.plan.delayed = false;
	s.plan.inner.fragments = 2;
	assert_int_equal(skep_long_rounds_steps(&s, 1e6), 0);
	s.plan.inner.fragments = 0;
	s.plan.inner.steps = 31; /* four times 8 steps are more */
	assert_int_equal(skep_long_rounds_steps(&s, 1e9), 0);
	skep_scenario_finish(&s);
	for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
		set[1] = bent[i];
		read_scenario(set, 2, &s);
		if (skep_long_rounds_steps(&s, 1e9) != 0)
			fail_msg("%s is no straight line", bent[i]);
		skep_scenario_finish(&s);
	}
}

/* A swarm of two machines a stage: the more microbatches a step has, the fewer steps end as evenly. */
static void test_dealt_rounds(void **state)
{
	(void)state;
	static const struct {
		const char *set;
		uint32_t steps;
	} dealt[] = {
		{"schedule={pipeline: swarm, wiring: throughput, global_batch: 2048, microbatch: 64}", 32},
		{"schedule={pipeline: swarm, wiring: throughput, global_batch: 2048, microbatch: 32}", 16},
		{"schedule={pipeline: swarm, wiring: throughput, global_batch: 2048, microbatch: 8}", 8},
		{"schedule={pipeline: gpipe, global_batch: 2048, microbatch: 64}", 8},
	};
	for (size_t i = 0; i < sizeof dealt / sizeof *dealt; i++) {
		struct skep_scenario s;
		read_scenario(&dealt[i].set, 1, &s);
		assert_int_equal(skep_long_rounds_steps(&s, 1e9), dealt[i].steps);
		assert_int_equal(skep_long_rounds_steps(&s, 2e6) == 0, s.plan.pipeline == SKEP_PIPELINE_SWARM);
		assert_int_equal(skep_long_rounds_glance(&s, 1e6), 8);
		assert_int_equal(skep_long_rounds_glance(&s, 2e5), 0);
		s.plan.inner.steps = 63; /* a glance would take more than a third of the time */
		assert_int_equal(skep_long_rounds_glance(&s, 1e6), 0);
		skep_scenario_finish(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_line),
		cmocka_unit_test(test_which_rounds),
		cmocka_unit_test(test_dealt_rounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
