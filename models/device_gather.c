/* SPDX-License-Identifier: Apache-2.0
 *
 * device_gather.c - reductions whose parts are gathered and made one (robust.h), and what a device tells of its accumulator.
 *
 * A part travels as a count of microbatches, 4 bytes, and the encoded sum of their gradients. Parts of one reduction at a time
 * are here: a new attempt collects all of them anew before it makes anything of them, and within one a range is made before the
 * next one is collected.
 */
#include "models/device_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/codec.h"

/* Room for so many elements of `size` bytes. */
static void *grown(void *memory, size_t *room, size_t wanted, size_t size)
{
	if (wanted <= *room)
		return memory;
	void *larger = realloc(memory, wanted * size);
	if (larger)
		*room = wanted;
	else
		free(memory);
	if (!larger)
		*room = 0;
	return larger;
}

const float *skep_device_own(struct skep_device *device, uint32_t round, uint64_t first, size_t n)
{
	const float *own = skep_stage_own(&device->stage, round) + first;
	if (device->byzantine.lie == SKEP_LIE_NONE)
		return own;
	device->lie = grown(device->lie, &device->lie_room, n > 0 ? n : 1, sizeof *device->lie);
	if (device->lie)
		skep_byzantine_tell(&device->byzantine, round, first, n, own, device->lie);
	return device->lie;
}

void skep_device_set_byzantine(struct skep_device *device, const struct skep_byzantine *byzantine)
{
	device->byzantine = *byzantine;
}

bool skep_device_offer(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	struct skep_chunk chunk;
	void *out;
	static_assert(sizeof op->microbatches == SKEP_PART_HEADER_BYTES, "the count goes before");
	if (!skep_device_chunk(device, op, &chunk))
		return false;
	ret->out = skep_pool_take(device->pool, SKEP_PART_HEADER_BYTES + chunk.bytes, &out);
	if (!out)
		return false;
	memcpy(out, &op->microbatches, SKEP_PART_HEADER_BYTES);
	if (chunk.own)
		skep_codec_encode(device->training->reduction_codec, chunk.count, chunk.own,
			(char *)out + SKEP_PART_HEADER_BYTES);
	else
		memset((char *)out + SKEP_PART_HEADER_BYTES, 0, chunk.bytes);
	return true;
}

static bool make_room(struct skep_gathered *gathered, uint32_t members, size_t count)
{
	size_t wanted = members * count > 0 ? members * count : 1;
	gathered->part = grown(gathered->part, &gathered->part_room, wanted, sizeof *gathered->part);
	gathered->weight = grown(gathered->weight, &gathered->weight_room, members, sizeof *gathered->weight);
	return gathered->part && gathered->weight;
}

static bool collect(struct skep_device *device, const struct skep_op *op)
{
	struct skep_gathered *gathered = &device->gathered;
	struct skep_chunk chunk;
	bool own = !op->in.slot && !op->in.generation;
	uint64_t bytes;
	const char *in = own ? NULL : skep_pool_find(device->pool, op->in, &bytes);
	if (op->microbatch >= op->size || !skep_device_chunk(device, op, &chunk) ||
		(!own && (!in || bytes != SKEP_PART_HEADER_BYTES + chunk.bytes)) ||
		!make_room(gathered, op->size, chunk.count))
		return false;
	float *part = gathered->part + op->microbatch * chunk.count;
	gathered->weight[op->microbatch] = op->microbatches;
	if (own && chunk.own)
		memcpy(part, chunk.own, chunk.count * sizeof *part);
	else if (own)
		memset(part, 0, chunk.count * sizeof *part);
	if (own)
		return true;
	memcpy(&gathered->weight[op->microbatch], in, SKEP_PART_HEADER_BYTES);
	skep_codec_decode(device->training->reduction_codec, chunk.count, in + SKEP_PART_HEADER_BYTES, part);
	return true;
}

bool skep_device_collect(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	bool good = collect(device, op);
	(void)ret;
	skep_pool_release(device->pool, op->in);
	return good;
}

/* Where no worker waits for others a merge may be of fewer than were to be compared, though the stage has as many: who is wrong
 * cannot be told then, so nothing is made of it. */
static bool too_few(const struct skep_device *device, const struct skep_op *op)
{
	uint32_t votes = 0, wanted = device->training->plan->merge_parts;
	for (uint32_t r = 0; r < op->size; r++)
		votes += device->gathered.weight[r] > 0;
	return votes < (wanted < op->size ? wanted : op->size);
}

bool skep_device_aggregate(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_gathered *gathered = &device->gathered;
	struct skep_chunk chunk;
	(void)ret;
	if (!skep_device_chunk(device, op, &chunk) || gathered->part_room < op->size * chunk.count ||
		gathered->weight_room < op->size)
		return false;
	if (too_few(device, op)) {
		memset(chunk.result, 0, chunk.count * sizeof *chunk.result);
		return true;
	}
	skep_robust_aggregate(
		&device->training->robust, op->size, chunk.count, gathered->part, gathered->weight, chunk.result);
	return true;
}

void skep_device_gathered_finish(struct skep_device *device)
{
	free(device->gathered.part);
	free(device->gathered.weight);
	free(device->lie);
}
