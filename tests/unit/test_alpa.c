/* SPDX-License-Identifier: Apache-2.0
 *
 * test_alpa.c - Alpa's planner against every way to cut small chains and to spread what is cut over a mesh, against figures
 * worked out by hand, and how submeshes are dealt out to hosts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planning/search/published/alpa.h"

enum { LAYERS_MOST = 6, HOSTS_MOST = 4, GPUS_MOST = 16, COSTS_MOST = LAYERS_MOST * (LAYERS_MOST + 1) * 40 };

struct drawn {
	uint32_t hosts, gpus, microbatches;
	struct skep_alpa_option option[SKEP_ALPA_OPTIONS];
	struct skep_alpa_cost cost[COSTS_MOST];
	struct skep_alpa a;
};

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

static void make(struct drawn *d, uint32_t layers, uint32_t hosts, uint32_t gpus, uint32_t microbatches)
{
	*d = (struct drawn){.hosts = hosts, .gpus = gpus, .microbatches = microbatches};
	uint32_t options = skep_alpa_options(hosts, gpus, microbatches, d->option);
	assert_true(options <= 40);
	d->a = (struct skep_alpa){layers, hosts * gpus, options, d->option, d->cost};
	assert_true(skep_alpa_costs(&d->a) <= COSTS_MOST);
}

static void draw_all(struct drawn *d, uint64_t *seed)
{
	static const uint32_t mesh[][2] = {{1, 1}, {1, 2}, {1, 4}, {2, 2}, {3, 2}, {2, 4}, {4, 2}, {3, 1}, {1, 8}};
	uint32_t at = draw(seed, sizeof mesh / sizeof mesh[0]), tight = draw(seed, 3);
	make(d, 1 + draw(seed, LAYERS_MOST), mesh[at][0], mesh[at][1], 1 + draw(seed, 12));
	for (size_t i = 0; i < skep_alpa_costs(&d->a); i++) {
		double trip_s = 0.001 * (1 + draw(seed, 50));
		d->cost[i] = (struct skep_alpa_cost){trip_s, draw(seed, 8) > 0 ? 0.001 * draw(seed, 400) : INFINITY,
			tight > 0 ? draw(seed, tight == 1 ? 3 : 8) : GPUS_MOST};
	}
}

/* ---- all plans ------------------------------------------------------------------------------------------------------- */

/* Stages in front take `trip_s` and at most `rest_s` behind. */
struct front {
	uint32_t stages, copies, behind_most[LAYERS_MOST];
	double trip_s, rest_s;
};

static double plain(const struct drawn *d, uint32_t first, uint32_t left, const struct front *front)
{
	double best = INFINITY;
	if (first == d->a.layers || left == 0) {
		for (uint32_t s = 0; s < front->stages; s++)
			if (front->stages - 1 - s > front->behind_most[s])
				return INFINITY;
		return first == d->a.layers && left == 0 ? front->trip_s + front->rest_s : INFINITY;
	}
	for (uint32_t end = first + 1; end <= d->a.layers; end++)
		for (uint32_t o = 0; o < d->a.options; o++) {
			struct front next = *front;
			const struct skep_alpa_cost *cost =
				&d->cost[((size_t)first * (d->a.layers + 1) + end) * d->a.options + o];
			if (d->option[o].gpus > left || isinf(cost->rest_s) ||
				(front->stages > 0 && d->option[o].copies != front->copies))
				continue;
			next.copies = d->option[o].copies;
			next.behind_most[next.stages++] = cost->behind_most;
			next.trip_s += cost->trip_s;
			next.rest_s = fmax(next.rest_s, cost->rest_s);
			best = fmin(best, plain(d, end, left - d->option[o].gpus, &next));
		}
	return best;
}

static double find(const struct drawn *d, struct skep_alpa_stage *stage, uint32_t *stages)
{
	void *mem = malloc(skep_alpa_size(&d->a));
	assert_non_null(mem);
	double step_s = skep_alpa_find(&d->a, mem, stage, stages);
	free(mem);
	return step_s;
}

