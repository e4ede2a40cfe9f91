/* SPDX-License-Identifier: Apache-2.0
 *
 * post_mortem.h - what a process leaves behind when it is killed in the middle of anything: the end of its machine's log.
 *
 * Batches of the log go to rank 0 as frames, and those not sent, or under way, die with the process. So on one host every
 * process keeps its newest batches in memory that rank 0 sees too. An entry is there once a single store has counted it,
 * and it is counted after the machine's step and before what the step asked for is done: whatever a dead process has sent,
 * the event that caused it is known.
 */
#pragma once

#include <stdatomic.h>

#include "exec/transport/wire.h"

#define SKEP_POST_MORTEM_BATCHES 128u

struct skep_post_mortem {      /* of one process; all zero at the start */
	_Atomic uint64_t open; /* batches that were sent */
	struct {
		uint64_t events, digest; /* of the life; events 0: there is none */
	} end[2];                        /* by parity of the count of entries */
	struct {
		_Atomic uint64_t mark; /* entries so far << 16 | bytes used */
		uint8_t bytes[SKEP_FRAME_CONTENT];
	} batch[SKEP_POST_MORTEM_BATCHES];
};

/* The process: an entry was logged, after which its life has had so many events; the open batch was sent. NULL is fine. */
void skep_post_mortem_add(
	struct skep_post_mortem *post_mortem, const uint8_t *entry, uint32_t count, uint64_t events, uint64_t digest);
void skep_post_mortem_sent(struct skep_post_mortem *post_mortem);

/* Rank 0, when the process is dead: the batch after the first `had` ones; false: there is none, or it was overwritten. */
bool skep_post_mortem_batch(
	const struct skep_post_mortem *post_mortem, uint64_t had, const uint8_t **ret_bytes, uint32_t *ret_count);
/* events 0: no life was going on. */
void skep_post_mortem_end(const struct skep_post_mortem *post_mortem, uint64_t *ret_events, uint64_t *ret_digest);
