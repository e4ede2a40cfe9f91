/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs.c - the loop over events: see jobs.h. What is decided is core/jobs/'s; here are clocks, progress and books.
 */
#include "sim/jobs/jobs.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/units.h"

#define END_OF_TIME (SKEP_TIME_NEVER - 1)

/* So many seconds later, at least an ns; what would be later than the clock can tell is at its end. */
static skep_time later(skep_time from_ns, double seconds)
{
	assert(!isnan(seconds) && from_ns <= END_OF_TIME);
	double ns = ceil(seconds * SKEP_NS_PER_S);
	return ns >= (double)(END_OF_TIME - from_ns) ? END_OF_TIME : from_ns + (skep_time)fmax(1, ns);
}

struct state {             /* of a job that has arrived and is not done */
	double left;       /* steps */
	double base, rate; /* steps per second on its machines, and with its CPUs and memory */
	double attained_s, ran_s, waited_s;
	double crowd_s;     /* the integral of jobs present, when it arrived */
	skep_time ready_ns; /* it makes no progress before this */
	skep_time end_ns;   /* at this rate; SKEP_TIME_NEVER: not */
	skep_time since_ns; /* it has had these machines */
	uint32_t has;
};

struct loop {
	const struct skep_cluster *c;
	struct skep_cluster_result *r;
	skep_time now_ns;
	double crowd_s;
	struct state *state; /* [jobs] */
	uint32_t *present;   /* [presents] jobs by arrival */
	uint32_t presents, arrived;
	struct skep_jobs_job *view; /* [presents], and for each of them ... */
	uint32_t *order, *given;
	uint32_t *owner;                 /* [machines] */
	uint32_t *mine;                  /* [machines] scratch */
	double *demand;                  /* [hosts] scratch */
	struct skep_jobs_tenant *tenant; /* [machines] scratch, and ... */
	uint32_t *tenant_job;            /* ... [machines] whose */
};

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static void release(struct loop *l)
{
	free(l->state);
	free(l->present);
	free(l->view);
	free(l->order);
	free(l->given);
	free(l->owner);
	free(l->mine);
	free(l->demand);
	free(l->tenant);
	free(l->tenant_job);
}

static bool reserve(struct loop *l)
{
	size_t jobs = l->c->jobs + 1, machines = l->c->map.machines;
	l->state = calloc(jobs, sizeof *l->state);
	l->present = calloc(jobs, sizeof *l->present);
	l->view = calloc(jobs, sizeof *l->view);
	l->order = calloc(jobs, sizeof *l->order);
	l->given = calloc(jobs, sizeof *l->given);
	l->owner = malloc(machines * sizeof *l->owner);
	l->mine = calloc(machines, sizeof *l->mine);
	l->demand = calloc(l->c->map.hosts, sizeof *l->demand);
	l->tenant = calloc(machines, sizeof *l->tenant);
	l->tenant_job = calloc(machines, sizeof *l->tenant_job);
	l->r->done = calloc(jobs, sizeof *l->r->done);
	for (size_t m = 0; l->owner && m < machines; m++)
		l->owner[m] = SKEP_JOBS_NONE;
	return l->state && l->present && l->view && l->order && l->given && l->owner && l->mine && l->demand &&
	       l->tenant && l->tenant_job && l->r->done;
}

/* ---- machines ------------------------------------------------------------------------------------------------------ */

static uint32_t list_machines(struct loop *l, uint32_t job)
{
	uint32_t count = 0;
	for (uint32_t m = 0; m < l->c->map.machines; m++)
		if (l->owner[m] == job)
			l->mine[count++] = m;
	return count;
}

