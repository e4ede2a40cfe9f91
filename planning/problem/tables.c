/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.c - see tables.h. What is kept true: the costs see the same tables as the simulator (scenario's op_time,
 * vstage_bytes), only means of them.
 */
#include "planning/problem/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/record.h"
#include "core/schedule/pipelines.h"
#include "core/sums.h"
#include "scenarios/plan/memory.h"

/* The workers of the planning rise. */
static bool takes_part(const struct skep_planning *p, uint32_t worker)
{
	uint32_t low = 0, high = p->workers;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (p->machine[middle] < worker)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->workers && p->machine[low] == worker;
}

static void clear_stage(struct skep_planning *p, uint32_t stage)
{
	p->forward_bytes[stage] = p->backward_bytes[stage] = 0;
	for (uint32_t i = 0; i < p->workers; i++)
		p->compute_s[(size_t)i * p->stages + stage] = p->update_s[(size_t)i * p->stages + stage] = 0;
}

static void add_bytes(struct skep_planning *p, uint32_t vstage)
{
	const struct skep_scenario *s = p->scenario;
	p->forward_bytes[vstage % p->stages] += (double)(s->vstage_bytes[vstage] + SKEP_HEADER_BYTES);
	p->backward_bytes[vstage % p->stages] +=
		(double)(skep_plan_gradient_bytes(&s->plan, vstage) + SKEP_HEADER_BYTES);
}

static void add_times(struct skep_planning *p, uint32_t vstage)
{
	const struct skep_scenario *s = p->scenario;
	uint32_t vstages = skep_plan_vstages(&s->plan), stage = vstage % p->stages;
	for (uint32_t i = 0; i < p->workers; i++) {
		uint32_t gpu = s->topology.machine[p->machine[i]].gpu;
		const struct skep_op_time *time = &s->op_time[(size_t)gpu * vstages + vstage];
		double crowding = skep_scenario_crowding(s, p->machine[i]);
		size_t at = (size_t)i * p->stages + stage;
		p->compute_s[at] += crowding * (1e-9 * (double)time->forward_ns + 1e-9 * (double)time->backward_ns);
		p->update_s[at] += crowding * 1e-9 * (double)time->step_ns;
	}
}

/* Of fragments a round sums one. Of a stage that does not sum in each round the mean. */
static void fill_reduced(struct skep_planning *p, uint32_t stage)
{
	const struct skep_scenario *s = p->scenario;
	p->reduced_bytes[stage] = (double)skep_plan_encoded_bytes(&s->plan, stage, skep_plan_trained(&s->plan, stage)) /
	                          skep_plan_fragments(&s->plan) / skep_plan_sum_every(&s->plan, stage);
}

/* Interleaved, a stage has several virtual stages, and a microbatch comes by as often. */
void skep_tables_times(struct skep_planning *p)
{
	for (uint32_t stage = 0; stage < p->stages; stage++) {
		clear_stage(p, stage);
		fill_reduced(p, stage);
	}
	for (uint32_t vstage = 0; vstage < skep_plan_vstages(&p->scenario->plan); vstage++) {
		add_bytes(p, vstage);
		add_times(p, vstage);
	}
}

void skep_tables_stage(struct skep_planning *p, uint32_t stage)
{
	clear_stage(p, stage);
	fill_reduced(p, stage);
	add_bytes(p, stage);
	add_times(p, stage);
	if (stage == 0)
		return;
	p->forward_bytes[stage - 1] = p->backward_bytes[stage - 1] = 0;
	add_bytes(p, stage - 1);
}

/* The memory that a stage needs whatever its size: the least need among the workers that could hold it; no other worker
 * ever serves it. Whether it fits with the sizes that a search looks at is for memory_limits.h to say. */
static void fill_memory(struct skep_planning *p)
{
	const struct skep_scenario *s = p->room.scenario;
	for (uint32_t stage = 0; stage < p->stages; stage++) {
		double least = INFINITY;
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++) {
			struct skep_memory memory = skep_memory_limits_least(s, stage, gpu, p->workers);
			least = fmin(least, memory.total);
			bool never = !skep_memory_fits(s, &memory, gpu);
			for (uint32_t i = 0; i < p->workers; i++)
				if (never && p->type[i] == gpu)
					p->compute_s[(size_t)i * p->stages + stage] = INFINITY;
		}
		p->need_bytes[stage] = (uint64_t)ceil(least);
	}
	for (uint32_t i = 0; i < p->workers; i++)
		p->have_bytes[i] = (uint64_t)s->topology.gpu[p->type[i]].memory_bytes;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		p->room.waits[s->topology.machine[i].gpu] |= s->first_stage_of[i] == SKEP_NO_STAGE && !takes_part(p, i);
}

bool skep_tables_idle(const struct skep_planning *p, uint32_t worker)
{
	for (uint32_t stage = 0; stage < p->stages; stage++)
		if (p->compute_s[(size_t)worker * p->stages + stage] < INFINITY)
			return false;
	return true;
}

