/* SPDX-License-Identifier: Apache-2.0
 *
 * plot.c - see plot.h. What the pictures show comes from planning/: bytes of a step by class of link, cut by cut, and how each
 * search came down by itself, with what `skep plan` lets it ask.
 */
#include "commands/plot.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/plot_complexity.h"
#include "analysis/plot_search.h"
#include "commands/output.h"
#include "planning/read.h"
#include "planning/search.h"
#include "planning/traffic.h"
#include "scenarios/periodic.h"

#define TRAIL_ROOM 4096u

static enum status refuse(const char *what)
{
	fprintf(stderr, "skep: %s\n", what);
	return STATUS_BAD_INPUT;
}

static enum status lack(void)
{
	fprintf(stderr, "skep: not enough memory for this picture\n");
	return STATUS_FAILED;
}

bool skep_plot_is_of_scenario(const char *kind)
{
	return strcmp(kind, "complexity") == 0 || strcmp(kind, "search") == 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), last = strlen(end);
	return length >= last && strcmp(text + length - last, end) == 0;
}

/* Memory is no matter here: bytes move whether a stage fits or not. */
static bool read_scenario(
	const struct arguments *a, const char *const *more, uint32_t mores, FILE *say, struct skep_scenario *ret)
{
	struct skep_scenario_options options = a->scenario;
	struct skep_diag diag = {0};
	const char *set[SETS_MAX + 2];
	char text[2048];
	memcpy(set, options.set, options.sets * sizeof *set);
	for (uint32_t i = 0; i < mores; i++)
		set[options.sets++] = more[i];
	options.set = set;
	options.details = say;
	options.any_memory = true;
	if (skep_planning_read(a->positional[1], &options, ret, &diag))
		return true;
	if (say) {
		skep_diag_print(&diag, text, sizeof text);
		fputs(text, say);
	}
	return false;
}

static enum status drawn(const struct arguments *a, bool done, const char *error)
{
	if (!done)
		return refuse(error);
	if (a->json)
		printf("{\"plot\":\"%s\"}\n", a->positional[0]);
	else if (!a->quiet)
		fprintf(stderr, "wrote %s\n", a->output);
	return STATUS_DONE;
}

/* ---- complexity --------------------------------------------------------------------------------------------------- */

/* What a step moves, with everybody where the scenario has them. False: it cannot be planned, or memory lacks. */
static bool measure(const struct skep_scenario *s, struct skep_complexity_cut *ret, char *reterr, size_t size)
{
	struct skep_planning planning;
	struct skep_planning_traffic traffic;
	if (!skep_planning_make(s, &planning, reterr, size))
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
		snprintf(reterr, size, "not enough memory for this picture");
	}
	free(stage_of);
	skep_planning_finish(&planning);
	return measured;
}

/* The same scenario with other numbers of stages, by its own method, or contiguous where the method is for one number alone.
 * Such as cannot be are left out. */
static void measure_cut(
	const struct arguments *a, const struct skep_scenario *own, uint32_t stages, struct skep_complexity_figure *f)
{
	struct skep_scenario s;
	char cut[48], error[1024];
	const char *more[] = {cut, "cluster.allocation={method: contiguous}"};
	snprintf(cut, sizeof cut, "model.stages=%u", stages);
	bool own_method = own->allocation < SKEP_ALLOCATION_EXPLICIT;
	if (f->cuts == SKEP_COMPLEXITY_CUTS_MAX || !read_scenario(a, more, own_method ? 1 : 2, NULL, &s))
		return;
	f->cuts += measure(&s, &f->cut[f->cuts], error, sizeof error);
	skep_scenario_finish(&s);
}

static bool measure_all(const struct arguments *a, const struct skep_scenario *s, struct skep_complexity_figure *f,
	char *reterr, size_t size)
{
	uint32_t most = s->model.layers < s->plan.workers ? s->model.layers : s->plan.workers;
	for (uint32_t stages = 1; stages <= most; stages += 1 + stages / 16) {
		if (stages > s->plan.stages && (f->cuts == 0 || f->cut[f->own].stages != s->plan.stages)) {
			f->own = f->cuts; /* it lies between two of the others */
			if (!measure(s, &f->cut[f->cuts++], reterr, size))
				return false;
		}
		if (stages != s->plan.stages) {
			measure_cut(a, s, stages, f);
			continue;
		}
		f->own = f->cuts;
		if (!measure(s, &f->cut[f->cuts++], reterr, size))
			return false;
	}
	return true;
}

