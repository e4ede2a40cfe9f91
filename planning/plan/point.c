/* SPDX-License-Identifier: Apache-2.0
 *
 * point.c - one combination of settings, in the process that looks at it: its scenario is read anew, and what is found out
 * goes into a struct skep_point. Keeps true: it prints nothing, and nothing of it but the answer is seen outside.
 */
#include "planning/plan/free_settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "planning/plan/searches.h"
#include "planning/problem/cuts.h"
#include "planning/problem/run_search.h"
#include "planning/trial/trial.h"
#include "scenarios/plan/recut.h"

#define CHEAP_EVALUATIONS 300 /* of the greedy search */
#define SHORT_EVALUATIONS 4000
#define FIRST 8u /* combinations, whatever the budget */

double skep_point_value(const struct skep_point *p)
{
	return p->rung == SKEP_RUNG_WHOLE ? p->whole_value : p->value;
}

double skep_point_time_s(const struct skep_point *p)
{
	if (p->rung == SKEP_RUNG_WHOLE)
		return p->time_s;
	return p->rung >= SKEP_RUNG_TRIAL && p->tried.rounds > 0 ? p->tried.time_s : NAN;
}

double skep_point_usd(const struct skep_point *p)
{
	if (p->rung == SKEP_RUNG_WHOLE)
		return p->usd;
	return p->rung >= SKEP_RUNG_TRIAL && p->tried.rounds > 0 ? p->tried.usd : NAN;
}

void skep_point_keep(uint32_t **list, uint32_t *count, const uint32_t *from, uint32_t from_count)
{
	uint32_t *copy = from_count > 0 ? malloc(from_count * sizeof *copy) : NULL;
	if (copy)
		memcpy(copy, from, from_count * sizeof *copy);
	free(*list);
	*list = copy;
	*count = copy ? from_count : 0;
}

static void refuse(struct skep_point *p, const char *why)
{
	p->can = false;
	snprintf(p->why, sizeof p->why, "%.*s", (int)strcspn(why, "\n"), why);
}

bool skep_point_extrapolates(const struct skep_point *p)
{
	return p->rung == SKEP_RUNG_WHOLE ? p->extrapolated : p->tried.extrapolated;
}

bool skep_point_assignments(const struct skep_free_settings *j, uint32_t number, struct skep_assignments *ret)
{
	bool ok = skep_assignments_make(j->options->path, &j->options->given, ret);
	for (uint32_t i = 0; ok && number != SKEP_AS_GIVEN && i < j->choices.keys; i++) {
		char *set = skep_choices_assignment(&j->choices, number, i);
		ok = skep_assignments_add(ret, set);
		free(set);
	}
	return ok;
}

/* `with` becomes the planner's. */
static bool open_point(
	struct skep_free_settings *j, struct skep_point *p, struct skep_assignments with, struct skep_planner *w)
{
	*w = (struct skep_planner){
		.options = j->options, .with = with, .begin_ns = skep_monotonic_ns(), .cuts = true, .hasty = true};
	if (!skep_planner_open(w, &w->error) || skep_planner_prepare(w) != STATUS_DONE) {
		refuse(p, w->error.message);
		j->lacking = j->lacking || skep_diag_is_memory(&w->error);
		skep_planner_close(w);
		return false;
	}
	w->rounds = skep_trial_rounds(&w->scenario);
	w->aim = j->aim;
	w->to_beat = j->to_beat;
	w->known = &j->known;
	return true;
}

/* Where the scenario is cut that was read: nothing if that is its own doing. */
static void keep_cut(const struct skep_planner *w, struct skep_point *p, const uint32_t *layers)
{
	uint32_t vstages = skep_plan_vstages(&w->scenario.plan), *own = calloc(vstages, sizeof *own);
	if (own)
		skep_recut_of(&w->scenario, own);
	if (layers || w->opened)
		skep_point_keep(&p->layers, &p->vstages, layers ? layers : own, vstages);
	else
		skep_point_keep(&p->layers, &p->vstages, NULL, 0);
	free(own);
}

/* Keeps the allocation, and the cut (NULL: as the scenario was read), if they promise more than what the point has. `planning` is
 * that of the cut, and `cost` its. */
