/* SPDX-License-Identifier: Apache-2.0
 *
 * egress.c - counts what is sent, and what its senders pay for it; the directory of a run that ends by money is told.
 *
 * Kept true: at most one entry of the queue is to tell it, for the instant at which the traffic was sent. The directory is not
 * stepped at once, since what is sent is counted while the actions of another machine are performed.
 */
#include <assert.h>

#include "sim/world.h"

static void count(struct skep_world *world, uint32_t source, uint32_t destination, uint8_t traffic, uint64_t messages,
	uint64_t bytes)
{
	bool priced = world->scenario->topology.egress_usd_per_B != NULL;
	double usd = priced ? skep_scenario_egress_usd(world->scenario, source, destination, bytes) : 0;
	if (!skep_traffic_add(&world->traffic, source, destination, traffic, messages, bytes, usd))
		world->no_memory = true;
	if (!(usd > 0) || world->plan->until.budget_microusd == 0)
		return;
	skep_egress_bill_add(&world->bill, usd);
	if (world->tells_egress || !skep_egress_bill_due(&world->bill, world->scenario, &world->egress))
		return;
	world->tells_egress = true;
	skep_world_schedule(world, world->now, world->sequence++, SKEP_SIM_EVENT_EGRESS, 0);
}

/* Of a relayed pair both ways are counted at once: the directory sends what it receives. That is traffic of its links, for which
 * it may pay; in the bytes of the run a message is there once, as in what its sender counts in a real run. */
void skep_world_count(struct skep_world *world, uint32_t source, uint32_t destination, uint8_t traffic,
	uint64_t messages, uint64_t bytes)
{
	const struct skep_topology *t = &world->scenario->topology;
	uint32_t directory = world->plan->workers;
	if (t->dials_out == NULL ||
		!skep_topology_relays(t, t->machine[skep_scenario_machine(world->scenario, source)].place,
			t->machine[skep_scenario_machine(world->scenario, destination)].place)) {
		count(world, source, destination, traffic, messages, bytes);
		return;
	}
	count(world, source, directory, traffic, messages, bytes);
	count(world, directory, destination, traffic, messages, bytes);
	world->traffic.untold.bytes[traffic] -= bytes;
}

void skep_egress_tell(struct skep_world *world)
{
	const uint32_t directory = world->plan->workers;
	assert(world->tells_egress);
	world->tells_egress = false;
	if (world->process[directory].stopped_ns == SKEP_TIME_NEVER)
		skep_world_step(world, directory, &world->egress);
}
