/* SPDX-License-Identifier: Apache-2.0
 *
 * reduce.c - a worker's part in the end of a round.
 *
 * REDUCE seals the accumulator: what is not counted by now is not in the round. Then the members of the stage sum their
 * accumulators (collective.h, moves.c), each tells the directory which microbatches its share holds (TALLY), and when all
 * have done so COMMIT makes the sum final and the worker steps. If a member is fenced meanwhile, a REDUCE with a higher
 * attempt starts the sum anew among the rest: accumulators stay untouched until the step. With SKEP_COLLECTIVE_WHOLE the
 * hops are the world's affair: one ALLREDUCE stands for all of a member's, and it is cancelled when its attempt is void.
 *
 * A REDUCE of size 0 has no sum: the worker drops what it holds, tells what it has counted, and is open again, for work that
 * carries this attempt. So the directory learns what is lost while it can still be run again (SKEP_ON_LOSS_RERUN).
 *
 * With buckets (plan->stage) a sum is done in fragments, each a range of the vector with a scheme of its own, one after the
 * other as BACKWARD makes them (promised.c has when the next one may begin). There is one TALLY and one COMMIT for all of them.
 *
 * With periodic sync what is summed is the pseudo-gradient, once it is there (inner.c).
 * With `clip` the first member measures the sum, slice by slice, and tells the squares (NORM) before its tally; COMMIT brings
 * what they come to for all stages, and STEP is told.
 *
 * In the stages that hold a copy of a tied table the other one's sum of it has to be here too, before the tally (tie.c).
 *
 * With `async` a reduction is the merge of rank 0, whose number is `version`; it seals nothing, and TALLY says only that it is
 * here (merge.c has how it comes to that).
 *
 * With delayed updates all of this goes on beside the work of the next round, which has its own accumulator and tally.
 *
 * Without a flush REDUCE comes early and seals nothing: the sum begins when the worker's share of the round is counted. Rounds
 * after this one wait for their turn (worker_pending). A worker that is the only member steps as soon as it has told: no
 * other share can be missing, and nothing but its own fencing could void the sum, which would void the step, and all the
 * parameters that it is in, with it. What the directory then hears is what was stepped, or it never hears of this
 * worker's parameters again. (So it hands them to nobody before the directory knows: stream.c.)
 */
#include <assert.h>
#include <string.h>

#include "core/worker.h"

struct skep_op reduce_op(const struct worker *w, enum skep_op_kind kind)
{
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)w->node.stage, .round = w->version};
	op.size = w->reduction.size;
	op.attempt = w->reduction.attempt;
	return op;
}

void reduce_run(struct worker *w, struct step *step, struct skep_op *op)
{
	w->reduce_ops++;
	skep_emit_run(step, &w->node, op);
}

/* In parts of a few numbers each; an empty tally is one empty part. */
static void send_tally(struct worker *w, struct step *step)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_TALLY, skep_directory_peer(step->plan));
	message.round = w->version;
	message.attempt = w->reduction.attempt;
	if (w->async) { /* the directory knows what is in it; this says that it is here */
		worker_send(w, step, &message);
		return;
	}
	message.u.tally.count = w->counted[w->version & 1];
	message.u.tally.loss_nano = w->loss_nano[w->version & 1];
	uint32_t used = 0;
	struct skep_tally *tally = worker_tally(w, w->version);
	skep_tally_sort(tally);
	for (uint32_t nth = 0; nth < tally->count; nth++) {
		uint32_t i = tally->number[nth];
		assert(nth == 0 || i > tally->number[nth - 1]); /* else it was counted twice */
		if (used == SKEP_TALLY_PART || (used > 0 && i - message.u.tally.base > UINT16_MAX)) {
			message.u.tally.used = (uint16_t)used;
			worker_send(w, step, &message);
			used = 0;
		}
		if (used == 0)
			message.u.tally.base = i;
		message.u.tally.offset[used++] = (uint16_t)(i - message.u.tally.base);
	}
	assert(tally->count == w->counted[w->version & 1]);
	message.u.tally.used = (uint16_t)used;
	worker_send(w, step, &message);
}