/* Layers in a row, all GPUs, and the step that is said. */
static void check_plan(const struct drawn *d, const struct skep_alpa_stage *stage, uint32_t stages, double step_s)
{
	uint32_t at = 0, gpus = 0, given[LAYERS_MOST * HOSTS_MOST];
	double trip_s = 0, rest_s = 0;
	for (uint32_t s = 0; s < stages; s++) {
		const struct skep_alpa_cost *cost =
			&d->cost[skep_alpa_at(&d->a, at, at + stage[s].layers, stage[s].option)];
		assert_true(stage[s].first == at && stage[s].layers > 0);
		at += stage[s].layers;
		gpus += d->option[stage[s].option].gpus;
		trip_s += cost->trip_s;
		rest_s = fmax(rest_s, cost->rest_s);
	}
	assert_true(at == d->a.layers && gpus == d->a.gpus);
	assert_true(fabs(trip_s + rest_s - step_s) <= 1e-9 * step_s);
	skep_alpa_place(&d->a, stage, stages, d->hosts, given);
	for (uint32_t host = 0; host < d->hosts; host++) {
		uint32_t used = 0;
		for (uint32_t s = 0; s < stages; s++)
			used += given[s * d->hosts + host];
		assert_int_equal(used, d->gpus);
	}
}

static void as_enumerated(void **state)
{
	(void)state;
	uint64_t seed = 1;
	uint32_t several = 0, none = 0, copies = 0, split = 0;
	for (uint32_t n = 0; n < 600; n++) {
		static struct drawn d;
		struct skep_alpa_stage stage[LAYERS_MOST];
		const struct front nothing = {.stages = 0};
		uint32_t stages;
		draw_all(&d, &seed);
		double step_s = find(&d, stage, &stages), best = plain(&d, 0, d.a.gpus, &nothing);
		assert_true(isinf(best) == isinf(step_s));
		none += isinf(best);
		if (isinf(best))
			continue;
		assert_true(fabs(step_s - best) <= 1e-9 * best);
		check_plan(&d, stage, stages, step_s);
		several += stages > 1;
		for (uint32_t s = 0; s < stages; s++) {
			copies += d.option[stage[s].option].copies > 1;
			split += d.option[stage[s].option].degree > 1;
		}
	}
	assert_true(several > 100 && none > 20 && copies > 50 && split > 50);
}

/* ---- by hand --------------------------------------------------------------------------------------------------------- */

static void has_options(void **state)
{
	(void)state;
	struct skep_alpa_option option[SKEP_ALPA_OPTIONS];
	/* (1, 1); (1, 2) as one of 2 or two of 1; hosts (1, 4), (2, 4), (3, 4): copies of 3 and 6 do not divide 8 */
	static const struct skep_alpa_option all[] = {
		{1, 1, 1}, {2, 1, 2}, {2, 2, 1}, {4, 1, 4}, {4, 2, 2}, {4, 4, 1}, {8, 1, 8}, {8, 2, 4}, {8, 4, 2}};
	assert_int_equal(skep_alpa_options(3, 4, 8, option), 9);
	assert_memory_equal(option, all, sizeof all);
	assert_int_equal(skep_alpa_options(1, 1, 5, option), 1);
	assert_int_equal(skep_alpa_options(100, 1024, 1, option), 11); /* one worker of a power of two up to a host */
	assert_int_equal(skep_alpa_options(1000, 1, 720720, option), 126); /* its divisors up to 1000 */
	assert_int_equal(skep_alpa_options(4096, 4, 720720, option), UINT32_MAX);
}

/* Equal layers of 1 s, which take 1 / degree of it and `more` times that. Without copies: the paper's formula. */
static void fill_uniform(struct drawn *d, double more)
{
	for (uint32_t first = 0; first < d->a.layers; first++)
		for (uint32_t end = first + 1; end <= d->a.layers; end++)
			for (uint32_t o = 0; o < d->a.options; o++) {
				uint32_t degree = d->option[o].degree;
				double t = (end - first) * (degree > 1 ? more / degree : 1);
				d->cost[skep_alpa_at(&d->a, first, end, o)] = (struct skep_alpa_cost){
					t, t * ((double)d->microbatches / d->option[o].copies - 1), GPUS_MOST};
			}
}

