/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_step.h - the part of `skep check` that says what an optimizer step and the whole run are expected to take, as text or
 * under the key `expected`.
 */
#pragma once

#include <cjson/cJSON.h>

#include "scenarios/describe/describe.h"

void skep_describe_step(const struct skep_scenario *scenario, const struct skep_described_step *step, FILE *out);
/* NULL: null. */
void skep_describe_step_json(const struct skep_scenario *scenario, const struct skep_described_step *step, cJSON *root);
