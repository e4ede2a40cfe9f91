/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_compute.h - the part of `skep check` that says where times come from. Nothing with the roofline of the profiles.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "scenarios/read/scenario.h"

/* In one line: the type that passes are timed in, why, and the key that changes it. */
void skep_compute_print_type(const struct skep_scenario *scenario, FILE *out);
/* The same in a few words: "fp32", "fp16, mixed precision", "tf32, fp32 tensors", "bf16 on A100-SXM4-40, fp16 on T4, mixed
 * precision". */
void skep_compute_format_text(const struct skep_scenario *scenario, char *ret, size_t size);
/* Whether nothing but the kind of GPU has decided it, and it is not fp32, in which arithmetic: real computes. */
bool skep_compute_format_is_chosen(const struct skep_scenario *scenario);
void skep_compute_print(const struct skep_scenario *scenario, FILE *out);
void skep_compute_add_json(const struct skep_scenario *scenario, cJSON *root);
