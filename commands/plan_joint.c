/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_joint.c - see plan_joint.h. Successive halving (Jamieson, Talwalkar 2016, arXiv 1502.07943) over combinations, then a
 * descent along one key after the other, both from cheap to dear:
 *
 *   cheap  the expected time of a step with simple allocations, for all combinations; of more than fit, for as many as were
 *   drawn,
 *          and then for the neighbours of the best
 *   short  with the allocation of a short search, for the best 16
 *   full   all searches and their trials in the simulator (plan.c), for the best 4
 *   trial  the simulator, for all that differ from the best in one key, until none is better
 *   whole  the simulator until the target loss, for the best 3, if a loss is wanted and that is not too much
 *
 * The scenario as it is written comes along to the end: what is chosen is never worse in the simulator. What cannot be (its
 * keys do not go together, it fits nobody's memory) is left out, with the reason. The result depends on the scenario and its
 * seed, not on how many processes there were; with a budget of time also on the machine.
 */
#include "commands/plan_joint.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/cores.h"
#include "commands/plan_jobs.h"

#define CHEAP_MOST 512u /* combinations; fewer of large pools, ... */
#define CHEAP_LEAST 48u /* ... but not fewer than this */
#define SHORT_POINTS 16u
#define FULL_POINTS (PLAN_FULL_POINTS - 1)
#define FRONT_POINTS 8u /* more, where the front is wanted */
#define NEIGHBOURS_OF 4u
#define DESCENTS 3u
#define WHOLE_POINTS 3u
#define WHOLE_EVENTS 2e7 /* of all whole runs of a point */

static const char lacking[] = "not enough memory to plan this scenario";

/* ---- a rung ------------------------------------------------------------------------------------------------------ */

static void take_answer(void *context, uint32_t number, void *bytes, uint64_t count)
{
	struct plan_joint *j = context;
	struct plan_point *p = &j->point[j->list[number]];
	(void)count;
	const uint32_t *lists = (const uint32_t *)(const void *)((const char *)bytes + sizeof *p);
	free(p->stage_of);
	free(p->layers);
	memcpy(p, bytes, sizeof *p);
	p->stage_of = p->layers = NULL;
	plan_point_keep(&p->stage_of, &p->workers, lists, p->workers);
	plan_point_keep(&p->layers, &p->slices, lists + p->workers, p->slices);
	j->asked++;
	free(bytes);
}

/* All of list[]. */
static bool climb(struct plan_joint *j, enum plan_rung rung)
{
	if (plan_jobs_run(j->processes, rung, j->lists, plan_point_work, take_answer, j, &j->signal))
		return true;
	if (j->signal != 0)
		fprintf(stderr, "skep: ended by SIG%s before anything was chosen\n", sigabbrev_np(j->signal));
	else
		fprintf(stderr, "skep: a process that looked at settings has died, or there is no memory for one\n");
	return false;
}

static uint32_t find_point(const struct plan_joint *j, uint32_t number)
{
	uint32_t i = 0;
	while (i < j->points && j->point[i].number != number)
		i++;
	return i;
}

/* Which is there afterwards; `room` for all was made. */
static uint32_t add_point(struct plan_joint *j, uint32_t number)
{
	uint32_t i = find_point(j, number);
	if (i < j->points)
		return i;
	if (j->points == j->room)
		return UINT32_MAX;
	j->point[j->points] = (struct plan_point){.number = number,
		.expected_value = INFINITY,
		.value = INFINITY,
		.whole_value = INFINITY,
		.time_s = NAN,
		.usd = NAN};
	return j->points++;
}

static bool is_listed(const struct plan_joint *j, uint32_t which)
{
	for (uint32_t i = 0; i < j->lists; i++)
		if (j->list[i] == which)
			return true;
	return false;
}

static double rank_of(const struct plan_point *p, bool tried)
{
	if (!p->can || (tried && p->rung < PLAN_TRIAL))
		return INFINITY;
	return tried ? p->value : p->expected_value;
}

/* Of what expectations cannot tell apart one is enough: the descent tries the others. */
static bool is_twin(const struct plan_joint *j, uint32_t which)
{
	double value = j->point[which].expected_value;
	for (uint32_t i = 0; i < j->lists; i++) {
		const struct plan_point *p = &j->point[j->list[i]];
		if (p->number != SKEP_AS_WRITTEN && fabs(p->expected_value - value) <= 1e-6 * value)
			return true;
	}
	return false;
}

/* Adds the best `count` to the list, by what is expected or by what was tried; of equal ones the first. */
static void list_best(struct plan_joint *j, uint32_t count, bool tried)
{
	for (uint32_t n = 0; n < count; n++) {
		uint32_t best = UINT32_MAX;
		for (uint32_t i = 0; i < j->points; i++) {
			double rank = rank_of(&j->point[i], tried);
			if (isfinite(rank) && !is_listed(j, i) && (tried || !is_twin(j, i)) &&
				(best == UINT32_MAX || rank < rank_of(&j->point[best], tried)))
				best = i;
		}
		if (best == UINT32_MAX)
			return;
		j->list[j->lists++] = best;
	}
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* All that differ from the first `count` of the list in one key and are not known so far become the list. */
static void list_neighbours(struct plan_joint *j, uint32_t count)
{
	uint32_t base[NEIGHBOURS_OF], bases = 0;
	for (; bases < count && bases < j->lists; bases++)
		base[bases] = j->point[j->list[bases]].number;
	j->lists = 0;
	for (uint32_t b = 0; b < bases; b++)
		for (uint32_t k = 0; base[b] != SKEP_AS_WRITTEN && k < j->choices.keys; k++)
			for (uint32_t v = 0; v < j->choices.free->key[j->choices.key[k]].values; v++) {
				uint32_t which = add_point(j, skep_choices_with(&j->choices, base[b], k, v));
				if (which != UINT32_MAX && j->point[which].rung == PLAN_UNKNOWN &&
					j->point[which].why[0] == '\0' && !is_listed(j, which))
					j->list[j->lists++] = which;
			}
}

static bool halve(struct plan_joint *j, uint32_t drawn)
{
	for (j->lists = 0; j->lists < j->points; j->lists++)
		j->list[j->lists] = j->lists;
	if (!climb(j, PLAN_CHEAP))
		return false;
	for (uint32_t pass = 0; drawn < j->choices.points && pass < DESCENTS; pass++) {
		j->lists = 0;
		list_best(j, NEIGHBOURS_OF, false);
		list_neighbours(j, NEIGHBOURS_OF);
		if (j->lists == 0)
			break;
		if (!climb(j, PLAN_CHEAP))
			return false;
	}
	j->lists = 0;
	list_best(j, SHORT_POINTS, false);
	return climb(j, PLAN_SHORT);
}

/* The best few, and the scenario as it is. With the front wanted also what is expected to be on it. */
static bool finalists(struct plan_joint *j)
{
	j->lists = 0;
	if (j->point[0].can)
		j->list[j->lists++] = 0;
	list_best(j, FULL_POINTS, false);
	if (j->arguments.pareto) {
		double *time_s = calloc(j->points, sizeof *time_s), *usd = calloc(j->points, sizeof *usd);
		bool *front = calloc(j->points, sizeof *front);
		for (uint32_t i = 0; time_s && usd && front && i < j->points; i++) {
			time_s[i] = j->point[i].can ? j->point[i].expected.time_s : INFINITY;
			usd[i] = j->point[i].can ? j->point[i].expected.usd : INFINITY;
		}
		if (time_s && usd && front)
			skep_choices_front(time_s, usd, j->points, front);
		for (uint32_t i = 0, more = 0; front && i < j->points && more < FRONT_POINTS; i++)
			if (front[i] && !is_listed(j, i)) {
				j->list[j->lists++] = i;
				more++;
			}
		free(time_s);
		free(usd);
		free(front);
	}
	return climb(j, PLAN_FULL);
}

/* But for the scenario as it is written, which has no neighbours. */
static uint32_t best_tried(const struct plan_joint *j)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = 1; i < j->points; i++)
		if (isfinite(rank_of(&j->point[i], true)) &&
			(best == UINT32_MAX || j->point[i].value < j->point[best].value))
			best = i;
	return best;
}

