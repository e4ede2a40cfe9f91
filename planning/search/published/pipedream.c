/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream.c - see pipedream.h. A table for each level, of first layer, end and machines; a stage of an outer level is
 * taken apart by the table below, with all machines of a component, and what comes of it is replicated.
 */
#include "planning/search/published/pipedream.h"

#include <assert.h>

#include "planning/search/chain_state.h"

struct choice {
	uint32_t cut, machines; /* layers from `cut` on are the last stage, on so many; cut 0: not cut */
};

struct table {
	const struct skep_pipedream *p;
	struct chain_sums sums;
	uint32_t layers;
	double *least[SKEP_PIPEDREAM_LEVELS];
	struct choice *choice[SKEP_PIPEDREAM_LEVELS];
};

static size_t cell(const struct table *t, uint32_t level, uint32_t first, uint32_t end, uint32_t machines)
{
	return ((size_t)first * (t->layers + 1) + end) * (t->p->level[level].components + 1) + machines;
}

static void carve_table(struct table *t, struct skep_search_carve *c, const struct skep_pipedream *p)
{
	*t = (struct table){.p = p, .layers = p->chain->layers};
	skep_chain_sums_init(&t->sums, c, p->chain);
	for (uint32_t level = 0; level < p->levels; level++) {
		size_t cells = cell(t, level, t->layers, 0, 0);
		t->least[level] = skep_search_carve(c, cells, sizeof *t->least[level]);
		t->choice[level] = skep_search_carve(c, cells, sizeof *t->choice[level]);
	}
}

size_t skep_pipedream_size(const struct skep_pipedream *p)
{
	struct table t;
	struct skep_search_carve c = {NULL, 0};
	carve_table(&t, &c, p);
	return c.used;
}

double skep_pipedream_ways(const struct skep_pipedream *p)
{
	double layers = p->chain->layers, ways = 0;
	for (uint32_t level = 0; level < p->levels; level++) {
		double machines = p->level[level].components;
		ways += layers * layers * machines * machines / 4 * (level + 1 < p->levels ? layers / 3 : 1);
	}
	return ways;
}

/* ---- what a stage takes --------------------------------------------------------------------------------------------- */

/* A stage of these layers on `machines` components of the level; `front`: no cut before it. */
static double stage_s(
	const struct table *t, uint32_t level, uint32_t first, uint32_t end, uint32_t machines, bool front)
{
	const struct skep_pipedream *p = t->p;
	double m = machines, every = p->microbatches_per_sum > 0 ? p->microbatches_per_sum : m;
	double weights = t->sums.weight_bytes[end] - t->sums.weight_bytes[first];
	double inside = level == 0
	                        ? t->sums.compute_s[end] - t->sums.compute_s[first]
	                        : t->least[level - 1][cell(t, level - 1, first, end, p->level[level - 1].components)];
	double reduce = skep_chain_transfer_s((p->tool ? 4 : 2) * (m - 1) * weights / every, p->level[level].rate_Bps);
	if (p->tool && front && level > 0)
		reduce /= p->level[level - 1].components;
	if (p->tool)
		return (inside + reduce) / m;
	return (inside > reduce ? inside : reduce) / m;
}

