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

/* ---- the policies that are compared, and what they have in common ------------------------------------------------ */

static const char *const policy_words[SKEP_JOBS_POLICIES_MAX + 1] = {
	"fifo", "srtf", "las", "synergy", "synergy-srtf", "synergy-las", NULL};

static const struct {
	enum skep_jobs_order order;
	bool synergy;
} MEANING[SKEP_JOBS_POLICIES_MAX] = {{SKEP_JOBS_FIFO, false}, {SKEP_JOBS_SRTF, false}, {SKEP_JOBS_LAS, false},
	{SKEP_JOBS_FIFO, true}, {SKEP_JOBS_SRTF, true}, {SKEP_JOBS_LAS, true}};

static void add(struct skep_jobs_draft *d, uint32_t word)
{
	struct skep_jobs_file *f = d->file;
	snprintf(f->policy_name[f->policies], sizeof f->policy_name[0], "%s", policy_words[word]);
	f->policy[f->policies].order = MEANING[word].order;
	f->policy[f->policies++].synergy = MEANING[word].synergy;
}

static bool named(const struct skep_jobs_file *f, const char *word)
{
	for (uint32_t i = 0; i < f->policies; i++)
		if (strcmp(f->policy_name[i], word) == 0)
			return true;
	return false;
}

static void read_list(struct skep_jobs_draft *d, const struct skep_yaml_node *root)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, root, "policies", false);
	if (!list)
		add(d, 0);
	if (list && skep_yaml_length(list) == 0)
		skep_reader_fail(&d->r, list, NULL, "policies: expected one at least, such as [fifo, srtf]");
	for (uint32_t i = 0; list && i < skep_yaml_length(list) && !d->r.diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		int word = skep_read_choice(&d->r, item, NULL, policy_words, -1);
		if (!d->r.diag->set && named(d->file, policy_words[word]))
			skep_reader_fail(&d->r, item, NULL, "policies: `%s` is there twice", policy_words[word]);
		else if (!d->r.diag->set)
			add(d, (uint32_t)word);
	}
}

/* Of the option: a word that is none is an error with those that there are. */
static void read_words(struct skep_jobs_draft *d, const char *words)
{
	for (const char *at = words; !d->r.diag->set; at++) {
		size_t length = strcspn(at, ",");
		char word[64];
		uint32_t i = 0;
		snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
		while (i < SKEP_JOBS_POLICIES_MAX && strcmp(word, policy_words[i]) != 0)
			i++;
		if (i == SKEP_JOBS_POLICIES_MAX)
			skep_fail(d->r.diag,
				"--policy %.60s: not a policy: take fifo, srtf, las, synergy, synergy-srtf or "
				"synergy-las, several with commas between them",
				word);
		else if (named(d->file, word))
			skep_fail(d->r.diag, "--policy: %s is there twice", word);
		else
			add(d, i);
		at += length;
		if (*at == '\0')
			return;
	}
}

static void read_queues(struct skep_jobs_draft *d, const struct skep_yaml_node *las, struct skep_jobs_policy *p)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, las, "queues", false);
	uint32_t count = list ? skep_yaml_length(list) : 2;
	p->queues = 3;
	p->queue_s[0] = 3600;
	p->queue_s[1] = 36000;
	if (list && count >= SKEP_JOBS_QUEUES_MAX)
		skep_reader_fail(&d->r, list, NULL, "las.queues: at most %u limits", SKEP_JOBS_QUEUES_MAX - 1);
	for (uint32_t i = 0; list && i < count && !d->r.diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		p->queue_s[i] = skep_read_quantity(&d->r, item, NULL, SKEP_TIME, 1e-6, SKEP_JOBS_TIME_S_MAX, NAN);
		if (!d->r.diag->set && i > 0 && p->queue_s[i] <= p->queue_s[i - 1])
			skep_reader_fail(
				&d->r, item, NULL, "las.queues: expected limits that rise, such as [1 h, 10 h]");
	}
	p->queues = count + 1;
}

static void read_policies(struct skep_jobs_draft *d, const struct skep_yaml_node *root, const char *instead)
{
	struct skep_jobs_policy common = {.queues = 1};
	const struct skep_yaml_node *las = skep_read_map(&d->r, root, "las", false);
	if (instead) {
		(void)skep_read_has(&d->r, root, "policies");
		read_words(d, instead);
	} else {
		read_list(d, root);
	}
	common.backfill = skep_read_bool(&d->r, root, "backfill", false);
	read_queues(d, las, &common);
	common.promote = skep_read_number(&d->r, las, "promote", 0, 1e9, 0);
	skep_reader_close_map(&d->r, las);
	for (uint32_t i = 0; i < d->file->policies; i++) {
		struct skep_jobs_policy *p = &d->file->policy[i];
		common.order = p->order;
		common.synergy = p->synergy;
		*p = common;
	}
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

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
		read_policies(d, root, options->policies);
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
