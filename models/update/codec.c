/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.c - the codecs in integer arithmetic on the bits of floats, with a sum or a product where rounding is wanted: no
 * branch, no library call and no instruction for binary16, so that a vectoriser has nothing in its way and every
 * processor gives the same bits. No float is ever converted to an integer type that might not hold it.
 */
#include "models/update/codec.h"

#include <stdbool.h>
#include <string.h>

#include "models/layers/vector.h"

enum { BLOCK = SKEP_CODEC_BLOCK, TILE = 16 * SKEP_CODEC_BLOCK, QUADS = SKEP_CODEC_BLOCK / 2 };

#define INFINITY_BITS 0x7f800000
#define NAN_BITS 0x7fc00000

/* ---- fp16 --------------------------------------------------------------------------------------------------- */

/* Three ranges of |x|. Below 2^-14 halves are multiples of 2^-24, and so are floats between 1/2 and 1: a sum with 1/2 rounds.
 * Above, the exponent is rebiased by 15 - 127 = -112 and half a unit of the last place is added, a little less if the place
 * is even; a carry into the exponent is right. From infinity on, a payload must not become that of infinity. */
static inline int32_t half_of(int32_t bits)
{
	int32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
	int32_t small = skep_float_bits(skep_float_of(size) + 0.5f) - skep_float_bits(0.5f);
	int32_t normal = (size - (112 << 23) + 0xfff + (size >> 13 & 1)) >> 13;
	int32_t special = 0x7c00 | (size >> 13 & 0x3ff);
	special = size > INFINITY_BITS && special == 0x7c00 ? 0x7e00 : special;
	normal = size >= skep_float_bits(65520.0f) ? 0x7bff : normal;
	int32_t half = size < skep_float_bits(0x1p-14f) ? small : normal;
	return sign | (size >= INFINITY_BITS ? special : half);
}

/* The same the other way. Below 2^-14: 2^-14 + x, made of bits, less 2^-14. */
static inline int32_t whole_of(int32_t half)
{
	int32_t sign = half & 0x8000 ? INT32_MIN : 0, size = (half & 0x7fff) << 13;
	int32_t small = skep_float_bits(skep_float_of(size + (113 << 23)) - 0x1p-14f);
	int32_t normal = size + (112 << 23);
	int32_t special = size + (224 << 23);
	int32_t bits = size < 1 << 23 ? small : normal;
	return sign | (size >= 31 << 23 ? special : bits);
}

/* In two loops, so that gcc does not choose the width of registers by the narrow numbers. */
static inline void encode_halves(size_t n, const float *restrict value, uint16_t *restrict encoded)
{
	int32_t half[BLOCK];
	for (size_t i = 0; i < n; i++)
		half[i] = half_of(skep_float_bits(value[i]));
	for (size_t i = 0; i < n; i++)
		encoded[i] = (uint16_t)half[i];
}

SKEP_ANY_WIDTH static void encode_fp16(size_t n, const float *restrict value, uint16_t *restrict encoded)
{
	for (; n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += BLOCK)
		encode_halves(BLOCK, value, encoded);
	encode_halves(n, value, encoded);
}

SKEP_ANY_WIDTH static void decode_fp16(size_t n, const uint16_t *restrict encoded, float *restrict value)
{
	for (size_t i = 0; i < n; i++)
		value[i] = skep_float_of(whole_of(encoded[i]));
}

/* ---- int8 --------------------------------------------------------------------------------------------------- */

/* The scale is a normal float, so that its inverse is one too, and so small that 127 times it is finite: the largest such one is
 * just below FLT_MAX / 127. Within these limits |x| times the inverse stays below 127.0001. */
static inline float scale_of(float largest)
{
	float scale = largest / 127.0f;
	scale = scale < 0x1p-126f ? 0x1p-126f : scale;
	return scale > 0x1.020406p121f ? 0x1.020406p121f : scale;
}

/* The bits of the largest |x|, from `largest` on: the order of bits is that of sizes, and that of integers has no NaN. */
static inline int32_t largest_of(size_t n, const float *restrict value, int32_t largest)
{
	for (size_t i = 0; i < n; i++) {
		int32_t size = skep_float_bits(value[i]) & 0x7fffffff;
		largest = size > largest ? size : largest;
	}
	return largest;
}

/* What is written before the integers of a block. */
static inline float put_scale(float scale, bool finite, unsigned char *encoded)
{
	int32_t bits = finite ? skep_float_bits(scale) : NAN_BITS;
	memcpy(encoded, &bits, SKEP_CODEC_SCALE_BYTES);
	return skep_float_of(bits);
}

static inline float scale_at(const unsigned char *encoded)
{
	float scale;
	memcpy(&scale, encoded, SKEP_CODEC_SCALE_BYTES);
	return scale;
}

