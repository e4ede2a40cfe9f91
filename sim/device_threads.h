/* SPDX-License-Identifier: Apache-2.0
 *
 * device_threads.h - threads that do the arithmetic of simulated devices while the clock is virtual.
 *
 * The clock needs the result of an operation when it ends, not before, and its operands do not change meanwhile.
 * So it is offered to the threads when it begins, and called in when it ends: operations of many workers at one
 * virtual time run side by side on as many cores as there are. An operation that no thread has begun by then is
 * done by the caller itself; with one thread there is only the caller.
 *
 * Kept true: a device does one operation at a time, in the order in which they began; so results are the same to
 * the bit for any number of threads. Only the caller sees virtual time; threads see operations and devices alone.
 */
#pragma once

#include "models/device/device.h"

struct skep_device_threads;

/* Serves devices 0 .. devices - 1, with at most one operation in each of their SKEP_LANES lanes; `threads` >= 1
 * counts the caller. NULL: no memory, or a thread could not be created. */
struct skep_device_threads *skep_device_threads_create(uint32_t devices, uint32_t threads);
void skep_device_threads_destroy(
	struct skep_device_threads *device_threads); /* NULL is fine; what was not called in is not done */

/* The operation `op` of device `index` has begun in its lane; a lane has one at a time. With `light` no thread
 * takes it: handing it over would take longer than doing it. */
void skep_device_threads_begin(struct skep_device_threads *device_threads, uint32_t index, struct skep_device *device,
	const struct skep_op *op, bool light);
/* The operation in this lane has ended in virtual time: waits until a thread has done it, or does it here. */
void skep_device_threads_end(
	struct skep_device_threads *device_threads, uint32_t index, uint32_t lane, struct skep_device_result *ret);
/* Gives up the operations of device `index`, whose process has ended, and waits for those that run: the device can
 * be destroyed then. */
void skep_device_threads_forget(struct skep_device_threads *device_threads, uint32_t index);
/* Nothing of device `index` runs until the next skep_device_threads_begin() or skep_device_threads_end(): the caller may
 * run something on it. */
void skep_device_threads_drain(struct skep_device_threads *device_threads, uint32_t index);
