/* SPDX-License-Identifier: Apache-2.0
 *
 * fixed.c - the directory with fixed pipelines (GPipe, 1F1B, interleaved): which pipelines are whole, who owns a share of the
 * round, and who has to be told that a share will not come.
 *
 * Pipeline p passes through worker p mod r of each stage of r workers (pipelines.h). A sender knows its partners alone, and a
 * newcomer returns to its own place; so a pipeline that lacks a worker does nothing until that one is back, and is granted
 * nothing. At the opening of a round each whole pipeline is granted its share, microbatches / pipelines; what a broken one
 * does not get, and what is given up, goes to any worker that has room, as in a swarm. A pipeline that a worker wants to
 * leave gets work only if all have leavers. An owner of several pipelines is granted microbatches for each of them in turn.
 *
 * The last worker of a pipeline may wait for all of the share before its first backward pass (GPipe), or every worker
 * for what is next on its list (interleaved). What it waits for always comes, unless it is told so by DRAIN. That is
 * sent when
 *   - the pipeline was granted another number than its share when the round opened,
 *   - a microbatch of it was given up,
 *   - a worker took its place in it while the round was open: the new one has not seen what passed before.
 * Where stages have unequal numbers of workers pipelines share workers, and one that waited for what another pipeline lacks
 * would hold up its own. So all are told together: when one of them was granted another number than its share, or lacks a
 * worker, as the round opens; when a microbatch is given up; and when a worker is fenced.
 *
 * With equal numbers a fenced worker is no reason of its own. The sender gives up what that worker had of a microbatch, back
 * to the owner; if the owner is the one that was fenced, no worker waits for the microbatch, and the others are told when a
 * newcomer takes its place. In a round that is run again no worker waits, and none needs to be told.
 *
 * With a barrier (plan->barrier) the last worker of a pipeline says when its share has gone forwards (FORWARDS_DONE), and
 * waits for BARRIER_LIFTED. That is sent to all when all have said so: those whose pipelines were granted their shares. It
 * is also sent at once when a microbatch is given up or a worker is fenced: then there is no barrier in what is left of the
 * round, and each waits for its own share alone.
 *
 * No work depends on a newcomer's, so a newcomer that holds all of its state takes its place at once, in the middle of
 * a round. (In a swarm it waits for the next one.) While no pipeline is whole nothing is granted, and the round stays
 * open. If none is for wait_for_join, the run fails, as it does for a stage that no worker comes back to.
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/schedule/order.h"

void skep_fixed_init(struct directory *d, const struct skep_plan *plan)
{
	d->pipelines = skep_plan_pipelines(plan);
	d->uneven = skep_plan_uneven(plan);
	assert(d->pipelines > 0 && plan->microbatches % d->pipelines == 0);
	d->owner_share = skep_plan_share(plan, 0);
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		assert(row->stage < plan->stages);
		row->pipeline = row->dealt = directory_stage(d, row->stage)->serving;
		row->replicas = directory_stage(d, row->stage)->began;
		for (uint32_t p = row->pipeline; p < d->pipelines; p += row->replicas) {
			struct pipeline *pipeline = directory_pipeline(d, p);
			pipeline->first = row->stage == 0 ? i : pipeline->first;
			pipeline->last = row->stage + 1 == plan->stages ? i : pipeline->last;
		}
		skep_directory_count_in(d, row);
	}
	d->broken_since_ns = SKEP_TIME_NEVER;
}

/* ---- who is there --------------------------------------------------------------------------------------------- */

static bool whole(const struct directory *d, const struct pipeline *p)
{
	return p->serving == d->stages;
}

static bool stays(const struct directory *d, const struct pipeline *p)
{
	return whole(d, p) && p->leaving == 0;
}

/* Those that stay are granted work, or all that are whole if none stays. */
bool skep_fixed_works(struct directory *d, uint32_t pipeline)
{
	const struct pipeline *p = directory_pipeline(d, pipeline);
	return d->staying > 0 ? stays(d, p) : whole(d, p);
}

