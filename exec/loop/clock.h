/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - ns since the run began. On one host every process counts from the same instant of the monotonic clock; over
 * several hosts each counts from its own, taken after a barrier, so stamps of two hosts differ by about a network delay.
 */
#pragma once

#include <time.h>

#include "base/clock.h"
#include "core/skep.h"

struct skep_clock {
	uint64_t start_ns; /* CLOCK_MONOTONIC when the run began */
};

static inline skep_time skep_clock_now(const struct skep_clock *clock)
{
	uint64_t raw = skep_monotonic_ns();
	return raw > clock->start_ns ? raw - clock->start_ns : 0;
}

/* The same instant as CLOCK_MONOTONIC knows it, for absolute waits. */
static inline struct timespec skep_clock_timespec(const struct skep_clock *clock, skep_time at)
{
	uint64_t raw = clock->start_ns + at;
	return (struct timespec){.tv_sec = (time_t)(raw / 1000000000u), .tv_nsec = (long)(raw % 1000000000u)};
}
