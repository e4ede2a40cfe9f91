/* SPDX-License-Identifier: Apache-2.0
 *
 * observed_network.h - what tests look at in the network model, and no caller of it asks for.
 */
#pragma once

#include "topologies/network/state.h"

/* Transfers that have begun and have neither arrived nor been ended. */
static inline uint32_t flows_under_way(const struct skep_network *network)
{
	return network->transfers;
}
