/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - what a machine was told, event by event, so that it can be told again (replay.h).
 *
 * An entry is the event as wire.h writes it and two bytes of the machine's digest after it, which name the first
 * event that goes another way. Buffers enter no decision: an entry says whether there was one. Of an ended
 * operation it says which; the machine itself has asked for the rest.
 *
 * A log may hold several lives of its machine: each begins with START and closes with an end, which says how many
 * events it had and with which digest. A life without an end was cut off: its process died before it could write
 * one. An end of no events, without START: a process died before its life began, so the next one is not the
 * machine's first.
 */
#pragma once

#include "exec/transport/wire.h"

/* Of all machines of a run together; then the log ends, and the run goes on without. */
#define SKEP_LOG_RUN_BYTES (64u << 20)
#define SKEP_LOG_ENTRY_MAX 128u

struct skep_log { /* a batch that fits in one frame */
	uint8_t bytes[SKEP_FRAME_CONTENT];
	uint32_t count;   /* bytes used */
	skep_time oldest; /* when the first entry came in */
	uint64_t left;    /* bytes that this machine may still log */
	uint32_t entry;   /* bytes of the newest entry; 0: it found no room in the share */
};

/* A machine's share of SKEP_LOG_RUN_BYTES: the directory hears of each microbatch once, the workers of each stage four times. */
uint64_t skep_log_share(const struct skep_plan *plan, uint32_t machine);

/* Adds an entry; false: the batch is full and has to be emptied first. Does nothing once `left` has run out. */
bool skep_log_add(struct skep_log *log, const struct skep_event *event, uint64_t digest);

/* Closes a life; false as above. */
bool skep_log_end(struct skep_log *log, skep_time now, uint64_t events, uint64_t digest);

/* Is the next entry the end of a life? Then it is read. */
bool skep_log_read_end(struct skep_wire *wire, uint64_t *ret_events, uint64_t *ret_digest);

/* The next entry; wire->ok is false where there is none. *ret_mark: the low 16 bits of the digest. */
void skep_log_read(struct skep_wire *wire, struct skep_event *ret, uint16_t *ret_mark);
