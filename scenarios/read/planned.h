/* SPDX-License-Identifier: Apache-2.0
 *
 * planned.h - the group `plan` of a scenario: what `skep plan` is to look for, and which keys it may choose the values of.
 * Neither world looks at it.
 *
 * A key stands in `plan.search` with the values that it may have; every other key is fixed, whether the scenario writes
 * it or not. `auto` frees keys that the scenario does not write, and only such as leave alone what is learnt, or that
 * the law of the losses knows: compression is for the user to free.
 *
 * Where the model is cut is no such key: it is found (planning/problem/cuts.h), unless `model.cut` is written or free,
 * or plan.cut says not to.
 */
#pragma once

#include "scenarios/read/scenario.h"
#include "scenarios/vary/vary.h"

enum skep_aim {
	SKEP_AIM_THROUGHPUT, /* the most samples per second */
	SKEP_AIM_TIME,       /* the least time until the target loss */
	SKEP_AIM_COST,       /* the least money until then */
	SKEP_AIMS
};

enum skep_planned_method { /* what finds the plan */
	SKEP_PLANNED_SEARCH,
	SKEP_PLANNED_PIPEDREAM,      /* PipeDream's partitioner, as in the paper ... */
	SKEP_PLANNED_PIPEDREAM_TOOL, /* ... and as its released tool does it */
	SKEP_PLANNED_ALPA,
};

struct skep_planned {
	enum skep_aim aim;
	bool dtfm; /* allocations by DT-FM's cost alone; `aim` is the throughput */
	enum skep_planned_method method;
	uint32_t seeds;        /* what is simulated is the mean over so many, the scenario's own and those after it */
	bool extrapolate;      /* may a law be asked outside of what it was fitted in? */
	bool automatic;        /* some of the keys are there because of `auto` */
	bool cuts;             /* where the model is cut is looked for as well ... */
	bool says_cut;         /* ... and the file says so, as `plan.cut: auto` */
	struct skep_vary free; /* keys with their values, as text; no seeds */
};

/* When all else is read, which it needs: fills s->planned if the group is there. */
void skep_planned_read(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_scenario *s);
void skep_planned_destroy(struct skep_planned *planned); /* NULL is fine */

/* Is a plan to look for a cut? Also without the group. */
bool skep_planned_cuts(const struct skep_scenario *scenario);

/* As in the file. */
const char *skep_aim_name(enum skep_aim aim);
const char *skep_planned_method_name(enum skep_planned_method method);
