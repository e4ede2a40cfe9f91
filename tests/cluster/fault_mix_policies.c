/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_policies.c - decides what workers of a seed's swarm move by, and whether one that does not answer is banned at once.
 * From draws of their own: all else stays as it is.
 */
#include "tests/cluster/fault_mix.h"

#define QUEUE_SALT UINT64_C(0x7175657565)
#define QUEUE 2u /* of 6, what none of the pinned seeds draws */
#define BAN_SALT UINT64_C(0x62616e73)
#define BANNED 1u /* of 8, the same */

void weather_policies(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	if (plan->rebalance.period_ns > 0 && mix64(w->seed ^ QUEUE_SALT) % 6 == QUEUE)
		plan->rebalance.by = SKEP_REBALANCE_BY_QUEUE;
	if (plan->liveness.reissue_after_ns > 0 && mix64(w->seed ^ BAN_SALT) % 8 == BANNED)
		plan->liveness.ban = SKEP_BAN_AT_ONCE;
}

bool weather_faultless(const struct weather *w)
{
	for (uint32_t f = 0; f < WEATHER_FAULTS; f++)
		if (w->rate[f] > 0)
			return false;
	return w->outages == 0;
}