/* The allocation of the best for its neighbours that were not simulated; one key after the other. */
static bool descend(struct plan_joint *j)
{
	for (uint32_t pass = 0; pass < DESCENTS; pass++) {
		uint32_t best = best_tried(j);
		if (best == UINT32_MAX)
			return true;
		j->lists = 0;
		uint32_t base = j->point[best].number;
		for (uint32_t k = 0; k < j->choices.keys; k++)
			for (uint32_t v = 0; v < j->choices.free->key[j->choices.key[k]].values; v++) {
				uint32_t which = add_point(j, skep_choices_with(&j->choices, base, k, v));
				if (which == UINT32_MAX || j->point[which].rung >= PLAN_TRIAL ||
					(j->point[which].why[0] != '\0' && !j->point[which].can) || is_listed(j, which))
					continue;
				struct plan_point *p = &j->point[which], *from = &j->point[best];
				plan_point_keep(&p->stage_of, &p->workers, from->stage_of, from->workers);
				plan_point_keep(&p->layers, &p->slices, from->layers, from->slices);
				j->list[j->lists++] = which;
			}
		if (j->lists == 0)
			return true;
		if (!climb(j, PLAN_TRIAL))
			return false;
		if (best_tried(j) == best)
			return true;
	}
	return true;
}

/* Does a run of the point until its target take a bearable time? */
static bool is_bearable(const struct plan_work *w, const struct plan_joint *j, const struct plan_point *p)
{
	return p->tried.rounds > 0 && plan_whole_events(&w->scenario, p->tried.rounds) * j->seeds < WHOLE_EVENTS;
}

