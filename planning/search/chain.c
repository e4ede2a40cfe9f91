/* SPDX-License-Identifier: Apache-2.0
 *
 * chain.c - one machine a stage, of different kinds, in the best order: HetPipe's partitioning (chain.h).
 *
 * G[used][j][last] is the least time of the slowest stage or cut when the first j layers are on the machines of the set `used`
 * (how many of each kind), the last of them of kind `last`. A set is a number in mixed radix, count + 1 for each kind, so sets
 * are filled in ascending order: who adds a machine gets a larger number.
 */
#include "planning/search/chain.h"

#include <assert.h>

#include "planning/search/chain_state.h"

#define STATES_MOST ((size_t)1 << 24)

/* ---- what recurrences over layers share (chain_state.h) -------------------------------------------------------------- */

void skep_chain_sums_init(struct chain_sums *sums, struct skep_search_carve *c, const struct skep_chain *chain)
{
	uint32_t layers = chain->layers;
	sums->compute_s = skep_search_carve(c, layers + 1, sizeof *sums->compute_s);
	sums->weight_bytes = skep_search_carve(c, layers + 1, sizeof *sums->weight_bytes);
	sums->memory_bytes = skep_search_carve(c, layers + 1, sizeof *sums->memory_bytes);
	if (!c->mem)
		return;
	sums->compute_s[0] = sums->weight_bytes[0] = sums->memory_bytes[0] = 0;
	for (uint32_t i = 0; i < layers; i++) {
		sums->compute_s[i + 1] = sums->compute_s[i] + chain->compute_s[i];
		sums->weight_bytes[i + 1] = sums->weight_bytes[i] + chain->weight_bytes[i];
		sums->memory_bytes[i + 1] = sums->memory_bytes[i] + (chain->memory_bytes ? chain->memory_bytes[i] : 0);
	}
}

static void sift(double *value, size_t root, size_t end)
{
	for (size_t child = 2 * root + 1; child < end; child = 2 * root + 1) {
		child += child + 1 < end && value[child + 1] > value[child];
		if (!(value[child] > value[root]))
			return;
		double swapped = value[root];
		value[root] = value[child];
		value[child] = swapped;
		root = child;
	}
}

void skep_chain_sort(double *value, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift(value, i, count);
	for (size_t end = count; end-- > 1;) {
		double largest = value[0];
		value[0] = value[end];
		value[end] = largest;
		sift(value, 0, end);
	}
}

double skep_chain_transfer_s(double bytes, double rate_Bps)
{
	if (!(bytes > 0) || !(rate_Bps < SKEP_NEVER))
		return 0;
	return rate_Bps > 0 ? bytes / rate_Bps : SKEP_NEVER;
}

/* ---- the recurrence ------------------------------------------------------------------------------------------------- */

struct choice {
	uint32_t first;  /* layer of the last stage */
	uint32_t before; /* kind of the stage before it */
};

struct table {
	const struct skep_chain *chain;
	const struct skep_chain_kinds *kinds;
	struct chain_sums sums;
	size_t radix[SKEP_CHAIN_KINDS_MOST + 1]; /* radix[kinds]: how many sets there are */
	double *least;
	struct choice *choice;
};

static bool find_radix(struct table *t, const struct skep_chain_kinds *kinds)
{
	if (kinds->kinds == 0 || kinds->kinds > SKEP_CHAIN_KINDS_MOST)
		return false;
	t->radix[0] = 1;
	for (uint32_t k = 0; k < kinds->kinds; k++) {
		t->radix[k + 1] = t->radix[k] * (kinds->count[k] + (size_t)1);
		if (t->radix[k + 1] > STATES_MOST)
			return false;
	}
	return true;
}

static size_t cell(const struct table *t, size_t used, uint32_t layers, uint32_t last)
{
	return (used * (t->chain->layers + 1) + layers) * t->kinds->kinds + last;
}

static bool carve_table(struct table *t, struct skep_search_carve *c, const struct skep_chain *chain,
	const struct skep_chain_kinds *kinds)
{
	t->chain = chain;
	t->kinds = kinds;
	if (!find_radix(t, kinds))
		return false;
	size_t cells = cell(t, t->radix[kinds->kinds], 0, 0);
	if (cells > STATES_MOST)
		return false;
	skep_chain_sums_init(&t->sums, c, chain);
	t->least = skep_search_carve(c, cells, sizeof *t->least);
	t->choice = skep_search_carve(c, cells, sizeof *t->choice);
	return true;
}

