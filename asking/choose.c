/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.c - the choice: what the planner finds, and what else is compared with it and may take its place.
 *
 * Keeps true: all limits are counts, so the same question has the same choice, however many processes there are and whatever
 * else the machine does. Two variations are compared over the same seeds and the same stretches of the trace, as pairs.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "asking/answer.h"
#include "base/layout.h"
#include "planning/plan/free_settings.h"
#include "planning/plan/make_plan.h"

#define COMPARED_SEEDS 2u
#define LEAST_SEEDS 2u      /* of two there is an interval */
#define COMPARED_MOST 1.5e6 /* events of two rounds: a setting that has more is hardly worth its time */
#define REFINED 4u          /* of the best that are compared, with as many seeds as ... */
#define REFINED_SEEDS 6u    /* ... this together */
#define REFINED_WITHIN 1.15
#define SETTLED_SEEDS 12u /* of each row in the end, unless it has many events */
#define COMPARISONS 5u
#define COMPARE_EVENTS 1e7 /* of all comparisons; behind that nothing takes the place of the choice any more */
#define AS_FAST 1.005      /* of the time: then what is cheaper by this much is better */
#define CHEAPER 0.97

/* With the beginning of the trace, which each of some hundred combinations draws anew: trials are no longer. */
enum status skep_ask_plan(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	const char *const beginning[] = {a->question.request->objective == SKEP_ASK_MONEY
						 ? "plan.objective=cost-to-loss"
						 : "plan.objective=time-to-loss",
		"cluster.trace.duration=6 h"};
	const uint32_t sets = 1 + a->question.request->spot;
	const struct skep_planner_options options = {.path = a->files.scenario,
		.given = {.set = beginning, .sets = sets},
		.combinations = a->question.request->combinations,
		.processes = a->question.request->processes,
		.unstated = true};
	struct skep_planner *w = malloc(sizeof *w);
	if (!w) {
		skep_fail(reterr, "not enough memory to plan this");
		return STATUS_FAILED;
	}
	enum status status = skep_plan_begin(w, &options);
	if (status == STATUS_DONE)
		status = skep_plan_choose(w);
	if (status == STATUS_DONE) {
		char *allocation = skep_planning_assignment(&w->planning, w->candidate[w->chosen].stage_of);
		uint32_t simulated = 0;
		for (uint32_t i = 0; w->settings && i < w->settings->points; i++)
			simulated += w->settings->point[i].rung >= SKEP_RUNG_TRIAL;
		a->looked_at = w->settings ? w->settings->points - 1 : 1;
		a->simulated = simulated;
		const struct skep_assignments found = {.path = w->with.path,
			.set = w->with.set + sets,
			.sets = w->with.sets - sets,
			.has_seed = w->with.has_seed,
			.seed = w->with.seed};
		if (!allocation || !skep_assignments_copy(&found, &a->base) ||
			!skep_assignments_add(&a->base, "plan=null") || !skep_assignments_add(&a->base, allocation)) {
			skep_fail(reterr, "not enough memory to plan this");
			status = STATUS_FAILED;
		}
		free(allocation);
	}
	if (status != STATUS_DONE && !reterr->set)
		*reterr = w->error;
	skep_plan_end(w);
	free(w);
	return status;
}

static bool read_chosen(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	if (a->has_chosen)
		skep_scenario_finish(&a->chosen);
	a->has_chosen = skep_assignments_read(&a->base, &a->chosen, reterr);
	return a->has_chosen;
}

/* How long stretches are, how many, and where in the run. */
void skep_ask_stretch(struct skep_ask_answer *a, struct skep_ask_variation *v, double events, uint32_t seeds)
{
	v->events = events;
	v->seeds = seeds;
	v->least_seeds = LEAST_SEEDS;
	if (!a->question.request->spot || v->stays)
		return;
	double run_s = a->figures.time_s > 0 ? a->figures.time_s : 4 * 3600;
	v->spread_s = fmin(run_s, 20 * 86400.0);
}

