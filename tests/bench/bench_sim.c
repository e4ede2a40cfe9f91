/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_sim.c - machine steps per second of processor time and peak memory of a simulated scenario.
 *
 *     bench_sim SCENARIO [key.path=value ...]
 */
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "core/hash.h"
#include "sim/sim.h"

/* Processor time, so that other programs on the machine disturb less. */
static double cpu_now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_MiB(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

struct heard {
	uint64_t ops, digest;
};

static void hear_op(void *context, const struct skep_op_span *span)
{
	(void)span;
	((struct heard *)context)->ops++;
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct heard *heard = context;
	heard->digest = skep_hash_word(heard->digest, use->digest ^ use->compute_ns);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: bench_sim SCENARIO [key.path=value ...]\n");
		return 2;
	}
	struct skep_scenario_options options = {.set = (const char *const *)argv + 2, .sets = (uint32_t)(argc - 2)};
	struct skep_scenario scenario;
	struct skep_diag diag = {0};
	double begin_s = cpu_now_s();
	if (!skep_scenario_read(argv[1], &options, &scenario, &diag)) {
		char text[2048];
		skep_diag_print(&diag, text, sizeof text);
		fputs(text, stderr);
		return 2;
	}
	double read_s = cpu_now_s() - begin_s, read_MiB = peak_MiB();
	struct heard heard = {0};
	struct skep_recorder recorder = {.context = &heard, .op = hear_op, .worker = hear_worker};
	struct skep_sim_result result;
	begin_s = cpu_now_s();
	bool good = skep_sim_run(&scenario, &recorder, &result);
	double cpu_s = cpu_now_s() - begin_s;
	if (good)
		printf("workers=%u stages=%u rounds=%u outcome=%s virtual_s=%.3f events=%llu ops=%llu cpu_s=%.3f "
		       "events_per_s=%.0f read_s=%.3f read_MiB=%.1f peak_MiB=%.1f digest=%016llx\n",
			scenario.plan.workers, scenario.plan.stages, scenario.plan.rounds,
			result.outcome == SKEP_DONE ? "done" : "failed", 1e-9 * (double)result.end_ns,
			(unsigned long long)result.events, (unsigned long long)heard.ops, cpu_s,
			(double)result.events / cpu_s, read_s, read_MiB, peak_MiB(), (unsigned long long)heard.digest);
	skep_scenario_finish(&scenario);
	return good ? 0 : 1;
}
