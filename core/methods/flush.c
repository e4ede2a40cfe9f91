/* SPDX-License-Identifier: Apache-2.0
 *
 * flush.c - synchronous rounds: a round is open, or it is reduced. When all of its microbatches have come back every stage
 * sums its gradients, and the next round opens when all stages have committed; so all gradients of a round are of the
 * parameters that it began with.
 *
 * This is also what becomes of a gradient that is lost, unless it is computed again (rerun.c, void.c): it is reported, and the
 * microbatch is replaced by a fresh one as long as the round is open. And who sums with whom: all members of a stage.
 */
#include "core/methods/flush.h"

#include <assert.h>

#include "core/directory/directory.h"
#include "core/worker/worker.h"

/* ---- the directory ------------------------------------------------------------------------------------------------ */

size_t skep_flush_lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	(void)d, (void)plan;
	return at;
}

static uint32_t actions(const struct skep_plan *plan, uint32_t fences)
{
	(void)plan, (void)fences;
	return 0;
}

void skep_flush_given_up(struct directory *d)
{
	(void)d;
}

void skep_flush_refill(struct directory *d, struct step *step, uint32_t preferred)
{
	assert(d->phase == PHASE_OPEN);
	skep_rounds_grant(d, step, preferred);
	if (skep_rounds_all_back(d, step))
		step->how.directory->complete(d, step);
}

void skep_flush_complete(struct directory *d, struct step *step)
{
	step->how.losses->complete(d, step);
}

void skep_flush_reduce(struct directory *d, struct step *step)
{
	skep_rounds_close(d, step->plan);
	skep_rounds_sum(d, step);
}

void skep_flush_on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY);
	if (d->reduced.on && skep_rounds_take_tally(d, step->plan, message))
		step->how.agreement->told(d, step, directory_row(d, message->from.index)->stage);
}

void skep_flush_on_outer_update(struct directory *d, struct step *step, const struct skep_message *message)
{
	(void)d, (void)step, (void)message;
}

void skep_flush_counted(struct directory *d, uint32_t vstage, uint32_t lost, uint32_t *total, int64_t *loss_nano_sum)
{
	(void)d, (void)vstage, (void)lost, (void)total, (void)loss_nano_sum;
}

void skep_flush_committed(struct directory *d, struct step *step)
{
	(void)d, (void)step;
}

uint32_t skep_flush_stop_version(struct directory *d, const struct row *row)
{
	assert(row->standing != STANDING_ABSENT);
	(void)row;
	return d->closed;
}

void skep_flush_stepped(struct directory *d, struct step *step)
{
	(void)d, (void)step;
}

/* The open round's, or if that is being reduced the next one's. */
uint32_t skep_flush_since(struct directory *d, uint32_t worker)
{
	(void)worker;
	return d->ending ? d->closed : d->round + (d->phase == PHASE_REDUCING);
}

uint32_t skep_flush_next_reduction(struct directory *d, const struct row *row)
{
	assert(row->standing != STANDING_ABSENT);
	assert(!d->reduced.on || d->reduced.round == d->round);
	return row->since > d->round ? row->since : d->round;
}

void skep_flush_ready(struct directory *d, struct step *step, uint32_t worker)
{
	(void)d, (void)step, (void)worker;
}

bool skep_flush_serves_late(struct directory *d, uint32_t worker)
{
	(void)d, (void)worker;
	return true;
}

void skep_flush_admit(struct directory *d, const struct row *row, struct skep_message *admit)
{
	(void)d, (void)row, (void)admit;
}

void skep_flush_keep(struct directory *d, uint32_t stage, struct skep_message *keep)
{
	(void)d, (void)stage, (void)keep;
}

/* At once, or when the round closes. */
void skep_flush_carry_on(struct directory *d, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	if (d->phase != PHASE_REDUCING || step->how.losses->voids)
		skep_directory_serve(d, worker);
}

bool skep_flush_none_can(struct directory *d, const struct skep_plan *plan)
{
	(void)d, (void)plan;
	return false;
}

