/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts.c - see cuts.h. While layers are dealt out by the recurrence the tables hold one stage after the other with layers that
 * are looked at; set() makes them those of one cut again, and nothing is read from them in between.
 */
#include "planning/problem/cuts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/problem/run_search.h"
#include "planning/problem/tables.h"
#include "planning/search/layers_cut.h"
#include "scenarios/plan/recut.h"

#define ROUNDS 6u
#define RANGES 8000.0      /* of layers, all stages together, that the recurrence is asked about */
#define EVALUATIONS 4000.0 /* of a search between two cuts, in a small pool */
#define NEAR_WORKERS 64u   /* in pools of so many the neighbours of a cut are looked at ... */
#define NEAR_VSTAGES 16u
#define NEAR_EVALUATIONS 1200.0 /* ... with so many */
#define NEAR_PASSES 3u
#define FEW_WORKERS 12u  /* in pools of so many all cuts are looked at, if they are ... */
#define CUTS_FEW 100u    /* ... no more than this */
#define WIDE_WORKERS 48u /* in pools of so many the portfolio makes the longer searches */
#define SHIFTS 64u       /* of a layer across a boundary */

static bool better(double now, double before)
{
	return before < SKEP_NEVER ? now < before * (1 - 1e-9) : now < SKEP_NEVER;
}

bool skep_cuts_possible(const struct skep_scenario *s)
{
	uint32_t vstages = skep_plan_vstages(&s->plan);
	return vstages > 1 && s->model.layers > vstages && s->model.layers <= SKEP_CUT_LAYERS_MOST;
}

bool skep_cutting_make(const struct skep_planning *from, struct skep_cutting *c)
{
	*c = (struct skep_cutting){.from = from, .vstages = skep_plan_vstages(&from->scenario->plan)};
	if (!skep_recut_make(from->scenario, &c->recut))
		return false;
	c->planning = *from;
	c->planning.scenario = &c->recut;
	bool ok = skep_tables_make(&c->planning);
	c->trial = calloc(c->vstages, sizeof *c->trial);
	c->size = calloc(from->stages, sizeof *c->size);
	if (ok) {
		skep_tables_fill(&c->planning);
		c->cost_memory[0] = malloc(skep_throughput_size(&c->planning.throughput[0]));
		c->cost_memory[1] = malloc(skep_throughput_size(&c->planning.throughput[0]));
	}
	ok = ok && c->trial && c->size && c->cost_memory[0] && c->cost_memory[1];
	if (ok)
		skep_cutting_aim(c, SKEP_CONTENDED, false, false);
	else
		skep_cutting_finish(c);
	return ok;
}

void skep_cutting_finish(struct skep_cutting *c)
{
	skep_tables_finish(&c->planning);
	skep_recut_finish(&c->recut);
	free(c->trial);
	free(c->size);
	free(c->cost_memory[0]);
	free(c->cost_memory[1]);
	*c = (struct skep_cutting){.from = NULL};
}

/* Anew, for what a search takes from them is of the tables as they are now. */
static void make_costs(struct skep_cutting *c)
{
	struct skep_throughput t = c->planning.throughput[c->view];
	c->cost[0] = c->cost[1] = skep_throughput_init(c->cost_memory[0], &t);
	t.rent = c->paid ? c->planning.rent : NULL;
	t.standing_rent = c->planning.standing_rent;
	if (t.rent)
		c->cost[1] = skep_throughput_init(c->cost_memory[1], &t);
}

void skep_cutting_aim(struct skep_cutting *c, enum skep_contention view, bool lean, bool paid)
{
	c->all = c->all && c->view == view && c->lean == lean && c->paid == paid;
	c->view = view;
	c->lean = lean;
	c->paid = paid;
	make_costs(c);
}

/* The tables are those of this cut. */
static void set(struct skep_cutting *c, const uint32_t *layers)
{
	skep_recut_set(&c->recut, layers);
	skep_tables_fill(&c->planning);
}

static double ask(struct skep_cutting *c, const uint32_t *stage_of)
{
	return c->cost[1]->whole(c->cost[1]->self, stage_of);
}

