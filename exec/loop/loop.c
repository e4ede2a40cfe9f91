/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.c - the real-time loop around one machine of the core. It decides nothing about the training.
 *
 * Rank 0 runs the directory (machine `workers`), the others a worker each, or none for a time (incarnations.c).
 * Each turn of the loop takes in whatever has come: frames, ended operations, messages to oneself, a deadline,
 * arrivals of the shaped network, what the trace wants; performs what the machine asks for; and rests when there
 * was nothing. A rest ends early when an operation ends or a frame comes, so an idle process leaves the machine to
 * those that compute and still answers at once.
 *
 * The end, in order: the directory's outcome is final and it has told the workers; rank 0 sends END, after which
 * no rank starts a worker. A rank that has finished sends rank 0 its last rows, and LAST to all other ranks. When
 * rank 0 has every LAST it sends its own. A rank that has the LAST of all live ranks, and no transfer under way,
 * is done: frames keep their order, so nothing can follow. (A transfer to a dead rank may never end; a rank waits
 * a little for it.) When the run has to end early (a signal, a rank that cannot go on) rank 0 sends HALT and the
 * same follows; ranks that do not answer within GRACE_NS are given up.
 *
 * A rank that does not send its LAST is given up as dead, and the run ends as the directory has: soon if it had been silent
 * for so long before the directory's end that it would be fenced, else when there can be no operation that it still waits for.
 */
#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/process/sched.h"
#include "base/sum.h"
#include "base/units.h"
#include "core/names.h"
#include "exec/loop/rank.h"

#define YIELDS 4u                        /* turns with nothing to do before the first rest */
#define REST_NS 10000000u                /* longest rest: what a signal or a batch of rows waits at most */
#define ROWS_AGE_NS 200000000u           /* rows wait no longer than this */
#define UNHEARD_NS UINT64_C(10000000000) /* of a rank that has failed, until rank 0 says that it has heard of it */
#define GRACE_NS 1500000000u             /* from HALT to giving up; mpirun lets rank 0 live for 3 s after SIGTERM */
#define PATIENCE_NS 60000000000u /* from the directory's end to giving a worker up, at least: it has rows to send */
#define SILENT_NS 5000000000u    /* the same for one that was silent before */
#define KEEP_NS 30000000000u /* how long what runs is waited for before the state of an orphaned worker is given up */
#define DEAD_NS 500000000u   /* how long what is under way to the dead is waited for, at the end */
#define SIGNAL_TURNS 64u     /* a busy loop reads signals once in so many turns */

/* ---- ending early ------------------------------------------------------------------------------------------------ */

void skep_rank_send(struct rank *rank, uint32_t to, const struct skep_frame *frame, const void *body)
{
	assert(to < rank->transport->ranks && to != rank->transport->rank);
	assert(body != NULL || frame->body == 0);
	struct skep_frame summed = *frame;
	bool tensor = body != NULL && frame->body > 0;
	if (rank->slots.gone[to]) {
		if (tensor) /* lost, as the core knows that it may be */
			skep_device_buffer_release(rank->setup->device, frame->u.message.payload);
		return;
	}
	if (tensor && !skep_unheard_add(&rank->unheard, to, frame->number, &frame->u.message)) {
		skep_rank_fail(rank, "no memory for a message that may have to be sent again");
		return;
	}
	if (tensor)
		summed.body_sum = skep_sum(0, body, frame->body);
	rank->transport->send(rank->transport->self, to, &summed, body);
}

void skep_rank_send_all(struct rank *rank, const struct skep_frame *frame)
{
	for (uint32_t to = 0; to < rank->transport->ranks; to++) {
		if (to != rank->transport->rank)
			skep_rank_send(rank, to, frame, NULL);
	}
}

static void send_all(struct rank *rank, enum skep_frame_type type)
{
	struct skep_frame frame = {.type = (uint8_t)type};
	skep_rank_send_all(rank, &frame);
}

