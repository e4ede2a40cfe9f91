/* SPDX-License-Identifier: Apache-2.0
 *
 * sum.h - sums over bytes that travel or rest, by which damage is noticed: XXH3 of 64 bits (xxHash, by Yann Collet). No
 * defence against who changes bytes on purpose; what comes from strangers has SHA-256 and TLS. 0 is the sum of nothing, and of
 * nothing else but by a chance of 2^-64.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sum of what `before` is the sum of, and of `count` more bytes behind it. It depends on where the two are cut. */
uint64_t skep_sum(uint64_t before, const void *bytes, size_t count);

/* Of the file's length and what it holds; of one of more than 1 GiB of 1,024 blocks of 1 MiB, evenly spread, the first and the
 * last one among them. False: it cannot be read. */
bool skep_sum_file(const char *path, uint64_t *ret);

/* sum_wide.c: skep_sum() (base/sum.h) in registers of 32 bytes, for processors with AVX2: the same sums in half the time or
 * two thirds of it. Built where those of the build are x86-64, which says SKEP_SUM_WIDE. */

/* Of bytes that there are, on a processor that has them. */
uint64_t skep_sum_wide(uint64_t before, const void *bytes, size_t count);
