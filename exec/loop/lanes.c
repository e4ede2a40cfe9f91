/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.c - see lanes.h. One lock guards the queues; no arithmetic and no sleep happens under it.
 *
 * A paced operation ends at begin + profile, by a wait with an absolute time on the monotonic clock. The kernel may add its
 * timer slack (50 us unless told otherwise), so the threads set theirs to 1 us; spinning out the last microseconds
 * was left out because it takes a core from the other processes of the machine.
 */
#include "exec/loop/lanes.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/sched.h"

struct lane {
	struct skep_lanes *all;
	pthread_t thread;
	bool started;
	pthread_cond_t news; /* something to do, or stop */
	struct skep_op *op;  /* ring: op[(head + i) % room] */
	size_t head, count, room;
};

struct skep_lanes {
	struct skep_lanes_setup setup;
	pthread_mutex_t lock;
	bool stop;
	struct lane lane[SKEP_LANES];

	uint64_t turn_next, turn_now; /* the device serves tickets in order */
	pthread_cond_t turn;

	struct skep_lanes_done *done; /* [done_count], oldest first from done_head */
	size_t done_head, done_count, done_room;
	size_t owed; /* operations that were pushed and not popped; at most done_room */
};

static bool queue_push(struct lane *lane, const struct skep_op *op)
{
	assert(lane->count <= lane->room);
	if (lane->count == lane->room) {
		size_t room = 2 * lane->room + 8;
		struct skep_op *bigger = malloc(room * sizeof *bigger);
		if (bigger == NULL)
			return false;
		for (size_t i = 0; i < lane->count; i++)
			bigger[i] = lane->op[(lane->head + i) % lane->room];
		free(lane->op);
		lane->op = bigger;
		lane->head = 0;
		lane->room = room;
	}
	lane->op[(lane->head + lane->count++) % lane->room] = *op;
	return true;
}

static struct skep_op queue_pop(struct lane *lane)
{
	assert(lane->count > 0);
	struct skep_op op = lane->op[lane->head];
	lane->head = (lane->head + 1) % lane->room;
	lane->count--;
	return op;
}

/* Makes room for the end of one more operation beforehand, as a lane's thread has no way to report that memory ran
 * out. */
static bool done_reserve(struct skep_lanes *lanes)
{
	assert(lanes->owed <= lanes->done_room);
	if (lanes->owed < lanes->done_room)
		return true;
	size_t room = 2 * lanes->done_room + 8;
	struct skep_lanes_done *bigger = realloc(lanes->done, room * sizeof *bigger);
	if (bigger == NULL)
		return false;
	lanes->done = bigger;
	lanes->done_room = room;
	return true;
}

static void done_push(struct skep_lanes *lanes, const struct skep_lanes_done *done)
{
	if (lanes->done_count == lanes->done_room) { /* those that were popped make room */
		lanes->done_count -= lanes->done_head;
		memmove(lanes->done, lanes->done + lanes->done_head, lanes->done_count * sizeof *lanes->done);
		lanes->done_head = 0;
	}
	assert(lanes->done_count < lanes->done_room);
	lanes->done[lanes->done_count++] = *done;
}

/* The arithmetic: begun when it is this lane's turn. What a device does beside its host is waited for side by side. Called and
 * returns with the lock held. */
static void compute(struct skep_lanes *lanes, struct skep_lanes_done *done)
{
	assert(done->op.lane < SKEP_LANES);
	uint64_t ticket = lanes->turn_next++;
	while (lanes->turn_now != ticket)
		pthread_cond_wait(&lanes->turn, &lanes->lock);
	pthread_mutex_unlock(&lanes->lock);
	skep_time begin = skep_clock_now(lanes->setup.clock);
	skep_device_start(lanes->setup.device, &done->op, &done->result);
	pthread_mutex_lock(&lanes->lock);
	lanes->turn_now++;
	pthread_cond_broadcast(&lanes->turn);
	pthread_mutex_unlock(&lanes->lock);
	skep_device_wait(lanes->setup.device, &done->op, &done->result);
	done->busy_ns = skep_clock_now(lanes->setup.clock) - begin;
	pthread_mutex_lock(&lanes->lock);
}

