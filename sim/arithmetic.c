/* SPDX-License-Identifier: Apache-2.0
 *
 * arithmetic.c - decides when the devices of a simulated run compute (arithmetic: real).
 *
 * Passes, steps and reductions are offered to the device threads when they begin and called in when they end. An
 * operation that touches more than its own device (a checkpoint, which all workers see from then on) or is rare (a
 * state that is sent or loaded) is done here when it ends.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/device/device_cpu.h"
#include "sim/world.h"

/* ---- checkpoints: the folder of a simulated cluster is memory, unless it is asked to keep more ------------------ */

static bool keep(void *context, uint32_t part, uint32_t version, bool presumed, const void *state, uint64_t bytes,
	struct skep_diag *reterr)
{
	assert(skep_plan_parts(((struct skep_world *)context)->plan) > part);
	struct skep_world *world = context;
	struct skep_kept *kept = &world->kept[part * SKEP_WORLD_KEPT], *oldest = kept;
	for (uint32_t i = 1; i < SKEP_WORLD_KEPT; i++)
		oldest = kept[i].version < oldest->version ? &kept[i] : oldest;
	for (uint32_t i = 0; i < SKEP_WORLD_KEPT; i++) /* several workers may keep the same */
		oldest = kept[i].version == version ? &kept[i] : oldest;
	void *memory = realloc(oldest->state, bytes);
	if (!memory)
		return skep_fail(reterr, "not enough memory for a checkpoint");
	memcpy(memory, state, bytes);
	*oldest = (struct skep_kept){version, memory};
	const struct skep_keeper files = skep_checkpoint_keeper(&world->folder);
	return world->folder.run == 0 || files.write(files.context, part, version, presumed, state, bytes, reterr);
}

static bool find_kept(
	void *context, uint32_t part, uint32_t version, void *ret_state, uint64_t bytes, struct skep_diag *reterr)
{
	assert(skep_plan_parts(((struct skep_world *)context)->plan) > part);
	struct skep_world *world = context;
	const struct skep_kept *kept = &world->kept[part * SKEP_WORLD_KEPT];
	for (uint32_t i = 0; i < SKEP_WORLD_KEPT; i++) {
		if (kept[i].version != version || !kept[i].state)
			continue;
		memcpy(ret_state, kept[i].state, bytes);
		return true;
	}
	const struct skep_keeper files = skep_checkpoint_keeper(&world->folder);
	if (version == world->folder.from_version)
		return files.read(files.context, part, version, ret_state, bytes, reterr);
	return skep_fail(reterr, "no checkpoint of part %u of the state, version %u", part, version);
}

bool skep_arithmetic_device(struct skep_world *world, uint32_t worker, uint32_t stage)
{
	assert(worker < world->plan->workers);
	struct skep_process *process = &world->process[worker];
	if (world->scenario->arithmetic != SKEP_ARITHMETIC_REAL)
		return true;
	uint32_t candidate = stage == SKEP_NO_STAGE ? 0 : skep_plan_candidate_of(world->plan, worker);
	process->device = skep_device_create_on(SKEP_DEVICE_CPU, &(struct skep_device_place){.candidate = candidate},
		&world->scenario->training, stage, &world->error);
	if (!process->device)
		return false;
	struct skep_byzantine byzantine = skep_scenario_byzantine(world->scenario, worker);
	skep_device_set_keeper(process->device, &(struct skep_keeper){world, keep, find_kept});
	skep_device_set_byzantine(process->device, &byzantine);
	return skep_device_take_up(
		process->device, world->plan->first_round, skep_plan_first_rank(world->plan, worker), &world->error);
}

/* ---- operations ----------------------------------------------------------------------------------------------- */

/* Less than about so many floating point operations are done in the time that it takes to wake a thread. */
#define LIGHT_FLOP 500e3

static bool is_shared_out(const struct skep_op *op)
{
	bool steps = op->kind == SKEP_OP_STEP || op->kind == SKEP_OP_INNER_STEP || op->kind == SKEP_OP_PSEUDO_GRAD ||
	             op->kind == SKEP_OP_DISCARD;
	return skep_op_passes(op->kind) || steps || skep_op_reduces(op->kind);
}

/* On the mean of the stages: what is light costs little wherever it is done. A parameter is used for each sample, in a language
 * model for each token of it, by one multiplication and one addition. */
static void weigh(struct skep_world *world)
{
	const struct skep_training *training = &world->scenario->training;
	double parameters = 0, uses = training->samples;
	for (uint32_t stage = 0; stage < world->plan->stages; stage++)
		parameters += (double)world->plan->stage[stage].parameters / world->plan->stages;
	if (training->model->sequence > 0)
		uses *= training->model->sequence;
	world->light_passes = 2 * parameters * uses < LIGHT_FLOP;
	world->light_steps = 10 * parameters < LIGHT_FLOP;
}

bool skep_arithmetic_init(struct skep_world *world, uint32_t threads)
{
	if (world->scenario->arithmetic != SKEP_ARITHMETIC_REAL)
		return true;
	weigh(world);
	if (!skep_cpu_reserve(threads < world->plan->workers ? threads : world->plan->workers, &world->error))
		return false;
	world->device_threads = skep_device_threads_create(world->plan->workers, threads);
	return world->device_threads != NULL;
}

void skep_arithmetic_begin(struct skep_world *world, uint32_t worker, const struct skep_op *op)
{
	assert(worker < world->plan->workers);
	assert(op->lane < SKEP_LANES);
	struct skep_device *device = world->process[worker].device;
	if (device && is_shared_out(op))
		skep_device_threads_begin(world->device_threads, worker, device, op,
			skep_op_passes(op->kind) ? world->light_passes : world->light_steps);
}

void skep_arithmetic_end(
	struct skep_world *world, uint32_t worker, const struct skep_op *op, struct skep_device_result *ret)
{
	assert(worker < world->plan->workers);
	assert(op->lane < SKEP_LANES);
	if (is_shared_out(op)) {
		skep_device_threads_end(world->device_threads, worker, op->lane, ret);
		skep_expert_use_add(&world->process[worker].experts, &ret->experts);
		return;
	}
	skep_device_threads_drain(world->device_threads, worker);
	skep_device_run(world->process[worker].device, op, ret);
}

void skep_arithmetic_forget(struct skep_world *world, uint32_t worker)
{
	assert(worker < world->plan->workers);
	if (world->device_threads)
		skep_device_threads_forget(world->device_threads, worker);
	skep_device_destroy(world->process[worker].device);
	world->process[worker].device = NULL;
}
