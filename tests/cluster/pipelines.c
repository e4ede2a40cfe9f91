/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelines.c - the part of the books about fixed pipelines (I14): who works with whom, in which order, and how much each
 * is granted.
 *
 * Interleaved pipelines are held to the order of passes in Megatron-LM's schedules.py, as long as nothing happens to them.
 *
 * Worked out here from nothing but the first allocation: worker w is part of the pipelines whose numbers are that of its stage's
 * workers before it, modulo the workers of its stage. Where stages have unequal numbers of workers what happens to one pipeline
 * may be told to all, so the books are of all together.
 */
#include "tests/cluster/ledger_internal.h"

bool pipes_fixed(const struct ledger *ledger)
{
	return ledger->plan->pipeline != SKEP_PIPELINE_SWARM;
}

bool pipes_stream(const struct ledger *ledger)
{
	return ledger->plan->pipeline == SKEP_PIPELINE_PIPEDREAM;
}

uint32_t pipes_staleness(const struct ledger *ledger, uint32_t stage)
{
	return stream_staleness(ledger->plan, stage);
}

uint32_t pipes_window(const struct ledger *ledger)
{
	return skep_plan_waves(ledger->plan) ? ledger->plan->no_flush.distance + 4 : 2 * ledger->plan->stages + 4;
}

static uint32_t place_of(const struct skep_plan *plan, uint32_t worker)
{
	uint32_t number = 0;
	for (uint32_t w = 0; w < worker; w++)
		number += plan->first_stage_of[w] == plan->first_stage_of[worker];
	return number;
}

static uint32_t size_of(const struct skep_plan *plan, uint32_t stage)
{
	uint32_t workers = 0;
	for (uint32_t w = 0; w < plan->workers; w++)
		workers += plan->first_stage_of[w] == stage;
	return workers;
}

static bool uneven(const struct skep_plan *plan)
{
	bool unequal = false;
	for (uint32_t s = 1; s < plan->stages; s++)
		unequal = unequal || size_of(plan, s) != size_of(plan, 0);
	return unequal;
}

/* The fewest of which each stage's workers have equally many. */
static uint32_t pipe_count(const struct skep_plan *plan)
{
	for (uint32_t count = 1;; count++) {
		bool all = true;
		for (uint32_t s = 0; s < plan->stages; s++)
			all = all && count % size_of(plan, s) == 0;
		if (all)
			return count;
	}
}

static bool pipe_has(const struct skep_plan *plan, uint32_t pipe, uint32_t worker)
{
	return pipe % size_of(plan, plan->first_stage_of[worker]) == place_of(plan, worker);
}

/* Whose books say what happens to the worker's pipelines. */
static uint32_t pipe_of(const struct skep_plan *plan, uint32_t worker)
{
	return uneven(plan) ? 0 : place_of(plan, worker);
}

static uint32_t books(const struct skep_plan *plan)
{
	return uneven(plan) ? 1 : pipe_count(plan);
}

/* Microbatches of a round for all that one book is about, and for each worker of a stage. */
static uint32_t share(const struct skep_plan *plan)
{
	return plan->microbatches / books(plan);
}

uint32_t pipes_own_share(const struct skep_plan *plan, uint32_t stage)
{
	return plan->microbatches / size_of(plan, stage);
}

static uint32_t flush_share(const struct skep_plan *plan, uint32_t stage)
{
	return pipes_own_share(plan, stage) / (plan->accumulate > 1 ? plan->accumulate : 1);
}

/* All of its places are taken; with `stays`: by workers that have not said that they will leave. */
static bool pipe_whole(const struct ledger *ledger, uint32_t pipe, bool stays)
{
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		const struct membership *membership = &ledger->membership[w];
		bool leaves = membership->leaving_epoch == membership->peer.epoch;
		if (pipe_has(ledger->plan, pipe, w) && (!membership->in || (stays && leaves)))
			return false;
	}
	return true;
}

static uint32_t count_whole(const struct ledger *ledger, bool stays)
{
	uint32_t count = 0;
	for (uint32_t p = 0; p < pipe_count(ledger->plan); p++)
		count += pipe_whole(ledger, p, stays);
	return count;
}

/* Of the pipelines that an owner begins. */
static uint32_t whole_of(const struct ledger *ledger, uint32_t owner)
{
	uint32_t count = 0;
	for (uint32_t p = 0; p < pipe_count(ledger->plan); p++)
		count += pipe_has(ledger->plan, p, owner) && pipe_whole(ledger, p, false);
	return count;
}

