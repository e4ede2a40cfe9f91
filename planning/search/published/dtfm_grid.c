/* SPDX-License-Identifier: Apache-2.0
 *
 * dtfm_grid.c - the sketch of the cost of dtfm.h: matchings and path written down as a grid of stages and pipelines.
 *
 * A worker stands in a cell; two that change places, in one stage or not, alter the sums of two columns and at most eight
 * edges. No allocation costs more by dtfm.h than any grid of it does here, and whole() begins with the grid that costs the
 * same. Sums are kept up by differences, so they drift by rounding; the cost that they sketch is asked before anything is
 * believed.
 */
#include <string.h>

#include "planning/search/published/dtfm_state.h"

/* Larger than any sum of real edges that a search would accept, and not so large that it swallows them. */
#define MISSING 1e4

static double together(const struct state *d, uint32_t a, uint32_t b)
{
	double s = d->together[(size_t)a * d->workers + b];
	return s < d->grid.cap ? s : d->grid.cap;
}

static double along(const struct state *d, uint32_t a, uint32_t b)
{
	double s = d->along[(size_t)a * d->workers + b];
	return s < d->grid.cap ? s : d->grid.cap;
}

static uint32_t *cell(const struct state *d, uint32_t stage, uint32_t pipeline)
{
	return &d->grid.who[(size_t)stage * d->size + pipeline];
}

static double total(const struct state *d)
{
	double largest = 0, path = 0;
	for (uint32_t s = 0; s < d->stages; s++) {
		largest = d->grid.column_s[s] > largest ? d->grid.column_s[s] : largest;
		path += d->grid.longest_s[s];
	}
	return largest + 2 * path;
}

/* ---- from an allocation --------------------------------------------------------------------------------------------- */

static double largest_finite(const struct state *d)
{
	double largest = 0;
	for (size_t i = 0; i < (size_t)d->workers * d->workers; i++) {
		largest = d->together[i] > largest && d->together[i] < SKEP_NEVER ? d->together[i] : largest;
		largest = d->along[i] > largest && d->along[i] < SKEP_NEVER ? d->along[i] : largest;
	}
	return largest > 0 ? largest : 1;
}

/* The members of the next group go where their partners are. */
static void put_next(struct state *d, uint32_t stage)
{
	const uint32_t *here = d->list, *next = d->list + d->size;
	(void)skep_dtfm_bottleneck(d, d->path.order[stage], d->path.order[stage + 1]);
	for (uint32_t i = 0; i < d->size; i++) {
		uint32_t follower = next[d->matching.column_of[i]];
		uint32_t pipeline = d->grid.cell_of[here[i]] % d->size;
		*cell(d, stage + 1, pipeline) = follower;
		d->grid.cell_of[follower] = (stage + 1) * d->size + pipeline;
	}
}

static void measure_column(struct state *d, uint32_t stage)
{
	struct grid *g = &d->grid;
	g->column_s[stage] = 0;
	for (uint32_t i = 0; i < d->size; i++) {
		uint32_t worker = *cell(d, stage, i);
		double sum = 0;
		for (uint32_t j = 0; j < d->size; j++)
			sum += j == i ? 0 : together(d, worker, *cell(d, stage, j));
		g->row_s[worker] = sum;
		g->column_s[stage] = sum > g->column_s[stage] ? sum : g->column_s[stage];
	}
}

static void measure_edge(struct state *d, uint32_t stage, uint32_t pipeline)
{
	if (stage + 1 < d->stages)
		d->grid.edge_s[(size_t)stage * d->size + pipeline] =
			along(d, *cell(d, stage, pipeline), *cell(d, stage + 1, pipeline));
}

static double longest(const struct state *d, uint32_t stage)
{
	double most = 0;
	for (uint32_t i = 0; i < d->size && stage + 1 < d->stages; i++) {
		double edge = d->grid.edge_s[(size_t)stage * d->size + i];
		most = edge > most ? edge : most;
	}
	return most;
}

static double whole(void *self, const uint32_t *stage_of)
{
	struct state *d = self;
	struct grid *g = &d->grid;
	if (!(g->cap > 0))
		g->cap = MISSING * largest_finite(d);
	skep_dtfm_whole(d, stage_of);
	(void)skep_path_solve(&d->path, d->edge);
	skep_dtfm_members(d, d->path.order[0], g->who);
	for (uint32_t i = 0; i < d->size; i++)
		g->cell_of[g->who[i]] = i;
	for (uint32_t s = 0; s + 1 < d->stages; s++)
		put_next(d, s);
	for (uint32_t s = 0; s < d->stages; s++) {
		measure_column(d, s);
		for (uint32_t i = 0; i < d->size; i++)
			measure_edge(d, s, i);
		g->longest_s[s] = longest(d, s);
	}
	return total(d);
}

