/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.c - virtual time: which event is next, and when the run is over.
 *
 * Order at one instant: as next.h has it; messages that the network hands over while the queue holds more for the same instant
 * join it with the sequence that they drew when they were sent.
 */
#include <assert.h>
#include <stdio.h>

#include "sim/next.h"
#include "sim/world.h"

/* What has come nearer by what has just left the queue or the network. */
static void expect(const struct skep_world *world, enum skep_next turn)
{
	for (uint32_t row = 1; row <= SKEP_WORLD_ROWS; row++) {
		const struct skep_queue_entry *entry = skep_queue_risen(&world->queue, row);
		if (turn == SKEP_NEXT_EVENT && entry)
			skep_world_prefetch(world, entry, row);
		uint64_t tag =
			turn == SKEP_NEXT_NETWORK ? skep_network_soon(world->network, row) : SKEP_NETWORK_NO_FLOW;
		if (!(tag & SKEP_FUSED_TAG))
			skep_world_prefetch_message(world, (uint32_t)tag, row);
	}
}

/* Messages that arrive now, in sending order. With `more` in the queue for this instant they have to take their places
 * among it; else they are next, and what they cause comes after them. */
static void take_arrivals(struct skep_world *world, bool more)
{
	uint64_t flight[SKEP_NETWORK_ARRIVALS];
	uint32_t got;
	do {
		got = skep_network_advance(world->network, world->now, flight, SKEP_NETWORK_ARRIVALS);
		if (world->looks_ahead)
			expect(world, SKEP_NEXT_NETWORK);
		for (uint32_t i = 0; i < got; i++) {
			if (flight[i] & SKEP_FUSED_TAG)
				skep_fused_arrive(world, flight[i]);
			else if (more)
				skep_world_arrive(world, (uint32_t)flight[i]);
			else
				skep_world_deliver(world, (uint32_t)flight[i]);
		}
	} while (got == SKEP_NETWORK_ARRIVALS);
}

/* Returns false when nothing is left to happen. */
static bool advance(struct skep_world *world)
{
	struct skep_queue_entry entry;
	enum skep_next turn = skep_next_event(&world->queue, world->network, &world->now, &entry);
	if (turn == SKEP_NEXT_EVENT) {
		if (world->looks_ahead)
			expect(world, turn);
		skep_world_handle(world, &entry);
	}
	if (turn == SKEP_NEXT_NETWORK)
		take_arrivals(world, skep_queue_next(&world->queue) == world->now);
	return turn != SKEP_NEXT_NONE;
}

void skep_world_share_cores(struct skep_world *world, uint32_t worker)
{
	struct skep_cores_turn turn;
	if (!skep_cores_shared(world->cores, worker) || !skep_cores_turn(world->cores, worker, world->now, &turn))
		return;
	if (turn.was != SKEP_CORES_NONE)
		world->process[turn.was / SKEP_LANES].lane[turn.was % SKEP_LANES].end_sequence = UINT64_MAX;
	if (turn.slot == SKEP_CORES_NONE)
		return;
	world->process[turn.slot / SKEP_LANES].lane[turn.slot % SKEP_LANES].end_sequence = world->sequence;
	skep_world_schedule(world, turn.end_ns, world->sequence++, SKEP_SIM_EVENT_OP_END, turn.slot);
}

static void result(const struct skep_world *world, struct skep_sim_result *ret)
{
	ret->outcome = skep_node_outcome(world->process[world->plan->workers].node);
	if (ret->outcome == SKEP_RUNNING) /* all wait for something that will not come */
		ret->outcome = SKEP_FAILED;
	ret->end_ns = world->now;
	ret->rounds = world->rounds_closed;
	for (uint32_t i = 0; i <= world->plan->workers; i++)
		ret->events += world->process[i].events;
}

bool skep_sim_run(
	const struct skep_scenario *scenario, const struct skep_recorder *recorder, struct skep_sim_result *ret)
{
	return skep_sim_run_with(scenario, &(struct skep_sim_options){.threads = 1}, recorder, ret);
}

bool skep_sim_run_with(const struct skep_scenario *scenario, const struct skep_sim_options *options,
	const struct skep_recorder *recorder, struct skep_sim_result *ret)
{
	static const volatile sig_atomic_t never = 0;
	const volatile sig_atomic_t *stop = options->stop != NULL ? options->stop : &never;
	struct skep_world world;
	assert(!scenario->unresolved);
	*ret = (struct skep_sim_result){0};
	bool good = skep_world_init(&world, scenario, options->threads, recorder);
	world.watch = options->watch;
	if (good) {
		while (world.running > 0 && !world.no_memory && *stop == 0 && advance(&world))
			;
		good = !world.no_memory;
	}
	if (good && world.running > 0)
		ret->stopped = (int)*stop;
	if (good) {
		skep_world_report(&world);
		result(&world, ret);
		good = !world.no_memory;
	}
	ret->error = world.error;
	skep_world_finish(&world);
	return good;
}
