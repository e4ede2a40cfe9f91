/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pipedream.c - PipeDream's partitioner against every way to cut small chains and to give machines to what is cut, on
 * one level of machines and on two, as in the paper and as the released tool does it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planning/search/published/pipedream.h"

enum { LAYERS_MOST = 6, MACHINES_MOST = 32 };

struct drawn {
	double compute_s[LAYERS_MOST], weight_bytes[LAYERS_MOST], activation_bytes[LAYERS_MOST];
	struct skep_chain chain;
	struct skep_pipedream p;
};

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

static void draw_all(struct drawn *d, uint64_t *seed, uint32_t levels)
{
	uint32_t layers = 1 + draw(seed, LAYERS_MOST);
	for (uint32_t i = 0; i < layers; i++) {
		d->compute_s[i] = 0.001 * (1 + draw(seed, 50));
		d->weight_bytes[i] = 1e5 * draw(seed, 90);
		d->activation_bytes[i] = 1e5 * draw(seed, 20);
	}
	d->chain = (struct skep_chain){layers, d->compute_s, d->weight_bytes, d->activation_bytes, NULL};
	d->p = (struct skep_pipedream){.chain = &d->chain,
		.levels = levels,
		.level = {{1 + draw(seed, 4), 1e8 * (1 + draw(seed, 20))},
			{1 + draw(seed, 4), 1e7 * (1 + draw(seed, 20))}},
		.microbatches_per_sum = draw(seed, 3) > 0 ? 1 + draw(seed, 40) : 0,
		.tool = draw(seed, 2) > 0};
}

static double plain(const struct drawn *d, uint32_t level, uint32_t first, uint32_t end);

static double plain_stage(const struct drawn *d, uint32_t level, uint32_t first, uint32_t end, uint32_t m, bool front)
{
	double compute = 0, weights = 0;
	for (uint32_t i = first; i < end; i++) {
		compute += d->compute_s[i];
		weights += d->weight_bytes[i];
	}
	double inside = level > 0 ? plain(d, level - 1, first, end) : compute;
	double per = d->p.microbatches_per_sum > 0 ? d->p.microbatches_per_sum : m;
	double reduce = 2 * (m - 1.0) * weights / per / d->p.level[level].rate_Bps;
	if (!d->p.tool)
		return fmax(inside, reduce) / m;
	return (inside + 2 * reduce / (level > 0 && front ? d->p.level[level - 1].components : 1)) / m;
}

/* Stages from layer `at` on, behind others if `at` is not the first. */
static double plain_rest(
	const struct drawn *d, uint32_t level, uint32_t first, uint32_t at, uint32_t end, uint32_t left)
{
	double best = INFINITY, rate = d->p.level[level].rate_Bps;
	for (uint32_t to = at + 1; to <= end; to++)
		for (uint32_t m = 1; m <= left; m++) {
			if ((to == end) != (m == left))
				continue;
			double here = plain_stage(d, level, at, to, m, at == first);
			double in = at > first ? 2 * d->activation_bytes[at - 1] / rate : 0;
			double out = at > first && to < d->chain.layers ? 2 * d->activation_bytes[to - 1] / rate : 0;
			here = fmax(here, d->p.tool ? fmax(in, out) / m : in);
			best = fmin(
				best, to == end ? here : fmax(here, plain_rest(d, level, first, to, end, left - m)));
		}
	return best;
}

static double plain(const struct drawn *d, uint32_t level, uint32_t first, uint32_t end)
{
	return plain_rest(d, level, first, first, end, d->p.level[level].components);
}

static void check_parts(
	const struct drawn *d, const struct skep_chain_stage *stage, const uint32_t *stage_of, uint32_t stages)
{
	uint32_t machines = d->p.level[0].components * (d->p.levels > 1 ? d->p.level[1].components : 1);
	uint32_t at = 0, used = 0;
	for (uint32_t s = 0; s < stages; s++) {
		uint32_t serving = 0;
		for (uint32_t i = 0; i < machines; i++)
			serving += stage_of[i] == s;
		assert_true(stage[s].first == at && stage[s].layers > 0);
		assert_true(serving == stage[s].machines && serving > 0);
		at += stage[s].layers;
		used += serving;
	}
	assert_int_equal(at, d->chain.layers);
	assert_int_equal(used, machines);
}

static void as_enumerated(void **state)
{
	(void)state;
	uint64_t seed = 1;
	uint32_t several = 0, unequal = 0;
	for (uint32_t n = 0; n < 600; n++) {
		struct drawn d;
		struct skep_chain_stage stage[LAYERS_MOST];
		uint32_t stage_of[MACHINES_MOST];
		draw_all(&d, &seed, 1 + n % 2);
		void *mem = malloc(skep_pipedream_size(&d.p));
		assert_non_null(mem);
		struct skep_chain_plan plan = skep_pipedream_find(&d.p, mem, stage, stage_of);
		double best = plain(&d, d.p.levels - 1, 0, d.chain.layers);
		assert_true(fabs(plan.slowest_s - best) <= 1e-9 * best);
		check_parts(&d, stage, stage_of, plan.stages);
		several += plan.stages > 1;
		unequal += plan.stages > 1 && stage[0].machines != stage[1].machines;
		free(mem);
	}
	assert_true(several > 100 && unequal > 30);
}

/* Two layers on three machines: the first has the work, the second the weights. By hand: all three for both would take
 * max(1.2, 2 * 2 * 3e8 / (3 * 1e8)) / 3 = 1.333 s, one stage of two machines and one of one 1.0 / 2 = 0.5 s. */
static void by_hand(void **state)
{
	(void)state;
	const double compute_s[] = {1, 0.2}, weight_bytes[] = {0, 3e8}, activation_bytes[] = {1e6, 0};
	const struct skep_chain chain = {2, compute_s, weight_bytes, activation_bytes, NULL};
	const struct skep_pipedream p = {.chain = &chain, .levels = 1, .level = {{3, 1e8}}};
	struct skep_chain_stage stage[2];
	uint32_t stage_of[3];
	void *mem = malloc(skep_pipedream_size(&p));
	assert_non_null(mem);
	struct skep_chain_plan plan = skep_pipedream_find(&p, mem, stage, stage_of);
	free(mem);
	assert_int_equal(plan.stages, 2);
	assert_int_equal(stage[0].machines, 2);
	assert_int_equal(stage[1].machines, 1);
	assert_true(fabs(plan.slowest_s - 0.5) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_enumerated),
		cmocka_unit_test(by_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
