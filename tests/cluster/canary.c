/* SPDX-License-Identifier: Apache-2.0
 *
 * canary.c - a deliberately wrong machine: the obvious retry rule, which the ledger must reject.
 *
 * It trains correctly while nothing fails. Its rules under faults are those that come to mind first: the worker that
 * finishes a backward has counted the microbatch; the owner sends a microbatch again, to another worker, when it has
 * waited too long, when the send failed or when the worker is suspected; no worker is fenced, nothing is reported lost,
 * duplicates are not recognised. Never repair it: if the ledger stops rejecting it, the ledger is wrong.
 */
#include "tests/cluster/cluster.h"

#include <assert.h>
#include <string.h>

#define CAPACITY 320u /* microbatches of a round */

struct work { /* one microbatch at one worker */
	bool used, sent;
	uint32_t round;
	struct skep_peer origin, target;
	struct skep_buf in, stash;
	skep_time sent_at;
};

struct naive {
	struct skep_peer self;
	uint32_t stage, round, directory, rank, size, stored, started, next_microbatch, last_microbatch, running;
	struct skep_peer next;
	bool dead[CLUSTER_WORKERS], reducing, stepped;
	struct work work[CAPACITY];
	struct skep_message early[CLUSTER_WORKERS]; /* chunks that came before REDUCE */
	uint32_t earlies;
	uint64_t op_id, digest, random;
	skep_time now;
	/* directory */
	uint32_t finished, tallies, counted[CLUSTER_STAGES];
	int64_t loss_nano, loss_sum, loss_mean;
	enum skep_outcome outcome;
};

/* what a step works with */
struct naive_step {
	struct naive *n;
	const struct skep_plan *plan;
	struct skep_actions *actions;
};

static struct skep_action *act(struct naive_step s, uint8_t kind)
{
	assert(s.actions->count < s.actions->capacity);
	struct skep_action *action = &s.actions->item[s.actions->count++];
	memset(action, 0, sizeof(*action));
	action->kind = kind;
	s.n->digest = mix64(s.n->digest + kind);
	return action;
}

static struct skep_message *say(struct naive_step s, uint8_t kind, uint32_t to, uint32_t microbatch)
{
	struct skep_message *m = &act(s, SKEP_ACTION_SEND)->u.send;
	m->kind = kind;
	m->from = s.n->self;
	m->to = (struct skep_peer){to, 1};
	m->stage = (uint16_t)s.n->stage;
	m->round = s.n->round;
	m->microbatch = microbatch;
	return m;
}

static struct skep_note *note(struct naive_step s, uint8_t kind, uint32_t stage)
{
	struct skep_note *made = &act(s, SKEP_ACTION_NOTE)->u.note;
	made->kind = kind;
	made->stage = (uint16_t)stage;
	made->round = s.n->round;
	return made;
}

static struct skep_op *run(struct naive_step s, uint8_t kind, uint32_t round, uint32_t microbatch)
{
	struct skep_op *op = &act(s, SKEP_ACTION_RUN)->u.run;
	op->id = ++s.n->op_id;
	op->kind = kind;
	op->lane = skep_op_reduces((uint8_t)kind) ? SKEP_LANE_REDUCE : SKEP_LANE_COMPUTE;
	op->stage = (uint16_t)s.n->stage;
	op->round = op->version = round;
	op->microbatch = microbatch;
	return op;
}

static void release(struct naive_step s, struct skep_buf buf)
{
	if (!buf_none(buf))
		act(s, SKEP_ACTION_RELEASE)->u.release = buf;
}

static void pay(struct skep_message *m, struct skep_buf payload, uint64_t bytes)
{
	m->payload = payload;
	m->payload_bytes = bytes;
}

/* ---- worker: pipeline -------------------------------------------------------------------------------------------- */

