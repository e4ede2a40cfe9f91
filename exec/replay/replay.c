/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c - see replay.h. Each state machine is played until it waits for a message that its sender, which is
 * played too, has not sent yet; then the next one has its turn, until all of them have ended or wait.
 *
 * A machine that waits at the end waits for a message that lies beyond a log's end (it was cut off, or a fault was
 * found there), or for a message that no machine sends: that is a difference.
 */
#include "exec/replay/replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/names.h"
#include "core/random.h"
#include "exec/loop/log.h"
#include "exec/replay/sent.h"

#define TIME_MAX (UINT64_C(1) << 62) /* 146 years */

enum state {
	STATE_READY,
	STATE_WAITING, /* `event` is a message that has not been sent */
	STATE_ENDED,   /* as the run did */
	STATE_CUT      /* the log goes on no further, or it is of no use from here on */
};

struct asked {
	struct skep_op op;
	skep_time at;
};

struct lane { /* operations asked for, the oldest first */
	struct asked *asked;
	size_t count;
	skep_time free; /* when the machine heard of the end of the one before */
};

struct machine {
	uint32_t index;
	const struct skep_machine_log *log;
	void *memory;
	struct skep_node *node;
	struct skep_wire wire;
	struct lane lane[SKEP_LANES];
	enum state state;
	uint64_t played;
	bool open;       /* a life goes on ... */
	uint64_t before; /* ... and so many events were played before it */
	uint32_t lives, ended;
	uint64_t digest, chain; /* of the lives that have ended */
	bool torn;              /* one had no end */
	skep_time now;
	struct skep_event event; /* the next one */
	uint16_t mark;
};

struct replay {
	const struct skep_plan *plan;
	struct machine *machine; /* [workers + 1] */
	struct skep_actions actions;
	struct skep_replay_sent sent;
	struct skep_replay_result *result;
	const struct skep_replay_witness *witness;
	bool no_memory;
};

/* ---- messages on their way --------------------------------------------------------------------------------------- */

static void send(struct replay *r, const struct skep_message *message, skep_time now)
{
	if (!skep_replay_send(&r->sent, message, now))
		r->no_memory = true;
}

