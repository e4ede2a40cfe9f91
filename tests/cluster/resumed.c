/* SPDX-License-Identifier: Apache-2.0
 *
 * resumed.c - a run that begins with what another one has kept (plan->first_round): what the devices hold, what is kept, and what
 * the books take for done. What that other run has made of the parameters is as good as what is drawn, so it is that.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

#define RESUMED_SALT UINT64_C(0x7e5a3c0f91d84b26)

void resumed_draw(struct skep_plan *plan, uint64_t seed)
{
	plan->first_round = (uint32_t)(mix64(seed ^ RESUMED_SALT) % plan->rounds);
	plan->candidates.count = plan->candidates.rounds = 0; /* that is behind it */
}

/* In all places; the newest ones are the newest. */
void resumed_device(struct device *device, const struct skep_plan *plan)
{
	uint32_t newest = skep_plan_first_version(plan), versions = device_versions(plan, device->stage);
	device->newest = device->oldest = device->drift.base = newest;
	for (uint32_t back = 0; back < versions && back <= newest; back++)
		device->version[device_place(plan, device->stage, newest - back)] = newest - back;
}

void resumed_kept(struct tensors *tensors, const struct skep_plan *plan)
{
	for (uint32_t s = 0; s < plan->stages && plan->first_round > 0; s++) {
		struct kept *kept = &tensors->kept[s][plan->first_round];
		kept->is = true;
		for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
			kept->parameter[e] = symbol_parameter(plan, 0, s, e);
	}
}

void resumed_books(struct ledger *ledger)
{
	const struct skep_plan *plan = ledger->plan;
	const uint32_t first = plan->first_round;
	ledger->rounds_closed = first;
	for (uint32_t r = 0; r < first; r++) {
		ledger->round[r].closed = true;
		for (uint32_t vstage = 0; vstage < skep_plan_vstages(plan); vstage++)
			ledger->round[r].cell[vstage].committed = true;
	}
	for (uint32_t s = 0; s < plan->stages && first > 0; s++) {
		struct cell *cell = &ledger->round[first - 1].cell[s];
		struct kept *kept = &ledger->checkpoint[s][first];
		ledger->kept[s] = first;
		kept->is = true;
		cell->known = ALL_KNOWN;
		for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
			kept->parameter[e] = cell->parameter[e] = books_drawn(ledger, s, e);
	}
}
