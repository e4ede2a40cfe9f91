/* SPDX-License-Identifier: Apache-2.0
 *
 * receive.c - what comes in. A frame reaches the machine only if it is for it, by the rank that it names, carries the payload
 * that the plan has for such a message, and has fields that its kind may have; anything else is counted and dropped. Epochs
 * and rounds are not looked at: what is too old is for the machine to know.
 *
 * The core counts on each message of its run (core/skep.h, duty 6), so a run that has lost one ends and says so. A tensor whose
 * sum is not what its frame says has come to its sender as a send that has failed, and what that means is for the core to know.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/sum.h"
#include "exec/loop/rank.h"

#define DAMAGED_MOST 256u /* tensors of a life: what damages more is out of order, and would do so for ever */

/* Where others may take its place, a process that cannot go on, or that says what it must not, is lost and not the run. False:
 * the run does not bear that. */
static bool drops(struct rank *rank, uint32_t peer, const char *why)
{
	if (!skep_rank_is_root(rank) || rank->setup->newcomers.fit == NULL || rank->phase != PHASE_RUNNING)
		return false;
	if (rank->slots.gone[peer])
		return true;
	fprintf(stderr, "skep: rank %" PRIu32 " is sent away: %s\n", peer, why);
	rank->transport->bury(rank->transport->self, peer);
	skep_incarnations_gone(rank, peer);
	return true;
}

