/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs.h - many jobs on one cluster in virtual time: arrivals, decisions of core/jobs/, progress, ends.
 *
 * A decision is made whenever a job arrives, ends, or goes to another queue. Between decisions a job's rate does not change:
 * it is what the caller says of the very machines that it has, times what the CPUs and memory of its hosts leave of it, by the
 * host where that is least. A job that starts again, or gets another number of machines, first takes its restart, in which its
 * machines are held and nothing is done.
 */
#pragma once

#include "core/jobs/jobs.h"
#include "topologies/read/topology.h"

struct skep_cluster_job {
	skep_time arrival_ns;
	double steps; /* to do */
	double restart_s;
	uint32_t min, want, max;
	const double *rate; /* [max + 1] as skep_jobs_job has it, CPUs and memory aside; rate[want] > 0 */
	const struct skep_jobs_needs *needs; /* of CPUs and memory */
	double usual;                        /* their factor with the proportional part of a host */
};

/* Steps per second of a job on these machines, CPUs and memory aside; 0: it cannot run there. */
typedef double skep_cluster_rate(void *user, uint32_t job, const uint32_t *machine, uint32_t machines);

struct skep_cluster {
	struct skep_jobs_policy policy;
	struct skep_jobs_cluster map;
	const uint32_t *machines_of;          /* [hosts] */
	double host_cpus, host_memory;        /* of each host; 0: not known, and no job depends on them */
	const struct skep_topology *topology; /* prices, by the map's numbers of machines */
	const struct skep_cluster_job *job;   /* [jobs] by arrival */
	uint32_t jobs;
	skep_cluster_rate *rate;
	void *user;
};

struct skep_cluster_done { /* what became of a job */
	skep_time first_ns, end_ns;
	double held_s;    /* machine-seconds */
	double restart_s; /* of these, in restarts */
	double usd;       /* of its machines; NAN: a price is not known */
	double alone_s;   /* it takes with what it asks for on an empty cluster */
	double present;   /* jobs that were there while it was, itself included, on the mean over time */
	double fair_s; /* it takes on its part of the cluster, one of `present` (Themis: T_ID); INFINITY: it cannot */
	uint32_t preemptions, resizes;
};

struct skep_cluster_span { /* a job with a number of machines, and no change */
	uint32_t job, machines;
	skep_time begin_ns, end_ns;
};

struct skep_cluster_result {
	struct skep_cluster_done *done; /* [jobs] */
	struct skep_cluster_span *span; /* [spans] by their ends */
	uint32_t spans;
	uint64_t decisions;
	skep_time end_ns; /* of the last job */
	uint32_t stuck;   /* of a failure: the job that cannot run where it was placed; SKEP_JOBS_NONE: no memory */
};

/* False: see `stuck`. The caller finishes the result in any case. */
bool skep_cluster_run(const struct skep_cluster *cluster, struct skep_cluster_result *ret);
void skep_cluster_finish(struct skep_cluster_result *result);
