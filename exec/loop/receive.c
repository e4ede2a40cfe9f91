/* SPDX-License-Identifier: Apache-2.0
 *
 * receive.c - what comes in. A frame reaches the machine only if it is for it, by the rank that it names, carries the payload
 * that the plan has for such a message, and has fields that its kind may have; anything else is counted and dropped. Epochs
 * and rounds are not looked at: what is too old is for the machine to know.
 *
 * The core counts on each message of its run (core/skep.h, duty 6), so a run that has lost one ends and says so.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "exec/loop/rank.h"

#define FRAMES_A_TURN 64u /* timers, ended operations and signals have their turn too */

/* The machine will not hear of this message of its run. */
static void lose(struct rank *rank, enum skep_reject kind, uint32_t peer)
{
	assert(peer < rank->transport->ranks);
	char text[sizeof rank->reason];
	if (rank->phase == PHASE_LEAVING) /* nor would it have listened */
		return;
	snprintf(text, sizeof text, "lost a message %s, from rank %" PRIu32, skep_reject_text(kind), peer);
	skep_rank_fail(rank, text);
}

static void refuse(struct rank *rank, enum skep_reject kind, uint32_t peer)
{
	assert((int)kind > SKEP_FRAME_GOOD);
	skep_complain(rank->setup->rejects, kind, peer);
	lose(rank, kind, peer);
}

/* May this message be given to the machine? A wrong one is counted. */
static bool acceptable(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	const struct skep_message *message = &frame->u.message;
	if (message->to.index != rank->self || message->from.index != rank_to_machine(rank, peer)) {
		refuse(rank, SKEP_REJECT_MISDIRECTED, peer);
		return false;
	}
	uint64_t limit = skep_message_payload_max(rank->plan, message);
	bool exact = message->kind != SKEP_MESSAGE_CHUNK;
	if (frame->body != message->payload_bytes || frame->body > limit || (exact && frame->body != limit) ||
		(limit > 0 && rank->setup->device == NULL)) {
		refuse(rank, SKEP_REJECT_PAYLOAD, peer);
		return false;
	}
	if (!skep_message_legal(rank->plan, message)) {
		refuse(rank, SKEP_REJECT_FIELDS, peer);
		return false;
	}
	return true;
}

static void *landing(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	struct rank *rank = context;
	void *memory = NULL;
	if (!rank->alive) /* it was for a life that has ended */
		return NULL;
	if (!acceptable(rank, peer, frame))
		return NULL;
	*ret = skep_device_buffer_create(rank->setup->device, frame->body, &memory);
	if (memory == NULL)
		skep_rank_fail(rank, "no memory for a message's payload");
	return memory;
}

static void check_held(struct rank *rank)
{
	if (rank->held.no_memory)
		skep_rank_fail(rank, "no memory for a message that waits for its time");
}

static void on_message(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	assert(peer < rank->transport->ranks);
	struct skep_message message = frame->u.message;
	void *nothing;
	if (frame->body == 0 && rank->alive && !acceptable(rank, peer, frame))
		return;
	skep_slots_update(&rank->slots, peer, message.from.epoch);
	if (rank->phase == PHASE_LEAVING || !rank->alive) {
		if (frame->body > 0)
			skep_device_buffer_release(rank->setup->device, message.payload);
		return;
	}
	if (message.kind == SKEP_MESSAGE_CHUNK && frame->body == 0) /* more members than parameters: still a handle */
		message.payload = skep_device_buffer_create(rank->setup->device, 0, &nothing);
	if (!rank->setup->shape || skep_delay_queue_arrive(&rank->held, frame->number, &message))
		skep_perform_delivery(rank, &message);
	check_held(rank);
}

void skep_receive_release(struct rank *rank, uint32_t source, uint64_t number)
{
	struct skep_message message;
	if (skep_delay_queue_release(&rank->held, source, number, &message))
		skep_perform_delivery(rank, &message);
	check_held(rank);
}

static bool flow_sensible(const struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	uint32_t source = frame->u.flow.source, destination = frame->u.flow.destination;
	return rank->shaper != NULL && source == rank_to_machine(rank, peer) && destination <= rank->plan->workers &&
	       destination != source;
}

static void on_fault(struct rank *rank, const struct skep_frame *frame)
{
	char text[sizeof rank->reason];
	snprintf(text, sizeof text, "%.*s", (int)frame->u.text.count, (const char *)frame->u.text.bytes);
	skep_rank_halt(rank, text);
}

