/* SPDX-License-Identifier: Apache-2.0
 *
 * intake.c - what comes in. A frame reaches the machine only if it is for it, by the rank that it names, and carries the
 * payload that the plan has for such a message; anything else is counted and dropped. Epochs and rounds are not looked
 * at: what is too old is for the machine to know.
 *
 * The core counts on each message of its run (core/skep.h, duty 6), so a run that has lost one ends and says so.
 */
#include <inttypes.h>
#include <stdio.h>

#include "exec/rank.h"

#define FRAMES_A_TURN 64u /* timers, ended operations and signals have their turn too */

/* Most payload bytes that a message may carry: exact where the plan is, an upper bound for a chunk. 0: none belongs. */
static uint64_t payload_limit(const struct skep_plan *plan, const struct skep_message *message)
{
	uint32_t stage = message->stage; /* or slice, that the tensor comes from */
	bool pass = message->kind == SKEP_MESSAGE_FORWARD || message->kind == SKEP_MESSAGE_BACKWARD;
	if (stage >= (pass ? skep_plan_slices(plan) : plan->stages))
		return 0;
	switch (message->kind) {
	case SKEP_MESSAGE_FORWARD:
	case SKEP_MESSAGE_OUTPUT:
	case SKEP_MESSAGE_INPUT:
		return skep_plan_slice_bytes(plan, stage);
	case SKEP_MESSAGE_BACKWARD:
		return stage > 0 ? skep_plan_slice_bytes(plan, stage - 1) : 0;
	case SKEP_MESSAGE_CHUNK:
		return skep_codec_bytes(plan->reduction_codec, plan->stage[stage].parameters) + SKEP_PART_HEADER_BYTES;
	case SKEP_MESSAGE_STATE:
		return message->u.state.chunk < skep_state_chunks(plan, stage)
		               ? skep_state_chunk_bytes(plan, stage, message->u.state.chunk)
		               : 0;
	default:
		return 0;
	}
}

/* The machine will not hear of this message of its run. */
static void lose(struct rank *rank, enum skep_complaint kind, uint32_t peer)
{
	char text[sizeof rank->reason];
	if (rank->phase == PHASE_LEAVING) /* nor would it have listened */
		return;
	snprintf(text, sizeof text, "lost a message %s, from rank %" PRIu32, skep_complaint_text(kind), peer);
	rank_fail(rank, text);
}

static void refuse(struct rank *rank, enum skep_complaint kind, uint32_t peer)
{
	skep_complain(rank->setup->complaints, kind, peer);
	lose(rank, kind, peer);
}

