/* SPDX-License-Identifier: Apache-2.0
 *
 * synthetic.h - a scenario made by hand and a made-up run of it, for the tests of analysis/: no world is needed.
 *
 * Workers stand alternately at two places. Every round takes period_ns; microbatch m of it goes to worker m mod (workers of
 * the stage) in each stage. One worker may be lost in one round.
 */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/record.h"
#include "scenarios/read/scenario.h"

#define SYNTHETIC_NEVER UINT32_MAX

struct synthetic {
	struct skep_scenario scenario;
	skep_time period_ns;
	uint32_t rounds;     /* to feed */
	uint32_t lost_round; /* SYNTHETIC_NEVER: none; then the last worker is fenced in it */
	double start_loss, decay;
	bool attack; /* the first microbatch of round 1 is counted twice in stage 0 */
};

static inline void synthetic_init(struct synthetic *s, const char *name, uint32_t workers, uint32_t stages)
{
	static const char *const place[2] = {"Frankfurt", "Iowa"};
	*s = (struct synthetic){
		.period_ns = 100000000, .rounds = 20, .lost_round = SYNTHETIC_NEVER, .start_loss = 40, .decay = 0.9};
	struct skep_scenario *c = &s->scenario;
	struct skep_topology *t = &c->topology;
	snprintf(c->name, sizeof c->name, "%s", name);
	snprintf(c->path, sizeof c->path, "scenarios/synthetic.yaml");
	c->text = strdup("name: synthetic\n");
	c->seed = 7;
	c->samples = 4;
	c->arithmetic = SKEP_ARITHMETIC_REAL;
	c->target_loss = 1;
	snprintf(c->model.name, sizeof c->model.name, "mlp");
	snprintf(t->name, sizeof t->name, "two places");
	t->machines = workers;
	t->places = 2;
	t->gpus = 1;
	t->machine = calloc(workers + 1, sizeof *t->machine);
	t->pair = calloc(4, sizeof *t->pair);
	t->place_name = calloc(2, sizeof *t->place_name);
	t->gpu = calloc(1, sizeof *t->gpu);
	snprintf(t->gpu[0].name, sizeof t->gpu[0].name, "t4");
	c->first_stage_of = calloc(workers, sizeof *c->first_stage_of);
	for (uint32_t i = 0; i <= workers; i++)
		t->machine[i] = (struct skep_machine){
			.place = i % 2, .up_Bps = 125e6, .down_Bps = INFINITY, .price_usd_per_h = 0.36};
	for (uint32_t i = 0; i < workers; i++)
		c->first_stage_of[i] = (uint32_t)((uint64_t)i * stages / workers);
	for (uint32_t i = 0; i < 2; i++)
		snprintf(t->place_name[i], sizeof t->place_name[i], "%s", place[i]);
	for (uint32_t i = 0; i < 4; i++)
		t->pair[i] = (struct skep_pair){.capacity_Bps = i % 3 ? 25e6 : INFINITY,
			.latency_s = i % 3 ? 0.05 : 0.0001,
			.shared_Bps = INFINITY};
	c->plan = (struct skep_plan){.workers = workers,
		.stages = stages,
		.microbatches = 2 * workers,
		.in_flight = 2,
		.rounds = s->rounds,
		.seed = 7,
		.first_stage_of = c->first_stage_of};
}

static inline void synthetic_finish(struct synthetic *s)
{
	free(s->scenario.text);
	free(s->scenario.topology.machine);
	free(s->scenario.topology.pair);
	free(s->scenario.topology.place_name);
	free(s->scenario.topology.gpu);
	free(s->scenario.first_stage_of);
}

/* Worker of `stage` that serves microbatch m. */
static inline uint32_t synthetic_worker(const struct synthetic *s, uint32_t stage, uint32_t m)
{
	uint32_t first = 0, count = 0;
	for (uint32_t i = 0; i < s->scenario.plan.workers; i++) {
		first += s->scenario.first_stage_of[i] < stage;
		count += s->scenario.first_stage_of[i] == stage;
	}
	return first + m % count;
}

