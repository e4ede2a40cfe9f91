/* SPDX-License-Identifier: Apache-2.0
 *
 * share.c - CPUs and memory of a host among the jobs on it: see jobs.h.
 *
 * In proportion: each machine of the host has an equal part, whether a job has the machine or not.
 *
 * Synergy. A job whose throughput is not known to depend on either has its proportional part. Any other begins with that and
 * gives back what it does not lose by: CPUs first, then memory. What is given back, and what belongs to machines that no job
 * has, then goes step by step to where it lifts throughput most: the points of the jobs' tables are tried, and that is taken
 * which brings most for its part of the host. This is the paper's goal and its guarantee (no job below its proportional
 * throughput); the paper's online algorithm besides moves jobs between hosts each round, which is not done here.
 */
#include "core/jobs/jobs.h"

#include <assert.h>

#define SAME 1e-9 /* part of a throughput that does not count */

/* Where x lies among rising points: point[*ret_at] and the next one, with the weight of the next. */
static double between(const double *point, uint32_t points, double x, uint32_t *ret_at)
{
	uint32_t at = 0;
	assert(points > 0);
	while (at + 2 < points && x >= point[at + 1])
		at++;
	*ret_at = at;
	if (points < 2 || x <= point[at])
		return 0;
	return x >= point[at + 1] ? 1 : (x - point[at]) / (point[at + 1] - point[at]);
}

static double at_point(const struct skep_jobs_needs *needs, uint32_t cpu, uint32_t memory)
{
	assert(needs->cpus > 0 && needs->memories > 0);
	cpu = cpu < needs->cpus ? cpu : needs->cpus - 1;
	memory = memory < needs->memories ? memory : needs->memories - 1;
	return needs->throughput[cpu * needs->memories + memory];
}

double skep_jobs_factor(const struct skep_jobs_needs *needs, double cpus, double memory)
{
	uint32_t i, j;
	if (needs->cpus == 0)
		return 1;
	double u = between(needs->cpu, needs->cpus, cpus, &i), v = between(needs->memory, needs->memories, memory, &j);
	double lower = at_point(needs, i, j) * (1 - v) + at_point(needs, i, j + 1) * v;
	double upper = at_point(needs, i + 1, j) * (1 - v) + at_point(needs, i + 1, j + 1) * v;
	double part = cpus < needs->cpu[0] ? cpus / needs->cpu[0] : 1;
	return part * (lower * (1 - u) + upper * u) / at_point(needs, needs->cpus - 1, needs->memories - 1);
}

void skep_jobs_demand(const struct skep_jobs_needs *needs, double *ret_cpus, double *ret_memory)
{
	*ret_cpus = *ret_memory = 0;
	for (uint32_t i = 0; i < needs->cpus; i++)
		for (uint32_t j = 0; j < needs->memories; j++)
			if (skep_jobs_factor(needs, needs->cpu[i], needs->memory[j]) >= 1 - SAME) {
				*ret_cpus = needs->cpu[i];
				*ret_memory = needs->memory[j];
				return;
			}
}

/* Gives back what the throughput does not fall by: of CPUs, then of memory, down to a point of the table. */
static void give_back(struct skep_jobs_tenant *t)
{
	const struct skep_jobs_needs *needs = t->needs;
	assert(needs->cpus > 0 && t->cpus >= 0 && t->memory >= 0);
	double factor = skep_jobs_factor(needs, t->cpus, t->memory) * (1 - SAME);
	for (uint32_t i = needs->cpus; i > 0; i--)
		if (needs->cpu[i - 1] < t->cpus && skep_jobs_factor(needs, needs->cpu[i - 1], t->memory) >= factor)
			t->cpus = needs->cpu[i - 1];
	for (uint32_t j = needs->memories; j > 0; j--)
		if (needs->memory[j - 1] < t->memory &&
			skep_jobs_factor(needs, t->cpus, needs->memory[j - 1]) >= factor)
			t->memory = needs->memory[j - 1];
}

struct step {
	uint32_t tenant;
	double cpus, memory, worth; /* worth 0: there is none */
};

struct host {
	double cpus, memory;           /* that it has */
	double free_cpus, free_memory; /* that none is given */
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Tries the points of one job's table. */
static void try_steps(const struct host *host, const struct skep_jobs_tenant *t, uint32_t number, struct step *best)
{
	const struct skep_jobs_needs *needs = t->needs;
	double now = skep_jobs_factor(needs, t->cpus, t->memory), n = (double)t->machines;
	for (uint32_t i = 0; i < needs->cpus; i++)
		for (uint32_t j = 0; j < needs->memories; j++) {
			double cpus = larger(t->cpus, needs->cpu[i]), memory = larger(t->memory, needs->memory[j]);
			double more_cpus = n * (cpus - t->cpus), more_memory = n * (memory - t->memory);
			double gain = n * (skep_jobs_factor(needs, cpus, memory) - now);
			double part = more_cpus / host->cpus + more_memory / host->memory;
			if (gain > SAME && more_cpus <= host->free_cpus * (1 + SAME) &&
				more_memory <= host->free_memory * (1 + SAME) && gain > best->worth * part)
				*best = (struct step){number, cpus, memory, gain / part};
		}
}

void skep_jobs_share(
	bool synergy, uint32_t machines, double cpus, double memory, struct skep_jobs_tenant *tenant, uint32_t tenants)
{
	struct host host = {cpus, memory, cpus, memory};
	assert(machines > 0 && tenants <= machines && cpus > 0 && memory > 0);
	for (uint32_t i = 0; i < tenants; i++) {
		tenant[i].cpus = cpus / (double)machines;
		tenant[i].memory = memory / (double)machines;
		if (synergy && tenant[i].needs->cpus > 0)
			give_back(&tenant[i]);
		host.free_cpus -= (double)tenant[i].machines * tenant[i].cpus;
		host.free_memory -= (double)tenant[i].machines * tenant[i].memory;
	}
	while (synergy) {
		struct step best = {.worth = 0};
		for (uint32_t i = 0; i < tenants; i++)
			try_steps(&host, &tenant[i], i, &best);
		if (best.worth <= 0)
			return;
		struct skep_jobs_tenant *t = &tenant[best.tenant];
		host.free_cpus -= (double)t->machines * (best.cpus - t->cpus);
		host.free_memory -= (double)t->machines * (best.memory - t->memory);
		t->cpus = best.cpus;
		t->memory = best.memory;
	}
}
