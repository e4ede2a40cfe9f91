/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c - see group.h: the library's streams over TLS. It is given one end of a pair of sockets for each connection; what it
 * writes there travels in records, and what comes in records is written for it to read. The side that has connected sends, the
 * other one receives; states go both ways beside it.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/replicas/group.h"

#define STRANGERS_MAX 64u
#define SHAKE_NS 5000000000u
#define REPLICA_PING_NS 1000000000u /* five in SILENT_NS, after which a connection is given up */
#define SILENT_NS 5000000000u       /* a connection on which nothing comes for so long is given up, and made anew */

static void look_at_channel(uv_poll_t *poll, int status, int events);
static void look_at_pipe(uv_poll_t *poll, int status, int events);

/* ---- ends ------------------------------------------------------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle)
{
	struct link *link = handle->data;
	assert(link->dead && link->handles > 0);
	if (--link->handles > 0)
		return;
	if (link->pipe >= 0)
		close(link->pipe);
	skep_channel_close(&link->channel);
	free(link);
}

static void drop(struct link *link)
{
	struct group *group = link->group;
	if (link->dead)
		return;
	link->dead = true;
	for (struct link **at = &group->link; *at != NULL; at = &(*at)->next) {
		if (*at == link) {
			*at = link->next;
			break;
		}
	}
	skep_transfers_drop(link);
	if (link->request != NULL)
		link->connected(link->request, NULL, RAFT_NOCONNECTION);
	link->request = NULL;
	uv_close((uv_handle_t *)&link->poll, on_closed);
	if (link->pipe >= 0)
		uv_close((uv_handle_t *)&link->pipe_poll, on_closed);
}

/* Takes over the socket. NULL: no memory. */
static struct link *make(struct group *group, int fd, bool out)
{
	struct link *link = calloc(1, sizeof *link);
	int yes = 1;
	unsigned silent_ms = SILENT_NS / 1000000;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
	if (link == NULL) {
		close(fd);
		return NULL;
	}
	*link = (struct link){
		.group = group, .out = out, .pipe = -1, .file = -1, .handles = 1, .since_ns = skep_monotonic_ns()};
	if (!skep_channel_open(&link->channel, fd, !out, out ? group->client : group->host, !out)) {
		free(link);
		return NULL;
	}
	uv_poll_init(&group->loop, &link->poll, fd);
	link->poll.data = link;
	link->next = group->link;
	group->link = link;
	uv_poll_start(&link->poll, UV_READABLE | UV_WRITABLE, look_at_channel);
	return link;
}

/* ---- the library's stream -------------------------------------------------------------------------------------------- */

/* The other side has proved itself: the library gets its end. */
static bool hand_over(struct link *link)
{
	struct group *group = link->group;
	int pair[2];
	struct uv_pipe_s *stream = raft_malloc(sizeof *stream);
	assert(link->peer > 0 && link->pipe < 0 && (!link->out || link->request != NULL));
	if (stream == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
		raft_free(stream);
		return false;
	}
	uv_pipe_init(&group->loop, stream, 0);
	uv_pipe_open(stream, pair[0]);
	link->pipe = pair[1];
	uv_poll_init(&group->loop, &link->pipe_poll, link->pipe);
	link->pipe_poll.data = link;
	link->handles++;
	if (link->out) {
		struct raft_uv_connect *request = link->request;
		link->request = NULL;
		link->connected(request, (struct uv_stream_s *)stream, 0);
	} else {
		group->accept(&group->transport, link->peer, group->address[link->peer], (struct uv_stream_s *)stream);
	}
	return true;
}

/* What has come in a record; false: the library has closed its end. */
static bool fill_pipe(struct link *link)
{
	assert(link->held_begin <= link->held_end && link->held_end <= sizeof link->held);
	while (link->held_begin < link->held_end) {
		ssize_t count = write(link->pipe, link->held + link->held_begin, link->held_end - link->held_begin);
		if (count < 0 && errno == EAGAIN)
			return true;
		if (count <= 0)
			return false;
		link->held_begin += (size_t)count;
	}
	link->held_begin = link->held_end = 0;
	return true;
}

