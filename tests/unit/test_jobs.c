/* SPDX-License-Identifier: Apache-2.0
 *
 * test_jobs.c - which of many jobs run, with what, against sums by hand and what has to hold of any decision.
 */
#include "core/jobs/jobs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"

enum { JOBS = 12, MACHINES = 20, SIZES = MACHINES + 1 };

static const double linear[SIZES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
static const double even[SIZES] = {0, 0, 2, 0, 4, 0, 6, 0, 8, 0, 10, 0, 12, 0, 14, 0, 16, 0, 18, 0, 20};
static const double flat[SIZES] = {
	0, 1, 1.5, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6};

static struct skep_jobs_job job_of(uint32_t min, uint32_t want, uint32_t max, uint32_t has, const double *rate)
{
	return (struct skep_jobs_job){.first_ns = has > 0 ? 0 : SKEP_TIME_NEVER,
		.remaining_s = 1000,
		.min = min,
		.want = want,
		.max = max,
		.has = has,
		.rate = rate};
}

static void divide(const struct skep_jobs_policy *p, const struct skep_jobs_job *job, uint32_t jobs, uint32_t machines,
	uint32_t *ret)
{
	uint32_t order[JOBS];
	skep_jobs_sort(p, job, jobs, order);
	skep_jobs_divide(p, job, order, jobs, machines, ret);
}

static void test_left_over_goes_where_it_brings_most(void **unused)
{
	const struct skep_jobs_policy fifo = {.order = SKEP_JOBS_FIFO};
	const struct skep_jobs_job job[2] = {job_of(1, 2, 20, 0, flat), job_of(1, 2, 6, 0, linear)};
	uint32_t given[2];
	(void)unused;
	divide(&fifo, job, 2, 8,
		given); /* the second gains 0.5 of what it asks for by each, the first 0.07 by the next */
	assert_int_equal(given[0], 2);
	assert_int_equal(given[1], 6);
}

/* Of two that will take as long the one that came first, whatever their places in the list. */
static void test_who_came_first_is_first(void **unused)
{
	const struct skep_jobs_policy srtf = {.order = SKEP_JOBS_SRTF};
	struct skep_jobs_job job[2] = {job_of(1, 2, 20, 0, linear), job_of(1, 2, 20, 0, linear)};
	uint32_t order[JOBS];
	(void)unused;
	for (uint32_t late = 0; late < 2; late++) {
		job[late].arrived_ns = 7;
		job[1 - late].arrived_ns = 5;
		skep_jobs_sort(&srtf, job, 2, order);
		assert_int_equal(order[0], 1 - late);
		assert_int_equal(order[1], late);
	}
}

/* With two machines at a time: half of what is left to the queue's end, and behind the last end never. */
static void test_when_a_queue_is_over(void **unused)
{
	const struct skep_jobs_policy las = {.order = SKEP_JOBS_LAS, .queues = 3, .queue_s = {3600, 36000}};
	struct skep_jobs_job job = job_of(1, 2, 20, 2, linear);
	(void)unused;
	assert_true(skep_jobs_next_s(&las, &job) == 1800);
	job.attained_s = 6000;
	assert_true(skep_jobs_next_s(&las, &job) == 15000);
	job.attained_s = 40000;
	assert_true(isinf(skep_jobs_next_s(&las, &job)));
}

static void test_a_restart_has_to_be_worth_it(void **unused)
{
	const struct skep_jobs_policy fifo = {.order = SKEP_JOBS_FIFO};
	struct skep_jobs_job job = job_of(1, 2, 8, 2, linear);
	uint32_t given;
	(void)unused;
	job.restart_s = 749; /* 1000 s with two machines are 250 s with eight */
	divide(&fifo, &job, 1, 8, &given);
	assert_int_equal(given, 8);
	job.restart_s = 750; /* as soon as without, and no sooner */
	divide(&fifo, &job, 1, 8, &given);
	assert_int_equal(given, 2);
	job.restart_s = 751;
	divide(&fifo, &job, 1, 8, &given);
	assert_int_equal(given, 2);
}

static void test_no_job_before_one_that_does_not_fit(void **unused)
{
	struct skep_jobs_policy fifo = {.order = SKEP_JOBS_FIFO};
	const struct skep_jobs_job job[3] = {
		job_of(3, 3, 3, 3, linear), job_of(2, 2, 2, 0, linear), job_of(1, 1, 1, 0, linear)};
	uint32_t given[3];
	(void)unused;
	divide(&fifo, job, 3, 4, given);
	assert_true(given[0] == 3 && given[1] == 0 && given[2] == 0);
	fifo.backfill = true;
	divide(&fifo, job, 3, 4, given);
	assert_true(given[0] == 3 && given[1] == 0 && given[2] == 1);
}

static void test_queues(void **unused)
{
	const struct skep_jobs_policy las = {.order = SKEP_JOBS_LAS, .queues = 3, .queue_s = {10, 100}, .promote = 2};
	struct skep_jobs_job job = job_of(1, 4, 4, 4, linear);
	(void)unused;
	assert_int_equal(skep_jobs_queue(&las, 9.9), 0);
	assert_int_equal(skep_jobs_queue(&las, 10), 1);
	assert_int_equal(skep_jobs_queue(&las, 1e9), 2);
	job.attained_s = 60;
	assert_true(fabs(skep_jobs_next_s(&las, &job) - 10) < 1e-12); /* 40 machine-seconds of four machines */
	job.has = 0;
	job.ran_s = 15;
	job.waited_s = 29;
	assert_true(fabs(skep_jobs_next_s(&las, &job) - 1) < 1e-12);
	assert_false(skep_jobs_starves(&las, &job));
	job.waited_s = 30;
	assert_true(skep_jobs_starves(&las, &job));
}

/* In the last queue one that runs stays there; one that waits comes up in none where none is promoted. */
static void test_when_no_queue_is_over(void **unused)
{
	struct skep_jobs_policy las = {.order = SKEP_JOBS_LAS, .queues = 3, .queue_s = {10, 100}, .promote = 2};
	struct skep_jobs_job job = job_of(1, 4, 4, 4, linear);
	(void)unused;
	job.attained_s = 200;
	job.ran_s = 15;
	assert_true(isinf(skep_jobs_next_s(&las, &job)));
	job.has = 0;
	las.promote = 0;
	assert_true(isinf(skep_jobs_next_s(&las, &job)));
}

/* Whatever is there: no more machines than there are, sizes that jobs can run with, and no job of FIFO loses what it asks for. */
static void test_any_division(void **unused)
{
	static const double *const tables[] = {linear, even, flat};
	uint64_t random = 1;
	(void)unused;
	for (uint32_t turn = 0; turn < 20000; turn++) {
		const struct skep_jobs_policy policy = {
			.order = (enum skep_jobs_order)(turn % 3), .queues = 2, .queue_s = {500}, .backfill = turn % 2};
		struct skep_jobs_job job[JOBS];
		uint32_t given[JOBS], sum = 0, held = 0;
		for (uint32_t i = 0; i < JOBS; i++) {
			const double *rate = tables[skep_random_below(&random, 3)];
			uint32_t want = 2 + 2 * skep_random_below(&random, 5),
				 max = want + skep_random_below(&random, 9);
			uint32_t has = skep_random_below(&random, 2) ? want : 0;
			has = held + has <= MACHINES ? has : 0;
			held += has;
			job[i] = job_of(
				1 + skep_random_below(&random, want), want, max < MACHINES ? max : MACHINES, has, rate);
			job[i].remaining_s = 1 + skep_random_below(&random, 1000);
			job[i].attained_s = skep_random_below(&random, 1000);
			job[i].restart_s = skep_random_below(&random, 100);
		}
		divide(&policy, job, JOBS, MACHINES, given);
		for (uint32_t i = 0; i < JOBS; i++) {
			sum += given[i];
			assert_true(given[i] == 0 || (given[i] >= job[i].min && given[i] <= job[i].max));
			assert_true(given[i] == 0 || job[i].rate[given[i]] > 0);
			assert_true(policy.order != SKEP_JOBS_FIFO || given[i] >= job[i].has);
		}
		assert_true(sum <= MACHINES);
	}
}

static void test_places(void **unused)
{
	static const uint32_t host_of[8] = {0, 0, 0, 1, 1, 1, 2, 2}, place_of[3] = {0, 0, 1};
	uint32_t free_of[3], free_at[2], owner[8];
	const struct skep_jobs_cluster c = {8, 3, 2, host_of, place_of, free_of, free_at};
	(void)unused;
	memset(owner, 0xff, sizeof owner);
	skep_jobs_place(&c, 1, 2, NULL, owner); /* the host that it fills */
	assert_true(owner[6] == 1 && owner[7] == 1);
	skep_jobs_place(&c, 2, 4, NULL, owner); /* one place, one of its hosts whole */
	assert_true(owner[0] == 2 && owner[1] == 2 && owner[2] == 2 && owner[3] == 2);
	skep_jobs_place(&c, 2, 1, NULL, owner); /* where it is already */
	assert_true(owner[4] == 2);
	skep_jobs_release(&c, 2, 2, owner); /* from the host where it has the fewest */
	assert_true(owner[3] == SKEP_JOBS_NONE && owner[4] == SKEP_JOBS_NONE && owner[2] == 2);
}

/* A place that has room for all comes before the host with most room, the first place as well as any. */
static void test_a_whole_place_is_kept_together(void **unused)
{
	static const uint32_t host_of[7] = {0, 0, 1, 1, 2, 2, 2};
	(void)unused;
	for (uint32_t wide = 0; wide < 2; wide++) { /* the place of two hosts */
		const uint32_t place_of[3] = {wide, wide, 1 - wide};
		uint32_t free_of[3], free_at[2], owner[7];
		const struct skep_jobs_cluster c = {7, 3, 2, host_of, place_of, free_of, free_at};
		memset(owner, 0xff, sizeof owner);
		skep_jobs_place(&c, 1, 4, NULL, owner);
		for (uint32_t m = 0; m < 7; m++)
			assert_int_equal(owner[m], m < 4 ? 1 : SKEP_JOBS_NONE);
	}
}

static const double cpu[4] = {1, 2, 3, 6}, memory[2] = {10, 30};
static const double table[8] = {1, 1, 2, 2, 3, 3, 3, 6};
static const struct skep_jobs_needs hungry = {4, 2, cpu, memory, table}, one_cpu = {1, 1, cpu, memory, table},
				    any = {0};

static void test_factor(void **unused)
{
	double cpus, bytes;
	(void)unused;
	assert_true(fabs(skep_jobs_factor(&hungry, 6, 30) - 1) < 1e-12);
	assert_true(fabs(skep_jobs_factor(&hungry, 0.5, 30) - 0.5 / 6) < 1e-12);
	assert_true(fabs(skep_jobs_factor(&hungry, 2.5, 10) - 2.5 / 6) < 1e-12);
	assert_true(fabs(skep_jobs_factor(&hungry, 6, 20) - 4.5 / 6) < 1e-12);
	assert_true(skep_jobs_factor(&any, 0, 0) == 1);
	skep_jobs_demand(&hungry, &cpus, &bytes);
	assert_true(cpus == 6 && bytes == 30);
}

/* Of 7 CPUs one job needs 1 and gives 2.5 back: just what the other one lacks. */
static void test_a_share_that_just_fits(void **unused)
{
	struct skep_jobs_tenant tenant[2] = {{.needs = &one_cpu, .machines = 1}, {.needs = &hungry, .machines = 1}};
	(void)unused;
	skep_jobs_share(true, 2, 7, 60, tenant, 2);
	assert_true(tenant[0].cpus == 1 && tenant[1].cpus == 6 && tenant[1].memory == 30);
}

/* Whatever the tenants: the host is not overdrawn, and none is below its equal part's throughput. */
static void test_any_share(void **unused)
{
	static const struct skep_jobs_needs *const needs[] = {&hungry, &one_cpu, &any};
	uint64_t random = 7;
	(void)unused;
	for (uint32_t turn = 0; turn < 20000; turn++) {
		struct skep_jobs_tenant tenant[8];
		double cpus = 8 + skep_random_below(&random, 30), bytes = 50 + skep_random_below(&random, 200),
		       used[2] = {0, 0};
		uint32_t tenants = 0;
		for (uint32_t left = 8; left > 0 && tenants < 7; tenants++) {
			uint32_t some = 1 + skep_random_below(&random, left);
			tenant[tenants] = (struct skep_jobs_tenant){
				.needs = needs[skep_random_below(&random, 3)], .machines = some};
			left -= some;
		}
		skep_jobs_share(true, 8, cpus, bytes, tenant, tenants);
		for (uint32_t i = 0; i < tenants; i++) {
			const struct skep_jobs_tenant *t = &tenant[i];
			used[0] += t->machines * t->cpus;
			used[1] += t->machines * t->memory;
			assert_true(skep_jobs_factor(t->needs, t->cpus, t->memory) >=
				    skep_jobs_factor(t->needs, cpus / 8, bytes / 8) * (1 - 1e-6));
		}
		assert_true(used[0] <= cpus * (1 + 1e-6) && used[1] <= bytes * (1 + 1e-6));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left_over_goes_where_it_brings_most),
		cmocka_unit_test(test_who_came_first_is_first),
		cmocka_unit_test(test_when_a_queue_is_over),
		cmocka_unit_test(test_a_restart_has_to_be_worth_it),
		cmocka_unit_test(test_no_job_before_one_that_does_not_fit),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_when_no_queue_is_over),
		cmocka_unit_test(test_any_division),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_a_whole_place_is_kept_together),
		cmocka_unit_test(test_factor),
		cmocka_unit_test(test_a_share_that_just_fits),
		cmocka_unit_test(test_any_share),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
