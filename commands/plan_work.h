/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_work.h - what the files of `skep plan` share: candidates, from the search (plan.c) by way of the simulator
 * (plan_trial.c) to what is printed and written (plan_print.c, plan_json.c, plan_file.c). Not for other commands.
 */
#ifndef SKEP_COMMANDS_PLAN_WORK_H
#define SKEP_COMMANDS_PLAN_WORK_H

#include "commands/arguments.h"
#include "core/allocate/search.h"
#include "planning/choices.h"
#include "planning/forecast.h"
#include "planning/problem.h"

#define PLAN_RANDOMS 8u    /* random allocations that are simulated, at most, ... */
#define PLAN_CUT_TRIALS 5u /* of what cuts the model elsewhere */
#define PLAN_SAMPLES 64u   /* ... and that the costs are asked about */

struct plan_candidate {
	const char *name;              /* "start", "random", or a method */
	enum skep_planning_view view;  /* that it was searched with */
	uint32_t *stage_of;            /* [workers] */
	uint32_t *layers;              /* [slices] where it cuts the model; NULL: where the scenario does */
	double step_s[SKEP_VIEWS];     /* expected */
	uint64_t evaluations;          /* of its search */
	bool optimal;                  /* in its view */
	double mean_s, worst_s;        /* expected of all allocations that can be; NAN: not all were looked at */
	bool lean;                     /* its search might leave machines out */
	bool tried, fits;              /* simulated; fits memory, as far as that is known */
	double samples_per_s, round_s; /* simulated, and ... */
	struct skep_forecast forecast; /* ... what that means for the loss */
	char why[256];                 /* its trial failed; "": it did not, or there was none */
	double value;                  /* of what is wanted, less is better; INFINITY: not tried */
	bool again;                    /* that is of a longer trial: plan_span.h */
};

struct plan_mean { /* over random allocations */
	uint32_t count;
	double mean, half; /* of the interval that has the true mean with 95 % */
};

struct plan_work {
	const struct arguments *arguments, *as_given; /* with the settings that were chosen, and without */
	struct skep_scenario scenario;                /* as it was read; the planning points to it */
	struct skep_planning planning;
	void *cost_memory[SKEP_VIEWS];
	const struct skep_objective *cost[SKEP_VIEWS];
	void *rented_memory;
	const struct skep_objective *rented; /* by what a step costs, where that is what is wanted; else NULL */
	struct plan_candidate candidate[40]; /* the first is the scenario's own; then the searches' */
	uint32_t candidates, chosen;
	struct plan_candidate random[PLAN_RANDOMS];
	struct plan_mean random_step, random_rate, random_round;
	uint32_t rounds;             /* that are simulated */
	uint64_t begin_ns, until_ns; /* until_ns 0: no limit of time */
	FILE *details;               /* for lists that an error of the scenario has no room for; NULL: nowhere */
	enum skep_aim aim;
	const uint32_t *given;             /* [workers] an allocation that is a candidate as well; NULL: none */
	const uint32_t *given_layers;      /* [slices] with this cut; NULL: with the scenario's own */
	bool cuts;                         /* may it cut the model elsewhere? */
	bool hasty;                        /* one of many that are looked at */
	struct arguments recut;            /* `arguments` once a cut was taken over, with these: */
	char *cut;                         /* "model.cut=[3, 2, 2, 2]"; NULL: none was */
	uint32_t given_sets;               /* assignments before that */
	bool opened;                       /* the scenario's own cut fits nobody: all is with another one */
	uint32_t *even;                    /* [slices] the cut before that, for who is told */
	double even_samples_per_s;         /* the most that was simulated with it; 0: nothing was */
	struct plan_joint *joint;          /* how the settings were chosen; NULL: none were free */
	const struct plan_confirm *stated; /* what is expected of the choice; NULL: that is not known yet */
};

