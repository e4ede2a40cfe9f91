/* SPDX-License-Identifier: Apache-2.0
 *
 * clip.c - the norm of all gradients together (plan->clip), which every stage has to know before it steps.
 *
 * The members of a stage hold the same sum, so one of them, the first, tells the sum of its squares for each virtual
 * stage (NORM) beside its tally. No stage commits before all have told, as with SKEP_ON_LOSS_RERUN: then the directory
 * knows what each virtual stage has counted, and COMMIT says
 *
 *     square = sum over virtual stages of (squares of the virtual stage / counted^2),
 *
 * the square of the norm of what the optimizers step by. Virtual stages are added in their order, in integers
 * (square.h), so all compilers agree. One that no worker serves, or that has counted nothing, adds nothing: it makes no
 * step. If a member is fenced meanwhile its stage sums and tells anew, and the others wait.
 *
 * With plan->sharded a member holds the sum of its own shard alone, and each tells the squares of that: the directory adds them,
 * in the order of the workers. So the norm is that of another order of addition, as is that of another number of stages.
 *
 * A tied table (tied_embeddings.c) counts once, by the sum of the two means, so the first member of the first stage tells
 * their products too.
 *
 * And what becomes of numbers that are not finite: the run stops where one is told of (FAULT).
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/square.h"
#include "core/worker/worker.h"

static uint64_t *squares(struct directory *d)
{
	return skep_at(d, d->square_at);
}

/* [2] of tied embeddings, behind those of the virtual stages: the products of the two sums, those above 0 and those
 * below. */
static uint64_t *products(struct directory *d, const struct skep_plan *plan)
{
	return squares(d) + skep_plan_vstages(plan);
}

/* [workers] with plan->sharded, behind those: the squares of each worker's shard. */
static uint64_t *shards(struct directory *d, const struct skep_plan *plan)
{
	return products(d, plan) + 2;
}

/* What will be told of the sum, beside the tallies. */
static void expect(struct directory *d, const struct skep_plan *plan, struct attempt *attempt)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t stage = attempt->stage;
	if (!attempt->sum || attempt->size == 0)
		return;
	for (uint32_t vstage = stage; vstage < skep_plan_vstages(plan); vstage += plan->stages)
		squares(d)[vstage] = SKEP_SQUARE_UNKNOWN;
	for (uint32_t rank = 0; plan->sharded && rank < attempt->size; rank++)
		shards(d, plan)[attempt->order[rank]] = SKEP_SQUARE_UNKNOWN;
	attempt->expected += plan->sharded ? attempt->size : skep_plan_model_chunks(plan);
	if (plan->tied == 0 || stage > 0)
		return;
	products(d, plan)[0] = products(d, plan)[1] = SKEP_SQUARE_UNKNOWN;
	attempt->expected += 2;
}

/* Where what is told belongs; NULL: nowhere. */
static uint64_t *place_of(struct directory *d, const struct skep_plan *plan, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_NORM);
	assert(message->from.index < plan->workers);
	uint32_t vstage = message->stage, part = message->u.norm.term;
	if (vstage >= skep_plan_vstages(plan) || part > 2 || (part > 0 && (plan->tied == 0 || vstage > 0)))
		return NULL;
	if (plan->sharded)
		return &shards(d, plan)[message->from.index];
	return part > 0 ? &products(d, plan)[part - 1] : &squares(d)[vstage];
}

static void on_norm(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_NORM);
	assert(message->from.index < step->plan->workers);
	const struct skep_plan *plan = step->plan;
	const struct row *row = directory_row(d, message->from.index);
	struct stage_state *stage = directory_stage(d, row->stage);
	uint64_t *place = place_of(d, plan, message);
	if (!place || (!d->reduced.on && !d->eager) || message->round != d->reduced.round || stage->committed ||
		!row->member || message->attempt != stage->attempt || message->stage % plan->stages != row->stage ||
		*place != SKEP_SQUARE_UNKNOWN)
		return;
	*place = message->u.norm.square;
	assert(stage->pending > 0);
	if (--stage->pending == 0 && !d->eager)
		skep_rounds_all_told(d, step);
}

/* The table counts once, by the sum of the two means: |a + b|^2 = |a|^2 + |b|^2 + 2ab. */
static uint64_t with_products(struct directory *d, const struct skep_plan *plan, uint64_t total)
{
	uint32_t first = skep_rounds_counted_in(d, plan, 0),
		 last = skep_rounds_counted_in(d, plan, skep_plan_vstages(plan) - 1);
	uint64_t mean[2];
	if (first == 0 || last == 0 || products(d, plan)[0] == SKEP_SQUARE_UNKNOWN)
		return total;
	for (uint32_t i = 0; i < 2; i++) {
		mean[i] = skep_square_divide(skep_square_divide(products(d, plan)[i], first), last);
		mean[i] = skep_square_add(mean[i], mean[i]);
	}
	return skep_square_subtract(skep_square_add(total, mean[0]), mean[1]);
}

/* The squares of all that the virtual stage has summed. */
static uint64_t squares_of(struct directory *d, const struct skep_plan *plan, uint32_t vstage)
{
	uint64_t sum = 0;
	if (!plan->sharded)
		return squares(d)[vstage];
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		bool told = row->member && row->stage == vstage && shards(d, plan)[i] != SKEP_SQUARE_UNKNOWN;
		sum = told ? skep_square_add(sum, shards(d, plan)[i]) : sum;
	}
	return sum;
}

