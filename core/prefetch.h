/* SPDX-License-Identifier: Apache-2.0
 *
 * prefetch.h - for the simulator alone, whose machines are thousands in one process.
 */
#pragma once

#include "core/skep.h"

/* Changes nothing: asks the caches for what the machine's next step will touch. `deep` reads what was asked for without, some
 * steps of other machines earlier, and asks for what that leads to. */
void skep_node_prefetch(const struct skep_node *node, bool deep);
