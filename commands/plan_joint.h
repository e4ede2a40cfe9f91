/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_joint.h - `skep plan` where settings are free (scenarios/planned.h): which of their combinations, with which allocation.
 * For the files of `skep plan` alone.
 */
#ifndef SKEP_COMMANDS_PLAN_JOINT_H
#define SKEP_COMMANDS_PLAN_JOINT_H

#include <cjson/cJSON.h>

#include "commands/plan_work.h"
#include "commands/sweep_pool.h"

#define PLAN_FULL_POINTS 5u /* for which all searches are made, the scenario as it is written among them */

enum plan_rung { /* how much is known of a point, and what a job is to find out */
	PLAN_UNKNOWN,
	PLAN_CHEAP, /* expected, with simple allocations */
	PLAN_SHORT, /* ... with those of a short search */
	PLAN_TRIAL, /* simulated over a few rounds, with an allocation that another point found */
	PLAN_FULL,  /* ... with the best that all searches found for it */
	PLAN_WHOLE  /* simulated until the target, with every seed */
};

struct plan_point {
	uint32_t number; /* of the combination, or SKEP_AS_WRITTEN */
	uint8_t rung;
	bool can;
	char why[200];                        /* it cannot be */
	double expected_s;                    /* of a step */
	double round_s;                       /* simulated, of a step */
	double expected_value;                /* of what is wanted, less is better ... */
	double value;                         /* ... simulated over a few rounds ... */
	double whole_value;                   /* ... and until the target; INFINITY: not known, or never */
	struct skep_forecast expected, tried; /* what the times of a step mean */
	uint32_t rounds;                      /* that were simulated for that */
	uint32_t runs, reached;               /* whole runs, and those that reached the target */
	double time_s, usd, samples_per_s;    /* means over those that did; NAN: none, or no prices */
	bool extrapolated;                    /* of whole runs */
	bool front;                           /* nothing else is both as fast and as cheap */
	uint32_t workers;                     /* of stage_of; 0: none was found */
	uint32_t *stage_of;
	uint32_t slices;  /* of layers; 0: the model is cut as the scenario cuts it */
	uint32_t *layers; /* where it is cut for stage_of */
};

struct plan_joint {
	struct arguments arguments;   /* as given, and then the choice */
	struct skep_planned *planned; /* what the choices point to */
	struct skep_choices choices;
	enum skep_aim aim;
	uint32_t seeds, processes;
	uint64_t seed;
	uint64_t begin_ns, until_ns; /* until_ns 0: no limit of time */
	struct plan_point *point;
	uint32_t points, room, chosen;
	uint32_t *list, lists; /* points of the rung that goes on */
	uint64_t asked;        /* jobs done */
	int signal;            /* that ended it; 0: none */
	char *set[SKEP_VARY_KEYS_MAX];
};

/* Chooses; afterwards w->arguments, w->scenario and w->given are those of the choice, and w->joint is this. Says itself what is
 * wrong. */
enum status plan_joint_choose(struct plan_work *w);
void plan_joint_destroy(struct plan_joint *joint); /* NULL is fine */

/* What is simulated of a point, as far as it is known: until the target, or over a few rounds. */
double plan_point_value(const struct plan_point *point);
double plan_point_time_s(const struct plan_point *point); /* NAN: not known */
double plan_point_usd(const struct plan_point *point);

/* A job of the pool: kind: a rung; number: of list[]. The context is a struct plan_joint, and is not changed. */
bool plan_point_work(void *context, const struct skep_sweep_job *job, void **ret, uint64_t *ret_count);
/* Those that were given, and behind them those of a point, which set[SKEP_VARY_KEYS_MAX] then has. False: no memory. */
bool plan_point_sets(const struct plan_joint *joint, uint32_t number, struct arguments *ret, char **set);
void plan_point_free_sets(char **set);

/* The list that a point carries becomes a copy of another's. */
void plan_point_keep(uint32_t **list, uint32_t *count, const uint32_t *from, uint32_t from_count);

void plan_joint_print(const struct plan_joint *joint, FILE *out);
void plan_joint_add_json(const struct plan_joint *joint, cJSON *root);
/* One line for the head of a file. */
void plan_joint_write(const struct plan_joint *joint, FILE *out);

#endif
