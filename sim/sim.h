/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.h - the simulated world: virtual time, flows on the topology's network, operation times from GPU profiles.
 */
#pragma once

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

/* What causes what, for those who want to know more than a recorder is told: sim/graph/. Every function is there. Within one
 * step the calls come in the order in which they stand here. */
struct skep_sim_watch {
	void *context;
	/* The process of a worker has ended, with all that it had under way, or another one begins. */
	void (*present)(void *context, skep_time now, uint32_t worker, bool begins);
	/* A machine was told `event`, and asks for `actions`, which are done next. `delivered`: of a MESSAGE, its number. */
	void (*stepped)(void *context, uint32_t index, const struct skep_event *event, uint64_t delivered,
		const struct skep_actions *actions);
	/* One of these: a message begins its way, under a number that no other has. `payload` is the sender's; the message has
	 * what travels, which is another one if the sender keeps its own. */
	void (*sent)(void *context, const struct skep_message *message, struct skep_buf payload, uint64_t number);
	/* One of these: the operation waits for its turn on its lane. */
	void (*asked)(void *context, uint32_t worker, const struct skep_op *op);
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
	const struct skep_sim_watch *watch; /* NULL: none */
};

/* The same, so. */
bool skep_sim_run_with(const struct skep_scenario *scenario, const struct skep_sim_options *options,
	const struct skep_recorder *recorder, struct skep_sim_result *ret);
