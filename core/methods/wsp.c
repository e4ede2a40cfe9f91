/* SPDX-License-Identifier: Apache-2.0
 *
 * wsp.c - wave synchronous parallel training (HetPipe, Park et al. 2020, arXiv 2005.14038): virtual workers that are pipelines of
 * unequal devices, each of which steps by itself after each microbatch and hears of the others once in a wave.
 *
 * A virtual worker is one of the fixed pipelines, of one worker from each stage. A *wave* is the Nm microbatches that it is
 * granted of a round, as many as it has in flight; so a round is a wave of each virtual worker. What one microbatch changes is
 * known within its virtual worker as soon as it has gone backwards (local staleness, at most s_local = Nm - 1), and elsewhere
 * when its wave is over and those of all others are: then the workers of a stage sum the updates of that wave (no_flush.c: one
 * REDUCE, one ring, one step of the stage's parameters a round). Clock distance D, no_flush.distance: beyond a
 * wave that not all have done a virtual worker goes on for D more, and for all but the last microbatch of another.
 *
 * Which parameters. The device of a worker has the parameters w_v of the stage, v waves of all virtual workers behind them, and
 * an accumulator for each wave that it has counted something of and that is in no step yet. FORWARD reads
 *
 *     w_v - rate / C (all that this worker itself has counted of waves v, v + 1, .. , that of the microbatch)
 *
 * where C microbatches make a round: exactly what it would be if those had been steps, for steps are plain descent. That is made
 * anew for each FORWARD and kept with what it stashes, so BACKWARD reads the same (weight stashing). STEP v makes w_(v + 1) of
 * the whole sum, and takes the place of what was counted here alone.
 *
 * When. Microbatch j, 0 <= j < Nm, of wave r is number m = r Nm + j of its virtual worker. In the paper it may lack, of what the
 * other virtual workers have done, at most the s_global = (D + 1)(s_local + 1) + s_local - 1 that are before it. Waves are told
 * as a whole, so its FORWARD waits, in each stage, for v >= (m + 1) div Nm - D - 1: for r - D - 1, and with the last one of a
 * wave for r - D. With D = 0 all but the last of a wave go forwards before the others are heard of, as in the paper's figure.
 *
 *     waves of others behind FORWARD of m      the fewest    r - D - 1, or r - D where j = Nm - 1
 *     microbatches of each other one lacking   the most      (D + 2) Nm - 2 = s_global
 *     own ones lacking                         the most      Nm - 1 = s_local: what is held between its passes
 *
 * What differs from the paper. It has parameter servers, which a virtual worker pushes to and pulls from when it likes; here the
 * workers of a stage sum by a ring, so parameters have the same waves of all virtual workers, and never those that a faster one
 * is ahead by. What each stage reads is the newest of its own, as in PipeDream, and so at most as stale as in the paper, where
 * all stages read what the first one began with. A microbatch's step is rate / C and not a rate by itself: the same with
 * another rate.
 *
 * What is kept true
 *   - An accumulator holds what was counted of one wave: there are as many as may be open to a worker, D + 2, and the number of
 *     the wave decides which. BACKWARD of wave r finds it empty, since wave r - (D + 2) was stepped before FORWARD could begin.
 *   - No worker waits for ever. What FORWARD of wave r waits for are sums of waves before r, whose microbatches are before it in
 *     every pipeline, or lost; and a stage holds fewer of what is behind than a wave has.
 *   - A virtual worker that has lost a member is struck from the sums (no_flush.c): the others wait for it no more.
 */
#include <assert.h>

#include "core/methods/method.h"
#include "core/worker/worker.h"

bool skep_plan_waves(const struct skep_plan *plan)
{
	return plan->no_flush.weights == SKEP_WEIGHTS_WAVES;
}

uint32_t skep_plan_accumulators(const struct skep_plan *plan)
{
	uint32_t least = skep_plan_waves(plan) ? plan->no_flush.distance + 2 : 2, count = 2;
	while (count < least)
		count *= 2;
	assert(count <= SKEP_ACCUMULATORS_MAX);
	return count;
}

uint32_t skep_plan_local_staleness(const struct skep_plan *plan)
{
	assert(skep_plan_waves(plan));
	return skep_plan_wave(plan) - 1;
}

uint32_t skep_plan_global_staleness(const struct skep_plan *plan)
{
	assert(skep_plan_waves(plan));
	return (plan->no_flush.distance + 2) * skep_plan_wave(plan) - 2;
}

/* All that it has counted of the waves that FORWARD of this one knows of, and that no step has yet. */
void skep_wsp_forward(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op)
{
	assert(work->round - w->version <= plan->no_flush.distance + 1);
	op->version = w->version;
	op->moved = 0;
	for (uint32_t round = w->version; round <= work->round; round++)
		op->moved += w->counted[worker_sum(w, round)];
}

void skep_wsp_backward(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op)
{
	assert(work->version <= w->version);
	(void)plan;
	op->version = work->version;
}

/* Those that this worker has gone forwards with and not backwards: they are in no accumulator. */
static uint32_t held(const struct worker *w, const struct skep_work *work)
{
	const struct skep_inflight *table = (const struct skep_inflight *)((const char *)w + w->inflight_at);
	uint32_t before = 0, left = table->used - 1; /* but this one */
	for (uint32_t i = 0; left > 0; i++) {
		const struct skep_work *other = &table->work[i];
		if (other == work)
			continue;
		left -= other->state != SKEP_WORK_FREE;
		before += other->state > SKEP_WORK_READY_FORWARD;
	}
	return before;
}

void skep_wsp_began(const struct worker *w, struct skep_work *work)
{
	assert(w->wave > 0);
	uint32_t lacked = held(w, work);
	assert(lacked < w->wave && w->wave <= UINT16_MAX);
	work->lacked_own = (uint16_t)lacked;
}

uint64_t skep_wsp_staleness(const struct worker *w, const struct skep_work *work)
{
	assert(w->wave > 0);
	uint32_t lacked = (work->round - work->version) * w->wave + work->microbatch % w->wave;
	return (uint64_t)work->lacked_own << 32 | lacked;
}