static inline void synthetic_note(const struct skep_recorder *r, skep_time now, uint32_t who, struct skep_note note)
{
	if (r->note)
		r->note(r->context, now, (struct skep_peer){who, 1}, &note);
}

static inline void synthetic_op(const struct synthetic *s, const struct skep_recorder *r, uint32_t kind, uint32_t lane,
	uint32_t round, uint32_t m, uint32_t worker, double from, double length)
{
	skep_time start = (skep_time)((round + from) * (double)s->period_ns);
	skep_time end = start + (skep_time)(length * (double)s->period_ns);
	struct skep_op_span span = {.worker = worker,
		.epoch = 1,
		.round = round,
		.number = m,
		.stage = (uint16_t)s->scenario.first_stage_of[worker],
		.kind = (uint8_t)kind,
		.lane = (uint8_t)lane,
		.begin_ns = start,
		.end_ns = end,
		.busy_ns = end - start};
	if (r->op)
		r->op(r->context, &span);
}

/* One microbatch in one stage: forward, backward, counted. */
static inline void synthetic_work(
	const struct synthetic *s, const struct skep_recorder *r, uint32_t round, uint32_t stage, uint32_t m)
{
	const struct skep_plan *plan = &s->scenario.plan;
	uint32_t worker = synthetic_worker(s, stage, m), turn = m / (plan->workers / plan->stages);
	double slot = 0.8 / (4.0 * plan->stages + 8), at = 0.02 + slot * (turn % 4) * 2;
	skep_time now = (skep_time)((round + 0.6) * (double)s->period_ns);
	synthetic_op(s, r, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, round, m, worker, at + slot * stage, slot * 0.9);
	synthetic_op(s, r, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, round, m, worker,
		at + slot * (3 * plan->stages - 2 * stage), slot * 1.8);
	synthetic_note(r, now, worker,
		(struct skep_note){.kind = SKEP_NOTE_COUNTED,
			.round = round,
			.stage = (uint16_t)stage,
			.microbatch = m,
			.value = plan->delayed && round > 0});
}

/* The reduction of one stage: the workers that took part, what was lost with the one that did not. */
static inline void synthetic_reduce(
	const struct synthetic *s, const struct skep_recorder *r, uint32_t round, uint32_t stage)
{
	const struct skep_plan *plan = &s->scenario.plan;
	skep_time now = (skep_time)((round + 0.95) * (double)s->period_ns);
	uint32_t counted = 0, lost = 0, fenced = round == s->lost_round ? plan->workers - 1 : SYNTHETIC_NEVER;
	for (uint32_t worker = 0; worker < plan->workers; worker++) {
		uint32_t share = 0;
		for (uint32_t m = 0; m < plan->microbatches; m++) {
			bool mine =
				s->scenario.first_stage_of[worker] == stage && synthetic_worker(s, stage, m) == worker;
			share += mine;
			if (mine && worker == fenced)
				synthetic_note(r, now, plan->workers,
					(struct skep_note){.kind = SKEP_NOTE_LOST,
						.round = round,
						.stage = (uint16_t)stage,
						.microbatch = m,
						.value = 1});
		}
		if (s->scenario.first_stage_of[worker] != stage)
			continue;
		lost += worker == fenced ? share : 0;
		counted += worker == fenced ? 0 : share;
		if (worker == fenced)
			continue;
		synthetic_op(s, r, SKEP_OP_ADD, SKEP_LANE_REDUCE, round, 0, worker, 0.82, 0.1);
		synthetic_op(s, r, SKEP_OP_STEP, SKEP_LANE_COMPUTE, round, 0, worker, 0.95, 0.03);
		synthetic_note(r, now, plan->workers,
			(struct skep_note){.kind = SKEP_NOTE_MEMBER,
				.round = round,
				.stage = (uint16_t)stage,
				.peer = {worker, 1},
				.value = share});
	}
	synthetic_note(r, now, plan->workers,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_COMMITTED,
			.round = round,
			.stage = (uint16_t)stage,
			.microbatch = counted,
			.value = lost});
}

