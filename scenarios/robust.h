/* SPDX-License-Identifier: Apache-2.0
 *
 * robust.h - keys for gradients that may be wrong: what is made of them in place of the mean, and, to try it, which workers
 * bring wrong ones.
 */
#ifndef SKEP_SCENARIOS_ROBUST_H
#define SKEP_SCENARIOS_ROBUST_H

#include <stdio.h>

#include "scenarios/scenario.h"

struct cJSON;

void skep_robust_read_sync(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s);
void skep_robust_read_byzantine(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s);
/* When the rest is known. */
void skep_robust_check(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_yaml_node *cluster,
	const struct skep_scenario *s);

/* Vectors that a worker of a stage of so many has beside each other, in parts of its own: most, while it makes one of them. */
double skep_robust_gathered(const struct skep_plan *plan, double members);

void skep_robust_print(const struct skep_scenario *s, FILE *out);
void skep_robust_add_json(const struct skep_scenario *s, struct cJSON *root);

#endif
