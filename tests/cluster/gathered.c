/* SPDX-License-Identifier: Apache-2.0
 *
 * gathered.c - see gathered.h. What is made of the parts is their sum here, which shows whether each of them is in it, once. They
 * also say how many microbatches they have: all ranges of a result must be made of parts that say the same, and the STEP's
 * divisor is that (device.c).
 */
#include "tests/cluster/gathered.h"

#include <string.h>

static const char *weigh(struct device *device, const struct skep_op *op, uint32_t weight)
{
	uint32_t at = op->round % CLUSTER_ROUNDS, key = (op->round << 12) + op->attempt; /* merges are many */
	bool other = device->weight_attempt[at] == key && device->weight[at] != weight;
	device->weight_attempt[at] = key;
	device->weight[at] = weight;
	return other ? "here the parts say another number of microbatches than elsewhere" : NULL;
}

static bool is_of(const struct gathered *g, const struct skep_op *op)
{
	return g->round == op->round && g->attempt == op->attempt && g->first == op->first && g->count == op->count;
}

/* One more part beside the others, or the first of another range. */
static const char *collect(
	struct device *device, const struct skep_op *op, const struct tensor *in, const uint64_t *part)
{
	struct gathered *g = &device->gathered;
	bool own = buf_none(op->in);
	if (!is_of(g, op))
		*g = (struct gathered){op->round, op->attempt, 0, op->first, op->count, 0, {0}};
	if (op->member >= op->members || g->member >> op->member & 1)
		return "a part is collected twice, or of a member that there is not";
	if (!own && (in->microbatch != op->member || in->size != op->members))
		return "it is the part of another member";
	g->member |= UINT64_C(1) << op->member;
	g->weight += own ? op->microbatches : in->weight;
	for (uint64_t e = op->first; e < op->first + op->count; e++)
		g->value[e] += own ? part[e] : in->value[e];
	return NULL;
}

static const char *aggregate(struct device *device, const struct skep_op *op)
{
	struct gathered g = device->gathered;
	device->gathered = (struct gathered){0};
	if (!is_of(&g, op) || g.member != (UINT64_C(1) << op->members) - 1)
		return "not all parts were collected";
	memcpy(device->result[op->round % CLUSTER_ROUNDS] + op->first, g.value + op->first,
		op->count * sizeof(g.value[0]));
	return weigh(device, op, g.weight);
}

const char *gathered_run(struct device *device, const struct skep_op *op, const struct tensor *in, const uint64_t *part)
{
	switch (op->kind) {
	case SKEP_OP_UNPACK_PART:
		return collect(device, op, in, part);
	case SKEP_OP_AGGREGATE:
		return aggregate(device, op);
	case SKEP_OP_STORE:
		return part ? weigh(device, op, in->weight) : NULL;
	default:
		return NULL;
	}
}
