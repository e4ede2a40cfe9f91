/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - see plan.h. Cheap, then dear: every search walks on the expected time of a step (core/allocate/throughput.h); the
 * best few of what they found, the scenario's own allocation and random ones are then simulated, and the simulator chooses.
 *
 * Decides what a budget means. Without --budget each search may ask up to EVALUATIONS times, and the result depends on the
 * scenario and its seed alone. With it, searches share half of the time and trials the rest, so the result also depends on the
 * machine.
 *
 * Keeps true: the scenario's own allocation is a candidate, so what is chosen is never worse in the simulator.
 */
#include "commands/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands/output.h"
#include "commands/plan_confirm.h"
#include "commands/plan_joint.h"
#include "commands/plan_work.h"
#include "planning/cuts.h"
#include "planning/interval.h"
#include "planning/read.h"
#include "planning/search.h"

#define EVALUATIONS 20000u
#define SMALL_POOL 64.0 /* workers: larger ones get fewer of the evaluations that grow with their square */
#define TRIALS 6u       /* of what was found */

static const struct {
	enum skep_method method;
	enum skep_planning_view view;
	bool lean; /* may leave machines out */
} searches[] = {
	{SKEP_METHOD_CONTIGUOUS, SKEP_VIEW_SHARED, false}, {SKEP_METHOD_STRIDED, SKEP_VIEW_SHARED, false},
	{SKEP_METHOD_GREEDY, SKEP_VIEW_SHARED, false}, {SKEP_METHOD_RELAXED, SKEP_VIEW_SHARED, false},
	{SKEP_METHOD_GENETIC, SKEP_VIEW_SHARED, false}, {SKEP_METHOD_ANNEAL, SKEP_VIEW_SHARED, false},
	{SKEP_METHOD_PORTFOLIO, SKEP_VIEW_SHARED, false}, {SKEP_METHOD_PORTFOLIO, SKEP_VIEW_ALONE, false},
	{SKEP_METHOD_PORTFOLIO, SKEP_VIEW_SHARED, true},
	{SKEP_METHOD_EXACT, SKEP_VIEW_SHARED, false}, /* the last, so that others show what they can do by themselves */
};
#define SEARCHES (sizeof searches / sizeof searches[0])

static enum status complain(enum status status, const char *message)
{
	fprintf(stderr, "skep: %s\n", message);
	return status;
}

static const char lacking[] = "not enough memory to plan this scenario";

uint64_t plan_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t read_clock(void *clock)
{
	(void)clock;
	return plan_now_ns();
}

static bool is_late(const struct plan_work *w)
{
	return w->until_ns > 0 && plan_now_ns() >= w->until_ns;
}

/* ---- search ------------------------------------------------------------------------------------------------------- */

bool plan_add(struct plan_work *w, const char *name, struct plan_candidate **ret)
{
	struct plan_candidate *c = &w->candidate[w->candidates];
	*c = (struct plan_candidate){.name = name, .fits = true, .value = INFINITY, .mean_s = NAN, .worst_s = NAN};
	c->stage_of = calloc(w->planning.workers, sizeof *c->stage_of);
	w->candidates += c->stage_of != NULL;
	*ret = c;
	return c->stage_of != NULL;
}

static void expect(struct plan_work *w, struct plan_candidate *c)
{
	for (uint32_t view = 0; view < SKEP_VIEWS; view++)
		c->step_s[view] = w->cost[view]->whole(w->cost[view]->self, c->stage_of);
}

/* Seconds that the cost takes to make an allocation current, and about as many of them as a change takes. */
static double cost_s(struct plan_work *w)
{
	uint64_t begin_ns = plan_now_ns(), now_ns = begin_ns;
	uint32_t asked = 0;
	for (; asked < 1000 && now_ns - begin_ns < 2000000; asked++, now_ns = plan_now_ns())
		w->cost[0]->whole(w->cost[0]->self, w->candidate[0].stage_of);
	return 1e-9 * (double)(now_ns - begin_ns) / asked;
}

/* What a search may ask. Making an allocation current takes as long as the square of the pool, a change as long as the pool: the
 * genetic search does the one, the portfolio both. With a limit of time as much as fills it, or annealing would end while it is
 * hot. */
