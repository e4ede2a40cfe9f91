/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c - which operation an idle device runs next. One operation at a time is on the compute lane, so that every
 * choice is made as late as possible.
 *
 * First what others wait for: the step that ends a round, the state for a newcomer or for the disk. States that are asked for and
 * passes take turns, so that neither waits for all of the other. A step, and what makes room for another
 * stage, wait for the reduce lane to be empty: an attempt that is void may still be running there, on the tensors that they
 * change. Then steps of its own (periodic.c). Then the pipeline: gradients (BACKWARD), activations (FORWARD), or a new
 * microbatch (FORWARD of an owner, when nothing else goes forwards), in the order that the schedule says (core/schedule).
 *
 * Where the step is made beside the passes of the next round it is the reduce lane's. It replaces the parameters that the round
 * before worked on and changes the optimizer's state, so it waits for a pass of the sealed round that is of no use any more, and
 * it and what reads or writes the state of the stage wait for each other.
 */
#include <assert.h>

#include "core/schedule/order.h"
#include "core/worker/worker.h"

/* A late pass of the sealed round reads what the step writes, or adds to what it sums; all else is about the state. */
static bool compute_in_the_way(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.committed);
	if (w->compute_op == 0)
		return false;
	bool pass = w->compute_kind == SKEP_OP_FORWARD || w->compute_kind == SKEP_OP_BACKWARD;
	return !pass || worker_inflight(w)->work[w->compute_slot].round == w->version;
}

static bool start_step(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	struct reduction *r = &w->reduction;
	if (!r->committed || r->stepping || w->reduce_ops > 0 || compute_in_the_way(w))
		return false;
	if (!step->how.worker->may_step(w) || step->how.local->puts_off(w, step->plan))
		return false;
	assert(r->complete && (w->beside || w->compute_op == 0));
	struct skep_op op = {.kind = SKEP_OP_STEP, .round = w->version};
	op.stage = (uint16_t)(w->model_chunks.stepped * w->model_chunks.stages + w->node.stage);
	op.version = w->version;
	op.members = r->size;
	op.attempt = r->attempt;
	op.microbatches = worker_divisor(w)[w->model_chunks.stepped];
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->step(w, step->plan, &op);
	step->how.local->step(w, &op);
	op.rank = w->sharded ? r->rank : op.rank;
	if (skep_plan_fragments(step->plan) > 1)
		skep_plan_range(step->plan, w->node.stage, w->version, 0, &op.first, &op.count);
	r->stepping = true;
	if (w->beside) {
		w->reduce_ops++;
		skep_emit_run(step, &w->node, &op);
	} else {
		skep_worker_compute(w, step, &op);
	}
	return true;
}

void skep_schedule_on_barrier_lifted(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->from.index == step->plan->workers);
	uint32_t *open = message->kind == SKEP_MESSAGE_DRAIN ? &w->drained : &w->barrier_lifted;
	if (w->state != WORKER_SERVING || message->round < *open)
		return;
	*open = message->round + 1;
	step->how.worker->gate(w, step);
}

/* Makes way for a BACKWARD, and says whether one may begin: not after an attempt that is void and may still be on the reduce
 * lane, which reads what BACKWARD adds to; nor to a pseudo-gradient of such an attempt, which is cleared first. */
bool skep_schedule_may_add(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	step->how.worker->make_way(w, step);
	if (!worker_recounted(w) && !w->reduction.given_up)
		return true;
	return !step->how.local->run(w, step) && w->reduce_ops == 0 && !w->inner.written;
}

void skep_schedule_backward(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	struct skep_inflight *table = worker_inflight(w);
	bool adds = table->backward[worker_round(w) & 1].head != SKEP_NO_WORK && skep_schedule_may_add(w, step);
	struct skep_work *work = adds ? skep_work_pop(table, &table->backward[worker_round(w) & 1]) : NULL;
	if (work)
		skep_pipeline_run(w, step, work, SKEP_OP_BACKWARD);
}

/* What is validated reads what the step that is under way makes. */
static bool waits_for_step(struct worker *w, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	assert(w->grants <= w->grant_capacity);
	const struct skep_inflight *table = worker_inflight(w);
	uint16_t head = table->forward[round & 1].head;
	uint32_t next = w->grants > 0 ? worker_grants(w)->first : 0;
	return w->work.stepping && worker_validates(w, head != SKEP_NO_WORK ? table->work[head].microbatch : next);
}

