/* SPDX-License-Identifier: Apache-2.0
 *
 * transport.h - moves frames between the processes of a run, and the tensors that belong to them.
 *
 * A table of functions, so that the loop runs over MPI, over threads in a test, and over what comes later, without
 * knowing. What every transport keeps true:
 *   - Frames from one rank to another arrive in the order in which they were sent, except that one with a tensor arrives
 *     when its tensor has, so it may be overtaken.
 *   - A tensor is never handed over with another frame than its own, nor with a size that its frame does not say.
 *   - Nothing here blocks. A peer that is slow costs memory, not time.
 *   - One thread uses it, but for wake().
 */
#pragma once

#include "exec/transport/wire.h"

enum skep_transport_event_kind {
	SKEP_TRANSPORT_ARRIVED = 1, /* frame; if frame.body > 0 its message's payload is the landing's buffer, filled */
	SKEP_TRANSPORT_SENT,        /* frame: a message with a tensor, whose buffer belongs to the caller again */
	SKEP_TRANSPORT_SPOILT, /* frame: a message whose tensor was not as announced; the landing's buffer is useless */
	SKEP_TRANSPORT_UNREADABLE, /* frame.type: enum skep_frame_fault of a frame of which nothing else is known */
	SKEP_TRANSPORT_BROKEN,     /* reason: nothing will move any more */
	/* Only from a transport that survives the death of a peer: */
	SKEP_TRANSPORT_GONE, /* the peer's process is dead for good. What was sent to it is lost, and said to be SENT */
	SKEP_TRANSPORT_NEW,  /* a process is there as this peer, which was not there at the start */
	SKEP_TRANSPORT_LOST  /* frame: its tensor will not come, the sender died; the landing's buffer is useless */
};

struct skep_transport_event {
	enum skep_transport_event_kind kind;
	uint32_t peer; /* rank */
	struct skep_frame frame;
	const char *reason; /* BROKEN */
};

/* Where the tensor of an incoming frame goes: memory of frame->body bytes and its handle. NULL refuses the frame; it is
 * then drawn off and not heard of again. */
struct skep_landing {
	void *context;
	void *(*memory)(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret);
};

/* Frames that a loop takes from `poll` before timers, ended operations and signals have their turn. */
#define SKEP_TRANSPORT_FRAMES_A_TURN 64u

struct skep_transport {
	void *self;
	uint32_t rank, ranks; /* ranks: places for processes; all that are not there at the start come as NEW */
	bool survives;        /* the death of a peer; if not, it ends the run by means of its own */

	/* To another rank. `body`: frame->body bytes that stay untouched until SENT; the frame itself is copied. */
	void (*send)(void *self, uint32_t peer, const struct skep_frame *frame, const void *body);

	/* The next thing that has happened; false: nothing now. Texts inside the frame live until the next call. */
	bool (*poll)(void *self, const struct skep_landing *landing, struct skep_transport_event *ret);

	/* Sends and receives under way that only go on while the process polls. */
	uint32_t (*pending)(const void *self);

	/* After a poll that found nothing: sleeps until something may have come or another thread calls wake, for
	 * most_ns at most. */
	void (*wait)(void *self, uint64_t most_ns);

	/* From any thread: ends the present or the next wait. */
	void (*wake)(void *self);

	/* The caller has learnt elsewhere that the peer is dead. NULL in a transport that does not survive a death. */
	void (*bury)(void *self, uint32_t peer);
};
