/* SPDX-License-Identifier: Apache-2.0
 *
 * reduce.c - a worker's part in the end of a round.
 *
 * REDUCE seals the accumulator: what is not counted by now is not in the round. Then the members of the stage sum their
 * accumulators (collective.h, transfers.c), each tells the directory which microbatches its share holds (TALLY), and when all
 * have done so COMMIT makes the sum final and the worker steps. If a member is fenced meanwhile, a REDUCE with a higher
 * attempt starts the sum anew among the rest: accumulators stay untouched until the step. With SKEP_COLLECTIVE_FUSED the
 * hops are the world's affair: one ALLREDUCE stands for all of a member's, and it is cancelled when its attempt is void.
 *
 * A REDUCE of size 0 has no sum: the worker drops what it holds, tells what it has counted, and is open again, for work that
 * carries this attempt. So the directory learns what is lost while it can still be run again (SKEP_ON_LOSS_RERUN). With `discard`
 * it throws that away first (SKEP_ON_LOSS_VOID): DISCARD empties the accumulator when nothing reads it any more.
 *
 * With buckets (plan->stage) a sum is done in fragments, each a range of the vector with a scheme of its own, one after the
 * other as BACKWARD makes them. There is one TALLY and one COMMIT for all of them. With plan->sharded the sum is half a ring, and
 * the other half follows the step (shards.c).
 *
 * When the collective is done the features of the plan have the sum one after the other (tied_embeddings.c, clip.c), then the
 * tally is sent. When a sum may begin, what it seals and what the tally says is the method's to say (methods/method.h).
 */
#include <assert.h>

#include "core/worker/worker.h"

struct skep_op skep_reduce_op(const struct worker *w, enum skep_op_kind kind)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)w->node.stage, .round = w->version};
	op.members = w->reduction.size;
	op.attempt = w->reduction.attempt;
	return op;
}

void skep_reduce_run(struct worker *w, struct step *step, struct skep_op *op)
{
	assert(w->reduction.attempt > 0);
	w->reduce_ops++;
	skep_emit_run(step, &w->node, op);
}

/* In parts of a few numbers each; an empty tally is one empty part. */
void skep_reduce_send_tally(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.begun);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_TALLY, skep_directory_peer(step->plan));
	message.round = w->version;
	message.attempt = w->reduction.attempt;
	message.u.tally.count = w->counted[worker_sum(w, w->version)];
	message.u.tally.loss_nano = w->loss_nano[worker_sum(w, w->version)];
	message.parameters = w->state == WORKER_SERVING ? w->parameters : 0;
	struct skep_tally *tally = worker_tally(w, w->version);
	assert(tally->count == w->counted[worker_sum(w, w->version)]);
	skep_tally_sort(tally);
	uint32_t told = 0;
	do {
		message.u.tally.base = told < tally->count ? tally->number[told] : 0;
		message.u.tally.used = (uint16_t)skep_tally_part(tally, told, SKEP_TALLY_PART, message.u.tally.offset);
		skep_worker_send(w, step, &message);
		told += message.u.tally.used;
	} while (told < tally->count);
}

static void finish(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.begun);
	struct reduction *r = &w->reduction;
	assert(r->begun && !r->complete && !r->committed);
	r->complete = true;
	step->how.worker->derive(w);
	step->how.worker->tell(w, step);
}

void skep_reduce_complete(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.begun);
	struct reduction *r = &w->reduction;
	if (r->gathering) {
		skep_reduce_stepped(w, step, false);
		return;
	}
	assert(!r->complete);
	uint32_t fragments = r->size > 1 ? skep_plan_buckets(step->plan, w->node.stage) : 1;
	if (++r->fragment < fragments) {
		r->begun = false;
		r->done = 0;
		skep_reduce_begin(w, step);
		return;
	}
	skep_reduce_go_on(w, step);
}

void skep_reduce_go_on(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.begun);
	while (w->reduction.feature < step->how.features)
		if (step->how.feature[w->reduction.feature++]->begin(w, step))
			return;
	finish(w, step);
}

