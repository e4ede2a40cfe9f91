/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - see trial.h. What is simulated is the scenario that -o would write, with its trace, its network and all of its keys,
 * only for few rounds and without the arithmetic: so what is refused there is refused here. Only where the messages of a ring
 * among hundreds are too many, a flow for each link stands in for them.
 *
 * A trial of a few steps sees no more than how pipelines fill, and how a swarm tries each worker of the next stage for the first
 * time: wiring by throughput or latency knows them only after that. It also ends before a worker is taken away. So the first
 * rounds of a span are not counted, as many as it takes to try every worker twice; and a run that is short enough is simulated
 * to its end, with all that a trace does to it.
 *
 * Keeps true: rounds, warm-up and seeds follow from the scenario, not from the clock.
 */
#include "planning/trial/trial.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/expected/expected.h"
#include "planning/trial/long_rounds.h"
#include "planning/trial/processes.h"

#define EVENTS_MOST 250000.0 /* of a trial: about a second */
#define ROUNDS_LEAST 2.0
#define ROUNDS_MOST 8.0

#define SPAN_EVENTS 50000.0         /* of one run of the span, where there are rounds enough behind the warm-up ... */
#define SPAN_EVENTS_MOST 150000.0   /* ... and where there are not */
#define SPAN_EVENTS_JOINT 1000000.0 /* settings were compared, so that time has another measure */
#define ROUNDS_COUNTED 8.0
#define ALL_EVENTS_JOINT 2e7 /* of all runs of both sides, where seeds are not the fewest */
#define SEEDS 4u
#define SEEDS_JOINT 16u
#define FINALISTS 2u
#define FAR 1.15 /* times the best value: what a glance at a candidate finds to be worse than that is not simulated */

/* Of one round: about five for a pass there and back, ... */
static double pass_events(const struct skep_scenario *s)
{
	return 5.0 * s->plan.microbatches * skep_plan_vstages(&s->plan);
}

/* ... and the messages of a ring in each stage. */
static double sum_events(const struct skep_scenario *s, bool flows)
{
	double stages = s->plan.stages, workers = s->plan.workers;
	return flows ? 4 * workers : 4 * workers * workers / stages;
}

/* Steps of the shorter of two rounds that stand for one; 0: none do. */
static uint32_t short_steps(const struct skep_scenario *s)
{
	return skep_long_rounds_steps(s, pass_events(s));
}

static uint32_t glance_steps(const struct skep_scenario *s)
{
	return skep_long_rounds_glance(s, pass_events(s));
}

/* Of one round as it is simulated in a trial. */
static double round_events(const struct skep_scenario *s, bool flows)
{
	uint32_t steps = short_steps(s);
	if (steps == 0)
		return pass_events(s) + sum_events(s, flows);
	return pass_events(s) * 3 * steps / s->plan.inner.steps + 2 * sum_events(s, flows);
}

/* Messages of a ring are too many for a trial: one flow for each link stands in for them. */
static bool takes_flows(const struct skep_scenario *s)
{
	bool can = s->plan.reduction.collective == SKEP_COLLECTIVE_RING && !s->plan.eager;
	return s->collectives_as_flows || (can && ROUNDS_LEAST * round_events(s, false) > EVENTS_MOST);
}

double skep_trial_events(const struct skep_scenario *s)
{
	return round_events(s, takes_flows(s));
}

double skep_trial_whole_events(const struct skep_scenario *s, uint32_t rounds)
{
	return rounds * (pass_events(s) + sum_events(s, takes_flows(s)));
}

uint32_t skep_trial_rounds(const struct skep_scenario *s)
{
	double rounds = floor(EVENTS_MOST / skep_trial_events(s));
	rounds = fmin(fmax(rounds, ROUNDS_LEAST), ROUNDS_MOST);
	return rounds < s->plan.rounds ? (uint32_t)rounds : s->plan.rounds;
}

static void leave_arithmetic(struct skep_scenario *s)
{
	s->arithmetic = SKEP_ARITHMETIC_NONE;
	s->plan.until.target_loss_nano = INT64_MIN;
	s->plan.until.end_ns = s->plan.until.budget_microusd = 0;
	s->plan.scale = NULL; /* with the machines of the start */
	s->target_loss = NAN;
}

