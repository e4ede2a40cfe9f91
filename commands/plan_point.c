/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_point.c - one combination of settings, in the process that looks at it: its scenario is read anew, and what is found out
 * goes into a struct plan_point. Keeps true: it prints nothing, and nothing of it but the answer is seen outside.
 */
#include "commands/plan_joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/cuts.h"
#include "scenarios/recut.h"

#define CHEAP_EVALUATIONS 300 /* of the greedy search */
#define SHORT_EVALUATIONS 4000
#define FIRST 8u /* combinations, whatever the budget */

double plan_point_value(const struct plan_point *p)
{
	return p->rung == PLAN_WHOLE ? p->whole_value : p->value;
}

double plan_point_time_s(const struct plan_point *p)
{
	if (p->rung == PLAN_WHOLE)
		return p->time_s;
	return p->rung >= PLAN_TRIAL && p->tried.rounds > 0 ? p->tried.time_s : NAN;
}

double plan_point_usd(const struct plan_point *p)
{
	if (p->rung == PLAN_WHOLE)
		return p->usd;
	return p->rung >= PLAN_TRIAL && p->tried.rounds > 0 ? p->tried.usd : NAN;
}

void plan_point_keep(uint32_t **list, uint32_t *count, const uint32_t *from, uint32_t from_count)
{
	uint32_t *copy = from_count > 0 ? malloc(from_count * sizeof *copy) : NULL;
	if (copy)
		memcpy(copy, from, from_count * sizeof *copy);
	free(*list);
	*list = copy;
	*count = copy ? from_count : 0;
}

static void refuse(struct plan_point *p, const char *why)
{
	p->can = false;
	snprintf(p->why, sizeof p->why, "%.*s", (int)strcspn(why, "\n"), why);
}

bool plan_point_sets(const struct plan_joint *j, uint32_t number, struct arguments *a, char **set)
{
	*a = j->arguments;
	a->scenario.set = a->set;
	for (uint32_t i = 0; number != SKEP_AS_WRITTEN && i < j->choices.keys; i++) {
		set[i] = skep_choices_assignment(&j->choices, number, i);
		if (!set[i])
			return false;
		a->set[a->scenario.sets++] = set[i];
	}
	return true;
}

void plan_point_free_sets(char **set)
{
	for (uint32_t i = 0; i < SKEP_VARY_KEYS_MAX; i++) {
		free(set[i]);
		set[i] = NULL;
	}
}

/* What is wrong in one line, without where. */
static void refuse_scenario(const struct plan_work *w, struct plan_point *p)
{
	struct skep_scenario again;
	struct skep_diag diag = {0};
	struct skep_scenario_options options = w->arguments->scenario;
	options.any_memory = options.searches = true;
	if (skep_scenario_read(w->arguments->positional[0], &options, &again, &diag))
		skep_scenario_finish(&again);
	refuse(p, diag.message);
}

static bool open_point(const struct plan_joint *j, struct plan_point *p, struct arguments *a, struct plan_work *w)
{
	char error[1024];
	*w = (struct plan_work){.arguments = a, .begin_ns = plan_now_ns(), .cuts = true, .hasty = true};
	if (!plan_read(w, error, sizeof error)) {
		refuse_scenario(w, p);
		return false;
	}
	if (plan_prepare(w, error, sizeof error) != STATUS_DONE) {
		refuse(p, error);
		plan_clear(w);
		return false;
	}
	w->aim = j->aim;
	return true;
}

/* Where the scenario is cut that was read: nothing if that is its own doing. */
static void keep_cut(const struct plan_work *w, struct plan_point *p, const uint32_t *layers)
{
	uint32_t slices = skep_plan_slices(&w->scenario.plan), *own = calloc(slices, sizeof *own);
	if (own)
		skep_recut_of(&w->scenario, own);
	if (layers || w->opened)
		plan_point_keep(&p->layers, &p->slices, layers ? layers : own, slices);
	else
		plan_point_keep(&p->layers, &p->slices, NULL, 0);
	free(own);
}

/* Keeps the allocation, and the cut (NULL: as the scenario was read), if they promise more than what the point has. `planning` is
 * that of the cut, and `cost` its. */
static void consider(struct plan_work *w, struct plan_point *p, const struct skep_planning *planning,
	const struct skep_objective *cost, const uint32_t *stage_of, const uint32_t *layers)
{
	struct skep_forecast forecast;
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	if (!stage)
		return;
	double step_s = skep_forecast_step_s(planning, SKEP_VIEW_SHARED, cost, stage_of, stage);
	free(stage);
	if (!(step_s < SKEP_NEVER))
		return;
	skep_forecast_make(&w->planning, stage_of, step_s, &forecast);
	double value = skep_forecast_value(&forecast, w->aim);
	if (p->stage_of && p->workers == w->planning.workers && !(value < p->expected_value))
		return;
	plan_point_keep(&p->stage_of, &p->workers, stage_of, w->planning.workers);
	keep_cut(w, p, layers);
	p->expected = forecast;
	p->expected_s = step_s;
	p->expected_value = value;
}

