/* SPDX-License-Identifier: Apache-2.0
 *
 * alpa.c - see searches.h. Decides what a scenario is to Alpa's planner (planning/search/published/alpa.h): machines of several
 * GPUs are the hosts of its mesh, all alike; a stage of so many layers with so many GPUs a worker takes what the scenario's own
 * arithmetic says of it, collectives between these GPUs included, plus what comes in and goes back over a link between hosts;
 * behind its last microbatch come the ring of its workers, a tied table, and the step. Memory is what `check` says.
 *
 * What is kept true: each of these is asked of the scenario read with such workers, so a degree that it refuses is none here.
 */
#include "planning/plan/searches.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/record.h"
#include "planning/search/published/alpa.h"
#include "planning/search/throughput.h"
#include "scenarios/plan/memory.h"
#include "scenarios/plan/recut.h"
#include "topologies/read/path.h"

#define WAYS_MOST 4e8 /* for one r, of which there are tens */
#define DEGREES 11u   /* 1 to SKEP_BOARD_GPUS_MAX */

struct degree { /* the scenario with so many GPUs in each worker; cut into so many stages as follow */
	bool possible;
	struct skep_scenario scenario;
	struct skep_scenario cut[3];
};

struct mesh {
	struct skep_planner *w;
	uint32_t hosts, gpus; /* of a host */
	uint32_t layers, microbatches;
	struct degree *degree[DEGREES]; /* of 2^i GPUs */
	double inner_Bps, inner_s;      /* between GPUs of a host, ... */
	double outer_Bps, outer_s;      /* ... and between two hosts */
	double directory_s;             /* from the farthest host to the directory and back */
	struct skep_alpa alpa;
	struct skep_alpa_option option[SKEP_ALPA_OPTIONS];
	struct skep_alpa_cost *cost;
	struct skep_alpa_stage stage[SKEP_ALPA_LAYERS];
	uint32_t stages;
	struct skep_diag why; /* the first degree that was refused */
};

/* ---- the mesh ------------------------------------------------------------------------------------------------------- */

static enum status refuse_schedule(struct skep_planner *w)
{
	const struct skep_plan *plan = &w->scenario.plan;
	const struct {
		bool is;
		const char *why;
	} not_with[] = {
		{plan->pipeline != SKEP_PIPELINE_1F1B, "plans for `schedule.pipeline: 1f1b`; take that"},
		{skep_plan_flushes(plan) > 1, "flushes once in a step; leave out schedule.accumulate"},
		{skep_plan_most_steps(plan) > 1 || plan->async.on, "sums in each step; take `sync.method: step`"},
		{plan->reduction.collective != SKEP_COLLECTIVE_RING, "sums around rings; take `sync.collective: ring`"},
		{w->scenario.zero > 0, "does not shard the optimizer's state; leave out sync.zero"},
		{w->scenario.has_trace || plan->scale,
			"has all hosts all the time; leave out cluster.trace and cluster.scale"},
	};
	for (size_t i = 0; i < sizeof not_with / sizeof not_with[0]; i++)
		if (not_with[i].is)
			return skep_planner_refuse(w, "plan.method: alpa %s, or plan.method: search", not_with[i].why);
	return STATUS_DONE;
}

static enum status check_hosts(struct mesh *m, const struct skep_topology *t)
{
	uint32_t least = UINT32_MAX, most = 0;
	for (uint32_t i = 0; i < t->machines; i++) {
		uint32_t gpus = t->gpu[t->machine[i].gpu].board.gpus;
		least = gpus < least ? gpus : least;
		most = gpus > most ? gpus : most;
	}
	m->hosts = t->machines;
	m->gpus = most;
	if (most < 2)
		return skep_planner_refuse(m->w,
			"plan.method: alpa splits stages over the GPUs of hosts, and no machine of topology %.60s has more "
			"than one (`gpus`); take `pipedream` or `search`",
			t->name);
	if (least < most || (most & (most - 1)) != 0)
		return skep_planner_refuse(m->w,
			"plan.method: alpa needs hosts of as many GPUs, a power of two, and machines of topology %.60s have "
			"%u%s%.0u; take `search`",
			t->name, least, least < most ? " to " : "", least < most ? most : 0);
	for (uint32_t i = 1; i < t->machines; i++)
		if (t->machine[i].gpu != t->machine[0].gpu)
			return skep_planner_refuse(m->w,
				"plan.method: alpa needs hosts that are alike, and machines 0 and %u of topology %.60s are not; "
				"take `search`",
				i, t->name);
	return STATUS_DONE;
}

