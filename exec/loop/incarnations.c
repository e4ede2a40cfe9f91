/* SPDX-License-Identifier: Apache-2.0
 *
 * incarnations.c - starts and ends the incarnations of workers. An incarnation is what one START begins: a state
 * machine, its device and its lanes. A process may have several, one after the other, and those of one worker may be
 * in several processes.
 *
 * Who comes and goes is not decided here: the scenario's trace says it (topologies/churn/churn.h, the list that the
 * simulator plays too), or a process dies. What is kept true:
 *   - A worker's process follows the trace by its own clock. At a leave it dies: where the transport survives that, by a
 *     SIGKILL that a timer of the kernel delivers, in the middle of anything; else it drops all it holds, falls silent and
 *     lives on as a mere rank until the trace lets the worker come back (a soft kill). What it had under way still arrives.
 *   - The directory hears of such a death when the scenario says so (cluster.trace.detection_delay), and else finds out, as
 *     in the simulator, however hard the kill was. Of any other death all hear as soon as it is known.
 *   - Notice of a leave comes as long before as the scenario says, or at the start of a life that is shorter than that.
 *   - Rank 0 gives the slot of a dead process to a spare: when the trace lets the worker come back, or at once
 *     without a trace.
 *   - A life after the first holds nothing and starts as a newcomer, epoch 0.
 */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/loop/rank.h"

#define RETURN_NS 500000000u /* from the end of a machine that is given back to that of its process */

static const struct skep_churn *churn_of(const struct rank *rank)
{
	return &rank->setup->scenario->churn;
}

/* ---- one life ---------------------------------------------------------------------------------------------------- */

/* The kernel kills this process when the trace says so. */
static void arm(struct rank *rank)
{
	assert(rank->self < rank->plan->workers);
	assert(!rank->armed);
	const struct skep_churn *churn = churn_of(rank);
	size_t at = rank->trace_at;
	while (at < churn->events && (churn->event[at].worker != rank->self || churn->event[at].join))
		at++;
	if (!rank->transport->survives || at >= churn->events)
		return;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {.it_value = skep_clock_timespec(rank->setup->clock, churn->event[at].at_ns)};
	rank->armed = timer_create(CLOCK_MONOTONIC, &event, &rank->timer) == 0;
	if (rank->armed)
		timer_settime(rank->timer, TIMER_ABSTIME, &when, NULL);
}

static void disarm(struct rank *rank)
{
	if (rank->armed)
		timer_delete(rank->timer);
	rank->armed = false;
}

static bool lanes_begin(struct rank *rank)
{
	struct skep_diag error = {0};
	struct skep_loop_setup *setup = rank->setup;
	if (setup->device == NULL)
		setup->device = skep_device_create_on(
			setup->device_kind, &setup->device_place, &setup->scenario->training, SKEP_NO_STAGE, &error);
	struct skep_lanes_setup lanes = {.device = setup->device,
		.clock = setup->clock,
		.wake = setup->transport->wake,
		.wake_context = setup->transport->self,
		.pace_from = setup->pace ? setup->scenario : NULL,
		.worker = rank->self};
	if (setup->device != NULL) {
		struct skep_byzantine byzantine = skep_scenario_byzantine(setup->scenario, rank->self);
		skep_device_set_keeper(setup->device, &setup->keeper);
		skep_device_set_byzantine(setup->device, &byzantine);
		rank->lanes = skep_lanes_create(&lanes);
	}
	return rank->lanes != NULL;
}

bool skep_incarnation_begin(struct rank *rank)
{
	const struct skep_plan *plan = rank->plan;
	bool directory = skep_rank_is_root(rank);
	bool first = directory || (!rank->lived && rank->slots.life[rank->self] == 0);
	if (!directory && !lanes_begin(rank))
		return false;
	uint32_t epoch = first ? skep_plan_first_epoch(plan, rank->self) : 0;
	rank->node = skep_node_init(rank->memory, plan, rank->self, epoch);
	rank->started_ns = rank_now(rank);
	rank->total = (struct skep_worker_use){.index = rank->self, .started_ns = rank->started_ns};
	rank->alive = rank->lived = true;
	rank->noticed = false;
	if (!directory)
		arm(rank);
	struct skep_event start = {.kind = SKEP_EVENT_START};
	skep_perform_step(rank, &start);
	return true;
}

