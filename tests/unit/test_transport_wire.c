/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transport_wire.c - frames: what is written is what is read, and nothing else is read: cut short, lengthened, of
 * another program, version or run, with fields that cannot be, or random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sum.h"
#include "exec/transport/wire.h"

#define RUN UINT64_C(0x1122334455667788)

static uint64_t draw(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void fill_tally(struct skep_message *m, uint64_t *s)
{
	m->u.tally.loss_nano = -(int64_t)(draw(s) >> 1);
	m->u.tally.count = (uint32_t)draw(s);
	m->u.tally.base = (uint32_t)draw(s);
	m->u.tally.used = (uint16_t)draw(s);
	for (int i = 0; i < SKEP_TALLY_PART; i++)
		m->u.tally.offset[i] = (uint16_t)draw(s);
}

/* What only some kinds have. */
static void fill_reduction(struct skep_message *m, uint64_t *s)
{
	switch (m->kind) {
	case SKEP_MESSAGE_REDUCE:
		m->u.reduce.rank = (uint32_t)draw(s);
		m->u.reduce.size = (uint32_t)draw(s);
		m->u.reduce.next = (struct skep_peer){(uint32_t)draw(s), (uint32_t)draw(s)};
		m->u.reduce.eager = true;
		m->u.reduce.share = (uint32_t)draw(s);
		m->u.reduce.checkpoint = draw(s) & 1;
		break;
	case SKEP_MESSAGE_ROSTER:
		m->u.roster.first = (uint32_t)draw(s);
		m->u.roster.size = (uint32_t)draw(s);
		for (int i = 0; i < SKEP_ROSTER_PART; i++)
			m->u.roster.peer[i] = (struct skep_peer){(uint32_t)draw(s), (uint32_t)draw(s)};
		break;
	default:
		m->u.chunk.chunk = (uint32_t)draw(s);
		m->u.chunk.hop = (uint32_t)draw(s);
		break;
	}
}

static void fill_union(struct skep_message *m, uint64_t *s)
{
	switch (m->kind) {
	case SKEP_MESSAGE_GRANT:
		m->u.grant.count = (uint32_t)draw(s);
		m->u.grant.in_flight = (uint32_t)draw(s);
		m->span = (struct skep_span){(uint16_t)draw(s), (uint16_t)draw(s)};
		break;
	case SKEP_MESSAGE_FORWARD:
	case SKEP_MESSAGE_INPUT:
		m->span = (struct skep_span){(uint16_t)draw(s), (uint16_t)draw(s)};
		break;
	case SKEP_MESSAGE_CANCELLED:
		m->u.cancelled.dropped = true;
		break;
	case SKEP_MESSAGE_FINISHED:
		m->u.finished.ok = true;
		m->u.finished.needed_ns = draw(s);
		break;
	case SKEP_MESSAGE_REDUCE:
	case SKEP_MESSAGE_ROSTER:
	case SKEP_MESSAGE_CHUNK:
	case SKEP_MESSAGE_CHUNK_ACK:
		fill_reduction(m, s);
		break;
	case SKEP_MESSAGE_BACKWARD:
		m->u.backward.needed_ns = draw(s);
		m->u.backward.held_ns = draw(s);
		m->span = (struct skep_span){(uint16_t)draw(s), (uint16_t)draw(s)};
		break;
	case SKEP_MESSAGE_OUTPUT:
		m->u.output.needed_ns = draw(s);
		m->u.output.held_ns = draw(s);
		break;
	case SKEP_MESSAGE_COMMIT:
		m->u.commit.microbatches = (uint32_t)draw(s), m->u.commit.checkpoint = true;
		break;
	case SKEP_MESSAGE_PEER:
	case SKEP_MESSAGE_SUSPECT:
		m->u.peer.who = (struct skep_peer){(uint32_t)draw(s), (uint32_t)draw(s)};
		m->u.peer.alive = true;
		m->u.peer.leaving = true;
		break;
	case SKEP_MESSAGE_FETCH:
	case SKEP_MESSAGE_STATE:
		m->u.state.chunk = (uint32_t)draw(s);
		break;
	case SKEP_MESSAGE_ADMIT:
		m->u.admit.checkpoint = (uint32_t)draw(s);
		m->u.admit.source = (struct skep_peer){(uint32_t)draw(s), (uint32_t)draw(s)};
		break;
	case SKEP_MESSAGE_LOAD:
		m->u.load.queue_milli = draw(s);
		m->u.load.needed_ns = draw(s);
		break;
	case SKEP_MESSAGE_JOIN:
		m->u.join.started_ns = draw(s);
		break;
	case SKEP_MESSAGE_STOP:
		m->u.stop.ok = true;
		break;
	case SKEP_MESSAGE_TALLY:
		fill_tally(m, s);
		break;
	default:
		break;
	}
}

/* A message with every field that its kind has set to something that no other has. */
static struct skep_message message_of(uint8_t kind, uint64_t seed)
{
	struct skep_message m;
	uint64_t s = seed;
	memset(&m, 0, sizeof m);
	m.kind = kind;
	m.stage = (uint16_t)draw(&s);
	m.round = (uint32_t)draw(&s);
	m.from = (struct skep_peer){(uint32_t)draw(&s), (uint32_t)draw(&s)};
	m.to = (struct skep_peer){(uint32_t)draw(&s), (uint32_t)draw(&s)};
	m.microbatch = (uint32_t)draw(&s);
	m.attempt = (uint32_t)draw(&s);
	m.payload_bytes = draw(&s);
	fill_union(&m, &s);
	return m;
}

static size_t encoded(uint8_t kind, uint64_t seed, bool body, uint8_t bytes[SKEP_FRAME_MAX])
{
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = seed};
	frame.u.message = message_of(kind, seed);
	frame.body = body ? frame.u.message.payload_bytes : 0;
	return skep_frame_encode(&frame, RUN, bytes);
}

