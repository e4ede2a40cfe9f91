/* SPDX-License-Identifier: Apache-2.0
 *
 * confirm.c - see confirm.h. Each side is simulated with every seed, to its end, as `skep sim` would do it: the
 * plan as -o writes it; the scenario as it is written, with stages drawn at random by each seed (SWARM's start); and, if its
 * own allocation is another one, the scenario as it is written.
 *
 * Keeps true: the seeds are those behind the ones that the plan was simulated with, so the plan was not chosen for them; the
 * runs of one seed share its trace and its draws, and are compared as a pair; what comes out does not depend on how many
 * processes there were.
 */
#include "planning/plan/confirm.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/store/store_sweep.h"
#include "planning/trial/processes.h"
#include "planning/trial/simulate.h"
#include "scenarios/plan/plan.h"

#define LOCKED_MOST 240 /* tries of half a second each while another program keeps the database locked */

struct reply { /* behind it comes the image of the run's database, if one is kept */
	bool ok, ended, reached;
	double value[SKEP_FIGURES];
	uint64_t identity;
	struct skep_diag error;
};

struct course {
	struct skep_planner *planner;
	struct skep_confirm *confirm;
	struct skep_store *store; /* NULL: not opened, or nothing is kept */
	bool failed;              /* the database does not take runs; the planner has the error */
	bool lacking;             /* memory, for a statement */
};

static bool read_side(
	const struct skep_confirm_side *side, uint64_t seed, struct skep_scenario *ret, struct reply *reply)
{
	struct skep_assignments with = side->with;
	with.has_seed = true;
	with.seed = seed;
	return skep_assignments_read(&with, ret, &reply->error);
}

static void simulate(
	const struct skep_confirm *c, struct skep_scenario *s, struct skep_store *store, struct reply *reply)
{
	struct skep_summary summary;
	const struct skep_simulate_options options = {.store = store};
	if (c->stated)
		reply->ok = skep_trial_run_span(&c->span, s, NULL, &summary, &reply->error);
	else
		reply->ok = skep_simulate(s, &options, &summary, &reply->error);
	if (!reply->ok && !c->stated)
		skep_fail(&reply->error, "not enough memory to simulate it: take fewer processes with --jobs");
	if (!reply->ok)
		return;
	reply->ended = summary.ok;
	reply->reached = isfinite(summary.time_to_target_s);
	reply->value[SKEP_FIGURE_RATE] = summary.ok ? summary.throughput_samples_per_s : NAN;
	reply->value[SKEP_FIGURE_TIME] = summary.time_to_target_s;
	reply->value[SKEP_FIGURE_USD] = summary.cost_to_target_usd;
}

/* *ret_image is to be given to skep_sweep_image_free(). */
static void run(
	const struct course *c, struct skep_scenario *s, struct reply *reply, void **ret_image, size_t *ret_bytes)
{
	struct skep_store *store = NULL;
	bool kept = c->planner->options->db && !c->confirm->stated;
	if (kept && !(store = skep_store_open_memory(&reply->error)))
		return;
	uint64_t identity = kept ? skep_sweep_identity(s) : 0; /* of what is stated, not of a draw */
	if (!c->confirm->stated)
		skep_scenario_draw(s);
	simulate(c->confirm, s, store, reply);
	if (reply->ok && store) {
		reply->identity = identity;
		reply->ok = skep_sweep_image(store, ret_image, ret_bytes, &reply->error);
	}
	skep_store_close(store);
}

/* A statement is within the budget of time, but for its first two pairs. */
static bool is_late(const struct course *c, uint32_t number)
{
	return c->confirm->stated && number >= 2 * c->confirm->sides && skep_planner_is_late(c->planner);
}

static bool work_on(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count)
{
	const struct course *c = context;
	const struct skep_confirm *confirm = c->confirm;
	struct reply reply = {.value = {NAN, NAN, NAN}};
	struct skep_scenario s;
	void *image = NULL;
	size_t bytes = 0;
	const struct skep_confirm_side *side = &confirm->side[job->number % confirm->sides];
	if (is_late(c, job->number))
		skep_fail(&reply.error, "there was no time for it");
	else if (read_side(side, confirm->first_seed + job->number / confirm->sides, &s, &reply)) {
		run(c, &s, &reply, &image, &bytes);
		skep_scenario_finish(&s);
	}
	char *answer = malloc(sizeof reply + bytes);
	if (answer) {
		memcpy(answer, &reply, sizeof reply);
		if (bytes > 0)
			memcpy(answer + sizeof reply, image, bytes);
	}
	skep_sweep_image_free(image);
	*ret = answer;
	*ret_count = sizeof reply + bytes;
	return answer != NULL;
}

