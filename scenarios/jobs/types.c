/* SPDX-License-Identifier: Apache-2.0
 *
 * types.c - what jobs of a kind have in common: their scenario with changes, how many machines they ask for, and with how
 * many they can do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "scenarios/jobs/parts.h"

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
		skep_jobs_read_needs(d, node, &type);
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
