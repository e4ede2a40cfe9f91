/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - tells the recorder what machines say, and at the end of a simulated run what each of them did (lives, time alive and
 * computing, digest) and what each pair of machines sent.
 */
#include "core/random.h"

#include "sim/world.h"
#include <assert.h>

void skep_world_note(struct skep_world *world, uint32_t index, const struct skep_note *note)
{
	assert(index <= world->plan->workers);
	const struct skep_recorder *recorder = world->recorder;
	struct skep_peer who = {index, skep_node_epoch(world->process[index].node)};
	if (skep_note_ends(note->kind))
		skep_traffic_tell(&world->traffic, recorder);
	if (recorder->note)
		recorder->note(recorder->context, world->now, who, note);
	if (note->kind == SKEP_NOTE_ROUND_CLOSED) {
		world->rounds_closed++;
		if (recorder->progress)
			recorder->progress(recorder->context, world->now, world->rounds_closed, world->plan->rounds);
	}
}

static void report_worker(const struct skep_world *world, uint32_t index)
{
	assert(index <= world->plan->workers);
	const struct skep_process *process = &world->process[index];
	struct skep_worker_use use = {.index = index,
		.epoch = skep_node_epoch(process->node),
		.stage = skep_node_stage(process->node),
		.events = process->events,
		.experts = process->experts,
		.digest = skep_node_digest(process->node)};
	skep_time end_ns = process->stopped_ns < world->now ? process->stopped_ns : world->now;
	use.alive_ns = process->alive_ns + (process->dead && !process->knocks ? 0 : end_ns - process->started_ns);
	if (process->life > 0)
		use.digest = skep_mix(process->digest ^ use.digest);
	use.compute_ns = process->lane[SKEP_LANE_COMPUTE].busy_ns;
	use.arithmetic_ns = world->scenario->arithmetic == SKEP_ARITHMETIC_REAL ? use.compute_ns : 0;
	world->recorder->worker(world->recorder->context, &use);
}

/* Lives that go on at the end; those before were told of when they ended. */
static void skep_report_incarnation(const struct skep_world *world, uint32_t index)
{
	assert(index < world->plan->workers);
	const struct skep_process *process = &world->process[index];
	skep_time end_ns = process->stopped_ns < world->now ? process->stopped_ns : world->now;
	if (!process->dead || process->knocks)
		world->recorder->life(world->recorder->context, index, process->started_ns, end_ns);
}

void skep_world_report(struct skep_world *world)
{
	for (uint32_t i = 0; world->recorder->life && i < world->plan->workers; i++)
		skep_report_incarnation(world, i);
	for (uint32_t i = 0; world->recorder->worker && i <= world->plan->workers; i++)
		report_worker(world, i);
	if (!skep_traffic_report(&world->traffic, world->recorder))
		world->no_memory = true;
}