static void witness_message(const struct replay *r, const struct skep_event *event)
{
	const struct skep_message *message = &event->u.message;
	if (r->witness == NULL || event->kind != SKEP_EVENT_MESSAGE || message->from.index == message->to.index)
		return;
	skep_time sent = skep_replay_sent_at(&r->sent, message);
	if (sent != SKEP_TIME_NEVER)
		r->witness->message(r->witness->context, message, sent, event->now);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void ask(struct replay *r, struct machine *m, const struct skep_op *op)
{
	struct lane *lane = &m->lane[op->lane];
	assert(op->lane < SKEP_LANES);
	if (!skep_grow(&lane->asked, lane->count, sizeof *lane->asked)) {
		r->no_memory = true;
		return;
	}
	lane->asked[lane->count++] = (struct asked){*op, m->event.now};
}

/* The lane whose next operation to end is this one, or NULL. */
static struct lane *lane_of(struct machine *m, uint64_t id)
{
	for (int i = 0; i < SKEP_LANES; i++) {
		if (m->lane[i].count > 0 && m->lane[i].asked[0].op.id == id)
			return &m->lane[i];
	}
	return NULL;
}

static void take_op(struct lane *lane)
{
	assert(lane->count > 0);
	lane->count--;
	memmove(lane->asked, lane->asked + 1, lane->count * sizeof *lane->asked);
}

/* An operation begins when it is asked for, or when its machine has heard of the end of the one before it. */
static void witness_op(const struct replay *r, const struct machine *m, struct lane *lane, skep_time end)
{
	const struct asked *asked = &lane->asked[0];
	assert(lane->count > 0);
	skep_time begin = asked->at > lane->free ? asked->at : lane->free;
	lane->free = end;
	if (r->witness != NULL)
		r->witness->op(r->witness->context, m->index, &asked->op, begin, end);
}

/* ---- what is found ----------------------------------------------------------------------------------------------- */

static void describe(const struct skep_event *event, char *ret, size_t size)
{
	const struct skep_message *message = &event->u.message;
	const struct skep_op *op = &event->u.done.op;
	switch (event->kind) {
	case SKEP_EVENT_START:
		snprintf(ret, size, "start");
		break;
	case SKEP_EVENT_TIMER:
		snprintf(ret, size, "timer");
		break;
	case SKEP_EVENT_MESSAGE:
	case SKEP_EVENT_SEND_FAILED:
		snprintf(ret, size,
			"%s%s from machine %" PRIu32 " to %" PRIu32 ", round %" PRIu32 ", microbatch %" PRIu32,
			event->kind == SKEP_EVENT_MESSAGE ? "" : "failed ", skep_message_name(message->kind),
			message->from.index, message->to.index, message->round, message->number);
		break;
	case SKEP_EVENT_OP_DONE: /* kind 0: only its id is known */
		snprintf(ret, size, "end of operation %" PRIu64 "%s%s, round %" PRIu32 ", microbatch %" PRIu32, op->id,
			op->kind ? ", " : "", op->kind ? skep_op_name(op->kind) : "", op->round, op->number);
		break;
	case SKEP_EVENT_SUSPECT:
		snprintf(ret, size, "suspicion of machine %" PRIu32, event->u.peer.index);
		break;
	default:
		snprintf(ret, size, "notice of preemption");
	}
}

/* Machine m goes no further. Damage outweighs a difference; of two alike the earlier counts. */
static struct skep_replay_result *stop(
	struct replay *r, struct machine *m, enum skep_replay_verdict verdict, const char *why)
{
	static const char nothing[17] = "";
	struct skep_replay_result *result = r->result;
	m->state = STATE_CUT;
	if (verdict < result->verdict || (verdict == result->verdict && m->now >= result->now))
		return NULL;
	result->verdict = verdict;
	result->machine = m->index;
	result->event = m->played + 1;
	result->now = m->now;
	result->why = why;
	result->what[0] = '\0';
	memcpy(result->recorded, nothing, sizeof nothing);
	memcpy(result->replayed, nothing, sizeof nothing);
	return result;
}

static void stop_at_event(struct replay *r, struct machine *m, enum skep_replay_verdict verdict, const char *why)
{
	m->now = m->event.now;
	struct skep_replay_result *result = stop(r, m, verdict, why);
	if (result != NULL)
		describe(&m->event, result->what, sizeof result->what);
}

static void print_digests(struct skep_replay_result *result, int digits, uint64_t recorded, uint64_t replayed)
{
	snprintf(result->recorded, sizeof result->recorded, "%0*" PRIx64, digits, recorded);
	snprintf(result->replayed, sizeof result->replayed, "%0*" PRIx64, digits, replayed);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* A life goes no further, and not because it has ended. */
static void name_unfinished(struct replay *r, const struct machine *m, bool waits)
{
	assert(m->played >= m->before);
	struct skep_replay_result *result = r->result;
	if (result->unfinished < SKEP_REPLAY_INCARNATIONS_MAX)
		result->life[result->unfinished] = (struct skep_replay_incarnation){
			.machine = m->index, .life = m->lives, .events = m->played - m->before, .waits = waits};
	result->unfinished++;
}

static void close_life(struct machine *m)
{
	assert(m->open);
	uint64_t digest = skep_node_digest(m->node);
	m->chain = skep_mix(m->chain ^ digest);
	m->digest = m->ended++ == 0 ? digest : m->chain;
	m->open = false;
}

/* The log says that a life has ended; false: it cannot be so, and the machine stops. */
static bool end_life(struct replay *r, struct machine *m, uint64_t events, uint64_t digest)
{
	assert(m->wire.ok);
	uint64_t replayed = skep_node_digest(m->node);
	if (!m->open || events != m->played - m->before) {
		stop(r, m, SKEP_REPLAY_DAMAGED, "the log does not hold what its life was told");
		return false;
	}
	if (digest != replayed) {
		struct skep_replay_result *result =
			stop(r, m, SKEP_REPLAY_DIFFERS, "the machine ends with another digest");
		if (result != NULL) {
			result->event = m->played;
			print_digests(result, 16, digest, replayed);
		}
		return false;
	}
	close_life(m);
	return true;
}

static void end(struct replay *r, struct machine *m)
{
	const struct skep_machine_log *log = m->log;
	m->state = STATE_CUT;
	if (!log->ended) {
		if (m->open || !m->torn)
			name_unfinished(r, m, false);
		return;
	}
	if (m->played > log->events) {
		stop(r, m, SKEP_REPLAY_DAMAGED, "the log holds more than the machine was told");
		return;
	}
	if (m->played < log->events) {
		if (log->count + SKEP_LOG_ENTRY_MAX <= skep_log_share(r->plan, m->index))
			stop(r, m, SKEP_REPLAY_DAMAGED, "the log ends before the machine did");
		else
			name_unfinished(r, m, false);
		return;
	}
	if (m->open)
		close_life(m);
	m->state = STATE_ENDED;
	uint64_t digest = m->digest;
	if (digest == log->digest)
		return;
	struct skep_replay_result *result = stop(r, m, SKEP_REPLAY_DIFFERS, "the machine ends with another digest");
	if (result != NULL) {
		result->event = m->played;
		print_digests(result, 16, log->digest, digest);
	}
}

/* What no process could have logged. */
static const char *damage(const struct replay *r, const struct machine *m)
{
	const struct skep_event *event = &m->event;
	const struct skep_message *message = &event->u.message;
	bool start = event->kind == SKEP_EVENT_START;
	if (start == m->open && (!start || m->log->ended)) /* a life that was cut off has no known end */
		return "a machine starts once, before all else";
	if ((event->now < m->now && !start) || event->now > TIME_MAX)
		return "time does not go that way";
	if (event->kind == SKEP_EVENT_SUSPECT && event->u.peer.index >= r->plan->workers)
		return "no worker has this number";
	if (event->kind == SKEP_EVENT_EGRESS && (r->plan->until.budget_microusd == 0 || m->index != r->plan->workers))
		return "only the directory of a run with a budget is told what traffic costs";
	if (event->kind != SKEP_EVENT_MESSAGE && event->kind != SKEP_EVENT_SEND_FAILED)
		return NULL;
	bool mine = (event->kind == SKEP_EVENT_MESSAGE ? message->to : message->from).index == m->index;
	if (!mine || message->from.index > r->plan->workers || message->to.index > r->plan->workers)
		return "the message is not this machine's";
	if (!skep_message_legal(r->plan, message))
		return "the message has fields that its kind cannot have";
	return NULL;
}

static void next(struct replay *r, struct machine *m)
{
	assert(m->state != STATE_CUT && m->state != STATE_ENDED);
	if (m->wire.at == m->wire.end) {
		end(r, m);
		return;
	}
	uint64_t events, digest;
	if (skep_log_read_end(&m->wire, &events, &digest)) {
		bool unborn = m->wire.ok && !m->open && events == 0;
		m->lives += unborn;
		if (unborn || (m->wire.ok && end_life(r, m, events, digest)))
			next(r, m);
		else if (!m->wire.ok)
			stop(r, m, SKEP_REPLAY_DAMAGED, "the bytes are no event");
		return;
	}
	skep_log_read(&m->wire, &m->event, &m->mark);
	if (!m->wire.ok) {
		stop(r, m, SKEP_REPLAY_DAMAGED, "the bytes are no event");
		return;
	}
	const char *why = damage(r, m);
	if (why != NULL)
		stop_at_event(r, m, SKEP_REPLAY_DAMAGED, why);
}

/* ---- playing ----------------------------------------------------------------------------------------------------- */

/* The result of an operation that the machine has asked for; false: it is none, and the machine stops. */
static bool complete_op(struct replay *r, struct machine *m)
{
	struct skep_event *event = &m->event;
	struct lane *lane = lane_of(m, event->u.done.op.id);
	if (lane == NULL) {
		stop_at_event(r, m, SKEP_REPLAY_DIFFERS, "the machine has not asked for this operation");
		return false;
	}
	event->u.done.op = lane->asked[0].op;
	bool last = event->u.done.op.stage + 1u == skep_plan_vstages(r->plan), out = event->u.done.out.slot != 0;
	bool measured = event->u.done.op.kind == SKEP_OP_NORM || event->u.done.op.kind == SKEP_OP_STEP;
	if ((event->u.done.loss_nano < 0 && !measured) || (event->u.done.op.kind == SKEP_OP_FORWARD && last && out)) {
		stop_at_event(r, m, SKEP_REPLAY_DAMAGED, "no device has such a result");
		return false;
	}
	witness_op(r, m, lane, event->now);
	take_op(lane);
	return true;
}

/* May the machine be told of the event now? */
static bool possible(struct replay *r, struct machine *m)
{
	const struct skep_event *event = &m->event;
	switch (event->kind) {
	case SKEP_EVENT_TIMER:
		if (event->now >= skep_node_deadline(m->node))
			return true;
		stop_at_event(r, m, SKEP_REPLAY_DIFFERS, "the machine does not want to be woken yet");
		return false;
	case SKEP_EVENT_MESSAGE:
	case SKEP_EVENT_SEND_FAILED:
		if (skep_replay_was_sent(&r->sent, &event->u.message))
			return true;
		m->state = STATE_WAITING;
		return false;
	case SKEP_EVENT_OP_DONE:
		return complete_op(r, m);
	default:
		return true;
	}
}

/* The machine begins anew, and holds nothing but in its first life. */
static void begin_life(struct replay *r, struct machine *m)
{
	const struct skep_plan *plan = r->plan;
	if (m->open) {
		name_unfinished(r, m, false);
		m->torn = true;
	}
	uint32_t epoch = m->lives > 0 ? 0 : skep_plan_first_epoch(plan, m->index);
	m->node = skep_node_init(m->memory, plan, m->index, epoch);
	for (int i = 0; i < SKEP_LANES; i++)
		m->lane[i].count = m->lane[i].free = 0;
	m->open = true;
	m->before = m->played;
	m->lives++;
	r->result->lives++;
}

/* The machine needs more memory than it has. */
static void relocate_node(struct replay *r, struct machine *m)
{
	void *larger = aligned_alloc(16, (skep_node_wanted(m->node) + 15) / 16 * 16);
	if (larger == NULL) {
		r->no_memory = true;
		return;
	}
	m->node = skep_node_relocate(larger, m->node);
	free(m->memory);
	m->memory = larger;
}

static void step(struct replay *r, struct machine *m)
{
	if (m->event.kind == SKEP_EVENT_START)
		begin_life(r, m);
	skep_node_step(m->node, r->plan, &m->event, &r->actions);
	if (skep_node_wanted(m->node) > 0)
		relocate_node(r, m);
	uint64_t digest = skep_node_digest(m->node);
	if ((uint16_t)digest != m->mark) {
		stop_at_event(r, m, SKEP_REPLAY_DIFFERS, "the machine decides otherwise");
		if (r->result->machine == m->index && r->result->event == m->played + 1)
			print_digests(r->result, 4, m->mark, (uint16_t)digest);
		return;
	}
	witness_message(r, &m->event);
	m->now = m->event.now;
	m->played++;
	r->result->events++;
	for (uint32_t i = 0; i < r->actions.count; i++) {
		const struct skep_action *action = &r->actions.item[i];
		if (action->kind == SKEP_ACTION_SEND)
			send(r, &action->u.send, m->event.now);
		else if (action->kind == SKEP_ACTION_RUN)
			ask(r, m, &action->u.run);
	}
}

/* Until the machine waits or comes to its end; true: it got on. */
static bool play(struct replay *r, struct machine *m)
{
	uint64_t before = m->played;
	while (!r->no_memory && (m->state == STATE_READY || m->state == STATE_WAITING)) {
		if (m->state == STATE_READY)
			next(r, m);
		if (m->state == STATE_CUT || m->state == STATE_ENDED || !possible(r, m))
			break;
		m->state = STATE_READY;
		step(r, m);
	}
	return m->played > before;
}

/* A process that was lost with its host has sent more than its log says: what reached another machine stands in the log of
 * that one. It is believed where nothing else is left to wait for. True: there was such a message. */
static bool believe(struct replay *r)
{
	uint64_t before = r->result->believed;
	for (uint32_t i = 0; i <= r->plan->workers && !r->no_memory; i++) {
		const struct machine *m = &r->machine[i], *sender;
		if (m->state != STATE_WAITING)
			continue;
		sender = &r->machine[m->event.u.message.from.index];
		if (!sender->torn && (sender->state != STATE_CUT || sender->log->ended))
			continue;
		send(r, &m->event.u.message, SKEP_TIME_NEVER);
		r->result->believed++;
	}
	return r->result->believed > before;
}

/* Who waits for a machine that goes no further is not to blame, and neither is who waits for that one. */
static void cut_waiting(struct replay *r)
{
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i <= r->plan->workers; i++) {
			struct machine *m = &r->machine[i];
			const struct machine *sender = &r->machine[m->event.u.message.from.index];
			if (m->state != STATE_WAITING || (sender->state != STATE_CUT && !sender->torn))
				continue;
			name_unfinished(r, m, true);
			m->state = STATE_CUT;
			more = true;
		}
	}
}

