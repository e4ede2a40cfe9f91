/* SPDX-License-Identifier: Apache-2.0
 *
 * vector.h - for loops over floats that are to run in vector registers: a mark, and floats as their bits.
 *
 * A function marked SKEP_ANY_WIDTH is compiled for several widths of registers; the machine that runs picks the widest it has.
 * For loops whose elements do not meet, or meet in integers alone or in sums of a written order (real.h): nothing is
 * contracted to a fused product, so the width changes no bit. It has to be static: clang 14 does not find others from another
 * file. The choice is made by the loader, before the thread sanitizer is ready for it.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#if defined __SANITIZE_THREAD__
#define SKEP_ANY_WIDTH
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define SKEP_ANY_WIDTH
#endif
#endif
#if !defined SKEP_ANY_WIDTH && defined __x86_64__ && defined __gnu_linux__ && defined __has_attribute
#if __has_attribute(target_clones)
/* clang gives what chooses a clone a global name made of the function's, static or not: no two of these have one name. */
#define SKEP_ANY_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef SKEP_ANY_WIDTH
#define SKEP_ANY_WIDTH
#endif

static inline int32_t skep_float_bits(float x)
{
	int32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline float skep_float_of(int32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}
