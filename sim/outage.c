/* SPDX-License-Identifier: Apache-2.0
 *
 * outage.c - the machine with the directory is lost, and another one, or the same, goes on in its place
 * (scenarios/outage/outage.h): when processes end and begin by it.
 *
 * Kept true: nothing that was sent, or was to be done, before the directory was lost is heard or done after all have begun
 * again, as they begin with the epochs of a new run. A machine's life goes on while its process waits, since its time is paid
 * for.
 */
#include "scenarios/outage/outage.h"

#include <assert.h>

#include "core/random.h"
#include "sim/world.h"

/* A loss of a directory that is lost already changes nothing. */
void skep_outage_expect(struct skep_world *world)
{
	const struct skep_outages *outages = &world->scenario->outages;
	uint32_t number = 0;
	while (number < outages->count && outages->lost_ns[number] < world->now)
		number++;
	if (number < outages->count)
		skep_world_schedule(world, outages->lost_ns[number], world->sequence++, SKEP_SIM_EVENT_OUTAGE, number);
}

static void halt_directory(struct skep_world *world)
{
	struct skep_process *directory = &world->process[world->plan->workers];
	directory->dead = true;
	directory->armed = SKEP_TIME_NEVER;
	directory->digest = skep_mix(directory->digest ^ skep_node_digest(directory->node));
}

static void let_knock(struct skep_world *world, uint32_t worker)
{
	world->process[worker].orphaned = false;
	skep_preemption_halt(world, worker);
}

/* The worker hears nothing more of others. */
static void orphan(struct skep_world *world, uint32_t worker)
{
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {world->plan->workers, 1}};
	struct skep_process *process = &world->process[worker];
	process->orphaned = true;
	skep_world_step(world, worker, &event);
	if (!skep_node_keeps(process->node))
		let_knock(world, worker);
}

/* The number under which the worker keeps its part of the stage. */
static uint32_t part_of(const struct skep_world *world, uint32_t worker, uint32_t stage)
{
	const struct skep_plan *plan = world->plan;
	assert(stage < plan->stages);
	return skep_plan_part(plan, stage, plan->sharded ? skep_plan_first_rank(plan, worker) : 0);
}

void skep_outage_op_ended(struct skep_world *world, uint32_t worker, const struct skep_op *op, bool well)
{
	struct skep_process *process = &world->process[worker];
	bool kept = op->kind == SKEP_OP_CHECKPOINT && op->round > world->plan->first_round;
	assert(world->directory_lost && process->orphaned && !process->dead);
	if (kept && well) {
		process->held_before = process->held;
		process->held = op->round;
		process->held_of = part_of(world, worker, op->stage);
	}
	if (!skep_node_keeps(process->node))
		let_knock(world, worker);
}

static bool has(const struct skep_process *process, uint32_t version)
{
	assert(version > 0);
	return process->knocks && (process->held == version || process->held_before == version);
}

static bool is_held(const struct skep_world *world, uint32_t version)
{
	uint32_t part = 0, parts = skep_plan_parts(world->plan);
	for (bool holds = true; part < parts && holds; part += holds) {
		holds = false;
		for (uint32_t i = 0; i < world->plan->workers && !holds; i++) {
			const struct skep_process *process = &world->process[i];
			holds = has(process, version) && process->held_of == part;
		}
	}
	return part == parts;
}

/* The newest version that those who knock hold of all stages; 0: there is none. */
static uint32_t newest_held(const struct skep_world *world)
{
	uint32_t newest = 0, tried = 0;
	for (uint32_t i = 0; i < 2 * world->plan->workers; i++) {
		const struct skep_process *process = &world->process[i / 2];
		uint32_t version = i % 2 == 0 ? process->held : process->held_before;
		if (!process->knocks || version <= newest || version == tried)
			continue;
		tried = version;
		newest = is_held(world, tried) ? tried : newest;
	}
	return newest;
}

/* With train.until.usd. In the memory of a directory is what machines have cost since it began; one that takes its place begins
 * with none, and is told of all that, and of the time in between, with what traffic has cost. */
static void pay(struct skep_world *world, uint32_t worker)
{
	const struct skep_topology *t = &world->scenario->topology;
	skep_time from_ns = world->process[worker].started_ns;
	assert(world->lost_ns <= world->now && from_ns <= world->now);
	if (world->plan->until.budget_microusd == 0)
		return;
	from_ns = from_ns > world->lost_ns ? from_ns : world->lost_ns;
	skep_egress_bill_add(&world->bill,
		skep_topology_cost_usd(t, skep_scenario_machine(world->scenario, worker), from_ns, world->now));
}

