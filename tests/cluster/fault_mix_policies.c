/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_policies.c - decides what workers of a seed's swarm move by. From a draw of its own: all else stays as it is.
 */
#include "tests/cluster/fault_mix.h"

#define QUEUE_SALT UINT64_C(0x7175657565)
#define QUEUE 2u /* of 6, what none of the pinned seeds draws */

void weather_policies(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	if (plan->rebalance_ns > 0 && mix64(w->seed ^ QUEUE_SALT) % 6 == QUEUE)
		plan->rebalance_by = SKEP_REBALANCE_BY_QUEUE;
}
