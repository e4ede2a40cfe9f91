/* SPDX-License-Identifier: Apache-2.0
 *
 * alpa.c - see alpa.h. A table over the first layer, the GPUs from there on, and the stages from there on; it is filled anew for
 * each number of copies and each r.
 */
#include "planning/search/published/alpa.h"

#include <assert.h>
#include <math.h>

#include "planning/search/hunt.h"

struct choice {
	uint16_t end, option; /* of the first stage; end 0: there is none */
};

struct table {
	const struct skep_alpa *a;
	uint32_t stages; /* at most */
	double *least;
	struct choice *choice;
};

/* This folder calls no library, and fmin() is a call to one. */
static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

/* Layers from `first` on, served by exactly so many GPUs in so many stages. */
static size_t cell(const struct table *t, uint32_t first, uint32_t gpus, uint32_t stages)
{
	return ((size_t)first * (t->a->gpus + 1) + gpus) * (t->stages + 1) + stages;
}

static void carve_table(struct table *t, struct skep_search_carve *c, const struct skep_alpa *a)
{
	*t = (struct table){.a = a, .stages = a->layers < a->gpus ? a->layers : a->gpus};
	size_t cells = cell(t, a->layers + 1, 0, 0);
	t->least = skep_search_carve(c, cells, sizeof *t->least);
	t->choice = skep_search_carve(c, cells, sizeof *t->choice);
}

size_t skep_alpa_size(const struct skep_alpa *a)
{
	struct table t;
	struct skep_search_carve c = {NULL, 0};
	carve_table(&t, &c, a);
	return c.used;
}

double skep_alpa_ways(const struct skep_alpa *a)
{
	double layers = a->layers, gpus = a->gpus;
	return layers * layers / 2 * gpus * lesser(layers, gpus) / 2 * a->options;
}

/* ---- options -------------------------------------------------------------------------------------------------------- */

static bool add_degrees(
	uint32_t submesh, uint32_t most, uint32_t microbatches, struct skep_alpa_option *ret, uint32_t *count)
{
	for (uint32_t degree = 1; degree <= most; degree *= 2) {
		uint32_t copies = submesh / degree;
		if (microbatches % copies != 0)
			continue;
		if (*count == SKEP_ALPA_OPTIONS)
			return false;
		ret[(*count)++] = (struct skep_alpa_option){submesh, degree, copies};
	}
	return true;
}

uint32_t skep_alpa_options(uint32_t hosts, uint32_t gpus, uint32_t microbatches, struct skep_alpa_option *ret)
{
	uint32_t count = 0;
	assert(gpus > 0 && (gpus & (gpus - 1)) == 0 && microbatches > 0);
	for (uint32_t part = 1; part < gpus; part *= 2)
		if (!add_degrees(part, part, microbatches, ret, &count))
			return UINT32_MAX;
	for (uint32_t n = 1; n <= hosts; n++)
		if (!add_degrees(n * gpus, gpus, microbatches, ret, &count))
			return UINT32_MAX;
	return count;
}

/* ---- the recurrence ------------------------------------------------------------------------------------------------- */

/* With a stage [first, end) in front of what is behind it; the stages' second parts are less than `below`. */
static void look(struct table *t, uint32_t first, uint32_t end, uint32_t option, double below)
{
	const struct skep_alpa *a = t->a;
	const struct skep_alpa_option o = a->option[option];
	const struct skep_alpa_cost cost = a->cost[skep_alpa_at(a, first, end, option)];
	if (!(cost.rest_s < below))
		return;
	for (uint32_t gpus = 0; gpus + o.gpus <= a->gpus; gpus++)
		for (uint32_t behind = 0; behind < t->stages && behind <= cost.behind_most; behind++) {
			double trip_s = t->least[cell(t, end, gpus, behind)] + cost.trip_s;
			size_t at = cell(t, first, gpus + o.gpus, behind + 1);
			if (!(trip_s < t->least[at]))
				continue;
			t->least[at] = trip_s;
			t->choice[at] = (struct choice){(uint16_t)end, (uint16_t)option};
		}
}

