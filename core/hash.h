/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.h - FNV-1a, 64 bits (Fowler, Noll, Vo): for checksums and tables, not against an adversary. Byte by byte it is the
 * published function; word by word it is as good for folding digests, and another function.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SKEP_HASH_EMPTY UINT64_C(0xcbf29ce484222325)

static inline uint64_t skep_hash_word(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * UINT64_C(0x100000001b3);
}

static inline uint64_t skep_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = skep_hash_word(hash, ((const uint8_t *)bytes)[i]);
	return hash;
}