double skep_cutting_expect(
	struct skep_cutting *c, enum skep_contention view, const uint32_t *layers, const uint32_t *stage_of)
{
	struct skep_throughput t;
	set(c, layers);
	t = c->planning.throughput[view];
	const struct skep_objective *cost = skep_throughput_init(c->cost_memory[0], &t);
	double value = cost->whole(cost->self, stage_of);
	make_costs(c);
	return value;
}

/* ---- a cut for an allocation ---------------------------------------------------------------------------------------- */

static struct skep_throughput_stage stage_with(void *self, uint32_t stage, uint32_t first, uint32_t end)
{
	struct skep_cutting *c = self;
	skep_recut_set_vstage(&c->recut, stage, first, end);
	skep_tables_stage(&c->planning, stage);
	return skep_throughput_measure(c->cost[0], stage);
}

/* Asked right after stage_with(). `trial` has the types that serve the stage, as marks. */
struct asking {
	struct skep_cutting *c;
	bool *serves; /* [stages * gpus] */
};

static struct skep_throughput_stage ask_stage(void *self, uint32_t stage, uint32_t first, uint32_t end)
{
	return stage_with(((struct asking *)self)->c, stage, first, end);
}

static bool ask_room(void *self, uint32_t stage, uint32_t first, uint32_t end)
{
	const struct asking *a = self;
	uint32_t gpus = a->c->recut.topology.gpus;
	(void)first;
	(void)end;
	for (uint32_t gpu = 0; gpu < gpus; gpu++)
		if (a->serves[(size_t)stage * gpus + gpu] &&
			!skep_memory_limits_queries(&a->c->planning.room, stage, gpu, a->c->size))
			return false;
	return true;
}

/* Where stages may begin: anywhere, or, where that is too much to ask, around where they begin now. */
static void limit(const struct skep_cutting *c, const uint32_t *layers, uint32_t *low, uint32_t *high)
{
	uint32_t stages = c->vstages, all = c->recut.model.layers, around = all;
	double ranges = INFINITY;
	for (; ranges > RANGES && around > 0; around = around > 1 ? around / 2 : 0) {
		ranges = 0;
		for (uint32_t s = 0, first = 0; s <= stages; first += s < stages ? layers[s] : 0, s++) {
			uint32_t least = s, most = all - (stages - s);
			low[s] = first > least + around ? first - around : least;
			high[s] = first + around < most ? first + around : most;
			if (s == 0 || s == stages)
				low[s] = high[s] = first;
			if (s > 0)
				ranges += (double)(high[s - 1] - low[s - 1] + 1) * (high[s] - low[s] + 1);
		}
	}
}

static void count_sizes(const struct skep_cutting *c, const uint32_t *stage_of, bool *serves)
{
	uint32_t gpus = c->recut.topology.gpus;
	memset(c->size, 0, c->planning.stages * sizeof *c->size);
	for (uint32_t i = 0; i < c->planning.workers; i++) {
		if (stage_of[i] >= c->planning.stages)
			continue;
		c->size[stage_of[i]]++;
		serves[(size_t)stage_of[i] * gpus + c->planning.type[i]] = true;
	}
}

static double turn_s(const struct skep_cutting *c, const uint32_t *stage_of)
{
	double first_s = 0, longest_s = 0;
	for (uint32_t i = 0; i < c->planning.workers; i++) {
		if (stage_of[i] >= c->planning.stages)
			continue;
		longest_s = fmax(longest_s, c->planning.directory_s[i]);
		first_s = stage_of[i] == 0 ? fmax(first_s, c->planning.directory_s[i]) : first_s;
	}
	return skep_throughput_turn_s(&c->planning.throughput[c->view], first_s, longest_s);
}

