/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_kinds.c - where a search for cuts begins (cuts.h): groups of machines of one kind, in the best order, each with the
 * layers that suit it, by HetPipe's recurrence (planning/search/chain.h). What is left of a kind when groups are made then goes
 * to the stages that are slowest.
 *
 * Decides what a machine's kind is here: its GPU, since places matter for who serves a stage, which is searched for later.
 * Layers are asked about as stages of their own, so each has the overhead of one; memory is that of parameters alone, and the
 * cost has the last word.
 */
#include "planning/problem/cuts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/problem/tables.h"
#include "planning/search/chain.h"
#include "scenarios/plan/memory.h"
#include "scenarios/plan/recut.h"

#define BYTES_MOST ((size_t)64 << 20) /* of the recurrence */

struct kinds {
	const struct skep_planning *p;
	uint32_t kinds, layers, group;
	uint32_t type[SKEP_CHAIN_KINDS_MOST], count[SKEP_CHAIN_KINDS_MOST];
	double speed[SKEP_CHAIN_KINDS_MOST], memory_bytes[SKEP_CHAIN_KINDS_MOST],
		rate_Bps[SKEP_CHAIN_KINDS_MOST * SKEP_CHAIN_KINDS_MOST];
	double *compute_s, *activation_bytes, *layer_bytes, *weight_bytes; /* [layers] */
};

static uint32_t kind_of(const struct kinds *k, uint32_t worker)
{
	uint32_t kind = 0;
	while (kind < k->kinds && k->type[kind] != k->p->type[worker])
		kind++;
	return kind;
}

/* False: too many. */
static bool find_kinds(struct kinds *k)
{
	for (uint32_t i = 0; i < k->p->workers; i++) {
		uint32_t kind = kind_of(k, i);
		if (kind == SKEP_CHAIN_KINDS_MOST)
			return false;
		if (kind == k->kinds) {
			k->type[k->kinds++] = k->p->type[i];
			k->memory_bytes[kind] = (double)k->p->have_bytes[i];
		}
		k->count[kind]++;
	}
	return true;
}

/* Between two kinds: the mean time of a byte, of all links that are there, shared by a group. */
static void find_rates(struct kinds *k)
{
	double sum[SKEP_CHAIN_KINDS_MOST * SKEP_CHAIN_KINDS_MOST] = {0},
					   links[SKEP_CHAIN_KINDS_MOST * SKEP_CHAIN_KINDS_MOST] = {0};
	const double *rate = k->p->rate_Bps[SKEP_CONTENDED];
	for (uint32_t i = 0; i < k->p->workers; i++)
		for (uint32_t j = 0; j < k->p->workers; j++) {
			size_t at = (size_t)kind_of(k, i) * k->kinds + kind_of(k, j);
			double here = rate[(size_t)i * k->p->workers + j];
			if (i == j || !(here > 0))
				continue;
			sum[at] += here < INFINITY ? 1 / here : 0;
			links[at]++;
		}
	for (uint32_t i = 0; i < k->kinds * k->kinds; i++)
		k->rate_Bps[i] = sum[i] > 0 ? k->group * links[i] / sum[i] : INFINITY;
}

/* As large as leaves a group for each stage. */
static void find_groups(struct kinds *k)
{
	uint32_t groups = 0;
	for (k->group = k->p->workers / k->p->stages; k->group > 1; k->group--) {
		groups = 0;
		for (uint32_t i = 0; i < k->kinds; i++)
			groups += k->count[i] / k->group;
		if (groups >= k->p->stages)
			return;
	}
}

static double seconds_of(const struct skep_scenario *single, uint32_t gpu, uint32_t layer)
{
	const struct skep_op_time *time = &single->op_time[(size_t)gpu * single->model.layers + layer];
	return 1e-9 * ((double)time->forward_ns + (double)time->backward_ns);
}

/* `single` has a stage for each layer. False: no memory. */
static bool ask_layers(struct kinds *k, const struct skep_scenario *single)
{
	struct skep_memory_terms terms = skep_memory_terms_of(single);
	uint32_t *serving = calloc(k->layers, sizeof *serving);
	double all[SKEP_CHAIN_KINDS_MOST] = {0};
	for (uint32_t l = 0; serving && l < k->layers; l++)
		serving[l] = k->group;
	terms.serving = serving;
	for (uint32_t l = 0; serving && l < k->layers; l++) {
		struct skep_memory m = skep_memory_of(single, &terms, l, k->type[0]);
		k->compute_s[l] = seconds_of(single, k->type[0], l);
		k->activation_bytes[l] = (double)single->vstage_bytes[l];
		k->layer_bytes[l] = m.weights + m.gradients + m.optimizer;
		for (uint32_t i = 0; i < k->kinds; i++)
			all[i] += seconds_of(single, k->type[i], l);
	}
	for (uint32_t i = 0; i < k->kinds; i++)
		k->speed[i] = k->group * all[0] / all[i];
	bool asked = serving != NULL;
	free(serving);
	return asked;
}

