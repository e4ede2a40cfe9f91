/* SPDX-License-Identifier: Apache-2.0
 *
 * expert_balance.c - what a summary says of experts: sums over all blocks and microbatches, in which each choice of a token
 * counts the same.
 */
#include <math.h>

#include "analysis/summary/summary.h"

void skep_summary_add_experts(struct skep_summary *summary, const struct skep_expert_use *use)
{
	const double choices = (double)use->choices, passes = (double)use->passes;
	summary->expert_imbalance = choices > 0 ? (double)use->fullest / choices : NAN;
	summary->expert_dropped = choices > 0 ? (double)use->dropped / choices : NAN;
	summary->expert_balance = passes > 0 ? 1e-9 * (double)use->balance_nano / passes : NAN;
}
