/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - see figures.h.
 */
#include "planning/print/figures.h"

#include <stdlib.h>
#include <string.h>

#include "planning/problem/resolve.h"
#include "planning/problem/run_search.h"
#include "planning/problem/traffic.h"

#define TRAIL_ROOM 4096u

/* ---- complexity --------------------------------------------------------------------------------------------------- */

/* What a step moves, with each worker where the scenario has it. False: it cannot be planned, or memory lacks. */
static bool measure(const struct skep_scenario *s, struct skep_complexity_cut *ret, struct skep_diag *reterr)
{
	struct skep_planning planning;
	struct skep_planning_traffic traffic;
	if (!skep_planning_make(s, &planning, reterr))
		return false;
	uint32_t *stage_of = calloc(planning.workers, sizeof *stage_of);
	bool measured = stage_of != NULL;
	if (measured) {
		skep_planning_start(&planning, stage_of);
		measured = skep_planning_traffic(&planning, stage_of, &traffic);
	}
	if (measured) {
		*ret = (struct skep_complexity_cut){
			.stages = planning.stages, .closed = {traffic.closed.pipeline, traffic.closed.reduction}};
		for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++) {
			ret->on[i][0] = traffic.on[i].pipeline;
			ret->on[i][1] = traffic.on[i].reduction;
		}
	} else {
		skep_fail(reterr, "not enough memory for this picture");
	}
	free(stage_of);
	skep_planning_finish(&planning);
	return measured;
}

/* The same scenario with other numbers of stages, by its own method, or contiguous where the method is for one number alone.
 * Memory is no matter here: bytes move whether a stage fits or not. */
static bool read_cut(const char *path, const struct skep_scenario_options *given, const struct skep_scenario *own,
	uint32_t stages, struct skep_scenario *ret)
{
	struct skep_scenario_options options = *given;
	struct skep_diag diag = {0};
	char cut[48];
	const char **set = malloc((given->sets + 2) * sizeof *set);
	if (!set)
		return false;
	snprintf(cut, sizeof cut, "model.stages=%u", stages);
	for (uint32_t i = 0; i < given->sets; i++)
		set[i] = given->set[i];
	set[options.sets++] = cut;
	if (own->allocation >= SKEP_ALLOCATION_EXPLICIT)
		set[options.sets++] = "cluster.allocation={method: contiguous}";
	options.set = set;
	options.details = NULL;
	options.any_memory = true;
	bool read = skep_resolve_file(path, &options, ret, &diag);
	free(set);
	return read;
}

/* A cut that cannot be read or planned is left out. */
static void measure_cut(const char *path, const struct skep_scenario_options *options, const struct skep_scenario *own,
	uint32_t stages, struct skep_complexity_figure *f)
{
	struct skep_scenario s;
	struct skep_diag error = {0};
	if (f->cuts == SKEP_COMPLEXITY_CUTS_MAX || !read_cut(path, options, own, stages, &s))
		return;
	f->cuts += measure(&s, &f->cut[f->cuts], &error);
	skep_scenario_finish(&s);
}

/* The scenario's own cut lies between two of the others where its number of stages is none of theirs. */
static bool measure_all(const char *path, const struct skep_scenario_options *options, const struct skep_scenario *s,
	struct skep_complexity_figure *f, struct skep_diag *reterr)
{
	uint32_t most = s->model.layers < s->plan.workers ? s->model.layers : s->plan.workers;
	bool measured = false;
	for (uint32_t stages = 1; stages <= most; stages += 1 + stages / 16) {
		if (stages >= s->plan.stages && !measured) {
			f->own = f->cuts;
			measured = true;
			if (!measure(s, &f->cut[f->cuts++], reterr))
				return false;
		}
		if (stages != s->plan.stages)
			measure_cut(path, options, s, stages, f);
	}
	return true;
}

bool skep_figure_complexity(const char *path, const struct skep_scenario_options *options,
	const struct skep_scenario *s, struct skep_complexity_figure *f, struct skep_diag *reterr)
{
	f->classes = SKEP_LINK_CLASSES;
	f->period = skep_plan_mean_steps(&s->plan);
	f->steps = (uint32_t)skep_plan_steps_before(&s->plan, s->plan.rounds);
	snprintf(f->title, sizeof f->title, "%s: bytes that move, by class of link", s->name);
	for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++)
		f->name[i] = skep_link_class_name[i];
	for (uint32_t i = 0; i < skep_plan_vstages(&s->plan); i++)
		f->parameters += (double)s->cost[i].parameters;
	return measure_all(path, options, s, f, reterr);
}

/* ---- search ------------------------------------------------------------------------------------------------------- */

static bool trail(const struct skep_planning *p, uint64_t seed, enum skep_method method, struct skep_trail *points,
	uint32_t *stage_of, struct skep_search_figure *f)
{
	const struct skep_planning_search search = {
		.method = method, .view = SKEP_CONTENDED, .seed = seed, .trail = points};
	struct skep_found found;
	points->points = 0;
	if (!skep_planning_search(p, &search, stage_of, &found))
		return false;
	for (uint32_t i = 0; i <= points->points; i++) {
		bool end = i == points->points;
		struct skep_search_dot dot = {(double)found.evaluations, found.cost};
		if (!end)
			dot = (struct skep_search_dot){(double)points->point[i].evaluations, points->point[i].cost};
		if (dot.cost_s < SKEP_NEVER && !skep_search_figure_add(f, "", skep_method_name(method), dot))
			return false;
	}
	return true;
}

static bool search_all(const struct skep_planning *p, uint64_t seed, struct skep_search_figure *f)
{
	struct skep_trail points = {.point = calloc(TRAIL_ROOM, sizeof *points.point), .room = TRAIL_ROOM};
	uint32_t *stage_of = calloc(p->workers, sizeof *stage_of);
	bool done = points.point && stage_of;
	for (uint32_t m = 0; done && m < SKEP_METHODS; m++)
		if (m != SKEP_METHOD_EXACT) /* for small pools alone */
			done = trail(p, seed, (enum skep_method)m, &points, stage_of, f);
	free(points.point);
	free(stage_of);
	return done;
}

bool skep_figure_search(const struct skep_scenario *s, struct skep_search_figure *ret, struct skep_diag *reterr)
{
	struct skep_planning planning;
	struct skep_diag error = {0};
	if (!skep_planning_make(s, &planning, &error))
		return skep_fail(reterr, "%s: error: %s", s->path, error.message);
	bool searched = search_all(&planning, s->seed, ret);
	snprintf(ret->title, sizeof ret->title, "%s: a step by the cost of the searches, as they bring it down",
		s->name);
	if (!searched || ret->panels == 0)
		skep_fail(reterr, "%s",
			searched ? "no search found an allocation that can be" : "not enough memory for this picture");
	skep_planning_finish(&planning);
	return searched && ret->panels > 0;
}
