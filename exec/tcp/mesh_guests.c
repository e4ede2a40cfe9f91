/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh_guests.c - connections that were taken in and have no rank yet: at rank 0 those of processes that ask to join, which the
 * lobby hears; elsewhere those of members with a higher rank, and of others that this process has asked to connect to it, whose
 * certificates say who they are.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/tcp/mesh_internal.h"

#define ACCEPTS_A_LOOK 16
#define BUSY_NS 600000000000u /* a guest may compute the digest of a large file, or make its device */

static void forget(struct skep_mesh *mesh, struct link *link)
{
	if (link->id < SKEP_GUESTS_MAX && mesh->guest[link->id] == link)
		mesh->guest[link->id] = NULL;
}

static void end(struct skep_mesh *mesh, struct link *link, const char *why)
{
	assert(link->kind == LINK_GUEST);
	uint32_t guest = link->id;
	bool told = link->trusted && mesh->setup.lobby.left != NULL;
	mesh->counts.refused_handshakes += !link->trusted && !link->closing;
	forget(mesh, link);
	if (told)
		mesh->setup.lobby.left(mesh->setup.lobby.self, guest, why != NULL ? why : "closed");
	skep_mesh_bury_link(mesh, link);
}

/* ---- taken in -------------------------------------------------------------------------------------------------------- */

/* "" where it is the host of this process. */
static void name_address(const struct sockaddr_storage *peer, socklen_t size, char ret[SKEP_NAME_MAX])
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)peer;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)peer;
	bool mapped = peer->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
	bool here = (peer->ss_family == AF_INET && ntohl(four->sin_addr.s_addr) >> 24 == 127) ||
	            (peer->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)) ||
	            (mapped && six->sin6_addr.s6_addr[12] == 127);
	ret[0] = '\0';
	if (!here)
		getnameinfo((const struct sockaddr *)peer, size, ret, SKEP_NAME_MAX, NULL, 0, NI_NUMERICHOST);
	if (mapped && !here)
		memmove(ret, strrchr(ret, ':') + 1, strlen(strrchr(ret, ':')));
}

/* A place for another one; where there is none, that of who has taken longest to prove himself, so that thousands who never will
 * do not keep out one who does so at once. SKEP_GUESTS_MAX: all have proved themselves. */
static uint32_t free_place(struct skep_mesh *mesh)
{
	uint32_t oldest = SKEP_GUESTS_MAX;
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++) {
		const struct link *link = mesh->guest[i];
		if (link == NULL)
			return i;
		if (!link->trusted && (oldest == SKEP_GUESTS_MAX || link->since_ns < mesh->guest[oldest]->since_ns))
			oldest = i;
	}
	if (oldest < SKEP_GUESTS_MAX)
		end(mesh, mesh->guest[oldest], "others wait");
	return oldest;
}

