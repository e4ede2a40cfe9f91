/* SPDX-License-Identifier: Apache-2.0
 *
 * interleaved.c - 1F1B (PipeDream-flush, Narayanan et al. 2021) and interleaved pipelines (section 2.2 of the same): each device
 * does a list of passes in its order. Interleaved, a worker of stage s of K holds v model
 * chunks, which are the virtual stages s, s + K, .. of v K, and a microbatch passes the pipeline v times, one model
 * chunk after the other: from the last stage it goes on to the first one of the same pipeline, and gradients come back
 * the same way. The worker stays one machine and serves one stage; its parameters are its model chunks one after the
 * other. So joining, downloads, reductions and checkpoints know nothing of model chunks. Microbatches are counted for
 * each virtual stage, since a death may lose one in some of them: COMMIT names the divisor of one virtual stage, and
 * there is a STEP for each.
 *
 * The order of passes of an undisturbed pipeline is that of Megatron-LM. Microbatches go in groups of K. Forwards come
 * by (group, model chunk c, place in the group), backwards by (group, v - 1 - c, place in the group); first 2 (K - s -
 * 1) + (v
 * - 1) K forwards, then one forwards and one backwards in turn. Each device does its list in that order and waits for
 * what is next on it, also while something else is ready: going ahead with that would fill its memory with microbatches
 * that are to wait longer, and what was next would come too late for all workers behind. With equal model chunks and no
 * transfers everything comes just in time, and a round of M microbatches takes M (f + b) + (K - 1) (f + b) / v.
 *
 * Who waits for what is given up would wait for ever, so the directory tells all of a pipeline (DRAIN) when it was
 * granted another number than its share, has given something up, or a worker is new in it (fixed.c). In such a round,
 * as in one that is run again, a device takes what is ready, in the same order but without waiting. It begins a
 * microbatch in a model chunk only while it holds no more than in an undisturbed round, or nothing else in that chunk.
 * So it never holds more than v - 1 beyond that. Nor does a worker wait for ever: of all virtual stages in which a
 * worker holds a microbatch, take the one farthest on; what is held there goes next to a virtual stage in which no
 * worker holds anything, so nothing keeps it from going on.
 *
 * With several flushes (plan->accumulate) the list is that of one flush, done so often: after its last backward pass it begins
 * anew with the warm-up.
 *
 * 1F1B is the same with one model chunk, but for how many go forwards first: stage s holds at most K - s microbatches. There,
 * too, a device that did what is ready would be slower: where stages take differently long, gradients that come together would
 * be done together, and the stages behind would wait meanwhile.
 *
 * What a pipeline is granted beyond its share, for another one that is broken, it does in that way after its own forwards.
 *
 * 1F1B where stages have unequal numbers of workers is PipeDream's 1F1B-RR (2019, section 3.2) with a flush: with all
 * microbatches of a round numbered in the order in which they begin, number g is of worker g mod r_s in stage s of r_s
 * workers. That one holds at most R_s / r_s of them, rounded up, R_s = r_s + r_(s+1) + ..: as many as all workers from here
 * on. No worker waits for ever: before the backward pass of g' the next stage makes forward passes of numbers up to
 * g' + R_(s+1) - 1, and what this one is to begin after it, g, is R_s or more behind g', so only of earlier ones than g.
 */
#include <assert.h>

#include "core/schedule/order.h"
#include "core/worker/worker.h"

/* ---- the list --------------------------------------------------------------------------------------------------- */

/* Need it not wait for what is next on the list? */
static bool loose(const struct worker *w, uint32_t round)
{
	return w->drained > round || worker_pass(w, round) > 0;
}

/* Uneven stages, in an undisturbed round (pipelines.h): of owner i the n-th comes as number i + n r_0 of all. */
static uint32_t uneven_microbatch(const struct worker *w, uint32_t number)
{
	uint32_t own = w->share * w->place.of / w->place.owners; /* of each owner */
	return number % w->place.owners * own + number / w->place.owners;
}

