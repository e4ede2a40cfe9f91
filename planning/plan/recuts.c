/* SPDX-License-Identifier: Apache-2.0
 *
 * recuts.c - see searches.h. Where `skep plan` cuts the model (planning/problem/cuts.h), where the scenario leaves that
 * open: begun at what the searches found with the cut that there is, and at kinds of machines; the best few are
 * simulated like all else.
 *
 * Keeps true: all that was searched for and tried with the scenario's own cut was so before, and stays: what is chosen is
 * never worse in the simulator than without another cut. Once one is chosen the work is that of a scenario which has it
 * written.
 */
#include "planning/plan/searches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/expected/cost.h"
#include "planning/problem/cuts.h"
#include "planning/trial/trial.h"
#include "scenarios/plan/recut.h"

#define TRIALS 5u    /* of what cuts the model elsewhere */
#define BACKWARDS 2u /* of the best, those that are tried backwards */

static uint32_t vstages_of(const struct skep_planner *w)
{
	return skep_plan_vstages(&w->scenario.plan);
}

/* ---- candidates ---------------------------------------------------------------------------------------------------- */

static bool same(
	const struct skep_planner *w, const struct skep_candidate *c, const uint32_t *layers, const uint32_t *stage_of)
{
	return c->layers && memcmp(c->layers, layers, vstages_of(w) * sizeof *layers) == 0 &&
	       memcmp(c->stage_of, stage_of, w->planning.workers * sizeof *stage_of) == 0;
}

/* Unless it is no other cut, or known. False: no memory. */
static bool add_found(struct skep_planner *w, struct skep_cutting *cutting, enum skep_contention view, bool lean,
	const uint32_t *layers, const uint32_t *stage_of, uint64_t evaluations)
{
	if (memcmp(layers, w->even, vstages_of(w) * sizeof *layers) == 0)
		return true;
	for (uint32_t i = 1; i < w->candidates; i++)
		if (same(w, &w->candidate[i], layers, stage_of))
			return true;
	struct skep_candidate *c = skep_planner_add(w, "cuts");
	if (!c || !(c->layers = calloc(vstages_of(w), sizeof *c->layers)))
		return false;
	memcpy(c->layers, layers, vstages_of(w) * sizeof *layers);
	memcpy(c->stage_of, stage_of, w->planning.workers * sizeof *stage_of);
	c->view = view;
	c->lean = lean;
	c->evaluations = evaluations;
	for (uint32_t v = 0; v < SKEP_CONTENTIONS; v++)
		c->cost_s[v] = skep_cutting_expect(cutting, v, layers, stage_of);
	c->expected_s = skep_planner_expected_s(w, &cutting->planning, c->cost_s[view], stage_of);
	return true;
}

struct begin {
	const uint32_t *stage_of; /* NULL: kinds of machines */
	const uint32_t *layers;   /* NULL: the cut that there is */
	enum skep_contention view;
	bool lean;
	bool keeps; /* who serves which stage is left as it is */
};

