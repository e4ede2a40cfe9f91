/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh_send.c - what waits to be sent to a peer, and in which order it goes into a channel.
 *
 * A peer has two queues: `urgent` for frames alone and for what members say to each other, `tensors` for tensors. A channel takes
 * from the first one as long as there is something. The channel to rank 0 carries the queues of peers that are relayed as
 * well, in turns, each record inside a RELAY record.
 *
 * What rank 0 is given to pass on stays below a window, so that a receiver with a thin line does not fill rank 0's memory: a
 * sender puts no tensors beyond SKEP_RELAY_WINDOW, and nothing at all beyond twice that, before rank 0 says PASSED. The window is
 * one for all receivers of a sender.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exec/tcp/mesh_internal.h"

#define TENSOR_BYTES_A_PUMP (4u << 20) /* then others have their turn */

static void push(struct queue *queue, struct item *item)
{
	assert(queue->first == NULL || queue->last->next == NULL);
	item->next = NULL;
	if (queue->first == NULL)
		queue->first = item;
	else
		queue->last->next = item;
	queue->last = item;
}

/* Rank 0: a record of `from` waits here no longer. */
static void passed(struct skep_mesh *mesh, uint32_t from, uint64_t cost)
{
	struct peer *peer = &mesh->peer[from];
	assert(peer->relay_held >= cost);
	peer->relay_held -= cost;
	peer->relay_passed += cost;
	if (peer->relay_passed < SKEP_RELAY_WINDOW / 8 || !peer->there || peer->link == NULL || peer->link->dead)
		return;
	uint8_t content[SKEP_RECORD_MAX];
	size_t bytes =
		skep_words_encode(SKEP_RECORD_PASSED, &(union skep_words){.passed = peer->relay_passed}, content);
	peer->relay_passed = 0;
	skep_mesh_queue(mesh, from, false, SKEP_RECORD_PASSED, content, bytes);
	peer->link->channel.wants_write = true; /* another peer may be the one that is pumped */
	skep_mesh_rewatch(mesh, peer->link);
}

static void pop(struct skep_mesh *mesh, struct queue *queue)
{
	struct item *item = queue->first;
	assert(item != NULL);
	queue->first = item->next;
	assert(item->body == NULL || item->at <= item->frame.body);
	if (item->relayed_from != 0)
		passed(mesh, item->relayed_from, skep_relay_cost(item->bytes));
	free(item);
}

/* ---- one record ---------------------------------------------------------------------------------------------------- */

/* A record for `rank`, through its own channel or through rank 0's. */
struct way {
	struct skep_channel *channel;
	uint32_t rank;
	uint64_t *passing; /* through rank 0: what it holds, which grows by the record; NULL: directly */
};

static bool has_room(const struct way *way, size_t bytes)
{
	return skep_channel_has_room(way->channel, bytes + (way->passing != NULL ? SKEP_RELAY_HEAD : 0));
}

static void put(const struct way *way, uint8_t type, const void *content, size_t bytes)
{
	uint8_t head[SKEP_RELAY_HEAD] = {(uint8_t)way->rank, (uint8_t)(way->rank >> 8), (uint8_t)(way->rank >> 16),
		(uint8_t)(way->rank >> 24), type};
	uint8_t whole[SKEP_RECORD_MAX];
	assert(way->passing == NULL || sizeof head + bytes <= sizeof whole);
	if (way->passing == NULL) {
		skep_channel_put(way->channel, type, content, bytes, NULL, 0);
		return;
	}
	memcpy(whole, head, sizeof head);
	memcpy(whole + sizeof head, content, bytes);
	*way->passing += skep_relay_cost(sizeof head + bytes);
	skep_channel_put(way->channel, SKEP_RECORD_RELAY, whole, sizeof head + bytes, NULL, 0);
}

static uint32_t piece_bytes(const struct way *way)
{
	if (way->passing != NULL)
		return SKEP_RECORD_MAX - SKEP_RELAY_HEAD;
	return way->channel->ssl != NULL ? SKEP_RECORD_DATA_TLS_MAX : SKEP_RECORD_DATA_MAX;
}

/* The next piece of a tensor. False: no room. */
static bool put_piece(const struct way *way, struct item *item)
{
	assert(item->begun && item->at < item->frame.body);
	uint64_t left = item->frame.body - item->at;
	uint32_t most = piece_bytes(way), bytes = left < most ? (uint32_t)left : most;
	bool borrowed = way->passing == NULL && way->channel->ssl == NULL;
	if (!has_room(way, borrowed ? 0 : bytes))
		return false;
	if (way->passing != NULL)
		put(way, SKEP_RECORD_DATA, item->body + item->at, bytes);
	else
		skep_channel_put(way->channel, SKEP_RECORD_DATA, NULL, 0, item->body + item->at, bytes);
	item->at += bytes;
	return true;
}

