/* SPDX-License-Identifier: Apache-2.0
 *
 * prices.c - see prices.h. Machines with the same price share its steps; a history begins where the run does, and its times are
 * whole milliseconds.
 */
#include "scenarios/plan/prices.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/skep.h"
#include "scenarios/read/scenario.h"

#define MICRO 1e6
#define BILL_STEPS 10000u
#define NS_PER_MS UINT64_C(1000000)

uint32_t skep_prices_missing(const struct skep_scenario *s)
{
	uint32_t worker = 0;
	while (worker < s->plan.workers && skep_machine_has_price(&s->topology.machine[worker]))
		worker++;
	return worker;
}

/* In USD per hour: of all workers at the start of the run. */
bool skep_scenario_price(const struct skep_scenario *s, double *ret_usd_per_h)
{
	*ret_usd_per_h = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		if (skep_scenario_pays_at_start(s, i))
			*ret_usd_per_h += s->topology.machine[i].price_usd_per_h;
	return skep_prices_missing(s) == s->plan.workers;
}

double skep_scenario_egress_usd(const struct skep_scenario *s, uint32_t source, uint32_t destination, uint64_t bytes)
{
	const struct skep_topology *t = &s->topology;
	assert(source <= s->plan.workers && destination <= s->plan.workers);
	if (!t->egress_usd_per_B)
		return 0;
	return skep_topology_egress_usd(
		t, skep_scenario_machine(s, source), skep_scenario_machine(s, destination), (double)bytes);
}

static bool is_same_price(const struct skep_topology *t, uint32_t a, uint32_t b)
{
	return skep_machine_same_price(&t->machine[a], &t->machine[b]);
}

/* Steps of a machine's price; with `ret` they are written there. */
static size_t steps_of(const struct skep_topology *t, uint32_t machine, struct skep_price_at *ret)
{
	const struct skep_machine *m = &t->machine[machine];
	const struct skep_price_series *history = m->prices > 0 ? &t->price[m->prices - 1] : NULL;
	double now = history != NULL ? skep_price_at(history, t->price_start_ns) : m->price_usd_per_h;
	double part = now > 0 ? m->price_usd_per_h / now : 1; /* of the instance that the history prices */
	size_t steps = 1;
	if (ret != NULL)
		*ret = (struct skep_price_at){0, (uint64_t)llround(m->price_usd_per_h * MICRO)};
	for (size_t i = 0; history != NULL && i < history->steps; i++) {
		if (history->step[i].at_ns <= t->price_start_ns)
			continue;
		if (ret != NULL)
			ret[steps] = (struct skep_price_at){(history->step[i].at_ns - t->price_start_ns) / NS_PER_MS,
				(uint64_t)llround(part * history->step[i].usd_per_h * MICRO)};
		steps++;
	}
	return steps;
}

bool skep_prices_make(struct skep_scenario *s)
{
	const struct skep_topology *t = &s->topology;
	uint32_t workers = s->plan.workers, series = 0;
	size_t steps = 0;
	if (s->plan.until.budget_microusd == 0 && (s->plan.scale == NULL || skep_prices_missing(s) < workers))
		return true;
	assert(skep_prices_missing(s) == workers);
	s->price_of =
		calloc(2 * (size_t)workers + 1, sizeof *s->price_of); /* with the first step of each series behind it */
	uint32_t *first = s->price_of != NULL ? s->price_of + workers : NULL;
	uint32_t *example = calloc(workers, sizeof *example);
	for (uint32_t w = 0; first != NULL && example != NULL && w < workers; w++) {
		uint32_t i = 0;
		while (i < series && !is_same_price(t, example[i], w))
			i++;
		s->price_of[w] = i;
		if (i < series)
			continue;
		example[series++] = w;
		steps += steps_of(t, w, NULL);
		first[series] = (uint32_t)steps;
	}
	s->price = example != NULL ? calloc(steps, sizeof *s->price) : NULL;
	for (uint32_t i = 0; s->price != NULL && first != NULL && i < series; i++)
		steps_of(t, example[i], s->price + first[i]);
	free(example);
	s->plan.price.of = s->price_of;
	s->plan.price.first = first;
	s->plan.price.step = s->price;
	return first != NULL && s->price != NULL;
}

/* ---- traffic ----------------------------------------------------------------------------------------------------------- */

static bool is_used(const struct skep_scenario *s, uint32_t place)
{
	bool used = false;
	for (uint32_t i = 0; i <= s->plan.workers && !used; i++)
		used = skep_scenario_place(s, i) == place;
	return used;
}

bool skep_prices_egress_missing(const struct skep_scenario *s, uint32_t *ret_from, uint32_t *ret_to)
{
	const struct skep_topology *t = &s->topology;
	for (size_t i = 0; t->egress_usd_per_B && i < (size_t)t->places * t->places; i++) {
		*ret_from = (uint32_t)(i / t->places);
		*ret_to = (uint32_t)(i % t->places);
		if (isnan(t->egress_usd_per_B[i]) && is_used(s, *ret_from) && is_used(s, *ret_to))
			return true;
	}
	return false;
}

void skep_egress_bill_add(struct skep_egress_bill *bill, double usd)
{
	assert(usd >= 0);
	bill->usd += usd;
}

bool skep_egress_bill_due(struct skep_egress_bill *bill, const struct skep_scenario *s, struct skep_event *ret_event)
{
	uint64_t step = s->plan.until.budget_microusd / BILL_STEPS > 0 ? s->plan.until.budget_microusd / BILL_STEPS : 1;
	if (s->plan.until.budget_microusd == 0 || bill->usd * MICRO < (double)(bill->told_microusd + step))
		return false;
	bill->told_microusd = (uint64_t)fmin(bill->usd * MICRO, (double)(UINT64_MAX / 4));
	*ret_event = (struct skep_event){.kind = SKEP_EVENT_EGRESS, .u.egress_microusd = bill->told_microusd};
	return true;
}
