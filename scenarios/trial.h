/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.h - the keys of `train.init` that ask for several candidates for the first parameters: candidates, keep, steps
 * (core/trial.c has what is done with them).
 */
#ifndef SKEP_SCENARIOS_TRIAL_H
#define SKEP_SCENARIOS_TRIAL_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "scenarios/scenario.h"

/* `map` is train.init. Returns whether it asks for candidates. */
bool skep_trial_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s);
/* When the plan is made: what does not go together with them. */
void skep_trial_check(struct skep_reader *r, const struct skep_yaml_node *train, const struct skep_scenario *s);

/* For `skep check`. */
void skep_trial_print(const struct skep_scenario *s, FILE *out);
void skep_trial_add_json(const struct skep_scenario *s, cJSON *root);

#endif
