/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_predictor.h - how long a product or a layer takes on one kind of GPU, by one of three predictors, and where that
 * number comes from.
 */
#pragma once

#include "topologies/gpu/gpu.h"
#include "topologies/gpu/gpu_fit.h"

enum skep_predictor_kind {
	SKEP_PREDICTOR_ROOFLINE,  /* none of the below: one efficiency for every shape, as the profile says */
	SKEP_PREDICTOR_TABLE,     /* what was measured; between that interpolated; beyond it a fitted law */
	SKEP_PREDICTOR_ANALYTIC,  /* the published roofline over one fitted lambda */
	SKEP_PREDICTOR_REGRESSION /* fitted in FLOPs and bytes */
};
extern const char *const skep_predictor_names[]; /* NULL at the end */

enum skep_time_origin {
	SKEP_TIME_MEASURED,
	SKEP_TIME_INTERPOLATED,
	SKEP_TIME_FITTED,
	SKEP_TIME_ASSUMED, /* the profile's efficiency, for want of a table */
	SKEP_TIME_MEMORY,  /* bytes over the published memory bandwidth, and the profile's overhead */
	SKEP_TIME_ORIGINS
};
extern const char *const skep_time_origin_names[];

struct skep_predictor {
	enum skep_predictor_kind kind;
	enum skep_type type;        /* asked for */
	const struct skep_gpu *gpu; /* borrowed, and so are ... */
	struct skep_gpu_table *products,
		*layers;                 /* ... its tables of that type, or of one that stands in; NULL: none */
	struct skep_stage_table *stages; /* of TABLE: whole stages as a run had them; NULL: none */
	struct skep_fit product;         /* law for products; no points: there is none */
	struct skep_fit layer[2];        /* the same for whole layers, forward and backward */
};

/* Reads the tables that it needs and fits the laws. Error: a type that this GPU does not have (without a place in a file: the
 * caller knows where it was asked for), or a wrong table. */
bool skep_predictor_make(struct skep_gpu *gpu, enum skep_predictor_kind kind, enum skep_type type,
	struct skep_predictor *ret, struct skep_diag *reterr);

/* A measured layer of a model of that name, if this is the predictor for it and the table has it; else false. */
bool skep_predictor_layer(const struct skep_predictor *predictor, const char *model, enum skep_layer_kind kind,
	uint32_t degree, uint32_t microbatch, enum skep_gpu_column column, double *ret_seconds,
	enum skep_time_origin *ret_origin);

/* Whether the law for a model of that name is one of whole layers: its own, or for want of products, or because layers show
 * best what training reaches. Otherwise a layer is its products and the rest. */
bool skep_predictor_by_layer(const struct skep_predictor *predictor, const char *model);

/* A whole layer with so many FLOPs and bytes of a forward pass, there (column FORWARD) or back. */
double skep_predictor_model_s(const struct skep_predictor *predictor, enum skep_gpu_column column, double flop,
	double bytes, enum skep_time_origin *ret_origin);
double skep_predictor_product_s(
	const struct skep_predictor *predictor, const struct skep_product *product, enum skep_time_origin *ret_origin);
