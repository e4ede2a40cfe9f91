/* SPDX-License-Identifier: Apache-2.0
 *
 * test_codec.c - codecs against models of them in double precision, over every binary16 pattern and over floats of every size
 * and kind; what becomes of numbers that are none; exact sizes; and the very bits, which no compiler or machine may change.
 */
#include "models/update/codec.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"

enum { BLOCK = SKEP_CODEC_BLOCK, BLOCK_BYTES = 4 + BLOCK };

static const enum skep_codec codecs[] = {SKEP_CODEC_NONE, SKEP_CODEC_FP16, SKEP_CODEC_INT8, SKEP_CODEC_E3M0};

_Static_assert(sizeof codecs / sizeof *codecs == SKEP_CODECS, "all");

static float float_of(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static uint32_t bits_of(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* Of exactly the size that it needs, so that a sanitizer sees each byte too many. */
static void *exactly(uint64_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);
	assert_non_null(memory);
	return memory;
}

static void *encoded(enum skep_codec codec, size_t n, const float *value)
{
	void *to = exactly(skep_codec_bytes(codec, SKEP_CODEC_BLOCK, n));
	skep_codec_encode(codec, SKEP_CODEC_BLOCK, n, value, to);
	return to;
}

static float *decoded(enum skep_codec codec, size_t n, const void *from)
{
	float *value = exactly(n * sizeof *value);
	skep_codec_decode(codec, SKEP_CODEC_BLOCK, n, from, value);
	return value;
}

/* What arrives of the values sent. */
static float *sent(enum skep_codec codec, size_t n, const float *value)
{
	void *payload = encoded(codec, n, value);
	float *arrived = decoded(codec, n, payload);
	free(payload);
	return arrived;
}

static float *random_bits(uint64_t seed, size_t n)
{
	float *value = exactly(n * sizeof *value);
	for (size_t i = 0; i < n; i++)
		value[i] = float_of((uint32_t)skep_random_next(&seed));
	return value;
}

/* Uniform in size on a logarithmic scale of the given exponents of 2, either sign. */
static float *random_sizes(uint64_t seed, size_t n, int low, int high)
{
	float *value = exactly(n * sizeof *value);
	for (size_t i = 0; i < n; i++) {
		int exponent = low + (int)skep_random_below(&seed, (uint32_t)(high - low + 1));
		double mantissa = 1 + (double)skep_random_below(&seed, 1u << 23) * 0x1p-23;
		value[i] = (float)ldexp(skep_random_below(&seed, 2) ? mantissa : -mantissa, exponent);
	}
	return value;
}

/* ---- sizes -------------------------------------------------------------------------------------------------- */

static void test_sizes(void **state)
{
	(void)state;
	uint64_t scales = 0;
	for (uint64_t n = 0; n < 1000; n++) {
		assert_true(skep_codec_bytes(SKEP_CODEC_NONE, SKEP_CODEC_BLOCK, n) == 4 * n);
		assert_true(skep_codec_bytes(SKEP_CODEC_FP16, SKEP_CODEC_BLOCK, n) == 2 * n);
		assert_true(skep_codec_bytes(SKEP_CODEC_INT8, SKEP_CODEC_BLOCK, n) == n + 4 * scales);
		assert_true(skep_codec_bytes(SKEP_CODEC_E3M0, SKEP_CODEC_BLOCK, n) == (n + 1) / 2 + 4 * scales);
		scales += n % 64 == 0; /* element n, if there is one, begins a block */
	}
	assert_true(skep_codec_bytes(SKEP_CODEC_INT8, SKEP_CODEC_BLOCK, UINT64_C(1) << 60) ==
		    (UINT64_C(1) << 60) + (UINT64_C(1) << 56));
}

/* Nothing is written beyond the size, nothing within is left out. */
static void test_exactly_the_size_is_written(void **state)
{
	(void)state;
	unsigned char a[4 * 300 + 1], b[4 * 300 + 1];
	float *value = random_bits(3, 300);
	for (size_t c = 0; c < SKEP_CODECS; c++)
		for (size_t n = 0; n <= 300; n++) {
			memset(a, 0x55, sizeof a), memset(b, 0xaa, sizeof b);
			skep_codec_encode(codecs[c], SKEP_CODEC_BLOCK, n, value, a);
			skep_codec_encode(codecs[c], SKEP_CODEC_BLOCK, n, value, b);
			size_t bytes = skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, n);
			assert_memory_equal(a, b, bytes);
			for (size_t i = bytes; i < sizeof a; i++)
				assert_true(a[i] == 0x55 && b[i] == 0xaa);
		}
	free(value);
}

