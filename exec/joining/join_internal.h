/* SPDX-License-Identifier: Apache-2.0
 *
 * join_internal.h - a connection of `join` to `serve`, one record after the other: shared by join.c, and states.c, which moves
 * states over connections of its own.
 */
#pragma once

#include "exec/joining/join.h"
#include "exec/loop/clock.h"
#include "exec/tcp/endpoint.h"

struct skep_joining {
	struct skep_join_options options; /* once connected `server` is the one that has answered: */
	char server[SKEP_ENDPOINT_TEXT];
	struct skep_offer offer;
	struct skep_channel channel;
	SSL_CTX *guest, *host, *client;
	struct skep_identity *identity;
	struct skep_cache cache;
	struct skep_manifest manifest;
	char *allocation;
	int listener;
	uint16_t port;
	struct skep_admitted admitted;
	struct skep_member *member; /* [members] that are there */
	size_t members;
	struct skep_clock clock;
	bool for_good, asks, waits; /* asks: no more than how the run is; waits: for the run to begin */
	uint64_t fetched, to_fetch, shown_ns;
};

/* With nothing but the options; NULL: no memory. skep_joining_finish() frees it. */
struct skep_joining *skep_joining_create(const struct skep_join_options *options);
bool skep_joining_connect(struct skep_joining *j, const struct skep_ticket *ticket, struct skep_diag *reterr);
/* HELLO. */
void skep_joining_introduce(struct skep_joining *j, const struct skep_ticket *ticket);
/* Waits for room. What cannot be said because the connection has ended, the next answer tells. */
void skep_joining_say(struct skep_joining *j, uint8_t type, const union skep_words *words);
/* The next record has this type, or it fails. */
bool skep_joining_answer(struct skep_joining *j, uint8_t type, union skep_words *ret, struct skep_diag *reterr);
