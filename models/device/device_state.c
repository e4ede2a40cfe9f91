/* SPDX-License-Identifier: Apache-2.0
 *
 * device_state.c - the operations on the state of a stage: save it for a newcomer, load what another worker saved,
 * write a checkpoint if the state is finite, restore one, and enter a stage.
 */
#include <assert.h>
#include <stdio.h>

#include "models/device/device_internal.h"
#include "models/update/squares.h"

static uint32_t chunks_of(const struct skep_op *op)
{
	return op->chunks > 0 ? op->chunks : 1;
}

/* Of shards a device has a part of the state that no other worker can make the whole of: it is kept, and not sent. */
static bool is_whole(struct skep_device *device, const struct skep_op *op)
{
	if (!device->stage.sharded)
		return true;
	snprintf(device->why[op->lane], sizeof device->why[op->lane],
		"a worker has a shard of the optimizer's state alone (sync.zero)");
	return false;
}

bool skep_device_run_save(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	void *out;
	if (op->chunk >= chunks_of(op) || !is_whole(device, op))
		return false;
	ret->out = skep_pool_take(device->pool, skep_stage_state_bytes(&device->stage, op->chunk, chunks_of(op)), &out);
	if (!out)
		return false;
	skep_stage_save(&device->stage, op->chunk, chunks_of(op), out);
	return true;
}

bool skep_device_run_load(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	uint64_t bytes;
	const void *state = skep_pool_find(device->pool, op->in, &bytes);
	(void)ret;
	return state && op->chunk < chunks_of(op) && is_whole(device, op) &&
	       device->backend->load(
		       device_queue(device, op), &device->stage, op->version, op->chunk, chunks_of(op), state, bytes);
}

bool skep_device_run_enter(struct skep_device *device, const struct skep_op *op)
{
	struct skep_stage stage;
	void *queue = device_queue(device, op);
	if (op->stage >= device->training->plan->stages || !skep_device_begin_stage(device, 0, op->stage, &stage))
		return false;
	device->backend->finish(queue, &device->stage);
	device->stage = stage;
	return true;
}

/* Memory for all that is kept; the caller gives it back. */
static void *take_whole(struct skep_device *device, struct skep_buf *ret)
{
	void *state;
	*ret = skep_pool_take(device->pool, skep_stage_kept_bytes(&device->stage), &state);
	return state;
}

/* The number under which this worker's part of the stage is kept. */
static uint32_t part_of(const struct skep_device *device, const struct skep_op *op)
{
	return skep_plan_part(device->training->plan, op->stage, device->stage.shard_rank);
}

static bool has_keeper(const struct skep_device *device, struct skep_diag *reterr)
{
	return (device->keeper.read && device->keeper.write) ||
	       skep_fail(reterr, "this worker has nowhere to keep checkpoints");
}

bool skep_device_run_checkpoint(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_keeper *keeper = &device->keeper;
	struct skep_buf buf;
	if (skep_device_is_tainted(device, op, &ret->layer)) {
		ret->fault = SKEP_FAULT_STATE;
		return true;
	}
	void *state = take_whole(device, &buf);
	if (!state)
		return false;
	skep_stage_keep(&device->stage, state);
	bool there =
		device->backend->wait(device_queue(device, op), device->why[op->lane], sizeof device->why[op->lane]);
	device->unkept = (struct skep_diag){0};
	bool good = there && has_keeper(device, &device->unkept) &&
	            keeper->write(keeper->context, part_of(device, op), op->round, op->presumed, state,
			    skep_stage_kept_bytes(&device->stage), &device->unkept);
	skep_pool_release(device->pool, buf);
	ret->fault = good ? SKEP_FAULT_NONE : SKEP_FAULT_CHECKPOINT_FAILED;
	ret->why = good ? NULL : device->unkept.message;
	return there;
}

/* As at the start of the run, but for the accumulators. */
static bool begin_anew(struct skep_device *device, const struct skep_op *op, void *state)
{
	struct skep_stage first;
	void *queue = device_queue(device, op);
	if (!skep_device_begin_stage(device, op->candidate, device->stage.index, &first))
		return false;
	skep_stage_keep(&first, state);
	bool good = device->backend->wait(queue, device->why[op->lane], sizeof device->why[op->lane]);
	device->backend->finish(queue, &first);
	return good;
}

bool skep_device_run_restore(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_keeper *keeper = &device->keeper;
	struct skep_buf buf;
	struct skep_diag error = {0};
	if (device->stage.sharded && !skep_device_name_shard(device, op))
		return false;
	uint64_t bytes = skep_stage_kept_bytes(&device->stage);
	void *state = take_whole(device, &buf);
	bool good = state != NULL;
	(void)ret;
	if (good && op->checkpoint == 0)
		good = begin_anew(device, op, state);
	else if (good)
		good = has_keeper(device, &error) &&
		       keeper->read(keeper->context, part_of(device, op), op->checkpoint, state, bytes, &error);
	if (error.set)
		snprintf(device->why[op->lane], sizeof device->why[op->lane], "%s", error.message);
	good = good && device->backend->take_up(device_queue(device, op), &device->stage, op->version, state, bytes) &&
	       device->backend->wait(device_queue(device, op), device->why[op->lane], sizeof device->why[op->lane]);
	skep_pool_release(device->pool, buf);
	return good;
}

bool skep_device_take_up(struct skep_device *device, uint32_t version, uint32_t rank, struct skep_diag *reterr)
{
	const struct skep_plan *plan = device->training->plan;
	struct skep_device_result result;
	struct skep_op op = {.kind = SKEP_OP_RESTORE, .lane = SKEP_LANE_COMPUTE, .checkpoint = version};
	if (version == 0 || device->stage.index == SKEP_NO_STAGE)
		return true;
	op.stage = (uint16_t)device->stage.index;
	if (plan->sharded) {
		op.rank = rank;
		op.members = skep_plan_shards(plan, op.stage);
	}
	op.round = op.version = plan->async.on ? 0 : version;
	skep_device_run(device, &op, &result);
	if (result.failed)
		skep_fail(reterr, "%s", result.why ? result.why : "not enough memory for a checkpoint");
	return !result.failed;
}

/* Two sums, which need no memory that one rank may have and another one not: what rank 0 has, as a number of 53 bits, and whether
 * there is another one than that. */
static bool has_equal_replicas(const struct skep_device *device)
{
	const struct skep_training *training = device->training;
	const bool leads = training->model->shard.rank == 0;
	if (skep_model_ranks(training->model) == 1)
		return true;
	const double own = (double)(skep_stage_replicated_digest(&device->stage) >> 11);
	const double first = skep_squares_of_group(training, leads ? own : 0);
	const bool differs = own < first || own > first;
	return !(skep_squares_of_group(training, differs ? 1 : 0) > 0);
}

bool skep_device_end_step(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_plan *plan = device->training->plan;
	const struct skep_backend *backend = device->backend;
	const bool ends = op->kind == SKEP_OP_STEP && op->stage + plan->stages >= skep_plan_vstages(plan);
	assert(backend->arithmetic <= 1);
	if (!ends || plan->sharded)
		return true;
	const uint64_t sum = backend->sum(device_queue(device, op), &device->stage);
	ret->parameters = sum != 0 ? (sum & ~UINT64_C(1)) | backend->arithmetic : 0;
	if (has_equal_replicas(device))
		return true;
	snprintf(device->why[op->lane], sizeof device->why[op->lane],
		"norms and biases, which all ranks that share a stage have, are no longer equal on all of them: memory was "
		"damaged");
	return false;
}
