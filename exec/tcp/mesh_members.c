/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh_members.c - who is a member, the connections that are made to members, and what becomes of one whose connection ends.
 */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "exec/tcp/mesh_internal.h"

/* A peer is taken for unreachable, if silence does not say so earlier, where its kernel has answered and it has not proved itself
 * within DIAL_NS, and where there is no answer, nor one to the second packet, which kernels send after 1 s, within ANSWER_NS. */
#define DIAL_NS 5000000000u
#define ANSWER_NS 1500000000u
#define DIAL_BACK_NS 300000000u /* without an answer for so long the peer is asked to try as well */

static uint64_t most_ns(const struct skep_mesh *mesh)
{
	return mesh->setup.silence_ns < DIAL_NS ? mesh->setup.silence_ns : DIAL_NS;
}

/* ---- members --------------------------------------------------------------------------------------------------------- */

void skep_mesh_tell(struct skep_mesh *mesh, uint32_t rank, uint8_t type, const union skep_words *words)
{
	uint8_t content[SKEP_RECORD_MAX];
	skep_mesh_queue(mesh, rank, false, type, content, skep_words_encode(type, words, content));
	skep_mesh_pump(mesh, rank);
}

/* Neither a connection to it nor the way through rank 0 is used any more, nor is another one made. */
static void end_ways(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank < mesh->setup.ranks && rank != mesh->setup.rank);
	if (peer->relayed)
		skep_mesh_relay_no_more(mesh, rank);
	skep_mesh_bury_link(mesh, peer->link);
	skep_mesh_bury_link(mesh, peer->spare);
	peer->link = peer->spare = NULL;
	peer->direct = DIRECT_NOT;
	skep_mesh_drain(mesh, peer, rank);
	skep_mesh_lose_incoming(mesh, rank);
}

void skep_mesh_drop(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank < mesh->setup.ranks && rank != mesh->setup.rank);
	assert(!peer->there || mesh->member[peer->at] == rank);
	if (peer->there) {
		uint32_t last = mesh->member[--mesh->members];
		mesh->member[peer->at] = last;
		mesh->peer[last].at = peer->at;
	}
	peer->there = false;
	peer->gone = true;
	end_ways(mesh, rank);
}

/* What it has not said will not be said. */
static void give_up(struct skep_mesh *mesh, uint32_t rank)
{
	bool last = mesh->peer[rank].last;
	assert(mesh->peer[rank].there);
	skep_mesh_drop(mesh, rank);
	if (!last)
		skep_mesh_tell_news(mesh, &(struct skep_transport_event){.kind = SKEP_TRANSPORT_GONE, .peer = rank});
	for (uint32_t i = mesh->members; rank == 0 && last && i-- > 0;) {
		const struct peer *peer = &mesh->peer[mesh->member[i]];
		if (peer->relayed || peer->from_root || peer->asked ||
			peer->broken) /* no process passes anything on now, or says who is gone */
			give_up(mesh, mesh->member[i]);
	}
}

void skep_mesh_lost(struct skep_mesh *mesh, uint32_t rank, const char *why)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank < mesh->setup.ranks);
	bool root = skep_mesh_is_root(mesh);
	if (!peer->there || peer->broken)
		return;
	if (rank == 0 && !peer->last && mesh->parted[0] == '\0')
		snprintf(mesh->parted, sizeof mesh->parted, "%s", why != NULL ? why : "closed");
	bool alone = !mesh->peer[0].there; /* rank 0 has said LAST, and judges no more */
	if (peer->last || root || rank == 0 || alone) {
		give_up(mesh, rank);
		return;
	}
	peer->broken = true;
	end_ways(mesh, rank);
	skep_mesh_tell(mesh, 0, SKEP_RECORD_DISCONNECT, &(union skep_words){.disconnect = rank});
}

void skep_mesh_relay_from_now(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank > 0 && rank < mesh->setup.ranks);
	if (peer->relayed || skep_mesh_is_root(mesh))
		return;
	skep_mesh_bury_link(mesh, peer->link);
	peer->link = NULL;
	peer->dial_until_ns = 0;
	peer->asked = false;
	peer->relayed = peer->from_root = true;
	skep_mesh_direct_later(peer);
	assert(mesh->relays < mesh->setup.ranks);
	mesh->relayed[mesh->relays++] = rank;
	skep_mesh_queue(
		mesh, rank, false, SKEP_RECORD_PING, NULL, 0); /* so that it hears of this way, and takes it too */
	skep_mesh_pump(mesh, 0);
}

