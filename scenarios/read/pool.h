/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h - reads cluster.allocation.stage_of: the stage of each machine, and which machines are standbys or left out.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* Fills first_stage_of and what is said of those without a stage. Machines that are out are then no longer there. */
void skep_pool_read(struct skep_reader *r, const struct skep_yaml_node *allocation, struct skep_scenario *s);

/* The number of a worker's machine in the topology's file, and how many that has. */
uint32_t skep_pool_machine(const struct skep_scenario *s, uint32_t worker);
uint32_t skep_pool_machines(const struct skep_scenario *s);