/* Whole blocks stand alone: pieces are the whole. */
static void test_pieces_are_the_whole(void **state)
{
	(void)state;
	enum { N = 40 * BLOCK + 17 };
	float *value = random_sizes(4, N, -30, 10);
	for (size_t c = 0; c < SKEP_CODECS; c++) {
		unsigned char *whole = encoded(codecs[c], N, value);
		float *back = decoded(codecs[c], N, whole);
		for (size_t first = 0; first < N; first += 3 * BLOCK) {
			size_t n = N - first < 3 * BLOCK ? N - first : 3 * BLOCK;
			const unsigned char *at = whole + skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, first);
			void *piece = encoded(codecs[c], n, value + first);
			float *piece_back = decoded(codecs[c], n, at);
			assert_memory_equal(piece, at, skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, n));
			assert_memory_equal(piece_back, back + first, n * sizeof(float));
			free(piece), free(piece_back);
		}
		free(whole), free(back);
	}
	free(value);
}

/* ---- fp16 --------------------------------------------------------------------------------------------------- */

static double value_of_half(uint32_t half)
{
	int exponent = (int)(half >> 10 & 31);
	double mantissa = (double)(half & 1023), sign = half & 0x8000 ? -1 : 1;
	if (exponent == 31)
		return half & 1023 ? NAN : sign * INFINITY;
	return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

/* The nearest multiple of the spacing of halves around |x|, ties to even. */
static double nearest_half(double x)
{
	int exponent;
	if (!isfinite(x))
		return x;
	frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
	double spacing = ldexp(1, (exponent > -13 ? exponent : -13) - 11);
	double near = nearbyint(x / spacing) * spacing;
	return copysign(fmin(fabs(near), 65504), x);
}

static void test_every_half_goes_both_ways(void **state)
{
	(void)state;
	uint16_t *half = exactly(65536 * sizeof *half);
	for (uint32_t i = 0; i < 65536; i++)
		half[i] = (uint16_t)i;
	float *value = decoded(SKEP_CODEC_FP16, 65536, half);
	uint16_t *again = encoded(SKEP_CODEC_FP16, 65536, value);
	for (uint32_t i = 0; i < 65536; i++) {
		double expected = value_of_half(i);
		assert_true(isnan(expected) ? isnan(value[i]) : (double)value[i] == expected);
		assert_true(!signbit(value[i]) == !(i & 0x8000));
		assert_int_equal(again[i], i);
	}
	free(half), free(value), free(again);
}

static void check_halves(size_t n, const float *value)
{
	float *got = sent(SKEP_CODEC_FP16, n, value);
	for (size_t i = 0; i < n; i++) {
		double x = (double)value[i], expected = nearest_half(x);
		bool same = isnan(x) ? isnan(got[i]) : (double)got[i] == expected;
		if (!same || !signbit(got[i]) != !signbit(value[i]))
			fail_msg("%a became %a, not %a", x, (double)got[i], expected);
		double most = fmax(fabs(x) * 0x1p-11, 0x1p-25);
		assert_true(!(fabs(x) <= 65504) || fabs((double)got[i] - x) <= most);
	}
	free(got);
}

static void test_halves_are_the_nearest(void **state)
{
	(void)state;
	enum { N = 1000000, NEAR = 5 };
	float *value = random_bits(1, N), *around = exactly(2 * 0x7c00 * NEAR * sizeof *around);
	check_halves(N, value);
	free(value);
	value = random_sizes(2, N, -27, 17);
	check_halves(N, value);
	/* Every half, every middle between two, and their neighbours among the floats. */
	for (uint32_t i = 0; i < 2 * 0x7c00; i++) {
		double next = i / 2 == 0x7bff ? 65536 : value_of_half(i / 2 + 1);
		uint32_t bits = bits_of((float)(i % 2 ? (value_of_half(i / 2) + next) / 2 : value_of_half(i / 2)));
		for (uint32_t j = 0; j < NEAR; j++)
			around[i * NEAR + j] = float_of(bits + j - (bits > NEAR ? NEAR / 2 : 0));
	}
	check_halves(2 * 0x7c00 * NEAR, around);
	free(value), free(around);
}

static void test_halves_of_what_is_no_number(void **state)
{
	(void)state;
	const float value[] = {INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 65519.996f, 65520.0f, -65536.0f, FLT_MIN, -0.0f,
		float_of(1), float_of(0x7f800001), float_of(0xff800001), float_of(0x7fffffff), float_of(0xffc00000)};
	const uint16_t expected[] = {
		0x7c00, 0xfc00, 0x7bff, 0xfbff, 0x7bff, 0x7bff, 0xfbff, 0, 0x8000, 0, 0x7e00, 0xfe00, 0x7fff, 0xfe00};
	enum { N = sizeof value / sizeof *value };
	assert_int_equal(N, sizeof expected / sizeof *expected);
	uint16_t *got = encoded(SKEP_CODEC_FP16, N, value);
	assert_memory_equal(got, expected, sizeof expected);
	free(got);
}

/* ---- int8 --------------------------------------------------------------------------------------------------- */

static double largest_of(size_t n, const float *value)
{
	double largest = 0;
	for (size_t i = 0; i < n; i++)
		largest = isfinite(value[i]) ? fmax(largest, fabs((double)value[i])) : INFINITY;
	return largest;
}

static void check_block(size_t n, const float *value, const unsigned char *payload, const float *got)
{
	float scale;
	double m = largest_of(n, value), most = fmax(1.0001 * m / 254, 0x1p-127);
	memcpy(&scale, payload, sizeof scale);
	if (isinf(m)) {
		for (size_t i = 0; i < n; i++)
			assert_true(isnan(got[i]) && payload[4 + i] == 0);
		assert_true(bits_of(scale) == 0x7fc00000);
		return;
	}
	assert_true((double)scale == 0x1p-126 || fabs((double)scale * 127 / m - 1) <= 0x1p-23);
	for (size_t i = 0; i < n; i++) {
		double x = (double)value[i], code = (double)(signed char)payload[4 + i];
		assert_true(fabs(code) <= 127 && fabs(code - x / (double)scale) <= 0.50004);
		assert_true(isfinite(got[i]) && (double)got[i] == (double)(float)(code * (double)scale));
		if (!(fabs((double)got[i] - x) <= most))
			fail_msg("%a became %a beside a largest of %a", x, (double)got[i], m);
		assert_true(x != 0 || bits_of(got[i]) == 0);
	}
}

static void check_int8(size_t n, const float *value)
{
	unsigned char *payload = encoded(SKEP_CODEC_INT8, n, value);
	float *got = decoded(SKEP_CODEC_INT8, n, payload);
	for (size_t first = 0; first < n; first += BLOCK)
		check_block(n - first < BLOCK ? n - first : BLOCK, value + first, payload + first / BLOCK * BLOCK_BYTES,
			got + first);
	free(payload), free(got);
}

static void test_blocks_within_their_bound(void **state)
{
	(void)state;
	enum { N = 1000 };
	for (int low = -149; low <= 127; low++)
		for (int range = 0; range <= 30 && low + range <= 127; range += 5) {
			float *value = random_sizes((uint64_t)(low + 1000 * range), N, low, low + range);
			check_int8(N, value);
			free(value);
		}
	for (size_t n = 1; n <= 3 * BLOCK; n++) {
		float *value = random_sizes(n, n, -20, 0), *bits = random_bits(n, n);
		check_int8(n, value), check_int8(n, bits);
		free(value), free(bits);
	}
}

/* The floats next to the ends of what scales can do, alone and beside others. */
static void test_blocks_at_the_ends(void **state)
{
	(void)state;
	const float ends[] = {FLT_MAX, 127 * FLT_MIN, FLT_MIN, FLT_MAX / 127, float_of(1), float_of(127), 0.0f};
	for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
		for (uint32_t step = 0; step < 1000; step++) {
			float value[BLOCK] = {0};
			uint32_t bits = bits_of(ends[e]);
			value[0] = float_of(bits >= 500 && e > 0 ? bits + step - 500 : bits > step ? bits - step : 0);
			value[1] = -value[0] / 3, value[2] = float_of(1), value[3] = -FLT_MIN, value[4] = -0.0f;
			for (uint32_t i = 5; i < 50; i++)
				value[i] = value[0] * (float)i / 50;
			check_int8(BLOCK, value), check_int8(1, value);
		}
}

/* Scale 1: integers are exact, halves go to the even one. Zeros stay what they are. */
static void test_blocks_of_integers(void **state)
{
	(void)state;
	float value[2 * 127 + 2], zeros[100] = {0};
	for (int i = -127; i <= 127; i++) /* each block has a 127 or a -127 in front */
		value[i + 127] = (float)i;
	for (int i = -126; i <= 126; i++) {
		const float block[] = {127, (float)i, (float)i + 0.5f, -127, (float)-i};
		float *got = sent(SKEP_CODEC_INT8, 5, block);
		assert_true(got[0] == 127 && got[1] == (float)i && got[3] == -127 && got[4] == (float)-i);
		assert_true(got[2] == (float)(i % 2 ? i + 1 : i));
		free(got);
	}
	float *got = sent(SKEP_CODEC_INT8, 100, zeros);
	assert_memory_equal(got, zeros, sizeof zeros);
	free(got);
	check_int8(2 * 127 + 1, value);
}

/* The block is lost, whatever the number that is none, wherever it is; its neighbours do not notice. */
static void test_blocks_with_what_is_no_number(void **state)
{
	(void)state;
	const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, float_of(0x7f800001), float_of(0xffffffff)};
	enum { N = 3 * BLOCK - 9 };
	float *value = random_sizes(8, N, -3, 3);
	for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
		for (size_t i = 0; i < N; i++) {
			unsigned char *clean = encoded(SKEP_CODEC_INT8, N, value);
			float was = value[i];
			memcpy(&value[i], &bad[b], sizeof bad[b]);
			unsigned char *payload = encoded(SKEP_CODEC_INT8, N, value);
			check_int8(N, value);
			for (size_t at = 0; at < skep_codec_bytes(SKEP_CODEC_INT8, SKEP_CODEC_BLOCK, N); at++)
				assert_true(at / BLOCK_BYTES == i / BLOCK || payload[at] == clean[at]);
			value[i] = was;
			free(clean), free(payload);
		}
	free(value);
}

