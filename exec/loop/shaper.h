/* SPDX-License-Identifier: Apache-2.0
 *
 * shaper.h - decides when a message arrives in a shaped run, where the processes of one host play a network.
 *
 * Runs on rank 0. Senders tell it of every message; it moves the same model as the simulator in real time and says when
 * each has arrived. A message takes its place in the model at its sender's stamp, or at the model's clock if that has
 * gone further meanwhile, so what rank 0 is late by (some 0.1 ms) is added to no more than the start.
 */
#pragma once

#include "topologies/network/network.h"

struct skep_shaper;

struct skep_shaper_flow { /* a message: named by its sender and the sender's number for it */
	uint32_t source, destination;
	uint64_t number;
};

struct skep_shaper *skep_shaper_create(const struct skep_topology *topology); /* NULL: no memory */
void skep_shaper_destroy(struct skep_shaper *shaper);                         /* NULL is fine */

/* `sent` is not in the future, and need not grow from call to call. False: no memory. */
bool skep_shaper_start(struct skep_shaper *shaper, const struct skep_shaper_flow *flow, uint64_t bytes, skep_time sent);

/* The next message that has arrived by `now`; false: none. */
bool skep_shaper_arrived(struct skep_shaper *shaper, skep_time now, struct skep_shaper_flow *ret);

/* When the next arrives if nothing else starts; SKEP_TIME_NEVER: none under way. */
skep_time skep_shaper_next(struct skep_shaper *shaper);
