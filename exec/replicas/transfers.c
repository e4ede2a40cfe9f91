/* SPDX-License-Identifier: Apache-2.0
 *
 * transfers.c - see group.h: states between replicas, as between a worker and `serve` (exec/tcp/words.h). The side that has made
 * the connection offers a state, or asks for one; the other one answers. A small one follows its offer at once, since a worker
 * waits for it: so it takes one way there and back less, and is passed over where it is there already.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/replicas/group.h"

#define LARGE_BYTES (16u << 20) /* so much is on any disk within a fraction of an election's time-out */
#define SMALL_BYTES (1u << 20)
#define RETRY_NS 1000000000u /* from a refusal to the next try */

bool skep_transfers_has(const struct group *group, uint32_t stage, uint32_t version, uint64_t bytes)
{
	const struct skep_state_word word = {.stage = stage, .version = version, .bytes = bytes};
	return skep_arrival_needless(&group->states, &word);
}

void skep_transfers_drop(struct link *link)
{
	skep_arrival_abandon(link->arrival);
	link->arrival = NULL;
	if (link->file >= 0)
		close(link->file);
	link->file = -1;
	link->transfer = TRANSFER_NONE;
}

/* The other side waits for it: what cannot be said ends the connection, and it asks again on the next one. */
static void say_answer(struct link *link, uint8_t type, const union skep_words *words)
{
	if (!skep_link_say(link, type, words))
		skep_channel_fail(&link->channel, "it does not read its answers");
}

static void answer(struct link *link, uint64_t bytes)
{
	union skep_words words = {.state = link->word};
	words.state.bytes = bytes;
	say_answer(link, SKEP_RECORD_STATE, &words);
}

static void refuse(struct link *link, const struct skep_diag *why)
{
	union skep_words words = {0};
	snprintf(words.refused.reason, sizeof words.refused.reason, "%.400s", why->message);
	skep_transfers_drop(link);
	say_answer(link, SKEP_RECORD_REFUSED, &words);
}

/* ---- the side that answers --------------------------------------------------------------------------------------------- */

static void on_offer(struct link *link, struct skep_diag *why)
{
	const struct skep_checkpoint_folder *folder = &link->group->states;
	assert(!link->out && link->transfer == TRANSFER_NONE);
	if (skep_arrival_needless(folder, &link->word)) {
		answer(link, 0);
		return;
	}
	link->arrival = skep_arrival_begin(folder, &link->word, why);
	link->transfer = TRANSFER_RECEIVES;
	if (link->arrival != NULL)
		answer(link, link->word.bytes);
}

static void on_question(struct link *link, struct skep_diag *why)
{
	assert(!link->out && link->file < 0);
	link->file = skep_departure_open(&link->group->states, &link->word, &link->word.bytes, why);
	if (link->file < 0)
		return;
	answer(link, link->word.bytes);
	link->at = 0;
	link->transfer = TRANSFER_SENDS;
}

/* ---- both -------------------------------------------------------------------------------------------------------------- */

static void on_piece(struct link *link, const struct skep_piece *piece, struct skep_diag *why)
{
	bool whole = false;
	if (link->transfer == TRANSFER_NONE || (link->out && link->transfer != TRANSFER_RECEIVES))
		return; /* the rest of a state that is here, or could not be taken */
	if (link->transfer != TRANSFER_RECEIVES || link->arrival == NULL) {
		skep_fail(why, "it sends a state that was not asked for");
		return;
	}
	if (!skep_arrival_add(link->arrival, piece, &whole, why) || !whole)
		return;
	bool fine = skep_arrival_end(link->arrival, why);
	link->arrival = NULL;
	if (!fine)
		return;
	link->transfer = TRANSFER_NONE;
	if (link->out)
		skep_leading_fetched(link->group, &link->word);
	else
		answer(link, 0);
}

