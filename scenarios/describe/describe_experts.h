/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_experts.h - the part of `skep check` that says what experts a model has, and how many of its parameters a token
 * meets, as text or under the key `experts`.
 */
#pragma once

#include <cjson/cJSON.h>

#include "scenarios/describe/describe.h"

/* Of a model without experts: nothing, and null. */
void skep_experts_print(const struct skep_scenario *scenario, FILE *out);
void skep_experts_add_json(const struct skep_scenario *scenario, cJSON *root);