bool skep_ask_try(struct skep_ask_answer *a, struct skep_ask_tried *tried, uint32_t count, int *ret_signal)
{
	struct skep_ask_variation *variation = calloc(count, sizeof *variation);
	struct skep_ask_figures *figures = calloc(count, sizeof *figures);
	bool ok = variation && figures;
	for (uint32_t i = 0; ok && i < count; i++)
		variation[i] = tried[i].variation;
	ok = ok && skep_ask_evaluate(&a->base, variation, count, a->question.request->processes, figures, ret_signal);
	for (uint32_t i = 0; ok && i < count; i++) {
		tried[i].figures = figures[i];
		a->events += figures[i].events;
	}
	free(variation);
	free(figures);
	return ok;
}

/* Is it below so many times what the choice takes, and likely so by the seeds: of half the interval, seven to one? With few seeds
 * the mean decides. */
static bool is_less(const struct skep_ask_tried *own, const struct skep_ask_tried *t, bool money, double than)
{
	struct skep_interval r = skep_ask_times(&t->figures, &own->figures, money);
	return r.mean < than && (!t->refined || 0.5 * (r.mean + r.high) < 1);
}

static double lost_share(const struct skep_ask_figures *f)
{
	return f->lost > 0 ? (double)f->lost / (f->lost + f->stretches) : 0;
}

/* What is as fast is better if it is cheaper; what is hardly faster is not if it is dear; and what its seeds do not tell from the
 * choice is not better. */
static bool takes_its_place(const struct skep_ask_tried *own, const struct skep_ask_tried *t, bool money)
{
	double mine = skep_ask_usd(&own->figures), theirs = skep_ask_usd(&t->figures);
	const struct skep_ask_figures *f = &t->figures;
	if (!own->figures.ok ||
		(own->figures.lost > 0 && f->lost == 0)) /* it may come to no end, and the other one does */
		return true;
	if (lost_share(f) > lost_share(&own->figures))
		return false;
	if (money)
		return is_less(own, t, true, SKEP_ASK_BETTER);
	if (f->time_s < SKEP_ASK_BETTER * own->figures.time_s)
		return is_less(own, t, false, SKEP_ASK_BETTER) &&
		       (f->time_s < SKEP_ASK_MUCH_BETTER * own->figures.time_s || !(theirs > SKEP_ASK_DEAR * mine));
	return f->time_s < AS_FAST * own->figures.time_s && is_less(own, t, true, CHEAPER);
}

bool skep_ask_adopt(const struct skep_ask_tried *tried, struct skep_assignments *base, bool *ret_adopted)
{
	bool ok = true;
	*ret_adopted = !tried->figures.searched || tried->figures.allocation[0] != '\0';
	if (!*ret_adopted)
		return true;
	for (uint32_t i = 0; ok && i < tried->variation.sets; i++)
		ok = skep_assignments_add(base, tried->variation.set[i]);
	for (uint32_t i = 0; ok && i < tried->figures.fits; i++)
		ok = skep_assignments_add(base, tried->figures.fit[i]);
	if (ok && tried->figures.searched)
		ok = skep_assignments_add(base, tried->figures.allocation);
	return ok;
}

/* Was it, too, simulated with all seeds that the choice was? */
static bool can_be_adopted(const struct skep_ask_answer *a, uint32_t which)
{
	return a->other[which].refined == a->other[0].refined;
}

/* One key of a method that all of the two have, which says nothing of the others: "" if it is not that. */
static void lone_key(const struct skep_ask_tried *t, char *ret, size_t size)
{
	const char *set = t->variation.set[0];
	bool lone = t->variation.sets == 1 && t->figures.fits == 0 && !t->figures.searched;
	bool apart = strncmp(set, "sync.", 5) == 0 || strncmp(set, "schedule.", 9) == 0;
	snprintf(ret, size, "%.*s", lone && apart ? (int)strcspn(set, "=") : 0, set);
}

