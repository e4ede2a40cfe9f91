/* SPDX-License-Identifier: Apache-2.0
 *
 * sched.c - see sched.h. The C library has no sched_setattr() before glibc 2.41, and the kernel's own header of its structure
 * does not go with the C library's from then on.
 */
#include "base/process/sched.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMER_SLACK_NS 1000ul
#define TURN_NS 100000u
#define RESET_ON_FORK 1u /* SCHED_FLAG_RESET_ON_FORK: threads that it makes have what is usual */

struct attributes { /* the kernel's struct sched_attr in its first version */
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void skep_sched_exact_timers(void)
{
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0ul, 0ul, 0ul);
}

void skep_sched_wake_soon(void)
{
	skep_sched_exact_timers();
	if (sched_getscheduler(0) != SCHED_OTHER)
		return;
	const int nice = getpriority(PRIO_PROCESS, 0);
	/* Below 0 it is preferred already, and RESET_ON_FORK would take that from threads that it makes; -1 is also an error. */
	if (nice < 0)
		return;
	const struct attributes attributes = {.size = sizeof attributes,
		.policy = SCHED_OTHER,
		.flags = RESET_ON_FORK,
		.nice = nice,
		.runtime_ns = TURN_NS};
	syscall(SYS_sched_setattr, 0, &attributes, 0u); /* where it is refused the thread waits for its turn */
}

bool skep_sched_keep_to(uint32_t first, uint32_t count)
{
	cpu_set_t mine, kept;
	uint32_t nth = 0;
	CPU_ZERO(&kept);
	if (sched_getaffinity(0, sizeof mine, &mine) != 0)
		return false;
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &mine))
			continue;
		if (nth >= first && nth - first < count)
			CPU_SET(core, &kept);
		nth++;
	}
	return (uint32_t)CPU_COUNT(&kept) == count && sched_setaffinity(0, sizeof kept, &kept) == 0;
}
