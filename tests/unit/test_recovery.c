/* SPDX-License-Identifier: Apache-2.0
 *
 * test_recovery.c - what a scenario says about newcomers, checkpoints and stages without workers, and what the plan makes of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "scenarios/read/scenario.h"

static void must_read(const char *set, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	const char *sets[] = {set};
	struct skep_scenario_options options = {.set = sets, .sets = set ? 1 : 0};
	assert_true(skep_scenario_read("scenarios/two-datacentres.yaml", &options, ret, &diag));
}

static double time_of(const struct skep_scenario *s, struct skep_op op)
{
	return (double)skep_scenario_op_ns(s, 0, &op);
}

/* A chunk has its share of the parameters and moments, a header, and at most as many bytes as the scenario allows. */
static void state_is_cut_into_chunks(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read("sync.state_chunk=4 KiB", &s);
	for (uint16_t stage = 0; stage < s.plan.stages; stage++) {
		uint32_t chunks = skep_state_chunks(&s.plan, stage);
		uint64_t all = 0;
		for (uint32_t c = 0; c < chunks; c++) {
			uint64_t first, count, bytes = skep_state_chunk_bytes(&s.plan, stage, c);
			skep_chunk_range(s.stage[stage].parameters, c, chunks, &first, &count);
			assert_int_equal(bytes, SKEP_STATE_HEADER_BYTES + 12 * count);
			assert_true(bytes <= 4096);
			all += bytes;
		}
		assert_int_equal(all, s.stage[stage].state_bytes);
		assert_int_equal(chunks, (s.stage[stage].parameters + 337) / 338); /* (4096 - 32) / 12 */
		struct skep_op op = {.kind = SKEP_OP_LOAD, .stage = stage, .chunk = chunks - 1, .size = chunks};
		double one = time_of(&s, op);
		op.size = 0; /* all of it */
		assert_true(chunks == 1 || one < time_of(&s, op));
	}
	skep_scenario_finish(&s);
	must_read(NULL, &s);
	assert_int_equal(skep_state_chunks(&s.plan, 0), 1);
	skep_scenario_finish(&s);
}

static uint64_t job_of(const char *set)
{
	struct skep_scenario s;
	must_read(set, &s);
	uint64_t ret = s.job;
	skep_scenario_finish(&s);
	return ret;
}

/* A run that is made longer, or named otherwise, goes on with the same parameters; another seed or rate has others. */
static void the_job_is_what_is_trained(void **state)
{
	(void)state;
	static const char *const same[] = {"seed=1", "name=other", "train.until={steps: 7, loss: 0.1}",
		"checkpoint={every: 5, to: kept}", "train.validate.every=3", "directory.timeout=3 s",
		"simulate.collectives=messages", "cluster.compute_scale=2", "cluster.allocation.method=strided"};
	static const char *const other[] = {"seed=2", "train.optimizer.lr=0.5", "schedule.microbatch=16",
		"model.stages=2", "sync.delayed=true", "train.arithmetic=none"};
	uint64_t seen[7] = {job_of(NULL)};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		assert_true(job_of(same[i]) == seen[0]);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		seen[i + 1] = job_of(other[i]);
		for (size_t k = 0; k <= i; k++)
			assert_true(seen[k] != seen[i + 1]);
	}
	static const char optimizer[] = "train.optimizer={lr: 0.5, name: sgd}";
	assert_true(job_of(optimizer) == job_of("train.optimizer={name: sgd, lr: 0.5}"));
	assert_true(job_of(optimizer) != job_of("train.optimizer={name: sgd, lr: 0.05}"));
}

static void checkpoints_go_by_their_bandwidth(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read("checkpoint={every: 5, to: kept, bandwidth: 1 MB/s}", &s);
	assert_int_equal(s.plan.checkpoint_every, 5);
	assert_string_equal(s.checkpoint_to, "kept");
	struct skep_op op = {.kind = SKEP_OP_CHECKPOINT, .stage = 1, .round = 5};
	double ns = (double)s.stage[1].state_bytes * 1000;
	assert_true(fabs(time_of(&s, op) - ns) <= 1);
	op = (struct skep_op){.kind = SKEP_OP_RESTORE, .stage = 1, .microbatch = 5};
	assert_true(fabs(time_of(&s, op) - ns) <= 1);
	op.microbatch = 0;
	assert_true(time_of(&s, op) == time_of(&s, (struct skep_op){.kind = SKEP_OP_ENTER, .stage = 1}));
	skep_scenario_finish(&s);
}

static void an_empty_stage_waits_for_an_hour(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read(NULL, &s);
	assert_true(s.plan.liveness.wait_for_join_ns == 3600 * UINT64_C(1000000000));
	assert_int_equal(s.plan.checkpoint_every, 0);
	skep_scenario_finish(&s);
	must_read("cluster.wait_for_join=0 s", &s);
	assert_true(s.plan.liveness.wait_for_join_ns == 0);
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_is_cut_into_chunks),
		cmocka_unit_test(the_job_is_what_is_trained),
		cmocka_unit_test(checkpoints_go_by_their_bandwidth),
		cmocka_unit_test(an_empty_stage_waits_for_an_hour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
