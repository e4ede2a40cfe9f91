/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_confirm.c - see plan_confirm.h. Each side is simulated with every seed, to its end, as `skep sim` would do it: the
 * plan as -o writes it; the scenario as it is written, with stages drawn at random by each seed (SWARM's start); and, if its
 * own allocation is another one, the scenario as it is written.
 *
 * Keeps true: the seeds are those behind the ones that the plan was simulated with, so the plan was not chosen for them; the
 * runs of one seed share its trace and its draws, and are compared as a pair; what comes out does not depend on how many
 * processes there were.
 */
#include "commands/plan_confirm.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/store_sweep.h"
#include "commands/cores.h"
#include "commands/plan_jobs.h"
#include "commands/sweep_run.h"
#include "planning/read.h"

#define LOCKED_MOST 240 /* tries of half a second each while another program keeps the database locked */

static const char lacking[] = "not enough memory to confirm this plan";

struct reply { /* behind it comes the image of the run's database, if one is kept */
	bool ok, ended, reached;
	double value[PLAN_FIGURES];
	uint64_t identity;
	char why[512];
};

struct course {
	const struct plan_work *work;
	struct plan_confirm *confirm;
	struct skep_store *store; /* NULL: not opened, or nothing is kept */
	bool failed;              /* the database does not take runs; it was said */
};

static bool complain(const char *message)
{
	fprintf(stderr, "skep: %s\n", message);
	return false;
}

/* ---- a run, in the process that makes it ---------------------------------------------------------------------------- */

static bool read_side(const struct plan_work *w, const struct plan_side *side, uint64_t seed, struct skep_scenario *ret,
	struct reply *reply)
{
	const char *set[SETS_ROOM];
	struct skep_scenario_options o = side->arguments->scenario;
	struct skep_diag diag = {0};
	memcpy(set, o.set, o.sets * sizeof *set);
	if (side->set)
		set[o.sets++] = side->set;
	o.set = set;
	o.has_seed = true;
	o.seed = seed;
	if (skep_planning_read(w->scenario.path, &o, ret, &diag))
		return true;
	snprintf(reply->why, sizeof reply->why, "%.*s", (int)sizeof reply->why - 1, diag.message);
	return false;
}

static void simulate(
	const struct plan_confirm *c, struct skep_scenario *s, struct skep_store *store, struct reply *reply)
{
	struct skep_summary summary = {.ok = false};
	if (c->stated)
		reply->ok = plan_span_simulate(&c->span, s, &summary);
	else
		reply->ok = skep_sweep_simulate(s, store, false, &summary, reply->why, sizeof reply->why);
	if (!reply->ok)
		return;
	reply->ended = summary.ok;
	reply->reached = isfinite(summary.time_to_target_s);
	reply->value[PLAN_RATE] = summary.ok ? summary.throughput_samples_per_s : NAN;
	reply->value[PLAN_TIME] = summary.time_to_target_s;
	reply->value[PLAN_USD] = summary.cost_to_target_usd;
}

/* *ret_image is to be given to skep_sweep_image_free(). */
static void run(
	const struct course *c, struct skep_scenario *s, struct reply *reply, void **ret_image, size_t *ret_bytes)
{
	struct skep_store *store = NULL;
	bool kept = c->work->arguments->has_db && !c->confirm->stated;
	if (kept && !(store = skep_store_open_memory(reply->why, sizeof reply->why)))
		return;
	simulate(c->confirm, s, store, reply);
	if (reply->ok && store) {
		reply->identity = skep_sweep_identity(s);
		reply->ok = skep_sweep_image(store, ret_image, ret_bytes, reply->why, sizeof reply->why);
	}
	skep_store_close(store);
}

/* A statement is within the budget of time, but for its first two pairs. */
static bool is_late(const struct course *c, uint32_t number)
{
	uint64_t until_ns = c->work->until_ns;
	return c->confirm->stated && number >= 2 * c->confirm->sides && until_ns > 0 && plan_now_ns() >= until_ns;
}

static bool work_on(void *context, const struct skep_sweep_job *job, void **ret, uint64_t *ret_count)
{
	const struct course *c = context;
	const struct plan_confirm *confirm = c->confirm;
	struct reply reply = {.value = {NAN, NAN, NAN}};
	struct skep_scenario s;
	void *image = NULL;
	size_t bytes = 0;
	const struct plan_side *side = &confirm->side[job->number % confirm->sides];
	if (is_late(c, job->number))
		snprintf(reply.why, sizeof reply.why, "there was no time for it");
	else if (read_side(c->work, side, confirm->first_seed + job->number / confirm->sides, &s, &reply)) {
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
	struct course *c, uint64_t identity, const void *image, size_t bytes, char *error, size_t size)
{
	const struct timespec half = {.tv_nsec = 500000000};
	enum skep_sweep_put put = SKEP_SWEEP_PUT_LOCKED;
	int64_t run;
	for (uint32_t tries = 0; put == SKEP_SWEEP_PUT_LOCKED && tries < LOCKED_MOST; tries++) {
		if (tries > 0)
			nanosleep(&half, NULL);
		put = skep_sweep_put(c->store, identity, image, bytes, &run, error, size);
	}
	return put;
}

/* Opened when no other process of ours is there any more: a database must not pass through a fork. */
static void keep(struct course *c, const struct reply *reply, const void *image, size_t bytes)
{
	char error[1024] = "the database is locked by another program";
	if (bytes == 0 || c->failed)
		return;
	if (!c->store)
		c->store = skep_store_open(c->work->arguments->db, true, error, sizeof error);
	c->failed = !c->store ||
	            put_patiently(c, reply->identity, image, bytes, error, sizeof error) != SKEP_SWEEP_PUT_DONE;
	if (c->failed)
		complain(error);
}

static void take_answer(void *context, uint32_t number, void *bytes, uint64_t count)
{
	struct course *c = context;
	struct reply reply;
	struct plan_side *side = &c->confirm->side[number % c->confirm->sides];
	memcpy(&reply, bytes, sizeof reply);
	for (uint32_t i = 0; i < PLAN_FIGURES; i++)
		side->value[i][number / c->confirm->sides] = reply.value[i];
	side->ended += reply.ended;
	side->reached += reply.reached;
	if (!reply.ok && side->impossible++ == 0)
		memcpy(side->why, reply.why, sizeof side->why);
	keep(c, &reply, (const char *)bytes + sizeof reply, count - sizeof reply);
	free(bytes);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

/* Takes `set` over. False: no memory. */
static bool add_side(struct plan_confirm *confirm, const char *name, const struct arguments *arguments, char *set)
{
	struct plan_side *side = &confirm->side[confirm->sides++];
	*side = (struct plan_side){.name = name, .arguments = arguments, .set = set};
	bool ok = true;
	for (uint32_t i = 0; i < PLAN_FIGURES; i++) {
		side->value[i] = calloc(confirm->seeds, sizeof *side->value[i]);
		ok = ok && side->value[i];
	}
	return ok;
}

static bool add_sides(const struct plan_work *w, struct plan_confirm *confirm)
{
	char *random = strdup("cluster.allocation={method: random}");
	char *plan = skep_planning_assignment(&w->planning, w->candidate[w->chosen].stage_of);
	bool other = w->scenario.allocation != SKEP_ALLOCATION_RANDOM && !confirm->stated;
	bool ok = add_side(confirm, "random", w->as_given, random);
	ok = (!other || add_side(confirm, "as written", w->as_given, NULL)) && ok;
	return add_side(confirm, "plan", w->arguments, plan) && ok && random && plan;
}

static bool run_all(const struct plan_work *w, struct plan_confirm *ret)
{
	struct course c = {.work = w, .confirm = ret};
	uint32_t processes = w->arguments->jobs > 0 ? w->arguments->jobs : skep_cores();
	if (!add_sides(w, ret))
		return complain(lacking);
	bool ran = plan_jobs_run(processes, 0, ret->seeds * ret->sides, work_on, take_answer, &c, &ret->signal);
	ret->kept = c.store && !c.failed;
	skep_store_close(c.store);
	if (!ran && ret->signal != 0)
		fprintf(stderr, "skep: ended by SIG%s before it was known how good the plan is\n",
			sigabbrev_np(ret->signal));
	else if (!ran)
		complain("a process that simulated has died, or there is no memory for one");
	return ran && !c.failed;
}

/* Behind those that chose and `others`; where no seeds are left, before them. */
static uint64_t first_seed(const struct plan_work *w, uint32_t others, uint32_t seeds)
{
	uint64_t own = w->scenario.seed, chose = w->scenario.planned ? w->scenario.planned->seeds : 1;
	return own + chose + others + seeds > INT64_MAX ? own - others - seeds : own + chose + others;
}

bool plan_confirm_run(const struct plan_work *w, struct plan_confirm *ret)
{
	uint32_t seeds = w->arguments->confirm;
	*ret = (struct plan_confirm){.seeds = seeds, .first_seed = first_seed(w, 0, seeds)};
	return run_all(w, ret);
}

bool plan_confirm_state(const struct plan_work *w, struct plan_confirm *ret)
{
	struct plan_span span = plan_span_of(w, w->candidate[w->chosen].forecast.rounds);
	*ret = (struct plan_confirm){.stated = true,
		.span = span,
		.seeds = span.seeds,
		.first_seed = first_seed(w, PLAN_CONFIRM_SEEDS_MOST, span.seeds)};
	return run_all(w, ret);
}

void plan_confirm_finish(struct plan_confirm *confirm)
{
	for (uint32_t i = 0; i < confirm->sides; i++) {
		free(confirm->side[i].set);
		for (uint32_t f = 0; f < PLAN_FIGURES; f++)
			free(confirm->side[i].value[f]);
	}
	*confirm = (struct plan_confirm){0};
}

/* Before anything is searched for: a database that cannot be written is known at once. */
bool plan_confirm_ready(const struct arguments *a)
{
	char error[1024];
	if (a->has_db && a->confirm == 0)
		return complain("--db: a plan keeps the runs of --confirm alone: give that as well, or leave it out");
	if (!a->has_db)
		return true;
	struct skep_store *store = skep_store_open(a->db, true, error, sizeof error);
	skep_store_close(store);
	return store || complain(error);
}