void skep_mesh_relay_no_more(struct skep_mesh *mesh, uint32_t rank)
{
	uint32_t at = 0;
	while (at < mesh->relays && mesh->relayed[at] != rank)
		at++;
	assert(at < mesh->relays && mesh->peer[rank].relayed);
	mesh->relayed[at] = mesh->relayed[--mesh->relays];
	mesh->peer[rank].relayed = false;
}

/* Rank 0 hands it on as it does what it relays, so that no process has more of them wait there than it may. */
void skep_mesh_ask_to_dial(struct skep_mesh *mesh, uint32_t rank)
{
	const uint8_t request[SKEP_RELAY_HEAD] = {
		(uint8_t)rank, (uint8_t)(rank >> 8), (uint8_t)(rank >> 16), (uint8_t)(rank >> 24), SKEP_RECORD_DIAL};
	assert(rank > 0 && rank != mesh->setup.rank);
	if (mesh->peer[rank].relayed) { /* behind what tells it of this way */
		skep_mesh_queue(mesh, rank, false, SKEP_RECORD_DIAL, NULL, 0);
		skep_mesh_pump(mesh, 0);
		return;
	}
	mesh->peer[rank].asked = true;
	mesh->passing += skep_relay_cost(sizeof request);
	skep_mesh_queue(mesh, 0, false, SKEP_RECORD_RELAY, request, sizeof request);
	skep_mesh_pump(mesh, 0);
}

void skep_mesh_unreached(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank > 0 && !peer->relayed && (!peer->asked || (peer->link != NULL && peer->link->held)));
	bool older = rank < mesh->setup.rank;
	if (older && (peer->cannot || mesh->setup.listener < 0)) {
		skep_mesh_relay_from_now(mesh, rank);
		return;
	}
	skep_mesh_bury_link(mesh, peer->link);
	peer->link = NULL;
	peer->dial_until_ns = 0;
	if (!peer->asked) /* one with a higher rank has asked for this connection, and is told that it cannot be */
		skep_mesh_ask_to_dial(mesh, rank);
}

void skep_mesh_tick_dial(struct skep_mesh *mesh, uint32_t rank, uint64_t now_ns)
{
	struct peer *peer = &mesh->peer[rank];
	assert(peer->dial_until_ns > 0 && peer->link != NULL);
	uint64_t tried_ns = now_ns > peer->link->since_ns ? now_ns - peer->link->since_ns : 0;
	bool answered = peer->link->channel.state != SKEP_CHANNEL_CONNECTING;
	if (peer->link->held)
		return;
	if (now_ns > peer->dial_until_ns || (!answered && tried_ns > ANSWER_NS)) {
		skep_mesh_unreached(mesh, rank);
		return;
	}
	if (answered || tried_ns < DIAL_BACK_NS || rank > mesh->setup.rank || peer->cannot || mesh->setup.listener < 0)
		return;
	peer->link->held = true;
	skep_mesh_rewatch(mesh, peer->link);
	skep_mesh_ask_to_dial(mesh, rank);
}

/* One with a lower rank was asked to connect to this process, and cannot: the attempt of this process goes on, and decides. */
static void go_on_dialling(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank < mesh->setup.rank);
	if (!peer->there || !peer->asked || peer->relayed || peer->broken)
		return;
	peer->asked = false;
	peer->cannot = true;
	if (peer->link == NULL) {
		skep_mesh_relay_from_now(mesh, rank);
		return;
	}
	assert(peer->link->held);
	peer->link->held = false;
	peer->dial_until_ns = skep_monotonic_ns() + most_ns(mesh);
	skep_mesh_rewatch(mesh, peer->link);
	if (peer->link->channel.state == SKEP_CHANNEL_OPEN) /* bare: there is no handshake */
		skep_mesh_dialled(mesh, peer->link);
}