static enum status draw_complexity(const struct arguments *a, const struct skep_scenario *s)
{
	struct skep_complexity_figure *f = calloc(1, sizeof *f);
	char error[1024];
	if (!f)
		return lack();
	snprintf(f->title, sizeof f->title, "%s: bytes that move, by class of link", s->name);
	f->classes = SKEP_LINK_CLASSES;
	for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++)
		f->name[i] = skep_link_class_name[i];
	for (uint32_t i = 0; i < skep_plan_slices(&s->plan); i++)
		f->parameters += (double)s->cost[i].parameters;
	f->period = skep_plan_periodic(&s->plan) ? s->plan.inner_steps : 1;
	f->steps = s->plan.rounds * skep_periodic_steps(&s->plan);
	bool done =
		measure_all(a, s, f, error, sizeof error) && skep_plot_complexity(f, a->output, error, sizeof error);
	free(f);
	return drawn(a, done, error);
}

/* ---- search ------------------------------------------------------------------------------------------------------- */

static bool trail(const struct skep_planning *p, uint64_t seed, enum skep_method method, struct skep_trail *points,
	uint32_t *stage_of, struct skep_search_figure *f)
{
	const struct skep_planning_search search = {
		.method = method, .view = SKEP_VIEW_SHARED, .seed = seed, .trail = points};
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

static enum status draw_search(const struct arguments *a, const struct skep_scenario *s)
{
	struct skep_planning planning;
	char error[1024];
	if (!skep_planning_make(s, &planning, error, sizeof error)) {
		fprintf(stderr, "%s: error: %s\n", s->path, error);
		return STATUS_BAD_INPUT;
	}
	struct skep_search_figure *f = calloc(1, sizeof *f);
	bool searched = f && search_all(&planning, s->seed, f), done = false;
	if (searched) {
		snprintf(f->title, sizeof f->title, "%s: the expected time of a step, as each search brought it down",
			s->name);
		snprintf(error, sizeof error, "no search found an allocation that can be");
		done = f->panels > 0 && skep_plot_search(f, a->output, error, sizeof error);
	}
	if (f)
		skep_search_figure_finish(f);
	free(f);
	skep_planning_finish(&planning);
	return searched ? drawn(a, done, error) : lack();
}

static enum status draw_table(const struct arguments *a)
{
	struct skep_search_figure *f = calloc(1, sizeof *f);
	char error[1024];
	if (!f)
		return lack();
	bool done = skep_search_figure_read(a->positional[1], f, error, sizeof error) &&
	            skep_plot_search(f, a->output, error, sizeof error);
	skep_search_figure_finish(f);
	free(f);
	return drawn(a, done, error);
}

/* ---- both --------------------------------------------------------------------------------------------------------- */

enum status skep_plot_scenario_command(const struct arguments *a)
{
	struct skep_scenario s;
	bool search = strcmp(a->positional[0], "search") == 0;
	char error[1024];
	if (a->positionals != 2) {
		snprintf(error, sizeof error, "plot %s takes one scenario%s", a->positional[0],
			search ? ", or a table of searches (.csv)" : "");
		return refuse(error);
	}
	if (a->has_rounds || a->metric || a->has_axes)
		return refuse("--rounds, --metric, --x, --y, --log and --validation are for pictures of runs");
	if (!a->output || !skep_plot_target(a->output, error, sizeof error))
		return refuse(a->output ? error : "plot needs -o FILE, for example -o complexity.png");
	if (!skep_output_ready(a, NULL))
		return STATUS_BAD_INPUT;
	if (search && ends_with(a->positional[1], ".csv"))
		return draw_table(a);
	if (!read_scenario(a, NULL, 0, stderr, &s))
		return STATUS_BAD_INPUT;
	enum status status = STATUS_BAD_INPUT;
	if (skep_output_no_source(a, &s))
		status = search ? draw_search(a, &s) : draw_complexity(a, &s);
	skep_scenario_finish(&s);
	return status;
}
