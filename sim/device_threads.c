/* SPDX-License-Identifier: Apache-2.0
 *
 * device_threads.c - see device_threads.h. One lock guards tasks and their order; no arithmetic is done under it.
 * Tasks that wait for a thread are in a list in the order in which they began, which is about the order in which the
 * clock will need their results.
 */
#include "sim/device_threads.h"

#include <assert.h>
#include <stdlib.h>

#include "base/process/threads.h"

enum task_state { TASK_NONE, TASK_WAITING, TASK_RUNNING, TASK_DONE };

struct task { /* of a device's lane */
	struct skep_op op;
	struct skep_device *device;
	struct skep_device_result result;
	uint64_t number; /* by begin */
	enum task_state state;
	bool listed;
	struct task *before, *after;
};

struct skep_device_threads {
	struct skep_threads threads;
	uint64_t begun;
	struct task *first, *last; /* the list */
	struct task *task;         /* [devices][SKEP_LANES] */
};

static struct task *task_of(struct skep_device_threads *device_threads, uint32_t index, uint32_t lane)
{
	return &device_threads->task[(size_t)index * SKEP_LANES + lane];
}

static struct task *lanes_of(struct skep_device_threads *device_threads, const struct task *task)
{
	return &device_threads->task[(size_t)(task - device_threads->task) / SKEP_LANES * SKEP_LANES];
}

/* ---- with the lock held ------------------------------------------------------------------------------------------ */

static void list(struct skep_device_threads *device_threads, struct task *task)
{
	assert(!task->listed && task->state == TASK_WAITING);
	task->listed = true;
	task->before = device_threads->last;
	task->after = NULL;
	*(device_threads->last ? &device_threads->last->after : &device_threads->first) = task;
	device_threads->last = task;
}

static void unlist(struct skep_device_threads *device_threads, struct task *task)
{
	if (!task->listed)
		return;
	*(task->before ? &task->before->after : &device_threads->first) = task->after;
	*(task->after ? &task->after->before : &device_threads->last) = task->before;
	task->listed = false;
}

/* What its device has to do before it, or is doing; NULL: nothing. */
static struct task *in_its_way(struct skep_device_threads *device_threads, const struct task *task)
{
	struct task *lane = lanes_of(device_threads, task);
	for (uint32_t l = 0; l < SKEP_LANES; l++) {
		bool earlier = lane[l].state == TASK_WAITING && lane[l].number < task->number;
		if (&lane[l] != task && (earlier || lane[l].state == TASK_RUNNING))
			return &lane[l];
	}
	return NULL;
}

static struct task *next_free(struct skep_device_threads *device_threads)
{
	struct task *task = device_threads->first;
	while (task && in_its_way(device_threads, task))
		task = task->after;
	return task;
}

/* Gives the lock away meanwhile. */
static void work_on(struct skep_device_threads *device_threads, struct task *task)
{
	assert(task->state == TASK_WAITING && !in_its_way(device_threads, task));
	unlist(device_threads, task);
	task->state = TASK_RUNNING;
	pthread_mutex_unlock(&device_threads->threads.lock);
	skep_device_run(task->device, &task->op, &task->result);
	pthread_mutex_lock(&device_threads->threads.lock);
	task->state = TASK_DONE;
	pthread_cond_broadcast(&device_threads->threads.done);
	if (device_threads->first) /* the device's next one may be free now */
		skep_threads_offer(&device_threads->threads, false);
}

static void finish(struct skep_device_threads *device_threads, struct task *task)
{
	assert(task->state != TASK_NONE);
	while (task->state != TASK_DONE) {
		struct task *other = in_its_way(device_threads, task);
		if (task->state == TASK_WAITING && !other)
			work_on(device_threads, task);
		else if (other && other->state == TASK_WAITING)
			work_on(device_threads, other);
		else if ((other = next_free(device_threads)))
			work_on(device_threads, other);
		else
			pthread_cond_wait(&device_threads->threads.done, &device_threads->threads.lock);
	}
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static bool take(void *context, uint32_t number)
{
	struct skep_device_threads *device_threads = context;
	struct task *task = next_free(device_threads);
	(void)number;
	if (task)
		work_on(device_threads, task);
	return task != NULL;
}

struct skep_device_threads *skep_device_threads_create(uint32_t devices, uint32_t threads)
{
	assert(threads >= 1);
	struct skep_device_threads *device_threads = calloc(1, sizeof *device_threads);
	struct task *task = calloc((size_t)devices * SKEP_LANES, sizeof *task);
	if (device_threads)
		device_threads->task = task;
	if (!device_threads || !task ||
		!skep_threads_start(&device_threads->threads, threads - 1, 0, take, device_threads)) {
		free(device_threads);
		free(task);
		return NULL;
	}
	return device_threads;
}

void skep_device_threads_destroy(struct skep_device_threads *device_threads)
{
	if (!device_threads)
		return;
	skep_threads_stop(&device_threads->threads);
	free(device_threads->task);
	free(device_threads);
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

void skep_device_threads_begin(struct skep_device_threads *device_threads, uint32_t index, struct skep_device *device,
	const struct skep_op *op, bool light)
{
	struct task *task = task_of(device_threads, index, op->lane);
	pthread_mutex_lock(&device_threads->threads.lock);
	assert(task->state == TASK_NONE);
	*task = (struct task){.op = *op, .device = device, .number = device_threads->begun++, .state = TASK_WAITING};
	if (!light && device_threads->threads.count > 0) {
		list(device_threads, task);
		skep_threads_offer(&device_threads->threads, false);
	}
	pthread_mutex_unlock(&device_threads->threads.lock);
}

void skep_device_threads_end(
	struct skep_device_threads *device_threads, uint32_t index, uint32_t lane, struct skep_device_result *ret)
{
	struct task *task = task_of(device_threads, index, lane);
	pthread_mutex_lock(&device_threads->threads.lock);
	assert(task->state != TASK_NONE);
	finish(device_threads, task);
	*ret = task->result;
	task->state = TASK_NONE;
	pthread_mutex_unlock(&device_threads->threads.lock);
}

void skep_device_threads_drain(struct skep_device_threads *device_threads, uint32_t index)
{
	pthread_mutex_lock(&device_threads->threads.lock);
	for (uint32_t lane = 0; lane < SKEP_LANES; lane++) {
		struct task *task = task_of(device_threads, index, lane);
		if (task->state == TASK_WAITING)
			unlist(device_threads, task); /* the caller does it when it ends */
		while (task->state == TASK_RUNNING)
			pthread_cond_wait(&device_threads->threads.done, &device_threads->threads.lock);
	}
	pthread_mutex_unlock(&device_threads->threads.lock);
}

void skep_device_threads_forget(struct skep_device_threads *device_threads, uint32_t index)
{
	skep_device_threads_drain(device_threads, index);
	for (uint32_t lane = 0; lane < SKEP_LANES; lane++)
		task_of(device_threads, index, lane)->state = TASK_NONE;
}
