/* SPDX-License-Identifier: Apache-2.0
 *
 * world.c - performs what the machines ask for: moves messages through the network, runs operations on lanes,
 * keeps timers, does the arithmetic when there is any. It decides nothing.
 *
 * What is kept true
 *   - All actions of a step are performed in order before anything else happens.
 *   - Arithmetic takes effect when its operation ends, so that no machine sees a result, a changed parameter or a
 *     used-up input earlier than the clock allows; operations that overlap on two lanes take effect in the order in
 *     which they end.
 *   - A payload stays in its sender's device until the message is delivered; then it is copied to the receiver's.
 *   - Without arithmetic a handle is a number that is never used twice.
 *   - A machine has at most one TIMER entry that counts (`armed`). When a deadline moves back, the entry stays, and is
 *     put off when its time has come; when a deadline moves forward, a new entry is made and the old one is ignored.
 */
#include "sim/world.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/plan/loss.h"
#include "scenarios/plan/plan.h"
#include "topologies/network/free_list.h"

#define NONE UINT32_MAX

/* ---- pools ---------------------------------------------------------------------------------------------------- */

static uint32_t flight_take(struct skep_world *world)
{
	if (world->free_flight == NONE && !skep_free_list_grow(&world->flight, sizeof *world->flight,
						  offsetof(struct skep_inflight_message, next), 256,
						  &world->flight_capacity, &world->free_flight))
		return NONE;
	uint32_t flight = world->free_flight;
	world->free_flight = world->flight[flight].next;
	return flight;
}

static uint32_t job_take(struct skep_world *world)
{
	if (world->free_job == NONE &&
		!skep_free_list_grow(&world->job, sizeof *world->job, offsetof(struct skep_job, next), 256,
			&world->job_capacity, &world->free_job))
		return NONE;
	uint32_t job = world->free_job;
	world->free_job = world->job[job].next;
	return job;
}

