/* SPDX-License-Identifier: Apache-2.0
 *
 * split_fixture.h - a folder with small models, topologies and a GPU of round numbers, for test_split.c and test_memory.c.
 *
 * The GPU: 1 TFLOP/s, 1 TB/s, 10 us an operation, 1 GB. The block model, with h 64, s 32, a 8, four blocks and 100 words:
 *   a block   12 h^2 + 13 h = 49984 parameters, 24 s h^2 + 4 s^2 h = 3407872 FLOPs; s h = 2048, a s^2 = 8192 numbers
 *   the head  100 h + 2 h = 6528 parameters, 2 s h 100 = 409600 FLOPs
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "scenarios/read/scenario.h"

enum { BLOCK = 49984, HEAD = 6528, ALL = 4 * BLOCK + HEAD };

static char folder[64];

static inline void write_file(const char *name, const char *text)
{
	char path[160];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static inline void write_topology(const char *name, const char *machines)
{
	char text[1024];
	snprintf(text, sizeof text,
		"name: t\nsource: assumed\ndirectory: a\nsites:\n  a:\n    machines: [%s]\n"
		"    inside: {bandwidth: 1 GB/s, latency: 1 ms}\n",
		machines);
	write_file(name, text);
}

static inline int make_folder(void **state)
{
	(void)state;
	char path[128];
	strcpy(folder, "/tmp/skep-test-split-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/gpus", folder);
	if (mkdir(path, 0700) != 0)
		return -1;
	write_file("gpus/g.yaml",
		"name: G\nsource: assumed\nflops: 1 TFLOP/s\nefficiency: 1\nmemory_bandwidth: 1000 GB/s\n"
		"memory: 1 GB\noverhead: 0.01 ms\n");
	write_file("block.yaml",
		"name: b\nkind: transformer\ntransformer: {hidden: 64, sequence: 32, blocks: 4, vocabulary: "
		"100, heads: 8, attention: kept}\n");
	write_file("headless.yaml",
		"name: b\nkind: transformer\ntransformer: {hidden: 64, sequence: 32, blocks: 4, vocabulary: 100}\n");
	write_file("mlp.yaml", "name: m\nkind: mlp\nactivation: relu\n"
			       "layers: {inputs: 1, hidden: 8, hidden_layers: 2, outputs: 1}\n");
	write_topology("one.yaml", "{gpu: g}");
	write_topology("four.yaml", "{gpu: g, count: 4, up: 1 GB/s, down: 1 GB/s}");
	write_topology("node.yaml", "{gpu: g, gpus: 4, inner: {bandwidth: 1 GB/s, latency: 1 us}}");
	write_topology("host.yaml", "{gpu: g, pcie: 0.5 GB/s, host: {memory: 1 GB, bandwidth: 1 GB/s}}");
	return 0;
}

static inline int remove_folder(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

/* One stage, microbatches of 2 in a batch of 8, with `sets` replaced. */
static inline bool try_read(const char *model, const char *topology, const char *const *set, uint32_t sets,
	struct skep_scenario *ret, struct skep_diag *reterr)
{
	char text[1024], path[128];
	struct skep_scenario_options options = {.set = set, .sets = sets};
	snprintf(text, sizeof text,
		"name: s\nmodel: {file: %s, stages: 1}\ncluster: {topology: %s}\n"
		"schedule: {global_batch: 8, microbatch: 2, in_flight: 1}\ntrain: {arithmetic: none, until: {steps: 2}}\n",
		model, topology);
	snprintf(path, sizeof path, "%s/s.yaml", folder);
	memset(reterr, 0, sizeof *reterr);
	return skep_scenario_read_text(path, text, strlen(text), &options, ret, reterr);
}

static inline void must_read(const char *model, const char *topology, const char *set, struct skep_scenario *ret)
{
	struct skep_diag diag;
	if (!try_read(model, topology, &set, set ? 1 : 0, ret, &diag))
		fail_msg("%s: %s", set ? set : "", diag.message);
}

static inline void must_refuse(const char *model, const char *topology, const char *set, const char *part)
{
	struct skep_diag diag;
	struct skep_scenario s;
	if (try_read(model, topology, &set, set ? 1 : 0, &s, &diag) || !strstr(diag.message, part))
		fail_msg("%s: '%s' is not in '%s'", set ? set : "", part, diag.message);
}
