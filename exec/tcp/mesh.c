/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh.c - see mesh.h: the life of a mesh, its members, its timers, and what epoll says.
 *
 * A connection that has something to read stands in a list until a read finds nothing, so that what TLS has decrypted already
 * is not forgotten. Each gives one record and goes to the end of the list: one that sends much keeps no other waiting.
 */
#include "exec/tcp/mesh.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/tcp/mesh_internal.h"

#define TICK_NS 100000000u
#define EVENTS_A_LOOK 64
#define RECORDS_A_LOOK 64u /* who sends or fetches much is always ready, and others are only found by looking */
#define LINGER_NS 2000000000u

/* ---- what epoll watches --------------------------------------------------------------------------------------------- */

static bool watch_fd(struct skep_mesh *mesh, int fd, struct link *link)
{
	struct epoll_event event = {.events = EPOLLIN | (link->writes ? EPOLLOUT : 0), .data.ptr = link};
	return epoll_ctl(mesh->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

struct link *skep_mesh_watch(struct skep_mesh *mesh, enum link_kind kind, uint32_t id, struct skep_channel *channel)
{
	struct link *link = calloc(1, sizeof *link);
	assert((kind == LINK_PEER || kind == LINK_GUEST) && channel->fd >= 0);
	if (link != NULL) {
		*link = (struct link){.kind = kind, .id = id, .channel = *channel, .since_ns = skep_monotonic_ns()};
		link->writes = channel->wants_write;
	}
	if (link == NULL || !watch_fd(mesh, channel->fd, link)) {
		free(link);
		skep_channel_close(channel);
		return NULL;
	}
	*channel = (struct skep_channel){.state = SKEP_CHANNEL_CLOSED, .fd = -1};
	skep_mesh_is_ready(mesh, link); /* TLS may hold decrypted bytes */
	return link;
}

void skep_mesh_rewatch(struct skep_mesh *mesh, struct link *link)
{
	bool writes = (link->channel.wants_write && !link->held) || link->channel.state < SKEP_CHANNEL_SHAKING;
	assert(!link->dead && (link->kind == LINK_PEER || link->kind == LINK_GUEST));
	bool waits = link->waits || link->held;
	uint32_t reads = waits ? 0 : EPOLLIN;
	struct epoll_event event = {.events = reads | (writes ? EPOLLOUT : 0), .data.ptr = link};
	if (link->channel.state == SKEP_CHANNEL_CLOSED)
		skep_mesh_is_ready(mesh, link); /* its reader finds its end */
	else if (writes != link->writes || waits != link->waited)
		epoll_ctl(mesh->epoll, EPOLL_CTL_MOD, link->channel.fd, &event);
	link->writes = writes;
	link->waited = waits;
}

void skep_mesh_bury_link(struct skep_mesh *mesh, struct link *link)
{
	if (link == NULL || link->dead)
		return;
	epoll_ctl(mesh->epoll, EPOLL_CTL_DEL, link->channel.fd, NULL);
	assert(link->kind == LINK_PEER || link->kind == LINK_GUEST);
	skep_channel_close(&link->channel);
	link->dead = true;
	link->next_dead = mesh->graveyard;
	mesh->graveyard = link;
}

void skep_mesh_is_ready(struct skep_mesh *mesh, struct link *link)
{
	if (link->ready)
		return;
	link->ready = true;
	link->next_ready = NULL;
	*mesh->ready_end = link;
	mesh->ready_end = &link->next_ready;
}

static struct link *next_ready(struct skep_mesh *mesh)
{
	struct link *link = mesh->ready;
	if (link == NULL)
		return NULL;
	assert(link->ready);
	mesh->ready = link->next_ready;
	if (mesh->ready == NULL)
		mesh->ready_end = &mesh->ready;
	link->ready = false;
	return link;
}

/* No list and no event names them any more. */
static void clear_graveyard(struct skep_mesh *mesh)
{
	struct link **at = &mesh->graveyard;
	while (*at != NULL) {
		struct link *link = *at;
		if (link->ready) {
			at = &link->next_dead;
			continue;
		}
		*at = link->next_dead;
		free(link);
	}
}

/* ---- news ------------------------------------------------------------------------------------------------------------ */

void skep_mesh_tell_news(struct skep_mesh *mesh, const struct skep_transport_event *event)
{
	struct news *news = malloc(sizeof *news);
	assert(event->kind != SKEP_TRANSPORT_GONE || event->peer < mesh->setup.ranks);
	if (news == NULL) {
		mesh->broken = "no memory for what has happened";
		return;
	}
	*news = (struct news){.event = *event};
	*mesh->news_end = news;
	mesh->news_end = &news->next;
}

static bool next_news(struct skep_mesh *mesh, struct skep_transport_event *ret)
{
	struct news *news = mesh->news;
	if (news == NULL)
		return false;
	*ret = news->event;
	mesh->news = news->next;
	if (mesh->news == NULL)
		mesh->news_end = &mesh->news;
	free(news);
	return true;
}

/* ---- timers ---------------------------------------------------------------------------------------------------------- */

static void tick_peer(struct skep_mesh *mesh, uint32_t rank, uint64_t now_ns)
{
	struct peer *peer = &mesh->peer[rank];
	assert(peer->there);
	if (peer->relayed || peer->from_root)
		skep_mesh_direct_tick(mesh, rank, now_ns);
	if (peer->link == NULL || peer->relayed)
		return;
	struct skep_channel *channel = &peer->link->channel;
	if (peer->dial_until_ns > 0) {
		skep_mesh_tick_dial(mesh, rank, now_ns);
		return;
	}
	/* Else it is heard through rank 0 still, and is to hear this process over the connection (mesh_direct.c). */
	bool hears = !peer->from_root;
	if (hears && now_ns > channel->heard_ns + mesh->setup.silence_ns && !peer->link->ready) {
		skep_channel_fail(channel, "it fell silent");
		skep_mesh_is_ready(mesh, peer->link);
	} else if (now_ns > channel->spoke_ns + mesh->setup.silence_ns / SKEP_MESH_PINGS &&
		   peer->urgent.first == NULL) {
		skep_mesh_queue(mesh, rank, false, SKEP_RECORD_PING, NULL, 0);
		skep_mesh_pump(mesh, rank);
	}
}

/* A process that was stopped itself has heard no other meanwhile, for which the others are not to blame. */
static void forgive_pause(struct skep_mesh *mesh, uint64_t now_ns)
{
	uint64_t late_ns = mesh->tick_ns > 0 ? now_ns - mesh->tick_ns : 0;
	if (late_ns < mesh->setup.silence_ns / SKEP_MESH_PINGS)
		return;
	for (uint32_t i = 0; i < mesh->members; i++) {
		struct peer *peer = &mesh->peer[mesh->member[i]];
		if (peer->spare != NULL)
			peer->spare->since_ns += late_ns;
		if (peer->link != NULL)
			peer->link->channel.heard_ns += late_ns;
		if (peer->dial_until_ns > 0) {
			peer->dial_until_ns += late_ns;
			peer->link->since_ns += late_ns;
		}
	}
}

static bool look(struct skep_mesh *mesh, uint64_t most_ns);

static void tick(struct skep_mesh *mesh)
{
	uint64_t now_ns = skep_monotonic_ns();
	if (now_ns < mesh->tick_ns)
		return;
	forgive_pause(mesh, now_ns);
	look(mesh, 0); /* a peer of which there is something to read is not silent */
	mesh->tick_ns = now_ns + TICK_NS;
	for (uint32_t i = mesh->members; i-- > 0;)
		tick_peer(mesh, mesh->member[i], now_ns);
	skep_mesh_guests_tick(mesh, now_ns);
	if (mesh->disconnects > 0)
		skep_mesh_judge(mesh, now_ns);
}

/* ---- poll ------------------------------------------------------------------------------------------------------------ */

/* A connection that was being made could not be, or one that was there has ended. */
static void closed(struct skep_mesh *mesh, struct link *link)
{
	assert(link->id < mesh->setup.ranks && link->channel.state == SKEP_CHANNEL_CLOSED);
	struct peer *peer = &mesh->peer[link->id];
	if (peer->spare == link)
		skep_mesh_direct_failed(mesh, link->id);
	if (peer->link != link)
		return;
	if (peer->dial_until_ns > 0)
		skep_mesh_unreached(mesh, link->id);
	else
		skep_mesh_lost(mesh, link->id, link->channel.why);
}

/* One record of this connection. */
static bool read_link(struct skep_mesh *mesh, struct link *link, struct skep_transport_event *ret)
{
	struct skep_record record;
	if (link->dead)
		return false;
	if (link->kind == LINK_GUEST) {
		skep_mesh_guest_event(mesh, link);
		return false;
	}
	if (link->kind != LINK_PEER)
		return false;
	if (!link->waits && skep_channel_read(&link->channel, &record)) {
		skep_mesh_is_ready(mesh, link);
		return skep_mesh_take(mesh, link->id, &record, ret);
	}
	if (link->channel.state == SKEP_CHANNEL_CLOSED)
		closed(mesh, link);
	else
		skep_mesh_rewatch(mesh, link);
	return false;
}

/* epoll cannot be told to leave out the end of a connection, and says it again and again: it has to be taken in at once. */
static void on_event_of_waiting(struct link *link, uint32_t events)
{
	assert(link->waits && link->kind == LINK_PEER);
	if ((events & (EPOLLERR | EPOLLHUP)) != 0)
		skep_channel_fail(&link->channel, "the other side has reset the connection");
	else if ((events & EPOLLOUT) != 0)
		skep_channel_advance(&link->channel);
}

static void on_event_of_held(struct link *link, uint32_t events)
{
	skep_channel_look_for_answer(&link->channel);
	bool answered = link->channel.state == SKEP_CHANNEL_SHAKING || link->channel.state == SKEP_CHANNEL_OPEN;
	if (answered && (events & (EPOLLERR | EPOLLHUP)) != 0)
		skep_channel_fail(&link->channel, "the other side has reset the connection");
}

static void on_event(struct skep_mesh *mesh, struct link *link, uint32_t events)
{
	uint64_t count;
	if (link->dead)
		return;
	if (link->kind == LINK_LISTENER) {
		skep_mesh_accept(mesh);
		return;
	}
	if (link->kind == LINK_WAKE) {
		if (read(mesh->wake, &count, sizeof count) < 0)
			return; /* another look has taken it */
		return;
	}
	bool shaking = link->channel.state < SKEP_CHANNEL_OPEN && !link->held;
	if (link->held)
		on_event_of_held(link, events);
	else if (link->waits && link->kind == LINK_PEER)
		on_event_of_waiting(link, events);
	else if ((events & EPOLLOUT) != 0 || shaking)
		skep_channel_advance(&link->channel);
	if (shaking && link->channel.state == SKEP_CHANNEL_OPEN && link->kind == LINK_PEER)
		skep_mesh_dialled(mesh, link);
	else if (link->kind == LINK_PEER && link->channel.state == SKEP_CHANNEL_OPEN && (events & EPOLLOUT) != 0)
		skep_mesh_pump(mesh, link->id);
	if (link->dead)
		return;
	skep_mesh_rewatch(mesh, link);
	skep_mesh_is_ready(mesh, link);
}

/* What epoll says, after at most `most_ns`. */
static bool look(struct skep_mesh *mesh, uint64_t most_ns)
{
	struct epoll_event event[EVENTS_A_LOOK];
	struct timespec most = {(time_t)(most_ns / 1000000000u), (long)(most_ns % 1000000000u)};
	clear_graveyard(mesh);
	mesh->unlooked = 0;
	int count = epoll_pwait2(mesh->epoll, event, EVENTS_A_LOOK, &most, NULL);
	if (count < 0 && errno == ENOSYS)
		count = epoll_wait(mesh->epoll, event, EVENTS_A_LOOK, (int)((most_ns + 999999) / 1000000));
	for (int i = 0; i < count; i++)
		on_event(mesh, event[i].data.ptr, event[i].events);
	return count > 0;
}

static bool mesh_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	struct skep_mesh *mesh = self;
	struct link *link;
	mesh->landing = landing;
	if (mesh->holds_last) {
		mesh->holds_last = false;
		skep_mesh_pump(mesh, 0);
	}
	while (mesh->unlooked++ < RECORDS_A_LOOK) {
		if (mesh->broken != NULL) {
			*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_BROKEN, .reason = mesh->broken};
			return true;
		}
		tick(mesh);
		if (next_news(mesh, ret))
			return true;
		link = next_ready(mesh);
		if (link != NULL && read_link(mesh, link, ret))
			return true;
		if (link == NULL && !look(mesh, 0) && mesh->news == NULL) {
			if (mesh->setup.lobby.turn != NULL)
				mesh->setup.lobby.turn(mesh->setup.lobby.self);
			return false;
		}
	}
	look(mesh, 0);
	return false;
}

