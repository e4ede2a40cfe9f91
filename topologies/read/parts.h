/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.h - machines of several GPUs that have several workers: the GPUs of such a machine are dealt out to parts, each of which
 * is a machine of the topology from then on.
 *
 * What is kept true: parts of one machine reach each other over the link between its GPUs, one pair as if there were no other,
 * and share its way in and out; to all others they are as far as the machine is. A part has its share of the machine's price, by
 * GPUs, and of the memory of its host; cores stay shared. Machines keep their order, and parts have that of their machine.
 */
#pragma once

#include "topologies/read/topology.h"

/* Why a machine cannot have several parts; NULL: it can. What others share with it would have to be shared twice. */
const char *skep_parts_refuse(const struct skep_topology *topology, uint32_t machine);

/* Machine i has the parts first[i] to first[i + 1], part k has gpus[k]: at least one, together no more than the machine has.
 * `first` [machines + 1]. False: no memory, or more kinds of machines than a topology has. */
bool skep_parts_take(struct skep_topology *topology, const uint32_t *first, const uint32_t *gpus);