static void sent(struct skep_mesh *mesh, uint32_t rank, struct peer *peer)
{
	assert(mesh->queued_tensors > 0 && peer->tensors.first->body != NULL);
	struct skep_transport_event event = {
		.kind = SKEP_TRANSPORT_SENT, .peer = rank, .frame = peer->tensors.first->frame};
	pop(mesh, &peer->tensors);
	mesh->queued_tensors--;
	skep_mesh_tell_news(mesh, &event);
}

/* Of the tensor at the head of the queue. *tensor counts what it puts. */
static bool put_tensor(struct skep_mesh *mesh, const struct way *way, struct peer *peer, uint64_t *tensor)
{
	struct item *item = peer->tensors.first;
	assert(item->type == SKEP_RECORD_BODY && mesh->queued_tensors > 0);
	if (!item->begun) {
		if (!has_room(way, item->bytes))
			return false;
		put(way, SKEP_RECORD_BODY, item->content, item->bytes);
		item->begun = true;
		return true;
	}
	if (item->at < item->frame.body) {
		uint64_t before = item->at;
		if (!put_piece(way, item))
			return false;
		*tensor += item->at - before;
	}
	bool kept = way->passing == NULL && way->channel->ssl == NULL; /* a bare channel sends it from where it lies */
	if (item->at < item->frame.body || (kept && !skep_channel_idle(way->channel)))
		return item->at < item->frame.body;
	sent(mesh, way->rank, peer);
	return true;
}

static bool has_queued(const struct peer *peer)
{
	return peer->urgent.first != NULL || peer->tensors.first != NULL;
}

/* Of a peer that is relayed, or that may come to be: no connection to it is there. */
static bool any_for_rank_0(const struct skep_mesh *mesh)
{
	for (uint32_t i = 0; i < mesh->members; i++) {
		const struct peer *peer = &mesh->peer[mesh->member[i]];
		bool direct = peer->link != NULL && peer->dial_until_ns == 0 && !peer->relayed;
		if (mesh->member[i] > 0 && !direct && has_queued(peer))
			return true;
	}
	return false;
}

/* Does rank 0 take what is next of a peer that it passes on for? */
static bool window_is_open(const struct skep_mesh *mesh, const struct peer *peer)
{
	return mesh->passing < (peer->urgent.first != NULL ? 2 * SKEP_RELAY_WINDOW : SKEP_RELAY_WINDOW);
}

static bool any_to_relay_now(const struct skep_mesh *mesh)
{
	for (uint32_t i = 0; i < mesh->relays; i++) {
		const struct peer *peer = &mesh->peer[mesh->relayed[i]];
		if (peer->direct == DIRECT_SAYS || (has_queued(peer) && window_is_open(mesh, peer)))
			return true;
	}
	return false;
}

/* LAST to rank 0 goes behind all that rank 0 is or may be to pass on: when it has the LAST of every process it ends. */
static bool has_to_wait(const struct skep_mesh *mesh, const struct way *way, const struct item *item)
{
	bool last = item == mesh->peer[way->rank].tensors.first && item->type == SKEP_RECORD_FRAME;
	return last && way->rank == 0 && (mesh->holds_last || any_for_rank_0(mesh));
}

/* From here on the way is another one: a tensor that was begun goes on there. */
static bool put_direct(struct skep_mesh *mesh, const struct way *way)
{
	if (way->channel->state != SKEP_CHANNEL_OPEN || !has_room(way, 0))
		return false;
	put(way, SKEP_RECORD_DIRECT, "", 0);
	skep_mesh_direct_said(mesh, way->rank);
	return true;
}

/* One record of this peer. False: there is none, or no room. */
static bool put_next(struct skep_mesh *mesh, const struct way *way, uint64_t *tensor)
{
	struct peer *peer = &mesh->peer[way->rank];
	struct item *item = peer->urgent.first != NULL ? peer->urgent.first : peer->tensors.first;
	if (way->passing != NULL && peer->direct == DIRECT_SAYS)
		return put_direct(mesh, way);
	if (item == NULL || way->channel->state != SKEP_CHANNEL_OPEN)
		return false;
	if (way->passing != NULL && !window_is_open(mesh, peer))
		return false;
	if (item->body != NULL)
		return put_tensor(mesh, way, peer, tensor);
	if (has_to_wait(mesh, way, item))
		return false;
	if (!has_room(way, item->bytes))
		return false;
	put(way, item->type, item->content, item->bytes);
	pop(mesh, item == peer->urgent.first ? &peer->urgent : &peer->tensors);
	return true;
}

/* A record of a peer that the channel of rank 0 carries, those with something in turns. */
static bool put_relayed(struct skep_mesh *mesh, struct skep_channel *channel, uint64_t *tensor)
{
	for (uint32_t i = 0; i < mesh->relays; i++) {
		struct way way = {.channel = channel,
			.rank = mesh->relayed[mesh->relay_turn++ % mesh->relays],
			.passing = &mesh->passing};
		if (put_next(mesh, &way, tensor))
			return true;
	}
	return false;
}

