/* SPDX-License-Identifier: Apache-2.0
 *
 * pace.c - see pace.h.
 */
#include "scenarios/plan/pace.h"

#include <math.h>

#include "scenarios/plan/plan.h"

/* One behind each `every` rounds, and one behind the last round. */
static double times(const struct skep_scenario *s, uint32_t every, double steps)
{
	double rounds = skep_plan_rounds_of(&s->plan, (uint32_t)fmin(steps, UINT32_MAX));
	return every > 0 ? ceil(rounds / every) : 0;
}

double skep_pace_time_s(const struct skep_scenario *s, const struct skep_pace *p, double steps)
{
	double validations = times(s, s->plan.validation.every, steps),
	       kept = times(s, s->plan.checkpoint_every, steps);
	double kept_s = kept > 0 ? (kept - 1) * p->checkpoint_s + p->last_checkpoint_s : 0;
	return p->fill_s + steps * p->step_s + validations * p->validation_s + kept_s;
}

double skep_pace_traffic_usd(const struct skep_scenario *s, const struct skep_pace *p, double steps)
{
	return steps * p->step_usd + times(s, s->plan.validation.every, steps) * p->validation_usd;
}

double skep_pace_mean_s(const struct skep_scenario *s, const struct skep_pace *p)
{
	double round_s = 0, steps = (double)skep_plan_all_steps(s);
	if (steps > 0)
		return skep_pace_time_s(s, p, steps) / steps;
	if (s->plan.validation.every > 0)
		round_s += p->validation_s / s->plan.validation.every;
	if (s->plan.checkpoint_every > 0)
		round_s += p->checkpoint_s / s->plan.checkpoint_every;
	return p->step_s + round_s / skep_plan_mean_steps(&s->plan);
}

bool skep_pace_is_least(const struct skep_scenario *s)
{
	return skep_plan_no_flush(&s->plan) && s->plan.checkpoint_every > 0;
}
