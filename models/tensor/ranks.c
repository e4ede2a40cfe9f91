/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c - see ranks.h.
 */
#include "models/tensor/ranks.h"

#include <assert.h>

struct skep_ranks skep_ranks_of(const struct skep_layer *layer, const struct skep_pass *pass)
{
	const struct skep_model *m = layer->model;
	const uint32_t count = skep_model_ranks(m);
	assert((count > 1) == (pass->training->tensor_group != NULL) && m->sequence % count == 0);
	return (struct skep_ranks){.group = pass->training->tensor_group,
		.rank = count > 1 ? m->shard.rank : 0,
		.count = count,
		.own = (size_t)pass->training->samples * m->sequence / count,
		.width = m->hidden};
}

void skep_ranks_gather(const struct skep_ranks *ranks, skep_real *all)
{
	if (ranks->group)
		ranks->group->all_gather(
			ranks->group->context, ranks->own * ranks->width, skep_ranks_own(ranks, all), all);
}

const skep_real *skep_ranks_gathered(const struct skep_ranks *ranks, const skep_real *own, skep_real *room)
{
	if (!ranks->group)
		return own;
	ranks->group->all_gather(ranks->group->context, ranks->own * ranks->width, own, room);
	return room;
}

void skep_ranks_reduce(const struct skep_ranks *ranks, skep_real *all, skep_real *ret)
{
	assert(ranks->group || ret == all);
	if (ranks->group)
		ranks->group->reduce_scatter(ranks->group->context, ranks->own * ranks->width, all, ret);
}

static size_t part_of(size_t n, uint32_t count)
{
	return (n + count - 1) / count;
}

size_t skep_ranks_room(const struct skep_model *model, size_t n)
{
	const uint32_t count = skep_model_ranks(model);
	return count > 1 ? count * part_of(n, count) : 0;
}

void skep_ranks_sum(const struct skep_ranks *ranks, size_t n, skep_real *sum)
{
	const struct skep_tensor_group *group = ranks->group;
	const size_t part = part_of(n, ranks->count);
	if (!group || n == 0)
		return;
	memset(sum + n, 0, (ranks->count * part - n) * sizeof *sum);
	skep_real *own = sum + ranks->rank * part;
	group->reduce_scatter(group->context, part, sum, own);
	group->all_gather(group->context, part, own, sum);
}