void skep_rank_halt(struct rank *rank, const char *reason)
{
	if (rank->halted)
		return;
	rank->halted = true;
	skep_lockstep_halt(rank);
	rank->give_up_ns = rank_now(rank) + GRACE_NS;
	if (rank->phase == PHASE_LEAVING)
		return; /* the run is over already; only the waiting has an end now */
	rank->failed = true;
	snprintf(rank->reason, sizeof rank->reason, "%s", reason);
	if (skep_rank_is_root(rank) && !rank->broken)
		send_all(rank, SKEP_FRAME_HALT);
}

void skep_rank_fail(struct rank *rank, const char *reason)
{
	char text[sizeof rank->reason];
	snprintf(text, sizeof text, "worker %" PRIu32 ": %s", rank->self, reason);
	struct skep_frame frame = {.type = SKEP_FRAME_FAULT};
	frame.u.text.bytes = (const uint8_t *)text;
	frame.u.text.count = (uint32_t)strlen(text);
	if (!skep_rank_is_root(rank) && !rank->halted && rank->phase != PHASE_LEAVING) /* nothing follows LAST */
		skep_rank_send(rank, 0, &frame, NULL);
	skep_rank_halt(rank, reason);
	if (!skep_rank_is_root(rank) && !rank->hears_end && rank->setup->absent == NULL)
		rank->give_up_ns = rank_now(rank) + UNHEARD_NS;
}

/* ---- one turn ---------------------------------------------------------------------------------------------------- */

static void fail_op(struct rank *rank, const struct skep_op *op, const char *why)
{
	assert(op->kind > 0 && op->kind < SKEP_OP_KINDS);
	char text[sizeof rank->reason];
	snprintf(text, sizeof text, "the device could not do %s of round %" PRIu32 ", microbatch %" PRIu32 " (%s)",
		skep_op_name(op->kind), op->round, op->number,
		why ? why : "no memory, or an operand that does not fit");
	skep_rank_fail(rank, text);
}

static bool has_tensor(struct skep_buf buf)
{
	return buf.slot != 0 || buf.generation != 0;
}

static bool take_ended(struct rank *rank)
{
	struct skep_lanes_done done;
	bool any = false;
	while (rank->lanes != NULL && skep_lanes_pop(rank->lanes, &done)) {
		any = true;
		if (done.result.failed) {
			fail_op(rank, &done.op, done.result.why);
			continue;
		}
		if (done.result.fault == SKEP_FAULT_CHECKPOINT_FAILED)
			fprintf(stderr, "skep: worker %" PRIu32 ": %s\n", rank->self, done.result.why);
		assert(has_tensor(done.result.out) == skep_op_puts_out(rank->plan, &done.op));
		struct skep_event event = skep_device_event(&done.op, &done.result, done.end_ns - done.begin_ns);
		skep_expert_use_add(&rank->total.experts, &done.result.experts);
		skep_report_op(rank, &done);
		skep_perform_step(rank, &event);
	}
	return any;
}

static bool take_own(struct rank *rank)
{
	assert(rank->inbox.head <= rank->inbox.count);
	bool any = false;
	while (rank->inbox.head < rank->inbox.count) {
		struct skep_message message = rank->inbox.message[rank->inbox.head++];
		skep_perform_delivery(rank, &message);
		any = true;
	}
	return any;
}

static bool take_deadline(struct rank *rank)
{
	if (rank->phase == PHASE_LEAVING || !rank->alive || skep_lockstep_follows(rank) ||
		skep_node_deadline(rank->node) > rank_now(rank))
		return false;
	struct skep_event event = {.kind = SKEP_EVENT_TIMER};
	skep_perform_step(rank, &event);
	return true;
}

