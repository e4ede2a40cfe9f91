/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch.h - job scripts for Slurm, for `skep slurm`: how many tasks a scenario needs, with which GPUs, and for how long.
 */
#pragma once

#include <stdio.h>

#include "scenarios/read/scenario.h"

#define SKEP_SBATCH_HEAD "# Written by: skep slurm"
#define SKEP_SBATCH_COMPONENTS_MAX 64u /* of a heterogeneous job */

enum skep_sbatch_kind {
	SKEP_SBATCH_RUN,     /* over MPI */
	SKEP_SBATCH_REQUEUE, /* the same, which goes on from its checkpoints */
	SKEP_SBATCH_SERVE,   /* the directory of a run that machines join, ... */
	SKEP_SBATCH_JOIN,    /* ... and these, as an array */
	SKEP_SBATCH_KINDS
};

struct skep_sbatch {
	const char *path;       /* of the scenario, as the script names it */
	const char *const *set; /* [sets] of --set, handed on */
	uint32_t sets;
	bool has_seed, cuda;
	uint64_t seed;
	const char *db, *partition, *spot; /* NULL: not said; spot: the partition of those who join */
	const char *gpu;                   /* type of those who join, with cuda; NULL: there is but one kind */
	uint32_t per_node;                 /* workers on a node; 0: Slurm decides */
	double limit_s;                    /* 0: not said; then twice `expected_s` on GPUs, else a day */
	double expected_s;                 /* 0: not known */
};

/* Can there be such a script? If not, the error says what to do. */
bool skep_sbatch_possible(const struct skep_scenario *scenario, enum skep_sbatch_kind kind,
	const struct skep_sbatch *sbatch, struct skep_diag *reterr);
void skep_sbatch_write(
	const struct skep_scenario *scenario, enum skep_sbatch_kind kind, const struct skep_sbatch *sbatch, FILE *out);

struct skep_sbatch_gpu {
	char type[64]; /* as topologies call it, "t4" of topologies/gpus/t4.yaml, which is what clusters call types */
	const char *profile; /* the name in that profile, which `join --gpu` takes */
	uint32_t workers;
};

/* The i-th kind of GPU that workers have; false: there are not so many. */
bool skep_sbatch_gpu(const struct skep_scenario *scenario, uint32_t i, struct skep_sbatch_gpu *ret);

/* May it stand in a line of options: letters, digits and "_.,-"? */
bool skep_sbatch_word_ok(const char *word);
