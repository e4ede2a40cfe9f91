/* SPDX-License-Identifier: Apache-2.0
 *
 * byzantine.h - Byzantine devices, for experiments: such a device contributes other gradients to a reduction than it
 * has computed. The attack is part of the device, in both worlds alike; the core does not know of it and works as ever:
 * the wrong gradients are counted, and all members end with the same bits.
 *
 * The attack changes gradients alone, or with `activations` what leaves its forward passes alone: all else that the worker
 * sends is right, it sums and steps as it should, and it reports the right number of microbatches. Element i of its
 * accumulator, or of a microbatch's activations, x_i, is read as
 *
 *   sign flip  -scale x_i
 *   noise      scale u_i x_i, u_i uniform with mean 0 and standard deviation 1, drawn from (seed, worker, round, i)
 *   nan        a NaN
 *
 * It is the same however often it is read, in whatever pieces, since a reduction may need another attempt.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum skep_attack { SKEP_ATTACK_NONE, SKEP_ATTACK_SIGN_FLIP, SKEP_ATTACK_NOISE, SKEP_ATTACK_NAN };

struct skep_byzantine {
	enum skep_attack attack;
	float scale;
	uint64_t seed;    /* of this worker */
	bool activations; /* of forward passes are attacked, and no gradients */
};

/* Writes to ret what the device reports in place of `own`, elements first .. first + n - 1 of the round's
 * accumulator. */
void skep_byzantine_tell(
	const struct skep_byzantine *byzantine, uint32_t round, uint64_t first, size_t n, const float *own, float *ret);
