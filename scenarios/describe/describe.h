/* SPDX-License-Identifier: Apache-2.0
 *
 * describe.h - what a scenario comes to, for `skep check`: stages, workers, memory, bytes and time per step.
 */
#ifndef SKEP_SCENARIOS_DESCRIBE_H
#define SKEP_SCENARIOS_DESCRIBE_H

#include <stdio.h>

#include "scenarios/read/scenario.h"

/* One text for a person, or one JSON object. Bytes per round are exact for a round without losses: activations and
 * gradients over every stage boundary, and 2(n-1) times a stage's parameters for a ring of n. */
void skep_scenario_describe(const struct skep_scenario *scenario, bool json, FILE *out);

#endif
