/* SPDX-License-Identifier: Apache-2.0
 *
 * large_pages.h - allocates large memory in large pages. A simulation of thousands of machines reads cache lines that
 * are spread over its memory; with small pages it touches more pages than the processor's TLB holds.
 *
 * Large pages are a request: if the system has none, or keeps them for other processes, the memory has small ones.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define SKEP_LARGE_PAGE ((size_t)2 << 20)

/* What lies in [memory, memory + bytes), but for less than a large page at either end. */
static inline void skep_large_pages(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
	uintptr_t begin = ((uintptr_t)memory + SKEP_LARGE_PAGE - 1) / SKEP_LARGE_PAGE * SKEP_LARGE_PAGE;
	uintptr_t end = ((uintptr_t)memory + bytes) / SKEP_LARGE_PAGE * SKEP_LARGE_PAGE;
	if (begin < end)
		(void)madvise((char *)memory + (begin - (uintptr_t)memory), end - begin, MADV_HUGEPAGE);
#else
	(void)memory, (void)bytes;
#endif
}
