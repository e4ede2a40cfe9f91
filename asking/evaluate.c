/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.c - see evaluate.h.
 */
#include "asking/evaluate.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planning/problem/forecast.h"
#include "planning/trial/processes.h"
#include "planning/trial/trial.h"

struct batch { /* what a process needs */
	const struct skep_assignments *base;
	const struct skep_ask_variation *variation;
	struct skep_ask_figures *ret;
};

struct ear { /* hears which places have sent how much to which */
	struct skep_trial_ear trial;
	const struct skep_scenario *scenario;
	double bytes[SKEP_ASK_SITES_MAX][SKEP_ASK_SITES_MAX], state_bytes;
};

static void hear(void *context, const struct skep_link_use *use)
{
	struct ear *ear = context;
	const struct skep_topology *t = &ear->scenario->topology;
	uint32_t from = t->machine[skep_scenario_machine(ear->scenario, use->source)].place,
		 to = t->machine[skep_scenario_machine(ear->scenario, use->destination)].place;
	assert(from < t->places && to < t->places);
	double bytes = ear->trial.weight * (double)use->bytes;
	if (from < SKEP_ASK_SITES_MAX && to < SKEP_ASK_SITES_MAX)
		ear->bytes[from][to] += bytes;
	if (from != to && use->traffic == SKEP_TRAFFIC_STATE)
		ear->state_bytes += bytes;
}

static bool refuse(struct skep_ask_figures *f, const char *why)
{
	snprintf(f->why, sizeof f->why, "%.*s", (int)strcspn(why, "\n"), why);
	return false;
}

/* ---- which allocation ------------------------------------------------------------------------------------------------ */

/* The base, what the variation adds, and an allocation in the end (NULL: the base's). */
static bool assign(const struct batch *b, const struct skep_ask_variation *v, const struct skep_ask_figures *f,
	const char *allocation, struct skep_assignments *ret)
{
	bool ok = skep_assignments_copy(b->base, ret);
	for (uint32_t i = 0; ok && i < v->sets; i++)
		ok = skep_assignments_add(ret, v->set[i]);
	for (uint32_t i = 0; ok && i < f->fits; i++)
		ok = skep_assignments_add(ret, f->fit[i]);
	return ok && (!allocation || skep_assignments_add(ret, allocation));
}

struct course { /* a variation with one allocation */
	struct skep_assignments with;
	struct skep_scenario scenario;
	struct skep_planning planning;
	uint32_t *stage_of;
	struct skep_expected expected;
	bool read, posed, known;
	double step_s; /* expected; INFINITY: not known */
};

static void end(struct course *c)
{
	free(c->stage_of);
	if (c->posed)
		skep_planning_finish(&c->planning);
	if (c->read)
		skep_scenario_finish(&c->scenario);
	skep_assignments_finish(&c->with);
}

/* Without the trace: who is there at the start is all. */
static bool open_course(const struct batch *b, const struct skep_ask_variation *v, const char *allocation,
	struct course *c, struct skep_ask_figures *f)
{
	struct skep_diag error = {0};
	*c = (struct course){.step_s = INFINITY};
	struct skep_assignments with;
	bool ok = assign(b, v, f, allocation, &c->with) && skep_assignments_copy(&c->with, &with);
	ok = ok && skep_assignments_add(&with, "cluster.trace=null");
	c->read = ok && skep_assignments_read(&with, &c->scenario, &error);
	if (ok)
		skep_assignments_finish(&with);
	if (!c->read)
		return refuse(f, error.set ? error.message : "not enough memory");
	c->posed = skep_planning_make(&c->scenario, &c->planning, &error);
	c->stage_of = c->posed ? calloc(c->planning.workers, sizeof *c->stage_of) : NULL;
	if (!c->stage_of || !skep_planning_start(&c->planning, c->stage_of))
		return refuse(f, error.set ? error.message : "no allocation of it is known");
	c->known = skep_expected_known(&c->scenario) && skep_expected_make(&c->planning, c->stage_of, &c->expected);
	c->step_s = c->known ? c->expected.step_s : INFINITY;
	return true;
}

