/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_table.h - the result of a sweep: a row per choice of values, each figure over its seeds.
 */
#pragma once

#include "analysis/store/store.h"
#include "base/diag.h"

enum skep_sweep_metric {
	SKEP_SWEEP_THROUGHPUT,
	SKEP_SWEEP_TIME,
	SKEP_SWEEP_TO_TARGET,
	SKEP_SWEEP_COST,
	SKEP_SWEEP_LOSS,
	SKEP_SWEEP_UTILISATION,
	SKEP_SWEEP_PASSES,
	SKEP_SWEEP_REDUCTION,
	SKEP_SWEEP_VALIDATION,
	SKEP_SWEEP_COST_TO_TARGET,
	SKEP_SWEEP_METRICS
};
const char *skep_sweep_metric_key(enum skep_sweep_metric metric);   /* as --json of `sim` and the table runs have it */
const char *skep_sweep_metric_title(enum skep_sweep_metric metric); /* of its column, with the unit */
double skep_sweep_metric_scale(enum skep_sweep_metric metric);      /* from the figure to that unit */

/* More than a sweep can have: its keys are typed. */
#define SKEP_SWEEP_KEYS_MOST 256u

struct skep_sweep_figure {
	uint32_t runs;       /* how many runs have the figure */
	double mean, spread; /* over these runs: mean, NAN without a run; standard deviation, NAN below two runs */
	double p5, p95;      /* quantiles, linear between runs; NAN without a run */
};

struct skep_sweep_row {
	uint32_t wanted, done, failed; /* runs: combinations; those that are there, by how they ended */
	uint32_t diverged;             /* of those that are done: their loss is infinite */
	uint32_t extrapolated;         /* of those that are done: a law was asked outside of what it was fitted in */
	struct skep_sweep_figure figure[SKEP_SWEEP_METRICS]; /* of those that are done */
};

#define SKEP_SWEEP_LEFT_MAX 32u
#define SKEP_SWEEP_QUANTITIES                                                                                          \
	6u /* tokens, H, replicas, staleness, batch, and the model: as the bits of skep_loss_leaves() */

struct skep_sweep_left { /* a law, and a quantity in which some of the runs leave it */
	char law[512];
	char model[64]; /* of the law */
	uint32_t quantity, runs;
	double asked[2], fitted[2]; /* the least and the most; of those runs; NAN: it is no number */
};

struct skep_sweep_table {
	int64_t sweep;
	char scenario[64], version[64];
	uint32_t keys, points;
	char **key;                 /* [keys] */
	char **value;               /* [points * keys] */
	struct skep_sweep_row *row; /* [points] in the order that was asked for */
	uint32_t wanted, done, failed;
	char format[512]; /* number formats of the runs that are there, each once, with "; " between */
	uint32_t formats;
	const struct skep_sweep_left *left; /* [lefts] of who has run the sweep; else NULL, it is not known */
	uint32_t lefts;
};

/* sweep 0: the newest. */
bool skep_sweep_table_read(
	struct skep_store *store, int64_t sweep, struct skep_sweep_table *ret, struct skep_diag *reterr);
/* The newest sweep with this run in it; 0: there is none, and reterr says so. */
int64_t skep_sweep_of_run(struct skep_store *store, int64_t run, struct skep_diag *reterr);
void skep_sweep_table_finish(struct skep_sweep_table *table);

void skep_sweep_table_print(const struct skep_sweep_table *table, FILE *out);
void skep_sweep_table_print_json(const struct skep_sweep_table *table, FILE *out);
