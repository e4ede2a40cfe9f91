/* SPDX-License-Identifier: Apache-2.0
 *
 * sync.h - the keys of a scenario that say how gradients are summed: which collective, and what goes together with it.
 */
#ifndef SKEP_SCENARIOS_SYNC_H
#define SKEP_SCENARIOS_SYNC_H

#include "core/skep.h"
#include "scenarios/reader/reader.h"

/* `map`: sync, NULL if there is none. */
void skep_sync_read_collective(struct skep_reader *reader, const struct skep_yaml_node *map, struct skep_plan *plan);
/* When the plan is made: `map` as above. */
void skep_sync_check_members(
	struct skep_reader *reader, const struct skep_yaml_node *map, const struct skep_plan *plan);
/* `map`: simulate, which asks for flows. */
void skep_sync_check_flows(struct skep_reader *reader, const struct skep_yaml_node *map, const struct skep_plan *plan);

#endif
