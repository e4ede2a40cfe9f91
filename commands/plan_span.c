/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_span.c - see plan_span.h. A trial of a few steps sees no more than how pipelines fill, and how a swarm tries each
 * worker of the next stage for the first time: wiring by throughput or latency knows them only after that. It also ends
 * before anybody is taken away. So the first rounds of a span are not counted, as many as it takes to try everyone twice;
 * and a run that is short enough is simulated to its end, with all that a trace does to it.
 *
 * Keeps true: rounds, warm-up and seeds follow from the scenario, not from the clock.
 */
#include "commands/plan_span.h"

#include <math.h>
#include <string.h>

#include "core/wiring.h"
#include "sim/sim.h"

#define RUN_EVENTS 50000.0         /* of one run of the span, where there are rounds enough behind the warm-up ... */
#define RUN_EVENTS_MOST 150000.0   /* ... and where there are not */
#define RUN_EVENTS_JOINT 1000000.0 /* settings were compared, so that time has another measure */
#define ROUNDS_COUNTED 8.0
#define ALL_EVENTS_JOINT 2e7 /* of all runs of both sides, where seeds are not the fewest */
#define SEEDS 4u
#define SEEDS_JOINT 16u
#define FINALISTS 2u

/* Each of a stage tries each of the next one, as far as it knows them, once for its speed; once more, and shares have settled. */
static double warm_up_rounds(const struct skep_scenario *s)
{
	double members = (double)s->plan.workers / s->plan.stages, known = fmin(members, SKEP_VIEW_MAX);
	bool learns = s->plan.wiring == SKEP_WIRING_THROUGHPUT || s->plan.wiring == SKEP_WIRING_LATENCY;
	return learns ? fmax(1, ceil(2 * members * known / s->plan.microbatches)) : 1;
}

struct plan_span plan_span_of(const struct plan_work *w, uint32_t rounds_needed)
{
	const struct skep_scenario *s = &w->scenario;
	uint32_t all = rounds_needed > 0 && rounds_needed < s->plan.rounds ? rounds_needed : s->plan.rounds;
	double least = w->joint ? RUN_EVENTS_JOINT : RUN_EVENTS, round = plan_whole_events(s, 1);
	double warm_up = warm_up_rounds(s);
	double rounds = fmax(floor(least / round), fmin(warm_up + ROUNDS_COUNTED, floor(RUN_EVENTS_MOST / round)));
	struct plan_span span = {.seeds = SEEDS, .whole = rounds >= all};
	span.rounds = span.whole ? all : (uint32_t)fmax(rounds, 2);
	span.warm_up = span.whole ? 0 : warm_up + 2 <= rounds ? (uint32_t)warm_up : span.rounds / 2;
	if (w->joint)
		span.seeds = (uint32_t)fmin(fmax(SEEDS, ALL_EVENTS_JOINT / (2 * span.rounds * round)), SEEDS_JOINT);
	return span;
}

bool plan_span_simulate(const struct plan_span *span, struct skep_scenario *s, struct skep_summary *ret)
{
	struct skep_sim_result result;
	s->collectives_as_flows = plan_trial_flows(s);
	if (!span->whole || s->maths == SKEP_MATHS_REAL) {
		s->maths = SKEP_MATHS_NONE;
		s->plan.target_loss_nano = INT64_MIN;
		s->target_loss = NAN;
	}
	if (!span->whole)
		s->plan.rounds = span->rounds;
	struct skep_tally *tally = skep_tally_create(s, "sim");
	if (!tally)
		return false;
	skep_tally_warm_up(tally, span->warm_up);
	const struct skep_recorder recorder = skep_tally_recorder(tally);
	bool ran = skep_sim_run(s, &recorder, &result);
	if (ran)
		skep_tally_finish(tally, result.end_ns, result.events, 0, result.outcome, ret);
	skep_tally_destroy(tally);
	return ran && ret->ok;
}

/* ---- the last few ------------------------------------------------------------------------------------------------ */

/* With the seeds that trials have. False: it cannot be, or does not come to an end. */
static bool try_again(const struct plan_work *w, const struct plan_span *span, struct plan_candidate *c)
{
	uint32_t seeds = w->scenario.planned ? w->scenario.planned->seeds : 1;
	double round_s = 0;
	for (uint32_t nth = 0; nth < seeds; nth++) {
		struct skep_scenario s;
		struct skep_summary summary;
		struct skep_diag diag = {0};
		uint64_t seed = w->scenario.seed + nth;
		if (!plan_trial_read_with(w, c->stage_of, &seed, c->layers, &s, &diag))
			return false;
		struct plan_span counted = *span;
		counted.whole = false; /* as many rounds for each */
		bool ended = plan_span_simulate(&counted, &s, &summary);
		skep_scenario_finish(&s);
		if (!ended)
			return false;
		round_s += summary.round_s / w->planning.throughput[0].period;
	}
	struct skep_forecast forecast;
	skep_forecast_make(&w->planning, c->stage_of, round_s / seeds, &forecast);
	c->value = skep_forecast_value(&forecast, w->aim);
	c->again = true;
	return true;
}

/* The best by its trial that was not tried again; NULL: none. */
static struct plan_candidate *next_best(struct plan_work *w)
{
	struct plan_candidate *best = NULL;
	for (uint32_t i = 0; i < w->candidates; i++) {
		struct plan_candidate *c = &w->candidate[i];
		if (c->tried && !c->again && (!best || c->value < best->value))
			best = c;
	}
	return best;
}

static bool same(const struct plan_work *w, const struct plan_candidate *a, const struct plan_candidate *b)
{
	size_t slices = skep_plan_slices(&w->scenario.plan);
	bool alike = memcmp(a->stage_of, b->stage_of, w->planning.workers * sizeof *a->stage_of) == 0;
	if (!a->layers || !b->layers)
		return alike && a->layers == b->layers;
	return alike && memcmp(a->layers, b->layers, slices * sizeof *a->layers) == 0;
}

/* The same allocation with the same cut is simulated once. */
static void share(struct plan_work *w, const struct plan_candidate *c)
{
	for (uint32_t i = 0; i < w->candidates; i++) {
		struct plan_candidate *other = &w->candidate[i];
		if (!other->tried || !same(w, other, c))
			continue;
		other->value = c->value;
		other->again = c->again;
		other->tried = c->tried;
	}
}

void plan_span_try(struct plan_work *w)
{
	struct plan_candidate *c = next_best(w);
	if (!c)
		return;
	struct plan_span span = plan_span_of(w, c->forecast.rounds);
	if (span.rounds <= w->rounds)
		return;
	for (uint32_t n = 0; n <= FINALISTS; n++) { /* the scenario's own, so that what is chosen is never worse */
		c = n == 0 && w->candidate[0].tried ? &w->candidate[0] : next_best(w);
		if (!c || (n > 1 && w->until_ns > 0 && plan_now_ns() >= w->until_ns))
			break;
		bool ended = try_again(w, &span, c);
		share(w, c);
		c->tried = ended;
	}
}
