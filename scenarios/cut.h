/* SPDX-License-Identifier: Apache-2.0
 *
 * cut.h - model.cut: where the model is cut into stages, if not as evenly as it can be.
 */
#ifndef SKEP_SCENARIOS_CUT_H
#define SKEP_SCENARIOS_CUT_H

#include "scenarios/scenario.h"

/* When the model is read; `list` NULL: the file does not say. */
void skep_cut_read(struct skep_reader *r, const struct skep_yaml_node *list, struct skep_model *model);
/* When the schedule is read, which says how many slices each stage has; `map`: model. */
void skep_cut_check(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s);

#endif
