/* SPDX-License-Identifier: Apache-2.0
 *
 * chain_state.h - what the recurrences over layers share. Private to core/allocate/.
 */
#ifndef SKEP_CORE_ALLOCATE_CHAIN_STATE_H
#define SKEP_CORE_ALLOCATE_CHAIN_STATE_H

#include "core/allocate/chain.h"
#include "core/allocate/hunt.h"

struct chain_sums { /* [layers + 1] of the layers before */
	double *compute_s, *weight_bytes, *memory_bytes;
};

void chain_sums_init(struct chain_sums *sums, struct carve *c, const struct skep_chain *chain);
void chain_sort(double *value, size_t count);           /* ascending */
double chain_transfer_s(double bytes, double rate_Bps); /* nothing takes no time, even where there is no way */

#endif
