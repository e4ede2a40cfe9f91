/* SPDX-License-Identifier: Apache-2.0
 *
 * recut.h - a scenario whose model is cut elsewhere: what its stages and slices then cost, without reading it again.
 *
 * For who looks for a cut and asks about thousands. What is told is what a scenario with that model.cut would have, by the
 * functions that make it when it is read (plan.c): cost, slice_bytes, stage but for move_ns, op_time, timing; and by way of
 * them what memory.h says. The rest is the first scenario's, which must stay where it is: memory[], bucket_first and
 * transfer_ns stay those of its cut, and neither world can run it.
 *
 * In this order: make; set, or set one slice, as often as wanted; finish.
 */
#ifndef SKEP_SCENARIOS_RECUT_H
#define SKEP_SCENARIOS_RECUT_H

#include "scenarios/scenario.h"

/* A copy, cut as the scenario is. False: no memory, and *ret is empty. */
bool skep_recut_make(const struct skep_scenario *scenario, struct skep_scenario *ret);
void skep_recut_finish(struct skep_scenario *recut);

/* Where the scenario is cut: layers of each slice. [slices] */
void skep_recut_of(const struct skep_scenario *scenario, uint32_t *ret_layers);

/* `layers` [slices], each at least one, all of the model's. */
void skep_recut_set(struct skep_scenario *recut, const uint32_t *layers);

/* One slice has layers [first, end), the others share out the rest in some way, and their figures are not to be read. As many
 * layers as slices must be left before and behind. Of stages with one slice alone. */
void skep_recut_set_slice(struct skep_scenario *recut, uint32_t slice, uint32_t first, uint32_t end);

/* "model.cut=[3, 2, 2, 2]", as --set takes it; the caller frees it. NULL: no memory. */
char *skep_recut_assignment(const uint32_t *layers, uint32_t slices);

#endif
