/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuts.c - where to cut the model: the recurrence over layers against enumeration of drawn stages; what a scenario that
 * is cut anew says against one that is read with that cut; and the search for cut and allocation together against all cuts
 * times all allocations, with much memory and with little.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "planning/problem/cuts.h"
#include "planning/problem/run_search.h"
#include "planning/search/layers_cut.h"
#include "scenarios/plan/memory.h"
#include "scenarios/plan/recut.h"
#include "tests/unit/fresh.h"
#include "tests/unit/read_with.h"

enum { STAGES_MOST = 6, LAYERS_MOST = 10 };

/* ---- the recurrence ------------------------------------------------------------------------------------------------- */

struct drawn {
	uint32_t layers, stages;
	struct skep_throughput_stage stage[STAGES_MOST][LAYERS_MOST + 1][LAYERS_MOST + 1];
	bool fits[STAGES_MOST][LAYERS_MOST + 1][LAYERS_MOST + 1];
	struct skep_throughput throughput;
	uint32_t first_workers;
};

static double unit(uint64_t *random)
{
	return skep_random_below(random, 1000) / 1000.0;
}

static void draw(uint64_t seed, struct drawn *d)
{
	uint64_t random = seed;
	*d = (struct drawn){.stages = 1 + skep_random_below(&random, 4)};
	d->layers = d->stages + skep_random_below(&random, LAYERS_MOST - d->stages + 1);
	double in_flight = 1 + skep_random_below(&random, 4);
	d->throughput = (struct skep_throughput){.microbatches = 1 + skep_random_below(&random, 40),
		.in_flight = seed % 3 == 0 ? in_flight : SKEP_NEVER,
		.period = seed % 4 == 0 ? 8 : 1,
		.delayed = seed % 5 == 0};
	d->throughput.flushes = seed % 7 == 0 && d->throughput.microbatches > 1 ? 2 : 0;
	d->first_workers = 1 + skep_random_below(&random, 3);
	bool tight = seed % 2 == 0;
	for (uint32_t s = 0; s < d->stages; s++)
		for (uint32_t i = 0; i < d->layers; i++)
			for (uint32_t j = i + 1; j <= d->layers; j++) {
				double size = j - i;
				d->stage[s][i][j] =
					(struct skep_throughput_stage){.pace_s = size * (0.2 + unit(&random)),
						.compute_s = size * unit(&random),
						.travel_s = unit(&random),
						.reduction_s = 20 * size * unit(&random),
						.update_s = 5 * size * unit(&random)};
				d->fits[s][i][j] = !tight || skep_random_below(&random, 3) > 0;
			}
}

static struct skep_throughput_stage drawn_stage(void *self, uint32_t stage, uint32_t first, uint32_t end)
{
	return ((struct drawn *)self)->stage[stage][first][end];
}

static bool drawn_fits(void *self, uint32_t stage, uint32_t first, uint32_t end)
{
	return ((struct drawn *)self)->fits[stage][first][end];
}

/* By the formulas of throughput.h, written down once more. */
static double step_of(const struct drawn *d, const uint32_t *first)
{
	double trip = 0, pace = 0, reduction = 0, update = 0;
	for (uint32_t s = 0; s < d->stages; s++) {
		const struct skep_throughput_stage *t = &d->stage[s][first[s]][first[s + 1]];
		if (!d->fits[s][first[s]][first[s + 1]])
			return INFINITY;
		trip += t->compute_s + t->travel_s;
		pace = fmax(pace, t->pace_s);
		reduction = fmax(reduction, t->reduction_s);
		update = fmax(update, t->update_s);
	}
	double flushes = fmax(d->throughput.flushes, 1);
	double microbatches = d->throughput.microbatches * d->throughput.period / flushes; /* of a flush */
	double flow = trip + (microbatches - 1) * pace;
	double in_flight = d->throughput.in_flight * d->first_workers;
	flow = flushes * (isinf(in_flight) ? flow : fmax(flow, microbatches * trip / in_flight));
	return ((d->throughput.delayed ? fmax(flow, reduction) : flow + reduction) + update) / d->throughput.period;
}

