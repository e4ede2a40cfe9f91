/* SPDX-License-Identifier: Apache-2.0
 *
 * group.h - the state of a replica's process, shared by the files that make it up:
 *
 *   replicas.c   its life: the library, entries, timers, signals
 *   leading.c    what the one that leads does: it starts a server, renews its lease, and has states kept
 *   links.c      connections between replicas, and the library's streams over them
 *   sources.c    whether those at both ends of one read the same
 *   transfers.c  states over these connections
 *
 * All of it is one thread and the loop of libuv, but for the library's writes to the disk.
 */
#pragma once

#include <raft.h>
#include <raft/uv.h>
#include <sys/socket.h>
#include <uv.h>

#include "exec/keeping/arrivals.h"
#include "exec/keeping/lease.h"
#include "exec/replicas/kept.h"
#include "exec/replicas/replicas.h"
#include "exec/tcp/channel.h"
#include "exec/tcp/endpoint.h"
#include "exec/tcp/words.h"

#define SKEP_TURN_MS 20u /* between two looks at what is due */

enum transfer { TRANSFER_NONE, TRANSFER_OFFERED, TRANSFER_SENDS, TRANSFER_SENT, TRANSFER_ASKED, TRANSFER_RECEIVES };

struct group;
struct skep_quit_before;

struct link { /* a connection to another replica */
	struct link *next;
	struct group *group;
	bool out;      /* this side has made it */
	bool dead;     /* is freed when its handles are closed */
	uint32_t peer; /* number of the replica; 0: it has not proved it yet */
	uint32_t told; /* out: of the sources of this replica */
	bool refused;  /* the other side reads something else: nothing more is heard of it */
	uint64_t since_ns;
	struct skep_channel channel;
	uv_poll_t poll, pipe_poll;       /* of the channel's socket; of `pipe` */
	uint32_t handles;                /* of these that are not closed */
	struct raft_uv_connect *request; /* out: the library waits for it */
	raft_uv_connect_cb connected;
	int pipe;                      /* this end of the library's stream; -1: not there yet */
	uint8_t held[SKEP_RECORD_MAX]; /* [held_begin, held_end) has come and is to go into the pipe */
	size_t held_begin, held_end;
	/* One state at a time, asked for or offered by the side that has made the connection. */
	enum transfer transfer;
	struct skep_state_word word;
	struct skep_arrival *arrival;
	int file; /* -1: none */
	uint64_t at, retry_ns;
	bool complained; /* it was said that the other side does not keep a state */
};

struct offer { /* a state that the server has, and others are to have */
	uint32_t stage, version;
	uint64_t bytes;
	uint32_t has; /* bit I: replica I has it */
	bool proposed;
};

struct group {
	const struct skep_replicas_setup *setup;
	uint32_t count;
	char address[SKEP_REPLICAS_MAX + 1][SKEP_ENDPOINT_TEXT]; /* of each, by its number, for the others */
	struct sockaddr_storage place[SKEP_REPLICAS_MAX + 1];
	socklen_t place_bytes[SKEP_REPLICAS_MAX + 1];
	uint64_t run; /* in the replicas' certificates */
	SSL_CTX *host, *client;
	int listener, signals;
	const struct skep_quit_before *before; /* what signals did */
	uv_loop_t loop;
	uv_timer_t timer;
	uv_poll_t listener_poll, signals_poll;
	struct raft_uv_transport transport;
	raft_uv_accept_cb accept;
	struct raft_io io;
	struct raft_fsm fsm;
	struct raft raft;
	bool has_raft; /* it is to be closed */
	struct link *link;
	uint32_t differ; /* bit I: replica I reads something else */
	struct skep_kept kept;
	struct skep_checkpoint_folder states; /* as the last BEGIN says */

	/* The one that leads. */
	bool leads, caught_up, catches_up; /* caught_up: all that was agreed on before is in `kept` */
	struct raft_barrier barrier;
	pid_t server; /* 0: none */
	int lease;    /* to the server; -1: none */
	struct offer *offer;
	size_t offers;
	uint32_t missed;  /* the stage whose newest state is to be fetched; `stages`: none */
	uint32_t refused; /* bit I: replica I does not have it */
	/* The files of the newest version are read before a server is started. */
	uv_work_t read; /* of one, in another thread, ... */
	bool reads;     /* ... under way; what it finds is in: */
	bool is_whole;
	char read_path[SKEP_CHECKPOINT_PATH_BYTES];
	uint32_t read_version, whole; /* of that version the files of the first `whole` stages are whole, ... */
	bool damaged;                 /* ... and that of the next stage is not */

	uint64_t led_ns, over_ns; /* when a leader was there last; when OVER was heard, 0: not yet */
	raft_id said;             /* the leader that was told of last; 0: that there is none */
	bool over;                /* the server has ended well */
	bool ends;                /* the loop is to end, with: */
	int status;
	struct skep_diag why;
};

/* links.c */
bool skep_links_open(struct group *group, struct skep_diag *reterr);
void skep_links_close(struct group *group);
void skep_links_turn(struct group *group, uint64_t now_ns);
uint32_t skep_links_heard(const struct group *group); /* bit I: there is a connection to replica I */
bool skep_link_say(struct link *link, uint8_t type, const union skep_words *words); /* false: there is no room now */
void skep_links_look(struct group *group);                                          /* after something was said */

/* sources.c */
bool skep_sources_told(const struct link *link); /* the library's bytes may follow */
void skep_sources_tell(struct link *link);       /* as many as there is room for */
void skep_sources_record(
	struct link *link, const struct skep_record *record); /* SOURCE, or REFUSED of those that it told */

/* transfers.c */
bool skep_transfers_has(const struct group *group, uint32_t stage, uint32_t version, uint64_t bytes);
void skep_transfers_record(struct link *link, const struct skep_record *record);
bool skep_transfers_send(struct link *link); /* one piece, where there is one to send */
void skep_transfers_drop(struct link *link);
void skep_transfers_turn(struct group *group, uint64_t now_ns);

/* leading.c */
void skep_leading_turn(struct group *group, uint64_t now_ns);
void skep_leading_stop(struct group *group); /* its server ends */
void skep_leading_has(struct group *group, uint32_t peer, const struct skep_state_word *word);
void skep_leading_lacks(struct group *group, const struct skep_state_word *word); /* its file is gone */
void skep_leading_refused(struct group *group, uint32_t peer);
void skep_leading_fetched(struct group *group, const struct skep_state_word *word); /* and its sum is right */

/* replicas.c */
void skep_group_fail(struct group *group, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline uint32_t group_majority(const struct group *group)
{
	return group->count / 2 + 1;
}
