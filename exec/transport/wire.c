/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.c - see wire.h. Integers are little endian; a bool is a byte 0 or 1; a union is written by the kind that selects it.
 */
#include "exec/transport/wire.h"

#include <assert.h>
#include <string.h>

#include "base/sum.h"

#define MAGIC 0x50454b53u /* "SKEP" */
#define VERSION 7u
#define SUM_BYTES 8u /* the last ones of the head */

struct skep_wire skep_wire_writer(void *bytes, size_t size)
{
	uint8_t *at = bytes;
	return (struct skep_wire){.at = at, .end = at + size, .reading = false, .ok = true};
}

struct skep_wire skep_wire_reader(const void *bytes, size_t size)
{
	uint8_t *at = (uint8_t *)(uintptr_t)bytes;
	return (struct skep_wire){.at = at, .end = size > 0 ? at + size : at, .reading = true, .ok = true};
}

/* An unsigned integer of `size` bytes; reads as 0 once the cursor has failed. */
static uint64_t whole(struct skep_wire *wire, uint64_t value, size_t size)
{
	uint64_t got = 0;
	assert(size <= sizeof got && wire->at <= wire->end);
	if (!wire->ok || (size_t)(wire->end - wire->at) < size) {
		wire->ok = false;
		return wire->reading ? 0 : value;
	}
	for (size_t i = 0; i < size; i++) {
		if (wire->reading)
			got |= (uint64_t)wire->at[i] << (8 * i);
		else
			wire->at[i] = (uint8_t)(value >> (8 * i));
	}
	wire->at += size;
	return wire->reading ? got : value;
}

void skep_wire_u8(struct skep_wire *wire, uint8_t *value)
{
	*value = (uint8_t)whole(wire, *value, 1);
}

void skep_wire_u16(struct skep_wire *wire, uint16_t *value)
{
	*value = (uint16_t)whole(wire, *value, 2);
}

void skep_wire_u32(struct skep_wire *wire, uint32_t *value)
{
	*value = (uint32_t)whole(wire, *value, 4);
}

void skep_wire_u64(struct skep_wire *wire, uint64_t *value)
{
	*value = whole(wire, *value, 8);
}

void skep_wire_i64(struct skep_wire *wire, int64_t *value)
{
	uint64_t bits = whole(wire, (uint64_t)*value, 8);
	memcpy(value, &bits, sizeof bits); /* two's complement, without the conversion that C leaves open */
}

void skep_wire_bool(struct skep_wire *wire, bool *value)
{
	uint64_t byte = whole(wire, *value, 1);
	if (byte > 1)
		wire->ok = false;
	*value = byte == 1;
}

void skep_wire_peer(struct skep_wire *wire, struct skep_peer *value)
{
	skep_wire_u32(wire, &value->index);
	skep_wire_u32(wire, &value->epoch);
}

static void tally(struct skep_wire *wire, struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY || message->kind == SKEP_MESSAGE_OUTER_UPDATE);
	skep_wire_i64(wire, &message->u.tally.loss_nano);
	skep_wire_u32(wire, &message->u.tally.count);
	skep_wire_u32(wire, &message->u.tally.base);
	skep_wire_u16(wire, &message->u.tally.used);
	for (int i = 0; i < SKEP_TALLY_PART; i++)
		skep_wire_u16(wire, &message->u.tally.offset[i]);
}

static void reduction(struct skep_wire *wire, struct skep_message *message)
{
	switch (message->kind) {
	case SKEP_MESSAGE_REDUCE:
		skep_wire_u32(wire, &message->u.reduce.rank);
		skep_wire_u32(wire, &message->u.reduce.size);
		skep_wire_peer(wire, &message->u.reduce.next);
		skep_wire_bool(wire, &message->u.reduce.eager);
		skep_wire_bool(wire, &message->u.reduce.discard);
		skep_wire_u32(wire, &message->u.reduce.share);
		skep_wire_bool(wire, &message->u.reduce.checkpoint);
		skep_wire_peer(wire, &message->u.reduce.across);
		skep_wire_peer(wire, &message->u.reduce.along);
		break;
	case SKEP_MESSAGE_ROSTER:
		skep_wire_u32(wire, &message->u.roster.first);
		skep_wire_u32(wire, &message->u.roster.size);
		for (int i = 0; i < SKEP_ROSTER_PART; i++)
			skep_wire_peer(wire, &message->u.roster.peer[i]);
		break;
	case SKEP_MESSAGE_COMMIT:
		skep_wire_u32(wire, &message->u.commit.microbatches);
		skep_wire_u32(wire, &message->u.commit.tied);
		skep_wire_bool(wire, &message->u.commit.checkpoint);
		skep_wire_u64(wire, &message->u.commit.square);
		break;
	default:
		skep_wire_u32(wire, &message->u.chunk.chunk);
		skep_wire_u32(wire, &message->u.chunk.hop);
	}
}

