/* SPDX-License-Identifier: Apache-2.0
 *
 * relays.h - messages between two places that only dial out: each takes the way to the directory, and the one from there.
 *
 * The directory passes on records of 64 KiB as they come and does not wait for the whole message, so a message goes in pieces:
 * B bytes in n = min(64, ceil(B / 64 KiB)) of them, at least one, each of which takes its turn on both ways. On idle ways of
 * a_1 and a_2 bytes a second it arrives after l_1 + l_2 + B / min(a_1, a_2) + B / n / max(a_1, a_2). Overhead and jitter are a
 * message's on each way, and the same for all of its pieces. Headers of the records (5 bytes each) are left out, and so is the
 * window in which the directory takes what it has not passed on (4 MiB): it holds as much as comes.
 *
 * On each way the messages of a pair take their turns with each other alone, since both ends let what they say to the directory
 * itself go before it and serve several pairs in turns.
 *
 * A piece is a transfer of the network whose tag has SKEP_RELAY_TAG and the number of its message in here.
 */
#pragma once

#include "topologies/network/state.h"
#include "topologies/read/path.h"

/* Set, and the bit above it is not: the tag of a piece; no caller's tag is like that. */
#define SKEP_RELAY_TAG (UINT64_C(1) << 62)
#define SKEP_RELAY_SECOND (UINT64_C(1) << 61) /* it is on the way from the directory */

static inline bool skep_relay_is_piece(uint64_t tag)
{
	return tag >> 62 == 1;
}

/* Of the connection on which the piece takes its turn, as of pairs; no pair has it. */
static inline uint64_t skep_relay_key(const struct skep_network *network, uint64_t piece)
{
	const struct skep_relay *relay = &network->relay[(uint32_t)piece];
	return (piece & SKEP_RELAY_SECOND ? SKEP_RELAY_SECOND << 2 : SKEP_RELAY_SECOND << 1) |
	       ((uint64_t)relay->source << 32 | relay->destination);
}

/* As skep_network_start(), of a pair that is relayed. False: no memory; what was started of it does not arrive. */
bool skep_relay_start(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag);

/* A piece has come to the end of a way, now. True: the message has arrived; *ret_tag is its own tag. If memory runs out for the
 * second way, network->failed is set. */
bool skep_relay_arrived(struct skep_network *network, uint64_t piece, uint64_t *ret_tag);

/* A piece was ended. True: it is the first one of its message to be, so that the message will not arrive; *ret_tag is its tag. */
bool skep_relay_dropped(struct skep_network *network, uint64_t piece, uint64_t *ret_tag);

/* Ends all large messages from the machine and to it, whichever way they are on; `ended` hears of each. */
void skep_relay_close(
	struct skep_network *network, uint32_t machine, void (*ended)(void *context, uint64_t tag), void *context);
