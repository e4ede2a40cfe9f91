/* SPDX-License-Identifier: Apache-2.0
 *
 * expect.c - asks the caches beforehand for what an event will touch. Thousands of machines lie in no cache, and an event touches
 * some 30 lines of its machine and of what it brings, one after the other. What is soon to happen is known: it rises from row to
 * row of a heap, and has four times fewer before it in each. So nothing has to be waited for, and nothing is kept for long.
 *
 * Nothing here changes what happens.
 */
#include "sim/world.h"

static void fetch(const void *begin, size_t bytes)
{
	for (size_t line = 0; line < bytes; line += 64)
		__builtin_prefetch((const char *)begin + line);
}

static void expect_actor(const struct skep_world *world, uint32_t index, uint32_t row)
{
	const struct skep_actor *actor = &world->actor[index];
	if (row == 3)
		fetch(actor, sizeof *actor);
	else if (row < 3)
		skep_node_fetch(actor->node, row == 1);
}

void skep_world_expect_flight(const struct skep_world *world, uint32_t flight, uint32_t row)
{
	const struct skep_flight *coming = &world->flight[flight];
	if (row == SKEP_WORLD_ROWS) {
		fetch(coming, sizeof *coming);
		return;
	}
	expect_actor(world, coming->message.to.index, row);
	if (row == 3) /* does it still live */
		__builtin_prefetch(&world->actor[coming->message.from.index].life);
}

static void expect_end(const struct skep_world *world, uint32_t index, uint32_t row)
{
	uint32_t first = world->actor[index / SKEP_LANES].lane[index % SKEP_LANES].first;
	expect_actor(world, index / SKEP_LANES, row);
	if (row == 2 && first != UINT32_MAX)
		fetch(&world->job[first], sizeof *world->job);
}

void skep_world_expect(const struct skep_world *world, const struct skep_queue_entry *entry, uint32_t row)
{
	switch ((enum skep_happening)entry->kind) {
	case SKEP_HAPPENING_START:
	case SKEP_HAPPENING_TIMER:
		expect_actor(world, entry->index, row);
		break;
	case SKEP_HAPPENING_OP_END:
		if (row < SKEP_WORLD_ROWS)
			expect_end(world, entry->index, row);
		break;
	case SKEP_HAPPENING_MESSAGE:
		skep_world_expect_flight(world, entry->index, row);
		break;
	case SKEP_HAPPENING_CHURN:
	case SKEP_HAPPENING_NOTICE:
	case SKEP_HAPPENING_HEARD:
		break;
	}
}
