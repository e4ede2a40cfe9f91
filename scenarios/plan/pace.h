/* SPDX-License-Identifier: Apache-2.0
 *
 * pace.h - from what a step is expected to take to what a run of so many steps does: with the validations and the states that
 * are kept every so many rounds and behind the last one.
 */
#pragma once

#include "scenarios/read/scenario.h"

struct skep_pace {                         /* seconds, and USD of traffic */
	double fill_s;                     /* once in a run, until pipelines are full, and until they are empty again */
	double step_s;                     /* of an optimizer step */
	double validation_s, checkpoint_s; /* of each, ... */
	double last_checkpoint_s;          /* ... and of that behind the last round */
	double step_usd, validation_usd;   /* 0: nothing has a price; NAN: it is not known */
};

double skep_pace_time_s(const struct skep_scenario *scenario, const struct skep_pace *pace, double steps);
double skep_pace_traffic_usd(const struct skep_scenario *scenario, const struct skep_pace *pace, double steps);

/* Of a step on the mean of the run, or where that has no end of its own, in the long run. */
double skep_pace_mean_s(const struct skep_scenario *scenario, const struct skep_pace *pace);

/* Without a flush a worker that keeps its state holds up the rounds that overlap with it, and for how long is not known: what
 * is said of checkpoints is the least that they take. */
bool skep_pace_is_least(const struct skep_scenario *scenario);