static uint64_t evaluations_for(struct plan_work *w, enum skep_method method)
{
	double workers = w->planning.workers, scale = fmax(1, workers / SMALL_POOL), all = EVALUATIONS;
	if (w->until_ns > 0) {
		double change_s = cost_s(w) * fmin(1, 4 / workers) + 1e-7;
		all = fmax(100, 1e-9 * (double)(w->until_ns - w->begin_ns) / (2 * SEARCHES) / change_s / scale);
	}
	if (method == SKEP_METHOD_EXACT)
		return UINT64_MAX;
	if (method == SKEP_METHOD_GENETIC)
		return (uint64_t)fmax(200, all / (scale * scale));
	if (method == SKEP_METHOD_PORTFOLIO)
		return (uint64_t)fmax(2000, all / scale);
	return (uint64_t)all;
}

/* What was found so far that costs least in this view; NULL: nothing. */
static const uint32_t *best_of(const struct plan_work *w, enum skep_planning_view view)
{
	double least = SKEP_NEVER;
	const uint32_t *best = NULL;
	for (uint32_t i = 1; i < w->candidates; i++)
		if (w->candidate[i].step_s[view] < least) {
			least = w->candidate[i].step_s[view];
			best = w->candidate[i].stage_of;
		}
	return best;
}

/* The portfolio goes on from what the others found, so it is no worse. In large pools all do: a walk from nowhere would not get
 * there; in small ones each shows what it can do by itself. */
static bool begins_at_best(const struct plan_work *w, enum skep_method method)
{
	return method == SKEP_METHOD_PORTFOLIO || w->planning.workers > 4 * (uint32_t)SMALL_POOL;
}

/* `nth` of the searches gets its part of the time. */
static bool search_with(struct plan_work *w, size_t nth)
{
	struct plan_candidate *c;
	enum skep_planning_view view = searches[nth].view;
	const struct skep_objective *cost = searches[nth].lean && w->rented ? w->rented : w->cost[view];
	struct skep_search search = {.method = searches[nth].method,
		.problem = searches[nth].lean ? &w->planning.lean : &w->planning.problem,
		.cost = cost,
		.budget = {.evaluations = evaluations_for(w, searches[nth].method)},
		.seed = w->scenario.seed,
		.start = begins_at_best(w, searches[nth].method) ? best_of(w, view) : NULL,
		.together_s = skep_throughput_together(cost),
		.along_s = skep_throughput_along(cost),
		.alone_s = skep_throughput_alone(cost)};
	if (w->until_ns > 0) {
		search.budget.now_ns = read_clock;
		search.budget.until_ns = w->begin_ns + (w->until_ns - w->begin_ns) * (nth + 1) / (2 * SEARCHES);
	}
	if (searches[nth].lean && w->planning.lean.spares <= w->planning.problem.spares)
		return true;
	double count;
	if (search.method == SKEP_METHOD_EXACT && !skep_planning_exact(&w->planning, &count))
		return true;
	void *mem = malloc(skep_search_size(&search));
	if (!mem || !plan_add(w, skep_method_name(searches[nth].method), &c)) {
		free(mem);
		return false;
	}
	struct skep_found found = skep_search_run(&search, mem, c->stage_of);
	free(mem);
	if (search.method == SKEP_METHOD_EXACT && !found.optimal) { /* there was no time for all */
		free(c->stage_of);
		w->candidates--;
		return true;
	}
	c->view = view;
	c->lean = searches[nth].lean;
	c->evaluations = found.evaluations;
	c->optimal = found.optimal;
	c->mean_s = found.mean;
	c->worst_s = found.worst;
	expect(w, c);
	return true;
}

static bool go_on_with_given(struct plan_work *w);
static bool search_all(struct plan_work *w)
{
	bool ok = go_on_with_given(w);
	for (size_t i = 0; ok && i < SEARCHES; i++)
		ok = search_with(w, i);
	return ok;
}

/* ---- trials ------------------------------------------------------------------------------------------------------- */

static bool is_known(const struct plan_work *w, uint32_t which)
{
	const struct plan_candidate *c = &w->candidate[which];
	for (uint32_t i = 0; i < which; i++)
		if (memcmp(w->candidate[i].stage_of, c->stage_of, w->planning.workers * sizeof *c->stage_of) == 0)
			return true;
	return false;
}