/* The sum with 1.5 * 2^23 rounds to an integer, whose low byte is the low byte of the sum's bits. */
static inline void put_bytes(
	size_t n, const float *restrict value, float inverse, bool finite, unsigned char *restrict byte)
{
	int32_t kept = finite ? 0xff : 0;
	for (size_t i = 0; i < n; i++)
		byte[i] = (unsigned char)(skep_float_bits(value[i] * inverse + 0x1.8p23f) & kept);
}

static inline void bytes_at(size_t n, const unsigned char *restrict byte, float scale, float *restrict value)
{
	for (size_t i = 0; i < n; i++)
		value[i] = (float)(int8_t)byte[i] * scale;
}

static inline void encode_block(size_t n, const float *restrict value, unsigned char *restrict encoded)
{
	int32_t largest = largest_of(n, value, 0);
	float scale = scale_of(skep_float_of(largest)), inverse = 1.0f / scale;
	bool finite = largest < INFINITY_BITS;
	put_scale(scale, finite, encoded);
	put_bytes(n, value, inverse, finite, encoded + SKEP_CODEC_SCALE_BYTES);
}

static inline void decode_block(size_t n, const unsigned char *restrict encoded, float *restrict value)
{
	bytes_at(n, encoded + SKEP_CODEC_SCALE_BYTES, scale_at(encoded), value);
}

static inline size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Blocks of the usual length have a loop of their own, whose inner ones are of a constant length. */
SKEP_ANY_WIDTH static void encode_int8(
	size_t block, size_t n, const float *restrict value, unsigned char *restrict encoded)
{
	for (; block == BLOCK && n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK)
		encode_block(BLOCK, value, encoded);
	for (size_t count; n > 0; n -= count, value += count, encoded += SKEP_CODEC_SCALE_BYTES + count) {
		count = smaller(n, block);
		encode_block(count, value, encoded);
	}
}

SKEP_ANY_WIDTH static void decode_int8(
	size_t block, size_t n, const unsigned char *restrict encoded, float *restrict value)
{
	for (; block == BLOCK && n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK)
		decode_block(BLOCK, encoded, value);
	for (size_t count; n > 0; n -= count, value += count, encoded += SKEP_CODEC_SCALE_BYTES + count) {
		count = smaller(n, block);
		decode_block(count, encoded, value);
	}
}

/* ---- e3m0 --------------------------------------------------------------------------------------------------- */

/* Below it s 2^-6 would not be a normal float. */
#define E3M0_SCALE_MIN 0x1p-120f

/* y = 4 |x| / s, whose inverse scale is a normal float for any s. Half of the mantissa's range is added to the bits, so that
 * from 1.5 2^k on the exponent is the next one: that is the nearest power of 2, for 1.5 is in the middle between 1 and 2. From
 * 2^-7 s on it is at least s 2^-6, number 1, the middle between that and 0. */
static inline int32_t e3m0_of(int32_t bits, float inverse)
{
	float y = skep_float_of(bits & 0x7fffffff) * inverse;
	int32_t number = ((skep_float_bits(y) + (1 << 22)) >> 23) - (127 + 2 - 7);
	int32_t least = y >= 0x1p-5f;
	number = number > least ? number : least;
	return number > 0 ? number | (bits < 0 ? 8 : 0) : 0;
}

static inline float e3m0_value(int32_t code)
{
	int32_t number = code & 7, sign = code & 8 ? INT32_MIN : 0;
	return skep_float_of(number > 0 ? (120 + number) << 23 | sign : 0);
}

/* From n elements of the first half of a block, and as many of the second or one less. */
static inline void put_quads(size_t n, const float *restrict first, size_t seconds, const float *restrict second,
	float inverse, bool finite, unsigned char *restrict byte)
{
	int32_t kept = finite ? -1 : 0, low[QUADS], high[QUADS] = {0};
	for (size_t i = 0; i < n; i++)
		low[i] = e3m0_of(skep_float_bits(first[i]) & kept, inverse);
	for (size_t i = 0; i < seconds; i++)
		high[i] = e3m0_of(skep_float_bits(second[i]) & kept, inverse);
	for (size_t i = 0; i < n; i++)
		byte[i] = (unsigned char)(low[i] | high[i] << 4);
}

static inline void quads_at(size_t n, float *restrict first, size_t seconds, float *restrict second, float scale,
	const unsigned char *restrict byte)
{
	for (size_t i = 0; i < n; i++)
		first[i] = e3m0_value(byte[i]) * scale;
	for (size_t i = 0; i < seconds; i++)
		second[i] = e3m0_value(byte[i] >> 4) * scale;
}

