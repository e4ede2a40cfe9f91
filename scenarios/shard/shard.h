/* SPDX-License-Identifier: Apache-2.0
 *
 * shard.h - tensor parallelism in a real run: how many ranks share the stage of a worker, and what the scenario is to one of
 * them.
 *
 * `cluster.tensor_parallel` says over how many GPUs of its machine a worker splits its stage. In the simulator, and in a run
 * with --pace, the worker is one machine whose passes take as long as that many GPUs need. In any other real run it is as many
 * processes, one for each GPU. To each of them the run is an ordinary one with smaller stages: its plan has the parameters and
 * the activations of its own shard. All shards of a stage have equally many, so that all of them take the same decisions.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* The most GPUs that a worker splits its stage over, 1 or more. */
uint32_t skep_shard_degree(const struct skep_scenario *scenario);
/* Ranks that share the stage of a worker: so many if scenario->split, else 1. */
uint32_t skep_shard_ranks(const struct skep_scenario *scenario);
/* Processes of a real run, without spares: those of each worker and of the directory. */
uint32_t skep_shard_processes(const struct skep_scenario *scenario);

/* The number, among the states that a run keeps, of that of rank `rank` of `ranks`, where it is `part` of all without shards. */
static inline uint32_t skep_shard_part(uint32_t part, uint32_t rank, uint32_t ranks)
{
	return part * ranks + rank;
}
/* How many states a version has. */
uint32_t skep_shard_parts(const struct skep_scenario *scenario);

/* Whether stages can be split for real; if not, the error says why and what to do, and ret_key where that stands. */
bool skep_shard_runs(const struct skep_scenario *scenario, const char *ret_key[2], struct skep_diag *reterr);

/* The scenario as it is to one rank. What its plan and its training do not say of the shard is the whole scenario's. */
struct skep_shard {
	struct skep_scenario scenario;
	struct skep_model model;
};

/* For rank `rank` of `ranks`, 2 or more. `whole` and `group` have to outlive it, and it stays where it is. NULL: no memory. */
struct skep_shard *skep_shard_create(
	const struct skep_scenario *whole, uint32_t rank, uint32_t ranks, const struct skep_tensor_group *group);
void skep_shard_destroy(struct skep_shard *shard); /* NULL is fine */
