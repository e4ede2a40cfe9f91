/* SPDX-License-Identifier: Apache-2.0
 *
 * worker_fixture.h - what the tests of a worker's machine share. Workers 0..5 in three stages; the machine under test is
 * worker 1 (stage 1: it hears from 0 and 3, sends to 2 and 5) unless said otherwise.
 */
#pragma once

#include "machine_fixture.h"

#define DIRECTORY 6
static const struct skep_buf none = {0, 0};

static inline void begin(struct fixture *f, uint32_t index)
{
	fixture_init(f, 6, 3, index);
	fixture_start(f);
}

/* Microbatch comes from worker 0, is computed and sent on; returns what was sent. */
static inline struct skep_message bring_through(struct fixture *f, uint32_t round, uint32_t microbatch)
{
	struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, round);
	forward.microbatch = microbatch;
	forward.payload = fixture_buf(f);
	fixture_deliver(f, forward);
	const struct skep_op *op = fixture_ran(f, SKEP_OP_FORWARD);
	assert_non_null(op);
	assert_int_equal(op->in.slot, forward.payload.slot);
	fixture_done(f, *op, fixture_buf(f), fixture_buf(f));
	const struct skep_message *sent = fixture_sent(f, SKEP_MESSAGE_FORWARD);
	assert_non_null(sent);
	return *sent;
}

static inline struct skep_message answer(struct fixture *f, struct skep_message sent, enum skep_message_kind kind)
{
	struct skep_message back = fixture_message(kind, sent.to.index, 1, sent.round);
	back.microbatch = sent.microbatch;
	if (kind == SKEP_MESSAGE_BACKWARD)
		back.payload = fixture_buf(f);
	return back;
}

static inline struct skep_message peer_news(uint32_t who, uint32_t epoch, uint16_t stage, bool alive)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_PEER, DIRECTORY, 1, 0);
	message.u.peer.who = (struct skep_peer){who, epoch};
	message.u.peer.alive = alive;
	message.stage = stage;
	return message;
}

static inline struct skep_message reduce(uint32_t round, uint32_t attempt, uint32_t rank, uint32_t size, uint32_t next)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_REDUCE, DIRECTORY, 1, round);
	message.attempt = attempt;
	message.u.reduce.rank = rank;
	message.u.reduce.size = size;
	message.u.reduce.next = (struct skep_peer){next, 1};
	return message;
}
