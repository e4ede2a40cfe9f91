/* SPDX-License-Identifier: Apache-2.0
 *
 * answer.h - what `skep ask` finds out, for those who print it: the choice, what else was tried, what would help, and how sure
 * it is.
 */
#pragma once

#include "asking/evaluate.h"
#include "asking/write.h"
#include "base/status.h"
#include "planning/trial/interval.h"

#define SKEP_ASK_VARIATIONS_MAX 24u
#define SKEP_ASK_BETTER 0.99      /* of the time: better */
#define SKEP_ASK_NOTHING 0.005    /* a gain that is less is none, however sure it is */
#define SKEP_ASK_MUCH_BETTER 0.95 /* worth any price */
#define SKEP_ASK_DEAR 2.0         /* times the price: too much for what is better, but not much better */

struct skep_ask_tried {
	struct skep_ask_variation variation;
	struct skep_ask_figures figures;
	bool refined;                       /* with more seeds, as the best are */
	struct skep_ask_question *question; /* changed; NULL: the answer's own */
	char topology
		[SKEP_ASK_PATH_BYTES]; /* of a changed question, for as long as it is looked at; "": there is none */
};

struct skep_ask_other_aim { /* what is chosen if money counts and not time, or the other way round */
	bool known;
	struct skep_interval time_s, usd;
	uint32_t seeds, lost;
	char method[400], machines[600];
};

struct skep_ask_uncertain { /* a kind of GPU whose passes take one deviation longer */
	const char *gpu;    /* of the question's groups */
	double deviation;
	double time, money; /* times those of the choice; money NAN: prices unknown */
	struct skep_ask_tried tried;
};

struct skep_ask_answer {
	struct skep_ask_question question;
	struct skep_ask_model model;
	struct skep_law law;
	struct skep_ask_job job;
	struct skep_ask_files files;
	struct skep_assignments base;                         /* what the choice is read with, its allocation last */
	uint32_t looked_at, simulated;                        /* combinations of settings, by the planner */
	struct skep_ask_tried other[SKEP_ASK_VARIATIONS_MAX]; /* settings; the first is the choice itself */
	struct skep_ask_tried help[SKEP_ASK_VARIATIONS_MAX];  /* the first is the choice itself again */
	uint32_t others, helps, help_seeds;
	double events, settled_events; /* simulated so far, to compare; of these, in the end for all rows */
	bool cut_short; /* settings might still be better than the choice: so many events were simulated */
	struct skep_ask_figures figures; /* of the choice, with more seeds */
	struct skep_interval time_s, usd;
	struct skep_ask_uncertain uncertain[SKEP_ASK_GROUPS_MAX];
	uint32_t uncertain_gpus;
	struct skep_interval uncertain_time_s, uncertain_usd; /* as time_s and usd, with how fast GPUs may be besides */
	struct skep_ask_other_aim other_aim;
	struct skep_scenario chosen; /* as it was written */
	bool has_chosen, law_outside;
	double begin_s, wall_s;
};

/* ---- for ask.c: choose.c */

#define SKEP_ASK_COMPARED_EVENTS 6e4 /* of a stretch, to compare */

/* What the planner finds becomes the base. */
enum status skep_ask_plan(struct skep_ask_answer *answer, struct skep_diag *reterr);
/* Compares other settings, and again where one of them takes the place of the choice. How often does not depend on the clock. */
enum status skep_ask_compare(struct skep_ask_answer *answer, struct skep_diag *reterr);

/* Adds what one of other[] changes to the base, behind which it is as good as chosen. Not what has too many machines to say
 * which serves what: *ret_adopted is false then. */
bool skep_ask_adopt(const struct skep_ask_tried *tried, struct skep_assignments *base, bool *ret_adopted);
/* This one of other[], which can be adopted, becomes the choice, and is compared with others of its own. */
enum status skep_ask_take(struct skep_ask_answer *answer, uint32_t which, struct skep_diag *reterr);

