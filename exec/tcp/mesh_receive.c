/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh_receive.c - what a record means. Its sender has proved its rank, and is not trusted further: a record that its rank may
 * not send, or whose content no writer writes, ends its connection.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "exec/tcp/mesh_internal.h"

static void refuse(struct skep_mesh *mesh, uint32_t rank, const char *why)
{
	if (mesh->peer[rank].link != NULL && !mesh->peer[rank].from_root)
		skep_channel_fail(&mesh->peer[rank].link->channel, why);
	else
		skep_mesh_lost(mesh, rank, why);
}

/* False: it is counted, and ends the connection. Its sender is a member, which sends frames of this run alone: what cannot be
 * read was damaged on its way or before, its receiver may need it, and what else the member has sent is lost with it. */
static bool decode(struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record, struct skep_frame *ret)
{
	enum skep_frame_fault fault = skep_frame_decode(record->content, record->bytes, mesh->setup.run, ret);
	if (fault == SKEP_FRAME_GOOD && (ret->body > 0) == (record->type == SKEP_RECORD_BODY))
		return true;
	if (fault == SKEP_FRAME_GOOD)
		fault = SKEP_FRAME_BAD_CONTENT;
	skep_complain(mesh->setup.rejects, (enum skep_reject)fault, rank);
	refuse(mesh, rank, "it sent a frame that cannot be read: it was damaged on its way, or before");
	return false;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------- */

static void begin_tensor(struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record)
{
	struct peer *peer = &mesh->peer[rank];
	struct incoming *in = &peer->incoming;
	if (in->left > 0) {
		refuse(mesh, rank, "it sent a tensor within a tensor");
		return;
	}
	if (!decode(mesh, rank, record, &in->frame))
		return;
	in->memory = mesh->landing->memory(mesh->landing->context, rank, &in->frame, &in->frame.u.message.payload);
	if (!peer->there) /* what it announced was a reason to send it away */
		return;
	in->left = in->frame.body;
	assert(in->left > 0);
	in->at = 0;
	mesh->open_tensors++;
	if (peer->from_root)
		return;
	peer->link->channel.sink = in->memory;
	peer->link->channel.sink_left = in->left;
}

void skep_mesh_lose_incoming(struct skep_mesh *mesh, uint32_t rank)
{
	struct incoming *in = &mesh->peer[rank].incoming;
	if (in->left == 0)
		return;
	assert(mesh->open_tensors > 0);
	if (in->memory != NULL)
		skep_mesh_tell_news(mesh,
			&(struct skep_transport_event){.kind = SKEP_TRANSPORT_LOST, .peer = rank, .frame = in->frame});
	in->left = 0;
	mesh->open_tensors--;
}

static bool take_data(
	struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record, struct skep_transport_event *ret)
{
	struct incoming *in = &mesh->peer[rank].incoming;
	if (record->bytes == 0 || record->bytes > in->left) {
		refuse(mesh, rank, "it sent more of a tensor than it announced");
		return false;
	}
	assert(in->at + in->left == in->frame.body && mesh->open_tensors > 0);
	if (record->content != NULL && in->memory != NULL) /* relayed */
		memcpy(in->memory + in->at, record->content, record->bytes);
	in->at += record->bytes;
	in->left -= record->bytes;
	if (in->left > 0)
		return false;
	mesh->open_tensors--;
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_ARRIVED, .peer = rank, .frame = in->frame};
	return in->memory != NULL;
}

/* ---- frames and words ---------------------------------------------------------------------------------------------- */

static bool take_frame(
	struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record, struct skep_transport_event *ret)
{
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_ARRIVED, .peer = rank};
	if (!decode(mesh, rank, record, &ret->frame))
		return false;
	if (ret->frame.type == SKEP_FRAME_LAST)
		mesh->peer[rank].last = true;
	return true;
}