/* ret_layers is the best cut for this allocation, if one is expected to take less than `worth`. */
static bool find_cut(
	struct skep_cutting *c, const uint32_t *layers, const uint32_t *stage_of, double worth_s, uint32_t *ret_layers)
{
	uint32_t stages = c->vstages, *edge = calloc(3 * ((size_t)stages + 1), sizeof *edge);
	struct asking asking = {.c = c, .serves = calloc((size_t)stages * c->recut.topology.gpus, 1)};
	bool found = false;
	void *mem = NULL;
	if (edge && asking.serves) {
		uint32_t *low = edge, *high = low + stages + 1, *first = high + stages + 1;
		limit(c, layers, low, high);
		count_sizes(c, stage_of, asking.serves);
		const struct skep_cuts cuts = {.layers = c->recut.model.layers,
			.stages = stages,
			.low = low,
			.high = high,
			.stage = ask_stage,
			.fits = ask_room,
			.self = &asking,
			.throughput = &c->planning.throughput[c->view],
			.first_workers = c->size[0],
			.outstanding = skep_throughput_outstanding(&c->planning.throughput[c->view], c->size),
			.turn_s = turn_s(c, stage_of),
			.worth = worth_s};
		skep_tables_times(&c->planning);
		c->cost[0]->whole(c->cost[0]->self, stage_of);
		mem = malloc(skep_cuts_size(&cuts));
		c->lacking = c->lacking || !mem;
		found = mem && skep_cuts_find(&cuts, mem, first) < SKEP_NEVER;
		for (uint32_t s = 0; found && s < stages; s++)
			ret_layers[s] = first[s + 1] - first[s];
	}
	c->lacking = c->lacking || !edge || !asking.serves;
	free(mem);
	free(asking.serves);
	free(edge);
	return found;
}

/* Whatever happens, the tables are those of `layers` afterwards. */
static bool recut(struct skep_cutting *c, uint32_t *layers, const uint32_t *stage_of, double *cost)
{
	double rent = c->cost[0] != c->cost[1] ? c->planning.standing_rent : 0;
	for (uint32_t i = 0; c->cost[0] != c->cost[1] && i < c->planning.workers; i++)
		rent += stage_of[i] < c->planning.stages ? c->planning.rent[i] : 0;
	double now = SKEP_NEVER, worth_s = *cost < SKEP_NEVER && rent > 0 ? *cost / rent : *cost;
	worth_s = worth_s < SKEP_NEVER ? worth_s / skep_planning_rounds(&c->planning, stage_of) : worth_s;
	if (find_cut(c, layers, stage_of, worth_s, c->trial)) {
		set(c, c->trial);
		now = ask(c, stage_of);
	}
	bool is = better(now, *cost);
	if (is)
		memcpy(layers, c->trial, c->vstages * sizeof *layers);
	else
		set(c, layers);
	*cost = is ? now : *cost;
	return is;
}

/* A layer across a boundary: of virtual stage `from` to the one behind (1) or before. False: it has but one. */
static bool move_layer(const struct skep_cutting *c, const uint32_t *layers, uint32_t from, bool behind, uint32_t *ret)
{
	if (layers[from] < 2 || (behind ? from + 1 >= c->vstages : from == 0))
		return false;
	memcpy(ret, layers, c->vstages * sizeof *layers);
	ret[from]--;
	ret[behind ? from + 1 : from - 1]++;
	return true;
}

static bool shift(struct skep_cutting *c, uint32_t *layers, const uint32_t *stage_of, double *cost)
{
	bool any = false;
	for (uint32_t idle = 0, i = 0, moves = 0; idle < 2 * c->vstages && moves < SHIFTS; i++) {
		idle++;
		if (!move_layer(c, layers, i / 2 % c->vstages, i % 2, c->trial))
			continue;
		set(c, c->trial);
		double now = ask(c, stage_of);
		if (!better(now, *cost))
			continue;
		*cost = now;
		memcpy(layers, c->trial, c->vstages * sizeof *layers);
		any = true;
		idle = 0;
		moves++;
	}
	set(c, layers);
	return any;
}

/* ---- an allocation for a cut ---------------------------------------------------------------------------------------- */

/* The portfolio looks at all allocations where they are few; else it takes a while whatever it is allowed. */
static enum skep_method method_for(const struct skep_cutting *c, double all)
{
	bool few = pow(c->planning.stages, c->planning.workers) <= all, wide = all >= EVALUATIONS;
	return few || (wide && c->planning.workers <= WIDE_WORKERS) ? SKEP_METHOD_PORTFOLIO : SKEP_METHOD_ANNEAL;
}