/* What is better than the choice in another key than those before it, as one variation of what was adopted. False: nothing is. */
static bool list_together(const struct skep_ask_answer *a, const uint32_t *rank, uint32_t ranked, bool money,
	struct skep_ask_variation *ret)
{
	char key[SKEP_ASK_VARIATIONS_MAX][64];
	uint32_t keys = 0;
	*ret = (struct skep_ask_variation){.label = "together", .question = &a->question, .keeps = true};
	lone_key(&a->other[rank[0]], key[keys++], sizeof key[0]);
	for (uint32_t i = 1; key[0][0] != '\0' && i < ranked && ret->sets < SKEP_ASK_SETS_MAX; i++) {
		const struct skep_ask_tried *t = &a->other[rank[i]];
		lone_key(t, key[keys], sizeof key[0]);
		bool other =
			key[keys][0] != '\0' && can_be_adopted(a, rank[i]) && takes_its_place(&a->other[0], t, money);
		for (uint32_t k = 0; k < keys; k++)
			other = other && strcmp(key[k], key[keys]) != 0;
		if (other)
			memcpy(ret->set[ret->sets++], t->variation.set[0], sizeof ret->set[0]);
		keys += other;
	}
	return ret->sets > 0;
}

/* Beside the best, ranked first, what is better than the choice in another key, if both together are better than the best alone:
 * were each to wait for a comparison of its own, events would not do for all. */
static bool adopt_more(struct skep_ask_answer *a, const uint32_t *rank, uint32_t ranked, bool money, int *ret_signal)
{
	struct skep_ask_tried *t = calloc(1, sizeof *t);
	bool any = t && list_together(a, rank, ranked, money, &t->variation), ok = t != NULL;
	if (any) {
		skep_ask_stretch(a, &t->variation, SKEP_ASK_COMPARED_EVENTS, REFINED_SEEDS);
		ok = skep_ask_try(a, t, 1, ret_signal);
	}
	const struct skep_ask_figures *best = &a->other[rank[0]].figures;
	bool better = any && ok && t->figures.ok && t->figures.lost <= best->lost &&
	              skep_ask_times(&t->figures, best, money).mean < 1;
	for (uint32_t i = 0; better && ok && i < t->variation.sets; i++)
		ok = skep_assignments_add(&a->base, t->variation.set[i]);
	free(t);
	return ok;
}

/* What is better than the choice by more than a little takes its place. */
static bool adopt(struct skep_ask_answer *a, bool *ret_adopted, int *ret_signal)
{
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX];
	bool money = a->question.request->objective == SKEP_ASK_MONEY;
	uint32_t ranked = skep_ask_rank(a->other, a->others, money, rank);
	*ret_adopted = false;
	if (ranked == 0)
		return true;
	uint32_t first = 0;
	while (first < ranked &&
		!(can_be_adopted(a, rank[first]) && takes_its_place(&a->other[0], &a->other[rank[first]], money)))
		first++;
	if (first == ranked)
		return true;
	*ret_adopted = true;
	if (!skep_ask_adopt(&a->other[rank[first]], &a->base, ret_adopted))
		return false;
	return !*ret_adopted || adopt_more(a, rank + first, ranked - first, money, ret_signal);
}

static enum status fail(enum status status, struct skep_diag *reterr, const char *what)
{
	skep_fail(reterr, "%s", what);
	return status;
}

/* Of the stretches that came to an end. */
static void sum_usd(const struct skep_ask_figures *f, double *ret_machines, double *ret_egress)
{
	*ret_machines = *ret_egress = 0;
	for (uint32_t i = 0; i < SKEP_ASK_SEEDS_MAX; i++) {
		bool both = isfinite(f->stretch[i].usd) && isfinite(f->stretch[i].egress_usd);
		*ret_egress += both ? f->stretch[i].egress_usd : 0;
		*ret_machines += both ? f->stretch[i].usd - f->stretch[i].egress_usd : 0;
	}
}

/* Short stretches have another share of newcomers than a run has, and these download what is paid by the byte: machines and
 * egress are scaled each by itself. */
static void scale_stretches(struct skep_ask_tried *tried, uint32_t count, const struct skep_ask_figures *own,
	double times, double usd_machines, double usd_egress)
{
	double machines, egress;
	uint32_t stretches = own->stretches;
	sum_usd(own, &machines, &egress);
	double times_machines = machines > 0 && isfinite(usd_machines) ? usd_machines * stretches / machines : 1;
	double times_egress = egress > 0 && isfinite(usd_egress) ? usd_egress * stretches / egress : 1;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < SKEP_ASK_SEEDS_MAX && !tried[i].variation.stays; k++) {
			struct skep_ask_stretch *s = &tried[i].figures.stretch[k];
			double of_machines = s->usd - s->egress_usd;
			s->time_s *= times;
			s->egress_usd *= times_egress;
			s->usd = of_machines * times_machines + s->egress_usd;
		}
}

