/* SPDX-License-Identifier: Apache-2.0
 *
 * measure.c - one run of a published experiment, simulated. See experiment.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/store/store_spread.h"
#include "planning/jobs/shared.h"
#include "planning/problem/resolve.h"
#include "planning/trial/simulate.h"
#include "sweeping/published/experiment.h"

#define NEAR 1.002 /* both ends of a search are within this factor of each other at its end */

struct trial { /* a run with one seed and, for LEAST, one value of the key */
	const struct skep_published_experiment *experiment;
	struct skep_published_run *run;
	uint64_t seed;
	const char *assignment; /* NULL: none beside the run's own */
};

static double value_of(enum skep_published_metric metric, const struct skep_summary *s, double spread)
{
	switch (metric) {
	case SKEP_PUBLISHED_THROUGHPUT:
		return s->throughput_samples_per_s;
	case SKEP_PUBLISHED_STEP_TIME:
		return s->time_s / (double)s->steps;
	case SKEP_PUBLISHED_PASSES:
		return s->passes_s;
	case SKEP_PUBLISHED_REDUCTION:
		return s->reduction_s;
	case SKEP_PUBLISHED_SPREAD:
		return spread;
	case SKEP_PUBLISHED_TRAFFIC:
		return (double)s->bytes_sync / (double)s->samples;
	default:
		return 100 * s->utilisation;
	}
}

/* The run stays in a database in memory for as long as its spread is asked for. */
static double play(const struct trial *t, const struct skep_scenario *scenario)
{
	struct skep_summary summary;
	struct skep_published_run *run = t->run;
	double spread = NAN;
	bool spread_asked = t->experiment->metric == SKEP_PUBLISHED_SPREAD;
	struct skep_store *store = spread_asked ? skep_store_open_memory(&run->error) : NULL;
	const struct skep_simulate_options options = {.store = store};
	if (spread_asked && store == NULL)
		return NAN;
	bool ran = skep_simulate(scenario, &options, &summary, &run->error);
	if (!ran)
		skep_fail(&run->error, "not enough memory to simulate it: take fewer processes with --jobs");
	else if (!summary.ok)
		snprintf(run->failure, sizeof run->failure, "the run failed: %s",
			summary.failure[0] != '\0' ? summary.failure : "a stage lost its last worker");
	if (ran && store != NULL)
		skep_store_spread_mean(store, summary.run_id, scenario->plan.stages, &spread, &run->error);
	skep_store_close(store);
	return ran && summary.ok ? value_of(t->experiment->metric, &summary, spread) : NAN;
}

/* Many jobs on one cluster: their mean completion time. */
static double play_jobs(const struct trial *t)
{
	double value = NAN;
	struct skep_published_run *run = t->run;
	const struct skep_jobs_options options = {
		.set = run->set, .sets = run->sets, .has_seed = true, .seed = t->seed};
	struct skep_shared *shared = calloc(1, sizeof *shared);
	if (shared == NULL)
		skep_fail(&run->error, "not enough memory to simulate it: take fewer processes with --jobs");
	else if (skep_shared_make(t->experiment->scenario, &options, shared, &run->error)) {
		if (skep_shared_simulate(shared, 0, &run->error))
			value = shared->run[0].figures.completion_s / 3600;
		skep_shared_finish(shared);
	}
	free(shared);
	return value;
}

static double try_once(const struct trial *t)
{
	double value = NAN;
	struct skep_scenario scenario;
	const struct skep_published_run *run = t->run;
	struct skep_scenario_options options = {.sets = run->sets, .has_seed = true, .seed = t->seed};
	if (t->experiment->metric == SKEP_PUBLISHED_COMPLETION)
		return play_jobs(t);
	const char **set = calloc(run->sets + 1, sizeof *set);
	if (set == NULL) {
		skep_fail(&t->run->error, "not enough memory to read the scenario");
		return NAN;
	}
	for (uint32_t i = 0; i < run->sets; i++)
		set[i] = run->set[i];
	if (t->assignment != NULL)
		set[options.sets++] = t->assignment;
	options.set = set;
	if (skep_resolve_file(t->experiment->scenario, &options, &scenario, &t->run->error)) {
		value = play(t, &scenario);
		skep_scenario_finish(&scenario);
	}
	free(set);
	return value;
}

static double utilisation(const struct skep_published_experiment *e, struct skep_published_run *run, double value)
{
	char assignment[256];
	snprintf(assignment, sizeof assignment, "%s=%.9g", e->vary, value);
	const struct trial trial = {e, run, 1, assignment};
	return try_once(&trial) / 100;
}

/* By bisection of the logarithm; a utilisation grows with the value. INFINITY: the largest value is not enough. */
static double least(const struct skep_published_experiment *e, struct skep_published_run *run)
{
	double low = e->from, high = e->to, part = utilisation(e, run, high);
	if (isnan(part))
		return NAN;
	if (part < run->at)
		return INFINITY;
	while (high / low > NEAR) {
		double middle = sqrt(low * high);
		part = utilisation(e, run, middle);
		if (isnan(part))
			return NAN;
		*(part < run->at ? &low : &high) = middle;
	}
	return high;
}

void skep_published_measure(const struct skep_published_experiment *e, struct skep_published_run *run)
{
	double sum = 0;
	if (e->metric == SKEP_PUBLISHED_LEAST) {
		run->value = least(e, run);
		return;
	}
	for (uint32_t seed = 1; seed <= e->seeds; seed++) {
		const struct trial trial = {e, run, seed, NULL};
		sum += try_once(&trial);
	}
	run->value = sum / e->seeds;
}
