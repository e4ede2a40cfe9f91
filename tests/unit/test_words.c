/* SPDX-License-Identifier: Apache-2.0
 *
 * test_words.c - what `serve` and those who join say to each other: what is written is what is read, and nothing else is read,
 * cut short, lengthened, changed anywhere, or random. A million inputs by an argument: test_words 1000000.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/tcp/words.h"

static uint64_t inputs = 20000;

static uint64_t draw(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void draw_text(uint64_t *s, char *field, size_t size)
{
	size_t length = draw(s) % size;
	for (size_t i = 0; i < length; i++)
		field[i] = (char)(' ' + draw(s) % 94);
	field[length] = '\0';
}

static void draw_bytes(uint64_t *s, uint8_t *field, size_t size)
{
	for (size_t i = 0; i < size; i++)
		field[i] = (uint8_t)draw(s);
}

static void draw_blob(uint64_t *s, struct skep_blob *blob)
{
	blob->count = (uint16_t)(draw(s) % (sizeof blob->byte + 1));
	draw_bytes(s, blob->byte, blob->count);
}

static void draw_hello(uint64_t *s, struct skep_hello *hello)
{
	hello->protocol = (uint16_t)draw(s);
	draw_text(s, hello->version, sizeof hello->version);
	draw_bytes(s, hello->secret, sizeof hello->secret);
	hello->asks = draw(s) & 1;
	draw_text(s, hello->host, sizeof hello->host);
	draw_text(s, hello->gpu, sizeof hello->gpu);
	hello->memory_bytes = draw(s);
	hello->cores = (uint32_t)draw(s);
	hello->port = (uint16_t)draw(s);
	hello->worker = (uint32_t)draw(s);
}

static void draw_offer(uint64_t *s, struct skep_offer *offer)
{
	offer->run = draw(s);
	offer->seed = draw(s);
	offer->seeded = draw(s) & 1;
	offer->pace = draw(s) & 1;
	offer->device = (uint8_t)draw(s);
	offer->silence_ns = draw(s);
	offer->kept_as = draw(s);
	offer->kept_from = draw(s);
	offer->first_round = (uint32_t)draw(s);
	offer->list_bytes = draw(s);
	offer->allocation_bytes = draw(s);
	draw_bytes(s, offer->list, sizeof offer->list);
	draw_bytes(s, offer->allocation, sizeof offer->allocation);
}

/* Of any type that has words; `bytes` [SKEP_PIECE_BYTES] is what a piece points to. */
static void draw_words(uint64_t *s, uint8_t type, union skep_words *ret, uint8_t *bytes)
{
	memset(ret, 0, sizeof *ret);
	switch (type) {
	case SKEP_RECORD_HELLO:
		draw_hello(s, &ret->hello);
		break;
	case SKEP_RECORD_REFUSED:
	case SKEP_RECORD_PREPARED:
		ret->refused.for_good = draw(s) & 1;
		draw_text(s, ret->refused.reason, sizeof ret->refused.reason);
		break;
	case SKEP_RECORD_OFFER:
		draw_offer(s, &ret->offer);
		break;
	case SKEP_RECORD_FETCH:
		draw_bytes(s, ret->fetch.hash, sizeof ret->fetch.hash);
		ret->fetch.offset = draw(s);
		break;
	case SKEP_RECORD_PIECE:
		ret->piece = (struct skep_piece){draw(s), bytes, (uint32_t)(1 + draw(s) % SKEP_PIECE_BYTES)};
		draw_bytes(s, bytes, ret->piece.count);
		break;
	case SKEP_RECORD_READY:
		draw_blob(s, &ret->ready);
		break;
	case SKEP_RECORD_ADMITTED:
		ret->admitted.rank = (uint32_t)draw(s);
		ret->admitted.ranks = (uint32_t)draw(s);
		ret->admitted.worker = (uint32_t)draw(s);
		draw_blob(s, &ret->admitted.certificate);
		draw_blob(s, &ret->admitted.authority);
		break;
	case SKEP_RECORD_MEMBER:
		ret->member.rank = (uint32_t)draw(s);
		ret->member.port = (uint16_t)draw(s);
		draw_text(s, ret->member.address, sizeof ret->member.address);
		break;
	case SKEP_RECORD_STATE:
		draw_bytes(s, ret->state.secret, sizeof ret->state.secret);
		ret->state.keep = draw(s) & 1;
		ret->state.presumed = draw(s) & 1;
		ret->state.stage = (uint32_t)draw(s);
		ret->state.version = (uint32_t)draw(s);
		ret->state.bytes = draw(s);
		break;
	case SKEP_RECORD_SOURCE:
		ret->source.of = (uint32_t)draw(s);
		ret->source.bytes = draw(s);
		draw_text(s, ret->source.name, sizeof ret->source.name);
		draw_bytes(s, ret->source.digest, sizeof ret->source.digest);
		break;
	case SKEP_RECORD_OVER:
		ret->over = draw(s) & 1;
		break;
	case SKEP_RECORD_GATHERS:
		ret->gathers = draw(s);
		break;
	case SKEP_RECORD_EVICTED:
		draw_text(s, ret->evicted, sizeof ret->evicted);
		break;
	default: /* DISCONNECT, GO, STATUS, PASSED */
		ret->go = type != SKEP_RECORD_DISCONNECT ? draw(s) : (uint32_t)draw(s);
	}
}