static uint32_t mesh_pending(const void *self)
{
	const struct skep_mesh *mesh = self;
	uint32_t count = mesh->open_tensors + mesh->queued_tensors;
	for (uint32_t i = 0; i < mesh->members; i++) {
		const struct peer *peer = &mesh->peer[mesh->member[i]];
		count += !peer->broken && (peer->urgent.first != NULL ||
						  (peer->link != NULL && !skep_channel_idle(&peer->link->channel)));
	}
	return count;
}

static void mesh_wait(void *self, uint64_t most_ns)
{
	struct skep_mesh *mesh = self;
	if (mesh->news == NULL && mesh->ready == NULL && mesh->broken == NULL)
		look(mesh, most_ns < TICK_NS ? most_ns : TICK_NS);
}

static void mesh_wake(void *self)
{
	const struct skep_mesh *mesh = self;
	uint64_t one = 1;
	ssize_t wrote = write(mesh->wake, &one, sizeof one);
	(void)wrote; /* a full counter wakes as well */
}

static void mesh_bury(void *self, uint32_t rank)
{
	skep_mesh_drop(self, rank);
}

struct skep_transport skep_mesh_transport(struct skep_mesh *mesh)
{
	return (struct skep_transport){.self = mesh,
		.rank = mesh->setup.rank,
		.ranks = mesh->setup.ranks,
		.survives = true,
		.send = skep_mesh_send,
		.poll = mesh_poll,
		.pending = mesh_pending,
		.wait = mesh_wait,
		.wake = mesh_wake,
		.bury = mesh_bury};
}