/* All members hold the same sum: the first one measures it, slice by slice. Is there something to wait for? */
static bool measure(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	if (r->rank > 0 || r->size == 0)
		return false;
	r->norms = w->laps.count;
	for (uint32_t lap = 0; lap < w->laps.count; lap++) {
		struct skep_op op = reduce_op(w, SKEP_OP_NORM);
		op.stage = (uint16_t)(lap * w->laps.stages + w->node.stage);
		op.count = step->plan->stage[w->node.stage].parameters / w->laps.count;
		reduce_run(w, step, &op);
	}
	tie_measure(w, step);
	return true;
}

static void finish(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	r->complete = true;
	send_tally(w, step);
	if (!w->streams || r->size > 1 || r->checkpoint)
		return;
	r->committed = true;
	worker_divisor(w)[0] = w->counted[w->version & 1];
}

void reduce_complete(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	uint32_t fragments = r->size > 1 ? skep_plan_buckets(step->plan, w->node.stage) : 1;
	if (++r->fragment < fragments) {
		r->begun = false;
		r->done = 0;
		reduce_begin(w, step);
		return;
	}
	if (r->tied.on)
		tie_begin(w, step);
	else
		reduce_summed(w, step);
}

void reduce_summed(struct worker *w, struct step *step)
{
	if (!step->plan->clip || !measure(w, step))
		finish(w, step);
}

void reduce_measured(struct worker *w, struct step *step, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	struct reduction *r = &w->reduction;
	if (op->round != w->version || op->attempt != r->attempt || r->overtaken || event->fault) /* void, or the end */
		return;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_NORM, skep_directory_peer(step->plan));
	message.stage = op->stage;
	message.round = op->round;
	message.attempt = op->attempt;
	message.u.norm.square = event->u.done.square;
	message.u.norm.part = op->chunk;
	worker_send(w, step, &message);
	if (--r->norms == 0)
		finish(w, step);
}

/* Is this move one of the fragment that is being summed? Those of the fragments before are done. */
static bool of_fragment(const struct reduction *r, uint32_t hop, uint32_t *ret_number)
{
	*ret_number = hop - r->fragment * r->moves;
	return r->begun && hop >= r->fragment * r->moves && *ret_number < r->moves;
}

/* Told apart from moves; it may come before this stage's sum is here, but not before that has begun. */
static bool is_tied(const struct reduction *r, uint32_t hop)
{
	return r->begun && hop == SKEP_HOP_TIED;
}

/* Takes up the hops that came early; those of older attempts are of no use any more. */
static void take_early(struct worker *w, struct step *step)
{
	struct early_chunk *early = worker_early(w);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->early; i++) {
		struct early_chunk e = early[i];
		uint32_t number;
		bool now = e.round == w->version && e.attempt == w->reduction.attempt;
		if (now && is_tied(&w->reduction, e.hop))
			tie_arrived(w, step, e.payload);
		else if (now && of_fragment(&w->reduction, e.hop, &number))
			moves_arrive(w, step, e.chunk, number, e.payload);
		else if (e.round < w->version || (e.round == w->version && e.attempt < w->reduction.attempt))
			skep_emit_release(step, e.payload);
		else
			early[kept++] = e;
	}
	w->early = kept;
}

void reduce_begin(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	if (r->attempt == 0 || r->begun || r->waiting || !roster_complete(w, step->plan))
		return;
	if ((r->promised && !promised_due(w)) || (w->periodic && inner_unwritten(w)))
		return;
	r->begun = true;
	moves_prepare(w, step->plan);
	take_early(w, step);
	if (r->size <= 1) {
		reduce_complete(w, step);
	} else if (step->plan->collective == SKEP_COLLECTIVE_WHOLE) {
		struct skep_op op = reduce_op(w, SKEP_OP_ALLREDUCE);
		op.chunk = r->rank;
		op.microbatch = r->next.index;
		op.first = r->first;
		op.count = r->scheme.elements;
		reduce_run(w, step, &op);
		r->whole = op.id;
	} else {
		moves_begin(w, step);
	}
}