/* The socket of a connection that is being made, or -1. `address` is numeric. */
static int dial_socket(const char *address, uint16_t port)
{
	char service[8];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found;
	snprintf(service, sizeof service, "%u", port);
	if (getaddrinfo(address, service, &hints, &found) != 0)
		return -1;
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

/* Where rank 0 is, as this process sees it: processes on its host are known to it by a loopback address. */
static void address_of_root(const struct skep_mesh *mesh, char *ret, size_t size)
{
	struct sockaddr_storage peer;
	socklen_t room = sizeof peer;
	const struct link *link = mesh->peer[0].link;
	ret[0] = '\0';
	if (link != NULL && getpeername(link->channel.fd, (struct sockaddr *)&peer, &room) == 0)
		getnameinfo((struct sockaddr *)&peer, room, ret, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
}

struct link *skep_mesh_begin_dial(struct skep_mesh *mesh, uint32_t rank)
{
	const struct peer *peer = &mesh->peer[rank];
	assert(rank > 0 && rank != mesh->setup.rank && peer->there && peer->link == NULL);
	struct skep_channel channel;
	char address[NI_MAXHOST];
	snprintf(address, sizeof address, "%s", peer->member.address);
	if (address[0] == '\0')
		address_of_root(mesh, address, sizeof address);
	int fd = peer->member.port > 0 ? dial_socket(address, peer->member.port) : -1;
	if (fd < 0 || !skep_channel_open(&channel, fd, false, mesh->setup.client, false))
		return NULL;
	return skep_mesh_watch(mesh, LINK_PEER, rank, &channel);
}

static void dial(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	peer->link = skep_mesh_begin_dial(mesh, rank);
	if (peer->link == NULL)
		skep_mesh_unreached(mesh, rank);
	else
		peer->dial_until_ns = skep_monotonic_ns() + most_ns(mesh);
}

/* Behind it there is a connection, or rank 0 passes on what they say, or their connection broke; then it is another attempt. */
void skep_mesh_dial_back(struct skep_mesh *mesh, uint32_t rank)
{
	const struct peer *peer = &mesh->peer[rank];
	assert(rank < mesh->setup.ranks && !skep_mesh_is_root(mesh));
	if (rank < mesh->setup.rank)
		go_on_dialling(mesh, rank);
	else if (peer->there && peer->relayed)
		skep_mesh_direct_dial(mesh, rank);
	else if (peer->there && peer->link == NULL && !peer->relayed && !peer->broken)
		dial(mesh, rank);
}

void skep_mesh_member(struct skep_mesh *mesh, const struct skep_member *member, bool news)
{
	uint32_t rank = member->rank;
	struct peer *peer = &mesh->peer[rank];
	assert(rank < mesh->setup.ranks && rank != mesh->setup.rank);
	if (peer->there || peer->gone)
		return;
	assert(mesh->members < mesh->setup.ranks);
	peer->there = true;
	peer->at = mesh->members;
	mesh->member[mesh->members++] = rank;
	peer->member = *member;
	if (news)
		skep_mesh_tell_news(mesh, &(struct skep_transport_event){.kind = SKEP_TRANSPORT_NEW, .peer = rank});
	if (rank > 0 && rank < mesh->setup.rank)
		dial(mesh, rank);
	else if (rank > mesh->setup.rank && !skep_mesh_is_root(mesh))
		skep_mesh_guests_named(mesh, rank);
}

bool skep_mesh_is_member(const struct skep_mesh *mesh, uint32_t rank)
{
	assert(rank < mesh->setup.ranks);
	return mesh->peer[rank].there;
}

bool skep_mesh_attach(struct skep_mesh *mesh, uint32_t rank, struct skep_channel *channel)
{
	struct peer *peer = &mesh->peer[rank];
	assert(peer->link == NULL);
	peer->link = skep_mesh_watch(mesh, LINK_PEER, rank, channel);
	if (peer->link != NULL)
		skep_mesh_pump(mesh, rank);
	return peer->link != NULL;
}

bool skep_mesh_prove(struct skep_mesh *mesh, struct link *link)
{
	const SSL *ssl = link->channel.ssl;
	assert(link->channel.state == SKEP_CHANNEL_OPEN);
	if (ssl != NULL)
		return skep_tls_peer_rank(ssl, mesh->setup.run) == link->id;
	uint8_t content[SKEP_RECORD_MAX];
	union skep_words words = {.member = {.rank = mesh->setup.rank}};
	size_t bytes = skep_words_encode(SKEP_RECORD_MEMBER, &words, content);
	skep_channel_put(&link->channel, SKEP_RECORD_MEMBER, content, bytes, NULL, 0);
	return true;
}

/* A connection that this process makes has ended its handshake. */
void skep_mesh_dialled(struct skep_mesh *mesh, struct link *link)
{
	assert(link->kind == LINK_PEER && link->id < mesh->setup.ranks);
	struct peer *peer = &mesh->peer[link->id];
	if (peer->spare == link) {
		skep_mesh_direct_made(mesh, link);
		return;
	}
	if (peer->dial_until_ns == 0)
		return;
	if (!skep_mesh_prove(mesh, link)) {
		skep_mesh_unreached(mesh, link->id); /* another process of the run listens there */
		return;
	}
	peer->dial_until_ns = 0;
	skep_mesh_pump(mesh, link->id);
	skep_mesh_pump(mesh, 0); /* LAST may have waited there for what would become of this peer's records */
}

/* ---- disconnects ------------------------------------------------------------------------------------------------------ */

void skep_mesh_disconnected(struct skep_mesh *mesh, uint32_t by, uint32_t about)
{
	assert(skep_mesh_is_root(mesh) && by < mesh->setup.ranks && about < mesh->setup.ranks);
	if (!mesh->peer[by].there || !mesh->peer[about].there || by == about || by == 0 || about == 0)
		return;
	if (mesh->peer[by].disconnects++ >= mesh->setup.ranks) /* a member complains of each other one once */
		return;
	if (!skep_grow(&mesh->disconnect, mesh->disconnects, sizeof *mesh->disconnect)) {
		mesh->broken = "no memory for which members do not hear each other";
		return;
	}
	if (mesh->disconnects == 0)
		mesh->disconnected_ns = skep_monotonic_ns();
	mesh->disconnect[mesh->disconnects++] = (struct skep_disconnect){by, about};
}

/* Has this member missed a ping to rank 0? Then either it is heard of soon, or it is gone and explains what others complain
 * of. */
static bool is_quiet(const struct skep_mesh *mesh, uint32_t rank, uint64_t now_ns)
{
	const struct link *link = mesh->peer[rank].link;
	assert(skep_mesh_is_root(mesh));
	return link != NULL && now_ns > link->channel.heard_ns + 2 * mesh->setup.silence_ns / SKEP_MESH_PINGS;
}

static void evict(struct skep_mesh *mesh, const struct skep_eviction *who)
{
	union skep_words words = {0};
	char others[48] = "";
	assert(who->edges > 0 && who->rank != who->other);
	if (who->edges > 1)
		snprintf(others, sizeof others, " and %u other%s", who->edges - 1, who->edges > 2 ? "s" : "");
	fprintf(stderr, "skep: rank %u is evicted: its connection to rank %u%s broke\n", who->rank, who->other, others);
	snprintf(words.evicted, sizeof words.evicted, "your connection to rank %u%s broke", who->other, others);
	skep_mesh_tell(mesh, who->rank, SKEP_RECORD_EVICTED, &words);
	skep_mesh_lost(mesh, who->rank, "evicted");
}

/* Members that lost one and the same peer heard it last at most a ping apart, so they complain at most so long apart. */
void skep_mesh_judge(struct skep_mesh *mesh, uint64_t now_ns)
{
	assert(skep_mesh_is_root(mesh));
	if (now_ns < mesh->disconnected_ns + mesh->setup.silence_ns / SKEP_MESH_PINGS)
		return;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < mesh->disconnects; i++) {
		struct skep_disconnect *c = &mesh->disconnect[i];
		if (mesh->peer[c->by].there && mesh->peer[c->about].there) /* else the reason is known */
			mesh->disconnect[kept++] = *c;
	}
	mesh->disconnects = kept;
	for (uint32_t i = 0; i < kept; i++) {
		if (is_quiet(mesh, mesh->disconnect[i].by, now_ns) || is_quiet(mesh, mesh->disconnect[i].about, now_ns))
			return;
	}
	struct skep_eviction who;
	uint32_t *edges = calloc(mesh->setup.ranks, sizeof *edges);
	if (edges == NULL) {
		mesh->broken = "no memory for which members do not hear each other";
		return;
	}
	mesh->disconnects = skep_evict_pairs(mesh->disconnect, mesh->disconnects);
	while (skep_evict_next(mesh->disconnect, &mesh->disconnects, edges, mesh->setup.ranks, &who))
		evict(mesh, &who);
	free(edges);
}
