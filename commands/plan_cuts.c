/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_cuts.c - where `skep plan` cuts the model (planning/cuts.h), where the scenario leaves that open: begun at what the
 * searches found with the cut that there is, and at kinds of machines; the best few are simulated like all else.
 *
 * Keeps true: all that was searched for and tried with the scenario's own cut was so before, and stays: what is chosen is
 * never worse in the simulator than without another cut. Once one is chosen the work is that of a scenario which has it written.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/plan_work.h"
#include "planning/cuts.h"
#include "scenarios/recut.h"

static const char name[] = "cuts";

static uint32_t slices_of(const struct plan_work *w)
{
	return skep_plan_slices(&w->scenario.plan);
}

/* ---- candidates ---------------------------------------------------------------------------------------------------- */

static bool same(
	const struct plan_work *w, const struct plan_candidate *c, const uint32_t *layers, const uint32_t *stage_of)
{
	return c->layers && memcmp(c->layers, layers, slices_of(w) * sizeof *layers) == 0 &&
	       memcmp(c->stage_of, stage_of, w->planning.workers * sizeof *stage_of) == 0;
}

/* Unless it is no other cut, or known. False: no memory. */
static bool add_found(struct plan_work *w, struct skep_cutting *cutting, enum skep_planning_view view, bool lean,
	const uint32_t *layers, const uint32_t *stage_of, uint64_t evaluations)
{
	struct plan_candidate *c;
	if (memcmp(layers, w->even, slices_of(w) * sizeof *layers) == 0)
		return true;
	for (uint32_t i = 1; i < w->candidates; i++)
		if (same(w, &w->candidate[i], layers, stage_of))
			return true;
	if (!plan_add(w, name, &c))
		return false;
	c->layers = calloc(slices_of(w), sizeof *c->layers);
	if (!c->layers)
		return false;
	memcpy(c->layers, layers, slices_of(w) * sizeof *layers);
	memcpy(c->stage_of, stage_of, w->planning.workers * sizeof *stage_of);
	c->view = view;
	c->lean = lean;
	c->evaluations = evaluations;
	for (uint32_t v = 0; v < SKEP_VIEWS; v++)
		c->step_s[v] = skep_cutting_expect(cutting, v, layers, stage_of);
	return true;
}

struct begin {
	const uint32_t *stage_of; /* NULL: kinds of machines */
	const uint32_t *layers;   /* NULL: the cut that there is */
	enum skep_planning_view view;
	bool lean;
	bool keeps; /* who serves which stage is left as it is */
};

static bool seek_from(struct plan_work *w, struct skep_cutting *cutting, const struct begin *begin)
{
	uint64_t evaluations = 0;
	uint32_t *layers = calloc(slices_of(w), sizeof *layers),
		 *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	bool ok = layers && stage_of, begun = true;
	if (ok) {
		skep_cutting_aim(cutting, begin->view, begin->lean, begin->lean && w->rented);
		memcpy(layers, begin->layers ? begin->layers : w->even, slices_of(w) * sizeof *layers);
		if (begin->stage_of)
			memcpy(stage_of, begin->stage_of, w->planning.workers * sizeof *stage_of);
		else
			begun = skep_cutting_begin(cutting, layers, stage_of);
	}
	if (ok && begun) {
		double cost = begin->keeps
		                      ? skep_cutting_recut(cutting, layers, stage_of)
		                      : skep_cutting_improve(cutting, w->scenario.seed, layers, stage_of, &evaluations);
		if (cost < SKEP_NEVER)
			ok = add_found(w, cutting, begin->view, begin->lean, layers, stage_of, evaluations);
	}
	free(layers);
	free(stage_of);
	return ok;
}

/* Of the searches that might leave machines out or of the others; `tried`: in the simulator, else by what is expected. NULL:
 * nothing. */
static const uint32_t *best_of(const struct plan_work *w, enum skep_planning_view view, bool lean, bool tried)
{
	double least = SKEP_NEVER;
	const uint32_t *best = NULL;
	for (uint32_t i = 0; i < w->candidates; i++) {
		const struct plan_candidate *c = &w->candidate[i];
		double value = tried ? c->value : c->step_s[view];
		if (c->layers || (!tried && (c->lean != lean || i == 0)) || (tried && !c->tried) || !(value < least))
			continue;
		least = value;
		best = c->stage_of;
	}
	return best;
}

static bool is_late(const struct plan_work *w)
{
	return w->until_ns > 0 && plan_now_ns() >= w->until_ns;
}