void skep_world_schedule(
	struct skep_world *world, skep_time time, uint64_t sequence, enum skep_sim_event kind, uint32_t index)
{
	assert(time >= world->now);
	struct skep_queue_entry entry = {time, sequence, kind, index};
	if (!skep_queue_push(&world->queue, entry))
		world->no_memory = true;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

static struct skep_buf handle_make(struct skep_world *world)
{
	uint64_t number = world->handles++;
	return (struct skep_buf){(uint32_t)number, 1 + (uint32_t)(number >> 32)};
}

/* A buffer of its own for a payload whose sender keeps the first one. */
static struct skep_buf copy_of(struct skep_world *world, uint32_t index, struct skep_buf buf)
{
	struct skep_device *device = world->process[index].device;
	struct skep_buf copy = device ? skep_device_buffer_copy(device, device, buf) : handle_make(world);
	world->no_memory = world->no_memory || copy.generation == 0;
	return copy;
}

static void send(struct skep_world *world, const struct skep_message *message, bool keep)
{
	assert(message->from.index <= world->plan->workers);
	assert(message->to.index <= world->plan->workers);
	uint32_t f = flight_take(world);
	if (f == NONE) {
		world->no_memory = true;
		return;
	}
	world->flight[f].message = *message;
	if (keep)
		world->flight[f].message.payload = copy_of(world, message->from.index, message->payload);
	world->flight[f].sequence = world->sequence++;
	world->flight[f].life = world->process[message->from.index].life;
	if (world->watch)
		world->watch->sent(
			world->watch->context, &world->flight[f].message, message->payload, world->flight[f].sequence);
	if (message->from.index == message->to.index) {
		skep_world_arrive(world, f);
		return;
	}
	uint64_t bytes = skep_message_bytes(message);
	uint8_t traffic = (uint8_t)skep_message_traffic(message);
	if (!skep_network_start(world->network, world->now, skep_scenario_machine(world->scenario, message->from.index),
		    skep_scenario_machine(world->scenario, message->to.index), bytes, f))
		world->no_memory = true;
	skep_world_count(world, message->from.index, message->to.index, traffic, 1, bytes);
}

void skep_world_arrive(struct skep_world *world, uint32_t flight)
{
	skep_world_schedule(world, world->now, world->flight[flight].sequence, SKEP_SIM_EVENT_MESSAGE, flight);
}

/* Copies the payload from the sender's device to the receiver's. */
static void move_payload(struct skep_world *world, struct skep_message *message)
{
	struct skep_device *source = world->process[message->from.index].device;
	struct skep_device *destination = world->process[message->to.index].device;
	assert(source && destination);
	struct skep_buf copy = skep_device_buffer_copy(destination, source, message->payload);
	world->no_memory = world->no_memory || copy.generation == 0;
	skep_device_buffer_release(source, message->payload);
	message->payload = copy;
}

/* ---- operations ----------------------------------------------------------------------------------------------- */

/* The handles that a device would have returned, and the loss that a law says. */
static void imagine(struct skep_world *world, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_scenario *scenario = world->scenario;
	bool forward = op->kind == SKEP_OP_FORWARD;
	*ret = (struct skep_device_result){0};
	if (forward && !skep_plan_is_frozen(world->plan, op->stage) &&
		!skep_plan_recomputes(world->plan, scenario->checkpoint_activations, op->stage))
		ret->stash = handle_make(world);
	if (skep_op_puts_out(world->plan, op))
		ret->out = op->kind == SKEP_OP_STORE ? op->in : handle_make(world);
	else if (forward && scenario->law)
		ret->loss_nano = skep_loss_nano(scenario, op->round, op->microbatch);
}

void skep_world_end_fused(struct skep_world *world, uint32_t worker, skep_time time)
{
	assert(worker < world->plan->workers);
	assert(world->process[worker].lane[SKEP_LANE_REDUCE].first != NONE);
	world->process[worker].lane[SKEP_LANE_REDUCE].end_sequence = world->sequence;
	skep_world_schedule(
		world, time, world->sequence++, SKEP_SIM_EVENT_OP_END, worker * SKEP_LANES + SKEP_LANE_REDUCE);
}

/* An ALLREDUCE is first in its lane. */
static void begin_whole(struct skep_world *world, uint32_t worker)
{
	assert(world->process[worker].lane[SKEP_LANE_REDUCE].first != NONE);
	struct skep_lane_queue *lane = &world->process[worker].lane[SKEP_LANE_REDUCE];
	lane->end_sequence = UINT64_MAX;
	if (world->job[lane->first].cancelled)
		skep_world_end_fused(world, worker, world->now);
	else
		skep_fused_join(world, worker, &world->job[lane->first].op);
}

static void job_begin(struct skep_world *world, uint32_t worker, uint32_t lane)
{
	assert(worker < world->plan->workers);
	assert(lane < SKEP_LANES && world->process[worker].lane[lane].first != NONE);
	struct skep_job *job = &world->job[world->process[worker].lane[lane].first];
	job->begin_ns = world->now;
	if (job->op.kind == SKEP_OP_ALLREDUCE) {
		begin_whole(world, worker);
		return;
	}
	skep_arithmetic_begin(world, worker, &job->op);
	skep_time op_ns = skep_scenario_op_ns(world->scenario, worker, &job->op);
	if (world->cores && skep_cores_shared(world->cores, worker)) {
		world->process[worker].lane[lane].end_sequence = UINT64_MAX;
		skep_cores_begin(world->cores, worker, lane, world->now, op_ns);
		return;
	}
	world->process[worker].lane[lane].end_sequence = world->sequence;
	skep_world_schedule(
		world, world->now + op_ns, world->sequence++, SKEP_SIM_EVENT_OP_END, worker * SKEP_LANES + lane);
}

const struct skep_op *skep_world_fused(const struct skep_world *world, uint32_t worker)
{
	assert(worker < world->plan->workers);
	const struct skep_lane_queue *lane = &world->process[worker].lane[SKEP_LANE_REDUCE];
	if (lane->first == NONE || lane->end_sequence != UINT64_MAX)
		return NULL;
	const struct skep_op *op = &world->job[lane->first].op;
	return op->kind == SKEP_OP_ALLREDUCE ? op : NULL;
}

static void cancel(struct skep_world *world, uint32_t worker, uint64_t id)
{
	const struct skep_lane_queue *lane = &world->process[worker].lane[SKEP_LANE_REDUCE];
	uint32_t j = lane->first;
	while (j != NONE && world->job[j].op.id != id)
		j = world->job[j].next;
	assert(j != NONE && world->job[j].op.kind == SKEP_OP_ALLREDUCE);
	world->job[j].cancelled = true;
	if (j != lane->first)
		return;
	if (skep_world_fused(world, worker))
		skep_fused_leave(world, worker, skep_world_fused(world, worker));
	skep_world_end_fused(world, worker, world->now);
}

static void run(struct skep_world *world, uint32_t worker, const struct skep_op *op)
{
	assert(op->lane < SKEP_LANES && worker < world->plan->workers);
	struct skep_lane_queue *lane = &world->process[worker].lane[op->lane];
	uint32_t j = job_take(world);
	if (j == NONE) {
		world->no_memory = true;
		return;
	}
	if (world->watch)
		world->watch->asked(world->watch->context, worker, op);
	world->job[j] = (struct skep_job){.op = *op, .next = NONE};
	if (lane->first != NONE) {
		world->job[lane->last].next = j;
		lane->last = j;
		return;
	}
	lane->first = lane->last = j;
	job_begin(world, worker, op->lane);
	if (world->cores)
		skep_world_share_cores(world, worker);
}

static void report_span(struct skep_world *world, uint32_t worker, const struct skep_op *op, skep_time begin_ns)
{
	assert(worker < world->plan->workers);
	assert(begin_ns <= world->now);
	if (!world->recorder->op)
		return;
	struct skep_op_span span = {.worker = worker,
		.epoch = skep_node_epoch(world->process[worker].node),
		.round = op->round,
		.number = op->number,
		.stage = (uint16_t)(op->stage % world->plan->stages),
		.kind = op->kind,
		.lane = op->lane,
		.begin_ns = begin_ns,
		.end_ns = world->now,
		.busy_ns = world->now - begin_ns};
	world->recorder->op(world->recorder->context, &span);
}

/* Counts the bytes that an operation gathered over the network within its own time, as one message to the next of its stage. */
static void count_gathers(struct skep_world *world, uint32_t worker, const struct skep_op *op)
{
	assert(worker < world->plan->workers);
	uint32_t to = worker;
	uint64_t bytes = skep_scenario_op_bytes(world->scenario, worker, op, &to);
	if (bytes > 0)
		skep_world_count(world, worker, to, SKEP_TRAFFIC_SYNC, 1, bytes);
}

/* The first job of a lane is done: the arithmetic, the report, the next job. Fills the machine's event. */
static void job_end(struct skep_world *world, uint32_t worker, uint32_t l, struct skep_event *ret)
{
	assert(worker < world->plan->workers);
	assert(l < SKEP_LANES && world->process[worker].lane[l].first != NONE);
	struct skep_process *process = &world->process[worker];
	struct skep_lane_queue *lane = &process->lane[l];
	uint32_t j = lane->first;
	struct skep_job *job = &world->job[j];
	struct skep_device_result result;
	if (process->device)
		skep_arithmetic_end(world, worker, &job->op, &result);
	else
		imagine(world, &job->op, &result);
	if (result.failed) { /* operands come from the core and fit: it is memory that lacks, or it says what else */
		if (result.why)
			skep_fail(&world->error, "%s", result.why);
		world->no_memory = true;
		return;
	}
	if (world->cores && skep_cores_shared(world->cores, worker) && job->op.kind != SKEP_OP_ALLREDUCE)
		skep_cores_end(world->cores, worker, l, world->now);
	report_span(world, worker, &job->op, job->begin_ns);
	if (world->scenario->zero > 0)
		count_gathers(world, worker, &job->op);
	*ret = skep_device_event(&job->op, &result, world->now - job->begin_ns);
	lane->busy_ns += world->now - job->begin_ns;
	lane->first = job->next;
	job->next = world->free_job;
	world->free_job = j;
	if (lane->first != NONE)
		job_begin(world, worker, l);
	if (world->cores)
		skep_world_share_cores(world, worker);
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

static void perform(struct skep_world *world, uint32_t index)
{
	assert(index <= world->plan->workers);
	assert(world->actions.count <= world->actions.capacity);
	for (uint32_t i = 0; i < world->actions.count; i++) {
		const struct skep_action *action = &world->actions.item[i];
		switch ((enum skep_action_kind)action->kind) {
		case SKEP_ACTION_SEND:
			send(world, &action->u.send, action->keep);
			break;
		case SKEP_ACTION_RUN:
			run(world, index, &action->u.run);
			break;
		case SKEP_ACTION_RELEASE:
			if (world->process[index].device)
				skep_device_buffer_release(world->process[index].device, action->u.release);
			break;
		case SKEP_ACTION_CANCEL:
			cancel(world, index, action->u.cancel);
			break;
		case SKEP_ACTION_NOTE:
			skep_world_note(world, index, &action->u.note);
			break;
		case SKEP_ACTION_SCALE:
			skep_scaling_want(world, action->u.scale.kind, action->u.scale.machines);
			break;
		}
	}
}

static void arm(struct skep_world *world, uint32_t index)
{
	assert(index <= world->plan->workers);
	struct skep_process *process = &world->process[index];
	skep_time deadline = skep_node_deadline(process->node);
	if (deadline >= process->armed)
		return;
	process->armed = deadline > world->now ? deadline : world->now;
	skep_world_schedule(world, process->armed, world->sequence++, SKEP_SIM_EVENT_TIMER, index);
}

static size_t aligned(size_t size)
{
	return (size + 63) & ~(size_t)63;
}

/* Moves a machine that needs more memory than it has, from the place that it began in or from the last larger one. */
static void relocate_node(struct skep_world *world, struct skep_process *process)
{
	void *larger = aligned_alloc(64, aligned(skep_node_wanted(process->node)));
	if (!larger) {
		world->no_memory = true;
		return;
	}
	process->node = skep_node_relocate(larger, process->node);
	free(process->moved);
	process->moved = larger;
}

/* A message that is delivered was freed last. */
__attribute__((cold)) static void tell_watch(
	const struct skep_world *world, uint32_t index, const struct skep_event *event)
{
	uint64_t number = event->kind == SKEP_EVENT_MESSAGE ? world->flight[world->free_flight].sequence : 0;
	world->watch->stepped(world->watch->context, index, event, number, &world->actions);
}

void skep_world_step(struct skep_world *world, uint32_t index, struct skep_event *event)
{
	assert(index <= world->plan->workers);
	assert(!world->process[index].dead);
	struct skep_process *process = &world->process[index];
	if (world->no_memory) /* what has just happened is not whole, and the run ends */
		return;
	event->now = world->now;
	process->events++;
	skep_node_step(process->node, world->plan, event, &world->actions);
	if (world->watch)
		tell_watch(world, index, event);
	if (skep_node_wanted(process->node) > 0)
		relocate_node(world, process);
	perform(world, index);
	arm(world, index);
	if (process->stopped_ns == SKEP_TIME_NEVER && skep_node_outcome(process->node) != SKEP_RUNNING) {
		process->stopped_ns = world->now;
		world->running--;
		skep_scaling_stopped(world, index);
	}
}

static struct skep_lane_queue *lane_of(struct skep_world *world, uint32_t index)
{
	assert(index < (world->plan->workers + 1) * SKEP_LANES);
	return &world->process[index / SKEP_LANES].lane[index % SKEP_LANES];
}

static void handle_timer(struct skep_world *world, uint32_t index)
{
	assert(index <= world->plan->workers);
	assert(world->process[index].armed >= world->now);
	struct skep_process *process = &world->process[index];
	if (process->armed != world->now)
		return;
	process->armed = SKEP_TIME_NEVER;
	if (skep_node_deadline(process->node) > world->now)
		arm(world, index);
	else
		skep_world_step(world, index, &(struct skep_event){.kind = SKEP_EVENT_TIMER});
}

void skep_world_deliver(struct skep_world *world, uint32_t f)
{
	assert(f < world->flight_capacity);
	struct skep_event event; /* what it has no use for stays as it is: it is large */
	event.kind = SKEP_EVENT_MESSAGE;
	event.layer = event.fault = 0;
	event.u.message = world->flight[f].message;
	struct skep_message *message = &event.u.message;
	uint32_t life = world->flight[f].life;
	bool to_lost = world->flight[f].sequence < world->resumed_sequence;
	world->flight[f].next = world->free_flight;
	world->free_flight = f;
	const struct skep_process *sender = &world->process[message->from.index];
	if (to_lost || (message->payload.generation != 0 && (sender->life != life || sender->dead)))
		return; /* the payload went with its process */
	if (world->process[message->to.index].dead || world->directory_lost) {
		if (sender->device)
			skep_device_buffer_release(sender->device, message->payload);
		return;
	}
	if (message->payload.generation != 0 && message->from.index != message->to.index &&
		world->process[message->from.index].device)
		move_payload(world, message);
	skep_world_step(world, message->to.index, &event);
}

void skep_world_handle(struct skep_world *world, const struct skep_queue_entry *entry)
{
	struct skep_event event;
	switch ((enum skep_sim_event)entry->kind) {
	case SKEP_SIM_EVENT_START:
		event.kind = SKEP_EVENT_START;
		event.u.resumes = entry->index == world->plan->workers && world->process[entry->index].life > 0;
		skep_world_step(world, entry->index, &event);
		break;
	case SKEP_SIM_EVENT_TIMER:
		handle_timer(world, entry->index);
		break;
	case SKEP_SIM_EVENT_CHURN:
		skep_preemption_churn(world, entry->index);
		break;
	case SKEP_SIM_EVENT_NOTICE:
		skep_preemption_notice(world, entry->index);
		break;
	case SKEP_SIM_EVENT_DETECTED:
		skep_preemption_detected(world, entry);
		break;
	case SKEP_SIM_EVENT_EGRESS:
		skep_egress_tell(world);
		break;
	case SKEP_SIM_EVENT_BOOTED:
		skep_scaling_booted(world, entry);
		break;
	case SKEP_SIM_EVENT_OUTAGE:
	case SKEP_SIM_EVENT_RESUMED:
		skep_outage_event(world, entry);
		break;
	case SKEP_SIM_EVENT_OP_END:
		if (entry->sequence != lane_of(world, entry->index)->end_sequence)
			break;
		job_end(world, entry->index / SKEP_LANES, entry->index % SKEP_LANES, &event);
		skep_world_step(world, entry->index / SKEP_LANES, &event);
		if (world->directory_lost && !world->no_memory)
			skep_outage_op_ended(
				world, entry->index / SKEP_LANES, &event.u.done.op, event.fault == SKEP_FAULT_NONE);
		break;
	case SKEP_SIM_EVENT_MESSAGE:
		skep_world_deliver(world, entry->index);
		break;
	}
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static bool init_nodes(struct skep_world *world)
{
	const struct skep_plan *plan = world->plan;
	size_t worker_size = aligned(skep_node_size(plan, 0)); /* of all of them; it takes a look at all to tell */
	size_t bytes = plan->workers * worker_size + aligned(skep_node_size(plan, plan->workers));
	world->node_memory = aligned_alloc(64, bytes);
	if (!world->node_memory)
		return false;
	skep_large_pages(world->node_memory, bytes);
	world->looks_ahead = bytes > SKEP_WORLD_CACHE_BYTES;
	if (world->looks_ahead)
		skep_network_look_ahead(world->network);
	unsigned char *at = world->node_memory;
	for (uint32_t i = 0; i <= plan->workers; i++) {
		world->process[i].node = skep_node_init(at, plan, i, skep_plan_first_epoch(plan, i));
		at += worker_size;
	}
	return true;
}

bool skep_world_init(struct skep_world *world, const struct skep_scenario *scenario, uint32_t threads,
	const struct skep_recorder *recorder)
{
	const struct skep_plan *plan = &world->own_plan;
	*world = (struct skep_world){.scenario = scenario,
		.plan = plan,
		.own_plan = skep_plan_simulated(scenario),
		.recorder = recorder,
		.free_flight = NONE,
		.free_job = NONE,
		.running = scenario->plan.workers + 1,
		.rounds_closed = scenario->plan.first_round,
		.folder = skep_scenario_folder(scenario)};
	assert(plan->workers <= scenario->topology.machines);
	world->actions.capacity = skep_actions_limit(plan);
	world->actions.item = calloc(world->actions.capacity, sizeof *world->actions.item);
	world->process = calloc(plan->workers + 1u, sizeof *world->process);
	world->network = skep_network_create(&scenario->topology);
	world->kept = calloc((size_t)skep_plan_parts(plan) * SKEP_WORLD_KEPT, sizeof *world->kept);
	if (!world->kept || !world->actions.item || !world->process || !world->network ||
		!skep_cores_create(&scenario->topology, plan->workers, SKEP_LANES, scenario->threads, &world->cores) ||
		!skep_arithmetic_init(world, threads))
		return false;
	skep_large_pages(world->process, (plan->workers + 1) * sizeof *world->process);
	for (uint32_t i = 0; i <= plan->workers; i++) {
		world->process[i].armed = world->process[i].stopped_ns = SKEP_TIME_NEVER;
		for (uint32_t l = 0; l < SKEP_LANES; l++)
			world->process[i].lane[l] = (struct skep_lane_queue){.first = NONE, .last = NONE};
		world->process[i].dead = skep_scenario_has_absent(scenario) && i < plan->workers;
	}
	for (uint32_t i = 0; i < scenario->churn.presents; i++)
		world->process[scenario->churn.present[i]].dead = false;
	for (uint32_t i = 0; i <= plan->workers; i++) {
		if (world->process[i].dead)
			world->running--;
		else
			skep_world_schedule(world, 0, world->sequence++, SKEP_SIM_EVENT_START, i);
		if (i < plan->workers && !world->process[i].dead &&
			!skep_arithmetic_device(world, i, plan->first_stage_of[i]))
			return false;
	}
	return init_nodes(world) && skep_preemption_begin(world) && skep_scaling_begin(world) && !world->no_memory;
}

void skep_world_finish(struct skep_world *world)
{
	skep_device_threads_destroy(world->device_threads);
	for (uint32_t i = 0; world->process && i <= world->plan->workers; i++)
		skep_device_destroy(world->process[i].device);
	for (uint32_t i = 0; world->process && i <= world->plan->workers; i++)
		free(world->process[i].moved);
	for (uint32_t i = 0; world->kept && i < skep_plan_parts(world->plan) * SKEP_WORLD_KEPT; i++)
		free(world->kept[i].state);
	free(world->kept);
	skep_network_destroy(world->network);
	skep_cores_destroy(world->cores);
	skep_queue_finish(&world->queue);
	skep_traffic_finish(&world->traffic);
	skep_fused_finish(world);
	free(world->notice);
	skep_scaling_finish(world);
	free(world->node_memory);
	free(world->actions.item);
	free(world->process);
	free(world->flight);
	free(world->job);
}
