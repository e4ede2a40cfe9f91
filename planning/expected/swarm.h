/* SPDX-License-Identifier: Apache-2.0
 *
 * swarm.h - how long the microbatches of a round take in a swarm, whose workers choose for each one where it goes next.
 */
#pragma once

#include "planning/expected/loads.h"

/* Of `round` microbatches, into trip_s, pace_s, bound, from, to, flow_s, busy and starved. Makes the shares of the first stage's
 * workers what they come to, and leaves the loads carried and listed with them. */
void skep_swarm_flow(struct skep_loads *loads, struct skep_expected *expected, double round);

/* The same of a model in a single stage. */
void skep_swarm_alone(struct skep_loads *loads, struct skep_expected *expected, double round);