static void play_all(struct replay *r)
{
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i <= r->plan->workers; i++)
			more = play(r, &r->machine[i]) || more;
		more = more || believe(r);
	}
	cut_waiting(r);
	r->result->whole = true;
	for (uint32_t i = 0; i <= r->plan->workers; i++) {
		struct machine *m = &r->machine[i];
		if (m->state == STATE_WAITING && r->result->verdict != SKEP_REPLAY_DAMAGED)
			stop_at_event(r, m, SKEP_REPLAY_DIFFERS, "no machine sends this message");
		r->result->whole = r->result->whole && m->state == STATE_ENDED && !m->torn;
	}
}

/* ---- up and down ------------------------------------------------------------------------------------------------- */

static bool machine_init(struct replay *r, uint32_t index, const struct skep_machine_log *log)
{
	struct machine *m = &r->machine[index];
	const struct skep_plan *plan = r->plan;
	size_t size = (skep_node_size(plan, index) + 15) / 16 * 16;
	m->index = index;
	m->log = log;
	m->memory = aligned_alloc(16, size);
	if (m->memory == NULL)
		return false;
	m->node = skep_node_init(m->memory, plan, index, 0);
	m->wire = skep_wire_reader(log->bytes, log->count);
	r->result->bytes += log->count;
	r->result->run_events += log->events;
	return true;
}

