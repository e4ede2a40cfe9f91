/* SPDX-License-Identifier: Apache-2.0
 *
 * perform.c - what the machine asks for is done, in the order in which it asks.
 *
 * A message to oneself skips the transport and the shaper. Any other keeps its payload's buffer until the transport has
 * done with it. With shape, rank 0's network model hears of the message before the message itself goes out.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exec/loop/rank.h"
#include "exec/transport/plane.h"

static bool inbox_push(struct inbox *inbox, const struct skep_message *message)
{
	if (inbox->head == inbox->count)
		inbox->head = inbox->count = 0;
	if (inbox->count == inbox->room) {
		size_t room = 2 * inbox->room + 16;
		struct skep_message *bigger = realloc(inbox->message, room * sizeof *bigger);
		if (bigger == NULL)
			return false;
		inbox->message = bigger;
		inbox->room = room;
	}
	inbox->message[inbox->count++] = *message;
	return true;
}

/* Rank 0's shaper hears of a message that has been sent. */
void skep_perform_shape(struct rank *rank, const struct skep_shaper_flow *flow, uint64_t bytes, skep_time sent)
{
	if (!skep_shaper_start(rank->shaper, flow, bytes, sent))
		skep_rank_fail(rank, "no memory for the network model");
}

static void announce(struct rank *rank, const struct skep_message *message, uint64_t number)
{
	assert(message->to.index <= rank->plan->workers);
	uint64_t bytes = skep_message_bytes(message);
	if (skep_rank_is_root(rank)) {
		struct skep_shaper_flow flow = {
			.source = rank->self, .destination = message->to.index, .number = number};
		skep_perform_shape(rank, &flow, bytes, rank_now(rank));
		return;
	}
	struct skep_frame frame = {.type = SKEP_FRAME_FLOW, .number = number};
	frame.u.flow.source = rank->self;
	frame.u.flow.destination = message->to.index;
	frame.u.flow.bytes = bytes;
	frame.u.flow.sent = rank_now(rank);
	skep_rank_send(rank, 0, &frame, NULL);
}

static void count_use(struct rank *rank, const struct skep_message *message)
{
	assert(message->to.index <= rank->plan->workers);
	enum skep_traffic traffic = skep_message_traffic(message);
	struct skep_link_use *use = &rank->use[message->to.index * SKEP_TRAFFICS + traffic];
	use->source = rank->self;
	use->destination = message->to.index;
	use->traffic = (uint8_t)traffic;
	uint32_t planes = rank->setup->plane != NULL ? skep_plane_count(rank->setup->plane) : 1;
	use->bytes += planes * skep_message_bytes(message); /* of a stage that is split, by all of its ranks */
	use->messages += planes; /* last: what a killed process leaves is heard if it counts more messages */
}

static bool has_payload(const struct skep_message *message)
{
	return message->payload.slot != 0 || message->payload.generation != 0;
}

static void perform_send(struct rank *rank, const struct skep_message *message)
{
	assert(message->from.index == rank->self);
	if (message->to.index == rank->self) {
		if (!inbox_push(&rank->inbox, message))
			skep_rank_fail(rank, "no memory for a message to itself");
		return;
	}
	if (skep_message_reports(rank->plan, message))
		skep_report_flush(rank);
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = ++rank->sent};
	const void *body = NULL;
	frame.u.message = *message;
	if (has_payload(message)) {
		body = skep_device_buffer_read(rank->setup->device, message->payload, &frame.body);
		assert(body != NULL && frame.body == message->payload_bytes);
	}
	if (rank->setup->shape)
		announce(rank, message, frame.number);
	count_use(rank, message);
	skep_slots_update(&rank->slots, rank_of_machine(rank, message->to.index), message->to.epoch);
	skep_rank_send(rank, rank_of_machine(rank, message->to.index), &frame, body);
	if (body != NULL && frame.body == 0)
		skep_device_buffer_release(rank->setup->device, message->payload);
}

static void send_copy(struct rank *rank, const struct skep_message *message)
{
	struct skep_message other = *message;
	other.payload = skep_device_buffer_copy(rank->setup->device, rank->setup->device, message->payload);
	if (has_payload(&other))
		perform_send(rank, &other);
	else
		skep_rank_fail(rank, "no memory for a copy of a message's payload");
}

static void perform(struct rank *rank, const struct skep_action *action)
{
	switch (action->kind) {
	case SKEP_ACTION_SEND:
		if (action->keep)
			send_copy(rank, &action->u.send);
		else
			perform_send(rank, &action->u.send);
		break;
	case SKEP_ACTION_RUN:
		assert(rank->lanes != NULL); /* the directory has no device */
		if (!skep_lanes_push(rank->lanes, &action->u.run))
			skep_rank_fail(rank, "no memory for an operation");
		break;
	case SKEP_ACTION_RELEASE:
		skep_device_buffer_release(rank->setup->device, action->u.release);
		break;
	case SKEP_ACTION_CANCEL: /* of an ALLREDUCE: here the plan says that the hops are messages */
		assert(false);
		break;
	case SKEP_ACTION_SCALE:
		if (rank->setup->scale != NULL)
			rank->setup->scale(rank->setup->scale_context, action->u.scale.kind, action->u.scale.machines);
		break;
	case SKEP_ACTION_NOTE:
		skep_report_note(rank, &action->u.note);
		break;
	default:
		assert(false); /* no machine asks for anything else */
	}
}

/* The machine needs more memory than it has. */
static void relocate_node(struct rank *rank)
{
	void *larger = aligned_alloc(16, (skep_node_wanted(rank->node) + 15) / 16 * 16);
	if (larger == NULL) {
		skep_rank_fail(rank, "no memory for what this worker has to remember");
		return;
	}
	rank->node = skep_node_relocate(larger, rank->node);
	free(rank->memory);
	rank->memory = larger;
}

/* Steps the machine through an event that is stamped. */
static void step_at(struct rank *rank, struct skep_event *event)
{
	skep_lockstep_tell(rank, event);
	skep_node_step(rank->node, rank->plan, event, &rank->actions);
	if (skep_node_wanted(rank->node) > 0)
		relocate_node(rank);
	rank->total.events++;
	skep_report_event(rank, event);
	for (uint32_t i = 0; i < rank->actions.count; i++)
		perform(rank, &rank->actions.item[i]);
}

static void step(struct rank *rank, struct skep_event *event)
{
	event->now = rank_now(rank);
	step_at(rank, event);
}

void skep_perform_told(struct rank *rank, struct skep_event *event)
{
	assert(skep_lockstep_follows(rank));
	step_at(rank, event);
}

void skep_perform_again(struct rank *rank, const struct skep_message *message)
{
	perform_send(rank, message);
}

/* What traffic has cost comes before what may close a round: a process reports what it has sent before it reports a sum. */
void skep_perform_step(struct rank *rank, struct skep_event *event)
{
	struct skep_event egress;
	if (rank->phase == PHASE_LEAVING || !rank->alive)
		return;
	if (skep_lockstep_follows(rank)) {
		skep_lockstep_hold(rank, event);
		return;
	}
	if (skep_rank_is_root(rank) && skep_egress_bill_due(&rank->bill, rank->setup->scenario, &egress))
		step(rank, &egress);
	step(rank, event);
}

void skep_perform_delivery(struct rank *rank, const struct skep_message *message)
{
	struct skep_event event = {.kind = SKEP_EVENT_MESSAGE};
	event.u.message = *message;
	skep_perform_step(rank, &event);
}
