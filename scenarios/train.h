/* SPDX-License-Identifier: Apache-2.0
 *
 * train.h - the keys of `train` that say what is learnt from and how: data, optimizer, schedule. For scenario.c alone.
 */
#ifndef SKEP_SCENARIOS_TRAIN_H
#define SKEP_SCENARIOS_TRAIN_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "scenarios/scenario.h"

enum { SKEP_STEPS_MAX = 1000000000 };

/* train.until and train.target_loss: when a run ends, and what it is to reach. Needs maths and inner steps. */
void skep_train_read_until(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* train.data; opens a corpus of tokens if there is arithmetic to feed. Needs model and maths. */
void skep_train_read_data(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* model.sequence: samples shorter than the model's own. */
void skep_train_set_sequence(
	struct skep_reader *r, const struct skep_yaml_node *model, uint32_t sequence, struct skep_scenario *s);
/* train.validate. Needs plan.microbatches, samples and data. */
void skep_train_read_validation(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* train.init, with what trial.h has; opens weights if there is arithmetic that begins with them. `details`: for all that
 * differs, or NULL. */
void skep_train_read_init(
	struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s, FILE *details);
/* train.optimizer */
void skep_train_read_optimizer(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* train.schedule. Needs plan.rounds. */
void skep_train_read_schedule(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);

/* What does not go with how the model is cut and its state is handed on. Needs the plan's stages. */
void skep_train_check(struct skep_reader *r, const struct skep_yaml_node *model, const struct skep_yaml_node *train,
	const struct skep_scenario *s);

/* The tensor of the weights that the head begins with for want of one of its own; NULL: there is one, or there are none. */
const char *skep_train_head_from(const struct skep_scenario *s);

/* For `skep check`: corpus, optimizer and schedule, where they are not those of every scenario. */
void skep_train_print(const struct skep_scenario *s, FILE *out);
void skep_train_add_json(const struct skep_scenario *s, cJSON *root);

#endif