static uint32_t choose(struct naive_step s, uint32_t stage)
{
	uint32_t live = 0, pick;
	for (uint32_t w = 0; w < s.plan->workers; w++)
		live += s.plan->first_stage_of[w] == stage && !s.n->dead[w];
	if (live == 0)
		return SKEP_NO_INDEX;
	pick = (uint32_t)(mix64(++s.n->random) % live);
	for (uint32_t w = 0; w < s.plan->workers; w++)
		if (s.plan->first_stage_of[w] == stage && !s.n->dead[w] && pick-- == 0)
			return w;
	return SKEP_NO_INDEX;
}

static void issue(struct naive_step s)
{
	struct naive *n = s.n;
	while (n->running < s.plan->in_flight && n->next_microbatch < n->last_microbatch) {
		n->work[n->next_microbatch] = (struct work){.used = true, .round = n->round};
		run(s, SKEP_OP_FORWARD, n->round, n->next_microbatch++);
		n->running++;
	}
}

static void do_backward(struct naive_step s, uint32_t microbatch, struct skep_buf gradient)
{
	struct work *work = &s.n->work[microbatch];
	struct skep_op *op = run(s, SKEP_OP_BACKWARD, work->round, microbatch);
	op->in = work->in;
	op->stash = work->stash;
	op->gradient = gradient;
}

static void forward_done(struct naive_step s, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	struct work *work = &s.n->work[op->microbatch];
	work->stash = event->u.done.stash;
	s.n->loss_nano += event->u.done.loss_nano;
	if (s.n->stage + 1 == s.plan->stages) {
		do_backward(s, op->microbatch, (struct skep_buf){0, 0});
		return;
	}
	uint32_t target = choose(s, s.n->stage + 1);
	if (target == SKEP_NO_INDEX) {
		release(s, event->u.done.out);
		return;
	}
	struct skep_message *m = say(s, SKEP_MESSAGE_FORWARD, target, op->microbatch);
	m->round = op->round;
	pay(m, event->u.done.out, s.plan->stage[s.n->stage].activation_bytes);
	work->sent = true;
	work->sent_at = s.n->now;
	work->target = m->to;
}

static void backward_done(struct naive_step s, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	struct work *work = &s.n->work[op->microbatch];
	struct skep_note *counted = note(s, SKEP_NOTE_COUNTED, s.n->stage);
	counted->round = op->round;
	counted->microbatch = op->microbatch;
	s.n->counted[0]++;
	release(s, op->in);
	release(s, op->stash);
	release(s, op->gradient);
	work->used = false;
	if (s.n->stage > 0) {
		struct skep_message *m = say(s, SKEP_MESSAGE_BACKWARD, work->origin.index, op->microbatch);
		m->round = op->round;
		pay(m, event->u.done.out, s.plan->stage[s.n->stage - 1].activation_bytes);
		return;
	}
	say(s, SKEP_MESSAGE_FINISHED, s.n->directory, op->microbatch)->u.finished.ok = true;
	s.n->running--;
	issue(s);
}

static void got_forward(struct naive_step s, const struct skep_message *m)
{
	s.n->work[m->microbatch] = (struct work){.used = true, .round = m->round, .origin = m->from, .in = m->payload};
	run(s, SKEP_OP_FORWARD, m->round, m->microbatch)->in = m->payload;
}

/* The forward again, elsewhere: the stash stays, only the activation has to be made anew. */
static void retry(struct naive_step s, uint32_t microbatch)
{
	struct work *work = &s.n->work[microbatch];
	work->sent = false;
	release(s, work->stash);
	work->stash = (struct skep_buf){0, 0};
	run(s, SKEP_OP_FORWARD, work->round, microbatch)->in = work->in;
}

static void retry_late(struct naive_step s, skep_time patience)
{
	for (uint32_t m = 0; m < CAPACITY; m++) {
		const struct work *work = &s.n->work[m];
		bool dead = work->sent && s.n->dead[work->target.index];
		if (work->used && work->sent && (dead || s.n->now >= work->sent_at + patience))
			retry(s, m);
	}
}

/* ---- worker: reduction ------------------------------------------------------------------------------------------- */

