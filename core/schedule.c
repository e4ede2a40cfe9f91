/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c - which operation an idle device runs next. One operation at a time is on the compute lane, so that every
 * choice is made as late as possible.
 *
 * With delayed updates the step is the reduce lane's, beside the work of the next round (with periodic sync it is this lane's,
 * between two passes). It replaces the parameters that the
 * round before worked on and changes the optimizer's state, so it waits for a pass of the sealed round that nobody wants any
 * more, and it and what reads or writes the state of the stage wait for each other.
 *
 * First what others wait for: the step that ends a round, the state for a newcomer. A step, and what makes room for another
 * stage, wait for the reduce lane to be empty: an attempt that is void may still be running there, on the tensors that they
 * change. Then the pipeline: gradients (BACKWARD), activations (FORWARD), or a new microbatch (FORWARD of an owner, when
 * nothing else goes forwards), the oldest first. A schedule says which of the two passes is preferred where both are possible,
 * and when one is not allowed yet:
 *
 *   swarm  backwards first: it frees memory and ends microbatches.
 *   gpipe  forwards first; the last stage goes backwards when the whole share of its pipeline has gone forwards. That is
 *          enough for all: a gradient comes to a stage only after the last one has turned round, and by then everything has
 *          passed by. If something of the share will not come the directory says so (TURN), and nobody waits any more; nor
 *          in a round that is being run again, of which nobody knows how much will come. So the gate opens in the end.
 *          With a barrier it says so (PASSED), and waits until all pipelines have (BACK).
 *          Where FORWARD keeps nothing and all of the share has passed, an idle device does it again ahead for the microbatch
 *          that was sent on first: its gradient comes next. One at a time, so it takes no memory beside that of a BACKWARD.
 *   1f1b   one forwards, one backwards: after a BACKWARD a FORWARD is preferred, else a BACKWARD; stage s of K holds at most
 *          K - s microbatches. (Backwards whenever that is possible would hold no more, but gradients that come together
 *          would be done together, and the stages behind would wait meanwhile.) The last stage can always go backwards with
 *          what it went forwards with, so the one before gets its gradient and has room again, and so on: nobody waits for
 *          ever.
 *   interleaved  a list for each device, which it keeps to as long as nothing happens to its pipeline (laps.c).
 *   pipedream  the same order over rounds that are never flushed, the oldest ready round first. Stage s of K begins a FORWARD of
 *          round r when it holds fewer than K - s and its parameters lack at most `staleness` steps of r, and a BACKWARD of r
 *          when round r - 2 is stepped. The step is on this lane, before anything else.
 *          A step from r to r + 1 finds the place of version r + 1 free, which is that of version r - staleness: nothing of
 *          round r and before is held any more (its share is counted, or given up), and what is held of a later round r'
 *          reads version r' - staleness > r - staleness or newer. That is asserted.
 *          Nobody waits for ever: of the oldest round that is not behind a stage, all that has come may go both ways as soon
 *          as one of the later ones has gone backwards to make room, and that waits for no step of this round.
 */
#include <assert.h>

#include "core/worker.h"

