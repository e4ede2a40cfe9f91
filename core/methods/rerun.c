/* SPDX-License-Identifier: Apache-2.0
 *
 * rerun.c - which microbatches of a round have to be run again, and through which stages (SKEP_ON_LOSS_RERUN).
 *
 * When all that was granted has come back or was given up, every member is asked what it has counted (a REDUCE of size
 * 0). To answer, it drops what it still holds; so after the answers nothing is under way, and what no worker has
 * counted is lost for certain. It is granted again: the microbatch goes through all stages, and those of its span count
 * it, the others only compute. A span is a run of neighbouring stages; a microbatch that is missing in two runs is run
 * twice. Then the members are asked again. What travels meanwhile carries the attempt of the count before, so that
 * nothing of an earlier pass is taken for it.
 *
 * Cost: a message to and from every worker for each round without losses; one more way through the pipeline for one with.
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/methods/flush.h"

/* The first run of virtual stages, if any, in which no worker has counted this microbatch. */
static bool missing(struct directory *d, const struct skep_plan *plan, uint32_t microbatch, struct skep_span *ret)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t first = 0, vstages = skep_plan_vstages(plan);
	while (first < vstages && skep_rounds_counters(d, first)[microbatch] != SKEP_NO_INDEX)
		first++;
	if (first == vstages)
		return false;
	uint32_t last = first;
	while (last + 1 < vstages && skep_rounds_counters(d, last + 1)[microbatch] == SKEP_NO_INDEX)
		last++;
	*ret = (struct skep_span){(uint16_t)first, (uint16_t)last};
	return true;
}

static bool next(
	struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch, struct skep_span *ret_span)
{
	assert(d->issued <= d->capacity);
	assert(d->phase != PHASE_STOPPED);
	for (; d->rerun_microbatch < d->issued; d->rerun_microbatch++) {
		if (!missing(d, plan, d->rerun_microbatch, ret_span))
			continue;
		*ret_microbatch = d->rerun_microbatch;
		return true;
	}
	return false;
}

static void counted(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_COUNTING);
	assert(d->reduced.on);
	struct skep_span span;
	uint32_t microbatch;
	d->rerun_microbatch = 0;
	if (!next(d, step->plan, &microbatch, &span)) {
		skep_rounds_all_counted(d);
		step->how.directory->reduce(d, step);
		return;
	}
	skep_rounds_reopen(d, step);
	if (skep_plan_fixed(step->plan))
		skep_fixed_serve_ready(d, step->plan);
	step->how.directory->resume(d, step);
}

static uint32_t wanted(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase == PHASE_OPEN);
	assert(d->issued <= skep_plan_quota(plan, d->round));
	return skep_plan_quota(plan, d->round) - d->issued;
}

static bool again(
	struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch, struct skep_span *ret_span)
{
	assert(d->phase == PHASE_OPEN);
	return d->pass > 0 && next(d, plan, ret_microbatch, ret_span);
}

/* What it had told is missing, and so would it be in the sums. */
static void member_gone(struct directory *d, struct step *step, uint32_t stage)
{
	(void)stage;
	skep_attempt_ask_all(d, step);
}

const struct skep_losses skep_losses_rerun = {
	.voids = true,
	.in_shards = false,
	.wanted = wanted,
	.again = again,
	.complete = skep_attempt_ask_all,
	.counted = counted,
	.member_gone = member_gone,
	.gone = skep_losses_go_on,
	.fenced = skep_losses_ignore,
	SKEP_LOSSES_WITHOUT_WAIT,
};