static void search(struct plan_work *w, struct plan_point *p, enum skep_method method, uint64_t evaluations)
{
	const struct skep_objective *cost = w->cost[SKEP_VIEW_SHARED];
	uint32_t *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	struct skep_search s = {.method = method,
		.problem = &w->planning.problem,
		.cost = cost,
		.budget = {.evaluations = evaluations},
		.seed = w->scenario.seed,
		.start = p->stage_of,
		.together_s = skep_throughput_together(cost),
		.along_s = skep_throughput_along(cost),
		.alone_s = skep_throughput_alone(cost)};
	void *mem = malloc(skep_search_size(&s));
	if (mem && stage_of) {
		skep_search_run(&s, mem, stage_of);
		consider(w, p, &w->planning, cost, stage_of, NULL);
	}
	free(mem);
	free(stage_of);
}

/* Another cut for what the point has; `both`: and another allocation with it. */
static void cut(struct plan_work *w, struct plan_point *p, bool both)
{
	struct skep_cutting cutting;
	uint32_t slices = skep_plan_slices(&w->scenario.plan), *layers = calloc(slices, sizeof *layers);
	uint32_t *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	uint64_t evaluations = 0;
	if (w->cuts && p->stage_of && p->workers == w->planning.workers && layers && stage_of &&
		skep_cutting_make(&w->planning, &cutting)) {
		memcpy(stage_of, p->stage_of, p->workers * sizeof *stage_of);
		skep_recut_of(&w->scenario, layers);
		if (p->slices == slices)
			memcpy(layers, p->layers, slices * sizeof *layers);
		double cost_s = both ? skep_cutting_improve(&cutting, w->scenario.seed, layers, stage_of, &evaluations)
		                     : skep_cutting_recut(&cutting, layers, stage_of);
		if (cost_s < SKEP_NEVER)
			consider(w, p, &cutting.planning, cutting.cost[0], stage_of, layers);
		skep_cutting_finish(&cutting);
	}
	free(layers);
	free(stage_of);
}

static void look_cheaply(struct plan_work *w, struct plan_point *p)
{
	uint32_t *start = calloc(w->planning.workers, sizeof *start);
	p->can = true;
	if (start && skep_planning_start(&w->planning, start))
		consider(w, p, &w->planning, w->cost[SKEP_VIEW_SHARED], start, NULL);
	free(start);
	search(w, p, SKEP_METHOD_CONTIGUOUS, 1);
	search(w, p, SKEP_METHOD_STRIDED, 1);
	search(w, p, SKEP_METHOD_GREEDY, CHEAP_EVALUATIONS);
	cut(w, p, false);
	if (!p->stage_of)
		refuse(p, "no allocation that was tried fits the workers' memory");
}

static void look_shortly(struct plan_work *w, struct plan_point *p)
{
	search(w, p, SKEP_METHOD_PORTFOLIO, SHORT_EVALUATIONS);
	cut(w, p, true);
}

static void keep_trial(struct plan_work *w, struct plan_point *p, const struct plan_candidate *c)
{
	p->value = c->value;
	p->tried = c->forecast;
	p->round_s = c->round_s;
	p->rounds = w->rounds;
	plan_point_keep(&p->stage_of, &p->workers, c->stage_of, w->planning.workers);
	keep_cut(w, p, c->layers);
}

/* The scenario is cut as the point says, if that is a cut of it. */
static bool take_cut(struct plan_work *w, const struct plan_point *p)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < p->slices; i++)
		sum += p->layers[i];
	bool suits = w->cuts && p->slices == skep_plan_slices(&w->scenario.plan) && sum == w->scenario.model.layers;
	return !suits || plan_cuts_take(w, p->layers);
}

/* With an allocation that was made for other settings, as long as it is one here. */
static void look_at_trial(struct plan_work *w, struct plan_point *p)
{
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	uint32_t *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	struct plan_candidate c = {.name = "", .fits = true, .stage_of = stage_of};
	bool suits = stage && stage_of && p->workers == w->planning.workers && take_cut(w, p);
	for (uint32_t i = 0; suits && i < p->workers; i++) {
		stage_of[i] = p->stage_of[i];
		suits = stage_of[i] < w->planning.stages || stage_of[i] == SKEP_SPARE;
	}
	if (suits)
		p->expected_s = skep_forecast_step_s(
			&w->planning, SKEP_VIEW_SHARED, w->cost[SKEP_VIEW_SHARED], stage_of, stage);
	p->can = suits && p->expected_s < SKEP_NEVER && plan_trial(w, &c);
	if (p->can) {
		skep_forecast_make(&w->planning, stage_of, p->expected_s, &p->expected);
		p->expected_value = skep_forecast_value(&p->expected, w->aim);
		w->opened = w->cut != NULL; /* the cut is kept with what was simulated */
		keep_trial(w, p, &c);
	} else {
		refuse(p, c.why[0] ? c.why : "the allocation of the best settings cannot be here");
	}
	free(stage);
	free(stage_of);
}