static bool confirm(const struct plan_work *w, struct plan_joint *j)
{
	if (j->aim == SKEP_AIM_THROUGHPUT)
		return true;
	j->lists = 0;
	if (isfinite(rank_of(&j->point[0], true)))
		j->list[j->lists++] = 0;
	list_best(j, j->arguments.pareto ? FRONT_POINTS : WHOLE_POINTS, true);
	for (uint32_t i = 0; i < j->lists; i++)
		if (!is_bearable(w, j, &j->point[j->list[i]]))
			return true;
	return climb(j, PLAN_WHOLE);
}

static void choose(struct plan_joint *j)
{
	bool whole = false;
	j->chosen = UINT32_MAX;
	for (uint32_t i = 0; i < j->points; i++)
		whole = whole || (j->point[i].rung == PLAN_WHOLE && isfinite(j->point[i].whole_value));
	for (uint32_t i = 0; i < j->points; i++) {
		const struct plan_point *p = &j->point[i];
		double value = plan_point_value(p);
		if (!p->can || (whole && p->rung != PLAN_WHOLE) || p->rung < PLAN_TRIAL || !isfinite(value))
			continue;
		if (j->chosen == UINT32_MAX || value < plan_point_value(&j->point[j->chosen]))
			j->chosen = i;
	}
}

