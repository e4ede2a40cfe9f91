/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - what a machine was told, event by event, so that it can be told again (replay.h).
 *
 * An entry is the event as wire.h writes it and two bytes of the machine's digest after it, which name the first event
 * that goes another way. Buffers enter no decision: an entry says whether there was one. Of an ended operation it says
 * which; the machine itself has asked for the rest.
 */
#ifndef SKEP_EXEC_LOG_H
#define SKEP_EXEC_LOG_H

#include "exec/wire.h"

/* Of all machines of a run together; then the log ends, and the run goes on without. */
#define SKEP_LOG_RUN_BYTES (64u << 20)
#define SKEP_LOG_ENTRY_MAX 128u

struct skep_log { /* a batch that fits in one frame */
	uint8_t bytes[SKEP_FRAME_CONTENT];
	uint32_t count;   /* bytes used */
	skep_time oldest; /* when the first entry came in */
	uint64_t left;    /* bytes that this machine may still log */
};

/* A machine's share of SKEP_LOG_RUN_BYTES: the directory hears of each microbatch once, the workers of each stage four times. */
uint64_t skep_log_share(const struct skep_plan *plan, uint32_t machine);

/* Adds an entry; false: the batch is full and has to be emptied first. Does nothing once `left` has run out. */
bool skep_log_add(struct skep_log *log, const struct skep_event *event, uint64_t digest);

/* The next entry; wire->ok is false where there is none. *ret_mark: the low 16 bits of the digest. */
void skep_log_read(struct skep_wire *wire, struct skep_event *ret, uint16_t *ret_mark);

#endif
