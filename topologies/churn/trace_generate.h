/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_generate.h - traces drawn from distributions: lifetimes, bursts of losses, and requests that may be refused.
 */
#pragma once

#include "topologies/churn/trace_stats.h"

#define SKEP_GENERATE_GPUS_MAX 16u

struct skep_generate_options {
	uint32_t machines; /* as many are wanted; all are there at the start */
	double duration_s;
	struct skep_lifetime_fit life; /* law, shape and scale count */
	struct skep_bursts bursts;     /* borrowed; none: losses come one by one */
	double refusal;                /* a request is refused with this probability, [0, 0.999] */
	double wait_s;                 /* mean time from a request to its answer, at least 1 s */
	double diurnal;                /* [0, 1]: by how much fewer are wanted 12 h after the start than at it */
	struct {
		char name[64];
		double share;
	} gpu[SKEP_GENERATE_GPUS_MAX]; /* machines of each type, in proportion */
	uint32_t gpus;
	uint64_t seed;
};

/* A law that was fitted to the trace, with its shape, made longer or shorter so that machines are lost as often as in it: the
 * likeliest law need not have the mean of what was seen. Some life has ended in the trace. */
struct skep_lifetime_fit skep_generate_life(const struct skep_trace_stats *stats, const struct skep_lifetime_fit *law);

/* As in the trace that the statistics are of: its most machines and its duration, the law that fits better, losses within a
 * minute as bursts, its refusals, and the wait that leaves as many machines missing on average. *ret borrows the
 * bursts.
 * False: no life has ended in it. */
bool skep_generate_like(const struct skep_trace_stats *stats, struct skep_generate_options *ret);

/* NULL: fine; else what is wrong with the options. */
const char *skep_generate_check(const struct skep_generate_options *options);

/* False: no memory, or the sink has enough. */
bool skep_trace_generate(const struct skep_generate_options *options, skep_trace_sink sink, void *user);
