/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_script.h - what each kind of picture gives to plot.c: a gnuplot script with its data inside. Private to analysis/.
 */
#pragma once

#include <stdio.h>

#include "analysis/plot/plot.h"
#include "analysis/store/settings.h"
#include "base/diag.h"

struct skep_picture {
	FILE *script;                          /* everything but the terminal and the output */
	uint32_t width, height;                /* pixels; 100 of them are one inch on paper */
	const struct skep_plot_rounds *rounds; /* asked for; NULL: what suits. For the timeline */
	const char *metric;                    /* the same, for sweep and pareto */
	const struct skep_plot_axes *axes;     /* the same, for accuracy */
	struct skep_plot_drawn *drawn;         /* NULL: it is not asked for */
};

/* This run is in the picture. */
static inline void skep_picture_drew(struct skep_picture *picture, int64_t run)
{
	struct skep_plot_drawn *d = picture->drawn;
	if (d == NULL)
		return;
	if (d->runs < SKEP_PLOT_DRAWN_MAX)
		d->run[d->runs] = run;
	d->runs++;
}

/* Draws what `write` makes of `what`; refuses what is wrong with the target before it starts. */
typedef bool skep_picture_write(const void *what, struct skep_picture *picture, struct skep_diag *reterr);
bool skep_plot_picture(const char *target, skep_picture_write *write, const void *what, struct skep_diag *reterr);

/* Writes its script, or returns false with the reason (no such run, nothing to show). No runs: the newest that closed a
 * round. */
typedef bool skep_plot_kind(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr);
skep_plot_kind skep_plot_accuracy, skep_plot_cost, skep_plot_fit, skep_plot_matrix, skep_plot_pareto, skep_plot_sweep,
	skep_plot_throughput, skep_plot_timeline, skep_plot_utilisation;

/* What titles and legends say about a run. */
struct skep_plot_run {
	int64_t id;
	char scenario[64], world[8], device[32], arithmetic[8], seed[24];
	uint32_t workers, stages, rounds; /* rounds closed */
	bool pace, shape;
	double target_loss; /* NAN: none */
	double time_s;      /* that the run took; NAN: it has not ended */
};
bool skep_plot_read_run(struct skep_store *store, int64_t id, struct skep_plot_run *ret, struct skep_diag *reterr);

/* Runs to compare: those that were given; the pair of `skep compare` if the newest scenario has one; or the newest of each
 * world of the newest scenario, of runs for which `has` holds, in
 * SQL about the run `runs.id`. `none` is the complaint if there is no such run. */
#define SKEP_PLOT_RUNS_MAX 16u
bool skep_plot_chosen_runs(struct skep_store *store, const int64_t *run, uint32_t runs, const char *has,
	const char *none, struct skep_plot_run ret[SKEP_PLOT_RUNS_MAX], uint32_t *ret_runs, struct skep_diag *reterr);

/* The run to show: the one that was given, or the newest that closed a round; two or more are refused. */
bool skep_plot_single_run(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_plot_run *ret,
	struct skep_diag *reterr);

/* All runs of the newest scenario that has some for which `has` holds, at most so many; with one_a_world only the pair of `skep
 * compare` if there are both worlds, or the newest of each. */
bool skep_plot_scenario_runs(struct skep_store *store, const char *has, const char *none, bool one_a_world,
	int64_t *ret_run, uint32_t most, uint32_t *ret_runs, struct skep_diag *reterr);

/* Writes the last word of a key to `ret`, or of `allocation.method` and `data.file` the word before, which says more. Returns
 * `ret`. */
const char *skep_plot_short_key(const char *key, char *ret, size_t size);

/* Adds ", microbatch 32" to the settings that a legend tells of a run, unless it is there; `count`: of them, 0 at first. False:
 * there are too many, and the text ends in dots. */
bool skep_plot_add_setting(char *settings, size_t size, uint32_t *count, const struct skep_difference *d);

/* What two runs have in common. Alike are those that differ by their seed alone: one world, and of real runs one device, paced
 * and shaped in one way. */
enum skep_plot_kin { SKEP_PLOT_OTHER, SKEP_PLOT_SAME_SETTINGS, SKEP_PLOT_ALIKE };
bool skep_plot_kinship(struct skep_store *store, const struct skep_plot_run *a, const struct skep_plot_run *b,
	enum skep_plot_kin *ret, struct skep_diag *reterr);

/* In which world it was, in words: "simulated", "by a law", "real, cpu, paced, shaped". */
void skep_plot_world(const struct skep_plot_run *run, char *ret, size_t size);

/* Whether the scenarios of all runs have one name. */
bool skep_plot_one_scenario(const struct skep_plot_run *run, uint32_t runs);

/* What a run of a picture is called: "run 3, simulated"; behind it its scenario if the picture has several, `settings` ("" or
 * ", microbatch 32"), and its seed if the seeds differ. */
void skep_plot_name(
	const struct skep_plot_run *run, uint32_t runs, uint32_t which, const char *settings, char *ret, size_t size);

/* Writes the title: "NAME: what" with the name of the scenario, or "What" if the runs are of several. */
void skep_plot_title(FILE *script, const struct skep_plot_run *run, uint32_t runs, const char *what);

/* Writes that title, the variable `runs`, and the array Title[] of what the legend calls each run. False: the store failed. */
bool skep_plot_heading(struct skep_store *store, const struct skep_plot_run *run, uint32_t runs, const char *what,
	FILE *script, struct skep_diag *reterr);

/* The unit of time of a picture that ends at end_s: hours from 2 h on, minutes from 5 min on, seconds from 1 s on, else ms. */
struct skep_plot_unit {
	double per_s;
	const char *name;
};
struct skep_plot_unit skep_plot_unit(double end_s);

/* Writes label and range of a time axis that goes from 0 to `room` times end_s. Returns how many of its unit a second has. */
double skep_plot_time_axis(FILE *script, double end_s, double room);

/* The distance of two marks of an axis: the least of 1, 2 or 5 times a power of ten that is not below `least`. */
double skep_plot_step(double least);

/* Writes the label of an axis of tokens that ends at `most`. Returns how many of its unit a token is. */
double skep_plot_token_axis(FILE *script, double most);

/* Labels of a logarithmic axis: gnuplot gives them to powers of ten alone; of a short one 1, 2, 3 and 5 times these, of a very
 * short one as many as of a straight one. */
void skep_plot_tics(FILE *script, char axis, double low, double high);

/* Puts ? for what no font here has, for which gnuplot's pictures of pixels and of paper have the character's number in a box over
 * all. Returns the first one; 0: there was none. */
uint32_t skep_script_cover(char *body, size_t *length);

/* A gnuplot string with its quotes: what people named cannot break out of it. */
void skep_script_string(FILE *script, const char *text);
void skep_script_lines(FILE *script, const char *const *line, size_t lines);

/* Colours that differ for every kind of colour vision (Okabe and Ito): "#rrggbb", counted round. */
const char *skep_plot_colour(uint32_t i);