/* The cut behind layer `end` - 1, beside a last stage on so many components. */
static double cut_s(const struct table *t, uint32_t level, uint32_t end, uint32_t machines)
{
	double bytes = 2 * t->p->chain->activation_bytes[end - 1];
	return skep_chain_transfer_s(t->p->tool ? bytes / machines : bytes, t->p->level[level].rate_Bps);
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* ---- the recurrence ------------------------------------------------------------------------------------------------- */

static void fill(struct table *t, uint32_t level, uint32_t first, uint32_t end, uint32_t machines)
{
	size_t at = cell(t, level, first, end, machines);
	double least = stage_s(t, level, first, end, machines, true);
	struct choice choice = {0, machines};
	for (uint32_t cut = first + 1; cut < end; cut++)
		for (uint32_t m = 1; m < machines; m++) {
			double slowest = larger(t->least[level][cell(t, level, first, cut, machines - m)],
				stage_s(t, level, cut, end, m, false));
			slowest = larger(slowest, cut_s(t, level, cut, m));
			if (t->p->tool && end < t->layers)
				slowest = larger(slowest, cut_s(t, level, end, m));
			if (slowest < least) {
				least = slowest;
				choice = (struct choice){cut, m};
			}
		}
	t->least[level][at] = least;
	t->choice[level][at] = choice;
}

/* Of the outermost level only what begins with the first layer is asked for. */
static void fill_level(struct table *t, uint32_t level)
{
	uint32_t firsts = level + 1 < t->p->levels ? t->layers : 1;
	for (uint32_t first = 0; first < firsts; first++)
		for (uint32_t end = first + 1; end <= t->layers; end++)
			for (uint32_t machines = 1; machines <= t->p->level[level].components; machines++)
				fill(t, level, first, end, machines);
}

/* ---- taking it apart ------------------------------------------------------------------------------------------------ */

/* Layers [first, end) on components [from, from + many) of a level, of each of so many repetitions: those of one level above. */
struct part {
	uint32_t first, end, from, many;
};

struct apart {
	const struct table *t;
	struct skep_chain_stage *stage;
	uint32_t *stage_of;
	uint32_t stages;
};

/* One stage of the innermost level, in components [outer, outer + copies) of the one above. */
static void put_stage(struct apart *a, struct part in, uint32_t outer, uint32_t copies)
{
	uint32_t inner = a->t->p->level[0].components;
	a->stage[a->stages] =
		(struct skep_chain_stage){.first = in.first, .layers = in.end - in.first, .machines = in.many * copies};
	for (uint32_t c = outer; c < outer + copies; c++)
		for (uint32_t m = in.from; m < in.from + in.many; m++)
			a->stage_of[(size_t)c * inner + m] = a->stages;
	a->stages++;
}

/* The stages of a part, front to back: ret [layers]. How many. */
static uint32_t list_parts(const struct table *t, uint32_t level, struct part of, struct part *ret)
{
	uint32_t count = 0;
	for (uint32_t end = of.end, left = of.many;;) {
		struct choice c = t->choice[level][cell(t, level, of.first, end, left)];
		uint32_t first = c.cut > 0 ? c.cut : of.first;
		ret[count++] = (struct part){first, end, of.from + left - c.machines, c.machines};
		if (c.cut == 0)
			break;
		end = c.cut;
		left -= c.machines;
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		struct part swap = ret[i];
		ret[i] = ret[count - 1 - i];
		ret[count - 1 - i] = swap;
	}
	return count;
}

static void take_apart(struct apart *a, struct part *outer, struct part *inner)
{
	const struct skep_pipedream *p = a->t->p;
	uint32_t top = p->levels - 1;
	struct part all = {0, a->t->layers, 0, p->level[top].components};
	uint32_t outers = list_parts(a->t, top, all, outer);
	for (uint32_t i = 0; i < outers; i++) {
		if (p->levels == 1) {
			put_stage(a, outer[i], 0, 1);
			continue;
		}
		struct part within = {outer[i].first, outer[i].end, 0, p->level[0].components};
		uint32_t inners = list_parts(a->t, 0, within, inner);
		for (uint32_t j = 0; j < inners; j++)
			put_stage(a, inner[j], outer[i].from, outer[i].many);
	}
}

struct skep_chain_plan skep_pipedream_find(
	const struct skep_pipedream *p, void *mem, struct skep_chain_stage *ret_stage, uint32_t *ret_stage_of)
{
	struct table t;
	struct skep_search_carve c = {mem, 0};
	struct part outer[SKEP_PIPEDREAM_LAYERS], inner[SKEP_PIPEDREAM_LAYERS];
	assert(mem && p->levels >= 1 && p->levels <= SKEP_PIPEDREAM_LEVELS &&
		p->chain->layers <= SKEP_PIPEDREAM_LAYERS);
	carve_table(&t, &c, p);
	for (uint32_t level = 0; level < p->levels; level++)
		fill_level(&t, level);
	struct apart apart = {.t = &t, .stage = ret_stage, .stage_of = ret_stage_of};
	take_apart(&apart, outer, inner);
	uint32_t top = p->levels - 1;
	double slowest = t.least[top][cell(&t, top, 0, t.layers, p->level[top].components)];
	return (struct skep_chain_plan){.slowest_s = slowest, .batch_s = SKEP_NEVER, .stages = apart.stages};
}