void skep_incarnation_end(struct rank *rank)
{
	assert(rank->alive);
	disarm(rank);
	skep_lanes_destroy(rank->lanes);
	rank->lanes = NULL;
	rank->total.epoch = skep_node_epoch(rank->node);
	rank->total.stage = skep_node_stage(rank->node);
	rank->total.digest = skep_node_digest(rank->node);
	rank->total.alive_ns = (rank->ended_ns > 0 ? rank->ended_ns : rank_now(rank)) - rank->started_ns;
	rank->alive = false;
	skep_report_incarnation(rank);
	skep_report_flush(rank);
}

/* All that the process held is gone; its device as soon as nothing moves to or from it. */
static void kill_softly(struct rank *rank)
{
	assert(rank->alive);
	skep_incarnation_end(rank);
	rank->inbox.head = rank->inbox.count = 0;
	skep_delay_queue_finish(&rank->held);
	rank->stale = true;
}

/* True: there is nothing left of the life before. */
static bool bare(struct rank *rank)
{
	assert(!rank->alive);
	if (rank->stale && rank->transport->pending(rank->transport->self) > 0)
		return false;
	if (rank->stale) {
		skep_receive_forget(rank, SKEP_NO_INDEX);
		skep_device_destroy(rank->setup->device);
		rank->setup->device = NULL;
	}
	rank->stale = false;
	return true;
}

/* ---- the trace, by a worker's process ---------------------------------------------------------------------------- */

/* The next event of this worker, or NULL. */
static const struct skep_churn_event *next_own(struct rank *rank)
{
	const struct skep_churn *churn = churn_of(rank);
	if (rank->self == SKEP_NO_INDEX)
		return NULL;
	while (rank->trace_at < churn->events && churn->event[rank->trace_at].worker != rank->self)
		rank->trace_at++;
	return rank->trace_at < churn->events ? &churn->event[rank->trace_at] : NULL;
}

/* Of this event of this worker, which comes next; NULL: there is none. */
static const struct skep_notice *notice_of(struct rank *rank, const struct skep_churn_event *event)
{
	const struct skep_notice *notice = rank->notice;
	uint32_t *at = &rank->notice_at;
	while (*at < rank->notices && (notice[*at].worker != rank->self || notice[*at].leave_at_ns < event->at_ns))
		(*at)++;
	bool its = *at < rank->notices && !event->join && notice[*at].leave_at_ns == event->at_ns;
	return its ? &notice[*at] : NULL;
}

static bool come_back(struct rank *rank)
{
	bool here = !rank->alive && (!rank->transport->survives || !rank->lived);
	assert(rank->trace_at < churn_of(rank)->events);
	rank->stale = rank->stale || (here && rank->lived); /* a life may also have ended by itself */
	if (here && !bare(rank))
		return false;
	rank->trace_at++;
	if (here && !skep_incarnation_begin(rank))
		skep_rank_fail(rank, "no memory or no thread for another life");
	return true;
}

static bool go(struct rank *rank)
{
	assert(rank->trace_at < churn_of(rank)->events);
	if (rank->transport->survives)
		raise(SIGKILL); /* the timer was late */
	rank->trace_at++;
	if (rank->alive)
		kill_softly(rank);
	return true;
}

static bool follow_trace(struct rank *rank)
{
	const struct skep_churn_event *event = next_own(rank);
	if (event == NULL || rank->over)
		return false;
	if (event->at_ns <= rank_now(rank))
		return event->join ? come_back(rank) : go(rank);
	const struct skep_notice *due = notice_of(rank, event);
	if (!rank->alive || rank->noticed || due == NULL || rank_now(rank) < due->at_ns)
		return false;
	rank->noticed = true;
	struct skep_event notice = {.kind = SKEP_EVENT_PREEMPT_NOTICE, .u.leave_at = event->at_ns};
	skep_perform_step(rank, &notice);
	return true;
}

