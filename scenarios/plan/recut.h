/* SPDX-License-Identifier: Apache-2.0
 *
 * recut.h - computes what stages and virtual stages cost when the model is cut elsewhere, without reading the
 * scenario again: for searches that compare thousands of cuts.
 *
 * The figures are those of a scenario with that model.cut, from the functions that make them when it is read
 * (plan.c): cost, vstage_bytes, stage but for migrate_ns, op_time, timing; and through them what memory.h says. All
 * else belongs to the first scenario, which must stay where it is: memory[], bucket_first and transfer_ns are still
 * those of its cut, so neither world can run the result.
 *
 * Order of calls: make; set, or set one virtual stage, as often as wanted; finish.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* A copy, cut as the scenario is. False: no memory, and *ret is empty. */
bool skep_recut_make(const struct skep_scenario *scenario, struct skep_scenario *ret);
void skep_recut_finish(struct skep_scenario *recut);

/* Where the scenario is cut: layers of each vstage. [vstages] */
void skep_recut_of(const struct skep_scenario *scenario, uint32_t *ret_layers);

/* `layers` [vstages], each at least one, all of the model's. */
void skep_recut_set(struct skep_scenario *recut, const uint32_t *layers);

/* One vstage has layers [first, end), the others share out the rest in some way, and their figures are not to be
 * read. As many layers as vstages must be left before and behind. Only for stages with one vstage each. */
void skep_recut_set_vstage(struct skep_scenario *recut, uint32_t vstage, uint32_t first, uint32_t end);

/* "model.cut=[3, 2, 2, 2]", as --set takes it; the caller frees it. NULL: no memory. */
char *skep_recut_assignment(const uint32_t *layers, uint32_t vstages);
