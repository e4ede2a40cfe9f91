/* SPDX-License-Identifier: Apache-2.0
 *
 * prefetch.h - for the simulator alone, whose machines are thousands in one process.
 */
#ifndef SKEP_CORE_PREFETCH_H
#define SKEP_CORE_PREFETCH_H

#include "core/skep.h"

/* Changes nothing: asks the caches for what the machine's next step will touch. `deep` reads what was asked for without, some
 * steps of other machines earlier, and asks for what that leads to. */
void skep_node_prefetch(const struct skep_node *node, bool deep);

#endif