/* ---- seats, by rank 0 -------------------------------------------------------------------------------------------- */

static struct skep_frame slot_frame(const struct rank *rank, uint32_t machine)
{
	struct skep_frame frame = {.type = SKEP_FRAME_SLOT};
	assert(machine < rank->plan->workers);
	frame.u.slot.machine = machine;
	frame.u.slot.rank = rank->slots.rank_of[machine];
	frame.u.slot.life = rank->slots.life[machine];
	return frame;
}

static void send_slot(struct rank *rank, uint32_t machine)
{
	struct skep_frame frame = slot_frame(rank, machine);
	skep_rank_send_all(rank, &frame);
}

/* The spare process that fits the place best, of equals the one with the lowest rank; SKEP_NO_INDEX: none does. */
static uint32_t best_spare(const struct rank *rank, uint32_t machine)
{
	const struct skep_newcomers *newcomers = &rank->setup->newcomers;
	uint32_t best = SKEP_NO_INDEX, most = 0, spare = 0;
	assert(machine < rank->plan->workers);
	while ((spare = skep_slots_spare(&rank->slots, spare)) != SKEP_NO_INDEX) {
		uint32_t fit = newcomers->fit != NULL ? newcomers->fit(newcomers->context, machine, spare) : 1;
		if (fit > most) {
			most = fit;
			best = spare;
		}
	}
	return best;
}

static void say_no_spare(struct rank *rank, uint32_t machine)
{
	if (rank->plan->scale != NULL)
		return; /* it is asked for when it is wanted */
	if (rank->setup->newcomers.fit != NULL)
		fprintf(stderr, "skep: worker %" PRIu32 " has no machine; its place waits for one that joins\n",
			machine);
	else if (!rank->short_of_spares)
		fprintf(stderr, "skep: no spare process is left for worker %" PRIu32 "; start more (--spares)\n",
			machine);
	rank->short_of_spares = true;
}

/* True: the place of a machine that is wanted was given away, or will not be. */
static bool slot(struct rank *rank, uint32_t machine)
{
	struct skep_slots *slots = &rank->slots;
	const struct skep_newcomers *newcomers = &rank->setup->newcomers;
	uint32_t spare = best_spare(rank, machine);
	if (spare == SKEP_NO_INDEX && rank->vacant[machine])
		return false;
	if (spare == SKEP_NO_INDEX) {
		say_no_spare(rank, machine);
		rank->wanted[machine] = rank->vacant[machine] = newcomers->fit != NULL;
		return true;
	}
	rank->wanted[machine] = rank->vacant[machine] = false;
	bool taken = skep_slots_assign(slots, machine, spare, slots->life[machine] + 1);
	assert(taken);
	skep_report_started(rank, machine);
	send_slot(rank, machine);
	if (newcomers->placed != NULL)
		newcomers->placed(newcomers->context, machine, spare);
	return true;
}

static bool watch_trace(struct rank *rank)
{
	assert(skep_rank_is_root(rank));
	const struct skep_churn *churn = churn_of(rank);
	if (rank->trace_at >= churn->events)
		return false;
	const struct skep_churn_event *event = &churn->event[rank->trace_at];
	if (event->at_ns > rank_now(rank))
		return false;
	uint32_t worker = event->worker;
	bool dead = rank->slots.gone[rank->slots.rank_of[worker]];
	rank->trace_at++;
	rank->wanted[worker] = event->join && rank->transport->survives && (dead || rank->began[worker]);
	rank->began[worker] = rank->began[worker] || event->join;
	if (!event->join)
		rank->left_epoch[worker] = rank->slots.epoch[rank->slots.rank_of[worker]];
	if (event->join && !rank->wanted[worker])
		skep_report_started(rank, worker);
	return true;
}