/* ---- a few rounds ------------------------------------------------------------------------------------------------ */

/* Without an error of its own the simulator lacks memory. */
static bool run(const struct skep_scenario *s, uint32_t steps, uint32_t warm_up, struct skep_trial_ear *ear,
	struct skep_summary *ret, struct skep_diag *reterr)
{
	return skep_long_rounds_simulate(s, steps, warm_up, ear, ret, reterr) ||
	       skep_fail(reterr, "not enough memory to simulate it");
}

/* As skep_planner_read() does. What there was no memory for cannot be for that reason alone. */
static bool read(struct skep_planner *w, const uint32_t *stage_of, const uint64_t *seed, const uint32_t *layers,
	struct skep_scenario *ret, struct skep_diag *reterr)
{
	bool is = skep_planner_read(w, stage_of, seed, layers, ret, reterr);
	w->lacking = w->lacking || (!is && skep_diag_is_memory(reterr));
	return is;
}

/* Some rounds of a run have more than their part of its validations and checkpoints, or less: they are left out of them. What is
 * to be added to each step; 0 and as it was: it is not known. */
static double leave_extras(struct skep_scenario *s)
{
	double extra_s = skep_expected_extra_s(s);
	if (extra_s > 0)
		s->plan.validation.every = s->plan.checkpoint_every = 0;
	return extra_s;
}

/* As if a step of so long took that much more. */
static double slower(double samples_per_s, double step_s, double extra_s)
{
	return extra_s > 0 ? samples_per_s * step_s / (step_s + extra_s) : samples_per_s;
}

/* Adds to what the candidate has, with so much more for each step. `steps`: as in long_rounds.h. False: it does not end. */
static bool simulate(
	struct skep_planner *w, const struct skep_scenario *s, double extra_s, uint32_t steps, struct skep_candidate *c)
{
	struct skep_summary summary;
	struct skep_diag error = {0};
	if (!run(s, steps, 0, NULL, &summary, &error)) {
		w->lacking = w->lacking || skep_diag_is_memory(&error);
		snprintf(c->why, sizeof c->why, "%.250s", error.message);
		return false;
	}
	if (!summary.ok)
		snprintf(c->why, sizeof c->why, "its trial does not come to an end: %.200s",
			summary.failure[0] ? summary.failure
					   : "a stage lost its last worker, and no other came in time");
	double step_s = summary.time_s / (double)(summary.steps > 0 ? summary.steps : 1);
	c->samples_per_s += slower(summary.throughput_samples_per_s, step_s, extra_s);
	c->round_s += step_s + extra_s;
	c->events += (double)summary.events;
	return summary.ok;
}

/* With the nth seed from the scenario's own. */
static bool try_seed(struct skep_planner *w, struct skep_candidate *c, bool glance, uint32_t nth)
{
	struct skep_scenario s;
	struct skep_diag diag = {0};
	uint64_t seed = w->scenario.seed + nth;
	c->fits = read(w, c->stage_of, nth > 0 ? &seed : NULL, c->layers, &s, &diag);
	if (!c->fits) {
		snprintf(c->why, sizeof c->why, "%.*s", (int)sizeof c->why - 1, diag.message);
		return false;
	}
	s.collectives_as_flows = takes_flows(&s);
	double extra_s = w->rounds < s.plan.rounds ? leave_extras(&s) : 0;
	s.plan.rounds = w->rounds;
	leave_arithmetic(&s);
	bool ended = simulate(w, &s, extra_s, glance ? glance_steps(&s) : short_steps(&s), c);
	skep_scenario_finish(&s);
	return ended;
}

/* False: it cannot be. */
static bool simulate_seeds(struct skep_planner *w, struct skep_candidate *c, bool glance)
{
	uint32_t seeds = skep_planner_seeds(w);
	c->samples_per_s = c->round_s = c->events = 0;
	c->tried = true;
	for (uint32_t nth = 0; c->tried && nth < seeds; nth++)
		c->tried = try_seed(w, c, glance, nth);
	if (!c->tried)
		return false;
	c->samples_per_s /= seeds;
	c->round_s /= seeds;
	return true;
}