/* ---- e3m0 --------------------------------------------------------------------------------------------------- */

enum { QUADS_BYTES = 4 + BLOCK / 2 };

static uint32_t quad_of(const unsigned char *payload, size_t n, size_t i)
{
	size_t half = (n + 1) / 2;
	return i < half ? payload[4 + i] & 15u : payload[4 + i - half] >> 4;
}

/* The nearest of what 4 bits can be, found by looking at all of it; the larger one of two as near. */
static double nearest_quad(double x, double scale)
{
	double nearest = 0;
	for (int number = 1; number < 8; number++) {
		double value = ldexp(scale, number - 7);
		if (fabs(fabs(x) - value) <= fabs(fabs(x) - nearest))
			nearest = value;
	}
	return nearest == 0 ? 0 : copysign(nearest, x);
}

static void check_quads_block(size_t n, const float *value, const unsigned char *payload, const float *got)
{
	float scale;
	double m = largest_of(n, value);
	memcpy(&scale, payload, sizeof scale);
	for (size_t i = 0; isinf(m) && i < n; i++)
		assert_true(isnan(got[i]) && quad_of(payload, n, i) == 0);
	assert_true(isinf(m) ? bits_of(scale) == 0x7fc00000 : (double)scale == fmax(m, 0x1p-120));
	assert_true(n % 2 == 0 || payload[4 + n / 2] >> 4 == 0);
	for (size_t i = 0; !isinf(m) && i < n; i++) {
		double x = (double)value[i], nearest = nearest_quad(x, (double)scale), other = (double)got[i];
		uint32_t code = quad_of(payload, n, i);
		assert_true(code != 8 && (x != 0 || bits_of(got[i]) == 0));
		assert_true(other ==
			    (code & 7 ? copysign(ldexp((double)scale, (int)(code & 7) - 7), code & 8 ? -1 : 1) : 0));
		/* where two are as near, to about a rounding of x / scale, either is right */
		if (other != nearest && fabs(fabs(other - x) - fabs(nearest - x)) > 0x1p-22 * fabs(x))
			fail_msg("%a became %a, not %a, beside a largest of %a", x, other, nearest, m);
		assert_true(fabs(other - x) <= fmax((1 + 0x1p-20) * fabs(x) / 3, fmax(m / 128, 0x1p-127)));
	}
}