/* When the directory is to hear of the next loss that the trace has brought. */
static skep_time loss_heard_at(struct rank *rank)
{
	const struct skep_churn_event *event = churn_of(rank)->event;
	assert(rank->heard_at <= rank->trace_at);
	while (rank->heard_at < rank->trace_at && event[rank->heard_at].join)
		rank->heard_at++;
	if (rank->heard_at == rank->trace_at)
		return SKEP_TIME_NEVER;
	return skep_churn_heard_at(&event[rank->heard_at], rank->setup->scenario->detection_delay_ns);
}

static void suspect(struct rank *rank, uint32_t machine, uint32_t epoch)
{
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {machine, epoch}};
	assert(machine < rank->plan->workers);
	skep_perform_step(rank, &event);
}

static bool hear_loss(struct rank *rank)
{
	skep_time heard_at_ns = loss_heard_at(rank);
	if (heard_at_ns > rank_now(rank))
		return false;
	const struct skep_churn_event *event = &churn_of(rank)->event[rank->heard_at++];
	suspect(rank, event->worker, rank->left_epoch[event->worker]);
	return true;
}

static bool fill_slots(struct rank *rank)
{
	bool any = false;
	while (watch_trace(rank) || hear_loss(rank))
		any = true;
	for (uint32_t worker = 0; rank->transport->survives && worker < rank->plan->workers; worker++) {
		if (!rank->wanted[worker] || !rank->slots.gone[rank->slots.rank_of[worker]])
			continue;
		any = slot(rank, worker) || any;
	}
	return any;
}

void skep_incarnations_on_slot(struct rank *rank, const struct skep_frame *frame)
{
	uint32_t machine = frame->u.slot.machine;
	bool mine = frame->u.slot.rank == rank->transport->rank;
	assert(frame->type == SKEP_FRAME_SLOT && frame->u.slot.machine < rank->plan->workers);
	if (!mine || rank->lived || rank->over || rank->phase != PHASE_RUNNING)
		return;
	rank->self = machine;
	rank->sent = (uint64_t)rank->slots.life[machine] << 40; /* numbers that no process had before it in this slot */
	while (rank->trace_at < churn_of(rank)->events && churn_of(rank)->event[rank->trace_at].at_ns <= rank_now(rank))
		rank->trace_at++;
	send_slot(rank, machine); /* first, so that receivers know which worker the later frames come from */
	if (!skep_incarnation_begin(rank))
		skep_rank_fail(rank, "no memory or no thread for this worker");
}

/* ---- the dead and the new ---------------------------------------------------------------------------------------- */

/* Has the trace taken this worker away, and not brought it back since? */
static bool taken_by_trace(const struct rank *rank, uint32_t machine)
{
	assert(machine < rank->plan->workers);
	const struct skep_churn *churn = churn_of(rank);
	bool taken = false;
	for (size_t i = 0; i < churn->events && churn->event[i].at_ns <= rank_now(rank); i++)
		taken = churn->event[i].worker == machine ? !churn->event[i].join : taken;
	return taken;
}

void skep_incarnations_gone(struct rank *rank, uint32_t peer)
{
	struct skep_slots *slots = &rank->slots;
	uint32_t machine = slots->machine_of[peer];
	if (slots->gone[peer])
		return;
	slots->gone[peer] = true;
	skep_receive_forget(rank, peer);
	if (peer == 0) {
		skep_rank_halt(rank, "rank 0, the directory, is dead");
		rank->broken = true;
		return;
	}
	if (skep_rank_is_root(rank)) {
		struct skep_frame frame = {.type = SKEP_FRAME_GONE};
		frame.u.slot.rank = peer;
		skep_rank_send_all(rank, &frame);
	}
	if (machine == SKEP_NO_INDEX || slots->rank_of[machine] != peer)
		return;
	if (skep_rank_is_root(rank)) {
		skep_report_ended(rank, peer, machine);
		rank->wanted[machine] = rank->wanted[machine] || !rank->setup->scenario->has_trace;
	}
	if (taken_by_trace(rank, machine))
		return;
	suspect(rank, machine, slots->epoch[peer]);
}

