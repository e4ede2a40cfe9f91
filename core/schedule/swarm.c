/* SPDX-License-Identifier: Apache-2.0
 *
 * swarm.c - backwards first: that frees memory and ends microbatches. And what several orders have in common.
 */
#include "core/schedule/order.h"

#include "core/worker/worker.h"
#include <assert.h>

void skep_order_no_barrier(struct worker *w, struct step *step)
{
	(void)w, (void)step;
}

bool skep_order_has_room(struct worker *w)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t begun = 0, left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		left -= table->work[i].state != SKEP_WORK_FREE;
		begun += table->work[i].state > SKEP_WORK_READY_FORWARD;
	}
	return begun < w->held;
}

static void pick(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	skep_schedule_backward(w, step);
	if (w->compute_op == 0)
		skep_schedule_forward(w, step);
}

const struct skep_order skep_order_swarm = {
	.pick = pick, .forwarded = skep_order_no_barrier, .drains = SKEP_DRAINS_NONE};

const struct skep_order *const skep_order_of[SKEP_PIPELINES] = {
	[SKEP_PIPELINE_SWARM] = &skep_order_swarm,
	[SKEP_PIPELINE_GPIPE] = &skep_order_gpipe,
	[SKEP_PIPELINE_1F1B] = &skep_order_interleaved,
	[SKEP_PIPELINE_INTERLEAVED] = &skep_order_interleaved,
	[SKEP_PIPELINE_PIPEDREAM] = &skep_order_pipedream,
};
