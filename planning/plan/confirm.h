/* SPDX-License-Identifier: Apache-2.0
 *
 * confirm.h - is the plan better than a swarm's random start where it was not looked at? What `skep plan` states of each
 * plan, from a few seeds, and what --confirm N finds, from N others.
 */
#pragma once

#include "planning/trial/interval.h"
#include "planning/trial/planner.h"
#include "planning/trial/trial.h"

#define SKEP_CONFIRM_SEEDS_MOST 1000u

enum skep_figure {
	SKEP_FIGURE_RATE,
	SKEP_FIGURE_TIME,
	SKEP_FIGURE_USD,
	SKEP_FIGURES
}; /* samples/s; until the loss s, USD */

struct skep_confirm_side {
	const char *name;             /* "random", "as written" or "plan" */
	struct skep_assignments with; /* that its scenario is read with */
	double *value[SKEP_FIGURES];  /* [seeds]; NAN: there is none */
	uint32_t ended, reached;      /* runs that came to their end, and to the target loss */
	uint32_t impossible;          /* could not be run: does not fit memory, for example ... */
	char why[512];                /* ... the first of them */
};

struct skep_confirm {
	uint64_t first_seed;
	uint32_t seeds, sides; /* the last side is the plan, the first the random start */
	struct skep_confirm_side side[3];
	bool stated;                 /* a statement, not a confirmation: ... */
	struct skep_trial_span span; /* ... over so much of each run */
	bool kept;                   /* in the database */
};

/* Simulates the plan and the others with --confirm's seeds, or, for what is expected of the plan, with seeds that
 * neither the choice nor any confirmation has. What is wrong is in the planner's error. Either way *ret is to be
 * finished. */
enum status skep_confirm_run(struct skep_planner *planner, struct skep_confirm *ret);
enum status skep_confirm_state(struct skep_planner *planner, struct skep_confirm *ret);
void skep_confirm_finish(struct skep_confirm *confirm);

/* Are there so many seeds behind those of the plan? */
enum status skep_confirm_ready(struct skep_planner *planner);

/* How often the plan is better than a side, and least of all pairs (NAN: there are none); its figure less the side's;
 * the mean of a figure of a side. */
struct skep_interval skep_confirm_times(const struct skep_confirm *confirm, uint32_t side, enum skep_figure figure);
double skep_confirm_least_times(const struct skep_confirm *confirm, uint32_t side, enum skep_figure figure);
struct skep_interval skep_confirm_difference(
	const struct skep_confirm *confirm, uint32_t side, enum skep_figure figure);
struct skep_interval skep_confirm_mean(const struct skep_confirm *confirm, uint32_t side, enum skep_figure figure);

/* Has the statement whole runs of the plan? Then what all steps take is their mean; else it is skep_planner_whole_s(). */
bool skep_confirm_has_whole(const struct skep_planner *planner);
double skep_confirm_whole_s(const struct skep_planner *planner);