void skep_incarnations_missing(struct rank *rank)
{
	const struct skep_slots *slots = &rank->slots;
	for (uint32_t machine = 0; rank->alive && machine < rank->plan->workers; machine++) {
		uint32_t peer = slots->rank_of[machine];
		if (!slots->gone[peer])
			continue;
		if (skep_rank_is_root(rank)) {
			skep_report_missing(rank, machine);
			rank->wanted[machine] = rank->vacant[machine] = true;
		}
		suspect(rank, machine, slots->epoch[peer]);
	}
}

void skep_incarnations_new(struct rank *rank, uint32_t peer)
{
	struct skep_slots *slots = &rank->slots;
	if (slots->machine_of[peer] != SKEP_NO_INDEX)
		return;
	slots->gone[peer] = false;
	for (uint32_t machine = 0; skep_rank_is_root(rank) && machine < rank->plan->workers; machine++) {
		struct skep_frame frame = slot_frame(rank, machine);
		if (slots->life[machine] > 0)
			skep_rank_send(rank, peer, &frame, NULL);
	}
}

/* ---- leaving ------------------------------------------------------------------------------------------------------- */

void skep_incarnations_leave(struct rank *rank)
{
	skep_time now = rank_now(rank);
	bool waits = rank->leaves_ns == 0 && rank->alive && rank->phase == PHASE_RUNNING;
	rank->leaves_ns = waits ? now + rank->setup->farewell_ns : now;
	if (!waits || rank->noticed)
		return;
	rank->noticed = true;
	struct skep_event notice = {.kind = SKEP_EVENT_PREEMPT_NOTICE, .u.leave_at = rank->leaves_ns};
	skep_perform_step(rank, &notice);
}

bool skep_incarnations_left(const struct rank *rank)
{
	return rank->leaves_ns > 0 && rank->phase != PHASE_LEAVING && rank_now(rank) >= rank->leaves_ns;
}

/* Its machine is given back: this process ends when what it has reported is on its way. */
static void leave_for_good(struct rank *rank)
{
	fprintf(stderr, "skep: this machine is given back: the run needs fewer of them\n");
	if (rank->leaves_ns == 0)
		rank->leaves_ns = rank_now(rank) + RETURN_NS;
}

/* ---- each turn --------------------------------------------------------------------------------------------------- */

bool skep_incarnations_poll(struct rank *rank)
{
	if (rank->phase != PHASE_RUNNING || rank->halted)
		return false;
	if (skep_rank_is_root(rank))
		return fill_slots(rank);
	if (rank->alive && skep_node_outcome(rank->node) != SKEP_RUNNING) {
		bool returned = skep_node_returned(rank->node);
		skep_incarnation_end(rank);
		if (returned)
			leave_for_good(rank);
		return true;
	}
	if (rank->stale)
		bare(rank);
	return follow_trace(rank);
}

skep_time skep_incarnations_next(struct rank *rank)
{
	const struct skep_churn *churn = churn_of(rank);
	if (rank->phase != PHASE_RUNNING)
		return SKEP_TIME_NEVER;
	if (skep_rank_is_root(rank)) {
		skep_time next = rank->trace_at < churn->events ? churn->event[rank->trace_at].at_ns : SKEP_TIME_NEVER;
		return loss_heard_at(rank) < next ? loss_heard_at(rank) : next;
	}
	const struct skep_churn_event *event = next_own(rank);
	if (event == NULL)
		return SKEP_TIME_NEVER;
	const struct skep_notice *due = notice_of(rank, event);
	return rank->alive && !rank->noticed && due != NULL ? due->at_ns : event->at_ns;
}

bool skep_incarnations_at_start(const struct rank *rank)
{
	const struct skep_scenario *scenario = rank->setup->scenario;
	if (rank->self == SKEP_NO_INDEX || skep_rank_is_root(rank) || !scenario->has_trace)
		return rank->self != SKEP_NO_INDEX;
	for (uint32_t i = 0; i < scenario->churn.presents; i++) {
		if (scenario->churn.present[i] == rank->self)
			return true;
	}
	return false;
}