void skep_schedule_forward(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	assert(w->grants <= w->grant_capacity);
	struct skep_inflight *table = worker_inflight(w);
	uint32_t round = worker_round(w);
	if (waits_for_step(w, round))
		return;
	struct skep_work *work = skep_work_pop(table, &table->forward[round & 1]);
	if (work)
		skep_pipeline_run(w, step, work, SKEP_OP_FORWARD);
	else if (w->grants > 0 && worker_grants(w)->round == round && w->issued_in_flight < w->in_flight &&
		 worker_flushed(w))
		skep_pipeline_issue(w, step);
}

static bool start_save(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	w->saved = skep_download_save(w, step);
	return w->saved;
}

/* Operations that read or write the state of the stage: to restore it, to checkpoint it, to download it. */
static bool start_state(struct worker *w, struct step *step)
{
	return skep_member_restore(w, step) || skep_member_checkpoint(w, step) ||
	       (w->state == WORKER_JOINING && skep_download_load(w, step));
}

/* Between two steps. What the run began with is kept. */
static bool keep_held(struct worker *w, struct step *step)
{
	struct skep_op op = {.kind = SKEP_OP_CHECKPOINT, .stage = (uint16_t)w->node.stage, .version = w->version};
	assert(w->state == WORKER_SERVING && w->model_chunks.stepped == 0);
	assert(w->orphan == ORPHAN_KEEPS || w->orphan == ORPHAN_STEPS);
	op.round = step->how.worker->held_as(w);
	op.presumed = w->orphan == ORPHAN_STEPS;
	w->checkpoint = false;
	w->orphan++;
	if (op.round <= step->plan->first_round)
		return false;
	skep_worker_compute(w, step, &op);
	return true;
}

static void presume(struct worker *w, struct step *step)
{
	assert(w->orphan == ORPHAN_KEPT && !w->reduction.committed);
	const struct skep_plan *plan = step->plan;
	for (uint32_t vstage = w->node.stage; vstage < skep_plan_vstages(plan); vstage += plan->stages) {
		const struct skep_message commit = skep_orphan_commit(w, plan, vstage);
		skep_reduce_on_commit(w, step, &commit);
	}
	w->orphan = ORPHAN_STEPS;
	start_step(w, step);
}

/* A step that is told is made first; where it waits for what still runs of a void attempt, so does this. */
static void next_of_orphan(struct worker *w, struct step *step)
{
	assert(w->orphan != ORPHAN_NO);
	bool may = !w->sharded && (w->beside || w->compute_op == 0), runs = w->reduce_ops > 0;
	if (w->orphan == ORPHAN_DONE || (may && start_step(w, step)) || w->compute_op != 0)
		return;
	if (w->reduction.stepping && w->sharded && !runs)
		w->orphan = ORPHAN_DONE;
	if (w->reduction.stepping || (w->reduction.committed && !w->sharded && runs))
		return;
	if ((w->orphan == ORPHAN_KEEPS || w->orphan == ORPHAN_STEPS) && keep_held(w, step))
		return;
	if (skep_orphan_presumes(w, step->plan))
		presume(w, step);
	else
		w->orphan = ORPHAN_DONE;
}

void skep_schedule_next(struct worker *w, struct step *step)
{
	if (w->orphan != ORPHAN_NO) {
		next_of_orphan(w, step);
		return;
	}
	if (w->beside && worker_member(w))
		start_step(w, step);
	if (w->compute_op != 0)
		return;
	if (!worker_member(w)) {
		skep_member_enter(w, step);
		return;
	}
	bool stepping = w->beside && w->reduction.stepping;
	if ((!w->beside && start_step(w, step)) || skep_reduce_discard(w, step) || (!stepping && start_state(w, step)))
		return;
	if (w->state == WORKER_SERVING)
		step->how.local->idle(w, step);
	if (w->state != WORKER_SERVING || step->how.local->run(w, step))
		return;
	if (!stepping && !w->saved && start_save(w, step))
		return;
	w->saved = false;
	if (w->work.count > 0 && !step->how.local->waits(w, step->plan))
		step->how.order->pick(w, step);
	if (w->compute_op == 0 && !stepping)
		start_save(w, step);
}
