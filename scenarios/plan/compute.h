/* SPDX-License-Identifier: Apache-2.0
 *
 * compute.h - the time of a stage's passes by a predictor (topologies/gpu/gpu_predictor.h), when a scenario asks for one.
 */
#pragma once

#include "core/skep.h"
#include "models/read/model.h"
#include "topologies/gpu/gpu_predictor.h"

/* `cluster.compute` of a scenario. Without it: the roofline of each profile. */
struct skep_compute {
	enum skep_predictor_kind predictor;
	enum skep_type type; /* of all GPUs, if the file says; else each has its own */
	bool type_said;
	bool mixed; /* tensors have the 2 bytes of the type, where it has that and the arithmetic is not real */
	bool refuse_outside; /* of TABLE: what was not measured, nor lies between, is an error */
	double noise;        /* relative standard deviation of each pass and step; 0: none */
	bool uncertain; /* the seed draws how far the times of each kind of GPU are off (topologies/gpu/uncertainty.h) */
};

/* What is not known of the times of a GPU, and what the seed of this run draws of it. */
struct skep_compute_draw {
	double deviation[SKEP_TIME_ORIGINS], factor[SKEP_TIME_ORIGINS];
};

/* The time of one operation with its noise: a function of the run's seed, the worker and what is computed, so that both worlds
 * draw the same. Normal, as the sum of twelve uniform numbers, cut at six deviations. */
#define SKEP_COMPUTE_NOISE_MAX 0.15
uint64_t skep_compute_noisy_ns(double noise, uint64_t seed, uint32_t worker, const struct skep_op *op, uint64_t ns);

/* Where the time of an operation comes from, in ns before they are rounded. */
struct skep_compute_time {
	double ns[SKEP_TIME_ORIGINS];
};
double skep_compute_sum(const struct skep_compute_time *time);

/* One stage on one GPU. */
struct skep_compute_stage {
	struct skep_compute_time forward, backward, step;
	struct skep_compute_time
		inner;          /* with periodic sync, whose inner step is `train.optimizer`; `step` is the outer one */
	bool backward_measured; /* else 2 x forward, or fitted to backward passes */
	bool step_known, inner_known; /* an update was measured for each layer; else step is empty */
};

/* What the stage asks of the GPU. */
struct skep_compute_task {
	const struct skep_model *model;
	uint32_t first_layer, layers;
	uint32_t samples;                                 /* of a microbatch */
	struct skep_split split;                          /* over so many GPUs */
	bool recompute;                                   /* the forward pass again, in the backward one */
	double extra_forward_bytes, extra_backward_bytes; /* through memory, for codecs */
	double scale;                                     /* so many times as much of everything but the overhead */
};
void skep_compute_time(
	const struct skep_predictor *predictor, const struct skep_compute_task *task, struct skep_compute_stage *ret);

/* What a stage's time has of what a table was to give and did not: law or assumption. */
bool skep_compute_outside(const struct skep_compute_stage *stage);

/* Of a scenario: reads `cluster.compute`; once train.arithmetic is known chooses the type of each GPU and whether the run is in
 * mixed precision; makes a predictor for each GPU of the topology, unless it is the roofline that is
 * asked for, and draws how far they are off, if that is asked for (needs the seed); then the times of a stage (or virtual stage)
 * on a GPU, once model, plan and cut are known; and refuses what is outside. */
struct skep_scenario;
void skep_compute_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_compute *ret);
void skep_compute_choose_types(struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *cluster);
void skep_compute_prepare(struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *cluster);
void skep_compute_predict(struct skep_scenario *s, uint32_t gpu, uint32_t vstage); /* op_time has the roofline's */
/* Puts what was measured of whole stages (topologies/gpu/stage_table.h) in place of what was predicted; after all that makes
 * times. */
void skep_compute_take_measured(struct skep_scenario *s, uint32_t gpu, uint32_t vstage);
void skep_compute_check(const struct skep_scenario *s, struct skep_reader *r, const struct skep_yaml_node *cluster);
