/* SPDX-License-Identifier: Apache-2.0
 *
 * unheard.c - see unheard.h. There are few at a time, so they are looked for one by one.
 */
#include "exec/loop/unheard.h"

#include <assert.h>
#include <stdlib.h>

enum answer { ANSWER_NONE, ANSWER_WHOLE, ANSWER_AGAIN };

struct skep_unheard_item {
	uint32_t peer;
	enum answer answer;
	bool sent;
	uint64_t number;
	struct skep_message message;
};

bool skep_unheard_add(struct skep_unheard *unheard, uint32_t peer, uint64_t number, const struct skep_message *message)
{
	assert(number > 0);
	if (unheard->count == unheard->room) {
		size_t room = 2 * unheard->room + 16;
		struct skep_unheard_item *item = realloc(unheard->item, room * sizeof *item);
		if (item == NULL)
			return false;
		unheard->item = item;
		unheard->room = room;
	}
	unheard->item[unheard->count++] =
		(struct skep_unheard_item){.peer = peer, .number = number, .message = *message};
	return true;
}

static struct skep_unheard_item *find(const struct skep_unheard *unheard, uint32_t peer, uint64_t number)
{
	for (size_t i = 0; i < unheard->count; i++) {
		if (unheard->item[i].number == number && unheard->item[i].peer == peer)
			return &unheard->item[i];
	}
	return NULL;
}

static enum skep_unheard_end settle(
	struct skep_unheard *unheard, struct skep_unheard_item *item, struct skep_message *ret)
{
	if (!item->sent || item->answer == ANSWER_NONE)
		return SKEP_UNHEARD_WAITS;
	enum skep_unheard_end end = item->answer == ANSWER_AGAIN ? SKEP_UNHEARD_AGAIN : SKEP_UNHEARD_WHOLE;
	*ret = item->message;
	*item = unheard->item[--unheard->count];
	return end;
}

enum skep_unheard_end skep_unheard_sent(
	struct skep_unheard *unheard, uint32_t peer, uint64_t number, struct skep_message *ret)
{
	struct skep_unheard_item *item = find(unheard, peer, number);
	if (item == NULL)
		return SKEP_UNHEARD_WAITS;
	item->sent = true;
	return settle(unheard, item, ret);
}

enum skep_unheard_end skep_unheard_answer(
	struct skep_unheard *unheard, uint32_t peer, uint64_t number, bool again, struct skep_message *ret)
{
	struct skep_unheard_item *item = find(unheard, peer, number);
	if (item == NULL || item->answer != ANSWER_NONE)
		return SKEP_UNHEARD_WAITS;
	item->answer = again ? ANSWER_AGAIN : ANSWER_WHOLE;
	return settle(unheard, item, ret);
}

bool skep_unheard_gone(struct skep_unheard *unheard, uint32_t peer, struct skep_message *ret)
{
	for (size_t i = 0; i < unheard->count; i++) {
		struct skep_unheard_item *item = &unheard->item[i];
		if (peer != SKEP_NO_INDEX && item->peer != peer)
			continue;
		item->answer = ANSWER_WHOLE;
		if (settle(unheard, item, ret) != SKEP_UNHEARD_WAITS)
			return true;
	}
	return false;
}

void skep_unheard_finish(struct skep_unheard *unheard)
{
	free(unheard->item);
	*unheard = (struct skep_unheard){0};
}

bool skep_heard_add(struct skep_heard *heard, uint64_t number, uint64_t bytes)
{
	assert(heard->count < SKEP_HEARD_MOST);
	heard->number[heard->count++] = number;
	heard->bytes += bytes;
	return heard->count == SKEP_HEARD_MOST || heard->bytes >= SKEP_HEARD_BYTES;
}