/* The end of a span: what its machines have cost. */
static bool close_span(struct loop *l, uint32_t job)
{
	struct state *s = &l->state[job];
	struct skep_cluster_result *r = l->r;
	if (s->has == 0 || s->since_ns == l->now_ns)
		return true;
	uint32_t count = list_machines(l, job);
	assert(count == s->has && s->since_ns < l->now_ns);
	for (uint32_t i = 0; i < count; i++)
		r->done[job].usd += skep_topology_cost_usd(l->c->topology, l->mine[i], s->since_ns, l->now_ns);
	if (!skep_grow(&r->span, r->spans, sizeof *r->span))
		return false;
	r->span[r->spans++] = (struct skep_cluster_span){job, s->has, s->since_ns, l->now_ns};
	return true;
}

/* Of each host what its jobs ask for, its cores and its memory as shares of what it has, where the policy and the job mind. */
static const double *find_demand(struct loop *l, uint32_t job)
{
	const struct skep_cluster *c = l->c;
	double cpus, memory;
	if (!c->policy.synergy || c->host_cpus <= 0 || c->job[job].needs->cpus == 0)
		return NULL;
	for (uint32_t h = 0; h < c->map.hosts; h++)
		l->demand[h] = 0;
	for (uint32_t m = 0; m < c->map.machines; m++) {
		uint32_t owner = l->owner[m], host = c->map.host_of[m];
		if (owner == SKEP_JOBS_NONE)
			continue;
		skep_jobs_demand(c->job[owner].needs, &cpus, &memory);
		l->demand[host] += cpus / c->host_cpus + memory / c->host_memory;
	}
	return l->demand;
}

static bool resize(struct loop *l, uint32_t job, uint32_t machines)
{
	struct state *s = &l->state[job];
	struct skep_cluster_done *d = &l->r->done[job];
	bool first = d->first_ns == SKEP_TIME_NEVER;
	assert(machines != s->has && (!first || s->has == 0));
	if (!close_span(l, job))
		return false;
	if (machines < s->has)
		skep_jobs_release(&l->c->map, job, s->has - machines, l->owner);
	else
		skep_jobs_place(&l->c->map, job, machines - s->has, find_demand(l, job), l->owner);
	d->preemptions += machines == 0;
	d->resizes += machines > 0 && s->has > 0;
	if (first)
		d->first_ns = l->now_ns;
	s->ready_ns = first ? l->now_ns : later(l->now_ns, l->c->job[job].restart_s);
	s->since_ns = l->now_ns;
	s->has = machines;
	s->end_ns = SKEP_TIME_NEVER;
	s->base = 0;
	if (machines > 0)
		s->base = l->c->rate(l->c->user, job, l->mine, list_machines(l, job));
	if (machines > 0 && s->base <= 0)
		l->r->stuck = job;
	return machines == 0 || s->base > 0;
}

/* ---- CPUs and memory ------------------------------------------------------------------------------------------------ */

/* What the host leaves of the rates of the jobs on it. */
static void share_host(struct loop *l, uint32_t host)
{
	const struct skep_cluster *c = l->c;
	uint32_t tenants = 0;
	for (uint32_t m = 0; m < c->map.machines; m++) {
		uint32_t job = l->owner[m], t = 0;
		if (c->map.host_of[m] != host || job == SKEP_JOBS_NONE)
			continue;
		while (t < tenants && l->tenant_job[t] != job)
			t++;
		if (t == tenants) {
			l->tenant_job[tenants] = job;
			l->tenant[tenants++] = (struct skep_jobs_tenant){.needs = c->job[job].needs};
		}
		l->tenant[t].machines++;
	}
	skep_jobs_share(c->policy.synergy, c->machines_of[host], c->host_cpus, c->host_memory, l->tenant, tenants);
	for (uint32_t t = 0; t < tenants; t++) {
		struct state *s = &l->state[l->tenant_job[t]];
		double factor = skep_jobs_factor(l->tenant[t].needs, l->tenant[t].cpus, l->tenant[t].memory);
		assert(factor >= 0 && s->base > 0);
		s->rate = fmin(s->rate, s->base * factor);
	}
}