/* What the aim counts of a step, the less the better: its time, or the price of who takes part in it. INFINITY: not known. */
static double worth(const struct course *c, const struct skep_ask_request *request)
{
	double usd_per_s = 0;
	if (request->objective != SKEP_ASK_MONEY || !c->known || c->planning.rent == NULL)
		return c->step_s;
	for (uint32_t i = 0; i < c->planning.workers; i++)
		usd_per_s += c->stage_of[i] != SKEP_SPARE ? c->planning.rent[i] : 0;
	return c->step_s * usd_per_s;
}

/* The better of the two. Either way *c is to be ended. */
static bool choose(
	const struct batch *b, const struct skep_ask_variation *v, struct course *c, struct skep_ask_figures *f)
{
	static const char search[] = "cluster.allocation={method: portfolio}";
	struct course other;
	bool ok = v->keeps && open_course(b, v, NULL, c, f);
	if (!v->keeps)
		*c = (struct course){.step_s = INFINITY};
	if (!v->replan)
		return ok;
	bool found = open_course(b, v, search, &other, f);
	f->searched = found && (!ok || worth(&other, v->question->request) < 0.999 * worth(c, v->question->request));
	if (!f->searched) {
		end(&other);
		return ok;
	}
	/* the allocation that was found becomes an assignment, so that every seed has the same */
	char *allocation = skep_planning_assignment(&other.planning, other.stage_of);
	end(&other);
	end(c);
	ok = allocation && open_course(b, v, allocation, c, f);
	assert(!allocation || strlen(allocation) < sizeof f->allocation);
	if (ok)
		snprintf(f->allocation, sizeof f->allocation, "%s", allocation);
	free(allocation);
	return ok;
}

/* The largest microbatch that fits, first with activations that are kept, then with activations that are computed twice. */
static bool choose_fitting(
	const struct batch *b, const struct skep_ask_variation *v, struct course *c, struct skep_ask_figures *f)
{
	bool ok = choose(b, v, c, f);
	for (uint32_t twice = 0; twice < 2 && v->fit; twice++)
		for (uint32_t m = 16; m >= 1 && !ok; m /= 2) {
			end(c);
			f->fits = 1 + twice;
			snprintf(f->fit[0], sizeof f->fit[0], "schedule.microbatch=%u", m);
			snprintf(f->fit[1], sizeof f->fit[1], "schedule.checkpoint_activations=true");
			ok = choose(b, v, c, f);
		}
	return ok;
}

/* ---- stretches ------------------------------------------------------------------------------------------------------- */

/* So many rounds as about that many events are. */
static struct skep_trial_span span_of(const struct skep_scenario *s, double events, uint32_t needed)
{
	double rounds = fmax(2, floor(events / skep_trial_events(s)));
	uint32_t all = needed > 0 && needed < s->plan.rounds ? needed : s->plan.rounds;
	struct skep_trial_span span = {.whole = false};
	span.rounds = rounds < all ? (uint32_t)rounds : all;
	if (span.rounds < 2)
		span.rounds = 2 < s->plan.rounds ? 2 : s->plan.rounds;
	span.warm_up = span.rounds >= all ? 0 : (span.rounds + 4) / 5;
	if (span.warm_up >= span.rounds)
		span.warm_up = span.rounds - 1;
	return span;
}

struct sum {
	double round_s, bytes[SKEP_ASK_SITES_MAX][SKEP_ASK_SITES_MAX], rounds, usd_per_s, utilisation, losses, time_s,
		egress_usd, passes_s, reduction_s, state_bytes;
	uint32_t count;
};

/* Fewer, where two rounds have many more events than a stretch shall have. */
static uint32_t seeds_of(const struct skep_ask_variation *v, double events)
{
	double most = floor(2 * v->events * v->seeds / events);
	uint32_t least = v->seeds < v->least_seeds ? v->seeds : v->least_seeds;
	return most < least ? least : most < v->seeds ? (uint32_t)most : v->seeds;
}

