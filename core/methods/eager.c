/* SPDX-License-Identifier: Apache-2.0
 *
 * eager.c - eager all-reduce (plan->eager). With fixed pipelines the share of every worker in a round is known when it
 * opens, so the directory can send REDUCE then: a worker begins when it has counted its share, and no message has to pass
 * between the last gradient and the sum.
 *
 * That happens if every pipeline is whole and was granted its share, no more and no less; so the members of each stage
 * are all of its workers. The eager attempt is void, and the round ends with an ordinary REDUCE of a higher attempt, as
 * soon as
 *   - a worker is fenced (so also before a newcomer can be a member),
 *   - a microbatch is given up (so also before anything is granted in its place, or run again).
 * Nothing else changes who is to count what. A notice to leave does not: who leaves goes between two rounds.
 *
 * No stage commits before all that was granted has come back, although its members may have told long before: else a
 * worker that dies late in the round would leave stages that have stepped and stages that have not, and the work that
 * takes the place of its own could not pass through both. When all is back the eager reduction becomes the round's, as
 * if it had begun then; members that have not told yet tell, and a member that dies now is dealt with as ever. Where
 * lost work is run again no member is asked what was counted: all that was granted has come back, so all of it was.
 *
 * In a worker. A worker knows its share of the round, and begins by itself when it has counted that, without a message.
 *
 * Until COMMIT the round stays open. Should more than the share come (another worker is lost, and this one is to do
 * what that one would have done), the directory has given the attempt up before it granted that. So the worker lets go
 * of it, and adds to its accumulator when nothing of it is on the reduce lane any more; a REDUCE of a higher attempt
 * ends the round as ever.
 *
 * With buckets the BACKWARD of the last microbatch of the share goes in parts, from the last layers to the first, and the
 * sum in as many fragments, in that order: one begins when its part is done and the fragment before is summed here. That is
 * bucketed overlap as in PyTorch's DistributedDataParallel (Li et al. 2020). With the parts done at P_1 < P_2 < .. < P_B and
 * fragments that take c_1 .. c_B on an idle network, equally fast members have the sum at
 *     T_B, where T_b = max(T_(b-1), P_b) + c_b.
 * With periodic sync (periodic.c) each part makes the last inner step of its elements, too, and what is summed is their
 * pseudo-gradient. Once it has begun such a BACKWARD ends, whatever becomes of the eager attempt. A REDUCE that comes so
 * late that a BACKWARD of more than the share is running already is one of an attempt that was given up.
 *
 * What is kept true: an eager sum holds the share and nothing else, in each member. So the directory can make it final
 * only when all that it granted has come back, and then nothing is missing in it.
 */
#include "core/collective/collective.h"

#include "core/directory/directory.h"
#include "core/methods/flush.h"
#include "core/worker/worker.h"
#include <assert.h>

static bool is_due(struct directory *d, const struct skep_plan *plan)
{
	assert(d->pipelines > 0);
	if (d->whole < d->pipelines || d->issued != plan->microbatches)
		return false;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->stage == 0 && row->outstanding != d->owner_share)
			return false;
	}
	return true;
}

static void begin_round(struct directory *d, struct step *step)
{
	assert(d->issued <= d->capacity);
	assert(d->pipelines > 0);
	skep_rounds_begin(d, step);
	d->eager = is_due(d, step->plan);
	if (!d->eager)
		return;
	/* Which microbatches come back is not known yet, so no divisor is certain. */
	d->reduced = (struct reduced){.round = d->round, .issued = d->issued};
	for (uint32_t stage = 0; stage < step->plan->stages; stage++) {
		directory_stage(d, stage)->attempt = 0;
		directory_stage(d, stage)->committed = false;
		skep_attempt_begin(d, step, stage, true);
	}
}

static void call_off(struct directory *d)
{
	assert(d->pipelines > 0);
	if (d->eager)
		d->void_attempt = 1;
	d->eager = false;
}

/* It was as planned: all has come back, so the reduction that was announced is the round's. */
static void complete(struct directory *d, struct step *step)
{
	assert(d->pipelines > 0);
	if (!d->eager) {
		step->how.losses->complete(d, step);
		return;
	}
	d->eager = false;
	skep_directory_enter(d, PHASE_REDUCING);
	d->reduced.on = true;
	step->how.agreement->begun(d, step);
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on; stage++) {
		if (directory_stage(d, stage)->pending == 0 && !directory_stage(d, stage)->committed)
			step->how.agreement->told(d, step, stage);
	}
}

static void on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY);
	bool told = (d->reduced.on || d->eager) && skep_rounds_take_tally(d, step->plan, message);
	if (told && !d->eager)
		step->how.agreement->told(d, step, directory_row(d, message->from.index)->stage);
}

