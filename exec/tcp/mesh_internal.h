/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh_internal.h - the state of a mesh, shared by the files that make it up:
 *
 *   mesh.c          its life, timers, what epoll says
 *   mesh_members.c  who is a member, connections to members, and what becomes of one whose connection ends
 *   mesh_direct.c   another attempt at a connection to a peer that is relayed
 *   mesh_guests.c   connections that have no rank yet
 *   mesh_send.c     queues, and what is put into a channel next
 *   mesh_receive.c  records that have come
 */
#pragma once

#include "exec/tcp/evict.h"
#include "exec/tcp/mesh.h"

#define SKEP_MESH_PINGS 5u /* in the time after which silence is an end */
#define SKEP_RELAY_HEAD 5u /* of a RELAY record: the other process, the type of the record inside */
#define SKEP_RELAY_WINDOW (4u << 20)

struct item { /* one record, or a frame and its tensor */
	struct item *next;
	struct skep_frame frame; /* of a tensor, for SENT */
	const uint8_t *body;     /* NULL: a record alone */
	uint64_t at;             /* bytes of the tensor that were put */
	bool begun;              /* its frame was put */
	uint8_t type;
	uint32_t bytes;
	uint32_t relayed_from; /* at rank 0: whose record it is; 0: no other's */
	uint8_t content[];
};

struct queue {
	struct item *first, *last;
};

enum link_kind { LINK_PEER, LINK_GUEST, LINK_LISTENER, LINK_WAKE };

struct link { /* what epoll watches */
	enum link_kind kind;
	uint32_t id; /* rank, or place among the guests; SKEP_NO_INDEX: shaking hands, its rank is not known */
	struct skep_channel channel;
	bool writes;  /* EPOLLOUT is asked for */
	bool waited;  /* EPOLLIN is not */
	bool ready;   /* in mesh->ready: there may be more to read */
	bool dead;    /* to be freed when no event can name it any more */
	bool closing; /* a guest that is closed once what it was told has left */
	bool trusted;
	/* Nothing is read: elsewhere than at rank 0 it has proved `rank`, and rank 0 has not named it yet; or its peer speaks
	 * through rank 0 still (mesh_direct.c). */
	bool waits;
	bool held; /* it is being made, and its handshake waits for what becomes of the connection that its peer makes */
	uint32_t rank;
	uint64_t since_ns;
	char address[SKEP_NAME_MAX];
	struct link *next_ready, *next_dead;
};

struct incoming { /* a tensor on its way in */
	struct skep_frame frame;
	uint8_t *memory; /* NULL: refused */
	uint64_t left;   /* 0: there is none */
	uint64_t at;
};

enum direct { /* of a peer that is relayed: a connection beside that way */
	DIRECT_NOT,
	DIRECT_DIALS, /* it is being made here, */
	DIRECT_MADE,  /* and was: the other one is to say DIRECT */
	DIRECT_SAYS,  /* both have it: this process is to say DIRECT, */
	DIRECT_SAID   /* and has: the other one is to */
};

struct peer {
	bool there;                  /* a member: neither gone, nor not there yet */
	uint32_t at;                 /* ... in mesh->member */
	bool gone;                   /* and has been */
	bool last;                   /* has said LAST: its end is no loss */
	bool broken;                 /* its connection has ended; rank 0 was told */
	bool relayed;                /* what this process says to it goes through rank 0 */
	bool from_root;              /* and what it says comes from there */
	bool switched;               /* not any more */
	uint8_t direct;              /* enum direct */
	struct link *spare;          /* that connection, until something of the peer goes over it */
	uint64_t again_ns, pause_ns; /* when this process tries next, and the pause before it */
	bool asked; /* it was asked to connect to this process, and neither has nor is relayed yet, nor has said that it cannot */
	bool cannot; /* of a lower rank: it was asked to, and has said so */
	struct link *link;
	struct queue urgent, tensors;
	struct incoming incoming;
	uint64_t dial_until_ns; /* a connection to it is being made until then */
	struct skep_member member;
	uint64_t relay_held, relay_passed; /* at rank 0: of its records that wait here; that it was not told of yet */
	uint32_t disconnects;              /* at rank 0: how often it has complained of another one */
	uint32_t relay_to;                 /* at rank 0: whom the newest of its records was for; 0: there was none */
};

struct news {
	struct news *next;
	struct skep_transport_event event;
};

struct skep_mesh {
	struct skep_mesh_setup setup;
	int epoll, wake;
	struct link *listener, *wakeup;
	struct peer *peer; /* [ranks] */
	uint32_t *member;  /* [members] the ranks of those that are there: of most ranks no process has come */
	uint32_t members;
	struct link **guest; /* [SKEP_GUESTS_MAX] on rank 0; else connections that shake hands */
	struct link *ready, **ready_end, *graveyard;
	struct news *news, **news_end;
	uint64_t tick_ns;
	uint32_t unlooked; /* records since epoll was asked last */
	uint32_t *relayed; /* [ranks] peers that rank 0 passes on for this process */
	uint32_t relays, relay_turn;
	uint64_t passing; /* what rank 0 was given to pass on and has not said that it has */
	uint32_t open_tensors, queued_tensors;
	struct skep_disconnect *disconnect; /* [disconnects], grown by skep_grow() */
	uint32_t disconnects;
	uint64_t disconnected_ns;
	struct skep_mesh_counts counts;
	bool holds_last;                    /* until the next poll, by which LAST is in all queues */
	const char *broken;                 /* why nothing will move any more */
	char parted[SKEP_REASON_MAX];       /* why the connection to rank 0 has ended; "": it has not */
	const struct skep_landing *landing; /* of the poll at hand */
};

