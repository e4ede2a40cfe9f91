/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h - batches what a worker reports and brings it to the recorder, which rank 0 alone may call.
 *
 * A worker writes its notes, operations, what it has sent, and final figures into a batch that fits in one frame. The frame
 * goes to rank 0 when it is full, before the worker's next TALLY, OUTER_UPDATE or word of a validation, and when it has
 * waited for a while; frames of one sender keep their order, so when the directory closes a round it has heard all that the
 * members reported about it.
 */
#pragma once

#include "core/record.h"
#include "exec/transport/wire.h"

struct skep_rows {
	uint8_t bytes[SKEP_FRAME_CONTENT];
	uint32_t count;   /* bytes used */
	skep_time oldest; /* when the first row came in */
};

/* Each adds a row; false: the batch is full and has to be emptied first. */
bool skep_rows_note(struct skep_rows *rows, skep_time now, struct skep_peer who, const struct skep_note *note);
bool skep_rows_op(struct skep_rows *rows, skep_time now, const struct skep_op_span *span);
/* What the sender's process has sent there since it began, so that a row that is lost is made good by the next one. */
bool skep_rows_link(struct skep_rows *rows, skep_time now, const struct skep_link_use *use);
bool skep_rows_worker(struct skep_rows *rows, skep_time now, const struct skep_worker_use *use);

/* Passes a batch on, row by row; a NULL function is skipped. `ret_events` grows by the events of worker rows. False: not
 * a batch; what came before the fault has been passed on. */
bool skep_rows_replay(const uint8_t *bytes, uint32_t count, const struct skep_recorder *recorder, uint64_t *ret_events);
