/* SPDX-License-Identifier: Apache-2.0
 *
 * order.h - for each ordered pair of machines, when the latest of its messages ends its latency. For network.c.
 *
 * A pair is remembered only until that time has passed, so the memory needed grows with the in-flight messages.
 */
#pragma once

#include <stdbool.h>

#include "core/skep.h"

struct skep_order_entry {
	uint64_t key; /* 0: free */
	skep_time latest;
};

struct skep_order {                     /* all zero at first */
	struct skep_order_entry *entry; /* open addressing, a power of two, at most half full */
	uint32_t size, used;
};

/* *time: when a message of this pair (key not 0) would get there; brought up to that of those before it. False: no memory. */
bool skep_order_keep(struct skep_order *order, skep_time now, uint64_t key, skep_time *time);
void skep_order_finish(struct skep_order *order);
