/* SPDX-License-Identifier: Apache-2.0
 *
 * traced.h - the group `cluster.trace` of a scenario: which workers are there, and from when to when, as a recording says it
 * or as it is drawn by the seed from the law of one (topologies/churn.h).
 */
#ifndef SKEP_SCENARIOS_TRACED_H
#define SKEP_SCENARIOS_TRACED_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "scenarios/scenario.h"

/* When the topology and the number of stages are read. Without the group all are there. */
void skep_traced_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s);

/* For `skep check`; nothing without the group. */
void skep_traced_print(const struct skep_scenario *s, FILE *out);
void skep_traced_add_json(const struct skep_scenario *s, cJSON *root);

#endif
