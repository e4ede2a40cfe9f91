/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_stats.h - statistics of a trace: how long machines live, how many are lost at once, how many were there, and
 * how often requests were refused. Memory is bounded: beyond SKEP_INCARNATIONS_KEPT ended lives an even sample of them
 * is kept.
 */
#pragma once

#include <stdio.h>

#include "topologies/churn/lifetime_fit.h"
#include "topologies/churn/trace.h"

#define SKEP_INCARNATIONS_KEPT (1u << 20)
#define SKEP_BURST_WINDOW_NS 60000000000u

/* How many machines went at once, how often. */
struct skep_bursts {
	uint64_t *count; /* [room], the number of bursts with i + 1 losses */
	uint32_t room, most;
	uint64_t bursts, losses;
};

struct skep_trace_stats {
	struct skep_trace_report report;
	double duration_s;                     /* from the first event to the end */
	double mean_alive;                     /* over time */
	uint32_t at_start;                     /* joined in the first instant: present from the start */
	uint64_t lives;                        /* ended; those present from the start count from the start */
	uint64_t early;                        /* of them, present from the start: they may have been there before */
	uint64_t censored;                     /* alive at the end: their ends were not seen */
	double mean_s, p10_s, median_s, p90_s; /* of ended lives; NAN without any */
	double refusal_rate;                   /* refused / (refused + joins after the first instant); NAN: neither */
	struct skep_bursts instant;            /* in the very same instant */
	struct skep_bursts window;             /* less than SKEP_BURST_WINDOW_NS after the first of the burst */
	bool fitted;                           /* some life has ended */
	struct skep_lifetime_fit exponential, weibull;
};

bool skep_trace_stats_read(const char *path, const struct skep_trace_options *options, struct skep_trace_stats *ret,
	struct skep_diag *reterr);
void skep_trace_stats_finish(struct skep_trace_stats *stats);

/* The law with the smaller Akaike information criterion, 2 * parameters - 2 log L. */
const struct skep_lifetime_fit *skep_trace_stats_best(const struct skep_trace_stats *stats);

void skep_trace_stats_print(const struct skep_trace_stats *stats, const char *path, FILE *out);
void skep_trace_stats_print_json(const struct skep_trace_stats *stats, const char *path, FILE *out);
