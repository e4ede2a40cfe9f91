/* SPDX-License-Identifier: Apache-2.0
 *
 * directory_fixture.h - what the tests of the directory's machine share. Four workers in two stages: 0 and 2 own, 1 and 3
 * finish; four microbatches a round, two rounds.
 */
#pragma once

#include "machine_fixture.h"

#define DIRECTORY 4

static inline void begin(struct fixture *f)
{
	fixture_init(f, 4, 2, DIRECTORY);
	fixture_start(f);
}

static inline struct skep_message from_worker(enum skep_message_kind kind, uint32_t worker, uint32_t round)
{
	return fixture_message(kind, worker, DIRECTORY, round);
}

/* A microbatch of round 0 comes back, or was abandoned. */
static inline void finish(struct fixture *f, uint32_t owner, uint32_t microbatch, bool ok)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_FINISHED, owner, 0);
	message.microbatch = microbatch;
	message.u.finished.ok = ok;
	fixture_deliver(f, message);
}

/* The worker tells of the microbatches in `bits` of round 0. */
static inline void tally(struct fixture *f, uint32_t worker, uint32_t attempt, uint64_t bits)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_TALLY, worker, 0);
	message.attempt = attempt;
	for (uint16_t i = 0; i < 64; i++) {
		if (bits >> i & 1)
			message.u.tally.offset[message.u.tally.used++] = i;
	}
	message.u.tally.count = message.u.tally.used;
	message.u.tally.loss_nano = 100 * message.u.tally.count;
	fixture_deliver(f, message);
}

static inline void suspect(struct fixture *f, uint32_t worker)
{
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT};
	event.u.peer = (struct skep_peer){worker, 1};
	fixture_event(f, event);
}

static inline void join(struct fixture *f, uint32_t worker, uint32_t epoch, skep_time started_ns)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_JOIN, worker, 0);
	message.from.epoch = epoch;
	message.u.join.started_ns = started_ns;
	fixture_deliver(f, message);
}

/* The worker's device has made room for its stage. */
static inline void entered(struct fixture *f, uint32_t worker, uint32_t epoch)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_ENTERED, worker, 0);
	message.from.epoch = epoch;
	fixture_deliver(f, message);
}
