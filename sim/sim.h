/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.h - the simulated world: virtual time, flows on the topology's network, operation times from GPU profiles.
 */
#ifndef SKEP_SIM_SIM_H
#define SKEP_SIM_SIM_H

#include <signal.h>

#include "base/diag.h"
#include "core/record.h"
#include "scenarios/read/scenario.h"

struct skep_sim_result {
	enum skep_outcome outcome;
	skep_time end_ns;
	uint64_t events;        /* machine steps */
	uint32_t rounds;        /* closed, those before the first one included */
	int stopped;            /* what stood in options->stop and ended the run; 0: nothing */
	struct skep_diag error; /* of a run that could not go on: what could not be done; clear: memory lacks */
};

/* Runs the scenario to its end. Reports to `recorder` (core/record.h). Returns false only when the machine
 * lacks memory, or an operation cannot be done, its samples read for one (`error`); a run that fails (a stage lost its last
 * worker, nothing is left to happen) is an outcome. */
bool skep_sim_run(
	const struct skep_scenario *scenario, const struct skep_recorder *recorder, struct skep_sim_result *ret);

struct skep_sim_options {
	/* Threads that share the arithmetic of `arithmetic: real`, the caller's included; the results do not
	 * depend on it. */
	uint32_t threads;
	/* Once *stop is not 0 the run fails before its next event, and is reported as far as it has come; NULL:
	 * never. */
	const volatile sig_atomic_t *stop;
};

/* The same, so. */
bool skep_sim_run_with(const struct skep_scenario *scenario, const struct skep_sim_options *options,
	const struct skep_recorder *recorder, struct skep_sim_result *ret);

#endif
