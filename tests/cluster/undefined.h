/* SPDX-License-Identifier: Apache-2.0
 *
 * undefined.h - memory that means nothing yet: clang's memory sanitizer reports a decision by what it holds. In other builds it
 * holds what it held before.
 */
#pragma once

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define SKEP_MEMORY_SANITIZER
#endif
#endif

static inline void make_undefined(void *at, size_t bytes)
{
#ifdef SKEP_MEMORY_SANITIZER
	__msan_allocated_memory(at, bytes);
#else
	(void)at, (void)bytes;
#endif
}
