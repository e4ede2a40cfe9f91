/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh.h - the transport of `skep serve` and `skep join`: a connection for each pair of processes, over TCP and TLS 1.3.
 *
 * Rank 0 is `serve`; it says who is a member, and its word counts. Each process has a connection to rank 0 from its admission
 * on (words.h). Of two others the one with the higher rank connects to the lower one, and where it cannot, rank 0 hands on its
 * request that the lower one connect to it; both show certificates of the run's authority, in which their ranks stand. Who
 * asked first decides. Its own attempt goes on while the other one tries, but is held before its handshake, so that there are
 * never two connections; where the other one says that it cannot, its own attempt comes to its end, and if that fails rank 0
 * passes on what they say. The other one waits until a connection, or a record through rank 0, is there.
 * What is kept true:
 *   - Frames without a tensor go first; a tensor travels in pieces between which they pass. So a tensor delays a frame by what
 *     the kernel holds and no more, and a frame with a tensor may be overtaken (transport.h).
 *   - Ranks are never used twice. A process whose connection to rank 0 ends or falls silent is GONE for all.
 *   - Two processes whose connection breaks while both are members say so to rank 0, since what was under way between them is
 *     lost and the core counts on it: one of the two is evicted (evict.h), and may come back as a new process.
 *   - Two neither of which can connect to the other are connected by rank 0, which passes their records on. They try again now
 *     and then, and go over to the connection that comes of it (mesh_direct.c).
 *   - No process is heard before its handshake has ended. Connections that have not proved who they are: at most SKEP_GUESTS_MAX,
 *     each for at most SKEP_HANDSHAKE_S seconds until its first record is there; of more the oldest have to go.
 */
#pragma once

#include "base/diag.h"
#include "exec/tcp/words.h"
#include "exec/transport/rejects.h"
#include "exec/transport/transport.h"

#define SKEP_GUESTS_MAX 256u
#define SKEP_HANDSHAKE_S 10u

struct skep_mesh;

/* What rank 0 does with connections that have no rank yet. Called from within poll. */
struct skep_lobby {
	void *self;
	void (*record)(void *self, uint32_t guest, const struct skep_record *record);
	void (*room)(void *self, uint32_t guest);                  /* all that was sent to it has left */
	void (*left)(void *self, uint32_t guest, const char *why); /* nothing of it is valid any more */
	void (*turn)(void *self);                                  /* nothing has come; NULL: it need not know */
	/* A member gives something to be passed on to another one; not said twice in a row. */
	void (*relayed)(void *self, uint32_t from, uint32_t to);
	void (*direct)(void *self, uint32_t from, uint32_t to); /* it gives nothing more to be passed on to that one */
};

struct skep_mesh_setup {
	uint32_t rank, ranks;
	uint64_t run;
	SSL_CTX *host, *client; /* for connections taken in and made; both NULL: bare, for measurements */
	int listener;           /* of a TCP socket, non-blocking; -1: none. The mesh closes it */
	uint64_t silence_ns;    /* a member that is not heard for so long is gone */
	struct skep_rejects *rejects;
	struct skep_lobby lobby; /* zero but on rank 0 */
};

struct skep_mesh *skep_mesh_create(const struct skep_mesh_setup *setup, struct skep_diag *reterr);
/* `clean`: all have said LAST. Waits a little for what is still on its way. */
void skep_mesh_destroy(struct skep_mesh *mesh, bool clean);
/* Closes its listener. Who connects from now on waits for others that hold the same socket. */
void skep_mesh_stop_listening(struct skep_mesh *mesh);
/* The mesh as what the loop uses. */
struct skep_transport skep_mesh_transport(struct skep_mesh *mesh);

/* This rank is a member from now on. With a lower rank than ours it is connected to. `news`: the loop has to hear that it is
 * there (NEW). */
void skep_mesh_member(struct skep_mesh *mesh, const struct skep_member *member, bool news);
bool skep_mesh_is_member(const struct skep_mesh *mesh, uint32_t rank);
/* Makes the connection that of this member; the mesh owns what `channel` held. */
bool skep_mesh_attach(struct skep_mesh *mesh, uint32_t rank, struct skep_channel *channel);
/* A record that is no frame to a member; dropped if it is none. */
void skep_mesh_tell(struct skep_mesh *mesh, uint32_t rank, uint8_t type, const union skep_words *words);

/* Rank 0: guests. */
void skep_mesh_guest_tell(struct skep_mesh *mesh, uint32_t guest, uint8_t type, const union skep_words *words);
void skep_mesh_guest_close(
	struct skep_mesh *mesh, uint32_t guest); /* after what was told to it has left; `left` follows */
void skep_mesh_guest_trust(
	struct skep_mesh *mesh, uint32_t guest); /* it has proved itself: no limit of time any more */
/* Its connection is that of this member from now on, of whom the loop hears (NEW) with `news`. False: the guest has left. */
bool skep_mesh_guest_admit(struct skep_mesh *mesh, uint32_t guest, const struct skep_member *member, bool news);
bool skep_mesh_stays(
	const struct skep_mesh *mesh, uint32_t rank); /* it is a member, or was one until it had said LAST */
/* Before the run begins: has this member been lost? Another process may then be there in its place. */
bool skep_mesh_was_lost(const struct skep_mesh *mesh, uint32_t rank);
void skep_mesh_forgive(struct skep_mesh *mesh, uint32_t rank);
const char *skep_mesh_guest_address(struct skep_mesh *mesh, uint32_t guest);

/* Elsewhere than at rank 0: why the connection to it has ended; NULL: it has not. */
const char *skep_mesh_parted(const struct skep_mesh *mesh);

struct skep_mesh_counts {
	uint64_t refused_handshakes; /* connections that did not prove themselves */
	uint64_t crowded_out;        /* connections beyond SKEP_GUESTS_MAX */
	uint64_t relayed_bytes;      /* rank 0: passed on for others */
	uint64_t relay_most;         /* rank 0: of one sender's that waited to be passed on, at most */
};
struct skep_mesh_counts skep_mesh_counts(const struct skep_mesh *mesh);