static void check_quads(size_t n, const float *value)
{
	unsigned char *payload = encoded(SKEP_CODEC_E3M0, n, value);
	float *got = decoded(SKEP_CODEC_E3M0, n, payload);
	for (size_t first = 0; first < n; first += BLOCK)
		check_quads_block(n - first < BLOCK ? n - first : BLOCK, value + first,
			payload + first / BLOCK * QUADS_BYTES, got + first);
	free(payload), free(got);
}

static void test_quads_are_the_nearest(void **state)
{
	(void)state;
	enum { N = 1000 };
	for (int low = -149; low <= 127; low++)
		for (int range = 0; range <= 12 && low + range <= 127; range += 3) {
			float *value = random_sizes((uint64_t)(low + 1000 * range), N, low, low + range);
			check_quads(N, value);
			free(value);
		}
	for (size_t n = 1; n <= 3 * BLOCK; n++) {
		float *value = random_sizes(n, n, -8, 0), *bits = random_bits(n, n);
		check_quads(n, value), check_quads(n, bits);
		free(value), free(bits);
	}
}

/* Beside scales of all kinds: each value, each middle between two, and their neighbours among the floats. */
static void test_quads_at_the_middles(void **state)
{
	(void)state;
	const float scales[] = {1, 1.9999999f, 1.3333334f, FLT_MAX, 0x1p-120f, 0x1.8p-121f, FLT_MIN, float_of(1), 3};
	for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
		float value[3 * 3 * 8] = {0};
		for (uint32_t i = 0; i < 8; i++)
			for (uint32_t at = 0; at < 3; at++) {
				float near = scales[s] * (float)ldexp(at == 0   ? 1
								      : at == 1 ? 1.5
										: 1.25,
								 (int)i - 7 - (at > 0));
				for (uint32_t step = 0; step < 3 && near < scales[s]; step++)
					value[(i * 3 + at) * 3 + step] =
						float_of(bits_of(near) + step - (bits_of(near) > 0));
			}
		for (uint32_t first = 1; first + 20 < 3 * 3 * 8; first += 10) {
			value[first - 1] = -scales[s];
			check_quads(20, value + first - 1);
		}
	}
	/* exactly: ties go up, and what a quad can be stays what it is */
	const float exact[] = {
		1, 0.75f, -0.375f, 0x1p-7f, -0x1p-7f, 0x1.8p-7f, 0x1.fffffep-8f, 0.5f, -0x1p-6f, 0.74999994f};
	const float expected[] = {1, 1, -0.5f, 0x1p-6f, -0x1p-6f, 0x1p-6f, 0, 0.5f, -0x1p-6f, 0.5f};
	float *got = sent(SKEP_CODEC_E3M0, 10, exact);
	for (size_t i = 0; i < 10; i++)
		assert_true(bits_of(got[i]) == bits_of(expected[i]));
	free(got);
}