bool pipes_all_broken(const struct ledger *ledger)
{
	return pipes_fixed(ledger) && count_whole(ledger, false) == 0;
}

bool pipes_waited(const struct ledger *ledger)
{
	return pipes_all_broken(ledger) && ledger->now - ledger->broken_ns >= ledger->plan->liveness.wait_for_join_ns;
}

bool pipes_other_stays(const struct ledger *ledger)
{
	return count_whole(ledger, true) > 0;
}

/* ---- who is there ------------------------------------------------------------------------------------------------ */

void pipes_round_opens(struct ledger *ledger, uint32_t round)
{
	uint32_t stay = count_whole(ledger, true);
	ledger->round[round].due = stay > 0 ? stay : count_whole(ledger, false);
	if (pipes_stream(ledger)) /* what is known of a pipeline is of all open rounds */
		return;
	ledger->regular = count_whole(ledger, true) == pipe_count(ledger->plan);
	for (uint32_t p = 0; p < CLUSTER_WORKERS; p++)
		ledger->pipe[p] = (struct pipe){0};
}

/* Without a flush: the pipeline has a reason to give up the open rounds before this one. */
static void excuse(struct ledger *ledger, uint32_t pipe, uint32_t end)
{
	uint32_t open = ledger->rounds_closed;
	while (open < end && ledger->round[open].open)
		open++;
	if (open > ledger->pipe[pipe].excused)
		ledger->pipe[pipe].excused = open;
}

/* A worker comes or goes: after that the places of the pipelines tell. */
void pipes_changed(struct ledger *ledger, const struct skep_note *note)
{
	if (!pipes_fixed(ledger))
		return;
	if (note->kind == SKEP_NOTE_JOINED) {
		ledger->pipe[pipe_of(ledger->plan, note->peer.index)].disturbed = true;
		if (note->stage != ledger->plan->first_stage_of[note->peer.index])
			verdict_break(ledger->verdict, "I14", note->round, note->stage, ANY,
				"worker %u joins stage %u, which is not its place", note->peer.index, note->stage);
		return;
	}
	ledger->regular = false;
	excuse(ledger, pipe_of(ledger->plan, note->peer.index), ledger->plan->rounds);
	if (pipes_all_broken(ledger) && !ledger->broken)
		ledger->broken_ns = ledger->now;
	ledger->broken = pipes_all_broken(ledger);
}

void pipes_granted(struct ledger *ledger, const struct skep_note *note)
{
	uint32_t pipe = pipe_of(ledger->plan, note->peer.index);
	if (!pipes_fixed(ledger))
		return;
	if (ledger->pipe[pipe].granted == 0)
		ledger->pipe[pipe].first = note->microbatch;
	ledger->pipe[pipe].granted += note->kind == SKEP_NOTE_ISSUED ? (uint32_t)note->granted : 0;
	uint32_t whole = whole_of(ledger, note->peer.index);
	uint32_t *given = &ledger->round[note->round].given[note->peer.index];
	if (pipes_stream(ledger) && (note->granted != stream_wave(ledger->plan) || ++*given > whole))
		verdict_break(ledger->verdict, "I14", note->round, 0, note->microbatch,
			"worker %u is granted another number than %u microbatches of round %u for each of its %u pipelines",
			note->peer.index, stream_wave(ledger->plan), note->round, whole);
	if (whole == 0)
		verdict_break(ledger->verdict, "I14", note->round, 0, note->microbatch,
			"granted to worker %u, of whose pipelines none is whole", note->peer.index);
}

/* Where no worker went, came or gave anything up, each has got its share, and an eager reduction was held. */
void pipes_round_closes(struct ledger *ledger, uint32_t round)
{
	if (pipes_stream(ledger)) {
		uint32_t due = ledger->round[round].due * stream_wave(ledger->plan);
		if (ledger->round[round].issued_count != due)
			verdict_break(ledger->verdict, "I14", round, 0, ANY,
				"pipelines were granted %u microbatches, not %u", ledger->round[round].issued_count,
				due);
		return;
	}
	if (ledger->plan->eager && ledger->regular && ledger->round[round].reducing)
		verdict_break(ledger->verdict, "I14", round, ANY, ANY,
			"round %u was reduced otherwise than was promised, though nothing has happened", round);
	for (uint32_t p = 0; pipes_fixed(ledger) && p < books(ledger->plan); p++)
		if (ledger->regular && ledger->pipe[p].granted != share(ledger->plan))
			verdict_break(ledger->verdict, "I14", round, 0, ANY,
				"pipeline %u was granted %u, its share is %u", p, ledger->pipe[p].granted,
				share(ledger->plan));
}

