/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chain.c - the recurrences over layers against plain enumeration: of drawn chains, and of the layers of three networks that
 * PipeDream profiled, cut into up to 12 parts.
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

#include "tests/search/partition.h"

enum { LAYERS_MOST = 12, NODES_MOST = 256, EDGES_MOST = 512 };

struct layers {
	double compute_s[LAYERS_MOST], weight_bytes[LAYERS_MOST], activation_bytes[LAYERS_MOST],
		memory_bytes[LAYERS_MOST];
	uint32_t count;
};

static struct skep_chain chain_of(const struct layers *l)
{
	return (struct skep_chain){l->count, l->compute_s, l->weight_bytes, l->activation_bytes, l->memory_bytes};
}

static bool same_s(double a, double b)
{
	return (isinf(a) && isinf(b)) || fabs(a - b) <= 1e-9 * fabs(b);
}

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

static struct layers draw_layers(uint64_t *seed, uint32_t count)
{
	struct layers l = {.count = count};
	for (uint32_t i = 0; i < count; i++) {
		l.compute_s[i] = 0.001 * draw(seed, 50);
		l.weight_bytes[i] = 1e6 * draw(seed, 30);
		l.activation_bytes[i] = 1e6 * draw(seed, 20);
		l.memory_bytes[i] = 1e9 * draw(seed, 4);
	}
	return l;
}

/* ---- profiles ------------------------------------------------------------------------------------------------------- */

struct node {
	uint32_t id, waits; /* waits: for so many that come before */
	double compute_s, activation_bytes, weight_bytes;
	int32_t place; /* in the order; -1: none yet */
};

struct graph {
	struct node node[NODES_MOST];
	uint32_t nodes, edge[EDGES_MOST][2], edges;
};

static double sum_of_list(const char *at)
{
	double sum = 0;
	char *end;
	at += *at == '[';
	for (;; at = end + 1) {
		sum += strtod(at, &end);
		if (*end != ';')
			return sum;
	}
}

static double field(const char *line, const char *name)
{
	const char *at = strstr(line, name);
	assert_non_null(at);
	return sum_of_list(at + strlen(name));
}

static struct node *node_of(struct graph *g, uint32_t id)
{
	for (uint32_t i = 0; i < g->nodes; i++)
		if (g->node[i].id == id)
			return &g->node[i];
	fail();
	return NULL;
}