static inline float quads_scale_of(int32_t largest)
{
	float scale = skep_float_of(largest < INFINITY_BITS ? largest : 0);
	return scale < E3M0_SCALE_MIN ? E3M0_SCALE_MIN : scale;
}

static inline void encode_quads(size_t n, const float *restrict value, unsigned char *restrict encoded)
{
	int32_t largest = largest_of(n, value, 0);
	size_t half = (n + 1) / 2;
	float scale = quads_scale_of(largest), inverse = 1.0f / (scale * 0.25f);
	bool finite = largest < INFINITY_BITS;
	put_scale(scale, finite, encoded);
	encoded += SKEP_CODEC_SCALE_BYTES;
	for (size_t i = 0; i < half; i += QUADS)
		put_quads(smaller(half - i, QUADS), value + i, smaller(n - half - i, QUADS), value + half + i, inverse,
			finite, encoded + i);
}

static inline void decode_quads(size_t n, const unsigned char *restrict encoded, float *restrict value)
{
	size_t half = (n + 1) / 2;
	quads_at(half, value, n - half, value + half, scale_at(encoded), encoded + SKEP_CODEC_SCALE_BYTES);
}

SKEP_ANY_WIDTH static void encode_e3m0(
	size_t block, size_t n, const float *restrict value, unsigned char *restrict encoded)
{
	for (; block == BLOCK && n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK / 2)
		encode_quads(BLOCK, value, encoded);
	for (size_t count; n > 0; n -= count, value += count, encoded += SKEP_CODEC_SCALE_BYTES + (count + 1) / 2) {
		count = smaller(n, block);
		encode_quads(count, value, encoded);
	}
}

SKEP_ANY_WIDTH static void decode_e3m0(
	size_t block, size_t n, const unsigned char *restrict encoded, float *restrict value)
{
	for (; block == BLOCK && n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK / 2)
		decode_quads(BLOCK, encoded, value);
	for (size_t count; n > 0; n -= count, value += count, encoded += SKEP_CODEC_SCALE_BYTES + (count + 1) / 2) {
		count = smaller(n, block);
		decode_quads(count, encoded, value);
	}
}

/* ---- sums with a block that is longer than a tile ------------------------------------------------------------ */

struct wide { /* one block */
	enum skep_codec codec;
	size_t n, bytes; /* elements, and bytes behind the scale; e3m0 has element `bytes` + i beside element i */
	const unsigned char *byte;
	float scale;
};

struct tile { /* bytes of it, and their elements; those of the second half with e3m0 alone */
	size_t at, firsts, seconds;
	float first[QUADS], second[QUADS];
};

static inline struct wide wide_of(enum skep_codec codec, size_t n, const unsigned char *encoded)
{
	size_t bytes = codec == SKEP_CODEC_INT8 ? n : (n + 1) / 2;
	return (struct wide){codec, n, bytes, encoded + SKEP_CODEC_SCALE_BYTES, scale_at(encoded)};
}

static inline void read_tile(const struct wide *w, size_t at, struct tile *tile)
{
	tile->at = at;
	tile->firsts = smaller(w->bytes - at, QUADS);
	tile->seconds = w->codec == SKEP_CODEC_INT8 ? 0 : smaller(w->n - w->bytes - at, QUADS);
	if (w->codec == SKEP_CODEC_INT8)
		bytes_at(tile->firsts, w->byte + at, w->scale, tile->first);
	else
		quads_at(tile->firsts, tile->first, tile->seconds, tile->second, w->scale, w->byte + at);
}

static inline void add_tile(const struct wide *w, const float *value, struct tile *tile)
{
	for (size_t i = 0; i < tile->firsts; i++)
		tile->first[i] += value[tile->at + i];
	for (size_t i = 0; i < tile->seconds; i++)
		tile->second[i] += value[w->bytes + tile->at + i];
}

static inline void store_tile(const struct wide *w, const struct tile *tile, float *ret)
{
	memcpy(ret + tile->at, tile->first, tile->firsts * sizeof *ret);
	if (tile->seconds > 0)
		memcpy(ret + w->bytes + tile->at, tile->second, tile->seconds * sizeof *ret);
}

