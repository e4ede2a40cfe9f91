/* SPDX-License-Identifier: Apache-2.0
 *
 * experiment.h - an experiment that others published, as a table file describes it: a scenario, what is changed in it for each
 * row, what is measured, and the published figure with the place where it stands.
 *
 * docs/published.md shows all tables of the tree; the head of scenarios/papers/README.md has the keys of a table file.
 */
#pragma once

#include "base/diag.h"
#include "base/reader.h"

#define SKEP_PUBLISHED_OVER_MAX 8u

enum skep_published_metric {
	SKEP_PUBLISHED_THROUGHPUT,  /* samples a second */
	SKEP_PUBLISHED_STEP_TIME,   /* seconds of an optimizer step */
	SKEP_PUBLISHED_PASSES,      /* seconds from the first forward to the last backward pass of a round */
	SKEP_PUBLISHED_REDUCTION,   /* seconds from there to the end of the reduction */
	SKEP_PUBLISHED_UTILISATION, /* percent */
	SKEP_PUBLISHED_SPREAD,      /* percent of the best (analysis/store/store_spread.h) */
	SKEP_PUBLISHED_TRAFFIC,     /* bytes of reductions for each sample */
	SKEP_PUBLISHED_COMPLETION,  /* hours from arrival to end, of a file of jobs under the first of its policies */
	SKEP_PUBLISHED_LEAST,       /* the least value of `vary` with which the utilisation is the row's `at` */
	SKEP_PUBLISHED_METRICS
};
extern const char *const skep_published_metrics[]; /* as the table files name them; ends with NULL */

struct skep_published_run { /* a measurement, made once however many rows are about it */
	const char **set;   /* [sets] "key.path=value" */
	uint32_t sets;
	double at;              /* of LEAST: the utilisation, part of 1; else 0 */
	double value;           /* NAN: not measured, or the run failed */
	struct skep_diag error; /* the scenario is wrong */
	char failure[256];      /* why the run came to no good end; "": it did */
};

struct skep_published_row {
	char name[128];
	const char *place, *note; /* "": none of its own */
	double low, high;         /* published; the same twice: one figure; NAN: it could not be found */
	bool fitted;              /* ours was made to agree, for others to be compared: no evidence */
	uint32_t run, over[SKEP_PUBLISHED_OVER_MAX], overs; /* the run, over the sum of the others; numbers in run[] */
	double ours;
};

struct skep_published_experiment {
	char path[512], scenario[512];                          /* the table, and the scenario's file */
	const char *name, *title, *paper, *place, *unit, *note; /* live as long as the YAML */
	const char *written;                                    /* the scenario as the table names it */
	enum skep_published_metric metric;
	double bar;        /* part of the published figure that ours may be off by */
	bool slow, wanted; /* slow: run by --all or its name alone */
	uint32_t seeds;    /* runs are means over seeds 1 .. seeds */
	const char *vary;  /* of LEAST: a key, and its range */
	double from, to;
	struct skep_published_row *row;
	struct skep_published_run *run;
	uint32_t rows, runs;
	struct skep_yaml *yaml;
	char *text;
};

/* False: reterr has the place. On failure *ret is empty. */
bool skep_published_read(const char *path, struct skep_published_experiment *ret, struct skep_diag *reterr);
void skep_published_finish(struct skep_published_experiment *experiment);

/* Makes one run in this process; it cannot fail but in what it leaves in *run. */
void skep_published_measure(const struct skep_published_experiment *experiment, struct skep_published_run *run);
/* What follows for the rows when all runs have been made. */
void skep_published_settle(struct skep_published_experiment *experiment);

/* Is the row inside of its bar? A row without a published figure, or that was fitted, is neither. */
bool skep_published_judged(const struct skep_published_row *row);
bool skep_published_within(const struct skep_published_experiment *experiment, const struct skep_published_row *row);
/* Ours over published; of a range over its nearer end, 1 inside. NAN: there is none. */
double skep_published_ratio(const struct skep_published_row *row);
