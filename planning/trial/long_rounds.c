/* SPDX-License-Identifier: Apache-2.0
 *
 * long_rounds.c - see long_rounds.h.
 */
#include "planning/trial/long_rounds.h"

#include <math.h>

#define LONG_EVENTS 2.5e5  /* of a round: shorter ones are simulated as they are */
#define SHORT_EVENTS 2.5e4 /* of the shorter of the two that stand for it, at least ... */
#define SHORT_STEPS 8u     /* ... and its steps: who makes which share of one is then as it is in a long round */

/* A swarm that deals microbatches to several workers of a stage: what is lined up at whom wanders, so rounds are lines with some
 * noise, and only those are read from one that would take ten times as long. */
#define LONG_DEALT_EVENTS 2.5e6
#define SHORT_DEALT_EVENTS 2.5e5
#define SHORT_DEALT 500.0 /* microbatches of the shorter one, for each worker of a stage */

/* Microbatches are dealt to several workers of a stage. */
static bool is_dealt(const struct skep_plan *p)
{
	return !skep_plan_fixed(p) && p->workers > p->stages;
}

/* Is all that a round does either once, or as often as it has steps? */
static bool is_straight(const struct skep_scenario *s)
{
	const struct skep_plan *p = &s->plan;
	bool apart = skep_plan_periodic(p) && !p->delayed && !p->async.on && !p->gossip && p->inner.fragments <= 1 &&
	             p->inner.cycle == 0 && !p->inner.sum_every && !p->inner.by_share;
	bool stays = !skep_scenario_has_absent(s) && p->checkpoint_every == 0 && p->validation.every == 0 &&
	             p->candidates.count <= 1 && p->rebalance.period_ns == 0;
	return apart && stays && s->outages.count == 0;
}

/* Whichever worker makes the last microbatch of a stage ends the round sooner or later by about one of its own, which of n steps
 * is the share members / (n * microbatches) for a worker of the mean speed. The line multiplies it by as much as the steps. */
static double dealt_steps(const struct skep_plan *p)
{
	double members = ceil((double)p->workers / p->stages), of_step = (double)p->microbatches / p->inner.steps;
	return is_dealt(p) ? ceil(SHORT_DEALT * members / of_step) : 0;
}

uint32_t skep_long_rounds_steps(const struct skep_scenario *s, double round_events)
{
	bool dealt = is_dealt(&s->plan);
	if (round_events < (dealt ? LONG_DEALT_EVENTS : LONG_EVENTS) || !is_straight(s))
		return 0;
	double events = dealt ? SHORT_DEALT_EVENTS : SHORT_EVENTS;
	double steps = fmax(SHORT_STEPS, ceil(events * s->plan.inner.steps / round_events));
	steps = fmax(steps, dealt_steps(&s->plan));
	return 4 * steps <= s->plan.inner.steps ? (uint32_t)steps : 0;
}

uint32_t skep_long_rounds_glance(const struct skep_scenario *s, double round_events)
{
	if (round_events < LONG_EVENTS || !is_straight(s) || 8 * SHORT_STEPS > s->plan.inner.steps)
		return 0;
	return SHORT_STEPS;
}

static bool simulate(const struct skep_scenario *s, uint32_t warm_up, double weight, struct skep_trial_ear *ear,
	struct skep_summary *ret, struct skep_diag *reterr)
{
	const struct skep_simulate_options options = {.warm_up = warm_up, .also = ear ? &ear->recorder : NULL};
	if (ear)
		ear->weight = weight;
	return skep_simulate(s, &options, ret, reterr);
}

static struct skep_scenario with_steps(const struct skep_scenario *scenario, uint32_t steps)
{
	struct skep_scenario s = *scenario;
	uint32_t of = s.plan.inner.steps;
	s.plan.inner.steps = steps;
	s.plan.microbatches = s.plan.microbatches / of * steps;
	if (skep_plan_fixed(&s.plan)) /* they run empty before each step */
		s.plan.accumulate = s.plan.accumulate / of * steps;
	s.batch = s.batch / of * steps;
	return s;
}

/* `a` and `b` are of n and 2n steps, `times` n steps are a round: the line through both. */
static double at(double a, double b, double times)
{
	return a + (times - 1) * (b - a);
}

static uint64_t count_at(uint64_t a, uint64_t b, double times)
{
	return (uint64_t)fmax(0, at((double)a, (double)b, times) + 0.5);
}

static void join(const struct skep_summary *a, const struct skep_summary *b, double times, struct skep_summary *ret)
{
	*ret = *b;
	ret->events = a->events + b->events;
	ret->steps = count_at(a->steps, b->steps, times);
	ret->time_s = at(a->time_s, b->time_s, times);
	ret->round_s = at(a->round_s, b->round_s, times);
	ret->passes_s = at(a->passes_s, b->passes_s, times);
	ret->reduction_s =
		b->reduction_s; /* what of it is left behind the passes, with whatever stage is the last to end them */
	ret->cost_usd = at(a->cost_usd, b->cost_usd, times);
	ret->egress_usd = at(a->egress_usd, b->egress_usd, times);
	ret->utilisation = at(a->utilisation * a->time_s, b->utilisation * b->time_s, times) / ret->time_s;
	double counted_a = (double)a->samples / a->throughput_samples_per_s,
	       counted_b = (double)b->samples / b->throughput_samples_per_s;
	ret->samples = count_at(a->samples, b->samples, times);
	ret->tokens = count_at(a->tokens, b->tokens, times);
	ret->throughput_samples_per_s = (double)ret->samples / at(counted_a, counted_b, times);
	ret->bytes_pipeline = count_at(a->bytes_pipeline, b->bytes_pipeline, times);
	ret->bytes_sync = count_at(a->bytes_sync, b->bytes_sync, times);
}

bool skep_long_rounds_simulate(const struct skep_scenario *s, uint32_t steps, uint32_t warm_up,
	struct skep_trial_ear *ear, struct skep_summary *ret, struct skep_diag *reterr)
{
	if (steps == 0)
		return simulate(s, warm_up, 1, ear, ret, reterr);
	struct skep_summary a, b;
	double times = (double)s->plan.inner.steps / steps;
	const struct skep_scenario of_n = with_steps(s, steps), of_2n = with_steps(s, 2 * steps);
	bool ran = simulate(&of_n, warm_up, 2 - times, ear, &a, reterr);
	if (!ran || !a.ok) {
		*ret = a;
		return ran;
	}
	ran = simulate(&of_2n, warm_up, times - 1, ear, &b, reterr);
	if (ran && b.ok)
		join(&a, &b, times, ret);
	else
		*ret = b;
	return ran;
}
