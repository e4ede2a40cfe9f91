/* SPDX-License-Identifier: Apache-2.0
 *
 * network.c - the life of a message: sent with a fate, then delivered, duplicated, returned or lost with the dead.
 *
 * Kept true: the payload of each delivered copy is its own tensor; what comes back belongs to its sender again.
 */
#include "tests/cluster/internal.h"

static uint64_t expected_bytes(const struct skep_plan *plan, const struct skep_message *m, const struct tensor *t)
{
	switch (m->kind) {
	case SKEP_MESSAGE_FORWARD:
	case SKEP_MESSAGE_BACKWARD:
	case SKEP_MESSAGE_OUTPUT:
	case SKEP_MESSAGE_INPUT:
		return skep_plan_vstage_bytes(plan, t->stage);
	case SKEP_MESSAGE_CHUNK:
		return 4 * t->count + (t->part ? 4 : 0);
	case SKEP_MESSAGE_STATE:
		return skep_state_chunk_bytes(plan, t->stage, t->chunk);
	default:
		return 0;
	}
}

static void check_payload(struct cluster *c, const struct skep_message *m, const struct slot *slot)
{
	static const uint8_t kind[SKEP_MESSAGE_KINDS] = {[SKEP_MESSAGE_FORWARD] = TENSOR_ACTIVATION,
		[SKEP_MESSAGE_BACKWARD] = TENSOR_GRADIENT,
		[SKEP_MESSAGE_OUTPUT] = TENSOR_ACTIVATION,
		[SKEP_MESSAGE_INPUT] = TENSOR_ACTIVATION,
		[SKEP_MESSAGE_CHUNK] = TENSOR_CHUNK,
		[SKEP_MESSAGE_STATE] = TENSOR_STATE};
	bool tied = m->kind == SKEP_MESSAGE_CHUNK && m->u.chunk.hop == SKEP_HOP_TIED;
	if (slot->pins > 0)
		verdict_break(c->verdict, "I5", m->round, m->stage, m->microbatch,
			"machine %u sends a tensor that a queued operation needs", m->from.index);
	bool shard = m->kind == SKEP_MESSAGE_CHUNK && c->setup.plan->sharded && slot->tensor.kind == TENSOR_SHARD;
	if (!shard && slot->tensor.kind != (tied ? TENSOR_TIED : kind[m->kind]))
		verdict_break(c->verdict, "I4", m->round, m->stage, m->microbatch,
			"machine %u sends a message of kind %u with a tensor of kind %u", m->from.index, m->kind,
			slot->tensor.kind);
	else if (m->payload_bytes != expected_bytes(c->setup.plan, m, &slot->tensor))
		verdict_break(c->verdict, "I6", m->round, m->stage, m->microbatch,
			"machine %u says that a payload of kind %u has %llu bytes, not %llu", m->from.index, m->kind,
			(unsigned long long)m->payload_bytes,
			(unsigned long long)expected_bytes(c->setup.plan, m, &slot->tensor));
	else if (slot->tensor.kind <= TENSOR_GRADIENT &&
		 m->stage != slot->tensor.stage + (slot->tensor.kind == TENSOR_GRADIENT))
		verdict_break(c->verdict, "I6", m->round, m->stage, m->microbatch,
			"machine %u says that a tensor comes from stage %u, but its activation is of stage %u",
			m->from.index, m->stage, slot->tensor.stage);
}

static struct event *schedule_message(
	struct cluster *c, skep_time delay, const struct skep_message *m, struct fate fate)
{
	struct event *event = agenda_add(c, c->now + delay, fate.failed ? EVENT_FAILED : EVENT_MESSAGE,
		fate.failed ? m->from.index : m->to.index);
	event->message = c->setup.carry ? c->setup.carry(m) : *m;
	event->dies_with_sender = fate.dies_with_sender;
	event->dead = (uint8_t)fate.dead;
	event->sender_life = c->process[m->from.index].life;
	return event;
}