/* What the library has written; false: it has closed its end. */
static bool drain_pipe(struct link *link)
{
	uint8_t bytes[SKEP_RECORD_MAX];
	while (skep_channel_has_room(&link->channel, sizeof bytes)) {
		ssize_t count = read(link->pipe, bytes, sizeof bytes);
		if (count < 0 && errno == EAGAIN)
			return true;
		if (count <= 0)
			return false;
		skep_channel_put(&link->channel, SKEP_RECORD_RAFT, bytes, (size_t)count, NULL, 0);
		skep_channel_advance(&link->channel);
	}
	return true;
}

/* ---- what happens on a connection ------------------------------------------------------------------------------------ */

static bool prove(struct link *link)
{
	struct group *group = link->group;
	uint32_t rank = skep_tls_peer_rank(link->channel.ssl, group->run);
	bool fine = rank > 0 && rank <= group->count && rank != group->setup->own && (!link->out || rank == link->peer);
	assert(link->channel.state == SKEP_CHANNEL_OPEN && link->pipe < 0);
	link->peer = fine ? rank : 0;
	return fine && hand_over(link);
}

static void take(struct link *link, const struct skep_record *record)
{
	bool idle = link->out && link->transfer == TRANSFER_NONE;
	if (link->refused)
		return;
	if (record->type == SKEP_RECORD_SOURCE || (idle && record->type == SKEP_RECORD_REFUSED)) {
		skep_sources_record(link, record);
		return;
	}
	if (record->type != SKEP_RECORD_RAFT) {
		skep_transfers_record(link, record);
		return;
	}
	assert(link->held_end == 0 && record->bytes <= sizeof link->held);
	memcpy(link->held, record->content, record->bytes);
	link->held_begin = 0;
	link->held_end = record->bytes;
}

/* All that can be done now; what is waited for afterwards. */
static void look(struct link *link)
{
	struct skep_record record;
	struct skep_channel *channel = &link->channel;
	if (link->dead)
		return;
	assert(link->handles > 0);
	skep_channel_advance(channel);
	if (channel->state == SKEP_CHANNEL_OPEN && link->pipe < 0 && !prove(link)) {
		drop(link);
		return;
	}
	if (channel->state == SKEP_CHANNEL_OPEN)
		skep_sources_tell(link);
	bool told = skep_sources_told(link);
	bool fine = channel->state < SKEP_CHANNEL_OPEN || ((!told || drain_pipe(link)) && fill_pipe(link));
	while (fine && link->held_end == 0 && !link->dead && channel->state == SKEP_CHANNEL_OPEN &&
		skep_channel_read(channel, &record)) {
		if (record.type != SKEP_RECORD_PING)
			take(link, &record);
		fine = fill_pipe(link);
	}
	while (fine && !link->dead && channel->state == SKEP_CHANNEL_OPEN && skep_transfers_send(link))
		skep_channel_advance(channel);
	if (link->dead)
		return;
	if (!fine || channel->state == SKEP_CHANNEL_CLOSED) {
		drop(link);
		return;
	}
	bool writes = channel->wants_write || channel->state < SKEP_CHANNEL_SHAKING;
	int reads = link->held_end == 0 ? UV_READABLE : 0;
	uv_poll_start(&link->poll, reads | (writes ? UV_WRITABLE : 0), look_at_channel);
	if (link->pipe >= 0)
		uv_poll_start(&link->pipe_poll,
			(told && skep_channel_has_room(channel, SKEP_RECORD_MAX) ? UV_READABLE : 0) |
				(link->held_end > 0 ? UV_WRITABLE : 0),
			look_at_pipe);
}

static void look_at_channel(uv_poll_t *poll, int status, int events)
{
	(void)status; /* the channel finds its error by itself */
	(void)events;
	look(poll->data);
}

static void look_at_pipe(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	look(poll->data);
}

bool skep_link_say(struct link *link, uint8_t type, const union skep_words *words)
{
	assert(!link->dead && type > 0 && type < SKEP_RECORD_TYPES);
	uint8_t content[SKEP_RECORD_MAX];
	size_t bytes = words != NULL ? skep_words_encode(type, words, content) : 0;
	if (!skep_channel_has_room(&link->channel, bytes))
		return false;
	skep_channel_put(&link->channel, type, content, bytes, NULL, 0);
	return true;
}

