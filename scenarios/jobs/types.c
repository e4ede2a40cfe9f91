/* SPDX-License-Identifier: Apache-2.0
 *
 * types.c - what jobs of a kind have in common: their scenario with changes, how many machines they ask for, and with how
 * many they can do.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "scenarios/jobs/parts.h"

#define POINTS_MAX 64u

/* ---- how a job's throughput depends on CPUs and memory, as measured ---------------------------------------------- */

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

/* The key `sensitivity` of a type. */
static void read_needs(struct skep_jobs_draft *d, const struct skep_yaml_node *node, struct skep_job_type *type)
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

/* ---- types ------------------------------------------------------------------------------------------------------ */

uint32_t skep_jobs_find_type(const struct skep_jobs_file *file, const char *name, size_t length)
{
	uint32_t i = 0;
	while (i < file->types &&
		(strlen(file->type[i].name) != length || memcmp(file->type[i].name, name, length) != 0))
		i++;
	return i;
}

static void find_scenario(struct skep_jobs_draft *d, const struct skep_yaml_node *node, const char *key, const char *in,
	struct skep_job_type *type)
{
	skep_read_path(&d->r, node, key, in, "scenario", d->file->path, type->scenario, sizeof type->scenario);
}

static bool add_set(struct skep_job_type *type, const char *key, const struct skep_yaml_node *value)
{
	char *flow = skep_yaml_flow(value), *text = NULL;
	size_t size = flow ? strlen(key) + strlen(flow) + 2 : 0;
	bool ok = flow && skep_grow(&type->set, type->sets, sizeof *type->set) && (text = malloc(size)) != NULL;
	if (ok) {
		snprintf(text, size, "%s=%s", key, flow);
		type->set[type->sets++] = text;
	}
	free(flow);
	return ok;
}

static void read_set(struct skep_jobs_draft *d, const struct skep_yaml_node *node, struct skep_job_type *type)
{
	const struct skep_yaml_node *map = skep_read_map(&d->r, node, "set", false), *value;
	const char *key;
	for (uint32_t i = 0; map && !d->r.diag->set && (value = skep_read_entry(&d->r, map, i, &key)) != NULL; i++)
		if (strncmp(key, "cluster.topology", 16) == 0 || strncmp(key, "cluster.allocation", 18) == 0)
			skep_reader_fail(&d->r, map, key,
				"set: `%.60s` is decided here: jobs share cluster.topology of this file", key);
		else if (!add_set(type, key, value))
			skep_reader_fail(&d->r, map, key, "not enough memory for these jobs");
}

static void read_machines(
	struct skep_jobs_draft *d, const struct skep_yaml_node *node, const char *in, struct skep_job_type *t)
{
	uint32_t all = d->file->topology.machines;
	t->machines = (uint32_t)skep_read_integer(&d->r, node, "machines", 1, UINT32_MAX, 0);
	t->min = (uint32_t)skep_read_integer(&d->r, node, "min", 1, UINT32_MAX, 0);
	t->max = (uint32_t)skep_read_integer(&d->r, node, "max", 1, UINT32_MAX, 0);
	if (d->r.diag->set)
		return;
	if (t->machines > all || t->min > all)
		skep_reader_fail(&d->r, node, t->machines > all ? "machines" : "min",
			"%s: %u machines, the cluster has %u: ask for fewer, or take a larger cluster.topology", in,
			t->machines > all ? t->machines : t->min, all);
	else if (t->machines > 0 && t->min > t->machines)
		skep_reader_fail(&d->r, node, "min", "%s: min, %u, is above machines, %u", in, t->min, t->machines);
	else if (t->machines > 0 && t->max > 0 && t->max < t->machines)
		skep_reader_fail(&d->r, node, "max", "%s: max, %u, is below machines, %u", in, t->max, t->machines);
	t->max = t->max > all ? all : t->max;
}

static void name_type(
	struct skep_jobs_draft *d, const struct skep_yaml_node *node, bool listed, struct skep_job_type *t)
{
	char usual[64];
	const char *slash = strrchr(t->scenario, '/'), *file = slash ? slash + 1 : t->scenario;
	snprintf(usual, sizeof usual, "%.*s", (int)strcspn(file, "."), file);
	const char *name = node ? skep_read_string(&d->r, node, "name", usual) : usual;
	if (d->r.diag->set)
		return;
	if (snprintf(t->name, sizeof t->name, "%s", name) >= (int)sizeof t->name)
		skep_reader_fail(&d->r, node, "name", "name: expected at most %zu bytes", sizeof t->name - 1);
	else if (!listed && skep_jobs_find_type(d->file, t->name, strlen(t->name)) < d->file->types)
		skep_reader_fail(&d->r, node, node && skep_read_has(&d->r, node, "name") ? "name" : NULL,
			"jobs.types: there are two of the name %s: give one of them another `name`", t->name);
}

bool skep_jobs_read_type(struct skep_jobs_draft *d, const struct skep_yaml_node *node, const char *in, bool listed)
{
	struct skep_job_type type = {.share = 1, .node = node};
	if (skep_yaml_kind(node) == SKEP_YAML_SCALAR) {
		find_scenario(d, node, NULL, in, &type);
		name_type(d, NULL, listed, &type);
	} else if (skep_yaml_kind(node) == SKEP_YAML_MAP) {
		find_scenario(d, node, "scenario", in, &type);
		name_type(d, node, listed, &type);
		read_set(d, node, &type);
		read_machines(d, node, in, &type);
		type.steps = (uint32_t)skep_read_integer(&d->r, node, "steps", 1, UINT32_MAX, 0);
		read_needs(d, node, &type);
		if (!listed)
			type.share = skep_read_number(&d->r, node, "share", 0, 1e9, 1);
	} else {
		skep_reader_fail(
			&d->r, node, NULL, "%s: expected the file of a scenario, or {scenario: FILE, ...}", in);
	}
	if (skep_grow(&d->file->type, d->file->types, sizeof type))
		d->file->type[d->file->types++] = type;
	else
		skep_reader_fail(&d->r, node, NULL, "not enough memory for these jobs");
	return !d->r.diag->set;
}

bool skep_jobs_read_types(struct skep_jobs_draft *d, const struct skep_yaml_node *jobs)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, jobs, "types", true);
	double shares = 0;
	if (!d->r.diag->set && skep_yaml_length(list) == 0)
		skep_reader_fail(&d->r, jobs, "types", "jobs.types: expected one at least: what these jobs train");
	for (uint32_t i = 0; !d->r.diag->set && i < skep_yaml_length(list); i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		if (skep_jobs_read_type(d, item, "jobs.types", false) && skep_yaml_kind(item) == SKEP_YAML_MAP)
			skep_reader_close_map(&d->r, item);
		shares += d->file->type[d->file->types - 1].share;
	}
	if (!d->r.diag->set && shares <= 0)
		skep_reader_fail(&d->r, jobs, "types", "jobs.types: expected a share above 0");
	return !d->r.diag->set;
}
