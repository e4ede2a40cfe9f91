/* SPDX-License-Identifier: Apache-2.0
 *
 * rerun.c - which microbatches of a round have to be run again, and through which stages (SKEP_ON_LOSS_RERUN).
 *
 * When all that was granted has come back or was given up, every member is asked what it has counted (a REDUCE of size 0).
 * To answer, it drops what it still holds; so after the answers nothing is under way, and what nobody has counted is lost
 * for certain. It is granted again: the microbatch goes through all stages, and those of its span count it, the others
 * only compute. A span is a run of neighbouring stages; a microbatch that is missing in two runs is run twice. Then
 * the members are asked again. What travels meanwhile carries the attempt of the count before, so that nothing of an
 * earlier pass is taken for it.
 *
 * Cost: a message to and from every worker for each round without losses; one more way through the pipeline for one with.
 */
#include "core/directory.h"

void rerun_count(struct directory *d, struct step *step)
{
	uint32_t attempt = d->pass > 0 ? d->pass : d->void_attempt;
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on; stage++) {
		uint32_t used = directory_stage(d, stage)->attempt;
		attempt = used > attempt ? used : attempt;
	}
	d->phase = PHASE_COUNTING;
	d->pass = attempt + 1;
	d->reduced = (struct reduced){.on = true, .round = d->round, .issued = d->issued};
	for (uint32_t stage = 0; stage < step->plan->stages; stage++) {
		directory_stage(d, stage)->attempt = attempt;
		directory_stage(d, stage)->committed = false;
		attempt_begin(d, step, stage, false);
	}
	rounds_all_told(d, step); /* if there is nobody to ask */
}

/* The first run of stages (or slices), if any, in which nobody has counted this microbatch. */
static bool missing(struct directory *d, const struct skep_plan *plan, uint32_t microbatch, struct skep_span *ret)
{
	uint32_t first = 0, slices = skep_plan_slices(plan);
	while (first < slices && rounds_counters(d, first)[microbatch] != SKEP_NO_INDEX)
		first++;
	if (first == slices)
		return false;
	uint32_t last = first;
	while (last + 1 < slices && rounds_counters(d, last + 1)[microbatch] == SKEP_NO_INDEX)
		last++;
	*ret = (struct skep_span){(uint16_t)first, (uint16_t)last};
	return true;
}

bool rerun_next(struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch, struct skep_span *ret_span)
{
	for (; d->rerun_microbatch < d->issued; d->rerun_microbatch++) {
		if (!missing(d, plan, d->rerun_microbatch, ret_span))
			continue;
		*ret_microbatch = d->rerun_microbatch;
		return true;
	}
	return false;
}

void rerun_counted(struct directory *d, struct step *step)
{
	struct skep_span span;
	uint32_t microbatch;
	d->rerun_microbatch = 0;
	if (!rerun_next(d, step->plan, &microbatch, &span)) {
		rounds_reduce(d, step);
		return;
	}
	d->phase = PHASE_OPEN;
	d->reduced.on = false;
	d->outstanding = 0;
	d->full = false;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		directory_row(d, i)->outstanding = 0;
	if (skep_plan_fixed(step->plan))
		fixed_serve_ready(d, step->plan);
	rounds_refill(d, step);
}
