/* SPDX-License-Identifier: Apache-2.0
 *
 * needs.c - how a job's throughput depends on CPUs and memory, as measured.
 */
#include <math.h>
#include <stdlib.h>

#include "scenarios/jobs/parts.h"

#define POINTS_MAX 64u

static uint32_t read_axis(
	struct skep_jobs_draft *d, const struct skep_yaml_node *map, const char *key, bool bytes, double *ret)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, map, key, true);
	uint32_t count = list ? skep_yaml_length(list) : 0;
	if (!d->r.diag->set && (count == 0 || count > POINTS_MAX))
		skep_reader_fail(&d->r, map, key, "sensitivity.%s: expected 1 to %u points", key, POINTS_MAX);
	for (uint32_t i = 0; i < count && !d->r.diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		ret[i] = bytes ? skep_read_quantity(&d->r, item, NULL, SKEP_BYTES, 0, 0x1p50, NAN)
		               : skep_read_number(&d->r, item, NULL, 1e-3, 65536, NAN);
		if (!d->r.diag->set && i > 0 && ret[i] <= ret[i - 1])
			skep_reader_fail(&d->r, item, NULL, "sensitivity.%s: expected points that rise", key);
	}
	return count;
}

static void read_row(struct skep_jobs_draft *d, const struct skep_yaml_node *row, const struct skep_jobs_needs *needs,
	uint32_t i, double *table)
{
	if (skep_yaml_kind(row) != SKEP_YAML_LIST || skep_yaml_length(row) != needs->memories) {
		skep_reader_fail(&d->r, row, NULL,
			"sensitivity.throughput: expected a list of %u numbers, one for each of `memory`",
			needs->memories);
		return;
	}
	for (uint32_t j = 0; j < needs->memories && !d->r.diag->set; j++) {
		const struct skep_yaml_node *item = skep_yaml_item(row, j);
		double *at = &table[i * needs->memories + j];
		*at = skep_read_number(&d->r, item, NULL, 1e-12, 1e12, NAN);
		if (!d->r.diag->set && ((j > 0 && at[0] < at[-1]) || (i > 0 && at[0] < *(at - needs->memories))))
			skep_reader_fail(&d->r, item, NULL,
				"sensitivity.throughput: with more CPUs or memory it may not be less: measure again, or "
				"take the larger number");
	}
}

void skep_jobs_read_needs(struct skep_jobs_draft *d, const struct skep_yaml_node *node, struct skep_job_type *type)
{
	const struct skep_yaml_node *map = skep_read_map(&d->r, node, "sensitivity", false);
	struct skep_jobs_needs *needs = &type->needs;
	if (!map || d->r.diag->set)
		return;
	type->numbers = calloc(2 * POINTS_MAX + POINTS_MAX * POINTS_MAX, sizeof *type->numbers);
	if (!type->numbers) {
		skep_reader_fail(&d->r, map, NULL, "not enough memory for these jobs");
		return;
	}
	double *cpu = type->numbers, *memory = cpu + POINTS_MAX, *table = memory + POINTS_MAX;
	needs->cpus = read_axis(d, map, "cpus", false, cpu);
	needs->memories = read_axis(d, map, "memory", true, memory);
	const struct skep_yaml_node *rows = skep_read_list(&d->r, map, "throughput", true);
	skep_reader_close_map(&d->r, map);
	if (!d->r.diag->set && skep_yaml_length(rows) != needs->cpus)
		skep_reader_fail(&d->r, map, "throughput",
			"sensitivity.throughput: expected %u rows, one for each of `cpus`", needs->cpus);
	for (uint32_t i = 0; i < needs->cpus && !d->r.diag->set; i++)
		read_row(d, skep_yaml_item(rows, i), needs, i, table);
	needs->cpu = cpu;
	needs->memory = memory;
	needs->throughput = table;
	if (!d->r.diag->set && d->file->host_cpus <= 0)
		skep_reader_fail(&d->r, node, "sensitivity",
			"sensitivity: the file does not say what a host has: add `host: {machines: 8, cpus: 24, memory: "
			"500 GB}` to `cluster`");
}
