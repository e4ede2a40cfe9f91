/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_table.h - measured times on one kind of GPU: of matrix products, or of the layers of one model.
 *
 * A row is a point in up to four axes and what was measured there. A query inside the measured points is answered, by the
 * row itself or by interpolation between its neighbours; any other is not: nothing is extrapolated here.
 */
#pragma once

#include "base/reader.h"

/* What the factors of a product are. tf32: tensors of 4 bytes whose products run on tensor cores. */
enum skep_type { SKEP_TYPE_FP32, SKEP_TYPE_TF32, SKEP_TYPE_FP16, SKEP_TYPE_BF16, SKEP_TYPES };
extern const char *const skep_type_names[]; /* NULL at the end */
double skep_type_bytes(enum skep_type type);

enum skep_table_kind { SKEP_TABLE_PRODUCTS, SKEP_TABLE_LAYERS, SKEP_TABLE_STAGES }; /* STAGES: stage_table.h */
extern const char *const skep_table_names[];
/* EDGE is no layer: what it costs a stage to receive a payload or to send one, and half of what the operation itself costs. */
enum skep_layer_kind { SKEP_LAYER_EMBEDDING, SKEP_LAYER_BLOCK, SKEP_LAYER_HEAD, SKEP_LAYER_EDGE };

/* C (m x n) = A (m x k) B (k x n), `batch` of them in one go. */
struct skep_product {
	double batch, m, k, n;
};
double skep_product_flop(const struct skep_product *product);
double skep_product_bytes(const struct skep_product *product, enum skep_type type); /* A, B and C once each */

enum { SKEP_TABLE_AXES = 4 };

/* A larger product takes at least so large a part of the time of a smaller one, or one of the two was measured wrongly. */
#define SKEP_TABLE_FALL_MOST 0.5
#define SKEP_TABLE_TIME_US_MAX 1e12
enum skep_gpu_column { SKEP_COLUMN_FORWARD, SKEP_COLUMN_BACKWARD, SKEP_COLUMN_UPDATE, SKEP_COLUMNS };

struct skep_table_row {
	double axis
		[SKEP_TABLE_AXES]; /* products: batch, m, k, n. Layers: kind, tensor-parallel degree, microbatch, 0 */
	double seconds[SKEP_COLUMNS]; /* products: the first. NAN: not measured; 0: below what the clock could tell */
	double expected_s;            /* of products: what a law says of this one; 1 as long as there is none */
	double flop, bytes;           /* of the product, or of the layer's forward pass */
};

/* Rows rise in their axes, the first one first. */
struct skep_gpu_table {
	enum skep_table_kind kind;
	enum skep_type type;
	char path[512];
	char source[256]; /* measured or derived, of what, by whom */
	char model[64];   /* of layers: whose; else "" */
	struct skep_table_row *row;
	uint32_t rows; /* 0 rows: not read yet */
};

/* Fills the rows from table->path. Refused: ragged, empty, text, NaN, negative, not rising, two rows of one point, a time
 * that falls below half of that of the smaller neighbour. */
bool skep_gpu_table_read(struct skep_gpu_table *table, struct skep_diag *reterr);
void skep_gpu_table_finish(struct skep_gpu_table *table);

enum skep_answer { SKEP_ANSWER_NONE, SKEP_ANSWER_EXACT, SKEP_ANSWER_BETWEEN };

/* What was measured, over what is expected (rows' expected_s): times that of the product asked for it is the answer. Log-log
 * between neighbours in batch, m, k and n; a product stands for its transpose where only that was measured. */
enum skep_answer skep_gpu_table_product(
	const struct skep_gpu_table *table, const struct skep_product *product, double *ret_ratio);
/* Between neighbours in the microbatch; kind and degree must be in the table. */
enum skep_answer skep_gpu_table_layer(const struct skep_gpu_table *table, enum skep_layer_kind kind, uint32_t degree,
	uint32_t microbatch, enum skep_gpu_column column, double *ret_seconds);