/* Where the nth stretch is: by the golden ratio, so that however many there are they are spread evenly. */
static double place_of(uint32_t nth)
{
	return fmod(0.5 + nth * 0.6180339887498949, 1);
}

static bool run_stretch(const struct course *c, const struct skep_ask_variation *v, uint32_t nth,
	const struct skep_trial_span *span, struct sum *sum, struct skep_ask_figures *f)
{
	struct skep_assignments with;
	struct skep_scenario s;
	struct skep_diag error = {0};
	struct skep_summary summary;
	char start[80];
	bool ok = skep_assignments_copy(&c->with, &with);
	with.has_seed = true;
	with.seed = c->scenario.seed + nth;
	double before =
		fmax(0, 1 - span->rounds * f->every / f->steps); /* the part of the run in which a stretch can begin */
	snprintf(
		start, sizeof start, "cluster.trace.start=%.0f s", before * (v->start_s + v->spread_s * place_of(nth)));
	bool moved = v->start_s + v->spread_s > 0 && !(v->from_start && f->whole);
	ok = ok && (!moved || skep_assignments_add(&with, start));
	bool read = ok && skep_assignments_read(&with, &s, &error);
	if (ok)
		skep_assignments_finish(&with);
	if (!read) { /* it was read without the trace: with this one there are too few machines at the start */
		f->lost++;
		return refuse(f, error.set ? error.message : "not enough memory");
	}
	struct ear ear = {.scenario = &s};
	ear.trial.recorder = (struct skep_recorder){.context = &ear, .link = hear};
	ok = skep_trial_run_span(span, &s, &ear.trial, &summary, &error) && summary.steps > 0;
	f->events += (double)summary.events;
	if (ok) {
		double time_s = summary.round_s * f->steps / f->every;
		double egress_usd = isnan(summary.egress_usd) ? 0 : summary.egress_usd; /* NAN: there is but one site */
		double usd_per_s = (summary.cost_usd - egress_usd) / summary.time_s;
		double rounds = (double)summary.steps / f->every;
		double sent_usd = egress_usd * f->steps / f->every / rounds;
		f->stretch[nth] = (struct skep_ask_stretch){
			.time_s = time_s, .usd = usd_per_s * time_s + sent_usd, .egress_usd = sent_usd};
		f->stretches++;
		sum->round_s += summary.round_s;
		sum->usd_per_s += usd_per_s;
		sum->egress_usd += egress_usd;
		sum->rounds += rounds;
		sum->utilisation += summary.utilisation;
		sum->losses += (double)summary.preemptions;
		sum->passes_s += isnan(summary.passes_s) ? 0 : summary.passes_s;
		sum->reduction_s += isnan(summary.reduction_s) ? 0 : summary.reduction_s;
		sum->time_s += summary.time_s;
		sum->state_bytes += ear.state_bytes;
		sum->count++;
		for (uint32_t i = 0; i < SKEP_ASK_SITES_MAX; i++)
			for (uint32_t j = 0; j < SKEP_ASK_SITES_MAX; j++)
				sum->bytes[i][j] += ear.bytes[i][j];
	} else {
		bool memory = skep_diag_is_memory(&error);
		refuse(f, memory               ? error.message
			  : summary.failure[0] ? summary.failure
					       : "a stage lost its last worker, and no other came in time");
		f->lost += !memory;
	}
	skep_scenario_finish(&s);
	return ok;
}

/* The number of a place of the topology among the sites of the question. */
static uint32_t site_of(const struct skep_ask_question *q, const char *place)
{
	for (uint32_t i = 0; i < q->sites; i++)
		if (strcmp(q->site[i].name, place) == 0)
			return i;
	return UINT32_MAX;
}

