/* SPDX-License-Identifier: Apache-2.0
 *
 * uncertain.h - how far the figures of links and machines may be off, and a draw of it.
 *
 * What is not known of a figure is one number: the deviation of ln(real / stated). A draw is one factor, lognormal with median
 * 1, for each figure that a file states and for a seed. So whatever one figure stands for is off together: both directions of
 * `between`, all pairs of a `fallback`, all machines of a group; and it stays so for the whole run, since the error of a
 * measurement does not average out over messages (jitter does).
 */
#pragma once

#include "topologies/read/topology.h"

/* Puts drawn figures in place of the stated ones: capacity and latency of pairs, and of machines up, down and price. Of a latency
 * `extra_latency_s` is no part of what may be off. To be called once. */
void skep_topology_draw(struct skep_topology *topology, uint64_t seed, double extra_latency_s);

/* Does any figure of the topology say that it may be off? */
bool skep_topology_uncertain(const struct skep_topology *topology);
