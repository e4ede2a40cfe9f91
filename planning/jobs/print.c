/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - what many jobs on one cluster came to, as text and as JSON.
 */
#include <math.h>

#include "base/json.h"
#include "base/layout.h"
#include "base/units.h"
#include "planning/jobs/shared.h"

/* Nothing has no unit that suits it. */
static const char *time_text(double seconds, char ret[SKEP_TEXT_BYTES])
{
	if (seconds > 0)
		return skep_time_text(seconds, ret);
	snprintf(ret, SKEP_TEXT_BYTES, "0 s");
	return ret;
}

static void add_times(struct skep_layout *layout, const struct skep_cluster_figures *f)
{
	char text[SKEP_TEXT_BYTES];
	const double times[] = {f->completion_s, f->p50_s, f->p95_s, f->p99_s, f->queued_s, f->makespan_s};
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
		skep_layout_cell(layout, "%s", time_text(times[i], text));
}

static void print_policies(const struct skep_shared *s, FILE *out)
{
	static const char *const heads[] = {"policy", "completion", "p50", "p95", "p99", "queued", "makespan", "used",
		"useful", "Jain", "rho", "worst", "preempted", "resized", "USD"};
	struct skep_layout layout;
	skep_layout_begin(&layout, "lrrrrrrrrrrrrrr", heads);
	for (uint32_t i = 0; i < s->file.policies; i++) {
		const struct skep_cluster_figures *f = &s->run[i].figures;
		skep_layout_cell(&layout, "%s", s->file.policy_name[i]);
		add_times(&layout, f);
		skep_layout_cell(&layout, "%.1f %%", 100 * f->utilisation);
		skep_layout_cell(&layout, "%.1f %%", 100 * f->useful);
		skep_layout_cell(&layout, "%.3f", f->jain);
		skep_layout_cell(&layout, "%.2f", f->rho);
		skep_layout_cell(&layout, "%.2f", f->rho_most);
		skep_layout_cell(&layout, "%llu", (unsigned long long)f->preemptions);
		skep_layout_cell(&layout, "%llu", (unsigned long long)f->resizes);
		if (isnan(f->usd))
			skep_layout_cell(&layout, "-");
		else
			skep_layout_cell(&layout, "%.2f", f->usd);
	}
	skep_layout_end(&layout, out);
}

static void print_jobs(const struct skep_shared *s, uint32_t which, FILE *out)
{
	static const char *const heads[] = {
		"job", "machines", "arrives", "starts", "ends", "completion", "alone", "preempted", "resized"};
	const struct skep_cluster_result *r = &s->run[which].result;
	char text[SKEP_TEXT_BYTES];
	struct skep_layout layout;
	fprintf(out, "\n%s\n", s->file.policy_name[which]);
	skep_layout_begin(&layout, "lrrrrrrrr", heads);
	for (uint32_t j = 0; j < s->file.jobs; j++) {
		const struct skep_cluster_done *d = &r->done[j];
		double arrival_s = (double)s->job[j].arrival_ns / SKEP_NS_PER_S,
		       end_s = (double)d->end_ns / SKEP_NS_PER_S;
		skep_layout_cell(&layout, "%s", s->file.job[j].name);
		skep_layout_cell(&layout, "%u", s->job[j].want);
		skep_layout_cell(&layout, "%s", time_text(arrival_s, text));
		skep_layout_cell(&layout, "%s", time_text((double)d->first_ns / SKEP_NS_PER_S, text));
		skep_layout_cell(&layout, "%s", time_text(end_s, text));
		skep_layout_cell(&layout, "%s", time_text(end_s - arrival_s, text));
		skep_layout_cell(&layout, "%s", time_text(d->alone_s, text));
		skep_layout_cell(&layout, "%u", d->preemptions);
		skep_layout_cell(&layout, "%u", d->resizes);
	}
	skep_layout_end(&layout, out);
}