/* In round r a worker sends 1000 bytes between stages and 2000 (r + 1) in reductions, so both worlds' bytes go up ever faster. */
static inline void synthetic_sent(const struct synthetic *s, const struct skep_recorder *r, uint32_t round)
{
	const uint64_t workers = s->scenario.plan.workers;
	const struct skep_sent sent = {
		.bytes = {
			[SKEP_TRAFFIC_PIPELINE] = 1000 * workers, [SKEP_TRAFFIC_SYNC] = 2000 * (round + 1) * workers}};
	if (r->sent)
		r->sent(r->context, &sent);
}

/* The notes and operations of a round, in the order in which a directory gives them. */
static inline void synthetic_round(const struct synthetic *s, const struct skep_recorder *r, uint32_t round, bool close)
{
	const struct skep_plan *plan = &s->scenario.plan;
	skep_time opened = (skep_time)(round * (double)s->period_ns), closed = opened + s->period_ns;
	double loss = s->start_loss * pow(s->decay, round) + 0.05;
	synthetic_note(r, opened, plan->workers, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = round});
	synthetic_note(r, opened, plan->workers,
		(struct skep_note){.kind = SKEP_NOTE_ISSUED, .round = round, .value = plan->microbatches});
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		for (uint32_t m = 0; m < plan->microbatches; m++)
			synthetic_work(s, r, round, stage, m);
	if (s->attack && round == 1)
		synthetic_note(r, opened, 1, (struct skep_note){.kind = SKEP_NOTE_COUNTED, .round = round});
	if (round == s->lost_round)
		synthetic_note(r, opened, plan->workers,
			(struct skep_note){.kind = SKEP_NOTE_FENCED,
				.stage = (uint16_t)(plan->stages - 1),
				.peer = {plan->workers - 1, 1}});
	if (!close)
		return;
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		synthetic_reduce(s, r, round, stage);
	synthetic_note(r, closed, plan->workers,
		(struct skep_note){.kind = SKEP_NOTE_LOSS,
			.round = round,
			.value = isfinite(loss) ? (int64_t)(loss * 1e9) : INT64_MAX});
	synthetic_sent(s, r, round);
	synthetic_note(r, closed, plan->workers,
		(struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = round, .microbatch = plan->microbatches});
}

/* What a world reports at the end. */
static inline void synthetic_uses(const struct synthetic *s, const struct skep_recorder *r)
{
	uint32_t workers = s->scenario.plan.workers;
	for (uint32_t i = 0; r->life && i < workers; i++)
		r->life(r->context, i, 0, s->rounds * s->period_ns);
	for (uint32_t i = 0; r->worker && i <= workers; i++)
		r->worker(r->context, &(struct skep_worker_use){.index = i,
					      .epoch = 1,
					      .stage = i < workers ? s->scenario.first_stage_of[i] : SKEP_NO_STAGE,
					      .alive_ns = s->rounds * s->period_ns,
					      .compute_ns = s->rounds * s->period_ns / 2,
					      .events = 100 + i,
					      .digest = 0x1234567890abcdefu * (i + 1)});
	for (uint32_t i = 0; r->link && i < workers; i++)
		for (uint8_t traffic = 0; traffic < SKEP_TRAFFICS; traffic++)
			r->link(r->context, &(struct skep_link_use){.source = i,
						    .destination = (i + 1 + traffic) % (workers + 1),
						    .traffic = traffic,
						    .messages = 10,
						    .bytes = 1000u * (traffic + 1u)});
}

static inline void synthetic_feed(const struct synthetic *s, const struct skep_recorder *r)
{
	for (uint32_t round = 0; round < s->rounds; round++)
		synthetic_round(s, r, round, true);
	synthetic_uses(s, r);
}