static void is_uniform(void **state)
{
	(void)state;
	static struct drawn d;
	struct skep_alpa_stage stage[LAYERS_MOST];
	uint32_t stages;
	/* Two hosts of two, seven microbatches, so no copies. Four stages of one GPU: 4 + 6 * 1 = 10 s. Two of two GPUs take
	 * half as long: 2 * 1 + 6 * 1 = 8 s; with 1.6 times that 2 * 1.6 + 6 * 1.6 = 12.8 s. */
	make(&d, 4, 2, 2, 7);
	fill_uniform(&d, 1);
	assert_true(fabs(find(&d, stage, &stages) - 8) < 1e-9);
	assert_true(stages == 2 && stage[0].layers == 2 && d.option[stage[0].option].degree == 2);
	fill_uniform(&d, 1.6);
	assert_true(fabs(find(&d, stage, &stages) - 10) < 1e-9);
	assert_true(stages == 4 && d.option[stage[3].option].degree == 1);
	/* Eight microbatches: four copies of all layers are passed once, and have one more each: 4 + 4 = 8 s. Four stages:
	 * 4 + 7 = 11 s. Two stages of two copies each: 4 + 2 * 3 = 10 s. Two of degree 2: 2 + 7 = 9 s. One of degree 2 with two
	 * copies: 2 + 2 * 3 = 8 s. Half as long on four GPUs cannot be: a host has two. */
	make(&d, 4, 2, 2, 8);
	fill_uniform(&d, 1);
	assert_true(fabs(find(&d, stage, &stages) - 8) < 1e-9);
	assert_int_equal(stages, 1);
}

/* Where memory is short no stage may have more than one behind it. */
static void keeps_memory(void **state)
{
	(void)state;
	static struct drawn d;
	struct skep_alpa_stage stage[LAYERS_MOST];
	uint32_t stages;
	make(&d, 4, 1, 4, 7);
	fill_uniform(&d, 1.9);
	find(&d, stage, &stages);
	assert_int_equal(stages, 4);
	for (size_t i = 0; i < skep_alpa_costs(&d.a); i++)
		d.cost[i].behind_most = 1;
	/* Two stages of two GPUs each, 1.9 s: 3.8 + 6 * 1.9 = 15.2 s; one of four takes 1.9 + 6 * 1.9 = 13.3 s. */
	assert_true(fabs(find(&d, stage, &stages) - 13.3) < 1e-9);
	assert_int_equal(stages, 1);
	d.cost[skep_alpa_at(&d.a, 0, 4, d.a.options - 1)].rest_s = INFINITY;
	assert_true(fabs(find(&d, stage, &stages) - 15.2) < 1e-9);
	for (size_t i = 0; i < skep_alpa_costs(&d.a); i++)
		d.cost[i].rest_s = INFINITY;
	assert_true(isinf(find(&d, stage, &stages)));
}

/* Parts of hosts and whole hosts, in any order, until all are dealt out. */
static void is_dealt_out(void **state)
{
	(void)state;
	uint64_t seed = 2;
	for (uint32_t n = 0; n < 2000; n++) {
		uint32_t hosts = 1 + draw(&seed, 6), gpus = 1u << draw(&seed, 5), left = hosts * gpus, stages = 0;
		struct skep_alpa_option option[96];
		struct skep_alpa_stage stage[96];
		static uint32_t given[96 * 6];
		const struct skep_alpa a = {.layers = 1, .gpus = hosts * gpus, .options = 96, .option = option};
		while (left > 0) {
			uint32_t size = draw(&seed, 4) == 0 ? gpus * (1 + draw(&seed, hosts)) : 1u << draw(&seed, 5);
			if (size > left || (size > gpus && size % gpus != 0))
				continue;
			/* What is left over is whole hosts and powers of two, or nothing would tile it. */
			option[stages] = (struct skep_alpa_option){size, 1, size};
			stage[stages] = (struct skep_alpa_stage){0, 1, stages};
			left -= size;
			stages++;
		}
		skep_alpa_place(&a, stage, stages, hosts, given);
		for (uint32_t s = 0; s < stages; s++) {
			uint32_t sum = 0, parts = 0;
			for (uint32_t host = 0; host < hosts; host++) {
				sum += given[s * hosts + host];
				parts += given[s * hosts + host] > 0;
			}
			assert_int_equal(sum, option[s].gpus);
			assert_true(sum < gpus ? parts == 1 : parts == sum / gpus);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_enumerated),
		cmocka_unit_test(has_options),
		cmocka_unit_test(is_uniform),
		cmocka_unit_test(keeps_memory),
		cmocka_unit_test(is_dealt_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
