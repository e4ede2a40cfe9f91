/* SPDX-License-Identifier: Apache-2.0
 *
 * rehearsal.h - how long the sums of all stages take, transfer by transfer as core/collective/collective.h has them, on the
 * network of the topology. Who sends to whom decides what shares which line, which no closed form of a star knows: a
 * parameter server has all on its own lines, and of a tree in three homes two edges cross a router or all do.
 *
 * All stages begin at once. What devices do takes no time here.
 */
#pragma once

#include "planning/expected/loads.h"

/* Can the pool's sums be played, and are they of few enough messages? The same for all allocations of a pool, so that what is
 * compared is expected in one way: with even stages. */
bool skep_rehearsal_short(const struct skep_planning *planning);

/* Fills reduce_s. False: no memory. */
bool skep_rehearsal_reduce(struct skep_loads *loads);