static void consider(struct skep_planner *w, struct skep_point *p, const struct skep_planning *planning,
	const struct skep_objective *cost, const uint32_t *stage_of, const uint32_t *layers)
{
	struct skep_forecast forecast;
	double step_s = skep_planner_expected_s(w, planning, cost->whole(cost->self, stage_of), stage_of);
	if (!(step_s < SKEP_NEVER))
		return;
	skep_forecast_make(&w->planning, stage_of, step_s, &forecast);
	double value = skep_forecast_value(&forecast, w->aim);
	if (p->stage_of && p->workers == w->planning.workers && !(value < p->expected_value))
		return;
	skep_point_keep(&p->stage_of, &p->workers, stage_of, w->planning.workers);
	keep_cut(w, p, layers);
	p->expected = forecast;
	p->expected_s = step_s;
	p->expected_value = value;
}

static void look_for(struct skep_planner *w, struct skep_point *p, enum skep_method method, uint64_t evaluations)
{
	const struct skep_objective *cost = w->cost[SKEP_CONTENDED];
	uint32_t *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	const struct skep_planning_search search = {.method = method,
		.cost = cost,
		.evaluations = evaluations,
		.seed = w->scenario.seed,
		.start = p->stage_of};
	struct skep_found found;
	if (stage_of && skep_planning_search(&w->planning, &search, stage_of, &found))
		consider(w, p, &w->planning, cost, stage_of, NULL);
	free(stage_of);
}

/* Another cut for what the point has; `both`: and another allocation with it. */
static void cut(struct skep_planner *w, struct skep_point *p, bool both)
{
	struct skep_cutting cutting;
	uint32_t vstages = skep_plan_vstages(&w->scenario.plan), *layers = calloc(vstages, sizeof *layers);
	uint32_t *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	uint64_t evaluations = 0;
	if (w->cuts && p->stage_of && p->workers == w->planning.workers && layers && stage_of &&
		skep_cutting_make(&w->planning, &cutting)) {
		memcpy(stage_of, p->stage_of, p->workers * sizeof *stage_of);
		skep_recut_of(&w->scenario, layers);
		if (p->vstages == vstages)
			memcpy(layers, p->layers, vstages * sizeof *layers);
		double cost_s = both ? skep_cutting_improve(&cutting, w->scenario.seed, layers, stage_of, &evaluations)
		                     : skep_cutting_recut(&cutting, layers, stage_of);
		if (cost_s < SKEP_NEVER)
			consider(w, p, &cutting.planning, cutting.cost[0], stage_of, layers);
		skep_cutting_finish(&cutting);
	}
	free(layers);
	free(stage_of);
}

static void look_cheaply(struct skep_planner *w, struct skep_point *p)
{
	uint32_t *start = calloc(w->planning.workers, sizeof *start);
	p->can = true;
	if (start && skep_planning_start(&w->planning, start))
		consider(w, p, &w->planning, w->cost[SKEP_CONTENDED], start, NULL);
	free(start);
	look_for(w, p, SKEP_METHOD_CONTIGUOUS, 1);
	look_for(w, p, SKEP_METHOD_STRIDED, 1);
	look_for(w, p, SKEP_METHOD_GREEDY, CHEAP_EVALUATIONS);
	cut(w, p, false);
	if (!p->stage_of)
		refuse(p, "no allocation that was tried fits the workers' memory");
}

static void look_shortly(struct skep_planner *w, struct skep_point *p)
{
	look_for(w, p, SKEP_METHOD_PORTFOLIO, SHORT_EVALUATIONS);
	cut(w, p, true);
}

/* Expected and simulated are of one allocation, whatever was expected of others before. */
static void keep_trial(struct skep_planner *w, struct skep_point *p, const struct skep_candidate *c)
{
	p->expected_s = c->expected_s;
	skep_forecast_make(&w->planning, c->stage_of, c->expected_s, &p->expected);
	p->expected_value = skep_forecast_value(&p->expected, w->aim);
	p->value = c->value;
	p->tried = c->forecast;
	p->round_s = c->round_s;
	p->events = c->events;
	skep_point_keep(&p->stage_of, &p->workers, c->stage_of, w->planning.workers);
	keep_cut(w, p, c->layers);
}

