/* SPDX-License-Identifier: Apache-2.0
 *
 * chain_replicated.c - stages of equal machines with replicas: PipeDream's recurrence (partition.h).
 *
 * A[k][j][m] is the least time of the slowest stage or cut of the first j layers on m machines in k stages; where the number of
 * stages is free there is one k, and ties go to fewer stages. The first stage has no cut before it. As published a cut takes
 * 2 a / B whatever the replicas on its two sides; of the reduction's bytes, 2 (m - 1) / m of the weights pass each link, as in
 * a ring, once for m microbatches.
 */
#include "tests/search/partition.h"

#include <assert.h>

#include "planning/search/chain_state.h"

struct choice { /* how the last stage of a cell is made */
	uint32_t first, machines, stages;
};

struct table {
	const struct skep_chain *chain;
	const struct skep_chain_machines *machines;
	struct chain_sums sums;
	uint32_t rows; /* numbers of stages that are told apart: 1 where it is free */
	double *least;
	struct choice *choice;
};

static size_t cell(const struct table *t, uint32_t row, uint32_t layers, uint32_t machines)
{
	return ((size_t)row * (t->chain->layers + 1) + layers) * (t->machines->machines + 1) + machines;
}

static void carve_table(struct table *t, struct skep_search_carve *c, const struct skep_chain *chain,
	const struct skep_chain_machines *machines)
{
	t->chain = chain;
	t->machines = machines;
	t->rows = machines->stages > 0 ? machines->stages : 1;
	skep_chain_sums_init(&t->sums, c, chain);
	size_t cells = cell(t, t->rows, 0, 0);
	t->least = skep_search_carve(c, cells, sizeof *t->least);
	t->choice = skep_search_carve(c, cells, sizeof *t->choice);
}

size_t skep_chain_replicated_size(const struct skep_chain *chain, const struct skep_chain_machines *machines)
{
	struct table t;
	struct skep_search_carve c = {NULL, 0};
	carve_table(&t, &c, chain, machines);
	return c.used;
}

static double stage_s(const struct table *t, uint32_t first, uint32_t end, uint32_t machines)
{
	double compute = t->sums.compute_s[end] - t->sums.compute_s[first];
	double weights = t->sums.weight_bytes[end] - t->sums.weight_bytes[first];
	double reduce = skep_chain_transfer_s(2.0 * (machines - 1) / machines * weights, t->machines->rate_Bps);
	if (t->sums.memory_bytes[end] - t->sums.memory_bytes[first] > t->machines->memory_bytes)
		return SKEP_NEVER;
	return (compute > reduce ? compute : reduce) / machines;
}

static double cut_s(const struct table *t, uint32_t end)
{
	return skep_chain_transfer_s(2 * t->chain->activation_bytes[end - 1], t->machines->rate_Bps);
}

static void offer(struct table *t, size_t at, double slowest, struct choice choice)
{
	if (slowest > t->least[at] || (slowest >= t->least[at] && choice.stages >= t->choice[at].stages))
		return;
	t->least[at] = slowest;
	t->choice[at] = choice;
}

/* All ways to make the last stage of this cell. */
static void fill(struct table *t, uint32_t row, uint32_t end, uint32_t machines)
{
	size_t at = cell(t, row, end, machines);
	t->least[at] = SKEP_NEVER;
	t->choice[at] = (struct choice){0, 0, UINT32_MAX};
	if (row == 0)
		offer(t, at, stage_s(t, 0, end, machines), (struct choice){0, machines, 1});
	if (row == 0 && t->machines->stages > 0)
		return;
	for (uint32_t first = 1; first < end; first++) {
		double cut = cut_s(t, first);
		for (uint32_t m = 1; m < machines; m++) {
			size_t before = cell(t, t->machines->stages > 0 ? row - 1 : 0, first, machines - m);
			double here = stage_s(t, first, end, m), slowest = t->least[before];
			slowest = cut > slowest ? cut : slowest;
			slowest = here > slowest ? here : slowest;
			if (slowest < SKEP_NEVER)
				offer(t, at, slowest, (struct choice){first, m, t->choice[before].stages + 1});
		}
	}
}

struct skep_chain_plan skep_chain_replicated(const struct skep_chain *chain, const struct skep_chain_machines *machines,
	void *mem, struct skep_chain_stage *ret_stage)
{
	struct table t;
	struct skep_search_carve c = {mem, 0};
	struct skep_chain_plan plan = {.slowest_s = SKEP_NEVER, .batch_s = SKEP_NEVER};
	uint32_t used = 0;
	assert(chain->layers > 0 && machines->machines > 0);
	carve_table(&t, &c, chain, machines);
	for (uint32_t row = 0; row < t.rows; row++)
		for (uint32_t end = 1; end <= chain->layers; end++)
			for (uint32_t m = 1; m <= machines->machines; m++)
				fill(&t, row, end, m);
	for (uint32_t m = 1; m <= machines->machines; m++) {
		size_t at = cell(&t, t.rows - 1, chain->layers, m);
		if (!(t.least[at] < plan.slowest_s))
			continue;
		plan.slowest_s = t.least[at];
		plan.stages = t.choice[at].stages;
		used = m;
	}
	for (uint32_t s = plan.stages, end = chain->layers; s-- > 0;) {
		struct choice last = t.choice[cell(&t, machines->stages > 0 ? s : 0, end, used)];
		ret_stage[s] = (struct skep_chain_stage){.first = last.first,
			.layers = end - last.first,
			.machines = last.machines,
			.stage_s = stage_s(&t, last.first, end, last.machines),
			.cut_s = end < chain->layers ? cut_s(&t, end) : 0};
		end = last.first;
		used -= last.machines;
	}
	return plan;
}
