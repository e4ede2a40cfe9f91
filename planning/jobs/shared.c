/* SPDX-License-Identifier: Apache-2.0
 *
 * shared.c - see shared.h.
 */
#include "planning/jobs/shared.h"

#include <stdlib.h>
#include <string.h>

#define ALONE_S_MAX 1e9

/* ---- the cluster ---------------------------------------------------------------------------------------------------- */

static bool map_cluster(struct skep_shared *s)
{
	const struct skep_jobs_file *f = &s->file;
	uint32_t machines = f->topology.machines, hosts = (machines + f->host_machines - 1) / f->host_machines;
	s->host_of = calloc(machines, sizeof *s->host_of);
	s->place_of = calloc(hosts, sizeof *s->place_of);
	s->machines_of = calloc(hosts, sizeof *s->machines_of);
	s->free_of = calloc(hosts, sizeof *s->free_of);
	s->free_at = calloc(f->topology.places, sizeof *s->free_at);
	if (!s->host_of || !s->place_of || !s->machines_of || !s->free_of || !s->free_at)
		return false;
	for (uint32_t m = 0; m < machines; m++) {
		s->host_of[m] = m / f->host_machines;
		s->place_of[s->host_of[m]] = f->topology.machine[m].place;
		s->machines_of[s->host_of[m]]++;
	}
	s->cluster.map = (struct skep_jobs_cluster){.machines = machines,
		.hosts = hosts,
		.places = f->topology.places,
		.host_of = s->host_of,
		.place_of = s->place_of,
		.free_of = s->free_of,
		.free_at = s->free_at};
	s->cluster.machines_of = s->machines_of;
	s->cluster.host_cpus = f->host_cpus;
	s->cluster.host_memory = f->host_memory;
	s->cluster.topology = &f->topology;
	return true;
}

static double ask(void *user, uint32_t job, const uint32_t *machine, uint32_t machines)
{
	struct skep_shared *s = user;
	struct skep_diag unused = {0};
	uint32_t type = s->file.job[job].type;
	return skep_job_rates_ask(s->rates, type, s->basis[type].stages, machine, machines, &unused);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------------ */

/* An error about a job: in its trace, or at its node. */
static bool refuse(struct skep_shared *s, const struct skep_job_entry *job, const struct skep_diag *why,
	const char *what, struct skep_diag *reterr)
{
	const struct skep_job_type *type = &s->file.type[job->type];
	struct skep_reader r = {.yaml = s->file.yaml, .diag = reterr};
	char place[700] = "";
	if (why->file[0] != '\0')
		snprintf(place, sizeof place, " (%s:%u:%u)", why->file, why->line, why->column);
	if (job->line > 0)
		skep_diag_set(reterr, s->file.trace_path, job->line, 0, NULL, "%.63s: %.300s%.300s%.300s", job->name,
			what, why->message, place);
	else
		skep_reader_fail(
			&r, type->node, NULL, "%.63s: %.300s%.300s%.300s", job->name, what, why->message, place);
	return false;
}

/* Machines of an empty cluster, as one job alone would have them. */
static uint32_t placed_alone(struct skep_shared *s, uint32_t machines, uint32_t *owner, uint32_t *ret_machine)
{
	uint32_t count = 0;
	for (uint32_t m = 0; m < s->cluster.map.machines; m++)
		owner[m] = SKEP_JOBS_NONE;
	skep_jobs_place(&s->cluster.map, 0, machines, NULL, owner);
	for (uint32_t m = 0; m < s->cluster.map.machines; m++)
		if (owner[m] == 0)
			ret_machine[count++] = m;
	return count;
}

/* Fills the sizes that this job may have, and that are not filled. */
static bool fill_rates(struct skep_shared *s, uint32_t j, struct skep_diag *reterr)
{
	const struct skep_cluster_job *job = &s->job[j];
	uint32_t type = s->file.job[j].type, machines = s->cluster.map.machines;
	double *rate = s->rate[skep_job_rates_group(s->rates, type)];
	uint32_t *owner = calloc(machines, sizeof *owner), *mine = calloc(machines, sizeof *mine);
	bool ok = owner && mine;
	if (!ok)
		skep_fail(reterr, "not enough memory for these jobs");
	for (uint32_t n = job->min; ok && n <= job->max; n++) {
		struct skep_diag why = {0};
		char what[96];
		if (rate[n] > 0 || (rate[n] < 0 && n != job->want))
			continue;
		uint32_t count = placed_alone(s, n, owner, mine);
		rate[n] = skep_job_rates_ask(s->rates, type, s->basis[type].stages, mine, count, &why);
		snprintf(what, sizeof what, "it cannot run on %u machine%s of this cluster: ", n, n == 1 ? "" : "s");
		if (rate[n] <= 0 && n == job->want)
			ok = refuse(s, &s->file.job[j], &why, what, reterr);
		rate[n] = rate[n] > 0 ? rate[n] : -1; /* asked, and it cannot */
	}
	free(owner);
	free(mine);
	return ok;
}

static void find_sizes(struct skep_shared *s, uint32_t j)
{
	const struct skep_job_entry *e = &s->file.job[j];
	const struct skep_job_type *t = &s->file.type[e->type];
	struct skep_cluster_job *job = &s->job[j];
	uint32_t all = s->cluster.map.machines;
	job->want = e->machines > 0 ? e->machines : t->machines > 0 ? t->machines : s->basis[e->type].workers;
	job->min = t->min > 0 && t->min < job->want ? t->min : job->want;
	job->max = t->max > job->want ? t->max : job->want;
	job->max = job->max < all ? job->max : all;
}

static bool make_job(struct skep_shared *s, uint32_t j, struct skep_diag *reterr)
{
	const struct skep_job_entry *e = &s->file.job[j];
	const struct skep_job_type *t = &s->file.type[e->type];
	const struct skep_job_basis *basis = &s->basis[e->type];
	const struct skep_diag none = {0};
	struct skep_cluster_job *job = &s->job[j];
	double parts = s->file.host_machines;
	find_sizes(s, j);
	if (job->want > s->cluster.map.machines) {
		char what[200];
		snprintf(what, sizeof what,
			"it asks for %u machines, as its own topology has, the cluster has %u: say `machines`, or take "
			"a larger cluster.topology",
			job->want, s->cluster.map.machines);
		return refuse(s, e, &none, what, reterr);
	}
	if (!fill_rates(s, j, reterr))
		return false;
	job->arrival_ns = e->arrival_ns;
	job->rate = s->rate[skep_job_rates_group(s->rates, e->type)];
	job->needs = &t->needs;
	job->usual = skep_jobs_factor(&t->needs, s->file.host_cpus / parts, s->file.host_memory / parts);
	job->restart_s = s->file.restart_s + 2 * basis->state_bytes / s->file.checkpoint_Bps;
	job->steps = e->duration_s > 0 ? e->duration_s * job->rate[job->want] * job->usual
	             : t->steps > 0    ? t->steps
	                               : basis->steps;
	if (job->steps <= 0)
		return refuse(s, e, &none,
			"its scenario does not say how many steps it trains: say `steps` or `duration` here", reterr);
	if (job->steps / (job->rate[job->want] * job->usual) > ALONE_S_MAX)
		return refuse(s, e, &none, "it would take more than 10^9 s: let it train fewer steps", reterr);
	return true;
}

static bool read_basis(struct skep_shared *s, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < s->file.types; i++) {
		struct skep_diag why = {0};
		const struct skep_job_entry of = {.type = i};
		uint32_t group = skep_job_rates_group(s->rates, i);
		if (group < i)
			s->basis[i] = s->basis[group];
		else if (!skep_job_rates_basis(s->rates, i, &s->basis[i], &why))
			return refuse(s, &of, &why, "its scenario cannot be read: ", reterr);
		if (group == i)
			s->rate[i] = calloc(s->cluster.map.machines + 1, sizeof *s->rate[i]);
		if (group == i && !s->rate[i])
			return skep_fail(reterr, "not enough memory for these jobs");
	}
	return true;
}

