/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c - which operation an idle device runs next. One operation at a time is on the compute lane, so that every
 * choice is made as late as possible.
 *
 * With delayed updates the step is the reduce lane's, beside the work of the next round. It replaces the parameters that the
 * round before worked on and changes the optimizer's state, so it waits for a pass of the sealed round that nobody wants any
 * more, and it and what reads or writes the state of the stage wait for each other.
 *
 * First what others wait for: the step that ends a round, the state for a newcomer. A step, and what makes room for another
 * stage, wait for the reduce lane to be empty: an attempt that is void may still be running there, on the tensors that they
 * change. Then the pipeline; `swarm` takes gradients
 * before activations (they free memory and end microbatches), the oldest first, and issues a new one when nothing
 * else is ready. Other schedules (GPipe, 1F1B) are other orders of these three, and belong into pick_work().
 */
#include "core/worker.h"

/* A late pass of the sealed round reads what the step writes, or adds to what it sums; all else is about the state. */
static bool compute_in_the_way(struct worker *w)
{
	if (w->compute_op == 0)
		return false;
	bool pass = w->compute_kind == SKEP_OP_FORWARD || w->compute_kind == SKEP_OP_BACKWARD;
	return !pass || worker_inflight(w)->work[w->compute_slot].round == w->version;
}

static bool start_step(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	if (!r->committed || r->stepping || w->reduce_ops > 0 || compute_in_the_way(w))
		return false;
	struct skep_op op = {.kind = SKEP_OP_STEP, .stage = (uint16_t)w->node.stage, .round = w->version};
	op.version = w->version;
	op.size = r->size;
	op.attempt = r->attempt;
	op.microbatches = r->microbatches;
	r->stepping = true;
	if (w->delayed) {
		w->reduce_ops++;
		skep_emit_run(step, &w->node, &op);
	} else {
		worker_compute(w, step, &op);
	}
	return true;
}

static void pick_work(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	/* Run again, after an attempt that may still be on the reduce lane and reads what BACKWARD adds to. */
	bool adds = !worker_recounted(w) || w->reduce_ops == 0;
	struct skep_work *work = adds ? skep_work_pop(table, &table->backward[worker_round(w) & 1]) : NULL;
	if (work) {
		pipeline_run(w, step, work, SKEP_OP_BACKWARD);
		return;
	}
	uint32_t round = worker_round(w);
	work = skep_work_pop(table, &table->forward[round & 1]);
	if (work)
		pipeline_run(w, step, work, SKEP_OP_FORWARD);
	else if (w->grants > 0 && worker_grants(w)->round == round && w->issued_in_flight < step->plan->in_flight)
		pipeline_issue(w, step);
}

static bool start_save(struct worker *w, struct step *step)
{
	w->saved = download_save(w, step);
	return w->saved;
}

/* What reads or writes the state of the stage, for those who found it anew, keep it or download it. */
static bool start_state(struct worker *w, struct step *step)
{
	return member_restore(w, step) || member_checkpoint(w, step) ||
	       (w->state == WORKER_JOINING && download_load(w, step));
}

void schedule_next(struct worker *w, struct step *step)
{
	if (w->delayed && worker_member(w))
		start_step(w, step);
	if (w->compute_op != 0)
		return;
	if (!worker_member(w)) {
		member_enter(w, step);
		return;
	}
	bool stepping = w->delayed && w->reduction.stepping;
	if ((!w->delayed && start_step(w, step)) || (!stepping && start_state(w, step)))
		return;
	if (w->state != WORKER_SERVING || (!stepping && !w->saved && start_save(w, step)))
		return;
	w->saved = false;
	if (worker_works_on(w, worker_round(w)))
		pick_work(w, step);
	if (w->compute_op == 0 && !stepping)
		start_save(w, step);
}