const struct skep_directory_method skep_flush_directory = {
	SKEP_FLUSH_COMMIT,
	SKEP_FLUSH_NEWCOMERS,
	SKEP_FLUSH_SERVICE,
	SKEP_FLUSH_ROUND,
	.actions = actions,
	.reduce = skep_flush_reduce,
	.committed = skep_flush_committed,
};

/* ---- who sums with whom ------------------------------------------------------------------------------------------- */

/* All members of the stage, in the order of their indices. */
static void draw(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *order, uint32_t size)
{
	assert(size <= plan->workers);
	(void)plan, (void)stage;
	for (uint32_t rank = 0; rank < size; rank++)
		directory_row(d, order[rank])->next_of_group = order[(rank + 1) % size];
}

static uint32_t divisor(
	struct directory *d, const struct skep_plan *plan, uint32_t vstage, uint32_t worker, uint32_t total)
{
	(void)d, (void)plan, (void)vstage, (void)worker;
	return total;
}

const struct skep_grouping skep_grouping_stage = {.replicas = true, .draw = draw, .apart = false, .divisor = divisor};

/* ---- what is lost --------------------------------------------------------------------------------------------------- */

bool skep_losses_none_again(
	struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch, struct skep_span *ret_span)
{
	assert(d->phase == PHASE_OPEN);
	(void)d, (void)plan, (void)ret_microbatch, (void)ret_span;
	return false;
}

void skep_losses_reduce(struct directory *d, struct step *step)
{
	step->how.directory->reduce(d, step);
}

void skep_losses_never_counted(struct directory *d, struct step *step)
{
	(void)d, (void)step;
	assert(false); /* members are asked what they have counted only to run again what is missing */
}

void skep_losses_go_on(struct directory *d, struct step *step, bool served)
{
	assert(d->phase == PHASE_OPEN);
	(void)served;
	step->how.directory->refill(d, step, SKEP_NO_INDEX);
}

void skep_losses_ignore(struct directory *d, struct step *step, uint32_t worker)
{
	(void)d, (void)step, (void)worker;
}

bool skep_losses_no_hold(struct directory *d, const struct skep_plan *plan)
{
	(void)d, (void)plan;
	return false;
}

void skep_losses_no_timer(struct directory *d, struct step *step)
{
	(void)d, (void)step;
}

const struct skep_losses skep_losses_report = {
	SKEP_LOSSES_REPORTED,
	.in_shards = false,
	.gone = skep_losses_go_on,
	.fenced = skep_losses_ignore,
	SKEP_LOSSES_WITHOUT_WAIT,
};

/* With plan->sharded. What the worker had of the optimizer's state is nowhere else: no other worker can step its shard. A spare
 * had none. */
static void end_with_shard(struct directory *d, struct step *step, uint32_t worker)
{
	const struct row *row = directory_row(d, worker);
	assert(d->phase != PHASE_STOPPED);
	if (row->stage == SKEP_NO_STAGE)
		return;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_SHARD_LOST,
			.stage = (uint16_t)row->stage,
			.round = d->closed,
			.peer = directory_worker(d, worker)});
	skep_directory_stop(d, step, false);
}

const struct skep_losses skep_losses_shard = {
	SKEP_LOSSES_REPORTED,
	.in_shards = true,
	.gone = skep_losses_go_on,
	.fenced = end_with_shard,
	SKEP_LOSSES_WITHOUT_WAIT,
};

/* ---- a worker ------------------------------------------------------------------------------------------------------- */

size_t skep_flush_worker_lay_out(struct worker *w, const struct skep_plan *plan, size_t at)
{
	w->slots = 2;
	w->tallies = 1;
	w->grant_capacity = 2 * (skep_plan_fixed(plan) ? skep_plan_share(plan, 0) : skep_plan_in_flight_most(plan)) + 8;
	return at;
}

