/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs.h - which of many jobs on one cluster run, with how many machines, on which, and with how much of the hosts' CPUs and
 * memory: as values and functions of values.
 *
 * What is decided at an instant, in this order:
 *
 *   order    which job comes first (order.c). FIFO: those that run, then by arrival. Shortest remaining time first: by what is
 *            left to do with the machines that the job asks for (Schrage 1968: on one machine no other order has a lower mean
 *            completion time). Least attained service: by queues of the machine-seconds that the job has had, each queue first
 *            come first served (Tiresias, Gu et al., NSDI 2019: discretized two-dimensional LAS)
 *   divide   how many machines each job gets (divide.c): in that order what it asks for, or as many as it can use of what is
 *            left; what is left over then goes to jobs that can use more. Any but FIFO take machines away from jobs that
 *            come later
 *   place    which machines these are (place.c): few hosts, and those of one place
 *   share    CPUs and memory of a host (share.c): in proportion to machines; or by the measured sensitivity of each job's
 *            throughput to them (Synergy, Mohan et al., OSDI 2022)
 *
 * Kept true: no more machines are given than there are; a job has none, or as many as it can run with, between its least and its
 * most; under FIFO no job loses machines below what it asks for; with `synergy` no job's throughput is below what its
 * proportional part gives it. Ties go to the job that arrived earlier, then to the lower number.
 */
#pragma once

#include "core/plan.h"

#define SKEP_JOBS_QUEUES_MAX 8u
#define SKEP_JOBS_NONE UINT32_MAX /* the owner of a machine that no job has */

enum skep_jobs_order { SKEP_JOBS_FIFO, SKEP_JOBS_SRTF, SKEP_JOBS_LAS, SKEP_JOBS_ORDERS };

struct skep_jobs_policy {
	enum skep_jobs_order order;
	bool synergy;    /* CPUs and memory by sensitivity; else in proportion to machines */
	bool backfill;   /* FIFO: a job may start before an earlier one that does not fit; else none does */
	uint32_t queues; /* LAS: from 1 to SKEP_JOBS_QUEUES_MAX */
	double queue_s
		[SKEP_JOBS_QUEUES_MAX]; /* LAS: [queues - 1], machine-seconds at which a job goes down a queue, rising */
	double promote; /* LAS: who waits so many times as long as it has run goes to the first queue; 0: none does */
};

struct skep_jobs_job { /* what is known of one that has arrived and is not done */
	skep_time arrived_ns;
	skep_time first_ns;     /* when it first ran; SKEP_TIME_NEVER: it has not */
	double remaining_s;     /* it would still take with `want` machines */
	double attained_s;      /* machine-seconds that it has had, since it was promoted, restarts aside */
	double ran_s, waited_s; /* the same, of time */
	double restart_s;       /* a start behind the first one, or another number of machines, takes so long */
	uint32_t min, want, max;
	uint32_t has;       /* machines now; 0: it waits */
	const double *rate; /* [max + 1] steps per second with so many machines; 0: it cannot run so */
};

/* ---- order.c ------------------------------------------------------------------------------------------------------- */

/* The queue of a job under LAS, from 0, which comes first. */
uint32_t skep_jobs_queue(const struct skep_jobs_policy *policy, double attained_s);
/* Has it waited so long that it is to go to the first queue? The world then makes attained_s, ran_s and waited_s 0. */
bool skep_jobs_starves(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job);
/* Until its queue changes by itself, if it keeps what it has; INFINITY: it does not. */
double skep_jobs_next_s(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job);
/* ret_order[jobs]: all of them, the first one first. */
void skep_jobs_sort(
	const struct skep_jobs_policy *policy, const struct skep_jobs_job *job, uint32_t jobs, uint32_t *ret_order);

/* ---- divide.c ------------------------------------------------------------------------------------------------------ */

/* The most machines that it can use of so many, from its least to its most; 0: none. */
uint32_t skep_jobs_usable(const struct skep_jobs_job *job, uint32_t machines);
/* ret_machines[jobs]: how many each gets, of `machines`. `order` as skep_jobs_sort() has it. */
void skep_jobs_divide(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job, const uint32_t *order,
	uint32_t jobs, uint32_t machines, uint32_t *ret_machines);

/* ---- place.c ------------------------------------------------------------------------------------------------------- */

struct skep_jobs_cluster {
	uint32_t machines, hosts, places;
	const uint32_t *host_of;  /* [machines] */
	const uint32_t *place_of; /* [hosts] */
	uint32_t *free_of;        /* [hosts] scratch */
	uint32_t *free_at;        /* [places] scratch */
};

/* Gives `job` so many more machines: owner[machines] says whose each is. There are as many free ones. `demand`: [hosts] the
 * shares of its cores and its memory that the jobs on a host ask for, the less the better; NULL: no matter. */
void skep_jobs_place(
	const struct skep_jobs_cluster *cluster, uint32_t job, uint32_t more, const double *demand, uint32_t *owner);
/* Takes so many of its machines: those on the hosts where it has the fewest. */
void skep_jobs_release(const struct skep_jobs_cluster *cluster, uint32_t job, uint32_t fewer, uint32_t *owner);

/* ---- share.c ------------------------------------------------------------------------------------------------------- */

/* How a job's throughput depends on what one of its machines has of CPUs and memory, as measured: a table whose values only
 * compare with each other. Between its points it is linear, beyond its ends it does not change; with less than the first
 * number of CPUs it falls to 0 in proportion. */
struct skep_jobs_needs {
	uint32_t cpus, memories;  /* sizes of the table; 0: it does not depend on them */
	const double *cpu;        /* [cpus] rising, above 0 */
	const double *memory;     /* [memories] bytes, rising */
	const double *throughput; /* [cpus * memories] above 0, not falling along either */
};

/* Of the most that the table has, from 0 to 1. */
double skep_jobs_factor(const struct skep_jobs_needs *needs, double cpus, double memory);
/* The least of a machine with which it is 1. */
void skep_jobs_demand(const struct skep_jobs_needs *needs, double *ret_cpus, double *ret_memory);

struct skep_jobs_tenant { /* a job on one host */
	const struct skep_jobs_needs *needs;
	uint32_t machines;   /* of the host */
	double cpus, memory; /* given: of each machine */
};

/* Fills what each of the tenants is given of a host that has so many machines, CPUs and bytes. */
void skep_jobs_share(
	bool synergy, uint32_t machines, double cpus, double memory, struct skep_jobs_tenant *tenant, uint32_t tenants);