/* Without a flush: no microbatch reads the parameters whose place the step takes. */
static bool place_is_free(struct worker *w)
{
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

/* A late pass of the sealed round reads what the step writes, or adds to what it sums; all else is about the state. */
static bool compute_in_the_way(struct worker *w)
{
	if (w->compute_op == 0)
		return false;
	bool pass = w->compute_kind == SKEP_OP_FORWARD || w->compute_kind == SKEP_OP_BACKWARD;
	return !pass || (!w->async && worker_inflight(w)->work[w->compute_slot].round == w->version);
}

static bool start_step(struct worker *w, struct step *step)
{
	struct reduction *r = &w->reduction;
	if (!r->committed || r->stepping || w->reduce_ops > 0 || compute_in_the_way(w))
		return false;
	if (w->streams && w->checkpoint) /* of this version */
		return false;
	if (w->periodic && inner_puts_off(w, step->plan))
		return false;
	assert(!w->streams || place_is_free(w));
	struct skep_op op = {.kind = SKEP_OP_STEP, .round = w->version};
	op.stage = (uint16_t)(w->laps.stepped * w->laps.stages + w->node.stage);
	op.version = w->version;
	op.size = r->size;
	op.attempt = r->attempt;
	op.microbatches = worker_divisor(w)[w->laps.stepped];
	op.square = r->square;
	if (skep_plan_ties_slice(step->plan, op.stage))
		op.tied = r->tied.counted;
	op.merge = w->async ? (uint8_t)merge_of_step(w) : 0;
	if (skep_plan_fragments(step->plan) > 1)
		skep_plan_range(step->plan, w->node.stage, w->version, 0, &op.first, &op.count);
	r->stepping = true;
	if (w->beside) {
		w->reduce_ops++;
		skep_emit_run(step, &w->node, &op);
	} else {
		worker_compute(w, step, &op);
	}
	return true;
}

/* ---- the order of passes -------------------------------------------------------------------------------------- */

struct order {
	bool (*forward_first)(struct worker *w, const struct skep_plan *plan); /* where both are possible */
	bool (*may_forward)(struct worker *w, const struct skep_plan *plan);
	bool (*may_backward)(struct worker *w, const struct skep_plan *plan);
};

static bool always(struct worker *w, const struct skep_plan *plan)
{
	(void)w, (void)plan;
	return true;
}

static bool never(struct worker *w, const struct skep_plan *plan)
{
	(void)w, (void)plan;
	return false;
}

static bool after_backward(struct worker *w, const struct skep_plan *plan)
{
	(void)plan;
	return w->compute_kind == SKEP_OP_BACKWARD;
}

static bool went_backwards(struct worker *w, const struct skep_plan *plan)
{
	(void)plan;
	return w->backwards;
}

static bool share_has_passed(struct worker *w, const struct skep_plan *plan)
{
	uint32_t round = worker_round(w);
	bool all_have = w->forwarded >= w->share && (!plan->barrier || w->back > round);
	return w->node.stage + 1 < plan->stages || all_have || w->turn > round || worker_pass(w, round) > 0;
}

/* What is held: everything but what has come and was not begun. */
static bool has_room(struct worker *w, const struct skep_plan *plan)
{
	(void)plan;
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t begun = 0, left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		left -= table->work[i].state != SKEP_WORK_FREE;
		begun += table->work[i].state > SKEP_WORK_READY_FORWARD;
	}
	return begun < w->held;
}

static const struct order order_of[] = {
	[SKEP_PIPELINE_SWARM] = {never, always, always},
	[SKEP_PIPELINE_GPIPE] = {always, always, share_has_passed},
	[SKEP_PIPELINE_1F1B] = {after_backward, has_room, always},
	[SKEP_PIPELINE_INTERLEAVED] = {NULL, NULL, NULL}, /* laps.c */
	[SKEP_PIPELINE_PIPEDREAM] = {went_backwards, has_room, always},
};

void schedule_on_gate(struct worker *w, struct step *step, const struct skep_message *message)
{
	uint32_t *open = message->kind == SKEP_MESSAGE_TURN ? &w->turn : &w->back;
	if (w->state != WORKER_SERVING || message->round < *open)
		return;
	*open = message->round + 1;
	if (!w->streams)
		return;
	pipeline_seal_given_up(w, step);
	reduce_settle(w, step);
}

/* Without a flush: the oldest round's that is ready, of those before round `end`. */
static struct skep_work *take_oldest(struct worker *w, enum skep_work_state state, uint32_t end)
{
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *oldest = NULL;
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		if (work->state == state && work->round < end && (!oldest || work->round < oldest->round))
			oldest = work;
	}
	if (oldest)
		skep_work_unqueue(table, oldest);
	return oldest;
}

void schedule_passed(struct worker *w, struct step *step)
{
	uint32_t round = worker_round(w);
	if (!step->plan->barrier || w->forwarded != w->share || worker_pass(w, round) > 0)
		return;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_PASSED, skep_directory_peer(step->plan));
	message.round = round;
	worker_send(w, step, &message);
}