static uint64_t uneven_number(const struct worker *w, uint32_t microbatch)
{
	uint32_t all = w->share * w->place.of, own = all / w->place.owners;
	if (microbatch >= all) /* in the place of others */
		return microbatch;
	return (uint64_t)(microbatch % own) * w->place.owners + microbatch / own;
}

/* The pass that is number `nth` of its kind; the smaller, the sooner. */
static uint32_t microbatch_of(const struct worker *w, uint32_t nth)
{
	assert(w->state == WORKER_SERVING);
	if (w->place.uneven)
		return uneven_microbatch(w, w->place.nth + nth * w->place.of);
	const struct model_chunks *model_chunks = &w->model_chunks;
	return model_chunks->first + nth / (model_chunks->stages * model_chunks->count) * model_chunks->stages +
	       nth % model_chunks->stages;
}

static uint32_t model_chunk_of(const struct worker *w, uint32_t nth, bool backward)
{
	assert(w->state == WORKER_SERVING);
	uint32_t model_chunk = nth / w->model_chunks.stages % w->model_chunks.count;
	return backward ? w->model_chunks.count - 1 - model_chunk : model_chunk;
}

static uint64_t key_of(const struct worker *w, const struct skep_work *work, bool backward)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	if (w->place.uneven)
		return uneven_number(w, work->microbatch);
	const struct model_chunks *model_chunks = &w->model_chunks;
	uint32_t model_chunk = backward ? model_chunks->count - 1 - work->model_chunk : work->model_chunk;
	uint64_t group = work->microbatch / model_chunks->stages, place = work->microbatch % model_chunks->stages;
	return (group * model_chunks->count + model_chunk) * model_chunks->stages + place;
}

static bool own(const struct worker *w, uint32_t microbatch)
{
	if (w->place.uneven)
		return microbatch < w->share * w->place.of;
	return w->model_chunks.first != SKEP_NO_INDEX && microbatch - w->model_chunks.first < w->share;
}

/* The grant whose microbatches may be issued now. */
static const struct grant *granted(struct worker *w, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_inflight *table = worker_inflight(w);
	bool any = w->grants > 0 && worker_grants(w)->round == round && table->used < table->capacity;
	return any ? worker_grants(w) : NULL;
}

/* Shares are granted one after the other from 0 on, so the first of one is a multiple of its length. */
static bool know_first(struct worker *w, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_inflight *table = worker_inflight(w);
	const struct grant *grant = w->node.stage == 0 ? granted(w, round) : NULL;
	if (w->model_chunks.first != SKEP_NO_INDEX || w->place.uneven)
		return true;
	if (grant && grant->first % w->share == 0 && !worker_validates(w, grant->first))
		w->model_chunks.first = grant->first;
	uint32_t left = w->node.stage > 0 ? table->used : 0;
	for (uint32_t i = 0; left > 0 && w->model_chunks.first == SKEP_NO_INDEX; i++) {
		const struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		bool first = work->model_chunk == 0 && work->microbatch % w->share == 0 &&
		             !worker_validates(w, work->microbatch);
		if (work->state == SKEP_WORK_READY_FORWARD && work->round == round && first)
			w->model_chunks.first = work->microbatch;
	}
	return w->model_chunks.first != SKEP_NO_INDEX;
}

static void run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	if (own(w, work->microbatch)) {
		w->model_chunks.forwards += kind == SKEP_OP_FORWARD;
		w->model_chunks.backwards += kind == SKEP_OP_BACKWARD;
	}
	skep_work_unqueue(worker_inflight(w), work);
	skep_pipeline_run(w, step, work, kind);
}

static void issue(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	w->model_chunks.forwards += own(w, worker_grants(w)->first);
	skep_pipeline_issue(w, step);
}