/* What a kind carries beyond the common fields. */
static void span(struct skep_wire *wire, struct skep_message *message)
{
	skep_wire_u16(wire, &message->span.first);
	skep_wire_u16(wire, &message->span.last);
}

static void pass(struct skep_wire *wire, struct skep_message *message)
{
	span(wire, message);
	if (message->kind == SKEP_MESSAGE_FORWARD)
		skep_wire_u32(wire, &message->u.forward.pipeline);
	if (message->kind != SKEP_MESSAGE_BACKWARD)
		return;
	skep_wire_u64(wire, &message->u.backward.needed_ns);
	skep_wire_u64(wire, &message->u.backward.held_ns);
}

/* Yes or no. */
static void word(struct skep_wire *wire, struct skep_message *message)
{
	if (message->kind == SKEP_MESSAGE_CANCELLED)
		skep_wire_bool(wire, &message->u.cancelled.dropped);
	else if (message->kind == SKEP_MESSAGE_STOP)
		skep_wire_bool(wire, &message->u.stop.ok);
	else
		skep_wire_bool(wire, &message->u.close_round.now);
}

/* A norm, or what is none. */
static void number(struct skep_wire *wire, struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_NORM || message->kind == SKEP_MESSAGE_FAULT);
	if (message->kind == SKEP_MESSAGE_NORM) {
		skep_wire_u64(wire, &message->u.norm.square);
		skep_wire_u32(wire, &message->u.norm.term);
		return;
	}
	skep_wire_u8(wire, &message->u.fault.kind);
	skep_wire_u16(wire, &message->u.fault.layer);
	if (message->u.fault.kind >= SKEP_FAULTS)
		wire->ok = false;
}

/* GRANT and FINISHED. */
static void dealing(struct skep_wire *wire, struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_GRANT || message->kind == SKEP_MESSAGE_FINISHED);
	if (message->kind == SKEP_MESSAGE_GRANT) {
		skep_wire_u32(wire, &message->u.grant.count);
		skep_wire_u32(wire, &message->u.grant.in_flight);
		skep_wire_u32(wire, &message->u.grant.pipeline);
		span(wire, message);
		return;
	}
	skep_wire_i64(wire, &message->u.finished.loss_nano);
	skep_wire_u64(wire, &message->u.finished.needed_ns);
	skep_wire_bool(wire, &message->u.finished.ok);
}

static void particulars(struct skep_wire *wire, struct skep_message *message)
{
	switch (message->kind) {
	case SKEP_MESSAGE_FORWARD:
	case SKEP_MESSAGE_INPUT:
	case SKEP_MESSAGE_BACKWARD:
		pass(wire, message);
		break;
	case SKEP_MESSAGE_OUTPUT:
		skep_wire_u64(wire, &message->u.output.needed_ns);
		skep_wire_u64(wire, &message->u.output.held_ns);
		break;
	case SKEP_MESSAGE_CANCELLED:
	case SKEP_MESSAGE_STOP:
	case SKEP_MESSAGE_CLOSE_ROUND:
		word(wire, message);
		break;
	case SKEP_MESSAGE_GRANT:
	case SKEP_MESSAGE_FINISHED:
		dealing(wire, message);
		break;
	case SKEP_MESSAGE_VALIDATED:
		skep_wire_i64(wire, &message->u.validated.loss_nano);
		break;
	case SKEP_MESSAGE_REDUCE:
	case SKEP_MESSAGE_ROSTER:
	case SKEP_MESSAGE_CHUNK:
	case SKEP_MESSAGE_CHUNK_ACK:
	case SKEP_MESSAGE_COMMIT:
		reduction(wire, message);
		break;
	case SKEP_MESSAGE_NORM:
	case SKEP_MESSAGE_FAULT:
		number(wire, message);
		break;
	case SKEP_MESSAGE_PEER:
	case SKEP_MESSAGE_SUSPECT:
		skep_wire_peer(wire, &message->u.peer.who);
		skep_wire_bool(wire, &message->u.peer.alive);
		skep_wire_bool(wire, &message->u.peer.leaving);
		break;
	case SKEP_MESSAGE_ADMIT:
		skep_wire_peer(wire, &message->u.admit.source);
		skep_wire_u32(wire, &message->u.admit.checkpoint);
		break;
	case SKEP_MESSAGE_FETCH:
	case SKEP_MESSAGE_STATE:
		skep_wire_u32(wire, &message->u.state.chunk);
		break;
	case SKEP_MESSAGE_LOAD:
		skep_wire_u64(wire, &message->u.load.queue_milli);
		skep_wire_u64(wire, &message->u.load.needed_ns);
		break;
	case SKEP_MESSAGE_JOIN:
		skep_wire_u64(wire, &message->u.join.started_ns);
		break;
	case SKEP_MESSAGE_TALLY:
	case SKEP_MESSAGE_OUTER_UPDATE:
		tally(wire, message);
		break;
	default: /* the others carry nothing more */
		break;
	}
}