void skep_mesh_accept(struct skep_mesh *mesh)
{
	for (int i = 0; i < ACCEPTS_A_LOOK; i++) {
		struct sockaddr_storage peer;
		socklen_t size = sizeof peer;
		struct skep_channel channel;
		int fd = accept4(mesh->setup.listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		uint32_t place = free_place(mesh);
		if (place == SKEP_GUESTS_MAX) {
			mesh->counts.crowded_out++;
			close(fd);
			continue;
		}
		if (!skep_channel_open(&channel, fd, true, mesh->setup.host, true))
			continue;
		assert(mesh->guest[place] == NULL);
		struct link *link = skep_mesh_watch(mesh, LINK_GUEST, place, &channel);
		if (link == NULL)
			continue;
		name_address(&peer, size, link->address);
		mesh->guest[place] = link;
	}
}

/* ---- elsewhere than at rank 0 ---------------------------------------------------------------------------------------- */

/* The rank that a connection has proved, or, bare, that it says; SKEP_NO_INDEX: not yet. */
static uint32_t rank_of(struct skep_mesh *mesh, struct link *link)
{
	struct skep_record record;
	union skep_words words;
	if (link->channel.ssl != NULL)
		return skep_tls_peer_rank(link->channel.ssl, mesh->setup.run);
	if (!skep_channel_read(&link->channel, &record))
		return SKEP_NO_INDEX;
	bool said = record.type == SKEP_RECORD_MEMBER && skep_words_decode(&record, &words);
	return said ? words.member.rank : 0;
}

/* Does this process wait for a connection of that rank? */
static bool may_connect(const struct skep_mesh *mesh, uint32_t rank)
{
	bool may = rank > 0 && rank < mesh->setup.ranks;
	return may && (rank > mesh->setup.rank || mesh->peer[rank].asked || mesh->peer[rank].relayed);
}

static void adopt(struct skep_mesh *mesh, struct link *link)
{
	assert(!skep_mesh_is_root(mesh) && may_connect(mesh, link->rank));
	struct peer *peer = &mesh->peer[link->rank];
	bool waited = link->waits;
	bool held = peer->link != NULL && peer->link->held;
	if (peer->there && peer->relayed && !peer->broken) {
		uint32_t place = link->id;
		if (!skep_mesh_direct_taken(mesh, link->rank, link))
			end(mesh, link, "there is another connection");
		else
			mesh->guest[place] = NULL;
		return;
	}
	if (peer->gone || peer->broken || peer->relayed || (peer->link != NULL && !held)) {
		end(mesh, link, "not a member that may connect");
		return;
	}
	link->waits = !peer->there; /* its certificate says only that it was on its way in */
	if (link->waits)
		return;
	forget(mesh, link);
	if (held) /* both were asked for, and this one has come first */
		skep_mesh_bury_link(mesh, peer->link);
	link->kind = LINK_PEER;
	link->id = link->rank;
	peer->link = link;
	peer->dial_until_ns = 0;
	peer->asked = false;
	if (waited)
		skep_mesh_rewatch(mesh, link);
	skep_mesh_is_ready(mesh, link);
	skep_mesh_pump(mesh, link->rank);
	skep_mesh_pump(mesh, 0); /* LAST may have waited there for what would become of this peer's records */
}

static void become_peer(struct skep_mesh *mesh, struct link *link)
{
	assert(link->kind == LINK_GUEST && !skep_mesh_is_root(mesh));
	if (link->waits)
		return;
	uint32_t rank = rank_of(mesh, link);
	if (rank == SKEP_NO_INDEX && link->channel.ssl == NULL && link->channel.state == SKEP_CHANNEL_OPEN)
		return; /* bare, and it has not said it yet */
	if (rank == SKEP_NO_INDEX || !may_connect(mesh, rank)) {
		end(mesh, link, "not a member that may connect");
		return;
	}
	link->rank = rank;
	adopt(mesh, link);
}

void skep_mesh_guests_named(struct skep_mesh *mesh, uint32_t rank)
{
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++) {
		if (mesh->guest[i] != NULL && mesh->guest[i]->waits && mesh->guest[i]->rank == rank)
			adopt(mesh, mesh->guest[i]);
	}
}

/* ---- at rank 0 ------------------------------------------------------------------------------------------------------- */

static void hear(struct skep_mesh *mesh, struct link *link)
{
	assert(skep_mesh_is_root(mesh));
	const struct skep_lobby *lobby = &mesh->setup.lobby;
	struct skep_record record;
	if (skep_channel_read(&link->channel, &record)) {
		skep_mesh_is_ready(mesh, link);
		if (record.type == SKEP_RECORD_DATA || record.type == SKEP_RECORD_FRAME)
			end(mesh, link, "it spoke out of turn");
		else if (record.type != SKEP_RECORD_PING && !link->closing)
			lobby->record(lobby->self, link->id, &record);
		return;
	}
	if (link->channel.state == SKEP_CHANNEL_OPEN && skep_channel_idle(&link->channel)) {
		if (link->closing)
			end(mesh, link, "closed");
		else if (link->trusted)
			lobby->room(lobby->self, link->id);
	}
}

void skep_mesh_guest_event(struct skep_mesh *mesh, struct link *link)
{
	if (link->channel.state == SKEP_CHANNEL_OPEN && mesh->setup.lobby.record != NULL)
		hear(mesh, link);
	else if (link->channel.state == SKEP_CHANNEL_OPEN)
		become_peer(mesh, link);
	if (link->dead || link->kind != LINK_GUEST)
		return;
	if (link->channel.state == SKEP_CHANNEL_CLOSED)
		end(mesh, link, link->channel.why);
	else
		skep_mesh_rewatch(mesh, link);
}