/* Of the whole run: what crosses between sites, and what is paid for it. */
static void fill_traffic(
	const struct course *c, const struct skep_ask_question *q, const struct sum *sum, struct skep_ask_figures *f)
{
	const struct skep_topology *t = &c->scenario.topology;
	double all = f->steps / f->every / sum->rounds; /* rounds of the run, for each that was simulated */
	f->usd_egress = all * sum->egress_usd;
	f->state_bytes = all * sum->state_bytes;
	for (uint32_t i = 0; i < t->places && i < SKEP_ASK_SITES_MAX; i++)
		for (uint32_t j = 0; j < t->places && j < SKEP_ASK_SITES_MAX; j++) {
			uint32_t from = site_of(q, t->place_name[i]), to = site_of(q, t->place_name[j]);
			if (from == UINT32_MAX || to == UINT32_MAX)
				continue;
			f->bytes[from][to] = all * sum->bytes[i][j];
		}
}

static void fill(const struct course *c, struct skep_ask_figures *f)
{
	const struct skep_scenario *s = &c->scenario;
	struct skep_forecast forecast;
	f->stages = s->plan.stages;
	f->every = (uint32_t)(c->planning.throughput[0].period + 0.5);
	f->samples = (uint32_t)(s->batch / f->every);
	for (uint32_t stage = 0; stage < f->stages; stage++) {
		uint32_t members = 0;
		for (uint32_t i = 0; i < c->planning.workers; i++)
			members += c->stage_of[i] == stage;
		f->machines += members;
		f->replicas = members > f->replicas ? members : f->replicas;
		f->memory_bytes = fmax(f->memory_bytes, s->memory_bytes[stage]);
	}
	skep_forecast_make(&c->planning, c->stage_of, 1, &forecast);
	f->extrapolated = forecast.extrapolated;
	memcpy(f->how, forecast.how, sizeof f->how);
	f->steps = (double)forecast.rounds * f->every;
	f->tokens = f->steps * f->samples * s->model.sequence;
	f->expected = c->expected;
	if (c->known) {
		bool worker = c->expected.bound <= SKEP_EXPECTED_CONNECTION;
		uint32_t from = worker ? c->planning.machine[c->expected.from] : 0;
		f->bound_machine = s->machine_of ? s->machine_of[from] : from;
		skep_expected_bound_text(&c->planning, &c->expected, f->bound, sizeof f->bound);
	}
}

static bool evaluate(const struct batch *b, const struct skep_ask_variation *v, struct skep_ask_figures *f)
{
	struct course c;
	struct sum sum = {.round_s = 0};
	for (uint32_t i = 0; i < SKEP_ASK_SEEDS_MAX; i++)
		f->stretch[i] = (struct skep_ask_stretch){NAN, NAN, NAN};
	bool ok = choose_fitting(b, v, &c, f);
	if (ok)
		fill(&c, f);
	if (ok && f->steps <= 0)
		ok = refuse(f, "the loss is not reached within train.until.steps");
	double two = ok ? 2 * skep_trial_events(&c.scenario) : 0;
	if (ok && v->events_most > 0 && two > v->events_most) {
		snprintf(f->why, sizeof f->why, "not compared: two of its rounds are %.2g million events", two * 1e-6);
		ok = false;
	}
	if (ok) {
		struct skep_trial_span span = span_of(&c.scenario, v->events, (uint32_t)(f->steps / f->every));
		f->rounds = span.rounds;
		f->warm_up = span.warm_up;
		f->whole = span.rounds >= (uint32_t)(f->steps / f->every);
		uint32_t seeds = seeds_of(v, span.rounds * two / 2);
		for (uint32_t i = v->first; i < v->first + seeds; i++)
			run_stretch(&c, v, i, &span, &sum, f);
	}
	ok = ok && sum.count > 0;
	if (ok) {
		f->step_s = sum.round_s / sum.count / f->every;
		f->time_s = f->step_s * f->steps;
		f->usd_machines = sum.usd_per_s / sum.count * f->time_s;
		f->utilisation = sum.utilisation / sum.count;
		f->passes_part = fmin(1, sum.passes_s / sum.round_s);
		f->reduction_part = fmin(1, sum.reduction_s / sum.round_s);
		f->preemptions_per_h = sum.losses / sum.time_s * 3600;
		fill_traffic(&c, v->question, &sum, f);
	}
	end(&c);
	return ok;
}

