/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_order.h - who follows whom in the rings that sum the gradients of the stages (sync.ring_order).
 */
#ifndef SKEP_SCENARIOS_RING_ORDER_H
#define SKEP_SCENARIOS_RING_ORDER_H

#include "scenarios/read/scenario.h"

/* Fills ring_order of the plan if it is to be found by the links; false: no memory. */
bool skep_ring_order_make(struct skep_scenario *s);

/* Those that serve the stage at the start, as they follow each other in its ring; ret_worker [workers]. Returns how many. */
uint32_t skep_ring_order_members(const struct skep_scenario *s, uint32_t stage, uint32_t *ret_worker);

/* What each of so many members sends to the next one in a step of the ring, of the first bucket or fragment. */
double skep_ring_order_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t members);

#endif
