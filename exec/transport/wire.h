/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h - what the bytes between two processes mean.
 *
 * A frame is a head of fixed size and a content that fits in one eager message; a tensor that belongs to it travels beside
 * it (transport.h). Everything is written field by field, little endian, so processes of different compilers or machines
 * agree. A frame ends its head with the sum of all else in it (base/sum.h), and says that of its tensor. One description of
 * each record serves both directions: a cursor either writes the field or reads it, so the two
 * cannot drift apart. A reader accepts exactly what a writer could have written and nothing else; whatever the bytes are,
 * it reads no byte outside them.
 */
#pragma once

#include "core/skep.h"

struct skep_wire { /* a cursor; `at` is not written through while reading */
	uint8_t *at, *end;
	bool reading;
	bool ok; /* false after the first field that did not fit or cannot be */
};

struct skep_wire skep_wire_writer(void *bytes, size_t size);
struct skep_wire skep_wire_reader(const void *bytes, size_t size);

void skep_wire_u8(struct skep_wire *wire, uint8_t *value);
void skep_wire_u16(struct skep_wire *wire, uint16_t *value);
void skep_wire_u32(struct skep_wire *wire, uint32_t *value);
void skep_wire_u64(struct skep_wire *wire, uint64_t *value);
void skep_wire_i64(struct skep_wire *wire, int64_t *value);
void skep_wire_bool(struct skep_wire *wire, bool *value);
void skep_wire_peer(struct skep_wire *wire, struct skep_peer *value);
void skep_wire_message(struct skep_wire *wire, struct skep_message *message); /* the payload's handle stays at home */
/* For a log: of buffers only whether there is one, {1, 1} when read; of an ended operation only its id. */
void skep_wire_event(struct skep_wire *wire, struct skep_event *event);

enum skep_frame_type {
	SKEP_FRAME_MESSAGE = 1, /* a message of the core; `body` bytes of payload travel beside it */
	SKEP_FRAME_FLOW,        /* to rank 0: I have sent message `number`, shape it */
	SKEP_FRAME_RELEASE,     /* by rank 0: message `number` of u.release.source has arrived */
	SKEP_FRAME_ROWS,        /* to rank 0: a batch of rows (rows.h) */
	SKEP_FRAME_LOG,         /* to rank 0: a batch of log entries (log.h) */
	SKEP_FRAME_FAULT,       /* to rank 0: I cannot go on, the text says why */
	SKEP_FRAME_HALT,        /* by rank 0: end now */
	SKEP_FRAME_LAST,        /* nothing follows from this rank */
	SKEP_FRAME_SLOT,        /* u.slot: its rank runs its machine from now on; by rank 0, and by the rank itself */
	SKEP_FRAME_GONE,        /* by rank 0: the process u.slot.rank is dead */
	SKEP_FRAME_END,         /* by rank 0: the run is over, no worker is started any more */
	SKEP_FRAME_PROBE,       /* an order or a result of a measurement (probe_rank.h), to and from rank 0 */
	SKEP_FRAME_HEARD,       /* the numbers of messages whose tensors have come, each of 8 bytes */
	SKEP_FRAME_AGAIN,       /* the tensor of your message `number` was damaged when it came */
	SKEP_FRAME_LOCKSTEP,    /* between planes (plane.h) */
	SKEP_FRAME_TYPES
};

/* Head and content together; under the smallest eager limit of the usual transports (4 KiB with their own header). */
#define SKEP_FRAME_MAX 3840u
#define SKEP_FRAME_HEAD 52u
#define SKEP_FRAME_CONTENT (SKEP_FRAME_MAX - SKEP_FRAME_HEAD)

struct skep_frame {
	uint8_t type;
	uint64_t number;   /* MESSAGE, FLOW, RELEASE, AGAIN: which of a sender's messages, from 1; else 0 */
	uint64_t body;     /* MESSAGE: bytes that travel beside it; else 0 */
	uint64_t body_sum; /* of these, by skep_sum(); 0 where its sender gives none */
	union {
		struct skep_message message;
		struct {
			uint32_t source, destination; /* machine indices */
			uint64_t bytes;
			skep_time sent;
		} flow;
		struct {
			uint32_t source; /* machine index */
		} release;
		struct {
			uint32_t machine, rank, life; /* GONE: the rank alone */
		} slot;
		struct
		{ /* ROWS, LOG, FAULT, PROBE, HEARD and LOCKSTEP: not copied; the caller's when encoding, inside the bytes when
		     decoded */
			const uint8_t *bytes;
			uint32_t count;
		} text;
	} u;
};

enum skep_frame_fault {
	SKEP_FRAME_GOOD,
	SKEP_FRAME_BAD_SIZE,    /* shorter than a head, or other than its head says */
	SKEP_FRAME_BAD_MAGIC,   /* not ours */
	SKEP_FRAME_BAD_VERSION, /* another version of this program */
	SKEP_FRAME_BAD_RUN,     /* of another run */
	SKEP_FRAME_BAD_SUM,     /* some bit of it has changed */
	SKEP_FRAME_BAD_TYPE,
	SKEP_FRAME_BAD_CONTENT, /* a field that no writer writes */
	SKEP_FRAME_FAULTS
};
const char *skep_frame_fault_text(enum skep_frame_fault fault);

/* `run` names the run; frames of others are refused. Returns the bytes written, at most SKEP_FRAME_MAX. */
size_t skep_frame_encode(const struct skep_frame *frame, uint64_t run, uint8_t bytes[SKEP_FRAME_MAX]);
enum skep_frame_fault skep_frame_decode(const uint8_t *bytes, size_t size, uint64_t run, struct skep_frame *ret);
