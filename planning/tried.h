/* SPDX-License-Identifier: Apache-2.0
 *
 * tried.h - whether each value in a scenario's plan.search is one that its key can have. Each is tried in the scenario by
 * itself, so what is wrong is said by who reads the key, and shown where the value stands.
 */
#ifndef SKEP_PLANNING_TRIED_H
#define SKEP_PLANNING_TRIED_H

#include "scenarios/scenario.h"

/* *scenario was read from this text with these options. False, with the diagnosis: a value has the wrong type or range, its
 * key is unknown, it names a file that is not there or is wrong, whatever the other free keys are. What only does not go with
 * something else is no error: the plan leaves that out, and counts it. */
bool skep_planning_try_values(const char *path, const char *text, size_t size,
	const struct skep_scenario_options *options, const struct skep_scenario *scenario, struct skep_diag *reterr);

#endif
