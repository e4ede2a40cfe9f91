/* SPDX-License-Identifier: Apache-2.0
 *
 * elements.c - which elements of a stage's vector an operation is about: a chunk of its state, a virtual stage's, those of a
 * fragment, or a member's shard.
 */
#include "tests/cluster/device.h"

uint32_t device_chunk_mask(const struct skep_plan *plan, uint32_t stage, uint32_t chunk, uint32_t size)
{
	uint64_t first, count;
	skep_chunk_range(plan->stage[stage].parameters, chunk, size, &first, &count);
	return ((1u << count) - 1) << first;
}

uint32_t device_vstage_mask(const struct skep_plan *plan, uint32_t vstage)
{
	uint32_t trained = device_trained_mask(plan, vstage % plan->stages);
	if (plan->model_chunks <= 1)
		return trained;
	return trained & device_chunk_mask(plan, vstage % plan->stages, vstage / plan->stages, plan->model_chunks);
}

uint32_t device_fragment_mask(const struct skep_plan *plan, const struct skep_op *op)
{
	if (plan->inner.sum_every && (op->round + 1) % plan->inner.sum_every[op->stage] > 0)
		return 0;
	if (plan->inner.fragments <= 1)
		return ALL_KNOWN;
	const struct skep_stage_plan *s = &plan->stage[op->stage];
	uint64_t first, count;
	skep_chunk_range(s->parameters - s->frozen - s->frozen_end, op->round % plan->inner.fragments,
		plan->inner.fragments, &first, &count);
	return ((1u << count) - 1) << (s->frozen + first);
}

/* Of n members the one of rank r has the sum of chunk r + 1, modulo n, when a reduce-scatter is done, since chunk r begins at
 * rank r and grows on n - 1 hops: so that is the shard that it steps. */
uint32_t device_shard_mask(const struct skep_plan *plan, const struct skep_op *op, uint32_t rank)
{
	uint32_t stage = op->stage % plan->stages;
	const struct skep_stage_plan *s = &plan->stage[stage];
	uint64_t first, count;
	if (!plan->sharded || op->members < 2)
		return ALL_KNOWN;
	skep_chunk_range(
		s->parameters - s->frozen - s->frozen_end, (rank + 1) % op->members, op->members, &first, &count);
	return ((1u << count) - 1) << (s->frozen + first);
}