/* That of a piece points into the record that it was read from. */
static bool same(uint8_t type, const union skep_words *a, const union skep_words *b)
{
	if (type != SKEP_RECORD_PIECE)
		return memcmp(a, b, sizeof *a) == 0;
	return a->piece.offset == b->piece.offset && a->piece.count == b->piece.count &&
	       memcmp(a->piece.bytes, b->piece.bytes, a->piece.count) == 0;
}

static void test_what_is_written_is_read(void **state)
{
	static uint8_t bytes[SKEP_PIECE_BYTES], content[SKEP_RECORD_MAX];
	static union skep_words said, heard;
	uint64_t s = 1;
	(void)state;
	for (int i = 0; i < 200; i++) {
		for (uint8_t type = SKEP_RECORD_MEMBER; type < SKEP_RECORD_RAFT; type++) {
			draw_words(&s, type, &said, bytes);
			struct skep_record record = {.type = type, .content = content};
			record.bytes = (uint32_t)skep_words_encode(type, &said, content);
			assert_true(record.bytes <= SKEP_RECORD_MAX);
			assert_true(skep_words_decode(&record, &heard));
			assert_true(same(type, &said, &heard));
		}
	}
}

/* In memory of exactly their size, so that a byte outside is seen by what watches memory. */
static bool decodes(uint8_t type, const uint8_t *bytes, size_t count, union skep_words *ret)
{
	uint8_t *exact = malloc(count > 0 ? count : 1);
	assert_non_null(exact);
	if (count > 0)
		memcpy(exact, bytes, count);
	bool fine =
		skep_words_decode(&(struct skep_record){.type = type, .content = exact, .bytes = (uint32_t)count}, ret);
	uint8_t again[SKEP_RECORD_MAX];
	if (fine) /* it is what a writer could have written */
		assert_true(skep_words_encode(type, ret, again) == count && memcmp(again, bytes, count) == 0);
	free(exact);
	return fine;
}

static void test_nothing_else_is_read(void **state)
{
	static uint8_t bytes[SKEP_PIECE_BYTES], content[SKEP_RECORD_MAX + 1];
	static union skep_words said, heard;
	uint64_t s = 2, taken = 0;
	(void)state;
	for (uint64_t i = 0; i < inputs; i++) {
		uint8_t type = (uint8_t)(SKEP_RECORD_MEMBER + draw(&s) % (SKEP_RECORD_RAFT - SKEP_RECORD_MEMBER));
		draw_words(&s, type, &said, bytes);
		size_t count = skep_words_encode(type, &said, content);
		if (type != SKEP_RECORD_PIECE) {
			assert_false(decodes(type, content, draw(&s) % count, &heard)); /* cut */
			content[count] = 0;
			if (count < SKEP_RECORD_MAX)
				assert_false(decodes(type, content, count + 1, &heard));
		}
		for (int j = 0; j < 3; j++)
			content[draw(&s) % count] ^= (uint8_t)(1 + draw(&s) % 255);
		taken += decodes(type, content, count, &heard);
		draw_bytes(&s, content, count < 64 ? count : 64);
		taken += decodes(type, content, count < 64 ? count : 64, &heard);
	}
	assert_true(taken > 0); /* some fields may have any value */
}

static void test_texts_are_plain(void **state)
{
	union skep_words said = {.evicted = "line one\nline two"}, heard;
	uint8_t content[SKEP_RECORD_MAX];
	(void)state;
	struct skep_record record = {.type = SKEP_RECORD_EVICTED, .content = content};
	record.bytes = (uint32_t)skep_words_encode(SKEP_RECORD_EVICTED, &said, content);
	assert_false(skep_words_decode(&record, &heard));
	strcpy(said.evicted, "an \033[2Jescape");
	record.bytes = (uint32_t)skep_words_encode(SKEP_RECORD_EVICTED, &said, content);
	assert_false(skep_words_decode(&record, &heard));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_nothing_else_is_read),
		cmocka_unit_test(test_texts_are_plain),
	};
	if (argc > 1)
		inputs = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
