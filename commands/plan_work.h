/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_work.h - what the files of `skep plan` share: candidates, from the search (plan.c) by way of the simulator
 * (plan_trial.c) to what is printed and written (plan_print.c, plan_json.c, plan_file.c). Not for other commands.
 */
#ifndef SKEP_COMMANDS_PLAN_WORK_H
#define SKEP_COMMANDS_PLAN_WORK_H

#include "commands/arguments.h"
#include "core/allocate/search.h"
#include "planning/problem.h"

#define PLAN_RANDOMS 8u  /* random allocations that are simulated, ... */
#define PLAN_SAMPLES 64u /* ... and that the costs are asked about */

struct plan_candidate {
	const char *name;              /* "start", "random", or a method */
	enum skep_planning_view view;  /* that it was searched with */
	uint32_t *stage_of;            /* [workers] */
	double step_s[SKEP_VIEWS];     /* expected */
	uint64_t evaluations;          /* of its search */
	bool optimal;                  /* in its view */
	bool tried, fits;              /* simulated; fits memory, as far as that is known */
	double samples_per_s, round_s; /* simulated */
};

struct plan_mean { /* over random allocations */
	uint32_t count;
	double mean, half; /* of the interval that has the true mean with 95 % */
};

struct plan_work {
	const struct arguments *arguments;
	struct skep_scenario scenario; /* as it was read; the planning points to it */
	struct skep_planning planning;
	void *cost_memory[SKEP_VIEWS];
	const struct skep_objective *cost[SKEP_VIEWS];
	struct plan_candidate candidate[32]; /* the first is the scenario's own; then the searches' */
	uint32_t candidates, chosen;
	struct plan_candidate random[PLAN_RANDOMS];
	struct plan_mean random_step, random_rate, random_round;
	uint32_t rounds;             /* that are simulated */
	uint64_t begin_ns, until_ns; /* until_ns 0: no limit of time */
};

uint64_t plan_now_ns(void);

/* Reads the scenario with this allocation, as -o writes it; false: it cannot be, and diag says why. */
bool plan_trial_read(
	const struct plan_work *work, const uint32_t *stage_of, struct skep_scenario *ret, struct skep_diag *reterr);
/* Simulates it. False: it does not fit memory, or does not come to an end. */
bool plan_trial(const struct plan_work *work, struct plan_candidate *candidate);
/* Rounds that make a trial of a size that does not depend on the pool. */
uint32_t plan_trial_rounds(const struct skep_scenario *scenario);

void plan_print(const struct plan_work *work, FILE *out);
void plan_explain(const struct plan_work *work, FILE *out);
void plan_print_json(const struct plan_work *work, FILE *out);
/* Can -o be written, as far as that is known before? Says itself what is wrong, and so does the other one. */
bool plan_writable(const struct arguments *arguments);
bool plan_write(const struct plan_work *work);

/* "west 2 x t4, east 1 x v100": who serves the stage. */
void plan_crew(const struct plan_work *work, const uint32_t *stage_of, uint32_t stage, char *ret, size_t size);

#endif
