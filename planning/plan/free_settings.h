/* SPDX-License-Identifier: Apache-2.0
 *
 * free_settings.h - where settings of a scenario are free (scenarios/read/planned.h): which of their combinations, with which
 * allocation. Each combination is a point; what is known of it grows from rung to rung.
 */
#pragma once

#include "base/process/process_pool.h"
#include "planning/problem/choices.h"
#include "planning/trial/planner.h"

#define SKEP_FULL_POINTS 5u /* for which all searches are made, the scenario as it is written among them */

enum skep_rung { /* how much is known of a point, and what a job is to find out */
	SKEP_RUNG_UNKNOWN,
	SKEP_RUNG_CHEAP, /* expected, with simple allocations */
	SKEP_RUNG_SHORT, /* ... with those of a short search */
	SKEP_RUNG_TRIAL, /* simulated over a few rounds, with an allocation that another point found */
	SKEP_RUNG_FULL,  /* ... with the best that all searches found for it */
	SKEP_RUNG_WHOLE  /* simulated until the target, with every seed */
};

struct skep_point {
	uint32_t number; /* of the combination, or SKEP_AS_GIVEN */
	uint8_t rung;
	bool can;
	char why[200];                        /* it cannot be */
	double expected_s;                    /* of a step */
	double round_s;                       /* simulated, of a step */
	double events;                        /* ... in so many events */
	double expected_value;                /* of what is wanted, less is better ... */
	double value;                         /* ... simulated over a few rounds ... */
	double whole_value;                   /* ... and until the target; INFINITY: not known, or never */
	struct skep_forecast expected, tried; /* what the times of a step mean */
	uint32_t runs, reached;               /* whole runs, and those that reached the target */
	double time_s, usd;                   /* means over those that did; NAN: none, or no prices */
	bool extrapolated;                    /* of whole runs */
	bool front;                           /* nothing else is both as fast and as cheap */
	uint32_t workers;                     /* of stage_of; 0: none was found */
	uint32_t *stage_of;
	uint32_t vstages; /* of layers; 0: the model is cut as the scenario cuts it */
	uint32_t *layers; /* where it is cut for stage_of */
};

struct skep_free_settings {
	const struct skep_planner_options *options;
	struct skep_planned *planned; /* what the choices point to */
	struct skep_choices choices;
	enum skep_aim aim;
	uint32_t seeds;
	uint64_t seed;
	uint64_t begin_ns, until_ns; /* until_ns 0: no limit of time */
	struct skep_point *point;
	uint32_t points, room, chosen;
	uint32_t *list, lists; /* points of the rung that goes on */
	double to_beat;        /* the best that was simulated before this rung; 0: nothing was */
	struct skep_known_trials known;
	bool lacking; /* memory, to look at one */
};

/* Chooses; afterwards the planner's scenario, `with` and `given` are those of the choice, and its `settings` is this. */
enum status skep_free_settings_choose(struct skep_planner *planner);
void skep_free_settings_destroy(struct skep_free_settings *settings); /* NULL is fine */

/* What is simulated of a point, as far as it is known: until the target, or over a few rounds. */
double skep_point_value(const struct skep_point *point);
double skep_point_time_s(const struct skep_point *point); /* NAN: not known */
double skep_point_usd(const struct skep_point *point);
bool skep_point_extrapolates(const struct skep_point *point);

/* Those that were given, and behind them those of a combination. False: no memory; to be finished all the same. */
bool skep_point_assignments(const struct skep_free_settings *settings, uint32_t number, struct skep_assignments *ret);

/* A job of the pool: kind: a rung; number: of list[]. The context is a struct skep_free_settings, of which only `known` grows;
 * where it lacks memory there is no answer. */
bool skep_point_work(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count);
/* Its answer takes the place of the point, and what it has simulated is known; frees the answer. */
void skep_point_take(struct skep_free_settings *settings, struct skep_point *point, void *bytes, uint64_t count);

/* The list that a point carries becomes a copy of another's. */
void skep_point_keep(uint32_t **list, uint32_t *count, const uint32_t *from, uint32_t from_count);
