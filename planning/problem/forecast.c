/* SPDX-License-Identifier: Apache-2.0
 *
 * forecast.c - see forecast.h.
 */
#include "planning/problem/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/problem/traffic.h"
#include "scenarios/plan/loss.h"

/* ---- the loss and money ------------------------------------------------------------------------------------------ */

/* Of an hour. NAN: the price of a machine in use is not known. */
static double price_of(const struct skep_planning *p, const uint32_t *stage_of)
{
	double sum = 3600 * p->standing_rent;
	for (uint32_t i = 0; i < p->workers; i++) {
		const struct skep_machine *m = &p->scenario->topology.machine[p->machine[i]];
		if (stage_of[i] == SKEP_SPARE)
			continue;
		if (!skep_machine_has_price(m))
			return NAN;
		sum += m->price_usd_per_h;
	}
	return sum;
}

static void forecast_loss(const struct skep_planning *p, const uint32_t *stage_of, struct skep_forecast *ret)
{
	struct skep_scenario with = *p->scenario; /* whose largest stage the law asks about */
	with.first_stage_of = calloc(with.plan.workers, sizeof *with.first_stage_of);
	if (!with.first_stage_of)
		return;
	for (uint32_t i = 0; i < with.plan.workers; i++)
		with.first_stage_of[i] = SKEP_NO_STAGE;
	for (uint32_t i = 0; i < p->workers; i++)
		with.first_stage_of[p->machine[i]] = stage_of[i] == SKEP_SPARE ? SKEP_NO_STAGE : stage_of[i];
	ret->rounds = skep_loss_rounds_to(&with, with.target_loss);
	if (ret->rounds > 0)
		ret->extrapolated = skep_loss_extrapolates(&with, ret->rounds, ret->how, sizeof ret->how);
	if (ret->extrapolated && with.planned && !with.planned->extrapolate)
		ret->rounds = 0; /* not known */
	free(with.first_stage_of);
}

void skep_forecast_make(
	const struct skep_planning *p, const uint32_t *stage_of, double step_s, struct skep_forecast *ret)
{
	const struct skep_scenario *s = p->scenario;
	double round_s = step_s * p->throughput[0].period;
	double microbatches = (double)s->plan.microbatches / skep_plan_most_steps(&s->plan); /* of a step */
	*ret = (struct skep_forecast){.samples_per_s = s->samples * microbatches / step_s,
		.time_s = INFINITY,
		.usd = INFINITY,
		.usd_per_h = price_of(p, stage_of),
		.egress_usd = skep_planning_egress_usd(p, stage_of)};
	if (s->law && !isnan(s->target_loss))
		forecast_loss(p, stage_of, ret);
	if (ret->rounds == 0)
		return;
	ret->time_s = ret->rounds * round_s;
	ret->usd = ret->time_s / 3600 * ret->usd_per_h + ret->rounds * p->throughput[0].period * ret->egress_usd;
}

double skep_forecast_value(const struct skep_forecast *f, enum skep_aim aim)
{
	if (aim == SKEP_AIM_TIME)
		return f->time_s;
	if (aim == SKEP_AIM_COST)
		return isnan(f->usd) ? INFINITY : f->usd;
	return f->samples_per_s > 0 ? 1 / f->samples_per_s : INFINITY;
}

/* ---- collectives ------------------------------------------------------------------------------------------------ */

struct crowd { /* the members of a stage, or one of each place */
	uint32_t members;
	double delay_s, rate_Bps; /* mean, and least, over all ordered pairs */
};

