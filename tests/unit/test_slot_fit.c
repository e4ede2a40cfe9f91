/* SPDX-License-Identifier: Apache-2.0
 *
 * test_slot_fit.c - which slot a machine that joins is given: that of its own GPU, the one it asks for, any if nothing is said
 * of it, and none that its memory does not hold.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/serve/slot_fit.h"

static struct skep_scenario scenario; /* eight workers: V100 in one data centre, T4 in the other */

static int set_up(void **state)
{
	struct skep_diag diag = {0};
	(void)state;
	return !skep_scenario_read("scenarios/two-datacentres.yaml", NULL, &scenario, &diag);
}

static int tear_down(void **state)
{
	(void)state;
	skep_scenario_finish(&scenario);
	return 0;
}

static const char *gpu_of(uint32_t worker)
{
	return scenario.topology.gpu[scenario.topology.machine[worker].gpu].name;
}

static struct skep_hello machine(const char *gpu)
{
	struct skep_hello hello = {.worker = SKEP_NO_INDEX};
	strcpy(hello.gpu, gpu);
	return hello;
}

static uint32_t last(void)
{
	return scenario.plan.workers - 1;
}

static void test_same_gpu_first(void **state)
{
	bool *taken = calloc(scenario.plan.workers, sizeof *taken);
	struct skep_hello hello = machine(gpu_of(last()));
	uint32_t same = 0;
	(void)state;
	for (uint32_t i = 0; i < scenario.plan.workers; i++)
		same += strcmp(gpu_of(i), hello.gpu) == 0;
	for (uint32_t i = 0; i < scenario.plan.workers; i++) {
		uint32_t worker = skep_slot_best(&scenario, taken, &hello);
		assert_true(worker < scenario.plan.workers);
		assert_int_equal(strcmp(gpu_of(worker), hello.gpu) == 0, i < same);
		taken[worker] = true;
	}
	assert_int_equal(skep_slot_best(&scenario, taken, &hello), SKEP_NO_INDEX);
	free(taken);
}

static void test_unknown_takes_the_first(void **state)
{
	bool *taken = calloc(scenario.plan.workers, sizeof *taken);
	struct skep_hello hello = machine("");
	(void)state;
	assert_int_equal(skep_slot_best(&scenario, taken, &hello), 0);
	taken[0] = true;
	assert_int_equal(skep_slot_best(&scenario, taken, &hello), 1);
	free(taken);
}

static void test_asked_for(void **state)
{
	bool *taken = calloc(scenario.plan.workers, sizeof *taken);
	struct skep_hello hello = machine("");
	struct skep_diag why = {0};
	(void)state;
	hello.worker = 3;
	assert_int_equal(skep_slot_best(&scenario, taken, &hello), 3);
	taken[3] = true;
	assert_int_equal(skep_slot_best(&scenario, taken, &hello), SKEP_NO_INDEX);
	assert_true(skep_slot_any(&scenario, &hello, &why)); /* it may become free */
	hello.worker = scenario.plan.workers;
	assert_false(skep_slot_any(&scenario, &hello, &why));
	assert_non_null(strstr(why.message, "there is no worker"));
	free(taken);
}

static void test_memory(void **state)
{
	struct skep_hello hello = machine("");
	struct skep_diag why = {0};
	double least = INFINITY;
	(void)state;
	for (uint32_t worker = 0; worker < scenario.plan.workers; worker++) {
		uint32_t stage = scenario.first_stage_of[worker], gpu = scenario.topology.machine[worker].gpu;
		double bytes = scenario.memory[gpu * scenario.plan.stages + stage].total;
		hello.memory_bytes = (uint64_t)bytes + 1;
		assert_true(skep_slot_fit(&scenario, worker, &hello) > 0);
		hello.memory_bytes = (uint64_t)bytes - 1;
		assert_int_equal(skep_slot_fit(&scenario, worker, &hello), 0);
		least = bytes < least ? bytes : least;
	}
	hello.memory_bytes = (uint64_t)least - 1;
	assert_false(skep_slot_any(&scenario, &hello, &why));
	assert_non_null(strstr(why.message, "holds no stage"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_gpu_first),
		cmocka_unit_test(test_unknown_takes_the_first),
		cmocka_unit_test(test_asked_for),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