static void mark_front(struct plan_joint *j)
{
	double *time_s = calloc(j->points, sizeof *time_s), *usd = calloc(j->points, sizeof *usd);
	bool *front = calloc(j->points, sizeof *front), whole = false;
	for (uint32_t i = 0; i < j->points; i++)
		whole = whole || j->point[i].rung == PLAN_WHOLE;
	for (uint32_t i = 0; time_s && usd && front && i < j->points; i++) {
		bool counts = j->point[i].can && (!whole || j->point[i].rung == PLAN_WHOLE);
		time_s[i] = counts ? plan_point_time_s(&j->point[i]) : NAN;
		usd[i] = counts ? plan_point_usd(&j->point[i]) : NAN;
	}
	if (time_s && usd && front)
		skep_choices_front(time_s, usd, j->points, front);
	for (uint32_t i = 0; front && i < j->points; i++)
		j->point[i].front = front[i];
	free(time_s);
	free(usd);
	free(front);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool make_points(struct plan_joint *j, uint32_t workers, uint32_t *ret_drawn)
{
	double scale = fmin(1, 128.0 / workers);
	uint32_t most = (uint32_t)fmax(CHEAP_LEAST, CHEAP_MOST * scale), neighbours = 0;
	for (uint32_t i = 0; i < j->choices.keys; i++)
		neighbours += j->choices.free->key[j->choices.key[i]].values;
	j->room = 1 + most + 2 * DESCENTS * NEIGHBOURS_OF * neighbours;
	j->point = calloc(j->room, sizeof *j->point);
	j->list = calloc(j->room, sizeof *j->list);
	uint32_t *number = calloc(most, sizeof *number);
	bool ok = j->point && j->list && number;
	if (ok) {
		add_point(j, SKEP_AS_WRITTEN);
		*ret_drawn = skep_choices_draw(&j->choices, j->seed, most, number);
		for (uint32_t i = 0; i < *ret_drawn; i++)
			add_point(j, number[i]);
	}
	free(number);
	return ok;
}

static bool is_any(const struct plan_joint *j)
{
	for (uint32_t i = 1; i < j->points; i++)
		if (j->point[i].can)
			return true;
	return false;
}

static enum status complain(const struct plan_work *w, const struct plan_joint *j)
{
	const struct plan_point *p = &j->point[j->points > 1];
	if (is_any(j))
		fprintf(stderr,
			"%s: error: plan.search: with none of these settings the target loss is reached within "
			"train.until.steps%s\n",
			w->scenario.path, j->planned->extrapolate ? "" : ", where the law was fitted");
	else
		fprintf(stderr, "%s: error: plan.search: no combination of these settings can be%s%s\n",
			w->scenario.path, p->why[0] ? "; the first: " : "", p->why);
	return STATUS_BAD_INPUT;
}

/* From now on the work is that of the choice. */
static enum status adopt(struct plan_work *w, struct plan_joint *j)
{
	struct arguments chosen;
	char error[2048];
	if (!plan_point_sets(j, j->point[j->chosen].number, &chosen, j->set)) {
		fprintf(stderr, "skep: %s\n", lacking);
		return STATUS_FAILED;
	}
	j->arguments = chosen;
	j->arguments.scenario.set = j->arguments.set;
	skep_scenario_finish(&w->scenario);
	w->arguments = &j->arguments;
	w->given = j->point[j->chosen].stage_of;
	w->given_layers = j->point[j->chosen].layers;
	if (plan_read(w, error, sizeof error))
		return STATUS_DONE;
	fputs(error, stderr);
	return STATUS_BAD_INPUT;
}

static bool find(struct plan_work *w, struct plan_joint *j)
{
	uint32_t drawn = 0;
	return make_points(j, w->scenario.plan.workers, &drawn) && halve(j, drawn) && (!is_any(j) || finalists(j)) &&
	       (!is_any(j) || (descend(j) && confirm(w, j)));
}

enum status plan_joint_choose(struct plan_work *w)
{
	struct plan_joint *j = calloc(1, sizeof *j);
	const struct skep_planned *planned = w->scenario.planned;
	if (!j) {
		fprintf(stderr, "skep: %s\n", lacking);
		return STATUS_FAILED;
	}
	w->joint = j;
	j->arguments = *w->arguments;
	j->arguments.scenario.set = j->arguments.set;
	j->aim = planned->aim;
	j->seeds = planned->seeds;
	j->seed = w->scenario.seed;
	j->begin_ns = w->begin_ns;
	j->until_ns = w->until_ns;
	j->processes = w->arguments->jobs > 0 ? w->arguments->jobs : skep_cores();
	skep_choices_make(planned, w->arguments->scenario.set, w->arguments->scenario.sets, &j->choices);
	j->planned = w->scenario.planned;
	w->scenario.planned = NULL;
	if (!find(w, j))
		return j->signal != 0 ? (enum status)(STATUS_SIGNAL + j->signal) : STATUS_FAILED;
	choose(j);
	if (!is_any(j) || j->chosen == UINT32_MAX)
		return complain(w, j);
	mark_front(j);
	return adopt(w, j);
}

static void free_lists(struct plan_point *p)
{
	free(p->stage_of);
	free(p->layers);
}

void plan_joint_destroy(struct plan_joint *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; i < j->points; i++)
		free_lists(&j->point[i]);
	plan_point_free_sets(j->set);
	skep_planned_destroy(j->planned);
	free(j->point);
	free(j->list);
	free(j);
}