/* As the file has them, whatever workers the scenario makes of them. */
static enum status find_hosts(struct mesh *m)
{
	struct skep_topology t;
	struct skep_diag diag = {0};
	if (!skep_topology_read(m->w->scenario.topology.path, &t, &diag)) {
		m->w->error = diag;
		return STATUS_BAD_INPUT;
	}
	enum status status = check_hosts(m, &t);
	skep_topology_finish(&t);
	return status;
}

/* ---- the scenario with other workers -------------------------------------------------------------------------------- */

/* "cluster.worker_gpus=[[2, 2], [1, 1, 2]]": stage s has gpus[s * hosts + host] GPUs of a host, and degree[s] of them in each
 * worker. NULL: no memory. */
static char *spell_workers(const struct mesh *m, uint32_t stages, const uint32_t *degree, const uint32_t *gpus)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	fprintf(out, "cluster.worker_gpus=[");
	for (uint32_t host = 0; host < m->hosts; host++) {
		fprintf(out, "%s[", host > 0 ? ", " : "");
		bool any = false;
		for (uint32_t s = 0; s < stages; s++)
			for (uint32_t k = 0; k < gpus[(size_t)s * m->hosts + host] / degree[s]; k++, any = true)
				fprintf(out, "%s%u", any ? ", " : "", degree[s]);
		fprintf(out, "]");
	}
	fprintf(out, "]");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* The stage of each of these workers, in the same order. NULL: no memory. */
static char *spell_allocation(const struct mesh *m, uint32_t stages, const uint32_t *degree, const uint32_t *gpus)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	fprintf(out, "cluster.allocation={method: explicit, stage_of: [");
	bool any = false;
	for (uint32_t host = 0; host < m->hosts; host++)
		for (uint32_t s = 0; s < stages; s++)
			for (uint32_t k = 0; k < gpus[(size_t)s * m->hosts + host] / degree[s]; k++, any = true)
				fprintf(out, "%s%u", any ? ", " : "", s);
	fprintf(out, "]}");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static bool add(struct skep_assignments *to, char *assignment)
{
	bool added = skep_assignments_add(to, assignment);
	free(assignment);
	return added;
}

static char *say_number(const char *key, uint32_t number)
{
	char *text = NULL;
	return asprintf(&text, "%s=%u", key, number) < 0 ? NULL : text;
}

/* One stage on all hosts, workers of this many GPUs, and as many microbatches for each. False: no memory. */
static bool add_workers(const struct mesh *m, uint32_t degree, struct skep_assignments *to)
{
	uint32_t all = m->hosts * m->gpus, rounds = (m->microbatches + all - 1) / all;
	uint32_t *gpus = calloc(m->hosts, sizeof *gpus);
	for (uint32_t host = 0; gpus && host < m->hosts; host++)
		gpus[host] = m->gpus;
	bool ok = gpus && add(to, spell_workers(m, 1, &degree, gpus)) &&
	          skep_assignments_add(to, "cluster.tensor_parallel=0") &&
	          skep_assignments_add(to, "cluster.allocation={method: contiguous}") &&
	          skep_assignments_add(to, "model.stages=1") &&
	          add(to, say_number("schedule.global_batch", rounds * all * m->w->scenario.samples));
	free(gpus);
	return ok && (degree > 1 || skep_assignments_add(to, "cluster.sequence_parallel=false"));
}

