/* SPDX-License-Identifier: Apache-2.0
 *
 * mixture.c - times the forward and backward pass of a mixture of experts by itself, on so many threads:
 *
 *     bench_mixture TOKENS HIDDEN FEED COUNT PER_TOKEN THREADS REPEATS
 *
 * prints milliseconds of both passes together: the median, the least, and the processor time of all threads.
 * tests/torch/speed_experts.py has the same in PyTorch beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/random.h"
#include "models/device/device_cpu.h"
#include "models/layers/mixture.h"

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static skep_real *numbers(size_t n, double size)
{
	static uint64_t seed = 1;
	skep_real *a = aligned_alloc(64, (n * sizeof *a + 63) / 64 * 64);
	if (!a)
		abort();
	for (size_t i = 0; i < n; i++)
		a[i] = (skep_real)(size * ((double)skep_random_below(&seed, 2000001) / 1e6 - 1));
	return a;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Never given back: the program ends. */
static struct skep_mixture make(
	const struct skep_experts *e, size_t tokens, size_t hidden, size_t feed, uint32_t threads)
{
	return (struct skep_mixture){.experts = e,
		.tokens = tokens,
		.hidden = hidden,
		.feed = feed,
		.router = numbers(hidden * e->count, 0.03),
		.up = numbers(e->count * hidden * 2 * feed, 0.03),
		.down = numbers(e->count * feed * hidden, 0.03),
		.router_gradient = numbers(hidden * e->count, 0),
		.up_gradient = numbers(e->count * hidden * 2 * feed, 0),
		.down_gradient = numbers(e->count * feed * hidden, 0),
		.kept = numbers(tokens * skep_mixture_kept(e, feed), 0),
		.work = numbers(skep_mixture_work(e, tokens, hidden, feed), 0),
		.thread_pool = skep_thread_pool_create(threads)};
}

int main(int arguments, char **argument)
{
	enum { REPEATS_MAX = 1000 };
	unsigned long given[7];
	double taken[REPEATS_MAX], processor = 0;
	if (arguments != 8)
		return fprintf(stderr, "usage: bench_mixture TOKENS HIDDEN FEED COUNT PER_TOKEN THREADS REPEATS\n"), 2;
	for (int i = 0; i < 7; i++)
		given[i] = strtoul(argument[i + 1], NULL, 10);
	const size_t n = given[0] * given[1], repeats = given[6] < REPEATS_MAX ? given[6] : REPEATS_MAX;
	struct skep_experts experts = {
		.count = (uint32_t)given[3], .per_token = (uint32_t)given[4], .renormalized = true};
	skep_cpu_init();
	struct skep_mixture m = make(&experts, given[0], given[1], given[2], (uint32_t)given[5]);
	skep_real *x = numbers(n, 1), *gradient = numbers(n, 1), *out = numbers(n, 0), *back = numbers(n, 0);
	for (size_t i = 0; i < repeats + 2; i++) {
		double begun = now(CLOCK_MONOTONIC), spent = now(CLOCK_PROCESS_CPUTIME_ID);
		skep_mixture_forward(&m, x, x, out);
		skep_mixture_backward(&m, x, gradient, back);
		if (i >= 2) {
			taken[i - 2] = 1e3 * (now(CLOCK_MONOTONIC) - begun);
			processor += 1e3 * (now(CLOCK_PROCESS_CPUTIME_ID) - spent);
		}
	}
	qsort(taken, repeats, sizeof *taken, by_size);
	printf("%.3f %.3f %.3f\n", taken[repeats / 2], taken[0], processor / (double)repeats);
	return 0;
}
