/* SPDX-License-Identifier: Apache-2.0
 *
 * divide.c - how many machines each job gets: see jobs.h.
 *
 * Three passes. In the first each job in its turn gets what it asks for, or the most that it can use of what is left; where
 * one gets nothing, FIFO without backfilling gives no machine to those behind it. In the second jobs keep what they have beyond
 * that, as far as it is there. In the third what is left goes where it brings most: to the job whose rate, in parts of what
 * it has with the machines that it asks for, rises most for each further machine.
 *
 * A job that runs is given more only if it is then done sooner, the restart that it takes included.
 */
#include "core/jobs/jobs.h"

#include <assert.h>

uint32_t skep_jobs_usable(const struct skep_jobs_job *job, uint32_t machines)
{
	uint32_t most = machines < job->max ? machines : job->max;
	while (most >= job->min && most > 0 && job->rate[most] <= 0)
		most--;
	return most >= job->min ? most : 0;
}

/* Is a job that has `has` done sooner with so many? One that waits is. */
static bool sooner(const struct skep_jobs_job *job, uint32_t machines)
{
	assert(machines <= job->max && job->has <= job->max);
	double work = job->remaining_s * job->rate[job->want];
	return job->has == 0 || work / job->rate[job->has] > job->restart_s + work / job->rate[machines];
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The first pass: what one job gets of what is left. */
static uint32_t ask(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job, uint32_t left)
{
	bool stays = policy->order == SKEP_JOBS_FIFO && job->has > 0;
	uint32_t asked = stays ? smaller(job->has, job->want) : job->want;
	uint32_t given = skep_jobs_usable(job, smaller(asked, left));
	if (job->has > 0 && given > job->has && !sooner(job, given))
		given = job->has;
	assert(given <= left);
	return given;
}

/* Of one that has `given`: the size that lifts its rate most for each further machine, of at most `left`. 0: none does. */
static uint32_t best_size(const struct skep_jobs_job *job, uint32_t given, uint32_t left, double *ret_gain)
{
	uint32_t best = 0, limit = smaller(job->max, given + left);
	assert(given <= job->max && job->rate[job->want] > 0);
	for (uint32_t n = given + 1; n <= limit; n++) {
		double gain = (job->rate[n] - job->rate[given]) / job->rate[job->want] / (double)(n - given);
		bool better = gain > 0 && (best == 0 || gain > *ret_gain);
		if (better && (job->has == 0 || n <= job->has || sooner(job, n))) {
			best = n;
			*ret_gain = gain;
		}
	}
	return best;
}

static void grow(
	const struct skep_jobs_job *job, const uint32_t *order, uint32_t jobs, uint32_t left, uint32_t *machines)
{
	while (left > 0) {
		uint32_t best = SKEP_JOBS_NONE, size = 0;
		double most = 0;
		for (uint32_t i = 0; i < jobs; i++) {
			uint32_t j = order[i];
			double gain = 0;
			uint32_t n = machines[j] > 0 ? best_size(&job[j], machines[j], left, &gain) : 0;
			if (n > 0 && gain > most) {
				best = j;
				size = n;
				most = gain;
			}
		}
		if (best == SKEP_JOBS_NONE)
			return;
		assert(size > machines[best] && size - machines[best] <= left);
		left -= size - machines[best];
		machines[best] = size;
	}
}

void skep_jobs_divide(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job, const uint32_t *order,
	uint32_t jobs, uint32_t machines, uint32_t *ret_machines)
{
	uint32_t left = machines;
	bool closed = false;
	for (uint32_t i = 0; i < jobs; i++) {
		uint32_t j = order[i];
		ret_machines[j] = closed ? 0 : ask(policy, &job[j], left);
		left -= ret_machines[j];
		closed = closed || (ret_machines[j] == 0 && policy->order == SKEP_JOBS_FIFO && !policy->backfill);
	}
	for (uint32_t i = 0; i < jobs; i++) {
		uint32_t j = order[i], kept = skep_jobs_usable(&job[j], smaller(job[j].has, ret_machines[j] + left));
		if (ret_machines[j] == 0 || kept <= ret_machines[j])
			continue;
		assert(kept - ret_machines[j] <= left);
		left -= kept - ret_machines[j];
		ret_machines[j] = kept;
	}
	grow(job, order, jobs, left, ret_machines);
}
