/* SPDX-License-Identifier: Apache-2.0
 *
 * layers_cut.c - see layers_cut.h. Keeps true: what is told as the time of a step is that of the cut that is told, not
 * of the bound.
 */
#include "planning/search/layers_cut.h"

#include <assert.h>
#include <string.h>

#include "planning/search/chain_state.h"

struct cost { /* of one stage */
	double pace_s, trip_s, reduction_s, update_s;
};

struct label {
	double trip_s, reduction_s, update_s, value; /* value: a step of nothing but this, at the bound */
	uint32_t before, nth;                        /* label of the row before */
};

struct table {
	const struct skep_cuts *cuts;
	size_t *row;          /* [stages + 2] first cell of the row, and ... */
	size_t *at;           /* ... [stages + 1] first cost of the stage */
	struct cost *cost;    /* of the stage: [places to begin * places to end] */
	double *bound, *trip; /* [costs], [cells] */
	uint32_t *labels;     /* [cells] */
	struct label *label;  /* [cells * CUTS_LABELS] */
	uint32_t *first;      /* [stages + 1] of one way */
	size_t bounds;
};

static uint32_t width(const struct skep_cuts *c, uint32_t row)
{
	return c->high[row] - c->low[row] + 1;
}

static size_t cell(const struct table *t, uint32_t row, uint32_t layer)
{
	return t->row[row] + layer - t->cuts->low[row];
}

static struct cost *cost_of(const struct table *t, uint32_t stage, uint32_t first, uint32_t end)
{
	const struct skep_cuts *c = t->cuts;
	return &t->cost[t->at[stage] + (size_t)(first - c->low[stage]) * width(c, stage + 1) + end - c->low[stage + 1]];
}

static void carve_table(struct table *t, struct skep_search_carve *c, const struct skep_cuts *cuts)
{
	size_t cells = 0, costs = 0;
	for (uint32_t row = 0; row <= cuts->stages; row++) {
		cells += width(cuts, row);
		costs += row < cuts->stages ? (size_t)width(cuts, row) * width(cuts, row + 1) : 0;
	}
	*t = (struct table){.cuts = cuts};
	t->row = skep_search_carve(c, cuts->stages + 2, sizeof *t->row);
	t->at = skep_search_carve(c, cuts->stages + 1, sizeof *t->at);
	t->cost = skep_search_carve(c, costs, sizeof *t->cost);
	t->bound = skep_search_carve(c, costs, sizeof *t->bound);
	t->trip = skep_search_carve(c, cells, sizeof *t->trip);
	t->labels = skep_search_carve(c, cells, sizeof *t->labels);
	t->label = skep_search_carve(c, cells * CUTS_LABELS, sizeof *t->label);
	t->first = skep_search_carve(c, cuts->stages + 1, sizeof *t->first);
}

size_t skep_cuts_size(const struct skep_cuts *cuts)
{
	struct table t;
	struct skep_search_carve c = {NULL, 0};
	carve_table(&t, &c, cuts);
	return c.used;
}

static double step_s(const struct table *t, double pace_s, double trip_s, double reduction_s, double update_s)
{
	struct skep_throughput_parts parts = {.pace_s = pace_s,
		.trip_s = trip_s,
		.reduction_s = reduction_s,
		.update_s = update_s,
		.outstanding = t->cuts->outstanding,
		.turn_s = t->cuts->turn_s};
	skep_throughput_sum(t->cuts->throughput, t->cuts->first_workers, &parts);
	return parts.step_s;
}

/* ---- costs and bounds ----------------------------------------------------------------------------------------------- */

static struct cost ask(const struct table *t, uint32_t stage, uint32_t first, uint32_t end)
{
	const struct skep_cuts *c = t->cuts;
	struct cost never = {.pace_s = SKEP_NEVER};
	if (first >= end)
		return never;
	struct skep_throughput_stage s = c->stage(c->self, stage, first, end);
	struct cost cost = {s.pace_s, s.compute_s + s.travel_s, s.reduction_s, s.update_s};
	if (!(cost.pace_s < SKEP_NEVER) ||
		!(step_s(t, cost.pace_s, cost.trip_s, cost.reduction_s, cost.update_s) < c->worth))
		return never;
	return !c->fits || c->fits(c->self, stage, first, end) ? cost : never;
}

static void ask_all(struct table *t)
{
	const struct skep_cuts *c = t->cuts;
	size_t cells = 0, costs = 0;
	for (uint32_t row = 0; row <= c->stages; row++) {
		t->row[row] = cells;
		cells += width(c, row);
	}
	t->row[c->stages + 1] = cells;
	for (uint32_t stage = 0; stage < c->stages; stage++) {
		t->at[stage] = costs;
		for (uint32_t first = c->low[stage]; first <= c->high[stage]; first++)
			for (uint32_t end = c->low[stage + 1]; end <= c->high[stage + 1]; end++) {
				struct cost cost = ask(t, stage, first, end);
				t->cost[costs++] = cost;
				if (cost.pace_s < SKEP_NEVER)
					t->bound[t->bounds++] = cost.pace_s;
			}
	}
	skep_chain_sort(t->bound, t->bounds);
}