/* Of a scenario of one stage a copy of so many; they are cut when they are asked. */
static bool make_cut(const struct skep_scenario *from, uint32_t stages, struct skep_scenario *ret)
{
	struct skep_scenario *of = malloc(sizeof *of);
	bool made = of != NULL;
	if (made) {
		*of = *from;
		of->plan.stages = stages;
		of->model.cuts = 0;
		skep_model_part(&of->model, stages);
		of->plan.tied = of->model.frozen > 0 ? 0 : skep_model_copied(&of->model);
		made = skep_recut_make(of, ret);
	}
	free(of);
	return made;
}

/* False: no memory. A degree that the scenario refuses is left out. */
static bool make_degree(struct mesh *m, uint32_t i)
{
	struct degree *d = m->degree[i] = calloc(1, sizeof *d);
	struct skep_assignments with = {0};
	struct skep_diag diag = {0};
	bool ok = d && skep_assignments_copy(&m->w->with, &with) && add_workers(m, 1u << i, &with);
	if (ok) {
		struct skep_scenario_options options = skep_assignments_options(&with);
		options.any_memory = true;
		d->possible = skep_scenario_read(with.path, &options, &d->scenario, &diag);
		if (!d->possible && !m->why.set)
			m->why = diag;
	}
	skep_assignments_finish(&with);
	if (ok && d->possible)
		d->scenario.plan.microbatches = m->microbatches;
	for (uint32_t n = 0; ok && d->possible && n < 3 && n < m->layers; n++)
		ok = make_cut(&d->scenario, n + 1, &d->cut[n]);
	return ok;
}

static void finish_degree(struct degree *d)
{
	for (uint32_t n = 0; d && n < 3; n++)
		if (d->cut[n].op_time)
			skep_recut_finish(&d->cut[n]);
	if (d && d->possible)
		skep_scenario_finish(&d->scenario);
	free(d);
}

/* By workers of one GPU each: the mean time of a byte, and of nothing. */
static void find_links(struct mesh *m)
{
	const struct skep_topology *t = &m->degree[0]->scenario.topology;
	double byte_s = 0, ways = 0;
	m->inner_Bps = skep_path_lone_Bps(t, 0, 1);
	m->inner_s = skep_path_mean_s(t, t->machine[0].place, t->machine[1].place);
	for (uint32_t from = 0; from < t->machines; from += m->gpus)
		for (uint32_t to = 0; to < t->machines; to += m->gpus) {
			if (from == to)
				continue;
			byte_s += 1 / skep_path_lone_Bps(t, from, to);
			m->outer_s += skep_path_mean_s(t, t->machine[from].place, t->machine[to].place);
			ways++;
		}
	m->outer_Bps = byte_s > 0 ? ways / byte_s : INFINITY;
	m->outer_s /= fmax(1, ways);
	for (uint32_t i = 0; i < t->machines; i++)
		m->directory_s = fmax(m->directory_s,
			skep_path_mean_s(t, t->machine[i].place, t->machine[t->machines].place) +
				skep_path_mean_s(t, t->machine[t->machines].place, t->machine[i].place));
}

/* ---- what a stage costs --------------------------------------------------------------------------------------------- */

static uint32_t log2_of(uint32_t degree)
{
	uint32_t i = 0;
	while (1u << i < degree)
		i++;
	return i;
}

/* Workers of a stage on one host, which do the same at the same time. */
static double together(const struct mesh *m, const struct skep_alpa_option *o)
{
	return o->gpus < m->gpus ? o->copies : (double)m->gpus / o->degree;
}

/* To or from these workers: between hosts, whose lines all of them on one share, or between GPUs of a host. */
static double hop_s(const struct mesh *m, const struct skep_alpa_option *o, bool inside, double bytes)
{
	bytes += SKEP_HEADER_BYTES;
	return inside ? bytes / m->inner_Bps + m->inner_s : together(m, o) * bytes / m->outer_Bps + m->outer_s;
}

