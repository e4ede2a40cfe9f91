/* SPDX-License-Identifier: Apache-2.0
 *
 * tried.h - whether each value in a scenario's plan.search is one that its key can have. Each is tried in the scenario by
 * itself, so what is wrong is said by who reads the key, and shown where the value stands.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* *scenario was read with these options. False, with the diagnosis: a value has the wrong type or range, its key is unknown, it
 * names a file that is not there or is wrong, whatever the other free keys are; and *scenario is empty. What only does not go
 * with something else is no error: the plan leaves that out, and counts it. */
bool skep_planning_try_values(
	struct skep_scenario *scenario, const struct skep_scenario_options *options, struct skep_diag *reterr);
/* That plan.search as a whole comes to nothing: `message`, shown where the group stands, in the file or in --set. */
void skep_planning_refuse_search(const struct skep_scenario *scenario, const struct skep_scenario_options *options,
	const char *message, struct skep_diag *reterr);