/* Is this transfer one of the fragment that is being summed? Those of the fragments before are done. */
static bool of_fragment(const struct worker *w, uint32_t hop, uint32_t *ret_number)
{
	const struct reduction *r = &w->reduction;
	*ret_number = hop - r->fragment * r->transfers;
	return r->begun && !skep_shards_between(w) && hop >= r->fragment * r->transfers && *ret_number < r->transfers;
}

/* Told apart from transfers; it may come before this stage's sum is here, but not before that has begun. */
static bool of_feature(const struct reduction *r, uint32_t hop)
{
	return r->begun && hop == SKEP_HOP_TIED;
}

static void feature_arrived(struct worker *w, struct step *step, struct skep_buf payload)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	for (uint32_t i = 0; i < step->how.features; i++)
		if (step->how.feature[i]->arrived(w, step, payload))
			return;
	skep_emit_release(step, payload);
}

/* Takes up the hops that came early; those of older attempts are of no use any more. */
void skep_reduce_take_early(struct worker *w, struct step *step)
{
	assert(w->reduction.begun);
	assert(w->early <= w->early_capacity);
	struct early_chunk *early = worker_early(w);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->early; i++) {
		struct early_chunk e = early[i];
		uint32_t number;
		bool now = e.round == w->version && e.attempt == w->reduction.attempt;
		if (now && of_feature(&w->reduction, e.hop))
			feature_arrived(w, step, e.payload);
		else if (now && of_fragment(w, e.hop, &number))
			skep_transfers_arrive(w, step, e.chunk, number, e.payload);
		else if (e.round < w->version || (e.round == w->version && e.attempt < w->reduction.attempt))
			skep_emit_release(step, e.payload);
		else
			early[kept++] = e;
	}
	w->early = kept;
}

void skep_reduce_begin(struct worker *w, struct step *step)
{
	assert(w->reduction.rank < w->reduction.size || w->reduction.size == 0);
	assert(w->early <= w->early_capacity);
	assert(w->state != WORKER_STOPPED);
	struct reduction *r = &w->reduction;
	if (r->attempt == 0 || r->begun || r->waiting || !skep_roster_complete(w, step->plan))
		return;
	if (!step->how.worker->may_begin(w) || step->how.local->unwritten(w, step->plan))
		return;
	r->begun = true;
	skep_transfers_prepare(w, step->plan);
	skep_reduce_take_early(w, step);
	r->discard = r->discard && w->counted[worker_sum(w, w->version)] > 0;
	if (r->discard)
		return; /* skep_reduce_discard() */
	/* Nothing is sent by a lone member, or where nothing of the stage is trained. */
	if (r->size <= 1 || r->scheme.elements == 0) {
		skep_reduce_complete(w, step);
	} else if (step->plan->reduction.collective == SKEP_COLLECTIVE_FUSED) {
		struct skep_op op = skep_reduce_op(w, SKEP_OP_ALLREDUCE);
		op.rank = r->rank;
		op.receiver = r->next.index;
		op.first = r->first;
		op.count = r->scheme.elements;
		skep_reduce_run(w, step, &op);
		r->whole = op.id;
	} else {
		skep_transfers_begin(w, step);
	}
}

/* The members of an attempt that is void need not all have asked for the sum: it might never end. */
void skep_reduce_cancel(struct worker *w, struct step *step)
{
	if (w->reduction.whole != 0)
		skep_emit_cancel(step, &w->node, w->reduction.whole);
	w->reduction.whole = 0;
}

bool skep_reduce_backward_running(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	const struct skep_work *work = &worker_inflight(w)->work[w->compute_slot];
	return w->compute_op >= w->op_floor && w->compute_op != 0 && work->state == SKEP_WORK_RUNNING_BACKWARD &&
	       work->round == w->version;
}

/* It overtook the COMMIT of the round before, or our step is still running, or rounds overlap. */
static bool is_ahead(const struct worker *w, uint32_t round)
{
	return round > w->version && round - w->version < w->slots;
}