static inline bool skep_mesh_is_root(const struct skep_mesh *mesh)
{
	return mesh->setup.rank == 0;
}

/* What a record that waits at rank 0 counts, to both sides the same: its bytes, and something for the memory around them. */
static inline uint64_t skep_relay_cost(size_t bytes)
{
	return bytes + 256;
}

/* So much of one sender may wait at rank 0: two windows, the record that closes the second one, and for each other process a
 * request to connect, and word that there is a connection, which look at no window. Who sends more is sent away. */
static inline uint64_t skep_relay_most(uint32_t ranks)
{
	return 2 * SKEP_RELAY_WINDOW + skep_relay_cost(SKEP_RECORD_MAX) + 2 * ranks * skep_relay_cost(SKEP_RELAY_HEAD);
}

/* mesh.c */
struct link *skep_mesh_watch(struct skep_mesh *mesh, enum link_kind kind, uint32_t id, struct skep_channel *channel);
void skep_mesh_rewatch(struct skep_mesh *mesh, struct link *link); /* after its channel wants something else */
void skep_mesh_bury_link(struct skep_mesh *mesh, struct link *link);
void skep_mesh_is_ready(struct skep_mesh *mesh, struct link *link); /* it may have something to read */
void skep_mesh_tell_news(struct skep_mesh *mesh, const struct skep_transport_event *event);

/* mesh_members.c */
void skep_mesh_lost(struct skep_mesh *mesh, uint32_t rank, const char *why); /* its connection has ended */
void skep_mesh_drop(struct skep_mesh *mesh, uint32_t rank);                  /* it is gone: nothing is kept for it */
void skep_mesh_disconnected(struct skep_mesh *mesh, uint32_t by, uint32_t about); /* rank 0 */
void skep_mesh_relay_from_now(struct skep_mesh *mesh, uint32_t rank);
void skep_mesh_relay_no_more(struct skep_mesh *mesh, uint32_t rank);
void skep_mesh_ask_to_dial(struct skep_mesh *mesh, uint32_t rank);        /* through rank 0 */
struct link *skep_mesh_begin_dial(struct skep_mesh *mesh, uint32_t rank); /* NULL: it cannot be */
/* Is the other end of a connection that was made here the process that it shall be? Bare, this one says who it is. */
bool skep_mesh_prove(struct skep_mesh *mesh, struct link *link);
void skep_mesh_unreached(struct skep_mesh *mesh, uint32_t rank); /* this process cannot connect to it */
void skep_mesh_tick_dial(struct skep_mesh *mesh, uint32_t rank, uint64_t now_ns); /* a connection to it is being made */
void skep_mesh_dial_back(
	struct skep_mesh *mesh, uint32_t rank); /* it has not connected to this process, and asks for that */
void skep_mesh_dialled(struct skep_mesh *mesh, struct link *link); /* a connection that this process makes is there */
/* Rank 0: evicts members until none is left that another one does not hear, once all who may complain have had the time to. */
void skep_mesh_judge(struct skep_mesh *mesh, uint64_t now_ns);

/* mesh_direct.c; of peers that are relayed */
void skep_mesh_direct_later(struct peer *peer); /* it is from now on */
void skep_mesh_direct_tick(struct skep_mesh *mesh, uint32_t rank, uint64_t now_ns);
void skep_mesh_direct_dial(struct skep_mesh *mesh, uint32_t rank);
void skep_mesh_direct_made(struct skep_mesh *mesh, struct link *link); /* peer->spare has ended its handshake */
void skep_mesh_direct_failed(struct skep_mesh *mesh, uint32_t rank);   /* peer->spare is of no use */
/* It has connected to this process. False: that is no use. */
bool skep_mesh_direct_taken(struct skep_mesh *mesh, uint32_t rank, struct link *link);
void skep_mesh_direct_said(struct skep_mesh *mesh, uint32_t rank);  /* DIRECT is in the channel of rank 0 */
bool skep_mesh_direct_heard(struct skep_mesh *mesh, uint32_t rank); /* and has come; false: it may not */

/* mesh_guests.c */
void skep_mesh_accept(struct skep_mesh *mesh);
void skep_mesh_guests_named(struct skep_mesh *mesh, uint32_t rank); /* rank 0 says that this is a member */
void skep_mesh_guest_event(struct skep_mesh *mesh, struct link *link);
void skep_mesh_guests_tick(struct skep_mesh *mesh, uint64_t now_ns);

/* mesh_send.c */
void skep_mesh_send(void *self, uint32_t peer, const struct skep_frame *frame, const void *body);
void skep_mesh_queue(
	struct skep_mesh *mesh, uint32_t rank, bool tensors, uint8_t type, const void *content, size_t bytes);
void skep_mesh_pump(struct skep_mesh *mesh, uint32_t rank);
/* Rank 0: as skep_mesh_queue, of a record of `from`, which is told once the record has been passed on. */
void skep_mesh_queue_relayed(
	struct skep_mesh *mesh, uint32_t from, uint32_t to, bool tensors, const void *content, size_t bytes);
void skep_mesh_drain(struct skep_mesh *mesh, struct peer *peer, uint32_t rank); /* its queues, without sending */

/* mesh_receive.c */
void skep_mesh_lose_incoming(struct skep_mesh *mesh, uint32_t rank);
/* True: *ret is what the record says to the loop. */
bool skep_mesh_take(
	struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record, struct skep_transport_event *ret);