/* The members of an attempt that is void need not all have asked for the sum: it might never end. */
void reduce_cancel(struct worker *w, struct step *step)
{
	if (w->reduction.whole != 0)
		skep_emit_cancel(step, &w->node, w->reduction.whole);
	w->reduction.whole = 0;
}

static bool backward_running(struct worker *w)
{
	const struct skep_work *work = &worker_inflight(w)->work[w->compute_slot];
	return w->compute_op >= w->op_floor && w->compute_op != 0 && work->state == SKEP_WORK_RUNNING_BACKWARD &&
	       work->round == w->version;
}

/* Without a flush: what this worker is to count of the round is counted, or will never be. */
static bool settled(struct worker *w)
{
	return (w->counted[w->version & 1] >= w->reduction.share || w->turn > w->version) && !backward_running(w);
}

void reduce_settle(struct worker *w, struct step *step)
{
	if (!w->reduction.waiting || !settled(w))
		return;
	w->reduction.waiting = false;
	reduce_begin(w, step);
}

/* It overtook the COMMIT of the round before, or our step is still running, or rounds overlap. */
static bool is_ahead(const struct worker *w, uint32_t round)
{
	return round > w->version && round - w->version < w->slots;
}

void reduce_on_reduce(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct reduction *r = &w->reduction;
	if (!worker_member(w))
		return;
	if (w->state == WORKER_JOINING && !w->admitted) /* it overtook the ADMIT */
		member_admit(w, step->plan, message->round);
	if (is_ahead(w, message->round)) {
		struct skep_message *pending = worker_pending(w, message->round);
		if (pending->kind == 0 || pending->attempt < message->attempt)
			*pending = *message;
		return;
	}
	if (message->round != w->version || message->attempt <= r->attempt || r->committed)
		return;
	assert(message->u.reduce.size <= w->members_max);
	if (!w->streams && !w->async && !message->u.reduce.promised && (!worker_sealed(w) || worker_recounted(w)))
		pipeline_seal(w, step);
	reduce_cancel(w, step);
	moves_forget(w, step);
	laps_uncommit(w);
	*r = (struct reduction){.attempt = message->attempt,
		.rank = message->u.reduce.rank,
		.size = message->u.reduce.size,
		.next = message->u.reduce.next,
		.moves = skep_scheme_moves_max(step->plan, message->u.reduce.size),
		.promised = message->u.reduce.promised,
		.share = message->u.reduce.share,
		.own = step->plan->gather ? message->u.reduce.share > 0 : message->u.reduce.rank == 0,
		.checkpoint = message->u.reduce.checkpoint,
		.tied = {.on = skep_plan_ties(step->plan, w->node.stage) && message->u.reduce.size > 0,
			.across = message->u.reduce.across,
			.along = message->u.reduce.along}};
	if (r->size > 0)
		w->inner.members = r->size;
	r->waiting = w->streams ? !settled(w) : !w->async && !r->promised && backward_running(w);
	r->overtaken = r->promised && backward_running(w) && promised_counts_more(w);
	reduce_begin(w, step);
}

void reduce_backward_ended(struct worker *w, struct step *step)
{
	assert(w->reduction.waiting);
	w->reduction.waiting = false;
	reduce_begin(w, step);
}

void reduce_catch_up(struct worker *w, uint32_t attempt)
{
	w->reduction = (struct reduction){.attempt = attempt, .begun = true, .complete = true};
}

bool reduce_wants(const struct worker *w, const struct skep_message *chunk)
{
	return chunk->round == w->version && chunk->attempt == w->reduction.attempt && !w->reduction.committed &&
	       !w->reduction.overtaken;
}

/* Fewer hops than members can come before this rank takes part; those of an older attempt make room. */
static void keep_early(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct early_chunk *early = worker_early(w);
	bool wanted = true;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->early; i++) {
		struct early_chunk e = early[i];
		bool same = e.round == message->round && e.attempt == message->attempt;
		bool newer = e.round > message->round || (e.round == message->round && e.attempt > message->attempt);
		if (newer || (same && e.hop == message->u.chunk.hop))
			wanted = false; /* a void attempt, or a duplicate */
		if (same || newer)
			early[kept++] = e;
		else
			skep_emit_release(step, e.payload);
	}
	w->early = kept;
	if (!wanted || w->early == w->early_capacity) {
		skep_emit_release(step, message->payload);
		return;
	}
	w->met = true;
	early[w->early++] = (struct early_chunk){
		message->round, message->attempt, message->u.chunk.chunk, message->u.chunk.hop, message->payload};
}

