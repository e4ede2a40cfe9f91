/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.c - the codecs in integer arithmetic on the bits of floats, with a sum or a product where rounding is wanted: no
 * branch, no library call and no instruction for binary16, so that a vectoriser has nothing in its way and every
 * processor gives the same bits. No float is ever converted to an integer type that might not hold it.
 */
#include "models/update/codec.h"

#include <string.h>

#include "models/layers/vector.h"

enum { BLOCK = SKEP_CODEC_BLOCK, TILE = 16 * SKEP_CODEC_BLOCK };

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

/* The sum with 1.5 * 2^23 rounds to an integer, whose low byte is the low byte of the sum's bits. */
static inline void encode_block(uint32_t n, const float *restrict value, unsigned char *restrict encoded)
{
	int32_t largest = 0; /* the order of bits is that of sizes, and that of integers has no NaN */
	for (uint32_t i = 0; i < n; i++) {
		int32_t size = skep_float_bits(value[i]) & 0x7fffffff;
		largest = size > largest ? size : largest;
	}
	int32_t finite = largest < INFINITY_BITS ? 0xff : 0;
	float scale = scale_of(skep_float_of(largest)), inverse = 1.0f / scale;
	int32_t scale_bits = finite ? skep_float_bits(scale) : NAN_BITS;
	memcpy(encoded, &scale_bits, SKEP_CODEC_SCALE_BYTES);
	encoded += SKEP_CODEC_SCALE_BYTES;
	for (uint32_t i = 0; i < n; i++)
		encoded[i] = (unsigned char)(skep_float_bits(value[i] * inverse + 0x1.8p23f) & finite);
}

static inline void decode_block(uint32_t n, const unsigned char *restrict encoded, float *restrict value)
{
	float scale;
	memcpy(&scale, encoded, SKEP_CODEC_SCALE_BYTES);
	encoded += SKEP_CODEC_SCALE_BYTES;
	for (uint32_t i = 0; i < n; i++)
		value[i] = (float)(int8_t)encoded[i] * scale;
}

SKEP_ANY_WIDTH static void encode_int8(size_t n, const float *restrict value, unsigned char *restrict encoded)
{
	for (; n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK)
		encode_block(BLOCK, value, encoded);
	if (n)
		encode_block((uint32_t)n, value, encoded);
}

SKEP_ANY_WIDTH static void decode_int8(size_t n, const unsigned char *restrict encoded, float *restrict value)
{
	for (; n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK)
		decode_block(BLOCK, encoded, value);
	if (n)
		decode_block((uint32_t)n, encoded, value);
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

static inline void encode_quads(uint32_t n, const float *restrict value, unsigned char *restrict encoded)
{
	int32_t largest = 0, code[BLOCK] = {0};
	uint32_t half = (n + 1) / 2;
	for (uint32_t i = 0; i < n; i++) {
		int32_t size = skep_float_bits(value[i]) & 0x7fffffff;
		largest = size > largest ? size : largest;
	}
	int32_t finite = largest < INFINITY_BITS ? -1 : 0;
	float scale = skep_float_of(largest & finite);
	scale = scale < E3M0_SCALE_MIN ? E3M0_SCALE_MIN : scale;
	float inverse = 1.0f / (scale * 0.25f);
	int32_t scale_bits = finite ? skep_float_bits(scale) : NAN_BITS;
	memcpy(encoded, &scale_bits, SKEP_CODEC_SCALE_BYTES);
	encoded += SKEP_CODEC_SCALE_BYTES;
	for (uint32_t i = 0; i < n; i++)
		code[i] = e3m0_of(skep_float_bits(value[i]) & finite, inverse);
	for (uint32_t i = 0; i < half; i++)
		encoded[i] = (unsigned char)(code[i] | (i + half < n ? code[i + half] << 4 : 0));
}

static inline void decode_quads(uint32_t n, const unsigned char *restrict encoded, float *restrict value)
{
	float scale;
	uint32_t half = (n + 1) / 2;
	memcpy(&scale, encoded, SKEP_CODEC_SCALE_BYTES);
	encoded += SKEP_CODEC_SCALE_BYTES;
	for (uint32_t i = 0; i < half; i++)
		value[i] = e3m0_value(encoded[i]) * scale;
	for (uint32_t i = 0; i < n - half; i++)
		value[half + i] = e3m0_value(encoded[i] >> 4) * scale;
}

SKEP_ANY_WIDTH static void encode_e3m0(size_t n, const float *restrict value, unsigned char *restrict encoded)
{
	for (; n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK / 2)
		encode_quads(BLOCK, value, encoded);
	if (n)
		encode_quads((uint32_t)n, value, encoded);
}

SKEP_ANY_WIDTH static void decode_e3m0(size_t n, const unsigned char *restrict encoded, float *restrict value)
{
	for (; n >= BLOCK; n -= BLOCK, value += BLOCK, encoded += SKEP_CODEC_SCALE_BYTES + BLOCK / 2)
		decode_quads(BLOCK, encoded, value);
	if (n)
		decode_quads((uint32_t)n, encoded, value);
}

/* ---- any ---------------------------------------------------------------------------------------------------- */

void skep_codec_encode(enum skep_codec codec, size_t n, const float *value, void *ret_encoded)
{
	switch (codec) {
	case SKEP_CODEC_NONE:
		memcpy(ret_encoded, value, n * sizeof *value);
		break;
	case SKEP_CODEC_FP16:
		encode_fp16(n, value, ret_encoded);
		break;
	case SKEP_CODEC_INT8:
		encode_int8(n, value, ret_encoded);
		break;
	case SKEP_CODEC_E3M0:
		encode_e3m0(n, value, ret_encoded);
		break;
	case SKEP_CODECS:
		break;
	}
}

void skep_codec_decode(enum skep_codec codec, size_t n, const void *encoded, float *ret_value)
{
	switch (codec) {
	case SKEP_CODEC_NONE:
		memcpy(ret_value, encoded, n * sizeof *ret_value);
		break;
	case SKEP_CODEC_FP16:
		decode_fp16(n, encoded, ret_value);
		break;
	case SKEP_CODEC_INT8:
		decode_int8(n, encoded, ret_value);
		break;
	case SKEP_CODEC_E3M0:
		decode_e3m0(n, encoded, ret_value);
		break;
	case SKEP_CODECS:
		break;
	}
}

/* By the tile: what is decoded stays in the first-level cache. */
void skep_codec_add(enum skep_codec codec, size_t n, const float *value, void *encoded, float *ret_sum)
{
	for (size_t first = 0; first < n; first += TILE) {
		float sum[TILE];
		size_t count = n - first < TILE ? n - first : TILE;
		unsigned char *part = (unsigned char *)encoded + skep_codec_bytes(codec, first);
		skep_codec_decode(codec, count, part, sum);
		for (size_t i = 0; i < count; i++)
			sum[i] += value[first + i];
		skep_codec_encode(codec, count, sum, part);
		if (ret_sum)
			skep_codec_decode(codec, count, part, ret_sum + first);
	}
}

void skep_codec_fold(enum skep_codec codec, size_t n, const void *encoded, float *sum)
{
	for (size_t first = 0; first < n; first += TILE) {
		float part[TILE];
		size_t count = n - first < TILE ? n - first : TILE;
		skep_codec_decode(codec, count, (const unsigned char *)encoded + skep_codec_bytes(codec, first), part);
		for (size_t i = 0; i < count; i++)
			sum[first + i] += part[i];
	}
}