static struct skep_buf duplicate(struct cluster *c, struct skep_buf buf, uint32_t owner)
{
	struct skep_buf copy;
	struct tensor tensor = c->tensors.slot[buf.slot].tensor;
	*tensors_add(&c->tensors, owner, &copy) = tensor;
	return copy;
}

static void schedule_copy(struct cluster *c, skep_time delay, const struct skep_message *m, struct fate fate)
{
	struct skep_message copy = *m;
	if (!buf_none(m->payload))
		copy.payload = duplicate(c, m->payload, IN_FLIGHT);
	schedule_message(c, delay, &copy, fate);
	c->result.copies++;
}

static bool worth_eating(uint8_t kind)
{
	return kind == SKEP_MESSAGE_FORWARD || kind == SKEP_MESSAGE_BACKWARD || kind == SKEP_MESSAGE_CHUNK ||
	       kind == SKEP_MESSAGE_ROSTER || kind == SKEP_MESSAGE_CHUNK_ACK || kind == SKEP_MESSAGE_COMMIT ||
	       kind == SKEP_MESSAGE_OUTPUT || kind == SKEP_MESSAGE_INPUT;
}

/* The buffer that was named stays, another one goes. */
void post_send_copy(struct cluster *c, uint32_t index, const struct skep_message *m)
{
	struct skep_message copy = *m;
	if (tensors_use(&c->tensors, m->payload, index, c->verdict) && !sabotaged(c, SABOTAGE_KEEP_FORGOTTEN))
		copy.payload = duplicate(c, m->payload, index);
	post_send(c, index, &copy);
}

/* Two members change places, neither of them the receiver, who would notice. */
static void swap_roster(struct cluster *c, struct skep_message *m)
{
	uint32_t swapped[2], found = 0, size = m->u.roster.size, first = m->u.roster.first;
	for (uint32_t i = 0; m->kind == SKEP_MESSAGE_ROSTER && i < SKEP_ROSTER_PART && first + i < size; i++)
		if (found < 2 && m->u.roster.peer[i].index != m->to.index)
			swapped[found++] = i;
	if (found < 2 || !sabotaged(c, SABOTAGE_ROSTER_SWAPPED))
		return;
	struct skep_peer peer = m->u.roster.peer[swapped[0]];
	m->u.roster.peer[swapped[0]] = m->u.roster.peer[swapped[1]];
	m->u.roster.peer[swapped[1]] = peer;
}

static void message_lost(struct cluster *c, const struct skep_message *m)
{
	trace(c, (struct trace){.what = TRACE_LOST, .who = m->to, .message = m});
	if (!buf_none(m->payload))
		tensors_free(&c->tensors, m->payload);
}

void post_send(struct cluster *c, uint32_t index, const struct skep_message *m)
{
	struct process *p = &c->process[index];
	if (m->kind == 0 || m->kind >= SKEP_MESSAGE_KINDS || m->from.index != index)
		verdict_break(c->verdict, "I6", m->round, m->stage, m->microbatch,
			"machine %u sends a message of kind %u as if from %u", index, m->kind, m->from.index);
	struct slot *slot = NULL;
	if (!c->verdict->broken && !buf_none(m->payload)) {
		slot = tensors_use(&c->tensors, m->payload, index, c->verdict);
		if (slot)
			check_payload(c, m, slot);
	}
	if (c->verdict->broken)
		return;
	if (slot)
		slot->owner = IN_FLIGHT;
	if (slot && m->kind == SKEP_MESSAGE_FORWARD && sabotaged(c, SABOTAGE_TENSOR_SWAPPED))
		slot->tensor.microbatch ^= 1;
	if (slot && m->kind == SKEP_MESSAGE_INPUT && sabotaged(c, SABOTAGE_INPUT_SWAPPED))
		slot->tensor.microbatch ^= 1;
	if (slot && m->kind == SKEP_MESSAGE_STATE && sabotaged(c, SABOTAGE_STATE_OLD))
		slot->tensor.round++;
	trace(c, (struct trace){.what = TRACE_SEND, .who = {index, p->epoch}, .message = m});
	if (worth_eating(m->kind) && sabotaged(c, SABOTAGE_MESSAGE_EATEN))
		return;
	if (c->is_lost) {
		message_lost(c, m);
		return;
	}
	struct fate fate = c->setup.fate(c->setup.context, c->now, m);
	struct event *event = schedule_message(c, fate.delay_ns, m, fate);
	swap_roster(c, &event->message);
	c->result.failed += fate.failed;
	for (uint32_t i = 0; i < fate.copies && !fate.failed; i++)
		schedule_copy(c, fate.copy_delay_ns[i], m, fate);
}

