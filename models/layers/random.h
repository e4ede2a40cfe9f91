/* SPDX-License-Identifier: Apache-2.0
 *
 * random.h - numbers drawn by position: value `counter` of a stream is a pure function of (seed, stream, counter), so that
 * any worker can draw any sample or parameter without a state to pass on.
 */
#pragma once

#include <stdint.h>

#include "core/random.h"

enum { SKEP_STREAM_DATA, SKEP_STREAM_LAYER }; /* layer l draws from stream SKEP_STREAM_LAYER + l */

static inline uint64_t skep_random_key(uint64_t seed, uint64_t stream)
{
	return skep_mix(skep_mix(seed) + stream);
}

/* The seed of a candidate for the first parameters: candidate 0 has the run's own seed. */
static inline uint64_t skep_candidate_seed(uint64_t seed, uint32_t candidate)
{
	return candidate == 0 ? seed : skep_mix(skep_mix(seed ^ 0x63616e64u) + candidate);
}

/* Uniform on [-1, 1), a multiple of 2^-23: exact in a float, so equal on every machine. */
static inline float skep_random_signed(uint64_t key, uint64_t counter)
{
	uint64_t bits = skep_mix(key + counter * 0x9e3779b97f4a7c15u) >> 40;
	return ((float)bits - 8388608.0f) * 0x1p-23f;
}
