/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.h - the step from a scenario that says how its allocation is searched for (`cluster.allocation.method: genetic`) to one
 * that has it. Reading a scenario searches nothing: a scenario is read, resolved, and then a world runs it. Its text says
 * which allocation it is, so that a reader of that text (a replay) does not search again.
 *
 * The search is by the expected time of a step, with links shared, and depends on the scenario and its seed alone: the same
 * on every machine (planning/search/allocation.h says why).
 */
#pragma once

#include "scenarios/read/scenario.h"

/* *scenario was read with these options (NULL: none). Searches if it is unresolved, else changes nothing; `allocation` still
 * says by which method. False: there is none, and *scenario is empty. */
bool skep_resolve(
	struct skep_scenario *scenario, const struct skep_scenario_options *options, struct skep_diag *reterr);

/* The allocation of an unresolved scenario as --set takes it, which the caller frees; and the scenario once more with such a
 * one in place of its method. NULL and false as above. */
char *skep_resolve_search(
	const struct skep_scenario *scenario, const struct skep_scenario_options *options, struct skep_diag *reterr);
bool skep_resolve_with(struct skep_scenario *scenario, const struct skep_scenario_options *options,
	const char *assignment, struct skep_diag *reterr);

/* skep_scenario_read() and skep_resolve(). */
bool skep_resolve_file(const char *path, const struct skep_scenario_options *options, struct skep_scenario *ret,
	struct skep_diag *reterr);