void reduce_on_chunk(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct reduction *r = &w->reduction;
	bool member = worker_member(w), admitted = w->state == WORKER_SERVING || w->admitted;
	bool now = message->round == w->version && message->attempt == r->attempt;
	uint32_t hop = message->u.chunk.hop, number;
	if (member && admitted && now && of_fragment(r, hop, &number)) {
		moves_arrive(w, step, message->u.chunk.chunk, number, message->payload);
		return;
	}
	if (member && admitted && now && is_tied(r, hop)) {
		tie_arrived(w, step, message->payload);
		return;
	}
	bool later = !admitted || message->round == w->version + 1 ||
	             (message->round == w->version && message->attempt > r->attempt) ||
	             (now && hop >= r->fragment * r->moves);
	if (member && later)
		keep_early(w, step, message);
	else
		skep_emit_release(step, message->payload);
}

void reduce_on_op_done(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf out)
{
	struct reduction *r = &w->reduction;
	if (op->round != w->version || op->attempt != r->attempt || r->overtaken) { /* an attempt that is void */
		skep_emit_release(step, out);
		return;
	}
	if (op->kind == SKEP_OP_ALLREDUCE) {
		r->whole = 0;
		reduce_complete(w, step);
		return;
	}
	if (op->kind == SKEP_OP_TIE_GIVE)
		tie_given(w, step, out);
	else if (op->kind == SKEP_OP_TIE_TAKE)
		tie_taken(w, step);
	else
		moves_done(w, step, op->hop - r->fragment * r->moves, out);
}

void reduce_on_commit(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct reduction *r = &w->reduction;
	if (!worker_member(w) || message->round != w->version || message->attempt != r->attempt || !r->complete)
		return;
	if (r->promised) /* the round is complete: what comes now is a duplicate */
		pipeline_seal(w, step);
	r->promised = false;
	r->committed = laps_commit(w, message);
	r->checkpoint |= message->u.commit.checkpoint;
	r->square = message->u.commit.square;
	if (skep_plan_ties_slice(step->plan, message->stage))
		r->tied.counted = message->u.commit.tied;
}

void reduce_stepped(struct worker *w, struct step *step, bool fault)
{
	if (laps_step_on(w)) {
		w->reduction.stepping = false;
		return;
	}
	if (!w->async) {
		worker_tally(w, w->version)->count = 0;
		w->counted[w->version & 1] = 0;
		w->loss_nano[w->version & 1] = 0;
	}
	w->checkpoint = (w->reduction.checkpoint || (w->async && w->checkpoint)) && !fault;
	inner_stepped(w);
	w->reduction = (struct reduction){0};
	w->version++;
	w->checkpoint |= w->keep > 0 && w->keep_version == w->version;
	if (w->state == WORKER_JOINING)
		download_stepped(w, step);
	if (w->stop_when_stepped && w->version >= w->stop_version) {
		member_stop(w, step, true);
		return;
	}
	struct skep_message reduce = *worker_pending(w, w->version);
	if (reduce.kind != 0 && reduce.round == w->version) {
		worker_pending(w, w->version)->kind = 0;
		reduce_on_reduce(w, step, &reduce);
	}
}

void reduce_forget(struct worker *w, struct step *step)
{
	for (uint32_t i = 0; i < w->early; i++)
		skep_emit_release(step, worker_early(w)[i].payload);
	w->early = 0;
	for (uint32_t i = 0; i + 1 < w->slots; i++)
		worker_pending(w, i)->kind = 0;
	reduce_cancel(w, step);
	moves_forget(w, step);
	laps_uncommit(w);
	w->roster = (struct roster){0};
	w->reduction = (struct reduction){0};
}
