/* SPDX-License-Identifier: Apache-2.0
 *
 * make_plan.c - see make_plan.h.
 */
#include "planning/plan/make_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/stop.h"
#include "planning/plan/confirm.h"
#include "planning/plan/free_settings.h"
#include "planning/plan/searches.h"
#include "planning/problem/resolve.h"
#include "planning/problem/tried.h"

enum status skep_plan_begin(struct skep_planner *w, const struct skep_planner_options *options)
{
	*w = (struct skep_planner){.options = options, .begin_ns = skep_monotonic_ns(), .cuts = true};
	if (options->budget_s > 0)
		w->until_ns = w->begin_ns + (uint64_t)(1e9 * options->budget_s);
	if (!skep_assignments_make(options->path, &options->given, &w->with))
		return skep_planner_lack(w);
	struct skep_scenario_options how = skep_assignments_options(&w->with);
	how.any_memory = true;
	how.details = options->given.details;
	if (!skep_scenario_read(options->path, &how, &w->scenario, &w->error) ||
		!skep_planning_try_values(&w->scenario, &how, &w->error) ||
		!skep_resolve(&w->scenario, &how, &w->error))
		return STATUS_BAD_INPUT;
	return skep_confirm_ready(w);
}

static enum status prepare(struct skep_planner *w)
{
	enum status status = skep_planner_prepare(w);
	w->rounds = status == STATUS_DONE ? skep_trial_rounds(&w->scenario) : 0;
	if (status != STATUS_BAD_INPUT)
		return status;
	const struct skep_diag why = w->error;
	return skep_planner_refuse(
		w, "%s%s", why.message, w->cuts ? "; nor was another cut of the model found that would do" : "");
}

static enum status search(struct skep_planner *w)
{
	char why[512];
	int by = 0;
	if (skep_planner_dtfm(w) && !skep_even_groups_possible(w))
		return STATUS_BAD_INPUT;
	if (!skep_searches_run(w) || (!w->options->unstated && !skep_searches_random(w)))
		return skep_planner_lack(w);
	by = skep_stop_asked();
	if (by != 0 || (!skep_planner_dtfm(w) && !skep_trial_again(w, &by)))
		return by != 0 ? skep_planner_fail(w, (enum status)(STATUS_SIGNAL + by),
					 "ended by SIG%s before anything was chosen", sigabbrev_np(by))
		               : skep_planner_fail(w, STATUS_FAILED, "a process that simulated has died");
	if (w->lacking)
		return skep_planner_lack(w);
	if (!skep_searches_choose(w)) {
		skep_searches_why(w, why, sizeof why);
		return skep_planner_refuse(w, "%s", why);
	}
	const uint32_t *layers = w->candidate[w->chosen].layers;
	return !layers || skep_planner_recut(w, layers) ? STATUS_DONE : skep_planner_lack(w);
}

enum status skep_plan_choose(struct skep_planner *w)
{
	struct skep_choices choices;
	const struct skep_scenario_options *given = &w->options->given;
	skep_choices_make(w->scenario.planned, given->set, given->sets, &choices);
	if (choices.points == 0 && w->options->pareto)
		return skep_planner_fail(w, STATUS_BAD_INPUT,
			"--pareto: nothing is free to be compared: say what is in plan.search of the scenario");
	enum status status = choices.points > 0 ? skep_free_settings_choose(w) : STATUS_DONE;
	if (status == STATUS_DONE)
		status = skep_published_take(w);
	if (status == STATUS_DONE)
		status = prepare(w);
	if (status == STATUS_DONE)
		status = search(w);
	if (status != STATUS_DONE || w->options->unstated)
		return status;
	w->stated = calloc(1, sizeof *w->stated);
	return w->stated ? skep_confirm_state(w, w->stated) : skep_planner_lack(w);
}

enum status skep_plan_confirm(struct skep_planner *w)
{
	w->confirmed = calloc(1, sizeof *w->confirmed);
	return w->confirmed ? skep_confirm_run(w, w->confirmed) : skep_planner_lack(w);
}

static void end(struct skep_confirm *confirm)
{
	if (confirm)
		skep_confirm_finish(confirm);
	free(confirm);
}

void skep_plan_end(struct skep_planner *w)
{
	end(w->stated);
	end(w->confirmed);
	skep_planner_close(w);
	skep_free_settings_destroy(w->settings);
}
