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

static bool takes_flows(const struct skep_scenario *s)
{
	bool can = s->plan.collective == SKEP_COLLECTIVE_RING && !s->plan.promise;
	return s->collectives_as_flows || (can && ROUNDS_LEAST * round_events(s, false) > EVENTS_MOST);
}

uint32_t plan_trial_rounds(const struct skep_scenario *s)
{
	double rounds = floor(EVENTS_MOST / round_events(s, takes_flows(s)));
	rounds = fmin(fmax(rounds, ROUNDS_LEAST), ROUNDS_MOST);
	return rounds < s->plan.rounds ? (uint32_t)rounds : s->plan.rounds;
}

bool plan_trial_read(
	const struct plan_work *work, const uint32_t *stage_of, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = work->arguments->scenario;
	const char *set[SETS_MAX + 1];
	memcpy(set, options.set, options.sets * sizeof *set);
	char *assignment = skep_planning_assignment(&work->planning, stage_of);
	if (!assignment) {
		skep_diag_set(reterr, work->scenario.path, 0, 0, NULL, "not enough memory to plan this scenario");
		return false;
	}
	set[options.sets++] = assignment;
	options.set = set;
	bool read = skep_scenario_read(work->scenario.path, &options, ret, reterr);
	free(assignment);
	return read;
}

static void simulate(struct skep_scenario *s, struct plan_candidate *candidate)
{
	struct skep_sim_result result;
	struct skep_summary summary;
	struct skep_tally *tally = skep_tally_create(s, "sim");
	if (!tally)
		return;
	const struct skep_recorder recorder = skep_tally_recorder(tally);
	if (skep_sim_run(s, &recorder, &result)) {
		skep_tally_finish(tally, result.end_ns, result.events, 0, result.outcome, &summary);
		candidate->tried = summary.ok;
		candidate->samples_per_s = summary.throughput_samples_per_s;
		candidate->round_s = summary.time_s / (double)(summary.steps > 0 ? summary.steps : 1);
	}
	skep_tally_destroy(tally);
}

bool plan_trial(const struct plan_work *work, struct plan_candidate *candidate)
{
	struct skep_scenario s;
	struct skep_diag diag = {0};
	candidate->fits = plan_trial_read(work, candidate->stage_of, &s, &diag);
	if (!candidate->fits)
		return false;
	s.maths = SKEP_MATHS_NONE;
	s.collectives_as_flows = takes_flows(&s);
	s.plan.rounds = work->rounds;
	s.plan.target_loss_nano = INT64_MIN;
	s.target_loss = NAN;
	simulate(&s, candidate);
	skep_scenario_finish(&s);
	return candidate->tried;
}