/* Of their sums: one hop in `crossing` is between hosts, and else none. */
static double ring_s(
	const struct mesh *m, const struct skep_plan *plan, uint32_t stage, const struct skep_alpa_option *o)
{
	const struct skep_throughput ring = {
		.ring_segments = plan->reduction.chunks, .ring_latency_bytes = plan->reduction.latency_bytes};
	double crossing = o->gpus > m->gpus ? (double)m->gpus / o->degree : 0;
	double rate_Bps = !(crossing > 0) ? m->inner_Bps
	                  : crossing > 1  ? fmin(m->inner_Bps, m->outer_Bps)
	                                  : m->outer_Bps;
	double delay_s = crossing > 0 ? m->outer_s / crossing + m->inner_s * (1 - 1 / crossing) : m->inner_s;
	double chunk = (double)skep_plan_encoded_bytes(plan, stage, skep_plan_trained(plan, stage)) / o->copies;
	return o->copies > 1 ? skep_throughput_ring_s(&ring, o->copies, chunk, chunk / rate_Bps, delay_s) : 0;
}

/* The kind of machines of a scenario whose workers are all alike. */
static uint32_t kind_of(const struct skep_scenario *s)
{
	return s->topology.machine[0].gpu;
}

static bool fits(const struct mesh *m, const struct skep_scenario *s, uint32_t stage, uint32_t copies, uint32_t behind)
{
	uint32_t serving[3] = {1, 1, 1};
	struct skep_memory_terms terms = skep_memory_terms_of(&m->degree[0]->scenario);
	terms.stages = s->plan.stages;
	terms.serving = serving;
	serving[stage] = copies;
	if (stage + 1 < s->plan.stages)
		serving[stage + 1] = behind;
	struct skep_memory memory = skep_memory_of(s, &terms, stage, kind_of(s));
	return skep_memory_fits(s, &memory, kind_of(s));
}

/* The most stages behind with which it fits; the last one has none. False: it never does. */
static bool find_behind(
	const struct mesh *m, const struct skep_scenario *s, uint32_t stage, uint32_t copies, uint32_t *ret_most)
{
	uint32_t low = stage + 1 < s->plan.stages ? 1 : 0, high = low > 0 ? m->layers : 0;
	if (!fits(m, s, stage, copies, low * copies))
		return false;
	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;
		if (fits(m, s, stage, copies, middle * copies))
			low = middle;
		else
			high = middle - 1;
	}
	*ret_most = low;
	return true;
}

struct parts { /* of a stage */
	double forward_s,
		backward_s; /* of a microbatch: its passes and, behind the first stage, the way to them, and back */
	double after_s;     /* behind its last microbatch */
	uint32_t behind_most;
};

/* The stage lies in a model of as many stages as make it the first, the last, both or neither. `inside`: the stage before it is
 * on the same host; `tied_inside`: so is the other end of a tied table. False: it cannot be. */
static bool measure(struct mesh *m, const struct skep_alpa_stage *of, bool inside, bool tied_inside, struct parts *ret)
{
	const struct skep_alpa_option *o = &m->option[of->option];
	uint32_t end = of->first + of->layers, stage = of->first > 0, stages = 1 + (of->first > 0) + (end < m->layers);
	struct degree *d = m->degree[log2_of(o->degree)];
	if (!d->possible)
		return false;
	struct skep_scenario *s = &d->cut[stages - 1];
	skep_recut_set_vstage(s, stage, of->first, end);
	const struct skep_op_time *time = &s->op_time[(size_t)kind_of(s) * stages + stage];
	*ret = (struct parts){1e-9 * (double)time->forward_ns, 1e-9 * (double)time->backward_ns,
		1e-9 * (double)time->step_ns + ring_s(m, &s->plan, stage, o), 0};
	if (stage > 0) {
		ret->forward_s += hop_s(m, o, inside, (double)s->vstage_bytes[stage - 1]);
		ret->backward_s += hop_s(m, o, inside, (double)skep_plan_gradient_bytes(&s->plan, stage - 1));
	}
	if (s->plan.tied > 0 && stages > 1 && (of->first == 0 || end == m->layers))
		ret->after_s +=
			hop_s(m, o, tied_inside, (double)skep_plan_encoded_bytes(&s->plan, stage, s->plan.tied));
	return find_behind(m, s, stage, o->copies, &ret->behind_most);
}

