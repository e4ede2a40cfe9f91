/* SPDX-License-Identifier: Apache-2.0
 *
 * byzantine.h - a device that lies, for experiments: what it brings into a reduction is not what it has computed. It is the
 * device of the world that does so, in both worlds alike; the core does not know, and keeps its promises as ever: the lie
 * is counted, and all members end with the same bits.
 *
 * The lie is about gradients alone: what the worker passes on to the stages before and after it is right, it sums
 * and steps as it should, and tells the truth about how many microbatches it has counted. Element i of its accumulator
 * x_i is read as
 *
 *   sign flip  -scale x_i
 *   noise      scale u_i x_i, u_i uniform with mean 0 and standard deviation 1, drawn from (seed, worker, round, i)
 *   nan        a NaN
 *
 * It is the same however often it is read, in whatever pieces: a reduction may be begun anew.
 */
#ifndef SKEP_MODELS_BYZANTINE_H
#define SKEP_MODELS_BYZANTINE_H

#include <stddef.h>
#include <stdint.h>

enum skep_lie { SKEP_LIE_NONE, SKEP_LIE_SIGN_FLIP, SKEP_LIE_NOISE, SKEP_LIE_NAN };

struct skep_byzantine {
	enum skep_lie lie;
	float scale;
	uint64_t seed; /* of this worker */
};

/* What is read in place of elements first .. first + n - 1, `own`, of the round's accumulator. */
void skep_byzantine_tell(
	const struct skep_byzantine *byzantine, uint32_t round, uint64_t first, size_t n, const float *own, float *ret);

#endif