/* The sums twice, and kept nowhere: once for the largest, which decides on the scale, and once to be encoded. */
SKEP_ANY_WIDTH static void add_wide(
	enum skep_codec codec, size_t n, const float *value, unsigned char *encoded, float *ret_sum)
{
	struct wide was = wide_of(codec, n, encoded), is = was;
	struct tile tile;
	unsigned char *byte = encoded + SKEP_CODEC_SCALE_BYTES;
	int32_t largest = 0;
	for (size_t at = 0; at < was.bytes; at += QUADS) {
		read_tile(&was, at, &tile);
		add_tile(&was, value, &tile);
		largest = largest_of(tile.firsts, tile.first, largest);
		largest = largest_of(tile.seconds, tile.second, largest);
	}
	bool bytes = codec == SKEP_CODEC_INT8, finite = largest < INFINITY_BITS;
	float scale = bytes ? scale_of(skep_float_of(largest)) : quads_scale_of(largest);
	float inverse = 1.0f / (bytes ? scale : scale * 0.25f);
	is.scale = put_scale(scale, finite, encoded);
	for (size_t at = 0; at < was.bytes; at += QUADS) {
		read_tile(&was, at, &tile);
		add_tile(&was, value, &tile);
		if (bytes)
			put_bytes(tile.firsts, tile.first, inverse, finite, byte + at);
		else
			put_quads(tile.firsts, tile.first, tile.seconds, tile.second, inverse, finite, byte + at);
		if (!ret_sum)
			continue;
		read_tile(&is, at, &tile);
		store_tile(&is, &tile, ret_sum);
	}
}

SKEP_ANY_WIDTH static void fold_wide(enum skep_codec codec, size_t n, const unsigned char *encoded, float *sum)
{
	struct wide w = wide_of(codec, n, encoded);
	struct tile tile;
	for (size_t at = 0; at < w.bytes; at += QUADS) {
		read_tile(&w, at, &tile);
		add_tile(&w, sum, &tile);
		store_tile(&w, &tile, sum);
	}
}

/* ---- any ---------------------------------------------------------------------------------------------------- */

void skep_codec_encode(enum skep_codec codec, uint32_t block, size_t n, const float *value, void *ret_encoded)
{
	switch (codec) {
	case SKEP_CODEC_NONE:
		memcpy(ret_encoded, value, n * sizeof *value);
		break;
	case SKEP_CODEC_FP16:
		encode_fp16(n, value, ret_encoded);
		break;
	case SKEP_CODEC_INT8:
		encode_int8(skep_codec_block_of(block, n), n, value, ret_encoded);
		break;
	case SKEP_CODEC_E3M0:
		encode_e3m0(skep_codec_block_of(block, n), n, value, ret_encoded);
		break;
	case SKEP_CODECS:
		break;
	}
}

void skep_codec_decode(enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *ret_value)
{
	switch (codec) {
	case SKEP_CODEC_NONE:
		memcpy(ret_value, encoded, n * sizeof *ret_value);
		break;
	case SKEP_CODEC_FP16:
		decode_fp16(n, encoded, ret_value);
		break;
	case SKEP_CODEC_INT8:
		decode_int8(skep_codec_block_of(block, n), n, encoded, ret_value);
		break;
	case SKEP_CODEC_E3M0:
		decode_e3m0(skep_codec_block_of(block, n), n, encoded, ret_value);
		break;
	case SKEP_CODECS:
		break;
	}
}

/* Elements that are summed at a time: whole blocks, and of one that is longer than a tile, that block. */
static size_t at_a_time(enum skep_codec codec, uint32_t block, size_t n)
{
	size_t whole = skep_codec_blocks(codec) ? skep_codec_block_of(block, n) : 1;
	return whole > TILE ? whole : TILE / whole * whole;
}

/* By the tile: what is decoded stays in the first-level cache. */
void skep_codec_add(enum skep_codec codec, uint32_t block, size_t n, const float *value, void *encoded, float *ret_sum)
{
	size_t most = at_a_time(codec, block, n);
	for (size_t first = 0; first < n; first += most) {
		float sum[TILE];
		size_t count = smaller(n - first, most);
		unsigned char *part = (unsigned char *)encoded + skep_codec_bytes(codec, block, first);
		if (most > TILE) {
			add_wide(codec, count, value + first, part, ret_sum ? ret_sum + first : NULL);
			continue;
		}
		skep_codec_decode(codec, block, count, part, sum);
		for (size_t i = 0; i < count; i++)
			sum[i] += value[first + i];
		skep_codec_encode(codec, block, count, sum, part);
		if (ret_sum)
			skep_codec_decode(codec, block, count, part, ret_sum + first);
	}
}

void skep_codec_fold(enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *sum)
{
	size_t most = at_a_time(codec, block, n);
	for (size_t first = 0; first < n; first += most) {
		float part[TILE];
		size_t count = smaller(n - first, most);
		const unsigned char *from = (const unsigned char *)encoded + skep_codec_bytes(codec, block, first);
		if (most > TILE) {
			fold_wide(codec, count, from, sum + first);
			continue;
		}
		skep_codec_decode(codec, block, count, from, part);
		for (size_t i = 0; i < count; i++)
			sum[first + i] += part[i];
	}
}