static void find_rates(struct loop *l)
{
	for (uint32_t i = 0; i < l->presents; i++)
		l->state[l->present[i]].rate = l->state[l->present[i]].base;
	for (uint32_t h = 0; l->c->host_cpus > 0 && h < l->c->map.hosts; h++)
		share_host(l, h);
	for (uint32_t i = 0; i < l->presents; i++) {
		struct state *s = &l->state[l->present[i]];
		skep_time from_ns = s->ready_ns > l->now_ns ? s->ready_ns : l->now_ns;
		if (s->has > 0)
			s->end_ns = later(from_ns, s->left / s->rate);
	}
}

/* ---- a decision ------------------------------------------------------------------------------------------------------ */

static void look(struct loop *l)
{
	for (uint32_t i = 0; i < l->presents; i++) {
		uint32_t j = l->present[i];
		const struct skep_cluster_job *job = &l->c->job[j];
		const struct state *s = &l->state[j];
		l->view[i] = (struct skep_jobs_job){.arrived_ns = job->arrival_ns,
			.first_ns = l->r->done[j].first_ns,
			.remaining_s = s->left / (job->rate[job->want] * job->usual),
			.attained_s = s->attained_s,
			.ran_s = s->ran_s,
			.waited_s = s->waited_s,
			.restart_s = job->restart_s,
			.min = job->min,
			.want = job->want,
			.max = job->max,
			.has = s->has,
			.rate = job->rate};
	}
}