void skep_reduce_on_reduce(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_REDUCE);
	assert(message->from.index == step->plan->workers);
	struct reduction *r = &w->reduction;
	if (!worker_member(w))
		return;
	if (w->state == WORKER_JOINING && !w->admitted) /* it overtook the ADMIT */
		skep_member_admit(w, step, message->round);
	if (is_ahead(w, message->round)) {
		struct skep_message *pending = worker_pending(w, message->round);
		if (pending->kind == 0 || pending->attempt < message->attempt)
			*pending = *message;
		return;
	}
	if (message->round != w->version || message->attempt <= r->attempt || r->committed)
		return;
	assert(message->u.reduce.size <= w->members_max);
	step->how.worker->take(w, step, message);
	skep_reduce_cancel(w, step);
	skep_transfers_forget(w, step);
	skep_interleaved_uncommit(w);
	*r = (struct reduction){.attempt = message->attempt,
		.rank = message->u.reduce.rank,
		.size = message->u.reduce.size,
		.next = message->u.reduce.next,
		.transfers = skep_scheme_transfers_max(step->plan, message->u.reduce.size),
		.discard = message->u.reduce.discard,
		.checkpoint = message->u.reduce.checkpoint,
		.expected = message->u.reduce.expected};
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->reduce(w, step->plan, message);
	if (r->size > 0)
		w->inner.members = r->size;
	step->how.worker->taken(w, message);
	step->how.worker->derive(w);
	skep_reduce_begin(w, step);
}

void skep_reduce_backward_ended(struct worker *w, struct step *step)
{
	assert(w->reduction.waiting);
	w->reduction.waiting = false;
	skep_reduce_begin(w, step);
}

void skep_reduce_catch_up(struct worker *w, struct step *step, uint32_t attempt)
{
	w->reduction = (struct reduction){.attempt = attempt, .sealed = true, .begun = true, .complete = true};
	step->how.worker->derive(w);
}

bool skep_reduce_wants(const struct worker *w, const struct skep_message *chunk)
{
	bool now = chunk->round == w->version && chunk->attempt == w->reduction.attempt && !w->reduction.committed;
	return (now && !w->reduction.given_up) || skep_shards_want(w, chunk);
}

