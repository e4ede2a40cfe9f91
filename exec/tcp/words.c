/* SPDX-License-Identifier: Apache-2.0
 *
 * words.c - see words.h. One function for each record serves both directions.
 */
#include "exec/tcp/words.h"

#include <assert.h>
#include <string.h>

#define MAGIC 0x70656b73u /* "skep" */

static void bytes(struct skep_wire *wire, uint8_t *field, size_t count)
{
	if ((size_t)(wire->end - wire->at) < count) {
		wire->ok = false;
		return;
	}
	if (wire->reading)
		memcpy(field, wire->at, count);
	else
		memcpy(wire->at, field, count);
	wire->at += count;
}

static bool plain(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)text[i] < 32 || text[i] == 127)
			return false;
	}
	return true;
}

/* Of a field of `size` bytes, its final 0 counted. */
static void text(struct skep_wire *wire, char *field, size_t size)
{
	uint16_t length = wire->reading ? 0 : (uint16_t)strnlen(field, size - 1);
	skep_wire_u16(wire, &length);
	if (length >= size)
		wire->ok = false;
	if (!wire->ok)
		return;
	bytes(wire, (uint8_t *)field, length);
	if (!wire->reading || !wire->ok)
		return;
	field[length] = '\0';
	wire->ok = plain(field, length);
}

static void blob(struct skep_wire *wire, struct skep_blob *blob)
{
	skep_wire_u16(wire, &blob->count);
	if (blob->count > sizeof blob->byte)
		wire->ok = false;
	if (wire->ok)
		bytes(wire, blob->byte, blob->count);
}

static void hello(struct skep_wire *wire, struct skep_hello *hello)
{
	uint32_t magic = MAGIC;
	skep_wire_u32(wire, &magic);
	skep_wire_u16(wire, &hello->protocol);
	if (magic != MAGIC)
		wire->ok = false;
	text(wire, hello->version, sizeof hello->version);
	bytes(wire, hello->secret, sizeof hello->secret);
	skep_wire_bool(wire, &hello->asks);
	text(wire, hello->host, sizeof hello->host);
	text(wire, hello->gpu, sizeof hello->gpu);
	skep_wire_u64(wire, &hello->memory_bytes);
	skep_wire_u32(wire, &hello->cores);
	skep_wire_u16(wire, &hello->port);
	skep_wire_u32(wire, &hello->worker);
}

static void offer(struct skep_wire *wire, struct skep_offer *offer)
{
	skep_wire_u64(wire, &offer->run);
	skep_wire_u64(wire, &offer->seed);
	skep_wire_bool(wire, &offer->seeded);
	skep_wire_bool(wire, &offer->pace);
	skep_wire_u8(wire, &offer->device);
	skep_wire_u64(wire, &offer->silence_ns);
	skep_wire_u64(wire, &offer->kept_as);
	skep_wire_u64(wire, &offer->kept_from);
	skep_wire_u32(wire, &offer->first_round);
	skep_wire_u64(wire, &offer->list_bytes);
	skep_wire_u64(wire, &offer->allocation_bytes);
	bytes(wire, offer->list, sizeof offer->list);
	bytes(wire, offer->allocation, sizeof offer->allocation);
}

static void piece(struct skep_wire *wire, struct skep_piece *piece)
{
	skep_wire_u64(wire, &piece->offset);
	if (!wire->ok)
		return;
	if (wire->reading) {
		piece->count = (uint32_t)(wire->end - wire->at);
		piece->bytes = wire->at;
		wire->ok = piece->count > 0 && piece->count <= SKEP_PIECE_BYTES;
		wire->at = wire->end;
		return;
	}
	assert(piece->count > 0 && piece->count <= SKEP_PIECE_BYTES);
	memcpy(wire->at, piece->bytes, piece->count);
	wire->at += piece->count;
}

