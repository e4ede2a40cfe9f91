/* SPDX-License-Identifier: Apache-2.0
 *
 * extras.c - what some rounds have on top: a validation behind it, and a state that is kept. Of expected.h.
 *
 *   validation  the flow of its microbatches through the same stages, forwards only: what comes back is a number. All wait for
 *               it, and it begins and ends with a message of the directory. It also waits for what goes on beside the next round
 *               where updates are delayed
 *   checkpoint  in each stage the first worker writes its state when it has stepped, and makes no pass meanwhile. A stage begins
 *               when the first microbatch of the next round comes to it
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/expected/loads.h"
#include "planning/problem/tables.h"
#include "planning/problem/traffic.h"
#include "scenarios/plan/plan.h"

/* ---- a validation --------------------------------------------------------------------------------------------------- */

/* The same scenario with passes forwards alone, and nothing that goes back. */
struct forwards {
	struct skep_scenario scenario;
	struct skep_planning planning;
};

static double *numbers(const struct skep_planning *p)
{
	return calloc((size_t)p->workers * p->stages, sizeof(double));
}

static void finish(struct forwards *f)
{
	if (f) {
		free(f->scenario.op_time);
		free(f->planning.compute_s);
		free(f->planning.update_s);
		free(f->planning.forward_bytes);
		free(f->planning.backward_bytes);
		free(f->planning.reduced_bytes);
	}
	free(f);
}

/* NULL: no memory. */
static struct forwards *forwards_of(const struct skep_planning *p)
{
	uint32_t vstages = skep_plan_vstages(&p->scenario->plan);
	size_t times = (size_t)p->scenario->topology.gpus * vstages;
	struct forwards *f = malloc(sizeof *f);
	if (!f)
		return NULL;
	f->scenario = *p->scenario;
	f->planning = *p;
	f->planning.scenario = &f->scenario;
	f->scenario.plan.frozen_vstages = vstages;
	f->scenario.op_time = calloc(times, sizeof *f->scenario.op_time);
	f->planning.compute_s = numbers(p);
	f->planning.update_s = numbers(p);
	f->planning.forward_bytes = numbers(p);
	f->planning.backward_bytes = numbers(p);
	f->planning.reduced_bytes = numbers(p);
	if (!f->scenario.op_time || !f->planning.compute_s || !f->planning.update_s || !f->planning.forward_bytes ||
		!f->planning.backward_bytes || !f->planning.reduced_bytes) {
		finish(f);
		return NULL;
	}
	for (size_t i = 0; i < times; i++)
		f->scenario.op_time[i].forward_ns = p->scenario->op_time[i].forward_ns;
	skep_tables_times(&f->planning);
	for (uint32_t stage = 0; stage < p->stages; stage++)
		f->planning.reduced_bytes[stage] = 0;
	f->scenario.plan.tied = 0;
	f->planning.throughput[0].microbatches = p->scenario->plan.validation.microbatches;
	return f;
}

/* Of pipelines each has an equal part, and no more in flight than in a round; none is dealt anew while it is busy. Where each
 * stage has one worker a swarm is one: what follows each other at the same distance nowhere waits. */
static double pipelines_s(struct skep_loads *l, struct skep_expected *e, double all)
{
	bool fixed = skep_plan_fixed(&l->p->scenario->plan);
	double trip_s = 0, pipelines = fixed ? l->pipelines : 1, each = ceil(all / pipelines);
	skep_loads_carry_all(l);
	skep_loads_list_stations(l, true, SKEP_WAY_BOTH);
	for (uint32_t i = 0; i < l->p->workers; i++)
		trip_s += skep_loads_takes_part(l, i) ? l->share[i] * skep_loads_compute_s(l, i) : 0;
	trip_s += l->travel_s;
	const struct skep_station *most = skep_loads_busiest(l);
	e->pace_s = most ? most->load_s : 0;
	return trip_s + (each - 1) * fmax(e->pace_s * pipelines, trip_s / l->p->scenario->plan.in_flight);
}

static void judge(struct skep_loads *l, struct skep_expected *e)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	double all = plan->validation.microbatches, up_s = 0, down_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		up_s = l->stage_of[i] == 0 ? fmax(up_s, skep_loads_up_s(l, i)) : up_s;
		down_s = l->stage_of[i] == 0 ? fmax(down_s, skep_loads_down_s(l, i)) : down_s;
	}
	if (skep_plan_fixed(plan) || (l->p->stages > 1 && skep_loads_is_one_path(l)))
		e->flow_s = pipelines_s(l, e, all);
	else
		(l->p->stages == 1 ? skep_swarm_alone : skep_swarm_flow)(l, e, all);
	e->validation_s = down_s + e->flow_s + up_s;
	e->validation_usd = skep_planning_egress_usd(l->p, l->stage_of);
}

