/* SPDX-License-Identifier: Apache-2.0
 *
 * long_rounds.h - rounds of hundreds of local steps, from two simulations of rounds of few of them.
 *
 * All steps of a round but the first few are alike: what a round takes, pays, sends and is busy for is a straight line in the
 * number of its local steps. Where a round has more events than are worth simulating, rounds of n steps and of 2n steps are
 * simulated instead, and the line through both is read at the steps that the round has.
 */
#pragma once

#include "planning/trial/simulate.h"

struct skep_trial_ear { /* hears what is simulated */
	struct skep_recorder recorder;
	double weight; /* what it hears now counts as often; 1 where rounds are simulated as they are */
};

/* Steps of the shorter rounds, for a scenario whose rounds have about so many events; 0: its rounds are simulated as they are.
 * They are short, or no straight line: machines come and go, states are kept, rounds overlap, or a swarm deals so few
 * microbatches to several workers of a stage that the end of a round is earlier or later by more than half a percent of the
 * shorter one, or rounds are less than ten times as long as others would be. */
uint32_t skep_long_rounds_steps(const struct skep_scenario *scenario, double round_events);

/* The same, to tell what is far from the best: with a few percent of noise, in a third of the time or
 * less. 0: no line, or short. */
uint32_t skep_long_rounds_glance(const struct skep_scenario *scenario, double round_events);

/* As skep_simulate() does, of plan.rounds rounds, `warm_up` of which are not counted. `ear`: NULL: none. `steps`: of
 * skep_long_rounds_steps() or _glance(). The summary has figures of rounds as long as they are, and the events that were
 * simulated. */
bool skep_long_rounds_simulate(const struct skep_scenario *scenario, uint32_t steps, uint32_t warm_up,
	struct skep_trial_ear *ear, struct skep_summary *ret, struct skep_diag *reterr);