void skep_fixed_count_in(struct directory *d, const struct row *row)
{
	assert(row->standing == STANDING_SERVING);
	assert(row->pipeline < d->pipelines);
	for (uint32_t i = row->pipeline; i < d->pipelines; i += row->replicas) {
		struct pipeline *p = directory_pipeline(d, i);
		assert(p->serving < d->stages); /* it lacks this stage */
		p->serving++;
		p->leaving += row->leaving;
		d->whole += whole(d, p);
		d->staying += stays(d, p);
	}
}

void skep_fixed_count_out(struct directory *d, const struct row *row)
{
	assert(row->pipeline < d->pipelines);
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t i = row->pipeline; i < d->pipelines; i += row->replicas) {
		struct pipeline *p = directory_pipeline(d, i);
		assert(p->serving > 0);
		d->whole -= whole(d, p);
		d->staying -= stays(d, p);
		p->serving--;
		p->leaving -= row->leaving;
		d->whole += whole(d, p);
		d->staying += stays(d, p);
	}
}

/* ---- who is granted what ------------------------------------------------------------------------------------------ */

bool skep_fixed_is_owner(struct directory *d, const struct row *row)
{
	assert(d->pipelines > 0);
	for (uint32_t i = row->pipeline; row->stage == 0 && i < d->pipelines; i += row->replicas)
		if (skep_fixed_works(d, i))
			return true;
	return false;
}

bool skep_fixed_one_by_one(const struct directory *d)
{
	return d->uneven && (d->staying > 0 ? d->staying : d->whole) < d->pipelines;
}

static uint32_t next_pipeline(const struct directory *d, const struct row *row, uint32_t pipeline)
{
	return pipeline + row->replicas < d->pipelines ? pipeline + row->replicas : row->pipeline;
}

uint32_t skep_fixed_deal(struct directory *d, struct row *owner, uint32_t count)
{
	assert(skep_fixed_is_owner(d, owner));
	assert(count == 1 || !skep_fixed_one_by_one(d));
	while (!skep_fixed_works(d, owner->dealt))
		owner->dealt = next_pipeline(d, owner, owner->dealt);
	uint32_t first = owner->dealt;
	for (uint32_t i = 0; i < count % (d->pipelines / owner->replicas); i++)
		owner->dealt = next_pipeline(d, owner, owner->dealt);
	return first;
}

/* ---- who is told ---------------------------------------------------------------------------------------------- */

static void send_drain(struct directory *d, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_DRAIN, directory_worker(d, worker));
	message.round = d->round;
	skep_emit_send(step, &d->node, &message);
}

static void drain_all(struct directory *d, struct step *step, uint32_t pipeline)
{
	assert(pipeline < d->pipelines);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (directory_is_told(d, row, pipeline))
			send_drain(d, step, i);
	}
}

void skep_fixed_drain(struct directory *d, struct step *step, uint32_t pipeline)
{
	assert(d->phase == PHASE_OPEN);
	struct pipeline *p = directory_told_with(d, pipeline);
	bool all = step->how.order->drains == SKEP_DRAINS_ALL;
	if (step->how.order->drains == SKEP_DRAINS_NONE || p->drained ||
		(!all && directory_row(d, p->last)->standing != STANDING_SERVING))
		return;
	p->drained = true;
	if (all)
		drain_all(d, step, pipeline);
	else
		send_drain(d, step, p->last);
}

void skep_fixed_opens(struct directory *d)
{
	for (uint32_t i = 0; i < d->workers; i++)
		directory_row(d, i)->dealt = directory_row(d, i)->pipeline;
}

void skep_fixed_opened(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN);
	assert(d->pipelines > 0);
	d->awaited = 0;
	for (uint32_t i = 0; i < d->pipelines; i++) {
		struct pipeline *p = directory_pipeline(d, i);
		p->drained = false;
		p->awaited = step->plan->barrier && directory_row(d, p->first)->outstanding == d->owner_share;
		d->awaited += p->awaited;
		if (directory_row(d, p->first)->outstanding != d->owner_share || skep_fixed_one_by_one(d))
			skep_fixed_drain(d, step, i);
	}
}