/* Takes over what is known of it, or simulates it. False: it cannot be. */
static bool try_seeds(struct skep_planner *w, struct skep_candidate *c, bool glance)
{
	uint64_t key = w->known ? skep_known_key(w, c, glance) : 0;
	const struct skep_known_trial *known = w->known ? skep_known_find(w->known, key) : NULL;
	c->value = INFINITY;
	c->why[0] = '\0';
	if (known) {
		c->tried = c->fits = true;
		c->samples_per_s = known->samples_per_s;
		c->round_s = known->round_s;
		c->events = known->events;
	} else if (!simulate_seeds(w, c, glance)) {
		return false;
	} else if (w->known) {
		skep_known_add(w->known, &(struct skep_known_trial){key, c->samples_per_s, c->round_s, c->events});
	}
	skep_forecast_make(&w->planning, c->stage_of, c->round_s, &c->forecast);
	c->forecast.samples_per_s = c->samples_per_s;
	c->value = skep_forecast_value(&c->forecast, w->aim);
	return true;
}

/* The best value that was simulated so far; INFINITY: none was. */
static double best_value(const struct skep_planner *w)
{
	double best = w->to_beat > 0 ? w->to_beat : INFINITY;
	for (uint32_t i = 0; i < w->candidates; i++)
		if (w->candidate[i].tried && w->candidate[i].value < best)
			best = w->candidate[i].value;
	return best;
}

/* Where the caller compares the choice with others behind it, a glance is enough for what is far from the best. */
bool skep_trial_run(struct skep_planner *w, struct skep_candidate *c)
{
	double best = best_value(w);
	if (w->lacking)
		return false;
	skep_planner_show_trial(w);
	bool glances = w->options->unstated && isfinite(best) && short_steps(&w->scenario) == 0 &&
	               glance_steps(&w->scenario) > 0;
	if (glances && (!try_seeds(w, c, true) || c->value > FAR * best))
		return c->tried;
	return try_seeds(w, c, false);
}

/* ---- until the target -------------------------------------------------------------------------------------------- */

/* Ends where the target is reached, also if it is one that ends nothing. */
bool skep_trial_run_whole(struct skep_planner *w, const uint32_t *stage_of, uint64_t seed, struct skep_trial_whole *ret)
{
	struct skep_scenario s;
	struct skep_diag diag = {0};
	struct skep_summary summary;
	struct skep_diag error = {0};
	*ret = (struct skep_trial_whole){.time_s = NAN, .usd = NAN};
	if (!read(w, stage_of, &seed, NULL, &s, &diag))
		return false;
	s.collectives_as_flows = takes_flows(&s);
	if (!isnan(s.target_loss))
		s.plan.until.target_loss_nano = (int64_t)(s.target_loss * 1e9 + 0.5);
	bool ran = skep_simulate(&s, &(struct skep_simulate_options){0}, &summary, &error);
	if (ran)
		*ret = (struct skep_trial_whole){.reached = isfinite(summary.time_to_target_s),
			.extrapolated = summary.extrapolated,
			.time_s = summary.time_to_target_s,
			.usd = summary.cost_to_target_usd,
			.samples_per_s = summary.throughput_samples_per_s};
	w->lacking = w->lacking || (!ran && (!error.set || skep_diag_is_memory(&error)));
	skep_scenario_finish(&s);
	return ran;
}

/* ---- a span ------------------------------------------------------------------------------------------------------ */

/* Each of a stage tries each of the next one, as far as it knows them, once for its speed; once more, and shares have settled. */
static double warm_up_rounds(const struct skep_scenario *s)
{
	double members = (double)s->plan.workers / s->plan.stages, known = fmin(members, skep_view_capacity(&s->plan));
	bool learns = s->plan.wiring == SKEP_WIRING_THROUGHPUT || s->plan.wiring == SKEP_WIRING_LATENCY;
	return learns ? fmax(1, ceil(2 * members * known / s->plan.microbatches)) : 1;
}

