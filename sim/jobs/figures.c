/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - see figures.h.
 */
#include "sim/jobs/figures.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"

/* The least of the numbers, in rising order, that so large a part of them does not exceed. */
static double quantile(const double *sorted, uint32_t count, double part)
{
	assert(count > 0 && part > 0 && part <= 1);
	uint32_t rank = (uint32_t)ceil(part * count - 1e-9);
	return sorted[rank > 0 ? rank - 1 : 0];
}

static void add(const struct skep_cluster *c, const struct skep_cluster_result *r, uint32_t j,
	struct skep_cluster_figures *f, double *part)
{
	const struct skep_cluster_done *d = &r->done[j];
	assert(d->end_ns >= d->first_ns && d->first_ns >= c->job[j].arrival_ns && d->restart_s <= d->held_s + 1e-6);
	double completion_s = (double)(d->end_ns - c->job[j].arrival_ns) / SKEP_NS_PER_S;
	double queued_s = (double)(d->first_ns - c->job[j].arrival_ns) / SKEP_NS_PER_S;
	double rho = d->fair_s > 0 ? completion_s / d->fair_s : 1;
	part[0] = completion_s > 0 ? d->alone_s / completion_s : 1;
	f->completion_s += completion_s;
	f->queued_s += queued_s;
	f->queued_most_s = fmax(f->queued_most_s, queued_s);
	f->rho += rho;
	f->rho_most = fmax(f->rho_most, rho);
	f->utilisation += d->held_s;
	f->useful += d->held_s - d->restart_s;
	f->usd += d->usd;
	f->preemptions += d->preemptions;
	f->resizes += d->resizes;
}

bool skep_cluster_sum_up(
	const struct skep_cluster *c, const struct skep_cluster_result *r, struct skep_cluster_figures *f)
{
	double *completion = calloc(c->jobs, sizeof *completion), n = c->jobs, sum = 0, squares = 0, ran_s = 0;
	*f = (struct skep_cluster_figures){.jobs = c->jobs, .machines = c->map.machines};
	if (!completion)
		return false;
	for (uint32_t j = 0; j < c->jobs; j++) {
		double part;
		add(c, r, j, f, &part);
		sum += part;
		squares += part * part;
		completion[j] = (double)(r->done[j].end_ns - c->job[j].arrival_ns) / SKEP_NS_PER_S;
	}
	for (uint32_t i = 0; i < r->spans; i++)
		ran_s += (double)(r->span[i].end_ns - r->span[i].begin_ns) / SKEP_NS_PER_S;
	qsort(completion, c->jobs, sizeof *completion, skep_order_reals);
	f->p50_s = quantile(completion, c->jobs, 0.5);
	f->p95_s = quantile(completion, c->jobs, 0.95);
	f->p99_s = quantile(completion, c->jobs, 0.99);
	f->waited_s = (f->completion_s - ran_s) / n;
	f->completion_s /= n;
	f->queued_s /= n;
	f->rho /= n;
	f->jain = squares > 0 ? sum * sum / (n * squares) : 1;
	f->makespan_s = (double)(r->end_ns - c->job[0].arrival_ns) / SKEP_NS_PER_S;
	double all_s = f->makespan_s * c->map.machines;
	f->utilisation = all_s > 0 ? f->utilisation / all_s : 0;
	f->useful = all_s > 0 ? f->useful / all_s : 0;
	for (uint32_t m = 0; m < c->map.machines; m++)
		f->cluster_usd += skep_topology_cost_usd(c->topology, m, c->job[0].arrival_ns, r->end_ns);
	free(completion);
	return true;
}