/* Places that do not tell members apart in one crowd; `inside`: only pairs of one place, and the most members of any. */
static struct crowd crowd_of(const struct skep_planning *p, enum skep_contention view, const uint32_t *stage_of,
	uint32_t stage, bool inside, bool across)
{
	const struct skep_topology *t = &p->scenario->topology;
	struct crowd c = {.rate_Bps = INFINITY};
	double pairs = 0, sum = 0;
	for (uint32_t i = 0; i < p->workers; i++) {
		uint32_t place = t->machine[p->machine[i]].place, here = 0, before = 0;
		for (uint32_t j = 0; stage_of[i] == stage && j < p->workers; j++) {
			bool same = t->machine[p->machine[j]].place == place;
			if (stage_of[j] != stage)
				continue;
			here += same;
			before += same && j < i;
			if (i == j || (inside && !same) || (across && same))
				continue;
			pairs++;
			sum += p->delay_s[(size_t)i * p->workers + j];
			c.rate_Bps = fmin(c.rate_Bps, p->rate_Bps[view][(size_t)i * p->workers + j]);
		}
		if (inside)
			c.members = here > c.members ? here : c.members;
		else if (stage_of[i] == stage)
			c.members += !across || before == 0;
	}
	c.delay_s = pairs > 0 ? sum / pairs : 0;
	return c;
}

/* A binomial tree, up and down: collective.h. */
static double binomial_s(const struct crowd *c, double bytes)
{
	double rounds = ceil(log2(fmax(c->members, 1)));
	return c->members > 1 ? 2 * rounds * (c->delay_s + bytes / c->rate_Bps) + (rounds - 1) * c->delay_s : 0;
}

/* The leaders' ring, whose chunks travel in one piece. */
static double ring_s(const struct crowd *c, double bytes)
{
	double n = c->members;
	return n > 1 ? 2 * (n - 1) * (c->delay_s + bytes / n / c->rate_Bps) : 0;
}

/* collective.h: either latency and the chunks on their way set the pace, or a link that carries all of the vector twice. */
static double chain_s(const struct crowd *c, double bytes, double chunks)
{
	double n = c->members, whole_s = bytes / c->rate_Bps, chunk_s = whole_s / chunks;
	double way_s = 2 * (n - 1) * (c->delay_s + chunk_s) + (chunks - 1) * chunk_s;
	return n > 2 ? fmax(way_s, 2 * whole_s + (n - 2) * c->delay_s + (n - 3) * chunk_s) : way_s;
}

double skep_forecast_reduction_s(
	const struct skep_planning *p, enum skep_contention view, const uint32_t *stage_of, uint32_t stage)
{
	struct crowd all = crowd_of(p, view, stage_of, stage, false, false);
	double chunks = fmax(1, p->scenario->plan.reduction.chunks);
	double n = all.members, rounds = ceil(log2(fmax(n, 1))), bytes = p->reduced_bytes[stage];
	double whole_s = bytes / all.rate_Bps, part = (n - 1) / n;
	if (n < 2)
		return 0;
	switch (p->scenario->plan.reduction.collective) {
	case SKEP_COLLECTIVE_PARAMETER_SERVER:
		return 2 * (all.delay_s + (n - 1) * whole_s);
	case SKEP_COLLECTIVE_REDUCE_BROADCAST:
		return binomial_s(&all, bytes);
	case SKEP_COLLECTIVE_ALL_TO_ALL:
		return all.delay_s + (n - 1) * whole_s;
	case SKEP_COLLECTIVE_HALVING_DOUBLING:
		return 2 * rounds * all.delay_s + 2 * part * whole_s;
	case SKEP_COLLECTIVE_TREE: /* in chunks; a node inside has two below it */
		return 2 * rounds * all.delay_s + 4 * whole_s;
	case SKEP_COLLECTIVE_BUTTERFLY:
		return all.delay_s + fmax(2 * part * whole_s, all.delay_s + part * whole_s * (1 + 1 / chunks));
	case SKEP_COLLECTIVE_CHAIN:
		return chain_s(&all, bytes, chunks);
	case SKEP_COLLECTIVE_BROADCAST: /* merges one after the other, one of each member in the time of a round */
		return n * ((n - 1) * (all.delay_s + whole_s / chunks) + (chunks - 1) * whole_s / chunks);
	case SKEP_COLLECTIVE_HIERARCHICAL: {
		struct crowd site = crowd_of(p, view, stage_of, stage, true, false);
		struct crowd sites = crowd_of(p, view, stage_of, stage, false, true);
		return binomial_s(&site, bytes) + ring_s(&sites, bytes);
	}
	default:
		return skep_throughput_ring_s(&p->throughput[view], n, bytes / n, whole_s / n, all.delay_s);
	}
}
