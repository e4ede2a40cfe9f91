/* SPDX-License-Identifier: Apache-2.0
 *
 * order.c - which job comes first: see jobs.h.
 */
#include "core/jobs/jobs.h"

#include <assert.h>
#include <float.h>
#include <math.h>

uint32_t skep_jobs_queue(const struct skep_jobs_policy *policy, double attained_s)
{
	uint32_t queue = 0;
	assert(attained_s >= 0);
	while (queue + 1 < policy->queues && attained_s >= policy->queue_s[queue])
		queue++;
	return queue;
}

bool skep_jobs_starves(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job)
{
	return policy->order == SKEP_JOBS_LAS && policy->promote > 0 && job->has == 0 && job->ran_s > 0 &&
	       skep_jobs_queue(policy, job->attained_s) > 0 && job->waited_s >= policy->promote * job->ran_s;
}

double skep_jobs_next_s(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job)
{
	uint32_t queue = skep_jobs_queue(policy, job->attained_s);
	if (policy->order != SKEP_JOBS_LAS)
		return INFINITY;
	if (job->has > 0 && queue + 1 < policy->queues)
		return (policy->queue_s[queue] - job->attained_s) / (double)job->has;
	if (job->has == 0 && queue > 0 && policy->promote > 0 && job->ran_s > 0)
		return policy->promote * job->ran_s - job->waited_s;
	return INFINITY;
}

static int by_number(double a, double b)
{
	return a < b ? -1 : a > b;
}

static int by_time(skep_time a, skep_time b)
{
	return a < b ? -1 : a > b;
}

/* Does job a come before job b? A total order, so that how it is sorted by does not matter. */
static bool before(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job, uint32_t a, uint32_t b)
{
	assert(policy->order == SKEP_JOBS_FIFO || policy->order == SKEP_JOBS_SRTF || policy->order == SKEP_JOBS_LAS);
	const struct skep_jobs_job *one = &job[a], *other = &job[b];
	int first = 0;
	if (policy->order == SKEP_JOBS_FIFO) {
		first = (other->has > 0) - (one->has > 0);
	} else if (policy->order == SKEP_JOBS_SRTF) {
		first = by_number(one->remaining_s, other->remaining_s);
	} else {
		first = by_number(skep_jobs_queue(policy, one->attained_s), skep_jobs_queue(policy, other->attained_s));
		first = first != 0 ? first : by_time(one->first_ns, other->first_ns);
	}
	first = first != 0 ? first : by_time(one->arrived_ns, other->arrived_ns);
	return first != 0 ? first < 0 : a < b;
}

/* A heap whose top comes last. */
static void sink(const struct skep_jobs_policy *policy, const struct skep_jobs_job *job, uint32_t *order, uint32_t at,
	uint32_t count)
{
	uint32_t moved = order[at];
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child + 1 < count && before(policy, job, order[child], order[child + 1]))
			child++;
		if (child >= count || !before(policy, job, moved, order[child]))
			break;
		order[at] = order[child];
		at = child;
	}
	order[at] = moved;
}

void skep_jobs_sort(
	const struct skep_jobs_policy *policy, const struct skep_jobs_job *job, uint32_t jobs, uint32_t *ret_order)
{
	for (uint32_t i = 0; i < jobs; i++)
		ret_order[i] = i;
	for (uint32_t i = jobs / 2; i > 0; i--)
		sink(policy, job, ret_order, i - 1, jobs);
	for (uint32_t left = jobs; left > 1; left--) {
		uint32_t last = ret_order[0];
		ret_order[0] = ret_order[left - 1];
		ret_order[left - 1] = last;
		sink(policy, job, ret_order, 0, left - 1);
	}
}
