/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_scenario.h - what test_engine.c puts in the place of scenarios/: how long an operation takes, and that it sends nothing
 * besides.
 */
#ifndef SKEP_TESTS_UNIT_ENGINE_SCENARIO_H
#define SKEP_TESTS_UNIT_ENGINE_SCENARIO_H

#include <assert.h>

#include "scenarios/scenario.h"

uint64_t skep_scenario_op_ns(const struct skep_scenario *scenario, uint32_t worker, const struct skep_op *op)
{
	assert(worker < scenario->plan.workers);
	return (worker + 1) * 10000000u + op->microbatch;
}

uint64_t skep_scenario_op_bytes(const struct skep_scenario *scenario, const struct skep_op *op)
{
	(void)scenario;
	(void)op;
	return 0;
}

#endif