static bool replay_init(struct replay *r, const struct skep_machine_log *log)
{
	uint32_t machines = r->plan->workers + 1;
	bool ended = true;
	r->actions.capacity = skep_actions_limit(r->plan);
	r->actions.item = calloc(r->actions.capacity, sizeof *r->actions.item);
	r->machine = calloc(machines, sizeof *r->machine);
	if (r->actions.item == NULL || r->machine == NULL)
		return false;
	for (uint32_t i = 0; i < machines; i++) {
		if (!machine_init(r, i, &log[i]))
			return false;
		ended = ended && log[i].ended;
	}
	if (!ended)
		r->result->run_events = 0;
	return true;
}

static void replay_finish(struct replay *r)
{
	for (uint32_t i = 0; r->machine != NULL && i <= r->plan->workers; i++) {
		free(r->machine[i].memory);
		for (int lane = 0; lane < SKEP_LANES; lane++)
			free(r->machine[i].lane[lane].asked);
	}
	free(r->machine);
	free(r->actions.item);
	skep_replay_sent_finish(&r->sent);
}

bool skep_replay_witnessed(const struct skep_plan *plan, const struct skep_machine_log *log,
	const struct skep_replay_witness *witness, struct skep_replay_result *ret)
{
	*ret = (struct skep_replay_result){.machines = plan->workers + 1, .now = SKEP_TIME_NEVER};
	struct replay r = {.plan = plan, .result = ret, .witness = witness};
	bool fine = replay_init(&r, log);
	if (fine)
		play_all(&r);
	replay_finish(&r);
	return fine && !r.no_memory;
}

bool skep_replay_run(const struct skep_plan *plan, const struct skep_machine_log *log, struct skep_replay_result *ret)
{
	return skep_replay_witnessed(plan, log, NULL, ret);
}