/* With the tables as they are. False: nothing better. */
static bool reallocate(
	struct skep_cutting *c, uint64_t seed, double all, uint32_t *stage_of, double *cost, uint64_t *evaluations)
{
	const struct skep_problem *problem = c->lean ? &c->planning.lean : &c->planning.problem;
	void *scratch = malloc(skep_problem_scratch_size(problem) + 1);
	uint32_t *found_of = calloc(c->planning.workers, sizeof *found_of);
	bool is = false;
	if (scratch && found_of && skep_problem_check(problem, scratch).fault == SKEP_PROBLEM_FINE) {
		make_costs(c);
		const struct skep_planning_search search = {.method = method_for(c, all),
			.problem = problem,
			.cost = c->cost[1],
			.evaluations = skep_planning_evaluations(SKEP_METHOD_ANNEAL, c->planning.workers, all),
			.seed = seed,
			.start = skep_problem_allows(problem, stage_of, c->size) ? stage_of : NULL};
		struct skep_found found;
		bool searched = skep_planning_search(&c->planning, &search, found_of, &found);
		c->lacking = c->lacking || !searched;
		if (searched) {
			*evaluations += found.evaluations;
			is = better(found.cost, *cost);
		}
		if (is) {
			memcpy(stage_of, found_of, c->planning.workers * sizeof *stage_of);
			*cost = ask(c, stage_of);
		}
	}
	c->lacking = c->lacking || !scratch || !found_of;
	free(scratch);
	free(found_of);
	return is;
}

/* ---- both ----------------------------------------------------------------------------------------------------------- */

struct both { /* the best so far, and what is looked at */
	uint64_t seed;
	uint32_t *layers, *stage_of, *cut, *other;
	double *cost;
	uint64_t *evaluations;
};

/* The tables are those of some cut afterwards. True: it is better than the best. */
static bool try_cut(struct skep_cutting *c, struct both *b)
{
	double now = *b->cost;
	memcpy(b->other, b->stage_of, c->planning.workers * sizeof *b->other);
	set(c, b->cut);
	if (!reallocate(c, b->seed, NEAR_EVALUATIONS, b->other, &now, b->evaluations))
		return false;
	memcpy(b->layers, b->cut, c->vstages * sizeof *b->layers);
	memcpy(b->stage_of, b->other, c->planning.workers * sizeof *b->other);
	*b->cost = now;
	return true;
}

/* All cuts that differ in one layer. */
static bool look_around(struct skep_cutting *c, struct both *b)
{
	bool any = false;
	for (uint32_t i = 0; i < 2 * c->vstages; i++)
		if (move_layer(c, b->layers, i / 2, i % 2, b->cut))
			any = try_cut(c, b) || any;
	set(c, b->layers);
	return any;
}

/* How many cuts there are, up to CUTS_FEW and one more. */
static uint32_t count_cuts(const struct skep_cutting *c)
{
	double cuts = 1, layers = c->recut.model.layers;
	for (uint32_t i = 1; i < c->vstages && cuts <= CUTS_FEW; i++)
		cuts = cuts * (layers - i) / i;
	return cuts > CUTS_FEW ? CUTS_FEW + 1 : (uint32_t)(cuts + 0.5);
}

/* All cuts, virtual stages from `vstage` on having `left` layers. */
static void look_at_all(struct skep_cutting *c, struct both *b, uint32_t vstage, uint32_t left)
{
	if (vstage + 1 == c->vstages) {
		b->cut[vstage] = left;
		try_cut(c, b);
		return;
	}
	for (uint32_t n = 1; n + (c->vstages - vstage - 1) <= left; n++) {
		b->cut[vstage] = n;
		look_at_all(c, b, vstage + 1, left - n);
	}
}

