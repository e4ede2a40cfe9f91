/* SPDX-License-Identifier: Apache-2.0
 *
 * sched.h - what a thread asks of the kernel's scheduler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* For a thread that mostly sleeps, and runs for microseconds at a time. Its timers are exact to 1 us, and when it wakes up it
 * does not wait until a thread that computes has used its turn of some 3 ms: it asks for a slice of 0.1 ms, as Linux grants it
 * from 6.12 on (older kernels take no notice). Its priority and policy stay, and threads that it makes have the usual slice. */
void skep_sched_wake_soon(void);

/* The calling thread's timers are exact to 1 us, in place of 50. */
void skep_sched_exact_timers(void);

/* Keeps the calling thread, and those that it makes from now on, to `count` of the cores that it may use, from the first-th on
 * (sched_setaffinity(2)). False, and nothing has changed: it may not use so many. */
bool skep_sched_keep_to(uint32_t first, uint32_t count);
