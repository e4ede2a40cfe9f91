/* SPDX-License-Identifier: Apache-2.0
 *
 * draw.h - the numbers that the workloads are drawn from: value i of a stream is a pure function of both, so that any program
 * can rebuild the same work. Shared by the benchmarks and the tests of their makespans.
 */
#pragma once

#include "core/random.h"

static inline uint64_t rnd(uint64_t stream, uint64_t i)
{
	return skep_mix(skep_mix(skep_mix(1) ^ stream) ^ i);
}

static inline double u01(uint64_t stream, uint64_t i)
{
	return (double)(rnd(stream, i) >> 11) * 0x1p-53;
}
