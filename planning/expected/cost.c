/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c - see cost.h.
 */
#include "planning/expected/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVALUATIONS 32000.0 /* over the workers of the pool */
#define EVALUATIONS_MOST 2500.0

static double expected_of(struct skep_expected_cost *c)
{
	struct skep_expected e;
	double rent = c->rent ? c->planning->standing_rent : 1;
	for (uint32_t i = 0; c->rent && i < c->planning->workers; i++)
		rent += c->stage_of[i] < c->planning->stages ? c->rent[i] : 0;
	bool made = skep_expected_make_quick(c->planning, c->stage_of, &e);
	c->lacking = c->lacking || !made;
	if (!made || !(e.step_s < SKEP_NEVER))
		return SKEP_NEVER;
	double step = rent * e.step_s + (c->rent && e.egress_usd > 0 ? e.egress_usd : 0);
	return step * skep_planning_rounds(c->planning, c->stage_of);
}

static double whole(void *self, const uint32_t *stage_of)
{
	struct skep_expected_cost *c = self;
	memcpy(c->stage_of, stage_of, c->planning->workers * sizeof *stage_of);
	return c->quick->whole(c->quick->self, stage_of) < SKEP_NEVER ? expected_of(c) : SKEP_NEVER;
}

static void apply(struct skep_expected_cost *c, const struct skep_change *change)
{
	uint32_t *here = &c->stage_of[change->worker], before = *here;
	*here = change->other == SKEP_NO_WORKER ? change->to : c->stage_of[change->other];
	if (change->other != SKEP_NO_WORKER)
		c->stage_of[change->other] = before;
}

static double change(void *self, const struct skep_change *change)
{
	struct skep_expected_cost *c = self;
	uint32_t before = c->stage_of[change->worker];
	double cost = SKEP_NEVER;
	c->asked = *change;
	if (!(c->quick->change(c->quick->self, change) < SKEP_NEVER))
		return cost;
	apply(c, change);
	cost = expected_of(c);
	apply(c, &(struct skep_change){change->worker, change->other, before});
	return cost;
}

static void keep(void *self)
{
	struct skep_expected_cost *c = self;
	c->quick->keep(c->quick->self);
	apply(c, &c->asked);
}

bool skep_expected_cost_make(const struct skep_planning *planning, const struct skep_objective *quick,
	const double *rent, struct skep_expected_cost *c)
{
	*c = (struct skep_expected_cost){.objective = {.self = c, .whole = whole, .change = change, .keep = keep},
		.planning = planning,
		.quick = quick,
		.rent = rent,
		.stage_of = calloc(planning->workers, sizeof *c->stage_of)};
	return c->stage_of != NULL;
}

void skep_expected_cost_finish(struct skep_expected_cost *c)
{
	free(c->stage_of);
	*c = (struct skep_expected_cost){0};
}

uint64_t skep_expected_cost_evaluations(const struct skep_planning *planning)
{
	return (uint64_t)fmin(EVALUATIONS / planning->workers, EVALUATIONS_MOST);
}
