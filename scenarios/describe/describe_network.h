/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_network.h - what `skep check` says of links that have more than bandwidth and latency, of sites' own uplinks, and
 * of the prices of traffic. Nothing where there is nothing to say.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "topologies/read/topology.h"

void skep_network_describe(const struct skep_topology *topology, FILE *out);
void skep_network_describe_json(const struct skep_topology *topology, cJSON *root); /* adds "network" */

/* What traffic between places costs; nothing if no price is given. */
void skep_egress_describe(const struct skep_topology *topology, FILE *out);
void skep_egress_describe_json(const struct skep_topology *topology, cJSON *root); /* adds "egress" */