/* In this order: reads; makes what searches need; searches and tries what they find; chooses. What is wrong is in reterr. */
bool plan_read(struct plan_work *work, char *reterr, size_t size);
enum status plan_prepare(struct plan_work *work, char *reterr, size_t size);
bool plan_seek(struct plan_work *work);   /* false: no memory */
bool plan_choose(struct plan_work *work); /* false: nothing that was found can be, and ... */
void plan_choose_why(const struct plan_work *work, char *ret, size_t size); /* ... why */
uint32_t plan_randoms(const struct plan_work *work);                        /* that are to be simulated */
void plan_clear(struct plan_work *work);                                    /* all that these have made */

uint64_t plan_now_ns(void);
bool plan_add(struct plan_work *work, const char *name, struct plan_candidate **ret); /* false: no memory */
bool plan_make_costs(struct plan_work *work);                                         /* false: no memory */
void plan_free_costs(struct plan_work *work);

/* ---- cuts (plan_cuts.c) */
/* The scenario's own cut fits nobody: takes over one that does. False: none was found, or no memory. */
bool plan_cuts_open(struct plan_work *work);
/* Behind the searches and their trials: candidates that cut the model elsewhere, tried. False: no memory. */
bool plan_cuts_seek(struct plan_work *work);
/* From now on the scenario is cut like this ([slices]), or as the chosen candidate cuts it. False: no memory, or it cannot be. */
bool plan_cuts_take(struct plan_work *work, const uint32_t *layers);
bool plan_cuts_adopt(struct plan_work *work);

/* Reads the scenario with this allocation, as -o writes it, cut as it is; false: it cannot be, and diag says why. */
bool plan_trial_read(
	const struct plan_work *work, const uint32_t *stage_of, struct skep_scenario *ret, struct skep_diag *reterr);
/* The same with another seed (NULL: its own), cut into these layers (NULL: as it is); stage_of NULL: with its own allocation. */
bool plan_trial_read_with(const struct plan_work *work, const uint32_t *stage_of, const uint64_t *seed,
	const uint32_t *layers, struct skep_scenario *ret, struct skep_diag *reterr);
/* Simulates it, with as many seeds as the scenario's plan wants. False: it does not fit memory, or does not come to an end. */
bool plan_trial(const struct plan_work *work, struct plan_candidate *candidate);
/* Messages of a ring are too many for a trial: one flow for each link stands in for them. */
bool plan_trial_flows(const struct skep_scenario *scenario);
/* Rounds that make a trial of a size that does not depend on the pool. */
uint32_t plan_trial_rounds(const struct skep_scenario *scenario);

/* One run until the target loss, all of it and with this seed. */
struct plan_whole {
	bool done, reached, extrapolated;
	double time_s, usd; /* until the target; NAN: not reached, or prices unknown */
	double samples_per_s;
};
/* False: it cannot be read, or there is no memory. */
bool plan_whole_run(const struct plan_work *work, const uint32_t *stage_of, uint64_t seed, struct plan_whole *ret);
/* About how many events such a run has. */
double plan_whole_events(const struct skep_scenario *scenario, uint32_t rounds);

void plan_print(const struct plan_work *work, FILE *out);
void plan_explain(const struct plan_work *work, FILE *out);
/* Of --explain the table of stages; `planned` is the scenario with the choice. */
void plan_print_stages(const struct plan_work *work, const struct skep_scenario *planned, FILE *out);
struct plan_confirm;
void plan_print_json(
	const struct plan_work *work, const struct plan_confirm *confirm, FILE *out); /* NULL: not asked for */
/* Can -o be written, as far as that is known before? Says itself what is wrong, and so does the other one. */
bool plan_writable(const struct arguments *arguments);
bool plan_write(const struct plan_work *work);

/* "west 2 x t4, east 1 x v100": who serves the stage. */
void plan_crew(const struct plan_work *work, const uint32_t *stage_of, uint32_t stage, char *ret, size_t size);

#endif
