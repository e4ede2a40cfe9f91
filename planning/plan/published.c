/* SPDX-License-Identifier: Apache-2.0
 *
 * published.c - see searches.h. Decides what a scenario is to PipeDream's partitioner
 * (planning/search/published/pipedream.h), which knows equal machines on levels of bandwidth alone: machines have the mean
 * speed of those that are there; levels are the machines of a site and the sites, where all sites have as many, else all
 * machines are one level; bandwidth is the mean of what a flow gets alone. Its minibatch is a microbatch here, and weights are
 * summed when the scenario sums them.
 */
#include "planning/plan/searches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedule/pipelines.h"
#include "planning/search/published/pipedream.h"
#include "scenarios/plan/recut.h"

#define WAYS_MOST 4e9 /* some ten seconds */

struct work {
	struct skep_planner *w;
	const struct skep_planning *p;
	uint32_t layers, sites, inside; /* sites 1: one level */
	uint32_t *order;                /* [workers] those of a site in a row */
	uint32_t *stage_of, *found_of;  /* [workers], and as in `order` */
	double *layer;                  /* [3 * layers] */
	struct skep_chain_stage *stage; /* [layers] */
	uint32_t stages;
	struct skep_chain chain;
	struct skep_pipedream pipedream;
};

static uint32_t place_of(const struct work *k, uint32_t worker)
{
	return k->p->scenario->topology.machine[k->p->machine[worker]].place;
}

/* ---- the machines --------------------------------------------------------------------------------------------------- */

static void find_sites(struct work *k)
{
	uint32_t at = 0, places = k->p->scenario->topology.places, sites = 0, inside = 0;
	bool equal = true;
	for (uint32_t place = 0; place < places; place++) {
		uint32_t before = at;
		for (uint32_t i = 0; i < k->p->workers; i++)
			if (place_of(k, i) == place)
				k->order[at++] = i;
		if (at == before)
			continue;
		equal = equal && (sites == 0 || at - before == inside);
		inside = at - before;
		sites++;
	}
	k->sites = equal && inside > 1 ? sites : 1;
	k->inside = k->p->workers / k->sites;
}

/* Of all links inside of sites, or of all across them: by the mean time of a byte. */
static double find_rate(const struct work *k, bool across)
{
	const double *rate = k->p->rate_Bps[SKEP_UNCONTENDED];
	double sum = 0, links = 0;
	for (uint32_t i = 0; i < k->p->workers; i++)
		for (uint32_t j = 0; j < k->p->workers; j++) {
			double here = rate[(size_t)i * k->p->workers + j];
			if (i == j || !(here > 0) || (k->sites > 1 && (place_of(k, i) != place_of(k, j)) != across))
				continue;
			sum += here < INFINITY ? 1 / here : 0;
			links++;
		}
	return sum > 0 ? links / sum : INFINITY;
}

/* ---- the layers ----------------------------------------------------------------------------------------------------- */

/* Of a machine of the mean speed. */
static double seconds_of(const struct work *k, const struct skep_scenario *single, uint32_t layer)
{
	double speed = 0;
	for (uint32_t i = 0; i < k->p->workers; i++) {
		const struct skep_op_time *t = &single->op_time[(size_t)k->p->type[i] * k->layers + layer];
		speed += 1e9 / ((double)t->forward_ns + (double)t->backward_ns) /
		         skep_scenario_crowding(k->p->scenario, k->p->machine[i]);
	}
	return k->p->workers / speed;
}

/* The model with a stage for each layer. False: no memory. */
static bool ask_layers(struct work *k)
{
	struct skep_scenario *of = malloc(sizeof *of), *single = malloc(sizeof *single);
	bool asked = false;
	if (of && single) {
		*of = *k->p->scenario;
		of->plan.stages = k->layers;
		of->model.cuts = 0;
		asked = skep_recut_make(of, single);
	}
	for (uint32_t l = 0; asked && l < k->layers; l++) {
		k->layer[l] = seconds_of(k, single, l);
		k->layer[k->layers + l] = (double)skep_codec_bytes(
			of->plan.reduction.codec, of->plan.reduction.block, single->stage[l].parameters);
		k->layer[2 * (size_t)k->layers + l] = (double)single->vstage_bytes[l];
	}
	if (asked)
		skep_recut_finish(single);
	free(of);
	free(single);
	return asked;
}

/* ---- asking --------------------------------------------------------------------------------------------------------- */

static void pose(struct work *k, bool tool)
{
	const struct skep_plan *plan = &k->p->scenario->plan;
	k->chain = (struct skep_chain){.layers = k->layers,
		.compute_s = k->layer,
		.weight_bytes = k->layer + k->layers,
		.activation_bytes = k->layer + 2 * (size_t)k->layers};
	k->pipedream = (struct skep_pipedream){.chain = &k->chain,
		.levels = k->sites > 1 ? 2 : 1,
		.level = {{k->inside, find_rate(k, false)}, {k->sites, find_rate(k, true)}},
		.microbatches_per_sum =
			(double)plan->microbatches / skep_plan_most_steps(plan) * skep_plan_mean_steps(plan),
		.tool = tool};
}