/* No more than skep_scheme_early_max() can come before this rank takes part; those of an older attempt make room. */
static void keep_early(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
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

void skep_reduce_on_chunk(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	struct reduction *r = &w->reduction;
	bool member = worker_member(w), admitted = w->state == WORKER_SERVING || w->admitted;
	bool now = message->round == w->version && message->attempt == r->attempt;
	uint32_t hop = message->u.chunk.hop, number;
	if (member && admitted && now && of_fragment(w, hop, &number)) {
		skep_transfers_arrive(w, step, message->u.chunk.chunk, number, message->payload);
		return;
	}
	if (member && admitted && now && of_feature(r, hop)) {
		feature_arrived(w, step, message->payload);
		return;
	}
	bool later = !admitted || message->round == w->version + 1 ||
	             (message->round == w->version && message->attempt > r->attempt) ||
	             (now && hop >= r->fragment * r->transfers);
	if (member && later)
		keep_early(w, step, message);
	else
		skep_emit_release(step, message->payload);
}

static bool is_void(const struct worker *w, const struct skep_op *op)
{
	assert(w->reduction.attempt > 0);
	const struct reduction *r = &w->reduction;
	return op->round != w->version || op->attempt != r->attempt || r->given_up;
}

void skep_reduce_on_op_done(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf out)
{
	assert(w->reduction.attempt > 0);
	assert(w->state != WORKER_STOPPED);
	struct reduction *r = &w->reduction;
	if (is_void(w, op)) {
		skep_emit_release(step, out);
	} else if (op->kind == SKEP_OP_ALLREDUCE) {
		r->whole = 0;
		skep_reduce_complete(w, step);
	} else {
		skep_transfers_done(w, step, op->hop - r->fragment * r->transfers, out);
	}
}

/* With numbers that are not finite it is the end. */
void skep_reduce_on_feature_done(struct worker *w, struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	assert(w->reduction.attempt > 0);
	const struct skep_op *op = &event->u.done.op;
	if (is_void(w, op) || (op->kind == SKEP_OP_NORM && event->fault)) {
		skep_emit_release(step, event->u.done.out);
		return;
	}
	for (uint32_t i = 0; i < step->how.features; i++)
		if (step->how.feature[i]->done(w, step, event))
			return;
	assert(false);
}

/* An attempt that is void may still be on the reduce lane, which reads the accumulator. */
bool skep_reduce_discard(struct worker *w, struct step *step)
{
	const struct reduction *r = &w->reduction;
	if (!r->discard || !r->begun || w->reduce_ops > 0)
		return false;
	struct skep_op op = {.kind = SKEP_OP_DISCARD, .stage = (uint16_t)w->node.stage, .round = w->version};
	op.version = w->version;
	op.attempt = r->attempt;
	skep_worker_compute(w, step, &op);
	return true;
}

void skep_reduce_discarded(struct worker *w, struct step *step, const struct skep_op *op)
{
	assert(op->kind == SKEP_OP_DISCARD && op->round == w->version);
	if (is_void(w, op))
		return; /* it is asked once more, and has nothing to add meanwhile */
	worker_tally(w, w->version)->count = 0;
	w->counted[worker_sum(w, w->version)] = 0;
	w->loss_nano[worker_sum(w, w->version)] = 0;
	w->reduction.discard = false;
	skep_reduce_complete(w, step);
}

void skep_reduce_on_commit(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_COMMIT);
	assert(message->from.index == step->plan->workers);
	struct reduction *r = &w->reduction;
	if (!worker_member(w) || message->round != w->version || message->attempt != r->attempt || !r->complete)
		return;
	step->how.worker->committed(w, step);
	r->committed = skep_interleaved_commit(w, message);
	r->checkpoint |= message->u.commit.checkpoint;
	r->square = message->u.commit.square;
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->committed(w, step->plan, message);
}

void skep_reduce_stepped(struct worker *w, struct step *step, bool fault)
{
	assert(w->reduction.stepping && w->reduction.committed);
	assert(w->reduction.attempt > 0);
	assert(w->reduction.committed);
	if (skep_shards_gather(w, step))
		return;
	if (skep_interleaved_step_on(w)) {
		w->reduction.stepping = false;
		return;
	}
	step->how.worker->stepped(w);
	step->how.local->stepped(w);
	w->reduction = (struct reduction){0};
	w->version++;
	step->how.worker->derive(w);
	w->checkpoint =
		!fault && (w->checkpoint || w->keep_version == w->version); /* its state lacks a step that failed */
	if (w->state == WORKER_JOINING)
		skep_download_stepped(w, step);
	if (w->stop_when_stepped && w->version >= w->stop_version) {
		skep_member_stop(w, step, true);
		return;
	}
	struct skep_message reduce = *worker_pending(w, w->version);
	if (reduce.kind != 0 && reduce.round == w->version) {
		worker_pending(w, w->version)->kind = 0;
		skep_reduce_on_reduce(w, step, &reduce);
	}
}

void skep_reduce_forget(struct worker *w, struct step *step)
{
	assert(w->early <= w->early_capacity);
	assert(w->state != WORKER_STOPPED);
	for (uint32_t i = 0; i < w->early; i++)
		skep_emit_release(step, worker_early(w)[i].payload);
	w->early = 0;
	for (uint32_t i = 0; i + 1 < w->slots; i++)
		worker_pending(w, i)->kind = 0;
	skep_reduce_cancel(w, step);
	skep_transfers_forget(w, step);
	skep_interleaved_uncommit(w);
	w->roster = (struct roster){0};
	w->reduction = (struct reduction){0};
	step->how.worker->derive(w);
}