static void every_message_comes_back(void **state)
{
	(void)state;
	for (uint8_t kind = 1; kind < SKEP_MESSAGE_KINDS; kind++) {
		for (uint64_t seed = 1; seed < 20; seed++) {
			uint8_t bytes[SKEP_FRAME_MAX];
			struct skep_frame got;
			size_t size = encoded(kind, seed, seed % 2 == 0, bytes);
			struct skep_message want = message_of(kind, seed);
			assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_GOOD);
			assert_int_equal(got.type, SKEP_FRAME_MESSAGE);
			assert_int_equal(got.number, seed);
			assert_int_equal(got.body, seed % 2 == 0 ? want.payload_bytes : 0);
			assert_memory_equal(&got.u.message, &want, sizeof want);
		}
	}
}

static void a_payload_handle_stays_at_home(void **state)
{
	(void)state;
	uint8_t bytes[SKEP_FRAME_MAX];
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = 7}, got;
	frame.u.message = message_of(SKEP_MESSAGE_FORWARD, 7);
	frame.u.message.payload = (struct skep_buf){3, 4};
	size_t size = skep_frame_encode(&frame, RUN, bytes);
	assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_GOOD);
	assert_int_equal(got.u.message.payload.slot, 0);
	assert_int_equal(got.u.message.payload.generation, 0);
}

static void other_frames_come_back(void **state)
{
	(void)state;
	uint8_t bytes[SKEP_FRAME_MAX], text[SKEP_FRAME_CONTENT];
	struct skep_frame got, flow = {.type = SKEP_FRAME_FLOW, .number = 9};
	flow.u.flow.source = 1;
	flow.u.flow.destination = 2;
	flow.u.flow.bytes = 3u << 30;
	flow.u.flow.sent = UINT64_MAX - 5;
	size_t size = skep_frame_encode(&flow, RUN, bytes);
	assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_GOOD);
	assert_int_equal(got.number, 9);
	assert_memory_equal(&got.u.flow, &flow.u.flow, sizeof flow.u.flow);

	struct skep_frame release = {.type = SKEP_FRAME_RELEASE, .number = 11};
	release.u.release.source = 12;
	size = skep_frame_encode(&release, RUN, bytes);
	assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_GOOD);
	assert_int_equal(got.u.release.source, 12);

	memset(text, 'x', sizeof text);
	for (uint32_t count = 0; count <= SKEP_FRAME_CONTENT; count += SKEP_FRAME_CONTENT / 2) {
		struct skep_frame rows = {.type = SKEP_FRAME_ROWS};
		rows.u.text.bytes = text;
		rows.u.text.count = count;
		size = skep_frame_encode(&rows, RUN, bytes);
		assert_int_equal(size, SKEP_FRAME_HEAD + count);
		assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_GOOD);
		assert_int_equal(got.u.text.count, count);
		assert_memory_equal(got.u.text.bytes, text, count);
	}
	struct skep_frame last = {.type = SKEP_FRAME_LAST};
	size = skep_frame_encode(&last, RUN, bytes);
	assert_int_equal(size, SKEP_FRAME_HEAD);
	assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_GOOD);
}