/* The least trip of all, with no stage slower than the bound; SKEP_NEVER: there is no way. */
static double least_trip(struct table *t, double bound)
{
	const struct skep_cuts *c = t->cuts;
	for (size_t i = 0; i < t->row[c->stages + 1]; i++)
		t->trip[i] = SKEP_NEVER;
	t->trip[cell(t, 0, 0)] = 0;
	for (uint32_t s = 0; s < c->stages; s++)
		for (uint32_t first = c->low[s]; first <= c->high[s]; first++) {
			double before = t->trip[cell(t, s, first)];
			for (uint32_t end = c->low[s + 1]; before < SKEP_NEVER && end <= c->high[s + 1]; end++) {
				const struct cost *cost = cost_of(t, s, first, end);
				double *here = &t->trip[cell(t, s + 1, end)];
				if (cost->pace_s <= bound && before + cost->trip_s < *here)
					*here = before + cost->trip_s;
			}
		}
	return t->trip[cell(t, c->stages, c->layers)];
}

/* The first bound below which there is a way; `bounds`: there is none. */
static size_t first_bound(struct table *t)
{
	size_t low = 0, high = t->bounds;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (least_trip(t, t->bound[middle]) < SKEP_NEVER)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* ---- under one bound ------------------------------------------------------------------------------------------------ */

static bool beats(const struct label *a, const struct label *b)
{
	return a->trip_s <= b->trip_s && a->reduction_s <= b->reduction_s && a->update_s <= b->update_s;
}

static void keep_label(struct table *t, size_t at, const struct label *label)
{
	struct label *list = &t->label[at * CUTS_LABELS];
	uint32_t count = 0, worst = 0;
	for (uint32_t i = 0; i < t->labels[at]; i++)
		if (beats(&list[i], label))
			return;
	for (uint32_t i = 0; i < t->labels[at]; i++)
		if (!beats(label, &list[i]))
			list[count++] = list[i];
	if (count < CUTS_LABELS) {
		list[count++] = *label;
		t->labels[at] = count;
		return;
	}
	for (uint32_t i = 1; i < count; i++)
		worst = list[i].value > list[worst].value ? i : worst;
	t->labels[at] = count;
	if (label->value < list[worst].value)
		list[worst] = *label;
}

static double longer(double a, double b)
{
	return a > b ? a : b;
}

/* From all labels of a cell, by one stage more. */
static void extend(struct table *t, uint32_t stage, uint32_t first, uint32_t end, double bound, double best_s)
{
	const struct cost *cost = cost_of(t, stage, first, end);
	size_t from = cell(t, stage, first), to = cell(t, stage + 1, end);
	if (cost->pace_s > bound)
		return;
	for (uint32_t i = 0; i < t->labels[from]; i++) {
		const struct label *l = &t->label[from * CUTS_LABELS + i];
		struct label next = {.trip_s = l->trip_s + cost->trip_s,
			.reduction_s = longer(l->reduction_s, cost->reduction_s),
			.update_s = longer(l->update_s, cost->update_s),
			.before = first,
			.nth = i};
		next.value = step_s(t, bound, next.trip_s, next.reduction_s, next.update_s);
		if (next.value < best_s)
			keep_label(t, to, &next);
	}
}

static void extend_all(struct table *t, double bound, double best_s)
{
	const struct skep_cuts *c = t->cuts;
	memset(t->labels, 0, t->row[c->stages + 1] * sizeof *t->labels);
	t->labels[cell(t, 0, 0)] = 1;
	t->label[cell(t, 0, 0) * CUTS_LABELS] = (struct label){0};
	for (uint32_t s = 0; s < c->stages; s++)
		for (uint32_t first = c->low[s]; first <= c->high[s]; first++)
			for (uint32_t end = c->low[s + 1]; end <= c->high[s + 1]; end++)
				extend(t, s, first, end, bound, best_s);
}

/* Its cut, and what a step truly takes with it. */
static double read_way(const struct table *t, uint32_t nth, uint32_t *ret_first)
{
	const struct skep_cuts *c = t->cuts;
	const struct label *last = &t->label[cell(t, c->stages, c->layers) * CUTS_LABELS + nth], *l = last;
	double pace_s = 0;
	ret_first[c->stages] = c->layers;
	for (uint32_t s = c->stages; s-- > 0;) {
		ret_first[s] = l->before;
		pace_s = longer(pace_s, cost_of(t, s, l->before, ret_first[s + 1])->pace_s);
		l = &t->label[cell(t, s, l->before) * CUTS_LABELS + l->nth];
	}
	return step_s(t, pace_s, last->trip_s, last->reduction_s, last->update_s);
}

double skep_cuts_find(const struct skep_cuts *cuts, void *mem, uint32_t *ret_first)
{
	struct table t;
	struct skep_search_carve c = {mem, 0};
	double best_s = cuts->worth, last = 0;
	assert(cuts->stages > 0 && cuts->stages <= cuts->layers);
	carve_table(&t, &c, cuts);
	ask_all(&t);
	size_t begin = first_bound(&t), end = cell(&t, cuts->stages, cuts->layers);
	double least_s = t.bounds > 0 ? least_trip(&t, t.bound[t.bounds - 1]) : SKEP_NEVER;
	double gap = t.bounds - begin > CUTS_BOUNDS ? 1e-3 : 0;
	bool any = false;
	for (size_t i = begin; i < t.bounds; i++) {
		if (i > begin && t.bound[i] <= last + gap * last)
			continue;
		last = t.bound[i];
		if (!(step_s(&t, last, least_s, 0, 0) < best_s))
			break;
		extend_all(&t, last, best_s);
		for (uint32_t nth = 0; nth < t.labels[end]; nth++) {
			double found_s = read_way(&t, nth, t.first);
			if (!(found_s < best_s))
				continue;
			best_s = found_s;
			any = true;
			memcpy(ret_first, t.first, (cuts->stages + 1) * sizeof *ret_first);
		}
	}
	return any ? best_s : SKEP_NEVER;
}
