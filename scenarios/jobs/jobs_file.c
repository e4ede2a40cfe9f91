/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs_file.c - see jobs_file.h.
 */
#include "scenarios/jobs/jobs_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/data.h"
#include "scenarios/jobs/parts.h"

static void read_host(struct skep_jobs_draft *d, const struct skep_yaml_node *cluster)
{
	struct skep_jobs_file *f = d->file;
	const struct skep_yaml_node *host = skep_read_map(&d->r, cluster, "host", false);
	f->host_machines = (uint32_t)skep_read_integer(&d->r, host, "machines", 1, SKEP_JOBS_MACHINES_MAX, 1);
	f->host_cpus = skep_read_number(&d->r, host, "cpus", 1e-3, 65536, host ? NAN : 0);
	f->host_memory = skep_read_quantity(&d->r, host, "memory", SKEP_BYTES, 1, 0x1p50, host ? NAN : 0);
	skep_reader_close_map(&d->r, host);
	for (uint32_t m = 0; !d->r.diag->set && m < f->topology.machines; m++)
		if (f->topology.machine[m].place != f->topology.machine[m - m % f->host_machines].place)
			skep_reader_fail(&d->r, host, "machines",
				"cluster.host.machines: %u machines one after the other are a host, and machine %u of "
				"the topology is at another place than the first of its host",
				f->host_machines, m);
}

static void read_cluster(struct skep_jobs_draft *d, const struct skep_yaml_node *root)
{
	struct skep_jobs_file *f = d->file;
	const struct skep_yaml_node *map = skep_read_map(&d->r, root, "cluster", true);
	skep_read_path(
		&d->r, map, "topology", "cluster.topology", "file", f->path, f->topology_path, sizeof f->topology_path);
	if (d->r.diag->set || !skep_topology_read(f->topology_path, &f->topology, d->r.diag))
		return;
	if (f->topology.machines > SKEP_JOBS_MACHINES_MAX)
		skep_reader_fail(&d->r, map, "topology", "cluster.topology: %u machines, at most %u",
			f->topology.machines, SKEP_JOBS_MACHINES_MAX);
	f->restart_s = skep_read_quantity(&d->r, map, "restart", SKEP_TIME, 0, 1e6, 30);
	f->checkpoint_Bps = skep_read_quantity(&d->r, map, "checkpoint", SKEP_BANDWIDTH, 1, 1e15, 1e9);
	read_host(d, map);
	skep_reader_close_map(&d->r, map);
	skep_topology_start_prices(&f->topology, 0);
}

static void read_root(struct skep_jobs_draft *d, const struct skep_jobs_options *options)
{
	struct skep_jobs_file *f = d->file;
	const struct skep_yaml_node *root = skep_yaml_root(f->yaml);
	const char *name = skep_read_string(&d->r, root, "name", NULL);
	if (!d->r.diag->set && snprintf(f->name, sizeof f->name, "%s", name) >= (int)sizeof f->name)
		skep_reader_fail(&d->r, root, "name", "name: expected at most %zu bytes", sizeof f->name - 1);
	f->seed = (uint64_t)skep_read_integer(&d->r, root, "seed", 0, INT64_MAX, 1);
	if (!skep_read_has(&d->r, root, "jobs"))
		skep_jobs_read_arrivals(d, root);
	if (!d->r.diag->set)
		read_cluster(d, root);
	if (!d->r.diag->set)
		skep_jobs_read_policies(d, root, options->policies);
	if (!d->r.diag->set)
		skep_jobs_read_arrivals(d, root);
	skep_reader_close_map(&d->r, root);
}

static bool override(struct skep_yaml *yaml, const struct skep_jobs_options *options, struct skep_diag *reterr)
{
	char seed[40];
	for (uint32_t i = 0; i < options->sets; i++)
		if (!skep_yaml_override(yaml, options->set[i], reterr))
			return false;
	snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)options->seed);
	return !options->has_seed || skep_yaml_override(yaml, seed, reterr);
}

bool skep_jobs_file_read(
	const char *path, const struct skep_jobs_options *options, struct skep_jobs_file *ret, struct skep_diag *reterr)
{
	char *text = NULL, shipped[sizeof ret->path];
	size_t size;
	*ret = (struct skep_jobs_file){.jobs = 0};
	path = skep_data_or(path, shipped, sizeof shipped);
	reterr->files = &ret->files;
	if (snprintf(ret->path, sizeof ret->path, "%s", path) >= (int)sizeof ret->path)
		skep_fail(reterr, "the name of the file is longer than %zu bytes", sizeof ret->path - 1);
	else if (skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		ret->yaml = skep_yaml_parse(path, text, size, reterr);
	free(text);
	if (ret->yaml && override(ret->yaml, options, reterr)) {
		struct skep_jobs_draft d = {.file = ret, .r = {.yaml = ret->yaml, .diag = reterr}};
		read_root(&d, options);
		ret->text = reterr->set ? NULL : skep_yaml_print(ret->yaml);
	}
	reterr->files = NULL;
	if (!reterr->set)
		return true;
	skep_jobs_file_finish(ret);
	return false;
}

void skep_jobs_file_finish(struct skep_jobs_file *file)
{
	for (uint32_t i = 0; i < file->types; i++) {
		for (uint32_t k = 0; k < file->type[i].sets; k++)
			free(file->type[i].set[k]);
		free(file->type[i].set);
		free(file->type[i].numbers);
	}
	free(file->type);
	free(file->job);
	free(file->text);
	skep_topology_finish(&file->topology);
	skep_yaml_destroy(file->yaml);
	skep_files_finish(&file->files);
	*file = (struct skep_jobs_file){.jobs = 0};
}
