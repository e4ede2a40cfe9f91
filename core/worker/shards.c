/* SPDX-License-Identifier: Apache-2.0
 *
 * shards.c - a step of which each member makes a part (plan->sharded; ZeRO stage 1, Rajbhandari et al. 2020, arXiv 1910.02054).
 *
 * What is decided. The members of a stage sum by the first half of a ring, a reduce-scatter, so that each has the sum of one
 * chunk, its shard. TALLY and COMMIT follow as for any sum. STEP names the worker's rank and steps its shard alone, so the
 * optimizer's state of no other elements is needed, and no device has room for it. Then the second half, an all-gather, brings
 * what each has made to all, as it is, and with that the step is over: `version` counts it, and the next round may begin.
 *
 * In which order. REDUCE -> the collective of reduce.c, halved -> features (clip.c: each member tells the squares of its shard)
 * -> TALLY -> COMMIT -> STEP -> skep_shards_gather() -> COPY_SHARD, STORE_SHARD .. -> skep_reduce_complete() ->
 * skep_reduce_stepped() again, which goes on where any other step ends.
 *
 * What is kept true.
 *   - All members have the same parameters, to the bit: each element is stepped by one of them, and travels unaltered. They are
 *     those of a step that is not sharded on a sum by the same ring, since optimizers work element by element.
 *   - The halves send, message by message, what the ring sends: an element's sum would have gone round where now its parameter
 *     does. Hops of the all-gather are numbered as those of another bucket, behind the reduce-scatter's.
 *   - A hop of the all-gather may come before this member has stepped, and waits as hops do that come before a REDUCE. One member
 *     may be in the next round while another still stores: so a hop of the round before may fail, and is sent again.
 *   - A member that is done may still have to send a hop again. So the last round ends when all say that they have gathered,
 *     before which none is told to stop (directory/checkpoints.c).
 *   - Members stay the same. A worker that is lost takes along its shard of the optimizer's state, which no other worker has, so
 *     the run fails with it (flush.c, skep_losses_shard). To keep each shard at a neighbour as well would send it once more in
 *     each step, which doubles what moves beside the gradients, to save at most 1/n of a state.
 */
#include <assert.h>

#include "core/worker/worker.h"

bool skep_shards_between(const struct worker *w)
{
	return w->sharded && w->reduction.complete && !w->reduction.gathering;
}

enum skep_collective skep_shards_half(const struct worker *w)
{
	return w->reduction.gathering ? SKEP_COLLECTIVE_ALL_GATHER : SKEP_COLLECTIVE_REDUCE_SCATTER;
}

bool skep_shards_gather(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	if (!w->sharded || r->gathering || r->size <= 1 || r->scheme.elements == 0)
		return false;
	assert(r->committed && r->complete && r->fragment == 1);
	r->gathering = true;
	r->done = 0;
	skep_transfers_prepare(w, step->plan);
	skep_reduce_take_early(w, step);
	skep_transfers_begin(w, step);
	return true;
}

bool skep_shards_want(const struct worker *w, const struct skep_message *chunk)
{
	assert(chunk->kind == SKEP_MESSAGE_CHUNK || chunk->kind == SKEP_MESSAGE_CHUNK_ACK);
	if (!w->sharded)
		return false;
	bool now = chunk->round == w->version && chunk->attempt == w->reduction.attempt && w->reduction.gathering;
	return now || chunk->round + 1 == w->version;
}
