/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_table.h - measured times of whole stages of one model on one kind of GPU, end to end: what an operation costs beside its
 * arithmetic (hand-over between threads, launches) is in them. `skep calibrate` writes such tables from a real run.
 *
 * A row is a run of consecutive layers and the size of a microbatch. A query is answered by the row itself, or by the rows of
 * the same layers with the next smaller and the next larger microbatch; any other is not: nothing is extrapolated here.
 */
#pragma once

#include "base/reader.h"

enum skep_stage_column {
	SKEP_STAGE_FORWARD,
	SKEP_STAGE_BACKWARD,
	SKEP_STAGE_RECOMPUTE,  /* an operation of its own that computes the forward pass anew ... */
	SKEP_STAGE_RECOMPUTED, /* ... and the backward pass after it */
	SKEP_STAGE_STEP, /* of all parameters of the stage, by train.optimizer; with local steps the outer one, and ... */
	SKEP_STAGE_INNER,  /* ... this by train.optimizer */
	SKEP_STAGE_PSEUDO, /* of the pseudo-gradient */
	SKEP_STAGE_COLUMNS
};
extern const char *const skep_offload_names[]; /* of train.optimizer.offload, NULL behind the last one */
extern const char *const skep_stage_column_names[SKEP_STAGE_COLUMNS]; /* as the header has them, without _us */

struct skep_measured_stage {
	uint32_t first_layer, layers, microbatch; /* microbatch: samples */
	double seconds[SKEP_STAGE_COLUMNS];       /* with compute_scale 1; NAN: not measured */
};

struct skep_stage_table {
	char path[512];
	char source[256];                /* measured or derived, of what, by whom */
	char model[64];                  /* whose layers */
	uint32_t offload;                /* what of the optimizer was on the host, as in skep_offload_names */
	struct skep_measured_stage *row; /* [rows], rising */
	uint32_t rows;                   /* 0: not read yet */
};

#define SKEP_STAGE_TABLE_HEADER                                                                                        \
	"first_layer,layers,microbatch,forward_us,backward_us,recompute_us,recomputed_us,step_us,inner_us,pseudo_us"

/* Fills the rows from table->path. Refused: ragged, empty, text, negative, not rising. */
bool skep_stage_table_read(struct skep_stage_table *table, struct skep_diag *reterr);
void skep_stage_table_finish(struct skep_stage_table *table);

/* False: neither measured nor between two that were. *ret_exact: measured. */
bool skep_stage_table_look(const struct skep_stage_table *table, const struct skep_measured_stage *query,
	enum skep_stage_column column, double *ret_seconds, bool *ret_exact);
