/* SPDX-License-Identifier: Apache-2.0
 *
 * calibration.c - see calibration.h.
 */
#include "analysis/calibrate/calibration.h"

#include <inttypes.h>
#include <stdlib.h>

/* Rounds of which a step, or what stands for it, was executed by some worker: those that have come to their end. */
static uint32_t rounds_of(const struct skep_samples *s)
{
	uint32_t least = UINT32_MAX, most = 0;
	bool any = false;
	for (size_t i = 0; i < s->executions; i++) {
		const struct skep_op *op = &s->executed[i].op;
		if (op->kind != SKEP_OP_STEP && op->kind != SKEP_OP_INNER_STEP)
			continue;
		least = op->round < least ? op->round : least;
		most = op->round > most ? op->round : most;
		any = true;
	}
	return any ? most - least + 1 : 0;
}

bool skep_calibration_make(const struct skep_scenario *scenario, struct skep_samples *samples, bool shaped,
	struct skep_calibration *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_calibration){.scenario = scenario, .rounds = rounds_of(samples)};
	if (ret->rounds < SKEP_CALIBRATE_ROUNDS_LEAST)
		return skep_fail(reterr,
			"the log has %" PRIu32
			" round%s that came to an end: a calibration needs at least %u, so let the run go "
			"on for longer (train.until.steps)",
			ret->rounds, ret->rounds == 1 ? "" : "s", SKEP_CALIBRATE_ROUNDS_LEAST);
	if (!skep_topology_read(scenario->topology.path, &ret->topology, reterr))
		return false;
	skep_topology_scale_bandwidth(&ret->topology, scenario->bandwidth_scale);
	uint32_t places = scenario->topology.places, gpus = scenario->topology.gpus;
	ret->pass = calloc((size_t)gpus * skep_plan_vstages(&scenario->plan), sizeof *ret->pass);
	ret->gpu = calloc(gpus, sizeof *ret->gpu);
	ret->link = calloc((size_t)places * places, sizeof *ret->link);
	struct skep_topology used =
		scenario->topology; /* its machines are the run's; its pairs have no latency added */
	used.pair = ret->topology.pair;
	bool fine = ret->pass && ret->gpu && ret->link && (shaped || skep_samples_align(samples, &used)) &&
	            skep_passes_fit(samples, ret) &&
	            skep_links_fit(samples, &used, scenario->extra_latency_s, ret->link);
	ret->clocks_apart_s = samples->clocks_apart_s;
	return fine || skep_fail(reterr, "no memory for what this run has recorded");
}

void skep_calibration_finish(struct skep_calibration *c)
{
	skep_topology_finish(&c->topology);
	free(c->pass);
	free(c->gpu);
	free(c->link);
	*c = (struct skep_calibration){0};
}