static uint32_t relay_rank(const struct skep_record *record)
{
	assert(record->bytes >= SKEP_RELAY_HEAD);
	const uint8_t *at = record->content;
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool may_be_relayed(const struct skep_record *record)
{
	uint8_t type = record->content[4];
	assert(record->bytes >= SKEP_RELAY_HEAD);
	if (type == SKEP_RECORD_DIAL || type == SKEP_RECORD_DIRECT)
		return record->bytes == SKEP_RELAY_HEAD;
	return type == SKEP_RECORD_FRAME || type == SKEP_RECORD_BODY || type == SKEP_RECORD_DATA ||
	       type == SKEP_RECORD_PING;
}

/* Is the frame inside the one that goes behind all tensors? */
static bool is_last(const struct skep_mesh *mesh, const struct skep_record *record)
{
	struct skep_frame frame;
	return record->content[4] == SKEP_RECORD_FRAME &&
	       skep_frame_decode(record->content + SKEP_RELAY_HEAD, record->bytes - SKEP_RELAY_HEAD, mesh->setup.run,
		       &frame) == SKEP_FRAME_GOOD &&
	       frame.type == SKEP_FRAME_LAST;
}

static void count_relayed(struct skep_mesh *mesh, uint32_t from, uint32_t to, uint32_t bytes)
{
	struct peer *sender = &mesh->peer[from];
	assert(from != 0 && to != 0 && from != to);
	mesh->counts.relayed_bytes += bytes;
	if (sender->relay_to != to && mesh->peer[to].there && mesh->setup.lobby.relayed != NULL)
		mesh->setup.lobby.relayed(mesh->setup.lobby.self, from, to);
	sender->relay_to = to;
}

static void count_direct(struct skep_mesh *mesh, uint32_t from, uint32_t to)
{
	struct peer *sender = &mesh->peer[from];
	assert(from != 0 && to != 0 && from != to);
	if (mesh->peer[to].there && mesh->setup.lobby.direct != NULL)
		mesh->setup.lobby.direct(mesh->setup.lobby.self, from, to);
	sender->relay_to = sender->relay_to == to ? 0 : sender->relay_to;
}

/* Rank 0: on to its receiver, with its sender's rank in the receiver's place. */
static void pass_on(struct skep_mesh *mesh, uint32_t from, uint32_t to, const struct skep_record *record)
{
	assert(skep_mesh_is_root(mesh) && record->bytes <= SKEP_RECORD_MAX);
	uint8_t copy[SKEP_RECORD_MAX];
	bool tensors = record->content[4] == SKEP_RECORD_BODY || record->content[4] == SKEP_RECORD_DATA ||
	               record->content[4] == SKEP_RECORD_DIRECT || is_last(mesh, record);
	if (to == 0 || to == from || to >= mesh->setup.ranks) {
		refuse(mesh, from, "it asked to pass something on to a process that cannot be");
		return;
	}
	if (mesh->peer[from].relay_held > skep_relay_most(mesh->setup.ranks)) {
		refuse(mesh, from, "it asked to pass on more than a process may");
		return;
	}
	memcpy(copy, record->content, record->bytes);
	for (int i = 0; i < 4; i++)
		copy[i] = (uint8_t)(from >> 8 * i);
	if (record->content[4] == SKEP_RECORD_DIRECT)
		count_direct(mesh, from, to);
	else if (record->content[4] != SKEP_RECORD_DIAL)
		count_relayed(mesh, from, to, record->bytes);
	skep_mesh_queue_relayed(mesh, from, to, tensors, copy, record->bytes);
	skep_mesh_pump(mesh, to);
}

static bool take_relay(
	struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record, struct skep_transport_event *ret)
{
	if (record->bytes < SKEP_RELAY_HEAD || !may_be_relayed(record)) {
		refuse(mesh, rank, "it sent a record that no skep sends");
		return false;
	}
	uint32_t other = relay_rank(record);
	if (skep_mesh_is_root(mesh)) {
		pass_on(mesh, rank, other, record);
		return false;
	}
	if (rank != 0 || other == 0 || other >= mesh->setup.ranks || other == mesh->setup.rank) {
		refuse(mesh, rank, "it sent a record in another's name");
		return false;
	}
	if (!mesh->peer[other].there ||
		mesh->peer[other].broken) /* something of it is lost: nothing behind that is heard */
		return false;
	if (record->content[4] == SKEP_RECORD_DIAL) {
		skep_mesh_dial_back(mesh, other);
		return false;
	}
	bool heard = record->content[4] == SKEP_RECORD_DIRECT;
	if ((heard && !skep_mesh_direct_heard(mesh, other)) || (!heard && mesh->peer[other].switched)) {
		refuse(mesh, other, "it spoke on two ways at once");
		return false;
	}
	if (heard)
		return false;
	if (!mesh->peer[other].from_root) /* what this process says may have another way by now */
		skep_mesh_relay_from_now(mesh, other);
	struct skep_record inner = {.type = record->content[4],
		.content = record->content + SKEP_RELAY_HEAD,
		.bytes = record->bytes - SKEP_RELAY_HEAD};
	return skep_mesh_take(mesh, other, &inner, ret);
}

/* Rank 0 has passed on so much of what this process gave it. */
static void on_passed(struct skep_mesh *mesh, uint64_t cost)
{
	if (cost > mesh->passing) {
		refuse(mesh, 0, "it has passed on more than it was given");
		return;
	}
	mesh->passing -= cost;
	assert(!skep_mesh_is_root(mesh));
	skep_mesh_pump(mesh, 0);
}

static void be_evicted(struct skep_mesh *mesh, const char *why)
{
	assert(!skep_mesh_is_root(mesh));
	snprintf(mesh->parted, sizeof mesh->parted, "evicted: %.400s", why);
	skep_channel_fail(&mesh->peer[0].link->channel, "evicted");
}

/* Of members: who is one, and who does not hear whom. */
static void take_words(struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record)
{
	union skep_words words;
	bool root = skep_mesh_is_root(mesh), fine = skep_words_decode(record, &words);
	if (fine && record->type == SKEP_RECORD_DISCONNECT && root && words.disconnect < mesh->setup.ranks)
		skep_mesh_disconnected(mesh, rank, words.disconnect);
	else if (fine && record->type == SKEP_RECORD_MEMBER && !root && rank == 0 &&
		 words.member.rank < mesh->setup.ranks && words.member.rank != mesh->setup.rank)
		skep_mesh_member(mesh, &words.member, true);
	else if (fine && record->type == SKEP_RECORD_PASSED && !root && rank == 0)
		on_passed(mesh, words.passed);
	else if (fine && record->type == SKEP_RECORD_EVICTED && !root && rank == 0)
		be_evicted(mesh, words.evicted);
	else
		refuse(mesh, rank, "it sent a record that no skep sends");
}

bool skep_mesh_take(
	struct skep_mesh *mesh, uint32_t rank, const struct skep_record *record, struct skep_transport_event *ret)
{
	assert(rank < mesh->setup.ranks && rank != mesh->setup.rank);
	switch (record->type) {
	case SKEP_RECORD_FRAME:
		return take_frame(mesh, rank, record, ret);
	case SKEP_RECORD_BODY:
		begin_tensor(mesh, rank, record);
		return false;
	case SKEP_RECORD_DATA:
		return take_data(mesh, rank, record, ret);
	case SKEP_RECORD_RELAY:
		return take_relay(mesh, rank, record, ret);
	case SKEP_RECORD_PING:
		return false;
	case SKEP_RECORD_DIAL: /* from before there was this connection */
		if (!mesh->peer[rank].switched)
			refuse(mesh, rank, "it sent a record that no skep sends");
		return false;
	default:
		take_words(mesh, rank, record);
		return false;
	}
}
