/* SPDX-License-Identifier: Apache-2.0
 *
 * planner.h - what `skep plan` does for one scenario, from reading it to what is printed of it, and all that it finds
 * out: one struct for the searches (searches.h), the simulator's trials (trial.h), the choice, and the printers
 * (print.h).
 *
 * Who makes a plan needs make_plan.h and print.h alone.
 */
#pragma once

#include "base/status.h"
#include "planning/problem/forecast.h"
#include "planning/problem/problem.h"
#include "planning/trial/assignments.h"
#include "planning/trial/known.h"

#define SKEP_PLANNER_RANDOMS 8u /* random allocations that are simulated, at most */
#define SKEP_PLANNER_CANDIDATES                                                                                        \
	26u /* the scenario's own, one that is given, and what searches and cuts find: 25 at most */

struct skep_planner_options {
	const char *path;
	struct skep_scenario_options given; /* --set and --seed */
	double budget_s;                    /* 0: no limit of time */
	uint32_t
		combinations; /* of free settings, that are looked at; of few of them fewer go on; 0: as many as usual */
	uint32_t processes;
	uint32_t confirm; /* seeds; 0: nothing is confirmed */
	bool pareto;
	const char *db;                 /* where runs that confirm are kept; NULL: nowhere */
	struct skep_progress *progress; /* shows how far it has come; NULL: nothing does */
	bool unstated;                  /* the caller finds out what to expect: no whole runs, and no statement */
};

struct skep_candidate {
	const char *name;                /* "start", "settings", "cuts", or a method */
	enum skep_contention view;       /* that it was searched with */
	uint32_t *stage_of;              /* [workers] */
	uint32_t *layers;                /* [vstages] where it cuts the model; NULL: where the scenario does */
	double cost_s[SKEP_CONTENTIONS]; /* a step's time as searches ask for it, ... */
	double expected_s;               /* ... and with all that is shared (expected.h) */
	uint64_t evaluations;            /* of its search */
	bool optimal;                    /* in its view */
	double mean_s, worst_s;          /* cost of all allocations that can be; NAN: not all were looked at */
	bool by_expected;                /* it was searched for by expected_s */
	bool lean;                       /* its search might leave machines out */
	bool tried, fits;                /* simulated; fits memory, as far as that is known */
	double samples_per_s, round_s;   /* simulated, and ... */
	double events;                   /* ... with so many events, and ... */
	struct skep_forecast forecast;   /* ... what that means for the loss */
	char why[256];                   /* its trial failed; "": it did not, or there was none */
	double value;                    /* of what is wanted, less is better; INFINITY: not tried */
	bool again;                      /* that is of a longer trial: trial.h */
};

struct skep_planner_mean { /* over random allocations */
	uint32_t count;
	double mean, half; /* of the interval that has the true mean with 95 % */
};

struct skep_free_settings;
struct skep_confirm;