static void pass_on(struct naive_step s, uint32_t chunk, uint32_t hop, struct skep_buf out)
{
	uint64_t first, count;
	struct skep_message *m = say(s, SKEP_MESSAGE_CHUNK, s.n->next.index, 0);
	skep_chunk_range(s.plan->stage[s.n->stage].parameters, chunk, s.n->size, &first, &count);
	m->u.chunk.chunk = chunk;
	m->u.chunk.hop = hop;
	pay(m, out, 4 * count);
}

static void got_chunk(struct naive_step s, const struct skep_message *m)
{
	struct naive *n = s.n;
	if (!n->reducing) {
		if (n->earlies < CLUSTER_WORKERS)
			n->early[n->earlies++] = *m;
		else
			release(s, m->payload);
		return;
	}
	uint32_t hop = m->u.chunk.hop;
	uint8_t kind = hop + 1 < n->size ? SKEP_OP_ADD : hop + 1 == n->size ? SKEP_OP_ADD_STORE : SKEP_OP_STORE;
	struct skep_op *op = run(s, kind, m->round, hop);
	op->in = m->payload;
	op->chunk = m->u.chunk.chunk;
	op->size = n->size;
	skep_chunk_range(s.plan->stage[n->stage].parameters, op->chunk, op->size, &op->first, &op->count);
}

static void tally(struct naive_step s)
{
	struct skep_message *m = say(s, SKEP_MESSAGE_TALLY, s.n->directory, 0);
	m->u.tally.count = s.n->counted[0];
	m->u.tally.loss_nano = s.n->loss_nano;
}

static void reduce_done(struct naive_step s, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	uint32_t hop = op->kind == SKEP_OP_COPY_GRAD ? 0 : op->microbatch; /* the hop travels in the unused number */
	if (hop < 2 * (s.n->size - 1))
		pass_on(s, op->chunk, hop + 1, event->u.done.out);
	else
		release(s, event->u.done.out);
	s.n->stored += op->kind == SKEP_OP_STORE || op->kind == SKEP_OP_ADD_STORE;
	if (s.n->stored == s.n->size)
		tally(s);
}

static void got_reduce(struct naive_step s, const struct skep_message *m)
{
	struct naive *n = s.n;
	n->rank = m->u.reduce.rank;
	n->size = m->u.reduce.size;
	n->next = m->u.reduce.next;
	n->reducing = true;
	n->stored = 0;
	if (n->size == 1) {
		tally(s);
		return;
	}
	struct skep_op *op = run(s, SKEP_OP_COPY_GRAD, n->round, 0);
	op->chunk = n->rank;
	op->size = n->size;
	skep_chunk_range(s.plan->stage[n->stage].parameters, op->chunk, op->size, &op->first, &op->count);
	for (uint32_t i = 0; i < n->earlies; i++)
		got_chunk(s, &n->early[i]);
	n->earlies = 0;
}

static void got_commit(struct naive_step s, const struct skep_message *m)
{
	struct skep_op *op = run(s, SKEP_OP_STEP, s.n->round, 0);
	op->size = s.n->size;
	op->microbatches = m->u.commit.microbatches;
	s.n->reducing = false;
}

/* ---- directory --------------------------------------------------------------------------------------------------- */

static uint32_t members(const struct skep_plan *plan, const struct naive *n, uint32_t stage, uint32_t *ret)
{
	uint32_t count = 0;
	for (uint32_t w = 0; w < plan->workers; w++)
		if (plan->first_stage_of[w] == stage && !n->dead[w])
			ret[count++] = w;
	return count;
}

static void open_round(struct naive_step s)
{
	uint32_t list[CLUSTER_WORKERS], count = members(s.plan, s.n, 0, list), first = 0;
	note(s, SKEP_NOTE_ROUND_OPENED, 0);
	s.n->finished = s.n->tallies = 0;
	s.n->loss_sum = 0;
	memset(s.n->counted, 0, sizeof(s.n->counted));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t share = s.plan->microbatches / count + (i < s.plan->microbatches % count);
		if (share == 0)
			continue;
		struct skep_note *issued = note(s, SKEP_NOTE_ISSUED, 0);
		issued->microbatch = first;
		issued->value = share;
		issued->peer = (struct skep_peer){list[i], 1};
		struct skep_message *grant = say(s, SKEP_MESSAGE_GRANT, list[i], first);
		grant->u.grant.count = share;
		grant->u.grant.in_flight = s.plan->in_flight;
		first += share;
	}
}