struct skep_trial_span skep_trial_span_of(const struct skep_planner *w, uint32_t rounds_needed)
{
	const struct skep_scenario *s = &w->scenario;
	uint32_t all = rounds_needed > 0 && rounds_needed < s->plan.rounds ? rounds_needed : s->plan.rounds;
	double least = w->settings ? SPAN_EVENTS_JOINT : SPAN_EVENTS, round = skep_trial_events(s);
	double warm_up = warm_up_rounds(s);
	double rounds = fmax(floor(least / round), fmin(warm_up + ROUNDS_COUNTED, floor(SPAN_EVENTS_MOST / round)));
	struct skep_trial_span span = {.seeds = SEEDS, .whole = rounds >= all};
	span.rounds = span.whole ? all : (uint32_t)fmax(rounds, 2);
	span.warm_up = span.whole ? 0 : warm_up + 2 <= rounds ? (uint32_t)warm_up : span.rounds / 2;
	if (w->settings)
		span.seeds = (uint32_t)fmin(fmax(SEEDS, ALL_EVENTS_JOINT / (2 * span.rounds * round)), SEEDS_JOINT);
	return span;
}

bool skep_trial_run_span(const struct skep_trial_span *span, struct skep_scenario *s, struct skep_trial_ear *ear,
	struct skep_summary *ret, struct skep_diag *reterr)
{
	s->collectives_as_flows = takes_flows(s);
	if (!span->whole || s->arithmetic == SKEP_ARITHMETIC_REAL)
		leave_arithmetic(s);
	double extra_s = span->whole || span->rounds >= s->plan.rounds ? 0 : leave_extras(s);
	if (!span->whole)
		s->plan.rounds = span->rounds;
	uint32_t steps = span->whole ? 0 : short_steps(s);
	if (!run(s, steps, span->warm_up, ear, ret, reterr) || !ret->ok)
		return false;
	double period = skep_plan_mean_steps(&s->plan);
	ret->throughput_samples_per_s = slower(ret->throughput_samples_per_s, ret->round_s / period, extra_s);
	ret->round_s += extra_s * period;
	return true;
}

/* With the seeds that trials have: a step takes so long in the mean. False: it cannot be, or does not come to an end. */
static bool simulate_again(
	struct skep_planner *w, const struct skep_trial_span *span, const struct skep_candidate *c, double *ret_step_s)
{
	uint32_t seeds = skep_planner_seeds(w);
	double round_s = 0;
	for (uint32_t nth = 0; nth < seeds; nth++) {
		struct skep_scenario s;
		struct skep_summary summary;
		struct skep_diag diag = {0};
		uint64_t seed = w->scenario.seed + nth;
		if (!read(w, c->stage_of, &seed, c->layers, &s, &diag))
			return false;
		struct skep_trial_span counted = *span;
		counted.whole = false; /* as many rounds for each */
		bool ended = skep_trial_run_span(&counted, &s, NULL, &summary, &diag);
		w->lacking = w->lacking || skep_diag_is_memory(&diag);
		skep_scenario_finish(&s);
		if (!ended)
			return false;
		round_s += summary.round_s / w->planning.throughput[0].period;
	}
	*ret_step_s = round_s / seeds;
	return true;
}

static uint64_t key_again(
	const struct skep_planner *w, const struct skep_trial_span *span, const struct skep_candidate *c)
{
	return skep_known_key(w, c, UINT64_C(1) << 63 | (uint64_t)span->rounds << 31 | span->warm_up);
}

/* Takes over what is known of it, or simulates it. False: it cannot be. */
static bool try_again(struct skep_planner *w, const struct skep_trial_span *span, struct skep_candidate *c)
{
	const struct skep_known_trial *known = w->known ? skep_known_find(w->known, key_again(w, span, c)) : NULL;
	struct skep_forecast forecast;
	double step_s = known ? known->round_s : 0;
	if (!known && !simulate_again(w, span, c, &step_s))
		return false;
	skep_forecast_make(&w->planning, c->stage_of, step_s, &forecast);
	c->value = skep_forecast_value(&forecast, w->aim);
	c->again = true;
	return true;
}

