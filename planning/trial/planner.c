/* SPDX-License-Identifier: Apache-2.0
 *
 * planner.c - see planner.h. Reads scenarios for a plan, poses the problem, and keeps the candidates.
 */
#include "planning/trial/planner.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/summary/progress.h"
#include "base/clock.h"
#include "planning/expected/expected.h"
#include "planning/problem/cuts.h"
#include "planning/problem/resolve.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/recut.h"

static const char cut_fixed[] = "plan.cut=fixed";

/* `path`: the file that is at fault; NULL: none is. */
static void say(struct skep_planner *w, const char *path, const char *format, va_list list)
{
	char message[sizeof w->error.message];
	vsnprintf(message, sizeof message, format, list);
	w->error = (struct skep_diag){0};
	if (path != NULL)
		skep_diag_set(&w->error, path, 0, 0, NULL, "%s", message);
	else
		skep_fail(&w->error, "%s", message);
}

enum status skep_planner_fail(struct skep_planner *w, enum status status, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	say(w, NULL, format, list);
	va_end(list);
	return status;
}

enum status skep_planner_refuse(struct skep_planner *w, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	say(w, w->scenario.path, format, list);
	va_end(list);
	return STATUS_BAD_INPUT;
}

enum status skep_planner_lack(struct skep_planner *w)
{
	return skep_planner_fail(w, STATUS_FAILED, "not enough memory to plan this scenario");
}

bool skep_planner_dtfm(const struct skep_planner *w)
{
	return w->scenario.planned && w->scenario.planned->dtfm;
}

bool skep_planner_is_late(const struct skep_planner *w)
{
	return w->lacking || (w->until_ns > 0 && skep_monotonic_ns() >= w->until_ns);
}

uint32_t skep_planner_seeds(const struct skep_planner *w)
{
	return w->scenario.planned ? w->scenario.planned->seeds : 1;
}

/* ---- the scenario ------------------------------------------------------------------------------------------------ */

bool skep_planner_open(struct skep_planner *w, struct skep_diag *reterr)
{
	struct skep_scenario_options options = skep_assignments_options(&w->with);
	options.any_memory = true;
	return skep_resolve_file(w->with.path, &options, &w->scenario, reterr);
}

static bool says_cut(const struct skep_planner *w)
{
	return w->scenario.planned && w->scenario.planned->says_cut;
}

/* False: no memory. */
static bool add_variation(
	const struct skep_planner *w, const uint32_t *stage_of, const uint32_t *layers, struct skep_assignments *to)
{
	char *allocation = stage_of ? skep_planning_assignment(&w->planning, stage_of) : NULL;
	char *cut = layers ? skep_recut_assignment(layers, skep_plan_vstages(&w->scenario.plan)) : NULL;
	bool ok = (!stage_of || skep_assignments_add(to, allocation)) && (!layers || skep_assignments_add(to, cut)) &&
	          (!layers || !says_cut(w) || skep_assignments_add(to, cut_fixed));
	free(allocation);
	free(cut);
	return ok;
}

bool skep_planner_read(const struct skep_planner *w, const uint32_t *stage_of, const uint64_t *seed,
	const uint32_t *layers, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_assignments with;
	bool ok = skep_assignments_copy(&w->with, &with) && add_variation(w, stage_of, layers, &with);
	if (seed) {
		with.has_seed = true;
		with.seed = *seed;
	}
	if (ok)
		ok = skep_assignments_read(&with, ret, reterr);
	else
		skep_diag_set(reterr, w->scenario.path, 0, 0, NULL, "not enough memory to plan this scenario");
	skep_assignments_finish(&with);
	return ok;
}

/* ---- the problem ------------------------------------------------------------------------------------------------- */

static bool make_costs(struct skep_planner *w)
{
	for (uint32_t view = 0; view < SKEP_CONTENTIONS; view++) {
		const struct skep_throughput *throughput = &w->planning.throughput[view];
		w->cost_memory[view] = malloc(skep_throughput_size(throughput));
		if (!w->cost_memory[view])
			return false;
		w->cost[view] = skep_throughput_init(w->cost_memory[view], throughput);
	}
	if (w->aim != SKEP_AIM_COST || !w->planning.rent)
		return true;
	struct skep_throughput rented = w->planning.throughput[SKEP_CONTENDED];
	rented.rent = w->planning.rent;
	rented.standing_rent = w->planning.standing_rent;
	w->rented_memory = malloc(skep_throughput_size(&rented));
	w->rented = w->rented_memory ? skep_throughput_init(w->rented_memory, &rented) : NULL;
	return w->rented != NULL;
}

static void free_costs(struct skep_planner *w)
{
	for (uint32_t view = 0; view < SKEP_CONTENTIONS; view++) {
		free(w->cost_memory[view]);
		w->cost_memory[view] = NULL;
	}
	free(w->rented_memory);
	w->rented_memory = NULL;
}

/* The scenario is read again, with `layers` as if they were written in it, and posed. */
static bool take_cut(struct skep_planner *w, const uint32_t *layers)
{
	struct skep_diag diag = {0};
	char *cut = skep_recut_assignment(layers, skep_plan_vstages(&w->scenario.plan));
	if (!w->recut) { /* else it is the last assignment, and is replaced */
		w->before_cut = w->with.sets;
		if (says_cut(w) && !skep_assignments_add(&w->with, cut_fixed)) {
			free(cut);
			return false;
		}
		w->recut = true;
	} else {
		skep_assignments_cut(&w->with, w->with.sets - 1);
	}
	bool added = skep_assignments_add(&w->with, cut);
	free(cut);
	free_costs(w);
	skep_planning_finish(&w->planning);
	skep_scenario_finish(&w->scenario);
	return added && skep_planner_open(w, &diag) && skep_planning_make(&w->scenario, &w->planning, &w->error);
}