/* ---- in pairs -------------------------------------------------------------------------------------------------------- */

static double mean_of(double a, uint32_t of_a, double b, uint32_t of_b)
{
	return (a * of_a + b * of_b) / (of_a + of_b);
}

void skep_ask_figures_join(struct skep_ask_figures *to, const struct skep_ask_figures *more)
{
	uint32_t n = to->stretches, m = more->stretches;
	to->lost += more->lost;
	if (!to->ok || !more->ok)
		return;
	for (uint32_t i = 0; i < SKEP_ASK_SEEDS_MAX; i++)
		if (!isnan(more->stretch[i].time_s))
			to->stretch[i] = more->stretch[i];
	to->step_s = mean_of(to->step_s, n, more->step_s, m);
	to->time_s = mean_of(to->time_s, n, more->time_s, m);
	to->usd_machines = mean_of(to->usd_machines, n, more->usd_machines, m);
	to->usd_egress = mean_of(to->usd_egress, n, more->usd_egress, m);
	to->utilisation = mean_of(to->utilisation, n, more->utilisation, m);
	to->passes_part = mean_of(to->passes_part, n, more->passes_part, m);
	to->reduction_part = mean_of(to->reduction_part, n, more->reduction_part, m);
	to->preemptions_per_h = mean_of(to->preemptions_per_h, n, more->preemptions_per_h, m);
	to->stretches += m;
}

static double value_of(const struct skep_ask_figures *f, uint32_t stretch, bool money)
{
	return money ? f->stretch[stretch].usd : f->stretch[stretch].time_s;
}

/* Of means, since a run is as long as its stretches are in the mean. By the residuals of the pairs: Cochran, Sampling Techniques,
 * 1977, section 6.4. */
struct skep_interval skep_ask_times(const struct skep_ask_figures *f, const struct skep_ask_figures *own, bool money)
{
	struct skep_interval r = {.mean = NAN, .low = NAN, .high = NAN};
	double theirs = 0, mine = 0, squares = 0;
	for (uint32_t i = 0; i < SKEP_ASK_SEEDS_MAX; i++) {
		double a = value_of(f, i, money), b = value_of(own, i, money);
		bool both = isfinite(a) && isfinite(b);
		theirs += both ? a : 0;
		mine += both ? b : 0;
		r.count += both;
	}
	if (r.count == 0 || !(mine > 0))
		return r;
	r.mean = theirs / mine;
	for (uint32_t i = 0; i < SKEP_ASK_SEEDS_MAX; i++) {
		double off = value_of(f, i, money) - r.mean * value_of(own, i, money);
		squares += isfinite(off) ? off * off : 0;
	}
	if (r.count < 2)
		return r;
	double half = skep_student95(r.count - 1) * sqrt(squares / (r.count - 1) / r.count) * r.count / mine;
	r.low = r.mean - half;
	r.high = r.mean + half;
	return r;
}

/* ---- side by side ---------------------------------------------------------------------------------------------------- */

static bool work(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count)
{
	const struct batch *b = context;
	struct skep_ask_figures *f = calloc(1, sizeof *f);
	if (!f)
		return false;
	f->ok = evaluate(b, &b->variation[job->number], f);
	*ret = f;
	*ret_count = sizeof *f;
	return true;
}

static void take(void *context, uint32_t number, void *bytes, uint64_t count)
{
	struct batch *b = context;
	assert(count == sizeof *b->ret);
	memcpy(&b->ret[number], bytes, count);
	free(bytes);
}

bool skep_ask_evaluate(const struct skep_assignments *base, const struct skep_ask_variation *variation, uint32_t count,
	uint32_t processes, struct skep_ask_figures *ret, int *ret_signal)
{
	struct batch b = {.base = base, .variation = variation, .ret = ret};
	for (uint32_t i = 0; i < count; i++)
		assert(variation[i].seeds > 0 && variation[i].first + variation[i].seeds <= SKEP_ASK_SEEDS_MAX);
	return skep_processes_run(processes, 0, count, work, take, &b, NULL, NULL, ret_signal);
}