static_assert(sizeof(struct skep_message) == 96, "a field that came or went must come or go here too");

void skep_wire_message(struct skep_wire *wire, struct skep_message *message)
{
	if (wire->reading)
		memset(message, 0, sizeof *message);
	skep_wire_u8(wire, &message->kind);
	if (message->kind == 0 || message->kind >= SKEP_MESSAGE_KINDS)
		wire->ok = false;
	skep_wire_u16(wire, &message->stage);
	skep_wire_u32(wire, &message->round);
	skep_wire_peer(wire, &message->from);
	skep_wire_peer(wire, &message->to);
	skep_wire_u32(wire, &message->number);
	skep_wire_u32(wire, &message->ordinal);
	skep_wire_u64(wire, &message->payload_bytes);
	particulars(wire, message);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void whether(struct skep_wire *wire, struct skep_buf *buf)
{
	bool some = buf->slot != 0 || buf->generation != 0;
	skep_wire_bool(wire, &some);
	if (wire->reading)
		*buf = some ? (struct skep_buf){1, 1} : (struct skep_buf){0, 0};
}

static void done(struct skep_wire *wire, struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	skep_wire_u64(wire, &event->u.done.op.id);
	whether(wire, &event->u.done.out);
	whether(wire, &event->u.done.stash);
	skep_wire_u8(wire, &event->fault);
	skep_wire_u16(wire, &event->layer);
	if (event->fault >= SKEP_FAULTS)
		wire->ok = false;
	skep_wire_i64(wire, &event->u.done.loss_nano); /* or the square */
	skep_wire_u64(wire, &event->u.done.elapsed_ns);
}

static_assert(sizeof(struct skep_event) == 136, "a field that came or went must come or go here too");

void skep_wire_event(struct skep_wire *wire, struct skep_event *event)
{
	if (wire->reading)
		memset(event, 0, sizeof *event);
	skep_wire_u8(wire, &event->kind);
	skep_wire_u64(wire, &event->now);
	switch (event->kind) {
	case SKEP_EVENT_START:
	case SKEP_EVENT_TIMER:
		break;
	case SKEP_EVENT_MESSAGE:
	case SKEP_EVENT_SEND_FAILED:
		skep_wire_message(wire, &event->u.message);
		whether(wire, &event->u.message.payload);
		break;
	case SKEP_EVENT_OP_DONE:
		done(wire, event);
		break;
	case SKEP_EVENT_SUSPECT:
		skep_wire_peer(wire, &event->u.peer);
		break;
	case SKEP_EVENT_PREEMPT_NOTICE:
		skep_wire_u64(wire, &event->u.leave_at);
		break;
	case SKEP_EVENT_EGRESS:
		skep_wire_u64(wire, &event->u.egress_microusd);
		break;
	default:
		wire->ok = false;
	}
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void text(struct skep_wire *wire, struct skep_frame *frame)
{
	size_t room = (size_t)(wire->end - wire->at);
	if (wire->reading) {
		frame->u.text.bytes = wire->at;
		frame->u.text.count = (uint32_t)room;
		wire->at = wire->end;
		return;
	}
	if (frame->u.text.count > room) {
		wire->ok = false;
		return;
	}
	if (frame->u.text.count > 0)
		memcpy(wire->at, frame->u.text.bytes, frame->u.text.count);
	wire->at += frame->u.text.count;
}

static void content(struct skep_wire *wire, struct skep_frame *frame)
{
	switch (frame->type) {
	case SKEP_FRAME_MESSAGE:
		skep_wire_message(wire, &frame->u.message);
		if (frame->body != 0 ? frame->body != frame->u.message.payload_bytes : frame->body_sum != 0)
			wire->ok = false;
		return;
	case SKEP_FRAME_FLOW:
		skep_wire_u32(wire, &frame->u.flow.source);
		skep_wire_u32(wire, &frame->u.flow.destination);
		skep_wire_u64(wire, &frame->u.flow.bytes);
		skep_wire_u64(wire, &frame->u.flow.sent);
		break;
	case SKEP_FRAME_RELEASE:
		skep_wire_u32(wire, &frame->u.release.source);
		break;
	case SKEP_FRAME_SLOT:
	case SKEP_FRAME_GONE:
		skep_wire_u32(wire, &frame->u.slot.machine);
		skep_wire_u32(wire, &frame->u.slot.rank);
		skep_wire_u32(wire, &frame->u.slot.life);
		break;
	case SKEP_FRAME_ROWS:
	case SKEP_FRAME_LOG:
	case SKEP_FRAME_FAULT:
	case SKEP_FRAME_PROBE:
	case SKEP_FRAME_HEARD:
	case SKEP_FRAME_LOCKSTEP:
		text(wire, frame);
		break;
	default: /* HALT, LAST and END say all by being there, AGAIN by its number */
		break;
	}
	if (frame->body != 0 || frame->body_sum != 0)
		wire->ok = false;
}

struct head {
	uint32_t magic, content;
	uint16_t version;
	uint8_t type, zero;
	uint64_t run, number, body, body_sum;
	uint64_t sum; /* of what is before it, and of the content */
};

static void head(struct skep_wire *wire, struct head *head)
{
	skep_wire_u32(wire, &head->magic);
	skep_wire_u16(wire, &head->version);
	skep_wire_u8(wire, &head->type);
	skep_wire_u8(wire, &head->zero);
	skep_wire_u64(wire, &head->run);
	skep_wire_u64(wire, &head->number);
	skep_wire_u64(wire, &head->body);
	skep_wire_u64(wire, &head->body_sum);
	skep_wire_u32(wire, &head->content);
}

static uint64_t sum_of(const uint8_t *bytes, size_t content)
{
	assert(content <= SKEP_FRAME_CONTENT);
	return skep_sum(skep_sum(0, bytes, SKEP_FRAME_HEAD - SUM_BYTES), bytes + SKEP_FRAME_HEAD, content);
}

size_t skep_frame_encode(const struct skep_frame *frame, uint64_t run, uint8_t bytes[SKEP_FRAME_MAX])
{
	struct skep_frame copy = *frame;
	struct skep_wire inside = skep_wire_writer(bytes + SKEP_FRAME_HEAD, SKEP_FRAME_CONTENT);
	content(&inside, &copy);
	assert(inside.ok);
	struct head first = {.magic = MAGIC, .version = VERSION, .type = frame->type, .run = run};
	first.number = frame->number;
	first.body = frame->body;
	first.body_sum = frame->body_sum;
	first.content = (uint32_t)(inside.at - (bytes + SKEP_FRAME_HEAD));
	struct skep_wire wire = skep_wire_writer(bytes, SKEP_FRAME_HEAD);
	head(&wire, &first);
	first.sum = sum_of(bytes, first.content);
	skep_wire_u64(&wire, &first.sum);
	assert(wire.ok && wire.at == wire.end);
	return SKEP_FRAME_HEAD + first.content;
}

enum skep_frame_fault skep_frame_decode(const uint8_t *bytes, size_t size, uint64_t run, struct skep_frame *ret)
{
	struct head first = {0};
	if (size < SKEP_FRAME_HEAD || size > SKEP_FRAME_MAX)
		return SKEP_FRAME_BAD_SIZE;
	struct skep_wire wire = skep_wire_reader(bytes, SKEP_FRAME_HEAD);
	head(&wire, &first);
	skep_wire_u64(&wire, &first.sum);
	if (first.magic != MAGIC)
		return SKEP_FRAME_BAD_MAGIC;
	if (first.version != VERSION)
		return SKEP_FRAME_BAD_VERSION;
	if (first.run != run)
		return SKEP_FRAME_BAD_RUN;
	if (first.content != size - SKEP_FRAME_HEAD)
		return SKEP_FRAME_BAD_SIZE;
	if (first.sum != sum_of(bytes, size - SKEP_FRAME_HEAD))
		return SKEP_FRAME_BAD_SUM;
	if (first.type == 0 || first.type >= SKEP_FRAME_TYPES || first.zero != 0)
		return SKEP_FRAME_BAD_TYPE;
	memset(ret, 0, sizeof *ret);
	ret->type = first.type;
	ret->number = first.number;
	ret->body = first.body;
	ret->body_sum = first.body_sum;
	struct skep_wire inside = skep_wire_reader(bytes + SKEP_FRAME_HEAD, first.content);
	content(&inside, ret);
	return inside.ok && inside.at == inside.end ? SKEP_FRAME_GOOD : SKEP_FRAME_BAD_CONTENT;
}

const char *skep_frame_fault_text(enum skep_frame_fault fault)
{
	static const char *const name[SKEP_FRAME_FAULTS] = {"good", "of a wrong size", "not of this program",
		"of another version of this program", "of another run", "with a wrong sum", "of an unknown type",
		"with a field that cannot be"};
	assert(fault < SKEP_FRAME_FAULTS);
	return name[fault];
}