static void test_quads_with_what_is_no_number(void **state)
{
	(void)state;
	const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, float_of(0x7f800001), float_of(0xffffffff)};
	enum { N = 2 * BLOCK + 9 };
	float *value = random_sizes(8, N, -3, 3);
	for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
		for (size_t i = 0; i < N; i++) {
			float was = value[i], *clean = sent(SKEP_CODEC_E3M0, N, value), *got;
			memcpy(&value[i], &bad[b], sizeof bad[b]);
			check_quads(N, value);
			got = sent(SKEP_CODEC_E3M0, N, value);
			for (size_t at = 0; at < N; at++)
				assert_true(at / BLOCK == i / BLOCK ? isnan(got[at])
								    : bits_of(got[at]) == bits_of(clean[at]));
			value[i] = was;
			free(clean), free(got);
		}
	free(value);
}

/* ---- sums, and anything at all ------------------------------------------------------------------------------ */

static void test_sums(void **state)
{
	(void)state;
	const size_t lengths[] = {0, 1, 63, 64, 65, 1023, 1024, 1025, 1088, 2048, 5000};
	for (size_t c = 0; c < SKEP_CODECS; c++)
		for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
			size_t n = lengths[l], bytes = skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, n);
			float *a = random_sizes(1, n, -10, 3), *own = random_sizes(2, n, -10, 3);
			unsigned char *payload = encoded(codecs[c], n, a), *other = encoded(codecs[c], n, a);
			float *sum = decoded(codecs[c], n, payload), *stored = exactly(n * sizeof *stored);
			for (size_t i = 0; i < n; i++)
				sum[i] += own[i];
			unsigned char *expected = encoded(codecs[c], n, sum);
			float *arrived = decoded(codecs[c], n, expected);
			skep_codec_add(codecs[c], SKEP_CODEC_BLOCK, n, own, payload, stored);
			skep_codec_add(codecs[c], SKEP_CODEC_BLOCK, n, own, other, NULL);
			assert_memory_equal(payload, expected, bytes);
			assert_memory_equal(other, expected, bytes);
			assert_memory_equal(stored, arrived, n * sizeof *stored);
			free(a), free(own), free(payload), free(other), free(sum), free(stored), free(expected);
			free(arrived);
		}
}

