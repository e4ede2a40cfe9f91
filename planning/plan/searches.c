/* SPDX-License-Identifier: Apache-2.0
 *
 * searches.c - see searches.h. Decides what a budget of time means. Without one each search may ask up to
 * SKEP_PLANNING_EVALUATIONS times, and the result depends on the scenario and its seed alone. With it, searches share half of
 * the time and trials the rest, so the result also depends on the machine.
 *
 * Keeps true: the scenario's own allocation is a candidate, so what is chosen is never worse in the simulator.
 */
#include "planning/plan/searches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/stop.h"
#include "planning/expected/cost.h"
#include "planning/problem/run_search.h"
#include "planning/trial/interval.h"
#include "planning/trial/trial.h"

#define SMALL_POOL 64.0 /* workers: larger ones get fewer of the evaluations that grow with their square */
#define TRIALS 8u       /* of what was found */
#define SAMPLES 64u     /* random allocations that the cost is asked about */

static const struct {
	enum skep_method method;
	enum skep_contention view;
	bool lean; /* may leave machines out */
} searches[] = {
	{SKEP_METHOD_CONTIGUOUS, SKEP_CONTENDED, false}, {SKEP_METHOD_STRIDED, SKEP_CONTENDED, false},
	{SKEP_METHOD_GREEDY, SKEP_CONTENDED, false}, {SKEP_METHOD_RELAXED, SKEP_CONTENDED, false},
	{SKEP_METHOD_GENETIC, SKEP_CONTENDED, false}, {SKEP_METHOD_ANNEAL, SKEP_CONTENDED, false},
	{SKEP_METHOD_PORTFOLIO, SKEP_CONTENDED, false}, {SKEP_METHOD_PORTFOLIO, SKEP_UNCONTENDED, false},
	{SKEP_METHOD_PORTFOLIO, SKEP_CONTENDED, true},
	{SKEP_METHOD_EXACT, SKEP_CONTENDED, false}, /* the last, so that others show what they can do by themselves */
};
#define SEARCHES (sizeof searches / sizeof searches[0])

/* ---- search ------------------------------------------------------------------------------------------------------- */

/* Seconds that the cost takes to make an allocation current, and about as many of them as a change takes. */
static double cost_s(struct skep_planner *w)
{
	uint64_t begin_ns = skep_monotonic_ns(), now_ns = begin_ns;
	uint32_t asked = 0;
	for (; asked < 1000 && now_ns - begin_ns < 2000000; asked++, now_ns = skep_monotonic_ns())
		w->cost[0]->whole(w->cost[0]->self, w->candidate[0].stage_of);
	return 1e-9 * (double)(now_ns - begin_ns) / asked;
}

/* What a search may ask. Making an allocation current takes as long as the square of the pool, a change as long as the pool: the
 * genetic search does the one, the portfolio both. With a limit of time as much as fills it, or annealing would end while it is
 * hot. */
static uint64_t evaluations_for(struct skep_planner *w, enum skep_method method)
{
	double workers = w->planning.workers, scale = fmax(1, workers / SMALL_POOL), all = SKEP_PLANNING_EVALUATIONS;
	if (w->until_ns > 0) {
		double change_s = cost_s(w) * fmin(1, 4 / workers) + 1e-7;
		all = fmax(100, 1e-9 * (double)(w->until_ns - w->begin_ns) / (2 * SEARCHES) / change_s / scale);
	}
	return skep_planning_evaluations(method, w->planning.workers, all);
}

/* What was found so far that costs least in this view; NULL: nothing. */
static const uint32_t *best_of(const struct skep_planner *w, enum skep_contention view)
{
	double least = SKEP_NEVER;
	const uint32_t *best = NULL;
	for (uint32_t i = 1; i < w->candidates; i++)
		if (w->candidate[i].cost_s[view] < least) {
			least = w->candidate[i].cost_s[view];
			best = w->candidate[i].stage_of;
		}
	return best;
}

/* The portfolio goes on from what the others found, so it is no worse. In large pools all do: a walk from nowhere would not get
 * there; in small ones each shows what it can do by itself. */
static bool begins_at_best(const struct skep_planner *w, enum skep_method method)
{
	return method == SKEP_METHOD_PORTFOLIO || w->planning.workers > 4 * (uint32_t)SMALL_POOL;
}

