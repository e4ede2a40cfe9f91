/* SPDX-License-Identifier: Apache-2.0
 *
 * stated.c - what the page states of the choice: simulated with seeds that were not used to choose it, each over a part of the
 * run of its own. A choice with which too many of these runs come to no end, since all machines of a stage are gone for an hour,
 * is sent back: short stretches, by which it was chosen, seldom see that.
 */
#include <stdlib.h>
#include <string.h>

#include "asking/answer.h"
#include "base/layout.h"

#define STATED_EVENTS 1e6  /* to state what is expected ... */
#define CHURN_EVENTS 1.9e6 /* ... where machines come and go: whole runs, unless they are long */
#define STATED_SEEDS 8u
#define LOST_MOST 1u   /* of these: with more the choice is sent back */
#define SENT_BACK 4u   /* others that are tried in its place */
#define OWN_SEED 1000u /* stretches have seeds behind those of the planner */

/* Each seed is a job of its own, so that they are done side by side; each in a part of the run of its own. */
static void list_seeds(struct skep_ask_answer *a, struct skep_ask_variation v[STATED_SEEDS])
{
	for (uint32_t i = 0; i < STATED_SEEDS; i++) {
		v[i] = (struct skep_ask_variation){.question = &a->question, .keeps = true, .from_start = true};
		skep_ask_stretch(a, &v[i], a->question.request->spot ? CHURN_EVENTS : STATED_EVENTS, 1);
		v[i].spread_s /= STATED_SEEDS;
		v[i].start_s = v[i].spread_s * i;
		snprintf(v[i].set[v[i].sets++], sizeof v[i].set[0], "seed=%llu",
			(unsigned long long)(a->question.request->seed + OWN_SEED + i));
	}
}

/* What crosses between sites, as the mean of those that came to an end. */
static void take_traffic(struct skep_ask_figures *to, const struct skep_ask_figures f[STATED_SEEDS], uint32_t count)
{
	for (uint32_t from = 0; from < SKEP_ASK_SITES_MAX; from++)
		for (uint32_t there = 0; there < SKEP_ASK_SITES_MAX; there++) {
			double sum = 0;
			for (uint32_t i = 0; i < STATED_SEEDS; i++)
				sum += f[i].ok ? f[i].bytes[from][there] : 0;
			to->bytes[from][there] = sum / count;
		}
	to->state_bytes = 0;
	for (uint32_t i = 0; i < STATED_SEEDS; i++)
		to->state_bytes += f[i].ok ? f[i].state_bytes / count : 0;
}

/* What a run is like, as the mean of those that came to an end; losses by the time in which they were. */
static void take_parts(struct skep_ask_figures *to, const struct skep_ask_figures f[STATED_SEEDS], uint32_t count)
{
	double time_s = 0, losses = 0;
	to->utilisation = to->passes_part = to->reduction_part = 0;
	to->extrapolated = false;
	for (uint32_t i = 0; i < STATED_SEEDS; i++) {
		if (!f[i].ok)
			continue;
		to->utilisation += f[i].utilisation / count;
		to->passes_part += f[i].passes_part / count;
		to->reduction_part += f[i].reduction_part / count;
		time_s += f[i].time_s;
		losses += f[i].preemptions_per_h * f[i].time_s;
		if (f[i].extrapolated && !to->extrapolated)
			memcpy(to->how, f[i].how, sizeof to->how);
		to->extrapolated = to->extrapolated || f[i].extrapolated;
	}
	to->preemptions_per_h = time_s > 0 ? losses / time_s : 0;
}

/* The means of those that came to an end become those of the choice. */
static uint32_t take_seeds(struct skep_ask_answer *a, const struct skep_ask_figures f[STATED_SEEDS])
{
	double time_s[STATED_SEEDS], usd[STATED_SEEDS], egress = 0;
	uint32_t count = 0, last = 0;
	for (uint32_t i = 0; i < STATED_SEEDS; i++) {
		if (!f[i].ok)
			continue;
		time_s[count] = f[i].time_s;
		usd[count++] = skep_ask_usd(&f[i]);
		egress += f[i].usd_egress;
		last = i;
	}
	if (count == 0)
		return 0;
	a->figures = f[last];
	a->time_s = skep_interval_of_one_more(time_s, count); /* it is one run that is paid for, not the mean of many */
	a->usd = skep_interval_of_one_more(usd, count);
	a->figures.time_s = a->time_s.mean;
	a->figures.step_s = a->time_s.mean / a->figures.steps;
	a->figures.usd_egress = egress / count;
	take_traffic(&a->figures, f, count);
	take_parts(&a->figures, f, count);
	a->figures.usd_machines = a->usd.mean - a->figures.usd_egress;
	a->figures.stretches = count;
	a->figures.lost = STATED_SEEDS - count;
	return count;
}