static double least_step(const struct drawn *d, uint32_t *first, uint32_t stage)
{
	double least = INFINITY;
	if (stage == d->stages)
		return first[stage] == d->layers ? step_of(d, first) : INFINITY;
	for (uint32_t end = first[stage] + 1; end <= d->layers; end++) {
		first[stage + 1] = end;
		least = fmin(least, least_step(d, first, stage + 1));
	}
	return least;
}

static double find(struct drawn *d, uint32_t around, double worth, uint32_t *ret_first)
{
	uint32_t low[STAGES_MOST + 1], high[STAGES_MOST + 1];
	for (uint32_t s = 0; s <= d->stages; s++) {
		uint32_t middle = s * d->layers / d->stages, least = s, most = d->layers - (d->stages - s);
		low[s] = middle > least + around ? middle - around : least;
		high[s] = middle + around < most ? middle + around : most;
	}
	low[0] = high[0] = 0;
	low[d->stages] = high[d->stages] = d->layers;
	const struct skep_cuts cuts = {.layers = d->layers,
		.stages = d->stages,
		.low = low,
		.high = high,
		.stage = drawn_stage,
		.fits = drawn_fits,
		.self = d,
		.throughput = &d->throughput,
		.first_workers = d->first_workers,
		.worth = worth};
	void *mem = malloc(skep_cuts_size(&cuts));
	assert_non_null(mem);
	double found = skep_cuts_find(&cuts, mem, ret_first);
	free(mem);
	return found;
}

static void test_the_recurrence_is_exact(void **state)
{
	(void)state;
	uint32_t impossible = 0;
	for (uint64_t seed = 1; seed <= 600; seed++) {
		struct drawn d;
		uint32_t first[STAGES_MOST + 1] = {0}, way[STAGES_MOST + 1] = {0};
		draw(seed, &d);
		double least = least_step(&d, way, 0), found = find(&d, LAYERS_MOST, INFINITY, first);
		if (isinf(least)) {
			assert_true(isinf(found));
			impossible++;
			continue;
		}
		if (fabs(found - least) > 1e-9 * least)
			print_error("seed %u: %g found, %g is least\n", (unsigned)seed, found, least);
		assert_true(fabs(found - least) <= 1e-9 * least && fabs(step_of(&d, first) - found) <= 1e-9 * least);
		/* Nothing is told that is not worth it. */
		assert_true(isinf(find(&d, LAYERS_MOST, least * (1 - 1e-6), first)));
		assert_true(fabs(find(&d, LAYERS_MOST, least * (1 + 1e-6), first) - least) <= 1e-9 * least);
		/* Nor one outside of where stages may begin. */
		double near = find(&d, 1, INFINITY, first);
		assert_true(near >= least * (1 - 1e-9));
		for (uint32_t s = 0; near < INFINITY && s <= d.stages; s++)
			assert_true(abs((int)first[s] - (int)(s * d.layers / d.stages)) <= 1 || first[s] == s);
	}
	assert_true(impossible > 5 && impossible < 300);
}

/* ---- a scenario that is cut anew ------------------------------------------------------------------------------------- */

static void same_vstages(const struct skep_scenario *a, const struct skep_scenario *b, uint32_t from, uint32_t to)
{
	uint32_t vstages = skep_plan_vstages(&a->plan);
	for (uint32_t vstage = from; vstage < to; vstage++) {
		const struct skep_stage_plan *x = &a->stage[vstage % a->plan.stages],
					     *y = &b->stage[vstage % b->plan.stages];
		assert_memory_equal(&a->cost[vstage], &b->cost[vstage], sizeof *a->cost);
		assert_int_equal(a->vstage_bytes[vstage], b->vstage_bytes[vstage]);
		assert_int_equal(x->parameters, y->parameters);
		assert_int_equal(x->activation_bytes, y->activation_bytes);
		assert_int_equal(x->state_bytes, y->state_bytes);
		for (uint32_t gpu = 0; gpu < a->topology.gpus; gpu++)
			assert_memory_equal(&a->op_time[(size_t)gpu * vstages + vstage],
				&b->op_time[(size_t)gpu * vstages + vstage], sizeof *a->op_time);
	}
}

