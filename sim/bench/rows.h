/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h - the benchmark's rows: a workload of some size, what its makespan is, and how a row is run and measured.
 */
#pragma once

#include "sim/bench/workload.h"

#define SKEP_BENCH_ROWS_MAX 96u

enum skep_bench_kind {
	SKEP_BENCH_PHOLD,
	SKEP_BENCH_PIPELINE,
	SKEP_BENCH_FLOW,
	SKEP_BENCH_RING,
	SKEP_BENCH_SWARM,
};

enum skep_bench_length {
	SKEP_BENCH_SMALL, /* tens of milliseconds */
	SKEP_BENCH_USUAL,
	SKEP_BENCH_LONG, /* only on request */
};

struct skep_bench_row {
	char name[32]; /* WORKLOAD-SIZE */
	char parameters[80];
	enum skep_bench_length length;
	double makespan_s, tolerance; /* exact, and how far from it, relatively, is right; NAN: not known */
	enum skep_bench_kind kind;
	union {
		struct skep_phold_work phold;
		struct skep_pipeline_work pipeline;
		struct skep_flow_work flow;
		struct skep_ring_work ring;
		struct skep_swarm_work swarm;
	} work;
};

/* All rows; returns how many. */
uint32_t skep_bench_rows(struct skep_bench_row ret[SKEP_BENCH_ROWS_MAX]);

/* The word is the row's name or begins it up to a '-', in any case: P is all of P, R-fast all of that. */
bool skep_bench_named(const struct skep_bench_row *row, const char *word);

struct skep_bench_figures {
	struct skep_bench_result result;
	double error;         /* makespan / the exact one - 1; NAN: not known */
	bool right;           /* the work was done, and the error is within the tolerance or not known */
	double wall_s, cpu_s; /* of the repetition with the median cpu_s; both from an empty process to its end */
	double peak_MiB;      /* of the process, likewise */
};

/* Runs the row `repeat` times, each in a process of its own so that its memory is its own. False: one of them failed, and
 * said why on stderr or was ended by a signal. */
bool skep_bench_measure(const struct skep_bench_row *row, uint32_t repeat, struct skep_bench_figures *ret);
