/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_fit.h - which worker of the scenario a machine that joins is fit to be: its machines are places, and a newcomer takes one
 * that is like it.
 */
#pragma once

#include "exec/tcp/words.h"
#include "scenarios/read/scenario.h"

/* How well it fits; 0: not at all. More is better: the slot that was asked for, then a GPU of the slot's own type, then a machine
 * of which nothing was said, then another. A machine whose memory holds less than the stage needs does not fit. */
uint32_t skep_slot_fit(const struct skep_scenario *scenario, uint32_t worker, const struct skep_hello *hello);

/* Of the places that are not `taken` [workers] the one that fits best, of equals the first in the stage that has the fewest
 * taken, so that few machines hold all stages; SKEP_NO_INDEX: none fits. */
uint32_t skep_slot_best(const struct skep_scenario *scenario, const bool *taken, const struct skep_hello *hello);

/* Is there any place that the machine could ever have? If not, reterr says what the smallest one needs. */
bool skep_slot_any(const struct skep_scenario *scenario, const struct skep_hello *hello, struct skep_diag *reterr);