static bool seek_from(struct skep_planner *w, struct skep_cutting *cutting, const struct begin *begin)
{
	uint64_t evaluations = 0;
	uint32_t *layers = calloc(vstages_of(w), sizeof *layers),
		 *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	bool ok = layers && stage_of, begun = true;
	if (ok) {
		skep_cutting_aim(cutting, begin->view, begin->lean, begin->lean && w->rented);
		memcpy(layers, begin->layers ? begin->layers : w->even, vstages_of(w) * sizeof *layers);
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
	ok = ok && !cutting->lacking;
	free(layers);
	free(stage_of);
	return ok;
}

/* Of the searches that might leave machines out or of the others; `tried`: in the simulator, else by what is expected.
 * NULL: nothing. */
static const uint32_t *best_of(const struct skep_planner *w, enum skep_contention view, bool lean, bool tried)
{
	double least = SKEP_NEVER;
	const uint32_t *best = NULL;
	for (uint32_t i = 0; i < w->candidates; i++) {
		const struct skep_candidate *c = &w->candidate[i];
		double value = tried ? c->value : c->cost_s[view];
		bool sought = tried ? c->tried : i > 0 && c->lean == lean && !c->by_expected;
		if (c->layers || !sought || !(value < least))
			continue;
		least = value;
		best = c->stage_of;
	}
	return best;
}

/* What the search by what is expected found. */
static const uint32_t *best_expected(const struct skep_planner *w, bool lean)
{
	for (uint32_t i = 0; i < w->candidates; i++)
		if (w->candidate[i].by_expected && w->candidate[i].lean == lean)
			return w->candidate[i].stage_of;
	return NULL;
}

/* Does a search begin there already? */
static bool is_begun(const struct skep_planner *w, const struct begin *begins, size_t nth)
{
	const struct begin *b = &begins[nth];
	for (size_t i = 0; b->stage_of && i < nth; i++)
		if (begins[i].stage_of && begins[i].view == b->view && begins[i].lean == b->lean &&
			begins[i].keeps == b->keeps &&
			memcmp(begins[i].stage_of, b->stage_of, w->planning.workers * sizeof *b->stage_of) == 0)
			return true;
	return false;
}

static bool seek_all(struct skep_planner *w, struct skep_cutting *cutting)
{
	const struct begin begins[] = {
		{best_of(w, SKEP_CONTENDED, false, true), NULL, SKEP_CONTENDED, false, true},
		{best_of(w, SKEP_CONTENDED, false, false), NULL, SKEP_CONTENDED, false, false},
		{NULL, NULL, SKEP_CONTENDED, false, false},
		{best_of(w, SKEP_UNCONTENDED, false, false), NULL, SKEP_UNCONTENDED, false, false},
		{best_of(w, SKEP_CONTENDED, true, false), NULL, SKEP_CONTENDED, true, false},
		{NULL, NULL, SKEP_CONTENDED, true, false},
		{best_expected(w, false), NULL, SKEP_CONTENDED, false, false},
		{best_expected(w, true), NULL, SKEP_CONTENDED, true, false},
	};
	bool ok = true, lean = w->planning.lean.spares > w->planning.problem.spares;
	if (w->given_layers)
		ok = seek_from(w, cutting, &(struct begin){w->given, w->given_layers, SKEP_CONTENDED, false, true});
	for (size_t i = 0; ok && i < sizeof begins / sizeof begins[0]; i++)
		if ((begins[i].stage_of || i == 2 || i == 5) && (lean || !begins[i].lean) && !is_begun(w, begins, i) &&
			!skep_planner_is_late(w))
			ok = seek_from(w, cutting, &begins[i]);
	return ok;
}

/* ---- trials -------------------------------------------------------------------------------------------------------- */

/* The one that is expected to be best of those that were not simulated; NULL: there is none. */
static struct skep_candidate *next_trial(struct skep_planner *w)
{
	struct skep_candidate *best = NULL;
	for (uint32_t i = 1; i < w->candidates; i++) {
		struct skep_candidate *c = &w->candidate[i];
		if (!c->layers || c->tried || !c->fits)
			continue;
		if (!best || c->expected_s < best->expected_s)
			best = c;
	}
	return best;
}

static void try_all(struct skep_planner *w)
{
	for (uint32_t i = 0; i < w->candidates; i++)
		if (w->candidate[i].tried)
			w->even_samples_per_s = fmax(w->even_samples_per_s, w->candidate[i].samples_per_s);
	for (uint32_t tried = 0; tried < TRIALS && !skep_planner_is_late(w); tried++) {
		struct skep_candidate *c = next_trial(w);
		if (!c)
			return;
		if (!skep_trial_run(w, c))
			c->fits = false;
	}
}

/* The best that were simulated, in order. How many: at most so many. */
static uint32_t list_best(const struct skep_planner *w, uint32_t most, uint32_t *ret)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->candidates; i++) {
		if (!w->candidate[i].tried)
			continue;
		uint32_t at = count < most ? count++ : most;
		for (; at > 0 && w->candidate[i].value < w->candidate[ret[at - 1]].value; at--)
			if (at < most)
				ret[at] = ret[at - 1];
		if (at < most)
			ret[at] = i;
	}
	return count;
}

/* False: no memory. */
static bool try_backwards(struct skep_planner *w, struct skep_cutting *cutting, uint32_t which)
{
	const struct skep_candidate *c = &w->candidate[which];
	uint32_t stages = w->planning.stages, before = w->candidates;
	if (!c->layers || vstages_of(w) != stages || skep_planner_is_late(w))
		return true;
	uint32_t *layers = calloc(stages, sizeof *layers), *stage_of = calloc(w->planning.workers, sizeof *stage_of);
	bool ok = layers && stage_of;
	for (uint32_t s = 0; ok && s < stages; s++)
		layers[s] = c->layers[stages - 1 - s];
	for (uint32_t i = 0; ok && i < w->planning.workers; i++)
		stage_of[i] = c->stage_of[i] < stages ? stages - 1 - c->stage_of[i] : c->stage_of[i];
	ok = ok && add_found(w, cutting, c->view, c->lean, layers, stage_of, 0);
	if (ok && w->candidates > before && !skep_trial_run(w, &w->candidate[before]))
		w->candidate[before].fits = false;
	free(layers);
	free(stage_of);
	return ok;
}

/* The best ones, read backwards. Searches can hardly tell the two apart, since a microbatch goes there and back; but what the
 * last stages update hides behind the next round's first passes. Of large pools one, since trials are dear. False: no memory. */
static bool try_best_backwards(struct skep_planner *w, struct skep_cutting *cutting)
{
	uint32_t best[BACKWARDS], most = w->planning.workers <= SKEP_EXPECTED_COST_WORKERS_MAX ? BACKWARDS : 1;
	bool ok = true;
	most = list_best(w, most, best);
	for (uint32_t i = 0; ok && i < most; i++)
		ok = try_backwards(w, cutting, best[i]);
	return ok;
}

bool skep_recuts_run(struct skep_planner *w)
{
	struct skep_cutting cutting;
	if (!w->cuts)
		return true;
	if (!w->even) {
		w->even = calloc(vstages_of(w), sizeof *w->even);
		if (!w->even)
			return false;
	}
	skep_recut_of(&w->scenario, w->even);
	if (!skep_cutting_make(&w->planning, &cutting))
		return false;
	bool ok = seek_all(w, &cutting);
	if (ok)
		try_all(w);
	ok = ok && try_best_backwards(w, &cutting);
	skep_cutting_finish(&cutting);
	return ok;
}