static uint64_t total_of(struct directory *d, const struct skep_plan *plan)
{
	assert(d->reduced.on);
	assert(d->phase != PHASE_STOPPED);
	uint64_t total = 0;
	for (uint32_t vstage = 0; vstage < skep_plan_vstages(plan); vstage++) {
		uint32_t counted = skep_rounds_counted_in(d, plan, vstage);
		uint64_t sum = squares_of(d, plan, vstage);
		if (counted == 0 || sum == SKEP_SQUARE_UNKNOWN)
			continue;
		uint64_t mean = skep_square_divide(sum, counted);
		total = skep_square_add(total, skep_square_divide(mean, counted));
	}
	return plan->tied > 0 ? with_products(d, plan, total) : total;
}

static size_t lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	d->square_at = at;
	uint32_t more = plan->sharded ? plan->workers : 0;
	return at + skep_align((skep_plan_vstages(plan) + 2 + more) * sizeof(uint64_t));
}

static uint32_t actions(const struct skep_plan *plan, uint32_t fences)
{
	(void)plan, (void)fences;
	return 0;
}

static void name(struct directory *d, const struct attempt *attempt, struct skep_message *reduce)
{
	(void)d, (void)attempt, (void)reduce;
}

static void anew(struct directory *d, struct step *step, uint32_t stage)
{
	(void)d, (void)step, (void)stage;
}

static void resolve(struct directory *d, const struct skep_plan *plan)
{
	d->square = total_of(d, plan);
}

static void commit(struct directory *d, const struct skep_plan *plan, struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_COMMIT);
	(void)plan;
	message->u.commit.square = d->square;
}

/* ---- a worker ------------------------------------------------------------------------------------------------------- */

/* The square of a sum of two is that of each, which virtual stages tell, and twice their product, which may be below 0:
 * what is above 0 of it and what is below are told apart (square.h). */
static void measure_products(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct reduction *r = &w->reduction;
	if (!r->tied.on || w->node.stage > 0)
		return;
	for (uint32_t term = SKEP_NORM_POSITIVE; term < SKEP_NORM_TERMS; term++) {
		struct skep_op op = skep_reduce_op(w, SKEP_OP_NORM);
		op.first = skep_plan_tied_first(step->plan, w->node.stage);
		op.count = step->plan->tied;
		op.term = term;
		r->norms++;
		skep_reduce_run(w, step, &op);
	}
}

/* All members hold the same sum: the first one measures it, one virtual stage after the other. Of shards each measures its own.
 * True if there is something to wait for. */
static bool measure(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.begun);
	struct reduction *r = &w->reduction;
	if ((r->rank > 0 && !w->sharded) || r->size == 0)
		return false;
	r->norms = w->model_chunks.count;
	for (uint32_t model_chunk = 0; model_chunk < w->model_chunks.count; model_chunk++) {
		struct skep_op op = skep_reduce_op(w, SKEP_OP_NORM);
		op.stage = (uint16_t)(model_chunk * w->model_chunks.stages + w->node.stage);
		op.count = skep_plan_trained(step->plan, w->node.stage) / w->model_chunks.count;
		if (w->sharded)
			skep_plan_shard(step->plan, w->node.stage, r->rank, r->size, &op.first, &op.count);
		skep_reduce_run(w, step, &op);
	}
	measure_products(w, step);
	return true;
}

static void measured(struct worker *w, struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	assert(w->reduction.attempt > 0);
	const struct skep_op *op = &event->u.done.op;
	struct reduction *r = &w->reduction;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_NORM, skep_directory_peer(step->plan));
	message.stage = op->stage;
	message.round = op->round;
	message.attempt = op->attempt;
	message.u.norm.square = event->u.done.square;
	message.u.norm.term = op->term;
	skep_worker_send(w, step, &message);
	if (--r->norms == 0)
		skep_reduce_go_on(w, step);
}

static bool done(struct worker *w, struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	if (event->u.done.op.kind == SKEP_OP_NORM)
		measured(w, step, event);
	return event->u.done.op.kind == SKEP_OP_NORM;
}

static void begin(struct worker *w, const struct skep_plan *plan, const struct skep_message *reduce)
{
	(void)w, (void)plan, (void)reduce;
}

static bool arrived(struct worker *w, struct step *step, struct skep_buf payload)
{
	(void)w, (void)step, (void)payload;
	return false;
}

static void committed(struct worker *w, const struct skep_plan *plan, const struct skep_message *message)
{
	(void)w, (void)plan, (void)message;
}

static void step_told(const struct worker *w, const struct skep_plan *plan, struct skep_op *op)
{
	assert(op->kind == SKEP_OP_STEP);
	(void)plan;
	op->square = w->reduction.square;
}

const struct skep_feature skep_feature_clip = {
	.actions = actions,
	.lay_out = lay_out,
	.attempt = expect,
	.name = name,
	.anew = anew,
	.resolve = resolve,
	.commit = commit,
	.on_norm = on_norm,
	.early = 0,
	.reduce = begin,
	.begin = measure,
	.arrived = arrived,
	.done = done,
	.committed = committed,
	.step = step_told,
};
