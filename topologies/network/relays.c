/* SPDX-License-Identifier: Apache-2.0
 *
 * relays.c - see relays.h.
 *
 * What is kept true: a message is here until each of its pieces has arrived or was ended. One that is `ended` sends no more
 * pieces on the second way and does not arrive.
 */
#include "topologies/network/relays.h"

#include <assert.h>
#include <stddef.h>

#include "topologies/network/due.h"
#include "topologies/network/free_list.h"

#define NONE UINT32_MAX

static uint32_t directory_of(const struct skep_network *network)
{
	return network->topology->machines;
}

static uint32_t take(struct skep_network *network)
{
	if (network->free_relay == NONE &&
		!skep_free_list_grow(&network->relay, sizeof *network->relay, offsetof(struct skep_relay, next), 64,
			&network->relay_capacity, &network->free_relay))
		return NONE;
	uint32_t i = network->free_relay;
	network->free_relay = network->relay[i].next;
	return i;
}

/* One more piece has nothing left to do. */
static bool is_over(struct skep_network *network, uint32_t i)
{
	struct skep_relay *relay = &network->relay[i];
	assert(relay->pieces > 0);
	if (--relay->pieces > 0)
		return false;
	relay->next = network->free_relay;
	network->free_relay = i;
	return true;
}

static bool put(struct skep_network *network, skep_time due, uint32_t source, uint32_t destination, uint64_t bytes,
	uint64_t tag)
{
	return (network->transfers < network->due_capacity || skep_due_grow(network)) &&
	       skep_network_put(network, due, source, destination, bytes, tag);
}

/* Bytes of the n-th of so many pieces. */
static uint64_t piece_bytes(uint64_t bytes, uint32_t pieces, uint32_t n)
{
	return bytes / pieces + (n < bytes % pieces);
}

bool skep_relay_start(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag)
{
	uint32_t i = take(network);
	skep_time due;
	if (i == NONE)
		return false;
	uint32_t pieces = skep_path_relay_pieces(bytes);
	network->relay[i] = (struct skep_relay){.tag = tag,
		.bytes = bytes,
		.source = source,
		.destination = destination,
		.of = pieces,
		.pieces = pieces};
	uint32_t directory = directory_of(network);
	bool good = skep_network_due(network, now, source, directory, &due);
	for (uint32_t n = 0; good && n < pieces; n++)
		good = put(network, due, source, directory, piece_bytes(bytes, pieces, n), SKEP_RELAY_TAG | i);
	network->relay[i].ended = !good;
	network->failed = network->failed || !good;
	return good;
}

/* All pieces are as late as the first one. */
static bool pass_on(struct skep_network *network, uint32_t i)
{
	struct skep_relay *relay = &network->relay[i];
	uint32_t directory = directory_of(network), n = relay->passed++;
	skep_time due = network->clock + relay->late_ns;
	if (n == 0) {
		if (!skep_network_due(network, network->clock, directory, relay->destination, &due))
			return false;
		relay->late_ns = due - network->clock;
	}
	return put(network, due, directory, relay->destination, piece_bytes(relay->bytes, relay->of, n),
		SKEP_RELAY_TAG | SKEP_RELAY_SECOND | i);
}

bool skep_relay_arrived(struct skep_network *network, uint64_t piece, uint64_t *ret_tag)
{
	uint32_t i = (uint32_t)piece;
	assert(skep_relay_is_piece(piece) && i < network->relay_capacity);
	bool ended = network->relay[i].ended;
	if (!ended && !(piece & SKEP_RELAY_SECOND)) {
		network->failed = network->failed || !pass_on(network, i);
		return false;
	}
	*ret_tag = network->relay[i].tag;
	return is_over(network, i) && !ended;
}

bool skep_relay_dropped(struct skep_network *network, uint64_t piece, uint64_t *ret_tag)
{
	uint32_t i = (uint32_t)piece;
	assert(skep_relay_is_piece(piece) && i < network->relay_capacity);
	bool first = !network->relay[i].ended;
	network->relay[i].ended = true;
	*ret_tag = network->relay[i].tag;
	is_over(network, i);
	return first;
}

void skep_relay_close(
	struct skep_network *network, uint32_t machine, void (*ended)(void *context, uint64_t tag), void *context)
{
	for (uint32_t i = 0; i < network->relay_capacity; i++) {
		struct skep_relay *relay = &network->relay[i];
		bool meant = relay->source == machine || relay->destination == machine;
		if (relay->pieces == 0 || relay->ended || !meant || relay->bytes <= SKEP_NETWORK_SMALL_BYTES)
			continue;
		relay->ended = true;
		ended(context, relay->tag);
	}
}