static void admitted(struct skep_wire *wire, struct skep_admitted *process)
{
	skep_wire_u32(wire, &process->rank);
	skep_wire_u32(wire, &process->ranks);
	skep_wire_u32(wire, &process->worker);
	blob(wire, &process->certificate);
	blob(wire, &process->authority);
}

static void member(struct skep_wire *wire, struct skep_member *member)
{
	skep_wire_u32(wire, &member->rank);
	skep_wire_u16(wire, &member->port);
	text(wire, member->address, sizeof member->address);
}

static void source(struct skep_wire *wire, struct skep_source *source)
{
	skep_wire_u32(wire, &source->of);
	skep_wire_u64(wire, &source->bytes);
	text(wire, source->name, sizeof source->name);
	bytes(wire, source->digest, sizeof source->digest);
}

static void content(struct skep_wire *wire, uint8_t type, union skep_words *words)
{
	switch (type) {
	case SKEP_RECORD_HELLO:
		hello(wire, &words->hello);
		break;
	case SKEP_RECORD_REFUSED:
		skep_wire_bool(wire, &words->refused.for_good);
		text(wire, words->refused.reason, sizeof words->refused.reason);
		break;
	case SKEP_RECORD_OFFER:
		offer(wire, &words->offer);
		break;
	case SKEP_RECORD_FETCH:
		bytes(wire, words->fetch.hash, sizeof words->fetch.hash);
		skep_wire_u64(wire, &words->fetch.offset);
		break;
	case SKEP_RECORD_PIECE:
		piece(wire, &words->piece);
		break;
	case SKEP_RECORD_READY:
		blob(wire, &words->ready);
		break;
	case SKEP_RECORD_ADMITTED:
		admitted(wire, &words->admitted);
		break;
	case SKEP_RECORD_PREPARED:
		skep_wire_bool(wire, &words->prepared.fine);
		text(wire, words->prepared.reason, sizeof words->prepared.reason);
		break;
	case SKEP_RECORD_MEMBER:
		member(wire, &words->member);
		break;
	case SKEP_RECORD_DISCONNECT:
		skep_wire_u32(wire, &words->disconnect);
		break;
	case SKEP_RECORD_GO:
		skep_wire_u64(wire, &words->go);
		break;
	case SKEP_RECORD_STATUS:
		skep_wire_u64(wire, &words->status);
		break;
	case SKEP_RECORD_OVER:
		skep_wire_bool(wire, &words->over);
		break;
	case SKEP_RECORD_PASSED:
		skep_wire_u64(wire, &words->passed);
		break;
	case SKEP_RECORD_STATE:
		bytes(wire, words->state.secret, sizeof words->state.secret);
		skep_wire_bool(wire, &words->state.keep);
		skep_wire_bool(wire, &words->state.presumed);
		skep_wire_u32(wire, &words->state.stage);
		skep_wire_u32(wire, &words->state.version);
		skep_wire_u64(wire, &words->state.bytes);
		break;
	case SKEP_RECORD_GATHERS:
		skep_wire_u64(wire, &words->gathers);
		break;
	case SKEP_RECORD_SOURCE:
		source(wire, &words->source);
		break;
	case SKEP_RECORD_EVICTED:
		text(wire, words->evicted, sizeof words->evicted);
		break;
	default:
		wire->ok = false;
	}
}

size_t skep_words_encode(uint8_t type, const union skep_words *words, uint8_t ret[SKEP_RECORD_MAX])
{
	union skep_words copy = *words;
	struct skep_wire wire = skep_wire_writer(ret, SKEP_RECORD_MAX);
	content(&wire, type, &copy);
	assert(wire.ok);
	return (size_t)(wire.at - ret);
}

bool skep_words_decode(const struct skep_record *record, union skep_words *ret)
{
	memset(ret, 0, sizeof *ret);
	if (record->content == NULL)
		return false;
	struct skep_wire wire = skep_wire_reader(record->content, record->bytes);
	content(&wire, record->type, ret);
	return wire.ok && wire.at == wire.end;
}
