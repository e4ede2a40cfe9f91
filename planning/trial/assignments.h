/* SPDX-License-Identifier: Apache-2.0
 *
 * assignments.h - what a scenario is read with: its file, assignments as --set takes them, in their order, and a seed. Each
 * variation of a scenario that `skep plan` looks at is a copy of such a list with a few more behind.
 */
#pragma once

#include "scenarios/read/scenario.h"

struct skep_assignments {
	const char *path;
	char **set;
	uint32_t sets;
	bool has_seed;
	uint64_t seed;
};

/* The lists own their texts. False: no memory; to be finished all the same. */
bool skep_assignments_make(const char *path, const struct skep_scenario_options *options, struct skep_assignments *ret);
bool skep_assignments_copy(const struct skep_assignments *from, struct skep_assignments *ret);
bool skep_assignments_add(struct skep_assignments *to, const char *assignment); /* NULL: no memory for it */
void skep_assignments_cut(struct skep_assignments *from, uint32_t sets);        /* leaves the first `sets` */
void skep_assignments_finish(struct skep_assignments *assignments);

/* For options of a reader; they point into the list. */
struct skep_scenario_options skep_assignments_options(const struct skep_assignments *assignments);

/* Reads the scenario and resolves its allocation. */
bool skep_assignments_read(
	const struct skep_assignments *assignments, struct skep_scenario *ret, struct skep_diag *reterr);
