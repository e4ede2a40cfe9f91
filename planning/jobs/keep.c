/* SPDX-License-Identifier: Apache-2.0
 *
 * keep.c - what many jobs on one cluster came to, into the database.
 */
#include <stdlib.h>

#include "analysis/jobs/jobs_db.h"
#include "base/units.h"
#include "planning/jobs/shared.h"

static void keep_jobs(const struct skep_shared *s, const struct skep_cluster_result *r, struct skep_jobs_kept_job *ret)
{
	for (uint32_t j = 0; j < s->file.jobs; j++) {
		const struct skep_cluster_done *d = &r->done[j];
		ret[j] = (struct skep_jobs_kept_job){.name = s->file.job[j].name,
			.machines = s->job[j].want,
			.preemptions = d->preemptions,
			.resizes = d->resizes,
			.arrival_s = (double)s->job[j].arrival_ns / SKEP_NS_PER_S,
			.start_s = (double)d->first_ns / SKEP_NS_PER_S,
			.end_s = (double)d->end_ns / SKEP_NS_PER_S,
			.alone_s = d->alone_s,
			.fair_s = d->fair_s,
			.machine_s = d->held_s,
			.restart_machine_s = d->restart_s,
			.usd = d->usd};
	}
}

static bool keep_run(const struct skep_shared *s, uint32_t which, struct skep_jobs_db *db, struct skep_diag *reterr)
{
	const struct skep_cluster_result *r = &s->run[which].result;
	const struct skep_cluster_figures *f = &s->run[which].figures;
	struct skep_jobs_kept_job *job = calloc(s->file.jobs, sizeof *job);
	struct skep_jobs_kept_span *span = calloc(r->spans + 1, sizeof *span);
	bool ok = job && span;
	if (ok)
		keep_jobs(s, r, job);
	for (uint32_t i = 0; ok && i < r->spans; i++)
		span[i] = (struct skep_jobs_kept_span){r->span[i].job, r->span[i].machines,
			(double)r->span[i].begin_ns / SKEP_NS_PER_S, (double)r->span[i].end_ns / SKEP_NS_PER_S};
	const struct skep_jobs_kept kept = {.name = s->file.name,
		.path = s->file.path,
		.text = s->file.text ? s->file.text : "",
		.policy = s->file.policy_name[which],
		.topology = s->file.topology.name,
		.seed = s->file.seed,
		.machines = s->cluster.map.machines,
		.hosts = s->cluster.map.hosts,
		.jobs = s->file.jobs,
		.spans = r->spans,
		.figure = {f->completion_s, f->p50_s, f->p95_s, f->p99_s, f->queued_s, f->queued_most_s, f->waited_s,
			f->makespan_s, f->utilisation, f->useful, f->jain, f->rho, f->rho_most, f->usd, f->cluster_usd},
		.preemptions = f->preemptions,
		.resizes = f->resizes,
		.job = job,
		.span = span};
	ok = ok ? skep_jobs_db_put(db, &kept, reterr) : skep_fail(reterr, "not enough memory for the database");
	free(job);
	free(span);
	return ok;
}

bool skep_shared_keep(const struct skep_shared *s, const char *path, int64_t *ret_comparison, struct skep_diag *reterr)
{
	struct skep_jobs_db *db = skep_jobs_db_open(path, reterr);
	bool ok = db != NULL;
	for (uint32_t i = 0; ok && i < s->file.policies; i++)
		ok = keep_run(s, i, db, reterr);
	return db && skep_jobs_db_close(db, ok, ret_comparison, reterr) && ok;
}
