/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_confirm.h - `skep plan --confirm N`: is the plan better than a swarm's random start where it was not looked at? For
 * the files of `skep plan` alone.
 */
#ifndef SKEP_COMMANDS_PLAN_CONFIRM_H
#define SKEP_COMMANDS_PLAN_CONFIRM_H

#include <cjson/cJSON.h>

#include "commands/plan_work.h"

enum plan_figure { PLAN_RATE, PLAN_TIME, PLAN_USD, PLAN_FIGURES }; /* samples/s; until the target loss s, USD */

struct plan_side {
	const char *name;                  /* "random", "as written" or "plan" */
	const struct arguments *arguments; /* that its scenario is read with, ... */
	char *set;                         /* ... and this assignment; NULL: none */
	double *value[PLAN_FIGURES];       /* [seeds]; NAN: there is none */
	uint32_t ended, reached;           /* runs that came to their end, and to the target loss */
	uint32_t impossible;               /* could not be run: does not fit memory, for example ... */
	char why[512];                     /* ... the first of them */
};

struct plan_confirm {
	uint64_t first_seed;
	uint32_t seeds, sides; /* the last side is the plan, the first the random start */
	struct plan_side side[3];
	bool kept;  /* in the database */
	int signal; /* that ended it; 0: none */
};

/* False: something went wrong, and it was said. Either way *ret is to be finished. */
bool plan_confirm_run(const struct plan_work *work, struct plan_confirm *ret);
void plan_confirm_finish(struct plan_confirm *confirm);

/* Can the runs be kept? Says itself what is wrong. */
bool plan_confirm_ready(const struct arguments *arguments);
/* Are there so many seeds behind those of the plan? The same, once the scenario is read. */
bool plan_confirm_seeds_ready(const struct plan_work *work);

void plan_confirm_print(const struct plan_work *work, const struct plan_confirm *confirm, FILE *out);
void plan_confirm_add_json(const struct plan_work *work, const struct plan_confirm *confirm, cJSON *root);

#endif