/* The scenario is cut as the point says, if that is a cut of it. */
static bool take_cut(struct skep_planner *w, const struct skep_point *p)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < p->vstages; i++)
		sum += p->layers[i];
	bool suits = w->cuts && p->vstages == skep_plan_vstages(&w->scenario.plan) && sum == w->scenario.model.layers;
	return !suits || skep_planner_recut(w, p->layers);
}

/* With an allocation that was made for other settings, as long as it is one here. */
static void look_at_trial(struct skep_planner *w, struct skep_point *p)
{
	const struct skep_objective *cost;
	uint32_t *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	struct skep_candidate c = {.name = "", .fits = true, .stage_of = stage_of};
	bool suits = stage_of && p->workers == w->planning.workers && take_cut(w, p);
	for (uint32_t i = 0; suits && i < p->workers; i++) {
		stage_of[i] = p->stage_of[i];
		suits = stage_of[i] < w->planning.stages || stage_of[i] == SKEP_SPARE;
	}
	if (suits) {
		cost = w->cost[SKEP_CONTENDED]; /* of the cut that was taken */
		c.expected_s = skep_planner_expected_s(w, &w->planning, cost->whole(cost->self, stage_of), stage_of);
	}
	p->can = suits && c.expected_s < SKEP_NEVER && skep_trial_run(w, &c);
	if (p->can) {
		w->opened = w->recut; /* the cut is kept with what was simulated */
		keep_trial(w, p, &c);
	} else {
		refuse(p, c.why[0] ? c.why
				   : "the allocation of the best settings cannot be here, or the law does not know it");
	}
	free(stage_of);
}

/* What was simulated for it before, with an allocation of other settings, stays if nothing better is found. */
static void look_fully(const struct skep_free_settings *j, struct skep_planner *w, struct skep_point *p)
{
	if (j->until_ns > 0) { /* the best few share the second quarter of the time */
		w->begin_ns = skep_monotonic_ns();
		w->until_ns = w->begin_ns + (j->until_ns - j->begin_ns) / (4 * SKEP_FULL_POINTS);
	}
	bool known = p->rung == SKEP_RUNG_TRIAL;
	w->hasty = false;
	w->given = p->stage_of;
	w->given_layers = p->vstages == skep_plan_vstages(&w->scenario.plan) ? p->layers : NULL;
	bool found = skep_searches_run(w) && skep_searches_choose(w);
	if (found && !(known && p->value <= w->candidate[w->chosen].value)) {
		keep_trial(w, p, &w->candidate[w->chosen]);
	} else if (!found && !known) {
		char why[sizeof p->why];
		skep_searches_why(w, why, sizeof why);
		refuse(p, why);
	}
}

/* The mean over the seeds; a run that does not reach the target makes it endless. */
static void look_until_the_end(const struct skep_free_settings *j, struct skep_planner *w, struct skep_point *p)
{
	double sum[2] = {0};
	p->reached = 0;
	if (!take_cut(w, p))
		return;
	for (p->runs = 0; p->runs < j->seeds; p->runs++) {
		struct skep_trial_whole whole;
		if (!skep_trial_run_whole(w, p->stage_of, w->scenario.seed + p->runs, &whole) || !whole.reached ||
			(whole.extrapolated && !j->planned->extrapolate))
			continue;
		p->reached++;
		p->extrapolated = p->extrapolated || whole.extrapolated;
		sum[0] += whole.time_s;
		sum[1] += whole.usd;
	}
	p->time_s = p->reached > 0 ? sum[0] / p->reached : NAN;
	p->usd = p->reached > 0 ? sum[1] / p->reached : NAN;
	double wanted = j->aim == SKEP_AIM_COST ? p->usd : p->time_s;
	p->whole_value = p->reached == p->runs && !isnan(wanted) ? wanted : INFINITY;
}

static bool is_late(const struct skep_free_settings *j, uint64_t quarters)
{
	return j->until_ns > 0 && skep_monotonic_ns() > j->begin_ns + (j->until_ns - j->begin_ns) / 4 * quarters;
}

