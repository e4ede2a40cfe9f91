/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.h - the simulated world: virtual time, flows on the topology's network, operation times from GPU profiles.
 */
#ifndef SKEP_SIM_SIM_H
#define SKEP_SIM_SIM_H

#include "core/record.h"
#include "scenarios/scenario.h"

struct skep_sim_result {
	enum skep_outcome outcome;
	skep_time end_ns;
	uint64_t events; /* machine steps */
	uint32_t rounds; /* closed, those before the first one included */
	char why[512];   /* of a run that could not go on: what could not be done; "": memory lacks */
};

/* Runs the scenario to its end. Reports to `recorder` (a NULL function is skipped). Returns false only when the machine
 * lacks memory, or an operation cannot be done, its samples read for one (`why`); a run that fails (a stage lost its last
 * worker, nothing is left to happen) is an outcome. */
bool skep_sim_run(
	const struct skep_scenario *scenario, const struct skep_recorder *recorder, struct skep_sim_result *ret);

/* The same with the arithmetic of `maths: real` on so many threads, this one included: the same run to the bit, sooner. */
bool skep_sim_run_threaded(const struct skep_scenario *scenario, uint32_t threads, const struct skep_recorder *recorder,
	struct skep_sim_result *ret);

#endif
