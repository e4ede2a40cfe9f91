/* SPDX-License-Identifier: Apache-2.0
 *
 * scaled.h - the group `cluster.scale` of a scenario: how many machines the run asks for while it goes on (core/scale/scale.h has
 * what is decided). The topology has all that there may ever be; those of the start are there at the start, the others come
 * when they are asked for, if the trace has them then.
 *
 * Kept true: plan.scale is NULL without the group. Machines are of one kind if GPU and price, or history of prices, are the
 * same.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* When topology, trace, prices and allocation.stage_of are read, and before workers are dealt out. */
void skep_scaled_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s);
/* When the schedule is read, and again when all is: what it does not go together with is refused. */
void skep_scaled_check(struct skep_reader *r, const struct skep_yaml_node *cluster, const struct skep_scenario *s);
/* When the times of passes are known: how fast each kind is. */
void skep_scaled_make(struct skep_scenario *s);
/* Once all files are known: how long machines take from being asked for to joining. False: no memory. */
bool skep_scaled_admit(struct skep_scenario *s, skep_time *first_ns, skep_time *again_ns);

void skep_scaled_finish(struct skep_scenario *s);