static bool decide(struct loop *l)
{
	const struct skep_jobs_policy *policy = &l->c->policy;
	assert(policy->order < SKEP_JOBS_ORDERS);
	look(l);
	for (uint32_t i = 0; i < l->presents; i++)
		if (skep_jobs_starves(policy, &l->view[i])) {
			struct state *s = &l->state[l->present[i]];
			s->attained_s = s->ran_s = s->waited_s = 0;
			l->view[i].attained_s = l->view[i].ran_s = l->view[i].waited_s = 0;
		}
	skep_jobs_sort(policy, l->view, l->presents, l->order);
	skep_jobs_divide(policy, l->view, l->order, l->presents, l->c->map.machines, l->given);
	l->r->decisions++;
	for (int more = 0; more < 2; more++) /* machines are given back before others get them */
		for (uint32_t i = 0; i < l->presents; i++) {
			uint32_t at = l->order[i], j = l->present[at], has = l->state[j].has;
			bool changes = more ? l->given[at] > has : l->given[at] < has;
			if (changes && !resize(l, j, l->given[at]))
				return false;
		}
	find_rates(l);
	return true;
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

static skep_time next_event(struct loop *l)
{
	skep_time next_ns = l->arrived < l->c->jobs ? l->c->job[l->arrived].arrival_ns : SKEP_TIME_NEVER;
	look(l);
	for (uint32_t i = 0; i < l->presents; i++) {
		const struct state *s = &l->state[l->present[i]];
		double in_s = skep_jobs_next_s(&l->c->policy, &l->view[i]);
		if (s->has > 0 && s->end_ns < next_ns)
			next_ns = s->end_ns;
		if (s->has > 0 && s->ready_ns > l->now_ns)
			in_s += (double)(s->ready_ns - l->now_ns) / SKEP_NS_PER_S;
		if (in_s < INFINITY) {
			skep_time at_ns = later(l->now_ns, in_s);
			next_ns = at_ns < next_ns ? at_ns : next_ns;
		}
	}
	return next_ns;
}

static void advance(struct loop *l, skep_time to_ns)
{
	assert(to_ns >= l->now_ns);
	double passed_s = (double)(to_ns - l->now_ns) / SKEP_NS_PER_S;
	l->crowd_s += passed_s * l->presents;
	for (uint32_t i = 0; i < l->presents; i++) {
		uint32_t j = l->present[i];
		struct state *s = &l->state[j];
		if (s->has == 0) {
			s->waited_s += passed_s;
			continue;
		}
		skep_time from_ns = s->ready_ns < l->now_ns ? l->now_ns : s->ready_ns < to_ns ? s->ready_ns : to_ns;
		double works_s = (double)(to_ns - from_ns) / SKEP_NS_PER_S, machine_s = passed_s * s->has;
		s->left = fmax(0, s->left - s->rate * works_s);
		s->ran_s += works_s; /* else a job could spend all of its turn on restarts, for ever */
		s->attained_s += works_s * s->has;
		l->r->done[j].held_s += machine_s;
		l->r->done[j].restart_s += (passed_s - works_s) * s->has;
	}
	l->now_ns = to_ns;
}

static void arrive(struct loop *l)
{
	while (l->arrived < l->c->jobs && l->c->job[l->arrived].arrival_ns <= l->now_ns) {
		uint32_t j = l->arrived++;
		assert(j == 0 || l->c->job[j].arrival_ns >= l->c->job[j - 1].arrival_ns);
		const struct skep_cluster_job *job = &l->c->job[j];
		l->state[j] = (struct state){
			.left = job->steps, .crowd_s = l->crowd_s, .end_ns = SKEP_TIME_NEVER, .ready_ns = l->now_ns};
		l->r->done[j].first_ns = SKEP_TIME_NEVER;
		l->present[l->presents++] = j;
	}
}

/* On one of `present` equal parts of the cluster: with as many machines as the part has, or in turns with what it asks for. */
static double fair_s(const struct loop *l, const struct skep_cluster_job *job, double present, double alone_s)
{
	const struct skep_jobs_job view = {.min = job->min, .max = job->max, .rate = job->rate};
	assert(present > 0 && alone_s >= 0);
	double part = (double)l->c->map.machines / present;
	uint32_t fewer = skep_jobs_usable(&view, part < job->want ? (uint32_t)part : job->want);
	double turns_s = alone_s * fmax(1, (double)job->want / part);
	return fewer > 0 ? fmin(turns_s, job->steps / (job->rate[fewer] * job->usual)) : turns_s;
}

static bool end_jobs(struct loop *l)
{
	uint32_t left = 0;
	assert(l->presents <= l->arrived);
	for (uint32_t i = 0; i < l->presents; i++) {
		uint32_t j = l->present[i];
		struct state *s = &l->state[j];
		const struct skep_cluster_job *job = &l->c->job[j];
		struct skep_cluster_done *d = &l->r->done[j];
		if (s->has == 0 || s->end_ns > l->now_ns) {
			l->present[left++] = j;
			continue;
		}
		if (!close_span(l, j))
			return false;
		skep_jobs_release(&l->c->map, j, s->has, l->owner);
		double stay_s = (double)(l->now_ns - job->arrival_ns) / SKEP_NS_PER_S;
		d->end_ns = l->r->end_ns = l->now_ns;
		d->present = stay_s > 0 ? (l->crowd_s - s->crowd_s) / stay_s : 1;
		d->alone_s = job->steps / (job->rate[job->want] * job->usual);
		d->fair_s = fair_s(l, job, d->present, d->alone_s);
	}
	l->presents = left;
	return true;
}

bool skep_cluster_run(const struct skep_cluster *cluster, struct skep_cluster_result *ret)
{
	struct loop l = {.c = cluster, .r = ret};
	*ret = (struct skep_cluster_result){.stuck = SKEP_JOBS_NONE};
	bool ok = reserve(&l);
	while (ok && (l.arrived < cluster->jobs || l.presents > 0)) {
		skep_time next_ns = next_event(&l);
		assert(next_ns != SKEP_TIME_NEVER);
		advance(&l, next_ns);
		ok = end_jobs(&l);
		arrive(&l);
		ok = ok && decide(&l);
	}
	release(&l);
	return ok;
}

void skep_cluster_finish(struct skep_cluster_result *result)
{
	free(result->done);
	free(result->span);
	*result = (struct skep_cluster_result){0};
}