static void read_graph(const char *name, struct graph *ret)
{
	char path[128], line[1024];
	snprintf(path, sizeof path, "tests/data/pipedream/%s.graph.txt", name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	memset(ret, 0, sizeof *ret);
	while (fgets(line, sizeof line, file)) {
		if (line[0] != '\t') {
			struct node *n = &ret->node[ret->nodes++];
			assert_true(ret->nodes <= NODES_MOST && sscanf(line, "node%u", &n->id) == 1);
			n->compute_s =
				(field(line, "forward_compute_time=") + field(line, "backward_compute_time=")) / 1e3;
			n->activation_bytes = field(line, "activation_size=");
			n->weight_bytes = field(line, "parameter_size=");
			n->place = -1;
			continue;
		}
		uint32_t *edge = ret->edge[ret->edges++];
		assert_true(ret->edges <= EDGES_MOST && sscanf(line, " node%u -- node%u", &edge[0], &edge[1]) == 2);
	}
	fclose(file);
	for (uint32_t i = 0; i < ret->edges; i++)
		node_of(ret, ret->edge[i][1])->waits++;
}

/* An order in which each comes after all that it needs: of those that could be next, the one with the lowest number. */
static void put_in_order(struct graph *g)
{
	for (int32_t place = 0; place < (int32_t)g->nodes; place++) {
		struct node *next = NULL;
		for (uint32_t i = 0; i < g->nodes; i++)
			if (g->node[i].place < 0 && g->node[i].waits == 0 && (!next || g->node[i].id < next->id))
				next = &g->node[i];
		assert_non_null(next);
		next->place = place;
		for (uint32_t i = 0; i < g->edges; i++)
			if (g->edge[i][0] == next->id)
				node_of(g, g->edge[i][1])->waits--;
	}
}

/* What a cut behind this place lets through: each output once that a layer behind it needs. */
static double crossing(struct graph *g, int32_t place)
{
	double bytes = 0;
	for (uint32_t i = 0; i < g->nodes; i++) {
		bool needed = false;
		for (uint32_t e = 0; e < g->edges; e++)
			needed |= g->edge[e][0] == g->node[i].id && node_of(g, g->edge[e][1])->place > place;
		bytes += g->node[i].place <= place && needed ? g->node[i].activation_bytes : 0;
	}
	return bytes;
}

static struct layers read_layers(const char *name, uint32_t count)
{
	static struct graph g;
	struct layers l = {.count = count};
	read_graph(name, &g);
	put_in_order(&g);
	for (uint32_t i = 0; i < g.nodes; i++) {
		uint32_t layer = (uint32_t)g.node[i].place * count / g.nodes;
		l.compute_s[layer] += g.node[i].compute_s;
		l.weight_bytes[layer] += g.node[i].weight_bytes;
	}
	for (uint32_t i = 0; i + 1 < count; i++)
		l.activation_bytes[i] = crossing(&g, (int32_t)(((i + 1) * g.nodes + count - 1) / count) - 1);
	return l;
}

/* ---- PipeDream ------------------------------------------------------------------------------------------------------ */

static double plain_stage(
	const struct layers *l, const struct skep_chain_machines *machines, uint32_t first, uint32_t end, uint32_t m)
{
	double compute = 0, weights = 0, memory = 0;
	for (uint32_t i = first; i < end; i++) {
		compute += l->compute_s[i];
		weights += l->weight_bytes[i];
		memory += l->memory_bytes[i];
	}
	double reduce = 2.0 * (m - 1) / m * weights / machines->rate_Bps;
	return memory > machines->memory_bytes ? INFINITY : fmax(compute, reduce) / m;
}

/* Every way to cut what is left, and to give machines to what is cut off. */
static double plain_replicated(const struct layers *l, const struct skep_chain_machines *machines, uint32_t first,
	uint32_t left, uint32_t stages)
{
	double best = INFINITY;
	if (first == l->count)
		return machines->stages == 0 || stages == machines->stages ? 0 : INFINITY;
	for (uint32_t end = first + 1; end <= l->count; end++)
		for (uint32_t m = 1; m <= left; m++) {
			double cut = end < l->count ? 2 * l->activation_bytes[end - 1] / machines->rate_Bps : 0;
			double here = fmax(plain_stage(l, machines, first, end, m), cut);
			best = fmin(best, fmax(here, plain_replicated(l, machines, end, left - m, stages + 1)));
		}
	return best;
}

static void check_replicated(const struct layers *l, const struct skep_chain_machines *machines)
{
	struct skep_chain chain = chain_of(l);
	struct skep_chain_stage stage[LAYERS_MOST];
	void *mem = malloc(skep_chain_replicated_size(&chain, machines));
	struct skep_chain_plan plan = skep_chain_replicated(&chain, machines, mem, stage);
	double best = plain_replicated(l, machines, 0, machines->machines, 0), slowest = 0;
	assert_true(same_s(plan.slowest_s, best));
	uint32_t at = 0, used = 0;
	for (uint32_t s = 0; s < plan.stages; s++) {
		assert_true(stage[s].first == at && stage[s].layers > 0 && stage[s].machines > 0);
		at += stage[s].layers;
		used += stage[s].machines;
		assert_true(same_s(stage[s].stage_s, plain_stage(l, machines, stage[s].first, at, stage[s].machines)));
		slowest = fmax(slowest, fmax(stage[s].stage_s, stage[s].cut_s));
	}
	if (!isinf(best))
		assert_true(at == l->count && used <= machines->machines && same_s(slowest, best));
	else
		assert_int_equal(plan.stages, 0);
	free(mem);
}

static void replicated_as_enumerated(void **state)
{
	(void)state;
	uint64_t seed = 1;
	for (uint32_t n = 0; n < 150; n++) {
		struct layers l = draw_layers(&seed, 1 + draw(&seed, 8));
		struct skep_chain_machines machines = {
			1 + draw(&seed, 5), 1e8 * (1 + draw(&seed, 20)), 1e9 * (4 + draw(&seed, 9)), draw(&seed, 4)};
		check_replicated(&l, &machines);
	}
}

/* Issue "Planning", shown by 4. */
static void profiles_of_pipedream(void **state)
{
	(void)state;
	static const char *const name[] = {"resnet18", "resnext50", "gnmt_large"};
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t layers = 2; layers <= LAYERS_MOST; layers += 5)
			for (uint32_t gbps = 1; gbps <= 100; gbps *= 10) {
				struct layers l = read_layers(name[i], layers);
				double compute = 0;
				for (uint32_t j = 0; j < layers; j++)
					compute += l.compute_s[j];
				assert_true(compute > 0.01 && compute < 10);
				check_replicated(&l, &(struct skep_chain_machines){4, gbps * 1e9 / 8, INFINITY, 0});
				check_replicated(&l, &(struct skep_chain_machines){
							     layers < 12 ? 6 : 4, gbps * 1e9 / 8, INFINITY, 2});
			}
}

