/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_ring.h - what `skep check` says of the order of the rings that sum gradients, and of their slowest hops.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "scenarios/read/scenario.h"

/* A line for each stage, where the order is by links. */
void skep_ring_print(const struct skep_scenario *s, FILE *out);
/* Adds `ring` to what is said of a stage; null where its members form no ring. */
void skep_ring_add_json(const struct skep_scenario *s, uint32_t stage, cJSON *object);