static void same_memory(const struct skep_scenario *a, const struct skep_scenario *b)
{
	struct skep_memory_terms of_a = skep_memory_terms_of(a), of_b = skep_memory_terms_of(b);
	for (uint32_t stage = 0; stage < a->plan.stages; stage++)
		for (uint32_t gpu = 0; gpu < a->topology.gpus; gpu++)
			assert_true(skep_memory_of(a, &of_a, stage, gpu).total ==
				    skep_memory_of(b, &of_b, stage, gpu).total);
}

static void draw_layers(uint64_t *random, uint32_t vstages, uint32_t layers, uint32_t *ret)
{
	for (uint32_t i = 0; i < vstages; i++)
		ret[i] = 1;
	for (uint32_t i = vstages; i < layers; i++)
		ret[skep_random_below(random, vstages)]++;
}

static void test_cut_anew_is_read_anew(void **state)
{
	(void)state;
	static const char *const sets[][5] = {{NULL}, {"schedule.routing=trainer", "model.stages=4"},
		{"schedule.compression=int8", "sync.compression=fp16"},
		{"schedule.pipeline=interleaved", "schedule.model_chunks=2", "model.stages=2"},
		{"model.file=models/gpt2-256x4.yaml", "model.stages=3", "train.arithmetic=none"},
		{"schedule.checkpoint_activations=true", "schedule.pipeline=1f1b"}};
	uint64_t random = 5;
	for (uint32_t k = 0; k < sizeof sets / sizeof sets[0]; k++) {
		uint32_t count = 0;
		const char *set[6];
		while (count < 5 && sets[k][count])
			set[count] = sets[k][count], count++;
		struct skep_scenario s, recut;
		read_with(&s, "scenarios/two-datacentres.yaml", set, count);
		assert_true(skep_cuts_possible(&s) && skep_recut_make(&s, &recut));
		uint32_t vstages = skep_plan_vstages(&s.plan), layers[64];
		same_vstages(&s, &recut, 0, vstages);
		same_memory(&s, &recut);
		for (uint32_t n = 0; n < 5; n++) {
			struct skep_scenario again;
			draw_layers(&random, vstages, s.model.layers, layers);
			set[count] = skep_recut_assignment(layers, vstages);
			read_with(&again, "scenarios/two-datacentres.yaml", set, count + 1);
			skep_recut_set(&recut, layers);
			same_vstages(&again, &recut, 0, vstages);
			same_memory(&again, &recut);
			for (uint32_t vstage = 0, first = 0; skep_plan_model_chunks(&s.plan) == 1 && vstage < vstages;
				vstage++) {
				skep_recut_set_vstage(&recut, vstage, first, first + layers[vstage]);
				same_vstages(&again, &recut, vstage, vstage + 1);
				first += layers[vstage];
			}
			skep_scenario_finish(&again);
			free((char *)(uintptr_t)set[count]);
		}
		skep_recut_finish(&recut);
		skep_scenario_finish(&s);
	}
}

/* ---- cut and allocation together ------------------------------------------------------------------------------------- */

struct pool {
	const char *set[8];
	uint32_t sets;
	double memory_bytes; /* of every GPU; 0: as it is */
};

static void open_pool(const struct pool *pool, const uint32_t *layers, uint32_t vstages, struct skep_scenario *s)
{
	const char *set[9];
	memcpy(set, pool->set, pool->sets * sizeof *set);
	char *cut = layers ? skep_recut_assignment(layers, vstages) : NULL;
	set[pool->sets] = cut;
	read_with(s, "scenarios/two-datacentres.yaml", set, pool->sets + (cut != NULL));
	for (uint32_t i = 0; pool->memory_bytes > 0 && i < s->topology.gpus; i++)
		s->topology.gpu[i].memory_bytes = pool->memory_bytes;
	free(cut);
}