bool skep_shared_make(
	const char *path, const struct skep_jobs_options *options, struct skep_shared *ret, struct skep_diag *reterr)
{
	memset(ret, 0, sizeof *ret);
	if (!skep_jobs_file_read(path, options, &ret->file, reterr))
		return false;
	ret->rates = skep_job_rates_create(&ret->file);
	ret->basis = calloc(ret->file.types, sizeof *ret->basis);
	ret->rate = calloc(ret->file.types, sizeof *ret->rate);
	ret->job = calloc(ret->file.jobs, sizeof *ret->job);
	if (!ret->rates || !ret->basis || !ret->rate || !ret->job || !map_cluster(ret))
		skep_fail(reterr, "not enough memory for these jobs");
	bool ok = !reterr->set && read_basis(ret, reterr);
	for (uint32_t j = 0; ok && j < ret->file.jobs; j++)
		ok = make_job(ret, j, reterr);
	ret->cluster.job = ret->job;
	ret->cluster.jobs = ret->file.jobs;
	ret->cluster.rate = ask;
	ret->cluster.user = ret;
	if (!ok)
		skep_shared_finish(ret);
	return ok;
}

bool skep_shared_simulate(struct skep_shared *s, uint32_t which, struct skep_diag *reterr)
{
	struct skep_shared_run *run = &s->run[which];
	s->cluster.policy = s->file.policy[which];
	if (skep_cluster_run(&s->cluster, &run->result) &&
		skep_cluster_sum_up(&s->cluster, &run->result, &run->figures))
		return true;
	if (run->result.stuck == SKEP_JOBS_NONE)
		return skep_fail(reterr, "not enough memory to simulate these jobs");
	const struct skep_diag none = {0};
	return refuse(s, &s->file.job[run->result.stuck], &none,
		"it cannot run on the machines that were free for it: they differ too much; take a cluster of like "
		"machines, or jobs that fit any of them",
		reterr);
}

void skep_shared_finish(struct skep_shared *s)
{
	for (uint32_t i = 0; i < SKEP_JOBS_POLICIES_MAX; i++)
		skep_cluster_finish(&s->run[i].result);
	for (uint32_t i = 0; s->rate && i < s->file.types; i++)
		free(s->rate[i]);
	free(s->rate);
	free(s->job);
	free(s->basis);
	free(s->host_of);
	free(s->place_of);
	free(s->machines_of);
	free(s->free_of);
	free(s->free_at);
	skep_job_rates_destroy(s->rates);
	skep_jobs_file_finish(&s->file);
	memset(s, 0, sizeof *s);
}