/* What workers hold is bounded, so in an undisturbed round each has room for all that comes. */
void pipes_overflowed(struct ledger *ledger, struct skep_peer who, const struct skep_note *note)
{
	if (pipes_fixed(ledger) && !pipes_stream(ledger) && ledger->regular)
		verdict_break(ledger->verdict, "I14", note->round, note->stage, note->microbatch,
			"worker %u has no room for microbatch %u, though nothing has happened", who.index,
			note->microbatch);
}

/* ---- who works with whom, and when ------------------------------------------------------------------------------- */

/* Only where not all of the share will come: another number was granted, something was given up, a worker is new. */
static void turn_sent(struct ledger *ledger, const struct skep_message *m)
{
	struct pipe *pipe = &ledger->pipe[pipe_of(ledger->plan, m->to.index)];
	bool reason =
		pipe->disturbed || pipe->granted != share(ledger->plan) || (uneven(ledger->plan) && !ledger->regular);
	bool last = ledger->plan->first_stage_of[m->to.index] + 1 == ledger->plan->stages;
	bool waits = ledger->plan->pipeline == SKEP_PIPELINE_INTERLEAVED ||
	             ledger->plan->pipeline == SKEP_PIPELINE_1F1B ||
	             (ledger->plan->pipeline == SKEP_PIPELINE_GPIPE && last);
	if (pipes_stream(ledger)) {
		if (m->round >= pipe->excused)
			verdict_break(ledger->verdict, "I14", m->round, ANY, ANY,
				"worker %u is told to give up round %u, without a reason", m->to.index, m->round);
		return;
	}
	if (!waits || !ledger->round[m->round].open || !reason)
		verdict_break(ledger->verdict, "I14", m->round, ANY, ANY,
			"worker %u is told not to wait for its share, without a reason", m->to.index);
	pipe->turned = true;
}

/* A reduction may be promised when each pipeline was granted its share and nothing has happened since. What came back to the
 * directory it may send once more. */
void pipes_eager(struct ledger *ledger, const struct skep_message *reduce)
{
	const struct skep_plan *plan = ledger->plan;
	struct round *round = &ledger->round[reduce->round];
	bool again = round->eager, good = plan->eager && pipes_fixed(ledger) && reduce->attempt == 1;
	good = good && (again || (round->open && !round->reducing));
	round->eager = true;
	for (uint32_t p = 0; good && !again && p < books(plan); p++)
		good = ledger->pipe[p].granted == share(plan) && !ledger->pipe[p].disturbed;
	good = good && (again || count_whole(ledger, false) == pipe_count(plan));
	if (!good || reduce->u.reduce.size != size_of(plan, reduce->stage))
		verdict_break(ledger->verdict, "I14", reduce->round, reduce->stage, ANY,
			"the reduction of round %u is promised, and not all is as planned", reduce->round);
}

/* There is a pipeline through sender and receiver, and for a FORWARD it is the one that is named, and of the owner; unless the
 * microbatch is run again by another one meanwhile, of which a sender that is fenced may not know. */
static bool partners(const struct ledger *ledger, uint32_t from, const struct skep_message *m)
{
	const struct skep_plan *plan = ledger->plan;
	if (m->kind == SKEP_MESSAGE_FORWARD) {
		uint32_t pipe = m->u.forward.pipeline;
		bool known = m->round < plan->rounds && m->microbatch < skep_round_capacity(plan);
		const struct round *round = known ? &ledger->round[m->round] : NULL;
		bool newest = round && round->rerun[m->microbatch] >> 32 == m->attempt;
		uint32_t owner = newest ? round->owner[m->microbatch].index : SKEP_NO_INDEX;
		return pipe < pipe_count(plan) && pipe_has(plan, pipe, from) && pipe_has(plan, pipe, m->to.index) &&
		       (owner >= plan->workers || pipe_has(plan, pipe, owner));
	}
	for (uint32_t pipe = 0; pipe < pipe_count(plan); pipe++)
		if (pipe_has(plan, pipe, from) && pipe_has(plan, pipe, m->to.index))
			return true;
	return false;
}

