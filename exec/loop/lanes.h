/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h - runs a worker's operations on its device, off the loop's thread.
 *
 * Each lane is a FIFO with a thread of its own: one operation at a time, in the order given; the lanes run side by side.
 * The device takes one piece of arithmetic at a time, so the lanes take turns there, in the order in which they come; what it
 * then does beside its host (CUDA) the lanes wait for side by side. With pace, an operation also lasts at least the time that
 * the profile gives for the worker's GPU: the lane sleeps out the rest while the other lane may compute, as the two engines
 * of a GPU would.
 */
#pragma once

#include "exec/loop/clock.h"
#include "scenarios/read/scenario.h"

struct skep_lanes;

struct skep_lanes_setup {
	struct skep_device *device;
	const struct skep_clock *clock;
	void (*wake)(void *context); /* called on a lane's thread when an operation has ended */
	void *wake_context;
	const struct skep_scenario *pace_from; /* NULL: as fast as possible */
	uint32_t worker;                       /* whose times */
};

struct skep_lanes_done {
	struct skep_op op;
	struct skep_device_result result;
	skep_time begin_ns, end_ns;
	skep_time busy_ns;  /* wall-clock time inside the device */
	skep_time paced_ns; /* what the profile gives; 0: no pace */
};

struct skep_lanes *skep_lanes_create(const struct skep_lanes_setup *setup); /* NULL: no memory or no thread */

/* Is nothing under way, waiting, or to be popped? */
bool skep_lanes_idle(struct skep_lanes *lanes);

/* Ends what runs, drops what waits or sleeps. NULL is fine. */
void skep_lanes_destroy(struct skep_lanes *lanes);

bool skep_lanes_push(struct skep_lanes *lanes, const struct skep_op *op);   /* false: no memory, it will not run */
bool skep_lanes_pop(struct skep_lanes *lanes, struct skep_lanes_done *ret); /* false: none has ended */
