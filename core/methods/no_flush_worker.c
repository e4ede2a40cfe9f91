/* SPDX-License-Identifier: Apache-2.0
 *
 * no_flush_worker.c - a worker's part in rounds that are not flushed (no_flush.c is the directory's).
 *
 * Several rounds are open; round `version` is the oldest that is not behind this worker, and REDUCE comes when a round
 * opens. Its sum begins when the worker has counted its share of it, at most one microbatch of each of its pipelines. Nothing
 * is sealed: what has not come will come, until DRAIN says that the pipeline has given it up. Sums and steps go round by
 * round, in order; a REDUCE of a later round waits for its turn (worker_pending).
 *
 * Which parameters a pass reads is for weights.c, when it may begin for pipedream.c.
 *
 * A worker that is the only member steps as soon as it has told: no other share can be missing, and nothing but its own
 * fencing could void the sum, which would void the step, and all the parameters that it is in, with it. What the directory
 * then hears is what was stepped, or it never hears of this worker's parameters again. (So it hands them to no newcomer
 * before the directory knows: no_flush.c.)
 */
#include <assert.h>

#include "core/methods/flush.h"
#include "core/worker/worker.h"

static size_t worker_lay_out(struct worker *w, const struct skep_plan *plan, size_t at)
{
	w->slots = skep_plan_window(plan) + 1;
	w->tallies = skep_plan_accumulators(plan);
	w->came = skep_plan_uneven(plan) ? plan->microbatches : skep_plan_wave(plan);
	w->grant_capacity = w->slots * w->came;
	w->came_at = at;
	return at + skep_align((size_t)w->slots * w->came * sizeof(uint32_t));
}

/* The newest round + 1 of this slot of which the microbatch has come here; of one pipeline at most as many in a round do as it is
 * granted. */
static uint32_t *came(struct worker *w, uint32_t round, uint32_t microbatch)
{
	return (uint32_t *)skep_at(w, w->came_at) + (size_t)(round % w->slots) * w->came + microbatch % w->came;
}

static void derive(struct worker *w)
{
	uint32_t first = w->drained > w->version ? w->drained : w->version, end = w->version + w->slots;
	w->work = (struct worker_work){.round = w->version, .first = first, .count = end > first ? end - first : 0};
}

static void forget(struct worker *w)
{
	for (uint32_t slot = 0; slot < w->slots; slot++)
		for (uint32_t i = 0; i < w->came; i++)
			*came(w, slot, i) = 0;
}

static uint64_t staleness(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work)
{
	assert(work->state == SKEP_WORK_RUNNING_BACKWARD);
	(void)plan;
	return w->wave > 0 ? skep_wsp_staleness(w, work) : work->round - work->version;
}

static bool first_visit(struct worker *w, uint32_t round, uint32_t item)
{
	assert(w->state == WORKER_SERVING);
	bool seen = *came(w, round, item) == round + 1;
	*came(w, round, item) = round + 1;
	return !seen;
}

/* Its sender may have stepped, the receiver not. */
static bool wants_gradient(struct worker *w, const struct skep_message *gradient)
{
	return gradient->round >= w->drained;
}

/* What this worker is to count of the round is counted, or will never be. */
static bool share_resolved(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	return (w->counted[worker_sum(w, w->version)] >= w->reduction.share || w->drained > w->version) &&
	       !skep_reduce_backward_running(w);
}

static void begin_if_resolved(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	if (!w->reduction.waiting || !share_resolved(w))
		return;
	w->reduction.waiting = false;
	skep_reduce_begin(w, step);
}

static void backward_ended(struct worker *w, struct step *step, bool open_round)
{
	assert(w->state == WORKER_SERVING);
	(void)open_round;
	begin_if_resolved(w, step);
}

static void take(struct worker *w, struct step *step, const struct skep_message *reduce)
{
	(void)w, (void)step, (void)reduce; /* nothing is sealed */
}

static void taken(struct worker *w, const struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	w->reduction.share = reduce->u.reduce.share;
	w->reduction.waiting = !share_resolved(w);
}

/* A single member has the sum when it has told, unless it is to keep the state. */
static void tell(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->state == WORKER_SERVING);
	struct reduction *r = &w->reduction;
	skep_reduce_send_tally(w, step);
	if (r->size > 1 || r->checkpoint)
		return;
	r->committed = true;
	worker_divisor(w)[0] = w->counted[worker_sum(w, w->version)];
}

/* No microbatch reads the parameters whose place the step takes. */
static bool place_is_free(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.committed);
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		const struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		if (work->state > SKEP_WORK_READY_FORWARD && work->version + w->staleness <= w->version)
			return false;
	}
	return true;
}

/* A state of this version is to be kept first. */
static bool may_step(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	assert(w->checkpoint || place_is_free(w));
	return !w->checkpoint;
}

/* The few that are granted are done. */
static void notice(struct worker *w, struct step *step)
{
	(void)w, (void)step;
}

static void gate(struct worker *w, struct step *step)
{
	derive(w);
	skep_pipeline_seal_given_up(w, step);
	begin_if_resolved(w, step);
}

const struct skep_worker_method skep_no_flush_worker = {
	.lay_out = worker_lay_out,
	.fragments = 1,
	.derive = derive,
	.forget = forget,
	.reads = skep_weights_reads,
	.staleness = staleness,
	.first_visit = first_visit,
	.wants_gradient = wants_gradient,
	.make_way = skep_flush_make_way,
	.parts = skep_flush_parts,
	.part_ended = skep_flush_part_ended,
	.backward_ended = backward_ended,
	.take = take,
	.taken = taken,
	.may_begin = skep_flush_may_begin,
	.brought = skep_flush_brought,
	.tell = tell,
	.committed = skep_flush_step_committed,
	.may_step = may_step,
	.stepped = skep_flush_worker_stepped,
	.notice = notice,
	.gate = gate,
	.kept_as = skep_flush_kept_as,
	.held_as = skep_flush_kept_as,
	.on_checkpoint = skep_flush_on_checkpoint,
};
