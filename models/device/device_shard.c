/* SPDX-License-Identifier: Apache-2.0
 *
 * device_shard.c - the operations on shards of the parameters (plan->sharded): which shard a device has moments of, what it gives
 * of the parameters that its step has made, and what it takes of those that others have made.
 */
#include <stdio.h>

#include "models/device/device_internal.h"

bool skep_device_name_shard(struct skep_device *device, const struct skep_op *op)
{
	if (skep_stage_name_shard(&device->stage, device->training->plan, op->rank, op->members))
		return true;
	snprintf(device->why[op->lane], sizeof device->why[op->lane],
		"the optimizer's state here is that of another shard than that of rank %u of %u", op->rank,
		op->members);
	return false;
}

/* Of the parameters that the round's step makes, whose shard here is stepped. They travel as they are. */
bool skep_device_copy_shard(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const uint64_t bytes = op->count * sizeof(float), all = device->stage.parameters;
	void *out;
	if (op->first > all || op->count > all - op->first)
		return false;
	ret->out = skep_pool_take(device->pool, bytes, &out);
	if (out)
		device->backend->copy(device_queue(device, op), out,
			skep_stage_parameters(&device->stage, op->round + 1) + op->first, bytes);
	return out != NULL;
}

bool skep_device_store_shard(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const uint64_t all = device->stage.parameters;
	const bool there = op->first <= all && op->count <= all - op->first;
	uint64_t bytes;
	const void *in = skep_pool_find(device->pool, op->in, &bytes);
	if (!there || !in || bytes != op->count * sizeof(float)) {
		skep_pool_release(device->pool, op->in);
		return false;
	}
	device->backend->put(
		device_queue(device, op), &device->stage, op->round + 1, op->first, op->count, (const float *)in);
	ret->out = op->in;
	return true;
}