static void remember(struct skep_world *world, const struct skep_node *directory)
{
	world->lost_ns = world->now;
	if (world->plan->until.budget_microusd > 0)
		skep_egress_bill_add(&world->bill, (double)skep_node_spent(directory, world->plan, world->now) * 1e-6);
}

/* Behind its START. */
static void tell_spent(struct skep_world *world)
{
	if (world->plan->until.budget_microusd == 0)
		return;
	world->bill.told_microusd = 0;
	world->tells_egress = skep_egress_bill_due(&world->bill, world->scenario, &world->egress);
	if (world->tells_egress)
		skep_world_schedule(world, world->now, world->sequence++, SKEP_SIM_EVENT_EGRESS, 0);
}

/* What is known of the states that were kept is on the disk of the directory's machine, or of another replica. */
static void lose(struct skep_world *world)
{
	const uint32_t workers = world->plan->workers;
	struct skep_process *directory = &world->process[workers];
	assert(!world->directory_lost);
	if (directory->stopped_ns != SKEP_TIME_NEVER)
		return; /* the run is over */
	world->directory_lost = true;
	world->own_plan.first_round = skep_node_kept(directory->node, world->plan);
	remember(world, directory->node);
	for (uint32_t i = 0; i < workers; i++) {
		world->process[i].knocks = !world->process[i].dead;
		world->process[i].held = world->process[i].held_before = 0;
		if (world->process[i].knocks && world->scenario->outages.with_workers)
			orphan(world, i);
		else if (world->process[i].knocks)
			skep_preemption_halt(world, i);
	}
	halt_directory(world);
	skep_time lasts_ns = skep_outage_lasts_ns(world->scenario, world->plan->first_round);
	skep_world_schedule(world, world->now + lasts_ns, world->sequence++, SKEP_SIM_EVENT_RESUMED, 0);
}

void skep_outage_churn(struct skep_world *world, const struct skep_churn_event *event)
{
	struct skep_process *process = &world->process[event->worker];
	assert(process->dead || process->orphaned);
	if (event->join == process->knocks)
		return;
	if (!process->dead)
		let_knock(world, event->worker);
	process->held = process->held_before = 0; /* a machine that comes has nothing */
	process->knocks = event->join;
	if (event->join) {
		process->started_ns = world->now;
		process->stopped_ns = SKEP_TIME_NEVER;
		world->running++;
		return;
	}
	pay(world, event->worker);
	process->alive_ns += world->now - process->started_ns;
	world->running--;
	if (world->recorder->life)
		world->recorder->life(world->recorder->context, event->worker, process->started_ns, world->now);
}

/* A new process of the machine, as at the start of a run. */
static void begin_again(struct skep_world *world, uint32_t index)
{
	const struct skep_plan *plan = world->plan;
	struct skep_process *process = &world->process[index];
	skep_node_init(process->node, plan, index, skep_plan_first_epoch(plan, index));
	process->dead = process->knocks = false;
	process->life++;
	skep_world_schedule(world, world->now, world->sequence++, SKEP_SIM_EVENT_START, index);
	if (index == plan->workers)
		return;
	if (world->watch)
		world->watch->present(world->watch->context, world->now, index, true);
	if (!skep_arithmetic_device(world, index, plan->first_stage_of[index]))
		world->no_memory = true;
}

/* Who is not there by then is lost before the first step, as with `serve --at-least`. */
static void resume(struct skep_world *world)
{
	const uint32_t workers = world->plan->workers;
	assert(world->directory_lost);
	for (uint32_t i = 0; i < workers; i++)
		if (world->process[i].orphaned)
			let_knock(world, i);
	uint32_t held = newest_held(world);
	if (held > world->plan->first_round)
		world->own_plan.first_round = held;
	if (world->plan->first_round > 0) /* a trial is behind it */
		world->own_plan.candidates.count = 0;
	world->directory_lost = false;
	world->resumed_sequence = world->sequence;
	world->rounds_closed = world->plan->first_round;
	for (uint32_t i = 0; i < workers; i++)
		if (world->process[i].knocks)
			pay(world, i);
	for (uint32_t i = 0; i <= workers; i++)
		if (i == workers || world->process[i].knocks)
			begin_again(world, i);
	tell_spent(world);
	for (uint32_t i = 0; i < workers; i++) {
		struct skep_process *process = &world->process[i];
		process->lost_sequence = UINT64_MAX;
		process->lost_epoch = skep_plan_first_epoch(world->plan, i);
		if (process->dead && process->lost_epoch > 0)
			skep_preemption_expect_detection(world, i, world->now);
	}
	skep_outage_expect(world);
}

void skep_outage_event(struct skep_world *world, const struct skep_queue_entry *entry)
{
	if (entry->kind == SKEP_SIM_EVENT_OUTAGE)
		lose(world);
	else
		resume(world);
}