void skep_fixed_worker_gone(struct directory *d, struct step *step, uint32_t worker)
{
	if (d->uneven)
		skep_fixed_drain(d, step, directory_row(d, worker)->pipeline);
}

void skep_fixed_lift_barrier(struct directory *d, struct step *step)
{
	for (uint32_t i = 0; i < d->pipelines && d->awaited > 0; i++) {
		const struct pipeline *p = directory_pipeline(d, i);
		if (p->drained || directory_row(d, p->last)->standing != STANDING_SERVING)
			continue;
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_BARRIER_LIFTED, directory_worker(d, p->last));
		message.round = d->round;
		skep_emit_send(step, &d->node, &message);
	}
	d->awaited = 0;
}

void skep_fixed_on_forwards_done(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	if (d->pipelines == 0 || d->phase != PHASE_OPEN || message->round != d->round)
		return;
	struct pipeline *p = directory_pipeline(d, directory_row(d, message->from.index)->pipeline);
	if (message->from.index != p->last || !p->awaited || d->awaited == 0)
		return;
	p->awaited = false;
	if (d->awaited == 1)
		skep_fixed_lift_barrier(d, step);
	else
		d->awaited--;
}

/* ---- who takes a place ---------------------------------------------------------------------------------------- */

void skep_fixed_serve_ready(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		if (directory_row(d, i)->standing == STANDING_READY)
			skep_directory_serve(d, i);
	}
}

void skep_fixed_ready(struct directory *d, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	assert(directory_row(d, worker)->stage < step->plan->stages);
	const struct row *row = directory_row(d, worker);
	d->broken_since_ns = SKEP_TIME_NEVER;
	if (d->phase == PHASE_VALIDATING && row->standing == STANDING_READY) /* where no worker waits for a share */
		skep_directory_serve(d, worker);
	if (d->phase == PHASE_VALIDATING)
		step->how.directory->resume(d, step);
	if (d->phase != PHASE_OPEN)
		return; /* it serves when its stage has committed, or when what is missing is known (rerun.c) */
	if (row->standing == STANDING_READY)
		skep_directory_serve(d, worker);
	struct pipeline *p = directory_told_with(d, row->pipeline);
	bool all = step->how.order->drains == SKEP_DRAINS_ALL;
	if (all && p->drained && row->standing == STANDING_SERVING)
		send_drain(d, step, worker);
	p->drained = p->drained && (all || p->last != worker); /* its last incarnation was told */
	skep_fixed_drain(d, step, row->pipeline);
	step->how.directory->resume(d, step);
}

/* ---- when no worker can work ---------------------------------------------------------------------------------- */

/* A worker that holds all of its state will serve soon. */
static bool soon_whole(struct directory *d, uint32_t pipeline, uint32_t workers)
{
	assert(d->pipelines > 0);
	uint32_t present = 0;
	for (uint32_t i = 0; i < workers; i++) {
		const struct row *row = directory_row(d, i);
		present += pipeline % row->replicas == row->pipeline && row->standing >= STANDING_READY;
	}
	return present == d->stages;
}

uint32_t skep_fixed_missing_stage(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		if (directory_row(d, i)->standing < STANDING_READY)
			return directory_row(d, i)->stage;
	}
	return SKEP_NO_STAGE;
}

void skep_fixed_timer(struct directory *d, struct step *step)
{
	assert(d->pipelines > 0);
	if (d->phase == PHASE_STOPPED)
		return;
	bool broken = d->whole == 0;
	for (uint32_t i = 0; i < d->pipelines && broken; i++)
		broken = !soon_whole(d, i, step->plan->workers);
	if (!broken)
		d->broken_since_ns = SKEP_TIME_NEVER;
	else if (d->broken_since_ns == SKEP_TIME_NEVER)
		d->broken_since_ns = d->node.now;
	if (broken && d->node.now - d->broken_since_ns >= step->plan->liveness.wait_for_join_ns)
		skep_directory_stop(d, step, false);
}
