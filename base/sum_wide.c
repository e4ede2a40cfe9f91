/* SPDX-License-Identifier: Apache-2.0
 *
 * sum_wide.c - see sum.h. It is the compiler's options that say for which processor: the library is a header.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/sum.h"

uint64_t skep_sum_wide(uint64_t before, const void *bytes, size_t count)
{
	return XXH3_64bits_withSeed(bytes, count, before);
}
