/* SPDX-License-Identifier: Apache-2.0
 *
 * measure.c - runs rows and measures them: a child process for each run, whose memory and processor time the system counts.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/bench/rows.h"

static bool run(const struct skep_bench_row *row, struct skep_bench_result *ret)
{
	switch (row->kind) {
	case SKEP_BENCH_PHOLD:
		return skep_bench_phold(&row->work.phold, ret);
	case SKEP_BENCH_PIPELINE:
		return skep_bench_pipeline(&row->work.pipeline, ret);
	case SKEP_BENCH_FLOW:
		return skep_bench_flow(&row->work.flow, ret);
	case SKEP_BENCH_RING:
		return skep_bench_ring(&row->work.ring, ret);
	case SKEP_BENCH_SWARM:
		return skep_bench_swarm(&row->work.swarm, ret);
	}
	return false;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* The child: what it found goes through the pipe, whole or not at all. */
static void answer(const struct skep_bench_row *row, int to)
{
	struct skep_bench_result result = {0};
	if (!run(row, &result)) {
		fprintf(stderr, "skep: %s (%s): not enough memory, or no scratch folder\n", row->name, row->parameters);
		_exit(1);
	}
	_exit(write(to, &result, sizeof result) == (ssize_t)sizeof result ? 0 : 1);
}

static bool await(pid_t child, int from, struct skep_bench_figures *ret)
{
	struct rusage usage;
	int status;
	pid_t ended;
	bool got = read(from, &ret->result, sizeof ret->result) == (ssize_t)sizeof ret->result;
	do
		ended = wait4(child, &status, 0, &usage);
	while (ended < 0 && errno == EINTR);
	ret->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
	ret->peak_MiB = (double)usage.ru_maxrss / 1024;
	if (ended == child && WIFSIGNALED(status))
		fprintf(stderr, "skep: a run was ended: %s\n", strsignal(WTERMSIG(status)));
	return got && ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run_apart(const struct skep_bench_row *row, struct skep_bench_figures *ret)
{
	int ends[2];
	double begin_s = skep_monotonic_s();
	fflush(NULL);
	if (pipe(ends) != 0) {
		perror("skep: pipe");
		return false;
	}
	pid_t child = fork();
	if (child == 0)
		answer(row, ends[1]);
	close(ends[1]);
	if (child < 0)
		perror("skep: fork");
	bool good = child > 0 && await(child, ends[0], ret);
	close(ends[0]);
	ret->wall_s = skep_monotonic_s() - begin_s;
	return good;
}

static int by_cpu(const void *a, const void *b)
{
	const struct skep_bench_figures *x = a, *y = b;
	return (x->cpu_s > y->cpu_s) - (x->cpu_s < y->cpu_s);
}

bool skep_bench_measure(const struct skep_bench_row *row, uint32_t repeat, struct skep_bench_figures *ret)
{
	struct skep_bench_figures *runs = calloc(repeat, sizeof *runs);
	bool good = runs;
	for (uint32_t i = 0; i < repeat && good; i++)
		good = run_apart(row, &runs[i]);
	if (good) {
		qsort(runs, repeat, sizeof *runs, by_cpu);
		*ret = runs[repeat / 2];
		ret->error = ret->result.makespan_s / row->makespan_s - 1;
		ret->right = ret->result.done > 0 && !(fabs(ret->error) > row->tolerance);
	}
	free(runs);
	return good;
}