/* The base is the choice, and is compared with others of its own. */
enum status skep_ask_compare_chosen(struct skep_ask_answer *answer, struct skep_diag *reterr);

/* How long stretches are, how many, and where in the run. */
void skep_ask_stretch(
	struct skep_ask_answer *answer, struct skep_ask_variation *variation, double events, uint32_t seeds);
/* Simulates all of them. */
bool skep_ask_try(struct skep_ask_answer *answer, struct skep_ask_tried *tried, uint32_t count, int *ret_signal);
/* All by the first, which takes the time and the money of `by` and computes in as much of it, and by the ratio over the stretches
 * that both have. */
void skep_ask_scale(struct skep_ask_tried *tried, uint32_t count, const struct skep_ask_figures *by);
/* Where simulations were ended by this signal, or else lack something. */
enum status skep_ask_died(int by, struct skep_diag *reterr);
/* Where no seed comes to an end: what one can ask instead. */
void skep_ask_fail_without_end(const struct skep_ask_answer *answer, const char *why, struct skep_diag *reterr);

/* ---- stated.c */

/* Simulates the choice as the page states it, and takes another one where too many seeds come to no end. */
enum status skep_ask_state(struct skep_ask_answer *answer, struct skep_diag *reterr);

/* ---- other_aim.c */

/* Searched for as the answer is. What is better by both aims becomes the choice. */
enum status skep_ask_find_other_aim(struct skep_ask_answer *answer, struct skep_diag *reterr);

/* ---- uncertain.c */

/* Behind skep_ask_state(), whose intervals become wider. */
enum status skep_ask_find_uncertain(struct skep_ask_answer *answer, struct skep_diag *reterr);

/* ---- variations.c */

/* Whole models on all machines, and on all but one group of them, with several H: the planner has had little time for each. */
void skep_ask_list_first(struct skep_ask_answer *answer);
/* Other settings of the choice. */
void skep_ask_list_others(struct skep_ask_answer *answer, const struct skep_scenario *chosen);
/* Other machines, lines and prices; writes their topologies. */
bool skep_ask_list_helps(struct skep_ask_answer *answer, const struct skep_scenario *chosen, struct skep_diag *reterr);
void skep_ask_finish_helps(struct skep_ask_answer *answer); /* removes their files */

/* ---- print.c, print_json.c */

void skep_ask_print(const struct skep_ask_answer *answer, FILE *out);
void skep_ask_print_json(const struct skep_ask_answer *answer, FILE *out);

/* What both say: "us-central1 8 x l4": who serves a stage; machines that serve none with SKEP_ASK_NO_STAGE. */
#define SKEP_ASK_NO_STAGE UINT32_MAX
void skep_ask_members(const struct skep_ask_answer *answer, uint32_t stage, char *ret, size_t size);
/* All that serve one. */
void skep_ask_taking_part(const struct skep_ask_answer *answer, char *ret, size_t size);
/* How many of its machines serve a stage. */
uint32_t skep_ask_group_members(const struct skep_ask_answer *answer, uint32_t group);
/* "DiLoCo, H = 30, in a swarm of 2 stages ..." */
void skep_ask_method(const struct skep_scenario *chosen, char *ret, size_t size);
/* ---- rank.c */

/* How many times as fast, or for the least money as cheap, it is as without it: over the seeds of both, in pairs. False: the
 * interval does not tell it from nothing. */
bool skep_ask_gain(const struct skep_ask_answer *answer, uint32_t help, struct skep_interval *ret);
/* What helps or harms as skep_ask_rank() has it, and behind it what is not told from nothing; without machines that one would
 * not use. Returns how many there are. */
uint32_t skep_ask_rank_helps(const struct skep_ask_answer *answer, uint32_t *ret, uint32_t *ret_told);
/* Rows by what they gain, the best first: indices into help[], without the first and those that cannot be. */
uint32_t skep_ask_rank(const struct skep_ask_tried *tried, uint32_t count, bool money, uint32_t *ret);
