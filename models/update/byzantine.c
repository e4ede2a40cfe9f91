/* SPDX-License-Identifier: Apache-2.0
 *
 * byzantine.c - see byzantine.h.
 */
#include "models/update/byzantine.h"

#include <math.h>

#include "core/random.h"

/* In [-sqrt 3, sqrt 3). */
static float uniform(uint64_t random)
{
	return ((float)(random >> 40) * 0x1p-23f - 1) * 1.7320508f;
}

void skep_byzantine_tell(
	const struct skep_byzantine *byzantine, uint32_t round, uint64_t first, size_t n, const float *own, float *ret)
{
	uint64_t seed = skep_mix(byzantine->seed ^ round);
	for (size_t i = 0; i < n; i++) {
		switch (byzantine->attack) {
		case SKEP_ATTACK_SIGN_FLIP:
			ret[i] = -byzantine->scale * own[i];
			break;
		case SKEP_ATTACK_NOISE:
			ret[i] = byzantine->scale * uniform(skep_mix(seed ^ skep_mix(first + i))) * own[i];
			break;
		case SKEP_ATTACK_NAN:
			ret[i] = NAN;
			break;
		case SKEP_ATTACK_NONE:
			ret[i] = own[i];
			break;
		}
	}
}
