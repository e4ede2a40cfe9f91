/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_span.h - how much of a run `skep plan` simulates where the few steps of a trial are not enough: to choose between the
 * last few, and to say what is expected. For the files of `skep plan` alone.
 */
#ifndef SKEP_COMMANDS_PLAN_SPAN_H
#define SKEP_COMMANDS_PLAN_SPAN_H

#include "analysis/summary.h"
#include "commands/plan_work.h"

struct plan_span {
	uint32_t rounds;  /* of each run */
	uint32_t warm_up; /* of these, not counted */
	bool whole;       /* the run is simulated to its end: all is counted */
	uint32_t seeds;   /* for what is said */
};

/* Which depends on the scenario alone. `rounds_needed`: until the target loss; 0: there is none, or it is not reached. */
struct plan_span plan_span_of(const struct plan_work *work, uint32_t rounds_needed);

/* Without arithmetic, over the span; changes the scenario. False: it does not come to an end, or there is no memory. */
bool plan_span_simulate(const struct plan_span *span, struct skep_scenario *scenario, struct skep_summary *ret);

/* Tries the best few of those that were tried again, over the span, for plan_choose(); not if it says nothing new. */
void plan_span_try(struct plan_work *work);

#endif