bool skep_transfers_send(struct link *link)
{
	uint8_t bytes[SKEP_PIECE_BYTES];
	assert(link->transfer != TRANSFER_SENDS || (link->file >= 0 && link->at < link->word.bytes));
	uint64_t left = link->word.bytes - link->at;
	size_t count = left < sizeof bytes ? (size_t)left : sizeof bytes;
	if (link->transfer != TRANSFER_SENDS || !skep_channel_has_room(&link->channel, SKEP_RECORD_MAX))
		return false;
	if (pread(link->file, bytes, count, (off_t)link->at) != (ssize_t)count) {
		skep_channel_fail(&link->channel, "a state has become shorter");
		return false;
	}
	union skep_words words = {.piece = {.offset = link->at, .bytes = bytes, .count = (uint32_t)count}};
	skep_link_say(link, SKEP_RECORD_PIECE, &words);
	link->at += count;
	if (link->at == link->word.bytes) {
		close(link->file);
		link->file = -1;
		link->transfer = link->out ? TRANSFER_SENT : TRANSFER_NONE;
	}
	return true;
}

/* ---- the side that has asked or offered -------------------------------------------------------------------------------- */

/* Opens the state that link->word names. False: it is gone, and this replica lacks it from now on. */
static bool open_own(struct link *link)
{
	struct skep_diag gone = {0};
	const struct skep_state_word word = link->word;
	assert(link->out && link->file < 0);
	link->file = skep_departure_open(&link->group->states, &word, &link->word.bytes, &gone);
	link->at = 0;
	if (link->file >= 0)
		return true;
	skep_transfers_drop(link);
	skep_leading_lacks(link->group, &word);
	return false;
}

static void begin_sending(struct link *link)
{
	if (open_own(link))
		link->transfer = TRANSFER_SENDS;
}

/* No other replica is at fault when this one has no room: one that has the state is to lead. */
static void begin_receiving(struct link *link, uint64_t bytes)
{
	struct skep_diag full = {0};
	assert(link->out && link->arrival == NULL);
	link->word.bytes = bytes;
	link->arrival = skep_arrival_begin(&link->group->states, &link->word, &full);
	link->transfer = TRANSFER_RECEIVES;
	if (link->arrival != NULL)
		return;
	skep_transfers_drop(link);
	if (link->group->leads)
		skep_group_fail(link->group, 1,
			"%s has no place for a state that it lacks, so that this replica ends, and the others choose "
			"another one: %s",
			link->group->states.path, full.message);
}

static void on_answer(struct link *link, const struct skep_state_word *word)
{
	bool offered = link->transfer >= TRANSFER_OFFERED && link->transfer <= TRANSFER_SENT;
	if (word->stage != link->word.stage || word->version != link->word.version) {
		skep_channel_fail(&link->channel, "it answers what was not asked");
	} else if (offered && word->bytes == 0) {
		struct skep_state_word had = link->word;
		skep_transfers_drop(link);
		skep_leading_has(link->group, link->peer, &had);
	} else if (link->transfer == TRANSFER_OFFERED) {
		begin_sending(link);
	} else if (link->transfer == TRANSFER_ASKED) {
		begin_receiving(link, word->bytes);
	}
}

/* What this side has asked for is not what it should be. */
static void cannot_take(struct link *link, const struct skep_diag *why)
{
	assert(link->out && link->transfer == TRANSFER_RECEIVES);
	fprintf(stderr, "skep: replica %u sends a state that cannot be taken, and is not asked for it again: %s\n",
		link->peer, why->message);
	skep_transfers_drop(link);
	link->retry_ns = skep_monotonic_ns() + RETRY_NS;
	skep_leading_refused(link->group, link->peer);
}

static void on_refused(struct link *link, const char *reason)
{
	bool asked = link->transfer == TRANSFER_ASKED;
	if (!asked && !link->complained)
		fprintf(stderr, "skep: replica %u does not keep a state, and is asked again: %s\n", link->peer, reason);
	link->complained = link->complained || !asked;
	skep_transfers_drop(link);
	link->retry_ns = skep_monotonic_ns() + RETRY_NS;
	if (asked)
		skep_leading_refused(link->group, link->peer);
}

