/* SPDX-License-Identifier: Apache-2.0
 *
 * gossip.c - periodic sync in pairs, NoLoCo (Kolehmainen et al. 2025, arXiv 2506.10911): no sum of all members of a stage. When
 * a round ends each member meets one other, and the two of them make an outer step on what they know.
 *
 * Everything else is periodic.c's: a worker's steps of its own, when its sum may begin, and what is lost with a worker. So this
 * file has one table, of who sums with whom.
 *
 * Who meets whom. The members that hold all of their state are brought into an order by a permutation that the plan's seed,
 * the round and the stage decide, and each of the first half meets its counterpart in the second half. Of an odd number the
 * last one is alone, and makes its outer step by itself: a group of three would take longer than the pairs, which wait for it
 * where the round ends. The directory draws, so no worker has to know the seed, or how many members there are.
 *
 * What is exchanged. With outer parameters w_i and inner ones v_i of member i, which has counted c_i microbatches, the two sum
 * c_i v_i, and COMMIT names c, the sum of their c_i (divisor()). The mean of the inner parameters is all that an outer step
 * needs; models/update/gossip.c has why. So a member sends as many bytes as in an all-reduce of two, N each way for N bytes of
 * parameters, whatever the number of members is.
 *
 * Members of a stage hold different parameters, so
 *   - a newcomer downloads the state of one member, chunk by chunk, and is alone until it holds all of it: with nothing counted
 *     its step changes nothing. A chunk is what that member held when it came, so the chunks of a state may be of several
 *     rounds, or of two members if one goes; what belongs together, a parameter and its momentum, is in one chunk.
 *   - a checkpoint is the state of one member, and all that restore it begin there.
 *   - in a validation each microbatch is judged by those members that it happens to visit, as in training: the loss is a mean
 *     over members.
 *
 * What is kept true
 *   - Whom a member meets is drawn once a round. If it is lost the other one sums anew, alone, and no other pair does.
 *   - A pair has what both have counted, and no other member's.
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/methods/method.h"
#include "core/random.h"

static uint64_t seed_of(const struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	return skep_mix(plan->seed + skep_mix((uint64_t)d->reduced.round << 32 | stage));
}

/* Those who are not drawn yet: in a later attempt of a round a worker that has restored the stage. */
static void draw(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *order, uint32_t size)
{
	assert(size <= plan->workers);
	uint64_t random = seed_of(d, plan, stage);
	uint32_t drawn = 0;
	for (uint32_t i = 0; i < size; i++) {
		struct row *row = directory_row(d, order[i]);
		if (row->next_of_group != SKEP_NO_INDEX)
			continue;
		row->next_of_group = order[i];
		if (row->standing >= STANDING_READY)
			order[drawn++] = order[i];
	}
	skep_random_shuffle(&random, order, drawn);
	for (uint32_t i = 0; i < drawn / 2; i++) {
		directory_row(d, order[i])->next_of_group = order[i + drawn / 2];
		directory_row(d, order[i + drawn / 2])->next_of_group = order[i];
	}
}

static uint32_t divisor(
	struct directory *d, const struct skep_plan *plan, uint32_t vstage, uint32_t worker, uint32_t total)
{
	assert(directory_row(d, worker)->member);
	uint32_t counted = 0, i = worker;
	do {
		const struct row *row = directory_row(d, i);
		if (row->member && row->stage == vstage % plan->stages)
			counted += skep_rounds_counted_by(d, plan, vstage, i);
		i = row->next_of_group;
	} while (i != worker);
	assert(counted <= total);
	(void)total;
	return counted;
}

const struct skep_grouping skep_grouping_pairs = {.draw = draw, .apart = true, .divisor = divisor};