/* The machine will not hear of this message of its run. */
static void lose(struct rank *rank, enum skep_reject kind, uint32_t peer)
{
	assert(peer < rank->transport->ranks);
	char text[sizeof rank->reason];
	if (rank->phase == PHASE_LEAVING) /* nor would it have listened */
		return;
	snprintf(text, sizeof text, "lost a message %s, from rank %" PRIu32, skep_reject_text(kind), peer);
	if (!drops(rank, peer, text))
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

/* ---- tensors, whole and damaged -------------------------------------------------------------------------------------- */

/* Its sender need not keep it any longer. */
static void heard(struct rank *rank, uint32_t peer, uint64_t number, uint64_t bytes)
{
	struct skep_heard *all = &rank->to_answer[peer];
	uint8_t text[SKEP_HEARD_MOST * sizeof all->number[0]];
	if (!skep_heard_add(all, number, bytes))
		return;
	struct skep_wire wire = skep_wire_writer(text, sizeof text);
	for (uint32_t i = 0; i < all->count; i++)
		skep_wire_u64(&wire, &all->number[i]);
	struct skep_frame frame = {.type = SKEP_FRAME_HEARD};
	frame.u.text.bytes = text;
	frame.u.text.count = (uint32_t)(wire.at - text);
	*all = (struct skep_heard){0};
	if (rank->phase != PHASE_LEAVING) /* nothing follows LAST */
		skep_rank_send(rank, peer, &frame, NULL);
}

static bool is_damaged(const struct rank *rank, const struct skep_frame *frame)
{
	uint64_t bytes = 0;
	if (frame->body == 0 || !rank->alive)
		return false;
	const void *body = skep_device_buffer_read(rank->setup->device, frame->u.message.payload, &bytes);
	return body != NULL && skep_sum(0, body, bytes) != frame->body_sum;
}

/* Counted, and asked for again. */
static void refuse_damaged(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_frame again = {.type = SKEP_FRAME_AGAIN, .number = frame->number};
	skep_device_buffer_release(rank->setup->device, frame->u.message.payload);
	skep_delay_queue_forget(&rank->held, frame->u.message.from.index, frame->number);
	skep_complain(rank->setup->rejects, SKEP_REJECT_BODY_SUM, peer);
	rank->total.damaged++;
	if (rank->total.damaged > DAMAGED_MOST)
		lose(rank, SKEP_REJECT_BODY_SUM, peer);
	else if (rank->phase != PHASE_LEAVING)
		skep_rank_send(rank, peer, &again, NULL);
}

/* What becomes of a tensor that was sent. */
static void settle(struct rank *rank, enum skep_unheard_end end, const struct skep_message *message)
{
	struct skep_event event = {.kind = SKEP_EVENT_SEND_FAILED};
	if (end == SKEP_UNHEARD_WAITS)
		return;
	if (end == SKEP_UNHEARD_WHOLE || !rank->alive || rank->stale || rank->phase == PHASE_LEAVING) {
		skep_device_buffer_release(rank->setup->device, message->payload);
		return;
	}
	if (rank->setup->plane != NULL) { /* which may have happened in this plane alone */
		skep_perform_again(rank, message);
		return;
	}
	event.u.message = *message;
	skep_perform_step(rank, &event);
}

void skep_receive_forget(struct rank *rank, uint32_t peer)
{
	struct skep_message message;
	while (skep_unheard_gone(&rank->unheard, peer, &message))
		skep_device_buffer_release(rank->setup->device, message.payload);
	if (peer != SKEP_NO_INDEX)
		rank->to_answer[peer] = (struct skep_heard){0};
}

static void on_sent(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_message message;
	if (rank->phase == PHASE_LEAVING || rank->slots.gone[peer]) /* no answer comes */
		settle(rank, skep_unheard_answer(&rank->unheard, peer, frame->number, false, &message), &message);
	settle(rank, skep_unheard_sent(&rank->unheard, peer, frame->number, &message), &message);
}

/* False: no such numbers are sent. */
static bool on_heard(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_wire wire = skep_wire_reader(frame->u.text.bytes, frame->u.text.count);
	struct skep_message message;
	if (frame->u.text.count > SKEP_HEARD_MOST * sizeof(uint64_t))
		return false;
	while (wire.at < wire.end && wire.ok) {
		uint64_t number = 0;
		skep_wire_u64(&wire, &number);
		settle(rank, skep_unheard_answer(&rank->unheard, peer, number, false, &message), &message);
	}
	return wire.ok;
}

static void on_again(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_message message;
	settle(rank, skep_unheard_answer(&rank->unheard, peer, frame->number, true, &message), &message);
}

/* ---- messages -------------------------------------------------------------------------------------------------------- */

static void *landing(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	struct rank *rank = context;
	void *memory = NULL;
	if (!rank->alive) { /* it was for a life that has ended */
		heard(rank, peer, frame->number, frame->body);
		return NULL;
	}
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
	if (is_damaged(rank, frame)) {
		refuse_damaged(rank, peer, frame);
		return;
	}
	if (frame->body > 0)
		heard(rank, peer, frame->number, frame->body);
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

static void on_fault(struct rank *rank, uint32_t peer, const struct skep_frame *frame)
{
	char text[sizeof rank->reason];
	snprintf(text, sizeof text, "%.*s", (int)frame->u.text.count, (const char *)frame->u.text.bytes);
	for (char *c = text; *c != '\0'; c++)
		*c = (unsigned char)*c < 32 || *c == 127 ? '?' : *c;
	if (!drops(rank, peer, text))
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
		on_fault(rank, peer, frame);
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
	if (skep_rank_is_root(rank)) /* which has assigned it: a process says so on its first step */
		return peer == slot && rank->slots.machine_of[peer] == machine;
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
	case SKEP_FRAME_HEARD:
		fine = on_heard(rank, peer, frame);
		break;
	case SKEP_FRAME_AGAIN:
		on_again(rank, peer, frame);
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
		rank->hears_end = rank->hears_end || fine;
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
		if (skep_rank_is_root(rank))
			rank->heard_ns[event->peer] = rank_now(rank);
		on_frame(rank, event->peer, &event->frame);
		break;
	case SKEP_TRANSPORT_SENT:
		on_sent(rank, event->peer, &event->frame);
		break;
	case SKEP_TRANSPORT_UNREADABLE:
		lose(rank, (enum skep_reject)event->frame.type, event->peer); /* the transport has counted it */
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
	while (taken < SKEP_TRANSPORT_FRAMES_A_TURN && !rank->broken &&
		rank->transport->poll(rank->transport->self, &place, &event)) {
		on_transport(rank, &event);
		taken++;
	}
	return taken > 0;
}