/* In which place among those of its view: each view's best is tried before any view's second. */
static uint32_t rank_of(const struct plan_work *w, uint32_t which)
{
	const struct plan_candidate *c = &w->candidate[which];
	uint32_t rank = 0;
	for (uint32_t i = 1; i < w->candidates; i++) {
		const struct plan_candidate *other = &w->candidate[i];
		if (i == which || other->view != c->view || is_known(w, i))
			continue;
		rank += other->step_s[c->view] < c->step_s[c->view] ||
		        (other->step_s[c->view] <= c->step_s[c->view] && i < which);
	}
	return rank;
}

static void share_trials(struct plan_work *w)
{
	for (uint32_t i = 1; i < w->candidates; i++) /* the same allocation is simulated once */
		for (uint32_t j = 0; j < i; j++) {
			struct plan_candidate *c = &w->candidate[i], *same = &w->candidate[j];
			if (c->tried ||
				memcmp(c->stage_of, same->stage_of, w->planning.workers * sizeof *c->stage_of) != 0)
				continue;
			c->tried = same->tried;
			c->fits = same->fits;
			c->samples_per_s = same->samples_per_s;
			c->round_s = same->round_s;
			c->forecast = same->forecast;
			c->value = same->value;
		}
}

/* The best few that were found; at least one is tried however late it is. */
static void try_found(struct plan_work *w)
{
	uint32_t tried = 0;
	for (uint32_t rank = 0; rank < w->candidates; rank++)
		for (uint32_t i = w->candidates; i-- > 1;) {
			struct plan_candidate *c = &w->candidate[i];
			if (is_known(w, i) || rank_of(w, i) != rank || !(c->step_s[c->view] < SKEP_NEVER) ||
				tried >= TRIALS || (tried > 0 && is_late(w)))
				continue;
			tried += plan_trial(w, c);
		}
	share_trials(w);
}

/* ---- what it is compared with ------------------------------------------------------------------------------------- */

static struct plan_mean mean_of(const double *value, uint32_t count)
{
	struct skep_interval r = skep_interval_of(value, count);
	return (struct plan_mean){.count = r.count, .mean = r.mean, .half = r.high - r.mean};
}

static bool expect_random(struct plan_work *w)
{
	double step[PLAN_SAMPLES] = {0};
	uint32_t count = 0;
	struct plan_candidate c = {.stage_of = calloc(w->planning.workers, sizeof *c.stage_of)};
	for (uint32_t i = 0; c.stage_of && i < PLAN_SAMPLES; i++) {
		skep_planning_random(&w->planning, w->scenario.seed + i, c.stage_of);
		expect(w, &c);
		if (c.step_s[SKEP_VIEW_SHARED] < SKEP_NEVER)
			step[count++] = c.step_s[SKEP_VIEW_SHARED];
	}
	w->random_step = mean_of(step, count);
	bool ok = c.stage_of != NULL;
	free(c.stage_of);
	return ok;
}

/* A large pool's trials are dear, and its random allocations much alike. */
uint32_t plan_randoms(const struct plan_work *w)
{
	return w->planning.workers >= (uint32_t)SMALL_POOL ? PLAN_RANDOMS / 2 : PLAN_RANDOMS;
}

static bool try_random(struct plan_work *w)
{
	double rate[PLAN_RANDOMS] = {0}, round[PLAN_RANDOMS] = {0};
	uint32_t count = 0, wanted = plan_randoms(w);
	for (uint32_t i = 0; i < wanted; i++) {
		struct plan_candidate *c = &w->random[i];
		*c = (struct plan_candidate){.name = "random"};
		c->stage_of = calloc(w->planning.workers, sizeof *c->stage_of);
		if (!c->stage_of)
			return false;
		skep_planning_random(&w->planning, w->scenario.seed + i, c->stage_of);
		if (!(count > 0 && is_late(w)) && plan_trial(w, c)) {
			rate[count] = c->samples_per_s;
			round[count++] = c->round_s;
		}
	}
	w->random_rate = mean_of(rate, count);
	w->random_round = mean_of(round, count);
	return true;
}

static bool begin_with_start(struct plan_work *w)
{
	struct plan_candidate *c;
	if (!plan_add(w, "start", &c))
		return false;
	bool whole = skep_planning_start(&w->planning, c->stage_of);
	expect(w, c);
	if (whole)
		plan_trial(w, c);
	return true;
}

