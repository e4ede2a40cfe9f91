/* SPDX-License-Identifier: Apache-2.0
 *
 * store_activity.c - a picture of a run whose size does not depend on its length: how long each worker spent on what, in
 * bins of time.
 *
 * The rows of `ops` are capped, and of a long run they show the beginning only; this shows all of it. Bins begin short;
 * when time goes beyond the last one, pairs are merged and a bin is twice as long. So between half of the bins and all of
 * them are in use at the end. Keeps true: the sum over the bins of a group is the time of its operations, to the ns, in
 * whatever order they were heard.
 */
#include "analysis/store/store_activity.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BINS_MAX 1024u /* as many as a picture has pixels */
#define BINS_MIN 16u
#define CELLS_MAX 262144u /* bins of all workers, while there are at least BINS_MIN each */
#define FIRST_SHIFT 10u   /* a microsecond */

bool skep_activity_init(struct skep_activity *activity, uint32_t workers)
{
	*activity = (struct skep_activity){.workers = workers, .bins = BINS_MAX, .shift = FIRST_SHIFT};
	while (activity->bins > BINS_MIN && (uint64_t)activity->bins * workers > CELLS_MAX)
		activity->bins /= 2;
	size_t cells = (size_t)workers * activity->bins;
	activity->busy_ns = calloc(cells ? cells : 1, SKEP_ACTIVITY_GROUPS * sizeof *activity->busy_ns);
	return activity->busy_ns != NULL;
}

void skep_activity_finish(struct skep_activity *activity)
{
	free(activity->busy_ns);
	*activity = (struct skep_activity){0};
}

static size_t place(const struct skep_activity *activity, uint32_t worker, uint32_t bin)
{
	assert(worker < activity->workers && bin < activity->bins);
	return ((size_t)worker * activity->bins + bin) * SKEP_ACTIVITY_GROUPS;
}

const skep_time *skep_activity_cell(const struct skep_activity *activity, uint32_t worker, uint32_t bin)
{
	return activity->busy_ns + place(activity, worker, bin);
}

static void merge_pairs(struct skep_activity *activity)
{
	for (uint32_t worker = 0; worker < activity->workers; worker++) {
		skep_time *row = activity->busy_ns + place(activity, worker, 0);
		for (uint32_t i = 0; i < activity->used; i++) {
			skep_time *from = row + (size_t)i * SKEP_ACTIVITY_GROUPS;
			skep_time *to = row + (size_t)(i / 2) * SKEP_ACTIVITY_GROUPS;
			for (int group = 0; from != to && group < SKEP_ACTIVITY_GROUPS; group++) {
				to[group] += from[group];
				from[group] = 0;
			}
		}
	}
	activity->used = (activity->used + 1) / 2;
	activity->shift++;
}

static enum skep_activity_group group_of(const struct skep_op_span *span)
{
	if (span->kind == SKEP_OP_STEP || span->kind == SKEP_OP_INNER_STEP ||
		span->kind == SKEP_OP_PSEUDO_GRAD) /* in whatever lane: delayed updates take the reduce lane for it */
		return SKEP_ACTIVITY_STEP;
	if (span->lane == SKEP_LANE_REDUCE)
		return SKEP_ACTIVITY_REDUCE;
	if (span->kind == SKEP_OP_FORWARD || span->kind == SKEP_OP_RECOMPUTE)
		return SKEP_ACTIVITY_FORWARD;
	return span->kind == SKEP_OP_BACKWARD ? SKEP_ACTIVITY_BACKWARD : SKEP_ACTIVITY_STATE;
}

void skep_activity_add(struct skep_activity *activity, const struct skep_op_span *span)
{
	enum skep_activity_group group = group_of(span);
	if (span->worker >= activity->workers || span->end_ns <= span->begin_ns)
		return;
	while ((span->end_ns - 1) >> activity->shift >= activity->bins)
		merge_pairs(activity);
	for (skep_time at = span->begin_ns; at < span->end_ns;) {
		uint32_t bin = (uint32_t)(at >> activity->shift);
		skep_time next = (skep_time)(bin + 1) << activity->shift;
		skep_time until = span->end_ns < next ? span->end_ns : next;
		activity->busy_ns[place(activity, span->worker, bin) + group] += until - at;
		activity->used = bin < activity->used ? activity->used : bin + 1;
		at = until;
	}
}