/* Sleeps out what the profile asks for. Called and returns with the lock held. */
static void pace(struct skep_lanes *lanes, struct lane *lane, struct skep_lanes_done *done)
{
	if (lanes->setup.pace_from == NULL)
		return;
	done->paced_ns = skep_scenario_op_ns(lanes->setup.pace_from, lanes->setup.worker, &done->op);
	skep_time end = done->begin_ns + done->paced_ns;
	struct timespec until = skep_clock_timespec(lanes->setup.clock, end);
	while (!lanes->stop && skep_clock_now(lanes->setup.clock) < end)
		pthread_cond_timedwait(&lane->news, &lanes->lock, &until);
}

static void *lane_main(void *argument)
{
	struct lane *lane = argument;
	struct skep_lanes *lanes = lane->all;
	skep_sched_exact_timers();
	pthread_mutex_lock(&lanes->lock);
	while (true) {
		while (!lanes->stop && lane->count == 0)
			pthread_cond_wait(&lane->news, &lanes->lock);
		if (lanes->stop)
			break;
		struct skep_lanes_done done = {.op = queue_pop(lane), .begin_ns = skep_clock_now(lanes->setup.clock)};
		compute(lanes, &done);
		pace(lanes, lane, &done);
		done.end_ns = skep_clock_now(lanes->setup.clock);
		done_push(lanes, &done);
		pthread_mutex_unlock(&lanes->lock); /* whom this wakes wants it at once */
		lanes->setup.wake(lanes->setup.wake_context);
		pthread_mutex_lock(&lanes->lock);
	}
	pthread_mutex_unlock(&lanes->lock);
	return NULL;
}

static bool lane_start(struct skep_lanes *lanes, struct lane *lane)
{
	pthread_condattr_t monotonic;
	lane->all = lanes;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&lane->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	lane->started = pthread_create(&lane->thread, NULL, lane_main, lane) == 0;
	return lane->started;
}

struct skep_lanes *skep_lanes_create(const struct skep_lanes_setup *setup)
{
	struct skep_lanes *lanes = calloc(1, sizeof *lanes);
	if (lanes == NULL)
		return NULL;
	lanes->setup = *setup;
	pthread_mutex_init(&lanes->lock, NULL);
	pthread_cond_init(&lanes->turn, NULL);
	bool started = true;
	for (int i = 0; i < SKEP_LANES; i++)
		started = lane_start(lanes, &lanes->lane[i]) && started;
	if (started)
		return lanes;
	skep_lanes_destroy(lanes);
	return NULL;
}

void skep_lanes_destroy(struct skep_lanes *lanes)
{
	if (lanes == NULL)
		return;
	pthread_mutex_lock(&lanes->lock);
	lanes->stop = true;
	for (int i = 0; i < SKEP_LANES; i++)
		pthread_cond_signal(&lanes->lane[i].news);
	pthread_mutex_unlock(&lanes->lock);
	for (int i = 0; i < SKEP_LANES; i++) {
		struct lane *lane = &lanes->lane[i];
		if (lane->started)
			pthread_join(lane->thread, NULL);
		pthread_cond_destroy(&lane->news);
		free(lane->op);
	}
	pthread_cond_destroy(&lanes->turn);
	pthread_mutex_destroy(&lanes->lock);
	free(lanes->done);
	free(lanes);
}

bool skep_lanes_push(struct skep_lanes *lanes, const struct skep_op *op)
{
	assert(op->lane < SKEP_LANES);
	pthread_mutex_lock(&lanes->lock);
	bool pushed = done_reserve(lanes) && queue_push(&lanes->lane[op->lane], op);
	lanes->owed += pushed;
	pthread_cond_signal(&lanes->lane[op->lane].news);
	pthread_mutex_unlock(&lanes->lock);
	return pushed;
}

bool skep_lanes_pop(struct skep_lanes *lanes, struct skep_lanes_done *ret)
{
	pthread_mutex_lock(&lanes->lock);
	bool there = lanes->done_head < lanes->done_count;
	if (there) {
		*ret = lanes->done[lanes->done_head++];
		lanes->owed--;
	}
	pthread_mutex_unlock(&lanes->lock);
	return there;
}

bool skep_lanes_idle(struct skep_lanes *lanes)
{
	pthread_mutex_lock(&lanes->lock);
	bool idle = lanes->owed == 0;
	pthread_mutex_unlock(&lanes->lock);
	return idle;
}