static enum status find(struct work *k)
{
	double ways = skep_pipedream_ways(&k->pipedream);
	if (ways > WAYS_MOST)
		return skep_planner_refuse(k->w,
			"plan.method: %s has %.2g ways to look at for %u layers and %u workers, and %.0g are too many; "
			"take `search`, or a model of fewer layers",
			k->w->published, ways, k->layers, k->p->workers, WAYS_MOST);
	void *mem = malloc(skep_pipedream_size(&k->pipedream));
	if (!mem)
		return skep_planner_lack(k->w);
	k->stages = skep_pipedream_find(&k->pipedream, mem, k->stage, k->found_of).stages;
	for (uint32_t i = 0; i < k->p->workers; i++)
		k->stage_of[k->order[i]] = k->found_of[i];
	free(mem);
	return STATUS_DONE;
}

/* Some fixed pipelines are so many times one worker of each stage. */
static enum status check(const struct work *k)
{
	char text[200] = "";
	bool equal = true;
	for (uint32_t s = 0; s < k->stages; s++) {
		size_t at = strlen(text);
		if (at + 16 < sizeof text)
			snprintf(text + at, sizeof text - at, "%s%u", s > 0 ? "-" : "", k->stage[s].machines);
		equal = equal && k->stage[s].machines == k->stage[0].machines;
	}
	enum skep_pipeline pipeline = k->p->scenario->plan.pipeline;
	if (equal || pipeline == SKEP_PIPELINE_SWARM || skep_pipeline_may_be_uneven(pipeline))
		return STATUS_DONE;
	return skep_planner_refuse(k->w,
		"plan.method: %s gives the stages %s workers, and schedule.pipeline has as many in each stage; take "
		"`1f1b`, `pipedream` or `swarm`, or plan.method: search",
		k->w->published, text);
}

/* ---- taking it over ------------------------------------------------------------------------------------------------- */

static bool add(struct skep_planner *w, char *assignment)
{
	bool added = skep_assignments_add(&w->with, assignment);
	free(assignment);
	return added;
}

enum status skep_published_reopen(struct skep_planner *w)
{
	struct skep_diag diag = {0};
	skep_scenario_finish(&w->scenario);
	w->cuts = false;
	if (skep_planner_open(w, &diag))
		return STATUS_DONE;
	w->error = diag;
	return STATUS_BAD_INPUT;
}

static enum status take_over(struct work *k)
{
	struct skep_planner *w = k->w;
	uint32_t *cut = calloc(k->stages, sizeof *cut);
	char *stages = NULL;
	if (!cut || asprintf(&stages, "model.stages=%u", k->stages) < 0)
		stages = NULL;
	for (uint32_t s = 0; cut && s < k->stages; s++)
		cut[s] = k->stage[s].layers;
	w->before_cut = w->with.sets;
	w->recut = true;
	bool ok = cut && add(w, stages) && add(w, skep_planning_assignment(k->p, k->stage_of)) &&
	          skep_assignments_add(&w->with, "plan.method=search") &&
	          skep_assignments_add(&w->with, "plan.cut=fixed") && add(w, skep_recut_assignment(cut, k->stages));
	free(cut);
	if (!ok)
		return skep_planner_lack(w);
	skep_planning_finish(&w->planning);
	return skep_published_reopen(w);
}

static enum status work(struct work *k, bool tool)
{
	uint32_t workers = k->p->workers;
	k->layers = k->p->scenario->model.layers;
	k->order = calloc(3 * (size_t)workers, sizeof *k->order);
	k->layer = calloc(3 * (size_t)k->layers, sizeof *k->layer);
	k->stage = calloc(k->layers, sizeof *k->stage);
	if (!k->order || !k->layer || !k->stage || !ask_layers(k))
		return skep_planner_lack(k->w);
	k->stage_of = k->order + workers;
	k->found_of = k->stage_of + workers;
	find_sites(k);
	pose(k, tool);
	enum status status = find(k);
	if (status == STATUS_DONE)
		status = check(k);
	return status == STATUS_DONE ? take_over(k) : status;
}

enum status skep_published_take(struct skep_planner *w)
{
	const struct skep_planned *planned = w->scenario.planned;
	if (!planned || planned->method == SKEP_PLANNED_SEARCH)
		return STATUS_DONE;
	w->published = skep_planned_method_name(planned->method);
	if (w->scenario.model.layers > SKEP_PIPEDREAM_LAYERS)
		return skep_planner_refuse(w,
			"plan.method: %s looks at models of at most %u layers, this has %u; take `search`",
			w->published, SKEP_PIPEDREAM_LAYERS, w->scenario.model.layers);
	if (w->scenario.codecs)
		return skep_planner_refuse(w,
			"plan.method: %s looks for the number of stages, and sync.compression has a codec for each of %u; "
			"take one for all, or `search`",
			w->published, w->scenario.plan.stages);
	if (skep_plan_model_chunks(&w->scenario.plan) > 1)
		return skep_planner_refuse(w,
			"plan.method: %s has one virtual stage in each stage, and schedule.model_chunks has %u; take `search`",
			w->published, skep_plan_model_chunks(&w->scenario.plan));
	if (planned->method == SKEP_PLANNED_ALPA)
		return skep_alpa_take(w);
	if (!skep_planning_pose(&w->scenario, &w->planning, &w->error))
		return STATUS_BAD_INPUT;
	struct work k = {.w = w, .p = &w->planning};
	enum status status = work(&k, planned->method == SKEP_PLANNED_PIPEDREAM_TOOL);
	free(k.order);
	free(k.layer);
	free(k.stage);
	return status;
}