/* When it has told what it counted, and is asked for no sum, what is missing may come once more. */
void skep_flush_derive(struct worker *w)
{
	assert(w->early <= w->early_capacity);
	assert(w->state != WORKER_STOPPED);
	bool sealed = worker_sealed(w);
	w->work = (struct worker_work){.round = w->version,
		.first = w->version,
		.count = !sealed || worker_recounted(w),
		.early = 1,
		.pass = sealed ? w->reduction.attempt : 0};
}

void skep_flush_forget(struct worker *w)
{
	(void)w;
}

void skep_flush_reads(const struct worker *w, const struct skep_plan *plan, struct skep_work *work, struct skep_op *op)
{
	assert(w->state == WORKER_SERVING);
	(void)w, (void)plan;
	op->version = work->round;
}

uint64_t skep_flush_staleness(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work)
{
	assert(work->state == SKEP_WORK_RUNNING_BACKWARD);
	(void)w, (void)plan, (void)work;
	return 0;
}

/* Marks it as seen. */
bool skep_flush_first_visit(struct worker *w, uint32_t round, uint32_t item)
{
	assert(w->state == WORKER_SERVING);
	bool seen = skep_marks_has(worker_seen(w, round), item);
	skep_marks_add(worker_seen(w, round), item);
	return !seen;
}

bool skep_flush_wants_gradient(struct worker *w, const struct skep_message *gradient)
{
	return worker_works_on(w, gradient->round) && gradient->attempt == worker_pass(w, gradient->round);
}

void skep_flush_make_way(struct worker *w, struct step *step)
{
	(void)w, (void)step;
}

uint32_t skep_flush_parts(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	(void)w, (void)plan;
	return 0;
}

void skep_flush_part_ended(struct worker *w, struct step *step)
{
	(void)w, (void)step;
}

/* The last one of a round that is sealed is what its sum has waited for. */
void skep_flush_backward_ended(struct worker *w, struct step *step, bool open_round)
{
	assert(w->state == WORKER_SERVING);
	if (!open_round)
		skep_reduce_backward_ended(w, step);
}

void skep_flush_take(struct worker *w, struct step *step, const struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	(void)reduce;
	if (!worker_sealed(w) || worker_recounted(w))
		skep_pipeline_seal(w, step);
}

void skep_flush_taken(struct worker *w, const struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	(void)reduce;
	w->reduction.sealed = true;
	w->reduction.waiting = skep_reduce_backward_running(w);
}

bool skep_flush_may_begin(const struct worker *w)
{
	assert(w->reduction.attempt > 0);
	(void)w;
	return true;
}

uint32_t skep_flush_brought(const struct worker *w)
{
	return w->counted[worker_sum(w, w->version)];
}

void skep_flush_step_committed(struct worker *w, struct step *step)
{
	(void)w, (void)step;
}

bool skep_flush_may_step(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	(void)w;
	return true;
}

void skep_flush_worker_stepped(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.committed);
	worker_tally(w, w->version)->count = 0;
	w->counted[worker_sum(w, w->version)] = 0;
	w->loss_nano[worker_sum(w, w->version)] = 0;
	w->checkpoint = w->reduction.checkpoint;
}

void skep_flush_notice(struct worker *w, struct step *step)
{
	skep_pipeline_hand_back(w, step);
}

void skep_flush_gate(struct worker *w, struct step *step)
{
	(void)w, (void)step;
}

uint32_t skep_flush_kept_as(const struct worker *w)
{
	return w->version;
}

/* A duplicate, of what was asked for when the last round was committed too, comes to nothing. */
void skep_flush_on_checkpoint(struct worker *w, const struct skep_message *keep)
{
	if (w->state != WORKER_SERVING || keep->round <= w->keep || keep->round < w->version)
		return;
	skep_member_keep(w, keep->round, keep->round);
	w->checkpoint = w->checkpoint || w->keep_version <= w->version;
}

const struct skep_worker_method skep_flush_worker = {
	SKEP_FLUSH_PASSES,
	SKEP_FLUSH_SEAL,
	.lay_out = skep_flush_worker_lay_out,
	.fragments = 1,
	.derive = skep_flush_derive,
	.reads = skep_flush_reads,
	.staleness = skep_flush_staleness,
};