static double more_s(const struct mesh *m, const struct skep_alpa_stage *of, const struct parts *p)
{
	return (p->forward_s + p->backward_s) * ((double)m->microbatches / m->option[of->option].copies - 1);
}

/* As if each stage were on other hosts than the one before. What follows the first stage's last microbatch follows that of all,
 * so it is a part of the sum. */
static struct skep_alpa_cost ask(struct mesh *m, const struct skep_alpa_stage *of)
{
	struct parts p;
	struct skep_alpa_cost cost = {INFINITY, INFINITY, 0};
	if (!measure(m, of, false, false, &p))
		return cost;
	cost.trip_s = p.forward_s + p.backward_s + (of->first == 0 ? p.after_s : 0);
	cost.rest_s = more_s(m, of, &p) + (of->first == 0 ? 0 : p.after_s);
	cost.behind_most = p.behind_most;
	return cost;
}

static enum status ask_all(struct mesh *m)
{
	uint32_t options = skep_alpa_options(m->hosts, m->gpus, m->microbatches, m->option);
	if (options != UINT32_MAX)
		m->alpa = (struct skep_alpa){m->layers, m->hosts * m->gpus, options, m->option, NULL};
	if (options == UINT32_MAX || skep_alpa_ways(&m->alpa) > WAYS_MOST)
		return skep_planner_refuse(m->w,
			"plan.method: alpa has too many ways to look at with %u layers and %u hosts of %u GPUs; take "
			"`search`, or fewer of either",
			m->layers, m->hosts, m->gpus);
	m->cost = calloc(skep_alpa_costs(&m->alpa), sizeof *m->cost);
	if (!m->cost)
		return skep_planner_lack(m->w);
	for (uint32_t first = 0; first < m->layers; first++)
		for (uint32_t end = first + 1; end <= m->layers; end++)
			for (uint32_t option = 0; option < options; option++) {
				const struct skep_alpa_stage of = {first, end - first, option};
				m->cost[skep_alpa_at(&m->alpa, first, end, option)] = ask(m, &of);
			}
	m->alpa.cost = m->cost;
	return STATUS_DONE;
}

/* ---- the plan ------------------------------------------------------------------------------------------------------- */

static enum status find(struct mesh *m)
{
	void *mem = malloc(skep_alpa_size(&m->alpa));
	if (!mem)
		return skep_planner_lack(m->w);
	bool found = isfinite(skep_alpa_find(&m->alpa, mem, m->stage, &m->stages));
	free(mem);
	if (found)
		return STATUS_DONE;
	return skep_planner_refuse(m->w,
		"plan.method: alpa finds no stages that fit the memory of %u hosts of %u GPUs with %u microbatches a "
		"step%s%.300s",
		m->hosts, m->gpus, m->microbatches, m->why.set ? "; larger degrees are refused: " : "", m->why.message);
}

/* Both stages are on one host, and on no other. */
static bool share_host(const struct mesh *m, const uint32_t *gpus, uint32_t a, uint32_t b)
{
	uint32_t of_a = 0, of_b = 0, both = 0;
	for (uint32_t host = 0; host < m->hosts; host++) {
		bool has_a = gpus[(size_t)a * m->hosts + host] > 0, has_b = gpus[(size_t)b * m->hosts + host] > 0;
		of_a += has_a;
		of_b += has_b;
		both += has_a && has_b;
	}
	return of_a == 1 && of_b == 1 && both == 1;
}

