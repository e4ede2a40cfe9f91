/* SPDX-License-Identifier: Apache-2.0
 *
 * loop_fixture.h - for tests of the real loop with a thread for each rank: what rank 0's recorder hears of bytes and logs, and
 * the device of a rank.
 */
#pragma once

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/loop/loop.h"
#include "exec/replay/replay.h"

static inline void add_bytes(uint64_t sum[SKEP_TRAFFICS], const uint64_t bytes[SKEP_TRAFFICS])
{
	for (int i = 0; i < SKEP_TRAFFICS; i++)
		sum[i] += bytes[i];
}

static inline void log_add(struct skep_machine_log *log, const uint8_t *bytes, uint32_t count)
{
	uint8_t *all = realloc((uint8_t *)(uintptr_t)log->bytes, log->count + count);
	assert(all != NULL);
	memcpy(all + log->count, bytes, count);
	log->bytes = all;
	log->count += count;
}

static inline void log_end(struct skep_machine_log *log, const struct skep_worker_use *use)
{
	log->ended = !use->torn;
	log->events = use->torn ? 0 : use->events;
	log->digest = use->digest;
}

static inline void log_free(struct skep_machine_log *log)
{
	free((uint8_t *)(uintptr_t)log->bytes);
}

static inline struct skep_device *device_of_stage(const struct skep_scenario *scenario, uint32_t stage)
{
	struct skep_diag error = {0};
	struct skep_device *device = skep_device_create_on(
		SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &scenario->training, stage, &error);
	assert_non_null(device);
	return device;
}
