/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.c - tanh, relu and gelu in plain single-precision sums, products and one division per element: no library
 * call, so that every compiler at every level gives the same bits, and a vectoriser has nothing in its way.
 */
#include "models/activation.h"

/* The machine that runs picks the widest registers it has. Elements do not meet and nothing is contracted to a fused
 * product, so the width changes no bit. The choice is made by the loader, before the thread sanitizer is ready for it. */
#if defined __SANITIZE_THREAD__
#define ANY_WIDTH
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define ANY_WIDTH
#endif
#endif
#if !defined ANY_WIDTH && defined __x86_64__ && defined __gnu_linux__ && defined __has_attribute
#if __has_attribute(target_clones)
#define ANY_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef ANY_WIDTH
#define ANY_WIDTH
#endif

/* x P(x^2) / Q(x^2), fitted to tanh by Remez exchange for least relative error on (0, 8.6]: 1.4e-8 before rounding. Beyond, it is
 * exactly 1 or -1, so that slopes vanish there however large their other factors are. A NaN stays one. */
static inline float tanh_of(float x)
{
	float s = x * x;
	float p = 1.4082424601e-8f;
	p = p * s + 2.11223462127e-5f;
	p = p * s + 3.52639935822e-3f;
	p = p * s + 0.134068734012f;
	p = p * s + 0.999999986738f;
	float q = 8.07061729574e-7f;
	q = q * s + 3.336266673e-4f;
	q = q * s + 2.59938913986e-2f;
	q = q * s + 0.467401949379f;
	q = q * s + 1.0f;
	float t = x * p / q;
	t = x > 8.6f ? 1.0f : t;
	return x < -8.6f ? -1.0f : t;
}

ANY_WIDTH static void tanh_row(uint32_t width, const float *restrict bias, float *restrict value, float *restrict slope)
{
	for (uint32_t j = 0; j < width; j++) {
		float t = tanh_of(value[j] + bias[j]);
		value[j] = t;
		slope[j] = 1.0f - t * t;
	}
}

ANY_WIDTH static void relu_row(uint32_t width, const float *restrict bias, float *restrict value, float *restrict slope)
{
	for (uint32_t j = 0; j < width; j++) {
		float x = value[j] + bias[j];
		value[j] = x < 0.0f ? 0.0f : x;
		slope[j] = x > 0.0f ? 1.0f : 0.0f;
	}
}

/* x/2 (1 + tanh(a (x + b x^3))), a = sqrt(2 / pi), b = 0.044715: Hendrycks and Gimpel, arXiv 1606.08415, section 2. */
ANY_WIDTH static void gelu_row(uint32_t width, const float *restrict bias, float *restrict value, float *restrict slope)
{
	const float a = 0.797884560803f, ab = 0.0356774081363f;
	for (uint32_t j = 0; j < width; j++) {
		float x = value[j] + bias[j];
		float s = x * x;
		float t = tanh_of(x * (a + ab * s));
		value[j] = 0.5f * x * (1.0f + t);
		slope[j] = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * (a + 3.0f * ab * s);
	}
}

void skep_activation_apply(enum skep_activation activation, uint32_t rows, uint32_t width, const float *bias,
	float *value, float *ret_slope)
{
	static void (*const row[])(uint32_t, const float *, float *, float *) = {
		[SKEP_ACTIVATION_TANH] = tanh_row,
		[SKEP_ACTIVATION_RELU] = relu_row,
		[SKEP_ACTIVATION_GELU] = gelu_row,
	};
	for (uint32_t i = 0; i < rows; i++)
		row[activation](width, bias, value + (size_t)i * width, ret_slope + (size_t)i * width);
}