static void fenced(struct directory *d, struct step *step, uint32_t worker, bool served)
{
	assert(worker < step->plan->workers);
	call_off(d);
	skep_rounds_worker_gone(d, step, worker, served);
}

static uint32_t actions(const struct skep_plan *plan, uint32_t fences)
{
	(void)fences;
	uint32_t roster = skep_stage_size_max(plan) / SKEP_ROSTER_PART + 1;
	return 1 + (skep_collective_has_roster(plan->reduction.collective) ? roster : 0);
}

const struct skep_directory_method skep_eager_directory = {
	SKEP_FLUSH_COMMIT,
	SKEP_FLUSH_NEWCOMERS,
	SKEP_FLUSH_SERVICE,
	.actions = actions,
	.begin = begin_round,
	.on_finished = skep_rounds_on_finished,
	.given_up = call_off,
	.refill = skep_flush_refill,
	.resume = skep_rounds_resume,
	.complete = complete,
	.reduce = skep_flush_reduce,
	.on_tally = on_tally,
	.committed = skep_flush_committed,
	.worker_gone = fenced,
};

/* ---- a worker ------------------------------------------------------------------------------------------------------- */

static bool due(const struct worker *w)
{
	assert(w->reduction.attempt > 0);
	const struct reduction *r = &w->reduction;
	return !r->given_up && (w->counted[w->version & 1] == w->share || r->fragment < w->part);
}

/* True if this microbatch is the last one of the share and there are other members to sum with. */
static uint32_t parts(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	const struct reduction *r = &w->reduction;
	uint32_t buckets = skep_plan_buckets(plan, w->node.stage);
	bool last = r->eager && !r->given_up && w->counted[w->version & 1] + 1 == w->share;
	return last && r->size > 1 && buckets > 1 ? buckets : 0;
}

static bool counts_more(const struct worker *w)
{
	return w->counted[w->version & 1] >= w->share;
}

static void share_counted(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.eager);
	if (due(w))
		skep_reduce_begin(w, step);
}

/* The attempt's number stays: what it still brings, and a second copy of its REDUCE, are known by it. */
static void make_way(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	struct reduction *r = &w->reduction;
	if (!r->eager || r->given_up || w->counted[w->version & 1] < w->share)
		return;
	skep_reduce_cancel(w, step);
	skep_transfers_forget(w, step);
	*r = (struct reduction){.attempt = r->attempt, .eager = true, .given_up = true};
}

static void part_ended(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	if (w->reduction.eager)
		share_counted(w, step);
}

static void backward_ended(struct worker *w, struct step *step, bool open_round)
{
	assert(w->state == WORKER_SERVING);
	if (!open_round)
		skep_reduce_backward_ended(w, step);
	else
		part_ended(w, step);
}

static void take(struct worker *w, struct step *step, const struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	if (!reduce->u.reduce.eager)
		skep_flush_take(w, step, reduce);
}

static void taken(struct worker *w, const struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	struct reduction *r = &w->reduction;
	r->eager = reduce->u.reduce.eager;
	if (r->eager)
		r->given_up = skep_reduce_backward_running(w) && counts_more(w);
	else
		skep_flush_taken(w, reduce);
}

static bool may_begin(const struct worker *w)
{
	return !w->reduction.eager || due(w);
}

/* It begins before the last microbatch of the share is counted. */
static uint32_t brought(const struct worker *w)
{
	return w->reduction.eager ? w->share : skep_flush_brought(w);
}

/* The round is complete: what comes now is a duplicate. */
static void committed(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	if (!w->reduction.eager)
		return;
	skep_pipeline_seal(w, step);
	w->reduction.eager = false;
	w->reduction.sealed = true;
	skep_flush_derive(w);
}

const struct skep_worker_method skep_eager_worker = {
	.lay_out = skep_flush_worker_lay_out,
	.fragments = 2,
	.derive = skep_flush_derive,
	.forget = skep_flush_forget,
	.reads = skep_flush_reads,
	.staleness = skep_flush_staleness,
	.first_visit = skep_flush_first_visit,
	.wants_gradient = skep_flush_wants_gradient,
	.make_way = make_way,
	.parts = parts,
	.part_ended = part_ended,
	.backward_ended = backward_ended,
	.take = take,
	.taken = taken,
	.may_begin = may_begin,
	.brought = brought,
	.tell = skep_reduce_send_tally,
	.committed = committed,
	.may_step = skep_flush_may_step,
	.stepped = skep_flush_worker_stepped,
	.notice = skep_flush_notice,
	.gate = skep_flush_gate,
	.kept_as = skep_flush_kept_as,
	.held_as = skep_flush_kept_as,
	.on_checkpoint = skep_flush_on_checkpoint,
};
