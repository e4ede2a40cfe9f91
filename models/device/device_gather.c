/* SPDX-License-Identifier: Apache-2.0
 *
 * device_gather.c - reductions whose parts are gathered and then aggregated (robust.h), and what a device reports of
 * its accumulator when its worker is Byzantine.
 *
 * A part travels as its count of microbatches, 4 bytes, followed by the encoded sum of their gradients. The device
 * holds the parts of one reduction at a time: a new attempt collects all parts again before it aggregates any of them,
 * and within an attempt one range is aggregated before the next one is collected.
 */
#include "models/device/device_internal.h"

#include <assert.h>
#include <string.h>

static void *skep_scratch_grow(struct skep_device *device, struct skep_scratch *room, size_t floats)
{
	const struct skep_memory_source *source = &device->pool->source;
	const size_t line = 64 / sizeof(float), wanted = (floats / line + 1) * line;
	if (floats < room->floats)
		return room->memory;
	source->give(source->context, SKEP_MEMORY_DEVICE, room->memory);
	room->memory = source->take(source->context, SKEP_MEMORY_DEVICE, wanted * sizeof *room->memory);
	room->floats = room->memory ? wanted : 0;
	return room->memory;
}

const float *skep_device_own(struct skep_device *device, const struct skep_op *op, uint64_t first, size_t n)
{
	const float *own = skep_stage_own(&device->stage, op->round) + first;
	if (device->byzantine.attack == SKEP_ATTACK_NONE || device->byzantine.activations)
		return own;
	float *attack = skep_scratch_grow(device, &device->attack, n);
	if (attack)
		device->backend->tell(device_queue(device, op), &device->byzantine, op->round, first, n, own, attack);
	return attack;
}

const float *skep_device_own_all(struct skep_device *device, const struct skep_op *op)
{
	const struct skep_range trained = device->stage.trained;
	if (device->byzantine.attack == SKEP_ATTACK_NONE || device->byzantine.activations)
		return skep_stage_own(&device->stage, op->round);
	float *attack = skep_scratch_grow(device, &device->attack, trained.first + trained.count);
	if (attack)
		device->backend->tell(device_queue(device, op), &device->byzantine, op->round, trained.first,
			trained.count, skep_stage_own(&device->stage, op->round) + trained.first,
			attack + trained.first);
	return attack;
}

float *skep_device_honest(struct skep_device *device, size_t n, float *told)
{
	return told && device->byzantine.activations ? skep_scratch_grow(device, &device->honest, n) : told;
}

void skep_device_mislead(
	struct skep_device *device, const struct skep_op *op, size_t n, const float *honest, float *told)
{
	if (honest != told)
		device->backend->tell(device_queue(device, op), &device->byzantine, op->round,
			(uint64_t)op->microbatch * n, n, honest, told);
}

void skep_device_set_byzantine(struct skep_device *device, const struct skep_byzantine *byzantine)
{
	device->byzantine = *byzantine;
}

bool skep_device_pack_part(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
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
		device->backend->encode(device_queue(device, op), skep_device_codec(device),
			device->training->reduction_block, chunk.count, chunk.own,
			(char *)out + SKEP_PART_HEADER_BYTES);
	else
		memset((char *)out + SKEP_PART_HEADER_BYTES, 0, chunk.bytes);
	return true;
}

/* Where behind the parts there is room; even, since there are doubles. */
static size_t behind(uint32_t members, size_t count)
{
	return (members * count + 1) / 2 * 2;
}

bool skep_device_unpack_part(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	struct skep_gathered *gathered = &device->gathered;
	const struct skep_backend *backend = device->backend;
	struct skep_chunk chunk;
	const bool own = !op->in.slot && !op->in.generation;
	uint64_t bytes;
	const char *in = own ? NULL : skep_pool_find(device->pool, op->in, &bytes);
	(void)ret;
	if (op->member >= op->members || op->members > SKEP_ROSTER_MAX || !skep_device_chunk(device, op, &chunk) ||
		(!own && (!in || bytes != SKEP_PART_HEADER_BYTES + chunk.bytes)) ||
		!skep_scratch_grow(device, &gathered->parts,
			behind(op->members, chunk.count) + skep_robust_scratch(op->members, chunk.count))) {
		skep_pool_release(device->pool, op->in);
		return false;
	}
	float *part = gathered->parts.memory + op->member * chunk.count;
	gathered->weight[op->member] = op->microbatches;
	if (own) {
		if (chunk.own) /* else the member has no vote, and its part is not read */
			backend->copy(device_queue(device, op), part, chunk.own, chunk.count * sizeof *part);
		return true;
	}
	memcpy(&gathered->weight[op->member], in, SKEP_PART_HEADER_BYTES);
	backend->decode(device_queue(device, op), skep_device_codec(device), device->training->reduction_block,
		chunk.count, in + SKEP_PART_HEADER_BYTES, part);
	return true;
}

/* In `async` an outer update may have fewer parts than plan->group_size although the stage has that many workers. So
 * few parts do not show which of them is wrong, so the update is 0, as it is when no member has a vote. */
static bool too_few(const struct skep_device *device, const struct skep_op *op)
{
	uint32_t votes = 0, wanted = device->training->plan->async.group_size;
	for (uint32_t r = 0; r < op->members; r++)
		votes += device->gathered.weight[r] > 0;
	return votes < (wanted < op->members ? wanted : op->members);
}

bool skep_device_aggregate(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	static const uint32_t no_vote[SKEP_ROSTER_MAX];
	const struct skep_gathered *gathered = &device->gathered;
	struct skep_chunk chunk;
	(void)ret;
	if (!skep_device_chunk(device, op, &chunk) || op->members > SKEP_ROSTER_MAX)
		return false;
	const size_t room = behind(op->members, chunk.count);
	if (gathered->parts.floats < room + skep_robust_scratch(op->members, chunk.count))
		return false;
	device->backend->aggregate(device_queue(device, op), &device->training->robust, op->members, chunk.count,
		gathered->parts.memory, too_few(device, op) ? no_vote : gathered->weight, gathered->parts.memory + room,
		chunk.result);
	return true;
}

void skep_device_gathered_finish(struct skep_device *device)
{
	const struct skep_memory_source *source = &device->pool->source;
	source->give(source->context, SKEP_MEMORY_DEVICE, device->gathered.parts.memory);
	source->give(source->context, SKEP_MEMORY_DEVICE, device->attack.memory);
	source->give(source->context, SKEP_MEMORY_DEVICE, device->honest.memory);
}
