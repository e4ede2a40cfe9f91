/* SPDX-License-Identifier: Apache-2.0
 *
 * store_activity.h - what every worker did over a whole run, in equal bins of time. Private to analysis/.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"

enum skep_activity_group { /* in the order of the columns of the table */
	SKEP_ACTIVITY_FORWARD,
	SKEP_ACTIVITY_BACKWARD,
	SKEP_ACTIVITY_STEP,   /* of the compute lane; with delayed updates of the reduce lane */
	SKEP_ACTIVITY_REDUCE, /* the rest of the reduce lane */
	SKEP_ACTIVITY_STATE,  /* the rest of the compute lane: state that is saved, loaded, copied */
	SKEP_ACTIVITY_GROUPS
};

struct skep_activity {
	skep_time *busy_ns;     /* [workers][bins][SKEP_ACTIVITY_GROUPS] */
	uint32_t workers, bins; /* a power of two */
	uint32_t shift;         /* a bin is 2^shift ns long */
	uint32_t used;          /* bins that are not all empty: the first so many at most */
};

bool skep_activity_init(struct skep_activity *activity, uint32_t workers);
void skep_activity_finish(struct skep_activity *activity);
void skep_activity_add(struct skep_activity *activity, const struct skep_op_span *span);
const skep_time *skep_activity_cell(const struct skep_activity *activity, uint32_t worker, uint32_t bin);