/* Frames that only rank 0 takes; false: this one is none of them, or not as it has to be. */
static bool on_report(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	assert(frame->type < SKEP_FRAME_TYPES);
	struct skep_shaper_flow flow;
	if (!skep_rank_is_root(rank))
		return false;
	switch (frame->type) {
	case SKEP_FRAME_FLOW:
		if (!flow_sensible(rank, peer, frame))
			return false;
		flow.source = frame->u.flow.source;
		flow.destination = frame->u.flow.destination;
		flow.number = frame->number;
		skep_perform_shape(rank, &flow, frame->u.flow.bytes, frame->u.flow.sent);
		return true;
	case SKEP_FRAME_ROWS:
		return skep_report_rows(rank, peer, frame->u.text.bytes, frame->u.text.count);
	case SKEP_FRAME_LOG:
		skep_report_log(rank, peer, frame->number, frame->u.text.bytes, frame->u.text.count);
		return true;
	case SKEP_FRAME_FAULT:
		on_fault(rank, frame);
		return true;
	default:
		return false;
	}
}

/* A SLOT frame comes from the rank that now runs the machine, or from rank 0, which assigned it. False: from another
 * rank, or with fields that are impossible. */
static bool on_slot(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	assert(peer < rank->transport->ranks);
	uint32_t machine = frame->u.slot.machine, slot = frame->u.slot.rank;
	if ((peer != 0 && peer != slot) || !skep_slots_assign(&rank->slots, machine, slot, frame->u.slot.life))
		return false;
	skep_incarnations_on_slot(rank, frame);
	return true;
}

static bool on_gone(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	assert(peer < rank->transport->ranks);
	uint32_t gone = frame->u.slot.rank;
	if (peer != 0 || gone == 0 || gone >= rank->transport->ranks || gone == rank->transport->rank)
		return false;
	if (rank->transport->bury != NULL)
		rank->transport->bury(rank->transport->self, gone);
	skep_incarnations_gone(rank, gone);
	return true;
}

static void on_frame(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	assert(peer < rank->transport->ranks);
	bool fine = true;
	switch (frame->type) {
	case SKEP_FRAME_MESSAGE:
		on_message(rank, peer, frame);
		break;
	case SKEP_FRAME_LAST:
		rank->slots.last[peer] = true;
		break;
	case SKEP_FRAME_SLOT:
		fine = on_slot(rank, peer, frame);
		break;
	case SKEP_FRAME_GONE:
		fine = on_gone(rank, peer, frame);
		break;
	case SKEP_FRAME_END:
		fine = peer == 0;
		rank->over = rank->over || fine;
		break;
	case SKEP_FRAME_RELEASE:
		fine = peer == 0 && rank->setup->shape;
		if (fine)
			skep_receive_release(rank, frame->u.release.source, frame->number);
		break;
	case SKEP_FRAME_HALT:
		fine = peer == 0;
		if (fine)
			skep_rank_halt(rank, "rank 0 has ended the run");
		break;
	default:
		fine = on_report(rank, peer, frame);
	}
	if (!fine)
		skep_complain(rank->setup->rejects, SKEP_REJECT_OUT_OF_PLACE, peer);
}

static void on_transport(struct rank *rank, const struct skep_transport_event *event)
{
	switch (event->kind) {
	case SKEP_TRANSPORT_ARRIVED:
		on_frame(rank, event->peer, &event->frame);
		break;
	case SKEP_TRANSPORT_SENT:
		skep_device_buffer_release(rank->setup->device, event->frame.u.message.payload);
		break;
	case SKEP_TRANSPORT_SPOILT:
		skep_device_buffer_release(rank->setup->device, event->frame.u.message.payload);
		skep_delay_queue_forget(&rank->held, event->frame.u.message.from.index, event->frame.number);
		lose(rank, SKEP_REJECT_BODY_SIZE, event->peer); /* the transport has counted it */
		break;
	case SKEP_TRANSPORT_LOST:
		skep_device_buffer_release(rank->setup->device, event->frame.u.message.payload);
		skep_delay_queue_forget(&rank->held, event->frame.u.message.from.index, event->frame.number);
		break;
	case SKEP_TRANSPORT_GONE:
		skep_incarnations_gone(rank, event->peer);
		break;
	case SKEP_TRANSPORT_NEW:
		skep_incarnations_new(rank, event->peer);
		break;
	case SKEP_TRANSPORT_BROKEN:
		skep_rank_fail(rank, event->reason); /* perhaps the word still gets through */
		rank->broken = true;
		break;
	}
}

bool skep_receive_frames(struct rank *rank)
{
	struct skep_landing place = {.context = rank, .memory = landing};
	struct skep_transport_event event;
	uint32_t taken = 0;
	while (taken < FRAMES_A_TURN && !rank->broken && rank->transport->poll(rank->transport->self, &place, &event)) {
		on_transport(rank, &event);
		taken++;
	}
	return taken > 0;
}
