/* SPDX-License-Identifier: Apache-2.0
 *
 * print.h - experiments with what came of them: for a person, as JSON, and as a page in Markdown.
 */
#pragma once

#include <stdio.h>

#include "sweeping/published/experiment.h"

/* Of `count` experiments those that are wanted. */
void skep_published_print(const struct skep_published_experiment *experiment, uint32_t count, FILE *out);
bool skep_published_print_json(const struct skep_published_experiment *experiment, uint32_t count, FILE *out);
void skep_published_print_page(const struct skep_published_experiment *experiment, uint32_t count, FILE *out);
/* Of all experiments name and title. */
void skep_published_print_list(const struct skep_published_experiment *experiment, uint32_t count, FILE *out);
bool skep_published_print_list_json(const struct skep_published_experiment *experiment, uint32_t count, FILE *out);