/* The sums of a file are those that its rows have. */
static void a_profile_is_read_whole(void **state)
{
	(void)state;
	struct layers l = read_layers("gnmt_large", 12), one = read_layers("gnmt_large", 1);
	double compute = 0, weights = 0;
	for (uint32_t i = 0; i < 12; i++) {
		compute += l.compute_s[i];
		weights += l.weight_bytes[i];
	}
	assert_true(same_s(compute, one.compute_s[0]) && same_s(weights, one.weight_bytes[0]));
	assert_true(one.activation_bytes[0] <= 0 && l.activation_bytes[0] > 1e6);
}

/* ---- Alpa ----------------------------------------------------------------------------------------------------------- */

struct costs {
	double time_s[LAYERS_MOST][LAYERS_MOST + 1][3];
};

static double stage_of(void *self, uint32_t first, uint32_t end, uint32_t k)
{
	return ((const struct costs *)self)->time_s[first][end][k];
}

static double plain_bounded(
	const struct skep_chain_bound *b, uint32_t first, uint32_t left, uint32_t stages, double sum, double most)
{
	double best = INFINITY;
	if (first == b->layers)
		return b->all && left > 0 ? INFINITY : sum + (b->microbatches - 1) * most;
	for (uint32_t end = first + 1; stages < b->stages_most && end <= b->layers; end++)
		for (uint32_t k = 0; k < b->sizes; k++) {
			double time = stage_of(b->self, first, end, k);
			if (b->size[k] <= left && time < INFINITY)
				best = fmin(best, plain_bounded(b, end, left - b->size[k], stages + 1, sum + time,
							  fmax(most, time)));
		}
	return best;
}

static void bounded_as_enumerated(void **state)
{
	(void)state;
	static const uint32_t size[] = {1, 2, 4};
	uint64_t seed = 2;
	uint32_t possible = 0;
	for (uint32_t n = 0; n < 200; n++) {
		struct costs costs;
		for (uint32_t i = 0; i < LAYERS_MOST; i++)
			for (uint32_t j = i + 1; j <= LAYERS_MOST; j++)
				for (uint32_t k = 0; k < 3; k++)
					costs.time_s[i][j][k] =
						draw(&seed, 8) == 0 ? INFINITY
								    : (j - i) * (1 + draw(&seed, 9)) / (double)size[k];
		struct skep_chain_bound bound = {1 + draw(&seed, 7), 1 + draw(&seed, 4), 1 + draw(&seed, 7),
			1 + draw(&seed, 3), size, stage_of, &costs, 1 + draw(&seed, 4), draw(&seed, 2)};
		struct skep_chain_stage stage[LAYERS_MOST];
		void *mem = malloc(skep_chain_bounded_size(&bound));
		struct skep_chain_plan plan = skep_chain_bounded(&bound, mem, stage);
		double best = plain_bounded(&bound, 0, bound.machines, 0, 0, 0), sum = 0, most = 0;
		assert_true(same_s(plan.batch_s, best));
		uint32_t at = 0, used = 0;
		for (uint32_t s = 0; s < plan.stages; s++) {
			assert_int_equal(stage[s].first, at);
			at += stage[s].layers;
			used += stage[s].machines;
			sum += stage[s].stage_s;
			most = fmax(most, stage[s].stage_s);
		}
		if (!isinf(best)) {
			possible++;
			assert_true(
				at == bound.layers && used <= bound.machines && (!bound.all || used == bound.machines));
			assert_true(
				same_s(sum + (bound.microbatches - 1) * most, best) && same_s(plan.slowest_s, most));
		}
		free(mem);
	}
	assert_true(possible > 50 && possible < 200);
}

