/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_presence.h - when each worker was alive, and which stage it served then. Who lived when comes from `incarnations`, as
 * in every other count of time alive; what it served from the notes of a run about membership: these are rare, so all of them
 * are kept, however long the run was. Private to analysis/.
 */
#pragma once

#include "analysis/plot/plot_script.h"
#include "base/diag.h"

enum skep_presence_state {
	SKEP_PRESENCE_SERVING,
	SKEP_PRESENCE_DOWNLOADING, /* assigned to a stage, without its state */
	SKEP_PRESENCE_AWAY,        /* dead, left, or not there yet */
	SKEP_PRESENCE_IDLE,        /* alive without a stage: a spare, or not admitted */
	SKEP_PRESENCE_STATES
};

struct skep_presence_span { /* of a worker they follow each other without gaps, from 0 to the end of the run */
	uint32_t worker;
	enum skep_presence_state state;
	int64_t stage; /* -1: away or idle */
	double begin_s, end_s;
	bool changed; /* it serves another stage than the one it served last */
};

struct skep_presence {
	struct skep_presence_span *span;
	size_t spans;
	bool churned; /* at least one worker was away for a time or migrated */
};

bool skep_presence_read(struct skep_store *store, const struct skep_plot_run *run, double end_s,
	struct skep_presence *ret, struct skep_diag *reterr);
void skep_presence_finish(struct skep_presence *presence);