static bool validate(const struct skep_planning *p, const uint32_t *stage_of, struct skep_expected *e)
{
	struct skep_expected of;
	struct forwards *f = forwards_of(p);
	bool ok = f && skep_loads_ask(&f->planning, stage_of, false, judge, &of);
	if (ok) {
		e->validation_s = of.validation_s + e->beside_s;
		e->validation_usd = of.validation_usd;
	}
	finish(f);
	return ok;
}

/* ---- a checkpoint --------------------------------------------------------------------------------------------------- */

static double kept_s(const struct skep_loads *l, uint32_t worker)
{
	const struct skep_op op = {
		.kind = SKEP_OP_CHECKPOINT, .lane = SKEP_LANE_COMPUTE, .stage = (uint16_t)l->stage_of[worker]};
	return 1e-9 * (double)skep_scenario_op_ns(l->p->scenario, l->p->machine[worker], &op);
}

/* Of a round with delayed updates, how long all wait for the sum of the round before when their passes are done. Who waits for
 * microbatches of others is late with them by a checkpoint. With a deadline a round steps behind its wait. */
static double idle_s(const struct skep_loads *l, const struct skep_expected *e)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	double stepped_s = t->overlap > 0 ? e->update_s : 0;
	return t->delayed ? fmax(0, t->period * (e->step_s - e->flow_s - stepped_s)) : 0;
}

/* Of a single stage whose microbatches are dealt to who is done first: the others make those of the worker that keeps, but for
 * what it has been dealt; unless a deadline has them wait for its part of the sum before. */
static double shared_out_s(const struct skep_loads *l, const struct skep_expected *e, uint32_t worker, double late_s)
{
	double round_s = e->flow_s * l->p->throughput[0].period, own_s = skep_loads_compute_s(l, worker);
	if (skep_plan_fixed(&l->p->scenario->plan) || l->p->stages > 1 || !skep_planning_by_speed(l->p, 0) ||
		l->p->throughput[0].overlap > 0)
		return late_s;
	return fmin(late_s, fmax(l->share[worker] * late_s, late_s + l->outstanding[worker] * own_s - round_s));
}

/* By how much the round that follows is late. */
static void keep(struct skep_loads *l, struct skep_expected *e)
{
	bool rounds = !skep_plan_no_flush(&l->p->scenario->plan);
	skep_loads_step(l, e);
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!skep_loads_takes_part(l, i) || l->nth[i] > 0)
			continue;
		double takes_s = kept_s(l, i), head_s = rounds ? fmax(0, skep_loads_head_s(l, i)) : 0;
		double late_s = fmax(0, takes_s - head_s - idle_s(l, e));
		e->checkpoint_s = fmax(e->checkpoint_s, shared_out_s(l, e, i, late_s));
		e->last_checkpoint_s = fmax(e->last_checkpoint_s, takes_s);
	}
}

bool skep_expected_extras(const struct skep_planning *p, const uint32_t *stage_of, struct skep_expected *e)
{
	const struct skep_plan *plan = &p->scenario->plan;
	struct skep_expected of;
	if (plan->validation.every > 0 && !validate(p, stage_of, e))
		return false;
	if (plan->checkpoint_every == 0)
		return true;
	bool ok = skep_loads_ask(p, stage_of, false, keep, &of);
	e->checkpoint_s = of.checkpoint_s;
	e->last_checkpoint_s = of.last_checkpoint_s;
	return ok;
}

struct skep_pace skep_expected_pace(const struct skep_expected *e)
{
	return (struct skep_pace){.fill_s = e->fill_s,
		.step_s = e->step_s,
		.validation_s = e->validation_s,
		.checkpoint_s = e->checkpoint_s,
		.last_checkpoint_s = e->last_checkpoint_s,
		.step_usd = e->egress_usd,
		.validation_usd = e->validation_usd};
}

double skep_expected_extra_s(const struct skep_scenario *s)
{
	struct skep_expected e;
	char bound[160];
	bool has = s->plan.validation.every > 0 || s->plan.checkpoint_every > 0;
	if (!has || s->plan.rounds == 0 || !skep_expected_at_start(s, &e, bound, sizeof bound))
		return 0;
	const struct skep_pace pace = skep_expected_pace(&e);
	double steps = (double)skep_plan_all_steps(s);
	return (skep_pace_time_s(s, &pace, steps) - pace.fill_s) / steps - pace.step_s;
}
