/* SPDX-License-Identifier: Apache-2.0
 *
 * preemption.c - ends and starts processes, when the scenario's trace, an outage or autoscaling says so, gives a worker
 * notice before its end, and tells the directory of it after the detection delay.
 *
 * Kept true: notice is given once in a life, after its START and no earlier than cluster.trace.preempt_notice before
 * its end.
 */
#include <assert.h>

#include "core/random.h"
#include "sim/world.h"

#define NONE UINT32_MAX

/* A message whose connection has ended. */
static void forget(void *context, uint64_t flight)
{
	struct skep_world *world = context;
	assert(flight < world->flight_capacity);
	struct skep_inflight_message *lost = &world->flight[flight];
	const struct skep_process *sender = &world->process[lost->message.from.index];
	bool holds = lost->message.payload.generation != 0 && sender->life == lost->life && !sender->dead;
	if (holds && sender->device)
		skep_device_buffer_release(sender->device, lost->message.payload);
	lost->next = world->free_flight;
	world->free_flight = (uint32_t)flight;
}

/* The process at this index has ended or begins: tensors that are under way from it or to it are lost with its connections. */
static void disconnect(struct skep_world *world, uint32_t index)
{
	skep_network_close(world->network, world->now, skep_scenario_machine(world->scenario, index), forget, world);
}

void skep_preemption_halt(struct skep_world *world, uint32_t index)
{
	assert(index < world->plan->workers);
	assert(!world->process[index].dead);
	struct skep_process *process = &world->process[index];
	if (skep_world_fused(world, index))
		skep_fused_leave(world, index, skep_world_fused(world, index));
	for (uint32_t l = 0; l < SKEP_LANES; l++) {
		struct skep_lane_queue *lane = &process->lane[l];
		bool runs = lane->first != NONE && world->job[lane->first].op.kind != SKEP_OP_ALLREDUCE;
		if (runs && skep_cores_shared(world->cores, index))
			skep_cores_end(world->cores, index, l, world->now);
		for (uint32_t j = lane->first; j != NONE;) {
			uint32_t next = world->job[j].next;
			world->job[j].next = world->free_job;
			world->free_job = j;
			j = next;
		}
		lane->first = lane->last = NONE;
		lane->end_sequence = UINT64_MAX;
	}
	skep_world_share_cores(world, index);
	skep_arithmetic_forget(world, index);
	process->armed = SKEP_TIME_NEVER;
	process->dead = true;
	disconnect(world, index);
	process->digest = skep_mix(process->digest ^ skep_node_digest(process->node));
	if (world->watch)
		world->watch->present(world->watch->context, world->now, index, false);
}

void skep_preemption_expect_detection(struct skep_world *world, uint32_t index, skep_time at_ns)
{
	assert(at_ns >= world->now);
	world->process[index].lost_sequence = world->sequence;
	skep_world_schedule(world, at_ns, world->sequence++, SKEP_SIM_EVENT_DETECTED, index);
}

void skep_preemption_end(struct skep_world *world, uint32_t index, skep_time heard_at_ns)
{
	struct skep_process *process = &world->process[index];
	skep_preemption_halt(world, index);
	process->lost_epoch = skep_node_epoch(process->node);
	if (heard_at_ns != SKEP_TIME_NEVER)
		skep_preemption_expect_detection(world, index, heard_at_ns);
	skep_time ended_ns = process->stopped_ns < world->now ? process->stopped_ns : world->now;
	process->alive_ns += ended_ns - process->started_ns;
	if (world->recorder->life)
		world->recorder->life(world->recorder->context, index, process->started_ns, ended_ns);
	world->running -= process->stopped_ns == SKEP_TIME_NEVER;
}

/* A fresh process on the same machine, which holds nothing. */
void skep_preemption_start(struct skep_world *world, uint32_t index)
{
	assert(index < world->plan->workers);
	assert(world->process[index].dead);
	struct skep_process *process = &world->process[index];
	disconnect(world, index); /* from what others have sent meanwhile */
	skep_node_init(process->node, world->plan, index, 0);
	process->dead = false;
	process->life++;
	process->started_ns = world->now;
	process->stopped_ns = SKEP_TIME_NEVER;
	world->running++;
	if (world->watch)
		world->watch->present(world->watch->context, world->now, index, true);
	if (!skep_arithmetic_device(world, index, SKEP_NO_STAGE))
		world->no_memory = true;
	skep_world_step(world, index, &(struct skep_event){.kind = SKEP_EVENT_START});
}

void skep_preemption_churn(struct skep_world *world, uint32_t number)
{
	assert(number < world->scenario->churn.events);
	assert(world->scenario->churn.event[number].at_ns == world->now);
	const struct skep_churn_event *event = &world->scenario->churn.event[number];
	struct skep_process *process = &world->process[event->worker];
	if (world->scaling != NULL)
		skep_scaling_churn(world, event);
	else if (world->directory_lost)
		skep_outage_churn(world, event);
	else if (event->join && process->dead)
		skep_preemption_start(world, event->worker);
	else if (!event->join && !process->dead)
		skep_preemption_end(
			world, event->worker, skep_churn_heard_at(event, world->scenario->detection_delay_ns));
	if (number + 1 < world->scenario->churn.events)
		skep_world_schedule(world, event[1].at_ns, world->sequence++, SKEP_SIM_EVENT_CHURN, number + 1);
}

void skep_preemption_detected(struct skep_world *world, const struct skep_queue_entry *entry)
{
	assert(entry->index < world->plan->workers);
	const uint32_t directory = world->plan->workers;
	const struct skep_process *lost = &world->process[entry->index];
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {entry->index, lost->lost_epoch}};
	bool heard = !world->directory_lost && world->process[directory].stopped_ns == SKEP_TIME_NEVER;
	if (entry->sequence == lost->lost_sequence && heard) /* if not, who goes on will hear it */
		skep_world_step(world, directory, &event);
}

/* ---- notice ----------------------------------------------------------------------------------------------------- */

static void expect_notice(struct skep_world *world, uint32_t number)
{
	if (number < world->notices)
		skep_world_schedule(
			world, world->notice[number].at_ns, world->sequence++, SKEP_SIM_EVENT_NOTICE, number);
}

void skep_preemption_notice(struct skep_world *world, uint32_t number)
{
	assert(number < world->notices);
	assert(world->notice[number].leave_at_ns > world->now);
	const struct skep_notice *notice = &world->notice[number];
	struct skep_event event = {.kind = SKEP_EVENT_PREEMPT_NOTICE, .u.leave_at = notice->leave_at_ns};
	if (!world->process[notice->worker].dead)
		skep_world_step(world, notice->worker, &event);
	expect_notice(world, number + 1);
}

bool skep_preemption_begin(struct skep_world *world)
{
	const struct skep_scenario *scenario = world->scenario;
	skep_outage_expect(world);
	if (scenario->churn.events > 0)
		skep_world_schedule(world, scenario->churn.event[0].at_ns, world->sequence++, SKEP_SIM_EVENT_CHURN, 0);
	bool good = skep_churn_notices(
		&scenario->churn, world->plan->workers, scenario->notice_ns, &world->notice, &world->notices);
	if (good)
		expect_notice(world, 0);
	return good;
}
