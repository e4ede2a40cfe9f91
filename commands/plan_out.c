/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_out.c - see plan_out.h. Why somebody is left out is answered by putting one of its kind back, at the stage where a step
 * then costs least: what a step is expected to take, or to cost, with it and without it.
 */
#include "commands/plan_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/layout.h"
#include "scenarios/pool.h"

struct back {           /* one of those that are out, put back */
	uint32_t stage; /* SKEP_SPARE: it can hold none, whatever the sizes are */
	bool fits;      /* anywhere, with the sizes that were chosen */
	double step_s, without_s;
	double usd, without_usd; /* of a step; NAN: nobody asks */
};

uint32_t plan_out_count(const struct plan_work *w, const uint32_t *stage_of)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->planning.workers; i++)
		count += stage_of[i] == SKEP_SPARE;
	return count;
}

static struct back put_back(const struct plan_work *w, uint32_t worker)
{
	const struct plan_candidate *c = &w->candidate[w->chosen];
	const struct skep_objective *cost = w->rented ? w->rented : w->cost[c->view], *time = w->cost[c->view];
	struct back b = {.stage = SKEP_SPARE, .step_s = SKEP_NEVER, .usd = NAN, .without_usd = NAN};
	uint32_t *with = calloc(w->planning.workers, sizeof *with);
	double least = SKEP_NEVER;
	if (!with)
		return b;
	memcpy(with, c->stage_of, w->planning.workers * sizeof *with);
	b.without_s = time->whole(time->self, with);
	b.without_usd = w->rented ? cost->whole(cost->self, with) : NAN;
	for (uint32_t stage = 0; stage < w->planning.stages; stage++) {
		if (!(w->planning.compute_s[(size_t)worker * w->planning.stages + stage] < INFINITY))
			continue;
		with[worker] = stage;
		double here = cost->whole(cost->self, with);
		if (b.stage != SKEP_SPARE && !(here < least))
			continue;
		least = here;
		b.stage = stage;
		b.fits = here < SKEP_NEVER;
		b.usd = w->rented ? here : NAN;
		b.step_s = time->whole(time->self, with);
	}
	free(with);
	return b;
}

/* Machines of one kind at one place, of which this is the first that is out. */
static uint32_t crowd(const struct plan_work *w, uint32_t worker)
{
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	const struct skep_topology *t = &w->scenario.topology;
	const struct skep_machine *m = &t->machine[w->planning.machine[worker]];
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->planning.workers; i++) {
		const struct skep_machine *other = &t->machine[w->planning.machine[i]];
		if (stage_of[i] != SKEP_SPARE || other->place != m->place || other->gpu != m->gpu)
			continue;
		if (i < worker)
			return 0;
		count++;
	}
	return count;
}

static void print_why(const struct back *b, FILE *out)
{
	char with[SKEP_TEXT_BYTES], without[SKEP_TEXT_BYTES];
	if (b->stage == SKEP_SPARE)
		fprintf(out, "no stage fits");
	else if (!b->fits)
		fprintf(out, "beside the others it fits nowhere");
	else if (!isnan(b->usd))
		fprintf(out, "with one at stage %" PRIu32 " a step costs %.4g USD, not %.4g, and takes %s, not %s",
			b->stage, b->usd, b->without_usd, skep_time_text(b->step_s, with),
			skep_time_text(b->without_s, without));
	else
		fprintf(out, "with one at stage %" PRIu32 " a step takes %s, not %s", b->stage,
			skep_time_text(b->step_s, with), skep_time_text(b->without_s, without));
}

void plan_out_print(const struct plan_work *w, FILE *out)
{
	const struct skep_topology *t = &w->scenario.topology;
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	if (plan_out_count(w, stage_of) == 0)
		return;
	fprintf(out, "\nleft out, as expected:\n");
	for (uint32_t i = 0; i < w->planning.workers; i++) {
		uint32_t count = stage_of[i] == SKEP_SPARE ? crowd(w, i) : 0;
		if (count == 0)
			continue;
		const struct skep_machine *m = &t->machine[w->planning.machine[i]];
		struct back b = put_back(w, i);
		fprintf(out, "  %s %" PRIu32 " x %s: ", t->place_name[m->place], count, t->gpu[m->gpu].name);
		print_why(&b, out);
		fprintf(out, "\n");
	}
}

static void add_finite(cJSON *row, const char *key, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(row, key, value);
	else
		cJSON_AddNullToObject(row, key);
}

void plan_out_add_json(const struct plan_work *w, cJSON *root)
{
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	cJSON *rows = cJSON_AddArrayToObject(root, "left_out");
	for (uint32_t i = 0; i < w->planning.workers; i++) {
		if (stage_of[i] != SKEP_SPARE)
			continue;
		struct back b = put_back(w, i);
		cJSON *row = cJSON_CreateObject();
		cJSON_AddNumberToObject(row, "machine", skep_pool_machine(&w->scenario, w->planning.machine[i]));
		add_finite(row, "step_s_with_it", b.step_s);
		add_finite(row, "step_s_without_it", b.without_s);
		cJSON_AddItemToArray(rows, row);
	}
}

void plan_out_write(const struct plan_work *w, FILE *out)
{
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	char crew[600];
	if (plan_out_count(w, stage_of) == 0)
		return;
	plan_crew(w, stage_of, SKEP_SPARE, crew, sizeof crew);
	fprintf(out, "#   left out: ");
	for (const char *c = crew; *c; c++)
		fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
	fprintf(out, "\n");
}
