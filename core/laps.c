/* SPDX-License-Identifier: Apache-2.0
 *
 * laps.c - interleaved pipelines (Narayanan et al. 2021, section 2.2): a worker of stage s of K holds v slices of the model,
 * number s, s + K, .. of v K, and a microbatch passes the pipeline v times, lap by lap: from the last stage it goes on to the
 * first one of the same pipeline, and gradients come back the same way. The worker stays one machine and serves one stage; its
 * parameters are its slices one after the other. So joining, downloads, reductions and checkpoints know nothing of laps. What
 * is counted is counted for each slice, since a death may lose a microbatch in some of them: COMMIT names the divisor of
 * one slice, and there is a STEP for each.
 *
 * The order of passes of an undisturbed pipeline is that of Megatron-LM. Microbatches go in groups of K. Forwards come by (group,
 * lap, place in the group), backwards by (group, v - 1 - lap, place in the group); first 2 (K - s - 1) + (v - 1) K forwards, then
 * one forwards and one backwards in turn. Each device does its list in that order and waits for what is next on it, also while
 * something else is ready: going ahead with that would fill its memory with microbatches that are to wait longer, and what
 * was next would come too late for everybody behind. With equal slices and no transfers everything comes just in time, and a
 * round of M microbatches takes M (f + b) + (K - 1) (f + b) / v.
 *
 * Who waits for what is given up would wait for ever, so the directory tells all of a pipeline (TURN) when it was granted another
 * number than its share, has given something up, or somebody is new in it (fixed.c). In such a round, as in
 * one that is run again, a device takes what is ready, in the same order but without waiting. It begins a microbatch in
 * a slice only while it holds no more than in an undisturbed round, or nothing else in that slice. So it never holds more than
 * v - 1 beyond that. Nor does anybody wait for ever: of all slices in which somebody holds a microbatch, take the one
 * farthest on; what is held there is next in a slice where nobody holds anything, so nothing keeps it from going on.
 *
 * What a pipeline is granted beyond its share, for another one that is broken, it does in that way after its own forwards.
 */
#include <assert.h>

#include "core/worker.h"

void laps_init(struct worker *w, const struct skep_plan *plan)
{
	w->laps = (struct laps){.count = skep_plan_laps(plan), .stages = plan->stages, .first = SKEP_NO_INDEX};
	for (uint32_t lap = 0; lap < w->laps.count; lap++)
		worker_divisor(w)[lap] = SKEP_NO_INDEX;
}

/* A new round, or a new life. */
void laps_begin(struct worker *w)
{
	w->laps.first = SKEP_NO_INDEX;
	w->laps.forwards = w->laps.backwards = 0;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

uint32_t laps_of_message(const struct worker *w, const struct skep_message *message)
{
	if (w->laps.count == 1)
		return 0;
	if (message->kind == SKEP_MESSAGE_FORWARD)
		return (message->stage + 1u) / w->laps.stages;
	if (message->kind == SKEP_MESSAGE_BACKWARD || message->kind == SKEP_MESSAGE_ABANDON ||
		message->kind == SKEP_MESSAGE_VALIDATED)
		return (message->stage - 1u) / w->laps.stages;
	return 0;
}

/* ---- the end of a round ----------------------------------------------------------------------------------------- */

/* Are the divisors of all slices known now? */
bool laps_commit(struct worker *w, const struct skep_message *message)
{
	uint32_t lap = message->stage / w->laps.stages;
	bool all = true;
	if (lap < w->laps.count)
		worker_divisor(w)[lap] = message->u.commit.microbatches;
	for (uint32_t i = 0; i < w->laps.count; i++)
		all = all && worker_divisor(w)[i] != SKEP_NO_INDEX;
	return all;
}

/* One slice has made its step; is there another one? */
bool laps_step_on(struct worker *w)
{
	if (++w->laps.stepped < w->laps.count)
		return true;
	laps_uncommit(w);
	return false;
}

void laps_uncommit(struct worker *w)
{
	w->laps.stepped = 0;
	for (uint32_t lap = 0; lap < w->laps.count; lap++)
		worker_divisor(w)[lap] = SKEP_NO_INDEX;
}

/* ---- the list --------------------------------------------------------------------------------------------------- */

/* Need it not wait for what is next on the list? */
static bool loose(const struct worker *w, uint32_t round)
{
	return w->turn > round || worker_pass(w, round) > 0;
}

/* The pass that is number `nth` of its kind; the smaller, the sooner. */
static uint32_t microbatch_of(const struct worker *w, uint32_t nth)
{
	const struct laps *laps = &w->laps;
	return laps->first + nth / (laps->stages * laps->count) * laps->stages + nth % laps->stages;
}

static uint32_t lap_of(const struct worker *w, uint32_t nth, bool backward)
{
	uint32_t lap = nth / w->laps.stages % w->laps.count;
	return backward ? w->laps.count - 1 - lap : lap;
}

static uint64_t key_of(const struct worker *w, const struct skep_work *work, bool backward)
{
	const struct laps *laps = &w->laps;
	uint32_t lap = backward ? laps->count - 1 - work->lap : work->lap;
	uint64_t group = work->microbatch / laps->stages, place = work->microbatch % laps->stages;
	return (group * laps->count + lap) * laps->stages + place;
}

static bool own(const struct worker *w, uint32_t microbatch)
{
	return w->laps.first != SKEP_NO_INDEX && microbatch - w->laps.first < w->share;
}

/* The grant whose microbatches may be issued now. */
static const struct grant *granted(struct worker *w, uint32_t round)
{
	const struct skep_inflight *table = worker_inflight(w);
	bool any = w->grants > 0 && worker_grants(w)->round == round && table->used < table->capacity;
	return any ? worker_grants(w) : NULL;
}

/* Shares are granted one after the other from 0 on, so the first of one is a multiple of its length. */
static bool know_first(struct worker *w, uint32_t round)
{
	const struct skep_inflight *table = worker_inflight(w);
	const struct grant *grant = w->node.stage == 0 ? granted(w, round) : NULL;
	if (w->laps.first != SKEP_NO_INDEX)
		return true;
	if (grant && grant->first % w->share == 0 && !worker_validates(w, grant->first))
		w->laps.first = grant->first;
	uint32_t left = w->node.stage > 0 ? table->used : 0;
	for (uint32_t i = 0; left > 0 && w->laps.first == SKEP_NO_INDEX; i++) {
		const struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		bool first =
			work->lap == 0 && work->microbatch % w->share == 0 && !worker_validates(w, work->microbatch);
		if (work->state == SKEP_WORK_READY_FORWARD && work->round == round && first)
			w->laps.first = work->microbatch;
	}
	return w->laps.first != SKEP_NO_INDEX;
}

static void run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind)
{
	if (own(w, work->microbatch)) {
		w->laps.forwards += kind == SKEP_OP_FORWARD;
		w->laps.backwards += kind == SKEP_OP_BACKWARD;
	}
	skep_work_unqueue(worker_inflight(w), work);
	pipeline_run(w, step, work, kind);
}