/* The bytes are the same on every machine. */
static void the_bytes_are_little_endian(void **state)
{
	(void)state;
	uint8_t bytes[SKEP_FRAME_MAX];
	struct skep_frame frame = {.type = SKEP_FRAME_RELEASE, .number = 0x0102030405060708};
	frame.u.release.source = 0xa1b2c3d4;
	const uint8_t want[] = {'S', 'K', 'E', 'P', 7, 0, SKEP_FRAME_RELEASE, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
		0x22, 0x11, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0x15,
		0x1e, 0x4c, 0xc8, 0x1b, 0x5a, 0x10, 0x0a, 0xd4, 0xc3, 0xb2, 0xa1};
	assert_int_equal(skep_frame_encode(&frame, RUN, bytes), sizeof want);
	assert_memory_equal(bytes, want, sizeof want);
}

/* After a change that its writer could have made. */
static void sum_again(uint8_t *bytes, size_t size)
{
	uint64_t sum =
		skep_sum(skep_sum(0, bytes, SKEP_FRAME_HEAD - 8), bytes + SKEP_FRAME_HEAD, size - SKEP_FRAME_HEAD);
	for (int i = 0; i < 8; i++)
		bytes[SKEP_FRAME_HEAD - 8 + i] = (uint8_t)(sum >> 8 * i);
}

static enum skep_frame_fault decoded_anew(uint8_t *bytes, size_t size)
{
	struct skep_frame got;
	sum_again(bytes, size);
	return skep_frame_decode(bytes, size, RUN, &got);
}

/* Of whatever kind, in whichever place. */
static void a_flipped_bit_is_noticed(void **state)
{
	(void)state;
	struct skep_frame got;
	for (uint8_t kind = 1; kind < SKEP_MESSAGE_KINDS; kind++) {
		uint8_t bytes[SKEP_FRAME_MAX] = {0};
		size_t size = encoded(kind, 5, false, bytes);
		for (size_t bit = 0; bit < 8 * size; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			enum skep_frame_fault fault = skep_frame_decode(bytes, size, RUN, &got);
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			enum skep_frame_fault wanted = bit / 8 < 4    ? SKEP_FRAME_BAD_MAGIC
			                               : bit / 8 < 6  ? SKEP_FRAME_BAD_VERSION
			                               : bit / 8 < 8  ? SKEP_FRAME_BAD_SUM
			                               : bit / 8 < 16 ? SKEP_FRAME_BAD_RUN
			                               : bit / 8 < 40 ? SKEP_FRAME_BAD_SUM
			                               : bit / 8 < 44 ? SKEP_FRAME_BAD_SIZE
			                                              : SKEP_FRAME_BAD_SUM;
			assert_int_equal(fault, wanted);
		}
		assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_GOOD);
	}
}

static void a_cut_or_longer_frame_is_refused(void **state)
{
	(void)state;
	uint8_t bytes[SKEP_FRAME_MAX + 8] = {0};
	struct skep_frame got;
	for (uint8_t kind = 1; kind < SKEP_MESSAGE_KINDS; kind++) {
		size_t size = encoded(kind, 5, false, bytes);
		for (size_t cut = 0; cut < size; cut++) {
			uint8_t *exact = malloc(cut + 1); /* the sanitizer sees a read past its end */
			memcpy(exact, bytes, cut);
			assert_int_equal(skep_frame_decode(exact, cut, RUN, &got), SKEP_FRAME_BAD_SIZE);
			free(exact);
		}
		assert_int_equal(skep_frame_decode(bytes, size + 1, RUN, &got), SKEP_FRAME_BAD_SIZE);
	}
	assert_int_equal(skep_frame_decode(bytes, SKEP_FRAME_MAX + 1, RUN, &got), SKEP_FRAME_BAD_SIZE);
}