/* The step of the plan with its links as hosts were dealt out. Backwards each stage is done before the one in front of it, so
 * what follows there may be beside that; then come two ways to the directory and back, as in any round. */
static double say_step(struct mesh *m, const uint32_t *gpus)
{
	double trip_s = 0, most_s = 0, before_s = 0, after_s = 0;
	for (uint32_t s = 0; s < m->stages; s++) {
		struct parts p;
		bool inside = s > 0 && share_host(m, gpus, s - 1, s), tied = share_host(m, gpus, 0, m->stages - 1);
		if (!measure(m, &m->stage[s], inside, tied, &p))
			return INFINITY;
		trip_s += p.forward_s + p.backward_s;
		most_s = fmax(most_s, more_s(m, &m->stage[s], &p));
		after_s = fmax(after_s, p.after_s - before_s);
		before_s += p.backward_s;
	}
	return trip_s + most_s + after_s + 2 * m->directory_s;
}

static bool add_plan(struct mesh *m, struct skep_assignments *to)
{
	uint32_t stages = m->stages, *gpus = calloc((size_t)stages * m->hosts, sizeof *gpus),
		 *cut = calloc(2 * (size_t)stages, sizeof *cut), most = 1;
	bool ok = gpus && cut;
	for (uint32_t s = 0; ok && s < stages; s++) {
		cut[s] = m->stage[s].layers;
		cut[stages + s] = m->option[m->stage[s].option].degree;
		most = cut[stages + s] > most ? cut[stages + s] : most;
	}
	if (ok) {
		skep_alpa_place(&m->alpa, m->stage, stages, m->hosts, gpus);
		m->w->published_s = say_step(m, gpus);
	}
	ok = ok && add(to, say_number("model.stages", stages)) &&
	     add(to, spell_workers(m, stages, cut + stages, gpus)) &&
	     skep_assignments_add(to, "cluster.tensor_parallel=0") &&
	     add(to, spell_allocation(m, stages, cut + stages, gpus)) &&
	     (most > 1 || skep_assignments_add(to, "cluster.sequence_parallel=false")) &&
	     skep_assignments_add(to, "plan.method=search") && skep_assignments_add(to, "plan.cut=fixed") &&
	     add(to, skep_recut_assignment(cut, stages));
	free(gpus);
	free(cut);
	return ok;
}

static enum status work(struct mesh *m)
{
	enum status status = find_hosts(m);
	for (uint32_t i = 0; status == STATUS_DONE && 1u << i <= m->gpus; i++)
		if (!make_degree(m, i))
			status = skep_planner_lack(m->w);
	if (status == STATUS_DONE && !m->degree[0]->possible) {
		m->w->error = m->why;
		status = STATUS_BAD_INPUT;
	}
	if (status == STATUS_DONE) {
		find_links(m);
		status = ask_all(m);
	}
	if (status == STATUS_DONE)
		status = find(m);
	if (status != STATUS_DONE)
		return status;
	m->w->before_cut = m->w->with.sets;
	m->w->recut = true;
	return add_plan(m, &m->w->with) ? skep_published_reopen(m->w) : skep_planner_lack(m->w);
}

enum status skep_alpa_take(struct skep_planner *w)
{
	enum status status = refuse_schedule(w);
	struct mesh *m = status == STATUS_DONE ? calloc(1, sizeof *m) : NULL;
	if (status != STATUS_DONE)
		return status;
	if (!m)
		return skep_planner_lack(w);
	m->w = w;
	m->layers = w->scenario.model.layers;
	m->microbatches = w->scenario.plan.microbatches;
	status = work(m);
	for (uint32_t i = 0; i < DEGREES; i++)
		finish_degree(m->degree[i]);
	free(m->cost);
	free(m);
	return status;
}
