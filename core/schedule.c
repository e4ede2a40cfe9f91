/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c - which operation an idle device runs next. One operation at a time is on the compute lane, so that every
 * choice is made as late as possible.
 *
 * First what others wait for: the step that ends a round, the state for a newcomer. A step, and what makes room for another
 * stage, wait for the reduce lane to be empty: an attempt that is void may still be running there, on the tensors that they change. Then the pipeline; `swarm` takes gradients
 * before activations (they free memory and end microbatches), the oldest first, and issues a new one when nothing
 * else is ready. Other schedules (GPipe, 1F1B) are other orders of these three, and belong into pick_work().
 */
#include "core/worker.h"

static bool start_step(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	if (!r->committed || r->stepping || w->reduce_ops > 0)
		return false;
	struct skep_op op = {.kind = SKEP_OP_STEP, .stage = (uint16_t)w->node.stage, .round = w->version};
	op.size = r->size;
	op.attempt = r->attempt;
	op.microbatches = r->microbatches;
	r->stepping = true;
	w->compute_op = skep_emit_run(step, &w->node, &op);
	return true;
}

static void pick_work(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *work = skep_work_pop(table, &table->backward);
	if (work) {
		pipeline_run(w, step, work, SKEP_OP_BACKWARD);
		return;
	}
	work = skep_work_pop(table, &table->forward[w->version & 1]);
	if (work)
		pipeline_run(w, step, work, SKEP_OP_FORWARD);
	else if (w->grants > 0 && worker_grants(w)->round == w->version && w->issued_in_flight < step->plan->in_flight)
		pipeline_issue(w, step);
}

static bool start_save(struct worker *w, struct step *step)
{
	w->saved = download_save(w, step);
	return w->saved;
}

void schedule_next(struct worker *w, struct step *step)
{
	if (w->compute_op != 0)
		return;
	if (!worker_member(w)) {
		member_enter(w, step);
		return;
	}
	if (member_restore(w, step) || member_checkpoint(w, step) || start_step(w, step) ||
		(w->state == WORKER_JOINING && download_load(w, step)))
		return;
	if (w->state != WORKER_SERVING || (!w->saved && start_save(w, step)))
		return;
	w->saved = false;
	if (!worker_sealed(w))
		pick_work(w, step);
	if (w->compute_op == 0)
		start_save(w, step);
}