/* Of all allocations, by the problem of a scenario that was read with this cut. */
static double least_of_cut(const struct pool *pool, const uint32_t *layers, uint32_t vstages)
{
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_diag error;
	double least = INFINITY;
	open_pool(pool, layers, vstages, &s);
	assert_true(skep_planning_pose(&s, &p, fresh(&error)));
	void *mem = malloc(skep_throughput_size(&p.throughput[SKEP_CONTENDED]));
	const struct skep_objective *cost = skep_throughput_init(mem, &p.throughput[SKEP_CONTENDED]);
	uint32_t stage_of[8] = {0}, count[STAGES_MOST], at = 0;
	while (at < p.workers) {
		if (skep_problem_allows(&p.problem, stage_of, count))
			least = fmin(least, cost->whole(cost->self, stage_of));
		for (at = 0; at < p.workers && ++stage_of[at] == p.stages; at++)
			stage_of[at] = 0;
	}
	free(mem);
	skep_planning_finish(&p);
	skep_scenario_finish(&s);
	return least;
}

static double least_of_all(const struct pool *pool, uint32_t *layers, uint32_t vstage, uint32_t vstages, uint32_t left)
{
	double least = INFINITY;
	if (vstage + 1 == vstages) {
		layers[vstage] = left;
		return least_of_cut(pool, layers, vstages);
	}
	for (uint32_t n = 1; n + (vstages - vstage - 1) <= left; n++) {
		layers[vstage] = n;
		least = fmin(least, least_of_all(pool, layers, vstage + 1, vstages, left - n));
	}
	return least;
}

/* As `skep plan` does it, and that what is told is so: read with this cut it costs the same, and fits. */
static double find_both(const struct pool *pool, double *ret_even)
{
	struct skep_scenario s, again;
	struct skep_planning p, posed;
	struct skep_cutting c;
	struct skep_diag error;
	uint32_t layers[STAGES_MOST], stage_of[8], best_layers[STAGES_MOST], best_of[8];
	uint64_t evaluations = 0;
	double best = INFINITY;
	open_pool(pool, NULL, 0, &s);
	assert_true(skep_planning_pose(&s, &p, fresh(&error)) && skep_cutting_make(&p, &c));
	bool can = skep_planning_check(&p, fresh(&error));
	*ret_even = INFINITY;
	for (uint32_t k = 0; k < 2; k++) {
		struct skep_planning_search q = {.method = SKEP_METHOD_PORTFOLIO, .view = SKEP_CONTENDED, .seed = 1};
		struct skep_found found;
		skep_recut_of(&s, layers);
		if (can && k == 0) {
			assert_true(skep_planning_search(&p, &q, stage_of, &found));
			*ret_even = found.cost;
		} else if (can ? !skep_cutting_begin(&c, layers, stage_of)
			       : k == 1 || !skep_cutting_any(&c, 1, SKEP_CUT_TRIES, layers, stage_of)) {
			continue;
		}
		double cost = skep_cutting_improve(&c, 1, layers, stage_of, &evaluations);
		if (cost < best) {
			best = cost;
			memcpy(best_layers, layers, sizeof layers);
			memcpy(best_of, stage_of, sizeof stage_of);
		}
	}
	skep_cutting_finish(&c);
	if (best < INFINITY) {
		open_pool(pool, best_layers, p.stages, &again);
		assert_true(skep_planning_make(&again, &posed, fresh(&error)));
		void *mem = malloc(skep_throughput_size(&posed.throughput[SKEP_CONTENDED]));
		const struct skep_objective *cost = skep_throughput_init(mem, &posed.throughput[SKEP_CONTENDED]);
		assert_true(fabs(cost->whole(cost->self, best_of) - best) <= 1e-9 * best);
		free(mem);
		skep_planning_finish(&posed);
		skep_scenario_finish(&again);
	}
	skep_planning_finish(&p);
	skep_scenario_finish(&s);
	return best;
}