static bool ask_model(struct kinds *k)
{
	struct skep_scenario *of = malloc(sizeof *of), *single = malloc(sizeof *single);
	bool asked = false;
	if (of && single) {
		*of = *k->p->scenario;
		of->plan.stages = k->layers;
		of->model.cuts = 0;
		if (skep_recut_make(of, single)) {
			asked = ask_layers(k, single);
			skep_recut_finish(single);
		}
	}
	free(of);
	free(single);
	return asked;
}

/* ret_stage [stages]. False: no way, or too much to ask. */
static bool order_kinds(const struct kinds *k, struct skep_chain_stage *ret_stage, bool *ret_lacking)
{
	uint32_t groups[SKEP_CHAIN_KINDS_MOST];
	for (uint32_t i = 0; i < k->kinds; i++)
		groups[i] = k->count[i] / k->group;
	const struct skep_chain chain = {.layers = k->layers,
		.compute_s = k->compute_s,
		.weight_bytes = k->weight_bytes,
		.activation_bytes = k->activation_bytes,
		.memory_bytes = k->layer_bytes};
	const struct skep_chain_kinds kinds = {.kinds = k->kinds,
		.count = groups,
		.speed = k->speed,
		.memory_bytes = k->memory_bytes,
		.rate_Bps = k->rate_Bps,
		.stages = k->p->stages};
	size_t size = skep_chain_ordered_size(&chain, &kinds);
	void *mem = size <= BYTES_MOST ? malloc(size) : NULL;
	*ret_lacking = size <= BYTES_MOST && !mem;
	bool found = mem && skep_chain_ordered(&chain, &kinds, mem, ret_stage).stages == k->p->stages;
	free(mem);
	return found;
}

/* ---- who -------------------------------------------------------------------------------------------------------- */

static void deal_groups(const struct kinds *k, const struct skep_chain_stage *stage, uint32_t *ret_stage_of)
{
	for (uint32_t i = 0; i < k->p->workers; i++)
		ret_stage_of[i] = SKEP_UNDECIDED;
	for (uint32_t s = 0; s < k->p->stages; s++)
		for (uint32_t i = 0, given = 0; given < k->group && i < k->p->workers; i++)
			if (ret_stage_of[i] == SKEP_UNDECIDED && kind_of(k, i) == stage[s].kind) {
				ret_stage_of[i] = s;
				given++;
			}
}

/* Seconds of a microbatch at the stage, by all who serve it; with fixed pipelines all have as many, so who has few comes
 * first. */
static double pace_of(const struct skep_planning *p, uint32_t stage, const uint32_t *stage_of)
{
	double rate = 0, workers = 0;
	for (uint32_t i = 0; i < p->workers; i++) {
		if (stage_of[i] != stage)
			continue;
		rate += 1 / p->compute_s[(size_t)i * p->stages + stage];
		workers++;
	}
	if (skep_plan_fixed(&p->scenario->plan))
		return -workers;
	return rate > 0 ? 1 / rate : INFINITY;
}

/* `p` has the tables of the cut. */
static void deal_rest(const struct skep_planning *p, uint32_t *stage_of)
{
	for (uint32_t i = 0; i < p->workers; i++) {
		double slowest = -INFINITY;
		uint32_t best = SKEP_SPARE;
		for (uint32_t s = 0; stage_of[i] == SKEP_UNDECIDED && s < p->stages; s++) {
			double pace = pace_of(p, s, stage_of);
			if (p->compute_s[(size_t)i * p->stages + s] < INFINITY && pace > slowest) {
				slowest = pace;
				best = s;
			}
		}
		stage_of[i] = stage_of[i] == SKEP_UNDECIDED ? best : stage_of[i];
	}
}

bool skep_cutting_begin(struct skep_cutting *c, uint32_t *ret_layers, uint32_t *ret_stage_of)
{
	struct kinds k = {.p = c->from, .layers = c->recut.model.layers};
	struct skep_chain_stage *stage = calloc(c->planning.stages, sizeof *stage);
	double *layer = calloc(4 * (size_t)k.layers, sizeof *layer);
	bool found = false, lacking = false;
	if (stage && layer && skep_plan_model_chunks(&c->recut.plan) == 1 && find_kinds(&k)) {
		k.compute_s = layer;
		k.activation_bytes = layer + k.layers;
		k.layer_bytes = layer + 2 * (size_t)k.layers;
		k.weight_bytes = layer + 3 * (size_t)k.layers;
		find_groups(&k);
		find_rates(&k);
		bool asked = ask_model(&k);
		found = asked && order_kinds(&k, stage, &lacking);
		lacking = lacking || !asked;
	}
	c->lacking = c->lacking || lacking || !stage || !layer;
	if (found) {
		for (uint32_t s = 0; s < c->planning.stages; s++)
			ret_layers[s] = stage[s].layers;
		deal_groups(&k, stage, ret_stage_of);
		skep_recut_set(&c->recut, ret_layers);
		skep_tables_fill(&c->planning);
		deal_rest(&c->planning, ret_stage_of);
	}
	free(stage);
	free(layer);
	return found;
}
