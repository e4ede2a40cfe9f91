/* SPDX-License-Identifier: Apache-2.0
 *
 * free_settings.c - see free_settings.h. Successive halving (Jamieson, Talwalkar 2016, arXiv 1502.07943) over
 * combinations, then a descent along one key after the other, both from cheap to dear:
 *
 *   cheap  the expected time of a step with simple allocations, for all combinations; of more than fit, for as many as were
 *   drawn,
 *          and then for the neighbours of the best
 *   short  with the allocation of a short search, for the best 16
 *   full   all searches and their trials in the simulator (searches.h), for the best 4
 *   trial  the simulator, for all that differ from the best in one key, until none is better
 *   full   once more for the best few that were tried with an allocation which was found for other settings
 *   whole  the simulator until the target loss, for the best 3, if a loss is wanted and that is not too much
 *
 * The scenario as it is written comes along to the end: what is chosen is never worse in the simulator. A setting that
 * is impossible (its keys do not go together, it fits no machine's memory) is left out, with the reason. The result
 * depends on the scenario and its seed, not on how many processes there were; with a budget of time also on the
 * machine.
 */
#include "planning/plan/free_settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "planning/problem/tried.h"
#include "planning/trial/processes.h"
#include "planning/trial/trial.h"

#define COMBINATIONS 128u /* of so many all points of later rungs are looked at */
#define CHEAP_MOST 512u   /* combinations; fewer of large pools, ... */
#define CHEAP_LEAST 48u   /* ... but not fewer than this */
#define SHORT_POINTS 16u
#define FULL_POINTS (SKEP_FULL_POINTS - 1)
#define FRONT_POINTS 8u /* more, where the front is wanted */
#define NEIGHBOURS_OF 4u
#define DESCENTS 3u
#define ADOPTED_POINTS 2u
#define AS_GOOD 1.02 /* times the best value */
#define WHOLE_POINTS 3u
#define HOPELESS                                                                                                       \
	1.25 /* times the best value of the short searches: so much more than the best a full search hardly gains */
#define WHOLE_EVENTS 2e7 /* of all whole runs of a point */

/* ---- a rung ------------------------------------------------------------------------------------------------------ */

static void take_answer(void *context, uint32_t number, void *bytes, uint64_t count)
{
	struct skep_free_settings *j = context;
	skep_point_take(j, &j->point[j->list[number]], bytes, count);
}

static const char *const RUNG[] = {
	[SKEP_RUNG_CHEAP] = "expect",
	[SKEP_RUNG_SHORT] = "search",
	[SKEP_RUNG_TRIAL] = "simulate",
	[SKEP_RUNG_FULL] = "search fully",
	[SKEP_RUNG_WHOLE] = "simulate all",
};

static double rank_of(const struct skep_point *p, bool tried)
{
	if (!p->can || (tried && p->rung < SKEP_RUNG_TRIAL))
		return INFINITY;
	return tried ? p->value : p->expected_value;
}

/* But for the scenario as it is written, which has no neighbours. */
static uint32_t best_tried(const struct skep_free_settings *j)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = 1; i < j->points; i++)
		if (isfinite(rank_of(&j->point[i], true)) &&
			(best == UINT32_MAX || j->point[i].value < j->point[best].value))
			best = i;
	return best;
}

/* Those of list[] by the events that a trial of them took, the most first and of equal ones in their order: a long search that
 * begins late keeps one process busy while others have nothing left. To be freed; NULL: no memory. */
