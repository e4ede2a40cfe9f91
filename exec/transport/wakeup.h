/* SPDX-License-Identifier: Apache-2.0
 *
 * wakeup.h - wakes a process that has nothing to do, from another thread or from another process of the host.
 *
 * The receiver reads the count of wake-ups, looks for work, and sleeps only if the count is still the same; the
 * sender first makes the work visible, then raises the count. Whichever comes first, no wake-up is lost: either
 * the receiver's kernel call sees the new count, or the sender sees a sleeper. A wake-up costs a system call only
 * while its receiver sleeps.
 */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct skep_wakeup { /* may lie in memory that processes share; all zero at the start */
	_Atomic uint32_t rings, asleep;
};

static inline uint32_t skep_wakeup_count(struct skep_wakeup *wakeup)
{
	return atomic_load(&wakeup->rings);
}

static inline void skep_wakeup_ring(struct skep_wakeup *wakeup)
{
	atomic_fetch_add(&wakeup->rings, 1);
	if (atomic_load(&wakeup->asleep) != 0)
		syscall(SYS_futex, (uint32_t *)&wakeup->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps while the count is `seen`, for most_ns at most. A wake-up has one receiver. */
static inline void skep_wakeup_wait(struct skep_wakeup *wakeup, uint32_t seen, uint64_t most_ns)
{
	struct timespec most = {.tv_sec = (time_t)(most_ns / 1000000000u), .tv_nsec = (long)(most_ns % 1000000000u)};
	atomic_store(&wakeup->asleep, 1);
	syscall(SYS_futex, (uint32_t *)&wakeup->rings, FUTEX_WAIT, seen, &most, NULL, 0);
	atomic_store(&wakeup->asleep, 0);
}