/* ---- up and down ----------------------------------------------------------------------------------------------------- */

static struct link *watch_own(struct skep_mesh *mesh, enum link_kind kind, int fd)
{
	struct link *link = calloc(1, sizeof *link);
	if (link == NULL)
		return NULL;
	*link = (struct link){.kind = kind, .channel = {.fd = fd, .state = SKEP_CHANNEL_CLOSED}};
	if (watch_fd(mesh, fd, link))
		return link;
	free(link);
	return NULL;
}

struct skep_mesh *skep_mesh_create(const struct skep_mesh_setup *setup, struct skep_diag *reterr)
{
	assert(setup->rank < setup->ranks && setup->silence_ns > 0);
	assert((setup->host == NULL && setup->client == NULL) || setup->host != NULL || setup->rank > 0);
	struct skep_mesh *mesh = calloc(1, sizeof *mesh);
	if (mesh == NULL) {
		skep_fail(reterr, "no memory for the network");
		return NULL;
	}
	*mesh = (struct skep_mesh){.setup = *setup, .epoll = epoll_create1(EPOLL_CLOEXEC)};
	mesh->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	mesh->ready_end = &mesh->ready;
	mesh->news_end = &mesh->news;
	mesh->peer = calloc(setup->ranks, sizeof *mesh->peer);
	mesh->guest = calloc(SKEP_GUESTS_MAX, sizeof(struct link *));
	mesh->relayed = calloc(setup->ranks, sizeof *mesh->relayed);
	mesh->member = calloc(setup->ranks, sizeof *mesh->member);
	bool fine = mesh->epoll >= 0 && mesh->wake >= 0 && mesh->peer != NULL && mesh->guest != NULL &&
	            mesh->relayed != NULL && mesh->member != NULL;
	if (fine)
		mesh->wakeup = watch_own(mesh, LINK_WAKE, mesh->wake);
	if (fine && setup->listener >= 0)
		mesh->listener = watch_own(mesh, LINK_LISTENER, setup->listener);
	if (fine && mesh->wakeup != NULL && (setup->listener < 0 || mesh->listener != NULL))
		return mesh;
	skep_fail(reterr, "no memory for the network");
	skep_mesh_destroy(mesh, false);
	return NULL;
}