bool skep_planner_recut(struct skep_planner *w, const uint32_t *layers)
{
	return take_cut(w, layers) && make_costs(w);
}

/* The scenario's own cut fits no worker's memory: takes over one that does. False: none was found, or no memory. */
static bool find_cut(struct skep_planner *w)
{
	struct skep_cutting cutting;
	uint32_t *layers = calloc(skep_plan_vstages(&w->scenario.plan), sizeof *layers),
		 *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	bool found = false;
	if (layers && stage_of && skep_cutting_make(&w->planning, &cutting)) {
		found = skep_cutting_any(&cutting, w->scenario.seed, w->hasty ? 1 : SKEP_CUT_TRIES, layers, stage_of);
		skep_cutting_finish(&cutting);
	}
	w->opened = found && take_cut(w, layers);
	free(layers);
	free(stage_of);
	return w->opened;
}

enum status skep_planner_prepare(struct skep_planner *w)
{
	if (w->scenario.plan.inner.sum_every)
		return skep_planner_refuse(w,
			"sync.every: `skep plan` forecasts rounds in which all stages sum, and here each has a number "
			"of its own; take one for all");
	if (!skep_planning_pose(&w->scenario, &w->planning, &w->error))
		return STATUS_BAD_INPUT;
	w->cuts =
		w->cuts && !skep_planner_dtfm(w) && skep_planned_cuts(&w->scenario) && skep_cuts_possible(&w->scenario);
	if (!skep_planning_check(&w->planning, &w->error)) {
		const struct skep_diag error = w->error;
		w->error = (struct skep_diag){0};
		if (skep_diag_is_memory(&error))
			return skep_planner_lack(w);
		if (!w->cuts || !find_cut(w)) {
			w->error = error;
			return STATUS_BAD_INPUT;
		}
	}
	w->aim = w->scenario.planned ? w->scenario.planned->aim : SKEP_AIM_THROUGHPUT;
	return make_costs(w) ? STATUS_DONE : skep_planner_lack(w);
}

void skep_planner_close(struct skep_planner *w)
{
	for (uint32_t i = 0; i < w->candidates; i++) {
		free(w->candidate[i].stage_of);
		free(w->candidate[i].layers);
	}
	free_costs(w);
	free(w->even);
	skep_planning_finish(&w->planning);
	skep_scenario_finish(&w->scenario);
	skep_assignments_finish(&w->with);
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

struct skep_candidate *skep_planner_add(struct skep_planner *w, const char *name)
{
	assert(w->candidates < SKEP_PLANNER_CANDIDATES);
	struct skep_candidate *c = &w->candidate[w->candidates];
	*c = (struct skep_candidate){.name = name, .fits = true, .value = INFINITY, .mean_s = NAN, .worst_s = NAN};
	c->stage_of = calloc(w->planning.workers, sizeof *c->stage_of);
	w->candidates += c->stage_of != NULL;
	return c->stage_of ? c : NULL;
}

double skep_planner_expected_s(
	struct skep_planner *w, const struct skep_planning *planning, double cost_s, const uint32_t *stage_of)
{
	struct skep_expected e;
	bool can = cost_s < SKEP_NEVER, made = can && skep_expected_make(planning, stage_of, &e);
	w->lacking = w->lacking || (can && !made);
	return made ? e.step_s : can ? cost_s / skep_planning_rounds(planning, stage_of) : SKEP_NEVER;
}

void skep_planner_expect(struct skep_planner *w, struct skep_candidate *c)
{
	for (uint32_t view = 0; view < SKEP_CONTENTIONS; view++)
		c->cost_s[view] = w->cost[view]->whole(w->cost[view]->self, c->stage_of);
	c->expected_s = skep_planner_expected_s(w, &w->planning, c->cost_s[c->view], c->stage_of);
}

bool skep_planner_same_stages(
	const struct skep_planner *w, const struct skep_candidate *a, const struct skep_candidate *b)
{
	return memcmp(a->stage_of, b->stage_of, w->planning.workers * sizeof *a->stage_of) == 0;
}

uint32_t skep_planner_left_out(const struct skep_planner *w, const uint32_t *stage_of)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->planning.workers; i++)
		count += stage_of[i] == SKEP_SPARE;
	return count;
}

uint64_t skep_planner_steps(const struct skep_planner *w)
{
	return skep_plan_all_steps(&w->scenario);
}

double skep_planner_whole_s(const struct skep_planner *w)
{
	const struct skep_candidate *c = &w->candidate[w->chosen];
	return c->tried ? (double)skep_planner_steps(w) * c->round_s : NAN;
}

double skep_planner_whole_usd(const struct skep_planner *w, double whole_s)
{
	const struct skep_forecast *f = &w->candidate[w->chosen].forecast;
	return whole_s / 3600 * f->usd_per_h + (double)skep_planner_steps(w) * f->egress_usd;
}

#define TRIALS_USUAL 16u /* of one search, with what it is compared with */

void skep_planner_show_trial(const struct skep_planner *w)
{
	struct skep_progress *progress = w->options->progress;
	if (!progress)
		return;
	if (!progress->label || strcmp(progress->label, "trials") != 0)
		*progress = skep_progress_begin("trials", progress->visible);
	uint32_t done = ++progress->done;
	skep_progress_show(progress, done, 0, done < TRIALS_USUAL ? TRIALS_USUAL : done + 1, 1);
}