static void start_reductions(struct naive_step s)
{
	for (uint32_t stage = 0; stage < s.plan->stages; stage++) {
		uint32_t list[CLUSTER_WORKERS], count = members(s.plan, s.n, stage, list);
		for (uint32_t i = 0; i < count; i++) {
			struct skep_message *m = say(s, SKEP_MESSAGE_REDUCE, list[i], 0);
			m->stage = (uint16_t)stage;
			m->u.reduce.rank = i;
			m->u.reduce.size = count;
			m->u.reduce.next = (struct skep_peer){list[(i + 1) % count], 1};
		}
	}
}

static void close_round(struct naive_step s)
{
	for (uint32_t stage = 0; stage < s.plan->stages; stage++) {
		uint32_t list[CLUSTER_WORKERS], count = members(s.plan, s.n, stage, list);
		note(s, SKEP_NOTE_STAGE_COMMITTED, stage)->microbatch = s.n->counted[stage];
		for (uint32_t i = 0; i < count; i++)
			say(s, SKEP_MESSAGE_COMMIT, list[i], 0)->u.commit.microbatches = s.n->counted[stage];
	}
	s.n->loss_mean = INT64_MAX;
	if (s.n->counted[s.plan->stages - 1] > 0) {
		s.n->loss_mean = s.n->loss_sum / s.n->counted[s.plan->stages - 1];
		note(s, SKEP_NOTE_LOSS, 0)->value = s.n->loss_mean;
	}
	note(s, SKEP_NOTE_ROUND_CLOSED, 0)->microbatch = s.plan->microbatches;
}

static void finish_or_go_on(struct naive_step s)
{
	if (++s.n->round < s.plan->rounds && s.n->loss_mean > s.plan->until.target_loss_nano) {
		open_round(s);
		return;
	}
	struct skep_note *stopped = note(s, SKEP_NOTE_STOPPED, 0);
	stopped->value = 1;
	s.n->outcome = SKEP_DONE;
	for (uint32_t w = 0; w < s.plan->workers; w++)
		say(s, SKEP_MESSAGE_STOP, w, 0)->u.stop.ok = true;
}