static uint32_t *order_of(const struct skep_free_settings *j)
{
	uint32_t *order = calloc(j->lists, sizeof *order);
	for (uint32_t i = 0; order && i < j->lists; i++) {
		uint32_t at = i;
		for (; at > 0 && j->point[j->list[order[at - 1]]].events < j->point[j->list[i]].events; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	return order;
}

/* All of list[]. What there is to beat is what was known before, however many processes there are. */
static enum status climb(struct skep_planner *w, enum skep_rung rung)
{
	struct skep_free_settings *j = w->settings;
	int by = 0;
	uint32_t best = best_tried(j);
	j->to_beat = best == UINT32_MAX ? 0 : j->point[best].value;
	struct skep_progress *progress = j->options->progress;
	if (progress)
		*progress = skep_progress_begin(RUNG[rung], progress->visible);
	uint32_t *order = order_of(j);
	bool ran = skep_processes_run(
		j->options->processes, rung, j->lists, skep_point_work, take_answer, j, order, progress, &by);
	free(order);
	if (progress)
		skep_progress_end(progress);
	if (ran)
		return STATUS_DONE;
	if (by != 0)
		return skep_planner_fail(w, (enum status)(STATUS_SIGNAL + by),
			"ended by SIG%s before anything was chosen", sigabbrev_np(by));
	return skep_planner_fail(
		w, STATUS_FAILED, "a process that looked at settings has died, or there is no memory for one");
}

static uint32_t find_point(const struct skep_free_settings *j, uint32_t number)
{
	uint32_t i = 0;
	while (i < j->points && j->point[i].number != number)
		i++;
	return i;
}

/* Which is there afterwards; `room` for all was made. */
static uint32_t add_point(struct skep_free_settings *j, uint32_t number)
{
	uint32_t i = find_point(j, number);
	if (i < j->points)
		return i;
	if (j->points == j->room)
		return UINT32_MAX;
	j->point[j->points] = (struct skep_point){.number = number,
		.expected_value = INFINITY,
		.value = INFINITY,
		.whole_value = INFINITY,
		.time_s = NAN,
		.usd = NAN};
	return j->points++;
}

static bool is_listed(const struct skep_free_settings *j, uint32_t which)
{
	for (uint32_t i = 0; i < j->lists; i++)
		if (j->list[i] == which)
			return true;
	return false;
}

/* Of what expectations cannot tell apart one is enough: the descent tries the others. */
static bool is_tied_peer(const struct skep_free_settings *j, uint32_t which)
{
	double value = j->point[which].expected_value;
	for (uint32_t i = 0; i < j->lists; i++) {
		const struct skep_point *p = &j->point[j->list[i]];
		if (p->number != SKEP_AS_GIVEN && fabs(p->expected_value - value) <= 1e-6 * value)
			return true;
	}
	return false;
}

/* Adds the best `count` to the list, by what is expected or by what was tried; of equal ones the first. */
static void list_best(struct skep_free_settings *j, uint32_t count, bool tried)
{
	for (uint32_t n = 0; n < count; n++) {
		uint32_t best = UINT32_MAX;
		for (uint32_t i = 0; i < j->points; i++) {
			double rank = rank_of(&j->point[i], tried);
			if (isfinite(rank) && !is_listed(j, i) && (tried || !is_tied_peer(j, i)) &&
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
static void list_neighbours(struct skep_free_settings *j, uint32_t count)
{
	uint32_t base[NEIGHBOURS_OF], bases = 0;
	for (; bases < count && bases < j->lists; bases++)
		base[bases] = j->point[j->list[bases]].number;
	j->lists = 0;
	for (uint32_t b = 0; b < bases; b++)
		for (uint32_t k = 0; base[b] != SKEP_AS_GIVEN && k < j->choices.keys; k++)
			for (uint32_t v = 0; v < j->choices.free->key[j->choices.key[k]].values; v++) {
				uint32_t which = add_point(j, skep_choices_with(&j->choices, base[b], k, v));
				if (which != UINT32_MAX && j->point[which].rung == SKEP_RUNG_UNKNOWN &&
					j->point[which].why[0] == '\0' && !is_listed(j, which))
					j->list[j->lists++] = which;
			}
}

/* Of fewer combinations than usual fewer go on to the next rung. */
static uint32_t share_of(const struct skep_free_settings *j, uint32_t usual)
{
	uint32_t combinations = j->options->combinations;
	double share = combinations > 0 ? fmin(1, combinations / (double)COMBINATIONS) : 1;
	return (uint32_t)fmax(1, ceil(usual * share));
}

static enum status halve(struct skep_planner *w, uint32_t drawn)
{
	struct skep_free_settings *j = w->settings;
	for (j->lists = 0; j->lists < j->points; j->lists++)
		j->list[j->lists] = j->lists;
	enum status status = climb(w, SKEP_RUNG_CHEAP);
	for (uint32_t pass = 0; status == STATUS_DONE && drawn < j->choices.points && pass < DESCENTS; pass++) {
		j->lists = 0;
		list_best(j, NEIGHBOURS_OF, false);
		list_neighbours(j, NEIGHBOURS_OF);
		if (j->lists == 0)
			break;
		status = climb(w, SKEP_RUNG_CHEAP);
	}
	if (status != STATUS_DONE)
		return status;
	j->lists = 0;
	list_best(j, share_of(j, SHORT_POINTS), false);
	return climb(w, SKEP_RUNG_SHORT);
}

/* Which points nothing beats in both time and money, expected or simulated: [points], to be freed; NULL: no memory.
 * `whole`: of those alone that were simulated until the target. Of equal ones one, the scenario as it is written last, as it is
 * in choose(). */
static bool *front_of(const struct skep_free_settings *j, bool expected, bool whole)
{
	double *time_s = calloc(j->points, sizeof *time_s), *usd = calloc(j->points, sizeof *usd);
	bool *front = calloc(j->points, sizeof *front);
	for (uint32_t i = 0; time_s && usd && i < j->points; i++) {
		const struct skep_point *p = &j->point[(i + 1) % j->points];
		bool counts = p->can && (!whole || p->rung == SKEP_RUNG_WHOLE);
		time_s[i] = !counts ? NAN : expected ? p->expected.time_s : skep_point_time_s(p);
		usd[i] = !counts ? NAN : expected ? p->expected.usd : skep_point_usd(p);
	}
	if (time_s && usd && front) {
		skep_choices_front(time_s, usd, j->points, front);
		bool last = front[j->points - 1];
		memmove(front + 1, front, (j->points - 1) * sizeof *front);
		front[0] = last;
	}
	free(time_s);
	free(usd);
	return front;
}

/* Tries the list with what short searches found for it, and leaves out what is far from the best: where the caller compares the
 * choice with others behind it. What such an allocation cannot be tried with stays for the full searches. */
static enum status leave_hopeless(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings;
	uint32_t kept = 0;
	enum status status = climb(w, SKEP_RUNG_TRIAL);
	uint32_t best = best_tried(j);
	for (uint32_t i = 0; i < j->lists; i++) {
		struct skep_point *p = &j->point[j->list[i]];
		if (!p->can) {
			p->can = true;
			p->why[0] = '\0';
			p->rung = SKEP_RUNG_SHORT;
		}
		bool tried = j->list[i] > 0 && p->rung == SKEP_RUNG_TRIAL;
		if (!tried || !(p->value > HOPELESS * j->point[best].value))
			j->list[kept++] = j->list[i];
	}
	j->lists = kept;
	return status;
}

/* The best few, and the scenario as it is. With the front wanted also what is expected to be on it. */
static enum status finalists(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings;
	j->lists = 0;
	if (j->point[0].can)
		j->list[j->lists++] = 0;
	list_best(j, share_of(j, FULL_POINTS), false);
	bool *front = j->options->pareto ? front_of(j, true, false) : NULL;
	for (uint32_t i = 0, more = 0; front && i < j->points && more < FRONT_POINTS; i++)
		if (front[i] && !is_listed(j, i)) {
			j->list[j->lists++] = i;
			more++;
		}
	free(front);
	enum status status = j->options->unstated ? leave_hopeless(w) : STATUS_DONE;
	return status == STATUS_DONE ? climb(w, SKEP_RUNG_FULL) : status;
}

/* What differs from the best in one key and was not simulated becomes the list, with the best's allocation. */
static void list_untried(struct skep_free_settings *j, uint32_t best)
{
	uint32_t base = j->point[best].number;
	j->lists = 0;
	for (uint32_t k = 0; k < j->choices.keys; k++)
		for (uint32_t v = 0; v < j->choices.free->key[j->choices.key[k]].values; v++) {
			uint32_t which = add_point(j, skep_choices_with(&j->choices, base, k, v));
			if (which == UINT32_MAX || j->point[which].rung >= SKEP_RUNG_TRIAL ||
				(j->point[which].why[0] != '\0' && !j->point[which].can) || is_listed(j, which))
				continue;
			struct skep_point *p = &j->point[which], *from = &j->point[best];
			skep_point_keep(&p->stage_of, &p->workers, from->stage_of, from->workers);
			skep_point_keep(&p->layers, &p->vstages, from->layers, from->vstages);
			j->list[j->lists++] = which;
		}
}

/* One key after the other, until nothing is better. */
static enum status descend(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings;
	enum status status = STATUS_DONE;
	for (uint32_t pass = 0; status == STATUS_DONE && pass < DESCENTS; pass++) {
		uint32_t best = best_tried(j);
		if (best == UINT32_MAX)
			break;
		list_untried(j, best);
		if (j->lists == 0)
			break;
		status = climb(w, SKEP_RUNG_TRIAL);
		if (best_tried(j) == best)
			break;
	}
	return status;
}

/* The best that were tried with an allocation which was found for other settings become the list, where they are about as good
 * as the best: with one of their own they may be better. */
static void list_adopted(struct skep_free_settings *j, double best_value)
{
	j->lists = 0;
	for (uint32_t n = 0; n < ADOPTED_POINTS; n++) {
		uint32_t best = UINT32_MAX;
		for (uint32_t i = 1; i < j->points; i++) {
			const struct skep_point *p = &j->point[i];
			if (p->can && p->rung == SKEP_RUNG_TRIAL && p->value <= AS_GOOD * best_value &&
				!is_listed(j, i) && (best == UINT32_MAX || p->value < j->point[best].value))
				best = i;
		}
		if (best != UINT32_MAX)
			j->list[j->lists++] = best;
	}
}

static enum status search_adopted(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings;
	uint32_t best = best_tried(j);
	bool late = w->until_ns > 0 && skep_monotonic_ns() > j->begin_ns + (j->until_ns - j->begin_ns) / 2;
	if (best == UINT32_MAX || late)
		return STATUS_DONE;
	list_adopted(j, j->point[best].value);
	return j->lists > 0 ? climb(w, SKEP_RUNG_FULL) : STATUS_DONE;
}

/* Does a run of the point until its target take a bearable time? */
static bool is_bearable(const struct skep_planner *w, const struct skep_point *p)
{
	return p->tried.rounds > 0 &&
	       skep_trial_whole_events(&w->scenario, p->tried.rounds) * w->settings->seeds < WHOLE_EVENTS;
}

static enum status confirm(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings;
	if (j->aim == SKEP_AIM_THROUGHPUT || j->options->unstated)
		return STATUS_DONE;
	j->lists = 0;
	if (isfinite(rank_of(&j->point[0], true)))
		j->list[j->lists++] = 0;
	list_best(j, j->options->pareto ? FRONT_POINTS : WHOLE_POINTS, true);
	for (uint32_t i = 0; i < j->lists; i++)
		if (!is_bearable(w, &j->point[j->list[i]]))
			return STATUS_DONE;
	return climb(w, SKEP_RUNG_WHOLE);
}

/* Of equal ones what was asked about, before the scenario as it is written. */
static void choose(struct skep_free_settings *j)
{
	bool whole = false;
	j->chosen = UINT32_MAX;
	for (uint32_t i = 0; i < j->points; i++)
		whole = whole || (j->point[i].rung == SKEP_RUNG_WHOLE && isfinite(j->point[i].whole_value));
	for (uint32_t nth = 1; nth <= j->points; nth++) {
		uint32_t i = nth % j->points;
		const struct skep_point *p = &j->point[i];
		double value = skep_point_value(p);
		if (!p->can || (whole && p->rung != SKEP_RUNG_WHOLE) || p->rung < SKEP_RUNG_TRIAL || !isfinite(value))
			continue;
		if (j->chosen == UINT32_MAX || value < skep_point_value(&j->point[j->chosen]))
			j->chosen = i;
	}
}

static void mark_front(struct skep_free_settings *j)
{
	bool whole = false;
	for (uint32_t i = 0; i < j->points; i++)
		whole = whole || j->point[i].rung == SKEP_RUNG_WHOLE;
	bool *front = front_of(j, false, whole);
	for (uint32_t i = 0; front && i < j->points; i++)
		j->point[i].front = front[i];
	free(front);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool make_points(struct skep_free_settings *j, uint32_t workers, uint32_t *ret_drawn)
{
	double scale = fmin(1, 128.0 / workers);
	uint32_t most = (uint32_t)fmax(CHEAP_LEAST, CHEAP_MOST * scale), neighbours = 0;
	if (j->options->combinations > 0 && j->options->combinations < most)
		most = j->options->combinations;
	for (uint32_t i = 0; i < j->choices.keys; i++)
		neighbours += j->choices.free->key[j->choices.key[i]].values;
	j->room = 1 + most + 2 * DESCENTS * NEIGHBOURS_OF * neighbours;
	j->point = calloc(j->room, sizeof *j->point);
	j->list = calloc(j->room, sizeof *j->list);
	uint32_t *number = calloc(most, sizeof *number);
	bool ok = j->point && j->list && number;
	if (ok) {
		add_point(j, SKEP_AS_GIVEN);
		*ret_drawn = skep_choices_draw(&j->choices, j->seed, most, number);
		for (uint32_t i = 0; i < *ret_drawn; i++)
			add_point(j, number[i]);
	}
	free(number);
	return ok;
}

static bool is_any(const struct skep_free_settings *j)
{
	for (uint32_t i = 1; i < j->points; i++)
		if (j->point[i].can)
			return true;
	return false;
}

static enum status explain(struct skep_planner *w)
{
	const struct skep_free_settings *j = w->settings;
	const struct skep_point *p = &j->point[j->points > 1];
	char message[sizeof w->error.message];
	if (is_any(j))
		snprintf(message, sizeof message,
			"plan.search: with none of these settings the target loss is reached within "
			"train.until.steps%s",
			j->planned->extrapolate ? "" : ", where the law was fitted");
	else
		snprintf(message, sizeof message, "plan.search: no combination of these settings can be%s%s",
			p->why[0] ? "; the first: " : "", p->why);
	w->error = (struct skep_diag){0};
	skep_planning_refuse_search(&w->scenario, &w->options->given, message, &w->error);
	return STATUS_BAD_INPUT;
}

/* From now on the scenario is that of the choice. */
static enum status adopt(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings;
	const struct skep_point *chosen = &j->point[j->chosen];
	skep_assignments_finish(&w->with);
	if (!skep_point_assignments(j, chosen->number, &w->with))
		return skep_planner_lack(w);
	skep_scenario_finish(&w->scenario);
	w->known = &j->known;
	w->given = chosen->stage_of;
	w->given_layers = chosen->layers;
	return skep_planner_open(w, &w->error) ? STATUS_DONE : STATUS_BAD_INPUT;
}

/* From rung to rung. */
static enum status find(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings;
	uint32_t drawn = 0;
	if (!make_points(j, w->scenario.plan.workers, &drawn))
		return skep_planner_lack(w);
	enum status status = halve(w, drawn);
	if (status == STATUS_DONE && is_any(j))
		status = finalists(w);
	if (status == STATUS_DONE && is_any(j))
		status = descend(w);
	if (status == STATUS_DONE && is_any(j))
		status = search_adopted(w);
	if (status == STATUS_DONE && is_any(j))
		status = confirm(w);
	return status;
}

enum status skep_free_settings_choose(struct skep_planner *w)
{
	struct skep_free_settings *j = w->settings = calloc(1, sizeof *j);
	if (!j)
		return skep_planner_lack(w);
	*j = (struct skep_free_settings){.options = w->options,
		.planned = w->scenario.planned,
		.aim = w->scenario.planned->aim,
		.seeds = w->scenario.planned->seeds,
		.seed = w->scenario.seed,
		.begin_ns = w->begin_ns,
		.until_ns = w->until_ns};
	w->scenario.planned = NULL;
	skep_choices_make(j->planned, w->options->given.set, w->options->given.sets, &j->choices);
	enum status status = find(w);
	if (status != STATUS_DONE)
		return status;
	choose(j);
	if (!is_any(j) || j->chosen == UINT32_MAX)
		return explain(w);
	mark_front(j);
	return adopt(w);
}

void skep_free_settings_destroy(struct skep_free_settings *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; i < j->points; i++) {
		free(j->point[i].stage_of);
		free(j->point[i].layers);
	}
	skep_planned_destroy(j->planned);
	skep_known_finish(&j->known);
	free(j->point);
	free(j->list);
	free(j);
}