static const char *const pools[2][4] = {
	{"cluster.allocation={method: explicit, stage_of: [0, unused, 1, 0, unused, unused, 1, 0]}",
		"cluster.allocation={method: explicit, stage_of: [0, 1, unused, 0, 0, unused, 1, unused]}",
		"cluster.allocation={method: explicit, stage_of: [0, 1, 0, 1, 0, unused, 1, unused]}",
		"cluster.allocation={method: explicit, stage_of: [0, 1, unused, 1, 0, 1, 0, unused]}"},
	{"cluster.allocation={method: explicit, stage_of: [0, unused, 1, 2, unused, unused, 1, 0]}",
		"cluster.allocation={method: explicit, stage_of: [0, 1, unused, 2, 0, unused, 1, unused]}",
		"cluster.allocation={method: explicit, stage_of: [0, 1, 0, 1, 2, unused, 1, unused]}",
		"cluster.allocation={method: explicit, stage_of: [0, 1, unused, 1, 2, 1, 0, unused]}"},
};
static const char *const scales[] = {
	"cluster.compute_scale=1", "cluster.compute_scale=30", "cluster.compute_scale=1000"};
static const char *const more[] = {"seed=2", "schedule.wiring=throughput", "sync.delayed=true", "schedule.in_flight=2",
	"schedule.routing=trainer"};

/* Of four to six machines, in two or three stages; nine layers. */
static struct pool pool_of(uint32_t nth)
{
	uint32_t three = nth / 4 % 2;
	return (struct pool){.set = {pools[three][nth % 4], scales[nth % 3], more[nth % 5],
				     three ? "model.stages=3" : "model.stages=2", "train.arithmetic=none"},
		.sets = 5};
}

struct tally {
	uint32_t cases, exact, gained, only_uneven, impossible;
	double worst, most;
};

static void compare(const struct pool *pool, uint32_t stages, struct tally *t)
{
	uint32_t layers[STAGES_MOST];
	double even, found = find_both(pool, &even), least = least_of_all(pool, layers, 0, stages, 9);
	t->cases++;
	t->impossible += isinf(least);
	if (isinf(least)) {
		assert_true(isinf(found));
		return;
	}
	assert_true(found < INFINITY && found >= least * (1 - 1e-9) && found <= even * (1 + 1e-9));
	t->only_uneven += isinf(even);
	t->exact += found <= least * (1 + 1e-9);
	t->worst = fmax(t->worst, found / least);
	t->gained += found < even * 0.99;
	t->most = isinf(even) ? t->most : fmax(t->most, even / found);
}

static void say(const struct tally *t)
{
	print_message(
		"%u pools: %u exact, the worst %.4f times the least; %u gain, at most %.3f times; %u with an uneven "
		"cut alone; %u impossible\n",
		t->cases, t->exact, t->worst, t->gained, t->most, t->only_uneven, t->impossible);
}

static void test_cut_and_allocation_against_all(void **state)
{
	(void)state;
	struct tally t = {.worst = 1, .most = 1};
	for (uint32_t nth = 0; nth < 40; nth++) {
		struct pool pool = pool_of(nth);
		compare(&pool, nth / 4 % 2 ? 3 : 2, &t);
	}
	say(&t);
	assert_true(t.exact == t.cases);
	assert_true(t.gained > t.cases / 4);
}

/* Parts of what the largest stage of the even cut takes. */
static void test_with_little_memory(void **state)
{
	(void)state;
	static const double parts[] = {1.0, 0.9, 0.8, 0.7, 0.6};
	struct tally t = {.worst = 1, .most = 1};
	for (uint32_t nth = 0; nth < 40; nth++) {
		struct pool pool = pool_of(nth);
		struct skep_scenario s;
		open_pool(&pool, NULL, 0, &s);
		for (uint32_t stage = 0; stage < s.plan.stages; stage++)
			pool.memory_bytes = fmax(pool.memory_bytes, s.memory_bytes[stage] * parts[nth / 8]);
		skep_scenario_finish(&s);
		compare(&pool, nth / 4 % 2 ? 3 : 2, &t);
	}
	say(&t);
	assert_true(t.exact == t.cases - t.impossible && t.impossible < t.cases);
	assert_true(t.only_uneven > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_recurrence_is_exact),
		cmocka_unit_test(test_cut_anew_is_read_anew),
		cmocka_unit_test(test_cut_and_allocation_against_all),
		cmocka_unit_test(test_with_little_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
