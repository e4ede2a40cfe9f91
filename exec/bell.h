/* SPDX-License-Identifier: Apache-2.0
 *
 * bell.h - wakes a process that has nothing to do, from another thread or from another process of the host.
 *
 * The listener notes how often the bell has rung, looks for work, and sleeps only if it has not rung since; the ringer
 * first makes the work visible, then rings. Whichever comes first, no ring is lost: either the listener's kernel call
 * sees the new count, or the ringer sees a sleeper. A ring costs a system call only when somebody sleeps.
 */
#ifndef SKEP_EXEC_BELL_H
#define SKEP_EXEC_BELL_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct skep_bell { /* may lie in memory that processes share; all zero at the start */
	_Atomic uint32_t rings, asleep;
};

static inline uint32_t skep_bell_count(struct skep_bell *bell)
{
	return atomic_load(&bell->rings);
}

static inline void skep_bell_ring(struct skep_bell *bell)
{
	atomic_fetch_add(&bell->rings, 1);
	if (atomic_load(&bell->asleep) != 0)
		syscall(SYS_futex, (uint32_t *)&bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps while the count is `seen`, at most so long. One listener a bell. */
static inline void skep_bell_wait(struct skep_bell *bell, uint32_t seen, uint64_t most_ns)
{
	struct timespec most = {.tv_sec = (time_t)(most_ns / 1000000000u), .tv_nsec = (long)(most_ns % 1000000000u)};
	atomic_store(&bell->asleep, 1);
	syscall(SYS_futex, (uint32_t *)&bell->rings, FUTEX_WAIT, seen, &most, NULL, 0);
	atomic_store(&bell->asleep, 0);
}

#endif