static void issue(struct worker *w, struct step *step)
{
	w->laps.forwards += own(w, worker_grants(w)->first);
	pipeline_issue(w, step);
}

/* The next pass of the list, if it is ready. */
static void pick_next(struct worker *w, struct step *step, uint32_t round)
{
	const struct laps *laps = &w->laps;
	uint32_t all = w->share * laps->count;
	bool backward = laps->forwards == all || laps->forwards - laps->backwards >= w->held;
	uint32_t nth = backward ? laps->backwards : laps->forwards;
	if (nth == all)
		return;
	uint32_t microbatch = microbatch_of(w, nth), lap = lap_of(w, nth, backward);
	const struct grant *grant = granted(w, round);
	if (!backward && lap == 0 && w->node.stage == 0) {
		if (grant && grant->first == microbatch)
			issue(w, step);
		return;
	}
	struct skep_work *work = skep_inflight_find(worker_inflight(w), round, worker_item(w, microbatch, lap));
	uint8_t ready = backward ? SKEP_WORK_READY_BACKWARD : SKEP_WORK_READY_FORWARD;
	if (work && work->state == ready)
		run(w, step, work, backward ? SKEP_OP_BACKWARD : SKEP_OP_FORWARD);
}

/* ---- without waiting -------------------------------------------------------------------------------------------- */

static bool has_room(struct worker *w, uint32_t lap)
{
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t held = 0, same = 0, left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		const struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		held += work->state > SKEP_WORK_READY_FORWARD;
		same += work->state > SKEP_WORK_READY_FORWARD && work->lap == lap;
	}
	return held < w->held || same == 0;
}

/* What comes first of what is ready; not this pipeline's own if its list is kept to. */
static struct skep_work *first_ready(struct worker *w, uint32_t round, bool backward, bool others)
{
	struct skep_inflight *table = worker_inflight(w);
	uint8_t ready = backward ? SKEP_WORK_READY_BACKWARD : SKEP_WORK_READY_FORWARD;
	struct skep_work *first = NULL;
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		bool may = work->state == ready && work->round == round && !(others && own(w, work->microbatch)) &&
		           (backward || has_room(w, work->lap));
		if (may && (!first || key_of(w, work, backward) < key_of(w, first, backward)))
			first = work;
	}
	return first;
}

static void pick_ready(struct worker *w, struct step *step, uint32_t round, bool others)
{
	/* Run again, after an attempt that may still be on the reduce lane and reads what BACKWARD adds to. */
	bool adds = !worker_recounted(w) || w->reduce_ops == 0;
	struct skep_work *backward = adds ? first_ready(w, round, true, others) : NULL;
	struct skep_work *forward = backward ? NULL : first_ready(w, round, false, others);
	if (backward)
		run(w, step, backward, SKEP_OP_BACKWARD);
	else if (forward)
		run(w, step, forward, SKEP_OP_FORWARD);
	else if (granted(w, round) && w->issued_in_flight < step->plan->in_flight && has_room(w, 0))
		issue(w, step);
}

/* What is validated comes before the round and is on no list: whatever is ready. */
static void pick_validated(struct worker *w, struct step *step, uint32_t round)
{
	struct skep_work *first = first_ready(w, round, false, false);
	const struct grant *grant = granted(w, round);
	if (first && worker_validates(w, first->microbatch))
		run(w, step, first, SKEP_OP_FORWARD);
	else if (!first && grant && worker_validates(w, grant->first) && w->issued_in_flight < step->plan->in_flight &&
		 has_room(w, 0))
		issue(w, step);
}

void laps_pick(struct worker *w, struct step *step)
{
	uint32_t round = worker_round(w);
	if (step->plan->validate_every > 0)
		pick_validated(w, step, round);
	if (w->compute_op != 0)
		return;
	bool waits = !loose(w, round);
	if (waits && know_first(w, round))
		pick_next(w, step, round);
	bool forwards_done = w->laps.forwards == w->share * w->laps.count;
	if (w->compute_op == 0 && (!waits || forwards_done))
		pick_ready(w, step, round, waits);
}