/* ---- what they answer ----------------------------------------------------------------------------------------------- */

static enum skep_sweep_put put_patiently(
	struct course *c, uint64_t identity, const void *image, size_t bytes, struct skep_diag *reterr)
{
	const struct timespec half = {.tv_nsec = 500000000};
	enum skep_sweep_put put = SKEP_SWEEP_PUT_LOCKED;
	int64_t run;
	for (uint32_t tries = 0; put == SKEP_SWEEP_PUT_LOCKED && tries < LOCKED_MOST; tries++) {
		if (tries > 0)
			nanosleep(&half, NULL);
		*reterr = (struct skep_diag){0};
		put = skep_sweep_put(c->store, identity, image, bytes, &run, reterr);
	}
	return put;
}

/* Opened when no other process of ours is there any more: a database must not pass through a fork. */
static void keep(struct course *c, const struct reply *reply, const void *image, size_t bytes)
{
	struct skep_diag error = {0};
	if (bytes == 0 || c->failed)
		return;
	if (!c->store)
		c->store = skep_store_open(c->planner->options->db, true, &error);
	c->failed = !c->store || put_patiently(c, reply->identity, image, bytes, &error) != SKEP_SWEEP_PUT_DONE;
	if (c->failed)
		skep_planner_fail(c->planner, STATUS_FAILED, "%s",
			error.set ? error.message : "the database is locked by another program");
}