static void ping(struct skep_mesh *mesh, struct link *link)
{
	assert(link->trusted && !link->dead);
	if (!skep_channel_has_room(&link->channel, 0) || !skep_channel_idle(&link->channel))
		return;
	skep_channel_put(&link->channel, SKEP_RECORD_PING, NULL, 0, NULL, 0);
	skep_channel_advance(&link->channel);
	skep_mesh_rewatch(mesh, link);
}

void skep_mesh_guests_tick(struct skep_mesh *mesh, uint64_t now_ns)
{
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++) {
		struct link *link = mesh->guest[i];
		if (link == NULL)
			continue;
		bool late = !link->trusted && now_ns > link->since_ns + SKEP_HANDSHAKE_S * UINT64_C(1000000000);
		bool silent = link->trusted && now_ns > link->channel.heard_ns + BUSY_NS;
		if (late || silent)
			end(mesh, link, late ? "it did not prove itself in time" : "it fell silent");
		else if (link->trusted && now_ns > link->channel.spoke_ns + SKEP_CHANNEL_PING_NS)
			ping(mesh, link);
	}
}

void skep_mesh_guest_tell(struct skep_mesh *mesh, uint32_t guest, uint8_t type, const union skep_words *words)
{
	assert(guest < SKEP_GUESTS_MAX);
	struct link *link = mesh->guest[guest];
	uint8_t content[SKEP_RECORD_MAX];
	size_t bytes = skep_words_encode(type, words, content);
	if (link == NULL || !skep_channel_has_room(&link->channel, bytes))
		return;
	skep_channel_put(&link->channel, type, content, bytes, NULL, 0);
	skep_channel_advance(&link->channel);
	skep_mesh_rewatch(mesh, link);
	skep_mesh_is_ready(mesh, link); /* what has left already makes room at once */
}

void skep_mesh_guest_close(struct skep_mesh *mesh, uint32_t guest)
{
	assert(guest < SKEP_GUESTS_MAX);
	struct link *link = mesh->guest[guest];
	if (link == NULL)
		return;
	link->closing = true;
	skep_mesh_is_ready(mesh, link);
}

void skep_mesh_guest_trust(struct skep_mesh *mesh, uint32_t guest)
{
	assert(guest < SKEP_GUESTS_MAX);
	if (mesh->guest[guest] != NULL)
		mesh->guest[guest]->trusted = true;
}

const char *skep_mesh_guest_address(struct skep_mesh *mesh, uint32_t guest)
{
	assert(guest < SKEP_GUESTS_MAX);
	return mesh->guest[guest] != NULL ? mesh->guest[guest]->address : "";
}

bool skep_mesh_guest_admit(struct skep_mesh *mesh, uint32_t guest, const struct skep_member *member, bool news)
{
	assert(guest < SKEP_GUESTS_MAX);
	struct link *link = mesh->guest[guest];
	struct peer *peer = &mesh->peer[member->rank];
	assert(member->rank > 0 && member->rank < mesh->setup.ranks);
	if (link == NULL || peer->there || peer->gone)
		return false;
	forget(mesh, link);
	link->kind = LINK_PEER;
	link->id = member->rank;
	peer->link = link;
	skep_mesh_member(mesh, member, news);
	return true;
}

bool skep_mesh_was_lost(const struct skep_mesh *mesh, uint32_t rank)
{
	assert(rank < mesh->setup.ranks);
	return mesh->peer[rank].gone;
}

bool skep_mesh_stays(const struct skep_mesh *mesh, uint32_t rank)
{
	assert(rank < mesh->setup.ranks);
	return mesh->peer[rank].there || mesh->peer[rank].last;
}

void skep_mesh_forgive(struct skep_mesh *mesh, uint32_t rank)
{
	assert(!mesh->peer[rank].there && mesh->peer[rank].link == NULL);
	mesh->peer[rank].gone = mesh->peer[rank].last = false;
}