/* ---- changes -------------------------------------------------------------------------------------------------------- */

static void exchange(struct state *d, uint32_t a, uint32_t b)
{
	struct grid *g = &d->grid;
	uint32_t at = g->cell_of[a];
	g->cell_of[a] = g->cell_of[b];
	g->cell_of[b] = at;
	g->who[g->cell_of[a]] = a;
	g->who[g->cell_of[b]] = b;
}

/* Sums of the column of `out` when `in` has taken its place; not stored yet. */
static double column_with(struct state *d, uint32_t out, uint32_t in, double *ret_row)
{
	uint32_t stage = d->grid.cell_of[out] / d->size, place = d->grid.cell_of[out] % d->size;
	double own = 0, largest = 0;
	for (uint32_t i = 0; i < d->size; i++) {
		uint32_t worker = *cell(d, stage, i);
		if (i == place)
			continue;
		ret_row[i] = d->grid.row_s[worker] + together(d, worker, in) - together(d, worker, out);
		own += together(d, in, worker);
		largest = ret_row[i] > largest ? ret_row[i] : largest;
	}
	ret_row[place] = own;
	return own > largest ? own : largest;
}

static void measure_edges_at(struct state *d, uint32_t at)
{
	uint32_t stage = at / d->size, pipeline = at % d->size;
	measure_edge(d, stage, pipeline);
	if (stage > 0)
		measure_edge(d, stage - 1, pipeline);
}

/* The longest edges before and behind a column. */
static void measure_longest_at(struct state *d, uint32_t stage)
{
	d->grid.longest_s[stage] = longest(d, stage);
	if (stage > 0)
		d->grid.longest_s[stage - 1] = longest(d, stage - 1);
}

static void move_edges(struct state *d, uint32_t a, uint32_t b)
{
	struct grid *g = &d->grid;
	exchange(d, a, b);
	measure_edges_at(d, g->cell_of[a]);
	measure_edges_at(d, g->cell_of[b]);
	measure_longest_at(d, g->cell_of[a] / d->size);
	measure_longest_at(d, g->cell_of[b] / d->size);
}

static double change(void *self, const struct skep_change *change)
{
	struct state *d = self;
	struct grid *g = &d->grid;
	uint32_t a = change->worker, b = change->other;
	uint32_t column_a = g->cell_of[a] / d->size, column_b = g->cell_of[b] / d->size;
	double old_a = g->column_s[column_a], old_b = g->column_s[column_b];
	g->asked = *change;
	if (column_a != column_b) {
		g->next_column[0] = column_with(d, a, b, g->next_row);
		g->next_column[1] = column_with(d, b, a, g->next_row + d->size);
		g->column_s[column_a] = g->next_column[0];
		g->column_s[column_b] = g->next_column[1];
	}
	move_edges(d, a, b);
	double cost = total(d);
	move_edges(d, a, b);
	g->column_s[column_a] = old_a;
	g->column_s[column_b] = old_b;
	return cost;
}

static void keep(void *self)
{
	struct state *d = self;
	struct grid *g = &d->grid;
	uint32_t a = g->asked.worker, b = g->asked.other;
	uint32_t column_a = g->cell_of[a] / d->size, column_b = g->cell_of[b] / d->size;
	move_edges(d, a, b);
	if (column_a == column_b)
		return;
	g->column_s[column_a] = g->next_column[0];
	g->column_s[column_b] = g->next_column[1];
	for (uint32_t i = 0; i < d->size; i++) {
		g->row_s[*cell(d, column_a, i)] = g->next_row[i];
		g->row_s[*cell(d, column_b, i)] = g->next_row[d->size + i];
	}
}

void skep_dtfm_grid_init(struct state *d, struct skep_search_carve *c)
{
	struct grid *g = &d->grid;
	g->who = skep_search_carve(c, d->workers, sizeof *g->who);
	g->cell_of = skep_search_carve(c, d->workers, sizeof *g->cell_of);
	g->row_s = skep_search_carve(c, d->workers, sizeof *g->row_s);
	g->column_s = skep_search_carve(c, d->stages, sizeof *g->column_s);
	g->edge_s = skep_search_carve(c, d->workers, sizeof *g->edge_s);
	g->longest_s = skep_search_carve(c, d->stages, sizeof *g->longest_s);
	g->next_row = skep_search_carve(c, 2 * d->size, sizeof *g->next_row);
	g->objective =
		(struct skep_objective){.self = d, .whole = whole, .change = change, .keep = keep, .alike = true};
}
