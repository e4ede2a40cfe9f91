/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_fixture.h - a small swarm in virtual time that logs what its machines are told, for the tests and the fuzzer of the
 * replay. Its world is unkind within its duties: messages come in any order, twice, or back to their sender.
 */
#pragma once

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exec/loop/log.h"
#include "exec/replay/replay.h"
#include "tests/unit/give_arena.h"

#define SWARM_WORKERS 5u
#define SWARM_MACHINES (SWARM_WORKERS + 1)
#define SWARM_STAGES 2u
#define SWARM_SECOND UINT64_C(1000000000)

struct swarm_post { /* an event on its way */
	uint32_t machine;
	uint64_t number;
	struct skep_event event;
};

struct swarm_machine {
	struct skep_node *node;
	struct skep_log batch;
	skep_time lane_free[SKEP_LANES];
	uint8_t *bytes; /* the log so far */
	size_t count;
	uint64_t events;
};

struct swarm {
	struct skep_plan plan;
	struct skep_stage_plan stage[SWARM_STAGES];
	uint32_t first_stage_of[SWARM_WORKERS];
	struct swarm_machine machine[SWARM_MACHINES];
	struct skep_actions actions;
	struct swarm_post *post;
	size_t posts, room;
	uint64_t random, numbers;
	bool unkind;
	struct skep_machine_log log[SWARM_MACHINES]; /* the result */
};

static inline uint64_t swarm_draw(struct swarm *s, uint64_t below) /* splitmix64 */
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

/* Workers 0 to 3 serve both stages in turn, the last is a spare. */
static inline void swarm_plan(struct swarm *s, uint64_t seed, uint32_t rounds)
{
	s->plan = (struct skep_plan){.workers = SWARM_WORKERS,
		.stages = SWARM_STAGES,
		.samples = 4,
		.microbatches = 6,
		.in_flight = 2,
		.rounds = rounds,
		.seed = seed,
		.liveness.heartbeat_ns = SWARM_SECOND,
		.liveness.fence_after_ns = 5 * SWARM_SECOND,
		.until.target_loss_nano = INT64_MIN,
		.stage = s->stage,
		.first_stage_of = s->first_stage_of};
	for (uint32_t i = 0; i < SWARM_STAGES; i++)
		s->stage[i] = (struct skep_stage_plan){
			.parameters = 100, .activation_bytes = i + 1 < SWARM_STAGES ? 64 : 0, .state_bytes = 1200};
	for (uint32_t i = 0; i < SWARM_WORKERS; i++)
		s->first_stage_of[i] = i + 1 < SWARM_WORKERS ? i % SWARM_STAGES : SKEP_NO_STAGE;
}

static inline void swarm_send(struct swarm *s, uint32_t machine, skep_time at, const struct skep_event *event)
{
	if (s->posts == s->room) {
		s->room = 2 * s->room + 64;
		s->post = realloc(s->post, s->room * sizeof *s->post);
		assert(s->post != NULL);
	}
	s->post[s->posts] = (struct swarm_post){.machine = machine, .number = s->numbers++, .event = *event};
	s->post[s->posts++].event.now = at;
}

static inline void swarm_carry(struct swarm *s, skep_time now, const struct skep_message *message)
{
	struct skep_event event = {.kind = SKEP_EVENT_MESSAGE};
	event.u.message = *message;
	uint64_t luck = s->unkind && message->from.index != message->to.index ? swarm_draw(s, 100) : 50;
	if (luck < 3) {
		event.kind = SKEP_EVENT_SEND_FAILED;
		swarm_send(s, message->from.index, now + 2000000, &event);
		return;
	}
	swarm_send(s, message->to.index, now + 1000000 + swarm_draw(s, 4000000), &event);
	if (luck < 6)
		swarm_send(s, message->to.index, now + 1000000 + swarm_draw(s, 9000000), &event);
}

static inline void swarm_work(struct swarm *s, uint32_t machine, skep_time now, const struct skep_op *op)
{
	struct skep_event event = {.kind = SKEP_EVENT_OP_DONE};
	const struct skep_buf some = {(uint32_t)s->numbers + 1, 1};
	bool last = op->stage + 1 == SWARM_STAGES, first = op->stage == 0;
	bool none = op->kind == SKEP_OP_STEP || op->kind == SKEP_OP_LOAD || (op->kind == SKEP_OP_FORWARD && last) ||
	            (op->kind == SKEP_OP_BACKWARD && first);
	skep_time *free_ns = &s->machine[machine].lane_free[op->lane];
	skep_time begin = *free_ns > now ? *free_ns : now;
	event.u.done.op = *op;
	event.u.done.elapsed_ns = 1000000 + swarm_draw(s, 2000000);
	if (!none)
		event.u.done.out = some;
	if (op->kind == SKEP_OP_FORWARD)
		event.u.done.stash = some;
	if (op->kind == SKEP_OP_FORWARD && last)
		event.u.done.loss_nano = 700000000;
	*free_ns = begin + event.u.done.elapsed_ns;
	swarm_send(s, machine, *free_ns, &event);
}