/* ---- what the library calls ------------------------------------------------------------------------------------------ */

static int on_init(struct raft_uv_transport *transport, raft_id id, const char *address)
{
	(void)transport;
	(void)id;
	(void)address;
	return 0;
}

static int on_listen(struct raft_uv_transport *transport, raft_uv_accept_cb accept)
{
	struct group *group = transport->impl; /* `data` is the library's */
	group->accept = accept;
	return 0;
}

static int on_connect(struct raft_uv_transport *transport, struct raft_uv_connect *request, raft_id id,
	const char *address, raft_uv_connect_cb connected)
{
	struct group *group = transport->impl; /* `data` is the library's */
	(void)address;
	assert(id > 0 && id <= group->count);
	const struct sockaddr_storage *place = &group->place[id];
	int fd = socket(place->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return RAFT_NOCONNECTION;
	if (connect(fd, (const struct sockaddr *)place, group->place_bytes[id]) != 0 && errno != EINPROGRESS) {
		close(fd);
		return RAFT_NOCONNECTION;
	}
	struct link *link = make(group, fd, true);
	if (link == NULL)
		return RAFT_NOMEM;
	link->peer = (uint32_t)id;
	link->request = request;
	link->connected = connected;
	return 0;
}

static void on_transport_close(struct raft_uv_transport *transport, raft_uv_transport_close_cb closed)
{
	struct group *group = transport->impl; /* `data` is the library's */
	if (!uv_is_closing((uv_handle_t *)&group->listener_poll))
		uv_poll_stop(&group->listener_poll); /* the library takes no connection in any more */
	while (group->link != NULL)
		drop(group->link);
	closed(transport);
}

/* ---- taken in -------------------------------------------------------------------------------------------------------- */

static void on_listener(uv_poll_t *poll, int status, int events)
{
	struct group *group = poll->data;
	struct link *oldest = NULL;
	uint32_t strangers = 0;
	(void)status;
	(void)events;
	for (struct link *link = group->link; link != NULL; link = link->next) {
		bool stranger = link->pipe < 0 && !link->out;
		strangers += stranger;
		oldest = stranger ? link : oldest; /* newer ones stand before it */
	}
	int fd = accept4(group->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0 && strangers >= STRANGERS_MAX)
		drop(oldest);
	if (fd >= 0)
		make(group, fd, false);
}

void skep_links_turn(struct group *group, uint64_t now_ns)
{
	for (struct link *link = group->link, *next; link != NULL; link = next) {
		next = link->next;
		bool proved = link->pipe >= 0;
		bool late = (!proved || link->refused) && now_ns > link->since_ns + SHAKE_NS;
		bool silent = proved && now_ns > link->channel.heard_ns + SILENT_NS;
		if (late || silent) {
			drop(link);
			continue;
		}
		if (proved && now_ns > link->channel.spoke_ns + REPLICA_PING_NS)
			skep_link_say(link, SKEP_RECORD_PING, NULL);
	}
}

void skep_links_look(struct group *group)
{
	for (struct link *link = group->link, *next; link != NULL; link = next) {
		next = link->next;
		look(link);
	}
}

uint32_t skep_links_heard(const struct group *group)
{
	uint32_t heard = 0;
	for (const struct link *link = group->link; link != NULL; link = link->next)
		heard |= link->out && link->pipe >= 0 ? 1u << link->peer : 0;
	return heard;
}

bool skep_links_open(struct group *group, struct skep_diag *reterr)
{
	uint16_t port;
	assert(group->listener < 0);
	group->transport = (struct raft_uv_transport){.impl = group,
		.init = on_init,
		.listen = on_listen,
		.connect = on_connect,
		.close = on_transport_close};
	group->listener = skep_endpoint_listen(group->address[group->setup->own], &port, reterr);
	if (group->listener < 0)
		return false;
	uv_poll_init(&group->loop, &group->listener_poll, group->listener);
	group->listener_poll.data = group;
	uv_poll_start(&group->listener_poll, UV_READABLE, on_listener);
	return true;
}

void skep_links_close(struct group *group)
{
	while (group->link != NULL)
		drop(group->link);
	if (group->listener >= 0)
		uv_close((uv_handle_t *)&group->listener_poll, NULL);
}