void skep_mesh_pump(struct skep_mesh *mesh, uint32_t rank)
{
	assert(rank < mesh->setup.ranks && rank != mesh->setup.rank);
	struct peer *peer = &mesh->peer[rank];
	uint64_t tensor = 0;
	if (peer->relayed) {
		skep_mesh_pump(mesh, 0);
		return;
	}
	if (peer->link == NULL || peer->link->held)
		return;
	struct skep_channel *channel = &peer->link->channel;
	struct way way = {.channel = channel, .rank = rank};
	while (channel->state == SKEP_CHANNEL_OPEN) {
		while (put_next(mesh, &way, &tensor) || (rank == 0 && put_relayed(mesh, channel, &tensor)))
			;
		if (skep_channel_idle(channel))
			break;
		skep_channel_advance(channel);
		if (!skep_channel_idle(channel) || tensor >= TENSOR_BYTES_A_PUMP)
			break;
	}
	if (channel->state == SKEP_CHANNEL_OPEN && (has_queued(peer) || (rank == 0 && any_to_relay_now(mesh))))
		channel->wants_write = true;
	skep_mesh_rewatch(mesh, peer->link);
}

/* ---- what is to be sent -------------------------------------------------------------------------------------------- */

/* NULL: no memory, which breaks the mesh. */
static struct item *item_create(struct skep_mesh *mesh, size_t bytes)
{
	struct item *item = malloc(sizeof *item + bytes);
	if (item == NULL) {
		mesh->broken = "no memory for what is to be sent";
		return NULL;
	}
	memset(item, 0, sizeof *item);
	item->bytes = (uint32_t)bytes;
	return item;
}

void skep_mesh_queue(
	struct skep_mesh *mesh, uint32_t rank, bool tensors, uint8_t type, const void *content, size_t bytes)
{
	assert(rank < mesh->setup.ranks && type > 0 && type < SKEP_RECORD_TYPES && bytes <= SKEP_RECORD_MAX);
	struct peer *peer = &mesh->peer[rank];
	struct item *item = peer->there && !peer->broken ? item_create(mesh, bytes) : NULL;
	if (item == NULL)
		return;
	item->type = type;
	if (bytes > 0)
		memcpy(item->content, content, bytes);
	push(tensors ? &peer->tensors : &peer->urgent, item);
}

void skep_mesh_queue_relayed(
	struct skep_mesh *mesh, uint32_t from, uint32_t to, bool tensors, const void *content, size_t bytes)
{
	struct peer *peer = &mesh->peer[to];
	struct queue *queue = tensors ? &peer->tensors : &peer->urgent;
	assert(skep_mesh_is_root(mesh) && from != 0 && to != 0 && from != to);
	uint64_t cost = skep_relay_cost(bytes), held = mesh->peer[from].relay_held += cost;
	if (held > mesh->counts.relay_most)
		mesh->counts.relay_most = held;
	if (!peer->there || peer->broken) { /* lost, as what is sent to the dead */
		passed(mesh, from, cost);
		return;
	}
	const struct item *before = queue->first != NULL ? queue->last : NULL;
	skep_mesh_queue(mesh, to, tensors, SKEP_RECORD_RELAY, content, bytes);
	if (queue->first != NULL && queue->last != before)
		queue->last->relayed_from = from;
}

void skep_mesh_send(void *self, uint32_t rank, const struct skep_frame *frame, const void *body)
{
	struct skep_mesh *mesh = self;
	struct peer *peer = &mesh->peer[rank];
	uint8_t bytes[SKEP_FRAME_MAX];
	size_t size = skep_frame_encode(frame, mesh->setup.run, bytes);
	assert(rank < mesh->setup.ranks && rank != mesh->setup.rank);
	if (frame->body == 0) {
		bool last = frame->type == SKEP_FRAME_LAST; /* behind all tensors */
		mesh->holds_last = mesh->holds_last || (last && rank == 0);
		skep_mesh_queue(mesh, rank, last, SKEP_RECORD_FRAME, bytes, size);
		skep_mesh_pump(mesh, rank);
		return;
	}
	struct item *item = peer->there && !peer->broken ? item_create(mesh, size) : NULL;
	if (item == NULL) { /* lost, as what is sent to the dead */
		skep_mesh_tell_news(mesh,
			&(struct skep_transport_event){.kind = SKEP_TRANSPORT_SENT, .peer = rank, .frame = *frame});
		return;
	}
	item->type = SKEP_RECORD_BODY;
	item->frame = *frame;
	item->body = body;
	memcpy(item->content, bytes, size);
	push(&peer->tensors, item);
	mesh->queued_tensors++;
	skep_mesh_pump(mesh, rank);
}

void skep_mesh_drain(struct skep_mesh *mesh, struct peer *peer, uint32_t rank)
{
	while (peer->urgent.first != NULL)
		pop(mesh, &peer->urgent);
	while (peer->tensors.first != NULL) {
		if (peer->tensors.first->body != NULL)
			sent(mesh, rank, peer);
		else
			pop(mesh, &peer->tensors);
	}
}