size_t skep_chain_ordered_size(const struct skep_chain *chain, const struct skep_chain_kinds *kinds)
{
	struct table t;
	struct skep_search_carve c = {NULL, 0};
	return carve_table(&t, &c, chain, kinds) ? c.used : SIZE_MAX;
}

static uint32_t used_of(const struct table *t, size_t used, uint32_t kind)
{
	return (uint32_t)(used / t->radix[kind] % (t->kinds->count[kind] + (size_t)1));
}

static uint32_t machines_in(const struct table *t, size_t used)
{
	uint32_t sum = 0;
	for (uint32_t k = 0; k < t->kinds->kinds; k++)
		sum += used_of(t, used, k);
	return sum;
}

static double stage_s(const struct table *t, uint32_t first, uint32_t end, uint32_t kind)
{
	if (t->sums.memory_bytes[end] - t->sums.memory_bytes[first] > t->kinds->memory_bytes[kind])
		return SKEP_NEVER;
	return (t->sums.compute_s[end] - t->sums.compute_s[first]) / t->kinds->speed[kind];
}

static double cut_s(const struct table *t, uint32_t end, uint32_t before, uint32_t behind)
{
	double rate = t->kinds->rate_Bps[(size_t)before * t->kinds->kinds + behind];
	return skep_chain_transfer_s(2 * t->chain->activation_bytes[end - 1], rate);
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* All ways to make the last stage, of one machine of kind `last`. */
static void fill(struct table *t, size_t used, uint32_t end, uint32_t last)
{
	size_t at = cell(t, used, end, last);
	t->least[at] = SKEP_NEVER;
	t->choice[at] = (struct choice){0, 0};
	if (end == 0 || used_of(t, used, last) == 0)
		return;
	size_t before = used - t->radix[last];
	if (before == 0) {
		t->least[at] = stage_s(t, 0, end, last);
		return;
	}
	for (uint32_t first = 1; first < end; first++) {
		double here = stage_s(t, first, end, last);
		for (uint32_t k = 0; k < t->kinds->kinds && here < t->least[at]; k++) {
			double slowest = larger(here, t->least[cell(t, before, first, k)]);
			if (!(slowest < t->least[at]))
				continue;
			slowest = larger(slowest, cut_s(t, first, k, last));
			if (!(slowest < t->least[at]))
				continue;
			t->least[at] = slowest;
			t->choice[at] = (struct choice){first, k};
		}
	}
}

static void read_stages(
	const struct table *t, size_t used, uint32_t stages, uint32_t last, struct skep_chain_stage *ret)
{
	uint32_t end = t->chain->layers, behind = SKEP_NO_WORKER;
	for (uint32_t s = stages; s-- > 0;) {
		struct choice choice = t->choice[cell(t, used, end, last)];
		ret[s] = (struct skep_chain_stage){.first = choice.first,
			.layers = end - choice.first,
			.machines = 1,
			.kind = last,
			.stage_s = stage_s(t, choice.first, end, last),
			.cut_s = behind == SKEP_NO_WORKER ? 0 : cut_s(t, end, last, behind)};
		behind = last;
		used -= t->radix[last];
		last = choice.before;
		end = choice.first;
	}
}

struct skep_chain_plan skep_chain_ordered(const struct skep_chain *chain, const struct skep_chain_kinds *kinds,
	void *mem, struct skep_chain_stage *ret_stage)
{
	struct table t;
	struct skep_search_carve c = {mem, 0};
	struct skep_chain_plan plan = {.slowest_s = SKEP_NEVER, .batch_s = SKEP_NEVER};
	size_t best_used = 0;
	uint32_t best_last = 0;
	bool fits = carve_table(&t, &c, chain, kinds);
	assert(fits && chain->layers > 0);
	(void)fits;
	for (size_t used = 0; used < t.radix[kinds->kinds]; used++) {
		uint32_t stages = machines_in(&t, used);
		for (uint32_t end = 0; end <= chain->layers; end++)
			for (uint32_t last = 0; last < kinds->kinds; last++)
				fill(&t, used, end, last);
		if (stages == 0 || stages > chain->layers || (kinds->stages > 0 && stages != kinds->stages))
			continue;
		for (uint32_t last = 0; last < kinds->kinds; last++) {
			double slowest = t.least[cell(&t, used, chain->layers, last)];
			if (slowest > plan.slowest_s || (slowest >= plan.slowest_s && stages >= plan.stages) ||
				!(slowest < SKEP_NEVER))
				continue;
			plan.slowest_s = slowest;
			plan.stages = stages;
			best_used = used;
			best_last = last;
		}
	}
	if (plan.stages > 0)
		read_stages(&t, best_used, plan.stages, best_last, ret_stage);
	return plan;
}