void pipes_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	const struct skep_plan *plan = ledger->plan;
	bool forward = m->kind == SKEP_MESSAGE_FORWARD, backward = m->kind == SKEP_MESSAGE_BACKWARD;
	if (!pipes_fixed(ledger))
		return;
	if (m->kind == SKEP_MESSAGE_DRAIN && m->to.index < plan->workers)
		turn_sent(ledger, m);
	if (m->kind == SKEP_MESSAGE_FINISHED && !m->u.finished.ok && m->round < plan->rounds &&
		ledger->round[m->round].open) {
		ledger->pipe[pipe_of(plan, who.index)].disturbed = true;
		ledger->regular = false;
		excuse(ledger, pipe_of(plan, who.index), m->round + 1);
	}
	if ((!forward && !backward) || m->to.index >= plan->workers)
		return;
	uint32_t stage = plan->first_stage_of[who.index] + (forward ? 1 : -1u);
	if (plan->pipeline ==
		SKEP_PIPELINE_INTERLEAVED) /* from the last one to the first, for the next model chunk, and back */
		stage = (m->stage + (forward ? 1 : plan->stages - 1)) % plan->stages;
	if (!partners(ledger, who.index, m) || plan->first_stage_of[m->to.index] != stage)
		verdict_break(ledger->verdict, "I14", m->round, m->stage, m->microbatch,
			"worker %u sends microbatch %u to worker %u, which is not its partner", who.index,
			m->microbatch, m->to.index);
}

static uint32_t chunks_of(const struct skep_plan *plan)
{
	return plan->model_chunks > 1 ? plan->model_chunks : 1;
}

/* The nth pass of a worker: which of its pipeline's microbatches, in which virtual stage. Groups of K, each virtual stage in
 * turn. */
static bool in_order(const struct ledger *ledger, uint32_t who, const struct skep_op *op, uint32_t first, uint32_t nth)
{
	const struct skep_plan *plan = ledger->plan;
	uint32_t group = plan->stages * chunks_of(plan), in_group = nth % group, chunk = in_group / plan->stages;
	uint32_t microbatch = first + nth / group * plan->stages + in_group % plan->stages;
	if (op->kind == SKEP_OP_BACKWARD)
		chunk = chunks_of(plan) - chunk - 1;
	if (uneven(plan)) { /* they begin in turn, one of each owner */
		uint32_t number = place_of(plan, who) + nth * size_of(plan, op->stage), owners = size_of(plan, 0);
		microbatch = number % owners * pipes_own_share(plan, 0) + number / owners;
	}
	return op->microbatch == microbatch && op->stage / plan->stages == chunk;
}

/* Workers of the later stages, for each of this one and rounded up: so many keep all of them at work. */
static uint32_t work_behind(const struct skep_plan *plan, uint32_t stage)
{
	uint32_t later = 0, here = size_of(plan, stage);
	for (uint32_t s = stage + 1; s < plan->stages; s++)
		later += size_of(plan, s);
	return (later + here - 1) / here;
}

uint32_t pipes_held(const struct skep_plan *plan, uint32_t stage)
{
	uint32_t oldest = 0, wave = stream_wave(plan);
	if (skep_plan_waves(plan))
		return wave > stage ? wave - stage : 1;
	if (uneven(plan) && plan->pipeline == SKEP_PIPELINE_PIPEDREAM)
		oldest = pipe_count(plan) / size_of(plan, stage);
	return work_behind(plan, stage) + 1 + oldest;
}