static void pick_backward(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	if (w->streams) {
		struct skep_work *work = take_oldest(w, SKEP_WORK_READY_BACKWARD, w->version + 2);
		if (work)
			pipeline_run(w, step, work, SKEP_OP_BACKWARD);
		return;
	}
	if (table->backward[worker_round(w) & 1].head != SKEP_NO_WORK)
		promised_make_way(w, step);
	/* After an attempt that is void and may still be on the reduce lane, which reads what BACKWARD adds to. */
	bool adds = !(worker_recounted(w) || w->reduction.overtaken) || w->reduce_ops == 0;
	struct skep_work *work = adds ? skep_work_pop(table, &table->backward[worker_round(w) & 1]) : NULL;
	if (work)
		pipeline_run(w, step, work, SKEP_OP_BACKWARD);
}

/* With delayed updates: what is validated reads what the step that is under way makes. */
static bool waits_for_step(struct worker *w, uint32_t round)
{
	const struct skep_inflight *table = worker_inflight(w);
	uint16_t head = table->forward[round & 1].head;
	uint32_t next = w->grants > 0 ? worker_grants(w)->first : 0;
	return w->version < round && worker_validates(w, head != SKEP_NO_WORK ? table->work[head].microbatch : next);
}

static void pick_forward(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	uint32_t round = worker_round(w), end = w->version + w->staleness + 1;
	if (w->delayed && !w->async && waits_for_step(w, round))
		return;
	struct skep_work *work = w->streams ? take_oldest(w, SKEP_WORK_READY_FORWARD, end)
	                                    : skep_work_pop(table, &table->forward[round & 1]);
	if (work)
		pipeline_run(w, step, work, SKEP_OP_FORWARD);
	else if (w->streams && w->grants > 0 && worker_grants(w)->round < end)
		pipeline_issue(w, step);
	else if (!w->streams && w->grants > 0 && worker_grants(w)->round == round &&
		 w->issued_in_flight < step->plan->in_flight)
		pipeline_issue(w, step);
}

static void pick_recompute(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *first = NULL;
	uint32_t left = table->used;
	if (w->forwarded < w->share || w->compute_kind == SKEP_OP_RECOMPUTE)
		return;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		bool waits = work->state == SKEP_WORK_WAIT_GRADIENT && work->round == worker_round(w) &&
		             !worker_validates(w, work->microbatch);
		if (waits && (!first || work->sent_ns < first->sent_ns))
			first = work;
	}
	if (first)
		pipeline_recompute(w, step, first);
}

static void pick_work(struct worker *w, struct step *step)
{
	const struct order *order = &order_of[step->plan->pipeline];
	if (!order->forward_first) {
		laps_pick(w, step);
		return;
	}
	bool forward_first = order->forward_first(w, step->plan);
	for (uint32_t nth = 0; nth < 2 && w->compute_op == 0; nth++) {
		bool forward = forward_first == (nth == 0);
		if (forward && order->may_forward(w, step->plan))
			pick_forward(w, step);
		else if (!forward && order->may_backward(w, step->plan))
			pick_backward(w, step);
	}
	if (w->compute_op == 0 && step->plan->recompute)
		pick_recompute(w, step);
}

static bool start_save(struct worker *w, struct step *step)
{
	w->saved = download_save(w, step);
	return w->saved;
}

/* What reads or writes the state of the stage, for those who found it anew, keep it or download it. */
static bool start_state(struct worker *w, struct step *step)
{
	return member_restore(w, step) || member_checkpoint(w, step) ||
	       (w->state == WORKER_JOINING && download_load(w, step));
}

void schedule_next(struct worker *w, struct step *step)
{
	if (w->beside && worker_member(w))
		start_step(w, step);
	if (w->compute_op != 0)
		return;
	if (!worker_member(w)) {
		member_enter(w, step);
		return;
	}
	bool stepping = w->beside && w->reduction.stepping;
	if ((!w->beside && start_step(w, step)) || (!stepping && start_state(w, step)))
		return;
	if (w->state == WORKER_SERVING && w->async)
		merge_settle(w, step);
	if (w->state != WORKER_SERVING || (w->periodic && inner_run(w, step)))
		return;
	if (!stepping && !w->saved && start_save(w, step))
		return;
	w->saved = false;
	if (w->streams || (worker_works_on(w, worker_round(w)) && !merge_waits(w, step->plan)))
		pick_work(w, step);
	if (w->compute_op == 0 && !stepping)
		start_save(w, step);
}
