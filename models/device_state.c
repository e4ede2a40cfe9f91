/* SPDX-License-Identifier: Apache-2.0
 *
 * device_state.c - the state of a stage: in chunks for newcomers, as a whole for checkpoints. What is not finite is never kept.
 */
#include <stdio.h>

#include "models/device_inside.h"
#include "models/squares.h"
#include "models/stage_weights.h"

static uint32_t chunks_of(const struct skep_op *op)
{
	return op->size > 0 ? op->size : 1;
}

bool device_run_save(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	void *out;
	if (op->chunk >= chunks_of(op))
		return false;
	ret->out = skep_pool_take(device->pool, skep_stage_state_bytes(&device->stage, op->chunk, chunks_of(op)), &out);
	if (!out)
		return false;
	skep_stage_save(&device->stage, op->chunk, chunks_of(op), out);
	return true;
}

bool device_run_load(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	uint64_t bytes;
	const void *state = skep_pool_find(device->pool, op->in, &bytes);
	(void)ret;
	return state && op->chunk < chunks_of(op) &&
	       skep_stage_load(&device->stage, op->version, op->chunk, chunks_of(op), state, bytes);
}

bool device_run_enter(struct skep_device *device, const struct skep_op *op)
{
	struct skep_stage stage;
	if (op->stage >= device->training->plan->stages || !skep_stage_begin(device->training, op->stage, &stage))
		return false;
	skep_stage_finish(&device->stage);
	device->stage = stage;
	return true;
}

/* Memory for the whole state; the caller gives it back. */
static void *take_whole(struct skep_device *device, struct skep_buf *ret)
{
	void *state;
	*ret = skep_pool_take(device->pool, skep_stage_state_bytes(&device->stage, 0, 1), &state);
	return state;
}

static bool has_keeper(struct skep_device *device, char *reterr, size_t size)
{
	bool has = device->keeper.read && device->keeper.write;
	if (!has)
		snprintf(reterr, size, "this worker has nowhere to keep checkpoints");
	return has;
}

/* Is something of the stage's state not finite? Then it is never kept in place of one that is. */
static bool spoilt(const struct skep_device *device, uint16_t *ret_layer)
{
	const struct skep_stage *stage = &device->stage;
	*ret_layer = skep_squares_backward_layer(stage, skep_stage_parameters(stage, stage->version));
	for (uint32_t m = 0; m < stage->moments && *ret_layer == 0; m++)
		*ret_layer = skep_squares_backward_layer(stage, stage->moment[m]);
	return *ret_layer > 0;
}

bool device_run_checkpoint(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_keeper *keeper = &device->keeper;
	struct skep_buf buf;
	if (spoilt(device, &ret->layer)) {
		ret->fault = SKEP_FAULT_STATE;
		return true;
	}
	void *state = take_whole(device, &buf);
	if (!state)
		return false;
	skep_stage_save(&device->stage, 0, 1, state);
	bool good = has_keeper(device, device->unkept, sizeof device->unkept) &&
	            keeper->write(keeper->context, op->stage, op->round, state,
			    skep_stage_state_bytes(&device->stage, 0, 1), device->unkept, sizeof device->unkept);
	skep_pool_release(device->pool, buf);
	ret->fault = good ? SKEP_FAULT_NONE : SKEP_FAULT_UNKEPT;
	ret->why = good ? NULL : device->unkept;
	return true;
}

/* As at the start of the run, but for the accumulators. */
static bool begin_anew(struct skep_device *device, void *state)
{
	struct skep_stage first;
	if (!skep_stage_begin(device->training, device->stage.index, &first))
		return false;
	skep_stage_save(&first, 0, 1, state);
	skep_stage_finish(&first);
	return true;
}

bool device_run_restore(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_keeper *keeper = &device->keeper;
	uint64_t bytes = skep_stage_state_bytes(&device->stage, 0, 1);
	struct skep_buf buf;
	void *state = take_whole(device, &buf);
	bool good = state != NULL;
	(void)ret;
	if (good && op->microbatch == 0)
		good = begin_anew(device, state);
	else if (good)
		good = has_keeper(device, device->why, sizeof device->why) &&
		       keeper->read(keeper->context, op->stage, op->microbatch, state, bytes, device->why,
			       sizeof device->why);
	good = good && skep_stage_load(&device->stage, op->version, 0, 1, state, bytes);
	skep_pool_release(device->pool, buf);
	return good;
}
