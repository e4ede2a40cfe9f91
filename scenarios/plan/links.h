/* SPDX-License-Identifier: Apache-2.0
 *
 * links.h - what a plan tells workers of the links between them: who follows whom in the rings that sum the gradients of the
 * stages (sync.ring_order), what the members of other collectives need to know of each other, and how long activations take.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* Fill what the scenario's collective asks for, ring_order included if that is to be found by the links; and times of activations
 * between places. False: no memory. */
bool skep_plan_make_collective(struct skep_scenario *s);
bool skep_plan_make_transfers(struct skep_scenario *s);

/* Those that serve the stage at the start, as they follow each other in its ring; ret_worker [workers]. Returns how many. */
uint32_t skep_ring_order_members(const struct skep_scenario *s, uint32_t stage, uint32_t *ret_worker);

/* What each of so many members sends to the next one in a step of the ring, of the first bucket or fragment. */
double skep_ring_order_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t members);

/* From the worker that is farthest from the directory, one way, when a message is late. Needs the topology alone. */
double skep_links_to_directory_s(const struct skep_scenario *s);