/* May this message be given to the machine? A wrong one is counted. */
static bool acceptable(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	const struct skep_message *message = &frame->u.message;
	if (message->to.index != rank->self || message->from.index != rank_to_machine(rank, peer)) {
		refuse(rank, SKEP_COMPLAINT_MISDIRECTED, peer);
		return false;
	}
	uint64_t limit = payload_limit(rank->plan, message);
	bool exact = message->kind != SKEP_MESSAGE_CHUNK;
	if (frame->body != message->payload_bytes || frame->body > limit || (exact && frame->body != limit) ||
		(limit > 0 && rank->setup->device == NULL)) {
		refuse(rank, SKEP_COMPLAINT_PAYLOAD, peer);
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
		rank_fail(rank, "no memory for a message's payload");
	return memory;
}

static void check_held(struct rank *rank)
{
	if (rank->held.no_memory)
		rank_fail(rank, "no memory for a message that waits for its time");
}

static void on_message(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_message message = frame->u.message;
	void *nothing;
	if (frame->body == 0 && rank->alive && !acceptable(rank, peer, frame))
		return;
	skep_seats_hear(&rank->seats, peer, message.from.epoch);
	if (rank->phase == PHASE_LEAVING || !rank->alive) {
		if (frame->body > 0)
			skep_device_buffer_release(rank->setup->device, message.payload);
		return;
	}
	if (message.kind == SKEP_MESSAGE_CHUNK && frame->body == 0) /* more members than parameters: still a handle */
		message.payload = skep_device_buffer_create(rank->setup->device, 0, &nothing);
	if (!rank->setup->shape || skep_held_arrive(&rank->held, frame->number, &message))
		perform_delivery(rank, &message);
	check_held(rank);
}

void intake_release(struct rank *rank, uint32_t source, uint64_t number)
{
	struct skep_message message;
	if (skep_held_release(&rank->held, source, number, &message))
		perform_delivery(rank, &message);
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
	rank_halt(rank, text);
}

/* Frames that only rank 0 takes; false: this one is none of them, or not as it has to be. */
static bool on_report(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_shaper_flow flow;
	if (!rank_is_chief(rank))
		return false;
	switch (frame->type) {
	case SKEP_FRAME_FLOW:
		if (!flow_sensible(rank, peer, frame))
			return false;
		flow.source = frame->u.flow.source;
		flow.destination = frame->u.flow.destination;
		flow.number = frame->number;
		perform_shape(rank, &flow, frame->u.flow.bytes, frame->u.flow.sent);
		return true;
	case SKEP_FRAME_ROWS:
		return report_rows(rank, peer, frame->u.text.bytes, frame->u.text.count);
	case SKEP_FRAME_LOG:
		report_log(rank, peer, frame->number, frame->u.text.bytes, frame->u.text.count);
		return true;
	case SKEP_FRAME_FAULT:
		on_fault(rank, frame);
		return true;
	default:
		return false;
	}
}

/* The seat's new holder says it itself, or rank 0, which gave it. */
static bool on_seat(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	uint32_t machine = frame->u.seat.machine, seat = frame->u.seat.rank;
	if ((peer != 0 && peer != seat) || !skep_seats_take(&rank->seats, machine, seat, frame->u.seat.life))
		return false;
	lives_on_seat(rank, frame);
	return true;
}

static bool on_gone(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	uint32_t gone = frame->u.seat.rank;
	if (peer != 0 || gone == 0 || gone >= rank->transport->ranks || gone == rank->transport->rank)
		return false;
	if (rank->transport->bury != NULL)
		rank->transport->bury(rank->transport->self, gone);
	lives_gone(rank, gone);
	return true;
}

static void on_frame(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	bool fine = true;
	switch (frame->type) {
	case SKEP_FRAME_MESSAGE:
		on_message(rank, peer, frame);
		break;
	case SKEP_FRAME_LAST:
		rank->seats.last[peer] = true;
		break;
	case SKEP_FRAME_SEAT:
		fine = on_seat(rank, peer, frame);
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
			intake_release(rank, frame->u.release.source, frame->number);
		break;
	case SKEP_FRAME_HALT:
		fine = peer == 0;
		if (fine)
			rank_halt(rank, "rank 0 has ended the run");
		break;
	default:
		fine = on_report(rank, peer, frame);
	}
	if (!fine)
		skep_complain(rank->setup->complaints, SKEP_COMPLAINT_OUT_OF_PLACE, peer);
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
		skep_held_forget(&rank->held, event->frame.u.message.from.index, event->frame.number);
		lose(rank, SKEP_COMPLAINT_BODY_SIZE, event->peer); /* the transport has counted it */
		break;
	case SKEP_TRANSPORT_LOST:
		skep_device_buffer_release(rank->setup->device, event->frame.u.message.payload);
		skep_held_forget(&rank->held, event->frame.u.message.from.index, event->frame.number);
		break;
	case SKEP_TRANSPORT_GONE:
		lives_gone(rank, event->peer);
		break;
	case SKEP_TRANSPORT_NEW:
		lives_new(rank, event->peer);
		break;
	case SKEP_TRANSPORT_BROKEN:
		rank_fail(rank, event->reason); /* perhaps the word still gets through */
		rank->broken = true;
		break;
	}
}

bool intake_frames(struct rank *rank)
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
