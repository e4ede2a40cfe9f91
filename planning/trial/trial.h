/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.h - what the simulator says of an allocation: over a few rounds, to compare candidates; over a span behind a warm-up,
 * to choose between the last few and to say what is expected; or until the target loss.
 */
#pragma once

#include "analysis/summary/summary.h"
#include "planning/trial/long_rounds.h"
#include "planning/trial/planner.h"

/* Rounds that make a trial of a size that does not depend on the pool. */
uint32_t skep_trial_rounds(const struct skep_scenario *scenario);

/* Simulates it with as many seeds as the scenario's plan wants. False: it does not fit memory, or does not come to an end; or
 * the planner lacks memory for it, and says so. */
bool skep_trial_run(struct skep_planner *planner, struct skep_candidate *candidate);

struct skep_trial_whole { /* one run until the target loss */
	bool reached, extrapolated;
	double time_s, usd; /* until the target; NAN: not reached, or prices unknown */
	double samples_per_s;
};
/* False: it cannot be read, or there is no memory. */
bool skep_trial_run_whole(
	struct skep_planner *planner, const uint32_t *stage_of, uint64_t seed, struct skep_trial_whole *ret);
/* About how many events a round has, as it is simulated in a trial or a span. */
double skep_trial_events(const struct skep_scenario *scenario);
/* About how many so many rounds have in a whole run. */
double skep_trial_whole_events(const struct skep_scenario *scenario, uint32_t rounds);

struct skep_trial_span {  /* how much of a run is simulated; it depends on the scenario alone */
	uint32_t rounds;  /* of each run */
	uint32_t warm_up; /* of these, not counted */
	bool whole;       /* the run is simulated to its end: all is counted */
	uint32_t seeds;   /* for what is expected */
};
/* `rounds_needed`: until the target loss; 0: there is none, or it is not reached. */
struct skep_trial_span skep_trial_span_of(const struct skep_planner *planner, uint32_t rounds_needed);
/* Without arithmetic, over the span, long rounds by shorter ones; changes the scenario. `ear`: NULL: nothing hears it. False: it
 * does not come to an end, or there is no memory, as the error says then. */
bool skep_trial_run_span(const struct skep_trial_span *span, struct skep_scenario *scenario, struct skep_trial_ear *ear,
	struct skep_summary *ret, struct skep_diag *reterr);
/* Tries the best few of the candidates that were tried again, over the span, for the choice; not if that says nothing new. False:
 * a signal came, or a process died (0). */
bool skep_trial_again(struct skep_planner *planner, int *ret_signal);