void post_returns(struct cluster *c, const struct event *event)
{
	const struct skep_message *m = &event->message;
	struct process *p = &c->process[m->from.index];
	if (!p->alive || p->life != event->sender_life) {
		message_lost(c, m);
		return;
	}
	trace(c, (struct trace){.what = TRACE_FAIL, .who = {m->from.index, p->epoch}, .message = m});
	if (!buf_none(m->payload))
		c->tensors.slot[m->payload.slot].owner = m->from.index;
	referee_came_back(c->referee, m);
	struct skep_event out = {.kind = SKEP_EVENT_SEND_FAILED, .u.message = *m};
	deliver(c, m->from.index, &out);
}

/* An owner, and another one who does a forward pass of a stage in the middle, perhaps for it, and will count nothing. */
static bool worth_slandering(const struct cluster *c, uint32_t owner, uint32_t other)
{
	const struct skep_plan *plan = c->setup.plan;
	const struct lane *lane = &c->process[other].lane[SKEP_LANE_COMPUTE];
	uint32_t stage = c->process[other].device.stage;
	return plan->routing == SKEP_ROUTING_TRAINER && c->process[owner].device.stage == 0 && stage > 0 &&
	       stage + 1 < plan->stages && lane->count > 0 && lane->item[lane->head].op.kind == SKEP_OP_FORWARD;
}

static void falsify(struct cluster *c, struct skep_message *m)
{
	uint32_t other = (m->u.peer.who.index + 1) % c->setup.plan->workers;
	if (m->kind == SKEP_MESSAGE_STATE && sabotaged(c, SABOTAGE_STATE_EARLY))
		m->round++;
	if (m->kind == SKEP_MESSAGE_LEAVE && sabotaged(c, SABOTAGE_LEAVE_DEAF))
		m->kind = SKEP_MESSAGE_HEARTBEAT;
	if (m->kind == SKEP_MESSAGE_CHECKPOINT && c->setup.plan->async.on && sabotaged(c, SABOTAGE_KEEP_HURRIED))
		m->attempt = 0;
	if (m->kind == SKEP_MESSAGE_NORM && sabotaged(c, SABOTAGE_NORM_WRONG))
		m->u.norm.square += UINT64_C(1) << 48;
	if (m->kind == SKEP_MESSAGE_REDUCE && m->u.reduce.eager && sabotaged(c, SABOTAGE_EAGER_FORCED))
		m->u.reduce.eager = false;
	bool told = m->kind == SKEP_MESSAGE_PEER && m->u.peer.leaving && m->u.peer.who.index == m->to.index;
	if (told && sabotaged(c, SABOTAGE_RETURN_DEAF))
		m->kind = SKEP_MESSAGE_HEARTBEAT;
	if (m->kind == SKEP_MESSAGE_PEER && m->u.peer.leaving && sabotaged(c, SABOTAGE_LEAVER_PRAISED))
		m->u.peer.leaving = false;
	uint16_t last = (uint16_t)(skep_plan_vstages(c->setup.plan) - 1);
	uint32_t stages = c->setup.plan->stages;
	bool model_chunks =
		m->kind == SKEP_MESSAGE_FORWARD && c->setup.plan->model_chunks > 1 && m->stage % stages + 1 < stages;
	if (model_chunks && sabotaged(c, SABOTAGE_VSTAGE_WRONG))
		m->stage = (uint16_t)((m->stage + stages) % skep_plan_vstages(c->setup.plan));
	bool partial = m->kind == SKEP_MESSAGE_GRANT && m->attempt > 0 && (m->span.first > 0 || m->span.last < last);
	if (partial && sabotaged(c, SABOTAGE_SPAN_WIDENED))
		m->span = (struct skep_span){0, last};
	if (m->kind == SKEP_MESSAGE_VALIDATED && sabotaged(c, SABOTAGE_VALIDATED_FALSE))
		m->u.validated.loss_nano ^= 1;
	if (m->kind == SKEP_MESSAGE_CANCELLED && !m->u.cancelled.dropped && sabotaged(c, SABOTAGE_DROP_INVENTED))
		m->u.cancelled.dropped = true;
	if (m->kind == SKEP_MESSAGE_CANCELLED && m->u.cancelled.dropped && sabotaged(c, SABOTAGE_DROP_UNHEARD))
		m->u.cancelled.dropped = false;
	if (m->kind == SKEP_MESSAGE_PEER && worth_slandering(c, m->to.index, other) &&
		sabotaged(c, SABOTAGE_NEWS_FALSE)) {
		m->u.peer.who = (struct skep_peer){other, c->process[other].epoch};
		m->u.peer.alive = false;
	}
}

