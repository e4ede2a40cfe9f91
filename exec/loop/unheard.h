/* SPDX-License-Identifier: Apache-2.0
 *
 * unheard.h - keeps the tensors that were sent until their receiver has said that they have come whole, so that one that was
 * damaged on its way can be sent again. A message is kept from its sending on, and is done with when the transport has given
 * its buffer back and the receiver has answered, in whichever order. Receivers answer for several at once.
 */
#pragma once

#include <stddef.h>

#include "core/skep.h"

#define SKEP_HEARD_MOST 16u               /* messages that a receiver has not answered for yet, */
#define SKEP_HEARD_BYTES UINT64_C(262144) /* or bytes of them: then it answers */

struct skep_unheard_item;

struct skep_unheard { /* all zero: empty */
	struct skep_unheard_item *item;
	size_t count, room;
};

enum skep_unheard_end {
	SKEP_UNHEARD_WAITS, /* for the other half, or no such message is kept */
	SKEP_UNHEARD_WHOLE, /* its buffer is free */
	SKEP_UNHEARD_AGAIN  /* it was damaged */
};

/* False: no memory. */
bool skep_unheard_add(struct skep_unheard *unheard, uint32_t peer, uint64_t number, const struct skep_message *message);
/* The transport has given the buffer back. Unless it waits, *ret is the message. */
enum skep_unheard_end skep_unheard_sent(
	struct skep_unheard *unheard, uint32_t peer, uint64_t number, struct skep_message *ret);
enum skep_unheard_end skep_unheard_answer(
	struct skep_unheard *unheard, uint32_t peer, uint64_t number, bool again, struct skep_message *ret);
/* The peer is dead, SKEP_NO_INDEX: no peer is heard any more. False: there is no message left to it whose buffer the
 * transport has given back; those that it has not are done with when it has. */
bool skep_unheard_gone(struct skep_unheard *unheard, uint32_t peer, struct skep_message *ret);
void skep_unheard_finish(struct skep_unheard *unheard);

/* What a receiver has to answer to one peer. */
struct skep_heard {
	uint32_t count;
	uint64_t bytes;
	uint64_t number[SKEP_HEARD_MOST];
};

/* True: it is time to answer. */
bool skep_heard_add(struct skep_heard *heard, uint64_t number, uint64_t bytes);