void skep_shared_print(const struct skep_shared *s, bool details, FILE *out)
{
	const struct skep_jobs_file *f = &s->file;
	fprintf(out, "%s: %u job%s on %u machine%s, %u host%s, seed %llu\n", f->name, f->jobs, skep_plural(f->jobs),
		s->cluster.map.machines, skep_plural(s->cluster.map.machines), s->cluster.map.hosts,
		skep_plural(s->cluster.map.hosts), (unsigned long long)f->seed);
	print_policies(s, out);
	for (uint32_t i = 0; details && i < f->policies; i++)
		print_jobs(s, i, out);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

static void add_figures(cJSON *to, const struct skep_cluster_figures *f)
{
	const struct {
		const char *key;
		double value;
	} number[] = {{"completion_mean_s", f->completion_s}, {"completion_p50_s", f->p50_s},
		{"completion_p95_s", f->p95_s}, {"completion_p99_s", f->p99_s}, {"queued_mean_s", f->queued_s},
		{"queued_most_s", f->queued_most_s}, {"waited_mean_s", f->waited_s}, {"makespan_s", f->makespan_s},
		{"utilisation", f->utilisation}, {"useful", f->useful}, {"jain", f->jain}, {"rho_mean", f->rho},
		{"rho_most", f->rho_most}, {"usd", f->usd}, {"cluster_usd", f->cluster_usd}};
	for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
		skep_json_add_number(to, number[i].key, number[i].value);
	skep_json_add_count(to, "preemptions", f->preemptions);
	skep_json_add_count(to, "resizes", f->resizes);
}

static void add_jobs(const struct skep_shared *s, const struct skep_cluster_result *r, cJSON *to)
{
	cJSON *list = cJSON_AddArrayToObject(to, "jobs");
	for (uint32_t j = 0; j < s->file.jobs; j++) {
		const struct skep_cluster_done *d = &r->done[j];
		cJSON *job = skep_json_add_row(list);
		skep_json_add_text(job, "job", s->file.job[j].name);
		skep_json_add_text(job, "type", s->file.type[s->file.job[j].type].name);
		skep_json_add_count(job, "machines", s->job[j].want);
		skep_json_add_number(job, "arrival_s", (double)s->job[j].arrival_ns / SKEP_NS_PER_S);
		skep_json_add_number(job, "start_s", (double)d->first_ns / SKEP_NS_PER_S);
		skep_json_add_number(job, "end_s", (double)d->end_ns / SKEP_NS_PER_S);
		skep_json_add_number(job, "alone_s", d->alone_s);
		skep_json_add_number(job, "fair_s", d->fair_s);
		skep_json_add_number(job, "machine_s", d->held_s);
		skep_json_add_number(job, "restart_machine_s", d->restart_s);
		skep_json_add_number(job, "usd", d->usd);
		skep_json_add_count(job, "preemptions", d->preemptions);
		skep_json_add_count(job, "resizes", d->resizes);
	}
}

bool skep_shared_print_json(const struct skep_shared *s, bool details, int64_t comparison, FILE *out)
{
	cJSON *root = cJSON_CreateObject(), *list;
	skep_json_add_text(root, "name", s->file.name);
	skep_json_add_count(root, "comparison", (uint64_t)comparison);
	skep_json_add_count(root, "seed", s->file.seed);
	skep_json_add_count(root, "jobs", s->file.jobs);
	skep_json_add_count(root, "machines", s->cluster.map.machines);
	skep_json_add_count(root, "hosts", s->cluster.map.hosts);
	skep_json_add_count(root, "rates", skep_job_rates_asked(s->rates));
	list = cJSON_AddArrayToObject(root, "policies");
	for (uint32_t i = 0; i < s->file.policies; i++) {
		cJSON *policy = skep_json_add_row(list);
		skep_json_add_text(policy, "policy", s->file.policy_name[i]);
		add_figures(policy, &s->run[i].figures);
		skep_json_add_count(policy, "decisions", s->run[i].result.decisions);
		if (details)
			add_jobs(s, &s->run[i].result, policy);
	}
	return skep_json_print(root, out);
}