static void got_tally(struct naive_step s, const struct skep_message *m)
{
	uint32_t list[CLUSTER_WORKERS], expected = 0;
	struct skep_note *member = note(s, SKEP_NOTE_MEMBER, m->stage);
	member->peer = m->from;
	member->value = m->u.tally.count;
	s.n->counted[m->stage] += m->u.tally.count;
	s.n->loss_sum += m->u.tally.loss_nano;
	for (uint32_t stage = 0; stage < s.plan->stages; stage++)
		expected += members(s.plan, s.n, stage, list);
	if (++s.n->tallies == expected)
		close_round(s);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static void got_message(struct naive_step s, const struct skep_message *m)
{
	struct naive *n = s.n;
	switch (m->kind) {
	case SKEP_MESSAGE_GRANT:
		n->next_microbatch = m->microbatch;
		n->last_microbatch = m->microbatch + m->u.grant.count;
		issue(s);
		return;
	case SKEP_MESSAGE_FORWARD:
		got_forward(s, m);
		return;
	case SKEP_MESSAGE_BACKWARD:
		n->work[m->microbatch].sent = false;
		do_backward(s, m->microbatch, m->payload);
		return;
	case SKEP_MESSAGE_REDUCE:
		got_reduce(s, m);
		return;
	case SKEP_MESSAGE_CHUNK:
		got_chunk(s, m);
		return;
	case SKEP_MESSAGE_COMMIT:
		got_commit(s, m);
		return;
	case SKEP_MESSAGE_STOP:
		n->outcome = m->u.stop.ok ? SKEP_DONE : SKEP_FAILED;
		return;
	case SKEP_MESSAGE_FINISHED:
		if (++n->finished == s.plan->microbatches)
			start_reductions(s);
		return;
	case SKEP_MESSAGE_TALLY:
		got_tally(s, m);
		return;
	case SKEP_MESSAGE_READY: /* the step is done */
		if (++n->started == n->tallies) {
			n->started = 0;
			finish_or_go_on(s);
		}
		return;
	default:
		release(s, m->payload);
	}
}

static void op_done(struct naive_step s, const struct skep_event *event)
{
	switch (event->u.done.op.kind) {
	case SKEP_OP_FORWARD:
		forward_done(s, event);
		return;
	case SKEP_OP_BACKWARD:
		backward_done(s, event);
		return;
	case SKEP_OP_STEP:
		s.n->counted[0] = 0;
		s.n->loss_nano = 0;
		s.n->round++;
		say(s, SKEP_MESSAGE_READY, s.n->directory, 0);
		return;
	default:
		reduce_done(s, event);
	}
}

static void naive_take(struct skep_node *node, const struct skep_plan *plan, const struct skep_event *event,
	struct skep_actions *actions)
{
	struct naive_step s = {(struct naive *)(void *)node, plan, actions};
	skep_time patience =
		40 * plan->liveness.fence_after_ns + UINT64_C(2000000000); /* beyond any queue in calm weather */
	actions->count = 0;
	s.n->now = event->now;
	if (event->kind == SKEP_EVENT_START && s.n->self.index == s.n->directory)
		open_round(s);
	else if (event->kind == SKEP_EVENT_MESSAGE)
		got_message(s, &event->u.message);
	else if (event->kind == SKEP_EVENT_OP_DONE)
		op_done(s, event);
	else if (event->kind == SKEP_EVENT_SUSPECT)
		s.n->dead[event->u.peer.index] = true;
	else if (event->kind == SKEP_EVENT_SEND_FAILED)
		release(s, event->u.message.payload);
	if (s.n->outcome == SKEP_RUNNING && s.n->stage == 0)
		retry_late(s, patience);
}

static size_t naive_size(const struct skep_plan *plan, uint32_t index)
{
	(void)plan, (void)index;
	return sizeof(struct naive);
}

static uint32_t naive_actions_limit(const struct skep_plan *plan)
{
	(void)plan;
	return 1024;
}

static uint32_t naive_capacity(const struct skep_plan *plan)
{
	(void)plan;
	return CAPACITY;
}

static struct skep_node *naive_init(void *mem, const struct skep_plan *plan, uint32_t index, uint32_t epoch)
{
	struct naive *n = mem;
	memset(n, 0, sizeof(*n));
	assert(plan->microbatches <= CAPACITY);
	n->self = (struct skep_peer){index, epoch};
	n->directory = plan->workers;
	n->stage = index < plan->workers && epoch > 0 ? plan->first_stage_of[index] : SKEP_NO_STAGE;
	n->random = mix64(plan->seed + index);
	return mem;
}

static const struct naive *naive_of(const struct skep_node *node)
{
	return (const struct naive *)(const void *)node;
}

static skep_time naive_deadline(const struct skep_node *node)
{
	const struct naive *n = naive_of(node);
	return n->outcome == SKEP_RUNNING && n->stage == 0 ? n->now + 20000000 : SKEP_TIME_NEVER;
}

static uint32_t naive_epoch(const struct skep_node *node)
{
	return naive_of(node)->self.epoch;
}

static uint64_t naive_digest(const struct skep_node *node)
{
	return naive_of(node)->digest;
}

static enum skep_outcome naive_outcome(const struct skep_node *node)
{
	return naive_of(node)->outcome;
}

const struct machine machine_naive = {.name = "naive",
	.size = naive_size,
	.actions_limit = naive_actions_limit,
	.round_capacity = naive_capacity,
	.init = naive_init,
	.step = naive_take,
	.deadline = naive_deadline,
	.epoch = naive_epoch,
	.digest = naive_digest,
	.outcome = naive_outcome};