struct skep_planner {
	const struct skep_planner_options *options;
	struct skep_assignments
		with;          /* those given, then those of the settings that were chosen, then those of a cut */
	uint32_t before_cut;   /* so many of them are not of the cut */
	bool recut;            /* another cut was taken over */
	const char *published; /* the planner of a publication that said cut and allocation; NULL: none did */
	double published_s;    /* ... and the step that it says itself; 0: it says none */
	bool opened;           /* ... since the scenario's own cut fits the memory of no worker */
	struct skep_scenario scenario; /* as it was read with these; the planning points to it */
	struct skep_planning planning;
	void *cost_memory[SKEP_CONTENTIONS];
	const struct skep_objective *cost[SKEP_CONTENTIONS];
	void *rented_memory;
	const struct skep_objective *rented; /* by what a step costs, where that is what is wanted; else NULL */
	struct skep_candidate candidate[SKEP_PLANNER_CANDIDATES]; /* the first is the scenario's own */
	uint32_t candidates, chosen;
	struct skep_planner_mean random_step, random_rate, random_round;
	uint32_t rounds;             /* that are simulated */
	uint64_t begin_ns, until_ns; /* until_ns 0: no limit of time */
	enum skep_aim aim;
	const uint32_t *given;                   /* [workers] an allocation that is a candidate as well; NULL: none */
	const uint32_t *given_layers;            /* [vstages] with this cut; NULL: with the scenario's own */
	bool cuts;                               /* may it cut the model elsewhere? */
	bool hasty;                              /* one of many that are looked at */
	struct skep_known_trials *known;         /* what was simulated before; NULL: nothing is kept */
	double to_beat;                          /* what other settings came to in the simulator; 0: not known */
	uint32_t *even;                          /* [vstages] the cut before another one was looked for */
	double even_samples_per_s;               /* the most that was simulated with it; 0: nothing was */
	struct skep_free_settings *settings;     /* how settings were chosen; NULL: none were free */
	struct skep_confirm *stated, *confirmed; /* what is expected of the choice, and confirmed; NULL: not known */
	bool lacking; /* memory, for a trial or what is expected: what was compared is not all there is */
	struct skep_diag error;
};

/* In this order: open reads the scenario; prepare makes what searches need, and says what is wrong in `error`; close. */
bool skep_planner_open(struct skep_planner *planner, struct skep_diag *reterr);
enum status skep_planner_prepare(struct skep_planner *planner);
void skep_planner_close(struct skep_planner *planner); /* all that a planner has but its settings and statements */

/* Becomes the error, in place of one from before. Returns the status. */
enum status skep_planner_fail(struct skep_planner *planner, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, of the scenario's file. */
enum status skep_planner_refuse(struct skep_planner *planner, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
enum status skep_planner_lack(struct skep_planner *planner); /* memory */

bool skep_planner_dtfm(const struct skep_planner *planner);      /* its objective is DT-FM's cost */
bool skep_planner_is_late(const struct skep_planner *planner);   /* or lacks memory: nothing more is to be begun */
uint32_t skep_planner_seeds(const struct skep_planner *planner); /* that a trial is simulated with */

/* NULL: no memory. */
struct skep_candidate *skep_planner_add(struct skep_planner *planner, const char *name);
/* By expected.h; where the cost is SKEP_NEVER, or the planner lacks memory, the cost. `planning`: its own, or that of a cut. */
double skep_planner_expected_s(
	struct skep_planner *planner, const struct skep_planning *planning, double cost_s, const uint32_t *stage_of);
/* Fills cost_s and expected_s. */
void skep_planner_expect(struct skep_planner *planner, struct skep_candidate *candidate);
bool skep_planner_same_stages(
	const struct skep_planner *planner, const struct skep_candidate *a, const struct skep_candidate *b);

/* From now on the scenario is cut like this ([vstages]). False: no memory, or it cannot be. */
bool skep_planner_recut(struct skep_planner *planner, const uint32_t *layers);

/* Reads it with this allocation (NULL: its own) as -o writes it, with another seed (NULL: its own), cut into these
 * layers (NULL: as it is). False: it cannot be, and diag says why. */
bool skep_planner_read(const struct skep_planner *planner, const uint32_t *stage_of, const uint64_t *seed,
	const uint32_t *layers, struct skep_scenario *ret, struct skep_diag *reterr);

/* What all steps of the scenario take with the chosen allocation, if no machine is lost, by the step that its trial took; and
 * what they cost in so many seconds at the prices of the start. NAN: there was no trial, or a price is not known. */
uint64_t skep_planner_steps(const struct skep_planner *planner);
double skep_planner_whole_s(const struct skep_planner *planner);
double skep_planner_whole_usd(const struct skep_planner *planner, double whole_s);

/* Draws how far the simulations have come that allocations are tried with: one more. */
void skep_planner_show_trial(const struct skep_planner *planner);

/* How many workers an allocation leaves out. */
uint32_t skep_planner_left_out(const struct skep_planner *planner, const uint32_t *stage_of);