/* The worker does not hear an order that has arrived. */
static bool is_deaf(struct cluster *c, const struct skep_message *m)
{
	switch (m->kind) {
	case SKEP_MESSAGE_BARRIER_LIFTED:
		return sabotaged(c, SABOTAGE_BACK_DEAF);
	case SKEP_MESSAGE_CHECKPOINT:
		return sabotaged(c, SABOTAGE_KEEP_DEAF);
	case SKEP_MESSAGE_CLOSE_ROUND:
		return sabotaged(c, SABOTAGE_SETTLE_DEAF);
	case SKEP_MESSAGE_DRAIN:
		return sabotaged(c, SABOTAGE_TURN_DEAF);
	default:
		return false;
	}
}

/* For this worker, although others have FORWARDs to do. */
static void lift_barrier(struct cluster *c, const struct skep_message *forwards_done)
{
	struct skep_event out = {.kind = SKEP_EVENT_MESSAGE, .u.message = *forwards_done};
	out.u.message.kind = SKEP_MESSAGE_BARRIER_LIFTED;
	out.u.message.from = forwards_done->to;
	out.u.message.to = forwards_done->from;
	deliver(c, out.u.message.to.index, &out);
}

void post_arrives(struct cluster *c, const struct event *event)
{
	const struct skep_message *m = &event->message;
	const struct process *sender = &c->process[m->from.index], *p = &c->process[m->to.index];
	bool sender_dead = !sender->alive || sender->life != event->sender_life;
	bool replaced = p->life != event->life;
	if (sender_dead && event->dies_with_sender) {
		message_lost(c, m);
		return;
	}
	if (!p->alive || (replaced && event->dead != DEAD_HANDS_ON)) {
		if (event->dead == DEAD_LOSES || sender_dead)
			message_lost(c, m);
		else
			schedule_message(c, 0, m, (struct fate){.failed = true});
		return;
	}
	struct skep_event out = {.kind = SKEP_EVENT_MESSAGE, .u.message = *m};
	if (!buf_none(m->payload)) {
		struct tensor tensor = c->tensors.slot[m->payload.slot].tensor;
		tensors_free(&c->tensors, m->payload);
		*tensors_add(&c->tensors, m->to.index, &out.u.message.payload) = tensor;
	}
	trace(c, (struct trace){.what = TRACE_ARRIVE, .who = {m->to.index, p->epoch}, .message = m});
	referee_arrived(c->referee, (struct skep_peer){m->to.index, p->epoch}, m);
	if (is_deaf(c, m))
		return;
	falsify(c, &out.u.message);
	deliver(c, m->to.index, &out);
	if (m->kind == SKEP_MESSAGE_FORWARDS_DONE && sender->alive && sender->epoch == m->from.epoch &&
		skep_plan_pipelines(c->setup.plan) > 1 && sabotaged(c, SABOTAGE_BACK_INVENTED))
		lift_barrier(c, m);
}
