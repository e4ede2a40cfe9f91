/* SPDX-License-Identifier: Apache-2.0
 *
 * forecast.h - from the time of a step to what a user wants of a plan: samples per second, the time until the target loss, and
 * what that costs. And what a reduction takes with the collective that the scenario asks for: the searches know a ring alone.
 *
 * The loss is the law's (scenarios/plan/law.h): the target is reached with the first round whose microbatches it gives that loss,
 * with as many replicas as the allocation has in its largest stage. Where the law is asked outside of what it was fitted in, the
 * forecast says so. Money is that of all who are there at the start, at the prices of the start, and that of a step's
 * traffic (traffic.h).
 */
#pragma once

#include "planning/problem/problem.h"
#include "scenarios/read/planned.h"

struct skep_forecast {
	double samples_per_s;
	uint32_t
		rounds; /* until the target; 0: none, or not reached within train.until.steps or where the law was fitted */
	double time_s, usd; /* until then; INFINITY: never; usd NAN: prices unknown */
	double usd_per_h;   /* of machines; NAN: unknown */
	double egress_usd;  /* of a step, 0 without prices of traffic; NAN: unknown */
	bool extrapolated;  /* the law was asked outside of its data, ... */
	char how[160];      /* ... in this */
};

/* `stage_of` as a search has it, [workers]. `step_s`: of an optimizer step, so that a round is as many as it has. */
void skep_forecast_make(
	const struct skep_planning *planning, const uint32_t *stage_of, double step_s, struct skep_forecast *ret);

/* Of what is wanted; less is better, INFINITY: never. */
double skep_forecast_value(const struct skep_forecast *forecast, enum skep_aim aim);

/* A sum among n members of V bytes each, with the mean delay and the least rate among them; for `hierarchical` members of one
 * place are one site. Estimates: messages that meet at a machine or a line are in the rate of the view, or nowhere. */
double skep_forecast_reduction_s(
	const struct skep_planning *planning, enum skep_contention view, const uint32_t *stage_of, uint32_t stage);