/* Closes this side of all connections and reads the others to their ends: a socket that is closed over bytes that were not read
 * takes back what the other side has not read either. */
static void linger(struct skep_mesh *mesh)
{
	uint64_t until_ns = skep_monotonic_ns() + LINGER_NS;
	bool open = true;
	for (uint32_t i = 0; i < mesh->members; i++) {
		struct link *link = mesh->peer[mesh->member[i]].link;
		if (link != NULL && link->channel.state == SKEP_CHANNEL_OPEN && link->channel.ssl != NULL)
			SSL_shutdown(link->channel.ssl);
		if (link != NULL)
			shutdown(link->channel.fd, SHUT_WR);
	}
	while (open && skep_monotonic_ns() < until_ns) {
		char scratch[4096];
		struct timespec nap = {.tv_nsec = 1000000};
		open = false;
		for (uint32_t i = 0; i < mesh->members; i++) {
			struct link *link = mesh->peer[mesh->member[i]].link;
			ssize_t got = link != NULL ? recv(link->channel.fd, scratch, sizeof scratch, MSG_DONTWAIT) : 0;
			open = open || got > 0 || (got < 0 && errno == EAGAIN);
		}
		if (open)
			nanosleep(&nap, NULL);
	}
}

void skep_mesh_stop_listening(struct skep_mesh *mesh)
{
	if (mesh->setup.listener < 0)
		return;
	epoll_ctl(mesh->epoll, EPOLL_CTL_DEL, mesh->setup.listener, NULL);
	close(mesh->setup.listener);
	mesh->setup.listener = -1;
}

