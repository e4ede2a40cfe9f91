/* SPDX-License-Identifier: Apache-2.0
 *
 * sent.c - see sent.h.
 */
#include "exec/replay/sent.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exec/loop/log.h"

static uint64_t hash_of(const struct skep_message *message)
{
	uint8_t bytes[SKEP_LOG_ENTRY_MAX] = {0};
	struct skep_message copy = *message;
	struct skep_wire wire = skep_wire_writer(bytes, sizeof bytes);
	skep_wire_message(&wire, &copy);
	assert(wire.ok);
	uint64_t hash = 0, word;
	for (const uint8_t *at = bytes; at < wire.at; at += sizeof word) {
		memcpy(&word, at, sizeof word);
		hash = (hash ^ word) * 0x9fb21c651e98df25u;
		hash ^= hash >> 32;
	}
	return hash + (hash == 0);
}

/* Where the hash is, or would be. */
static struct skep_replay_message *place(const struct skep_replay_sent *sent, uint64_t hash)
{
	assert(hash != 0 && sent->count < sent->room);
	size_t at = hash & (sent->room - 1);
	while (sent->message[at].hash != 0 && sent->message[at].hash != hash)
		at = (at + 1) & (sent->room - 1);
	return &sent->message[at];
}

static bool grow(struct skep_replay_sent *sent)
{
	struct skep_replay_sent more = {.count = sent->count, .room = sent->room > 0 ? 2 * sent->room : 1024};
	more.message = calloc(more.room, sizeof *more.message);
	if (more.message == NULL)
		return false;
	for (size_t i = 0; i < sent->room; i++) {
		if (sent->message[i].hash != 0)
			*place(&more, sent->message[i].hash) = sent->message[i];
	}
	free(sent->message);
	*sent = more;
	return true;
}

void skep_replay_sent_finish(struct skep_replay_sent *sent)
{
	free(sent->message);
	*sent = (struct skep_replay_sent){0};
}

bool skep_replay_send(struct skep_replay_sent *sent, const struct skep_message *message, skep_time now)
{
	if (2 * sent->count >= sent->room && !grow(sent))
		return false;
	uint64_t hash = hash_of(message);
	struct skep_replay_message *at = place(sent, hash);
	bool first = at->hash == 0;
	sent->count += first;
	*at = (struct skep_replay_message){hash, first ? now : SKEP_TIME_NEVER};
	return true;
}

bool skep_replay_was_sent(const struct skep_replay_sent *sent, const struct skep_message *message)
{
	return sent->room > 0 && place(sent, hash_of(message))->hash != 0;
}

skep_time skep_replay_sent_at(const struct skep_replay_sent *sent, const struct skep_message *message)
{
	return place(sent, hash_of(message))->at;
}
