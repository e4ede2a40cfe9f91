/* SPDX-License-Identifier: Apache-2.0
 *
 * play.h - which nodes of a graph wait for which.
 */
#pragma once

#include "sim/graph/graph.h"

/* Calls `each` for every node that this one waits for: those that it comes after, and all that make what it reads; some perhaps
 * twice. Not for what it follows. */
void skep_graph_each_cause(
	const struct skep_graph *graph, uint32_t node, void (*each)(void *context, uint32_t cause), void *context);

/* The operation that this one follows where it is now: the nearest before it in its lane that is in the same place. NONE:
 * there is none. Of what it was told to follow there is no circle. */
uint32_t skep_graph_follows(const struct skep_graph *graph, uint32_t node);
