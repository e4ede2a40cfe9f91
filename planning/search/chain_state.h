/* SPDX-License-Identifier: Apache-2.0
 *
 * chain_state.h - what the recurrences over layers share. Private to planning/search/.
 */
#pragma once

#include "planning/search/chain.h"
#include "planning/search/hunt.h"

struct chain_sums { /* [layers + 1] of the layers before */
	double *compute_s, *weight_bytes, *memory_bytes;
};

void skep_chain_sums_init(struct chain_sums *sums, struct skep_search_carve *c, const struct skep_chain *chain);
void skep_chain_sort(double *value, size_t count);           /* ascending */
double skep_chain_transfer_s(double bytes, double rate_Bps); /* nothing takes no time, even where there is no way */