/* The least sum of trips; INFINITY: none. *ret_stages is of the plan that has it. */
static double fill(struct table *t, uint32_t copies, double below, uint32_t *ret_stages)
{
	const struct skep_alpa *a = t->a;
	size_t cells = cell(t, a->layers + 1, 0, 0);
	for (size_t i = 0; i < cells; i++) {
		t->least[i] = INFINITY;
		t->choice[i] = (struct choice){0, 0};
	}
	t->least[cell(t, a->layers, 0, 0)] = 0;
	for (uint32_t first = a->layers; first-- > 0;)
		for (uint32_t end = a->layers; end > first; end--)
			for (uint32_t option = 0; option < a->options; option++)
				if (a->option[option].copies == copies)
					look(t, first, end, option, below);
	double least = INFINITY;
	for (uint32_t stages = 1; stages <= t->stages; stages++)
		if (t->least[cell(t, 0, a->gpus, stages)] < least) {
			least = t->least[cell(t, 0, a->gpus, stages)];
			*ret_stages = stages;
		}
	return least;
}

static void take_apart(const struct table *t, uint32_t stages, struct skep_alpa_stage *ret)
{
	const struct skep_alpa *a = t->a;
	uint32_t first = 0, gpus = a->gpus;
	for (uint32_t s = 0; s < stages; s++) {
		struct choice c = t->choice[cell(t, first, gpus, stages - s)];
		assert(c.end > first && a->option[c.option].gpus <= gpus);
		ret[s] = (struct skep_alpa_stage){first, c.end - first, c.option};
		gpus -= a->option[c.option].gpus;
		first = c.end;
	}
	assert(first == a->layers && gpus == 0);
}

static double longest(const struct skep_alpa *a, const struct skep_alpa_stage *stage, uint32_t stages)
{
	double rest_s = 0;
	for (uint32_t s = 0; s < stages; s++) {
		uint32_t end = stage[s].first + stage[s].layers;
		rest_s = greater(rest_s, a->cost[skep_alpa_at(a, stage[s].first, end, stage[s].option)].rest_s);
	}
	return rest_s;
}

struct best {
	double step_s;
	struct skep_alpa_stage *stage;
	uint32_t stages;
};

static void find_with(struct table *t, uint32_t copies, struct best *best)
{
	struct skep_alpa_stage found[SKEP_ALPA_LAYERS];
	double below = INFINITY;
	for (;;) {
		uint32_t stages = 0;
		double trip_s = fill(t, copies, below, &stages);
		if (!(trip_s < best->step_s))
			return;
		take_apart(t, stages, found);
		double rest_s = longest(t->a, found, stages);
		assert(rest_s < below);
		if (trip_s + rest_s < best->step_s) {
			best->step_s = trip_s + rest_s;
			best->stages = stages;
			for (uint32_t s = 0; s < stages; s++)
				best->stage[s] = found[s];
		}
		below = lesser(rest_s, best->step_s - trip_s); /* no smaller r has a shorter sum */
	}
}

double skep_alpa_find(const struct skep_alpa *a, void *mem, struct skep_alpa_stage *ret_stage, uint32_t *ret_stages)
{
	struct table t;
	struct skep_search_carve c = {mem, 0};
	struct best best = {INFINITY, ret_stage, 0};
	assert(mem && a->layers > 0 && a->layers <= SKEP_ALPA_LAYERS && a->options <= SKEP_ALPA_OPTIONS);
	carve_table(&t, &c, a);
	for (uint32_t copies = 1; copies <= a->gpus; copies++) {
		bool any = false;
		for (uint32_t option = 0; option < a->options; option++)
			any = any || a->option[option].copies == copies;
		if (any)
			find_with(&t, copies, &best);
	}
	*ret_stages = best.stages;
	return best.step_s;
}

/* ---- hosts ---------------------------------------------------------------------------------------------------------- */

/* Sizes of parts divide each other, so the first host with room leaves no hole that a later one would need. */
void skep_alpa_place(const struct skep_alpa *a, const struct skep_alpa_stage *stage, uint32_t stages, uint32_t hosts,
	uint32_t *ret_gpus)
{
	uint32_t has = a->gpus / hosts;
	for (size_t i = 0; i < (size_t)stages * hosts; i++)
		ret_gpus[i] = 0;
	for (uint32_t s = 0; s < stages; s++) {
		uint32_t left = a->option[stage[s].option].gpus, each = left < has ? left : has;
		for (uint32_t host = 0; host < hosts && left > 0; host++) {
			uint32_t used = 0;
			for (uint32_t before = 0; before < s; before++)
				used += ret_gpus[(size_t)before * hosts + host];
			if (used + each > has)
				continue;
			ret_gpus[(size_t)s * hosts + host] = each;
			left -= each;
		}
		assert(left == 0);
	}
}