/* The next pass of the list, if it is ready. */
static void pick_next(struct worker *w, struct step *step, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	const struct model_chunks *model_chunks = &w->model_chunks;
	uint32_t all = w->share * model_chunks->count, flush = w->flush * model_chunks->count;
	uint32_t end = (model_chunks->backwards / flush + 1) * flush; /* of the flush that is under way */
	bool backward = model_chunks->forwards == end || model_chunks->forwards - model_chunks->backwards >= w->held;
	uint32_t nth = backward ? model_chunks->backwards : model_chunks->forwards;
	if (nth == all)
		return;
	uint32_t microbatch = microbatch_of(w, nth), model_chunk = model_chunk_of(w, nth, backward);
	const struct grant *grant = granted(w, round);
	if (!backward && model_chunk == 0 && w->node.stage == 0) {
		if (grant && grant->first == microbatch)
			issue(w, step);
		return;
	}
	struct skep_work *work = skep_inflight_find(worker_inflight(w), round, worker_item(w, microbatch, model_chunk));
	uint8_t ready = backward ? SKEP_WORK_READY_BACKWARD : SKEP_WORK_READY_FORWARD;
	if (work && work->state == ready && (!backward || skep_schedule_may_add(w, step)))
		run(w, step, work, backward ? SKEP_OP_BACKWARD : SKEP_OP_FORWARD);
}

/* ---- without waiting -------------------------------------------------------------------------------------------- */

static bool has_room(struct worker *w, uint32_t model_chunk)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t held = 0, same = 0, left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		const struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		held += work->state > SKEP_WORK_READY_FORWARD;
		same += work->state > SKEP_WORK_READY_FORWARD && work->model_chunk == model_chunk;
	}
	return held < w->held || same == 0;
}

/* What comes first of what is ready; not this pipeline's own if its list is kept to. */
static struct skep_work *first_ready(struct worker *w, uint32_t round, bool backward, bool others)
{
	assert(w->state == WORKER_SERVING);
	struct skep_inflight *table = worker_inflight(w);
	uint8_t ready = backward ? SKEP_WORK_READY_BACKWARD : SKEP_WORK_READY_FORWARD;
	struct skep_work *first = NULL;
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		bool may = work->state == ready && work->round == round && !(others && own(w, work->microbatch)) &&
		           (backward || has_room(w, work->model_chunk));
		if (may && (!first || key_of(w, work, backward) < key_of(w, first, backward)))
			first = work;
	}
	return first;
}

static void pick_ready(struct worker *w, struct step *step, uint32_t round, bool others)
{
	assert(w->state == WORKER_SERVING);
	struct skep_work *backward = first_ready(w, round, true, others);
	if (backward && !skep_schedule_may_add(w, step))
		backward = NULL;
	if (w->compute_op != 0)
		return;
	struct skep_work *forward = backward ? NULL : first_ready(w, round, false, others);
	if (backward)
		run(w, step, backward, SKEP_OP_BACKWARD);
	else if (forward)
		run(w, step, forward, SKEP_OP_FORWARD);
	else if (granted(w, round) && w->issued_in_flight < step->plan->in_flight && has_room(w, 0) &&
		 worker_flushed(w))
		issue(w, step);
}

/* What is validated comes before the round and is on no list: whatever is ready. */
static void pick_validated(struct worker *w, struct step *step, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	struct skep_work *first = first_ready(w, round, false, false);
	const struct grant *grant = granted(w, round);
	if (first && worker_validates(w, first->microbatch))
		run(w, step, first, SKEP_OP_FORWARD);
	else if (!first && grant && worker_validates(w, grant->first) && w->issued_in_flight < step->plan->in_flight &&
		 has_room(w, 0))
		issue(w, step);
}

static void pick(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	uint32_t round = worker_round(w);
	if (step->plan->validation.every > 0)
		pick_validated(w, step, round);
	if (w->compute_op != 0)
		return;
	bool waits = !loose(w, round);
	if (waits && know_first(w, round))
		pick_next(w, step, round);
	bool forwards_done = w->model_chunks.forwards == w->share * w->model_chunks.count;
	if (w->compute_op == 0 && (!waits || forwards_done))
		pick_ready(w, step, round, waits);
}

const struct skep_order skep_order_interleaved = {
	.pick = pick, .forwarded = skep_order_no_barrier, .drains = SKEP_DRAINS_ALL};