/* All by the first, which takes what `by` says, and by the ratio over the stretches that both have. */
void skep_ask_scale(struct skep_ask_tried *tried, uint32_t count, const struct skep_ask_figures *by)
{
	struct skep_ask_figures *own = &tried[0].figures;
	double time_s = by->time_s, usd = skep_ask_usd(by), busier = by->utilisation / own->utilisation;
	scale_stretches(tried, count, own, time_s / own->time_s, by->usd_machines, by->usd_egress);
	for (uint32_t i = 0; i < count; i++) {
		struct skep_ask_figures *f = &tried[i].figures;
		double long_s = time_s * skep_ask_times(f, own, false).mean, machines, egress;
		double dear_usd = usd * skep_ask_times(f, own, true).mean;
		if (!f->ok || !isfinite(long_s) || tried[i].variation.stays)
			continue; /* a stretch in which no machine is lost is as the run is */
		f->step_s *= long_s / f->time_s;
		f->time_s = long_s;
		f->utilisation = isfinite(busier) ? fmin(1, busier * f->utilisation) : f->utilisation;
		sum_usd(f, &machines, &egress);
		if (!isfinite(dear_usd) || !(machines + egress > 0))
			continue;
		f->usd_egress = dear_usd * egress / (machines + egress);
		f->usd_machines = dear_usd - f->usd_egress;
	}
}

/* More seeds for the choice, and for the best that hardly differ from it; where machines stay two say enough. */
static bool refine(struct skep_ask_answer *a, int *ret_signal)
{
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX], which[REFINED + 1] = {0}, count = 1;
	bool money = a->question.request->objective == SKEP_ASK_MONEY;
	uint32_t ranked = skep_ask_rank(a->other, a->others, money, rank);
	const struct skep_ask_figures *own = &a->other[0].figures;
	if (!a->question.request->spot)
		return true;
	struct skep_ask_tried *t = calloc(REFINED + 1, sizeof *t);
	for (uint32_t i = 0; i < ranked && count <= REFINED; i++) {
		double times = skep_ask_times(&a->other[rank[i]].figures, own, money).mean;
		if (!(times > REFINED_WITHIN)) /* the choice may come to no end at all */
			which[count++] = rank[i];
	}
	for (uint32_t i = 0; t && i < count; i++) {
		t[i].variation = a->other[which[i]].variation;
		skep_ask_stretch(a, &t[i].variation, SKEP_ASK_COMPARED_EVENTS, REFINED_SEEDS - COMPARED_SEEDS);
		t[i].variation.first = COMPARED_SEEDS;
	}
	bool ok = t && (count == 1 || skep_ask_try(a, t, count, ret_signal));
	for (uint32_t i = 0; ok && count > 1 && i < count; i++) {
		skep_ask_figures_join(&a->other[which[i]].figures, &t[i].figures);
		a->other[which[i]].refined = true;
	}
	free(t);
	return ok;
}

static void scale_by_own(struct skep_ask_answer *a)
{
	const struct skep_ask_figures own = a->other[0].figures;
	skep_ask_scale(a->other, a->others, &own);
	a->figures = a->other[0].figures;
}

static bool compare_once(struct skep_ask_answer *a, int *ret_signal)
{
	for (uint32_t i = 0; i < a->others; i++) {
		struct skep_ask_variation *v = &a->other[i].variation;
		skep_ask_stretch(a, v, SKEP_ASK_COMPARED_EVENTS, COMPARED_SEEDS);
		v->events_most = i > 0 ? COMPARED_MOST : 0;
		if (!a->question.request->spot)
			v->least_seeds = 1;
		a->other[i].refined = false;
	}
	if (!skep_ask_try(a, a->other, a->others, ret_signal) || !refine(a, ret_signal))
		return false;
	scale_by_own(a);
	return true;
}

/* So many seeds for each row, so that its interval says something: with two, which are a round or two each, a row without the
 * machines whose losses decide may be off by half. Where machines stay two say enough. */
