/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_groups.h - what `skep check` says of groups of keys, as lines of text and as members of its object, whose words
 * are those of the keys and whose times are seconds. Of what a scenario lacks there is no line.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "scenarios/read/scenario.h"

/* describe_machines.c */
void skep_pool_print(const struct skep_scenario *s, FILE *out);
void skep_pool_add_json(const struct skep_scenario *s, cJSON *root);
void skep_traced_print(const struct skep_scenario *s, FILE *out);
void skep_traced_add_json(const struct skep_scenario *s, cJSON *root);
void skep_scaled_print(const struct skep_scenario *s, FILE *out);
void skep_scaled_add_json(const struct skep_scenario *s, cJSON *root);
void skep_split_print(const struct skep_scenario *s, FILE *out);

/* describe_memory.c: a row for each stage and kind of machine that serves it */
void skep_memory_print(const struct skep_scenario *s, FILE *out);
void skep_memory_add_json(const struct skep_scenario *s, cJSON *root);

/* describe_training.c */
void skep_train_print(const struct skep_scenario *s, FILE *out);
void skep_train_add_json(const struct skep_scenario *s, cJSON *root);
void skep_freeze_print(const struct skep_scenario *s, FILE *out);
void skep_freeze_add_json(const struct skep_scenario *s, cJSON *root);
void skep_loss_print(const struct skep_scenario *s, FILE *out);
void skep_loss_add_json(const struct skep_scenario *s, cJSON *root);

/* describe_rounds.c */
void skep_periodic_print(const struct skep_scenario *s, FILE *out);
void skep_periodic_add_json(const struct skep_scenario *s, cJSON *root);
void skep_robust_print(const struct skep_scenario *s, FILE *out);
void skep_robust_add_json(const struct skep_scenario *s, cJSON *root);
void skep_overlap_print(const struct skep_scenario *s, FILE *out);
void skep_overlap_add_json(const struct skep_scenario *s, cJSON *root);

/* describe_planned.c */
void skep_planned_print(const struct skep_scenario *s, FILE *out);
void skep_planned_add_json(const struct skep_scenario *s, cJSON *root);
