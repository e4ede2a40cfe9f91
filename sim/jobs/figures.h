/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.h - what many jobs on one cluster came to, as figures.
 */
#pragma once

#include "sim/jobs/jobs.h"

struct skep_cluster_figures { /* seconds, parts of 1, USD */
	/* From arrival to end: mean, and what so large a part of all jobs does not exceed (nearest rank). */
	double completion_s, p50_s, p95_s, p99_s;
	double queued_s, queued_most_s; /* from arrival until it first ran */
	double waited_s;                /* the mean of all time without machines, behind a preemption too */
	double makespan_s;              /* from the first arrival to the last end */
	double utilisation;             /* of the machines over the makespan: the time in which a job had them */
	double useful;                  /* the same without restarts */
	double jain;                    /* Jain's index of alone / completion (Jain, Chiu and Hawe 1984): 1 is fair */
	double rho, rho_most;           /* completion / fair (Themis, Mahajan et al., NSDI 2020): mean and most */
	double usd;                     /* of the machines while jobs had them; NAN: a price is not known */
	double cluster_usd;             /* of all machines over the makespan */
	uint64_t preemptions, resizes;
	uint32_t jobs, machines;
};

/* False: no memory. */
bool skep_cluster_sum_up(
	const struct skep_cluster *cluster, const struct skep_cluster_result *result, struct skep_cluster_figures *ret);
