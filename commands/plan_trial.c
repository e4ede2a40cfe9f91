/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_trial.c - what the simulator says of an allocation. What it simulates is the scenario that -o would write, with its
 * trace, its network and all of its keys, only for few rounds and without the arithmetic: so what is refused there is refused
 * here. Only where the messages of a ring among hundreds are too many, a flow for each link stands in for them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/summary.h"
#include "commands/plan_work.h"
#include "planning/read.h"
#include "scenarios/recut.h"
#include "sim/sim.h"

#define EVENTS_MOST 250000.0 /* of a trial: about a second */
#define ROUNDS_LEAST 2.0
#define ROUNDS_MOST 8.0

/* Of one round: about five for a pass there and back, and the messages of a ring in each stage. */
static double round_events(const struct skep_scenario *s, bool flows)
{
	double stages = s->plan.stages, workers = s->plan.workers;
	double passes = 5.0 * s->plan.microbatches * skep_plan_slices(&s->plan);
	return passes + (flows ? 4 * workers : 4 * workers * workers / stages);
}

bool plan_trial_flows(const struct skep_scenario *s)
{
	bool can = s->plan.collective == SKEP_COLLECTIVE_RING && !s->plan.promise;
	return s->collectives_as_flows || (can && ROUNDS_LEAST * round_events(s, false) > EVENTS_MOST);
}

double plan_whole_events(const struct skep_scenario *s, uint32_t rounds)
{
	return rounds * round_events(s, plan_trial_flows(s));
}

uint32_t plan_trial_rounds(const struct skep_scenario *s)
{
	double rounds = floor(EVENTS_MOST / round_events(s, plan_trial_flows(s)));
	rounds = fmin(fmax(rounds, ROUNDS_LEAST), ROUNDS_MOST);
	return rounds < s->plan.rounds ? (uint32_t)rounds : s->plan.rounds;
}

static const char as_written[] = "plan.cut=as-written";

bool plan_trial_read_with(const struct plan_work *work, const uint32_t *stage_of, const uint64_t *seed,
	const uint32_t *layers, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = work->arguments->scenario;
	const char *sets[SETS_ROOM];
	memcpy(sets, options.set, options.sets * sizeof *sets);
	char *assignment = stage_of ? skep_planning_assignment(&work->planning, stage_of) : NULL;
	char *cut = layers ? skep_recut_assignment(layers, skep_plan_slices(&work->scenario.plan)) : NULL;
	if ((stage_of && !assignment) || (layers && !cut)) {
		free(assignment);
		free(cut);
		skep_diag_set(reterr, work->scenario.path, 0, 0, NULL, "not enough memory to plan this scenario");
		return false;
	}
	if (assignment)
		sets[options.sets++] = assignment;
	if (cut)
		sets[options.sets++] = cut;
	if (cut && work->scenario.planned && work->scenario.planned->says_cut)
		sets[options.sets++] = as_written;
	if (seed) {
		options.has_seed = true;
		options.seed = *seed;
	}
	options.set = sets;
	bool read = skep_planning_read(work->scenario.path, &options, ret, reterr);
	free(assignment);
	free(cut);
	return read;
}

bool plan_trial_read(
	const struct plan_work *work, const uint32_t *stage_of, struct skep_scenario *ret, struct skep_diag *reterr)
{
	return plan_trial_read_with(work, stage_of, NULL, NULL, ret, reterr);
}

/* ---- a few rounds ------------------------------------------------------------------------------------------------ */

/* Adds to what the candidate has. False: it does not come to an end. */
static bool simulate(struct skep_scenario *s, struct plan_candidate *candidate)
{
	struct skep_sim_result result;
	struct skep_summary summary = {.ok = false};
	struct skep_tally *tally = skep_tally_create(s, "sim");
	if (!tally)
		return false;
	const struct skep_recorder recorder = skep_tally_recorder(tally);
	if (skep_sim_run(s, &recorder, &result)) {
		skep_tally_finish(tally, result.end_ns, result.events, 0, result.outcome, &summary);
		candidate->samples_per_s += summary.throughput_samples_per_s;
		candidate->round_s += summary.time_s / (double)(summary.steps > 0 ? summary.steps : 1);
	}
	skep_tally_destroy(tally);
	return summary.ok;
}

/* With the nth seed from the scenario's own. */
static bool try_seed(const struct plan_work *work, struct plan_candidate *candidate, uint32_t nth)
{
	struct skep_scenario s;
	struct skep_diag diag = {0};
	uint64_t seed = work->scenario.seed + nth;
	candidate->fits =
		plan_trial_read_with(work, candidate->stage_of, nth > 0 ? &seed : NULL, candidate->layers, &s, &diag);
	if (!candidate->fits)
		return false;
	s.maths = SKEP_MATHS_NONE;
	s.collectives_as_flows = plan_trial_flows(&s);
	s.plan.rounds = work->rounds;
	s.plan.target_loss_nano = INT64_MIN;
	s.target_loss = NAN;
	bool ended = simulate(&s, candidate);
	skep_scenario_finish(&s);
	return ended;
}

bool plan_trial(const struct plan_work *work, struct plan_candidate *candidate)
{
	uint32_t seeds = work->scenario.planned ? work->scenario.planned->seeds : 1;
	candidate->samples_per_s = candidate->round_s = 0;
	candidate->value = INFINITY;
	candidate->tried = true;
	for (uint32_t nth = 0; candidate->tried && nth < seeds; nth++)
		candidate->tried = try_seed(work, candidate, nth);
	if (!candidate->tried)
		return false;
	candidate->samples_per_s /= seeds;
	candidate->round_s /= seeds;
	skep_forecast_make(&work->planning, candidate->stage_of, candidate->round_s, &candidate->forecast);
	candidate->forecast.samples_per_s = candidate->samples_per_s;
	candidate->value = skep_forecast_value(&candidate->forecast, work->aim);
	return true;
}

/* ---- a whole run ------------------------------------------------------------------------------------------------- */

/* Ends where the target is reached, also if it is one that ends nothing. */
static void end_at_target(struct skep_scenario *s)
{
	s->collectives_as_flows = plan_trial_flows(s);
	if (!isnan(s->target_loss))
		s->plan.target_loss_nano = (int64_t)(s->target_loss * 1e9 + 0.5);
}

bool plan_whole_run(const struct plan_work *work, const uint32_t *stage_of, uint64_t seed, struct plan_whole *ret)
{
	struct skep_scenario s;
	struct skep_diag diag = {0};
	struct skep_sim_result result;
	struct skep_summary summary;
	*ret = (struct plan_whole){.time_s = NAN, .usd = NAN};
	if (!plan_trial_read_with(work, stage_of, &seed, NULL, &s, &diag))
		return false;
	end_at_target(&s);
	struct skep_tally *tally = skep_tally_create(&s, "sim");
	bool ran = false;
	if (tally) {
		const struct skep_recorder recorder = skep_tally_recorder(tally);
		ran = skep_sim_run(&s, &recorder, &result);
	}
	if (ran) {
		skep_tally_finish(tally, result.end_ns, result.events, 0, result.outcome, &summary);
		*ret = (struct plan_whole){.done = summary.ok,
			.reached = isfinite(summary.time_to_target_s),
			.extrapolated = summary.extrapolated,
			.time_s = summary.time_to_target_s,
			.usd = summary.cost_to_target_usd,
			.samples_per_s = summary.throughput_samples_per_s};
	}
	skep_tally_destroy(tally);
	skep_scenario_finish(&s);
	return ran;
}
