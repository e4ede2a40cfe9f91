/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_json.h - the part of `skep check --json` that says what was chosen: each fact that the text of `skep check` tells
 * above its tables, under a key of its own, whether it is as usual or not. tests/cli/check.sh holds the two together.
 */
#pragma once

#include <cjson/cJSON.h>

#include "scenarios/read/scenario.h"

void skep_describe_choices_json(const struct skep_scenario *scenario, cJSON *root);