static bool settle(struct skep_ask_answer *a, int *ret_signal)
{
	struct skep_ask_tried *t = a->question.request->spot ? calloc(a->others, sizeof *t) : NULL;
	double before = a->events;
	if (!t)
		return !a->question.request->spot;
	for (uint32_t i = 0; i < a->others; i++) {
		uint32_t seen = a->other[i].refined ? REFINED_SEEDS : COMPARED_SEEDS;
		t[i].variation = a->other[i].variation;
		skep_ask_stretch(a, &t[i].variation, SKEP_ASK_COMPARED_EVENTS, SETTLED_SEEDS - seen);
		t[i].variation.first = seen;
	}
	bool ok = skep_ask_try(a, t, a->others, ret_signal);
	for (uint32_t i = 0; ok && i < a->others; i++) {
		skep_ask_figures_join(&a->other[i].figures, &t[i].figures);
		a->other[i].refined = true;
	}
	free(t);
	if (ok)
		scale_by_own(a);
	a->settled_events += a->events - before;
	return ok;
}

enum status skep_ask_died(int by, struct skep_diag *reterr)
{
	if (by == 0)
		return fail(STATUS_FAILED, reterr, "a process that simulated has died, or there is no memory for one");
	skep_fail(reterr, "ended by SIG%s before the answer was found", sigabbrev_np(by));
	return (enum status)(STATUS_SIGNAL + by);
}

void skep_ask_fail_without_end(const struct skep_ask_answer *a, const char *why, struct skep_diag *reterr)
{
	uint32_t stages = a->chosen.plan.stages;
	skep_fail(reterr,
		"no seed comes to an end with the best that was found, %u stage%s (%.200s): ask for more machines, %sor without "
		"--spot, for machines that stay",
		stages, skep_plural(stages), why, stages > 1 ? "for fewer --stages, " : "");
}

/* Compares other settings, and again where one of them takes the place of the choice. How often does not depend on the clock. */
enum status skep_ask_compare(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	bool adopted = true, settled = false;
	double begun = a->events;
	a->settled_events = 0;
	for (uint32_t pass = 0; adopted && pass <= COMPARISONS; pass++) {
		int by = 0;
		if (!read_chosen(a, reterr))
			return STATUS_FAILED;
		if (pass == 0)
			skep_ask_list_first(a);
		else
			skep_ask_list_others(a, &a->chosen);
		if (!compare_once(a, &by))
			return skep_ask_died(by, reterr);
		/* the first is of who takes part, and how often */
		double events = a->events - begun - a->settled_events;
		a->cut_short = settled || pass + 1 >= COMPARISONS || (pass > 1 && events > COMPARE_EVENTS);
		adopted = false;
		if (!a->cut_short && !adopt(a, &adopted, &by))
			return skep_ask_died(by, reterr);
		adopted = adopted || pass == 0;
		if (adopted)
			continue;
		bool ok = settle(a, &by);
		/* how many come to no end is told by longer runs (stated.c) */
		bool once_more = !settled && a->other[0].figures.lost == 0;
		if (!ok || (once_more && !adopt(a, &adopted, &by)))
			return skep_ask_died(by, reterr);
		settled = true;
	}
	if (a->figures.ok)
		return STATUS_DONE;
	if (a->figures.lost == 0)
		return fail(STATUS_FAILED, reterr, a->figures.why);
	skep_ask_fail_without_end(a, a->figures.why, reterr);
	return STATUS_FAILED;
}

enum status skep_ask_take(struct skep_ask_answer *a, uint32_t which, struct skep_diag *reterr)
{
	bool adopted;
	if (!skep_ask_adopt(&a->other[which], &a->base, &adopted))
		return fail(STATUS_FAILED, reterr, "not enough memory to plan this");
	assert(adopted);
	return skep_ask_compare_chosen(a, reterr);
}

enum status skep_ask_compare_chosen(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	int by = 0;
	if (!read_chosen(a, reterr))
		return STATUS_FAILED;
	skep_ask_list_others(a, &a->chosen);
	return compare_once(a, &by) && settle(a, &by) ? STATUS_DONE : skep_ask_died(by, reterr);
}