void skep_transfers_record(struct link *link, const struct skep_record *record)
{
	union skep_words words;
	struct skep_diag why = {0};
	if (!skep_words_decode(record, &words)) {
		skep_channel_fail(&link->channel, "it says what no replica says");
		return;
	}
	if (record->type == SKEP_RECORD_PIECE) {
		on_piece(link, &words.piece, &why);
	} else if (record->type == SKEP_RECORD_REFUSED && link->out) {
		on_refused(link, words.refused.reason);
	} else if (record->type == SKEP_RECORD_STATE && link->out) {
		on_answer(link, &words.state);
	} else if (record->type == SKEP_RECORD_STATE && words.state.stage < link->group->kept.stages) {
		skep_transfers_drop(link);
		link->word = words.state;
		if (words.state.keep)
			on_offer(link, &why);
		else
			on_question(link, &why);
	} else {
		skep_channel_fail(&link->channel, "it says what no replica says");
	}
	if (why.set && !link->out)
		refuse(link, &why);
	else if (why.set)
		cannot_take(link, &why);
}

/* ---- what is next ------------------------------------------------------------------------------------------------------ */

static void begin(struct link *link, bool keep, uint32_t stage, uint32_t version, uint64_t bytes)
{
	assert(link->out && link->transfer == TRANSFER_NONE && version > 0);
	const bool follows = keep && bytes <= SMALL_BYTES; /* its offer, without waiting for an answer */
	union skep_words words = {.state = {.keep = keep, .stage = stage, .version = version, .bytes = bytes}};
	link->word = words.state;
	if (follows && !open_own(link))
		return;
	if (skep_link_say(link, SKEP_RECORD_STATE, &words))
		link->transfer = follows ? TRANSFER_SENDS : keep ? TRANSFER_OFFERED : TRANSFER_ASKED;
	else
		skep_transfers_drop(link); /* until the next turn */
}

/* Of what the other side is not known to have the newest that a worker waits for, else the newest. */
static const struct offer *next_offer(const struct group *group, uint32_t peer)
{
	const struct offer *next = NULL;
	for (size_t i = group->offers; i-- > 0;) {
		const struct offer *offer = &group->offer[i];
		if ((offer->has & 1u << peer) == 0 && (next == NULL || (next->proposed && !offer->proposed)))
			next = offer;
	}
	return next;
}

/* A replica that writes a large state to its disk does not hear the leader meanwhile: a majority always does. */
static bool may_begin(const struct group *group, uint64_t bytes)
{
	uint32_t busy = 0;
	for (const struct link *link = group->link; link != NULL; link = link->next)
		busy += link->out && link->transfer != TRANSFER_NONE && link->word.bytes >= LARGE_BYTES;
	return bytes < LARGE_BYTES || busy < group->count - group_majority(group);
}

/* One replica at a time sends the state that this one lacks. */
static bool is_fetching(const struct group *group)
{
	for (const struct link *link = group->link; link != NULL; link = link->next) {
		if (link->out && (link->transfer == TRANSFER_ASKED || link->transfer == TRANSFER_RECEIVES))
			return true;
	}
	return false;
}

void skep_transfers_turn(struct group *group, uint64_t now_ns)
{
	for (struct link *link = group->link; link != NULL; link = link->next) {
		if (!group->leads || !link->out || link->pipe < 0 || link->transfer != TRANSFER_NONE ||
			now_ns < link->retry_ns)
			continue;
		const struct offer *offer = next_offer(group, link->peer);
		bool misses = group->missed < group->kept.stages && (group->refused & 1u << link->peer) == 0;
		uint32_t version = skep_kept_newest(&group->kept);
		if (offer != NULL && group->server > 0 && may_begin(group, offer->bytes))
			begin(link, true, offer->stage, offer->version, offer->bytes);
		else if (misses && group->server == 0 && !is_fetching(group))
			begin(link, false, group->missed, version,
				skep_kept_find(&group->kept, group->missed, version)->bytes);
	}
}