static bool take_arrivals(struct rank *rank)
{
	struct skep_shaper_flow flow;
	bool any = false;
	assert(rank->shaper == NULL || skep_rank_is_root(rank));
	while (rank->shaper != NULL && skep_shaper_arrived(rank->shaper, rank_now(rank), &flow)) {
		any = true;
		if (flow.destination == rank->self) {
			skep_receive_release(rank, flow.source, flow.number);
			continue;
		}
		struct skep_frame frame = {.type = SKEP_FRAME_RELEASE, .number = flow.number};
		frame.u.release.source = flow.source;
		skep_rank_send(rank, rank_of_machine(rank, flow.destination), &frame, NULL);
	}
	return any;
}

static void take_signal(struct rank *rank)
{
	struct signalfd_siginfo info;
	char text[128];
	if (rank->setup->signal_fd < 0 || read(rank->setup->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
		return;
	if (!skep_rank_is_root(rank)) {
		skep_incarnations_leave(rank);
		return;
	}
	if (!rank->halted)
		rank->signal = (int)info.ssi_signo; /* mpirun makes SIGTERM of any: launch.c knows which it was */
	snprintf(text, sizeof text, "told to end by SIG%s", sigabbrev_np((int)info.ssi_signo));
	skep_rank_halt(rank, text);
}

static skep_time earliest(skep_time a, skep_time b)
{
	return a < b ? a : b;
}

/* How long nothing will happen here by itself. */
static uint64_t quiet_ns(struct rank *rank)
{
	bool stepped = rank->alive && rank->phase != PHASE_LEAVING && !skep_lockstep_follows(rank);
	skep_time next =
		earliest(stepped ? skep_node_deadline(rank->node) : SKEP_TIME_NEVER, skep_incarnations_next(rank));
	if (rank->shaper != NULL)
		next = earliest(next, skep_shaper_next(rank->shaper));
	skep_time at = rank_now(rank);
	return next <= at ? 0 : earliest(REST_NS, next - at);
}

static void rest(struct rank *rank)
{
	if (rank->idle++ < YIELDS) {
		sched_yield();
		return;
	}
	uint64_t most_ns = quiet_ns(rank);
	if (most_ns > 0)
		rank->transport->wait(rank->transport->self, most_ns);
	take_signal(rank);
}

/* ---- phases ------------------------------------------------------------------------------------------------------ */

/* Says good-bye: nothing is sent after this. */
static void leave(struct rank *rank)
{
	assert(rank->phase != PHASE_LEAVING);
	if (rank->alive)
		skep_incarnation_end(rank);
	skep_report_flush(rank);
	if (skep_rank_is_root(rank))
		skep_report_machines(rank);
	send_all(rank, SKEP_FRAME_LAST);
	rank->phase = PHASE_LEAVING;
	rank->left_ns = rank_now(rank);
}

uint64_t skep_loop_patience_ns(const struct skep_scenario *scenario, bool pace)
{
	const struct skep_plan *plan = &scenario->plan;
	uint64_t longest_ns = 0;
	for (uint32_t worker = 0; pace && worker < plan->workers; worker++) {
		for (uint32_t i = 0; i < skep_plan_vstages(plan) * (SKEP_OP_KINDS - 1); i++) {
			struct skep_op op = {.stage = (uint16_t)(i % skep_plan_vstages(plan)), .size = 1};
			op.kind = (uint8_t)(1 + i / skep_plan_vstages(plan));
			if (op.stage >= plan->stages && !skep_op_sliced(op.kind))
				continue;
			uint64_t ns = skep_scenario_op_ns(scenario, worker, &op);
			longest_ns = ns > longest_ns ? ns : longest_ns;
		}
	}
	return PATIENCE_NS + longest_ns;
}

/* Had this rank, when the directory ended, said nothing for as long as it takes to be fenced? */
static bool was_silent(const struct rank *rank, uint32_t peer)
{
	assert(peer < rank->transport->ranks);
	return rank->heard_ns[peer] + rank->plan->liveness.fence_after_ns < rank->ended_ns;
}

/* Rank 0: ranks that do not end with the run are dead to it from now on, and the others hear of that. */
static void give_up_silent(struct rank *rank)
{
	assert(skep_rank_is_root(rank) && rank->phase == PHASE_COLLECTING);
	uint64_t waited_ns = rank_now(rank) - rank->ended_ns;
	for (uint32_t peer = 1; waited_ns > SILENT_NS && peer < rank->transport->ranks; peer++) {
		bool awaited = !rank->slots.gone[peer] && !rank->slots.last[peer];
		if (!awaited || (waited_ns <= rank->grace_ns && !was_silent(rank, peer)))
			continue;
		fprintf(stderr,
			"skep: rank %" PRIu32
			" does not answer at the end of the run, which is over without it: what it had "
			"not told is not recorded\n",
			peer);
		skep_incarnations_gone(rank, peer);
	}
}

static void advance_phase(struct rank *rank)
{
	bool root = skep_rank_is_root(rank);
	bool ended = root ? skep_node_outcome(rank->node) != SKEP_RUNNING : rank->over && !rank->alive;
	if (rank->phase == PHASE_RUNNING && (rank->halted || ended)) {
		rank->ended_ns = rank_now(rank);
		rank->phase = PHASE_COLLECTING;
		if (!root)
			leave(rank);
		else
			send_all(rank, SKEP_FRAME_END);
	}
	if (rank->phase == PHASE_COLLECTING && root && !rank->halted)
		give_up_silent(rank);
	if (rank->phase == PHASE_COLLECTING && skep_slots_awaited(&rank->slots, rank->transport->rank) == 0)
		leave(rank);
}

/* Rank 0 is dead, and with it the run here. The machine keeps what it holds, as soon as its device is between two operations;
 * nothing more is heard of others, of which each does the same. */
static void keep_what_is_held(struct rank *rank)
{
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {rank->plan->workers, 0}};
	struct signalfd_siginfo info;
	bool told = false;
	skep_time until = rank_now(rank) + KEEP_NS;
	if (rank->setup->orphaned == NULL || !rank->slots.gone[0] || !rank->alive || rank->phase != PHASE_RUNNING)
		return;
	rank->setup->orphaned(rank->setup->orphaned_context);
	while (take_ended(rank))
		;
	skep_perform_step(rank, &event);
	while (!told && skep_node_keeps(rank->node) && !skep_lanes_idle(rank->lanes) && rank_now(rank) < until) {
		if (!take_ended(rank) && !take_own(rank))
			rank->transport->wait(rank->transport->self, REST_NS);
		told = read(rank->setup->signal_fd, &info, sizeof info) == (ssize_t)sizeof info;
	}
	if (skep_node_keeps(rank->node) && rank_now(rank) >= until)
		fprintf(stderr, "skep: worker %" PRIu32 ": what it holds is not all kept: that takes more than %u s\n",
			rank->self, (unsigned)(KEEP_NS / SKEP_SECOND_NS));
}

/* Waited long enough for ranks that do not answer. */
static bool given_up(const struct rank *rank)
{
	return rank->halted && rank_now(rank) > rank->give_up_ns;
}

static bool finished(const struct rank *rank)
{
	if (rank->phase != PHASE_LEAVING || skep_slots_awaited(&rank->slots, rank->transport->rank) > 0)
		return false;
	bool dead = skep_slots_any_gone(&rank->slots) && rank_now(rank) > rank->left_ns + DEAD_NS;
	return dead || rank->transport->pending(rank->transport->self) == 0;
}

/* Does a worker's batch of rows or log entries wait for too long? */
static bool old_rows(const struct rank *rank)
{
	bool rows = rank->rows.count > 0 && rank_now(rank) > rank->rows.oldest + ROWS_AGE_NS;
	bool log = rank->log.count > 0 && rank_now(rank) > rank->log.oldest + ROWS_AGE_NS;
	return !skep_rank_is_root(rank) && (rows || log);
}

static void turn(struct rank *rank)
{
	bool any = skep_receive_frames(rank);
	any = take_ended(rank) || any;
	any = take_own(rank) || any;
	any = skep_lockstep_turn(rank) || any;
	any = take_deadline(rank) || any;
	any = take_arrivals(rank) || any;
	any = skep_incarnations_poll(rank) || any;
	if (rank->slots.gone[0]) /* this was the last turn */
		return;
	if (old_rows(rank))
		skep_report_flush(rank);
	advance_phase(rank);
	if (++rank->turns % SIGNAL_TURNS == 0)
		take_signal(rank);
	if (any)
		rank->idle = 0;
	else
		rest(rank);
}

/* ---- up and down ------------------------------------------------------------------------------------------------- */

static bool root_init(struct rank *rank)
{
	const struct skep_scenario *scenario = rank->setup->scenario;
	uint32_t workers = rank->plan->workers;
	rank->grace_ns = skep_loop_patience_ns(scenario, rank->setup->pace);
	rank->rounds_done = scenario->plan.first_round;
	if (rank->setup->shape)
		rank->shaper = skep_shaper_create(&scenario->topology);
	rank->books = calloc(workers + 1u, sizeof *rank->books);
	rank->batches_had = calloc(rank->transport->ranks, sizeof *rank->batches_had);
	rank->heard_ns = calloc(rank->transport->ranks, sizeof *rank->heard_ns);
	rank->heard = calloc(rank->transport->ranks, sizeof *rank->heard);
	rank->wanted = calloc(workers, sizeof *rank->wanted);
	rank->vacant = calloc(workers, sizeof *rank->vacant);
	rank->began = calloc(workers, sizeof *rank->began);
	rank->left_epoch = calloc(workers, sizeof *rank->left_epoch);
	if ((rank->setup->shape && rank->shaper == NULL) || rank->books == NULL || rank->batches_had == NULL ||
		rank->heard == NULL || rank->heard_ns == NULL || rank->left_epoch == NULL || rank->wanted == NULL ||
		rank->began == NULL || rank->vacant == NULL)
		return false;
	for (uint32_t i = 0; i <= workers; i++)
		rank->books[i].sum = (struct skep_worker_use){.index = i, .stage = SKEP_NO_STAGE};
	for (uint32_t i = 0; i < (scenario->has_trace ? scenario->churn.presents : workers); i++) {
		uint32_t worker = scenario->has_trace ? scenario->churn.present[i] : i;
		rank->began[worker] = true;
		if (!rank->slots.gone[rank->slots.rank_of[worker]])
			skep_report_started(rank, worker);
	}
	return true;
}

static bool rank_init(struct rank *rank, struct skep_loop_setup *setup)
{
	const struct skep_plan *plan = &setup->scenario->plan;
	*rank = (struct rank){.setup = setup, .plan = plan, .transport = setup->transport};
	uint32_t number = setup->transport->rank, capacity = skep_actions_limit(plan);
	if (!skep_slots_init(&rank->slots, setup->transport->ranks, plan->workers))
		return false;
	for (uint32_t i = 0; i < plan->workers; i++)
		rank->slots.epoch[i + 1] = skep_plan_first_epoch(plan, i);
	for (uint32_t i = 0; setup->absent != NULL && i < setup->transport->ranks; i++)
		rank->slots.gone[i] = setup->absent[i];
	rank->self = rank_to_machine(rank, number);
	size_t size = skep_node_size(plan, number == 0 ? plan->workers : 0); /* all workers are alike */
	rank->memory = aligned_alloc(16, (size + 15) / 16 * 16);
	rank->actions.item = calloc(capacity, sizeof *rank->actions.item);
	rank->actions.capacity = capacity;
	size_t links = rank_links(plan);
	rank->use = setup->used != NULL ? setup->used + number * links : calloc(links, sizeof *rank->use);
	rank->told = calloc(links, sizeof *rank->told);
	rank->to_answer = calloc(setup->transport->ranks, sizeof *rank->to_answer);
	rank->log.left = skep_log_share(plan, number == 0 ? plan->workers : 0);
	rank->post_mortem = setup->post_mortem != NULL && number > 0 ? &setup->post_mortem[number] : NULL;
	bool told = skep_churn_notices(
		&setup->scenario->churn, plan->workers, setup->scenario->notice_ns, &rank->notice, &rank->notices);
	return told && rank->memory != NULL && rank->actions.item != NULL && rank->use != NULL && rank->told != NULL &&
	       rank->to_answer != NULL && (number > 0 || root_init(rank));
}

static void rank_finish(struct rank *rank)
{
	skep_lanes_destroy(rank->lanes);
	skep_shaper_destroy(rank->shaper);
	skep_delay_queue_finish(&rank->held);
	skep_slots_finish(&rank->slots);
	free(rank->books);
	free(rank->batches_had);
	for (uint32_t i = 0; rank->heard != NULL && i < rank->transport->ranks; i++)
		free(rank->heard[i]);
	free(rank->heard);
	free(rank->heard_ns);
	free(rank->wanted);
	free(rank->vacant);
	free(rank->began);
	free(rank->left_epoch);
	free(rank->inbox.message);
	skep_unheard_finish(&rank->unheard);
	skep_lockstep_finish(rank);
	free(rank->to_answer);
	if (rank->setup->used == NULL)
		free(rank->use);
	free(rank->told);
	free(rank->notice);
	free(rank->actions.item);
	free(rank->memory);
}

bool skep_loop_run(
	struct skep_loop_setup *setup, struct skep_exec_result *ret, bool *ret_clean, struct skep_diag *reterr)
{
	struct rank rank;
	assert(setup->transport->ranks > setup->scenario->plan.workers);
	*ret = (struct skep_exec_result){.outcome = SKEP_FAILED, .alone = true};
	*ret_clean = false;
	skep_sched_wake_soon();
	if (!rank_init(&rank, setup) || (skep_incarnations_at_start(&rank) && !skep_incarnation_begin(&rank))) {
		skep_fail(reterr, "no memory or no thread for rank %" PRIu32, setup->transport->rank);
		rank_finish(&rank);
		return false;
	}
	skep_incarnations_missing(&rank);
	while (!finished(&rank) && !rank.broken && !given_up(&rank) && !skep_incarnations_left(&rank))
		turn(&rank);
	keep_what_is_held(&rank);
	if (skep_rank_is_root(&rank) && rank.phase != PHASE_LEAVING) {
		rank.ended_ns = rank.ended_ns > 0 ? rank.ended_ns : rank_now(&rank);
		skep_incarnation_end(&rank);
		skep_report_flush(&rank);
		skep_report_machines(&rank); /* what is known, without those who did not answer */
	}
	*ret_clean = finished(&rank) && (setup->absent != NULL || !skep_slots_any_gone(&rank.slots));
	ret->outcome = rank.node != NULL ? skep_node_outcome(rank.node) : SKEP_DONE;
	ret->alone = rank.failed && !skep_rank_is_root(&rank) && !rank.hears_end && !rank.over && !rank.slots.last[0] &&
	             !rank.slots.gone[0];
	ret->end_ns = rank.ended_ns;
	ret->signal = rank.signal;
	ret->orphaned = rank.slots.gone[0];
	ret->bereaved = skep_slots_any_gone(&rank.slots);
	ret->events = skep_rank_is_root(&rank) ? rank.events : rank.total.events;
	if (rank.reason[0] != '\0')
		skep_fail(reterr, "%s", rank.reason);
	bool fine = !rank.failed;
	skep_receive_forget(&rank, SKEP_NO_INDEX);
	rank_finish(&rank);
	return fine;
}