/* Any bytes are decoded, added to and encoded again: what arrives damaged is wrong, but does no harm. */
static void test_any_bytes_can_be_decoded(void **state)
{
	(void)state;
	uint64_t random = 11;
	for (int turn = 0; turn < 2000; turn++)
		for (size_t c = 0; c < SKEP_CODECS; c++) {
			size_t n = skep_random_below(&random, 300),
			       bytes = skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, n);
			unsigned char *payload = exactly(bytes);
			for (size_t i = 0; i < bytes; i++)
				payload[i] = (unsigned char)skep_random_next(&random);
			float *value = decoded(codecs[c], n, payload);
			skep_codec_add(codecs[c], SKEP_CODEC_BLOCK, n, value, payload, value);
			free(payload), free(value);
		}
}

/* ---- the very bits ------------------------------------------------------------------------------------------ */

static uint64_t hash_of(const void *data, size_t bytes)
{
	uint64_t hash = bytes;
	for (size_t i = 0; i < bytes; i++)
		hash = skep_mix(hash ^ ((const unsigned char *)data)[i]);
	return hash;
}

/* Of finite floats of all sizes. Taken once; on any other machine and compiler they must be the same. */
static void test_the_very_bits(void **state)
{
	(void)state;
	enum { N = 100003 };
	static const uint64_t golden[SKEP_CODECS][2] = {{0xc257e6cb34bce3aeu, 0xc257e6cb34bce3aeu},
		{0x54a0d7339fa0737eu, 0xb453e42e0da564a1u}, {0x06920774cf4f97aau, 0x581704cba654a436u},
		{0x71c18684220cabf2u, 0x1a2481c2eb764876u}};
	float *value = random_sizes(21, N, -140, 127), *narrow = random_sizes(22, N, -20, 4);
	memcpy(value, narrow, N / 2 * sizeof *value);
	for (size_t c = 0; c < SKEP_CODECS; c++) {
		void *payload = encoded(codecs[c], N, value);
		float *back = decoded(codecs[c], N, payload);
		uint64_t there = hash_of(payload, skep_codec_bytes(codecs[c], SKEP_CODEC_BLOCK, N)),
			 again = hash_of(back, N * sizeof *back);
		if (there != golden[c][0] || again != golden[c][1])
			fail_msg("codec %zu: 0x%016llx, 0x%016llx", c, (unsigned long long)there,
				(unsigned long long)again);
		free(payload), free(back);
	}
	free(value), free(narrow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_exactly_the_size_is_written),
		cmocka_unit_test(test_pieces_are_the_whole),
		cmocka_unit_test(test_every_half_goes_both_ways),
		cmocka_unit_test(test_halves_are_the_nearest),
		cmocka_unit_test(test_halves_of_what_is_no_number),
		cmocka_unit_test(test_blocks_within_their_bound),
		cmocka_unit_test(test_blocks_at_the_ends),
		cmocka_unit_test(test_blocks_of_integers),
		cmocka_unit_test(test_blocks_with_what_is_no_number),
		cmocka_unit_test(test_quads_are_the_nearest),
		cmocka_unit_test(test_quads_at_the_middles),
		cmocka_unit_test(test_quads_with_what_is_no_number),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_any_bytes_can_be_decoded),
		cmocka_unit_test(test_the_very_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
