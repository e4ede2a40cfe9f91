/* SPDX-License-Identifier: Apache-2.0
 *
 * read.h - reads a scenario whose allocation may have to be searched for (`cluster.allocation.method: genetic`): what comes
 * back has one, and its text says which, so whoever reads that text again (a replay, a rank of the same run) searches no more.
 *
 * The search is by the expected time of a step, with links shared, and depends on the scenario and its seed alone: the same
 * on every machine (core/allocate/allocate.h says why).
 */
#ifndef SKEP_PLANNING_READ_H
#define SKEP_PLANNING_READ_H

#include "scenarios/scenario.h"

/* As skep_scenario_read() and skep_scenario_read_text(); ret->allocation says which method it was. */
bool skep_planning_read(const char *path, const struct skep_scenario_options *options, struct skep_scenario *ret,
	struct skep_diag *reterr);
bool skep_planning_read_text(const char *path, const char *text, size_t size,
	const struct skep_scenario_options *options, struct skep_scenario *ret, struct skep_diag *reterr);

#endif
