/* SPDX-License-Identifier: Apache-2.0
 *
 * shards.c - see shards.h.
 */
#include "exec/shards.h"

#include <inttypes.h>
#include <stdio.h>

bool skep_shards_begin(struct skep_shards *ret, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	*ret = (struct skep_shards){.ranks = skep_shard_ranks(scenario)};
	ret->place = (uint32_t)rank / ret->ranks;
	ret->plane_number = (uint32_t)rank % ret->ranks;
	if (ret->ranks == 1)
		return true;
	if (!skep_tensor_mpi_create(&ret->tensor, (int)ret->place))
		return skep_fail(reterr, "no connection to the ranks that share a stage with rank %d", rank);
	ret->own = skep_shard_create(scenario, ret->plane_number, ret->ranks, &ret->tensor.group);
	return ret->own != NULL || skep_fail(reterr, "no memory for the shard of rank %d", rank);
}

static bool write_part(void *context, uint32_t stage, uint32_t version, bool presumed, const void *state,
	uint64_t bytes, struct skep_diag *reterr)
{
	const struct skep_shards *s = context;
	const uint32_t part = skep_shard_part(stage, s->plane_number, s->ranks);
	return s->parts.write(s->parts.context, part, version, presumed, state, bytes, reterr);
}

static bool read_part(
	void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, struct skep_diag *reterr)
{
	const struct skep_shards *s = context;
	return s->parts.read(
		s->parts.context, skep_shard_part(stage, s->plane_number, s->ranks), version, ret_state, bytes, reterr);
}

struct skep_keeper skep_shards_keeper(struct skep_shards *shards, const struct skep_keeper *all)
{
	if (shards->ranks == 1)
		return *all;
	shards->parts = *all;
	return (struct skep_keeper){.context = shards, .write = write_part, .read = read_part};
}

void skep_shards_say(const struct skep_shards *shards)
{
	uint64_t own[2] = {shards->tensor.bytes, shards->tensor.calls}, all[2] = {0};
	int rank;
	if (shards->ranks == 1)
		return;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Reduce(own, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		fprintf(stderr,
			"skep: tensor parallel: %" PRIu32
			" ranks share each stage; within passes they have sent each other %" PRIu64 " bytes in %" PRIu64
			" collectives\n",
			shards->ranks, all[0], all[1] / shards->ranks);
}

void skep_shards_finish(struct skep_shards *shards, bool clean)
{
	skep_plane_destroy(shards->plane);
	skep_shard_destroy(shards->own);
	if (shards->ranks > 1)
		skep_tensor_mpi_destroy(&shards->tensor, clean);
}