static void look_fully(const struct plan_joint *j, struct plan_work *w, struct plan_point *p)
{
	if (j->until_ns > 0) { /* the best few share the second quarter of the time */
		w->begin_ns = plan_now_ns();
		w->until_ns = w->begin_ns + (j->until_ns - j->begin_ns) / (4 * PLAN_FULL_POINTS);
	}
	w->hasty = false;
	w->given = p->stage_of;
	w->given_layers = p->slices == skep_plan_slices(&w->scenario.plan) ? p->layers : NULL;
	if (!plan_seek(w) || !plan_choose(w)) {
		char why[sizeof p->why];
		plan_choose_why(w, why, sizeof why);
		refuse(p, why);
		return;
	}
	keep_trial(w, p, &w->candidate[w->chosen]);
}

/* The mean over the seeds; a run that does not reach the target makes it endless. */
static void look_until_the_end(const struct plan_joint *j, struct plan_work *w, struct plan_point *p)
{
	double sum[3] = {0};
	p->reached = 0;
	if (!take_cut(w, p))
		return;
	for (p->runs = 0; p->runs < j->seeds; p->runs++) {
		struct plan_whole whole;
		if (!plan_whole_run(w, p->stage_of, w->scenario.seed + p->runs, &whole) || !whole.reached ||
			(whole.extrapolated && !j->planned->extrapolate))
			continue;
		p->reached++;
		p->extrapolated = p->extrapolated || whole.extrapolated;
		sum[0] += whole.time_s;
		sum[1] += whole.usd;
		sum[2] += whole.samples_per_s;
	}
	p->time_s = p->reached > 0 ? sum[0] / p->reached : NAN;
	p->usd = p->reached > 0 ? sum[1] / p->reached : NAN;
	p->samples_per_s = p->reached > 0 ? sum[2] / p->reached : NAN;
	double wanted = j->aim == SKEP_AIM_COST ? p->usd : p->time_s;
	p->whole_value = p->reached == p->runs && !isnan(wanted) ? wanted : INFINITY;
}

static bool is_late(const struct plan_joint *j, uint64_t quarters)
{
	return j->until_ns > 0 && plan_now_ns() > j->begin_ns + (j->until_ns - j->begin_ns) / 4 * quarters;
}

/* `nth` of its list. A few are looked at cheaply however late it is, so that with any budget something is compared. */
static void look(const struct plan_joint *j, enum plan_rung rung, uint32_t nth, struct plan_point *p)
{
	struct plan_work *w = malloc(sizeof *w);
	struct arguments *a = malloc(sizeof *a);
	char *set[SKEP_VARY_KEYS_MAX] = {NULL};
	bool first = (p->number == SKEP_AS_WRITTEN && rung != PLAN_WHOLE) || (rung == PLAN_CHEAP && nth < FIRST);
	bool skip = !first && rung != PLAN_FULL && is_late(j, rung == PLAN_CHEAP ? 1 : 2);
	if (skip && p->rung == PLAN_UNKNOWN)
		refuse(p, "there was no time to look at it");
	if (!skip && w && a && plan_point_sets(j, p->number, a, set) && open_point(j, p, a, w)) {
		if (rung == PLAN_CHEAP)
			look_cheaply(w, p);
		else if (rung == PLAN_SHORT)
			look_shortly(w, p);
		else if (rung == PLAN_TRIAL)
			look_at_trial(w, p);
		else if (rung == PLAN_FULL)
			look_fully(j, w, p);
		else
			look_until_the_end(j, w, p);
		p->rung = (uint8_t)rung;
		plan_clear(w);
	}
	plan_point_free_sets(set);
	free(a);
	free(w);
}

bool plan_point_work(void *context, const struct skep_sweep_job *job, void **ret, uint64_t *ret_count)
{
	const struct plan_joint *j = context;
	struct plan_point p = j->point[j->list[job->number]];
	const struct plan_point from = p;
	p.stage_of = p.layers = NULL;
	plan_point_keep(&p.stage_of, &p.workers, from.stage_of, from.workers);
	plan_point_keep(&p.layers, &p.slices, from.layers, from.slices);
	look(j, (enum plan_rung)job->kind, job->number, &p);
	*ret_count = sizeof p + ((uint64_t)p.workers + p.slices) * sizeof *p.stage_of;
	char *bytes = malloc(*ret_count);
	if (bytes) {
		char *lists = bytes + sizeof p;
		memcpy(bytes, &p, sizeof p);
		if (p.workers > 0)
			memcpy(lists, p.stage_of, p.workers * sizeof *p.stage_of);
		if (p.slices > 0)
			memcpy(lists + p.workers * sizeof *p.stage_of, p.layers, p.slices * sizeof *p.layers);
	}
	free(p.stage_of);
	free(p.layers);
	*ret = bytes;
	return bytes != NULL;
}