/* The head agrees with the length, but the content is not as long as its kind asks for. */
static void a_content_of_another_length_is_refused(void **state)
{
	(void)state;
	for (uint8_t kind = 1; kind < SKEP_MESSAGE_KINDS; kind++) {
		for (int by = -3; by <= 3; by++) {
			uint8_t bytes[SKEP_FRAME_MAX] = {0};
			size_t size = (size_t)((int)encoded(kind, 5, false, bytes) + by);
			bytes[40] = (uint8_t)(size - SKEP_FRAME_HEAD);
			assert_int_equal(decoded_anew(bytes, size), by == 0 ? SKEP_FRAME_GOOD : SKEP_FRAME_BAD_CONTENT);
		}
	}
}

static void a_stranger_is_known(void **state)
{
	(void)state;
	uint8_t bytes[SKEP_FRAME_MAX];
	struct skep_frame got;
	size_t size = encoded(SKEP_MESSAGE_STOP, 5, false, bytes);
	assert_int_equal(skep_frame_decode(bytes, size, RUN + 1, &got), SKEP_FRAME_BAD_RUN);
	bytes[0] ^= 1;
	assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_BAD_MAGIC);
	bytes[0] ^= 1;
	bytes[4]++;
	assert_int_equal(skep_frame_decode(bytes, size, RUN, &got), SKEP_FRAME_BAD_VERSION);
	bytes[4]--;
	bytes[6] = SKEP_FRAME_TYPES;
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_TYPE);
	bytes[6] = 0;
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_TYPE);
	bytes[6] = SKEP_FRAME_MESSAGE;
	bytes[7] = 1;
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_TYPE);
	bytes[7] = 0;
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_GOOD);
}

static void impossible_fields_are_refused(void **state)
{
	(void)state;
	uint8_t bytes[SKEP_FRAME_MAX];
	size_t size = encoded(SKEP_MESSAGE_STOP, 5, false, bytes);
	bytes[size - 1] = 2; /* a bool */
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_CONTENT);
	bytes[size - 1] = 1;
	bytes[SKEP_FRAME_HEAD] = SKEP_MESSAGE_KINDS;
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_CONTENT);
	bytes[SKEP_FRAME_HEAD] = 0;
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_CONTENT);
	size = encoded(SKEP_MESSAGE_FORWARD, 5, true, bytes);
	bytes[24] ^= 1; /* the tensor beside it would not be as long as the message says */
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_CONTENT);
	struct skep_frame last = {.type = SKEP_FRAME_LAST};
	size = skep_frame_encode(&last, RUN, bytes);
	bytes[24] = 1; /* a tensor beside a frame that has none */
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_CONTENT);
	bytes[24] = 0;
	bytes[32] = 1; /* and the sum of none */
	assert_int_equal(decoded_anew(bytes, size), SKEP_FRAME_BAD_CONTENT);
}

/* What is accepted encodes to the very bytes it was read from; the rest is refused without a fault. */
static void any_bytes_are_safe(void **state)
{
	(void)state;
	uint64_t seed = 1;
	uint32_t good = 0;
	for (int turn = 0; turn < 300000; turn++) {
		uint8_t bytes[SKEP_FRAME_MAX], again[SKEP_FRAME_MAX];
		struct skep_frame got;
		size_t size =
			encoded((uint8_t)(1 + draw(&seed) % (SKEP_MESSAGE_KINDS - 1)), seed, draw(&seed) % 2, bytes);
		for (uint64_t flips = draw(&seed) % 4; flips > 0; flips--)
			bytes[draw(&seed) % size] ^= (uint8_t)(1u << draw(&seed) % 8);
		sum_again(bytes, size); /* else the sum would refuse them all */
		if (skep_frame_decode(bytes, size, RUN, &got) != SKEP_FRAME_GOOD)
			continue;
		good++;
		assert_int_equal(skep_frame_encode(&got, RUN, again), size);
		assert_memory_equal(again, bytes, size);
	}
	assert_true(good > 50000 && good < 300000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_comes_back),
		cmocka_unit_test(a_payload_handle_stays_at_home),
		cmocka_unit_test(other_frames_come_back),
		cmocka_unit_test(the_bytes_are_little_endian),
		cmocka_unit_test(a_flipped_bit_is_noticed),
		cmocka_unit_test(a_cut_or_longer_frame_is_refused),
		cmocka_unit_test(a_content_of_another_length_is_refused),
		cmocka_unit_test(a_stranger_is_known),
		cmocka_unit_test(impossible_fields_are_refused),
		cmocka_unit_test(any_bytes_are_safe),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