void skep_mesh_destroy(struct skep_mesh *mesh, bool clean)
{
	struct skep_transport_event event;
	if (mesh == NULL)
		return;
	if (clean)
		linger(mesh);
	for (uint32_t rank = 0; mesh->peer != NULL && rank < mesh->setup.ranks; rank++) {
		skep_mesh_bury_link(mesh, mesh->peer[rank].link);
		skep_mesh_bury_link(mesh, mesh->peer[rank].spare);
		skep_mesh_drain(mesh, &mesh->peer[rank], rank);
	}
	for (uint32_t i = 0; mesh->guest != NULL && i < SKEP_GUESTS_MAX; i++)
		skep_mesh_bury_link(mesh, mesh->guest[i]);
	while (next_news(mesh, &event) || next_ready(mesh) != NULL)
		;
	clear_graveyard(mesh);
	free(mesh->wakeup);
	skep_mesh_stop_listening(mesh);
	free(mesh->listener);
	if (mesh->epoll >= 0)
		close(mesh->epoll);
	if (mesh->wake >= 0)
		close(mesh->wake);
	free(mesh->peer);
	free(mesh->guest);
	free(mesh->relayed);
	free(mesh->member);
	free(mesh->disconnect);
	free(mesh);
}

const char *skep_mesh_parted(const struct skep_mesh *mesh)
{
	return mesh->parted[0] != '\0' ? mesh->parted : NULL;
}

struct skep_mesh_counts skep_mesh_counts(const struct skep_mesh *mesh)
{
	return mesh->counts;
}