/* `nth` of its list. A few are looked at cheaply however late it is, so that with any budget something is compared. */
static void look(struct skep_free_settings *j, enum skep_rung rung, uint32_t nth, struct skep_point *p)
{
	struct skep_planner *w = malloc(sizeof *w);
	struct skep_assignments with = {.sets = 0};
	bool first =
		(p->number == SKEP_AS_GIVEN && rung != SKEP_RUNG_WHOLE) || (rung == SKEP_RUNG_CHEAP && nth < FIRST);
	bool skip = !first && rung != SKEP_RUNG_FULL && is_late(j, rung == SKEP_RUNG_CHEAP ? 1 : 2);
	if (skip && p->rung == SKEP_RUNG_UNKNOWN)
		refuse(p, "there was no time to look at it");
	if (skip || !w || !skep_point_assignments(j, p->number, &with)) {
		j->lacking = j->lacking || !skip;
		skep_assignments_finish(&with);
	} else if (open_point(j, p, with, w)) {
		if (rung == SKEP_RUNG_CHEAP)
			look_cheaply(w, p);
		else if (rung == SKEP_RUNG_SHORT)
			look_shortly(w, p);
		else if (rung == SKEP_RUNG_TRIAL)
			look_at_trial(w, p);
		else if (rung == SKEP_RUNG_FULL)
			look_fully(j, w, p);
		else
			look_until_the_end(j, w, p);
		p->rung = (uint8_t)rung;
		j->lacking = j->lacking || w->lacking;
		skep_planner_close(w);
	}
	free(w);
}

/* ---- to and from the process -------------------------------------------------------------------------------------- */

static void copy(
	const struct skep_point *from, const uint32_t *stage_of, const uint32_t *layers, struct skep_point *ret)
{
	*ret = *from;
	ret->stage_of = ret->layers = NULL;
	skep_point_keep(&ret->stage_of, &ret->workers, stage_of, from->workers);
	skep_point_keep(&ret->layers, &ret->vstages, layers, from->vstages);
}

static void clear(struct skep_point *p)
{
	free(p->stage_of);
	free(p->layers);
}

/* Of the answer, before what became known. */
static size_t bytes_of(const struct skep_point *p)
{
	return sizeof *p + ((size_t)p->workers + p->vstages) * sizeof *p->stage_of;
}

void skep_point_take(struct skep_free_settings *j, struct skep_point *p, void *bytes, uint64_t count)
{
	struct skep_point from;
	memcpy(&from, bytes, sizeof from);
	const uint32_t *lists = (const uint32_t *)(const void *)((const char *)bytes + sizeof from);
	clear(p);
	copy(&from, lists, lists + from.workers, p);
	const char *known = (const char *)bytes + bytes_of(&from), *end = (const char *)bytes + count;
	for (struct skep_known_trial trial; known < end; known += sizeof trial) {
		memcpy(&trial, known, sizeof trial);
		skep_known_add(&j->known, &trial);
	}
	free(bytes);
}

bool skep_point_work(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count)
{
	struct skep_free_settings *j = context;
	const struct skep_point *from = &j->point[j->list[job->number]];
	uint32_t before = j->known.count;
	struct skep_point p;
	copy(from, from->stage_of, from->layers, &p);
	look(j, (enum skep_rung)job->kind, job->number, &p);
	size_t known = (j->known.count - before) * sizeof *j->known.trial;
	*ret_count = bytes_of(&p) + known;
	char *bytes = j->lacking ? NULL : malloc(*ret_count);
	if (bytes) {
		uint32_t *lists = (uint32_t *)(void *)(bytes + sizeof p);
		memcpy(bytes, &p, sizeof p);
		if (p.workers > 0)
			memcpy(lists, p.stage_of, p.workers * sizeof *p.stage_of);
		if (p.vstages > 0)
			memcpy(lists + p.workers, p.layers, p.vstages * sizeof *p.layers);
		if (known > 0)
			memcpy(bytes + bytes_of(&p), j->known.trial + before, known);
	}
	clear(&p);
	*ret = bytes;
	return bytes != NULL;
}
