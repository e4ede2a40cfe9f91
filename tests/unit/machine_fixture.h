/* SPDX-License-Identifier: Apache-2.0
 *
 * machine_fixture.h - one machine with hand-made events, for the unit tests of core/: what goes in, what comes out.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/skep.h"
#include "tests/unit/give_arena.h"

#define FIXTURE_WORKERS_MAX 8
#define SECOND_NS 1000000000ull
#define EVERY_STAGE UINT16_MAX /* in a span: the last one of the plan */

struct fixture {
	struct skep_plan plan;
	struct skep_stage_plan stage[FIXTURE_WORKERS_MAX];
	uint32_t first_stage_of[FIXTURE_WORKERS_MAX];
	struct skep_node *node;
	struct skep_actions out;
	skep_time now;
	uint32_t next_slot;
};

/* The machine, of the plan as it is now; one that was there is gone. */
static inline void fixture_make(struct fixture *f, uint32_t index)
{
	free(f->node);
	f->node =
		skep_node_init(aligned_alloc(16, (skep_node_size(&f->plan, index) + 15) / 16 * 16), &f->plan, index, 1);
	f->out.capacity = skep_actions_limit(&f->plan);
	f->out.item = realloc(f->out.item, f->out.capacity * sizeof *f->out.item);
}

/* Worker i serves stage i modulo `stages`; `index` is the machine under test. */
static inline void fixture_init(struct fixture *f, uint32_t workers, uint32_t stages, uint32_t index)
{
	memset(f, 0, sizeof *f);
	f->plan = (struct skep_plan){.workers = workers,
		.stages = stages,
		.samples = 4,
		.microbatches = 4,
		.in_flight = 2,
		.rounds = 2,
		.seed = 1,
		.liveness.heartbeat_ns = SECOND_NS,
		.liveness.fence_after_ns = 5 * SECOND_NS,
		.until.target_loss_nano = INT64_MIN,
		.stage = f->stage,
		.first_stage_of = f->first_stage_of};
	for (uint32_t i = 0; i < stages; i++)
		f->stage[i] = (struct skep_stage_plan){
			.parameters = 100, .activation_bytes = i + 1 < stages ? 64 : 0, .state_bytes = 1200};
	for (uint32_t i = 0; i < workers; i++)
		f->first_stage_of[i] = i % stages;
	fixture_make(f, index);
	f->next_slot = 1;
}

static inline void fixture_finish(struct fixture *f)
{
	free(f->node);
	free(f->out.item);
}

static inline void fixture_event(struct fixture *f, struct skep_event event)
{
	struct skep_span *span = &event.u.message.span;
	bool message = event.kind == SKEP_EVENT_MESSAGE || event.kind == SKEP_EVENT_SEND_FAILED;
	if (message && span->last == EVERY_STAGE)
		span->last = (uint16_t)(skep_plan_vstages(&f->plan) - 1);
	event.now = f->now;
	skep_node_step(f->node, &f->plan, &event, &f->out);
	f->node = give_room(f->node);
}

static inline void fixture_start(struct fixture *f)
{
	fixture_event(f, (struct skep_event){.kind = SKEP_EVENT_START});
}

static inline void fixture_timer(struct fixture *f, skep_time now)
{
	f->now = now;
	fixture_event(f, (struct skep_event){.kind = SKEP_EVENT_TIMER});
}

/* A message between machines of epoch 1, empty but for kind, addresses and round. */
static inline struct skep_message fixture_message(
	enum skep_message_kind kind, uint32_t from, uint32_t to, uint32_t round)
{
	struct skep_message message;
	memset(&message, 0, sizeof message);
	message.kind = (uint8_t)kind;
	message.from = (struct skep_peer){from, 1};
	message.to = (struct skep_peer){to, 1};
	message.round = round;
	bool spans = kind == SKEP_MESSAGE_GRANT || kind == SKEP_MESSAGE_FORWARD || kind == SKEP_MESSAGE_BACKWARD ||
	             kind == SKEP_MESSAGE_OUTPUT || kind == SKEP_MESSAGE_INPUT;
	message.span.last = spans ? EVERY_STAGE : 0;
	return message;
}

static inline struct skep_buf fixture_buf(struct fixture *f)
{
	return (struct skep_buf){f->next_slot++, 1};
}

static inline void fixture_deliver(struct fixture *f, struct skep_message message)
{
	struct skep_event event = {.kind = SKEP_EVENT_MESSAGE};
	event.u.message = message;
	fixture_event(f, event);
}

/* The n-th action of this kind of the last step (from 0), or NULL. `sub`: message, op or note kind; 0 for any. */
static inline const struct skep_action *fixture_find(
	const struct fixture *f, enum skep_action_kind kind, int sub, uint32_t n)
{
	for (uint32_t i = 0; i < f->out.count; i++) {
		const struct skep_action *a = &f->out.item[i];
		int what = a->kind == SKEP_ACTION_SEND   ? a->u.send.kind
		           : a->kind == SKEP_ACTION_RUN  ? a->u.run.kind
		           : a->kind == SKEP_ACTION_NOTE ? a->u.note.kind
		                                         : 0;
		if (a->kind == kind && (sub == 0 || what == sub) && n-- == 0)
			return a;
	}
	return NULL;
}

/* How many messages of this kind the last step sent. */
static inline uint32_t fixture_count_sent(const struct fixture *f, enum skep_message_kind kind)
{
	uint32_t n = 0;
	while (fixture_find(f, SKEP_ACTION_SEND, kind, n))
		n++;
	return n;
}

static inline const struct skep_message *fixture_sent(const struct fixture *f, enum skep_message_kind kind)
{
	const struct skep_action *a = fixture_find(f, SKEP_ACTION_SEND, kind, 0);
	return a ? &a->u.send : NULL;
}

static inline const struct skep_op *fixture_ran(const struct fixture *f, enum skep_op_kind kind)
{
	const struct skep_action *a = fixture_find(f, SKEP_ACTION_RUN, kind, 0);
	return a ? &a->u.run : NULL;
}

static inline const struct skep_note *fixture_noted(const struct fixture *f, enum skep_note_kind kind)
{
	const struct skep_action *a = fixture_find(f, SKEP_ACTION_NOTE, kind, 0);
	return a ? &a->u.note : NULL;
}

static inline bool fixture_released(const struct fixture *f, struct skep_buf buf)
{
	for (uint32_t i = 0; i < f->out.count; i++) {
		const struct skep_action *a = &f->out.item[i];
		if (a->kind == SKEP_ACTION_RELEASE && a->u.release.slot == buf.slot &&
			a->u.release.generation == buf.generation)
			return true;
	}
	return false;
}

static inline void fixture_done(struct fixture *f, struct skep_op op, struct skep_buf out, struct skep_buf stash)
{
	struct skep_event event = {.kind = SKEP_EVENT_OP_DONE};
	event.u.done.op = op;
	event.u.done.out = out;
	event.u.done.stash = stash;
	event.u.done.loss_nano = 500;
	fixture_event(f, event);
}