/* Somebody knows one that is good. */
static bool go_on_with_given(struct plan_work *w)
{
	struct plan_candidate *c;
	if (!w->given)
		return true;
	if (!plan_add(w, "settings", &c))
		return false;
	memcpy(c->stage_of, w->given, w->planning.workers * sizeof *c->stage_of);
	expect(w, c);
	return true;
}

/* By the longer trials, if there are any. */
bool plan_choose(struct plan_work *w)
{
	bool any = false, again = false;
	for (uint32_t i = 0; i < w->candidates; i++)
		again = again || w->candidate[i].again;
	for (uint32_t i = 0; i < w->candidates; i++) {
		const struct plan_candidate *c = &w->candidate[i], *best = &w->candidate[w->chosen];
		bool better =
			c->value < best->value || (!(best->value < c->value) && c->samples_per_s > best->samples_per_s);
		if (!c->tried || (again && !c->again) || (any && !better))
			continue;
		w->chosen = i;
		any = true;
	}
	return any;
}

void plan_choose_why(const struct plan_work *w, char *ret, size_t size)
{
	uint32_t i = 0;
	while (i < w->candidates && w->candidate[i].why[0] == '\0')
		i++;
	if (i < w->candidates)
		snprintf(ret, size, "no allocation that was found can be: %s", w->candidate[i].why);
	else
		snprintf(ret, size, "no allocation that was found fits the workers' memory");
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

bool plan_make_costs(struct plan_work *w)
{
	for (uint32_t view = 0; view < SKEP_VIEWS; view++) {
		const struct skep_throughput *throughput = &w->planning.throughput[view];
		w->cost_memory[view] = malloc(skep_throughput_size(throughput));
		if (!w->cost_memory[view])
			return false;
		w->cost[view] = skep_throughput_init(w->cost_memory[view], throughput);
	}
	if (w->aim != SKEP_AIM_COST || !w->planning.rent)
		return true;
	struct skep_throughput rented = w->planning.throughput[SKEP_VIEW_SHARED];
	rented.rent = w->planning.rent;
	w->rented_memory = malloc(skep_throughput_size(&rented));
	w->rented = w->rented_memory ? skep_throughput_init(w->rented_memory, &rented) : NULL;
	return w->rented != NULL;
}

void plan_free_costs(struct plan_work *w)
{
	for (uint32_t view = 0; view < SKEP_VIEWS; view++) {
		free(w->cost_memory[view]);
		w->cost_memory[view] = NULL;
	}
	free(w->rented_memory);
	w->rented_memory = NULL;
}

void plan_clear(struct plan_work *w)
{
	for (uint32_t i = 0; i < w->candidates; i++) {
		free(w->candidate[i].stage_of);
		free(w->candidate[i].layers);
	}
	for (uint32_t i = 0; i < PLAN_RANDOMS; i++)
		free(w->random[i].stage_of);
	plan_free_costs(w);
	free(w->cut);
	free(w->even);
	skep_planning_finish(&w->planning);
	skep_scenario_finish(&w->scenario);
}

enum status plan_prepare(struct plan_work *w, char *reterr, size_t size)
{
	if (!skep_planning_pose(&w->scenario, &w->planning, reterr, size))
		return STATUS_BAD_INPUT;
	w->cuts = w->cuts && skep_planned_cuts(&w->scenario) && skep_cuts_possible(&w->scenario);
	if (!skep_planning_check(&w->planning, reterr, size) && !(w->cuts && plan_cuts_open(w)))
		return STATUS_BAD_INPUT;
	w->rounds = plan_trial_rounds(&w->scenario);
	w->aim = w->scenario.planned ? w->scenario.planned->aim : SKEP_AIM_THROUGHPUT;
	snprintf(reterr, size, "%s", lacking);
	return plan_make_costs(w) ? STATUS_DONE : STATUS_FAILED;
}

bool plan_seek(struct plan_work *w)
{
	if (!begin_with_start(w) || !search_all(w))
		return false;
	try_found(w);
	return plan_cuts_seek(w);
}

static enum status show(const struct plan_work *w, const struct plan_confirm *confirmed)
{
	const struct arguments *a = w->arguments;
	if (a->json) {
		plan_print_json(w, confirmed, stdout);
		return STATUS_DONE;
	}
	plan_print(w, stdout);
	if (a->explain)
		plan_explain(w, stdout);
	if (confirmed)
		plan_confirm_print(w, confirmed, stdout);
	if (a->output && !a->quiet)
		fprintf(stderr, "wrote %s\n", a->output);
	return STATUS_DONE;
}

static enum status confirm(const struct plan_work *w)
{
	struct plan_confirm confirmed;
	enum status status = plan_confirm_run(w, &confirmed) ? show(w, &confirmed) : STATUS_FAILED;
	if (confirmed.signal != 0)
		status = (enum status)(STATUS_SIGNAL + confirmed.signal);
	if (confirmed.kept && !w->arguments->quiet)
		fprintf(stderr, "runs are in %s\n", w->arguments->db);
	plan_confirm_finish(&confirmed);
	return status;
}

/* What is to be expected of the choice comes first: it stands in the file, too. */
static enum status tell(struct plan_work *w)
{
	const struct arguments *a = w->arguments;
	struct plan_confirm stated;
	enum status status = STATUS_FAILED;
	if (plan_confirm_state(w, &stated)) {
		w->stated = &stated;
		status = a->output && !plan_write(w) ? STATUS_BAD_INPUT : a->confirm > 0 ? confirm(w) : show(w, NULL);
		w->stated = NULL;
	} else if (stated.signal != 0) {
		status = (enum status)(STATUS_SIGNAL + stated.signal);
	}
	plan_confirm_finish(&stated);
	return status;
}

static enum status plan(struct plan_work *w)
{
	char error[1024];
	w->cuts = true;
	enum status prepared = plan_prepare(w, error, sizeof error);
	if (prepared == STATUS_BAD_INPUT)
		fprintf(stderr, "%s: error: %s%s\n", w->scenario.path, error,
			w->cuts ? "; nor was another cut of the model found that would do" : "");
	if (prepared == STATUS_BAD_INPUT)
		return prepared;
	if (prepared != STATUS_DONE || !plan_seek(w) || !expect_random(w) || !try_random(w))
		return complain(STATUS_FAILED, lacking);
	plan_span_try(w);
	if (!plan_choose(w)) {
		plan_choose_why(w, error, sizeof error);
		fprintf(stderr, "%s: error: %s\n", w->scenario.path, error);
		return STATUS_BAD_INPUT;
	}
	if (!plan_cuts_adopt(w))
		return complain(STATUS_FAILED, lacking);
	return tell(w);
}

bool plan_read(struct plan_work *w, char *reterr, size_t size)
{
	struct skep_diag diag = {0};
	struct skep_scenario_options options = w->arguments->scenario;
	options.details = w->details;
	options.any_memory = true;
	options.tries_values = w->details != NULL; /* once, not for each combination */
	if (skep_planning_read(w->arguments->positional[0], &options, &w->scenario, &diag))
		return true;
	skep_diag_print(&diag, reterr, size);
	return false;
}

/* Reads the scenario, and chooses what is free in it. */
static enum status begin(struct plan_work *w)
{
	struct skep_choices choices;
	char error[2048];
	const struct skep_scenario_options *o = &w->arguments->scenario;
	w->details = stderr;
	if (!plan_read(w, error, sizeof error)) {
		fputs(error, stderr);
		return STATUS_BAD_INPUT;
	}
	if (!skep_output_no_source(w->arguments, &w->scenario) || !plan_confirm_seeds_ready(w))
		return STATUS_BAD_INPUT;
	skep_choices_make(w->scenario.planned, o->set, o->sets, &choices);
	if (choices.points == 0 && w->arguments->pareto)
		return complain(STATUS_BAD_INPUT,
			"--pareto: nothing is free to be compared: say what is in plan.search of the scenario");
	return choices.points > 0 ? plan_joint_choose(w) : STATUS_DONE;
}

enum status skep_plan_command(const struct arguments *arguments)
{
	if ((arguments->output && !plan_writable(arguments)) || !plan_confirm_ready(arguments))
		return STATUS_BAD_INPUT;
	struct plan_work *w = calloc(1, sizeof *w);
	if (!w)
		return complain(STATUS_FAILED, lacking);
	w->arguments = w->as_given = arguments;
	w->begin_ns = plan_now_ns();
	if (arguments->budget_s > 0)
		w->until_ns = w->begin_ns + (uint64_t)(1e9 * arguments->budget_s);
	enum status status = begin(w);
	if (status == STATUS_DONE)
		status = plan(w);
	struct plan_joint *joint = w->joint;
	plan_clear(w);
	plan_joint_destroy(joint);
	free(w);
	return status;
}
