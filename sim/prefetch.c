/* SPDX-License-Identifier: Apache-2.0
 *
 * prefetch.c - prefetches the memory that an event will touch. The state of thousands of machines fits no cache, and
 * an event touches some 30 cache lines of its machine and its message, one after the other. The next events are
 * known: on its way to the top of the heap an entry moves up row by row, and each row has a quarter of the entries of
 * the row below. So each row prefetches what the row below has loaded the address of, early enough to arrive and late
 * enough to stay in the cache.
 *
 * Keeps true: nothing here changes the results of a run.
 */
#include "core/prefetch.h"
#include "sim/world.h"

static void fetch(const void *begin, size_t bytes)
{
	for (size_t line = 0; line < bytes; line += 64)
		__builtin_prefetch((const char *)begin + line);
}

static void expect_process(const struct skep_world *world, uint32_t index, uint32_t row)
{
	const struct skep_process *process = &world->process[index];
	if (row == 3)
		fetch(process, sizeof *process);
	else if (row < 3)
		skep_node_prefetch(process->node, row == 1);
}

void skep_world_prefetch_message(const struct skep_world *world, uint32_t flight, uint32_t row)
{
	const struct skep_inflight_message *coming = &world->flight[flight];
	if (row == SKEP_WORLD_ROWS) {
		fetch(coming, sizeof *coming);
		return;
	}
	expect_process(world, coming->message.to.index, row);
	if (row == 3) /* does it still live */
		__builtin_prefetch(&world->process[coming->message.from.index].life);
}

static void expect_end(const struct skep_world *world, uint32_t index, uint32_t row)
{
	uint32_t first = world->process[index / SKEP_LANES].lane[index % SKEP_LANES].first;
	expect_process(world, index / SKEP_LANES, row);
	if (row == 2 && first != UINT32_MAX)
		fetch(&world->job[first], sizeof *world->job);
}

void skep_world_prefetch(const struct skep_world *world, const struct skep_queue_entry *entry, uint32_t row)
{
	switch ((enum skep_sim_event)entry->kind) {
	case SKEP_SIM_EVENT_START:
	case SKEP_SIM_EVENT_TIMER:
		expect_process(world, entry->index, row);
		break;
	case SKEP_SIM_EVENT_OP_END:
		if (row < SKEP_WORLD_ROWS)
			expect_end(world, entry->index, row);
		break;
	case SKEP_SIM_EVENT_MESSAGE:
		skep_world_prefetch_message(world, entry->index, row);
		break;
	case SKEP_SIM_EVENT_CHURN:
	case SKEP_SIM_EVENT_NOTICE:
	case SKEP_SIM_EVENT_DETECTED:
	case SKEP_SIM_EVENT_BOOTED:
	case SKEP_SIM_EVENT_EGRESS:
	case SKEP_SIM_EVENT_OUTAGE:
	case SKEP_SIM_EVENT_RESUMED:
		break;
	}
}