static inline void swarm_flush(struct swarm_machine *m)
{
	m->bytes = realloc(m->bytes, m->count + m->batch.count + 1);
	assert(m->bytes != NULL);
	memcpy(m->bytes + m->count, m->batch.bytes, m->batch.count);
	m->count += m->batch.count;
	m->batch.count = 0;
}

static inline void swarm_step(struct swarm *s, uint32_t machine, const struct skep_event *event)
{
	struct swarm_machine *m = &s->machine[machine];
	skep_node_step(m->node, &s->plan, event, &s->actions);
	m->node = give_room(m->node);
	m->events++;
	if (!skep_log_add(&m->batch, event, skep_node_digest(m->node))) {
		swarm_flush(m);
		bool added = skep_log_add(&m->batch, event, skep_node_digest(m->node));
		assert(added);
	}
	for (uint32_t i = 0; i < s->actions.count; i++) {
		const struct skep_action *action = &s->actions.item[i];
		if (action->kind == SKEP_ACTION_SEND)
			swarm_carry(s, event->now, &action->u.send);
		else if (action->kind == SKEP_ACTION_RUN)
			swarm_work(s, machine, event->now, &action->u.run);
	}
}

/* The earliest thing that happens; false: nothing will. */
static inline bool swarm_next(struct swarm *s, uint32_t *ret_machine, struct skep_event *ret)
{
	size_t best = s->posts;
	for (size_t i = 0; i < s->posts; i++) {
		const struct swarm_post *a = &s->post[i], *b = &s->post[best];
		if (best == s->posts || a->event.now < b->event.now ||
			(a->event.now == b->event.now && a->number < b->number))
			best = i;
	}
	skep_time at = best < s->posts ? s->post[best].event.now : SKEP_TIME_NEVER;
	uint32_t timer = SWARM_MACHINES;
	for (uint32_t i = 0; i < SWARM_MACHINES; i++) {
		if (skep_node_deadline(s->machine[i].node) < at) {
			at = skep_node_deadline(s->machine[i].node);
			timer = i;
		}
	}
	if (timer < SWARM_MACHINES) {
		*ret_machine = timer;
		*ret = (struct skep_event){.now = at, .kind = SKEP_EVENT_TIMER};
		return true;
	}
	if (best == s->posts)
		return false;
	*ret_machine = s->post[best].machine;
	*ret = s->post[best].event;
	s->post[best] = s->post[--s->posts];
	return true;
}

/* Records a run to its end. In an unkind one a living worker is suspected. */
static inline void swarm_record(struct swarm *s, uint64_t seed, uint32_t rounds, bool unkind)
{
	memset(s, 0, sizeof *s);
	swarm_plan(s, seed, rounds);
	s->random = seed;
	s->unkind = unkind;
	s->actions.capacity = skep_actions_limit(&s->plan);
	s->actions.item = calloc(s->actions.capacity, sizeof *s->actions.item);
	for (uint32_t i = 0; i < SWARM_MACHINES; i++) {
		struct swarm_machine *m = &s->machine[i];
		bool spare = i < SWARM_WORKERS && s->first_stage_of[i] == SKEP_NO_STAGE;
		void *memory = aligned_alloc(16, (skep_node_size(&s->plan, i) + 15) / 16 * 16);
		m->node = skep_node_init(memory, &s->plan, i, spare ? 0 : 1);
		m->batch.left = skep_log_share(&s->plan, i);
		swarm_send(s, i, 0, &(struct skep_event){.kind = SKEP_EVENT_START});
	}
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT};
	event.u.peer = (struct skep_peer){1, 1};
	if (unkind)
		swarm_send(s, SWARM_WORKERS, 20000000, &event);
	uint32_t machine;
	while (swarm_next(s, &machine, &event) && event.now < 600 * SWARM_SECOND)
		swarm_step(s, machine, &event);
	for (uint32_t i = 0; i < SWARM_MACHINES; i++) {
		struct swarm_machine *m = &s->machine[i];
		swarm_flush(m);
		s->log[i] = (struct skep_machine_log){.bytes = m->bytes,
			.count = m->count,
			.ended = true,
			.events = m->events,
			.digest = skep_node_digest(m->node)};
	}
}

static inline void swarm_finish(struct swarm *s)
{
	for (uint32_t i = 0; i < SWARM_MACHINES; i++) {
		free(s->machine[i].node);
		free(s->machine[i].bytes);
	}
	free(s->actions.item);
	free(s->post);
}

/* Where entry `number` (from 1) of a machine's log begins; its bytes end where the next begins. */
static inline size_t swarm_entry(const struct swarm *s, uint32_t machine, uint64_t number, struct skep_event *ret)
{
	struct skep_wire wire = skep_wire_reader(s->log[machine].bytes, s->log[machine].count);
	uint16_t mark;
	size_t at = 0;
	for (uint64_t i = 0; i < number && wire.ok; i++) {
		at = (size_t)(wire.at - s->log[machine].bytes);
		skep_log_read(&wire, ret, &mark);
	}
	assert(wire.ok);
	return at;
}
