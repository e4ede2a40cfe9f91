/* SPDX-License-Identifier: Apache-2.0
 *
 * channel.h - records over one TCP connection, under TLS 1.3 or bare, without ever blocking.
 *
 * A record is a head of SKEP_RECORD_HEAD bytes (u32 length of the content, u8 type, 3 bytes of 0; little endian) and its
 * content. SKEP_RECORD_DATA is a piece of a tensor, of at most SKEP_RECORD_DATA_MAX bytes, and is read straight to where the
 * tensor shall be; any other record has at most SKEP_RECORD_MAX bytes and is handed over whole. What is kept true:
 *   - A channel holds at most SKEP_CHANNEL_ROOM bytes in each direction, whatever the other side announces.
 *   - The content of a record with a length or a head that no writer writes is not looked at: the channel ends.
 *   - With TLS no byte is looked at before the handshake has ended well.
 * Its user (mesh.c) decides what is sent next, so a channel takes a record only while it has room for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/tcp/tls.h"

#define SKEP_RECORD_HEAD 8u
#define SKEP_RECORD_MAX 16384u
#define SKEP_RECORD_DATA_MAX 65536u
#define SKEP_RECORD_DATA_TLS_MAX 16376u /* with its head one record of TLS */
#define SKEP_CHANNEL_ROOM (SKEP_RECORD_HEAD + SKEP_RECORD_MAX + 4096u)

enum skep_record_type {
	SKEP_RECORD_FRAME = 1, /* a frame without a tensor (wire.h) */
	SKEP_RECORD_BODY,      /* a frame whose tensor is what the next DATA records hold */
	SKEP_RECORD_DATA,
	SKEP_RECORD_PING,   /* nothing: this side lives */
	SKEP_RECORD_RELAY,  /* another record, to or from a process that this one does not reach (mesh.c) */
	SKEP_RECORD_MEMBER, /* and all that follow: words.h */
	SKEP_RECORD_DISCONNECT,
	SKEP_RECORD_EVICTED,
	SKEP_RECORD_HELLO,
	SKEP_RECORD_REFUSED,
	SKEP_RECORD_OFFER,
	SKEP_RECORD_FETCH,
	SKEP_RECORD_PIECE,
	SKEP_RECORD_READY,
	SKEP_RECORD_ADMITTED,
	SKEP_RECORD_PREPARED,
	SKEP_RECORD_GO,
	SKEP_RECORD_STATUS,
	SKEP_RECORD_PASSED,
	SKEP_RECORD_STATE,
	SKEP_RECORD_SOURCE,
	SKEP_RECORD_OVER,
	SKEP_RECORD_GATHERS,
	SKEP_RECORD_RAFT,   /* bytes of what two replicas agree on (exec/replicas/links.c) */
	SKEP_RECORD_DIAL,   /* inside RELAY: its sender cannot connect to its receiver, which is to connect to it */
	SKEP_RECORD_DIRECT, /* the same: what its sender says from now on goes over a connection (mesh_direct.c) */
	SKEP_RECORD_TYPES
};

struct skep_record {
	uint8_t type;
	const uint8_t *content; /* inside the channel, until its next call; NULL: DATA, which went where it belongs */
	uint32_t bytes;
};

/* Between a server and a guest: the one that has sent nothing for so long says that it lives. */
#define SKEP_CHANNEL_PING_NS 2000000000u

enum skep_channel_state {
	SKEP_CHANNEL_CONNECTING, /* TCP */
	SKEP_CHANNEL_SHAKING,    /* TLS */
	SKEP_CHANNEL_OPEN,
	SKEP_CHANNEL_CLOSED /* `why` says so; nothing more is sent or read */
};

struct skep_channel {
	enum skep_channel_state state;
	int fd;
	SSL *ssl; /* NULL: bare */
	bool wants_write;
	const char *why;
	char words[160];
	uint64_t heard_ns, spoke_ns; /* CLOCK_MONOTONIC, of the last bytes in and out */
	/* Where the content of DATA goes: sink_left bytes from `sink` on. A sink of NULL drops them. */
	uint8_t *sink;
	uint64_t sink_left;
	uint32_t data, data_left; /* of the DATA record that is being read */
	uint8_t *in;              /* [SKEP_CHANNEL_ROOM], [in_begin, in_end) is not read yet */
	size_t in_begin, in_end;
	uint8_t *out; /* [SKEP_CHANNEL_ROOM], [out_begin, out_end) is not sent yet; behind it `body` */
	size_t out_begin, out_end;
	const uint8_t *body; /* bare: a piece of a tensor that is sent from where it lies */
	size_t body_left;
};

/* Takes over a connected or connecting non-blocking socket, and closes it also where this fails. `context` NULL: bare.
 * `host`: whether this side took the connection in. False: no memory. */
bool skep_channel_open(struct skep_channel *ret, int fd, bool connected, SSL_CTX *context, bool host);
void skep_channel_close(struct skep_channel *channel); /* the memory, and the socket; a cleared one is fine */

/* To be called when epoll says that the socket can be written, or read while the handshake lasts: connects, shakes hands, sends
 * what is held. Afterwards wants_write says whether EPOLLOUT is of interest. */
void skep_channel_advance(struct skep_channel *channel);
/* The same of one whose handshake has to wait: connects, and no more. */
void skep_channel_look_for_answer(struct skep_channel *channel);

/* May a record of so many bytes of content be put now? */
bool skep_channel_has_room(const struct skep_channel *channel, size_t bytes);
/* A record whose content is first `bytes` of `content`, then `body_bytes` of `body`. A bare channel keeps `body` by its address
 * until it is sent (skep_channel_idle), TLS copies it. */
void skep_channel_put(struct skep_channel *channel, uint8_t type, const void *content, size_t bytes, const void *body,
	size_t body_bytes);
bool skep_channel_idle(const struct skep_channel *channel); /* all that was put has been handed to the kernel */

/* The next record; false: there is none yet, or the channel has closed. */
bool skep_channel_read(struct skep_channel *channel, struct skep_record *ret);

/* Of one that is open and not read yet: where the other side has ended it, and nothing lies here that it said before, it
 * closes. */
void skep_channel_look_for_end(struct skep_channel *channel);
/* The kernel asks the other one's whether it is there still, so that a line that is gone ends it. */
void skep_channel_keep_alive(struct skep_channel *channel, uint64_t silence_ns);

/* Ends it for a reason of ours. */
void skep_channel_fail(struct skep_channel *channel, const char *why);