static void take_answer(void *context, uint32_t number, void *bytes, uint64_t count)
{
	struct course *c = context;
	struct reply reply;
	struct skep_confirm_side *side = &c->confirm->side[number % c->confirm->sides];
	memcpy(&reply, bytes, sizeof reply);
	for (uint32_t i = 0; i < SKEP_FIGURES; i++)
		side->value[i][number / c->confirm->sides] = reply.value[i];
	side->ended += reply.ended;
	side->reached += reply.reached;
	if (!reply.ok && side->impossible++ == 0)
		snprintf(side->why, sizeof side->why, "%.511s", reply.error.message);
	c->lacking = c->lacking || (c->confirm->stated && skep_diag_is_memory(&reply.error));
	keep(c, &reply, (const char *)bytes + sizeof reply, count - sizeof reply);
	free(bytes);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

/* With an allocation more than what was read so far. False: no memory. */
static bool add_side(
	struct skep_confirm *confirm, const char *name, const struct skep_assignments *with, const char *allocation)
{
	struct skep_confirm_side *side = &confirm->side[confirm->sides++];
	*side = (struct skep_confirm_side){.name = name};
	bool ok = skep_assignments_copy(with, &side->with);
	ok = ok && (!allocation || skep_assignments_add(&side->with, allocation));
	for (uint32_t i = 0; i < SKEP_FIGURES; i++) {
		side->value[i] = calloc(confirm->seeds, sizeof *side->value[i]);
		ok = ok && side->value[i];
	}
	return ok;
}

static bool add_sides(const struct skep_planner *w, struct skep_confirm *confirm)
{
	struct skep_assignments given;
	char *plan = skep_planning_assignment(&w->planning, w->candidate[w->chosen].stage_of);
	bool other = w->scenario.allocation != SKEP_ALLOCATION_RANDOM && !confirm->stated;
	bool ok = skep_assignments_make(w->options->path, &w->options->given, &given) && plan;
	ok = ok && add_side(confirm, "random start", &given, "cluster.allocation={method: random}");
	ok = ok && (!other || add_side(confirm, "as written", &given, NULL));
	ok = ok && add_side(confirm, "plan", &w->with, plan);
	skep_assignments_finish(&given);
	free(plan);
	return ok;
}

static enum status run_all(struct skep_planner *w, struct skep_confirm *ret)
{
	struct course c = {.planner = w, .confirm = ret};
	int by = 0;
	if (!add_sides(w, ret))
		return skep_planner_fail(w, STATUS_FAILED, "not enough memory to confirm this plan");
	struct skep_progress *progress = w->options->progress;
	if (progress)
		*progress = skep_progress_begin("new seeds", progress->visible);
	bool ran = skep_processes_run(
		w->options->processes, 0, ret->seeds * ret->sides, work_on, take_answer, &c, NULL, progress, &by);
	if (progress)
		skep_progress_end(progress);
	ret->kept = c.store && !c.failed;
	skep_store_close(c.store);
	if (!ran && by != 0)
		return skep_planner_fail(w, (enum status)(STATUS_SIGNAL + by),
			"ended by SIG%s before it was known how good the plan is", sigabbrev_np(by));
	if (!ran)
		return skep_planner_fail(
			w, STATUS_FAILED, "a process that simulated has died, or there is no memory for one");
	if (c.lacking)
		return skep_planner_lack(w);
	return c.failed ? STATUS_FAILED : STATUS_DONE;
}

/* Behind those that chose and `others`; where no seeds are left, before them. */
static uint64_t first_seed(const struct skep_planner *w, uint32_t others, uint32_t seeds)
{
	uint64_t own = w->scenario.seed, chose = skep_planner_seeds(w);
	return own + chose + others + seeds > INT64_MAX ? own - others - seeds : own + chose + others;
}

enum status skep_confirm_run(struct skep_planner *w, struct skep_confirm *ret)
{
	uint32_t seeds = w->options->confirm;
	*ret = (struct skep_confirm){.seeds = seeds, .first_seed = first_seed(w, 0, seeds)};
	return run_all(w, ret);
}

enum status skep_confirm_state(struct skep_planner *w, struct skep_confirm *ret)
{
	struct skep_trial_span span = skep_trial_span_of(w, w->candidate[w->chosen].forecast.rounds);
	*ret = (struct skep_confirm){.stated = true,
		.span = span,
		.seeds = span.seeds,
		.first_seed = first_seed(w, SKEP_CONFIRM_SEEDS_MOST, span.seeds)};
	return run_all(w, ret);
}

void skep_confirm_finish(struct skep_confirm *confirm)
{
	for (uint32_t i = 0; i < confirm->sides; i++) {
		skep_assignments_finish(&confirm->side[i].with);
		for (uint32_t f = 0; f < SKEP_FIGURES; f++)
			free(confirm->side[i].value[f]);
	}
	*confirm = (struct skep_confirm){0};
}

enum status skep_confirm_ready(struct skep_planner *w)
{
	uint64_t needed = skep_planner_seeds(w) - 1 + (uint64_t)w->options->confirm;
	if (w->scenario.seed <= (uint64_t)INT64_MAX - needed)
		return STATUS_DONE;
	return skep_planner_fail(w, STATUS_BAD_INPUT,
		"--confirm %" PRIu32 ": takes the seeds up to %" PRIu64 " above the scenario's, %" PRIu64
		", and there is none above 9223372036854775807: take a smaller one",
		w->options->confirm, needed, w->scenario.seed);
}

/* ---- figures -------------------------------------------------------------------------------------------------------- */

struct skep_interval skep_confirm_difference(const struct skep_confirm *c, uint32_t side, enum skep_figure figure)
{
	return skep_interval_difference(c->side[c->sides - 1].value[figure], c->side[side].value[figure], c->seeds);
}

struct skep_interval skep_confirm_times(const struct skep_confirm *c, uint32_t side, enum skep_figure figure)
{
	const double *plan = c->side[c->sides - 1].value[figure], *other = c->side[side].value[figure];
	return figure == SKEP_FIGURE_RATE ? skep_interval_ratio(plan, other, c->seeds)
	                                  : skep_interval_ratio(other, plan, c->seeds);
}

struct skep_interval skep_confirm_mean(const struct skep_confirm *c, uint32_t side, enum skep_figure figure)
{
	return skep_interval_of(c->side[side].value[figure], c->seeds);
}

bool skep_confirm_has_whole(const struct skep_planner *w)
{
	const struct skep_confirm *c = w->stated;
	return c != NULL && c->span.whole && c->side[c->sides - 1].ended > 0;
}

double skep_confirm_whole_s(const struct skep_planner *w)
{
	const struct skep_candidate *chosen = &w->candidate[w->chosen];
	double trial_s = skep_planner_whole_s(w);
	if (!skep_confirm_has_whole(w))
		return trial_s;
	return trial_s * chosen->samples_per_s /
	       skep_confirm_mean(w->stated, w->stated->sides - 1, SKEP_FIGURE_RATE).mean;
}

double skep_confirm_least_times(const struct skep_confirm *c, uint32_t side, enum skep_figure figure)
{
	const double *plan = c->side[c->sides - 1].value[figure], *other = c->side[side].value[figure];
	double least = NAN;
	for (uint32_t i = 0; i < c->seeds; i++)
		least = fmin(least, figure == SKEP_FIGURE_RATE ? plan[i] / other[i] : other[i] / plan[i]);
	return least;
}
