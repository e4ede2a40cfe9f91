/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_compute.h - the part of `skep check` that says where times come from. Nothing with the roofline of the profiles.
 */
#ifndef SKEP_SCENARIOS_DESCRIBE_COMPUTE_H
#define SKEP_SCENARIOS_DESCRIBE_COMPUTE_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "scenarios/read/scenario.h"

/* In one line: the type that passes are timed in, why, and the key that changes it. */
void skep_compute_print_type(const struct skep_scenario *scenario, FILE *out);
void skep_compute_print(const struct skep_scenario *scenario, FILE *out);
void skep_compute_add_json(const struct skep_scenario *scenario, cJSON *root);

#endif