/* 1F1B, interleaved or not: the warm-up, then one forwards and one backwards in turn, each kind in its own order. */
static void check_model_chunks(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	const struct skep_plan *plan = ledger->plan;
	struct passer *passer = &ledger->passer[who.index];
	const struct pipe *pipe = &ledger->pipe[pipe_of(plan, who.index)];
	bool own = op->microbatch >= pipe->first && op->microbatch - pipe->first < share(plan);
	if (op->part > 0 || !ledger->round[op->round].open || op->attempt > 0 || pipe->disturbed || pipe->turned ||
		!own || (uneven(plan) && !ledger->regular))
		return;
	uint32_t stage = op->stage % plan->stages, all = flush_share(plan, stage) * chunks_of(plan),
		 flushed = passer->backwards / all * all, behind = work_behind(plan, stage);
	bool plain = plan->pipeline == SKEP_PIPELINE_1F1B;
	uint32_t warm_up = plain ? behind : 2 * behind + (plan->model_chunks - 1) * plan->stages;
	bool forward = op->kind == SKEP_OP_FORWARD;
	uint32_t gone = passer->forwards - flushed; /* of the flush that is under way */
	bool due = forward ? gone < all && passer->forwards - passer->backwards <= warm_up
	                   : gone == all || passer->forwards - passer->backwards == warm_up + 1;
	if (!due || !in_order(ledger, who.index, op, pipe->first, forward ? passer->forwards : passer->backwards))
		verdict_break(ledger->verdict, "I14", op->round, op->stage, op->microbatch,
			"worker %u goes %s with microbatch %u in virtual stage %u, out of order: %u forwards, %u backwards "
			"before it",
			who.index, forward ? "forwards" : "backwards", op->microbatch, op->stage, passer->forwards,
			passer->backwards);
	passer->forwards += forward;
	passer->backwards += !forward;
}

/* In an undisturbed round no worker goes backwards before all have gone forwards with their shares. */
static void check_barrier(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	for (uint32_t w = 0; w < ledger->plan->workers && ledger->regular && ledger->round[op->round].open; w++) {
		const struct passer *other = &ledger->passer[w];
		if (other->round != op->round || other->forwards < pipes_own_share(ledger->plan, 0))
			verdict_break(ledger->verdict, "I14", op->round, op->stage, op->microbatch,
				"worker %u goes backwards and worker %u has not gone forwards with all of its share, "
				"though "
				"there is a barrier",
				who.index, w);
	}
}

/* GPipe: no worker begins a flush before it has gone backwards with all of the last one. */
static void check_flush(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, bool passed)
{
	const struct passer *passer = &ledger->passer[who.index];
	const struct pipe *pipe = &ledger->pipe[pipe_of(ledger->plan, who.index)];
	bool begins =
		op->kind == SKEP_OP_FORWARD && passed && passer->forwards < pipes_own_share(ledger->plan, op->stage);
	if (begins && op->attempt == 0 && ledger->round[op->round].open && !pipe->disturbed && !pipe->turned &&
		passer->backwards < passer->forwards)
		verdict_break(ledger->verdict, "I14", op->round, op->stage, op->microbatch,
			"worker %u begins a flush with microbatch %u after %u forwards and %u backwards", who.index,
			op->microbatch, passer->forwards, passer->backwards);
}

/* GPipe: no worker goes backwards before all of the flush has gone forwards, unless it need not wait. */
void pipes_passed(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	struct passer *passer = &ledger->passer[who.index];
	bool listed =
		ledger->plan->pipeline == SKEP_PIPELINE_INTERLEAVED || ledger->plan->pipeline == SKEP_PIPELINE_1F1B;
	if (ledger->plan->pipeline != SKEP_PIPELINE_GPIPE && !listed)
		return;
	if (passer->epoch != who.epoch || passer->round != op->round)
		*passer = (struct passer){who.epoch, op->round, 0, 0};
	if (listed) {
		check_model_chunks(ledger, who, op);
		return;
	}
	uint32_t forwards = passer->forwards;
	bool passed = forwards >= pipes_own_share(ledger->plan, op->stage) ||
	              (forwards > 0 && forwards % flush_share(ledger->plan, op->stage) == 0);
	check_flush(ledger, who, op, passed);
	passer->forwards += op->kind == SKEP_OP_FORWARD;
	passer->backwards += op->kind == SKEP_OP_BACKWARD && op->part == 0;
	const struct pipe *pipe = &ledger->pipe[pipe_of(ledger->plan, who.index)];
	if (op->kind == SKEP_OP_BACKWARD && op->attempt == 0 && !passed && !pipe->turned &&
		ledger->round[op->round].open)
		verdict_break(ledger->verdict, "I14", op->round, op->stage, op->microbatch,
			"worker %u goes backwards with microbatch %u after %u of %u forwards", who.index,
			op->microbatch, passer->forwards, pipes_own_share(ledger->plan, op->stage));
	if (op->kind == SKEP_OP_BACKWARD && ledger->plan->barrier && op->attempt == 0)
		check_barrier(ledger, who, op);
}