/* `nth` of the searches gets its part of the time. */
static bool search_with(struct skep_planner *w, size_t nth)
{
	enum skep_contention view = searches[nth].view;
	if (skep_stop_asked() != 0) /* nothing will be made of what it finds */
		return true;
	const struct skep_objective *cost = searches[nth].lean && w->rented ? w->rented : w->cost[view];
	struct skep_planning_search search = {.method = searches[nth].method,
		.problem = searches[nth].lean ? &w->planning.lean : &w->planning.problem,
		.cost = cost,
		.evaluations = evaluations_for(w, searches[nth].method),
		.seed = w->scenario.seed,
		.start = begins_at_best(w, searches[nth].method) ? best_of(w, view) : NULL};
	struct skep_found found;
	if (w->until_ns > 0)
		search.until_ns = w->begin_ns + (w->until_ns - w->begin_ns) * (nth + 1) / (2 * SEARCHES);
	if (searches[nth].lean && w->planning.lean.spares <= w->planning.problem.spares)
		return true;
	double count;
	if (search.method == SKEP_METHOD_EXACT && !skep_planning_exact(&w->planning, &count))
		return true;
	struct skep_candidate *c = skep_planner_add(w, skep_method_name(search.method));
	if (!c || !skep_planning_search(&w->planning, &search, c->stage_of, &found))
		return false;
	if (search.method == SKEP_METHOD_EXACT && !found.optimal) { /* there was no time for all */
		free(c->stage_of);
		w->candidates--;
		return true;
	}
	c->view = view;
	c->lean = searches[nth].lean;
	c->evaluations = found.evaluations;
	c->optimal = found.optimal;
	c->mean_s = found.mean;
	c->worst_s = found.worst;
	skep_planner_expect(w, c);
	return true;
}

/* By what is expected with all that is shared, in flight and on its way to the directory: the best that was found. */
static const uint32_t *best_expected(const struct skep_planner *w, bool lean)
{
	double least = SKEP_NEVER;
	const uint32_t *best = NULL;
	for (uint32_t i = 1; i < w->candidates; i++) {
		const struct skep_candidate *c = &w->candidate[i];
		if ((c->lean && !lean) || !(c->expected_s < least) || !(c->cost_s[c->view] < SKEP_NEVER))
			continue;
		least = c->expected_s;
		best = c->stage_of;
	}
	return best;
}

/* An order of rings by links is looked for anew for each allocation, which takes too long for a search. */
static bool asks_expected(const struct skep_planner *w, bool lean)
{
	bool small = w->planning.workers <= SKEP_EXPECTED_COST_WORKERS_MAX;
	bool spares = w->planning.lean.spares > w->planning.problem.spares;
	return small && skep_expected_known(&w->scenario) && !w->scenario.ring_by_links && (!lean || spares);
}

static bool search_expected(struct skep_planner *w, bool lean)
{
	struct skep_expected_cost cost;
	struct skep_found found = {0};
	const uint32_t *start = best_expected(w, lean);
	if (!asks_expected(w, lean) || !start || skep_planner_is_late(w))
		return true;
	if (!skep_expected_cost_make(
		    &w->planning, w->cost[SKEP_CONTENDED], lean && w->rented ? w->planning.rent : NULL, &cost))
		return false;
	struct skep_planning_search search = {.method = SKEP_METHOD_ANNEAL,
		.problem = lean ? &w->planning.lean : &w->planning.problem,
		.cost = &cost.objective,
		.quick = w->cost[SKEP_CONTENDED],
		.view = SKEP_CONTENDED,
		.evaluations = skep_expected_cost_evaluations(&w->planning),
		.seed = w->scenario.seed,
		.until_ns = w->until_ns > 0 ? w->begin_ns + (w->until_ns - w->begin_ns) / 2 : 0,
		.start = start};
	struct skep_candidate *c = skep_planner_add(w, skep_method_name(search.method));
	bool ok = c && skep_planning_search(&w->planning, &search, c->stage_of, &found);
	if (ok) {
		c->view = SKEP_CONTENDED;
		c->by_expected = true;
		c->lean = lean;
		c->evaluations = found.evaluations;
		skep_planner_expect(w, c);
	}
	ok = ok && !cost.lacking;
	skep_expected_cost_finish(&cost);
	return ok;
}

static bool begin_with_start(struct skep_planner *w)
{
	struct skep_candidate *c = skep_planner_add(w, w->published ? w->published : "start");
	if (!c)
		return false;
	bool whole = skep_planning_start(&w->planning, c->stage_of);
	skep_planner_expect(w, c);
	if (whole)
		skep_trial_run(w, c);
	return true;
}

/* The allocation that came with the settings, where they were chosen. */
static bool go_on_with_given(struct skep_planner *w)
{
	if (!w->given)
		return true;
	struct skep_candidate *c = skep_planner_add(w, "settings");
	if (!c)
		return false;
	memcpy(c->stage_of, w->given, w->planning.workers * sizeof *c->stage_of);
	skep_planner_expect(w, c);
	return true;
}

static bool search_all(struct skep_planner *w)
{
	bool ok = begin_with_start(w) && go_on_with_given(w);
	if (w->published)
		return ok;
	if (skep_planner_dtfm(w))
		return ok && skep_even_groups_search(w);
	for (size_t i = 0; ok && i < SEARCHES; i++)
		ok = search_with(w, i);
	return ok && search_expected(w, false) && search_expected(w, true);
}

/* ---- trials ------------------------------------------------------------------------------------------------------- */

static bool is_known(const struct skep_planner *w, uint32_t which)
{
	for (uint32_t i = 0; i < which; i++)
		if (skep_planner_same_stages(w, &w->candidate[i], &w->candidate[which]))
			return true;
	return false;
}

