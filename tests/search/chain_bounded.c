/* SPDX-License-Identifier: Apache-2.0
 *
 * chain_bounded.c - stages of any cost, what a batch takes: Alpa's outer loop over the slowest stage (partition.h).
 *
 * With the slowest stage at most `bound`, F[k][j][m] is the least sum of the times of k stages that are the first j layers on
 * exactly m machines. The bounds are the times of stages themselves, ascending, each once. One whose (B - 1) bound alone is no
 * better than the best batch ends the search: no larger one can win.
 */
#include "tests/search/partition.h"

#include <assert.h>
#include <string.h>

#include "planning/search/chain_state.h"

struct table {
	const struct skep_chain_bound *b;
	double *time;           /* [layers * (layers + 1) * sizes] of stages */
	double *bound;          /* the same, ascending */
	double *sum;            /* [(stages + 1) * (layers + 1) * (machines + 1)] */
	uint32_t *first, *size; /* of the last stage of such a cell */
	struct skep_chain_stage *best;
	size_t times;
};

static size_t cell(const struct table *t, uint32_t stages, uint32_t layers, uint32_t machines)
{
	return ((size_t)stages * (t->b->layers + 1) + layers) * (t->b->machines + 1) + machines;
}

static size_t time_at(const struct table *t, uint32_t first, uint32_t end, uint32_t k)
{
	return ((size_t)first * (t->b->layers + 1) + end) * t->b->sizes + k;
}

static void carve_table(struct table *t, struct skep_search_carve *c, const struct skep_chain_bound *bound)
{
	t->b = bound;
	size_t cells = cell(t, bound->stages_most + 1, 0, 0);
	t->times = time_at(t, bound->layers, 0, 0);
	t->time = skep_search_carve(c, t->times, sizeof *t->time);
	t->bound = skep_search_carve(c, t->times, sizeof *t->bound);
	t->sum = skep_search_carve(c, cells, sizeof *t->sum);
	t->first = skep_search_carve(c, cells, sizeof *t->first);
	t->size = skep_search_carve(c, cells, sizeof *t->size);
	t->best = skep_search_carve(c, bound->stages_most, sizeof *t->best);
}

size_t skep_chain_bounded_size(const struct skep_chain_bound *bound)
{
	struct table t;
	struct skep_search_carve c = {NULL, 0};
	carve_table(&t, &c, bound);
	return c.used;
}

/* ---- the bounds ----------------------------------------------------------------------------------------------------- */

/* Asks for all times; returns how many bounds there are, sorted. */
static size_t ask_times(struct table *t)
{
	const struct skep_chain_bound *b = t->b;
	size_t bounds = 0;
	for (uint32_t first = 0; first < b->layers; first++)
		for (uint32_t end = first + 1; end <= b->layers; end++)
			for (uint32_t k = 0; k < b->sizes; k++) {
				double time = b->stage_s(b->self, first, end, k);
				assert(time == time);
				t->time[time_at(t, first, end, k)] = time;
				if (time < SKEP_NEVER)
					t->bound[bounds++] = time;
			}
	skep_chain_sort(t->bound, bounds);
	return bounds;
}

/* ---- under one bound ------------------------------------------------------------------------------------------------ */

static void fill(struct table *t, uint32_t stages, uint32_t end, uint32_t machines, double bound)
{
	const struct skep_chain_bound *b = t->b;
	size_t at = cell(t, stages, end, machines);
	t->sum[at] = SKEP_NEVER;
	for (uint32_t first = stages - 1; first < end; first++)
		for (uint32_t k = 0; k < b->sizes && b->size[k] <= machines; k++) {
			double time = t->time[time_at(t, first, end, k)];
			double sum = t->sum[cell(t, stages - 1, first, machines - b->size[k])] + time;
			if (time > bound || !(sum < t->sum[at]))
				continue;
			t->sum[at] = sum;
			t->first[at] = first;
			t->size[at] = k;
		}
}

static void fill_all(struct table *t, double bound)
{
	const struct skep_chain_bound *b = t->b;
	for (uint32_t j = 0; j <= b->layers; j++)
		for (uint32_t m = 0; m <= b->machines; m++)
			t->sum[cell(t, 0, j, m)] = j == 0 && m == 0 ? 0 : SKEP_NEVER;
	for (uint32_t stages = 1; stages <= b->stages_most; stages++)
		for (uint32_t end = 0; end <= b->layers; end++)
			for (uint32_t m = 0; m <= b->machines; m++)
				fill(t, stages, end, m, bound);
}

/* The cell of the least sum that covers all layers; false: none does. */
static bool cheapest(const struct table *t, uint32_t *ret_stages, uint32_t *ret_machines)
{
	const struct skep_chain_bound *b = t->b;
	double least = SKEP_NEVER;
	for (uint32_t stages = 1; stages <= b->stages_most; stages++)
		for (uint32_t m = b->all ? b->machines : 1; m <= b->machines; m++)
			if (t->sum[cell(t, stages, b->layers, m)] < least) {
				least = t->sum[cell(t, stages, b->layers, m)];
				*ret_stages = stages;
				*ret_machines = m;
			}
	return least < SKEP_NEVER;
}

static double read_stages(const struct table *t, uint32_t stages, uint32_t machines, struct skep_chain_stage *ret)
{
	uint32_t end = t->b->layers;
	double slowest = 0;
	for (uint32_t s = stages; s-- > 0;) {
		size_t at = cell(t, s + 1, end, machines);
		uint32_t size = t->b->size[t->size[at]];
		double time = t->time[time_at(t, t->first[at], end, t->size[at])];
		ret[s] = (struct skep_chain_stage){
			.first = t->first[at], .layers = end - t->first[at], .machines = size, .stage_s = time};
		slowest = time > slowest ? time : slowest;
		end = t->first[at];
		machines -= size;
	}
	return slowest;
}

struct skep_chain_plan skep_chain_bounded(
	const struct skep_chain_bound *bound, void *mem, struct skep_chain_stage *ret_stage)
{
	struct table t;
	struct skep_search_carve c = {mem, 0};
	struct skep_chain_plan plan = {.slowest_s = SKEP_NEVER, .batch_s = SKEP_NEVER};
	carve_table(&t, &c, bound);
	size_t bounds = ask_times(&t);
	for (size_t i = 0; i < bounds; i++) {
		uint32_t stages = 0, machines = 0;
		if ((bound->microbatches - 1) * t.bound[i] >= plan.batch_s)
			break;
		if (i > 0 && t.bound[i] <= t.bound[i - 1])
			continue;
		fill_all(&t, t.bound[i]);
		if (!cheapest(&t, &stages, &machines))
			continue;
		double slowest = read_stages(&t, stages, machines, t.best);
		double batch = t.sum[cell(&t, stages, bound->layers, machines)] + (bound->microbatches - 1) * slowest;
		if (!(batch < plan.batch_s))
			continue;
		plan = (struct skep_chain_plan){.slowest_s = slowest, .batch_s = batch, .stages = stages};
		memcpy(ret_stage, t.best, stages * sizeof *ret_stage);
	}
	return plan;
}
