/* SPDX-License-Identifier: Apache-2.0
 *
 * flow_random.h - the numbers that the workloads F and X of flows are drawn from, shared by the test of their makespans and the
 * benchmark of their speed: value i of a stream is a pure function of both.
 */
#ifndef SKEP_TESTS_FLOW_RANDOM_H
#define SKEP_TESTS_FLOW_RANDOM_H

#include "core/random.h"

static inline uint64_t rnd(uint64_t stream, uint64_t i)
{
	return skep_mix(skep_mix(skep_mix(1) ^ stream) ^ i);
}

static inline double u01(uint64_t stream, uint64_t i)
{
	return (double)(rnd(stream, i) >> 11) * 0x1p-53;
}

#endif
