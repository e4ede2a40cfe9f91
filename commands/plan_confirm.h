/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_confirm.h - is the plan better than a swarm's random start where it was not looked at? What `skep plan` states of each
 * plan, from a few seeds, and what --confirm N finds, from N others. For the files of `skep plan` alone.
 */
#ifndef SKEP_COMMANDS_PLAN_CONFIRM_H
#define SKEP_COMMANDS_PLAN_CONFIRM_H

#include <cjson/cJSON.h>

#include "commands/plan_span.h"
#include "commands/plan_work.h"
#include "planning/interval.h"

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
	bool stated;           /* a statement, not a confirmation: ... */
	struct plan_span span; /* ... over so much of each run */
	bool kept;             /* in the database */
	int signal;            /* that ended it; 0: none */
};

/* False: something went wrong, and it was said. Either way *ret is to be finished. */
bool plan_confirm_run(const struct plan_work *work, struct plan_confirm *ret);
/* The same for what is to be expected: with seeds that neither the choice nor any confirmation has. */
bool plan_confirm_state(const struct plan_work *work, struct plan_confirm *ret);
void plan_confirm_finish(struct plan_confirm *confirm);

/* Can the runs be kept? Says itself what is wrong. */
bool plan_confirm_ready(const struct arguments *arguments);

/* How often the plan is better than a side; the mean of a figure of a side. */
struct skep_interval plan_confirm_times(const struct plan_confirm *confirm, uint32_t side, enum plan_figure figure);
struct skep_interval plan_confirm_mean(const struct plan_confirm *confirm, uint32_t side, enum plan_figure figure);
/* A statement, in one line or two that begin with `margin`. */
void plan_confirm_print_stated(const struct plan_work *work, const char *margin, FILE *out);
void plan_confirm_print(const struct plan_work *work, const struct plan_confirm *confirm, FILE *out);
/* As `stated` or `confirmed`. */
void plan_confirm_add_json(const struct plan_work *work, const struct plan_confirm *confirm, cJSON *root);

#endif
