/* SPDX-License-Identifier: Apache-2.0
 *
 * print.h - what a plan comes to: for a person, as JSON, and as a scenario that `check`, `sim` and `run` take.
 */
#pragma once

#include "planning/trial/planner.h"

/* The settings that were compared, what each allocation comes to, and the choice; then, if `explain`, the choice stage by stage
 * and what moves over which links; and what was confirmed. */
void skep_planner_print(const struct skep_planner *planner, bool explain, FILE *out);
void skep_planner_print_json(const struct skep_planner *planner, FILE *out); /* numbers that there are not are null */

#define SKEP_PLAN_HEAD "# Who serves which stage, from: skep plan "
/* The scenario as it was read, with the allocation in it that was chosen, and above it what that is and what is expected of it.
 * False: the planner's error says why; the file is as it was. */
bool skep_planner_write(struct skep_planner *planner, const char *path);
/* Before anything is searched for: would the scenario read from there? False: the planner's error says why not. */
bool skep_planner_may_write(struct skep_planner *planner, const char *path);

/* ---- for these three */

/* "west 2 x t4, east 1 x v100": the workers of a stage. */
void skep_planner_members(
	const struct skep_planner *planner, const uint32_t *stage_of, uint32_t stage, char *ret, size_t size);
/* What is expected of the choice, in one line or two that begin with `margin`. */
void skep_planner_print_stated(const struct skep_planner *planner, const char *margin, FILE *out);
/* The table of stages; `planned` is the scenario with the choice. */
void skep_planner_print_stages(const struct skep_planner *planner, const struct skep_scenario *planned, FILE *out);
/* Why machines are left out: a line for each kind of them; and all that --explain prints. */
void skep_planner_explain(const struct skep_planner *planner, FILE *out);

struct skep_left_out {  /* one of the machines that are out, put back where a step then costs least */
	uint32_t stage; /* SKEP_SPARE: it can hold none, whatever the sizes are */
	bool fits;      /* anywhere, with the sizes that were chosen */
	double step_s, without_s;
	double usd, without_usd; /* of a step; NAN: not asked */
};
struct skep_left_out skep_planner_put_back(const struct skep_planner *planner, uint32_t worker);

struct skep_free_settings;
struct skep_point;
/* The points that were simulated, the best first; the caller frees it. NULL: no memory. */
const struct skep_point **skep_planner_points(const struct skep_free_settings *settings, uint32_t *ret_count);
uint32_t skep_planner_refused(const struct skep_free_settings *settings); /* how many cannot be */
extern const char *const skep_aim_words[SKEP_AIMS];

/* Which of these a scenario has: no trace, one that was recorded, one that each seed draws. */
enum skep_plan_trace { SKEP_PLAN_TRACE_NONE, SKEP_PLAN_TRACE_RECORDED, SKEP_PLAN_TRACE_DRAWN };
enum skep_plan_trace skep_planner_trace(const struct skep_planner *planner);

/* How its search saw links. */
static inline const char *skep_planner_view(const struct skep_candidate *c)
{
	if (c->by_expected)
		return "all";
	return c->view == SKEP_CONTENDED ? "shared" : "alone";
}