static void alternate(struct skep_cutting *c, uint64_t seed, uint32_t *layers, uint32_t *stage_of, double *cost,
	uint64_t *evaluations)
{
	bool one = skep_plan_model_chunks(&c->recut.plan) == 1, moved = true;
	for (uint32_t round = 0; moved && round < ROUNDS; round++) {
		moved = one && recut(c, layers, stage_of, cost);
		moved = (!one && shift(c, layers, stage_of, cost)) || moved;
		if (!moved && round > 0)
			return;
		moved = reallocate(c, seed + round, EVALUATIONS, stage_of, cost, evaluations);
	}
}

/* What alternating cannot reach. */
static void look_further(struct skep_cutting *c, struct both *b)
{
	if (!c->all && c->planning.workers <= FEW_WORKERS && count_cuts(c) <= CUTS_FEW) {
		look_at_all(c, b, 0, c->recut.model.layers);
		set(c, b->layers);
		c->all = true;
		alternate(c, b->seed, b->layers, b->stage_of, b->cost, b->evaluations);
	}
	for (uint32_t pass = 0; pass < NEAR_PASSES && look_around(c, b); pass++)
		alternate(c, b->seed, b->layers, b->stage_of, b->cost, b->evaluations);
}

double skep_cutting_improve(
	struct skep_cutting *c, uint64_t seed, uint32_t *layers, uint32_t *stage_of, uint64_t *evaluations)
{
	set(c, layers);
	double cost = ask(c, stage_of);
	alternate(c, seed, layers, stage_of, &cost, evaluations);
	if (c->planning.workers > NEAR_WORKERS || c->vstages > NEAR_VSTAGES)
		return cost;
	struct both b = {.seed = seed,
		.layers = layers,
		.stage_of = stage_of,
		.cut = calloc(c->vstages, sizeof *b.cut),
		.other = calloc(c->planning.workers, sizeof *b.other),
		.cost = &cost,
		.evaluations = evaluations};
	if (b.cut && b.other)
		look_further(c, &b);
	else
		c->lacking = true;
	free(b.cut);
	free(b.other);
	return cost;
}

double skep_cutting_recut(struct skep_cutting *c, uint32_t *layers, const uint32_t *stage_of)
{
	set(c, layers);
	double cost = ask(c, stage_of);
	if (skep_plan_model_chunks(&c->recut.plan) == 1)
		recut(c, layers, stage_of, &cost);
	shift(c, layers, stage_of, &cost);
	return cost;
}

/* From one beginning; false: it leads to nothing that can be. */
static bool leads(struct skep_cutting *c, uint64_t seed, uint32_t *layers, uint32_t *stage_of)
{
	uint64_t evaluations = 0;
	return skep_cutting_improve(c, seed, layers, stage_of, &evaluations) < SKEP_NEVER;
}

/* In the order of their memory, the largest first or last. */
static void deal_by_memory(const struct skep_cutting *c, bool largest_first, uint32_t *ret_stage_of)
{
	const struct skep_planning *p = &c->planning;
	for (uint32_t i = 0; i < p->workers; i++) {
		uint32_t place = 0;
		for (uint32_t j = 0; j < p->workers; j++)
			place += p->have_bytes[j] == p->have_bytes[i]
			                 ? j < i
			                 : (p->have_bytes[j] > p->have_bytes[i]) == largest_first;
		ret_stage_of[i] = (uint32_t)((uint64_t)place * p->stages / p->workers);
	}
}

bool skep_cutting_any(struct skep_cutting *c, uint64_t seed, uint32_t tries, uint32_t *layers, uint32_t *stage_of)
{
	skep_cutting_aim(c, SKEP_CONTENDED, false, false);
	if (skep_cutting_begin(c, layers, stage_of) && leads(c, seed, layers, stage_of))
		return true;
	for (uint32_t i = 0; i + 1 < tries; i++) {
		skep_recut_of(c->from->scenario, layers);
		if (i == 0)
			skep_planning_start(c->from, stage_of);
		else if (i < 3)
			deal_by_memory(c, i == 1, stage_of);
		else
			skep_planning_random(c->from, seed + i, stage_of);
		if (leads(c, seed, layers, stage_of))
			return true;
	}
	return false;
}