/* ---- HetPipe -------------------------------------------------------------------------------------------------------- */

static double plain_ordered(const struct layers *l, const struct skep_chain_kinds *kinds, uint32_t first,
	const uint32_t *left, uint32_t stages, uint32_t last)
{
	double best = INFINITY;
	if (first == l->count)
		return kinds->stages == 0 || stages == kinds->stages ? 0 : INFINITY;
	for (uint32_t end = first + 1; end <= l->count; end++)
		for (uint32_t k = 0; k < kinds->kinds; k++) {
			uint32_t rest[4];
			double compute = 0, memory = 0;
			if (left[k] == 0)
				continue;
			memcpy(rest, left, kinds->kinds * sizeof *left);
			rest[k]--;
			for (uint32_t i = first; i < end; i++) {
				compute += l->compute_s[i] / kinds->speed[k];
				memory += l->memory_bytes[i];
			}
			double cut = first > 0 ? 2 * l->activation_bytes[first - 1] /
			                                 kinds->rate_Bps[last * kinds->kinds + k]
			                       : 0;
			double here = memory > kinds->memory_bytes[k] ? INFINITY : fmax(compute, cut);
			best = fmin(best, fmax(here, plain_ordered(l, kinds, end, rest, stages + 1, k)));
		}
	return best;
}

static void ordered_as_enumerated(void **state)
{
	(void)state;
	uint64_t seed = 3;
	for (uint32_t n = 0; n < 150; n++) {
		struct layers l = draw_layers(&seed, 1 + draw(&seed, 7));
		uint32_t count[3];
		double speed[3], memory[3], rate[9];
		for (uint32_t k = 0; k < 3; k++) {
			count[k] = draw(&seed, 3) + (k == 0);
			speed[k] = 0.5 + draw(&seed, 4);
			memory[k] = 1e9 * (3 + draw(&seed, 9));
		}
		for (uint32_t k = 0; k < 9; k++)
			rate[k] = 1e8 * (1 + draw(&seed, 20));
		struct skep_chain_kinds kinds = {3, count, speed, memory, rate, draw(&seed, 4)};
		struct skep_chain chain = chain_of(&l);
		struct skep_chain_stage stage[LAYERS_MOST];
		void *mem = malloc(skep_chain_ordered_size(&chain, &kinds));
		struct skep_chain_plan plan = skep_chain_ordered(&chain, &kinds, mem, stage);
		double best = plain_ordered(&l, &kinds, 0, count, 0, 0), slowest = 0;
		assert_true(same_s(plan.slowest_s, best));
		uint32_t at = 0, used[3] = {0};
		for (uint32_t s = 0; s < plan.stages; s++) {
			assert_int_equal(stage[s].first, at);
			at += stage[s].layers;
			slowest = fmax(slowest, fmax(stage[s].stage_s, stage[s].cut_s));
			assert_true(++used[stage[s].kind] <= count[stage[s].kind]);
		}
		if (!isinf(best))
			assert_true(at == l.count && same_s(slowest, best));
		free(mem);
	}
	uint32_t many[] = {4000, 4000, 4000};
	struct layers l = draw_layers(&seed, 5);
	struct skep_chain chain = chain_of(&l);
	struct skep_chain_kinds kinds = {.kinds = 3, .count = many};
	assert_true(skep_chain_ordered_size(&chain, &kinds) == SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicated_as_enumerated),
		cmocka_unit_test(a_profile_is_read_whole),
		cmocka_unit_test(profiles_of_pipedream),
		cmocka_unit_test(bounded_as_enumerated),
		cmocka_unit_test(ordered_as_enumerated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