/* The best by its trial that was not tried again; NULL: none. */
static struct skep_candidate *next_best(struct skep_planner *w)
{
	struct skep_candidate *best = NULL;
	for (uint32_t i = 0; i < w->candidates; i++) {
		struct skep_candidate *c = &w->candidate[i];
		if (c->tried && !c->again && (!best || c->value < best->value))
			best = c;
	}
	return best;
}

static bool same(const struct skep_planner *w, const struct skep_candidate *a, const struct skep_candidate *b)
{
	size_t vstages = skep_plan_vstages(&w->scenario.plan);
	bool alike = skep_planner_same_stages(w, a, b);
	if (!a->layers || !b->layers)
		return alike && a->layers == b->layers;
	return alike && memcmp(a->layers, b->layers, vstages * sizeof *a->layers) == 0;
}

/* The same allocation with the same cut is simulated once. */
static void share(struct skep_planner *w, const struct skep_candidate *c)
{
	for (uint32_t i = 0; i < w->candidates; i++) {
		struct skep_candidate *other = &w->candidate[i];
		if (!other->tried || !same(w, other, c))
			continue;
		other->value = c->value;
		other->again = c->again;
		other->tried = c->tried;
	}
}

/* ---- side by side ------------------------------------------------------------------------------------------------ */

struct finalists {
	struct skep_planner *planner;
	const struct skep_trial_span *span;
	const struct skep_candidate *list[1 + FINALISTS];
	uint32_t count;
};

static bool work_again(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count)
{
	const struct finalists *f = context;
	double *step_s = malloc(sizeof *step_s);
	if (step_s && !simulate_again(f->planner, f->span, f->list[job->number], step_s))
		*step_s = NAN;
	*ret = step_s;
	*ret_count = sizeof *step_s;
	return step_s != NULL;
}

/* What cannot be is found out anew. */
static void take_again(void *context, uint32_t number, void *bytes, uint64_t count)
{
	struct finalists *f = context;
	double step_s;
	assert(count == sizeof step_s);
	memcpy(&step_s, bytes, sizeof step_s);
	uint64_t key = key_again(f->planner, f->span, f->list[number]);
	if (!isnan(step_s))
		skep_known_add(f->planner->known, &(struct skep_known_trial){.key = key, .round_s = step_s});
	free(bytes);
}

static bool is_final(const struct finalists *f, const struct skep_candidate *c)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (same(f->planner, f->list[i], c))
			return true;
	return false;
}

/* Those that skep_trial_again() comes to, if all of them can be, are simulated at once. */
static bool know_finalists(struct skep_planner *w, const struct skep_trial_span *span, int *ret_signal)
{
	struct finalists f = {.planner = w, .span = span};
	if (!w->known || w->until_ns > 0 || w->options->processes < 2)
		return true;
	if (w->candidate[0].tried)
		f.list[f.count++] = &w->candidate[0];
	while (f.count <= FINALISTS) {
		const struct skep_candidate *best = NULL;
		for (uint32_t i = 0; i < w->candidates; i++) {
			const struct skep_candidate *c = &w->candidate[i];
			if (c->tried && !is_final(&f, c) && (!best || c->value < best->value))
				best = c;
		}
		if (!best)
			break;
		f.list[f.count++] = best;
	}
	return skep_processes_run(
		w->options->processes, 0, f.count, work_again, take_again, &f, NULL, NULL, ret_signal);
}

bool skep_trial_again(struct skep_planner *w, int *ret_signal)
{
	struct skep_candidate *c = next_best(w);
	*ret_signal = 0;
	if (!c)
		return true;
	struct skep_trial_span span = skep_trial_span_of(w, c->forecast.rounds);
	if (span.rounds <= w->rounds)
		return true;
	if (!know_finalists(w, &span, ret_signal))
		return false;
	for (uint32_t n = 0; n <= FINALISTS; n++) { /* the scenario's own, so that what is chosen is never worse */
		c = n == 0 && w->candidate[0].tried ? &w->candidate[0] : next_best(w);
		if (!c || (n > 1 && skep_planner_is_late(w)))
			break;
		bool ended = try_again(w, &span, c);
		share(w, c);
		c->tried = ended;
	}
	return true;
}
