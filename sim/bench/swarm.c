/* SPDX-License-Identifier: Apache-2.0
 *
 * swarm.c - workload swarm: the simulator as `skep sim` runs it, scheduler and reader of scenarios included, arithmetic off
 * and without a database. The scenario is that of scenarios/swarm-256.yaml for any number of workers, written to a scratch
 * folder, so that the benchmark needs no other file.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/bench/workload.h"
#include "sim/sim.h"

#define SAMPLES 16u /* of a microbatch */

enum { MODEL, GPU, TOPOLOGY, SCENARIO, FILES };

static const char *const names[FILES] = {"model.yaml", "gpus/v100.yaml", "topology.yaml", "scenario.yaml"};

struct folder {
	char path[256], gpus[288];
	char file[FILES][288];
};

static bool make_folder(struct folder *folder)
{
	const char *scratch = getenv("TMPDIR");
	snprintf(folder->path, sizeof folder->path, "%s/skep-bench-XXXXXX", scratch && *scratch ? scratch : "/tmp");
	if (!mkdtemp(folder->path))
		return false;
	snprintf(folder->gpus, sizeof folder->gpus, "%s/gpus", folder->path);
	char path[sizeof folder->path]; /* a copy: a compiler cannot know that path and file do not overlap */
	memcpy(path, folder->path, sizeof path);
	for (int i = 0; i < FILES; i++)
		snprintf(folder->file[i], sizeof folder->file[i], "%s/%s", path, names[i]);
	return mkdir(folder->gpus, 0700) == 0;
}

static void remove_folder(const struct folder *folder)
{
	for (int i = 0; i < FILES; i++)
		unlink(folder->file[i]);
	rmdir(folder->gpus);
	rmdir(folder->path);
}

__attribute__((format(printf, 3, 4))) static bool write_file(
	const struct folder *folder, int which, const char *format, ...)
{
	va_list values;
	FILE *file = fopen(folder->file[which], "w");
	if (!file)
		return false;
	va_start(values, format);
	bool good = vfprintf(file, format, values) > 0;
	va_end(values);
	return fclose(file) == 0 && good;
}

static bool write_files(const struct folder *folder, const struct skep_swarm_work *work)
{
	assert(work->stages > 0 && work->workers >= work->stages);
	uint64_t samples = (uint64_t)SAMPLES * work->microbatches * (work->workers / work->stages);
	return write_file(folder, MODEL,
		       "name: perceptron\nkind: mlp\nactivation: gelu\n"
		       "layers: {inputs: 1, hidden: 512, hidden_layers: 9, outputs: 1}\n") &&
	       write_file(folder, GPU,
		       "name: V100\nsource: assumed for this benchmark\nflops: 15.7 TFLOP/s\nefficiency: 0.941\n"
		       "memory_bandwidth: 900 GB/s\nmemory: 16 GB\noverhead: 0.1 ms\n") &&
	       write_file(folder, TOPOLOGY,
		       "name: one place\nsource: assumed for this benchmark\ndirectory: here\nsites:\n  here:\n"
		       "    machines: [{count: %" PRIu32 ", gpu: v100, up: 10 Gbit/s, down: 10 Gbit/s}]\n"
		       "    inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}\n",
		       work->workers) &&
	       write_file(folder, SCENARIO,
		       "name: benchmark\nseed: 1\nmodel: {file: %s, stages: %" PRIu32 "}\n"
		       "cluster: {topology: %s, allocation: {method: strided}, compute_scale: 20}\n"
		       "schedule: {global_batch: %" PRIu64 ", microbatch: %u}\n%s"
		       "train: {arithmetic: none, until: {steps: %" PRIu32 "}}\n",
		       folder->file[MODEL], work->stages, folder->file[TOPOLOGY], samples, SAMPLES,
		       work->flows ? "simulate: {collectives: flows}\n" : "", work->rounds);
}

static bool simulate(const char *path, struct skep_bench_result *ret)
{
	struct skep_scenario_options options = {0};
	struct skep_scenario scenario;
	struct skep_diag diag = {0};
	struct skep_recorder recorder = {0};
	struct skep_sim_result result = {0};
	if (!skep_scenario_read(path, &options, &scenario, &diag)) {
		char text[2048];
		skep_diag_print(&diag, text, sizeof text);
		fputs(text, stderr);
		return false;
	}
	bool good = skep_sim_run(&scenario, &recorder, &result);
	ret->makespan_s = 1e-9 * (double)result.end_ns;
	ret->done = result.outcome == SKEP_DONE ? result.events : 0;
	skep_scenario_finish(&scenario);
	return good;
}

bool skep_bench_swarm(const struct skep_swarm_work *work, struct skep_bench_result *ret)
{
	struct folder folder;
	if (!make_folder(&folder)) {
		perror("skep: a scratch folder");
		return false;
	}
	bool good = write_files(&folder, work) && simulate(folder.file[SCENARIO], ret);
	remove_folder(&folder);
	return good;
}
