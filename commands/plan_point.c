/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_point.c - one combination of settings, in the process that looks at it: its scenario is read anew, and what is found out
 * goes into a struct plan_point. Keeps true: it prints nothing, and nothing of it but the answer is seen outside.
 */
#include "commands/plan_joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	*w = (struct plan_work){.arguments = a, .begin_ns = plan_now_ns()};
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

/* Keeps the allocation if it promises more than what the point has. */
static void consider(struct plan_work *w, struct plan_point *p, const uint32_t *stage_of)
{
	struct skep_forecast forecast;
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	if (!stage)
		return;
	double step_s =
		skep_forecast_step_s(&w->planning, SKEP_VIEW_SHARED, w->cost[SKEP_VIEW_SHARED], stage_of, stage);
	free(stage);
	if (!(step_s < SKEP_NEVER))
		return;
	skep_forecast_make(&w->planning, stage_of, step_s, &forecast);
	double value = skep_forecast_value(&forecast, w->aim);
	if (p->stage_of && p->workers == w->planning.workers && !(value < p->expected_value))
		return;
	if (!p->stage_of)
		p->stage_of = calloc(w->planning.workers, sizeof *p->stage_of);
	if (!p->stage_of)
		return;
	p->workers = w->planning.workers;
	memcpy(p->stage_of, stage_of, p->workers * sizeof *stage_of);
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
		consider(w, p, stage_of);
	}
	free(mem);
	free(stage_of);
}

static void look_cheaply(struct plan_work *w, struct plan_point *p)
{
	uint32_t *start = calloc(w->planning.workers, sizeof *start);
	p->can = true;
	if (start && skep_planning_start(&w->planning, start))
		consider(w, p, start);
	free(start);
	search(w, p, SKEP_METHOD_CONTIGUOUS, 1);
	search(w, p, SKEP_METHOD_STRIDED, 1);
	search(w, p, SKEP_METHOD_GREEDY, CHEAP_EVALUATIONS);
	if (!p->stage_of)
		refuse(p, "no allocation that was tried fits the workers' memory");
}

static void keep_trial(struct plan_work *w, struct plan_point *p, const struct plan_candidate *c)
{
	p->value = c->value;
	p->tried = c->forecast;
	p->round_s = c->round_s;
	p->rounds = w->rounds;
	memcpy(p->stage_of, c->stage_of, p->workers * sizeof *c->stage_of);
}

/* With an allocation that was made for other settings, as long as it is one here. */
static void look_at_trial(struct plan_work *w, struct plan_point *p)
{
	struct plan_candidate c = {.name = "", .fits = true, .stage_of = p->stage_of};
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	bool suits = stage && p->workers == w->planning.workers;
	for (uint32_t i = 0; suits && i < p->workers; i++)
		suits = p->stage_of[i] < w->planning.stages || p->stage_of[i] == SKEP_SPARE;
	if (suits)
		p->expected_s = skep_forecast_step_s(
			&w->planning, SKEP_VIEW_SHARED, w->cost[SKEP_VIEW_SHARED], p->stage_of, stage);
	free(stage);
	if (!suits || !(p->expected_s < SKEP_NEVER) || !plan_trial(w, &c)) {
		refuse(p, c.why[0] ? c.why : "the allocation of the best settings cannot be here");
		return;
	}
	p->can = true;
	skep_forecast_make(&w->planning, p->stage_of, p->expected_s, &p->expected);
	p->expected_value = skep_forecast_value(&p->expected, w->aim);
	keep_trial(w, p, &c);
}

static void look_fully(const struct plan_joint *j, struct plan_work *w, struct plan_point *p)
{
	if (j->until_ns > 0) { /* the best few share the second quarter of the time */
		w->begin_ns = plan_now_ns();
		w->until_ns = w->begin_ns + (j->until_ns - j->begin_ns) / (4 * PLAN_FULL_POINTS);
	}
	w->given = p->stage_of;
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
	for (p->runs = 0; p->runs < j->seeds; p->runs++) {
		struct plan_whole whole;
		if (!plan_whole_run(w, p->stage_of, w->scenario.seed + p->runs, NULL, &whole) || !whole.reached ||
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
			search(w, p, SKEP_METHOD_PORTFOLIO, SHORT_EVALUATIONS);
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
	uint32_t *own = p.workers > 0 ? malloc(p.workers * sizeof *own) : NULL;
	if (own)
		memcpy(own, p.stage_of, p.workers * sizeof *own);
	p.stage_of = own;
	p.workers = own ? p.workers : 0;
	look(j, (enum plan_rung)job->kind, job->number, &p);
	p.workers = p.stage_of ? p.workers : 0;
	*ret_count = sizeof p + p.workers * sizeof *p.stage_of;
	char *bytes = malloc(*ret_count);
	if (bytes) {
		memcpy(bytes, &p, sizeof p);
		if (p.workers > 0)
			memcpy(bytes + sizeof p, p.stage_of, p.workers * sizeof *p.stage_of);
	}
	free(p.stage_of);
	*ret = bytes;
	return bytes != NULL;
}
