/* SPDX-License-Identifier: Apache-2.0
 *
 * shards.h - what a process of a run with tensor parallelism has beside that of any other run: the shard that it has of the
 * scenario, the connection to the ranks that share its stage, and its plane of the transport. In a run without, nothing.
 */
#pragma once

#include "exec/mpi/tensor_mpi.h"
#include "exec/transport/plane.h"
#include "models/checkpoint/checkpoint.h"
#include "scenarios/shard/shard.h"

struct skep_shards {
	uint32_t ranks;         /* that share a stage; 1: it is not split, and all else is 0 */
	uint32_t place;         /* of the process in its plane: 0 the directory, w + 1 worker w */
	uint32_t plane_number;  /* which is its tensor parallel rank */
	struct skep_shard *own; /* of the scenario */
	struct skep_tensor_mpi tensor;
	struct skep_transport all; /* that the plane's is made of */
	struct skep_plane *plane;
	struct skep_keeper parts; /* that keeps the states of all shards, each as a part of its stage */
};

/* Of a scenario that is split, all processes together. The struct stays where it is; skep_shards_finish() it, whatever this
 * returns. */
bool skep_shards_begin(struct skep_shards *ret, const struct skep_scenario *scenario, struct skep_diag *reterr);
/* The scenario as it is to this process. */
static inline const struct skep_scenario *skep_shards_scenario(
	const struct skep_shards *shards, const struct skep_scenario *whole)
{
	return shards->own != NULL ? &shards->own->scenario : whole;
}
/* What keeps the states of this process's shard, as part `plane_number` of so many of each that `all` would keep; `all` itself
 * where stages are not split. */
struct skep_keeper skep_shards_keeper(struct skep_shards *shards, const struct skep_keeper *all);
/* All processes together, of a scenario that is split: rank 0 says on stderr what ranks have sent each other within passes. */
void skep_shards_say(const struct skep_shards *shards);
/* All processes together if `clean`, when nothing of the transport is used any more. */
void skep_shards_finish(struct skep_shards *shards, bool clean);