static bool seek_all(struct plan_work *w, struct skep_cutting *cutting)
{
	const struct begin begins[] = {
		{best_of(w, SKEP_VIEW_SHARED, false, true), NULL, SKEP_VIEW_SHARED, false, true},
		{best_of(w, SKEP_VIEW_SHARED, false, false), NULL, SKEP_VIEW_SHARED, false, false},
		{NULL, NULL, SKEP_VIEW_SHARED, false, false},
		{best_of(w, SKEP_VIEW_ALONE, false, false), NULL, SKEP_VIEW_ALONE, false, false},
		{best_of(w, SKEP_VIEW_SHARED, true, false), NULL, SKEP_VIEW_SHARED, true, false},
		{NULL, NULL, SKEP_VIEW_SHARED, true, false},
	};
	bool ok = true, lean = w->planning.lean.spares > w->planning.problem.spares;
	if (w->given_layers)
		ok = seek_from(w, cutting, &(struct begin){w->given, w->given_layers, SKEP_VIEW_SHARED, false, true});
	for (size_t i = 0; ok && i < sizeof begins / sizeof begins[0]; i++)
		if ((begins[i].stage_of || i % 3 == 2) && (lean || !begins[i].lean) && !is_late(w))
			ok = seek_from(w, cutting, &begins[i]);
	return ok;
}

/* ---- trials -------------------------------------------------------------------------------------------------------- */

/* The one that is expected to be best of those that were not simulated; NULL: there is none. */
static struct plan_candidate *next_trial(struct plan_work *w)
{
	struct plan_candidate *best = NULL;
	for (uint32_t i = 1; i < w->candidates; i++) {
		struct plan_candidate *c = &w->candidate[i];
		if (!c->layers || c->tried || !c->fits)
			continue;
		if (!best || c->step_s[c->view] < best->step_s[best->view])
			best = c;
	}
	return best;
}

static void try_all(struct plan_work *w)
{
	for (uint32_t i = 0; i < w->candidates; i++)
		if (w->candidate[i].tried)
			w->even_samples_per_s = fmax(w->even_samples_per_s, w->candidate[i].samples_per_s);
	for (uint32_t tried = 0; tried < PLAN_CUT_TRIALS && !is_late(w); tried++) {
		struct plan_candidate *c = next_trial(w);
		if (!c)
			return;
		if (!plan_trial(w, c))
			c->fits = false;
	}
}

bool plan_cuts_seek(struct plan_work *w)
{
	struct skep_cutting cutting;
	if (!w->cuts)
		return true;
	if (!w->even) {
		w->even = calloc(slices_of(w), sizeof *w->even);
		if (!w->even)
			return false;
	}
	skep_recut_of(&w->scenario, w->even);
	if (!skep_cutting_make(&w->planning, &cutting))
		return false;
	bool ok = seek_all(w, &cutting);
	skep_cutting_finish(&cutting);
	if (ok)
		try_all(w);
	return ok;
}

/* ---- another scenario ---------------------------------------------------------------------------------------------- */

/* It is read again, with `layers` as if they were written in it, and posed. */
static bool take_over(struct plan_work *w, const uint32_t *layers)
{
	static const char as_written[] = "plan.cut=as-written";
	char error[2048], *cut = skep_recut_assignment(layers, slices_of(w));
	bool says = w->scenario.planned && w->scenario.planned->says_cut;
	if (!cut)
		return false;
	if (!w->cut) { /* else it is the last one, and is replaced */
		struct arguments with = *w->arguments;
		w->given_sets = with.scenario.sets;
		memcpy(with.set, w->arguments->scenario.set, with.scenario.sets * sizeof *with.set);
		if (says)
			with.set[with.scenario.sets++] = as_written;
		with.scenario.sets++;
		w->recut = with;
		w->recut.scenario.set = w->recut.set;
		w->arguments = &w->recut;
	}
	free(w->cut);
	w->cut = cut;
	w->recut.set[w->recut.scenario.sets - 1] = cut;
	plan_free_costs(w);
	skep_planning_finish(&w->planning);
	skep_scenario_finish(&w->scenario);
	return plan_read(w, error, sizeof error) && skep_planning_make(&w->scenario, &w->planning, error, sizeof error);
}

bool plan_cuts_take(struct plan_work *w, const uint32_t *layers)
{
	return take_over(w, layers) && plan_make_costs(w);
}

bool plan_cuts_open(struct plan_work *w)
{
	struct skep_cutting cutting;
	uint32_t *layers = calloc(slices_of(w), sizeof *layers),
		 *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	bool found = false;
	if (layers && stage_of && skep_cutting_make(&w->planning, &cutting)) {
		found = skep_cutting_any(&cutting, w->scenario.seed, w->hasty ? 1 : SKEP_CUT_TRIES, layers, stage_of);
		skep_cutting_finish(&cutting);
	}
	found = found && take_over(w, layers);
	w->opened = found;
	free(layers);
	free(stage_of);
	return found;
}

bool plan_cuts_adopt(struct plan_work *w)
{
	const uint32_t *layers = w->candidate[w->chosen].layers;
	return !layers || plan_cuts_take(w, layers);
}