static bool simulate(struct skep_ask_answer *a, const struct skep_assignments *base,
	struct skep_ask_figures f[STATED_SEEDS], int *ret_signal)
{
	struct skep_ask_variation *v = calloc(STATED_SEEDS, sizeof *v);
	if (!v)
		return false;
	list_seeds(a, v);
	bool ok = skep_ask_evaluate(base, v, STATED_SEEDS, a->question.request->processes, f, ret_signal);
	free(v);
	return ok;
}

/* In place of the choice. *ret_can: it can be adopted. */
static bool simulate_other(struct skep_ask_answer *a, const struct skep_ask_tried *tried,
	struct skep_ask_figures f[STATED_SEEDS], bool *ret_can, int *ret_signal)
{
	struct skep_assignments base;
	bool ok = skep_assignments_copy(&a->base, &base) && skep_ask_adopt(tried, &base, ret_can);
	if (ok && *ret_can)
		ok = simulate(a, &base, f, ret_signal);
	skep_assignments_finish(&base);
	return ok;
}

static uint32_t lost_of(const struct skep_ask_figures f[STATED_SEEDS])
{
	uint32_t lost = 0;
	for (uint32_t i = 0; i < STATED_SEEDS; i++)
		lost += !f[i].ok;
	return lost;
}

/* Among the first SENT_BACK by rank of those with more machines, or fewer stages to be lost: the first of which at most
 * LOST_MOST runs come to no end, or else the one with the fewest of them; *ret_best is 0, the choice itself, where none has
 * fewer. `f`: the runs of what is found. */
static bool find_lasting(
	struct skep_ask_answer *a, struct skep_ask_figures f[STATED_SEEDS], uint32_t *ret_best, int *ret_signal)
{
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX], least = lost_of(f), tried = 0;
	uint32_t own = a->other[0].figures.machines, stages = a->other[0].figures.stages;
	uint32_t ranked = skep_ask_rank(a->other, a->others, a->question.request->objective == SKEP_ASK_MONEY, rank);
	struct skep_ask_figures *seen = malloc(STATED_SEEDS * sizeof *seen);
	bool ok = seen != NULL, can;
	*ret_best = 0;
	for (uint32_t i = 0; ok && i < ranked && least > LOST_MOST && tried < SENT_BACK; i++) {
		const struct skep_ask_tried *t = &a->other[rank[i]];
		if (t->figures.machines <= own && t->figures.stages >= stages)
			continue;
		tried++;
		memset(seen, 0, STATED_SEEDS * sizeof *seen);
		ok = simulate_other(a, t, seen, &can, ret_signal);
		if (!ok || !can || lost_of(seen) >= least)
			continue;
		least = lost_of(seen);
		*ret_best = rank[i];
		memcpy(f, seen, STATED_SEEDS * sizeof *seen);
	}
	free(seen);
	return ok;
}

/* The page says what was sent back, and why, below its assumptions. */
static void note_sent_back(struct skep_ask_answer *a, uint32_t lost)
{
	char method[400];
	uint32_t machines = a->other[0].figures.machines;
	skep_ask_method(&a->chosen, method, sizeof method);
	skep_ask_note(&a->question,
		"not chosen, though better by short stretches: %s, on %u machine%s; %u of %u seeds came to no end with it",
		method, machines, skep_plural(machines), lost, STATED_SEEDS);
}

enum status skep_ask_state(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	struct skep_ask_figures *f = calloc(STATED_SEEDS, sizeof *f);
	int by = 0;
	uint32_t best = 0;
	bool ok = f && simulate(a, &a->base, f, &by);
	uint32_t lost = ok ? lost_of(f) : 0;
	ok = ok && (lost <= LOST_MOST || find_lasting(a, f, &best, &by));
	enum status status = ok ? STATUS_DONE : skep_ask_died(by, reterr);
	if (ok && best > 0) {
		note_sent_back(a, lost);
		status = skep_ask_take(a, best, reterr);
	}
	if (status == STATUS_DONE && take_seeds(a, f) == 0) {
		skep_ask_fail_without_end(a, f[0].why, reterr);
		status = STATUS_FAILED;
	}
	free(f);
	return status;
}