static void fill_problem(struct skep_planning *p)
{
	const struct skep_plan *plan = &p->scenario->plan;
	bool fixed = skep_plan_fixed(plan), uneven = skep_plan_uneven(plan);
	for (uint32_t stage = 0; stage < p->stages; stage++) {
		p->least[stage] = uneven ? skep_plan_replicas(plan, stage) : 1;
		p->most[stage] = uneven ? p->least[stage] : p->workers - p->stages + 1;
	}
	p->problem = (struct skep_problem){.workers = p->workers,
		.stages = p->stages,
		.least = fixed && !uneven ? NULL : p->least,
		.most = fixed && !uneven ? NULL : p->most,
		.need_bytes = p->need_bytes,
		.have_bytes = p->have_bytes,
		.kind = p->kind};
	p->problem.spares = fixed ? 0 : p->idle;
	p->lean = p->problem;
	p->lean.spares = fixed ? 0 : p->workers - p->stages;
}

/* What the first stage may have issued and not got back, for each of its workers. */
static double in_flight(const struct skep_scenario *s)
{
	if (skep_plan_fixed(&s->plan))
		return skep_plan_fixed_in_flight(&s->plan);
	return s->plan.in_flight;
}

/* What the directory has of a swarm at most, with so many workers in each stage; the others are left out. */
static double outstanding(const void *room, const uint32_t *workers)
{
	const struct skep_plan *plan = &((const struct skep_memory_limits *)room)->scenario->plan;
	uint32_t all = 0, fewest = UINT32_MAX;
	for (uint32_t s = 0; s < plan->stages; s++) {
		all += workers[s];
		fewest = workers[s] < fewest ? workers[s] : fewest;
	}
	if (all == 0)
		return 0;
	return (double)skep_swarm_outstanding(fewest, skep_swarm_capacity(plan, workers[0], all));
}

static void fill_throughput(struct skep_planning *p)
{
	const struct skep_plan *plan = &p->scenario->plan;
	bool by_speed = plan->wiring == SKEP_WIRING_THROUGHPUT || plan->wiring == SKEP_WIRING_LATENCY;
	for (uint32_t view = 0; view < SKEP_CONTENTIONS; view++)
		p->throughput[view] = (struct skep_throughput){.links = &p->links[view],
			.stages = p->stages,
			.shares = skep_plan_fixed(plan) && !skep_plan_uneven(plan) ? SKEP_SHARES_FIXED
		                  : by_speed                                       ? SKEP_SHARES_BY_SPEED
		                                                                   : SKEP_SHARES_EQUAL,
			.compute_s = p->compute_s,
			.update_s = p->update_s,
			.forward_bytes = p->forward_bytes,
			.backward_bytes = p->backward_bytes,
			.reduced_bytes = p->reduced_bytes,
			.ring_segments = plan->reduction.chunks,
			.ring_latency_bytes = plan->reduction.latency_bytes,
			.microbatches = (double)plan->microbatches / skep_plan_most_steps(plan),
			.flushes = skep_plan_flushes(plan),
			.in_flight = in_flight(p->scenario),
			.outstanding = skep_plan_fixed(plan) ? NULL : outstanding,
			.directory_s = p->directory_s,
			.period = skep_plan_mean_steps(plan),
			.rounds = p->rounds,
			.delayed = plan->delayed,
			.overlap = plan->inner.deadline ? plan->inner.overlap : 0,
			.egress_usd_per_B = p->scenario->topology.egress_usd_per_B,
			.way_ns = skep_planning_by_latency(p) ? plan->places.transfer_ns : NULL,
			.place = p->place,
			.places = p->scenario->topology.places,
			.fits = skep_memory_limits_fits,
			.room = &p->room,
			.type = p->type,
			.types = p->scenario->topology.gpus};
}

bool skep_tables_make(struct skep_planning *p)
{
	size_t n = p->workers, s = p->stages;
	p->least = calloc(s, sizeof *p->least);
	p->most = calloc(s, sizeof *p->most);
	p->need_bytes = calloc(s, sizeof *p->need_bytes);
	p->compute_s = calloc(n * s, sizeof *p->compute_s);
	p->update_s = calloc(n * s, sizeof *p->update_s);
	p->forward_bytes = calloc(s, sizeof *p->forward_bytes);
	p->backward_bytes = calloc(s, sizeof *p->backward_bytes);
	p->reduced_bytes = calloc(s, sizeof *p->reduced_bytes);
	return skep_memory_limits_make(p->scenario, &p->room) && p->least && p->most && p->need_bytes && p->compute_s &&
	       p->update_s && p->forward_bytes && p->backward_bytes && p->reduced_bytes;
}

void skep_tables_fill(struct skep_planning *p)
{
	skep_memory_limits_forget(&p->room);
	skep_tables_times(p);
	fill_memory(p);
	p->idle = 0;
	for (uint32_t i = 0; i < p->workers; i++)
		p->idle += skep_tables_idle(p, i);
	fill_problem(p);
	fill_throughput(p);
}

void skep_tables_finish(struct skep_planning *p)
{
	skep_memory_limits_finish(&p->room);
	free(p->least);
	free(p->most);
	free(p->need_bytes);
	free(p->compute_s);
	free(p->update_s);
	free(p->forward_bytes);
	free(p->backward_bytes);
	free(p->reduced_bytes);
}
