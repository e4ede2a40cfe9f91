/* SPDX-License-Identifier: Apache-2.0
 *
 * scaling.c - machines that the directory asks for, with cluster.scale: who has one when, and what it takes.
 *
 * A machine may be had while the trace has it there, without a trace always. While fewer of a kind are had than are wanted,
 * each one that may be had is: of several the lowest number. It takes its boot, and joins. The trace takes it away as any
 * machine; one that is given back leaves by itself, and may be had again. One that had notice and has left is not waited for:
 * another one is had at once. Kept true: a machine that is not had is dead, so it costs nothing.
 */
#include "sim/world.h"

#include <assert.h>
#include <stdlib.h>

#define NO_BOOT UINT64_MAX

static uint32_t kind_of(const struct skep_world *world, uint32_t index)
{
	assert(index < world->plan->workers);
	return world->plan->scale->kind_of[index];
}

/* Its process begins by an event of its own, since this may happen within the step of another machine. */
static void have(struct skep_world *world, uint32_t index)
{
	struct skep_scaling_machine *machine = &world->scaling->machine[index];
	const skep_time *boot_ns = machine->known ? world->scenario->scale_again_ns : world->scenario->scale_first_ns;
	assert(machine->there && !machine->had && world->process[index].dead);
	machine->had = machine->known = true;
	machine->boot_sequence = world->sequence;
	world->scaling->had[kind_of(world, index)]++;
	skep_world_schedule(world, world->now + (boot_ns != NULL ? boot_ns[index] : 0), world->sequence++,
		SKEP_SIM_EVENT_BOOTED, index);
}

static void lose(struct skep_world *world, uint32_t index)
{
	struct skep_scaling_machine *machine = &world->scaling->machine[index];
	assert(machine->had);
	machine->had = false;
	machine->boot_sequence = NO_BOOT;
	world->scaling->had[kind_of(world, index)]--;
}

static void fill(struct skep_world *world, uint32_t kind)
{
	struct skep_scaling_world *s = world->scaling;
	for (uint32_t i = 0; i < world->plan->workers && s->had[kind] < s->wanted[kind]; i++)
		if (kind_of(world, i) == kind && s->machine[i].there && !s->machine[i].had)
			have(world, i);
}

void skep_scaling_want(struct skep_world *world, uint32_t kind, uint32_t machines)
{
	assert(world->scaling != NULL && kind < world->plan->scale->kinds);
	world->scaling->wanted[kind] = machines;
	fill(world, kind);
}

void skep_scaling_churn(struct skep_world *world, const struct skep_churn_event *event)
{
	struct skep_scaling_machine *machine = &world->scaling->machine[event->worker];
	machine->there = event->join;
	if (!event->join && machine->had) {
		lose(world, event->worker);
		if (!world->process[event->worker].dead)
			skep_preemption_end(
				world, event->worker, skep_churn_heard_at(event, world->scenario->detection_delay_ns));
	}
	fill(world, kind_of(world, event->worker));
}

void skep_scaling_booted(struct skep_world *world, const struct skep_queue_entry *entry)
{
	if (world->scaling->machine[entry->index].boot_sequence == entry->sequence)
		skep_preemption_start(world, entry->index);
}

void skep_scaling_stopped(struct skep_world *world, uint32_t index)
{
	const uint32_t directory = world->plan->workers;
	if (world->scaling == NULL || index == directory ||
		skep_node_outcome(world->process[directory].node) != SKEP_RUNNING)
		return; /* the run is over */
	if (!skep_node_returned(world->process[index].node))
		world->scaling->machine[index].there = false; /* it had notice: the trace is about to take it */
	lose(world, index);
	skep_preemption_end(world, index, SKEP_TIME_NEVER);
	fill(world, kind_of(world, index));
}

bool skep_scaling_begin(struct skep_world *world)
{
	const struct skep_scenario *scenario = world->scenario;
	const uint32_t workers = world->plan->workers;
	if (world->plan->scale == NULL)
		return true;
	world->scaling = calloc(1, sizeof *world->scaling);
	struct skep_scaling_machine *machine = world->scaling != NULL ? calloc(workers, sizeof *machine) : NULL;
	if (machine == NULL)
		return false;
	world->scaling->machine = machine;
	for (uint32_t i = 0; i < workers; i++) {
		bool there = !world->process[i].dead;
		machine[i] = (struct skep_scaling_machine){scenario->scale_there[i], there, there, NO_BOOT};
		world->scaling->had[kind_of(world, i)] += there;
	}
	for (uint32_t k = 0; k < world->plan->scale->kinds; k++)
		world->scaling->wanted[k] = world->plan->scale->kind[k].start;
	return true;
}

void skep_scaling_finish(struct skep_world *world)
{
	if (world->scaling != NULL)
		free(world->scaling->machine);
	free(world->scaling);
}
