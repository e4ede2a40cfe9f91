/* SPDX-License-Identifier: Apache-2.0
 *
 * throughput_state.h - what the cost of throughput.h keeps. Private to planning/search/.
 */
#pragma once

#include "planning/search/hunt.h"
#include "planning/search/throughput.h"

struct sums {                 /* over the stage before [0] and the one behind [1], times the weights of those there */
	double out[2], in[2]; /* seconds per byte sent and received */
	double delay;         /* there and back, to the stage behind alone */
	double forth_usd,
		back_usd; /* per byte, to and from the stage behind, where traffic has prices and money counts */
	double chosen;    /* the weights of these two: each sender's own where it chooses by the way */
};

struct log {
	uint32_t worker;
	struct sums sums; /* as they were */
};

struct flow {
	struct skep_objective objective; /* self is this */
	struct skep_throughput t;
	uint32_t workers, stages, words;
	double *per_byte; /* [workers * workers] seconds; -1: no way */
	double *together, *along, *alone;
	uint64_t *member;            /* [stages * words] */
	uint32_t *stage_of, *count;  /* [workers], [stages] */
	uint32_t *present;           /* [stages * types] workers, where `fits` is asked */
	uint32_t *place;             /* [stages * workers] with fixed pipelines: who is the n-th of a stage */
	double *weight, *old_weight; /* [stages] sums of weights */
	struct skep_throughput_stage *part, *old_part; /* [stages] workers 0: a link is missing */
	bool *dirty;                                   /* [stages] to be measured anew */
	struct sums *sums;                             /* [workers] */
	struct log *log;                               /* [4 * workers + 4] of the change that is asked about */
	uint32_t log_size, kept;
	int64_t missing; /* pairs of neighbouring stages without a link */
	int64_t unable;  /* workers where they cannot compute */
	bool any_missing, lacks;
	struct skep_throughput_parts parts;
	struct skep_change asked;
};

/* links.c. The reduction's ring goes in the order of the workers' numbers; it sets f->lacks where it lacks a link. */
double skep_throughput_reduction_s(struct flow *f, uint32_t stage);
double skep_throughput_ring_usd(const struct flow *f, uint32_t stage); /* of a step */
/* Adds, `weight` times, what bytes between the two cost. */
void skep_throughput_pay(const struct flow *f, uint32_t worker, uint32_t other, double weight, struct sums *s);