/* In which place among those of its view: each view's best is tried before any view's second. */
static uint32_t rank_of(const struct skep_planner *w, uint32_t which)
{
	const struct skep_candidate *c = &w->candidate[which];
	uint32_t rank = 0;
	for (uint32_t i = 1; i < w->candidates; i++) {
		const struct skep_candidate *other = &w->candidate[i];
		if (i == which || other->view != c->view || other->by_expected != c->by_expected || is_known(w, i))
			continue;
		rank += other->expected_s < c->expected_s || (other->expected_s <= c->expected_s && i < which);
	}
	return rank;
}

static void share_trials(struct skep_planner *w)
{
	for (uint32_t i = 1; i < w->candidates; i++) /* the same allocation is simulated once */
		for (uint32_t j = 0; j < i; j++) {
			struct skep_candidate *c = &w->candidate[i], *same = &w->candidate[j];
			if (c->tried || !skep_planner_same_stages(w, c, same))
				continue;
			c->tried = same->tried;
			c->fits = same->fits;
			c->samples_per_s = same->samples_per_s;
			c->round_s = same->round_s;
			c->forecast = same->forecast;
			c->value = same->value;
		}
}

/* The best few that were found; at least one is tried however late it is. */
static void try_found(struct skep_planner *w)
{
	uint32_t tried = 0;
	for (uint32_t rank = 0; rank < w->candidates; rank++)
		for (uint32_t i = w->candidates; i-- > 1;) {
			struct skep_candidate *c = &w->candidate[i];
			if (is_known(w, i) || rank_of(w, i) != rank || !(c->cost_s[c->view] < SKEP_NEVER) ||
				tried >= TRIALS || skep_stop_asked() != 0 || (tried > 0 && skep_planner_is_late(w)))
				continue;
			tried += skep_trial_run(w, c);
		}
	share_trials(w);
}

/* ---- what it is compared with ------------------------------------------------------------------------------------- */

static struct skep_planner_mean mean_of(const double *value, uint32_t count)
{
	struct skep_interval r = skep_interval_of(value, count);
	return (struct skep_planner_mean){.count = r.count, .mean = r.mean, .half = r.high - r.mean};
}

/* A large pool's trials are dear, and its random allocations much alike. */
uint32_t skep_searches_randoms(const struct skep_planner *w)
{
	return w->planning.workers >= (uint32_t)SMALL_POOL ? SKEP_PLANNER_RANDOMS / 2 : SKEP_PLANNER_RANDOMS;
}

bool skep_searches_random(struct skep_planner *w)
{
	double step[SAMPLES] = {0}, rate[SKEP_PLANNER_RANDOMS] = {0}, round[SKEP_PLANNER_RANDOMS] = {0};
	uint32_t steps = 0, tried = 0;
	struct skep_candidate c = {.name = "random", .stage_of = calloc(w->planning.workers, sizeof *c.stage_of)};
	if (!c.stage_of)
		return false;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		skep_planning_random(&w->planning, w->scenario.seed + i, c.stage_of);
		skep_planner_expect(w, &c);
		if (c.expected_s < SKEP_NEVER)
			step[steps++] = c.expected_s;
	}
	for (uint32_t i = 0; i < skep_searches_randoms(w) && !(tried > 0 && skep_planner_is_late(w)); i++) {
		skep_planning_random(&w->planning, w->scenario.seed + i, c.stage_of);
		if (!skep_trial_run(w, &c))
			continue;
		rate[tried] = c.samples_per_s;
		round[tried++] = c.round_s;
	}
	free(c.stage_of);
	w->random_step = mean_of(step, steps);
	w->random_rate = mean_of(rate, tried);
	w->random_round = mean_of(round, tried);
	return true;
}

/* ---- the choice --------------------------------------------------------------------------------------------------- */

bool skep_searches_choose(struct skep_planner *w)
{
	bool any = false, again = false;
	for (uint32_t i = 0; i < w->candidates; i++)
		again = again || w->candidate[i].again;
	for (uint32_t i = 0; i < w->candidates; i++) {
		const struct skep_candidate *c = &w->candidate[i], *best = &w->candidate[w->chosen];
		bool better =
			c->value < best->value || (!(best->value < c->value) && c->samples_per_s > best->samples_per_s);
		if (!c->tried || (again && !c->again) || (any && !better))
			continue;
		w->chosen = i;
		any = true;
	}
	return any;
}

void skep_searches_why(const struct skep_planner *w, char *ret, size_t size)
{
	uint32_t i = 0;
	while (i < w->candidates && w->candidate[i].why[0] == '\0')
		i++;
	if (i < w->candidates)
		snprintf(ret, size, "no allocation that was found can be: %s", w->candidate[i].why);
	else
		snprintf(ret, size, "no allocation that was found fits the workers' memory");
}

bool skep_searches_run(struct skep_planner *w)
{
	if (!search_all(w))
		return false;
	if (skep_planner_dtfm(w))
		return true;
	try_found(w);
	return skep_recuts_run(w);
}
